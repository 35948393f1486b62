/**
 * Framework: what to start for a job of each kind.
 *
 * A pure function from a job's specification to the list of its tasks: command line, environment,
 * files and limits of each, as the agent gets them (docs/architecture.md, "Desired task"). Which
 * node takes a task and how it is started and watched are decided elsewhere.
 *
 * The kinds of jobs are a registry (base/kind.h), each a file of this folder: what it is, the options
 * of its specification, how it is checked and made into tasks, and the facts that others go by. A
 * fact that the job's later life needs (does it restart task by task?) is written into its record
 * when it is made (job/job_step.h), so that nobody compares names of kinds.
 *
 *   train    N workers and P parameter servers of one gang, each with its own spec.json; with
 *            "elastic": true one task that starts all workers on its node, and others in place of
 *            those that are lost
 *   predict  one replica per requested replica
 *   serve    one replica of a deployment
 *   batch    tasks that write a model's answers for the pictures of a dataset version
 *   measure  one task that measures a model, or compares two, on labelled pictures
 *   command  any program: {"argv": [...], "env": {...}, "tasks": n, "cpus": n}
 *   pytorch, tensorflow, mpi, spark  a program of that framework, whose ranks find each other
 *   sbatch   a batch script of Slurm
 *
 * How many tasks there are, each kind calls as its framework does: tasks, nodes, workers, replicas.
 * Who writes another kind's word is told by the kind's `words` which option is meant.
 */
#ifndef WEIR_FRAMEWORK_FRAMEWORK_H
#define WEIR_FRAMEWORK_FRAMEWORK_H

#include "base/arena.h"
#include "base/json.h"
#include "base/kind.h"
#include "base/status.h"
#include "framework/request.h"

#include <stddef.h>
#include <stdint.h>

#define WEIR_FRAMEWORK_TASKS_MAX 1024

/** Each task gets its own copy of what the specification says: text of all copies together. */
#define WEIR_FRAMEWORK_TEXT_MAX_BYTES ((size_t)8 << 20)

/** CPUs of one task: no node has more (`weir agent --cpu-slots`). */
#define WEIR_FRAMEWORK_CPUS_MAX 4096

/** What is there for people to come to takes a tenth of a CPU, unless more is said: it mostly waits. When
 *  it works it may use all that others leave. */
#define WEIR_FRAMEWORK_SERVICE_CPU_MILLIS 100

/** One task to start. */
struct weir_launch {
    const char *role; /**< "worker", "parameter_server", "replica", "command", "server" or
                          "evaluator". */
    int64_t rank;
    int64_t cpu_millis;   /**< What placement reserves, in thousandths; 0: shares what is there. */
    int64_t memory_bytes; /**< What placement keeps for it: memory_max_bytes; 0: no limit. */
    struct weir_accelerators accelerators;
    char *definition; /**< JSON:
                          {"argv","env","files","cpu_weight","memory_max_bytes","disk_max_bytes","files_max",
                           "network","stop_grace_ms","kill_mode",
                          "state","paths"} (framework/paths.h); of a replica of a pipeline "left",
                          too: names of folders in replicas/ that it empties. */
};

/** What a job is made of; text is borrowed. */
struct weir_launch_job {
    const char *id;
    const char *project;
    const char *kind;
    const json_t *spec;     /**< As the user gave it, and the paths of datasets that it names. */
    const json_t *datasets; /**< {"name": "path"} of all datasets that its tasks read, as they were
                                 looked up; NULL: none. */
    /** {"path": "SHA-256"}: the list of files, a blob, of the version of a dataset that lies there; for nodes that
     *  do not see it. NULL: none. */
    const json_t *manifests;
    /** {"name": "path"} of datasets whose files its tasks write; NULL: none. */
    const json_t *outputs;
    const json_t *pinned;    /**< Members that each task's specification has beside: what names in
                                 spec were found to be; NULL: none. */
    const char *shared_dir;  /**< The state folder, where checkpoints are. */
    const char *shared_id;   /**< Its identity (base/folder_id.h), by which a node tells whether it
                                  sees it; NULL: none is known. */
    const char *server_url;  /**< NULL: tasks report to nobody. */
    const char *secret;      /**< Of the rendezvous, 64 hexadecimal digits. */
    int64_t max_restarts;    /**< Of the gang. */
    int64_t node_timeout_ms; /**< A node that is silent for so long is lost: fences go by it. */
};

struct job_plan;

/** `ops` of a kind of jobs. */
struct weir_job_ops {
    bool is_service;      /**< Each task is placed, and restarted for ever, on its own; else all are
                               one gang, which starts and ends together. */
    bool has_known_exits; /**< Its programs are ours: some exit statuses say that a second try ends
                               the same way (weir_exit_is_permanent). */
    bool is_training;     /**< It learns from the datasets that its specification names, is tracked
                               as a run, and goes on from its checkpoints. */
    bool names_datasets;  /**< Its specification has "datasets": names that become folders. */
    bool pins_model;      /**< Its specification has "model" and "dataset", whose versions are
                               chosen when the job is made; it is tracked as a run. */
    bool is_tracked;      /**< It is tracked as a run, whatever it learns: a user's program. */
    const char *save_signal; /**< By which its programs save and end, unless the user says
                                  otherwise: "USR1"; NULL: they know none. */
    int64_t max_restarts;    /**< Unless the user says otherwise. */
    weir_status (*check)(const json_t *spec, struct weir_arena *arena, struct weir_error *err);
    weir_status (*plan)(struct job_plan *plan, struct weir_error *err);
    /** Paths beside those of its options; NULL: there are none. */
    weir_status (*paths)(const json_t *spec, const char *where, weir_option_path_fn fn,
                         void *context);
};

extern const struct weir_registry weir_job_kinds;

#define WEIR_KIND(name) extern const struct weir_kind weir_job_##name;
#include "framework/job_kinds.def"
#undef WEIR_KIND

/** NULL if there is no such kind. */
const struct weir_job_ops *weir_job_ops_of(const char *kind);

/**
 * Is a specification, as a user hands it in, one that a job of this kind can begin with: known
 * keys, types, ranges, names? What only the nodes know (is the folder there?) is not looked at.
 * @param spec  An object.
 * @return INVALID, UNSUPPORTED or LIMIT with the path of what is wrong, and what would be right.
 */
weir_status weir_framework_check(const char *kind, const json_t *spec, struct weir_arena *arena,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/**
 * The tasks of a job, by rank, and what it asks for.
 * @return INVALID with the path of what is wrong in the specification, such as a path in the state
 *         folder that is nobody's but Weir's; UNSUPPORTED for a kind that
 *         is not there; LIMIT for more than WEIR_FRAMEWORK_TASKS_MAX tasks, or if tasks times the
 *         length of the specification is over WEIR_FRAMEWORK_TEXT_MAX_BYTES.
 */
weir_status weir_framework_plan(const struct weir_launch_job *job, struct weir_arena *arena,
                                struct weir_launch **out, size_t *out_n,
                                struct weir_job_request *out_request,
                                struct weir_error *err) WEIR_MUST_CHECK;

#endif
