/** What can be looked at: each noun's routes, record, and what its list can be filtered by. */
#ifndef WEIR_CLI_NOUN_H
#define WEIR_CLI_NOUN_H

#include "base/record.h"
#include "cli/command.h"

struct cli_noun {
    const char *plural, *singular;
    const struct weir_resource *record; /**< Says the columns, and what explain tells. */
    const char *list;                   /**< Path; "{}" is what it is a part of. */
    const char *query;   /**< What every listing of it asks for: "newest=1"; NULL: nothing. */
    const char *one;     /**< Path of a single one; NULL: it is picked from the list. */
    const char *of;      /**< Singular noun that it is a part of; NULL: of nothing. */
    const char *key;     /**< Member that names one; NULL: none does. */
    const char *filters; /**< Names that `weir get` takes as NAME=VALUE, separated by blanks. */
    int64_t page;        /**< Most that one call lists. */
    const char *also; /**< Members that answers have beside the record, shown as columns before the
                           times; separated by blanks. NULL: none. */
};

extern const struct cli_noun cli_nouns[];
extern const size_t cli_n_nouns;

/**
 * The columns of a noun's table: those that its record marks as such, with what answers have
 * beside. Titles are the members' names without units: "created_ms" is CREATED.
 */
/**
 * Of a run of Weir's own training "accuracy" and "loss" are those of its last mini-batches, which nobody can
 * compare; what another program calls so is its own. For people the first are "batch_accuracy" and
 * "batch_loss".
 */
void cli_run_for_people(json_t *run);

const struct cli_column *cli_noun_columns(struct cli_call *call, const struct cli_noun *noun,
                                          size_t *out_n);

/** By plural or singular; NULL if there is none. */
const struct cli_noun *cli_noun_find(const char *name);

/** "job/train": the noun, and *out_name in the arena; NULL: the word names no noun so. */
const struct cli_noun *cli_noun_split(struct weir_arena *arena, const char *word, char **out_name);

/** What stands for a name in a sentence: "JOB"; of a part that of its owner: "RUN" of metrics. */
char *cli_noun_placeholder(struct weir_arena *arena, const struct cli_noun *noun);

/** "there is no noun …", with what was probably meant, or all of them. Always INVALID. */
weir_status cli_noun_unknown(const char *name, struct weir_error *err);

/**
 * Up to `limit` records as {"items": […], "more": true if there are others}, with "why" where the server
 * says why there are none. `filters` are words
 * NAME=VALUE, which are checked.
 * @param owner  What it is a part of, as a path takes it; NULL if it is of nothing.
 */
weir_status cli_noun_list(struct cli_call *call, const struct cli_noun *noun, const char *owner,
                          char *const *filters, size_t n_filters, int64_t limit, json_t **out,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** One, by its name, or by its identifier as find.h takes it. */
weir_status cli_noun_get(struct cli_call *call, const struct cli_noun *noun, const char *word,
                         json_t **out, struct weir_error *err) WEIR_MUST_CHECK;

/** What a path takes for `word` as an owner of parts, or one of its kind: a whole identifier. */
weir_status cli_noun_key(struct cli_call *call, const struct cli_noun *noun, const char *word,
                         char **out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
