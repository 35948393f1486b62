#include "cluster/kubernetes/scheduler/neighbours.h"

#include "base/grow.h"
#include "base/macros.h"

#include <string.h>

#define NO_DOMAIN (-1)

struct neighbours_key {
    const char *key;
    int32_t *domain_of; /* each node; NO_DOMAIN: it has no such label */
    int32_t n_domains;
    int64_t *counts; /* a number for each domain, for the one that asks just now */
    struct neighbours_key *next;
};

/* ---- domains ---------------------------------------------------------------------------------- */

struct valued {
    const char *value;
    int32_t node;
};

static int by_value(const void *a, const void *b)
{
    const struct valued *left = a, *right = b;
    return strcmp(left->value, right->value);
}

static struct neighbours_key *make_key(struct neighbours *all, const char *name)
{
    struct neighbours_key *key = WEIR_ARENA_NEW(all->arena, struct neighbours_key);
    struct valued *sorted = WEIR_ARENA_ARRAY(all->arena, (size_t)all->n_nodes + 1, struct valued);
    size_t n = 0;
    *key = (struct neighbours_key){
        .key = name,
        .domain_of = WEIR_ARENA_ARRAY(all->arena, (size_t)all->n_nodes + 1, int32_t),
        .counts = WEIR_ARENA_ARRAY(all->arena, (size_t)all->n_nodes + 1, int64_t),
        .next = all->keys};
    for (int32_t i = 0; i < all->n_nodes; i++) {
        const char *value = select_label(all->nodes[i]->labels, name);
        key->domain_of[i] = NO_DOMAIN;
        if (value != NULL) {
            sorted[n++] = (struct valued){value, i};
        }
    }
    qsort(sorted, n, sizeof sorted[0], by_value);
    for (size_t i = 0; i < n; i++) {
        bool is_new = i == 0 || strcmp(sorted[i].value, sorted[i - 1].value) != 0;
        key->n_domains += is_new;
        key->domain_of[sorted[i].node] = key->n_domains - 1;
    }
    all->keys = key;
    return key;
}

static struct neighbours_key *find_key(struct neighbours *all, const char *name)
{
    struct neighbours_key *key = all->keys;
    while (key != NULL && strcmp(key->key, name) != 0) {
        key = key->next;
    }
    return key != NULL ? key : make_key(all, name);
}

const int32_t *neighbours_domains(struct neighbours *all, const char *key)
{
    return find_key(all, key)->domain_of;
}

/* ---- what lies where -------------------------------------------------------------------------- */

void neighbours_add(struct neighbours *all, const struct place_pod *pod, int32_t node,
                    bool is_planned)
{
    weir_arena_grow(all->arena, &all->pods, sizeof all->pods[0], all->n, &all->cap);
    all->pods[all->n++] = (struct neighbours_pod){pod, node, is_planned};
    all->n_guarded += pod->apart.n > 0;
    all->n_choosy += pod->rather.n > 0;
}

bool neighbours_matter(const struct neighbours *all, const struct place_pod *pod)
{
    return all->n_guarded > 0 || pod->with.n + pod->apart.n + pod->spread.n > 0;
}

/* Count the pods of a term in each domain. @param is_planned_too  Also those that the planner knows of. @return All. */
static int64_t count(const struct neighbours *all, const struct place_term *term,
                     struct neighbours_key *key, bool is_planned_too)
{
    int64_t n = 0;
    memset(key->counts, 0, (size_t)key->n_domains * sizeof key->counts[0]);
    for (size_t i = 0; i < all->n; i++) {
        const struct neighbours_pod *one = &all->pods[i];
        int32_t domain = key->domain_of[one->node];
        if ((is_planned_too || !one->is_planned) && domain >= 0 &&
            place_term_has(term, one->pod, all->spaces)) {
            key->counts[domain]++;
            n++;
        }
    }
    return n;
}

const struct place_term *neighbours_planned(const struct neighbours *all,
                                            const struct place_pod *pod, bool *out_is_apart)
{
    *out_is_apart = pod->apart.n > 0;
    if (*out_is_apart) {
        return &pod->apart.rows[0];
    }
    const struct place_term *term = pod->with.n > 0 ? &pod->with.rows[0] : NULL;
    for (size_t i = 0; term != NULL && i < all->n; i++) {
        if (!all->pods[i].is_planned && place_term_has(term, all->pods[i].pod, all->spaces)) {
            term = NULL; /* the planner would not see whom it is to lie with */
        }
    }
    return term;
}

/* ---- what it allows --------------------------------------------------------------------------- */

static void keep_apart(struct neighbours *all, const struct place_term *term, bool is_planned_too,
                       bool *allowed)
{
    struct neighbours_key *key = find_key(all, term->key);
    (void)count(all, term, key, is_planned_too);
    for (int32_t i = 0; i < all->n_nodes; i++) {
        int32_t domain = key->domain_of[i];
        allowed[i] = allowed[i] && (domain < 0 || key->counts[domain] == 0);
    }
}

/* The first of those that want to lie together may lie anywhere. */
static void keep_with(struct neighbours *all, const struct place_pod *pod,
                      const struct place_term *term, bool *allowed)
{
    struct neighbours_key *key = find_key(all, term->key);
    bool is_first = count(all, term, key, true) == 0 && place_term_has(term, pod, all->spaces);
    for (int32_t i = 0; i < all->n_nodes; i++) {
        int32_t domain = key->domain_of[i];
        allowed[i] = allowed[i] && domain >= 0 && (is_first || key->counts[domain] > 0);
    }
}

bool neighbours_fits_node(const struct place_pod *pod, const struct place_node *node)
{
    bool fits = place_fits_node_terms(pod, node);
    for (int32_t i = 0; i < pod->node_selector.n && fits; i++) {
        const char *value = select_label(node->labels, pod->node_selector.rows[i].key);
        fits = value != NULL && strcmp(value, pod->node_selector.rows[i].value) == 0;
    }
    return fits;
}

static void keep_spread(struct neighbours *all, const struct place_pod *pod,
                        const struct place_term *term, bool *allowed)
{
    struct neighbours_key *key = find_key(all, term->key);
    int64_t least = INT64_MAX, own = place_term_has(term, pod, all->spaces);
    (void)count(all, term, key, true);
    for (int32_t i = 0; i < all->n_nodes; i++) {
        int32_t domain = key->domain_of[i];
        if (domain >= 0 && neighbours_fits_node(pod, all->nodes[i])) {
            least = WEIR_MIN(least, key->counts[domain]);
        }
    }
    for (int32_t i = 0; i < all->n_nodes; i++) {
        int32_t domain = key->domain_of[i];
        allowed[i] =
            allowed[i] && domain >= 0 && key->counts[domain] + own - least <= term->max_skew;
    }
}

/* Others want it away. */
static void keep_from_guarded(struct neighbours *all, const struct place_pod *pod,
                              bool are_all_looked_at, bool *allowed)
{
    for (size_t k = 0; k < all->n; k++) {
        const struct neighbours_pod *one = &all->pods[k];
        bool knows_first = one->is_planned && !are_all_looked_at;
        for (size_t t = knows_first; t < one->pod->apart.n; t++) {
            const struct place_term *term = &one->pod->apart.rows[t];
            const struct neighbours_key *key = find_key(all, term->key);
            int32_t domain = key->domain_of[one->node];
            if (domain < 0 || !place_term_has(term, pod, all->spaces)) {
                continue;
            }
            for (int32_t i = 0; i < all->n_nodes; i++) {
                allowed[i] = allowed[i] && key->domain_of[i] != domain;
            }
        }
    }
}

void neighbours_allow(struct neighbours *all, const struct place_pod *pod, bool are_all_looked_at,
                      bool *allowed)
{
    bool is_apart;
    const struct place_term *planned =
        are_all_looked_at ? NULL : neighbours_planned(all, pod, &is_apart);
    for (size_t i = 0; i < pod->apart.n; i++) {
        keep_apart(all, &pod->apart.rows[i], &pod->apart.rows[i] != planned, allowed);
    }
    for (size_t i = 0; i < pod->with.n; i++) {
        if (&pod->with.rows[i] != planned) {
            keep_with(all, pod, &pod->with.rows[i], allowed);
        }
    }
    for (size_t i = 0; i < pod->spread.n; i++) {
        keep_spread(all, pod, &pod->spread.rows[i], allowed);
    }
    if (all->n_guarded > 0) {
        keep_from_guarded(all, pod, are_all_looked_at, allowed);
    }
}
