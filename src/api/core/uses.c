#include "api/core/uses.h"

#include "base/arena.h"
#include "base/hash.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS  4096 /* a power of two */
#define USES_MAX 131072

struct known {
    char *node, *task;
    struct use_of_task use;
    int64_t mono_ms;
    struct known *next; /* in its bucket */
};

struct uses {
    pthread_mutex_t lock; /* of all below */
    struct known *buckets[BUCKETS];
    size_t n;
};

struct uses *uses_create(void)
{
    struct uses *uses = weir_xalloc(sizeof *uses);
    pthread_mutex_init(&uses->lock, NULL);
    return uses;
}

static void free_known(struct known *known)
{
    free(known->node);
    free(known->task);
    free(known);
}

void uses_destroy(struct uses *uses)
{
    if (uses == NULL) {
        return;
    }
    for (size_t i = 0; i < BUCKETS; i++) {
        while (uses->buckets[i] != NULL) {
            struct known *known = uses->buckets[i];
            uses->buckets[i] = known->next;
            free_known(known);
        }
    }
    pthread_mutex_destroy(&uses->lock);
    free(uses);
}

/* Where it hangs, or would; what is too old is freed on the way. Lock held. */
static struct known **slot_of(struct uses *uses, const char *node, const char *task,
                              int64_t mono_ms)
{
    uint64_t hash = weir_hash_text(weir_hash_text(WEIR_HASH_BEGIN, node), task);
    struct known **slot = &uses->buckets[(hash ^ hash >> 32) % BUCKETS];
    while (*slot != NULL) {
        struct known *known = *slot;
        if (mono_ms - known->mono_ms >= USES_KEPT_MS) {
            *slot = known->next;
            free_known(known);
            uses->n--;
        } else if (strcmp(known->task, task) == 0 && strcmp(known->node, node) == 0) {
            break;
        } else {
            slot = &known->next;
        }
    }
    return slot;
}

void uses_put(struct uses *uses, const char *node, const char *task, struct use_of_task use,
              int64_t mono_ms)
{
    pthread_mutex_lock(&uses->lock);
    struct known **slot = slot_of(uses, node, task, mono_ms);
    if (*slot == NULL && uses->n < USES_MAX) {
        *slot = weir_xalloc(sizeof **slot);
        **slot = (struct known){.node = weir_xstrdup(node), .task = weir_xstrdup(task)};
        uses->n++;
    }
    if (*slot != NULL) {
        (*slot)->use = use;
        (*slot)->mono_ms = mono_ms;
    }
    pthread_mutex_unlock(&uses->lock);
}

bool uses_get(struct uses *uses, const char *node, const char *task, int64_t mono_ms,
              struct use_of_task *out)
{
    pthread_mutex_lock(&uses->lock);
    const struct known *known = *slot_of(uses, node, task, mono_ms);
    if (known != NULL) {
        *out = known->use;
    }
    pthread_mutex_unlock(&uses->lock);
    return known != NULL;
}
