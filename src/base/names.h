/**
 * A list of names for a sentence: "there are a, b, c". What has no room is told by "…".
 *
 *     struct weir_names names = {0};
 *     for (size_t i = 0; i < WEIR_ARRAY_LEN(models); i++) {
 *         weir_names_add(&names, models[i].name, strlen(models[i].name));
 *     }
 *     return weir_error_set(err, WEIR_ERR_NOT_FOUND, "there are %s", names.text);
 */
#ifndef WEIR_BASE_NAMES_H
#define WEIR_BASE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

struct weir_names {
    size_t len;
    bool is_full;
    char text[256];
};

void weir_names_add(struct weir_names *names, const char *name, size_t len);

#endif
