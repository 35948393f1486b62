/* Versions that callers of what serves would notice. */
#include "ion/interface.h"
#include "ion/step/engine.h"

#include <inttypes.h>

/** Does any policy of the chain ask people? Then they say whether a change may come. */
static bool asks_people(const struct weir_policy_chain *chain)
{
    for (size_t i = 0; i < chain->n; i++) {
        if (weir_policy_asks_people(&chain->items[i])) {
            return true;
        }
    }
    return false;
}

/** What is incompatible with what serves, in words, where a person is to know of it; NULL: nothing is. */
static char *changes_of(struct ion_step *step, const struct weir_ion_candidate *candidate,
                        const struct weir_ion_doc_link *link, size_t i_policy)
{
    const struct weir_ion_candidate *serving = weir_ion_serving(step->state, candidate->link);
    bool is_told = weir_policy_asks_people(&link->policies.items[i_policy]) ||
                   (i_policy == 0 && !asks_people(&link->policies));
    bool is_compatible;
    if (serving == NULL || link->deployment == NULL || !is_told ||
        step_serving_version(step, candidate) == 0 ||
        step_is(step->state->ion.mode, WEIR_ION_SANDBOX)) {
        return NULL;
    }
    char *changes = weir_interface_changes(serving->interface, candidate->interface, step->arena,
                                           &is_compatible);
    return is_compatible
               ? NULL
               : step_text(step, "it is not compatible with version %" PRId64 ", which serves: %s",
                           serving->version, changes);
}

struct weir_policy_inputs step_asked(struct ion_step *step,
                                     const struct weir_ion_candidate *candidate,
                                     const struct weir_ion_doc_link *link, size_t i_policy)
{
    struct weir_policy_inputs inputs = step_inputs(step, candidate, link, i_policy);
    inputs.changes = changes_of(step, candidate, link, i_policy);
    return inputs;
}
