/** Deployments: each is looked at with its load. */
#include "control/engine/engine_private.h"

#include "control/deploy.h"
#include "store/stmt.h"

/** One of them, in a round. */
struct deployment_unit {
    const char *name;
    struct weir_deploy_event tick; /**< With its load, if that is known. */
    bool is_due;                   /**< Out: the tick changes something. */
};

static weir_status list_deployments(struct work *work, void *names, struct weir_txn *txn,
                                    struct weir_error *err)
{
    struct work_names *out = names;
    return weir_txn_query_texts(txn, "SELECT name FROM deployments ORDER BY name", WEIR_NO_BINDS,
                                work->control.arena, &out->items, &out->n, err);
}

static weir_status peek_deployment(struct work *work, void *unit, struct weir_txn *txn,
                                   struct weir_error *err)
{
    struct deployment_unit *deployment = unit;
    return control_deploy_is_due(txn, deployment->name, &deployment->tick, work->control.now_ms,
                                 work->control.arena, &deployment->is_due, err);
}

static weir_status tick_deployment(struct work *work, void *unit, struct weir_txn *txn,
                                   struct weir_error *err)
{
    const struct deployment_unit *deployment = unit;
    return control_deploy_event(&work->control, txn, deployment->name, &deployment->tick, err);
}

void engine_run_deployments(struct work *work)
{
    struct weir_error err;
    struct work_names names;
    const struct engine_config *config = &work->engine->config;
    if (work_read(work, list_deployments, &names, &err) != WEIR_OK) {
        return; /* tried again with the next round */
    }
    for (size_t i = 0; i < names.n; i++) {
        struct weir_deploy_load load;
        bool is_known =
            config->load != NULL && config->load(config->load_context, names.items[i], &load);
        struct deployment_unit unit = {.name = names.items[i],
                                       .tick = {.type = WEIR_DEPLOY_EVENT_TICK,
                                                .actor = "system",
                                                .load = is_known ? &load : NULL,
                                                .since_ms = work->engine->watch.since_ms}};
        if (work_take_unit(work, "deployment", unit.name) &&
            work_run_unit(work, peek_deployment, &unit, false) == WEIR_OK && unit.is_due) {
            (void)work_run_unit(work, tick_deployment, &unit, true);
        }
    }
}
