/** The objects of a mirror, by their keys. It is used under the mirror's lock. For the domain's own files. */
#ifndef WEIR_KUBE_TABLE_H
#define WEIR_KUBE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kube_entry {
    char *key;
    void *digest;
    int64_t deleted_ms; /**< Monotonic; 0: it is there. */
    bool is_listed;     /**< The list that is being read has it. */
};

/** Sorted by key. */
struct kube_table {
    struct kube_entry *entries;
    size_t n, cap;
    void (*release)(void *digest); /**< NULL: free(). */
};

/** Put, or replace, an object. Takes the digest. Cost: a search, and a move of what is behind it if it is new. */
void kube_table_put(struct kube_table *table, const char *key, void *digest, bool is_listed);

/** It is gone: taken out, or with `digest` (taken) kept and marked as deleted. */
void kube_table_delete(struct kube_table *table, const char *key, void *digest, int64_t now_ms);

/** A list begins: nothing is listed yet. */
void kube_table_begin_list(struct kube_table *table);

/** The list is whole: what it has not is gone. */
void kube_table_end_list(struct kube_table *table, int64_t now_ms, bool keeps_deleted);

/** Take out what was deleted before that. */
void kube_table_forget(struct kube_table *table, int64_t before_ms);

void kube_table_fini(struct kube_table *table);

#endif
