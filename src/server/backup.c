#include "server/backup_private.h"

#include "base/clock.h"
#include "base/file.h"
#include "blob/blob.h"
#include "job/secret.h"
#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 64 /* each level holds a descriptor */

/* One backup under way. Paths in it are relative to the state folder. */
struct backup {
    const char *state;
    char content[BACKUP_PATH_BYTES]; /* TARGET.partial/state */
    FILE *manifest;
    bool is_second_pass; /* what is there already stays as it is */
    int64_t n_files, n_bytes;
    struct verify *verify;
};

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool has_suffix(const char *text, const char *suffix)
{
    size_t len = strlen(text), suffix_len = strlen(suffix);
    return len >= suffix_len && strcmp(text + len - suffix_len, suffix) == 0;
}

/* What is only of use to processes that run, and the database, which is copied otherwise. */
static bool is_left_out(const char *path)
{
    static const char *const names[] = {"server.json", "server.lock",   "uploads", "rendezvous",
                                        "blobs/tmp",   "blobs/damaged", "weir.db", "weir.db.lock"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(names); i++) {
        if (strcmp(path, names[i]) == 0) {
            return true;
        }
    }
    return has_prefix(path, "weir.db-") || has_suffix(path, ".tmp") ||
           (has_prefix(path, "agent/") && strcmp(path, "agent/token") != 0);
}

weir_status backup_note_blob(struct verify *verify, const char *path, int64_t bytes,
                             const char *sha256, struct weir_error *err)
{
    const char *name = strrchr(path, '/');
    bool is_blob = has_prefix(path, "blobs/") && weir_blob_name_is_valid(name + 1);
    return is_blob ? verify_note(verify, name + 1, bytes, strcmp(name + 1, sha256) == 0, err)
                   : WEIR_OK;
}

static weir_status list_file(struct backup *backup, const char *path, int64_t bytes,
                             struct weir_error *err)
{
    char copy[BACKUP_PATH_BYTES], sha256[WEIR_SHA256_TEXT_BYTES];
    WEIR_TRY(backup_path(copy, backup->content, path, err));
    WEIR_TRY(weir_file_sha256(copy, sha256, NULL, err));
    if (fprintf(backup->manifest, "%s  state/%s\n", sha256, path) < 0) {
        return weir_error_set_errno(err, errno, "cannot write the list of files");
    }
    backup->n_files++;
    backup->n_bytes += bytes;
    return backup_note_blob(backup->verify, path, bytes, sha256, err);
}

static weir_status copy_one(struct backup *backup, int fd, const struct stat *st, const char *path,
                            struct weir_error *err)
{
    char copy[BACKUP_PATH_BYTES];
    int64_t bytes;
    WEIR_TRY(backup_path(copy, backup->content, path, err));
    if (backup->is_second_pass && weir_path_exists(copy)) {
        return WEIR_OK;
    }
    if (strpbrk(path, "\n\\") != NULL) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "a file's name has a line break or a backslash: %s", path);
    }
    WEIR_TRY(backup_copy_file(fd, copy, st->st_mode, &bytes, err));
    return list_file(backup, path, bytes, err);
}

static weir_status copy_folder(struct backup *backup, int fd, const char *path, int depth,
                               struct weir_error *err);

/* By descriptors, none of which follows a link: tasks write below the state folder too. */
static weir_status copy_entry(struct backup *backup, int folder, const char *name, const char *path,
                              int depth, struct weir_error *err)
{
    struct stat st;
    if (is_left_out(path) || fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))) {
        return WEIR_OK; /* also what is gone meanwhile */
    }
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT || errno == ELOOP
                   ? WEIR_OK
                   : weir_error_set_errno(err, errno, "cannot read %s/%s", backup->state, path);
    }
    weir_status status = WEIR_OK;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        status = copy_one(backup, fd, &st, path, err);
    } else if (S_ISDIR(st.st_mode)) {
        status = copy_folder(backup, fd, path, depth + 1, err);
    }
    (void)close(fd);
    return status;
}

static weir_status copy_folder(struct backup *backup, int fd, const char *path, int depth,
                               struct weir_error *err)
{
    char copy[BACKUP_PATH_BYTES], inside[BACKUP_PATH_BYTES];
    if (depth > DEPTH_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%s/%s: folders lie deeper than %d",
                              backup->state, path, DEPTH_MAX);
    }
    WEIR_TRY(backup_path(copy, backup->content, path, err));
    WEIR_TRY(weir_dir_make(copy, 0700, err));
    int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = own >= 0 ? fdopendir(own) : NULL;
    if (dir == NULL) {
        weir_status failed =
            weir_error_set_errno(err, errno, "cannot read %s/%s", backup->state, path);
        if (own >= 0) {
            (void)close(own);
        }
        return failed;
    }
    weir_status status = WEIR_OK;
    for (struct dirent *entry = readdir(dir); entry != NULL && status == WEIR_OK;
         entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        status = path[0] == '\0' ? WEIR_OK : backup_path(inside, path, entry->d_name, err);
        if (status == WEIR_OK) {
            status = copy_entry(backup, dirfd(dir), entry->d_name,
                                path[0] == '\0' ? entry->d_name : inside, depth, err);
        }
    }
    (void)closedir(dir);
    return status;
}

/* A folder of the state by name; "" is all of it. */
static weir_status copy_part(struct backup *backup, const char *path, struct weir_error *err)
{
    char from[BACKUP_PATH_BYTES];
    WEIR_TRY(backup_path(from, backup->state, path, err));
    int fd = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT ? WEIR_OK : weir_error_set_errno(err, errno, "cannot read %s", from);
    }
    weir_status status = copy_folder(backup, fd, path, 0, err);
    (void)close(fd);
    return status;
}

static weir_status copy_database(struct backup *backup, struct weir_error *err)
{
    char from[BACKUP_PATH_BYTES], copy[BACKUP_PATH_BYTES];
    struct stat st;
    WEIR_TRY(backup_path(from, backup->state, "weir.db", err));
    WEIR_TRY(backup_path(copy, backup->content, "weir.db", err));
    WEIR_TRY(weir_store_copy(from, copy, err));
    return list_file(backup, "weir.db", stat(copy, &st) == 0 ? (int64_t)st.st_size : 0, err);
}

/* A file of the state folder itself, if it is there. */
static weir_status copy_file(struct backup *backup, const char *name, struct weir_error *err)
{
    int fd = open(backup->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "cannot read %s", backup->state);
    }
    weir_status status = copy_entry(backup, fd, name, name, 0, err);
    (void)close(fd);
    return status;
}

/* See the header for why in this order. The key of secrets is made with the first of them, which may have
 * come meanwhile. */
static weir_status copy_all(struct backup *backup, struct weir_error *err)
{
    static const char *const again[] = {"blobs", "datasets"};
    WEIR_TRY(copy_part(backup, "", err));
    WEIR_TRY(copy_database(backup, err));
    backup->is_second_pass = true;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(again); i++) {
        WEIR_TRY(copy_part(backup, again[i], err));
    }
    return copy_file(backup, WEIR_SECRET_FILE, err);
}

static weir_status write_about(const struct backup *backup, const struct partial *partial,
                               struct weir_error *err)
{
    char path[BACKUP_PATH_BYTES], sha256[WEIR_SHA256_TEXT_BYTES], time[WEIR_TIME_TEXT_BYTES];
    WEIR_TRY(backup_path(path, partial->dir, "manifest.sha256", err));
    WEIR_TRY(weir_file_sha256(path, sha256, NULL, err));
    weir_time_format(weir_time_ms(), time);
    json_t *about =
        json_pack("{s:i,s:s,s:s,s:s,s:I,s:I,s:s}", "format", BACKUP_FORMAT, "version", WEIR_VERSION,
                  "state", backup->state, "time", time, "files", (json_int_t)backup->n_files,
                  "bytes", (json_int_t)backup->n_bytes, "manifest", sha256);
    WEIR_AUTO(weir_auto_free) char *text = json_dumps(about, JSON_INDENT(1));
    json_decref(about);
    WEIR_TRY(backup_path(path, partial->dir, "backup.json", err));
    return weir_file_write_atomic(path, text, strlen(text), 0600, err);
}

static weir_status fill(struct backup *backup, const struct partial *partial,
                        struct weir_error *err)
{
    char path[BACKUP_PATH_BYTES];
    WEIR_TRY(backup_path(path, partial->dir, "manifest.sha256", err));
    WEIR_TRY(backup_path(backup->content, partial->dir, "state", err));
    backup->manifest = fopen(path, "wxe");
    if (backup->manifest == NULL) {
        return weir_error_set_errno(err, errno, "cannot create %s", path);
    }
    weir_status status = copy_all(backup, err);
    status = status == WEIR_OK ? verify_compare(backup->verify, backup->content, err) : status;
    if (fclose(backup->manifest) != 0 && status == WEIR_OK) {
        status = weir_error_set_errno(err, errno, "cannot write %s", path);
    }
    return status == WEIR_OK ? write_about(backup, partial, err) : status;
}

/* The state folder, absolute; it must be one. */
static weir_status check_state(const char *state, const char *target, struct weir_arena *arena,
                               char **out, struct weir_error *err)
{
    char *absolute = realpath(state, NULL);
    if (absolute == NULL) {
        return weir_error_set_errno(err, errno, "cannot use the state folder %s", state);
    }
    *out = weir_arena_strdup(arena, absolute);
    free(absolute);
    size_t len = strlen(*out);
    if (!weir_path_exists(weir_arena_printf(arena, "%s/weir.db", *out))) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s is no state folder of a Weir server: it has no weir.db", *out);
    }
    if (strncmp(target, *out, len) == 0 && (target[len] == '/' || target[len] == '\0')) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s lies in the state folder: choose a folder outside", target);
    }
    return WEIR_OK;
}

weir_status weir_backup_make(const char *state, const char *target, struct weir_arena *arena,
                             struct weir_backup_report *out, struct weir_error *err)
{
    struct partial partial;
    struct verify verify;
    verify_init(&verify, arena);
    struct backup backup = {.verify = &verify};
    char *absolute;
    (void)umask(077);
    WEIR_TRY(check_state(state, "", arena, &absolute, err));
    WEIR_TRY(partial_begin(target, false, &partial, err));
    backup.state = absolute;
    weir_status status = check_state(state, partial.target, arena, &absolute, err);
    if (status == WEIR_OK) {
        status = fill(&backup, &partial, err);
    }
    if (status == WEIR_OK) {
        status = partial_finish(&partial, err);
    }
    partial_abandon(&partial);
    verify_fini(&verify);
    if (status == WEIR_OK) {
        *out = (struct weir_backup_report){backup.n_files, backup.n_bytes, absolute, verify};
    }
    return status;
}
