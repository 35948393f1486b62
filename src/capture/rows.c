#include "capture/rows.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "capture/tar.h"
#include "ion/revision.h"
#include "nouns/nouns.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANIFEST_MAX_BYTES ((size_t)8 << 20)
#define SUMS_MAX_BYTES     ((size_t)4 << 20)
#define LINE_MAX_BYTES     ((size_t)8 << 20) /* a few JSON fields of 1 MiB each */
#define CHUNK_BYTES        ((size_t)64 << 10)

const struct weir_noun *weir_captured_at(size_t i)
{
    const struct weir_noun *noun, *next = NULL;
    for (int place = INT_MIN; place == INT_MIN || next != NULL; i--) {
        next = NULL;
        for (size_t k = 0; (noun = weir_noun_at(k)) != NULL; k++) {
            const struct weir_captured *its = noun->captured;
            bool is_later = its != NULL && its->place > place;
            next = is_later && (next == NULL || its->place < next->captured->place) ? noun : next;
        }
        if (i == 0) {
            break;
        }
        place = next != NULL ? next->captured->place : place;
    }
    return next;
}

struct weir_snapshot_file {
    int fd;
    struct weir_arena *arena;
    struct tar_member *members;
    size_t n_members;
    json_t *manifest;
};

static weir_status read_at(int fd, uint64_t offset, void *out, size_t len, struct weir_error *err)
{
    char *bytes = out;
    while (len > 0) {
        ssize_t n = pread(fd, bytes, len, (off_t)offset);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n == 0
                       ? weir_error_set(err, WEIR_ERR_CORRUPT, "the snapshot's file is too short")
                       : weir_error_set_errno(err, errno, "reading the snapshot's file");
        }
        bytes += n;
        offset += (uint64_t)n;
        len -= (size_t)n;
    }
    return WEIR_OK;
}

static const struct tar_member *find_member(const struct weir_snapshot_file *file, const char *name)
{
    for (size_t i = 0; i < file->n_members; i++) {
        if (strcmp(file->members[i].name, name) == 0) {
            return &file->members[i];
        }
    }
    return NULL;
}

static weir_status read_manifest(struct weir_snapshot_file *file, struct weir_error *err)
{
    const struct tar_member *member = find_member(file, WEIR_SNAPSHOT_MANIFEST);
    if (member == NULL || member->bytes > MANIFEST_MAX_BYTES) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the tar is no snapshot: it has no %s%s",
                              WEIR_SNAPSHOT_MANIFEST, member != NULL ? " of a usual size" : "");
    }
    char *text = weir_arena_alloc(file->arena, (size_t)member->bytes + 1);
    WEIR_TRY(read_at(file->fd, member->offset, text, (size_t)member->bytes, err));
    WEIR_TRY(weir_json_parse(text, (size_t)member->bytes, "manifest.json", &file->manifest, err));
    const char *format = json_string_value(json_object_get(file->manifest, "format"));
    json_int_t version = json_integer_value(json_object_get(file->manifest, "version"));
    if (format == NULL || strcmp(format, WEIR_SNAPSHOT_FORMAT) != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "manifest.json: $.format: expected \"%s\"",
                              WEIR_SNAPSHOT_FORMAT);
    }
    return version == WEIR_SNAPSHOT_VERSION
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                "manifest.json: $.version: this Weir reads %d, the snapshot is of "
                                "version %lld",
                                WEIR_SNAPSHOT_VERSION, (long long)version);
}

weir_status weir_snapshot_open(const char *path, struct weir_arena *arena,
                               struct weir_snapshot_file **out, struct weir_error *err)
{
    struct stat facts;
    struct weir_snapshot_file *file = WEIR_ARENA_NEW(arena, struct weir_snapshot_file);
    *file = (struct weir_snapshot_file){
        .fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), .arena = arena};
    if (file->fd < 0 || fstat(file->fd, &facts) != 0) {
        weir_status failed = weir_error_set_errno(err, errno, "the snapshot's file");
        weir_snapshot_close(file);
        return failed;
    }
    weir_status status =
        S_ISREG(facts.st_mode)
            ? tar_list(file->fd, (uint64_t)facts.st_size, arena, &file->members, &file->n_members,
                       err)
            : weir_error_set(err, WEIR_ERR_INVALID, "the snapshot is not a regular file");
    status = status == WEIR_OK ? read_manifest(file, err) : status;
    if (status != WEIR_OK) {
        weir_snapshot_close(file);
        return status;
    }
    *out = file;
    return WEIR_OK;
}

void weir_snapshot_close(struct weir_snapshot_file *file)
{
    if (file != NULL) {
        if (file->fd >= 0) {
            (void)close(file->fd);
        }
        json_decref(file->manifest);
        *file = (struct weir_snapshot_file){.fd = -1};
    }
}

const json_t *weir_snapshot_manifest(const struct weir_snapshot_file *file)
{
    return file->manifest;
}

/* ---- sums ------------------------------------------------------------------------------------ */

static weir_status sum_member(const struct weir_snapshot_file *file,
                              const struct tar_member *member, char out[WEIR_SHA256_TEXT_BYTES],
                              struct weir_error *err)
{
    struct weir_sha256_stream hash;
    char *chunk = weir_xalloc(CHUNK_BYTES);
    weir_status status = WEIR_OK;
    weir_sha256_begin(&hash);
    for (uint64_t at = 0; at < member->bytes && status == WEIR_OK;) {
        size_t len = (size_t)WEIR_MIN(member->bytes - at, CHUNK_BYTES);
        status = read_at(file->fd, member->offset + at, chunk, len, err);
        if (status == WEIR_OK) {
            weir_sha256_add(&hash, chunk, len);
        }
        at += len;
    }
    free(chunk);
    weir_sha256_end(&hash, out);
    return status;
}

static weir_status verify_one(const struct weir_snapshot_file *file, const json_t *entry,
                              bool *is_seen, struct weir_error *err)
{
    char sum[WEIR_SHA256_TEXT_BYTES];
    const char *name = json_string_value(json_object_get(entry, "name"));
    const char *wanted = json_string_value(json_object_get(entry, "sha256"));
    json_int_t bytes = json_integer_value(json_object_get(entry, "bytes"));
    const struct tar_member *member =
        name != NULL
            ? find_member(file, weir_arena_printf(file->arena, WEIR_SNAPSHOT_FOLDER "%s", name))
            : NULL;
    if (member == NULL || wanted == NULL || bytes < 0 || (uint64_t)bytes != member->bytes) {
        return weir_error_set(err, WEIR_ERR_CORRUPT,
                              "%s of the snapshot is missing or not as long as its manifest says",
                              name != NULL ? name : "a file");
    }
    if (is_seen[member - file->members]) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "the manifest lists %s twice", name);
    }
    is_seen[member - file->members] = true;
    WEIR_TRY(sum_member(file, member, sum, err));
    return strcmp(sum, wanted) == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_CORRUPT,
                                "%s of the snapshot is not what its manifest says: SHA-256 is "
                                "%.16s…, not %.16s…",
                                name, sum, wanted);
}

char *weir_snapshot_sums(const json_t *files, const char *manifest_sha256, struct weir_arena *arena)
{
    struct weir_buf buf;
    size_t i;
    json_t *entry;
    weir_buf_init(&buf, SUMS_MAX_BYTES);
    json_array_foreach(files, i, entry)
    {
        const char *sum = json_string_value(json_object_get(entry, "sha256"));
        const char *name = json_string_value(json_object_get(entry, "name"));
        (void)weir_buf_printf(&buf, "%s  %s\n", sum != NULL ? sum : "", name != NULL ? name : "");
    }
    (void)weir_buf_printf(&buf, "%s  manifest.json\n", manifest_sha256);
    char *text = weir_arena_memdup(arena, buf.data, buf.len);
    weir_buf_fini(&buf);
    return text;
}

/* The manifest, and the list of sums, which names it too. */
static weir_status verify_own(const struct weir_snapshot_file *file, bool *is_seen,
                              struct weir_error *err)
{
    char sum[WEIR_SHA256_TEXT_BYTES];
    const struct tar_member *manifest = find_member(file, WEIR_SNAPSHOT_MANIFEST);
    const struct tar_member *sums = find_member(file, WEIR_SNAPSHOT_SUMS);
    if (sums == NULL || sums->bytes > SUMS_MAX_BYTES) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "the snapshot has no SHA256SUMS");
    }
    is_seen[manifest - file->members] = is_seen[sums - file->members] = true;
    WEIR_TRY(sum_member(file, manifest, sum, err));
    const char *wanted =
        weir_snapshot_sums(json_object_get(file->manifest, "files"), sum, file->arena);
    char *text = weir_arena_alloc(file->arena, (size_t)sums->bytes + 1);
    WEIR_TRY(read_at(file->fd, sums->offset, text, (size_t)sums->bytes, err));
    return strlen(wanted) == sums->bytes && memcmp(text, wanted, (size_t)sums->bytes) == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_CORRUPT,
                                "the snapshot's manifest and its SHA256SUMS differ");
}

weir_status weir_snapshot_verify(const struct weir_snapshot_file *file, struct weir_error *err)
{
    const json_t *files = json_object_get(file->manifest, "files");
    size_t i;
    json_t *entry;
    bool *is_seen = WEIR_ARENA_ARRAY(file->arena, file->n_members, bool);
    WEIR_TRY(verify_own(file, is_seen, err));
    if (json_array_size(files) + 2 != file->n_members) {
        return weir_error_set(err, WEIR_ERR_CORRUPT,
                              "the snapshot has %zu files, and its manifest lists %zu beside two",
                              file->n_members, json_array_size(files));
    }
    json_array_foreach(files, i, entry)
    {
        WEIR_TRY(verify_one(file, entry, is_seen, err));
        WEIR_TRY(weir_arena_check(file->arena, "snapshot", err));
    }
    return WEIR_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Lines of a member, through one buffer that grows up to LINE_MAX_BYTES. */
struct lines {
    const struct weir_snapshot_file *file;
    const struct tar_member *member;
    uint64_t at;
    char *buffer;
    size_t len, cap, i_line; /* what is read; where the next line begins in it */
};

static weir_status fill(struct lines *lines, struct weir_error *err)
{
    memmove(lines->buffer, lines->buffer + lines->i_line, lines->len - lines->i_line);
    lines->len -= lines->i_line;
    lines->i_line = 0;
    if (lines->len == lines->cap) {
        if (lines->cap >= LINE_MAX_BYTES) {
            return weir_error_set(err, WEIR_ERR_CORRUPT, "a line of %s is too long",
                                  lines->member->name);
        }
        char *grown = realloc(lines->buffer, 2 * lines->cap);
        if (grown == NULL) {
            return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a line");
        }
        lines->buffer = grown;
        lines->cap *= 2;
    }
    size_t n = (size_t)WEIR_MIN(lines->member->bytes - lines->at, lines->cap - lines->len);
    WEIR_TRY(read_at(lines->file->fd, lines->member->offset + lines->at, lines->buffer + lines->len,
                     n, err));
    lines->at += n;
    lines->len += n;
    return WEIR_OK;
}

/* *out_line: NULL after the last. */
static weir_status next_line(struct lines *lines, char **out_line, size_t *out_len,
                             struct weir_error *err)
{
    for (;;) {
        char *line = lines->buffer + lines->i_line;
        char *end = memchr(line, '\n', lines->len - lines->i_line);
        if (end != NULL) {
            *out_line = line;
            *out_len = (size_t)(end - line);
            lines->i_line += *out_len + 1;
            return WEIR_OK;
        }
        if (lines->at == lines->member->bytes) {
            *out_line = NULL;
            return lines->i_line == lines->len
                       ? WEIR_OK
                       : weir_error_set(err, WEIR_ERR_CORRUPT, "%s does not end with a line's end",
                                        lines->member->name);
        }
        WEIR_TRY(fill(lines, err));
    }
}

static weir_status read_record(const struct weir_resource *resource, const char *line, size_t len,
                               struct weir_arena *arena, void **out, struct weir_error *err)
{
    json_t *json = NULL;
    void *record = weir_arena_alloc(arena, resource->size);
    weir_status status = weir_json_parse(line, len, resource->name, &json, err);
    if (status == WEIR_OK) {
        status = weir_record_from_json(resource, json, WEIR_RECORD_TRUSTED, arena, record, err);
    }
    json_decref(json);
    *out = record;
    return status;
}

/* Every line, to fn. */
static weir_status read_lines(struct lines *lines, weir_snapshot_line_fn fn, void *context,
                              struct weir_error *err)
{
    char *line = NULL;
    size_t len;
    for (int64_t number = 1;; number++) {
        bool is_enough = false;
        WEIR_TRY(next_line(lines, &line, &len, err));
        if (line == NULL) {
            return WEIR_OK;
        }
        WEIR_TRY(fn(context, line, len, number, &is_enough, err));
        if (is_enough) {
            return WEIR_OK;
        }
    }
}

weir_status weir_snapshot_lines(const struct weir_snapshot_file *file,
                                const struct weir_noun *table, weir_snapshot_line_fn fn,
                                void *context, struct weir_error *err)
{
    const struct tar_member *member =
        find_member(file, weir_arena_printf(file->arena, WEIR_SNAPSHOT_FOLDER "rows/%s.jsonl",
                                            table->captured->name));
    if (member == NULL) {
        return WEIR_OK;
    }
    struct lines lines = {
        .file = file, .member = member, .buffer = weir_xalloc(CHUNK_BYTES), .cap = CHUNK_BYTES};
    weir_status status = read_lines(&lines, fn, context, err);
    free(lines.buffer);
    return status;
}

/* Lines as records. */
struct records {
    const struct weir_captured *table;
    weir_snapshot_row_fn fn;
    void *context;
};

static weir_status see_line(void *context, const char *line, size_t len, int64_t number,
                            bool *out_is_enough, struct weir_error *err)
{
    const struct records *records = context;
    struct weir_arena arena;
    struct weir_error why;
    void *record;
    (void)out_is_enough;
    weir_arena_init(&arena, 0);
    weir_status status = read_record(records->table->resource, line, len, &arena, &record, &why);
    if (status != WEIR_OK) {
        status = weir_error_set(err, WEIR_ERR_CORRUPT, "rows/%s.jsonl, line %lld: %s",
                                records->table->name, (long long)number, why.message);
    } else {
        status = records->fn(records->context, record, err);
    }
    weir_arena_fini(&arena);
    return status;
}

weir_status weir_snapshot_rows(const struct weir_snapshot_file *file, const struct weir_noun *table,
                               weir_snapshot_row_fn fn, void *context, struct weir_error *err)
{
    struct records records = {table->captured, fn, context};
    return weir_snapshot_lines(file, table, see_line, &records, err);
}

weir_status weir_snapshot_see(const struct weir_snapshot_file *file,
                              const struct weir_snapshot_seer *seers, size_t n, void *context,
                              struct weir_error *err)
{
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(weir_snapshot_rows(file, seers[i].table, seers[i].see, context, err));
    }
    return WEIR_OK;
}

weir_status weir_snapshot_span(const struct weir_snapshot_file *file, int64_t *out_from_ms,
                               int64_t *out_to_ms, struct weir_error *err)
{
    const char *from = json_string_value(json_object_get(file->manifest, "from"));
    const char *to = json_string_value(json_object_get(file->manifest, "to"));
    return from != NULL && to != NULL && weir_time_parse(from, out_from_ms) == WEIR_OK &&
                   weir_time_parse(to, out_to_ms) == WEIR_OK
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_CORRUPT, "the snapshot's manifest has no span");
}

bool weir_snapshot_model(const struct weir_snapshot_file *file, const char *blob, int *out_fd,
                         uint64_t *out_offset, uint64_t *out_bytes)
{
    const struct tar_member *member =
        find_member(file, weir_arena_printf(file->arena, WEIR_SNAPSHOT_FOLDER "models/%s", blob));
    if (member != NULL) {
        *out_fd = file->fd;
        *out_offset = member->offset;
        *out_bytes = member->bytes;
    }
    return member != NULL;
}

bool weir_snapshot_member(const struct weir_snapshot_file *file, size_t i,
                          struct weir_snapshot_member *out)
{
    if (i >= file->n_members) {
        return false;
    }
    const struct tar_member *member = &file->members[i];
    *out = (struct weir_snapshot_member){member->name, file->fd, member->offset, member->bytes};
    return true;
}

/* ---- a revision ------------------------------------------------------------------------------ */

struct wanted_revision {
    struct weir_arena *arena;
    int64_t revision, first, last;
    char *document;
};

static weir_status see_revision(void *context, const void *record, struct weir_error *err)
{
    struct wanted_revision *wanted = context;
    const struct weir_ion_revision *seen = record;
    (void)err;
    wanted->first = wanted->first == 0 ? seen->revision : wanted->first;
    wanted->last = seen->revision;
    if (seen->revision == wanted->revision) {
        wanted->document = weir_arena_strdup(wanted->arena, seen->document);
    }
    return WEIR_OK;
}

weir_status weir_snapshot_revision(const struct weir_snapshot_file *file, int64_t revision,
                                   struct weir_arena *arena, char **out_document,
                                   struct weir_error *err)
{
    struct wanted_revision wanted = {.arena = arena, .revision = revision};
    WEIR_TRY(weir_snapshot_rows(file, &weir_noun_ion_revision, see_revision, &wanted, err));
    if (wanted.document == NULL) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "the snapshot has no revision %lld: it has %lld to %lld",
                              (long long)revision, (long long)wanted.first, (long long)wanted.last);
    }
    *out_document = wanted.document;
    return WEIR_OK;
}
