#include "cli/core/input.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define FILES_MAX 1000

static bool is_document(const char *name)
{
    static const char *const endings[] = {".yaml", ".yml", ".json"};
    size_t len = strlen(name);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(endings); i++) {
        size_t n = strlen(endings[i]);
        if (name[0] != '.' && len > n && strcmp(name + len - n, endings[i]) == 0) {
            return true;
        }
    }
    return false;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void close_dir(DIR **dir)
{
    if (*dir != NULL) {
        (void)closedir(*dir);
    }
}

static weir_status list_files(const char *path, struct weir_arena *arena, char ***out,
                              size_t *out_n, struct weir_error *err)
{
    WEIR_AUTO(close_dir) DIR *dir = opendir(path);
    char **files = WEIR_ARENA_ARRAY(arena, FILES_MAX, char *);
    size_t n = 0;
    if (dir == NULL) {
        return weir_error_set_errno(err, errno, "cannot open %s", path);
    }
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (is_document(entry->d_name) && n == FILES_MAX) {
            return weir_error_set(err, WEIR_ERR_LIMIT, "%s holds more than %d documents", path,
                                  FILES_MAX);
        }
        if (is_document(entry->d_name)) {
            files[n++] = weir_arena_printf(arena, "%s/%s", path, entry->d_name);
        }
    }
    qsort(files, n, sizeof *files, by_name);
    *out = files;
    *out_n = n;
    return n > 0 ? WEIR_OK
                 : weir_error_set(err, WEIR_ERR_INVALID,
                                  "%s holds no file that ends in .yaml, .yml or .json", path);
}

weir_status cli_input_files(const char *path, struct weir_arena *arena, char ***out, size_t *out_n,
                            struct weir_error *err)
{
    struct stat info;
    size_t len = strlen(path);
    char *plain = weir_arena_memdup(arena, path, len - (len > 1 && path[len - 1] == '/'));
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        return list_files(plain, arena, out, out_n, err);
    }
    *out = WEIR_ARENA_ARRAY(arena, 1, char *);
    (*out)[0] = weir_arena_strdup(arena, path);
    *out_n = 1;
    return WEIR_OK;
}
