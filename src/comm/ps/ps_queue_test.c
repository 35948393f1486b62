/* Which piece goes next, against a look at all that wait. */
#include "comm/ps/ps_queue.h"

#include "base/macros.h"
#include "base/rng.h"
#include "base/test_main.h"

enum { N_MOST = 200, LINES_MOST = 4, AHEAD_MOST = 3, ROUNDS = 200 };

struct waiting {
    bool is_waiting;
    uint64_t since_ns;
    size_t place;
};

/** The rule as it stands in the header, by looking at every piece. */
static size_t poll_all(const struct waiting *pieces, size_t n, int n_lines, const int *n_ahead,
                       uint64_t free_ns)
{
    size_t best = SIZE_MAX;
    uint64_t best_ns = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t from_ns = WEIR_MAX(pieces[i].since_ns, free_ns);
        if (!pieces[i].is_waiting || n_ahead[i % (size_t)n_lines] >= AHEAD_MOST) {
            continue;
        }
        if (best == SIZE_MAX || from_ns < best_ns ||
            (from_ns == best_ns && pieces[i].place < pieces[best].place)) {
            best = i;
            best_ns = from_ns;
        }
    }
    return best;
}

static void shuffle_places(struct waiting *pieces, size_t n, struct weir_rng *rng)
{
    for (size_t i = 0; i < n; i++) {
        size_t j = (size_t)weir_rng_below(rng, i + 1);
        pieces[i].place = pieces[j].place;
        pieces[j].place = i;
    }
}

/** Pieces come, ways get free and full, pieces go: until all have gone. */
static void play(struct weir_rng *rng, struct ps_queue *queue, size_t n, bool is_pretended)
{
    struct waiting pieces[N_MOST] = {0};
    size_t coming[N_MOST];
    int n_ahead[LINES_MOST] = {0};
    uint64_t free_ns = is_pretended ? 0 : UINT64_MAX;
    shuffle_places(pieces, n, rng);
    for (size_t i = 0; i < n; i++) {
        coming[i] = pieces[i].place;
    }
    shuffle_places(pieces, n, rng);
    for (size_t n_come = 0, n_gone = 0; n_gone < n;) {
        if (n_come < n && weir_rng_below(rng, 2) == 0) {
            const size_t i = coming[n_come++];
            pieces[i].is_waiting = true;
            pieces[i].since_ns = weir_rng_below(rng, 40); /* many at the same time */
            ps_queue_add(queue, i, pieces[i].since_ns, pieces[i].place);
            continue;
        }
        const size_t expected = poll_all(pieces, n, queue->n_lines, n_ahead, free_ns);
        ck_assert_uint_eq(ps_queue_take(queue, n_ahead, AHEAD_MOST, free_ns), expected);
        if (expected == SIZE_MAX) {
            memset(n_ahead, 0, sizeof n_ahead);
            continue;
        }
        pieces[expected].is_waiting = false;
        n_ahead[expected % (size_t)queue->n_lines]++;
        free_ns += is_pretended ? weir_rng_below(rng, 2) : 0;
        n_gone++;
    }
    ck_assert_uint_eq(ps_queue_take(queue, NULL, 0, free_ns), SIZE_MAX);
}

START_TEST(the_next_is_the_one_that_a_search_of_all_finds)
{
    uint64_t seed = 0;
    struct weir_rng rng;
    weir_random_bytes(&seed, sizeof seed);
    (void)fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
    weir_rng_init(&rng, seed, 0);
    for (int round = 0; round < ROUNDS; round++) {
        struct ps_queue queue;
        const size_t n = 1 + (size_t)weir_rng_below(&rng, N_MOST);
        ck_assert(ps_queue_init(&queue, n, 1 + (int)weir_rng_below(&rng, LINES_MOST)));
        play(&rng, &queue, n, round % 2 == 0);
        ps_queue_clear(&queue);
        play(&rng, &queue, n, round % 3 == 0);
        ps_queue_fini(&queue);
    }
}

END_TEST

START_TEST(who_is_cleared_away_does_not_come_back)
{
    struct ps_queue queue;
    ck_assert(ps_queue_init(&queue, 3, 2));
    ps_queue_add(&queue, 2, 5, 0);
    ps_queue_add(&queue, 1, 5, 1);
    ps_queue_clear(&queue);
    ck_assert_uint_eq(ps_queue_take(&queue, NULL, 0, UINT64_MAX), SIZE_MAX);
    ps_queue_add(&queue, 1, 7, 1);
    ck_assert_uint_eq(ps_queue_take(&queue, NULL, 0, 6), 1);
    ps_queue_fini(&queue);
}

END_TEST

int main(void)
{
    const TTest *const tests[] = {the_next_is_the_one_that_a_search_of_all_finds,
                                  who_is_cleared_away_does_not_come_back};
    return weir_test_run(weir_test_suite("ps_queue", tests, WEIR_ARRAY_LEN(tests)));
}
