/** What would change, were something else. */
#include "control/live_private.h"

#include "sim/what_if.h"

#include <string.h>

static weir_status change_nodes(struct live *live, const struct control_change *asked,
                                struct live_change *change, struct weir_error *err)
{
    int32_t like = snapshot_find_node(&live->snapshot, asked->like);
    if (like < 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "$.add_node: there is no node \"%.60s\"; `weir get nodes` lists them",
                              asked->like);
    }
    live_add_nodes(live, change, like, asked->n_nodes);
    return WEIR_OK;
}

static weir_status change_queue(struct live *live, const struct control_change *asked,
                                struct live_change *change, struct weir_error *err)
{
    int32_t q = live_find_queue(live, asked->queue);
    if (q >= 0) {
        change->queues[q].n_timed_quotas = 0;
        return queue_tree_put_shares(&change->queues[q], asked->shares, &live->arena, err);
    }
    return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                          "$.queue: there is no queue \"%.60s\"; `weir get queues` lists them",
                          asked->queue);
}

/* Its first row: of a service the first replica's. */
static int32_t find_row(const struct live *live, const char *id)
{
    int32_t row = 0;
    while (row < live->rows->n_jobs && strcmp(live_job(live, row)->id, id) != 0) {
        row++;
    }
    return row < live->rows->n_jobs && live_names_job(live, row) ? row : -1;
}

static weir_status change_first(struct live *live, const struct control_change *asked,
                                struct live_change *change, int32_t *out_row,
                                struct weir_error *err)
{
    *out_row = find_row(live, asked->first);
    if (*out_row < 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "$.first: no job \"%.60s\" runs or waits for a node", asked->first);
    }
    live_put_first(change, *out_row);
    return WEIR_OK;
}

static weir_status apply(struct live *live, const struct control_change *asked,
                         struct live_change *change, int32_t *out_first, struct weir_error *err)
{
    if (asked->n_nodes < 0 || asked->n_nodes > CONTROL_NODES_ADDED_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "$.n_nodes: expected 1 to %d",
                              CONTROL_NODES_ADDED_MAX);
    }
    if (asked->like == NULL && asked->queue == NULL && asked->first == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "what if what? Give add_node, queue with shares, or first");
    }
    live_change_begin(live, asked->n_nodes, change);
    if (asked->like != NULL) {
        WEIR_TRY(change_nodes(live, asked, change, err));
    }
    if (asked->queue != NULL) {
        WEIR_TRY(change_queue(live, asked, change, err));
        WEIR_TRY(queue_tree_rules(true, &live->profile, err));
    }
    return asked->first != NULL ? change_first(live, asked, change, out_first, err) : WEIR_OK;
}

static const char *member(const json_t *item, const char *name)
{
    return json_string_value(json_object_get(item, name));
}

static void count_one(json_t *counts, const char *outcome)
{
    json_int_t n = json_integer_value(json_object_get(counts, outcome));
    json_object_set_new(counts, outcome, json_integer(n + 1));
}

/* The two plans have the same jobs in the same order. */
static json_t *compare(const struct live *live, const json_t *before, const json_t *after,
                       int32_t first)
{
    const json_t *left = json_object_get(before, "jobs"), *right = json_object_get(after, "jobs");
    json_t *jobs = json_array(), *others = json_object();
    json_int_t n_others = 0;
    for (size_t i = 0; i < json_array_size(left); i++) {
        const json_t *was = json_array_get(left, i), *is = json_array_get(right, i);
        if ((int32_t)i != first && strcmp(member(was, "outcome"), member(is, "outcome")) == 0) {
            continue;
        }
        if (!live_names_job(live, (int32_t)i)) {
            count_one(others, member(is, "outcome"));
            n_others++;
            continue;
        }
        const struct weir_job *job = live_job(live, (int32_t)i);
        json_array_append_new(jobs, json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s}", "id", job->id,
                                              "name", job->name, "project", job->project, "queue",
                                              member(is, "queue"), "before", member(was, "outcome"),
                                              "after", member(is, "outcome"), "why_before",
                                              member(was, "why"), "why_after", member(is, "why")));
    }
    return json_pack("{s:O,s:O,s:o,s:I,s:o}", "before", json_object_get(before, "counts"), "after",
                     json_object_get(after, "counts"), "jobs", jobs, "n_others", n_others, "others",
                     others);
}

static weir_status ask(struct live *live, const struct control_change *asked, json_t **out,
                       struct weir_error *err)
{
    struct live_change change;
    int32_t first = -1;
    WEIR_AUTO(weir_json_auto_free) json_t *before = NULL;
    WEIR_AUTO(weir_json_auto_free) json_t *after = NULL;
    WEIR_TRY(weir_sim_next(live->rows, &live->profile, &before, err));
    WEIR_TRY(apply(live, asked, &change, &first, err));
    WEIR_TRY(weir_sim_next(&change.rows, &live->profile, &after, err));
    *out = compare(live, before, after, first);
    return WEIR_OK;
}

weir_status control_what_if(struct weir_txn *txn, const struct control_live *at,
                            const struct control_change *change, json_t **out,
                            struct weir_error *err)
{
    struct live live;
    WEIR_TRY(live_open(&live, txn, at, err));
    weir_status status = ask(&live, change, out, err);
    live_close(&live);
    return status;
}
