/**
 * What a person calls a record that has an identifier: its name (the newest of that name), its
 * identifier, or 4 or more characters of the identifier's start or end (tables show the last 8); each
 * with the noun in front or without: "job/train".
 */
#ifndef WEIR_CLI_FIND_H
#define WEIR_CLI_FIND_H

#include "cli/command.h"

/** A kind of record with identifiers, and how to list it newest first. */
struct find_kind {
    const char *noun; /**< "job", of cli_nouns */
    const char *list; /**< Path, with a "?". */
    /** Path that gives those of a name: "{}" is the name; NULL: look through. */
    const char *names;
    const char *name_key; /**< Member that is the name; NULL: it has none. */
};

extern const struct find_kind find_job, find_run, find_alert, find_silence, find_delivery,
    find_token, find_session, find_sweep, find_service;

/** The kind that has this noun, singular; NULL if its records go by their names. */
const struct find_kind *find_kind_of(const char *noun);

/**
 * The identifier of what `word` means, in the arena.
 * @return NOT_FOUND saying what it may be called by; INVALID naming the candidates if it may be
 *         several.
 */
weir_status cli_find(struct cli_call *call, const struct find_kind *kind, const char *word,
                     char **out_id, struct weir_error *err) WEIR_MUST_CHECK;

/** The number of an experiment: by it, or by a name that only one project (NULL: that the caller sees) has
 *  (label.c). @return As cli_find. */
weir_status cli_experiment_find(struct cli_call *call, const char *project, const char *word,
                                char **out_id, struct weir_error *err) WEIR_MUST_CHECK;

/** POST something whose answer is a job, and print one line about it (or the answer as JSON);
 * out_id may be NULL (job.c). */
weir_status cli_job_post(struct cli_call *call, const char *path, const json_t *body,
                         const char *what, char **out_id, struct weir_error *err) WEIR_MUST_CHECK;

/** The same; the members of `beside`, unless it is NULL, are in the printed answer too. */
weir_status cli_job_post_with(struct cli_call *call, const char *path, const json_t *body,
                              const char *what, json_t *beside, char **out_id,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** The last 8 characters, as tables and the page show identifiers. */
const char *cli_short_id(const char *id);

#endif
