/**
 * Program: what the kinds of jobs that run a user's own program have in common: the program and its
 * arguments, what it finds in its folder and its environment, the limits of its tasks, and what the
 * agent gets for each of them. A kind's struct has a `struct program program`, and its table begins
 * with PROGRAM_OPTIONS; what it adds is what its own framework expects to find.
 *
 *     struct job_dance { struct program program; int64_t pairs; };
 *     static const struct weir_option options[] = {
 *         PROGRAM_OPTIONS(job_dance),
 *         WEIR_OPT_JSON(job_dance, pairs, "pairs", INT, 0, "1", 1, 8, "Pairs of dancers"),
 *     };
 *
 * A new option of all such programs is a member here, a line of PROGRAM_OPTIONS, its check in
 * program_check, and, if the agent must know it, its name among those that program_definition
 * copies.
 */
#ifndef WEIR_FRAMEWORK_PROGRAM_H
#define WEIR_FRAMEWORK_PROGRAM_H

#include "framework/job_plan.h"

#define PROGRAM_MEMORY_MAX_BYTES 1125899906842624 /* a pebibyte: no node has more */

/** Most bytes of a variable that program_env sets; longer values are cut. */
#define PROGRAM_ENV_MAX_BYTES 4096

/** Options of every program; JSON points into the specification that was read. */
struct program {
    const json_t *argv, *env, *files, *datasets, *code, *secrets, *service, *volumes;
    int64_t cpu_millis, cpu_slots, memory_max_bytes, disk_max_bytes, files_max, stop_grace_ms;
    const char *network, *image, *python, *kill_mode;
};

/** The lines of a kind's table for its member `program`. */
#define PROGRAM_OPTIONS(strct)                                                                     \
    WEIR_OPT_JSON(strct, program.argv, "argv", TEXTS, WEIR_OPTION_REQUIRED, NULL, 0, 0,            \
                  "The program and its arguments"),                                                \
        WEIR_OPT_JSON(strct, program.env, "env", MAP, WEIR_OPTION_SECRET, NULL, 0, 0,              \
                      "Environment variables"),                                                    \
        WEIR_OPT_JSON(strct, program.files, "files", MAP, WEIR_OPTION_SECRET, NULL, 0, 0,          \
                      "Text files of the task's folder, by path"),                                 \
        WEIR_OPT_JSON(strct, program.cpu_millis, "cpus", CPUS, 0, "1", 0, WEIR_FRAMEWORK_CPUS_MAX, \
                      "CPUs of each task: 2, 0.5 or 500m; 0: shares what is there"),               \
        WEIR_OPT_JSON(strct, program.cpu_slots, "cpu-slots", INT, WEIR_OPTION_INTERNAL, NULL, 0,   \
                      WEIR_FRAMEWORK_CPUS_MAX, "Whole CPUs, as `cpus` was called before"),         \
        WEIR_OPT_JSON(strct, program.memory_max_bytes, "memory-max-bytes", INT, 0, "0", 0,         \
                      PROGRAM_MEMORY_MAX_BYTES, "Memory of each task; 0: no limit of its own"),    \
        WEIR_OPT_JSON(strct, program.disk_max_bytes, "disk-max-bytes", INT, 0, "0", 0,             \
                      PROGRAM_MEMORY_MAX_BYTES,                                                    \
                      "What each task's folder and /tmp may hold; 0: what its node allows"),       \
        WEIR_OPT_JSON(strct, program.files_max, "files-max", INT, 0, "0", 0, 1000000,              \
                      "How many files each task's folder and /tmp may hold; 0: what its node "     \
                      "allows"),                                                                   \
        WEIR_OPT_JSON(strct, program.network, "network", TEXT, 0, "host", 0, 0,                    \
                      "host: the machine's; none: only the job's own tasks on the same node"),     \
        WEIR_OPT_JSON(strct, program.image, "image", TEXT, 0, NULL, 0, 0,                          \
                      "Root file system: an OCI image, as sha256:… of a blob that holds its "    \
                      "archive, the name of one on the nodes (weir agent --images), or of one in " \
                      "a registry, as pytorch/pytorch:2.3.0, which pods of Kubernetes have; else " \
                      "the node's own"),                                                           \
        WEIR_OPT_JSON(strct, program.volumes, "volumes", JSON, 0, NULL, 0, 0,                      \
                      "Volumes of its pods in Kubernetes: [{path, claim}], or nfs: HOST:/DIR in "  \
                      "place of the claim, and writable: true"),                                   \
        WEIR_OPT_JSON(strct, program.stop_grace_ms, "stop-grace-ms", INT, 0, "5000", 0, 3600000,   \
                      "Time between SIGTERM and SIGKILL when a task is stopped"),                  \
        {.name = "kill-mode",                                                                      \
         .type = WEIR_OPTION_TEXT,                                                                 \
         .offset = offsetof(struct strct, program.kill_mode),                                      \
         .fallback = "mixed",                                                                      \
         .words = WEIR_WORDS("mixed", "control-group"),                                            \
         .doc = "Who gets SIGTERM when a task is stopped: the program alone, which passes it on "  \
                "to whom it concerns (mixed), or every process of the task (control-group)"},      \
        WEIR_OPT_JSON(strct, program.datasets, "datasets", TEXTS, 0, NULL, 0, 0,                   \
                      "Names of datasets that the tasks read; WEIR_DATASETS says where they are"), \
        WEIR_OPT_JSON(strct, program.code, "code", JSON, 0, NULL, 0, 0,                            \
                      "The folder that it brings along: {manifest} of files that were sent, or "   \
                      "{git, commit}"),                                                            \
        WEIR_OPT_JSON(strct, program.python, "python", TEXT, 0, NULL, 0, 0,                        \
                      "Python packages, as text of a requirements.txt: an environment with them "  \
                      "is made once on each node"),                                                \
        WEIR_OPT_JSON(strct, program.secrets, "secrets", TEXTS, 0, NULL, 0, 0,                     \
                      "Secrets of the project, as NAME or VARIABLE=NAME; each is a variable"),     \
        WEIR_OPT_JSON(strct, program.service, "service", JSON, WEIR_OPTION_INTERNAL, NULL, 0, 0,   \
                      "The port that browsers are brought to; `weir service run` sets it")

/**
 * Do the values make sense, as far as no node must be asked?
 * @param spec  What they were read from.
 * @return INVALID with the place, as "$.spec.network: …".
 */
weir_status program_check(const struct program *program, const json_t *spec,
                          struct weir_error *err) WEIR_MUST_CHECK;

/**
 * How many tasks are made for N, or {min, max}: max of them. NULL: one.
 * @param member  Where that stands: "tasks".
 * @return INVALID.
 */
weir_status program_read_tasks(const json_t *tasks, const char *member, int64_t *out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** CPUs of each task in thousandths: `cpus`, or the older `cpu_slots` where the job says that. */
int64_t program_cpu_millis(const struct job_plan *plan, const struct program *program);

/** What the agent gets for one task, with WEIR_RANK and WEIR_SIZE; a new reference, of which
 *  job_plan_add takes care. */
json_t *program_definition(const struct job_plan *plan, int64_t rank, int64_t n_tasks);

/**
 * Have the task meet the others before it starts (agent/rendezvous/rendezvous.h): its definition gets "meet".
 * @param n_tasks  Of the gang.
 * @param n_wait   So many ranks from 0 on must have come: those that the texts name.
 */
void program_meet(json_t *definition, int64_t n_tasks, int64_t n_wait);

/** A variable or a file of the program, with the places of `text` filled in when the ranks have met.
 *  A variable that the user gave stays as it is. */
void program_meet_env(json_t *definition, const char *name, const char *text);
void program_meet_file(json_t *definition, const char *name, const char *text);

/** The next word of a launcher that is started in place of the program, whose words come last. */
void program_meet_launcher(json_t *definition, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** The service that a specification is of: {"id", "secret", "port", "path"}, and for TensorBoard "runs". */
#define PROGRAM_SERVICE "service"

/** Files that name the tasks as hosts of MPI, for Open MPI and MPICH (gang/mpi.h), with so many processes on each. */
void program_add_hosts(json_t *definition, int64_t n_hosts, int64_t n_slots);

/** Set a variable of a definition's environment, over what the user gave. */
void program_env(json_t *definition, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
