/** Figures of a deployment: what its gateway has counted, for who watches it. */
#include "api/answer.h"
#include "api/functions.h"
#include "store/table.h"

#include "base/clock.h"
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

static json_t *counts_view(const int64_t *counts)
{
    json_t *list = json_array();
    size_t n = WEIR_GATEWAY_BINS;
    while (n > 0 && counts[n - 1] == 0) {
        n--;
    }
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(list, json_integer(counts[i]));
    }
    return list;
}

static void list(void *context, const struct weir_gateway_figures *figures)
{
    struct listing *listing = context;
    if (strcmp(figures->deployment, listing->deployment) != 0) {
        return;
    }
    json_t *view = json_pack(
        "{s:I,s:I,s:I,s:I,s:I,s:I,s:o}", "version", (json_int_t)figures->version, "n_in_flight",
        (json_int_t)figures->n_in_flight, "n_held", (json_int_t)figures->n_held, "sum_us",
        (json_int_t)figures->sum_us, "p50_us", (json_int_t)figures->p50_us, "p99_us",
        (json_int_t)figures->p99_us, "buckets", buckets_view(figures));
    json_object_set_new(view, "classes", counts_view(figures->classes));
    json_object_set_new(view, "scores", counts_view(figures->scores));
#define X(field, name, help) json_object_set_new(view, #field, json_integer(figures->field));
#include "gateway/figures.def"
#undef X
    json_array_append_new(listing->items, view);
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
    char time[WEIR_TIME_TEXT_BYTES];
    weir_time_format(call->now_ms, time);
    api_answer(call, json_pack("{s:s,s:o,s:n}", "time_ms", time, "items", listing.items, "next"));
    return WEIR_OK;
}
