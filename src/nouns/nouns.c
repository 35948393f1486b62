#include "nouns/nouns.h"

#include "base/macros.h"

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
