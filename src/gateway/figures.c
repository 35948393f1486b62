#include "gateway/figures_private.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

static int64_t get(const atomic_int_fast64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void figures_registry_init(struct figures_registry *registry)
{
    *registry = (struct figures_registry){.head = NULL};
    pthread_mutex_init(&registry->lock, NULL);
}

void figures_registry_fini(struct figures_registry *registry)
{
    while (registry->head != NULL) {
        struct figures *figures = registry->head;
        registry->head = figures->next;
        figures_unref(figures);
    }
    pthread_mutex_destroy(&registry->lock);
}

struct figures *figures_get(struct figures_registry *registry, const char *deployment,
                            const char *project, int64_t version)
{
    pthread_mutex_lock(&registry->lock);
    struct figures *figures = registry->head;
    while (figures != NULL &&
           (figures->version != version || strcmp(figures->deployment, deployment) != 0 ||
            strcmp(figures->project, project) != 0)) {
        figures = figures->next;
    }
    if (figures == NULL) {
        figures = weir_xalloc(sizeof *figures);
        memset(figures, 0, sizeof *figures);
        atomic_init(&figures->n_refs, 1);
        figures->deployment = weir_xstrdup(deployment);
        figures->project = weir_xstrdup(project);
        figures->version = version;
        figures->made = ++registry->n_made;
        differed_init(&figures->differed);
        figures->next = registry->head;
        registry->head = figures;
    }
    (void)atomic_fetch_add(&figures->n_refs, 1);
    pthread_mutex_unlock(&registry->lock);
    return figures;
}

struct figures *figures_unref(struct figures *figures)
{
    if (figures != NULL && atomic_fetch_sub(&figures->n_refs, 1) == 1) {
        free(figures->deployment);
        free(figures->project);
        differed_fini(&figures->differed);
        free(figures);
    }
    return NULL;
}

static bool is_in(const struct figures *figures, const struct weir_gateway_table *table)
{
    const struct weir_gateway_deployment *d = weir_gateway_table_find(table, figures->deployment);
    return d != NULL && strcmp(d->project, figures->project) == 0 &&
           (figures->version == 0 || weir_gateway_version_find(d, figures->version) >= 0);
}

void figures_keep(struct figures_registry *registry, const struct weir_gateway_table *table)
{
    pthread_mutex_lock(&registry->lock);
    struct figures **link = &registry->head;
    while (*link != NULL) {
        struct figures *figures = *link;
        if (is_in(figures, table)) {
            link = &figures->next;
        } else {
            *link = figures->next;
            figures_unref(figures);
        }
    }
    pthread_mutex_unlock(&registry->lock);
}

int figures_bucket(int64_t us)
{
    if (us < FIGURES_EXACT_US) {
        return us > 0 ? (int)us : 0;
    }
    int octave = 63 - __builtin_clzll((unsigned long long)us);
    int part = (int)(us >> (octave - 4)) & (FIGURES_PARTS - 1);
    int bucket = FIGURES_EXACT_US + (octave - 5) * FIGURES_PARTS + part;
    return bucket < FIGURES_BUCKETS ? bucket : FIGURES_BUCKETS - 1;
}

int64_t figures_bucket_end(int bucket)
{
    if (bucket < FIGURES_EXACT_US) {
        return bucket + 1;
    }
    int octave = 5 + (bucket - FIGURES_EXACT_US) / FIGURES_PARTS;
    int64_t part = (bucket - FIGURES_EXACT_US) % FIGURES_PARTS;
    return (FIGURES_PARTS + part + 1) << (octave - 4);
}

int64_t weir_gateway_figures_slow(const struct weir_gateway_figures *figures, int64_t us)
{
    int64_t n = 0;
    for (size_t i = 0; i < figures->n_buckets; i++) {
        int bucket = figures_bucket(figures->buckets[i].end_us - 1);
        int64_t begin_us = bucket > 0 ? figures_bucket_end(bucket - 1) : 0;
        n += begin_us >= us ? figures->buckets[i].n : 0;
    }
    return n;
}

void figures_add_us(struct figures *figures, int64_t us)
{
    figures_add(&figures->buckets[figures_bucket(us)], 1);
    figures_add(&figures->sum_us, us);
}

int64_t figures_quantile_us(const struct figures *figures, double share)
{
    int64_t counts[FIGURES_BUCKETS], n = 0;
    for (int i = 0; i < FIGURES_BUCKETS; i++) {
        counts[i] = get(&figures->buckets[i]);
        n += counts[i];
    }
    int64_t wanted = (int64_t)((double)n * share), seen = 0;
    for (int i = 0; i < FIGURES_BUCKETS; i++) {
        seen += counts[i];
        if (seen > wanted || (seen == n && n > 0)) {
            return figures_bucket_end(i) - 1;
        }
    }
    return 0;
}

/** What a copy of figures refers to. */
struct copied {
    struct weir_gateway_bucket buckets[FIGURES_BUCKETS];
    int64_t classes[WEIR_GATEWAY_BINS], scores[WEIR_GATEWAY_BINS];
};

static struct weir_gateway_figures copy(const struct figures *figures, struct copied *out)
{
    struct weir_gateway_bucket *buckets = out->buckets;
    size_t n_buckets = 0;
    for (int i = 0; i < WEIR_GATEWAY_BINS; i++) {
        out->classes[i] = get(&figures->classes[i]);
        out->scores[i] = get(&figures->scores[i]);
    }
    for (int i = 0; i < FIGURES_BUCKETS; i++) {
        int64_t n = get(&figures->buckets[i]);
        if (n > 0) {
            buckets[n_buckets++] = (struct weir_gateway_bucket){figures_bucket_end(i), n};
        }
    }
    return (struct weir_gateway_figures){
        .deployment = figures->deployment,
        .project = figures->project,
        .version = figures->version,
        .made = figures->made,
#define X(field, name, help) .field = get(&figures->field),
#include "gateway/figures.def"
#undef X
        .n_in_flight = get(&figures->n_in_flight),
        .n_held = get(&figures->n_held),
        .sum_us = get(&figures->sum_us),
        .p50_us = figures_quantile_us(figures, 0.5),
        .p99_us = figures_quantile_us(figures, 0.99),
        .buckets = buckets,
        .n_buckets = n_buckets,
        .classes = out->classes,
        .scores = out->scores,
    };
}

void figures_each(struct figures_registry *registry, weir_gateway_figures_fn fn, void *context)
{
    struct copied copied;
    pthread_mutex_lock(&registry->lock);
    for (const struct figures *figures = registry->head; figures != NULL; figures = figures->next) {
        struct weir_gateway_figures now = copy(figures, &copied);
        fn(context, &now);
    }
    pthread_mutex_unlock(&registry->lock);
}

bool figures_load(struct figures_registry *registry, const char *deployment,
                  struct weir_gateway_load *out)
{
    struct weir_gateway_load load = {0};
    bool is_known = false;
    pthread_mutex_lock(&registry->lock);
    for (const struct figures *figures = registry->head; figures != NULL; figures = figures->next) {
        if (strcmp(figures->deployment, deployment) == 0) {
            is_known = true;
            load.n_in_flight += get(&figures->n_in_flight);
            load.n_held += get(&figures->n_held);
            load.n_requests += get(&figures->n_requests);
            load.last_ms = WEIR_MAX(load.last_ms, (int64_t)get(&figures->last_ms));
        }
    }
    pthread_mutex_unlock(&registry->lock);
    if (is_known) {
        *out = load;
    }
    return is_known;
}
