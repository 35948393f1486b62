#include "cluster/kubernetes/scheduler/space.h"

#include "kube/client.h"

#include <string.h>

struct space *space_read(const json_t *object)
{
    const char *name = weir_kube_text(object, "metadata.name");
    if (name == NULL) {
        return NULL;
    }
    struct space *space = weir_xalloc(sizeof *space);
    *space = (struct space){.held = {.n_holders = 1}};
    weir_arena_init(&space->held.arena, 0);
    space->name = weir_arena_strdup(&space->held.arena, name);
    space->labels = select_labels_read(weir_kube_at(object, "metadata.labels"), &space->held.arena);
    return space;
}

bool spaces_match(const struct spaces *spaces, const struct select_all *selector, const char *name)
{
    size_t low = 0, high = spaces->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(spaces->rows[middle]->name, name);
        if (order == 0) {
            return select_matches(selector, spaces->rows[middle]->labels);
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return false;
}
