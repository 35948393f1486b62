#include "base/view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void set(json_t *object, const char *name, json_t *value)
{
    if (json_object_set_new_nocheck(object, name, value) != 0) {
        (void)fprintf(stderr, "weir: out of memory while writing JSON\n");
        abort();
    }
}

static const void *pointer_at(const void *at)
{
    return *(const void *const *)at;
}

static json_t *item_json(const struct weir_member *member, const char *items, size_t i)
{
    switch (member->type) {
    case WEIR_MEMBER_TEXTS:
        return weir_json_string(((char *const *)(const void *)items)[i], "(not UTF-8)");
    case WEIR_MEMBER_INTS:
        return json_integer(((const int64_t *)(const void *)items)[i]);
    case WEIR_MEMBER_VIEWS:
        return weir_view_to_json(member->view(), items + i * member->view()->head->size);
    default:
        return weir_record_to_json(member->resource, items + i * member->resource->size);
    }
}

static json_t *map_json(const struct weir_member *member, const char *items, size_t n)
{
    if (items == NULL && member->presence != WEIR_MEMBER_ALWAYS) {
        return NULL;
    }
    json_t *object = json_object();
    for (size_t i = 0; i < n; i++) {
        const void *key = items + i * member->stride + member->key;
        const void *value = items + i * member->stride + member->value;
        (void)json_object_set_new(object, pointer_at(key),
                                  member->type == WEIR_MEMBER_MAP
                                      ? weir_json_string(pointer_at(value), "(not UTF-8)")
                                      : weir_json_real(*(const double *)value));
    }
    return object;
}

static json_t *items_json(const struct weir_member *member, const void *items, size_t n)
{
    if (items == NULL && member->presence != WEIR_MEMBER_ALWAYS) {
        return NULL;
    }
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(array, item_json(member, items, i));
    }
    return array;
}

/* NULL: it is not known. */
static json_t *number_json(const struct weir_member *member, const void *at)
{
    if (member->type == WEIR_MEMBER_F64) {
        double value = *(const double *)at;
        return isfinite(value) ? json_real(value) : NULL;
    }
    int64_t value = *(const int64_t *)at;
    if (member->type == WEIR_MEMBER_TIME) {
        return value != 0 ? weir_json_time(value) : NULL;
    }
    if (value == WEIR_INT_NONE || (value == 0 && member->type == WEIR_MEMBER_FROM_1)) {
        return NULL;
    }
    return member->type == WEIR_MEMBER_MILLI ? weir_json_milli(value) : json_integer(value);
}

/* NULL: it is not known. */
static json_t *member_json(const struct weir_member *member, const char *what)
{
    const void *at = what + member->offset, *n = what + member->n_offset;
    switch (member->type) {
    case WEIR_MEMBER_INT:
    case WEIR_MEMBER_FROM_1:
    case WEIR_MEMBER_F64:
    case WEIR_MEMBER_TIME:
    case WEIR_MEMBER_MILLI:
        return number_json(member, at);
    case WEIR_MEMBER_BOOL:
        return json_boolean(*(const bool *)at);
    case WEIR_MEMBER_IN:
        return weir_view_to_json(member->view(), at);
    case WEIR_MEMBER_JSON:
        return *(json_t *const *)at;
    case WEIR_MEMBER_MAP:
    case WEIR_MEMBER_MAP_F64:
        return map_json(member, pointer_at(at), *(const size_t *)n);
    case WEIR_MEMBER_TEXTS:
    case WEIR_MEMBER_INTS:
    case WEIR_MEMBER_VIEWS:
    case WEIR_MEMBER_ROWS:
        return items_json(member, pointer_at(at), *(const size_t *)n);
    default:
        break;
    }
    const void *pointer = pointer_at(at);
    if (pointer == NULL) {
        return NULL;
    }
    return member->type == WEIR_MEMBER_TEXT      ? weir_json_string(pointer, "(not UTF-8)")
           : member->type == WEIR_MEMBER_VIEW_OF ? weir_view_to_json(member->view(), pointer)
                                                 : weir_record_to_json(member->resource, pointer);
}

static bool has_own_name(const struct weir_member *member)
{
    return member->type != WEIR_MEMBER_FLAT && member->type != WEIR_MEMBER_FLAT_OF &&
           member->type != WEIR_MEMBER_HOLDS;
}

static void add_part(const struct weir_member *member, const void *at, json_t *object)
{
    if (member->type == WEIR_MEMBER_FLAT) {
        weir_view_add_to_json(member->view(), at, object);
    } else if (member->type == WEIR_MEMBER_FLAT_OF && pointer_at(at) != NULL) {
        weir_view_add_to_json(member->view(), pointer_at(at), object);
    }
}

void weir_view_add_to_json(const struct weir_view_table *view, const void *what, json_t *object)
{
    for (size_t i = 0; i < view->n_members; i++) {
        const struct weir_member *member = &view->members[i];
        if (!has_own_name(member)) {
            add_part(member, (const char *)what + member->offset, object);
            continue;
        }
        json_t *value = member_json(member, what);
        if (value != NULL) {
            set(object, member->name, value);
        } else if (member->presence != WEIR_MEMBER_MAY_MISS) {
            bool is_text =
                member->type == WEIR_MEMBER_TEXT && member->presence == WEIR_MEMBER_ALWAYS;
            set(object, member->name, is_text ? json_string("") : json_null());
        }
    }
}

json_t *weir_view_to_json(const struct weir_view_table *view, const void *what)
{
    const void *row = view->head->record != NULL ? *(const void *const *)what : NULL;
    json_t *object = row != NULL ? weir_record_to_json(view->head->record, row) : json_object();
    weir_view_add_to_json(view, what, object);
    return object;
}
