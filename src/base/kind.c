#include "base/kind.h"

#include "base/library.h"
#include "base/macros.h"
#include "base/names.h"
#include "base/options_private.h"

#include <string.h>

const struct weir_kind *weir_registry_get(const struct weir_registry *registry, const char *name)
{
    for (size_t i = 0; i < registry->n_kinds; i++) {
        if (strcmp(registry->kinds[i]->name, name) == 0) {
            return registry->kinds[i];
        }
    }
    return NULL;
}

static bool is_planned(const struct weir_registry *registry, const char *name)
{
    for (size_t i = 0; registry->planned != NULL && registry->planned[i] != NULL; i++) {
        if (strcmp(registry->planned[i], name) == 0) {
            return true;
        }
    }
    return false;
}

#define NOUN_BYTES 32

/* "job-kind" → "job kind". Returns out. */
static const char *spoken(const struct weir_registry *registry, char out[NOUN_BYTES])
{
    (void)snprintf(out, NOUN_BYTES, "%s", registry->noun);
    for (char *p = out; *p != '\0'; p++) {
        *p = *p == '-' ? ' ' : *p;
    }
    return out;
}

static weir_status need_library(const struct weir_registry *registry, const struct weir_kind *kind,
                                const char *where, struct weir_error *err)
{
    char noun[NOUN_BYTES], what[256];
    if (kind->library == NULL) {
        return WEIR_OK;
    }
    (void)snprintf(what, sizeof what, "%s: %s %s", where, spoken(registry, noun), kind->name);
    return weir_library_need(kind->library, what, err);
}

weir_status weir_registry_find(const struct weir_registry *registry, const char *name,
                               const char *where, const struct weir_kind **out,
                               struct weir_error *err)
{
    struct weir_names known = {0};
    struct weir_nearest nearest = {0};
    char noun[NOUN_BYTES];
    const struct weir_kind *found = weir_registry_get(registry, name);
    if (found != NULL) {
        *out = found;
        return need_library(registry, found, where, err);
    }
    for (size_t i = 0; i < registry->n_kinds; i++) {
        const char *other = registry->kinds[i]->name;
        weir_names_add(&known, other, strlen(other));
        weir_nearest_see(&nearest, name, strlen(name), other);
    }
    if (is_planned(registry, name)) {
        bool has_other = registry->instead != NULL;
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "%s: \"%s\" is not a %s of this version: it has %s%s%s", where, name,
                              spoken(registry, noun), known.text, has_other ? "; " : "",
                              has_other ? registry->instead : "");
    }
    bool is_near = nearest.name != NULL;
    return weir_error_set(err, WEIR_ERR_INVALID, "%s: \"%.40s\" is none of %s%s%s%s", where, name,
                          known.text, is_near ? "; did you mean " : "", is_near ? nearest.name : "",
                          is_near ? "?" : "");
}

weir_status weir_kind_read(const struct weir_kind *kind, const json_t *object, const char *where,
                           struct weir_arena *arena, struct weir_configured *out,
                           struct weir_error *err)
{
    void *options = kind->options_bytes > 0 ? weir_arena_alloc(arena, kind->options_bytes) : NULL;
    if (options != NULL) {
        memset(options, 0, kind->options_bytes);
    }
    WEIR_TRY(weir_options_read(kind->options, kind->n_options, object, where, "kind", arena,
                               options, err));
    *out = (struct weir_configured){.kind = kind, .options = options};
    return WEIR_OK;
}

/* ---- members that are no options ------------------------------------------------------------- */

#define PLACE_BYTES 256

static const struct weir_kind_words *find_words(const struct weir_kind *kind, const char *key)
{
    for (size_t i = 0; i < kind->n_words; i++) {
        for (const char *const *word = kind->words[i].words; *word != NULL; word++) {
            if (strcmp(*word, key) == 0) {
                return &kind->words[i];
            }
        }
    }
    return NULL;
}

/* The options that people set: their names, and the nearest to `key`. */
static void see_options(const struct weir_option *options, size_t n_options, const char *key,
                        struct weir_names *known, struct weir_nearest *nearest)
{
    char name[OPTIONS_NAME_BYTES], written[OPTIONS_NAME_BYTES];
    (void)options_swap(key, '_', '-', written);
    for (size_t i = 0; i < n_options; i++) {
        if (!(options[i].flags & WEIR_OPTION_INTERNAL)) {
            (void)options_swap(options[i].name, '-', '_', name);
            weir_names_add(known, name, strlen(name));
            weir_nearest_see(nearest, written, strlen(written), options[i].name);
        }
    }
}

/* Where none is near: one that says more than `key` does. */
static void see_akin(const struct weir_option *options, size_t n_options, const char *key,
                     struct weir_nearest *nearest)
{
    for (size_t i = 0; i < n_options && nearest->name == NULL; i++) {
        bool is_meant =
            !(options[i].flags & WEIR_OPTION_INTERNAL) && weir_name_is_akin(key, options[i].name);
        nearest->name = is_meant ? options[i].name : NULL;
    }
}

static weir_status refuse_member(const struct weir_registry *registry, const struct weir_kind *kind,
                                 const char *place, const char *key, struct weir_error *err)
{
    struct weir_names known = {0};
    struct weir_nearest nearest = {0};
    char text[PLACE_BYTES] = "", more[PLACE_BYTES] = "";
    const struct weir_kind_words *words = find_words(kind, key);
    see_options(kind->options, kind->n_options, key, &known, &nearest);
    see_options(registry->common, registry->n_common, key, &known, &nearest);
    see_akin(kind->options, kind->n_options, key, &nearest);
    see_akin(registry->common, registry->n_common, key, &nearest);
    if (words == NULL && nearest.name != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s: unknown option; did you mean %s?", place,
                              options_swap(nearest.name, '-', '_', text));
    }
    if (words != NULL && words->option != NULL) {
        (void)snprintf(text, sizeof text, "; %s is meant (%s)", words->option, words->doc);
    } else if (words != NULL) {
        (void)snprintf(text, sizeof text, ": %s", words->doc);
    }
    if (known.is_full) {
        (void)snprintf(more, sizeof more, ": weir explain %s %s", registry->noun, kind->name);
    }
    return weir_error_set(err, WEIR_ERR_INVALID, "%s: unknown option%s; %s has %s%s", place, text,
                          kind->name, known.len > 0 ? known.text : "none", more);
}

weir_status weir_kind_check_members(const struct weir_registry *registry,
                                    const struct weir_kind *kind, const json_t *object,
                                    const char *where, struct weir_error *err)
{
    for (void *it = json_object_iter((json_t *)object); it != NULL;
         it = json_object_iter_next((json_t *)object, it)) {
        const char *key = json_object_iter_key(it);
        char place[PLACE_BYTES];
        if (strcmp(key, "kind") != 0 &&
            weir_options_find(kind->options, kind->n_options, key) == NULL &&
            weir_options_find(registry->common, registry->n_common, key) == NULL) {
            (void)snprintf(place, sizeof place, "%s.%.60s", where, key);
            return refuse_member(registry, kind, place, key, err);
        }
    }
    return WEIR_OK;
}

weir_status weir_registry_read(const struct weir_registry *registry, const json_t *object,
                               const char *where, struct weir_arena *arena,
                               struct weir_configured *out, struct weir_error *err)
{
    const struct weir_kind *kind;
    char noun[NOUN_BYTES];
    const char *name = json_string_value(json_object_get(object, "kind"));
    if (name == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s%s: missing: which %s is meant", where,
                              json_is_object(object) ? ".kind" : "", spoken(registry, noun));
    }
    char *place = weir_arena_printf(arena, "%s.kind", where);
    WEIR_TRY(weir_registry_find(registry, name, place, &kind, err));
    return weir_kind_read(kind, object, where, arena, out, err);
}

/* NAME alone: its errors are those of the place itself, not of a member "kind". */
static weir_status read_name(const struct weir_registry *registry, const char *name,
                             const char *where, struct weir_arena *arena,
                             struct weir_configured *out, char **out_text, struct weir_error *err)
{
    const struct weir_kind *kind;
    WEIR_TRY(weir_registry_find(registry, name, where, &kind, err));
    WEIR_AUTO(weir_json_auto_free) json_t *object = json_pack("{s:s}", "kind", kind->name);
    WEIR_TRY(weir_kind_read(kind, object, where, arena, out, err));
    if (out_text != NULL) {
        *out_text = weir_json_text(object, arena);
    }
    return WEIR_OK;
}

weir_status weir_registry_read_named(const struct weir_registry *registry, const json_t *json,
                                     const char *where, struct weir_arena *arena,
                                     struct weir_configured *out, char **out_text,
                                     struct weir_error *err)
{
    char noun[NOUN_BYTES];
    if (json_is_string(json)) {
        return read_name(registry, json_string_value(json), where, arena, out, out_text, err);
    }
    if (!json_is_object(json)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: expected the name of a %s, or an object with kind", where,
                              spoken(registry, noun));
    }
    WEIR_TRY(weir_registry_read(registry, json, where, arena, out, err));
    if (out_text != NULL) {
        *out_text = weir_json_text(json, arena);
    }
    return WEIR_OK;
}

weir_status weir_registry_paths(const struct weir_registry *registry, const json_t *object,
                                const char *where, weir_option_path_fn fn, void *context)
{
    const char *name = json_string_value(json_object_get(object, "kind"));
    const struct weir_kind *kind = name != NULL ? weir_registry_get(registry, name) : NULL;
    return kind != NULL
               ? weir_options_paths(kind->options, kind->n_options, object, where, fn, context)
               : WEIR_OK;
}

json_t *weir_kind_options(const struct weir_registry *registry, const struct weir_kind *kind)
{
    json_t *options = weir_options_describe(kind->options, kind->n_options);
    json_t *common = weir_options_describe(registry->common, registry->n_common);
    json_array_extend(options, common);
    json_decref(common);
    return options;
}

json_t *weir_kind_describe(const struct weir_registry *registry, const struct weir_kind *kind)
{
    return json_pack("{s:s,s:s,s:s,s:o}", "noun", registry->noun, "name", kind->name, "doc",
                     kind->doc, "options", weir_kind_options(registry, kind));
}
