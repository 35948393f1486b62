/**
 * Verbs that are one REST call, as rows: what is sent where, and what is printed of the answer. One runner does them
 * all (cli_verbs_run). A command is one row, or several that its first word chooses from; work of its own hangs on a
 * row as a function.
 *
 *     CLI_VERBS({.of = "job", .call = "POST /api/v1/jobs/{@}/hold", .say = "job {name} is held"})
 *
 * A template is text with holes. {0}, {1} … are the call's words, {$} is the last, {-note} is an option, which must be
 * one of the command's own table, {@} is the identifier of what the row's noun means, {name} and {used.cpus} are
 * members of the answer. {X:short} is the last 8 characters, {X:MB} a number of bytes in megabytes. {X?yes|no} is "yes"
 * if X is there and not false, else "no"; {X=text?yes|no} asks whether X is that text; both may have holes. What fills
 * a hole of a path is encoded.
 *
 * A list of members is names separated by blanks, each with what it becomes: "name=1" a word, "version=#1" a word that
 * is a number, "-note" the option of that name, "role=-as" another one, "alert=@" the identifier, "active=true" or
 * "noun='sweep'" a constant. An option has its own type: a number, a truth value, a list of texts. What was not given
 * is left out; with "?" behind it is null.
 */
#ifndef WEIR_CLI_VERB_H
#define WEIR_CLI_VERB_H

#include "cli/command.h"

struct cli_verb {
    const char *word;            /**< First word that chooses it; NULL: whatever it is. */
    size_t min_words, max_words; /**< So many words choose it, the first included; 0, 0: any. */
    /** Before all else: check, change the options, add to the body what a list cannot say. */
    weir_status (*prepare)(struct cli_call *call, json_t *body, struct weir_error *err);
    const char *of;      /**< Noun of the word behind `word`: its identifier is {@}. NULL: none. */
    const char *call;    /**< Method and path, a template. NULL: `run` or `lists` does it. */
    const char *query;   /**< Members; a truth value is "1", and left out if it is false. */
    const char *body;    /**< Members; NULL: nothing is sent. */
    int64_t patience_ms; /**< How long one answer may take; 0: as ever. */
    /* What people read: `say`, `print` or a table; without them the answer, which -o json prints always. */
    const char *gives; /**< Members: the JSON, where the server answers nothing. */
    const char *say;   /**< Template. */
    const char *aside; /**< Template of what they are told beside it, on standard error. */
    void (*print)(struct cli_call *call, const json_t *answer);
    const struct cli_column *columns; /**< Of a table of the answer's items. */
    size_t n_columns;
    const char *items; /**< Member that is the items, printed alone; NULL: "items" of the answer. */
    const char *lists; /**< Plural noun whose records are listed, --limit of them at most. */
    cli_fn run;        /**< All of it is its own. */
};

/** Member of a command: its rows. */
#define CLI_VERBS(...)                                                                             \
    .verbs = (const struct cli_verb[]){__VA_ARGS__},                                               \
    .n_verbs = WEIR_ARRAY_LEN(((const struct cli_verb[]){__VA_ARGS__}))

/** Members of a row: "NAME: deleted", or {"name": NAME, "deleted": true}, of the word i. */
#define CLI_DONE(i, done) .say = "{" #i "}: " done, .gives = "name=" #i " " done "=true"

/** Members of a row: its columns. */
#define CLI_COLUMNS(...)                                                                           \
    .columns = (const struct cli_column[]){__VA_ARGS__},                                           \
    .n_columns = WEIR_ARRAY_LEN(((const struct cli_column[]){__VA_ARGS__}))

/**
 * Do what the words of the call say.
 * @return INVALID with the usage, or with what the verb is called here, if no row has this word or so many words;
 *         what the row's functions and the server say.
 */
weir_status cli_verbs_run(struct cli_call *call, struct weir_error *err) WEIR_MUST_CHECK;

/** Do one row, whatever its words. */
weir_status cli_verb_run(struct cli_call *call, const struct cli_verb *verb,
                         struct weir_error *err) WEIR_MUST_CHECK;

/** The path of a row, with its query, in the arena: for calls whose answer is no JSON. */
char *cli_verb_path(struct cli_call *call, const struct cli_verb *verb, const char *key);

/** Fill a template in, in the arena. `key` is {@}; `answer` may be NULL. */
char *cli_fill(struct cli_call *call, const char *pattern, const char *key, const json_t *answer);

/** The members of a list, added to an object. @return INVALID naming a text that is no UTF-8. */
weir_status cli_members(struct cli_call *call, const char *list, const char *key, json_t *object,
                        struct weir_error *err) WEIR_MUST_CHECK;

#endif
