/** Inside of the figures: the counters. The gateway's thread and the mirror's write, all may read. */
#ifndef WEIR_GATEWAY_FIGURES_PRIVATE_H
#define WEIR_GATEWAY_FIGURES_PRIVATE_H

#include "gateway/differed.h"
#include "gateway/figures.h"
#include "gateway/table.h"

#include <pthread.h>
#include <stdatomic.h>

#define FIGURES_EXACT_US 32
#define FIGURES_PARTS    16
#define FIGURES_OCTAVES  23 /* 2^5 .. 2^28 us: over 4 minutes */
#define FIGURES_BUCKETS  (FIGURES_EXACT_US + FIGURES_OCTAVES * FIGURES_PARTS)

/** Counted by its holders; the registry is one. */
struct figures {
    atomic_int n_refs;
    char *deployment, *project;
    int64_t version, made;

#define X(field, name, help) atomic_int_fast64_t field;
#include "gateway/figures.def"
#undef X
    atomic_int_fast64_t n_in_flight, n_held, sum_us, last_ms;
    atomic_int_fast64_t buckets[FIGURES_BUCKETS];
    atomic_int_fast64_t classes[WEIR_GATEWAY_BINS], scores[WEIR_GATEWAY_BINS];
    struct differed differed; /* a mirrored version's: what it answered otherwise */
    struct figures *next;     /* in the registry */
};

struct figures_registry {
    pthread_mutex_t lock;
    struct figures *head;
    int64_t n_made;
};

void figures_registry_init(struct figures_registry *registry);
void figures_registry_fini(struct figures_registry *registry);

/** Those of a deployment's version, made if they are not there; a reference for the caller. */
struct figures *figures_get(struct figures_registry *registry, const char *deployment,
                            const char *project, int64_t version);
struct figures *figures_unref(struct figures *figures);

/** Forget those of deployments and versions that the table has not. */
void figures_keep(struct figures_registry *registry, const struct weir_gateway_table *table);

static inline void figures_add(atomic_int_fast64_t *counter, int64_t n)
{
    (void)atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/** Count a time. */
void figures_add_us(struct figures *figures, int64_t us);

/** The bucket of a time, and the first time beyond a bucket. */
int figures_bucket(int64_t us);
int64_t figures_bucket_end(int bucket);

/** The time that `share` of the counted ones are at most; 0 if there is none. */
int64_t figures_quantile_us(const struct figures *figures, double share);

void figures_each(struct figures_registry *registry, weir_gateway_figures_fn fn, void *context);
bool figures_load(struct figures_registry *registry, const char *deployment,
                  struct weir_gateway_load *out);

/* prometheus.c */
void figures_prometheus(struct figures_registry *registry, struct weir_buf *out);

#endif
