#include "sysfs.h"

#include "base/macros.h"

#include <ctype.h>
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 1024

const char *sysfs_path(const struct weir_device_context *context, char out[SYSFS_PATH_BYTES],
                       const char *format, ...)
{
    va_list arguments;
    const char *root = context->config.root != NULL ? context->config.root : "";
    int n = snprintf(out, SYSFS_PATH_BYTES, "%s", root);
    size_t len = WEIR_MIN((size_t)WEIR_MAX(n, 0), (size_t)SYSFS_PATH_BYTES - 1);
    va_start(arguments, format);
    (void)vsnprintf(out + len, SYSFS_PATH_BYTES - len, format, arguments);
    va_end(arguments);
    return out;
}

static void trim(char *text)
{
    size_t first = strspn(text, " \t"), len = strcspn(text, "\n");
    while (len > first && isspace((unsigned char)text[len - 1])) {
        len--;
    }
    memmove(text, text + first, len - first);
    text[len - first] = '\0';
}

const char *sysfs_text(const char *path, char *out, size_t size)
{
    FILE *file = fopen(path, "re");
    out[0] = '\0';
    if (file != NULL) {
        if (fgets(out, (int)size, file) == NULL) {
            out[0] = '\0';
        }
        (void)fclose(file);
    }
    trim(out);
    return out;
}

int64_t sysfs_int(const char *path, int64_t fallback)
{
    char text[64], *end;
    sysfs_text(path, text, sizeof text);
    int64_t value = strtoll(text, &end, 10);
    return end != text ? value : fallback;
}

const char *sysfs_key(const char *path, const char *key, char *out, size_t size)
{
    char line[512];
    FILE *file = fopen(path, "re");
    out[0] = '\0';
    while (file != NULL && out[0] == '\0' && fgets(line, sizeof line, file) != NULL) {
        const char *at = strstr(line, key), *colon = at != NULL ? strchr(at, ':') : NULL;
        if (colon != NULL) {
            (void)snprintf(out, size, "%s", colon + 1);
            trim(out);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return out;
}

static int is_wanted_prefix(const char *name, const char *prefix)
{
    return name[0] != '.' && strncmp(name, prefix, strlen(prefix)) == 0;
}

static int by_name(const void *left, const void *right)
{
    return strverscmp(*(char *const *)left, *(char *const *)right);
}

void sysfs_each(const char *folder, const char *prefix, void (*fn)(void *context, const char *name),
                void *context)
{
    char *names[NAMES_MAX];
    size_t n = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir != NULL && n < NAMES_MAX && (entry = readdir(dir)) != NULL;) {
        if (is_wanted_prefix(entry->d_name, prefix)) {
            names[n++] = weir_xstrdup(entry->d_name);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    qsort(names, n, sizeof names[0], by_name);
    for (size_t i = 0; i < n; i++) {
        fn(context, names[i]);
        free(names[i]);
    }
}
