/** Deployments: each is looked at with its load. */
#include "control/engine_private.h"

#include "control/deploy.h"
#include "store/stmt.h"

static weir_status list_deployments(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    return weir_txn_query_texts(txn, "SELECT name FROM deployments ORDER BY name", WEIR_NO_BINDS,
                                work->control.arena, &work->ids, &work->n_ids, err);
}

static struct weir_deploy_event tick_of(const struct work *work)
{
    return (struct weir_deploy_event){.type = WEIR_DEPLOY_EVENT_TICK,
                                      .actor = "system",
                                      .load = work->load,
                                      .since_ms = work->engine->watch.since_ms};
}

static weir_status peek_deployment(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    const struct weir_deploy_event tick = tick_of(work);
    return control_deploy_is_due(txn, work->deployment, &tick, work->control.now_ms,
                                 work->control.arena, &work->is_due, err);
}

static weir_status tick_deployment(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    const struct weir_deploy_event tick = tick_of(work);
    return control_deploy_event(&work->control, txn, work->deployment, &tick, err);
}

void engine_run_deployments(struct work *work)
{
    struct weir_error err;
    const struct engine_config *config = &work->engine->config;
    if (work_read(work, list_deployments, &err) != WEIR_OK) {
        return; /* tried again with the next round */
    }
    for (size_t i = 0; i < work->n_ids; i++) {
        struct weir_deploy_load load;
        work->deployment = work->ids[i];
        bool is_known =
            config->load != NULL && config->load(config->load_context, work->deployment, &load);
        work->load = is_known ? &load : NULL;
        if (work_take_unit(work, "deployment", work->deployment) &&
            work_run_unit(work, peek_deployment, false) == WEIR_OK && work->is_due) {
            (void)work_run_unit(work, tick_deployment, true);
        }
    }
}
