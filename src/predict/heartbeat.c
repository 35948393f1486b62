#include "predict/heartbeat.h"

#include "base/clock.h"

static void add_source(const struct heartbeat *heartbeat, size_t n_queued, json_t *json)
{
    const struct source_ops *ops = heartbeat->source_ops;
    struct source *source = heartbeat->source;
    char why[SOURCE_WHY_BYTES] = "";
    size_t n_waiting = ops->waiting != NULL ? ops->waiting(source) : 0;
    size_t n_ignored = ops->ignored(source, why);
    json_object_set_new(json, "source", ops->status(source));
    json_object_set_new(json, "frames_waiting", json_integer((json_int_t)(n_queued + n_waiting)));
    json_object_set_new(json, "frames_ignored", json_integer((json_int_t)n_ignored));
    /* Names of files need not be UTF-8. */
    json_object_set_new(
        json, "why_ignored",
        weir_json_string(n_ignored > 0 ? why : NULL, "the name of a file is no UTF-8 text"));
}

static json_t *consumers_to_json(const struct heartbeat *heartbeat)
{
    json_t *list = json_array();
    for (size_t i = 0; i < heartbeat->n_consumers; i++) {
        json_array_append_new(list, consumer_status(heartbeat->consumers[i]));
    }
    return list;
}

json_t *heartbeat_make(const struct heartbeat *heartbeat, const struct weir_host_standing *standing)
{
    struct intake_counts counts;
    struct outbox_counts outbox;
    intake_counts(heartbeat->intake, &counts);
    outbox_counts(heartbeat->outbox, &outbox);
    int64_t age_ms =
        outbox.oldest_ms > 0 ? WEIR_MAX(weir_time_ms() - outbox.oldest_ms, (int64_t)1) : 0;
    json_t *json = json_pack(
        "{s:I,s:s,s:s?,s:I,s:I,s:I,s:I,s:I,s:s?,s:I,s:o}", "revision",
        (json_int_t)standing->revision, "state", standing->state, "reason",
        standing->reason[0] != '\0' ? standing->reason : NULL, "served_revision",
        (json_int_t)standing->served_revision, "frames_taken", (json_int_t)counts.n_accepted,
        "frames_decided", (json_int_t)outbox.n_durable, "last_frame_ms", (json_int_t)counts.last_ms,
        "backlog_ms", (json_int_t)age_ms, "backlog_reader",
        age_ms > 0 ? outbox.oldest_reader : NULL, "decisions_refused",
        (json_int_t)refused_count(heartbeat->refused), "consumers", consumers_to_json(heartbeat));
    if (json != NULL) {
        json_t *orders = door_orders_report(heartbeat->orders);
        json_object_set_new(json, "places", counts_status(heartbeat->counts));
        add_source(heartbeat, counts.n_queued, json);
        if (orders != NULL) {
            json_object_set_new(json, "orders", orders);
        }
    }
    return json;
}
