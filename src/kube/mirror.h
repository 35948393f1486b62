/**
 * Mirror: what an API server has of one resource, kept up by a list and a watch on a thread of its own. It keeps what the caller
 * makes of each object, so that five thousand pods are a few megabytes.
 *
 * After a list the watch goes on from its version. When the watch breaks it goes on from the last version that it told
 * (bookmarks keep that young); when the API server has forgotten that version (410), all is listed again. Until the new list is whole
 * the old one stands.
 */
#ifndef WEIR_KUBE_MIRROR_H
#define WEIR_KUBE_MIRROR_H

#include "kube/client.h"

struct weir_kube_mirror;

struct weir_kube_mirror_config {
    const struct weir_kube_config *kube; /**< Copied. */
    const char *path;                    /**< "/api/v1/pods"; copied. */
    const char *query;                   /**< Selectors, escaped; NULL: none. Copied. */
    /** What is to be kept of an object. NULL: the object is not wanted. On the mirror's thread. */
    void *(*digest)(void *context, const json_t *object);
    void *digest_context;
    void (*release)(void *digest); /**< It is kept no more. On the mirror's thread. NULL: free(). */
    /** Something has changed. On the mirror's thread. May be NULL. */
    void (*changed)(void *context);
    void *changed_context;
    int64_t page; /**< Objects asked for at a time by a list; 0: 500. */
    /** So long objects that are deleted are still there, marked; 0: not at all. */
    int64_t deleted_ms;
};

weir_status weir_kube_mirror_start(const struct weir_kube_mirror_config *config,
                                   struct weir_kube_mirror **out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** End the thread, at once. NULL is accepted. */
void weir_kube_mirror_stop(struct weir_kube_mirror *mirror);

/** One object of a mirror. */
struct weir_kube_object {
    const char *key; /**< "NAMESPACE/NAME", or the name. */
    const void *digest;
    bool is_deleted; /**< It is gone, since a moment ago. */
};

/** Called for each object, under the mirror's lock. */
typedef void (*weir_kube_object_fn)(void *context, const struct weir_kube_object *object);

/**
 * Look at all objects, by key. Any thread. Waits for the first list, up to wait_ms.
 * @param stale_ms  How long ago the API server may have been heard at the most; 0: it does not matter.
 * @return UNAVAILABLE, with the last thing that went wrong, if there is no list yet, or it is too old; DENIED and
 *         NOT_FOUND as the API server says.
 */
weir_status weir_kube_mirror_look(struct weir_kube_mirror *mirror, int64_t wait_ms,
                                  int64_t stale_ms, weir_kube_object_fn fn, void *context,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** What it has done, for metrics and tests. */
struct weir_kube_mirror_stats {
    int64_t n_objects, n_lists, n_watches, n_events;
};

struct weir_kube_mirror_stats weir_kube_mirror_stats(struct weir_kube_mirror *mirror);

#endif
