#include "cluster/kubernetes/scheduler/kinds.h"

#include "cluster/kubernetes/scheduler/space.h"
#include "cluster/kubernetes/scheduler/volume.h"

#include "base/grow.h"

#define WAIT_MS  500   /* for the first list */
#define STALE_MS 90000 /* bookmarks come once a minute */

#define KIND(which, path, name, digest)                                                            \
    static void *read_##which(void *context, const json_t *object)                                 \
    {                                                                                              \
        (void)context;                                                                             \
        return digest(object);                                                                     \
    }
#include "cluster/kubernetes/scheduler/kinds.def"
#undef KIND

static const struct {
    const char *path, *name;
    void *(*read)(void *context, const json_t *object);
} all[KINDS_N] = {

#define KIND(which, path, name, digest) [KINDS_##which] = {path, name, read_##which},
#include "cluster/kubernetes/scheduler/kinds.def"
#undef KIND
};

static weir_status start(struct kinds *kinds, enum kinds_which which, struct weir_error *err)
{
    const struct weir_kube_mirror_config config = {.kube = kinds->kube,
                                                   .path = all[which].path,
                                                   .digest = all[which].read,
                                                   .release = place_release,
                                                   .changed = kinds->changed,
                                                   .changed_context = kinds->context};
    return kinds->mirrors[which] != NULL
               ? WEIR_OK
               : weir_kube_mirror_start(&config, &kinds->mirrors[which], err);
}

struct taking {
    struct kinds_seen *out;
    struct weir_arena *arena;
};

static void take(void *context, const struct weir_kube_object *object)
{
    struct taking *taking = context;
    struct kinds_seen *out = taking->out;
    weir_arena_grow(taking->arena, &out->digests, sizeof(void *), out->n, &out->cap);
    place_hold(object->digest);
    out->digests[out->n++] = object->digest;
}

static const char *why_not(enum kinds_which which, weir_status status, const struct weir_error *err,
                           struct weir_arena *arena)
{
    return status == WEIR_ERR_DENIED
               ? weir_arena_printf(arena,
                                   "Weir's role does not let it see %s, which this pod needs: "
                                   "%.300s. `weir cluster manifest` prints roles that do.",
                                   all[which].name, err->message)
               : weir_arena_printf(arena, "Weir does not see the cluster's %s: %.300s.",
                                   all[which].name, err->message);
}

static weir_status look(struct kinds *kinds, enum kinds_which which, struct taking *taking,
                        struct weir_error *err)
{
    WEIR_TRY(start(kinds, which, err));
    return weir_kube_mirror_look(kinds->mirrors[which], WAIT_MS, STALE_MS, take, taking, err);
}

void kinds_look(struct kinds *kinds, enum kinds_which which, struct weir_arena *arena,
                struct kinds_seen *out)
{
    struct taking taking = {.out = out, .arena = arena};
    struct weir_error err;
    *out = (struct kinds_seen){0};
    weir_status status = look(kinds, which, &taking, &err);
    out->why = status != WEIR_OK ? why_not(which, status, &err, arena) : NULL;
}

void kinds_release(struct kinds_seen *seen)
{
    for (size_t i = 0; i < seen->n; i++) {
        place_release((void *)(uintptr_t)seen->digests[i]);
    }
    *seen = (struct kinds_seen){0};
}

void kinds_stop(struct kinds *kinds)
{
    for (size_t i = 0; i < KINDS_N; i++) {
        weir_kube_mirror_stop(kinds->mirrors[i]);
        kinds->mirrors[i] = NULL;
    }
}
