/**
 * Commands: the table's row, the options that every client command has, output. What `weir` and other
 * programs that are clients (demo/demo.h) are made of.
 */
#ifndef WEIR_CLI_COMMAND_H
#define WEIR_CLI_COMMAND_H

#include "base/arena.h"
#include "base/json.h"
#include "base/options.h"
#include "base/status.h"
#include "client/client.h"

#include <stdbool.h>
#include <stdio.h>

/** Options of every command that talks to a server. First member of a command's own options. */
struct cli_common {
    char *server, *context, *token, *ca_file, *state, *output;
    bool is_help;
};

/** Rows of a command's option table without a default: a text, one that may be repeated, and a flag. */
#define CLI_TEXT(strct, member, name, letter, arg, doc)                                            \
    WEIR_OPT(strct, member, name, letter, TEXT, NULL, 0, 0, arg, doc)
#define CLI_LIST(strct, member, name, letter, arg, doc)                                            \
    WEIR_OPT(strct, member, name, letter, LIST, NULL, 0, 0, arg, doc)
#define CLI_FLAG(strct, member, name, letter, doc)                                                 \
    WEIR_OPT(strct, member, name, letter, BOOL, NULL, 0, 0, NULL, doc)

#define CLI_HELP_OPTION(strct)                                                                     \
    {                                                                                              \
        .name = "help", .short_name = 'h', .type = WEIR_OPTION_BOOL,                               \
        .offset = offsetof(struct strct, common.is_help), .doc = "Show this help"                  \
    }

/** Rows of a command's option table for what every command that prints has. */
#define CLI_OUTPUT_OPTIONS(strct)                                                                  \
    WEIR_OPT(strct, common.output, "output", 'o', TEXT, "text", 0, 0, "text|json",                 \
             "What to print"),                                                                     \
        CLI_HELP_OPTION(strct)

/** Rows of a command's option table for struct cli_common `common`. */
#define CLI_COMMON_OPTIONS(strct)                                                                  \
    CLI_TEXT(strct, common.server, "server", 0, "URL",                                             \
             "Server to talk to (else that of --context, or of the state folder)"),                \
        CLI_TEXT(strct, common.context, "context", 0, "NAME",                                      \
                 "One of the servers that you are logged in to (weir context)"),                   \
        CLI_TEXT(strct, common.token, "token", 0, "TOKEN",                                         \
                 "Token to show (else the local admin's)"),                                        \
        CLI_TEXT(strct, common.ca_file, "ca-file", 0, "FILE",                                      \
                 "Authorities to trust for https (else the system's)"),                            \
        CLI_TEXT(strct, common.state, "state", 0, "DIR", "State folder of the local server"),      \
        CLI_OUTPUT_OPTIONS(strct)

/** A command that has no options of its own. */
struct cli_plain {
    struct cli_common common;
};

#define CLI_N_PLAIN_OPTIONS 7
extern const struct weir_option cli_plain_options[CLI_N_PLAIN_OPTIONS];

/** One run of a command. */
struct cli_call {
    struct weir_arena *arena;
    const struct cli_command *command;
    void *options; /**< The command's options struct; begins with struct cli_common. */
    struct cli_common *common;
    char **words; /**< Words behind the command that are no flags. */
    size_t n_words;
    int argc; /**< Everything behind the command, unparsed. */
    char **argv;
    struct weir_client *client; /**< Opened by cli_connect. */
    bool has_exact_times;       /**< Tables show times as they are: what is printed stays. */
    int exit_status; /**< Of the program, if the command itself went well: that of a followed job.
                      */
};

typedef weir_status (*cli_fn)(struct cli_call *call, struct weir_error *err);

enum cli_flags {
    CLI_RAW = 1 << 0,    /**< Options are not parsed here: argc/argv go on to another program. */
    CLI_HIDDEN = 1 << 1, /**< Not in the list of commands. */
    CLI_WIDE = 1 << 2,   /**< Takes -o wide. */
    CLI_YAML = 1 << 3,   /**< Takes -o yaml. */
    CLI_NAME = 1 << 4,   /**< Takes -o name. */
};

struct cli_command {
    const char *name;    /**< One word, or two: "server stop". */
    const char *usage;   /**< What follows the name: "ION [--version N]". */
    const char *summary; /**< One line. */
    const char *help;    /**< More lines, or NULL. */
    unsigned flags;
    size_t min_words, max_words;
    const struct weir_option *options;
    size_t n_options;
    size_t options_size; /**< sizeof the options struct. */
    cli_fn run;          /**< Or rows (cli/core/verb.h). */
    const struct cli_verb *verbs;
    size_t n_verbs;
};

/** How many words a command takes, at least and at most. */
#define CLI_WORDS(least, most) .min_words = (least), .max_words = (most)

#define CLI_PLAIN                                                                                  \
    .options = cli_plain_options, .n_options = CLI_N_PLAIN_OPTIONS,                                \
    .options_size = sizeof(struct cli_plain)

#define CLI_OPTIONS(strct, table)                                                                  \
    .options = (table), .n_options = WEIR_ARRAY_LEN(table), .options_size = sizeof(struct strct)

extern const struct cli_command *const cli_commands[];
extern const size_t cli_n_commands;

/** Print a command's usage, explanation and options on standard output. */
void cli_print_help(const struct cli_command *command);

/** Parse the options of call->command from argc and argv, unless it is CLI_RAW, and run it. */
weir_status cli_call_run(struct cli_call *call, struct weir_error *err) WEIR_MUST_CHECK;

/** Print why a command failed, if it did, and free its arena. @return The exit status. */
int cli_call_end(struct cli_call *call, weir_status status, struct weir_error *err);

/** The state folder: --state, $WEIR_STATE, or the default of this user; an empty one is none. */
char *cli_state_dir(struct weir_arena *arena, const char *given);

/** Was this flag given, as it is written ("--cpus") or with a value behind "="? */
bool cli_has_flag(const struct cli_call *call, const char *flag);

/** Open call->client. */
weir_status cli_connect(struct cli_call *call, struct weir_error *err) WEIR_MUST_CHECK;

/** One REST call with path parts encoded: cli_call(call, "GET", &out, err, "/api/v1/jobs/{}", id).
 */
weir_status cli_rest(struct cli_call *call, const char *method, const char *path,
                     const json_t *body, json_t **out, struct weir_error *err) WEIR_MUST_CHECK;

/** Path with one or two parts filled in, in the arena. */
char *cli_path1(struct cli_call *call, const char *pattern, const char *a);
char *cli_path2(struct cli_call *call, const char *pattern, const char *a, const char *b);
char *cli_path3(struct cli_call *call, const char *pattern, const char *a, const char *b,
                const char *c);

/** A password: the first line of `file`; NULL: asked for at the terminal, which does not show it. In
 *  the call's arena. */
weir_status cli_read_password(struct cli_call *call, const char *prompt, const char *file,
                              char **out, struct weir_error *err) WEIR_MUST_CHECK;

/** May this file be written: is it new, or is that forced? @return EXISTS naming --force and --file. */
weir_status cli_may_write(const char *file, bool is_forced, struct weir_error *err) WEIR_MUST_CHECK;

bool cli_is_json(const struct cli_call *call);
bool cli_is_yaml(const struct cli_call *call);
bool cli_is_name(const struct cli_call *call);

/** Print a value as indented JSON with a newline. */
void cli_print_json(const json_t *value);

/** The same with what became of something that the server answers nothing about; takes the
 *  reference. */
void cli_print_change(json_t *change);

/** A column of a table: JSON member (dots go deeper) and title. */
struct cli_column {
    const char *member, *title;
};

/** Print objects as aligned columns, identifiers cut to their last 8 characters but with -o wide;
 * or the value whole as JSON or YAML if asked for. */
void cli_print_table(const struct cli_call *call, const json_t *answer,
                     const struct cli_column *columns, size_t n_columns);

/** The columns alone, with or without their titles. */
void cli_print_rows(const struct cli_call *call, const json_t *answer,
                    const struct cli_column *columns, size_t n_columns, bool has_titles);

/** Print a value as YAML, members that are null left out, `indent` blanks in front of each line. */
void cli_print_yaml(const struct cli_call *call, const json_t *value, int indent);
void cli_write_yaml(const struct cli_call *call, FILE *file, const json_t *value, int indent);

/** Say that something was done with what has this name: "NAME: deleted", or {"name": NAME, "deleted": true}. */
void cli_print_done(const struct cli_call *call, const char *name, const char *done);

/** The next word of what a LIST option was given, in the arena; NULL: there is none. Begin with the option's text. */
char *cli_next_word(const struct cli_call *call, const char **list);

/** The names between commas, as an array; empty ones are left out. A new reference. */
json_t *cli_list_of(const char *names);

/** Is this text one of an array's? */
bool cli_has_text(const json_t *list, const char *text);

/** What an act made, in one line for people; the object whole as JSON or YAML if asked for. */
void cli_print_said(const struct cli_call *call, const json_t *object, const char *line);

/** Print one object as YAML; or as JSON if asked for. */
void cli_print_object(const struct cli_call *call, const json_t *object);

/** Member as text: strings as they are, null as "-", else compact JSON. In the arena. */
char *cli_text(const struct cli_call *call, const json_t *object, const char *member);

/** Member as a table shows it: sizes and exits as people say them, identifiers short, times as "5 min ago" where
 *  -o wide has the exact ones, lists and objects of plain values without brackets, all else as cli_text. In the arena. */
char *cli_cell_text(const struct cli_call *call, const json_t *object, const char *member);

/** Print what the tasks of a job write until it is over (logs.c). */
weir_status cli_follow_job(struct cli_call *call, const char *job,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Replace this process by the program of that name beside this one (else in PATH). Returns only on
 *  failure. */
weir_status cli_exec_beside(const char *program, char *const *argv, struct weir_error *err);

/** The same with weir-worker in this role, and the call's words from i_first on. */
weir_status cli_exec_worker(struct cli_call *call, const char *role, int i_first,
                            struct weir_error *err);

#endif
