/**
 * Looking at a model file in a child process: `weir-worker inspect`, which parses the file, loads it
 * with the executor that will run it and prints its signature. The file is a stranger's: the child has
 * bounds on memory, time and files. Before it reads the file it gives up network, folders, root and the
 * system calls that tasks are denied (serve/model/confine.h); what it could not give up is logged, once. And
 * whatever happens to it, the server lives on.
 */
#ifndef WEIR_CONTROL_INSPECT_CHILD_H
#define WEIR_CONTROL_INSPECT_CHILD_H

#include "base/arena.h"
#include "base/status.h"

#include <stdatomic.h>
#include <stdint.h>

#define INSPECT_TIME_MS        120000              /* By the clock; processors have half of it. */
#define INSPECT_MEMORY_BYTES   ((uint64_t)4 << 30) /* Beside four times the file. */
#define INSPECT_MEMORY_MAX     ((uint64_t)64 << 30)
#define INSPECT_ANSWER_BYTES   ((size_t)4 << 20)
#define INSPECT_SENTENCE_BYTES ((size_t)2 << 10)

/** What is looked at. Paths are absolute; text is borrowed. */
struct inspect_request {
    const char *path;               /**< The model's file. */
    const char *labels;             /**< File of labels; NULL: none. */
    const char *preprocess;         /**< File of the picture's rule; NULL: none. */
    const char *inputs;             /**< File of the shapes of inputs; NULL: none. */
    const char *golden;             /**< File of golden inputs; NULL: none. */
    const char *name;               /**< What the sentence calls the model. */
    const char *onnxruntime;        /**< Library; NULL: found. */
    const atomic_bool *is_stopping; /**< Given up when it is set; NULL: never. */
};

/**
 * Run it to its end. Blocks for INSPECT_TIME_MS at most.
 *
 * @param program    File; NULL: weir-worker beside this program, else in PATH.
 * @param time_ms    0: INSPECT_TIME_MS.
 * @param out        The signature, JSON, in the arena.
 * @return What the child said, with its sentence: INVALID, CORRUPT, UNSUPPORTED, LIMIT; INVALID too if
 *         it crashed; LIMIT if it needed more than it may; INTERNAL without the program, since waiting brings none; CANCELLED.
 */
weir_status inspect_child_run(const char *program, const struct inspect_request *request,
                              int64_t time_ms, struct weir_arena *arena, char **out,
                              struct weir_error *err) WEIR_MUST_CHECK;

#endif
