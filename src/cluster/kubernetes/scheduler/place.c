#include "cluster/kubernetes/scheduler/place.h"

#include "base/macros.h"
#include "cluster/kubernetes/scheduler/space.h"

#include <string.h>

void place_hold(const struct place_held *held)
{
    atomic_fetch_add(&((struct place_held *)(uintptr_t)held)->n_holders, 1);
}

/* What is held comes first in each. */
void place_release(void *digest)
{
    struct place_held *held = digest;
    if (held != NULL && atomic_fetch_sub(&held->n_holders, 1) == 1) {
        weir_arena_fini(&held->arena);
        free(held);
    }
}

int64_t place_amount_of(const struct place_amount *amounts, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(amounts[i].name, name) == 0) {
            return amounts[i].count;
        }
    }
    return 0;
}

static bool is_any_or(const char *wanted, const char *has)
{
    return wanted == NULL || strcmp(wanted, has) == 0;
}

bool place_tolerates(const struct place_pod *pod, const struct place_taint *taint)
{
    for (size_t i = 0; i < pod->n_tolerations; i++) {
        const struct place_toleration *one = &pod->tolerations[i];
        if (is_any_or(one->key, taint->key) && is_any_or(one->value, taint->value) &&
            is_any_or(one->effect, taint->effect)) {
            return true;
        }
    }
    return false;
}

bool place_fits_node_terms(const struct place_pod *pod, const struct place_node *node)
{
    bool fits = !pod->has_node_terms;
    for (size_t i = 0; i < pod->n_node_terms && !fits; i++) {
        fits = select_matches(&pod->node_terms[i], node->labels);
    }
    return fits;
}

bool place_term_has(const struct place_term *term, const struct place_pod *pod,
                    const struct spaces *spaces)
{
    bool is_there = term->is_everywhere ||
                    (term->has_selector &&
                     (!spaces->are_seen || spaces_match(spaces, &term->selector, pod->space)));
    for (size_t i = 0; i < term->n_spaces && !is_there; i++) {
        is_there = strcmp(term->spaces[i], pod->space) == 0;
    }
    return is_there && select_matches(&term->pods, pod->labels);
}
