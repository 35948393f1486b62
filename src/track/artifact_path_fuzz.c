/* Any text as an artifact's path. What is taken stays within its run's folder however often whoever gets
 * it decodes it, as a walk from folder to folder shows, and names one place in one way. */
#include "track/artifact.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* How deep one is after a walk along the path; -1 once it has left the folder it began in. */
static int walk(const char *path)
{
    int depth = 0;
    if (path[0] == '/') {
        return -1;
    }
    while (*path != '\0') {
        size_t len = 0;
        while (path[len] != '\0' && path[len] != '/' && path[len] != '\\') {
            len++;
        }
        if (len == 2 && path[0] == '.' && path[1] == '.') {
            depth--;
        } else if (len > 0 && !(len == 1 && path[0] == '.')) {
            depth++;
        }
        if (depth < 0) {
            return -1;
        }
        path += len + (path[len] != '\0');
    }
    return depth;
}

/* Not the decoder under test: by sscanf. Does it change anything? */
static int decode(char *text)
{
    char *out = text;
    int is_changed = 0;
    for (const char *c = text; *c != '\0'; out++) {
        unsigned value;
        char hex[3] = {c[0] == '%' ? c[1] : 'x', c[0] == '%' && c[1] != '\0' ? c[2] : 'x', '\0'};
        if (strspn(hex, "0123456789abcdefABCDEF") == 2 && sscanf(hex, "%x", &value) == 1) {
            *out = (char)value;
            if (value == 0) {
                abort(); /* a text would end there */
            }
            is_changed = 1;
            c += 3;
        } else {
            *out = *c++;
        }
    }
    *out = '\0';
    return is_changed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_error err = {0};
    char *path = malloc(size + 1);
    memcpy(path, data, size);
    path[size] = '\0';
    if (weir_artifact_path_check(path, &err) != WEIR_OK) {
        if (err.message[0] == '\0') {
            abort();
        }
        free(path);
        return 0;
    }
    do {
        if (walk(path) < 1 || path[strlen(path) - 1] == '/' || strpbrk(path, "#\\\n\r") != NULL ||
            strstr(path, "//") != NULL) {
            abort();
        }
    } while (decode(path));
    free(path);
    return 0;
}
