/* A person's name in rows, as their nouns say (store/noun.h). */
#include "control/forget/forget_private.h"

#include "nouns/nouns.h"
#include "store/stmt.h"

#include <string.h>

#define ROWS_PER_STEP 2000 /* looked at: the writer is held meanwhile */

/* The column of the i-th of all that name people; false: there are no more. */
static bool column_at(size_t i, const struct weir_noun **out_noun, const char **out_column,
                      bool *out_is_renamed)
{
    const struct weir_noun *noun;
    for (size_t k = 0; (noun = weir_noun_at(k)) != NULL; k++) {
        const struct weir_forgets *forgets = noun->forgets;
        for (size_t c = 0; forgets != NULL && c <= WEIR_ARRAY_LEN(forgets->renamed); c++) {
            *out_is_renamed = c < WEIR_ARRAY_LEN(forgets->renamed);
            *out_column = *out_is_renamed ? forgets->renamed[c] : forgets->goes;
            *out_noun = noun;
            if (*out_column != NULL && i-- == 0) {
                return true;
            }
        }
    }
    return false;
}

bool forget_names_at(size_t i, struct weir_arena *arena, struct forget_names_sql *out)
{
    const struct weir_noun *noun;
    const char *column;
    if (!column_at(i, &noun, &column, &out->is_renamed)) {
        return false;
    }
    const char *key = noun->forgets->key;
    const char *rows =
        weir_arena_printf(arena, "SELECT %s FROM %s WHERE %s > :after ORDER BY %s LIMIT :n", key,
                          noun->table, key, key);
    const char *verb = out->is_renamed ? weir_arena_printf(arena, "UPDATE %s SET %s = :forgotten",
                                                           noun->table, column)
                                       : weir_arena_printf(arena, "DELETE FROM %s", noun->table);
    out->last = weir_arena_printf(arena, "SELECT max(%s) FROM (%s) AS step", key, rows);
    out->change =
        weir_arena_printf(arena, "%s WHERE %s IN (%s) AND %s = :person AND (:project = '' OR %s)",
                          verb, key, rows, column, weir_noun_in_project(noun, arena));
    return true;
}

struct unnaming {
    const struct forget_work *work;
    const struct forget_names_sql *sql;
    const char *after; /* Key of the last row that was looked at. */
    char **last;       /* Of this step; NULL in it: no row is behind it. */
    int64_t n;
};

static weir_status unname_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct unnaming *unnaming = context;
    const struct weir_forgotten *record = unnaming->work->record;
    const struct weir_bind binds[] = {
        WEIR_BIND_TEXT("after", unnaming->after), WEIR_BIND_INT("n", ROWS_PER_STEP),
        WEIR_BIND_TEXT("person", record->person), WEIR_BIND_TEXT("project", record->project),
        WEIR_BIND_TEXT("forgotten", WEIR_FORGOTTEN_NAME)};
    size_t n;
    WEIR_TRY(weir_txn_query_texts(txn, unnaming->sql->last, binds, 2, unnaming->work->arena,
                                  &unnaming->last, &n, err));
    return weir_txn_exec(txn, unnaming->sql->change, binds, unnaming->sql->is_renamed ? 5 : 4,
                         &unnaming->n, err);
}

/* All rows in the order of their keys, so many at a time: each is looked at once. Those that came meanwhile are found by
 * the next walk, until one finds none. */
static weir_status unname(struct forget_work *work, const struct forget_names_sql *sql,
                          struct weir_error *err)
{
    int64_t n_found;
    do {
        struct unnaming unnaming = {.work = work, .sql = sql, .after = ""};
        n_found = 0;
        do {
            forget_step(work, "names");
            WEIR_TRY(weir_store_write(work->forget->store, unname_in, &unnaming, err));
            n_found += unnaming.n;
            unnaming.after = *unnaming.last;
        } while (unnaming.after != NULL);
        work->n_renamed += sql->is_renamed ? n_found : 0;
    } while (n_found > 0);
    return WEIR_OK;
}

weir_status forget_names(struct forget_work *work, struct weir_error *err)
{
    struct forget_names_sql sql;
    if (strcmp(work->record->person, WEIR_FORGOTTEN_NAME) == 0) {
        return WEIR_OK; /* it would be found again for ever */
    }
    for (size_t i = 0; forget_names_at(i, work->arena, &sql); i++) {
        WEIR_TRY(unname(work, &sql, err));
    }
    return WEIR_OK;
}
