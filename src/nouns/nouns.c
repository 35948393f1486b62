#include "nouns/nouns.h"

#include "base/macros.h"

#include <string.h>

#define WEIR_NOUN(name) extern const struct weir_noun weir_noun_##name;
#define WEIR_TABLE(...)
#include "deploy/nouns.def"
#include "ion/nouns.def"
#include "job/nouns.def"
#include "notify/nouns.def"
#include "nouns/nouns.def"
#include "store/nouns.def"
#include "sweep/nouns.def"
#include "track/nouns.def"
#undef WEIR_NOUN
#undef WEIR_TABLE

#define WEIR_NOUN(name) &weir_noun_##name,
#define WEIR_TABLE(...) &(const struct weir_noun){__VA_ARGS__},
static const struct weir_noun *const nouns[] = {
#include "deploy/nouns.def"
#include "ion/nouns.def"
#include "job/nouns.def"
#include "notify/nouns.def"
#include "nouns/nouns.def"
#include "store/nouns.def"
#include "sweep/nouns.def"
#include "track/nouns.def"
};

const struct weir_noun *weir_noun_at(size_t i)
{
    return i < WEIR_ARRAY_LEN(nouns) ? nouns[i] : NULL;
}

static const struct weir_noun *noun_of(const char *table)
{
    size_t i = 0;
    while (i < WEIR_ARRAY_LEN(nouns) && strcmp(nouns[i]->table, table) != 0) {
        i++;
    }
    return weir_noun_at(i);
}

char *weir_noun_in_project(const struct weir_noun *noun, struct weir_arena *arena)
{
    if (noun->project != NULL) {
        return weir_arena_printf(arena, "%s = :project", noun->project);
    }
    const struct weir_noun *owner = noun->of.table != NULL ? noun_of(noun->of.table) : NULL;
    const char *its = owner != NULL ? weir_noun_in_project(owner, arena) : NULL;
    return its != NULL ? weir_arena_printf(arena, "%s IN (SELECT %s FROM %s WHERE %s)",
                                           noun->of.column, noun->of.key, noun->of.table, its)
                       : NULL;
}
