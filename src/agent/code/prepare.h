/**
 * Preparation: what a supervisor does for a task before its program starts, in steps: fetch what
 * the job brings along, meet the other ranks, say what the program finds in its environment.
 *
 * A step is a function and a line in the table of prepare.c. The steps run in that order, in the
 * supervisor (as the agent's user, outside of the task's sandbox), after work/ was made with the
 * task's files and before run.json is written: a supervisor that is killed meanwhile is followed by
 * another one, which begins with the first step again. So a step can be repeated: it finds what is
 * there, or makes it again, and what it leaves for the next one stands in `task`, not on disk.
 *
 * What a step may change: the task's argv, env and files (with prepare_env and prepare_argv), and
 * what lies in DIR/work. That folder is still the supervisor's alone: no program of the job has run
 * in it.
 *
 * A step that fails ends the attempt: exit.json has its message, and weir_status_exit of its status.
 * All steps together have PREPARE_PATIENCE_MS; a stop request ends the call to the server that is
 * going on (CANCELLED).
 */
#ifndef WEIR_AGENT_PREPARE_H
#define WEIR_AGENT_PREPARE_H

#include "agent/task.h"
#include "client/client.h"

#define PREPARE_PATIENCE_MS ((int64_t)30 * 60 * 1000)

/** What a step works with. One thread. */
struct prepare {
    const char *dir;            /**< The attempt's folder; the program will find DIR/work. */
    const json_t *document;     /**< task.json: what the server said, and the agent of this node. */
    struct task *task;          /**< In, out. */
    struct weir_arena *arena;   /**< Lives as long as the supervisor. */
    int64_t deadline_ms;        /**< For all steps together, by weir_mono_ms. */
    struct weir_client *client; /**< Use prepare_client. */
    struct prepare_watch *watch;
    const struct places *places; /**< Set by the first step. */
};

struct prepare_step {
    const char *name; /**< Begins the message of a failure: "code". */
    weir_status (*fn)(struct prepare *prepare, struct weir_error *err);
};

/**
 * Do all steps of a task.
 * @return what the first failed step returned, its name in the message; CANCELLED if the task was
 *         stopped meanwhile.
 */
weir_status prepare_task(const char *dir, const json_t *document, struct task *task,
                         struct weir_arena *arena, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * The server, called with the attempt's token; opened by the first step that asks.
 * @return UNSUPPORTED if the agent that wrote task.json did not say where the server is.
 */
weir_status prepare_client(struct prepare *prepare, struct weir_client **out,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Was the task asked to stop? Then a long step ends with CANCELLED. */
bool prepare_is_stopped(const struct prepare *prepare);

/** What the agent says of this node: "server", "ca_file", "address", "node"; NULL: not said. */
const char *prepare_node_fact(const struct prepare *prepare, const char *name);

/** A variable of the program, over one that is there. Both texts are copied. */
void prepare_env(struct prepare *prepare, const char *name, const char *value);

/** Does the task's environment have this variable by now? NULL: no. */
const char *prepare_get_env(const struct prepare *prepare, const char *name);

/** The steps. */
weir_status prepare_places(struct prepare *prepare, struct weir_error *err) WEIR_MUST_CHECK;
weir_status prepare_secrets(struct prepare *prepare, struct weir_error *err) WEIR_MUST_CHECK;
weir_status prepare_code(struct prepare *prepare, struct weir_error *err) WEIR_MUST_CHECK;
weir_status prepare_output(struct prepare *prepare, struct weir_error *err) WEIR_MUST_CHECK;
weir_status prepare_environment(struct prepare *prepare, struct weir_error *err) WEIR_MUST_CHECK;
weir_status prepare_checkpoint(struct prepare *prepare, struct weir_error *err) WEIR_MUST_CHECK;
weir_status prepare_service(struct prepare *prepare, struct weir_error *err) WEIR_MUST_CHECK;
weir_status prepare_rendezvous(struct prepare *prepare, struct weir_error *err) WEIR_MUST_CHECK;

#endif
