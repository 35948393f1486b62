#include "store/live.h"

#include "base/hash.h"
#include "store/store_private.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 4096 /* a power of two */

static const struct live_column {
    const char *table, *column, *key; /* key: SQL of the row's */
    enum weir_live_noun noun;
    int value;
    bool is_integer;
} columns[] = {
    {"nodes", "last_seen_ms", "name", WEIR_LIVE_NODES, WEIR_LIVE_LAST_SEEN, true},
    {"nodes", "disk_free_bytes", "name", WEIR_LIVE_NODES, WEIR_LIVE_DISK_FREE, true},
    {"devices", "temperature_c", "node || '/' || id", WEIR_LIVE_DEVICES, WEIR_LIVE_TEMPERATURE,
     false},
    {"devices", "power_w", "node || '/' || id", WEIR_LIVE_DEVICES, WEIR_LIVE_POWER, false},
    {"devices", "utilisation_pct", "node || '/' || id", WEIR_LIVE_DEVICES, WEIR_LIVE_UTILISATION,
     false},
    {"devices", "memory_used_bytes", "node || '/' || id", WEIR_LIVE_DEVICES, WEIR_LIVE_MEMORY_USED,
     true},
    {"devices", "ecc_errors", "node || '/' || id", WEIR_LIVE_DEVICES, WEIR_LIVE_ECC_ERRORS, true},
};

struct row {
    enum weir_live_noun noun;
    struct weir_live_row live;
    struct row *next; /* in its bucket */
};

struct live {
    pthread_mutex_t lock; /* of all below */
    struct row *buckets[BUCKETS];
};

struct live *live_create(void)
{
    struct live *live = calloc(1, sizeof *live);
    if (live != NULL) {
        pthread_mutex_init(&live->lock, NULL);
    }
    return live;
}

static void free_row(struct row *row)
{
    free(row->live.key);
    free(row);
}

void live_destroy(struct live *live)
{
    for (size_t i = 0; live != NULL && i < BUCKETS; i++) {
        while (live->buckets[i] != NULL) {
            struct row *row = live->buckets[i];
            live->buckets[i] = row->next;
            free_row(row);
        }
    }
    if (live != NULL) {
        pthread_mutex_destroy(&live->lock);
        free(live);
    }
}

/* Where the row hangs, or would. Lock held. */
static struct row **slot_of(struct live *live, enum weir_live_noun noun, const char *key)
{
    uint64_t hash = weir_hash_text(WEIR_HASH_BEGIN + (uint64_t)noun, key);
    struct row **slot = &live->buckets[(hash ^ hash >> 32) % BUCKETS];
    while (*slot != NULL && ((*slot)->noun != noun || strcmp((*slot)->live.key, key) != 0)) {
        slot = &(*slot)->next;
    }
    return slot;
}

void weir_live_put(struct weir_store *store, enum weir_live_noun noun, const char *key,
                   const double values[WEIR_LIVE_VALUES_MAX], unsigned mask)
{
    struct live *live = store_live(store);
    pthread_mutex_lock(&live->lock);
    struct row **slot = slot_of(live, noun, key);
    if (*slot == NULL) {
        *slot = weir_xalloc(sizeof **slot);
        **slot = (struct row){.noun = noun, .live = {.key = weir_xstrdup(key)}};
    }
    for (int i = 0; i < WEIR_LIVE_VALUES_MAX; i++) {
        if ((mask >> i & 1) != 0) {
            (*slot)->live.values[i] = values[i];
        }
    }
    (*slot)->live.mask |= mask;
    pthread_mutex_unlock(&live->lock);
}

static bool find(struct live *live, enum weir_live_noun noun, const char *key, int value,
                 double *out)
{
    pthread_mutex_lock(&live->lock);
    const struct row *row = *slot_of(live, noun, key);
    bool is_there = row != NULL && (row->live.mask >> value & 1) != 0;
    if (is_there) {
        *out = row->live.values[value];
    }
    pthread_mutex_unlock(&live->lock);
    return is_there;
}

bool weir_live_get(struct weir_store *store, enum weir_live_noun noun, const char *key, int value,
                   double *out)
{
    return find(store_live(store), noun, key, value, out);
}

void weir_live_drop(struct weir_store *store, enum weir_live_noun noun, const char *key)
{
    struct live *live = store_live(store);
    size_t len = strlen(key);
    pthread_mutex_lock(&live->lock);
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct row **slot = &live->buckets[i]; *slot != NULL;) {
            struct row *row = *slot;
            bool is_its = row->noun == noun && strncmp(row->live.key, key, len) == 0 &&
                          (row->live.key[len] == '\0' || row->live.key[len] == '/');
            if (is_its) {
                *slot = row->next;
                free_row(row);
            } else {
                slot = &row->next;
            }
        }
    }
    pthread_mutex_unlock(&live->lock);
}

void weir_live_move(struct weir_store *store, int64_t by_ms)
{
    struct live *live = store_live(store);
    pthread_mutex_lock(&live->lock);
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct row *row = live->buckets[i]; row != NULL; row = row->next) {
            if (row->noun == WEIR_LIVE_NODES) {
                row->live.values[WEIR_LIVE_LAST_SEEN] += (double)by_ms;
            }
        }
    }
    pthread_mutex_unlock(&live->lock);
}

void weir_live_list(struct weir_store *store, enum weir_live_noun noun, struct weir_arena *arena,
                    struct weir_live_row **out, size_t *out_n)
{
    struct live *live = store_live(store);
    size_t n = 0, i_row = 0;
    pthread_mutex_lock(&live->lock);
    for (size_t i = 0; i < BUCKETS; i++) {
        for (const struct row *row = live->buckets[i]; row != NULL; row = row->next) {
            n += row->noun == noun;
        }
    }
    struct weir_live_row *rows = WEIR_ARENA_ARRAY(arena, n + 1, struct weir_live_row);
    for (size_t i = 0; i < BUCKETS; i++) {
        for (const struct row *row = live->buckets[i]; row != NULL; row = row->next) {
            if (row->noun == noun) {
                rows[i_row] = row->live;
                rows[i_row++].key = weir_arena_strdup(arena, row->live.key);
            }
        }
    }
    pthread_mutex_unlock(&live->lock);
    *out = rows;
    *out_n = n;
}

/* ---- in SQL ---------------------------------------------------------------------------------- */

static const struct live_column *find_column(const char *table, size_t table_len,
                                             const char *column)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(columns); i++) {
        if (strlen(columns[i].table) == table_len &&
            strncmp(columns[i].table, table, table_len) == 0 &&
            strcmp(columns[i].column, column) == 0) {
            return &columns[i];
        }
    }
    return NULL;
}

enum live_answer live_answer(struct live *live, const char *name, const char *key, double *out)
{
    const char *dot = name != NULL ? strchr(name, '.') : NULL;
    const struct live_column *column =
        dot != NULL ? find_column(name, (size_t)(dot - name), dot + 1) : NULL;
    if (column == NULL) {
        return LIVE_UNKNOWN;
    }
    if (key == NULL || !find(live, column->noun, key, column->value, out)) {
        return LIVE_STORED;
    }
    return isnan(*out) ? LIVE_NULL : column->is_integer ? LIVE_INT : LIVE_F64;
}

bool live_is_column(const char *table, const char *column, const char **out_key)
{
    const struct live_column *found = find_column(table, strlen(table), column);
    if (found != NULL) {
        *out_key = found->key;
    }
    return found != NULL;
}
