#include "gateway/callers.h"

#include "base/arena.h"

#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define N_SETS   512
#define SET_SIZE 4
#define ID_BYTES 32

struct entry {
    unsigned char id[ID_BYTES];
    struct caller *caller; /* NULL: free */
    uint64_t generation;
    int64_t until_ms;
};

struct callers {
    unsigned char key[crypto_generichash_KEYBYTES];
    atomic_uint_fast64_t generation;
    pthread_mutex_t lock;
    struct entry sets[N_SETS][SET_SIZE];
    size_t next; /* which of a full set makes room */
};

struct callers *callers_create(void)
{
    struct callers *callers = weir_xalloc(sizeof *callers);
    memset(callers, 0, sizeof *callers);
    crypto_generichash_keygen(callers->key);
    pthread_mutex_init(&callers->lock, NULL);
    return callers;
}

void callers_destroy(struct callers *callers)
{
    if (callers == NULL) {
        return;
    }
    for (size_t i = 0; i < N_SETS; i++) {
        for (size_t j = 0; j < SET_SIZE; j++) {
            caller_unref(callers->sets[i][j].caller);
        }
    }
    pthread_mutex_destroy(&callers->lock);
    free(callers);
}

struct caller *caller_make(const struct weir_gateway_caller *from)
{
    struct caller *caller = weir_xalloc(sizeof *caller);
    *caller = (struct caller){.is_all = from->is_all, .n_projects = from->n_projects};
    atomic_init(&caller->n_refs, 1);
    caller->projects = weir_xalloc((from->n_projects + 1) * sizeof *caller->projects);
    for (size_t i = 0; i < from->n_projects; i++) {
        caller->projects[i] = weir_xstrdup(from->projects[i]);
    }
    return caller;
}

struct caller *caller_unref(struct caller *caller)
{
    if (caller != NULL && atomic_fetch_sub(&caller->n_refs, 1) == 1) {
        for (size_t i = 0; i < caller->n_projects; i++) {
            free(caller->projects[i]);
        }
        free(caller->projects);
        free(caller);
    }
    return NULL;
}

bool caller_may(const struct caller *caller, const char *project)
{
    for (size_t i = 0; i < caller->n_projects && !caller->is_all; i++) {
        if (strcmp(caller->projects[i], project) == 0) {
            return true;
        }
    }
    return caller->is_all;
}

static struct entry *set_of(struct callers *callers, const char *token, unsigned char id[ID_BYTES])
{
    (void)crypto_generichash(id, ID_BYTES, (const unsigned char *)token, strlen(token),
                             callers->key, sizeof callers->key);
    uint32_t bits;
    memcpy(&bits, id, sizeof bits);
    return callers->sets[bits % N_SETS];
}

struct caller *callers_find(struct callers *callers, const char *token, int64_t now_ms,
                            uint64_t *out_generation)
{
    unsigned char id[ID_BYTES];
    struct entry *set = set_of(callers, token, id);
    uint64_t generation = atomic_load(&callers->generation);
    struct caller *found = NULL;
    pthread_mutex_lock(&callers->lock);
    for (size_t i = 0; i < SET_SIZE && found == NULL; i++) {
        if (set[i].caller != NULL && set[i].generation == generation && set[i].until_ms > now_ms &&
            memcmp(set[i].id, id, ID_BYTES) == 0) {
            found = set[i].caller;
            (void)atomic_fetch_add(&found->n_refs, 1);
        }
    }
    pthread_mutex_unlock(&callers->lock);
    *out_generation = generation;
    return found;
}

void callers_remember(struct callers *callers, const char *token, struct caller *caller,
                      uint64_t generation, int64_t until_ms)
{
    unsigned char id[ID_BYTES];
    struct entry *set = set_of(callers, token, id);
    pthread_mutex_lock(&callers->lock);
    struct entry *place = NULL;
    for (size_t i = 0; i < SET_SIZE; i++) {
        bool is_it = set[i].caller != NULL && memcmp(set[i].id, id, ID_BYTES) == 0;
        bool is_free = set[i].caller == NULL || set[i].generation != generation;
        if (is_it || (is_free && place == NULL)) {
            place = &set[i];
        }
        if (is_it) {
            break;
        }
    }
    if (place == NULL) {
        place = &set[callers->next++ % SET_SIZE];
    }
    caller_unref(place->caller);
    (void)atomic_fetch_add(&caller->n_refs, 1);
    *place = (struct entry){.caller = caller, .generation = generation, .until_ms = until_ms};
    memcpy(place->id, id, ID_BYTES);
    pthread_mutex_unlock(&callers->lock);
}

void callers_forget(struct callers *callers)
{
    (void)atomic_fetch_add(&callers->generation, 1);
}
