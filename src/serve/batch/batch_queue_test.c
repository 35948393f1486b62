#include "serve/batch/batch_queue.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <string.h>

struct request {
    struct batch_entry entry; /* first: the queue gives it back */
    int shape;
    int n_answers;
};

static bool mixes(const struct batch_entry *a, const struct batch_entry *b)
{
    return ((const struct request *)a)->shape == ((const struct request *)b)->shape;
}

static struct batch_queue queue_of(int64_t batch_max, uint64_t delay_ns, size_t queue_max)
{
    return (struct batch_queue){
        .rules = {
            .batch_max = batch_max, .delay_ns = delay_ns, .queue_max = queue_max, .mixes = mixes}};
}

static struct request *push(struct batch_queue *queue, struct request *request, int64_t n_rows,
                            uint64_t arrived_ns, uint64_t deadline_ns)
{
    request->entry.n_rows = n_rows;
    request->entry.arrived_ns = arrived_ns;
    request->entry.deadline_ns = deadline_ns;
    ck_assert(batch_queue_push(queue, &request->entry));
    return request;
}

static size_t length(const struct batch_entry *list)
{
    size_t n = 0;
    for (; list != NULL; list = list->next) {
        n++;
    }
    return n;
}

START_TEST(without_a_delay_what_is_there_is_taken)
{
    struct batch_queue queue = queue_of(4, 0, 16);
    struct request requests[6] = {0};
    uint64_t wait_ns = 0;
    ck_assert_ptr_null(batch_queue_take(&queue, 0, false, &wait_ns));
    ck_assert_uint_eq(wait_ns, UINT64_MAX);
    for (int i = 0; i < 6; i++) {
        push(&queue, &requests[i], 1, (uint64_t)i, BATCH_NO_DEADLINE);
    }
    struct batch_entry *batch = batch_queue_take(&queue, 6, false, &wait_ns);
    ck_assert_ptr_eq(batch, &requests[0].entry);
    ck_assert_uint_eq(length(batch), 4);
    ck_assert_uint_eq(length(batch_queue_take(&queue, 6, false, &wait_ns)), 2);
    ck_assert_uint_eq(queue.n, 0);
}

END_TEST

START_TEST(a_batch_waits_for_the_delay_and_not_if_it_is_full)
{
    struct batch_queue queue = queue_of(3, 100, 16);
    struct request requests[4] = {0};
    uint64_t wait_ns = 0;
    push(&queue, &requests[0], 1, 50, BATCH_NO_DEADLINE);
    ck_assert_ptr_null(batch_queue_take(&queue, 60, false, &wait_ns));
    ck_assert_uint_eq(wait_ns, 150);
    push(&queue, &requests[1], 1, 70, BATCH_NO_DEADLINE);
    ck_assert_ptr_null(batch_queue_take(&queue, 149, false, &wait_ns));
    ck_assert_uint_eq(wait_ns, 150);
    ck_assert_uint_eq(length(batch_queue_take(&queue, 150, false, &wait_ns)), 2);
    push(&queue, &requests[2], 1, 160, BATCH_NO_DEADLINE);
    push(&queue, &requests[3], 2, 161, BATCH_NO_DEADLINE);
    ck_assert_uint_eq(length(batch_queue_take(&queue, 162, false, &wait_ns)), 2);
}

END_TEST

START_TEST(a_deadline_cuts_the_delay_short)
{
    struct batch_queue queue = queue_of(8, 100, 16);
    struct request request = {0};
    uint64_t wait_ns = 0;
    push(&queue, &request, 1, 1000, 1150);
    ck_assert_ptr_null(batch_queue_take(&queue, 1010, false, &wait_ns));
    ck_assert_uint_eq(wait_ns, 1050);
    ck_assert_uint_eq(length(batch_queue_take(&queue, 1050, false, &wait_ns)), 1);
}

END_TEST

START_TEST(what_is_urgent_does_not_wait)
{
    struct batch_queue queue = queue_of(8, 100, 16);
    struct request request = {0};
    uint64_t wait_ns = 0;
    push(&queue, &request, 1, 0, BATCH_NO_DEADLINE);
    ck_assert_uint_eq(length(batch_queue_take(&queue, 1, true, &wait_ns)), 1);
}

END_TEST

START_TEST(the_earliest_deadline_goes_first_and_shapes_are_not_mixed)
{
    struct batch_queue queue = queue_of(8, 0, 16);
    struct request requests[4] = {{.shape = 1}, {.shape = 2}, {.shape = 1}, {.shape = 2}};
    uint64_t wait_ns = 0;
    push(&queue, &requests[0], 1, 0, 400);
    push(&queue, &requests[1], 1, 0, 100);
    push(&queue, &requests[2], 1, 0, 200);
    push(&queue, &requests[3], 1, 0, 300);
    struct batch_entry *batch = batch_queue_take(&queue, 0, false, &wait_ns);
    ck_assert_ptr_eq(batch, &requests[1].entry);
    ck_assert_ptr_eq(batch->next, &requests[3].entry);
    batch = batch_queue_take(&queue, 0, false, &wait_ns);
    ck_assert_ptr_eq(batch, &requests[2].entry);
    ck_assert_ptr_eq(batch->next, &requests[0].entry);
}

END_TEST

START_TEST(a_request_larger_than_a_batch_is_alone)
{
    struct batch_queue queue = queue_of(4, 0, 16);
    struct request requests[3] = {0};
    uint64_t wait_ns = 0;
    push(&queue, &requests[0], 2, 0, BATCH_NO_DEADLINE);
    push(&queue, &requests[1], 9, 0, BATCH_NO_DEADLINE);
    push(&queue, &requests[2], 1, 0, BATCH_NO_DEADLINE);
    for (int i = 0; i < 3; i++) {
        struct batch_entry *batch = batch_queue_take(&queue, 0, false, &wait_ns);
        ck_assert_ptr_eq(batch, &requests[i].entry);
        ck_assert_uint_eq(length(batch), 1);
    }
}

END_TEST

START_TEST(a_full_queue_refuses_and_expired_ones_come_out)
{
    struct batch_queue queue = queue_of(4, 0, 2);
    struct request requests[3] = {0};
    push(&queue, &requests[0], 1, 0, 50);
    push(&queue, &requests[1], 1, 0, 40);
    requests[2].entry = (struct batch_entry){.n_rows = 1, .deadline_ns = 10};
    ck_assert(!batch_queue_push(&queue, &requests[2].entry));
    ck_assert_ptr_null(batch_queue_take_expired(&queue, 39));
    struct batch_entry *expired = batch_queue_take_expired(&queue, 50);
    ck_assert_ptr_eq(expired, &requests[1].entry);
    ck_assert_ptr_eq(expired->next, &requests[0].entry);
    ck_assert_uint_eq(queue.n, 0);
}

END_TEST

#define N_RANDOM 400

struct play {
    struct weir_rng rng;
    struct batch_queue queue;
    struct request requests[N_RANDOM];
    uint64_t now_ns, wait_ns;
    size_t n_pushed, n_answered;
};

/* No entry of the queue that mixes with the first and has an earlier deadline was passed over; the
 * batch is in order, of one shape, and within the maximum. */
static void check_batch(struct play *play, struct batch_entry *batch)
{
    int64_t n_rows = 0;
    uint64_t last_ns = 0;
    for (struct batch_entry *entry = batch; entry != NULL; entry = entry->next) {
        struct request *request = (struct request *)entry;
        ck_assert(mixes(batch, entry));
        ck_assert_uint_ge(entry->deadline_ns, last_ns);
        last_ns = entry->deadline_ns;
        n_rows += entry->n_rows;
        ck_assert_int_eq(++request->n_answers, 1);
        play->n_answered++;
    }
    ck_assert(n_rows <= play->queue.rules.batch_max || batch->next == NULL);
    for (const struct batch_entry *left = play->queue.first; left != NULL; left = left->next) {
        ck_assert_uint_ge(left->deadline_ns, batch->deadline_ns);
        ck_assert(!mixes(batch, left) || left->deadline_ns >= last_ns);
    }
}

static void arrive(struct play *play)
{
    struct request *request = &play->requests[play->n_pushed];
    request->shape = (int)(weir_rng_u64(&play->rng) % 3);
    request->entry.n_rows = 1 + (int64_t)(weir_rng_u64(&play->rng) % 6);
    request->entry.arrived_ns = play->now_ns;
    request->entry.deadline_ns = weir_rng_u64(&play->rng) % 4 == 0
                                     ? BATCH_NO_DEADLINE
                                     : play->now_ns + weir_rng_u64(&play->rng) % 400;
    bool has_room = play->queue.n < play->queue.rules.queue_max;
    ck_assert(batch_queue_push(&play->queue, &request->entry) == has_room);
    play->n_pushed++;
    if (!has_room) {
        request->n_answers++;
        play->n_answered++;
    }
}

static void serve(struct play *play, bool is_urgent)
{
    for (struct batch_entry *entry = batch_queue_take_expired(&play->queue, play->now_ns), *next;
         entry != NULL; entry = next) {
        next = entry->next;
        ck_assert_uint_le(entry->deadline_ns, play->now_ns);
        ck_assert_int_eq(++((struct request *)entry)->n_answers, 1);
        play->n_answered++;
    }
    struct batch_entry *batch =
        batch_queue_take(&play->queue, play->now_ns, is_urgent, &play->wait_ns);
    if (batch != NULL) {
        check_batch(play, batch);
    } else if (play->queue.n > 0) {
        ck_assert_uint_gt(play->wait_ns, play->now_ns);
        ck_assert_uint_le(play->wait_ns,
                          play->queue.oldest->arrived_ns + play->queue.rules.delay_ns);
    }
}

START_TEST(random_arrivals_are_each_answered_once_in_order_and_within_bounds)
{
    static struct play play;
    memset(&play, 0, sizeof play);
    weir_rng_init(&play.rng, (uint64_t)_i, 0);
    play.queue = queue_of(1 + _i % 9, (uint64_t)(_i % 4) * 40, 1 + (size_t)_i % 30);
    while (play.n_pushed < N_RANDOM) {
        play.now_ns += weir_rng_u64(&play.rng) % 30;
        if (weir_rng_u64(&play.rng) % 3 != 0) {
            arrive(&play);
        } else {
            serve(&play, false);
        }
    }
    while (play.queue.n > 0) {
        serve(&play, true);
    }
    ck_assert_uint_eq(play.n_answered, N_RANDOM);
    for (size_t i = 0; i < N_RANDOM; i++) {
        ck_assert_msg(play.requests[i].n_answers == 1, "seed %d: request %zu", _i, i);
    }
}

END_TEST

WEIR_TEST_LOOPS_MAIN("batch queue", {without_a_delay_what_is_there_is_taken, 0},
                     {a_batch_waits_for_the_delay_and_not_if_it_is_full, 0},
                     {a_deadline_cuts_the_delay_short, 0}, {what_is_urgent_does_not_wait, 0},
                     {the_earliest_deadline_goes_first_and_shapes_are_not_mixed, 0},
                     {a_request_larger_than_a_batch_is_alone, 0},
                     {a_full_queue_refuses_and_expired_ones_come_out, 0},
                     {random_arrivals_are_each_answered_once_in_order_and_within_bounds,
                      WEIR_TEST_TIMES(200, 40)})
