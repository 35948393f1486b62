#include "cluster/kubernetes/scheduler/select.h"

#include "base/macros.h"
#include "kube/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct select_labels select_labels_read(const json_t *object, struct weir_arena *arena)
{
    struct weir_sched_label *rows =
        WEIR_ARENA_ARRAY(arena, json_object_size(object) + 1, struct weir_sched_label);
    struct select_labels labels = {.rows = rows};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        if (key[0] != '\0' && json_is_string(value)) {
            rows[labels.n++] = (struct weir_sched_label){
                weir_arena_strdup(arena, key), weir_arena_strdup(arena, json_string_value(value))};
        }
    }
    return labels;
}

const char *select_label(struct select_labels labels, const char *key)
{
    for (int32_t i = 0; i < labels.n; i++) {
        if (strcmp(labels.rows[i].key, key) == 0) {
            return labels.rows[i].value;
        }
    }
    return NULL;
}

/* ---- reading ---------------------------------------------------------------------------------- */

static bool read_operator(const char *text, enum select_operator *out)
{
    static const char *const names[] = {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"};
    for (size_t i = 0; text != NULL && i < WEIR_ARRAY_LEN(names); i++) {
        if (strcmp(names[i], text) == 0) {
            *out = (enum select_operator)i;
            return true;
        }
    }
    return false;
}

static void read_expressions(const json_t *expressions, struct weir_arena *arena,
                             struct select_all *out)
{
    size_t i, k;
    json_t *one, *value;
    json_array_foreach(expressions, i, one)
    {
        struct select_requirement *row = &out->rows[out->n++];
        const json_t *values = json_object_get(one, "values");
        row->key = weir_arena_strdup(arena, weir_kube_text(one, "key"));
        row->values = WEIR_ARENA_ARRAY(arena, json_array_size(values) + 1, const char *);
        json_array_foreach(values, k, value)
        {
            if (json_is_string(value)) {
                row->values[row->n_values++] = weir_arena_strdup(arena, json_string_value(value));
            }
        }
        if (row->key == NULL || !read_operator(weir_kube_text(one, "operator"), &row->is)) {
            out->n--;
            out->is_none = true;
        }
    }
}

static struct select_all with_room(size_t n, struct weir_arena *arena)
{
    return (struct select_all){.rows = WEIR_ARENA_ARRAY(arena, n + 1, struct select_requirement)};
}

struct select_all select_read(const json_t *selector, struct weir_arena *arena)
{
    const json_t *equal = json_object_get(selector, "matchLabels"),
                 *expressions = json_object_get(selector, "matchExpressions");
    struct select_all all =
        with_room(json_object_size(equal) + json_array_size(expressions), arena);
    const char *key;
    json_t *value;
    all.is_none = selector == NULL || json_is_null(selector);
    json_object_foreach((json_t *)(uintptr_t)equal, key, value)
    {
        struct select_requirement *row = &all.rows[all.n++];
        row->key = weir_arena_strdup(arena, key);
        row->values = WEIR_ARENA_ARRAY(arena, 1, const char *);
        row->values[0] =
            weir_arena_strdup(arena, json_is_string(value) ? json_string_value(value) : "");
        row->n_values = 1;
    }
    read_expressions(expressions, arena, &all);
    return all;
}

struct select_all select_read_node_term(const json_t *term, struct weir_arena *arena)
{
    const json_t *expressions = json_object_get(term, "matchExpressions"),
                 *fields = json_object_get(term, "matchFields");
    size_t n = json_array_size(expressions) + json_array_size(fields);
    struct select_all all = with_room(n, arena);
    all.is_none = n == 0;
    read_expressions(expressions, arena, &all);
    read_expressions(fields, arena, &all);
    return all;
}

/* ---- matching --------------------------------------------------------------------------------- */

static bool has_value(const struct select_requirement *row, const char *value)
{
    for (size_t i = 0; i < row->n_values; i++) {
        if (strcmp(row->values[i], value) == 0) {
            return true;
        }
    }
    return false;
}

static bool read_number(const char *text, long long *out)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0';
}

static bool is_beyond(const struct select_requirement *row, const char *value)
{
    long long has, bound;
    if (row->n_values != 1 || !read_number(value, &has) || !read_number(row->values[0], &bound)) {
        return false;
    }
    return row->is == SELECT_GREATER ? has > bound : has < bound;
}

static bool is_met(const struct select_requirement *row, const char *value)
{
    switch (row->is) {
    case SELECT_IN:
        return value != NULL && has_value(row, value);
    case SELECT_NOT_IN:
        return value == NULL || !has_value(row, value);
    case SELECT_EXISTS:
        return value != NULL;
    case SELECT_DOES_NOT_EXIST:
        return value == NULL;
    case SELECT_GREATER:
    case SELECT_LESS:
        return value != NULL && is_beyond(row, value);
    }
    return false;
}

bool select_matches(const struct select_all *all, struct select_labels labels)
{
    if (all->is_none) {
        return false;
    }
    for (size_t i = 0; i < all->n; i++) {
        if (!is_met(&all->rows[i], select_label(labels, all->rows[i].key))) {
            return false;
        }
    }
    return true;
}
