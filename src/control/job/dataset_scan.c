#include "control/dataset_scan.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/path.h"
#include "base/picture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_FILES          ((int64_t)1 << 20)
#define MANIFEST_MAX_BYTES ((size_t)512 << 20)
#define CHUNK_BYTES        65536

/* ---- which folders --------------------------------------------------------------------------- */

/* Is `path` the folder `other`, or in it? Both without a "/" at the end; "/" is "". */
static bool is_within(const char *path, const char *other)
{
    size_t len = strlen(other);
    return strncmp(path, other, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

static bool is_of_system(const char *real)
{
    static const char *const folders[] = {"/proc", "/sys",   "/dev",     "/etc",
                                          "/boot", "/run",   "/bin",     "/sbin",
                                          "/lib",  "/lib64", "/usr/bin", "/usr/lib"};
    static const char *const tops[] = {"/", "/usr", "/var", "/root", "/home"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(folders); i++) {
        if (is_within(real, folders[i])) {
            return true;
        }
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(tops); i++) {
        if (strcmp(real, tops[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* The state folder's own files, and what contains them, are nobody's dataset. */
static bool is_of_state(const char *real, const char *state_dir)
{
    char *state = realpath(state_dir, NULL);
    bool is_its = state != NULL && (is_within(real, state) || is_within(state, real));
    free(state);
    return is_its;
}

weir_status dataset_scan_resolve(const char *path, const char *state_dir, char **out_real,
                                 struct weir_error *err)
{
    char *real = path[0] == '/' ? realpath(path, NULL) : NULL;
    const char *problem = NULL;
    if (real == NULL || !weir_path_is_dir(real)) {
        problem = "is not a folder on the server (an absolute path is needed)";
    } else if (is_of_system(real)) {
        problem = "is a folder of the system: give the folder with the pictures";
    } else if (is_of_state(real, state_dir)) {
        problem = "is the server's state folder, or in it or around it: create the dataset without "
                  "a path, and put files into it";
    }
    if (problem != NULL) {
        free(real);
        return weir_error_set(err, WEIR_ERR_INVALID, "$.path: %.200s %s", path, problem);
    }
    *out_real = real;
    return WEIR_OK;
}

weir_status dataset_scan_open_folder(int at_fd, const char *path, int *out_fd,
                                     struct weir_error *err)
{
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK,
                           .resolve = RESOLVE_NO_SYMLINKS};
    long fd = syscall(SYS_openat2, at_fd, path, &how, sizeof how);
    if (fd < 0 && errno == ELOOP) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: a part of the path is a link, and links are not followed", path);
    }
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "cannot open %s", path);
    }
    *out_fd = (int)fd;
    return WEIR_OK;
}

/* ---- names ----------------------------------------------------------------------------------- */

struct names {
    char **items;
    size_t n, cap;
};

static void names_free(struct names *names)
{
    for (size_t i = 0; i < names->n; i++) {
        free(names->items[i]);
    }
    free(names->items);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static weir_status names_add(struct names *names, const char *name, struct weir_error *err)
{
    if (names->n == (size_t)MAX_FILES) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "a folder has more than %lld entries",
                              (long long)MAX_FILES);
    }
    if (weir_grow(&names->items, sizeof *names->items, names->n, &names->cap) != WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the names of a folder");
    }
    names->items[names->n++] = weir_xstrdup(name);
    return WEIR_OK;
}

/* The visible entries of a folder, sorted. Takes fd. */
static weir_status names_read(int fd, struct names *names, struct weir_error *err)
{
    DIR *dir = fdopendir(fd);
    weir_status status = WEIR_OK;
    if (dir == NULL) {
        status = weir_error_set_errno(err, errno, "cannot list a folder");
        (void)close(fd);
        return status;
    }
    for (struct dirent *entry = readdir(dir); entry != NULL && status == WEIR_OK;
         entry = readdir(dir)) {
        if (!weir_name_is_hidden(entry->d_name)) {
            status = names_add(names, entry->d_name, err);
        }
    }
    (void)closedir(dir);
    if (names->n > 0) {
        qsort(names->items, names->n, sizeof *names->items, by_name);
    }
    return status;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* One file on its way through the hash, and, of an uploaded dataset, into the blobs. */
struct reading {
    struct dataset_scan *scan;
    const char *name; /* "ada/1.png" */
    int fd;
    struct weir_blob_writer *writer; /* NULL: hashed only */
    crypto_hash_sha256_state hash;
    unsigned char head[WEIR_PICTURE_HEAD_BYTES], tail[WEIR_PICTURE_TAIL_BYTES];
    size_t n_head, n_tail;
    uint64_t size;
    int64_t n_lines; /* of a table: ends of lines */
    bool is_table, has_header;
};

static weir_status check_going(const struct dataset_scan *scan, struct weir_error *err)
{
    if (atomic_load(scan->is_stopping)) {
        return weir_error_set(err, WEIR_ERR_CANCELLED, "the server is stopping");
    }
    if (weir_mono_ms() > scan->deadline_mono_ms) {
        return weir_error_set(err, WEIR_ERR_TIMEOUT, "dataset \"%s\": its files took too long",
                              scan->dataset);
    }
    return WEIR_OK;
}

static void keep_ends(struct reading *reading, const unsigned char *bytes, size_t n)
{
    size_t n_head = WEIR_MIN(n, sizeof reading->head - reading->n_head);
    memcpy(reading->head + reading->n_head, bytes, n_head);
    reading->n_head += n_head;
    size_t n_new = WEIR_MIN(n, sizeof reading->tail);
    size_t n_kept = WEIR_MIN(reading->n_tail, sizeof reading->tail - n_new);
    memmove(reading->tail, reading->tail + reading->n_tail - n_kept, n_kept);
    memcpy(reading->tail + n_kept, bytes + n - n_new, n_new);
    reading->n_tail = n_kept + n_new;
}

static bool has_ending(const char *name, const char *ending)
{
    size_t n_name = strlen(name), n_ending = strlen(ending);
    return n_name >= n_ending && strcasecmp(name + n_name - n_ending, ending) == 0;
}

static void count_lines(struct reading *reading, const unsigned char *bytes, size_t n)
{
    for (const unsigned char *at = reading->is_table ? memchr(bytes, '\n', n) : NULL; at != NULL;
         at = memchr(at + 1, '\n', n - (size_t)(at + 1 - bytes))) {
        reading->n_lines++;
    }
}

/* A last line without an end is a line. */
static int64_t rows_of(const struct reading *reading)
{
    bool is_open = reading->n_tail > 0 && reading->tail[reading->n_tail - 1] != '\n';
    int64_t n = reading->n_lines + is_open - reading->has_header;
    return reading->is_table && n > 0 ? n : 0;
}

static weir_status read_all(struct reading *reading, struct weir_error *err)
{
    unsigned char bytes[CHUNK_BYTES];
    for (;;) {
        ssize_t n = read(reading->fd, bytes, sizeof bytes);
        WEIR_TRY(check_going(reading->scan, err)); /* first: nothing may be touched after a stop */
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return weir_error_set_errno(err, errno, "cannot read %s", reading->name);
        }
        if (n == 0) {
            return WEIR_OK;
        }
        (void)crypto_hash_sha256_update(&reading->hash, bytes, (size_t)n);
        if (reading->writer != NULL) {
            WEIR_TRY(weir_blob_writer_write(reading->writer, bytes, (size_t)n, err));
        }
        keep_ends(reading, bytes, (size_t)n);
        count_lines(reading, bytes, (size_t)n);
        reading->size += (uint64_t)n;
        atomic_fetch_add(&reading->scan->progress->n_bytes, n);
    }
}

static weir_status hash_file(struct reading *reading, char out_sha[WEIR_SHA256_TEXT_BYTES],
                             struct weir_error *err)
{
    struct dataset_scan *scan = reading->scan;
    (void)crypto_hash_sha256_init(&reading->hash);
    if (scan->blobs != NULL) {
        WEIR_TRY(weir_blob_writer_open(scan->blobs, UINT64_MAX, &reading->writer, err));
    }
    weir_status status = read_all(reading, err);
    if (reading->writer != NULL && status != WEIR_OK) {
        weir_blob_writer_abort(reading->writer);
    } else if (reading->writer != NULL) {
        return weir_blob_writer_finish(reading->writer, NULL, out_sha, NULL, err);
    }
    WEIR_TRY(status);
    unsigned char hash[crypto_hash_sha256_BYTES];
    (void)crypto_hash_sha256_final(&reading->hash, hash);
    (void)sodium_bin2hex(out_sha, WEIR_SHA256_TEXT_BYTES, hash, sizeof hash);
    return WEIR_OK;
}

/* A file of another kind, a table or a text, is not damaged: programs of people's own read it. */
static void note_damage(struct dataset_scan *scan, const struct reading *reading)
{
    const char *problem = weir_picture_problem(reading->head, reading->n_head, reading->tail,
                                               reading->n_tail, reading->size);
    if (!scan->has_pictures || problem == NULL) {
        return;
    }
    if (!weir_picture_is_meant(reading->name, reading->head, reading->n_head)) {
        atomic_fetch_add(&scan->progress->n_other, 1);
        return;
    }
    atomic_fetch_add(&scan->progress->n_damaged, 1);
    if (scan->n_damaged_shown < SCAN_DAMAGED_SHOWN) {
        (void)snprintf(scan->damaged[scan->n_damaged_shown++], SCAN_NAME_BYTES, "%s %s",
                       reading->name, problem);
    }
}

static weir_status add_entry(struct dataset_scan *scan, const char *class_name, const char *file,
                             const char *sha, uint64_t size, struct weir_error *err)
{
    json_t *entry = json_pack("{s:s,s:s,s:s,s:I}", "class", class_name, "file", file, "sha256", sha,
                              "bytes", (json_int_t)size);
    char *text = entry != NULL ? json_dumps(entry, JSON_COMPACT) : NULL;
    json_decref(entry);
    if (text == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "dataset \"%s\": the name of its file number %lld, or of that one's "
                              "folder, is not UTF-8: rename it",
                              scan->dataset, (long long)scan->n_files + 1);
    }
    (void)weir_buf_puts(&scan->files, scan->n_files > 0 ? "," : "");
    weir_status status = weir_buf_puts(&scan->files, text);
    free(text);
    return status == WEIR_OK ? WEIR_OK
                             : weir_error_set(err, status,
                                              "dataset \"%s\": its manifest is over "
                                              "%zu MiB",
                                              scan->dataset, MANIFEST_MAX_BYTES >> 20);
}

static weir_status scan_file(struct dataset_scan *scan, int fd, const char *class_name,
                             const char *file, struct weir_error *err)
{
    char name[PATH_MAX], sha[WEIR_SHA256_TEXT_BYTES];
    (void)snprintf(name, sizeof name, "%s%s%s", class_name, class_name[0] != '\0' ? "/" : "", file);
    if (scan->n_files >= MAX_FILES) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "dataset \"%s\" has more than %lld files",
                              scan->dataset, (long long)MAX_FILES);
    }
    WEIR_AUTO(weir_auto_free) struct reading *reading = weir_xalloc(sizeof *reading);
    bool has_header = has_ending(name, ".csv") || has_ending(name, ".tsv");
    *reading = (struct reading){.scan = scan,
                                .name = name,
                                .fd = fd,
                                .is_table = has_header || has_ending(name, ".jsonl"),
                                .has_header = has_header};
    WEIR_TRY(hash_file(reading, sha, err));
    note_damage(scan, reading);
    WEIR_TRY(add_entry(scan, class_name, file, sha, reading->size, err));
    (void)crypto_hash_sha256_update(&scan->digest, (const unsigned char *)sha, strlen(sha));
    (void)crypto_hash_sha256_update(&scan->digest, (const unsigned char *)"  ", 2);
    (void)crypto_hash_sha256_update(&scan->digest, (const unsigned char *)name, strlen(name));
    (void)crypto_hash_sha256_update(&scan->digest, (const unsigned char *)"\n", 1);
    scan->n_files++;
    scan->n_bytes += (int64_t)reading->size;
    scan->n_rows += rows_of(reading);
    atomic_fetch_add(&scan->progress->n_files, 1);
    return WEIR_OK;
}

/* ---- folders --------------------------------------------------------------------------------- */

static weir_status scan_folder(struct dataset_scan *scan, int fd, const char *class_name,
                               struct weir_error *err);

static weir_status scan_entry(struct dataset_scan *scan, int dir_fd, const char *class_name,
                              const char *name, struct weir_error *err)
{
    struct stat st;
    int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ELOOP) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "dataset \"%s\": %.120s%s%.120s is a link, and links are not followed: "
            "put the file itself there, or remove it",
            scan->dataset, class_name, class_name[0] != '\0' ? "/" : "", name);
    }
    if (fd < 0 && (errno == ENOENT || errno == ENXIO)) {
        return WEIR_OK; /* it vanished meanwhile, or is a socket */
    }
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "cannot open %s", name);
    }
    weir_status status = WEIR_OK;
    if (fstat(fd, &st) != 0) {
        status = weir_error_set_errno(err, errno, "cannot look at %s", name);
    } else if (S_ISREG(st.st_mode)) {
        status = scan_file(scan, fd, class_name, name, err);
    } else if (S_ISDIR(st.st_mode) && class_name[0] == '\0') {
        scan->n_classes++;
        return scan_folder(scan, fd, name, err); /* takes fd */
    }
    (void)close(fd);
    return status;
}

/* The files of one folder. Takes fd. */
static weir_status scan_folder(struct dataset_scan *scan, int fd, const char *class_name,
                               struct weir_error *err)
{
    struct names names = {0};
    int dir_fd = dup(fd); /* the names' one is closed with them */
    weir_status status = names_read(fd, &names, err);
    for (size_t i = 0; i < names.n && status == WEIR_OK; i++) {
        status = scan_entry(scan, dir_fd, class_name, names.items[i], err);
        if (status == WEIR_OK) {
            status = check_going(scan, err);
        }
    }
    names_free(&names);
    (void)close(dir_fd);
    return status;
}

weir_status dataset_scan_run(struct dataset_scan *scan, struct weir_error *err)
{
    int fd;
    weir_buf_init(&scan->files, MANIFEST_MAX_BYTES);
    (void)crypto_hash_sha256_init(&scan->digest);
    WEIR_TRY(dataset_scan_open_folder(AT_FDCWD, scan->root, &fd, err));
    return scan_folder(scan, fd, "", err);
}

void dataset_scan_digest(struct dataset_scan *scan, char out[WEIR_SHA256_TEXT_BYTES])
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    (void)crypto_hash_sha256_final(&scan->digest, hash);
    (void)sodium_bin2hex(out, WEIR_SHA256_TEXT_BYTES, hash, sizeof hash);
}

void dataset_scan_fini(struct dataset_scan *scan)
{
    weir_buf_fini(&scan->files);
}
