#include "deploy/scale.h"

/* While a replica computes one batch, the next one waits in it: more than that is queueing. */
#define BATCHES_PER_REPLICA 2

static int64_t clamp(int64_t n, int64_t lo, int64_t hi)
{
    return WEIR_MIN(WEIR_MAX(n, lo), hi);
}

/* Replicas that the load asks for. */
static int64_t needed(const struct weir_deployment *deployment, const struct weir_deploy_load *load)
{
    int64_t n = load->n_outstanding + load->n_held;
    int64_t each = BATCHES_PER_REPLICA * WEIR_MAX(deployment->batch_max, (int64_t)1);
    return (n + each - 1) / each;
}

static void set_wanted(struct weir_deployment *deployment, int64_t n)
{
    deployment->n_wanted = n;
    deployment->more_ms = 0;
    deployment->less_ms = 0;
}

static void follow_load(struct weir_deployment *deployment, int64_t need, int64_t now_ms)
{
    int64_t n = deployment->n_wanted;
    if (need > n) {
        deployment->less_ms = 0;
        deployment->more_ms = deployment->more_ms == 0 ? now_ms : deployment->more_ms;
        if (n == 0 || now_ms - deployment->more_ms >= WEIR_DEPLOY_MORE_MS) {
            set_wanted(deployment, n == 0 ? 1 : need);
        }
    } else if (need < n) {
        deployment->more_ms = 0;
        deployment->less_ms = deployment->less_ms == 0 ? now_ms : deployment->less_ms;
        if (now_ms - deployment->less_ms >= deployment->idle_after_ms) {
            set_wanted(deployment, need);
        }
    } else {
        deployment->more_ms = 0;
        deployment->less_ms = 0;
    }
}

void scale_follow(struct weir_deployment *deployment, const struct weir_deploy_load *load,
                  bool is_pending, int64_t now_ms)
{
    int64_t least = WEIR_MAX(deployment->replicas_min, (int64_t)(is_pending ? 1 : 0));
    int64_t n = clamp(deployment->n_wanted, least, deployment->replicas_max);
    if (n != deployment->n_wanted) {
        set_wanted(deployment, n);
    }
    /* A clock that was set back must not make the waits longer. */
    deployment->more_ms = WEIR_MIN(deployment->more_ms, now_ms);
    deployment->less_ms = WEIR_MIN(deployment->less_ms, now_ms);
    if (load != NULL) {
        follow_load(deployment, clamp(needed(deployment, load), least, deployment->replicas_max),
                    now_ms);
    }
}
