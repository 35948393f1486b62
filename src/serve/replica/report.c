#include "serve/replica/replica_private.h"

#include "host/address.h"

#include <string.h>

/* Again for each report: which way leads to the server may change. */
static void find_url(const struct serve_replica *replica, char out[WEIR_HOST_URL_BYTES])
{
    const struct serve_spec *spec = replica->options->spec;
    weir_host_url(spec->listen, front_port(replica->front), spec->host.server, out);
}

/* ---- the report ------------------------------------------------------------------------------ */

static json_t *figures(const struct batch_stats *stats, size_t memory_bytes)
{
    return json_pack("{s:I,s:I,s:I,s:I,s:f,s:f,s:I}", "success", (json_int_t)stats->success.n,
                     "failure", (json_int_t)stats->failure.n, "rows", (json_int_t)stats->n_rows,
                     "batches", (json_int_t)stats->n_batches, "p50_ms",
                     1e3 * batch_latency_quantile_s(stats, 0.5), "p99_ms",
                     1e3 * batch_latency_quantile_s(stats, 0.99), "memory_bytes",
                     (json_int_t)memory_bytes);
}

static void add_stats(struct batch_stats *sum, const struct batch_stats *stats)
{
    sum->success.n += stats->success.n;
    sum->failure.n += stats->failure.n;
    sum->n_rows += stats->n_rows;
    sum->n_batches += stats->n_batches;
    for (size_t i = 0; i < BATCH_LATENCY_BUCKETS; i++) {
        sum->latency_counts[i] += stats->latency_counts[i];
    }
}

static json_t *version_json(const struct version_row *row)
{
    const struct version *version = row->version;
    return json_pack("{s:I,s:s,s:s,s:s?,s:s?,s:f}", "version", (json_int_t)row->number, "state",
                     version_state_text(row->state), "reason", row->reason, "executor",
                     version != NULL ? version->signature.executor : NULL, "place",
                     version != NULL ? version->executor->place : NULL, "load_ms",
                     version != NULL ? version->load_ms : 0.0);
}

json_t *serve_report(const struct serve_replica *replica)
{
    int64_t revision = atomic_load(&replica->revision); /* Its versions are announced by now. */
    char url[WEIR_HOST_URL_BYTES];
    struct weir_arena arena;
    struct versions_view view;
    json_t *versions = json_array(), *by_version = json_array();
    size_t memory_bytes = 0;
    weir_arena_init(&arena, 0);
    struct batch_stats *stats = WEIR_ARENA_NEW(&arena, struct batch_stats);
    struct batch_stats *sum = WEIR_ARENA_NEW(&arena, struct batch_stats);
    versions_view(replica->versions, &arena, &view);
    for (size_t i = 0; i < view.n; i++) {
        (void)json_array_append_new(versions, version_json(&view.rows[i]));
        if (view.rows[i].version != NULL) {
            batcher_stats(view.rows[i].version->batcher, stats);
            json_t *one = figures(stats, view.rows[i].version->memory_bytes);
            (void)json_object_set_new(one, "version", json_integer(view.rows[i].number));
            (void)json_array_append_new(by_version, one);
            add_stats(sum, stats);
            memory_bytes += view.rows[i].version->memory_bytes;
        }
    }
    versions_view_release(&view);
    find_url(replica, url);
    json_t *all = figures(sum, memory_bytes);
    (void)json_object_set_new(all, "versions", by_version);
    json_t *report =
        json_pack("{s:s,s:I,s:o,s:I,s:o}", "url", url, "revision", (json_int_t)revision, "versions",
                  versions, "n_running", (json_int_t)front_n_running(replica->front), "stats", all);
    weir_arena_fini(&arena);
    return report;
}
