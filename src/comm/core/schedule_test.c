/* Schedules played by all ranks in one process, against the order of sums that the header states.
 */
#include "comm/core/schedule.h"

#include "base/test_main.h"

enum { MOST_RANKS = 33, MOST_TEXT = 400 };

/* What a slice holds, written out: "3" is rank 3's own, "(3+4)" a sum. */
struct slice {
    char text[MOST_TEXT];
};

struct player {
    struct comm_schedule schedule;
    int i_stage;
    bool has_sent; /* this stage's messages */
    struct slice slices[MOST_RANKS];
};

struct message {
    int n;
    struct slice slices[MOST_RANKS];
};

/* Messages under way from one rank to another, in order. */
struct pipe {
    struct message *messages;
    int n_sent, n_read, max;
};

static struct player players[MOST_RANKS];
static struct pipe pipes[MOST_RANKS][MOST_RANKS];

static const struct comm_step *steps_of(const struct player *player, int *out_n)
{
    const int *first = &player->schedule.first_steps[player->i_stage];
    *out_n = first[1] - first[0];
    return &player->schedule.steps[first[0]];
}

static void send(int self, const struct comm_step *step)
{
    struct pipe *pipe = &pipes[self][step->peer];
    if (pipe->n_sent == pipe->max) {
        pipe->max = pipe->max * 2 + 1;
        pipe->messages = realloc(pipe->messages, (size_t)pipe->max * sizeof *pipe->messages);
        ck_assert_ptr_nonnull(pipe->messages);
    }
    struct message *message = &pipe->messages[pipe->n_sent++];
    message->n = step->n;
    memcpy(message->slices, &players[self].slices[step->first],
           (size_t)step->n * sizeof(struct slice));
}

static void receive(int self, const struct comm_step *step, struct message *out)
{
    struct pipe *pipe = &pipes[step->peer][self];
    *out = pipe->messages[pipe->n_read++];
    ck_assert_int_eq(out->n, step->n);
}

/* Left to right, as comm_sum adds its sources. */
static void add_up(int self, const struct comm_step *steps, int n_steps)
{
    static struct message incoming[MOST_RANKS];
    bool has_come[MOST_RANKS] = {false};
    int first = -1, n = 0;
    for (int i = 0; i < n_steps; i++) {
        if (steps[i].action == COMM_ADD) {
            ck_assert(first < 0 || (first == steps[i].first && n == steps[i].n));
            first = steps[i].first;
            n = steps[i].n;
            receive(self, &steps[i], &incoming[steps[i].peer]);
            has_come[steps[i].peer] = true;
        }
    }
    for (int s = 0; s < n; s++) {
        char sum[MOST_TEXT] = "";
        for (int r = 0; r < players[self].schedule.n_ranks; r++) {
            const char *part = r == self     ? players[self].slices[first + s].text
                               : has_come[r] ? incoming[r].slices[s].text
                                             : "";
            char next[2 * MOST_TEXT + 8];
            if (part[0] != '\0') {
                (void)snprintf(next, sizeof next, sum[0] == '\0' ? "%s%s" : "(%s+%s)", sum, part);
                ck_assert_uint_lt(strlen(next), sizeof sum);
                (void)snprintf(sum, sizeof sum, "%.*s", MOST_TEXT - 1, next);
            }
        }
        (void)snprintf(players[self].slices[first + s].text, MOST_TEXT, "%s", sum);
    }
}

static bool can_end_stage(int self)
{
    int n_steps;
    const struct comm_step *steps = steps_of(&players[self], &n_steps);
    for (int i = 0; i < n_steps; i++) {
        const struct pipe *pipe = &pipes[steps[i].peer][self];
        if (steps[i].action != COMM_SEND && pipe->n_read == pipe->n_sent) {
            return false;
        }
    }
    return true;
}

/* What a stage sends must not be what it writes: both happen at once (FLAT adds when all is sent).
 */
static void check_apart(const struct player *player, const struct comm_step *steps, int n_steps)
{
    bool is_apart = true;
    int n_largest = 0;
    for (int i = 0; i < n_steps; i++) {
        for (int k = 0; k < n_steps; k++) {
            if (steps[i].action == COMM_SEND && steps[k].action == COMM_TAKE) {
                is_apart = is_apart && (steps[i].first + steps[i].n <= steps[k].first ||
                                        steps[k].first + steps[k].n <= steps[i].first);
            }
        }
        n_largest = WEIR_MAX(n_largest, steps[i].n);
    }
    ck_assert(is_apart);
    ck_assert_int_le(n_largest, player->schedule.n_largest);
}

/* One move of one rank; false if it has to wait. */
static bool move(int self)
{
    struct player *player = &players[self];
    int n_steps;
    if (player->i_stage == player->schedule.n_stages) {
        return false;
    }
    const struct comm_step *steps = steps_of(player, &n_steps);
    if (!player->has_sent) {
        check_apart(player, steps, n_steps);
        for (int i = 0; i < n_steps; i++) {
            if (steps[i].action == COMM_SEND) {
                send(self, &steps[i]);
            }
        }
        player->has_sent = true;
        return true;
    }
    if (!can_end_stage(self)) {
        return false;
    }
    add_up(self, steps, n_steps);
    for (int i = 0; i < n_steps; i++) {
        if (steps[i].action == COMM_TAKE) {
            static struct message message;
            receive(self, &steps[i], &message);
            memcpy(&player->slices[steps[i].first], message.slices,
                   (size_t)message.n * sizeof(struct slice));
        }
    }
    player->i_stage++;
    player->has_sent = false;
    return true;
}

static void play(enum comm_algorithm algorithm, int n_ranks, int variant)
{
    for (int r = 0; r < n_ranks; r++) {
        comm_schedule_fini(&players[r].schedule);
        players[r].i_stage = 0;
        players[r].has_sent = false;
        ck_assert_int_eq(comm_schedule_init(&players[r].schedule, algorithm, n_ranks, r, variant),
                         WEIR_OK);
        ck_assert_int_le(players[r].schedule.n_slices, MOST_RANKS);
        for (int s = 0; s < players[r].schedule.n_slices; s++) {
            (void)snprintf(players[r].slices[s].text, MOST_TEXT, "%d", r);
        }
        for (int k = 0; k < n_ranks; k++) {
            pipes[r][k].n_sent = pipes[r][k].n_read = 0;
        }
    }
    for (bool has_moved = true; has_moved;) {
        has_moved = false;
        for (int r = n_ranks - 1; r >= 0; r--) {
            has_moved = move(r) || has_moved;
        }
    }
    for (int r = 0; r < n_ranks; r++) {
        ck_assert_msg(players[r].i_stage == players[r].schedule.n_stages,
                      "%s of %d: rank %d waits in stage %d", comm_algorithm_name(algorithm),
                      n_ranks, r, players[r].i_stage);
        for (int k = 0; k < n_ranks; k++) {
            ck_assert_int_eq(pipes[r][k].n_read, pipes[r][k].n_sent);
        }
    }
}

/* Each rank once, as numbers in the text; and on all ranks the same text. */
static void check_sums(enum comm_algorithm algorithm, int n_ranks)
{
    for (int s = 0; s < players[0].schedule.n_slices; s++) {
        const char *text = players[0].slices[s].text;
        bool is_in[MOST_RANKS] = {false};
        int n_in = 0;
        for (const char *at = text; *at != '\0';) {
            char *end = NULL;
            if (*at < '0' || *at > '9') {
                at++;
                continue;
            }
            long rank = strtol(at, &end, 10);
            ck_assert_msg(rank < n_ranks && !is_in[rank], "%s of %d: %s",
                          comm_algorithm_name(algorithm), n_ranks, text);
            is_in[rank] = true;
            n_in++;
            at = end;
        }
        ck_assert_msg(n_in == n_ranks, "%s of %d, slice %d: %s", comm_algorithm_name(algorithm),
                      n_ranks, s, text);
        for (int r = 1; r < n_ranks; r++) {
            ck_assert_str_eq(players[r].slices[s].text, text);
        }
    }
}

START_TEST(every_rank_ends_with_the_same_sum_of_all)
{
    enum comm_algorithm algorithm = (enum comm_algorithm)_i;
    for (int n_ranks = 1; n_ranks <= MOST_RANKS; n_ranks++) {
        for (int variant = 0; variant < 2; variant++) {
            play(algorithm, n_ranks, variant);
            check_sums(algorithm, n_ranks);
        }
    }
}

END_TEST

START_TEST(flat_and_direct_add_in_rank_order)
{
    play(_i == 0 ? COMM_FLAT : COMM_DIRECT, 4, 0);
    for (int s = 0; s < players[0].schedule.n_slices; s++) {
        ck_assert_str_eq(players[0].slices[s].text, "(((0+1)+2)+3)");
    }
}

END_TEST

START_TEST(the_others_add_in_the_order_that_is_written_down)
{
    play(COMM_RING, 4, 0);
    /* Own and what comes are added in the order of the numbers of holder and sender. */
    ck_assert_str_eq(players[0].slices[0].text, "(0+((1+2)+3))");
    ck_assert_str_eq(players[0].slices[1].text, "((0+(2+3))+1)");
    play(COMM_HALVING, 4, 0);
    ck_assert_str_eq(players[0].slices[0].text, "((0+2)+(1+3))");
    ck_assert_str_eq(players[0].slices[3].text, "((0+2)+(1+3))");
    play(COMM_HALVING, 3, 0);
    ck_assert_str_eq(players[0].slices[0].text, "((0+2)+1)");
    play(COMM_TREE, 4, 0);
    ck_assert_str_eq(players[0].slices[0].text, "(0+((1+2)+3))");
    play(COMM_TREE, 4, 1);
    ck_assert_str_eq(players[0].slices[0].text, "(((0+1)+2)+3)");
}

END_TEST

START_TEST(ranks_send_no_more_than_the_header_says)
{
    for (int n = 2; n <= MOST_RANKS; n++) {
        for (int a = 0; a < COMM_N_ALGORITHMS; a++) {
            double most = 0;
            for (int r = 0; r < n; r++) {
                double sent = 0; /* in blocks, mean of both variants */
                for (int variant = 0; variant < 2; variant++) {
                    struct comm_schedule schedule;
                    ck_assert_int_eq(
                        comm_schedule_init(&schedule, (enum comm_algorithm)a, n, r, variant),
                        WEIR_OK);
                    for (int i = 0; i < schedule.n_steps; i++) {
                        sent += schedule.steps[i].action == COMM_SEND
                                    ? 0.5 * schedule.steps[i].n / schedule.n_slices
                                    : 0;
                    }
                    comm_schedule_fini(&schedule);
                }
                most = WEIR_MAX(most, sent);
            }
            double bound[] = {n - 1, 2.0 * (n - 1) / n, 2.0 * (n - 1) / n, 4, 2};
            ck_assert_msg(most <= bound[a] + 1e-9, "%s of %d: %g",
                          comm_algorithm_name((enum comm_algorithm)a), n, most);
        }
    }
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule");
    TCase *tcase = tcase_create("schedule");
    tcase_add_loop_test(tcase, every_rank_ends_with_the_same_sum_of_all, 0, COMM_N_ALGORITHMS);
    tcase_add_loop_test(tcase, flat_and_direct_add_in_rank_order, 0, 2);
    tcase_add_test(tcase, the_others_add_in_the_order_that_is_written_down);
    tcase_add_test(tcase, ranks_send_no_more_than_the_header_says);
    suite_add_tcase(suite, tcase);
    return weir_test_run_here(suite);
}
