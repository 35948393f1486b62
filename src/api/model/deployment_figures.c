/** Figures of a deployment: what its gateway has counted, for who watches it. */
#include "api/core/answer.h"
#include "api/core/functions.h"
#include "api/core/views.h"
#include "store/table.h"

#include "deploy/deploy.h"
#include "gateway/figures.h"

#include <string.h>

struct listing {
    const char *deployment;
    json_t *items;
};

static json_t *buckets_view(const struct weir_gateway_figures *figures)
{
    json_t *buckets = json_array();
    for (size_t i = 0; i < figures->n_buckets; i++) {
        json_array_append_new(buckets, json_pack("[I,I]", (json_int_t)figures->buckets[i].end_us,
                                                 (json_int_t)figures->buckets[i].n));
    }
    return buckets;
}

/* Up to the last that is not 0. */
static size_t n_counts(const int64_t *counts)
{
    size_t n = WEIR_GATEWAY_BINS;
    while (n > 0 && counts[n - 1] == 0) {
        n--;
    }
    return n;
}

static void list(void *context, const struct weir_gateway_figures *figures)
{
    struct listing *listing = context;
    if (strcmp(figures->deployment, listing->deployment) != 0) {
        return;
    }
    const struct api_deployment_version_figures view = {
#define X(field, name, help) .field = figures->field,
#include "gateway/figures.def"
#undef X
        .version = figures->version,
        .n_in_flight = figures->n_in_flight,
        .n_held = figures->n_held,
        .sum_us = figures->sum_us,
        .p50_us = figures->p50_us,
        .p99_us = figures->p99_us,
        .buckets = buckets_view(figures),
        .classes = figures->classes,
        .n_classes = n_counts(figures->classes),
        .scores = figures->scores,
        .n_scores = n_counts(figures->scores)};
    json_array_append_new(listing->items,
                          weir_view_to_json(api_deployment_version_figures_view(), &view));
}

weir_status api_deploy_figures(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_deployment deployment;
    WEIR_TRY(weir_txn_get(txn, &weir_deployment_resource, call->params[0], call->arena, &deployment,
                          err));
    struct listing listing = {.deployment = deployment.name, .items = json_array()};
    if (call->api->gateway != NULL) {
        weir_gateway_figures_each(call->api->gateway, list, &listing);
    }
    API_ANSWER(call, api_deployment_figures, .time_ms = call->now_ms, .items = listing.items);
    return WEIR_OK;
}
