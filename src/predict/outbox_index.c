#include "predict/outbox_index.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

weir_status outbox_index_init(struct outbox_index *index, size_t capacity)
{
    memset(index, 0, sizeof *index);
    index->capacity = capacity;
    index->n_buckets = 1;
    while (index->n_buckets < 2 * capacity) {
        index->n_buckets *= 2;
    }
    index->entries = calloc(capacity, sizeof *index->entries);
    index->buckets = calloc(index->n_buckets, sizeof *index->buckets);
    if (index->entries == NULL || index->buckets == NULL) {
        outbox_index_fini(index);
        return WEIR_ERR_NOMEM;
    }
    return WEIR_OK;
}

void outbox_index_fini(struct outbox_index *index)
{
    free(index->entries);
    free(index->buckets);
    memset(index, 0, sizeof *index);
}

/* With a finisher, because the buckets take the low bits. */
uint64_t outbox_hash(const char *key)
{
    uint64_t hash = weir_hash_text(WEIR_HASH_BEGIN, key);
    hash ^= hash >> 32;
    hash *= 0xd6e8feb86659fd93u;
    return hash ^ (hash >> 32);
}

static uint32_t *bucket_of(const struct outbox_index *index, uint64_t key)
{
    return &index->buckets[key & (index->n_buckets - 1)];
}

static void forget(struct outbox_index *index, uint32_t number)
{
    const struct outbox_index_entry *entry = &index->entries[number];
    uint32_t *link = bucket_of(index, entry->key);
    while (*link != number + 1) {
        link = &index->entries[*link - 1].next;
    }
    *link = entry->next;
}

void outbox_index_add(struct outbox_index *index, uint64_t key, uint64_t position,
                      uint32_t durable_us)
{
    uint32_t number = (uint32_t)(index->n_added % index->capacity);
    if (index->n_added >= index->capacity) {
        forget(index, number);
    }
    uint32_t *bucket = bucket_of(index, key);
    index->entries[number] = (struct outbox_index_entry){key, position, durable_us, *bucket};
    *bucket = number + 1;
    index->n_added++;
}

const struct outbox_index_entry *outbox_index_find(const struct outbox_index *index, uint64_t key)
{
    for (uint32_t at = *bucket_of(index, key); at != 0; at = index->entries[at - 1].next) {
        if (index->entries[at - 1].key == key) {
            return &index->entries[at - 1];
        }
    }
    return NULL;
}

bool outbox_index_oldest(const struct outbox_index *index, uint64_t *out_position)
{
    if (index->n_added == 0) {
        return false;
    }
    size_t number = index->n_added < index->capacity ? 0 : index->n_added % index->capacity;
    *out_position = index->entries[number].position;
    return true;
}
