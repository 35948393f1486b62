/** weir artifact list, get, put: files that runs leave. */
#include "cli/core/find.h"
#include "cli/core/progress.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PART_BYTES    ((off_t)64 << 20) /* of a file that is sent in parts; one is in memory */
#define PARTS_MAX     10000
#define PART_WAIT_MS  600000
#define JOIN_WAIT_MS  3600000
#define FILES_MAX     100000
#define FOLDERS_DEPTH 32

/* ---- paths ----------------------------------------------------------------------------------- */

/* Every part is encoded by itself: slashes stay. */
static char *encoded(struct cli_call *call, const char *path)
{
    char *out = weir_arena_strdup(call->arena, "");
    while (*path != '\0') {
        size_t len = strcspn(path, "/");
        const char *part = weir_arena_memdup(call->arena, path, len);
        out = weir_arena_printf(call->arena, "%s%s%s", out, *out != '\0' ? "/" : "",
                                weir_client_path(call->arena, "{}", &part, 1));
        path += len + (path[len] == '/');
    }
    return out;
}

static char *file_path(struct cli_call *call, const char *run, const char *path)
{
    return weir_arena_printf(call->arena, "%s/%s",
                             cli_path1(call, "/api/v1/runs/{}/artifacts", run),
                             encoded(call, path));
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* Without slashes at its end. */
static char *trimmed(struct cli_call *call, const char *path)
{
    size_t len = strlen(path);
    while (len > 0 && path[len - 1] == '/') {
        len--;
    }
    return weir_arena_memdup(call->arena, path, len);
}

/* ---- looking --------------------------------------------------------------------------------- */

/* All entries of a folder, page by page: a new array. */
static weir_status list_folder(struct cli_call *call, const char *run, const char *folder,
                               json_t **out, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *items = json_array();
    const char *cursor = "";
    while (cursor != NULL) {
        WEIR_AUTO(weir_json_auto_free) json_t *page = NULL;
        const char *path = cli_path3(call, "/api/v1/runs/{}/artifacts?path={}&limit=1000&cursor={}",
                                     run, folder, cursor);
        WEIR_TRY(cli_rest(call, "GET", path, NULL, &page, err));
        json_array_extend(items, json_object_get(page, "items"));
        cursor = weir_arena_strdup(call->arena, json_string_value(json_object_get(page, "next")));
    }
    *out = json_incref(items);
    return WEIR_OK;
}

static weir_status run_list(struct cli_call *call, struct weir_error *err)
{
    static const struct cli_column columns[] = {
        {"path", "PATH"}, {"bytes", "BYTES"}, {"created_ms", "CREATED"}};
    char *run;
    json_t *items, *item;
    size_t i;
    WEIR_TRY(cli_find(call, &find_run, call->words[0], &run, err));
    const char *folder = call->n_words > 1 ? trimmed(call, call->words[1]) : "";
    WEIR_TRY(list_folder(call, run, folder, &items, err));
    json_array_foreach(items, i, item)
    {
        if (json_is_true(json_object_get(item, "is_folder")) && !cli_is_json(call)) {
            json_object_set_new(item, "path", json_sprintf("%s/", cli_text(call, item, "path")));
            json_object_set_new(item, "bytes", json_null());
        }
    }
    json_t *answer = json_pack("{s:o}", "items", items);
    cli_print_table(call, answer, columns, WEIR_ARRAY_LEN(columns));
    json_decref(answer);
    return WEIR_OK;
}

const struct cli_command cli_artifact_list = {
    .name = "artifact list",
    .usage = "RUN [FOLDER]",
    .summary = "List the files that a run left, of one folder",
    CLI_WORDS(1, 2),
    CLI_PLAIN,
    .run = run_list,
};

/* ---- fetching -------------------------------------------------------------------------------- */

/** What a fetch or a sending did so far. */
struct done {
    int64_t n_files, n_bytes;
};

/* The server's own rule keeps names within the folder; this one trusts no server. */
static weir_status check_name(const char *path, struct weir_error *err)
{
    const char *name = base_name(path);
    return name[0] != '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_CORRUPT, "the server names a file \"%.60s\"", path);
}

static weir_status get_file(struct cli_call *call, const char *run, const json_t *item,
                            const char *to, struct done *done, struct weir_error *err)
{
    char found[WEIR_SHA256_TEXT_BYTES];
    uint64_t n_bytes;
    const char *path = cli_text(call, item, "path"), *blob = cli_text(call, item, "blob");
    WEIR_TRY(weir_client_get_file(call->client, file_path(call, run, path), to, err));
    WEIR_TRY(weir_file_sha256(to, found, &n_bytes, err));
    if (strcmp(found, blob) != 0) {
        return weir_error_set(
            err, WEIR_ERR_CORRUPT,
            "%s arrived with another SHA-256 than the server says: damaged on the "
            "way or in the store",
            path);
    }
    done->n_files++;
    done->n_bytes += (int64_t)n_bytes;
    return WEIR_OK;
}

static weir_status get_folder(struct cli_call *call, const char *run, const char *folder,
                              const char *to, int depth, struct done *done, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *items = NULL;
    json_t *item;
    size_t i;
    if (depth > FOLDERS_DEPTH) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%s: more than %d folders deep", folder,
                              FOLDERS_DEPTH);
    }
    WEIR_TRY(list_folder(call, run, folder, &items, err));
    WEIR_TRY(weir_dir_make(to, 0755, err));
    json_array_foreach(items, i, item)
    {
        const char *path = cli_text(call, item, "path");
        const char *target = weir_arena_printf(call->arena, "%s/%s", to, base_name(path));
        WEIR_TRY(check_name(path, err));
        WEIR_TRY(json_is_true(json_object_get(item, "is_folder"))
                     ? get_folder(call, run, path, target, depth + 1, done, err)
                     : get_file(call, run, item, target, done, err));
    }
    return WEIR_OK;
}

static void print_done(const struct cli_call *call, const char *what, const struct done *done,
                       const char *where)
{
    if (cli_is_json(call)) {
        cli_print_change(json_pack("{s:I,s:I,s:s}", "n_files", (json_int_t)done->n_files, "bytes",
                                   (json_int_t)done->n_bytes, "to", where));
    } else {
        printf("%s %" PRId64 " file%s of %" PRId64 " bytes: %s\n", what, done->n_files,
               done->n_files == 1 ? "" : "s", done->n_bytes, where);
    }
}

static weir_status run_get(struct cli_call *call, struct weir_error *err)
{
    char *run;
    WEIR_AUTO(weir_json_auto_free) json_t *items = NULL;
    struct done done = {0};
    WEIR_TRY(cli_find(call, &find_run, call->words[0], &run, err));
    const char *path = call->n_words > 1 ? trimmed(call, call->words[1]) : "";
    const char *to = call->n_words > 2 ? call->words[2]
                     : *path != '\0'
                         ? base_name(path)
                         : weir_arena_printf(call->arena, "artifacts-%s", cli_short_id(run));
    WEIR_TRY(list_folder(call, run, path, &items, err));
    const json_t *first = json_array_get(items, 0);
    bool is_file = *path != '\0' && json_array_size(items) == 1 &&
                   strcmp(cli_text(call, first, "path"), path) == 0;
    if (json_array_size(items) == 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "run %s has no artifact \"%.200s\": `weir artifact list %s` lists "
                              "what it has",
                              call->words[0], path, call->words[0]);
    }
    WEIR_TRY(is_file ? get_file(call, run, first, to, &done, err)
                     : get_folder(call, run, path, to, 0, &done, err));
    print_done(call, "fetched", &done, to);
    return WEIR_OK;
}

const struct cli_command cli_artifact_get = {
    .name = "artifact get",
    .usage = "RUN [PATH [TO]]",
    .summary = "Fetch a file that a run left, or a folder with all below it",
    .help =
        "Each file is compared with the digest that the server has of it. TO is the name of the "
        "file or\nfolder that is made here; default: the last part of PATH.\n",
    CLI_WORDS(1, 3),
    CLI_PLAIN,
    .run = run_get,
};

/* ---- sending in parts ------------------------------------------------------------------------ */

/** A large file on its way. */
struct sending {
    struct cli_call *call;
    const char *run, *file, *path;
    int fd;
    off_t bytes;
    int64_t n_parts;
    const char *upload;
    json_t *there; /**< Parts that came before: [{number, sha256}]. */
    char *buffer;
};

/* An upload of this path that was cut off, or a new one. */
static weir_status find_upload(struct sending *sending, struct weir_error *err)
{
    struct cli_call *call = sending->call;
    const char *list = cli_path1(call, "/api/v1/runs/{}/uploads", sending->run);
    json_t *answer, *item;
    size_t i;
    WEIR_TRY(cli_rest(call, "GET", list, NULL, &answer, err));
    json_array_foreach(json_object_get(answer, "items"), i, item)
    {
        if (strcmp(cli_text(call, item, "path"), sending->path) == 0 &&
            json_integer_value(json_object_get(item, "n_parts")) == sending->n_parts) {
            sending->upload = cli_text(call, item, "id");
            sending->there = json_incref(json_object_get(item, "parts"));
        }
    }
    json_decref(answer);
    if (sending->upload != NULL) {
        return WEIR_OK;
    }
    WEIR_AUTO(weir_json_auto_free)
    json_t *made = NULL, *body = json_pack("{s:s,s:I}", "path", sending->path, "n_parts",
                                           (json_int_t)sending->n_parts);
    WEIR_TRY(cli_rest(call, "POST", list, body, &made, err));
    sending->upload = cli_text(call, made, "id");
    return WEIR_OK;
}

static bool is_there(const struct sending *sending, int64_t number, const char *sha256)
{
    size_t i;
    json_t *part;
    json_array_foreach(sending->there, i, part)
    {
        const char *other = json_string_value(json_object_get(part, "sha256"));
        if (json_integer_value(json_object_get(part, "number")) == number && other != NULL &&
            strcmp(other, sha256) == 0) {
            return true;
        }
    }
    return false;
}

static weir_status send_part(struct sending *sending, int64_t number, off_t part_bytes,
                             struct weir_error *err)
{
    struct cli_call *call = sending->call;
    off_t offset = (number - 1) * part_bytes, len = WEIR_MIN(part_bytes, sending->bytes - offset);
    char sha256[WEIR_SHA256_TEXT_BYTES], text[24];
    for (off_t n = 0; n < len;) {
        ssize_t got = pread(sending->fd, sending->buffer + n, (size_t)(len - n), offset + n);
        if (got <= 0) {
            return got < 0 ? weir_error_set_errno(err, errno, "reading %s", sending->file)
                           : weir_error_set(err, WEIR_ERR_CONFLICT,
                                            "%s became shorter while it was sent", sending->file);
        }
        n += got;
    }
    weir_sha256(sending->buffer, (size_t)len, sha256);
    if (is_there(sending, number, sha256)) {
        return WEIR_OK;
    }
    (void)snprintf(text, sizeof text, "%" PRId64, number);
    const char *path =
        cli_path3(call, "/api/v1/runs/{}/uploads/{}/parts/{}", sending->run, sending->upload, text);
    return weir_client_call_raw(call->client, "PUT", path, "application/octet-stream",
                                sending->buffer, (size_t)len, NULL, NULL, err);
}

static weir_status send_all_parts(struct sending *sending, off_t part_bytes, struct weir_error *err)
{
    struct cli_call *call = sending->call;
    bool shows = isatty(STDERR_FILENO) != 0 && !cli_is_json(call);
    weir_client_set_timeout(call->client, PART_WAIT_MS);
    for (int64_t i = 1; i <= sending->n_parts; i++) {
        WEIR_TRY(send_part(sending, i, part_bytes, err));
        if (shows) {
            (void)fprintf(stderr, "\r%s: part %" PRId64 " of %" PRId64 "%s", sending->path, i,
                          sending->n_parts, i == sending->n_parts ? "\n" : "");
        }
    }
    weir_client_set_timeout(call->client, JOIN_WAIT_MS);
    return cli_rest(
        call, "POST",
        cli_path2(call, "/api/v1/runs/{}/uploads/{}/complete", sending->run, sending->upload), NULL,
        NULL, err);
}

static weir_status put_large(struct cli_call *call, const char *run, const char *file, int fd,
                             off_t bytes, const char *path, struct weir_error *err)
{
    off_t part_bytes = PART_BYTES;
    while ((bytes + part_bytes - 1) / part_bytes > PARTS_MAX) {
        part_bytes *= 2;
    }
    struct sending sending = {.call = call,
                              .run = run,
                              .file = file,
                              .path = path,
                              .fd = fd,
                              .bytes = bytes,
                              .n_parts = (bytes + part_bytes - 1) / part_bytes,
                              .buffer = malloc((size_t)part_bytes)};
    if (sending.buffer == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a part of %lld bytes",
                              (long long)part_bytes);
    }
    weir_status status = find_upload(&sending, err);
    if (status == WEIR_OK) {
        status = send_all_parts(&sending, part_bytes, err);
    }
    free(sending.buffer);
    json_decref(sending.there);
    return status;
}

/* ---- sending --------------------------------------------------------------------------------- */

static weir_status put_file(struct cli_call *call, const char *run, const char *file,
                            const char *path, struct done *done, struct weir_error *err)
{
    struct stat info;
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "cannot open %s", file);
    }
    weir_status status = WEIR_OK;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        status = weir_error_set(err, WEIR_ERR_INVALID, "%s is no file", file);
    } else if (info.st_size > PART_BYTES) {
        cli_progress_file(call, file);
        status = put_large(call, run, file, fd, info.st_size, path, err);
    } else {
        status = weir_client_send_file(call->client, "PUT", file_path(call, run, path),
                                       "application/octet-stream", file, NULL, err);
    }
    (void)close(fd);
    if (status == WEIR_OK) {
        done->n_files++;
        done->n_bytes += (int64_t)info.st_size;
    }
    return status;
}

static int is_named(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static weir_status put_folder(struct cli_call *call, const char *run, const char *folder,
                              const char *path, int depth, struct done *done,
                              struct weir_error *err)
{
    struct dirent **entries;
    int n = scandir(folder, &entries, is_named, alphasort);
    if (n < 0) {
        return weir_error_set_errno(err, errno, "cannot list %s", folder);
    }
    weir_status status = WEIR_OK;
    if (depth > FOLDERS_DEPTH || done->n_files > FILES_MAX) {
        status =
            weir_error_set(err, WEIR_ERR_LIMIT, "%s: more than %d folders deep, or than %d files",
                           folder, FOLDERS_DEPTH, FILES_MAX);
    }
    for (int i = 0; i < n; i++) {
        const char *file = weir_arena_printf(call->arena, "%s/%s", folder, entries[i]->d_name);
        const char *target =
            weir_arena_printf(call->arena, "%s%s%s", path, *path ? "/" : "", entries[i]->d_name);
        struct stat info;
        /* A link could lead out of what was meant to be sent. */
        bool is_link = lstat(file, &info) == 0 && S_ISLNK(info.st_mode);
        if (status == WEIR_OK && !is_link) {
            status = weir_path_is_dir(file)
                         ? put_folder(call, run, file, target, depth + 1, done, err)
                         : put_file(call, run, file, target, done, err);
        }
        free(entries[i]);
    }
    free(entries);
    return status;
}

static weir_status run_put(struct cli_call *call, struct weir_error *err)
{
    char *run;
    struct done done = {0};
    WEIR_TRY(cli_find(call, &find_run, call->words[0], &run, err));
    const char *from = trimmed(call, call->words[1]);
    bool is_folder = weir_path_is_dir(from);
    const char *path = call->n_words > 2 ? trimmed(call, call->words[2])
                       : is_folder       ? ""
                                         : base_name(from);
    WEIR_TRY(is_folder ? put_folder(call, run, from, path, 0, &done, err)
                       : put_file(call, run, from, path, &done, err));
    print_done(call, "put", &done, *path != '\0' ? path : "/");
    return WEIR_OK;
}

const struct cli_command cli_artifact_put = {
    .name = "artifact put",
    .usage = "RUN FILE|FOLDER [PATH]",
    .summary = "Put a file, or all of a folder, with a run",
    .help =
        "A file over 64 MiB is sent in parts: the same command again, after a break, sends what "
        "is\nmissing. Links in a folder are left out. PATH is the place in the run; default: a "
        "file's own\nname, and the files of a folder as they lie in it.\n",
    CLI_WORDS(2, 3),
    CLI_PLAIN,
    .run = run_put,
};
