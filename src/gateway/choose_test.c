/* What the header promises, as properties of random deployments. The seed of each run is printed. */
#include "gateway/choose.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>
#include <stdio.h>

#define N_DRAWS WEIR_TEST_TIMES(40000, 4000)

static struct weir_rng rng;

static void seed(void)
{
    uint64_t value;
    weir_random_bytes(&value, sizeof value);
    printf("seed %llu\n", (unsigned long long)value);
    weir_rng_init(&rng, value, 0);
}

struct sample {
    struct weir_gateway_version versions[WEIR_GATEWAY_VERSIONS_MAX];
    struct weir_gateway_deployment deployment;
};

static void draw_weights(struct sample *s)
{
    int32_t left = WEIR_GATEWAY_PPM;
    for (size_t i = 0; i < s->deployment.n_versions; i++) {
        bool is_last = i + 1 == s->deployment.n_versions;
        s->versions[i].weight_ppm =
            is_last ? left : (int32_t)weir_rng_below(&rng, (uint64_t)left + 1);
        left -= s->versions[i].weight_ppm;
    }
}

static void draw(struct sample *s, size_t n)
{
    s->deployment = (struct weir_gateway_deployment){.name = "d", .versions = s->versions};
    s->deployment.n_versions = n;
    for (size_t i = 0; i < n; i++) {
        s->versions[i].version = (int64_t)(i + 1);
    }
    draw_weights(s);
}

/* A count of N_DRAWS draws is its share to within 6 standard deviations of the binomial: missed in
 * one of 500 million. */
static void expect_share(int n, int32_t weight_ppm)
{
    double p = (double)weight_ppm / WEIR_GATEWAY_PPM;
    double bound = 6 * sqrt(N_DRAWS * p * (1 - p)) + 1;
    ck_assert_msg(fabs(n - N_DRAWS * p) <= bound, "%d of %d draws at a share of %f", n, N_DRAWS, p);
}

static void key_of(uint64_t i, char out[32])
{
    (void)snprintf(out, 32, "user-%llu", (unsigned long long)i);
}

START_TEST(shares_hold_in_the_long_run_by_weight_and_by_key)
{
    struct sample s;
    uint64_t first = weir_rng_u64(&rng);
    draw(&s, 1 + weir_rng_below(&rng, 8));
    int n_by_weight[8] = {0}, n_by_key[8] = {0};
    char key[32];
    for (uint64_t i = 0; i < N_DRAWS; i++) {
        key_of(first + i, key);
        n_by_weight[choose_version(&s.deployment, UINT32_MAX, NULL, first + i)]++;
        n_by_key[choose_version(&s.deployment, UINT32_MAX, key, 0)]++;
    }
    for (size_t i = 0; i < s.deployment.n_versions; i++) {
        expect_share(n_by_weight[i], s.versions[i].weight_ppm);
        expect_share(n_by_key[i], s.versions[i].weight_ppm);
    }
}

END_TEST

START_TEST(a_key_keeps_its_version_and_moves_only_to_one_that_grew)
{
    struct sample before, after;
    draw(&before, 2 + weir_rng_below(&rng, 6));
    after = before;
    after.deployment.versions = after.versions;
    draw_weights(&after);
    char key[32];
    for (uint64_t i = 0; i < N_DRAWS / 4; i++) {
        key_of(i, key);
        int from = choose_version(&before.deployment, UINT32_MAX, key, i);
        int to = choose_version(&after.deployment, UINT32_MAX, key, i + 7);
        ck_assert_int_eq(from, choose_version(&before.deployment, UINT32_MAX, key, i + 1));
        double grown = (double)after.versions[to].weight_ppm * before.versions[from].weight_ppm;
        double was = (double)before.versions[to].weight_ppm * after.versions[from].weight_ppm;
        ck_assert_msg(from == to || grown > was, "%s moved from %d to %d", key, from, to);
    }
}

END_TEST

START_TEST(of_two_versions_only_the_difference_of_the_shares_moves)
{
    struct sample before, after;
    draw(&before, 2);
    after = before;
    after.deployment.versions = after.versions;
    draw_weights(&after);
    char key[32];
    int n_moved = 0;
    for (uint64_t i = 0; i < N_DRAWS; i++) {
        key_of(i, key);
        n_moved += choose_version(&before.deployment, UINT32_MAX, key, 0) !=
                   choose_version(&after.deployment, UINT32_MAX, key, 0);
    }
    expect_share(n_moved, abs(before.versions[0].weight_ppm - after.versions[0].weight_ppm));
}

END_TEST

START_TEST(what_is_not_allowed_is_not_chosen_and_the_others_share_its_part)
{
    struct sample s;
    draw(&s, 5);
    uint32_t allowed = (uint32_t)weir_rng_below(&rng, 32);
    bool has_share = false;
    for (int i = 0; i < 5; i++) {
        has_share = has_share || ((allowed >> i & 1) != 0 && s.versions[i].weight_ppm > 0);
    }
    char key[32];
    for (uint64_t i = 0; i < 500; i++) {
        key_of(i, key);
        int by_weight = choose_version(&s.deployment, allowed, NULL, i);
        int by_key = choose_version(&s.deployment, allowed, key, i);
        int all = choose_version(&s.deployment, UINT32_MAX, key, i);
        ck_assert_int_eq(by_weight != CHOOSE_NONE, has_share);
        ck_assert(by_weight == CHOOSE_NONE || (allowed >> by_weight & 1) != 0);
        ck_assert(by_key == CHOOSE_NONE || (allowed >> by_key & 1) != 0);
        ck_assert((allowed >> all & 1) == 0 || all == by_key);
    }
}

END_TEST

START_TEST(the_replica_with_least_outstanding_is_chosen_and_equals_take_turns)
{
    int32_t n_outstanding[16];
    size_t n = 1 + weir_rng_below(&rng, 16);
    int32_t least = -1;
    int n_least = 0, n_chosen[16] = {0};
    for (size_t i = 0; i < n; i++) {
        n_outstanding[i] = (int32_t)weir_rng_below(&rng, 5) - 1;
        if (n_outstanding[i] >= 0 && (least < 0 || n_outstanding[i] <= least)) {
            n_least = n_outstanding[i] == least ? n_least + 1 : 1;
            least = n_outstanding[i];
        }
    }
    for (uint64_t ticket = 0; ticket < 160; ticket++) {
        int chosen = choose_replica(n_outstanding, n, ticket);
        ck_assert_int_eq(chosen == CHOOSE_NONE, n_least == 0);
        if (chosen != CHOOSE_NONE) {
            ck_assert_int_eq(n_outstanding[chosen], least);
            n_chosen[chosen]++;
        }
    }
    for (size_t i = 0; i < n; i++) {
        ck_assert(n_outstanding[i] != least || n_least == 0 || n_chosen[i] > 0);
    }
    ck_assert_int_eq(choose_replica(NULL, 0, 3), CHOOSE_NONE);
}

END_TEST

int main(void)
{
    const struct weir_test_loop loops[] = {
        {shares_hold_in_the_long_run_by_weight_and_by_key, 20},
        {a_key_keeps_its_version_and_moves_only_to_one_that_grew, 20},
        {of_two_versions_only_the_difference_of_the_shares_moves, 20},
        {what_is_not_allowed_is_not_chosen_and_the_others_share_its_part, 20},
        {the_replica_with_least_outstanding_is_chosen_and_equals_take_turns, 50},
    };
    Suite *suite = suite_create("choose");
    TCase *tcase = tcase_create("choose");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, seed, NULL);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(loops); i++) {
        tcase_add_loop_test(tcase, loops[i].test, 0, loops[i].n_loops);
    }
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
