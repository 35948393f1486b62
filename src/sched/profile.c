#include "sched/sched.h"

#include "base/macros.h"
#include "base/names.h"
#include "sched/action/actions.h"

#include <stdlib.h>
#include <string.h>

// clang-format off
#define OPT(member, name, type, fallback, low, high, arg, doc)                                     \
    WEIR_OPT(weir_sched_profile, member, name, 0, type, fallback, low, high, arg, doc)

static const struct weir_option options[] = {
    OPT(actions,                 "actions",                 TEXT, "timelimit,idle,allocate,consolidation,reclaim,preempt,stalegangeviction",
                                                                  0, 0, "LIST", "Actions of a cycle, in order"),
    OPT(placement,               "placement",               TEXT, "fgd",     0, 0, "RULE", "Tasks with devices on nodes: binpack, spread or fgd"),
    OPT(placement_cpu,           "placement-cpu",           TEXT, "fgd",     0, 0, "RULE", "Tasks without devices on nodes: binpack, spread or fgd"),
    OPT(placement_gpu,           "placement-gpu",           TEXT, "pack",    0, 0, "RULE", "Shares on the devices of a node: pack or spread"),
    OPT(saturation_ppm,          "saturation-ppm",          INT,  "1000000", 1000000, 1e12, "N", "Reclaim's saturation multiplier; 1000000 is 1"),
    OPT(usage_weight_ppm,        "usage-weight-ppm",        INT,  "0",       0, 1e9, "N", "How much past use costs a queue; 1000000 is 1"),
    OPT(consolidation_max_moves, "consolidation-max-moves", INT,  "64",      -1, 1e9, "N", "Tasks that one consolidation may move; 0: none, -1: any number"),
    OPT(search_max_scenarios,    "search-max-scenarios",    INT,  "10000",   1, 1e9, "N", "Scenarios, or as much work, after which a search for room and all of an action's in a cycle end"),
    OPT(stale_grace_ms,          "stale-grace-ms",          INT,  "60000",   -1, 1e15, "MS", "How long a gang may be below its minimum; -1: for ever"),
    OPT(evict_grace_ms,          "evict-grace-ms",          INT,  "120000",  -1, 1e15, "MS", "How long work may save its state before it is evicted; -1: it is not asked"),
    OPT(idle_pct,                "idle-pct",                INT,  "5",       0, 101, "PCT", "Devices used less than this are idle; 0: none is"),
    OPT(idle_after_ms,           "idle-after-ms",           INT,  "3600000", 0, 1e15, "MS", "Preemptible work is ended when idle for so long (action idle)"),
    OPT(nominations,             "nominations",             BOOL, "true",    0, 0, NULL, "Nominated placements of an earlier plan stand"),
    OPT(least_eviction_cost,         "least-eviction-cost",         BOOL, "true",    0, 0, NULL, "Of equal victims evict what loses the least work"),
    OPT(fair_users,              "fair-users",              BOOL, "true",    0, 0, NULL, "Of equal jobs of a queue start that of the user with the smaller share"),
    OPT(guarantee_first,         "guarantee-first",         BOOL, "true",    0, 0, NULL, "What is guaranteed is given before what is lent, whoever is first"),
    OPT(backfill_depth,          "backfill-depth",          INT,  "8",       0, 1e6, "N", "Waiting jobs, in order, for which room is held at the earliest time it is expected"),
    OPT(forecast_depth,          "forecast-depth",          INT,  "64",      0, 1e6, "N", "Further waiting jobs of which the start is worked out"),
    OPT(reserve_after_ms,        "reserve-after-ms",        INT,  "60000",   0, 1e15, "MS", "The first job of a queue that waits for longer, while the queue is not served, has what gets free kept for it; 0: none has"),
    OPT(ageing_bound_ms,         "ageing-bound-ms",         INT,  "43200000", 0, 1e15, "MS", "A job that waits for longer goes before its queue's others; 0: none does"),
    OPT(timed_quotas,           "timed-quotas",           BOOL, "true",    0, 0, NULL, "Shares follow the quotas stated for times of day and week"),
    OPT(move_victims,            "move-victims",            BOOL, "true",    0, 0, NULL, "Place elsewhere what reclaim and preempt evict, where there is room"),
    OPT(retake_pipelined,        "retake-pipelined",        BOOL, "false",   0, 0, NULL, "Reclaim and preempt may take back the place of a job that an action before them has only pipelined"),
    OPT(over_share_in_all,       "over-share-in-all",       BOOL, "false",   0, 0, NULL, "A queue is above its share only if it is so in processors, memory and devices at once"),
};

static const struct weir_sched_profile profile_default = {
    .actions = "timelimit,idle,allocate,consolidation,reclaim,preempt,stalegangeviction",
    .placement = "fgd", .placement_cpu = "fgd", .placement_gpu = "pack",
    .saturation_ppm = 1000000, .consolidation_max_moves = 64, .search_max_scenarios = 10000,
    .backfill_depth = 8, .forecast_depth = 64, .reserve_after_ms = 60000, .ageing_bound_ms = 43200000,
    .stale_grace_ms = 60000, .move_victims = true,
    .evict_grace_ms = 120000, .idle_pct = 5, .idle_after_ms = 3600000,
    .nominations = true, .least_eviction_cost = true, .fair_users = true, .timed_quotas = true,
    .guarantee_first = true,
};

static const struct weir_sched_profile profile_kai = {
    .actions = "allocate,consolidation,reclaim,preempt,stalegangeviction",
    .placement = "binpack", .placement_cpu = "binpack", .placement_gpu = "pack",
    .saturation_ppm = 1000000, .consolidation_max_moves = -1, .search_max_scenarios = 10000,
    .stale_grace_ms = 60000, .move_victims = true,
    .evict_grace_ms = -1, .retake_pipelined = true, .over_share_in_all = true,
};

// clang-format on

const struct weir_option *weir_sched_profile_options(size_t *out_n)
{
    *out_n = WEIR_ARRAY_LEN(options);
    return options;
}

weir_status weir_sched_profile_named(const char *name, struct weir_sched_profile *out,
                                     struct weir_error *err)
{
    if (strcmp(name, "kai") == 0) {
        *out = profile_kai;
    } else if (strcmp(name, "default") == 0) {
        *out = profile_default;
    } else {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "profile \"%.60s\": there are \"default\" and \"kai\"", name);
    }
    return WEIR_OK;
}

/** @param words  Divided by blanks. */
static weir_status check_word(const char *option, const char *value, const char *words,
                              struct weir_error *err)
{
    if (value != NULL && value[0] != '\0' && weir_words_have(words, value, strlen(value))) {
        return WEIR_OK;
    }
    return weir_error_set(err, WEIR_ERR_INVALID, "%s: expected one of: %s", option, words);
}

static weir_status check_actions(const char *actions, struct weir_error *err)
{
    for (const char *at = actions; at != NULL && *at != '\0';) {
        size_t len = strcspn(at, ",");
        if (action_named(at, len) == NULL) {
            return weir_error_set(err, WEIR_ERR_INVALID, "actions: no action is called \"%.*s\"",
                                  (int)WEIR_MIN(len, 60), at);
        }
        at += len + (at[len] == ',');
    }
    return actions != NULL ? WEIR_OK
                           : weir_error_set(err, WEIR_ERR_INVALID, "actions: expected a list");
}

static weir_status check_number(const char *option, int64_t value, double low, double high,
                                struct weir_error *err)
{
    if ((double)value >= low && (double)value <= high) {
        return WEIR_OK;
    }
    return weir_error_set(err, WEIR_ERR_INVALID, "%s: expected %.0f to %.0f", option, low, high);
}

weir_status weir_sched_profile_check(const struct weir_sched_profile *profile,
                                     struct weir_error *err)
{
    WEIR_TRY(check_actions(profile->actions, err));
    WEIR_TRY(check_word("placement", profile->placement, "binpack spread fgd", err));
    WEIR_TRY(check_word("placement-cpu", profile->placement_cpu, "binpack spread fgd", err));
    WEIR_TRY(check_word("placement-gpu", profile->placement_gpu, "pack spread", err));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(options); i++) {
        const struct weir_option *option = &options[i];
        if (option->type == WEIR_OPTION_INT) {
            int64_t value = *(const int64_t *)((const char *)profile + option->offset);
            WEIR_TRY(check_number(option->name, value, option->min, option->max, err));
        }
    }
    return WEIR_OK;
}
