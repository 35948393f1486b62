/*
 * Threads claim runs of slots in the order of the stream, so a batch fills from the front and
 * batches complete nearly in order. All state is under one mutex, held for a claim and for a
 * completion (once per CLAIM_SLOTS pictures); pictures are decoded outside of it, into slots nobody
 * else touches.
 */
#include "data/loader.h"

#include "base/clock.h"
#include "base/log.h"
#include "data/dataset_private.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define MAX_THREADS    64
#define MAX_DEPTH      64
#define DEFAULT_DEPTH  3
#define CLAIM_SLOTS    4
#define MAX_RING_BYTES ((size_t)64 << 30)

struct ring_batch {
    struct weir_batch batch;
    uint32_t n_done;    /**< Slots finished. */
    uint32_t i_failed;  /**< First slot that failed; UINT32_MAX if none. */
    weir_status status; /**< Of that slot. */
    struct weir_error err;
};

struct weir_loader {
    struct weir_dataset *dataset;
    struct weir_loader_config config;
    struct weir_order order;
    uint32_t share_first, share_n; /**< This rank's slots of a global batch. */
    uint32_t n_slots;

    pthread_mutex_t mutex;
    pthread_cond_t can_claim, is_ready;
    /* Down to the consumer's own: under the mutex (the arrays' content: see above). */
    struct ring_batch *ring; /**< depth batches ahead and the one that the caller holds. */
    uint32_t n_ring;
    float *images; /**< One allocation for the whole ring, as labels and samples. */
    int32_t *labels;
    uint64_t *samples;
    uint64_t i_claimed;       /**< Number of the batch whose slots are being claimed. */
    uint32_t slot;            /**< Its next slot. */
    uint64_t i_consumed;      /**< Number of the batch that the caller gets next, or holds. */
    bool is_held;             /**< The caller holds batch i_consumed. */
    struct weir_place cursor; /**< Of batch i_claimed; normalised. */
    bool is_stopping;
    uint8_t *damaged; /**< One bit per sample. */
    size_t n_damaged;

    /* The consumer's own. */
    weir_status failed; /**< Sticky. */
    struct weir_error failed_err;
    uint64_t stall_ns;
    pthread_t threads[MAX_THREADS];
    unsigned n_started;
    float *scratch; /**< For n_threads 0. */
};

/** A run of slots to fill. */
struct claim {
    struct ring_batch *entry;
    uint32_t first, n;
};

static bool is_at_end(const struct weir_loader *loader)
{
    return loader->config.n_epochs > 0 && loader->cursor.epoch >= loader->config.n_epochs;
}

/** Take the next run of slots. Mutex held. @return false if the ring is full or the stream ended.
 */
static bool claim_slots(struct weir_loader *loader, struct claim *out)
{
    if (is_at_end(loader) || loader->i_claimed - loader->i_consumed >= loader->n_ring) {
        return false;
    }
    struct ring_batch *entry = &loader->ring[loader->i_claimed % loader->n_ring];
    if (loader->slot == 0) {
        entry->n_done = 0;
        entry->i_failed = UINT32_MAX;
        entry->status = WEIR_OK;
        entry->batch.place = loader->cursor;
        entry->batch.next = weir_order_after(&loader->order, loader->cursor);
    }
    out->entry = entry;
    out->first = loader->slot;
    out->n = WEIR_MIN((uint32_t)CLAIM_SLOTS, loader->n_slots - loader->slot);
    loader->slot += out->n;
    if (loader->slot == loader->n_slots) {
        loader->cursor = entry->batch.next;
        loader->slot = 0;
        loader->i_claimed++;
    }
    return true;
}

/* Has a rank of the gang met this file before `place`? It then has told of it: all ranks know the
 * whole order. A file may be several samples (mirrored ones). */
static bool is_told_by_gang(const struct weir_loader *loader, uint64_t sample,
                            struct weir_place place)
{
    uint64_t n_files = dataset_n_files(loader->dataset);
    for (uint64_t other = sample % n_files; other < loader->order.n_samples; other += n_files) {
        if (weir_order_has_shown(&loader->order, loader->config.start, place, other)) {
            return true;
        }
    }
    return false;
}

/* `place`: of the sample itself. */
static void report_damage(struct weir_loader *loader, uint64_t sample, struct weir_place place,
                          const struct weir_error *err)
{
    (void)pthread_mutex_lock(&loader->mutex);
    uint8_t bit = (uint8_t)(1u << sample % 8);
    bool is_new = (loader->damaged[sample / 8] & bit) == 0;
    loader->damaged[sample / 8] |= bit;
    loader->n_damaged += is_new;
    (void)pthread_mutex_unlock(&loader->mutex);
    if (is_new && !is_told_by_gang(loader, sample, place) &&
        dataset_tell_once(loader->dataset, sample)) {
        char name[WEIR_SAMPLE_NAME_BYTES];
        weir_log(WEIR_LOG_WARN, "sample_damaged",
                 WEIR_KV_STR("sample", weir_dataset_sample_name(loader->dataset, sample, name)),
                 WEIR_KV_STR("error", err->message));
    }
}

/** Sample of this rank's slot, or UINT64_MAX for an empty one. */
static uint64_t sample_of_slot(const struct weir_loader *loader, struct weir_place place,
                               uint32_t slot)
{
    uint64_t position = place.position + loader->share_first + slot;
    if (slot >= loader->share_n || position >= loader->order.n_samples) {
        return UINT64_MAX;
    }
    return weir_order_sample(&loader->order, place.epoch, position);
}

/** Floats of one picture in a batch. */
static size_t tensor_len(const struct weir_loader *loader)
{
    const struct weir_input *input = &loader->config.input;
    return (size_t)input->c * (size_t)input->h * (size_t)input->w;
}

/** Decode one slot. @return NOMEM, or the file's error if damage is fatal. */
static weir_status fill_slot(struct weir_loader *loader, const struct ring_batch *entry,
                             uint32_t slot, float *scratch, struct weir_error *err)
{
    size_t len = tensor_len(loader);
    float *tensor = entry->batch.images + slot * len;
    uint64_t sample = sample_of_slot(loader, entry->batch.place, slot);
    entry->batch.samples[slot] = sample;
    entry->batch.labels[slot] = -1;
    if (sample == UINT64_MAX) {
        memset(tensor, 0, len * sizeof *tensor);
        return WEIR_OK;
    }
    struct weir_augment_key key = {loader->config.seed, entry->batch.place.epoch, sample};
    struct weir_image image = {0};
    weir_status status = weir_dataset_read(loader->dataset, sample, &image, err);
    if (status == WEIR_OK) {
        status = weir_augment_apply(loader->config.augment, key, &image, &loader->config.input,
                                    scratch, tensor, err);
        weir_image_fini(&image);
    }
    if (status == WEIR_OK) {
        entry->batch.labels[slot] = weir_dataset_label(loader->dataset, sample);
        return WEIR_OK;
    }
    memset(tensor, 0, len * sizeof *tensor);
    if (status == WEIR_ERR_NOMEM) {
        return status;
    }
    struct weir_place own = {entry->batch.place.epoch,
                             entry->batch.place.position + loader->share_first + slot};
    report_damage(loader, sample, own, err);
    return loader->config.on_damage == WEIR_ON_DAMAGE_FATAL ? status : WEIR_OK;
}

/** Fill a run and account for it. Mutex not held. */
static void fill_slots(struct weir_loader *loader, const struct claim *claim, float *scratch)
{
    weir_status failed = WEIR_OK;
    uint32_t i_failed = UINT32_MAX;
    struct weir_error failed_err = {0};
    for (uint32_t i = claim->first; i < claim->first + claim->n; i++) {
        struct weir_error err = {0};
        weir_status status = fill_slot(loader, claim->entry, i, scratch, &err);
        if (status != WEIR_OK && failed == WEIR_OK) {
            failed = status;
            failed_err = err;
            i_failed = i;
        }
    }
    (void)pthread_mutex_lock(&loader->mutex);
    struct ring_batch *entry = claim->entry;
    if (i_failed < entry->i_failed) { // the first slot's error, whichever thread came first
        entry->i_failed = i_failed;
        entry->status = failed;
        entry->err = failed_err;
    }
    entry->n_done += claim->n;
    if (entry->n_done == loader->n_slots) {
        (void)pthread_cond_signal(&loader->is_ready);
    }
    (void)pthread_mutex_unlock(&loader->mutex);
}

struct thread_start {
    struct weir_loader *loader;
    float *scratch;
};

static void *run_thread(void *context)
{
    struct thread_start start = *(struct thread_start *)context;
    free(context);
    struct weir_loader *loader = start.loader;
    for (;;) {
        struct claim claim = {0};
        (void)pthread_mutex_lock(&loader->mutex);
        while (!loader->is_stopping && !claim_slots(loader, &claim)) {
            (void)pthread_cond_wait(&loader->can_claim, &loader->mutex);
        }
        bool is_stopping = loader->is_stopping;
        (void)pthread_mutex_unlock(&loader->mutex);
        if (is_stopping) {
            break;
        }
        fill_slots(loader, &claim, start.scratch);
    }
    free(start.scratch);
    return NULL;
}

static weir_status check_config(const struct weir_dataset *dataset,
                                const struct weir_loader_config *config, struct weir_error *err)
{
    uint32_t size = WEIR_MAX(config->size, 1u);
    WEIR_TRY(weir_input_check(&config->input, err));
    if (config->rank >= size) {
        return weir_error_set(err, WEIR_ERR_INVALID, "rank %u of %u workers", config->rank, size);
    }
    if (config->batch < size) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "a global batch of %u leaves some of %u workers without a sample",
                              config->batch, size);
    }
    if (config->n_threads > MAX_THREADS || config->depth > MAX_DEPTH) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%u threads, %u batches ahead: at most %d and %d", config->n_threads,
                              config->depth, MAX_THREADS, MAX_DEPTH);
    }
    if (config->start.position > weir_dataset_n_samples(dataset)) {
        return weir_error_set(
            err, WEIR_ERR_INVALID, "start at position %llu of an epoch of %zu samples",
            (unsigned long long)config->start.position, weir_dataset_n_samples(dataset));
    }
    if (weir_augment_name(config->augment) == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "no augmentation has the number %d",
                              (int)config->augment);
    }
    return WEIR_OK;
}

static weir_status allocate(struct weir_loader *loader, struct weir_error *err)
{
    size_t len = tensor_len(loader);
    size_t n = (size_t)loader->n_ring * loader->n_slots;
    if (len * sizeof(float) > MAX_RING_BYTES / n) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "%u batches of %u pictures of %zu values are "
                              "more than 64 GiB",
                              loader->n_ring, loader->n_slots, len);
    }
    size_t image_bytes = (n * len * sizeof(float) + 63) / 64 * 64;
    loader->ring = calloc(loader->n_ring, sizeof *loader->ring);
    loader->images = aligned_alloc(64, image_bytes);
    loader->labels = calloc(n, sizeof *loader->labels);
    loader->samples = calloc(n, sizeof *loader->samples);
    loader->damaged = calloc(weir_dataset_n_samples(loader->dataset) / 8 + 1, 1);
    loader->scratch = malloc(weir_augment_scratch_len(&loader->config.input) * sizeof(float));
    if (loader->ring == NULL || loader->images == NULL || loader->labels == NULL ||
        loader->samples == NULL || loader->damaged == NULL || loader->scratch == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for %zu bytes of batches",
                              image_bytes);
    }
    for (uint32_t i = 0; i < loader->n_ring; i++) {
        size_t first = (size_t)i * loader->n_slots;
        loader->ring[i].batch = (struct weir_batch){.images = loader->images + first * len,
                                                    .labels = loader->labels + first,
                                                    .samples = loader->samples + first,
                                                    .n_slots = loader->n_slots};
    }
    return WEIR_OK;
}

/** Threads with all signals blocked: signals are the program's business. */
static weir_status start_threads(struct weir_loader *loader, struct weir_error *err)
{
    size_t bytes = weir_augment_scratch_len(&loader->config.input) * sizeof(float);
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    weir_status status = WEIR_OK;
    while (status == WEIR_OK && loader->n_started < loader->config.n_threads) {
        struct thread_start *start = malloc(sizeof *start);
        float *scratch = malloc(bytes);
        if (start == NULL || scratch == NULL) {
            free(start);
            free(scratch);
            status = weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a loader thread");
            break;
        }
        *start = (struct thread_start){loader, scratch};
        int code = pthread_create(&loader->threads[loader->n_started], NULL, run_thread, start);
        if (code != 0) {
            free(start);
            free(scratch);
            (void)weir_error_set_errno(err, code, "cannot start loader thread %u",
                                       loader->n_started);
            status = WEIR_ERR_IO;
            break;
        }
        loader->n_started++;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

weir_status weir_loader_create(struct weir_dataset *dataset,
                               const struct weir_loader_config *config, struct weir_loader **out,
                               struct weir_error *err)
{
    WEIR_TRY(check_config(dataset, config, err));
    struct weir_order order = {.n_samples = weir_dataset_n_samples(dataset),
                               .seed = config->seed,
                               .batch = config->batch,
                               .shuffle = config->shuffle,
                               .tail = config->tail};
    WEIR_TRY(weir_order_check(&order, err));
    struct weir_loader *loader = calloc(1, sizeof *loader);
    if (loader == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a loader");
    }
    loader->dataset = dataset;
    loader->config = *config;
    loader->config.size = WEIR_MAX(config->size, 1u);
    loader->order = order;
    loader->cursor = weir_order_normalize(&order, config->start);
    loader->n_slots = weir_order_max_share(config->batch, loader->config.size);
    loader->n_ring = (config->depth == 0 ? DEFAULT_DEPTH : config->depth) + 1;
    weir_order_share(config->batch, config->rank, loader->config.size, &loader->share_first,
                     &loader->share_n);
    (void)pthread_mutex_init(&loader->mutex, NULL);
    (void)pthread_cond_init(&loader->can_claim, NULL);
    (void)pthread_cond_init(&loader->is_ready, NULL);
    weir_status status = WEIR_OK;
    WEIR_TRY_GOTO(allocate(loader, err), status, destroy);
    WEIR_TRY_GOTO(start_threads(loader, err), status, destroy);
    *out = loader;
    return WEIR_OK;
destroy:
    weir_loader_destroy(loader);
    return status;
}

void weir_loader_destroy(struct weir_loader *loader)
{
    if (loader == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&loader->mutex);
    loader->is_stopping = true;
    (void)pthread_cond_broadcast(&loader->can_claim);
    (void)pthread_mutex_unlock(&loader->mutex);
    for (unsigned i = 0; i < loader->n_started; i++) {
        (void)pthread_join(loader->threads[i], NULL);
    }
    (void)pthread_cond_destroy(&loader->can_claim);
    (void)pthread_cond_destroy(&loader->is_ready);
    (void)pthread_mutex_destroy(&loader->mutex);
    free(loader->ring);
    free(loader->images);
    free(loader->labels);
    free(loader->samples);
    free(loader->damaged);
    free(loader->scratch);
    free(loader);
}

/** Give the held batch back. Mutex held. */
static void release_held(struct weir_loader *loader)
{
    if (loader->is_held) {
        loader->is_held = false;
        loader->i_consumed++;
        (void)pthread_cond_broadcast(&loader->can_claim);
    }
}

/** Wait for batch i_consumed, or make it. Mutex held. NULL at the end of the stream. */
static struct ring_batch *await_batch(struct weir_loader *loader)
{
    struct ring_batch *entry = &loader->ring[loader->i_consumed % loader->n_ring];
    for (;;) {
        if (loader->i_claimed > loader->i_consumed && entry->n_done == loader->n_slots) {
            return entry;
        }
        if (loader->i_claimed == loader->i_consumed && is_at_end(loader)) {
            return NULL;
        }
        struct claim claim;
        if (loader->n_started > 0) {
            (void)pthread_cond_wait(&loader->is_ready, &loader->mutex);
        } else if (claim_slots(loader, &claim)) {
            (void)pthread_mutex_unlock(&loader->mutex);
            fill_slots(loader, &claim, loader->scratch);
            (void)pthread_mutex_lock(&loader->mutex);
        }
    }
}

weir_status weir_loader_next(struct weir_loader *loader, struct weir_batch *out,
                             struct weir_error *err)
{
    if (loader->failed != WEIR_OK) {
        return weir_error_set(err, loader->failed, "%s", loader->failed_err.message);
    }
    uint64_t start_ns = weir_mono_ns();
    (void)pthread_mutex_lock(&loader->mutex);
    release_held(loader);
    struct ring_batch *entry = await_batch(loader);
    loader->is_held = entry != NULL;
    (void)pthread_mutex_unlock(&loader->mutex);
    loader->stall_ns += weir_mono_ns() - start_ns;
    if (entry == NULL) {
        loader->failed = weir_error_set(&loader->failed_err, WEIR_ERR_END,
                                        "the data of %llu epochs has been read",
                                        (unsigned long long)loader->config.n_epochs);
    } else if (entry->status != WEIR_OK) {
        loader->failed = entry->status;
        loader->failed_err = entry->err;
    }
    if (loader->failed != WEIR_OK) {
        return weir_error_set(err, loader->failed, "%s", loader->failed_err.message);
    }
    struct weir_batch batch = entry->batch;
    for (uint32_t i = 0; i < batch.n_slots; i++) {
        batch.n_valid += batch.labels[i] >= 0;
    }
    *out = batch;
    return WEIR_OK;
}

size_t weir_loader_damaged(struct weir_loader *loader, uint64_t *out_samples, size_t max)
{
    (void)pthread_mutex_lock(&loader->mutex);
    size_t n_found = loader->n_damaged, n_written = 0;
    for (uint64_t i = 0; n_written < WEIR_MIN(n_found, max) && i < loader->order.n_samples; i++) {
        if ((loader->damaged[i / 8] >> i % 8 & 1) != 0) {
            out_samples[n_written++] = i;
        }
    }
    (void)pthread_mutex_unlock(&loader->mutex);
    return n_found;
}
