#include "base/names.h"

#include <string.h>

static void append(struct weir_names *names, const char *text, size_t len)
{
    memcpy(names->text + names->len, text, len);
    names->len += len;
    names->text[names->len] = '\0';
}

void weir_names_add(struct weir_names *names, const char *name, size_t len)
{
    static const char comma[] = ", ", more[] = "…";
    if (names->is_full) {
        return;
    }
    if (names->len > 0) {
        append(names, comma, sizeof comma - 1);
    }
    names->is_full = names->len + len + sizeof comma + sizeof more > sizeof names->text;
    append(names, names->is_full ? more : name, names->is_full ? sizeof more - 1 : len);
}
