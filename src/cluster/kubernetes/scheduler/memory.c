#include "cluster/kubernetes/scheduler/memory.h"

#include "base/hash.h"
#include "base/macros.h"

#include <string.h>

#define BUCKETS       64
#define RETRY_MS      ((int64_t)1000)
#define RETRY_MAX_MS  60000
#define RETRY_DOUBLED 6

static struct memory_item **make_buckets(size_t n)
{
    struct memory_item **buckets = weir_xalloc(n * sizeof(void *));
    memset(buckets, 0, n * sizeof(void *));
    return buckets;
}

void memory_init(struct memory *memory)
{
    *memory = (struct memory){.buckets = make_buckets(BUCKETS), .n_buckets = BUCKETS};
}

static void free_item(struct memory_item *item)
{
    free(item->key);
    free(item->node);
    free(item->group);
    free(item->trouble);
    free(item->holder);
    free(item->device);
    free(item->nominated);
    free(item->said);
    free(item->refused);
    free(item);
}

void memory_fini(struct memory *memory)
{
    memory_forget(memory, INT64_MAX);
    free(memory->buckets);
    *memory = (struct memory){0};
}

static size_t bucket_of(const char *key, size_t n_buckets)
{
    uint64_t hash = weir_hash_text(WEIR_HASH_BEGIN, key);
    return (size_t)(hash ^ hash >> 32) & (n_buckets - 1);
}

static void grow(struct memory *memory)
{
    size_t n = 2 * memory->n_buckets;
    struct memory_item **buckets = make_buckets(n);
    for (size_t i = 0; i < memory->n_buckets; i++) {
        struct memory_item *item = memory->buckets[i];
        while (item != NULL) {
            struct memory_item *next = item->next, **to = &buckets[bucket_of(item->key, n)];
            item->next = *to;
            *to = item;
            item = next;
        }
    }
    free(memory->buckets);
    memory->buckets = buckets;
    memory->n_buckets = n;
}

struct memory_item *memory_find(const struct memory *memory, const char *key)
{
    struct memory_item *item = memory->buckets[bucket_of(key, memory->n_buckets)];
    while (item != NULL && strcmp(item->key, key) != 0) {
        item = item->next;
    }
    return item;
}

struct memory_item *memory_of(struct memory *memory, const char *key)
{
    struct memory_item *item = memory_find(memory, key);
    if (item == NULL) {
        if (memory->n >= memory->n_buckets) {
            grow(memory);
        }
        struct memory_item **at = &memory->buckets[bucket_of(key, memory->n_buckets)];
        item = weir_xalloc(sizeof *item);
        *item = (struct memory_item){.key = weir_xstrdup(key), .next = *at};
        *at = item;
        memory->n++;
    }
    return item;
}

void memory_set(char **text, const char *to)
{
    char *copy = to != NULL ? weir_xstrdup(to) : NULL;
    free(*text);
    *text = copy;
}

void memory_let_go(struct memory_item *item)
{
    memory_set(&item->node, NULL);
    memory_set(&item->group, NULL);
    item->is_held = false;
}

void memory_trouble(struct memory_item *item, const char *trouble, int64_t now_ms)
{
    int64_t wait_ms = RETRY_MS << WEIR_MIN(item->n_troubles, (int64_t)RETRY_DOUBLED);
    memory_set(&item->trouble, trouble);
    item->n_troubles++;
    item->retry_ms = now_ms + WEIR_MIN(wait_ms, (int64_t)RETRY_MAX_MS);
}

void memory_forget(struct memory *memory, int64_t before)
{
    for (size_t i = 0; i < memory->n_buckets; i++) {
        struct memory_item **at = &memory->buckets[i];
        while (*at != NULL) {
            struct memory_item *item = *at;
            if (item->seen < before) {
                *at = item->next;
                memory->n--;
                free_item(item);
            } else {
                at = &item->next;
            }
        }
    }
}
