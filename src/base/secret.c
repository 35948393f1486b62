#include "base/secret.h"

#include "base/sha256.h"

#include <stdio.h>
#include <string.h>

#define PLACE_BYTES 256 /* of a message; longer ones are cut */

/** A value in its parent: an object's member, or an array's element. */
struct slot {
    json_t *parent, *value;
    const char *key; /**< NULL in an array. */
    size_t index;
};

struct walk;
typedef weir_status (*leaf_fn)(struct walk *walk, const struct slot *slot, const json_t *stored,
                               const char *place);

struct walk {
    leaf_fn leaf;
    bool found_mask;
    struct weir_error *err;
};

static void slot_set(const struct slot *slot, json_t *value)
{
    if (slot->key != NULL) {
        (void)json_object_set_new(slot->parent, slot->key, value);
    } else {
        (void)json_array_set_new(slot->parent, slot->index, value);
    }
}

static bool is_mask(const json_t *value)
{
    const char *text = json_string_value(value);
    return text != NULL && strcmp(text, WEIR_SECRET_MASK) == 0;
}

/** What is stored for a slot: the member of that key; the element of that name, else number. */
static const json_t *counterpart(const struct slot *slot, const json_t *stored)
{
    if (slot->key != NULL) {
        return json_object_get(stored, slot->key);
    }
    const char *name = json_string_value(json_object_get(slot->value, "name"));
    if (name == NULL) {
        return json_array_get(stored, slot->index);
    }
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)stored, i, item)
    {
        const char *its = json_string_value(json_object_get(item, "name"));
        if (its != NULL && strcmp(its, name) == 0) {
            return item;
        }
    }
    return NULL;
}

static weir_status visit(struct walk *walk, json_t *value, const json_t *stored, const char *path,
                         size_t len, const char *place);

static weir_status visit_slot(struct walk *walk, const struct slot *slot, const json_t *stored,
                              const char *rest, size_t rest_len, const char *place)
{
    char here[PLACE_BYTES];
    if (slot->key != NULL) {
        (void)snprintf(here, sizeof here, "%s.%s", place, slot->key);
    } else {
        (void)snprintf(here, sizeof here, "%s[%zu]", place, slot->index);
    }
    const json_t *other = counterpart(slot, stored);
    return rest_len == 0 ? walk->leaf(walk, slot, other, here)
                         : visit(walk, slot->value, other, rest, rest_len, here);
}

static weir_status visit_all(struct walk *walk, json_t *value, const json_t *stored,
                             const char *rest, size_t rest_len, const char *place)
{
    struct slot slot = {.parent = value};
    if (json_is_object(value)) {
        json_object_foreach(value, slot.key, slot.value)
        {
            WEIR_TRY(visit_slot(walk, &slot, stored, rest, rest_len, place));
        }
        return WEIR_OK;
    }
    json_array_foreach(value, slot.index, slot.value)
    {
        WEIR_TRY(visit_slot(walk, &slot, stored, rest, rest_len, place));
    }
    return WEIR_OK;
}

/** Follow one path of `len` bytes: "pipelines.*.source.token". */
static weir_status visit(struct walk *walk, json_t *value, const json_t *stored, const char *path,
                         size_t len, const char *place)
{
    const char *dot = memchr(path, '.', len);
    size_t head = dot != NULL ? (size_t)(dot - path) : len;
    const char *rest = dot != NULL ? dot + 1 : path + len;
    size_t rest_len = len - (size_t)(rest - path);
    if (head == 1 && path[0] == '*') {
        return visit_all(walk, value, stored, rest, rest_len, place);
    }
    char key[PLACE_BYTES];
    (void)snprintf(key, sizeof key, "%.*s", (int)head, path);
    struct slot slot = {.parent = value, .key = key, .value = json_object_get(value, key)};
    return slot.value != NULL ? visit_slot(walk, &slot, stored, rest, rest_len, place) : WEIR_OK;
}

static weir_status visit_paths(struct walk *walk, json_t *value, const json_t *stored,
                               const char *paths, const char *place)
{
    while (paths != NULL && *paths != '\0') {
        size_t len = strcspn(paths, " ");
        WEIR_TRY(visit(walk, value, stored, paths, len, place));
        paths += len + (paths[len] == ' ');
    }
    return WEIR_OK;
}

static weir_status leaf_mask(struct walk *walk, const struct slot *slot, const json_t *stored,
                             const char *place)
{
    (void)walk;
    (void)stored;
    (void)place;
    if (!json_is_null(slot->value)) {
        slot_set(slot, json_string(WEIR_SECRET_MASK));
    }
    return WEIR_OK;
}

static weir_status leaf_find(struct walk *walk, const struct slot *slot, const json_t *stored,
                             const char *place)
{
    (void)stored;
    (void)place;
    walk->found_mask = walk->found_mask || is_mask(slot->value);
    return WEIR_OK;
}

static weir_status leaf_restore(struct walk *walk, const struct slot *slot, const json_t *stored,
                                const char *place)
{
    if (!is_mask(slot->value)) {
        return WEIR_OK;
    }
    if (stored == NULL || json_is_null(stored)) {
        return weir_error_set(walk->err, WEIR_ERR_INVALID,
                              "%s: \"" WEIR_SECRET_MASK
                              "\" stands for a secret that is stored, and "
                              "none is stored for it: write the value itself",
                              place);
    }
    slot_set(slot, json_deep_copy(stored));
    return WEIR_OK;
}

void weir_secrets_mask(json_t *value, const char *paths)
{
    struct walk walk = {.leaf = leaf_mask};
    (void)visit_paths(&walk, value, NULL, paths, "");
}

bool weir_secrets_are_masked(const json_t *value, const char *paths)
{
    struct walk walk = {.leaf = leaf_find};
    (void)visit_paths(&walk, (json_t *)value, NULL, paths, "");
    return walk.found_mask;
}

weir_status weir_secrets_restore(json_t *value, const json_t *stored, const char *paths,
                                 const char *place, struct weir_error *err)
{
    struct walk walk = {.leaf = leaf_restore, .err = err};
    return visit_paths(&walk, value, stored, paths, place);
}

void weir_secret_of_visits(const char *service_secret, char out[65])
{
    struct weir_sha256_stream hash;
    static const char purpose[] = "weir visits\n";
    weir_sha256_begin(&hash);
    weir_sha256_add(&hash, purpose, sizeof purpose - 1);
    weir_sha256_add(&hash, service_secret, strlen(service_secret));
    weir_sha256_end(&hash, out);
}
