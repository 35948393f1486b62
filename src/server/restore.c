#include "server/backup_private.h"

#include "base/file.h"
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ABOUT_MAX_BYTES ((size_t)65536)
#define PREFIX          "state/"
#define SUM_CHARS       (WEIR_SHA256_TEXT_BYTES - 1)

/* One restore under way. */
struct restore {
    const char *from, *to; /* the backup; STATE.partial */
    int64_t n_files, n_bytes;
    struct verify *verify;
};

/* backup.json, and that the list of files is the one it speaks of. */
static weir_status read_about(const char *from, struct weir_arena *arena, int64_t *out_n_files,
                              char **out_state, struct weir_error *err)
{
    char path[BACKUP_PATH_BYTES], sha256[WEIR_SHA256_TEXT_BYTES];
    json_t *about;
    WEIR_TRY(backup_path(path, from, "backup.json", err));
    if (!weir_path_exists(path)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s is no backup: it has no backup.json",
                              from);
    }
    WEIR_TRY(weir_json_load(path, ABOUT_MAX_BYTES, &about, err));
    int64_t format = json_integer_value(json_object_get(about, "format"));
    const char *sum = json_string_value(json_object_get(about, "manifest"));
    const char *state = json_string_value(json_object_get(about, "state"));
    char *wanted = weir_arena_strdup(arena, sum != NULL ? sum : "");
    *out_state = weir_arena_strdup(arena, state != NULL ? state : "");
    *out_n_files = json_integer_value(json_object_get(about, "files"));
    json_decref(about);
    if (format != BACKUP_FORMAT) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "%s has format %lld; this Weir reads format %d: use a newer one",
                              from, (long long)format, BACKUP_FORMAT);
    }
    WEIR_TRY(backup_path(path, from, "manifest.sha256", err));
    WEIR_TRY(weir_file_sha256(path, sha256, NULL, err));
    return strcmp(sha256, wanted) == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_CORRUPT,
                                "%s is not the list this backup was made with", path);
}

/* A path that stays below the folder. */
static bool is_inside(const char *path)
{
    for (const char *part = path; part != NULL; part = strchr(part, '/')) {
        part += part[0] == '/';
        size_t len = strcspn(part, "/");
        if (len == 0 || (len == 1 && part[0] == '.') || (len == 2 && strncmp(part, "..", 2) == 0)) {
            return false;
        }
    }
    return true;
}

static weir_status make_parent(const char *path, struct weir_error *err)
{
    char parent[BACKUP_PATH_BYTES];
    (void)snprintf(parent, sizeof parent, "%s", path);
    *strrchr(parent, '/') = '\0';
    return weir_dir_make(parent, 0700, err);
}

static weir_status restore_file(struct restore *restore, const char *path, const char *sum,
                                struct weir_error *err)
{
    char from[BACKUP_PATH_BYTES], to[BACKUP_PATH_BYTES], sha256[WEIR_SHA256_TEXT_BYTES];
    struct stat st;
    int64_t bytes;
    WEIR_TRY(backup_path(from, restore->from, path, err));
    WEIR_TRY(backup_path(to, restore->to, path + strlen(PREFIX), err));
    WEIR_TRY(make_parent(to, err));
    int fd = open(from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return weir_error_set(err, WEIR_ERR_CORRUPT, "%s is missing from the backup", from);
    }
    weir_status status = backup_copy_file(fd, to, st.st_mode, &bytes, err);
    (void)close(fd);
    WEIR_TRY(status);
    WEIR_TRY(weir_file_sha256(to, sha256, NULL, err));
    if (strcmp(sha256, sum) != 0) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "%s differs from what was backed up", from);
    }
    restore->n_files++;
    restore->n_bytes += bytes;
    return backup_note_blob(restore->verify, path + strlen(PREFIX), bytes, sha256, err);
}

/* One line of the list: "SUM  state/PATH". */
static weir_status restore_line(struct restore *restore, char *line, struct weir_error *err)
{
    size_t len = strlen(line);
    if (len == 0 || line[len - 1] != '\n' || len < SUM_CHARS + 2 + strlen(PREFIX) + 2) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "a line of %s/manifest.sha256 is cut off",
                              restore->from);
    }
    line[len - 1] = '\0';
    line[SUM_CHARS] = '\0';
    const char *path = line + SUM_CHARS + 2;
    if (strncmp(path, PREFIX, strlen(PREFIX)) != 0 || !is_inside(path)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s/manifest.sha256 names a file outside the state folder: %.100s",
                              restore->from, path);
    }
    return restore_file(restore, path, line, err);
}

static weir_status restore_all(struct restore *restore, int64_t n_files, struct weir_error *err)
{
    char path[BACKUP_PATH_BYTES], line[BACKUP_PATH_BYTES + WEIR_SHA256_TEXT_BYTES + 16];
    WEIR_TRY(backup_path(path, restore->from, "manifest.sha256", err));
    FILE *manifest = fopen(path, "re");
    if (manifest == NULL) {
        return weir_error_set_errno(err, errno, "cannot read %s", path);
    }
    weir_status status = WEIR_OK;
    while (status == WEIR_OK && fgets(line, sizeof line, manifest) != NULL) {
        status = restore_line(restore, line, err);
    }
    (void)fclose(manifest);
    if (status == WEIR_OK && restore->n_files != n_files) {
        status = weir_error_set(err, WEIR_ERR_CORRUPT, "%s lists %lld files, not %lld", path,
                                (long long)restore->n_files, (long long)n_files);
    }
    return status;
}

/* The database of an older Weir has other tables: then only the bytes of blobs are known. */
static weir_status compare(struct verify *verify, const char *state, struct weir_error *err)
{
    weir_status status = verify_compare(verify, state, err);
    return status == WEIR_ERR_INTERNAL ? WEIR_OK : status;
}

weir_status weir_backup_restore(const char *from, const char *state, struct weir_arena *arena,
                                struct weir_backup_report *out, struct weir_error *err)
{
    struct partial partial;
    struct verify verify;
    verify_init(&verify, arena);
    struct restore restore = {.from = from, .verify = &verify};
    int64_t n_files = 0;
    char *original = NULL;
    (void)umask(077);
    WEIR_TRY(read_about(from, arena, &n_files, &original, err));
    WEIR_TRY(partial_begin(state, true, &partial, err));
    restore.to = partial.dir;
    weir_status status = restore_all(&restore, n_files, err);
    status = status == WEIR_OK ? compare(&verify, partial.dir, err) : status;
    if (status == WEIR_OK) {
        status = partial_finish(&partial, err);
    }
    partial_abandon(&partial);
    verify_fini(&verify);
    if (status == WEIR_OK) {
        *out = (struct weir_backup_report){restore.n_files, restore.n_bytes, original, verify};
    }
    return status;
}
