/** weir job shell, exec, top: look into a task that runs. */
#include "cli/job/inside.h"
#include "cli/job/job_program.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct exec_options {
    struct cli_common common;
    bool has_tty, has_input;
};

static const struct weir_option exec_options[] = {
    CLI_COMMON_OPTIONS(exec_options),
    CLI_FLAG(exec_options, has_tty, "tty", 't', "Give it a terminal: this one"),
    WEIR_OPT(exec_options, has_input, "input", 0, BOOL, "true", 0, 0, NULL,
             "Pass standard input on (--no-input: it gets none)"),
};

/* What is said of this terminal. */
static void add_terminal(json_t *body)
{
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    const char *term = getenv("TERM");
    (void)ioctl(STDIN_FILENO, TIOCGWINSZ, &size);
    json_object_set_new(body, "tty", json_true());
    json_object_set_new(body, "rows", json_integer(size.ws_row));
    json_object_set_new(body, "columns", json_integer(size.ws_col));
    if (term != NULL && term[0] != '\0') {
        json_object_set_new(body, "term", json_string(term));
    }
}

static weir_status visit(struct cli_call *call, json_t *body, const struct inside_ends *ends,
                         struct weir_error *err)
{
    struct inside inside;
    struct inside_end end;
    struct weir_line *line = weir_arena_alloc(call->arena, sizeof *line);
    WEIR_TRY(inside_begin(call, call->words[0], body, &inside, err));
    WEIR_TRY(inside_open(&inside, line, err));
    inside_run(&inside, line, ends, &end);
    inside_tell(call, &end);
    return WEIR_OK;
}

static weir_status run_shell(struct cli_call *call, struct weir_error *err)
{
    bool has_tty = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    const struct inside_ends ends = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, has_tty, false};
    json_t *body = json_pack("{s:s}", "kind", "shell");
    if (has_tty) {
        add_terminal(body);
    }
    return visit(call, body, &ends, err);
}

static weir_status run_exec(struct cli_call *call, struct weir_error *err)
{
    const struct exec_options *options = call->options;
    if (job_program_words_before(call) != 1 || call->n_words < 2) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "put -- in front of the command: weir job exec %.60s -- %.60s",
                              call->words[0], call->n_words > 1 ? call->words[1] : "ls");
    }
    if (options->has_tty && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--tty: standard input and output are no terminal");
    }
    const struct inside_ends ends = {options->has_input ? STDIN_FILENO : -1, STDOUT_FILENO,
                                     STDERR_FILENO, options->has_tty, false};
    json_t *words = json_array();
    for (size_t i = 1; i < call->n_words; i++) {
        json_array_append_new(words, json_string(call->words[i]));
    }
    if (json_array_size(words) != call->n_words - 1) {
        json_decref(words);
        return weir_error_set(err, WEIR_ERR_INVALID, "a word of the command is no UTF-8");
    }
    json_t *body = json_pack("{s:s,s:o}", "kind", "exec", "command", words);
    if (options->has_tty) {
        add_terminal(body);
    }
    return visit(call, body, &ends, err);
}

const struct cli_command cli_job_shell = {
    .name = "job shell",
    .usage = "JOB[/TASK]",
    .summary = "Open a shell in a task that runs",
    .help = "TASK is a rank (0), a role and rank (worker-0) or an identifier; the first task that "
            "runs\n"
            "if it is not given. The shell is bash, or else sh, where the task's program is: in "
            "its\n"
            "folder, as its user, with its variables, within its limits. It ends with the task, "
            "and with\n"
            "this command; its exit status is this command's, 255 if the connection was cut.",
    CLI_WORDS(1, 1),
    CLI_PLAIN,
    .run = run_shell,
};

const struct cli_command cli_job_exec = {
    .name = "job exec",
    .usage = "JOB[/TASK] [OPTIONS] -- COMMAND [ARGUMENT …]",
    .summary = "Run a command in a task that runs",
    .help = "Standard input, output and error are this command's, as they are; Ctrl-C is passed "
            "on, and\n"
            "the third time ends the visit. The exit status is the command's, 128 and its number "
            "if a\n"
            "signal ended it, 255 if the connection was cut.",
    CLI_WORDS(1, 256),
    CLI_OPTIONS(exec_options, exec_options),
    .run = run_exec,
};
