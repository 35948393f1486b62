#include "base/path.h"

#include "base/macros.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

/* The next part that says something, or the end. */
static const char *skip(const char *path)
{
    for (;;) {
        path += strspn(path, "/");
        if (path[0] != '.' || (path[1] != '/' && path[1] != '\0')) {
            return path;
        }
        path++;
    }
}

const char *weir_path_below(const char *path, const char *dir)
{
    if ((path[0] == '/') != (dir[0] == '/')) {
        return NULL;
    }
    path = skip(path);
    for (dir = skip(dir); *dir != '\0'; dir = skip(dir)) {
        size_t len = strcspn(dir, "/");
        if (strncmp(path, dir, len) != 0 || (path[len] != '/' && path[len] != '\0')) {
            return NULL;
        }
        path = skip(path + len);
        dir += len;
    }
    return path;
}

bool weir_path_has_parent(const char *path)
{
    for (path = skip(path); *path != '\0'; path = skip(path)) {
        size_t len = strcspn(path, "/");
        if (len == 2 && strncmp(path, "..", 2) == 0) {
            return true;
        }
        path += len;
    }
    return false;
}

bool weir_name_is_hidden(const char *name)
{
    static const char *const left[] = {"Thumbs.db", "ehthumbs.db",  "desktop.ini",
                                       "@eaDir",    "$RECYCLE.BIN", "System Volume Information",
                                       "__MACOSX",  "#recycle",     "Icon\r"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(left); i++) {
        if (strcasecmp(name, left[i]) == 0) {
            return true;
        }
    }
    return name[0] == '.';
}
