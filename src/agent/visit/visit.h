/**
 * Visits: people inside a task (visit/visit.h), at the node's end.
 *
 * The agent, told of a stream that is wanted, writes the order "visit.ID.STREAM" into the attempt's folder. The
 * supervisor takes it out and starts a *runner*, a child of its own as the tunnel is: it connects to the server with
 * the stream's secret, and starts what the visitor wants where the task's program is: in its namespaces, its
 * control group, as its user, without its privileges, behind its filter, with its variables. When its
 * visitor is gone, a runner sends SIGHUP to what it started, kills it after VISIT_GRACE_MS, and ends. When its
 * supervisor ends, the kernel kills it, and with it what it started. So a visit ends with its attempt, and does not
 * end with the agent.
 */
#ifndef WEIR_AGENT_VISIT_H
#define WEIR_AGENT_VISIT_H

#include "agent/namespaces.h"
#include "agent/task.h"

#define VISIT_GRACE_MS    5000
#define VISIT_PATIENCE_MS 10000 /**< To reach the server. */

/** What the supervisor knows of the task that is visited. Borrowed. */
struct visit_host {
    const char *dir; /**< The attempt's. */
    const struct task *task;
    const struct weir_group *group;
    const struct weir_limits *limits; /**< Its own, where the group sets none. */
    const struct namespaces *ns;      /**< The task's sandbox's, but for a task in an image. */
    pid_t pid;                        /**< The task's program, or crun. */
    bool is_held;                     /**< That has ended, and its place is kept. */
};

/** What one stream is for; text lies in the arena it was read into. */
struct visit_order {
    const char *id, *kind, *secret, *server, *ca_file, *term, *path;
    int64_t stream, rows, columns, port;
    bool has_tty;
    char **command; /**< NULL at the end; NULL: none. */
};

/** The agent: leave the orders of the server's answer for the supervisors of these attempts. Logs what cannot be. */
void visit_leave_orders(const char *tasks_dir, const char *server, const char *ca_file,
                        const json_t *orders);

/** The supervisor: start a runner for each order that is there. */
void visit_start_all(const struct visit_host *host);

/** The runner: for as long as the visit lasts. */
_Noreturn void visit_run(const struct visit_host *host, const struct visit_order *order);

/* visit_inside.c: what is started in the sandbox */

/** What runs there, and the way to it. */
struct visit_inside {
    pid_t pid;     /**< 0: nothing. */
    int in_fd;     /**< To it; -1: nothing is taken. */
    int out_fd;    /**< From it; of a terminal or a connection, the same as in_fd. */
    int errors_fd; /**< -1: none. */
    bool is_terminal, is_connection;
};

/**
 * Start what the order says. Its descriptors are non-blocking; is a child of this process.
 * @return what could not be done; of a command that cannot be executed *out_code is a shell's 126 or 127.
 */
weir_status visit_inside_start(const struct visit_host *host, const struct visit_order *order,
                               struct weir_arena *arena, struct visit_inside *out, int *out_code,
                               struct weir_error *err) WEIR_MUST_CHECK;

/* visit_top.c: tell of the task's processes, until the visitor is gone */
struct weir_line;
_Noreturn void visit_top(const struct visit_host *host, struct weir_line *line);

/* visit_file.c: a copy (visit/copy.h), in the sandbox, as the task's user, to standard output or from standard input. The
 * exit status: 1 if something is left out, which standard error tells. */
int visit_file_read(const char *path);
int visit_file_write(const char *path);

#endif
