#include "kube/client.h"

#include "base/clock.h"

#include <ctype.h>
#include <string.h>

json_t *weir_kube_at(const json_t *object, const char *path)
{
    const json_t *at = object;
    while (at != NULL && *path != '\0') {
        size_t len = strcspn(path, ".");
        at = json_object_getn(at, path, len);
        path += len + (path[len] == '.');
    }
    return (json_t *)(uintptr_t)at;
}

const char *weir_kube_text(const json_t *object, const char *path)
{
    return json_string_value(weir_kube_at(object, path));
}

const char *weir_kube_text_or(const json_t *object, const char *path, const char *otherwise)
{
    const char *has = weir_kube_text(object, path);
    return has != NULL && has[0] != '\0' ? has : otherwise;
}

bool weir_kube_is(const json_t *object, const char *path, const char *text)
{
    return strcmp(weir_kube_text_or(object, path, ""), text) == 0;
}

const json_t *weir_kube_condition(const json_t *object, const char *type)
{
    size_t i;
    json_t *one;
    json_array_foreach(weir_kube_at(object, "status.conditions"), i, one)
    {
        if (weir_kube_is(one, "type", type)) {
            return one;
        }
    }
    return NULL;
}

const json_t *weir_kube_holds(const json_t *object, const char *type)
{
    const json_t *condition = weir_kube_condition(object, type);
    return weir_kube_is(condition, "status", "True") ? condition : NULL;
}

const char *weir_kube_escape(const char *text, struct weir_arena *arena)
{
    static const char digits[] = "0123456789ABCDEF";
    char *out = weir_arena_alloc(arena, 3 * strlen(text) + 1), *at = out;
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (isalnum(c) || strchr("-_.~", c) != NULL) {
            *at++ = (char)c;
        } else {
            *at++ = '%';
            *at++ = digits[c >> 4];
            *at++ = digits[c & 15];
        }
    }
    *at = '\0';
    return out;
}

int64_t weir_kube_time_ms(const char *text)
{
    int64_t ms;
    return text != NULL && weir_time_parse(text, &ms) == WEIR_OK ? ms : 0;
}
