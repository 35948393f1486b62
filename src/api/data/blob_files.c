#include "api/data/blob_files.h"

#include "base/grow.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES_MAX  256
#define PREFIX_CHARS 16
#define READ_BYTES   (16 << 10)

struct entry {
    char manifest[WEIR_SHA256_TEXT_BYTES];
    uint64_t *prefixes; /* sorted */
    size_t n;
    uint64_t used; /* The larger, the later. */
};

struct blob_files {
    struct weir_blobs *blobs;
    pthread_mutex_t lock;
    struct entry entries[ENTRIES_MAX];
    size_t n_bytes, max_bytes;
    uint64_t clock;
};

/* Of at least PREFIX_CHARS lower-case digits. */
static uint64_t prefix_of(const char *digits)
{
    uint64_t value = 0;
    for (size_t i = 0; i < PREFIX_CHARS; i++) {
        char c = digits[i];
        value = value << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return value;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/** Runs of exactly 64 digits in a text that comes in parts. */
struct reading {
    char run[WEIR_SHA256_TEXT_BYTES];
    size_t len;
    struct entry entry;
    size_t cap;
};

static weir_status end_run(struct reading *reading, struct weir_error *err)
{
    struct entry *entry = &reading->entry;
    size_t len = reading->len;
    reading->len = 0;
    if (len != 2 * (size_t)WEIR_BLOB_HASH_BYTES) {
        return WEIR_OK;
    }
    if (weir_grow(&entry->prefixes, sizeof *entry->prefixes, entry->n, &reading->cap) != WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the %zu files of a manifest",
                              entry->n + 1);
    }
    entry->prefixes[entry->n++] = prefix_of(reading->run);
    return WEIR_OK;
}

static weir_status take(struct reading *reading, const char *text, size_t len,
                        struct weir_error *err)
{
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')) {
            if (reading->len < sizeof reading->run - 1) {
                reading->run[reading->len] = c;
            }
            reading->len++;
        } else if (reading->len > 0) {
            WEIR_TRY(end_run(reading, err));
        }
    }
    return WEIR_OK;
}

static weir_status read_file(FILE *file, struct reading *reading, struct weir_error *err)
{
    char buffer[READ_BYTES];
    for (size_t n = fread(buffer, 1, sizeof buffer, file); n > 0;
         n = fread(buffer, 1, sizeof buffer, file)) {
        WEIR_TRY(take(reading, buffer, n, err));
    }
    WEIR_TRY(end_run(reading, err));
    return ferror(file) == 0 ? WEIR_OK : weir_error_set_errno(err, errno, "cannot read a manifest");
}

static weir_status read_manifest(struct blob_files *files, const char *manifest,
                                 struct reading *reading, struct weir_error *err)
{
    struct weir_arena arena;
    char *path;
    weir_arena_init(&arena, 0);
    weir_status status = weir_blob_path(files->blobs, manifest, &arena, &path, NULL, NULL);
    FILE *file = status == WEIR_OK ? fopen(path, "re") : NULL;
    weir_arena_fini(&arena);
    if (file == NULL) {
        return WEIR_OK; /* it is gone: it names nothing */
    }
    status = read_file(file, reading, err);
    (void)fclose(file);
    if (reading->entry.n > 0) {
        qsort(reading->entry.prefixes, reading->entry.n, sizeof(uint64_t), by_value);
    }
    (void)snprintf(reading->entry.manifest, sizeof reading->entry.manifest, "%.64s", manifest);
    return status;
}

static void drop(struct blob_files *files, struct entry *entry)
{
    files->n_bytes -= entry->n * sizeof *entry->prefixes;
    free(entry->prefixes);
    *entry = (struct entry){0};
}

static struct entry *least_used(struct blob_files *files)
{
    struct entry *least = &files->entries[0];
    for (size_t i = 0; i < ENTRIES_MAX; i++) {
        least = files->entries[i].used < least->used ? &files->entries[i] : least;
    }
    return least;
}

/* A place that is free once enough of the others went; NULL: it is too long to be kept. */
static struct entry *make_place(struct blob_files *files, size_t n_bytes)
{
    if (n_bytes > files->max_bytes) {
        return NULL;
    }
    while (files->n_bytes + n_bytes > files->max_bytes) {
        for (size_t i = 0; i < ENTRIES_MAX; i++) { /* empty ones are no use here */
            files->entries[i].used = files->entries[i].n > 0 ? files->entries[i].used : UINT64_MAX;
        }
        drop(files, least_used(files));
    }
    for (size_t i = 0; i < ENTRIES_MAX; i++) {
        if (files->entries[i].used == UINT64_MAX) {
            files->entries[i].used = 0;
        }
    }
    struct entry *place = least_used(files);
    drop(files, place);
    return place;
}

static struct entry *find(struct blob_files *files, const char *manifest)
{
    for (size_t i = 0; i < ENTRIES_MAX; i++) {
        if (strcmp(files->entries[i].manifest, manifest) == 0) {
            return &files->entries[i];
        }
    }
    return NULL;
}

static bool has(const struct entry *entry, const char *sha256)
{
    uint64_t prefix = prefix_of(sha256);
    return entry->n > 0 &&
           bsearch(&prefix, entry->prefixes, entry->n, sizeof prefix, by_value) != NULL;
}

static weir_status look(struct blob_files *files, const char *manifest, const char *sha256,
                        bool *out, struct weir_error *err)
{
    struct entry *entry = find(files, manifest);
    if (entry == NULL) {
        struct reading reading = {0};
        weir_status status = read_manifest(files, manifest, &reading, err);
        if (status != WEIR_OK) {
            free(reading.entry.prefixes);
            return status;
        }
        size_t n_bytes = reading.entry.n * sizeof *reading.entry.prefixes;
        entry = make_place(files, n_bytes);
        if (entry == NULL) {
            *out = has(&reading.entry, sha256);
            free(reading.entry.prefixes);
            return WEIR_OK;
        }
        *entry = reading.entry;
        files->n_bytes += n_bytes;
    }
    entry->used = ++files->clock;
    *out = has(entry, sha256);
    return WEIR_OK;
}

struct blob_files *blob_files_create(struct weir_blobs *blobs, size_t max_bytes)
{
    struct blob_files *files = weir_xalloc(sizeof *files);
    *files = (struct blob_files){.blobs = blobs, .max_bytes = max_bytes};
    pthread_mutex_init(&files->lock, NULL);
    return files;
}

void blob_files_destroy(struct blob_files *files)
{
    if (files == NULL) {
        return;
    }
    for (size_t i = 0; i < ENTRIES_MAX; i++) {
        drop(files, &files->entries[i]);
    }
    pthread_mutex_destroy(&files->lock);
    free(files);
}

weir_status blob_files_have(struct blob_files *files, const char *manifest, const char *sha256,
                            bool *out, struct weir_error *err)
{
    *out = false;
    if (!weir_blob_name_is_valid(manifest) || !weir_blob_name_is_valid(sha256)) {
        return WEIR_OK;
    }
    pthread_mutex_lock(&files->lock);
    weir_status status = look(files, manifest, sha256, out, err);
    pthread_mutex_unlock(&files->lock);
    return status;
}
