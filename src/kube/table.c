#include "kube/table.h"

#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

/* Where it is, or would be. */
static size_t place_of(const struct kube_table *table, const char *key, bool *out_is_there)
{
    size_t low = 0, high = table->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(table->entries[middle].key, key);
        if (order == 0) {
            *out_is_there = true;
            return middle;
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    *out_is_there = false;
    return low;
}

static void release_digest(const struct kube_table *table, void *digest)
{
    if (table->release == NULL || digest == NULL) {
        free(digest);
    } else {
        table->release(digest);
    }
}

static void release(const struct kube_table *table, struct kube_entry *entry)
{
    free(entry->key);
    release_digest(table, entry->digest);
}

void kube_table_put(struct kube_table *table, const char *key, void *digest, bool is_listed)
{
    bool is_there;
    size_t i = place_of(table, key, &is_there);
    if (is_there) {
        release_digest(table, table->entries[i].digest);
    } else {
        weir_xgrow(&table->entries, sizeof table->entries[0], table->n, &table->cap);
        memmove(&table->entries[i + 1], &table->entries[i],
                (table->n - i) * sizeof table->entries[0]);
        table->entries[i].key = weir_xstrdup(key);
        table->n++;
    }
    table->entries[i].digest = digest;
    table->entries[i].deleted_ms = 0;
    table->entries[i].is_listed = is_listed;
}

void kube_table_delete(struct kube_table *table, const char *key, void *digest, int64_t now_ms)
{
    bool is_there;
    size_t i = place_of(table, key, &is_there);
    if (digest != NULL) {
        kube_table_put(table, key, digest, true);
        i = place_of(table, key, &is_there);
        table->entries[i].deleted_ms = now_ms;
    } else if (is_there) {
        release(table, &table->entries[i]);
        table->n--;
        memmove(&table->entries[i], &table->entries[i + 1],
                (table->n - i) * sizeof table->entries[0]);
    }
}

/* Take out those for which it says so. */
static void sweep(struct kube_table *table, bool (*is_out)(const struct kube_entry *, int64_t),
                  int64_t time_ms)
{
    size_t n = 0;
    for (size_t i = 0; i < table->n; i++) {
        if (is_out(&table->entries[i], time_ms)) {
            release(table, &table->entries[i]);
        } else {
            table->entries[n++] = table->entries[i];
        }
    }
    table->n = n;
}

static bool is_unlisted(const struct kube_entry *entry, int64_t time_ms)
{
    (void)time_ms;
    return !entry->is_listed && entry->deleted_ms == 0;
}

static bool is_forgotten(const struct kube_entry *entry, int64_t time_ms)
{
    return entry->deleted_ms != 0 && entry->deleted_ms < time_ms;
}

void kube_table_begin_list(struct kube_table *table)
{
    for (size_t i = 0; i < table->n; i++) {
        table->entries[i].is_listed = false;
    }
}

void kube_table_end_list(struct kube_table *table, int64_t now_ms, bool keeps_deleted)
{
    for (size_t i = 0; keeps_deleted && i < table->n; i++) {
        struct kube_entry *entry = &table->entries[i];
        if (is_unlisted(entry, 0)) {
            entry->deleted_ms = now_ms;
        }
    }
    sweep(table, is_unlisted, 0);
}

void kube_table_forget(struct kube_table *table, int64_t before_ms)
{
    sweep(table, is_forgotten, before_ms);
}

void kube_table_fini(struct kube_table *table)
{
    for (size_t i = 0; i < table->n; i++) {
        release(table, &table->entries[i]);
    }
    free(table->entries);
    *table = (struct kube_table){0};
}
