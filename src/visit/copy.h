/**
 * Tree: a file, or a folder with all below it, as one stream of bytes: what weir job cp moves. Both ends are ours, so
 * that neither machine needs a program for it.
 *
 * *Sent* are files, folders, and links that lead to something within what is sent; other links, devices, pipes and
 * sockets are left out, and so is what cannot be read, each with a complaint. *Taken* is what comes, below one place,
 * by names that have no slash: no link is followed on the way, so that nothing is written anywhere else. A file is
 * there whole or as it was, with the rights that it had (0777 of them); a folder that is there is added to.
 *
 *     weir_copy_send("data", out_fd, &watch, &err);      weir_copy_take("/tmp/", in_fd, &watch, &err);
 *
 * Memory is bounded; at most WEIR_COPY_DEPTH folders are open at an end.
 */
#ifndef WEIR_VISIT_COPY_H
#define WEIR_VISIT_COPY_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_COPY_DEPTH 100 /**< Folders one in the other; what is deeper is left out. */

/** What is told while it goes on, by the thread that sends or takes. */
struct weir_copy_watch {
    /** Of something that is left out; the rest goes on. The path is below what was named, "" is that itself. */
    void (*complain)(void *context, const char *path, const char *why);
    void (*pass)(void *context); /**< Files or bytes have been added; NULL: nobody asks. */
    void *context;
    int64_t n_files, n_bytes, n_left_out;
    bool is_folder; /**< What was named is one. */
};

/**
 * Send what the path means, through a link of that name too. "-" is standard input, sent as the file "stdin".
 * @return what the root's open says, IO or UNAVAILABLE of the stream. What is left out is only in the watch.
 */
weir_status weir_copy_send(const char *path, int out_fd, struct weir_copy_watch *watch,
                           struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Take what comes: into the folder `path`, if it is one or ends with a slash, else as `path`. What came as "." goes
 * into it without a folder of its own.
 * @return CORRUPT: the stream is none, or ends before it is over: what watch counts is there whole, the rest is not;
 *         what making the root says.
 */
weir_status weir_copy_take(const char *path, int in_fd, struct weir_copy_watch *watch,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Take one file, whose bytes go into a descriptor. UNSUPPORTED of a folder. */
weir_status weir_copy_take_bytes(int in_fd, int out_fd, struct weir_copy_watch *watch,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** In a handler of a signal, before the end of a process that takes: no half file stays. */
void weir_copy_abandon(void);

#endif
