/**
 * Output: what a task leaves in its folder "output" ($WEIR_OUTPUT) becomes files of its run.
 *
 * After the program's end, and before exit.json, the supervisor has a child send the files: regular ones, to
 * PUT /api/v1/runs/RUN/artifacts/PATH, with the attempt's token. What the program left may be hostile: no
 * link is followed, also not in place of the folder, and no other file system entered. Ranks but the first
 * put theirs below rank-N/.
 *
 * How the program ended stands in ended.json meanwhile, and which files were sent in output.sent: a
 * supervisor that is killed is followed by one that goes on from there. A server that is away is waited for
 * OUTPUT_PATIENCE_MS long. What could not be sent is said in the task's log.
 */
#ifndef WEIR_AGENT_OUTPUT_H
#define WEIR_AGENT_OUTPUT_H

#include "agent/task.h"

#define OUTPUT_FOLDER      "output"
#define OUTPUT_FILES_MAX   20000
#define OUTPUT_DEPTH_MAX   64
#define OUTPUT_PATIENCE_MS ((int64_t)10 * 60 * 1000)
#define OUTPUT_LINE_BYTES  1024

/** What is sent, and where to. Text is borrowed. */
struct output {
    const char *dir;                      /**< The attempt's folder. */
    const char *run;                      /**< NULL: it has none. */
    const char *server, *token, *ca_file; /**< NULL: as weir_client_open. */
    int64_t rank;
    int64_t max_bytes; /**< Bound of all files together, as long as they are; 0: no bound. */
};

/** From task.json. */
void output_read(const char *dir, const json_t *document, const struct task *task,
                 struct output *out);

/** Is there anything in the folder? */
bool output_is_there(const char *dir);

/**
 * Send it in a child of this process. `must_end` is asked five times a second; if it says true, the child is
 * killed.
 * @param out_line  What became of it, a line for the task's log; "": nothing to say.
 */
void output_send(const struct output *output, bool (*must_end)(void *context), void *context,
                 char out_line[OUTPUT_LINE_BYTES]);

#endif
