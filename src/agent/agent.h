/**
 * Agent: what starts and watches the tasks on one node.
 *
 * The server says what should run here ("desired tasks", docs/architecture.md); the agent makes it
 * so, level-triggered: it compares the desired state with what is on disk and in the process table, again
 * and again, and never remembers anything that it could not find out again. It works on while the
 * server is away, and a task runs on while the agent is away.
 *
 *     weir server ←HTTP→ weir agent ──starts──→ weir agent --supervise DIR ──parent of──→ task
 *                        (one per node)         (one per task attempt; outlives the agent)
 *
 * Each (task, attempt) has a folder TASKS/<task>.<attempt>/ :
 *   task.json   what to start, as the server said it             written by the agent
 *   lock        held by the supervisor as long as it lives
 *   work/       working directory of the task, with its files    written by the supervisor
 *   run.json    identity of the process: pid, start time, boot,  … before the program is executed
 *               control groups
 *   log         what the task wrote to standard output and error
 *   stop        {"grace_ms"}: please stop it                      written by the agent; with
 *               "interrupt": true by a shutdown (agent/shutdown.h)
 *   save        please save what you have, by the signal of task.json   written by the agent
 *   saved       it has: it made work/.weir-saved                  … by the supervisor
 *   ended.json, how it ended, and which files of its output were sent, while they are (output.h)
 *   output.sent
 *   exit.json   how it ended                                      … after the log is complete
 *
 * Exactly once: the holder of the lock looks for run.json first; where it is, the program is never
 * started again. The program itself waits until run.json is durable. So after any crash between any
 * two steps an attempt has been started once, or not at all and can still be, or (the supervisor
 * died) has been started at most once and is reported as lost. The agent waits until the records
 * of an end are durable, and for no others: a machine that goes down may leave task.json empty, which is
 * made again, or run.json, which is enough if it is there. A new try is a new attempt, made by
 * the server. Exits are on disk before they are reported, and are reported until the server has
 * acknowledged them; a folder goes when the server no longer lists its attempt.
 *
 * Identity is never a bare pid: signals go through a pidfd, and its process was checked to be the one
 * meant (start time, control group). Stopping is SIGTERM to the task's own process, which alone knows
 * what it still needs of the others, then, after its grace, SIGKILL to every process. A shell dies of
 * the signal: those that it leaves get it then, and the rest of the grace. When the task's own process
 * ends otherwise, whatever it left behind is killed. Orphans
 * are adopted by the supervisor (PR_SET_CHILD_SUBREAPER) or, where the job has a PID namespace, by
 * its init (namespaces.h), so this holds without control groups too. A
 * supervisor that is told to end itself (SIGTERM: the machine shuts down) stops its task the same
 * way, whatever the task then exits with, and records it as lost: nobody wanted its end, and the
 * server starts it again as after a lost node.
 *
 * A task is told how this node reaches the server: WEIR_SERVER is the address the agent uses
 * itself, WEIR_CA_FILE its ca_file, WEIR_ONNXRUNTIME its onnxruntime. Variables of the task's own definition win. An attempt keeps
 * them until it ends: the agent follows a server that comes back at another address, the program of a task does not.
 *
 * Privileges: a task has no capabilities, and no program it executes gains any (no_new_privs), also
 * where the agent is root. Its system calls are filtered (syscall_filter.h).
 *
 * Health: with each heartbeat the node is healthy, or there is a reason why it is not: its disk is
 * full, the control groups that it had are gone, its memory or all its accelerators are bad, or the
 * command that its people gave fails. A command that takes longer than 30 s has failed. The server
 * gives an unhealthy node no new tasks.
 *
 * Maximums: an attempt has at most pids_max (default 4096) processes and threads; a log holds
 * log_max_bytes (default 64 MiB): its first 7/8, and of its end what it holds then (log_sink.h). 1024 attempts per node; more are refused and logged.
 *
 * In an allocation the agent and all below it are ended by the cluster that lent the node: every process may get SIGTERM at once,
 * and is killed later. Nobody wanted the end of the tasks, so what ends there was evicted, and no restart is counted. An
 * exit is told after the server knows that the node leaves; a failure waits a moment for the agent's own signal, which
 * may be the reason.
 *
 * A service manager must not kill supervisors with the agent: systemd needs KillMode=process.
 */
#ifndef WEIR_AGENT_AGENT_H
#define WEIR_AGENT_AGENT_H

#include "base/json.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/** NULL or 0 means the default. Strings are borrowed for the call. */
struct weir_agent_config {
    const char *dir;    /**< The agent's folder; made if it is not there. */
    const char *server; /**< "http://127.0.0.1:8440". When it fails, dir/server.url is looked at. */
    const char *token;  /**< NULL: the first line of token_file. */
    const char *token_file; /**< NULL: dir/token. */
    const char *ca_file;    /**< Authorities to trust for https, by agent and tasks; NULL: the
                                 system's. */
    const char *node;       /**< This node's name: [a-z0-9._-]. */
    const char *address; /**< Under which tasks on other nodes reach those of this one: a number, a
                                 network or an interface (rendezvous.h), looked up for each task;
                                 NULL: the one from which it reaches the server. */
    /** Body of PUT /api/v1/nodes/{name}: {"cpu_slots","memory_bytes","n_accelerators","inventory"};
     *  "agent_version" is added. */
    const json_t *inventory;
    const char *executable;  /**< The program to run supervisors with; NULL: this one. */
    const char *isolation;   /**< "auto" (what can be had here of control groups and, for root,
                                 sandboxes) or "none". */
    int64_t task_users;      /**< First of 4096 users for jobs (job_user.h); default 70000. */
    const char *shares;      /**< Folders for tasks: lines "DIR" or "DIR:rw"; NULL: none. */
    const char *onnxruntime; /**< The library, or its folder, for tasks that run models; NULL: they
                                  look where libraries are. Shared with them where it must be. */
    const char *images;      /**< Folder of OCI images that jobs may name; default dir/oci. */
    int64_t heartbeat_ms;    /**< Default 5000. */
    int64_t poll_wait_s;   /**< How long the server may hold the desired state back; default 20. */
    int64_t log_max_bytes; /**< Per attempt; default 64 MiB. */
    /** Look at the devices of this machine (device/finder.h) and tell the server. */
    bool finds_devices;
    const char *devices;        /**< File that declares devices; NULL: none. */
    const char *health_command; /**< For sh -c, once a minute; NULL: none. */
    int64_t pids_max;           /**< Processes and threads of an attempt; default 4096. */
    /** Bound of a task's folder and its job's /tmp; default: half of what is free when it
     *  starts. A task may ask for less. */
    int64_t disk_max_bytes;
    int64_t files_max;      /**< Files there; default: half of those that the file system still
                                 has room for, at most a million. A task may ask for fewer. */
    int64_t io_max_bytes_s; /**< Read, and as much written, by an attempt; default: no bound. */
    /** Tag of the allocation that its processes are in, which ends them all: when stop_fd is readable, the node leaves.
     *  NULL: in none. */
    const char *allocation;
    /** This machine is of this image: a task that wants it has it. NULL: nothing is said. */
    const char *pod_image;
    int stop_fd; /**< Readable: return. Must be given. */
};

/**
 * Be the agent of this node until stop_fd is readable. Tasks run on after it returns, but in an allocation: then the
 * server is told that the node leaves, its tasks are asked to end, and it returns when they have, and that is told; or at
 * the time that `inventory` says ("ends_ms"), when what is left is killed.
 * @return WEIR_OK when stopped; CONFLICT if another agent has this folder; INVALID for a bad name
 * or server; errors of the folder. A server that cannot be reached is no error: it is tried again,
 * for ever, and logged.
 */
weir_status weir_agent_run(const struct weir_agent_config *config,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Are these lines "DIR" or "DIR:rw", and the folders there? INVALID names the one that is not. */
weir_status weir_agent_shares_check(const char *shares, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * What `weir agent --supervise DIR` does: start the attempt in DIR, unless it was started before,
 * and write down how it ends. Changes process-wide state (signal mask, subreaper), and keeps DIR/lock
 * until the process ends: call it from main.
 * @return the exit status of the supervisor: 0, or 1 if it could not even write exit.json.
 */
int weir_agent_supervise(const char *task_dir);

#endif
