/** What holds of every registry, for the tests of each (Check). Only tests include this. */
#ifndef WEIR_BASE_KIND_LAWS_H
#define WEIR_BASE_KIND_LAWS_H

#include "base/kind.h"
#include "base/library.h"
#include "base/record.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static size_t kind_laws_size_of(enum weir_option_type type)
{
    static const size_t sizes[] = {
        [WEIR_OPTION_TEXT] = sizeof(char *),  [WEIR_OPTION_INT] = sizeof(int64_t),
        [WEIR_OPTION_F64] = sizeof(double),   [WEIR_OPTION_BOOL] = sizeof(bool),
        [WEIR_OPTION_LIST] = sizeof(char *),  [WEIR_OPTION_TEXTS] = sizeof(json_t *),
        [WEIR_OPTION_MAP] = sizeof(json_t *), [WEIR_OPTION_JSON] = sizeof(json_t *),
        [WEIR_OPTION_CPUS] = sizeof(int64_t),
    };
    return sizes[type];
}

/* A value that the option takes and that is not its default. */
static json_t *kind_laws_value(const struct weir_option *option)
{
    switch (option->type) {
    case WEIR_OPTION_INT:
    case WEIR_OPTION_F64: {
        double first = option->min < option->max ? option->min : 7;
        double fallback = option->fallback != NULL ? strtod(option->fallback, NULL) : 0;
        double value = first == fallback ? (option->min < option->max ? option->max : 8) : first;
        return option->type == WEIR_OPTION_INT ? json_integer((json_int_t)value) : json_real(value);
    }
    case WEIR_OPTION_CPUS:
        return json_real(0.25);
    case WEIR_OPTION_BOOL:
        return json_boolean(option->fallback == NULL || option->fallback[0] != 't');
    case WEIR_OPTION_TEXTS:
        return json_pack("[s]", "x");
    case WEIR_OPTION_MAP:
        return json_pack("{s:s}", "x", "y");
    case WEIR_OPTION_JSON:
        return json_pack("[s]", "x");
    default:
        return json_string(option->words == NULL ? "x"
                           : option->fallback != NULL &&
                                   strcmp(option->words[0], option->fallback) == 0
                               ? option->words[1]
                               : option->words[0]);
    }
}

/* An object with what the kind requires. */
static json_t *kind_laws_object(const struct weir_kind *kind, struct weir_arena *arena)
{
    json_t *object = json_object();
    for (size_t i = 0; i < kind->n_options; i++) {
        if (kind->options[i].flags & WEIR_OPTION_REQUIRED) {
            json_object_set_new(object, weir_option_key(&kind->options[i], arena),
                                kind_laws_value(&kind->options[i]));
        }
    }
    return object;
}

/* The option lies inside the struct, apart from the others; its value gets there, and nowhere
 * else. */
static void kind_laws_option(const struct weir_kind *kind, size_t i, struct weir_arena *arena)
{
    const struct weir_option *option = &kind->options[i];
    struct weir_configured without, with;
    struct weir_error err = {0};
    size_t size = kind_laws_size_of(option->type);
    ck_assert_msg(option->name[0] != '\0' && option->doc[0] != '\0', "%s.%s", kind->name,
                  option->name);
    ck_assert_uint_le(option->offset + size, kind->options_bytes);
    for (size_t k = 0; k < kind->n_options; k++) {
        const struct weir_option *other = &kind->options[k];
        ck_assert_msg(k == i ||
                          (strcmp(other->name, option->name) != 0 &&
                           (other->offset >= option->offset + size ||
                            other->offset + kind_laws_size_of(other->type) <= option->offset)),
                      "%s: %s and %s", kind->name, option->name, other->name);
    }
    json_t *object = kind_laws_object(kind, arena);
    ck_assert_msg(weir_kind_read(kind, object, "$", arena, &without, &err) == WEIR_OK, "%s: %s",
                  kind->name, err.message);
    if (!(option->flags & WEIR_OPTION_REQUIRED)) {
        json_object_set_new(object, weir_option_key(option, arena), kind_laws_value(option));
        ck_assert_msg(weir_kind_read(kind, object, "$", arena, &with, &err) == WEIR_OK, "%s: %s",
                      kind->name, err.message);
        ck_assert_msg(memcmp((const char *)without.options + option->offset,
                             (const char *)with.options + option->offset, size) != 0,
                      "%s.%s changes nothing", kind->name, option->name);
    } else {
        json_object_del(object, weir_option_key(option, arena));
        ck_assert_int_eq(weir_kind_read(kind, object, "$", arena, &with, &err), WEIR_ERR_INVALID);
        ck_assert_ptr_nonnull(strstr(err.message, ": missing: "));
    }
    json_decref(object);
}

/* No word for an option is one itself, or of two options; what is meant is an option. */
static void kind_laws_words(const struct weir_kind *kind)
{
    for (size_t i = 0; i < kind->n_words; i++) {
        const struct weir_kind_words *row = &kind->words[i];
        ck_assert_msg(row->doc[0] != '\0' && row->words[0] != NULL, "%s", kind->name);
        ck_assert_msg(row->option == NULL ||
                          weir_options_find(kind->options, kind->n_options, row->option) != NULL,
                      "%s has no %s", kind->name, row->option);
        for (const char *const *word = row->words; *word != NULL; word++) {
            ck_assert_msg(weir_options_find(kind->options, kind->n_options, *word) == NULL,
                          "%s: %s", kind->name, *word);
            for (size_t k = 0; k < i; k++) {
                for (const char *const *other = kind->words[k].words; *other != NULL; other++) {
                    ck_assert_str_ne(*word, *other);
                }
            }
        }
    }
}

/** Names are names and unique, also among the planned; everything is documented; defaults are valid;
 *  each option is read into a place of its own; a library is one that builds know. */
static void kind_laws_check(const struct weir_registry *registry)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    ck_assert(registry->n_kinds > 0 && registry->doc[0] != '\0' && registry->plural[0] != '\0');
    for (size_t i = 0; i < registry->n_kinds; i++) {
        const struct weir_kind *kind = registry->kinds[i];
        ck_assert_msg(weir_name_is_valid(kind->name), "%s", kind->name);
        ck_assert_ptr_eq(weir_registry_get(registry, kind->name), kind);
        size_t len = strlen(kind->doc);
        ck_assert_msg(len > 20 && kind->doc[len - 1] == '.', "%s: %s", kind->name, kind->doc);
        struct weir_error err;
        ck_assert_msg(kind->library == NULL ||
                          weir_library_need(kind->library, kind->name, &err) != WEIR_ERR_INTERNAL,
                      "%s: cmake/deps.cmake has no %s", kind->name, kind->library);
        for (size_t k = 0; k < kind->n_options; k++) {
            kind_laws_option(kind, k, &arena);
        }
        kind_laws_words(kind);
    }
    for (size_t i = 0; registry->planned != NULL && registry->planned[i] != NULL; i++) {
        ck_assert_ptr_null(weir_registry_get(registry, registry->planned[i]));
    }
    weir_arena_fini(&arena);
}

#endif
