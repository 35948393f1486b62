#include "comm/transport/message/message_private.h"

#include "comm/core/half.h"
#include "comm/core/sum.h"

enum { ALIGN = 64 };

/* A block on its way. */
struct flight {
    bool is_flying;
    size_t i_block;
    int i_stage;
};

struct reduction {
    struct message_state *state;
    struct message_group *group;
    const struct comm_schedule *schedules[2];
    uint8_t *buf;
    size_t n_elems, elem_bytes, wire_bytes; /**< Bytes of an element; of one that is sent. */
    size_t slice_elems, block_elems, n_blocks;
    size_t in_bytes, out_bytes; /**< Scratch of a flight. */
    size_t n_requests;          /**< Of a flight. */
    enum weir_comm_type type;
    enum comm_wire wire;
    enum message_half half;
    int first_stage;
    uint32_t n_op;
    uint64_t deadline_ns;
    int window; /**< Blocks on their way at once. */
    struct flight flights[MESSAGE_MOST_FLIGHTS];
};

/* ---- where things are ----------------------------------------------------------------------- */

static bool is_narrow(const struct reduction *red)
{
    return red->wire_bytes != red->elem_bytes;
}

static const struct comm_schedule *schedule_of(const struct reduction *red,
                                               const struct flight *flight)
{
    return red->schedules[flight->i_block % 2];
}

static const struct comm_step *steps_of(const struct reduction *red, const struct flight *flight,
                                        int *out_n)
{
    const struct comm_schedule *schedule = schedule_of(red, flight);
    const int *first = &schedule->first_steps[flight->i_stage];
    *out_n = first[1] - first[0];
    return &schedule->steps[first[0]];
}

/* Elements of a step: its slices of the flight's block. */
static struct comm_slice range_of(const struct reduction *red, const struct flight *flight,
                                  const struct comm_step *step)
{
    int n_slices = schedule_of(red, flight)->n_slices;
    if (red->half != MESSAGE_WHOLE) {
        /* The next piece of a slice of the whole array. */
        struct comm_slice slice = comm_slice(red->n_elems, n_slices, step->first);
        size_t skip = WEIR_MIN(flight->i_block * red->slice_elems, slice.n);
        return (struct comm_slice){.first = slice.first + skip,
                                   .n = WEIR_MIN(slice.n - skip, red->slice_elems)};
    }
    size_t start = flight->i_block * red->block_elems;
    size_t len = WEIR_MIN(red->n_elems - start, red->block_elems);
    struct comm_slice first = comm_slice(len, n_slices, step->first);
    struct comm_slice last = comm_slice(len, n_slices, step->first + step->n - 1);
    return (struct comm_slice){.first = start + first.first,
                               .n = last.first + last.n - first.first};
}

static struct message_request *requests_of(const struct reduction *red, const struct flight *flight)
{
    return red->group->requests + (size_t)(flight - red->flights) * red->n_requests;
}

static uint8_t *in_scratch(const struct reduction *red, const struct flight *flight)
{
    return red->group->scratch + (size_t)(flight - red->flights) * (red->in_bytes + red->out_bytes);
}

static uint8_t *at(const struct reduction *red, struct comm_slice range)
{
    return red->buf + range.first * red->elem_bytes;
}

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* ---- a stage begins ------------------------------------------------------------------------- */

static weir_status post_receives(struct reduction *red, struct flight *flight)
{
    int n_steps;
    const struct comm_step *steps = steps_of(red, flight, &n_steps);
    struct message_request *requests = requests_of(red, flight);
    uint8_t *in = in_scratch(red, flight);
    for (int i = 0; i < n_steps; i++) {
        struct comm_slice range = range_of(red, flight, &steps[i]);
        size_t bytes = range.n * red->wire_bytes;
        if (steps[i].action == COMM_SEND || bytes == 0) {
            continue;
        }
        bool is_in_place = steps[i].action == COMM_TAKE && !is_narrow(red);
        WEIR_TRY(message_receive(red->state, red->group->ranks[steps[i].peer],
                                 is_in_place ? at(red, range) : in, bytes, red->n_op,
                                 message_part(MESSAGE_REDUCE, flight->i_block), &requests[i]));
        in += is_in_place ? 0 : aligned(bytes);
    }
    return WEIR_OK;
}

/* Narrow what is sent; of a finished sum keep what the others get. */
static const uint8_t *narrowed(const struct reduction *red, const struct comm_step *step,
                               struct comm_slice range, uint8_t *out)
{
    float *own = (float *)(void *)at(red, range);
    comm_half_narrow(red->wire, own, range.n, (uint16_t *)(void *)out);
    if (step->is_final) {
        comm_half_widen(red->wire, (uint16_t *)(void *)out, range.n, own);
    }
    return out;
}

static weir_status post_sends(struct reduction *red, struct flight *flight)
{
    int n_steps, i_last = -1;
    const struct comm_step *steps = steps_of(red, flight, &n_steps);
    struct message_request *requests = requests_of(red, flight);
    uint8_t *out = in_scratch(red, flight) + red->in_bytes;
    const uint8_t *message = NULL;
    for (int i = 0; i < n_steps; i++) {
        struct comm_slice range = range_of(red, flight, &steps[i]);
        size_t bytes = range.n * red->wire_bytes;
        if (steps[i].action != COMM_SEND || bytes == 0) {
            continue;
        }
        if (!is_narrow(red)) {
            message = at(red, range);
        } else if (i_last < 0 || steps[i_last].first != steps[i].first) {
            message = narrowed(red, &steps[i], range, out);
            out += aligned(bytes);
        }
        i_last = i;
        WEIR_TRY(message_send(red->state, red->group->ranks[steps[i].peer], message, bytes,
                              red->n_op, message_part(MESSAGE_REDUCE, flight->i_block),
                              &requests[i]));
    }
    return WEIR_OK;
}

static weir_status begin_stage(struct reduction *red, struct flight *flight)
{
    memset(requests_of(red, flight), 0, red->n_requests * sizeof(struct message_request));
    WEIR_TRY(post_receives(red, flight));
    return post_sends(red, flight);
}

/* ---- a stage ends --------------------------------------------------------------------------- */

/* What is added up, in the order of the ranks that hold it. */
struct terms {
    const uint8_t *sources[WEIR_COMM_MAX_RANKS];
    int n, i_own;
};

static void sum_terms(const struct reduction *red, const struct terms *terms,
                      struct comm_slice range)
{
    void *target = at(red, range);
    comm_sum(red->type, &target, 1, (const void *const *)terms->sources, terms->n, range.n);
}

/* The same where all but one's own are narrow: widened piece by piece, added in f32. */
static void sum_narrow_terms(const struct reduction *red, const struct terms *terms,
                             struct comm_slice range)
{
    enum { PIECE = 1024 };

    float sum[PIECE], wide[PIECE];
    for (size_t done = 0; done < range.n; done += PIECE) {
        size_t n = WEIR_MIN(range.n - done, (size_t)PIECE);
        float *own = (float *)(void *)at(red, range) + done;
        for (int k = 0; k < terms->n; k++) {
            const uint16_t *narrow = (const uint16_t *)(const void *)terms->sources[k] + done;
            const float *term = k == terms->i_own ? own : wide;
            if (k != terms->i_own) {
                comm_half_widen(red->wire, narrow, n, wide);
            }
            if (k == 0) {
                memcpy(sum, term, n * sizeof *sum);
            } else {
                void *target = sum;
                comm_sum(WEIR_COMM_F32, &target, 1, (const void *const[]){sum, term}, 2, n);
            }
        }
        memcpy(own, sum, n * sizeof *own);
    }
}

static void insert(struct terms *terms, int ranks[], int rank, const uint8_t *source)
{
    int i = terms->n++;
    for (; i > 0 && ranks[i - 1] > rank; i--) {
        ranks[i] = ranks[i - 1];
        terms->sources[i] = terms->sources[i - 1];
    }
    ranks[i] = rank;
    terms->sources[i] = source;
}

static void finish_stage(struct reduction *red, struct flight *flight)
{
    int n_steps, ranks[WEIR_COMM_MAX_RANKS];
    const struct comm_step *steps = steps_of(red, flight, &n_steps);
    const uint8_t *in = in_scratch(red, flight);
    struct comm_slice summed = {.n = 0};
    struct terms terms = {.n = 0};
    for (int i = 0; i < n_steps; i++) {
        struct comm_slice range = range_of(red, flight, &steps[i]);
        if (steps[i].action == COMM_ADD) {
            summed = range;
            insert(&terms, ranks, steps[i].peer, in);
            in += aligned(range.n * red->wire_bytes);
        } else if (steps[i].action == COMM_TAKE && is_narrow(red)) {
            comm_half_widen(red->wire, (const uint16_t *)(const void *)in, range.n,
                            (float *)(void *)at(red, range));
            in += aligned(range.n * red->wire_bytes);
        }
    }
    if (summed.n == 0) {
        return;
    }
    insert(&terms, ranks, red->group->self, at(red, summed));
    while (ranks[terms.i_own] != red->group->self) {
        terms.i_own++;
    }
    if (is_narrow(red)) {
        sum_narrow_terms(red, &terms, summed);
    } else {
        sum_terms(red, &terms, summed);
    }
}

/* ---- all blocks ----------------------------------------------------------------------------- */

static int end_stage(const struct reduction *red, const struct flight *flight)
{
    return red->half == MESSAGE_REDUCE_SCATTER ? 1 : schedule_of(red, flight)->n_stages;
}

/* Let a flight go on for as long as it need not wait. */
static weir_status advance(struct reduction *red, struct flight *flight, bool *out_has_moved)
{
    while (flight->is_flying) {
        bool is_over = false;
        int n_steps;
        (void)steps_of(red, flight, &n_steps);
        WEIR_TRY(message_test_all(red->state, requests_of(red, flight), (size_t)n_steps, &is_over));
        if (!is_over) {
            return WEIR_OK;
        }
        finish_stage(red, flight);
        *out_has_moved = true;
        flight->is_flying = ++flight->i_stage < end_stage(red, flight);
        if (flight->is_flying) {
            WEIR_TRY(begin_stage(red, flight));
        }
    }
    return WEIR_OK;
}

static weir_status wait_for_any(struct reduction *red, size_t i_oldest, unsigned *n_idle)
{
    struct flight *flight = &red->flights[i_oldest % (size_t)red->window];
    struct message_request *requests = requests_of(red, flight);
    size_t i = 0;
    while (i + 1 < red->n_requests && requests[i].handle == NULL) {
        i++;
    }
    return message_idle(red->state, &requests[i], red->deadline_ns, n_idle);
}

/* Blocks start in order, at most `window` of them behind the oldest that is not done. */
static weir_status run(struct reduction *red)
{
    size_t i_next = 0, i_oldest = 0;
    unsigned n_idle = 0;
    while (i_oldest < red->n_blocks) {
        bool has_moved = false;
        for (; i_next < red->n_blocks && i_next < i_oldest + (size_t)red->window; i_next++) {
            struct flight *flight = &red->flights[i_next % (size_t)red->window];
            *flight =
                (struct flight){.is_flying = true, .i_block = i_next, .i_stage = red->first_stage};
            WEIR_TRY(begin_stage(red, flight));
        }
        for (size_t i = i_oldest; i < i_next; i++) {
            WEIR_TRY(advance(red, &red->flights[i % (size_t)red->window], &has_moved));
        }
        while (i_oldest < i_next && !red->flights[i_oldest % (size_t)red->window].is_flying) {
            i_oldest++;
        }
        if (!has_moved && i_oldest < red->n_blocks) {
            WEIR_TRY(wait_for_any(red, i_oldest, &n_idle));
        }
    }
    return comm_failed(red->state->comm);
}

/* ---- sizes ---------------------------------------------------------------------------------- */

static weir_status find_schedules(struct reduction *red, enum comm_algorithm algorithm)
{
    struct message_group *group = red->group;
    for (int variant = 0; variant < 2; variant++) {
        struct comm_schedule *schedule = &group->schedules[algorithm][variant];
        if (schedule->n_ranks == 0) {
            WEIR_TRY(comm_schedule_init(schedule, algorithm, group->n_ranks, group->self, variant));
        }
        red->schedules[variant] = schedule;
    }
    return WEIR_OK;
}

/* As few blocks as there can be with messages of at most chunk_bytes and scratch memory within its
 * bound, all of the same size. The same on all ranks: only what all know alike counts. (More and
 * smaller ones to begin with a pipeline early cost more wake-ups than they gain.) */
static void choose_sizes(struct reduction *red, size_t chunk_bytes)
{
    const struct comm_schedule *schedule = red->schedules[0];
    size_t n_slices = (size_t)schedule->n_slices, n_largest = (size_t)schedule->n_largest;
    size_t most_scratch =
        MESSAGE_SCRATCH_BYTES / MESSAGE_LEAST_FLIGHTS / (size_t)red->group->n_ranks;
    size_t most = WEIR_MIN(chunk_bytes, most_scratch) / red->wire_bytes / n_largest + 1;
    size_t n_blocks = red->n_elems / (most * n_slices) + 1;
    red->slice_elems = (red->n_elems / n_blocks / n_slices / ALIGN + 1) * ALIGN;
    red->block_elems = red->slice_elems * n_slices;
    red->n_blocks = red->n_elems / red->block_elems + (red->n_elems % red->block_elems != 0);
    if (red->half != MESSAGE_WHOLE) {
        size_t longest = 0;
        for (int i = 0; i < schedule->n_slices; i++) {
            longest = WEIR_MAX(longest, comm_slice(red->n_elems, schedule->n_slices, i).n);
        }
        red->n_blocks = longest / red->slice_elems + (longest % red->slice_elems != 0);
    }
    red->in_bytes = red->out_bytes = red->n_requests = 0;
    for (int variant = 0; variant < 2; variant++) {
        schedule = red->schedules[variant];
        size_t slice_bytes = aligned(red->slice_elems * red->wire_bytes);
        red->in_bytes = WEIR_MAX(red->in_bytes, (size_t)schedule->most_in * slice_bytes);
        red->out_bytes = WEIR_MAX(red->out_bytes, (size_t)schedule->most_out * slice_bytes);
        red->n_requests = WEIR_MAX(red->n_requests, (size_t)schedule->most_steps);
    }
    red->out_bytes = is_narrow(red) ? red->out_bytes : 0;
    /* As many as give the network enough to carry: of many ranks few. */
    size_t sent_bytes = (size_t)schedule->most_out * red->slice_elems * red->wire_bytes;
    size_t window = red->state->fabric->window_bytes / WEIR_MAX(sent_bytes, (size_t)1);
    window = WEIR_MIN(window, (size_t)MESSAGE_MOST_FLIGHTS);
    red->window = (int)WEIR_MAX(window, (size_t)MESSAGE_LEAST_FLIGHTS);
}

static weir_status take_memory(struct reduction *red)
{
    struct message_group *group = red->group;
    size_t bytes = (size_t)red->window * (red->in_bytes + red->out_bytes);
    size_t n_requests = (size_t)red->window * red->n_requests;
    if (group->scratch_bytes < bytes) {
        free(group->scratch);
        group->scratch = malloc(bytes);
        group->scratch_bytes = group->scratch == NULL ? 0 : bytes;
    }
    if (group->n_requests < n_requests) {
        free(group->requests);
        group->requests = calloc(n_requests, sizeof *group->requests);
        group->n_requests = group->requests == NULL ? 0 : n_requests;
    }
    return group->scratch_bytes < bytes || group->n_requests < n_requests ? WEIR_ERR_NOMEM
                                                                          : WEIR_OK;
}

static weir_status reduce(struct reduction *red, const struct comm_rule *rule)
{
    struct message_state *state = red->state;
    bool is_sent_narrow =
        red->type == WEIR_COMM_F32 && red->wire != COMM_WIRE_F32 && rule->algorithm != COMM_FLAT;
    red->elem_bytes = weir_comm_type_size(red->type);
    red->wire_bytes = is_sent_narrow ? 2 : red->elem_bytes;
    red->n_op = state->n_ops++;
    red->deadline_ns = comm_deadline_ns(state->comm);
    if (red->group->n_ranks == 1 || red->n_elems == 0) {
        return WEIR_OK;
    }
    weir_status status = find_schedules(red, (enum comm_algorithm)rule->algorithm);
    if (status == WEIR_OK) {
        red->first_stage = red->half == MESSAGE_ALL_GATHER ? 1 : 0;
        choose_sizes(red, rule->chunk_bytes > 0 ? rule->chunk_bytes : state->fabric->chunk_bytes);
        status = take_memory(red);
    }
    if (status != WEIR_OK) {
        return message_fail(state, status, state->comm->rank, "has no memory for an all-reduce");
    }
    return run(red);
}

weir_status message_reduce(struct message_state *state, struct message_group *group,
                           const struct comm_rule *rule, enum comm_wire wire, void *buf,
                           size_t n_elems, enum weir_comm_type type)
{
    struct reduction red = {
        .state = state, .group = group, .buf = buf, .n_elems = n_elems, .type = type, .wire = wire};
    return reduce(&red, rule);
}

weir_status message_reduce_half(struct message_state *state, struct message_group *group,
                                enum message_half half, enum comm_wire wire, void *buf,
                                size_t n_elems, enum weir_comm_type type)
{
    static const struct comm_rule direct = {.algorithm = COMM_DIRECT};
    struct reduction red = {.state = state,
                            .group = group,
                            .buf = buf,
                            .n_elems = n_elems,
                            .type = type,
                            .wire = wire,
                            .half = half};
    return reduce(&red, &direct);
}

void message_group_fini(struct message_group *group)
{
    for (int i = 0; i < COMM_N_ALGORITHMS; i++) {
        comm_schedule_fini(&group->schedules[i][0]);
        comm_schedule_fini(&group->schedules[i][1]);
    }
    free(group->scratch);
    free(group->requests);
}
