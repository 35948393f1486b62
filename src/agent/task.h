/**
 * A task attempt: its description, and the records in its folder (see agent.h for the folder).
 */
#ifndef WEIR_AGENT_TASK_H
#define WEIR_AGENT_TASK_H

#include "agent/isolation.h"
#include "agent/process.h"
#include "agent/sandbox.h"
#include "agent/tunnel.h"
#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define TASK_LOG_MAX_BYTES    ((int64_t)64 << 20)
#define TASK_RECORD_MAX_BYTES ((size_t)8 << 20)
#define TASK_ID_MAX_BYTES     64
#define TASK_STOP_GRACE_MS    5000
#define TASK_PIDS_MAX         4096

struct task_pair {
    const char *name, *value;
};

/** What to start; everything in the arena it was read into. */
struct task {
    const char *id, *job, *role;
    int64_t attempt, rank;
    char **argv; /**< NULL at the end; at least one word. */
    struct task_pair *env;
    size_t n_env;
    struct task_pair *files; /**< Name (relative, without "..") and content. */
    size_t n_files;
    struct weir_limits limits;
    int64_t stop_grace_ms, log_max_bytes;
    int64_t disk_max_bytes, files_max; /**< Bounds of its folder; 0: no bound. */
    /** It is over by then on a node that does not reach the server (contact.h); 0: it runs on. */
    int64_t fence_ms;
    /** Its place is kept for so long after its program failed, for a look; 0: not at all. */
    int64_t hold_ms;
    int save_signal;  /**< By which it is asked to save; 0: it is not. */
    bool is_wanted;   /**< "desired" is "running". */
    bool is_lent;     /**< Its node is a cluster's, which takes it back, as the agent says. */
    bool is_isolated; /**< "isolation" is not "none". */
    bool asks_all;    /**< "kill_mode" is "control-group": SIGTERM is for every process of it. */
    bool is_offline; /**< "network" is "none": only its own job's tasks on this node are reached. */
    const char *image;      /**< NULL: the node's own root. */
    const char *images_dir; /**< The node's folder of images, as the agent says; NULL: none. */
    const char *image_dir;  /**< These two are set by image_run_get. */
    char **image_env;       /**< "NAME=VALUE"; NULL at the end. */
    struct sandbox sandbox; /**< Where there can be one. */
    struct tunnel tunnel;   /**< The way to its port; set by prepare_service. */
    int checkpoint_fd; /**< Lock of the folder that it uses (carry.h), set by a preparation; 0: none. */
};

/** Read a desired task. INVALID names the key: a task that cannot be understood is never started.
 */
weir_status task_from_json(const json_t *object, struct weir_arena *arena, struct task *out,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Is it an identifier of a task or a job: [a-z0-9_-], at most TASK_ID_MAX_BYTES - 1? */
bool task_is_id(const char *text);

/** The id and attempt in a folder's name, "<id>.<attempt>"; false if it is not one of ours. */
bool task_key_parse(const char *key, char id[TASK_ID_MAX_BYTES], int64_t *out_attempt);

/** run.json */
struct task_run {
    struct process_id process;
    char boot_id[PROCESS_BOOT_ID_BYTES];
    struct weir_group group;
    int64_t time_ms;
};

weir_status task_run_write(const char *dir, const struct task_run *run,
                           struct weir_error *err) WEIR_MUST_CHECK;
weir_status task_run_read(const char *dir, struct task_run *out,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** exit.json */
struct task_exit {
    bool is_lost;                           /**< Nobody saw how it ended. */
    int64_t pid;                            /**< 0: it was never started. */
    int exit_code;                          /**< -1: killed by a signal, or lost. */
    int signal;                             /**< 0: none. */
    char message[WEIR_ERROR_MESSAGE_BYTES]; /**< Why it ended so, or its last words; "" if none. */
    int64_t time_ms;
    int64_t log_bytes, max_rss_bytes, cpu_ms;
};

weir_status task_exit_write(const char *dir, const struct task_exit *record,
                            struct weir_error *err) WEIR_MUST_CHECK;
weir_status task_exit_read(const char *dir, struct task_exit *out,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** ended.json: the same, while the output of the task is being sent (output.h). */
weir_status task_ended_write(const char *dir, const struct task_exit *record,
                             struct weir_error *err) WEIR_MUST_CHECK;
weir_status task_ended_read(const char *dir, struct task_exit *out,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** stop: write the request, and read its grace (false: there is no request). */
weir_status task_stop_write(const char *dir, int64_t grace_ms,
                            struct weir_error *err) WEIR_MUST_CHECK;
bool task_stop_read(const char *dir, int64_t *out_grace_ms);

/** The same request by somebody who does not want the task's end, only its pause: the attempt
 *  counts as lost. The caller waits until a time of weir_mono_ms; what was not sent by then is given up. */
weir_status task_interrupt_write(const char *dir, int64_t grace_ms, int64_t until_mono_ms,
                                 struct weir_error *err) WEIR_MUST_CHECK;
/** False: there is no such request. */
bool task_interrupt_read(const char *dir, int64_t *out_until_mono_ms);
bool task_is_interrupted(const char *dir);

/**
 * "<id>.<attempt>@<agent>": what marks the processes of the attempt in `dir`: the name of their
 * control group, and WEIR_TASK_KEY in their environment. <agent> is the identity of the folder that
 * holds the attempts (device and inode): servers of two agents on one host may give a task the same
 * name.
 */
#define TASK_MARK_BYTES 160
const char *task_mark(char out[TASK_MARK_BYTES], const char *dir);

/** dir/name in a caller's buffer. */
#define TASK_PATH_BYTES 1024
const char *task_path(char out[TASK_PATH_BYTES], const char *dir, const char *name);
bool task_has(const char *dir, const char *name);

/** What says that its program has failed and its place is kept: until when and why, for people. */
#define TASK_HELD "held"

/** That it is to save what it has is asked by the first, written by the agent; the second is that it has, written by its
 *  supervisor. */
#define TASK_SAVE  "save"
#define TASK_SAVED "saved"

/** What the program makes in its own folder when it has: WEIR_SAVED is its path. */
#define TASK_SAVED_MARK ".weir-saved"

weir_status task_save_write(const char *dir, struct weir_error *err) WEIR_MUST_CHECK;

/** Is a supervisor there (is the lock held)? Takes and frees the lock for a moment if not. */
bool task_is_supervised(const char *dir);

#endif
