#include "visible.h"

#include <stdio.h>
#include <string.h>

bool visible_next(const char **at, const char **out, size_t *out_len)
{
    *at += strspn(*at, ",");
    *out = *at;
    *out_len = strcspn(*at, ",");
    *at += *out_len;
    return *out_len > 0;
}

bool visible_has(const char *list, int place, const char *uuid)
{
    const char *at = list, *entry;
    char number[16];
    size_t len;
    int n = snprintf(number, sizeof number, "%d", place);
    while (list != NULL && visible_next(&at, &entry, &len)) {
        bool is_place = place >= 0 && len == (size_t)n && strncmp(entry, number, len) == 0;
        bool is_uuid = memchr(entry, '-', len) != NULL && strncmp(uuid, entry, len) == 0;
        if (is_place || is_uuid) {
            return true;
        }
    }
    return list == NULL;
}
