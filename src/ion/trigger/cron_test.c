#include "ion/cron.h"

#include "base/clock.h"
#include "base/rng.h"
#include "base/test_main.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

static int64_t at(const char *text)
{
    int64_t time_ms;
    ck_assert_int_eq(weir_time_parse(text, &time_ms), WEIR_OK);
    return time_ms;
}

/* Worked out by hand with a calendar. */
static const struct {
    const char *cron, *after, *next;
} known[] = {
    {"0 0 3 * * ?", "2026-01-31T03:00:00Z", "2026-02-01T03:00:00Z"},
    {"0 0 3 * * *", "2026-01-31T02:59:59.999Z", "2026-01-31T03:00:00Z"},
    {"*/15 * * * * ?", "2026-01-31T10:00:14Z", "2026-01-31T10:00:15Z"},
    {"0 0/10 * * * ?", "2026-01-31T23:50:00Z", "2026-02-01T00:00:00Z"},
    {"0 30 8 ? * MON-FRI", "2026-01-30T08:30:00Z", "2026-02-02T08:30:00Z"},
    {"0 30 8 ? * 2-6", "2026-01-30T08:30:00Z", "2026-02-02T08:30:00Z"},
    {"0 0 0 ? * fri-mon", "2026-02-02T12:00:00Z", "2026-02-06T00:00:00Z"},
    {"0 0 12 29 2 ?", "2026-01-01T00:00:00Z", "2028-02-29T12:00:00Z"},
    {"59 59 23 31 DEC ? 2030", "2026-01-01T00:00:00Z", "2030-12-31T23:59:59Z"},
    {"0 5,7 1-3/2 * * ?", "2026-01-31T01:07:00Z", "2026-01-31T03:05:00Z"},
    {"0 0 22-2 * * ?", "2026-01-31T02:00:00Z", "2026-01-31T22:00:00Z"},
    {"5/20 * * * * ?", "2026-01-31T00:00:45Z", "2026-01-31T00:01:05Z"},
};

START_TEST(known_schedules_fire_when_the_calendar_says)
{
    struct weir_error err;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct weir_cron cron;
        int64_t next_ms;
        ck_assert_msg(weir_cron_parse(known[i].cron, &cron, &err) == WEIR_OK, "%s", err.message);
        ck_assert_int_eq(weir_cron_next(&cron, at(known[i].after), &next_ms), WEIR_OK);
        char text[WEIR_TIME_TEXT_BYTES];
        weir_time_format(next_ms, text);
        ck_assert_msg(next_ms == at(known[i].next), "%s after %s: %s, not %s", known[i].cron,
                      known[i].after, text, known[i].next);
    }
}

END_TEST

START_TEST(what_is_no_schedule_is_refused_with_the_field_named)
{
    static const struct {
        const char *cron, *part;
        weir_status status;
    } wrong[] = {
        {"", "6 or 7 fields", WEIR_ERR_INVALID},
        {"0 0 3 * *", "6 or 7 fields", WEIR_ERR_INVALID},
        {"0 0 3 * * ? * *", "6 or 7 fields", WEIR_ERR_INVALID},
        {"0 61 * * * ?", "minute 61 is not in 0-59", WEIR_ERR_INVALID},
        {"0 0 24 * * ?", "hour 24 is not in 0-23", WEIR_ERR_INVALID},
        {"0 0 0 0 * ?", "day of month 0 is not in 1-31", WEIR_ERR_INVALID},
        {"0 0 0 ? * 8", "day of week 8 is not in 1-7", WEIR_ERR_INVALID},
        {"0 0 0 ? * MOON", "day of week", WEIR_ERR_INVALID},
        {"0 0 0 * * ? 1969", "year 1969 is not in 1970-2099", WEIR_ERR_INVALID},
        {"0 0 0 * * ? 2030-2029", "backwards", WEIR_ERR_INVALID},
        {"x 0 0 * * ?", "second", WEIR_ERR_INVALID},
        {"-1 0 0 * * ?", "second", WEIR_ERR_INVALID},
        {"0/0 0 0 * * ?", "step", WEIR_ERR_INVALID},
        {"0/ 0 0 * * ?", "step", WEIR_ERR_INVALID},
        {"0/60 0 0 * * ?", "step", WEIR_ERR_INVALID},
        {"0, 0 0 * * ?", "second", WEIR_ERR_INVALID},
        {"1- 0 0 * * ?", "second", WEIR_ERR_INVALID},
        {"? 0 0 * * ?", "second", WEIR_ERR_INVALID},
        {"0 0 0 L * ?", "L, W and #", WEIR_ERR_UNSUPPORTED},
        {"0 0 0 ? * 6#3", "day of week", WEIR_ERR_INVALID},
        {"0 0 0 1 * MON", "both restricted", WEIR_ERR_UNSUPPORTED},
        {"99999999999999999999 0 0 * * ?", "second", WEIR_ERR_INVALID},
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct weir_cron cron;
        struct weir_error err = {0};
        ck_assert_msg(weir_cron_parse(wrong[i].cron, &cron, &err) == wrong[i].status, "%s: %s",
                      wrong[i].cron, err.message);
        ck_assert_msg(strstr(err.message, wrong[i].part) != NULL, "%s", err.message);
    }
}

END_TEST

START_TEST(a_day_that_never_comes_ends)
{
    struct weir_cron cron;
    int64_t next_ms;
    ck_assert_int_eq(weir_cron_parse("0 0 0 30 2 ?", &cron, NULL), WEIR_OK);
    ck_assert_int_eq(weir_cron_next(&cron, 0, &next_ms), WEIR_ERR_END);
    ck_assert_int_eq(weir_cron_parse("* * * * * ?", &cron, NULL), WEIR_OK);
    ck_assert_int_eq(weir_cron_next(&cron, at("2099-12-31T23:59:59Z"), &next_ms), WEIR_ERR_END);
    ck_assert_int_eq(weir_cron_next(&cron, INT64_MAX, &next_ms), WEIR_ERR_END);
    ck_assert_int_eq(weir_cron_next(&cron, INT64_MIN, &next_ms), WEIR_OK);
    ck_assert_int_eq(next_ms, 0);
}

END_TEST

/** A random field and, told apart from the parser, the values it allows. */
static void random_field(struct weir_rng *rng, int min, int max, bool is_sparse, char *out,
                         size_t size, bool allowed[64])
{
    memset(allowed, 0, 64);
    int n = max - min + 1;
    if (!is_sparse && weir_rng_below(rng, 2) == 0) {
        (void)snprintf(out, size, "*");
        memset(allowed, 1, 64);
        return;
    }
    out[0] = '\0';
    size_t n_elements = 1 + weir_rng_below(rng, 3);
    for (size_t i = 0; i < n_elements; i++) {
        int a = min + (int)weir_rng_below(rng, (uint64_t)n),
            b = min + (int)weir_rng_below(rng, (uint64_t)n);
        int step = 1 + (int)weir_rng_below(rng, (uint64_t)max);
        size_t len = strlen(out);
        const char *comma = i > 0 ? "," : "";
        switch (weir_rng_below(rng, 4)) {
        case 0:
            (void)snprintf(out + len, size - len, "%s%d", comma, a);
            allowed[a] = true;
            break;
        case 1:
            (void)snprintf(out + len, size - len, "%s%d-%d", comma, a, b);
            for (int v = a;; v = v == max ? min : v + 1) {
                allowed[v] = true;
                if (v == b) {
                    break;
                }
            }
            break;
        case 2:
            (void)snprintf(out + len, size - len, "%s%d/%d", comma, a, step);
            for (int v = a; v <= max; v += step) {
                allowed[v] = true;
            }
            break;
        default:
            (void)snprintf(out + len, size - len, "%s*/%d", comma, step);
            for (int v = min; v <= max; v += step) {
                allowed[v] = true;
            }
            break;
        }
    }
}

struct oracle {
    bool allowed[6][64];
};

static bool fires(const struct oracle *oracle, int64_t time_s)
{
    time_t t = (time_t)time_s;
    struct tm tm;
    gmtime_r(&t, &tm);
    return oracle->allowed[0][tm.tm_sec] && oracle->allowed[1][tm.tm_min] &&
           oracle->allowed[2][tm.tm_hour] && oracle->allowed[3][tm.tm_mday] &&
           oracle->allowed[4][tm.tm_mon + 1] && oracle->allowed[5][tm.tm_wday + 1];
}

START_TEST(random_schedules_fire_at_the_second_a_search_of_all_seconds_finds)
{
    uint64_t seed = 4711;
    printf("seed %" PRIu64 "\n", seed);
    struct weir_rng rng;
    weir_rng_init(&rng, seed, 0);
    int n_found = 0;
    int64_t n_budget = 20000000; /* Seconds looked at, all trials together. */
    while (n_budget > 0) {
        char words[6][64], text[512];
        struct oracle oracle;
        random_field(&rng, 0, 59, true, words[0], 64, oracle.allowed[0]);
        random_field(&rng, 0, 59, true, words[1], 64, oracle.allowed[1]);
        random_field(&rng, 0, 23, false, words[2], 64, oracle.allowed[2]);
        random_field(&rng, 1, 31, false, words[3], 64, oracle.allowed[3]);
        random_field(&rng, 1, 12, false, words[4], 64, oracle.allowed[4]);
        random_field(&rng, 1, 7, false, words[5], 64, oracle.allowed[5]);
        if (strcmp(words[3], "*") != 0) {
            (void)snprintf(words[5], 64, "?");
            memset(oracle.allowed[5], 1, 64);
        }
        (void)snprintf(text, sizeof(text), "%s %s %s %s %s %s", words[0], words[1], words[2],
                       words[3], words[4], words[5]);
        struct weir_cron cron;
        struct weir_error err;
        ck_assert_msg(weir_cron_parse(text, &cron, &err) == WEIR_OK, "%s", err.message);
        int64_t after_ms = (int64_t)weir_rng_below(&rng, 4000000000000), next_ms = 0;
        ck_assert_int_eq(weir_cron_next(&cron, after_ms, &next_ms), WEIR_OK);
        ck_assert_int_gt(next_ms, after_ms);
        int64_t second = after_ms / 1000 + 1, last = WEIR_MIN(next_ms / 1000, second + 2000000);
        n_budget -= last - second;
        while (second < last && !fires(&oracle, second)) {
            second++;
        }
        ck_assert_msg(second == last, "%s after %" PRId64 ": missed %" PRId64, text, after_ms,
                      second);
        ck_assert(fires(&oracle, next_ms / 1000));
        n_found += second == next_ms / 1000;
    }
    ck_assert_int_gt(n_found, 20);
}

END_TEST

WEIR_TEST_MAIN("cron", known_schedules_fire_when_the_calendar_says,
               what_is_no_schedule_is_refused_with_the_field_named, a_day_that_never_comes_ends,
               random_schedules_fire_at_the_second_a_search_of_all_seconds_finds)
