#include "ion/policy.h"

#include "ion/cron.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/** Windows that touch are one; of more than so many the end is looked for again when it has come. */
#define WINDOWS_MAX 1000

struct weir_policy_freeze_window {
    char *start;
    int64_t duration_s;
    char *days, *from, *to, *zone;
};

/** "08:30" in minutes; -1: it is none. "24:00" is the day's end. */
static int64_t minutes_of(const char *text)
{
    if (text == NULL || strlen(text) != 5 || strspn(text, "0123456789:") != 5 || text[2] != ':' ||
        strchr(text, ':') != strrchr(text, ':')) {
        return -1;
    }
    int64_t minutes = strtol(text, NULL, 10) * 60 + strtol(text + 3, NULL, 10);
    return text[3] < '6' && minutes <= 24 * 60 ? minutes : -1;
}

/** Days and hours, as a start by cron and a duration. */
static weir_status from_hours(struct weir_policy_freeze_window *window, const char *where,
                              struct weir_arena *arena, struct weir_error *err)
{
    int64_t from = minutes_of(window->from), to = minutes_of(window->to);
    if (from < 0 || from >= 24 * 60) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s.from: expected a time of day, \"08:30\"",
                              where);
    }
    if (to < 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s.to: expected a time of day, \"18:00\"",
                              where);
    }
    /* "22:00" to "06:00" ends on the next day; "00:00" to "00:00" is the whole of it. */
    window->duration_s = ((to - from + 24 * 60 - 1) % (24 * 60) + 1) * 60;
    window->start = weir_arena_printf(arena, "0 %" PRId64 " %" PRId64 " ? * %s", from % 60,
                                      from / 60, window->days != NULL ? window->days : "*");
    return WEIR_OK;
}

static weir_status check(void *options, const char *where, struct weir_arena *arena,
                         struct weir_error *err)
{
    struct weir_policy_freeze_window *window = options;
    struct weir_cron cron;
    struct weir_error cause = {0};
    bool has_hours = window->days != NULL || window->from != NULL || window->to != NULL;
    bool has_start = window->start != NULL || window->duration_s != 0;
    const char *key = has_start ? "start" : "days";
    if (window->zone != NULL && strcmp(window->zone, "UTC") != 0) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "%s.zone: times are in UTC", where);
    }
    if (has_hours == has_start ||
        (has_start && (window->start == NULL || window->duration_s == 0))) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: expected from and to (and days), or start and duration_s",
                              where);
    }
    if (has_hours) {
        WEIR_TRY(from_hours(window, where, arena, err));
    }
    weir_status status = weir_cron_parse(window->start, &cron, &cause);
    return status == WEIR_OK ? WEIR_OK
                             : weir_error_set(err, status, "%s.%s: %s", where, key, cause.message);
}

/** The end of the window that a time lies in; 0: it lies in none. */
static int64_t end_of_window(const struct weir_policy_freeze_window *window, int64_t now_ms)
{
    struct weir_cron cron;
    int64_t start_ms, duration_ms = window->duration_s * 1000, end_ms = 0;
    if (weir_cron_parse(window->start, &cron, NULL) != WEIR_OK ||
        weir_cron_next(&cron, now_ms - duration_ms, &start_ms) != WEIR_OK) {
        return 0;
    }
    for (int i = 0; i < WINDOWS_MAX && start_ms <= WEIR_MAX(now_ms, end_ms); i++) {
        end_ms = start_ms + duration_ms;
        if (weir_cron_next(&cron, start_ms, &start_ms) != WEIR_OK) {
            break;
        }
    }
    return end_ms;
}

static struct weir_policy_verdict decide(const struct weir_policy_inputs *inputs,
                                         const void *options, struct weir_arena *arena)
{
    (void)arena;
    int64_t until_ms = end_of_window(options, inputs->now_ms);
    return until_ms > inputs->now_ms
               ? (struct weir_policy_verdict){.verdict = WEIR_VERDICT_WAIT,
                                              .rule = "freeze-window: nothing is promoted now",
                                              .until_ms = until_ms}
               : weir_policy_answer(WEIR_VERDICT_PASS, "freeze-window: no window is open");
}

// clang-format off
static const struct weir_option options_of[] = {
    WEIR_OPT_JSON(weir_policy_freeze_window, days, "days", TEXT, 0, NULL, 0, 0, "Days of the week on which the window begins: MON-FRI, \"SAT,SUN\"; left out: each"),
    WEIR_OPT_JSON(weir_policy_freeze_window, from, "from", TEXT, 0, NULL, 0, 0, "When it begins: \"08:00\""),
    WEIR_OPT_JSON(weir_policy_freeze_window, to, "to", TEXT, 0, NULL, 0, 0, "When it ends: \"18:00\"; not later than from: on the next day"),
    WEIR_OPT_JSON(weir_policy_freeze_window, start, "start", TEXT, 0, NULL, 0, 0, "In place of days, from and to: when windows begin, as a cron expression with seconds"),
    WEIR_OPT_JSON(weir_policy_freeze_window, duration_s, "duration-s", INT, 0, NULL, 0, 31536000, "With start: how long each lasts"),
    WEIR_OPT_JSON(weir_policy_freeze_window, zone, "zone", TEXT, 0, NULL, 0, 0, "Zone of the times: UTC, the only one"),
};
// clang-format on

static const struct weir_policy_ops ops = {.check = check, .decide = decide, .is_gate = true};

const struct weir_kind weir_policy_freeze_window = {
    .name = "freeze-window",
    .doc = "In the window nothing is promoted: a version waits until its end. Several windows are "
           "several of these policies in the chain.",
    WEIR_KIND_OPTIONS(weir_policy_freeze_window, options_of),
    .ops = &ops,
};
