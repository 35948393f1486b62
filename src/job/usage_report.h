/**
 * Usage report: the account (usage.h) added up by something, in seconds.
 *
 *     const struct weir_usage_query query = {.by = WEIR_USAGE_BY_PROJECT, .from_ms = …, .to_ms = …};
 *     WEIR_TRY(weir_usage_report(txn, &query, arena, &rows, &n, err));
 *
 * By cluster it is the account of the allocations (job/cluster.h), not of the tasks on them: each counts its nodes, their
 * CPUs and their devices from its start until its end, as the other side does, to the millisecond within [from, to). An allocation of
 * whole nodes counts what a node of its pool has. Nothing is known of what its devices were used for: all is unknown. Only `project`
 * narrows it, the one of the job that an allocation was first asked for.
 *
 * Times are whole hours; what is older than hours are kept (retain/rules.c) whole days, by UTC, and has no
 * job any more. What a scoped transaction does not see is not in it.
 */
#ifndef WEIR_JOB_USAGE_REPORT_H
#define WEIR_JOB_USAGE_REPORT_H

#include "base/arena.h"
#include "store/store.h"

enum weir_usage_by {
    WEIR_USAGE_BY_PROJECT,
    WEIR_USAGE_BY_USER,
    WEIR_USAGE_BY_JOB,
    WEIR_USAGE_BY_MODEL,
    WEIR_USAGE_BY_DAY,
    WEIR_USAGE_BY_HOUR,
    WEIR_USAGE_BY_CLUSTER,
    WEIR_USAGE_N_BY,
};

/** Rows of one answer: those with the most given, or the first times. */
#define WEIR_USAGE_ROWS_MAX 10000

/** "project" …; -1 for any other text. */
const char *weir_usage_by_text(enum weir_usage_by by);
int weir_usage_by_from_text(const char *text);

struct weir_usage_query {
    enum weir_usage_by by;
    const char *project, *user, *job, *model; /**< NULL: all. */
    int64_t from_ms, to_ms;                   /**< To is not in it. */
    int64_t now_ms; /**< By cluster: an allocation that runs has run until now. */
};

/** Seconds of devices and of CPUs. */
struct weir_usage_figures {
    double waited, given, used, unknown, idle, borrowed;
    double cpu_waited, cpu_given, cpu_borrowed;
    double node; /**< By cluster: node seconds. */
};

struct weir_usage_row {
    /** Its project, user, job, model or cluster; "" for what has none. By time: NULL. */
    char *key;
    int64_t time_ms; /**< By time: where it begins. */
    char *name;      /**< By job: its name; NULL: it is forgotten. */
    char *project;   /**< By job: whose it is. */
    struct weir_usage_figures is;
};

/** @return LIMIT: more than WEIR_USAGE_ROWS_MAX rows. Rows lie in the arena. */
weir_status weir_usage_report(struct weir_txn *txn, const struct weir_usage_query *query,
                              struct weir_arena *arena, struct weir_usage_row **out, size_t *out_n,
                              struct weir_error *err) WEIR_MUST_CHECK;

#endif
