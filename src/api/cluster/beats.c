#include "api/cluster/beats.h"

#include "base/arena.h"
#include "base/hash.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 1024 /* a power of two */

struct beat {
    char *node;
    char digest[WEIR_SHA256_TEXT_BYTES]; /* "": none */
    int64_t mono_ms;
    struct beat *next;
};

struct beats {
    pthread_mutex_t lock; /* of all below */
    struct beat *buckets[BUCKETS];
};

struct beats *beats_create(void)
{
    struct beats *beats = weir_xalloc(sizeof *beats);
    pthread_mutex_init(&beats->lock, NULL);
    return beats;
}

void beats_destroy(struct beats *beats)
{
    if (beats == NULL) {
        return;
    }
    for (size_t i = 0; i < BUCKETS; i++) {
        while (beats->buckets[i] != NULL) {
            struct beat *beat = beats->buckets[i];
            beats->buckets[i] = beat->next;
            free(beat->node);
            free(beat);
        }
    }
    pthread_mutex_destroy(&beats->lock);
    free(beats);
}

static struct beat **slot_of(struct beats *beats, const char *node)
{
    uint64_t hash = weir_hash_text(WEIR_HASH_BEGIN, node);
    struct beat **slot = &beats->buckets[(hash ^ hash >> 32) % BUCKETS];
    while (*slot != NULL && strcmp((*slot)->node, node) != 0) {
        slot = &(*slot)->next;
    }
    return slot;
}

bool beats_has(struct beats *beats, const char *node, const char digest[WEIR_SHA256_TEXT_BYTES],
               int64_t mono_ms)
{
    pthread_mutex_lock(&beats->lock);
    const struct beat *beat = *slot_of(beats, node);
    bool has = beat != NULL && strcmp(beat->digest, digest) == 0 &&
               mono_ms - beat->mono_ms < BEATS_KEPT_MS;
    pthread_mutex_unlock(&beats->lock);
    return has;
}

void beats_keep(struct beats *beats, const char *node, const char digest[WEIR_SHA256_TEXT_BYTES],
                int64_t mono_ms)
{
    pthread_mutex_lock(&beats->lock);
    struct beat **slot = slot_of(beats, node);
    if (*slot == NULL) {
        *slot = weir_xalloc(sizeof **slot);
        (*slot)->node = weir_xstrdup(node);
    }
    memcpy((*slot)->digest, digest, sizeof(*slot)->digest);
    (*slot)->mono_ms = mono_ms;
    pthread_mutex_unlock(&beats->lock);
}

void beats_forget(struct beats *beats, const char *node)
{
    pthread_mutex_lock(&beats->lock);
    struct beat *beat = *slot_of(beats, node);
    if (beat != NULL) {
        beat->digest[0] = '\0';
    }
    pthread_mutex_unlock(&beats->lock);
}
