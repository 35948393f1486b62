/**
 * Looking at model files before they become versions: size and form, what runs the model, what it
 * takes and gives. It may take long and the file may be anything, so it is done by threads of its own
 * (INSPECT_MAX_RUNNING), each of which waits for a child process; handlers look at the state and wait
 * for it. The same question again, running or answered, is not asked twice.
 *
 *     switch (inspector_look(inspector, &question, arena, &signature, err)) …
 *
 * Any thread.
 */
#ifndef WEIR_CONTROL_INSPECTOR_H
#define WEIR_CONTROL_INSPECTOR_H

#include "base/arena.h"
#include "base/status.h"
#include "blob/blob.h"
#include "control/control.h"
#include "control/inspect_child.h"

#define INSPECT_MAX_RUNNING 2
#define INSPECT_MAX_WAITING 32 /* more: UNAVAILABLE */
#define INSPECT_MAX_KEPT    64 /* answers; the oldest go */

/** How a file is looked at: inspect_child_run in the server, something scripted in tests. `context` is
 *  the configuration's. */
typedef weir_status (*inspect_fn)(void *context, const struct inspect_request *request,
                                  struct weir_arena *arena, char **out, struct weir_error *err);

struct inspector_config {
    struct weir_blobs *blobs; /**< Borrowed, as the rest. */
    const char *dir;          /**< Folder for the files of labels and rules; made. Copied. */
    const char *onnxruntime;  /**< Library; NULL: found. Copied. */
    inspect_fn inspect;       /**< NULL: inspect_child_run with weir-worker. */
    void *context;
    struct control_listener listener; /**< Woken when an answer is there. */
};

/** What is asked. Text is borrowed. */
struct inspect_question {
    const char *blob;       /**< SHA-256 of the model's file, which must be there. */
    const char *name;       /**< The model's. */
    const char *labels;     /**< JSON array; NULL: what the file says. */
    const char *preprocess; /**< JSON; NULL: what the file says. */
    const char *inputs;     /**< JSON: shapes of inputs; NULL: what the file says. */
    const char *golden;     /**< SHA-256 of the file of golden inputs; NULL: none. */
};

enum inspect_state { INSPECT_RUNNING, INSPECT_DONE, INSPECT_REFUSED };

struct inspector;

struct inspector *inspector_create(const struct inspector_config *config);

/** Ask, or look how far it is. *out_signature (JSON, in the arena) is set when it is DONE; *err says
 *  why it is REFUSED: also if too many wait (UNAVAILABLE) or there is no such blob (NOT_FOUND). */
enum inspect_state inspector_look(struct inspector *inspector,
                                  const struct inspect_question *question, struct weir_arena *arena,
                                  char **out_signature, struct weir_error *err);

/** End the threads, once the children that run have ended (they are bounded in time), and wake nobody
 *  any more. NULL is accepted. */
void inspector_stop(struct inspector *inspector);
void inspector_destroy(struct inspector *inspector);

#endif
