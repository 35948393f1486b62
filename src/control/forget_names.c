/* A person's name in rows, as their nouns say (store/noun.h). */
#include "control/forget_private.h"

#include "nouns/nouns.h"
#include "store/stmt.h"

#include <string.h>

#define ROWS_PER_STEP 500

struct unnaming {
    const struct forget_work *work;
    const char *sql;
    bool is_renamed; /* to WEIR_FORGOTTEN_NAME; else it goes */
    int64_t n;
};

static weir_status unname_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct unnaming *unnaming = context;
    const struct weir_forgotten *record = unnaming->work->record;
    const struct weir_bind binds[] = {
        WEIR_BIND_TEXT("person", record->person), WEIR_BIND_TEXT("project", record->project),
        WEIR_BIND_INT("n", ROWS_PER_STEP), WEIR_BIND_TEXT("forgotten", WEIR_FORGOTTEN_NAME)};
    return weir_txn_exec(txn, unnaming->sql, binds, unnaming->is_renamed ? 4 : 3, &unnaming->n,
                         err);
}

/* A few rows at a time, until none is left. */
static weir_status unname(struct forget_work *work, const struct weir_noun *noun,
                          const char *column, bool is_renamed, struct weir_error *err)
{
    const char *key = noun->forgets->key;
    const char *found = weir_arena_printf(
        work->arena,
        "WHERE %s IN (SELECT %s FROM %s WHERE %s = :person AND (:project = '' OR %s) LIMIT :n)",
        key, key, noun->table, column, weir_noun_in_project(noun, work->arena));
    struct unnaming unnaming = {.work = work, .is_renamed = is_renamed};
    unnaming.sql = is_renamed
                       ? weir_arena_printf(work->arena, "UPDATE %s SET %s = :forgotten %s",
                                           noun->table, column, found)
                       : weir_arena_printf(work->arena, "DELETE FROM %s %s", noun->table, found);
    do {
        forget_step(work, "names");
        WEIR_TRY(weir_store_write(work->forget->store, unname_in, &unnaming, err));
        work->n_renamed += is_renamed ? unnaming.n : 0;
    } while (unnaming.n > 0);
    return WEIR_OK;
}

weir_status forget_names(struct forget_work *work, struct weir_error *err)
{
    const struct weir_noun *noun;
    if (strcmp(work->record->person, WEIR_FORGOTTEN_NAME) == 0) {
        return WEIR_OK; /* it would be found again for ever */
    }
    for (size_t i = 0; (noun = weir_noun_at(i)) != NULL; i++) {
        const struct weir_forgets *forgets = noun->forgets;
        for (size_t k = 0;
             forgets != NULL && k < WEIR_ARRAY_LEN(forgets->renamed) && forgets->renamed[k] != NULL;
             k++) {
            WEIR_TRY(unname(work, noun, forgets->renamed[k], true, err));
        }
        if (forgets != NULL && forgets->goes != NULL) {
            WEIR_TRY(unname(work, noun, forgets->goes, false, err));
        }
    }
    return WEIR_OK;
}
