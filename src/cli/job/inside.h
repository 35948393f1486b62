/**
 * Inside: a visit of a task (visit/visit.h), at the person's end. inside_begin makes it; inside_open opens a stream
 * of it; inside_run moves bytes between the stream and three descriptors until it is over.
 */
#ifndef WEIR_CLI_INSIDE_H
#define WEIR_CLI_INSIDE_H

#include "cli/command.h"
#include "visit/line.h"

#define INSIDE_CUT_EXIT 255 /**< Of a command whose visit was cut, as ssh has it. */

struct inside {
    struct cli_call *call;
    const char *word; /**< JOB[/TASK], as it was given. */
    char *job, *task; /**< Identifier; NULL: the first that runs. */
    char *visit;
};

/** The identifier of the job that a word means, without a task. */
weir_status inside_find_job(struct cli_call *call, const char *word, char **out,
                            struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Find the job and make the visit.
 * @param body  Of POST …/visits, without "task"; a reference is taken.
 */
weir_status inside_begin(struct cli_call *call, const char *word, json_t *body, struct inside *out,
                         struct weir_error *err) WEIR_MUST_CHECK;

weir_status inside_open(const struct inside *inside, struct weir_line *line,
                        struct weir_error *err) WEIR_MUST_CHECK;

/** How a stream ended. */
struct inside_end {
    bool has_exit;
    int exit_status;                        /**< Of the program; 128 + the signal that killed it. */
    char message[WEIR_ERROR_MESSAGE_BYTES]; /**< Without one: why. */
};

/** What is moved to where; -1: nothing. */
struct inside_ends {
    int in_fd, out_fd, errors_fd;
    bool has_terminal;  /**< in_fd is one, whose keys go on as they are. */
    bool is_connection; /**< in_fd and out_fd are the same socket, which is non-blocking. */
};

/** What moves them; its owner polls. Begin with weir_line open, and inside_mover_init. */
struct inside_mover {
    struct inside_ends ends;
    struct weir_line *line;
    size_t in_flight; /**< Input that was not taken yet. */
    bool is_input_over;
    int to_fd; /**< Where the frame goes that was read last; -1: it was dealt with. */
    size_t n_written;
    int64_t said_ms, heard_ms, looked_ms;
    bool is_over;
    struct inside_end end;
};

#define INSIDE_MOVER_FDS 3

void inside_mover_init(struct inside_mover *mover, struct weir_line *line,
                       const struct inside_ends *ends);
/** Do what needs no waiting; then what to wait for, and at most how long. Not once it is over. */
int inside_mover_prepare(struct inside_mover *mover, struct pollfd fds[INSIDE_MOVER_FDS]);
/** After poll. */
void inside_mover_move(struct inside_mover *mover, const struct pollfd fds[INSIDE_MOVER_FDS]);

/** Until the stream is over. The terminal is afterwards as it was. */
void inside_run(const struct inside *inside, struct weir_line *line, const struct inside_ends *ends,
                struct inside_end *out);

/** Print why a stream was cut, if it was, and set the command's exit status. */
void inside_tell(struct cli_call *call, const struct inside_end *end);

/** Why a stream ended without a word: what became of the task, or of the server. */
void inside_explain_cut(const struct inside *inside, char *out, size_t size);

#endif
