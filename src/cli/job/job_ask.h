/** What `weir job run` and `weir job submit` ask for beside the program: options, and what becomes of
 *  them in a job's specification (framework/request.h). */
#ifndef WEIR_CLI_JOB_ASK_H
#define WEIR_CLI_JOB_ASK_H

#include "cli/command.h"

struct job_ask {
    char *gpus, *gpu_memory, *mig, *time_limit, *hold_on_failure, *node_selector, *toleration,
        *topology, *save_signal, *save_within, *clusters, *overflow_after;
    double gpu_share;
    int64_t priority;
    bool is_preemptible, is_fenced;
};

/** Rows of a table of options; `ask` is a member of the struct. */
#define JOB_ASK_OPTIONS(strct)                                                                     \
    CLI_TEXT(strct, ask.gpus, "gpus", 0, "N[:MODEL]",                                              \
             "Accelerators of each task, all on one node: 2, 2:H100"),                             \
        WEIR_OPT(strct, ask.gpu_share, "gpu-share", 0, F64, "0", 0, 1, "X",                        \
                 "A part of each: 0.5"),                                                           \
        CLI_TEXT(strct, ask.gpu_memory, "gpu-memory", 0, "SIZE", "So much memory of each: 20G"),   \
        CLI_TEXT(strct, ask.mig, "mig", 0, "PROFILE", "Each is a MIG slice: 1g.10gb"),             \
        WEIR_OPT(strct, ask.priority, "priority", 0, INT, "-1", -1, 1000, "N",                     \
                 "In its queue the higher goes first (else 50)"),                                  \
        WEIR_OPT(strct, ask.is_preemptible, "preemptible", 0, BOOL, "true", 0, 0, NULL,            \
                 "May be stopped for others, and goes on later (--no-preemptible: never)"),        \
        CLI_FLAG(strct, ask.is_fenced, "fenced", 0,                                                \
                 "Never runs twice at a time: stops itself on a node that is cut off"),            \
        CLI_TEXT(strct, ask.time_limit, "time-limit", 0, "TIME",                                   \
                 "Longest run, from its placement on: 90m, 12h"),                                  \
        CLI_TEXT(strct, ask.hold_on_failure, "hold-on-failure", 0, "TIME",                         \
                 "Keep the place of a task that fails for so long, for a look: 30m"),              \
        CLI_TEXT(strct, ask.save_signal, "save-signal", 0, "NAME",                                 \
                 "Ask its tasks to save by this signal before the job is stopped for others: "     \
                 "USR1, USR2, HUP, INT, TERM; none"),                                              \
        CLI_TEXT(strct, ask.save_within, "save-within", 0, "TIME",                                 \
                 "How long they may save then: 2m (else 60 s)"),                                   \
        CLI_LIST(strct, ask.node_selector, "node-selector", 0, "KEY=VALUE",                        \
                 "A label that its nodes must have; may be given again"),                          \
        CLI_LIST(strct, ask.toleration, "toleration", 0, "KEY[=VALUE]",                            \
                 "A taint of nodes that it tolerates; may be given again"),                        \
        CLI_TEXT(strct, ask.topology, "topology", 0, "KEY",                                        \
                 "All its tasks on nodes with the same value of this label"),                      \
        CLI_TEXT(strct, ask.clusters, "clusters", 0, "NAME,NAME…",                                 \
                 "Clusters whose nodes it may have, in this order; local: nodes that joined by "   \
                 "themselves (else as its queue says)"),                                           \
        CLI_TEXT(strct, ask.overflow_after, "overflow-after", 0, "TIME",                           \
                 "Wait for so long before nodes are asked of a cluster: 10m; 0: not at all (else " \
                 "as its queue says, or the cluster)")

/**
 * Put what was given into a specification; what it says already and was not given stays.
 * @return INVALID naming the option.
 */
weir_status job_ask_add(const struct job_ask *ask, json_t *spec,
                        struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Warn on standard error if accelerators are asked for and no node has one (of that model): the job would wait until
 * somebody adds one. Silent if the caller may not look at devices.
 */
void job_ask_warn(struct cli_call *call, const struct job_ask *ask);

/** The same of so many accelerators, of any model if it is NULL. */
void job_gpus_warn(struct cli_call *call, int64_t n, const char *model);

#endif
