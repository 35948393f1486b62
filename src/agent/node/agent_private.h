/** Inside of the agent: its threads and what they share. */
#ifndef WEIR_AGENT_AGENT_PRIVATE_H
#define WEIR_AGENT_AGENT_PRIVATE_H

#include "agent/agent.h"
#include "agent/node/contact.h"
#include "agent/node/given.h"
#include "agent/node/plan.h"
#include "agent/sandbox_enter.h"
#include "agent/supervise/use.h"
#include "agent/task.h"
#include "client/client.h"
#include "device/finder.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define ATTEMPTS_MAX      1024
#define LOG_CHUNK_BYTES   ((size_t)256 << 10)
#define SPAWN_PATIENCE_MS 3000 /* from starting a supervisor until it must hold its lock */
#define CALL_TIMEOUT_MS   10000

/** The desired state, as the server tells it, as a whole. */
struct desired {
    json_t *document;    /* {"revision","tasks"} */
    int64_t asked_at_ms; /* monotonic: when it was asked for */
};

/** One attempt as the agent knows it; all of it can be found out again. Main thread only. */
struct attempt {
    char id[TASK_ID_MAX_BYTES], job[TASK_ID_MAX_BYTES];
    int64_t number;
    char dir[TASK_PATH_BYTES];
    struct plan_seen seen;
    struct given given; /* devices */
    enum plan_desired desired;
    int64_t stop_grace_ms;
    int64_t spawned_ms; /* 0: not by this agent */
    pid_t supervisor;   /* child of this process to be reaped, or 0 */
    bool is_held_told;  /* to the server: its program failed, and its place is kept */
    bool is_saved_told; /* the same: it has saved, as it was asked */
    bool has_exit_record;
    struct task_exit exit;
    int64_t log_offset; /* what the server has; -1: not asked yet */
    int n_log_failures;
    int64_t exit_acknowledged_ms;
    struct use use;     /* as it was read last */
    int64_t use_ms;     /* monotonic: when; 0: not yet */
    int64_t use_due_ms; /* when the next reading is due */
    struct attempt *next;
};

/** The command of this node's people that says whether it is healthy. Main thread only. */
struct health_command {
    pid_t child;      /* 0: none runs */
    int fd;           /* What it writes. */
    int64_t begun_ms; /* monotonic */
    int64_t due_ms;   /* When the next is due. */
    char said[160];   /* Its first line. */
    char reason[256]; /* "" if it went well the last time. */
};

struct agent {
    const struct weir_agent_config *config;
    char *dir, *tasks_dir, *jobs_dir, *executable; /* the folders: absolute, without links */
    struct sandbox_probe sandbox;                  /* what can be isolated here */
    struct weir_isolation groups;
    bool is_isolating;
    uid_t task_users;  /* first of the range */
    json_t *shares;    /* [{"path","access"}] */
    json_t *isolation; /* what the node's record says of it */
    int lock_fd;
    struct attempt *attempts;
    size_t n_attempts;

    struct weir_client *client; /* the main thread uses it; swapped under lock */
    struct weir_backoff backoff;
    int64_t quiet_until_ms; /* no calls before this: the server is away */
    bool is_server_away;
    int64_t next_heartbeat_ms;
    int64_t next_use_ms; /* monotonic */
    int inotify_fd;

    struct weir_client *desired_client; /* the desired state thread uses it; swapped under lock */
    pthread_mutex_t lock;
    struct desired latest_desired; /* lock; the newest one, not yet taken by the main thread */
    int event_fd;                  /* a desired state came, or the agent is to stop */
    char *token_path;
    char *ca_path;          /* absolute, for tasks too; NULL: the system's authorities */
    char *onnxruntime_path; /* absolute, for tasks; NULL: none was named */
    int wake_fd;            /* ends the stop thread */
    atomic_bool is_stopping;
    atomic_bool is_leaving; /* in an allocation that is about to end */
    int n_refused;    /* main thread: heartbeats in a row that the server refused for the token */
    bool is_disowned; /* main thread: so many that it ends */
    bool has_begun_leave, is_leave_told; /* main thread: it has been noticed; the server knows */
    atomic_bool is_use_asked; /* the server is new, or was away: it knows of no use of tasks */

    struct contact *contact;    /* for supervisors */
    struct weir_finder *finder; /* main thread; NULL: devices are not looked at */
    char *find_argv[8];
    struct health_command health;

    struct desired desired; /* main thread: the one that holds */
};

/* connect.c: clients of the server, which may move or change its token while the agent runs */
weir_status connect_open(struct agent *agent, const char *server, struct weir_client **out,
                         struct weir_error *err);
/** After a call of *client (the calling thread's own) failed: if dir/server.url names another
 * server, or the token was refused, replace the client. True: it was replaced, try again. */
bool connect_refresh(struct agent *agent, struct weir_client **client, weir_status status);

/* desired.c: the thread that asks the server what should run here */
void *desired_main(void *agent);

/* spawn.c */
/** Start a supervisor for a folder, in a session of its own; its pid in *out_pid. */
weir_status spawn_supervisor(const char *executable, const char *task_dir, pid_t *out_pid,
                             struct weir_error *err);

/* attempts.c: the attempts on disk and in the desired state */
void attempts_scan(struct agent *agent);
void attempts_apply_desired(struct agent *agent);
void attempts_observe(struct agent *agent, struct attempt *attempt);
void attempts_remove(struct agent *agent, struct attempt *attempt);
void attempts_free(struct agent *agent);

/* shares.c */
#define SHARES_MAX (SANDBOX_PATHS_MAX - 1)

/** "DIR" and "DIR:rw" in lines; *out is [{"path","access"}], a new reference. */
weir_status shares_parse(const char *text, json_t **out, struct weir_error *err);
/** Share the folder of a library, to read, unless every task sees it already. What the operator shares in
 *  that folder stays as it was asked for: later ones of the list are shown over earlier ones. */
void shares_add_library(json_t *shares, const char *path);

/* jobs.c: users and folders of the jobs that have tasks here. Main thread. */
/** Find out what can be isolated, and make the folder of the jobs' folders. */
weir_status jobs_open(struct agent *agent, struct weir_error *err);
/** The "cell" of a job's task (sandbox.h), a new reference; NULL where there are no sandboxes. */
weir_status jobs_sandbox(struct agent *agent, const char *job, json_t **out,
                         struct weir_error *err);
/** If all attempts of the job that are known here have ended: remove what it has in /tmp and
 *  /dev/shm, and its user. One that begins later gets new ones. */
void jobs_release(struct agent *agent, const char *job);
/** The same for every folder that a killed agent left. After attempts_scan. */
void jobs_clean(struct agent *agent);
/** The same for all jobs of an agent's folder. All their tasks have ended, and no agent runs there. */
void jobs_remove_all(const char *agent_dir);

/* health.c */
/** Start the command where it is due, and take its end. @return Whether its verdict is another. */
bool health_look(struct agent *agent);
void health_close(struct agent *agent);
/** The first thing that is wrong with this node, as a sentence; "" if it is healthy. */
const char *health_reason(const struct agent *agent, const json_t *devices, char *out, size_t size);

/* report.c: calls to the server. Each returns what the call returned; a failure that can be cured
 * by waiting makes the agent quiet for a while. */
bool report_is_quiet(const struct agent *agent);
weir_status report_heartbeat(struct agent *agent);
/** Its program failed, and its place is kept for a while: what is in TASK_HELD. */
weir_status report_held(struct agent *agent, struct attempt *attempt);
weir_status report_saved(struct agent *agent, struct attempt *attempt);
weir_status report_running(struct agent *agent, struct attempt *attempt);
weir_status report_exit(struct agent *agent, struct attempt *attempt);
/** The node is no part of the cluster any more. */
weir_status report_left(struct agent *agent);
/** One chunk; *out_more: there is more to be sent at once. */
weir_status report_log(struct agent *agent, struct attempt *attempt, bool *out_more);
/** After every call: a server that is away is left alone for a while, and that is logged once. */
void report_note(struct agent *agent, weir_status status, const struct weir_error *err);

/* leave.c: the end of an agent in an allocation. Main thread. */
/** Since when 1970 it ends, at the latest; 0: nobody says. */
int64_t leave_ends_ms(const struct agent *agent);
/** Why the node leaves; NULL: it does not. */
const char *leave_reason(const struct agent *agent, char *out, size_t size);
/** Ask all attempts to end that were not asked yet. */
void leave_ask(struct agent *agent);
/** How long the end of an attempt is to be kept back; 0: it can be told. */
int64_t leave_hold_ms(const struct agent *agent, const struct attempt *attempt);
/** Has it told all that there is to tell, or no time left? Then the node is no part of the cluster any more. */
bool leave_is_over(struct agent *agent);

/** What a heartbeat was answered: one in an allocation leaves when its token is refused for long. */
void leave_note_answer(struct agent *agent, weir_status status);
/** After all: end what is left of the folder's attempts. */
void leave_end_rest(const struct weir_agent_config *config);

/* report_use.c */
/** Where it is time: what running attempts use, all in one call. What the server does not take is lost. */
void report_use(struct agent *agent);

#endif
