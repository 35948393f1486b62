#include "control/nominated.h"

#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

void nominated_init(struct nominated *out)
{
    *out = (struct nominated){0};
    weir_arena_init(&out->arena, (size_t)1 << 30);
}

void nominated_fini(struct nominated *nominated)
{
    weir_arena_fini(&nominated->arena);
    free(nominated->places);
    *nominated = (struct nominated){0};
}

void nominated_add(struct nominated *to, const struct nominated_place *place)
{
    int64_t *devices = WEIR_ARENA_ARRAY(&to->arena, (size_t)place->n_devices + 1, int64_t);
    for (int32_t i = 0; i < place->n_devices; i++) {
        devices[i] = place->devices[i];
    }
    weir_xgrow(&to->places, sizeof *to->places, to->n, &to->cap);
    to->places[to->n++] = (struct nominated_place){weir_arena_strdup(&to->arena, place->task),
                                                   weir_arena_strdup(&to->arena, place->node),
                                                   devices, place->n_devices};
}

static int by_task(const void *left, const void *right)
{
    return strcmp(((const struct nominated_place *)left)->task,
                  ((const struct nominated_place *)right)->task);
}

void nominated_end(struct nominated *from, struct nominated *to)
{
    if (from->n > 1) {
        qsort(from->places, from->n, sizeof *from->places, by_task);
    }
    nominated_fini(to);
    *to = *from;
    *from = (struct nominated){0};
}

const struct nominated_place *nominated_find(const struct nominated *nominated, const char *task)
{
    const struct nominated_place key = {.task = task};
    return nominated->n == 0
               ? NULL
               : bsearch(&key, nominated->places, nominated->n, sizeof *nominated->places, by_task);
}
