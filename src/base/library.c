#include "base/library.h"

#include "base/macros.h"

#include <stdio.h>
#include <string.h>

const struct weir_library weir_libraries[] = {
#define WEIR_LIBRARY(name, version, package, doc) {name, version, package, doc},
#include "libraries.def"
#undef WEIR_LIBRARY
};
const size_t weir_n_libraries = WEIR_ARRAY_LEN(weir_libraries);

weir_status weir_library_need(const char *name, const char *what, struct weir_error *err)
{
    const struct weir_library *library = NULL;
    for (size_t i = 0; i < weir_n_libraries && library == NULL; i++) {
        library = strcmp(weir_libraries[i].name, name) == 0 ? &weir_libraries[i] : NULL;
    }
    if (library == NULL) {
        return weir_error_set(err, WEIR_ERR_INTERNAL, "%s needs %s, which no build knows", what,
                              name);
    }
    return library->version != NULL
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                "%s needs %s, which was not there when this program was built: "
                                "install the package %s and build again (make)",
                                what, name, library->package);
}

char *weir_libraries_text(bool is_in, struct weir_arena *arena)
{
    char *text = weir_arena_strdup(arena, "");
    for (size_t i = 0; i < weir_n_libraries; i++) {
        const struct weir_library *library = &weir_libraries[i];
        const char *comma = text[0] != '\0' ? ", " : "";
        if (is_in && library->version != NULL) {
            text =
                weir_arena_printf(arena, "%s%s%s %s", text, comma, library->name, library->version);
        } else if (!is_in && library->version == NULL) {
            text = weir_arena_printf(arena, "%s%s%s (%s: %s)", text, comma, library->name,
                                     library->package, library->doc);
        }
    }
    return text;
}

void weir_version_print(const char *program)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    const char *absent = weir_libraries_text(false, &arena);
    printf("%s %s\nwith %s\n", program, WEIR_VERSION, weir_libraries_text(true, &arena));
    if (absent[0] != '\0') {
        printf("without %s\n", absent);
    }
    weir_arena_fini(&arena);
}
