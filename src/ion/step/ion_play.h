/** One ION in memory, to which a test plays events: for tests of one file each. */
#ifndef WEIR_ION_ION_PLAY_H
#define WEIR_ION_ION_PLAY_H

#include "ion/ion_fixture.h"
#include "ion/ion_step.h"

static struct weir_arena arena; /**< Of the test that runs. */
static struct weir_ion_state state;
static struct weir_ion_actions actions; /**< Of the last event. */
static struct weir_error err;
static int64_t now_ms;

/** An ION "x" without a document. */
static inline void begin_ion(int64_t begin_ms)
{
    weir_arena_init(&arena, 0);
    weir_ion_state_new("x", &arena, &state);
    now_ms = begin_ms;
}

static inline void tear_down(void)
{
    weir_arena_fini(&arena);
}

/** Apply one event, a second after the last. */
static inline weir_status step(struct weir_ion_event event)
{
    actions = (struct weir_ion_actions){0};
    now_ms += 1000;
    return weir_ion_step(&state, &event, now_ms, &arena, &actions, &err);
}

static inline void must(struct weir_ion_event event)
{
    weir_status status = step(event);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
}

/** There is this version of a dataset. */
static inline struct weir_ion_event dataset(const char *name, int64_t version)
{
    struct weir_ion_dataset *dataset = WEIR_ARENA_NEW(&arena, struct weir_ion_dataset);
    *dataset = (struct weir_ion_dataset){name, version, "/data", "d16e57", "b10b", 0, 0, 0};
    return (struct weir_ion_event){
        .type = WEIR_ION_EVENT_DATASET, .datasets = dataset, .n_datasets = 1};
}

/** The first action of this type that the last event led to; NULL: none. */
static inline const struct weir_ion_action *find_action(enum weir_ion_action_type type)
{
    for (size_t i = 0; i < actions.n; i++) {
        if (actions.items[i].type == type) {
            return &actions.items[i];
        }
    }
    return NULL;
}

#endif
