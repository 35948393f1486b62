#include "store/guesses.h"

#include "base/macros.h"
#include "base/test_main.h"
#include "base/test_seed.h"

static struct weir_guesses *guesses;

static void set_up(void)
{
    guesses = weir_guesses_create();
}

static void tear_down(void)
{
    weir_guesses_destroy(guesses);
}

/* 0: it was looked at, and as told; else the time to wait. */
static int64_t log_in(const char *user, const char *address, bool is_right, int64_t now_ms)
{
    struct weir_guess guess = {.user = user, .address = address};
    int64_t wait_ms = weir_guesses_try(guesses, &guess, now_ms);
    if (wait_ms == 0 && is_right) {
        weir_guesses_right(guesses, &guess, now_ms);
    }
    return wait_ms;
}

enum { N_USERS = 12, HOUR_MS = 3600 * 1000, N_HOURS = 3 };

static char *text_of(const char *head, size_t i)
{
    static char texts[8][64];
    static size_t n;
    char *text = texts[n++ % 8];
    (void)snprintf(text, sizeof texts[0], "%s%d.%d", head, (int)(i / 250), (int)(i % 250));
    return text;
}

/* An attacker with some addresses, who tries as fast as it is let, in a manner that is random; and people
 * who log in where they did before, or from where nobody guesses. */
struct attack {
    struct weir_rng rng;
    size_t n_addresses;
    int64_t looked_at[N_HOURS];
    int64_t of_user[N_USERS];
    int64_t longest_ms[2]; /* that somebody with the right password had to wait: known, new */
};

static void guess_some(struct attack *attack, int64_t now_ms, int64_t *inout_free_ms)
{
    for (size_t i = 0; i < attack->n_addresses; i++) {
        if (inout_free_ms[i] > now_ms) {
            continue; /* it knows when it may again, and loses no time */
        }
        size_t user =
            weir_rng_below(&attack->rng, 3) == 0 ? 0 : weir_rng_below(&attack->rng, N_USERS);
        int64_t wait_ms = log_in(text_of("user", user), text_of("10.1.", i), false, now_ms);
        if (wait_ms == 0) {
            attack->looked_at[now_ms / HOUR_MS]++;
            attack->of_user[user]++;
        } else {
            inout_free_ms[i] =
                now_ms + (int64_t)weir_rng_below(&attack->rng, (uint64_t)wait_ms) + 1;
        }
    }
}

/* One who knows the password, tries, mistypes now and then, and tries again until it is right. */
static void log_in_honestly(struct attack *attack, size_t user, bool is_known, int64_t now_ms)
{
    const char *address = text_of(is_known ? "10.2." : "10.3.",
                                  is_known ? user : (size_t)weir_rng_below(&attack->rng, 10000));
    int n_typos = (int)weir_rng_below(&attack->rng, 4);
    int64_t begun_ms = now_ms;
    for (;;) {
        int64_t wait_ms = log_in(text_of("user", user), address, n_typos == 0, now_ms);
        if (wait_ms == 0 && n_typos-- == 0) {
            break;
        }
        now_ms += wait_ms;
    }
    attack->longest_ms[!is_known] = WEIR_MAX(attack->longest_ms[!is_known], now_ms - begun_ms);
}

START_TEST(guessing_is_slow_and_keeps_nobody_out)
{
    static const size_t addresses[] = {1, 3, 40, 300};
    for (size_t k = 0; k < WEIR_ARRAY_LEN(addresses); k++) {
        struct attack attack = {.n_addresses = addresses[k]};
        int64_t free_ms[300] = {0};
        (void)test_seed(&attack.rng);
        tear_down();
        set_up();
        for (size_t user = 0; user < N_USERS; user++) {
            log_in_honestly(&attack, user, true, 0);
        }
        for (int64_t now_ms = 0; now_ms < (int64_t)N_HOURS * HOUR_MS; now_ms += 500) {
            guess_some(&attack, now_ms, free_ms);
            if (weir_rng_below(&attack.rng, 40) == 0) {
                log_in_honestly(&attack, weir_rng_below(&attack.rng, N_USERS),
                                weir_rng_below(&attack.rng, 3) > 0, now_ms);
            }
        }
        int64_t n = (int64_t)addresses[k], n_of_first = attack.of_user[0];
        for (int hour = 0; hour < N_HOURS; hour++) { /* one in 30 s, after those for nothing */
            ck_assert_int_le(attack.looked_at[hour], n * (WEIR_GUESSES_ADDRESS_FREE + 5 + 120));
        }
        /* 5 and the doublings to 15 min, then 4 an hour */
        ck_assert_int_le(n_of_first, n * (WEIR_GUESSES_PAIR_FREE + 10 + 4 * N_HOURS));
        ck_assert_int_le(attack.longest_ms[0], 0); /* three typing errors are for nothing */
        ck_assert_int_le(attack.longest_ms[1], 0);
    }
}

END_TEST

START_TEST(one_account_from_one_address_is_a_handful_an_hour)
{
    int64_t n = 0;
    for (int64_t now_ms = 0; now_ms < HOUR_MS; now_ms += 100) {
        n += log_in("ann", "10.0.0.1", false, now_ms) == 0;
    }
    ck_assert_int_le(n, 19);
    ck_assert_int_ge(n, 10);
    ck_assert_int_gt(log_in("ann", "10.0.0.1", true, HOUR_MS), 0);
    ck_assert_int_eq(log_in("ann", "10.0.0.2", true, HOUR_MS), 0);
    ck_assert_int_eq(log_in("ann", "10.0.0.1", true, 3 * HOUR_MS), 0); /* it was left alone */
}

END_TEST

START_TEST(who_is_known_waits_for_seconds_only)
{
    ck_assert_int_eq(log_in("ann", "10.0.0.1", true, 0), 0);
    int64_t longest_ms = 0, now_ms = 0;
    for (int i = 0; i < 200; i++) {
        int64_t wait_ms = log_in("ann", "10.0.0.1", false, now_ms);
        longest_ms = WEIR_MAX(longest_ms, wait_ms);
        now_ms += wait_ms + 1;
    }
    ck_assert_int_gt(longest_ms, 0);
    ck_assert_int_le(longest_ms, WEIR_GUESSES_KNOWN_MAX_MS);
}

END_TEST

START_TEST(parallel_guesses_count_before_they_are_looked_at)
{
    int n_looked_at = 0;
    struct weir_guess guess = {.user = "ann", .address = "2001:db8::1"};
    for (int i = 0; i < 100; i++) {
        struct weir_guess one = {.user = "ann",
                                 .address = i % 2 == 0 ? "2001:db8::1" : "2001:db8::2"};
        n_looked_at += weir_guesses_try(guesses, &one, 0) == 0;
    }
    ck_assert_int_eq(n_looked_at, WEIR_GUESSES_PAIR_FREE); /* one /64 is one address */
    for (int i = 0; i < WEIR_GUESSES_PAIR_FREE; i++) {
        weir_guesses_undo(guesses, &guess);
    }
    ck_assert_int_eq(weir_guesses_try(guesses, &guess, 0), 0);
    ck_assert_int_eq(guess.n_wrong, 1);
}

END_TEST

/* A million claims push out no one who is known, and a user is counted from everywhere. */
START_TEST(guesses_of_many_push_out_nobody_who_is_known)
{
    struct weir_guess guess = {.user = "ann", .address = "192.168.0.1"};
    ck_assert_int_eq(log_in("ann", "192.168.0.1", true, 0), 0);
    for (size_t i = 0; i < 100000; i++) {
        (void)log_in(text_of("x", i), text_of("11.1.", i % 60000), false, (int64_t)i);
    }
    ck_assert_int_eq(weir_guesses_try(guesses, &guess, 200000), 0);
    ck_assert(guess.is_known);
    weir_guesses_right(guesses, &guess, 200000);
    for (int i = 0; i < 30; i++) {
        guess = (struct weir_guess){.user = "bob", .address = text_of("12.1.", (size_t)i)};
        ck_assert_int_eq(weir_guesses_try(guesses, &guess, 200000), 0);
        ck_assert_int_eq(guess.n_wrong, i + 1);
        ck_assert(!guess.is_known);
    }
}

END_TEST

WEIR_TEST_MAIN_WITH("guesses", set_up, tear_down, guessing_is_slow_and_keeps_nobody_out,
                    one_account_from_one_address_is_a_handful_an_hour,
                    who_is_known_waits_for_seconds_only,
                    parallel_guesses_count_before_they_are_looked_at,
                    guesses_of_many_push_out_nobody_who_is_known)
