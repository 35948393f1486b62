/* Any JSON as the document of a sweep: refused with a sentence, or one whose first trials have values and
 * whose specification is filled. */
#include "sweep/step.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_it(struct weir_sweep_state *state, struct weir_arena *arena)
{
    struct weir_sweep_actions actions = {0};
    struct weir_error err = {0};
    const struct weir_sweep_event tick = {.type = WEIR_SWEEP_EVENT_TICK};
    state->doc.n_parallel = 2;
    if (weir_sweep_step(state, &tick, 1, arena, &actions, &err) != WEIR_OK ||
        state->n_trials != (size_t)(state->doc.n_trials < 2 ? state->doc.n_trials : 2)) {
        abort();
    }
    json_t *values = json_loads(state->trials[0].row.parameters, 0, NULL), *spec = NULL;
    const struct weir_sweep_given given = {.sweep = "s", .trial = 1};
    if (json_object_size(values) != state->doc.space.n ||
        (weir_sweep_fill(state->doc.job_spec, values, &given, arena, &spec, &err) != WEIR_OK &&
         err.message[0] == '\0')) {
        abort();
    }
    json_decref(spec);
    json_decref(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_arena arena;
    struct weir_error err = {0};
    struct weir_sweep_state state = {0};
    json_t *document = json_loadb((const char *)data, size, JSON_DECODE_ANY, NULL);
    if (document == NULL) {
        return 0;
    }
    weir_arena_init(&arena, 0);
    if (weir_sweep_begin(document, "ann", 1, &arena, &state, &err) == WEIR_OK) {
        try_it(&state, &arena);
        weir_sweep_state_fini(&state);
    } else if (err.message[0] == '\0') {
        abort();
    }
    weir_arena_fini(&arena);
    json_decref(document);
    return 0;
}
