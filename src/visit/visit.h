/**
 * Visits: people inside a task that runs: a shell, a command, a file copied in or out, a port forwarded.
 *
 * Three nouns. A *visit* is somebody's stay in one attempt of a task: who, where, since when, of which kind.
 * A *stream* is a connection of it, from the person's command to the task's node; a visit has one, a
 * forwarded port has one more for each connection that was made to it. A *frame* is what a stream carries
 * (visit/frame.h).
 *
 *     weir job exec ─HTTP upgrade─▸ weir server ◂─HTTP upgrade─ weir agent --supervise
 *                                      hub.h                     in the task's sandbox
 *
 * Both sides call the server, as they do for everything: no port is open on the node. The server makes the
 * visit once it has looked whether the caller may; the node is told by the answer that it waits for (GET
 * …/desired) and comes to the stream with a secret that is good for that stream alone. The server passes
 * bytes on and looks at the frames as they pass: what is none ends the stream, and how the program ended
 * goes to the audit. What is typed and printed is kept nowhere.
 *
 * Bounds: VISIT_… below; a slow side holds up the other, in bounded memory (base/relay.h).
 */
#ifndef WEIR_VISIT_VISIT_H
#define WEIR_VISIT_VISIT_H

#include "base/json.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_VISIT_ID_BYTES     33 /**< 128 random bits in hexadecimal, and a NUL. */
#define WEIR_VISIT_SECRET_BYTES 65
#define WEIR_VISIT_PROTOCOL     "weir-visit"
#define WEIR_VISIT_SECRET       "Weir-Visit-Secret" /**< The header in which the node shows it. */

#define WEIR_VISIT_WORDS_MAX 256          /**< Of a command. */
#define WEIR_VISIT_TEXT_MAX  (64U << 10)  /**< All its words together. */
#define WEIR_VISIT_WINDOW    (256U << 10) /**< Input under way that the program has not taken. */
#define WEIR_VISIT_PING_MS   15000        /**< A client that has nothing to say says so. */

/** What somebody does inside. */
enum weir_visit_kind {
    WEIR_VISIT_SHELL,   /**< A shell of the task's place at a terminal. */
    WEIR_VISIT_EXEC,    /**< A command, at a terminal or not. */
    WEIR_VISIT_READ,    /**< A file of the task's is read. */
    WEIR_VISIT_WRITE,   /**< One is written. */
    WEIR_VISIT_FORWARD, /**< Connections to a port of its loopback. */
    WEIR_VISIT_TOP,     /**< Its processes, again and again. */
    WEIR_VISIT_N_KINDS,
};

/** "shell", "exec", "read", "write", "forward", "top". */
const char *weir_visit_kind_name(enum weir_visit_kind kind);
bool weir_visit_kind_of(const char *name, enum weir_visit_kind *out);

#endif
