#include "predict/visitors.h"

#include "base/complaint.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/macros.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC     "WEIRVIS1"
#define DIM_MAX   4096
#define PATH_MORE ".new"

/** One of them, as the file has it. */
struct entry {
    struct visitor told;
    int64_t last_ms;
};

/** The file: this, then n entries, then their embeddings. */
struct head {
    char magic[8];
    uint64_t n, dim;
    char embedder[WEIR_SHA256_TEXT_BYTES];
    char gallery[WEIR_SHA256_TEXT_BYTES]; /**< Its blob. */
    uint64_t sum;                         /**< The file's, while this is 0. */
};

struct visitors {
    char *path;
    struct head head;
    struct entry *entries; /**< VISITORS_MAX. */
    float *vectors;        /**< VISITORS_MAX × head.dim; NULL: none yet. */
    struct gallery *gallery;
    bool is_on, is_changed;
    int64_t saved_ms;
    struct weir_complaint not_writable;
};

static float *vector_of(const struct visitors *visitors, size_t i)
{
    return visitors->vectors + i * visitors->head.dim;
}

/* ---- forgetting ------------------------------------------------------------------------------ */

static void forget(struct visitors *visitors, size_t i)
{
    size_t last = --visitors->head.n;
    visitors->entries[i] = visitors->entries[last];
    memmove(vector_of(visitors, i), vector_of(visitors, last), visitors->head.dim * sizeof(float));
    memset(vector_of(visitors, last), 0, visitors->head.dim * sizeof(float));
    visitors->is_changed = true;
}

static void forget_all(struct visitors *visitors)
{
    while (visitors->head.n > 0) {
        forget(visitors, visitors->head.n - 1);
    }
}

static void forget_old(struct visitors *visitors, int64_t time_ms)
{
    for (size_t i = visitors->head.n; i-- > 0;) {
        if (visitors->entries[i].last_ms + VISITORS_KEPT_MS < time_ms) {
            forget(visitors, i);
        }
    }
}

static void forget_known(struct visitors *visitors)
{
    const struct gallery *gallery = visitors->gallery;
    if (gallery->templates.dim != visitors->head.dim) {
        return; /* It is of another model: visitors_see forgets them. */
    }
    for (size_t i = visitors->head.n; i-- > 0;) {
        struct match match = match_best(&gallery->templates, vector_of(visitors, i));
        if (match.person >= 0 && match.score >= gallery->calibration.threshold) {
            forget(visitors, i);
        }
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char **sorted_names(const struct gallery *gallery)
{
    char **names = weir_xalloc((gallery->n_persons + 1) * sizeof *names);
    for (size_t i = 0; i < gallery->n_persons; i++) {
        names[i] = gallery->persons[i];
    }
    qsort(names, gallery->n_persons, sizeof *names, by_name);
    return names;
}

/* Is somebody of the one missing in the other? */
static bool has_lost(const struct gallery *before, const struct gallery *now)
{
    char **old = sorted_names(before), **new = sorted_names(now);
    size_t k = 0, i = 0;
    for (; i < before->n_persons; i++) {
        while (k < now->n_persons && strcmp(new[k], old[i]) < 0) {
            k++;
        }
        if (k == now->n_persons || strcmp(new[k], old[i]) != 0) {
            break;
        }
    }
    free(old);
    free(new);
    return i < before->n_persons;
}

/* ---- the file -------------------------------------------------------------------------------- */

static void delete_file(struct visitors *visitors)
{
    if (visitors->path != NULL) {
        (void)unlink(visitors->path);
    }
}

/* Renamed when it is whole; not synced: half of one is recognised and deleted. */
static weir_status write_file(const struct visitors *visitors, struct weir_error *err)
{
    char temporary[4200];
    size_t n = visitors->head.n, vectors = n * visitors->head.dim * sizeof(float);
    size_t len = sizeof visitors->head + n * sizeof *visitors->entries + vectors;
    char *bytes = weir_xalloc(len), *at = bytes;
    memcpy(at, &visitors->head, sizeof visitors->head);
    at += sizeof visitors->head;
    memcpy(at, visitors->entries, n * sizeof *visitors->entries);
    at += n * sizeof *visitors->entries;
    memcpy(at, visitors->vectors, vectors);
    uint64_t sum = weir_hash_bytes(WEIR_HASH_BEGIN, bytes, len);
    memcpy(bytes + offsetof(struct head, sum), &sum, sizeof sum);
    (void)snprintf(temporary, sizeof temporary, "%s" PATH_MORE, visitors->path);
    weir_status status = weir_file_write(temporary, bytes, len, 0600, err);
    free(bytes);
    WEIR_TRY(status);
    return rename(temporary, visitors->path) == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_IO, "%s: cannot be replaced", visitors->path);
}

static void save(struct visitors *visitors, int64_t time_ms)
{
    struct weir_error err;
    visitors->is_changed = false;
    visitors->saved_ms = time_ms;
    if (visitors->head.n == 0) {
        delete_file(visitors);
    } else if (visitors->path != NULL && write_file(visitors, &err) != WEIR_OK &&
               weir_complaint_is_due(&visitors->not_writable, NULL)) {
        weir_log(WEIR_LOG_WARN, "visitors_not_saved", WEIR_KV_STR("reason", err.message));
    }
}

static bool is_unit(const float *vector, size_t dim)
{
    double squares = 0;
    for (size_t d = 0; d < dim; d++) {
        squares += (double)vector[d] * (double)vector[d];
    }
    return fabs(squares - 1) < 1e-3;
}

static bool is_text(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

/* Takes what a file holds. @return Whether it is whole. */
static bool take(struct visitors *visitors, char *bytes, size_t len)
{
    struct head head;
    if (len < sizeof head) {
        return false;
    }
    memcpy(&head, bytes, sizeof head);
    uint64_t sum = head.sum;
    head.sum = 0;
    memset(bytes + offsetof(struct head, sum), 0, sizeof sum);
    if (weir_hash_bytes(WEIR_HASH_BEGIN, bytes, len) != sum) {
        return false;
    }
    if (memcmp(head.magic, MAGIC, sizeof head.magic) != 0 || head.n > VISITORS_MAX ||
        head.dim == 0 || head.dim > DIM_MAX || !is_text(head.embedder, sizeof head.embedder) ||
        !is_text(head.gallery, sizeof head.gallery)) {
        return false;
    }
    size_t entries = head.n * sizeof *visitors->entries,
           vectors = head.n * head.dim * sizeof(float);
    if (len != sizeof head + entries + vectors) {
        return false;
    }
    visitors->head = head;
    visitors->vectors = weir_xalloc(VISITORS_MAX * head.dim * sizeof *visitors->vectors);
    memcpy(visitors->entries, bytes + sizeof head, entries);
    memcpy(visitors->vectors, bytes + sizeof head + entries, vectors);
    for (size_t i = 0; i < head.n; i++) {
        const struct entry *entry = &visitors->entries[i];
        if (!is_text(entry->told.id, sizeof entry->told.id) ||
            !weir_uuid_is_valid(entry->told.id) || entry->told.times < 1 ||
            !is_unit(vector_of(visitors, i), head.dim)) {
            return false;
        }
    }
    return true;
}

/* @return NOT_FOUND; INVALID: it is damaged; or it cannot be read. Then nothing is taken but memory. */
static weir_status load(struct visitors *visitors, struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    char *bytes;
    size_t len, most = sizeof(struct head) +
                       VISITORS_MAX * (sizeof(struct entry) + DIM_MAX * sizeof(float));
    weir_arena_init(&arena, 0);
    WEIR_TRY(weir_file_read(visitors->path, most, &arena, &bytes, &len, err));
    return take(visitors, bytes, len)
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "%s: it is damaged", visitors->path);
}

static void read_file(struct visitors *visitors)
{
    struct weir_error err;
    switch (load(visitors, &err)) {
    case WEIR_OK:
        return;
    case WEIR_ERR_NOT_FOUND:
        break;
    default:
        weir_log(WEIR_LOG_WARN, "visitors_forgotten", WEIR_KV_STR("reason", err.message));
        delete_file(visitors);
    }
    free(visitors->vectors);
    visitors->vectors = NULL;
    visitors->head = (struct head){.magic = MAGIC};
}

/* ---- outside --------------------------------------------------------------------------------- */

struct visitors *visitors_open(const char *path)
{
    struct visitors *visitors = weir_xalloc(sizeof *visitors);
    *visitors =
        (struct visitors){.path = path != NULL ? weir_xstrdup(path) : NULL, .head.magic = MAGIC};
    visitors->entries = weir_xalloc(VISITORS_MAX * sizeof *visitors->entries);
    if (path != NULL) {
        read_file(visitors);
    }
    return visitors;
}

void visitors_close(struct visitors *visitors)
{
    if (visitors == NULL) {
        return;
    }
    if (visitors->is_changed) {
        save(visitors, 0);
    }
    gallery_unref(visitors->gallery);
    free(visitors->vectors);
    free(visitors->entries);
    free(visitors->path);
    free(visitors);
}

static void change_gallery(struct visitors *visitors, struct gallery *gallery)
{
    bool is_lost = visitors->gallery != NULL ? has_lost(visitors->gallery, gallery)
                                             : strcmp(visitors->head.gallery, gallery->blob) != 0;
    struct gallery *before = visitors->gallery;
    visitors->gallery = gallery_ref(gallery);
    gallery_unref(before);
    (void)snprintf(visitors->head.gallery, sizeof visitors->head.gallery, "%s", gallery->blob);
    visitors->is_changed = true;
    if (is_lost) {
        forget_all(visitors);
    } else {
        forget_known(visitors);
    }
}

void visitors_fit(struct visitors *visitors, bool is_on, struct gallery *gallery, int64_t time_ms)
{
    visitors->is_on = is_on && gallery != NULL;
    if (!visitors->is_on) {
        forget_all(visitors);
        gallery_unref(visitors->gallery);
        visitors->gallery = NULL;
    } else if (visitors->gallery != gallery) {
        change_gallery(visitors, gallery);
    }
    forget_old(visitors, time_ms);
    bool is_due = time_ms - visitors->saved_ms >= VISITORS_SAVE_MS ||
                  time_ms < visitors->saved_ms || visitors->head.n == 0;
    if (visitors->is_changed && is_due) {
        save(visitors, time_ms);
    }
}

/* Embeddings of another model, or of another length, cannot be compared with. */
static void fit_embedder(struct visitors *visitors, const struct visitor_look *look)
{
    struct head *head = &visitors->head;
    if (head->dim == look->dim && strcmp(head->embedder, look->embedder) == 0) {
        return;
    }
    if (visitors->vectors != NULL) {
        forget_all(visitors);
    }
    free(visitors->vectors);
    visitors->vectors = weir_xalloc(VISITORS_MAX * look->dim * sizeof *visitors->vectors);
    head->dim = look->dim;
    (void)snprintf(head->embedder, sizeof head->embedder, "%s", look->embedder);
}

/* The visitor whom it is most like; VISITORS_MAX: nobody. */
static size_t find(const struct visitors *visitors, const float *embedding)
{
    double best = visitors->gallery->calibration.threshold;
    size_t found = VISITORS_MAX;
    for (size_t i = 0; i < visitors->head.n; i++) {
        double score = match_cosine(vector_of(visitors, i), embedding, visitors->head.dim);
        if (score >= best) {
            best = score;
            found = i;
        }
    }
    return found;
}

/* What is kept is the mean direction of what was seen: no single bad frame stands for the person. */
static void blend(float *vector, const float *embedding, size_t dim, int64_t times)
{
    double squares = 0;
    for (size_t d = 0; d < dim; d++) {
        vector[d] = vector[d] * (float)times + embedding[d];
        squares += (double)vector[d] * (double)vector[d];
    }
    for (size_t d = 0; d < dim; d++) {
        vector[d] = (float)(vector[d] / sqrt(squares));
    }
}

static size_t add(struct visitors *visitors, const struct visitor_look *look)
{
    if (visitors->head.n == VISITORS_MAX) {
        size_t i_oldest = 0;
        for (size_t i = 1; i < VISITORS_MAX; i++) {
            bool is_older = visitors->entries[i].last_ms < visitors->entries[i_oldest].last_ms;
            i_oldest = is_older ? i : i_oldest;
        }
        forget(visitors, i_oldest);
    }
    size_t i = visitors->head.n++;
    visitors->entries[i] = (struct entry){.told = {.times = 1, .first_ms = look->first_ms}};
    weir_uuid_make(visitors->entries[i].told.id);
    memcpy(vector_of(visitors, i), look->embedding, look->dim * sizeof(float));
    return i;
}

void visitors_see(struct visitors *visitors, const struct visitor_look *look, struct visitor *out)
{
    *out = (struct visitor){0};
    if (!visitors->is_on || look->embedding == NULL || look->dim > DIM_MAX ||
        !is_unit(look->embedding, look->dim) || isnan(visitors->gallery->calibration.threshold)) {
        return;
    }
    fit_embedder(visitors, look);
    size_t i = find(visitors, look->embedding);
    if (i < VISITORS_MAX) {
        struct entry *entry = &visitors->entries[i];
        blend(vector_of(visitors, i), look->embedding, look->dim, entry->told.times);
        entry->told.times += look->first_ms - entry->last_ms >= VISITORS_PAUSE_MS;
    } else {
        i = add(visitors, look);
    }
    struct entry *entry = &visitors->entries[i];
    entry->last_ms = WEIR_MAX(entry->last_ms, look->last_ms);
    *out = entry->told;
    visitors->is_changed = true;
}
