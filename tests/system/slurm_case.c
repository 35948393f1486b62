/*
 * slurm_case OPTIONS VERB [ARGUMENT …]: the driver's operations, for slurm_driver_test.py. OPTIONS is the cluster's document
 * as JSON. Prints one line of JSON; an error is {"status", "error"}, and exit status 1.
 *
 *     check | list | guess | payer QUEUE | request REQUEST | poll TAG … | release TAG
 */
#include "cluster/driver.h"

#include "base/json.h"

#include <stdio.h>
#include <string.h>

static const struct weir_driver_ops *ops;
static struct weir_arena arena;
static struct weir_error err;

static weir_status check(const void *options, json_t **out)
{
    const char *missing;
    WEIR_TRY(ops->check(options, &arena, &missing, &err));
    *out = json_pack("{s:s?}", "missing", missing);
    return WEIR_OK;
}

static weir_status list(const void *options, json_t **out)
{
    struct weir_pool_offer *offers;
    size_t n;
    WEIR_TRY(ops->list(options, &arena, &offers, &n, &err));
    *out = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(
            *out,
            json_pack("{s:s,s:I,s:I,s:I,s:s?,s:I,s:I,s:s?}", "name", offers[i].name, "cpu_slots",
                      (json_int_t)offers[i].cpu_slots, "memory_bytes",
                      (json_int_t)offers[i].memory_bytes, "n_accelerators",
                      (json_int_t)offers[i].n_accelerators, "accelerator", offers[i].accelerator,
                      "max_nodes", (json_int_t)offers[i].max_nodes, "time_max_ms",
                      (json_int_t)offers[i].time_max_ms, "why", offers[i].why));
    }
    return WEIR_OK;
}

static int64_t number(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static const char *text(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static weir_status request(const void *options, const char *document, json_t **out)
{
    json_t *object = json_loads(document, 0, NULL);
    const struct weir_node_request wanted = {.tag = text(object, "tag"),
                                             .pool = text(object, "pool"),
                                             .n_nodes = number(object, "n_nodes"),
                                             .time_ms = number(object, "time_ms"),
                                             .cpu_slots = number(object, "cpu_slots"),
                                             .memory_bytes = number(object, "memory_bytes"),
                                             .n_accelerators = number(object, "n_accelerators"),
                                             .accelerator = text(object, "accelerator"),
                                             .queue = text(object, "queue"),
                                             .text = text(object, "text"),
                                             .agent = {.server = text(object, "server"),
                                                       .secret = text(object, "secret"),
                                                       .ca_file = text(object, "ca_file")}};
    weir_status status = ops->request(options, &wanted, &err);
    json_decref(object);
    *out = json_object();
    return status;
}

static json_t *report_json(const struct weir_allocation_report *report)
{
    static const char *const phases[] = {"unknown", "pending", "running", "ended"};
    static const char *const endings[] = {"released",  "time",   "preempted",
                                          "cancelled", "failed", "refused"};
    json_t *nodes = json_array();
    for (size_t i = 0; i < report->n_nodes; i++) {
        json_array_append_new(nodes, json_string(report->nodes[i]));
    }
    const char *ending = report->phase == WEIR_ALLOCATION_ENDED ? endings[report->ending] : NULL;
    return json_pack("{s:s,s:s?,s:s?,s:s?,s:s?,s:I,s:I,s:o,s:s?,s:s?}", "phase",
                     phases[report->phase], "ending", ending, "id", report->their_id, "said",
                     report->said, "why", report->why, "starts_ms", (json_int_t)report->starts_ms,
                     "ends_ms", (json_int_t)report->ends_ms, "nodes", nodes, "closed_node",
                     report->closed_node, "closed_why", report->closed_why);
}

static weir_status poll(const void *options, char **tags, size_t n, json_t **out)
{
    struct weir_allocation_report *reports =
        WEIR_ARENA_ARRAY(&arena, n + 1, struct weir_allocation_report);
    WEIR_TRY(ops->poll(options, (const char *const *)tags, n, &arena, reports, &err));
    *out = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(*out, report_json(&reports[i]));
    }
    return WEIR_OK;
}

static weir_status run(int argc, char **argv, const void *options, json_t *document, json_t **out)
{
    const char *verb = argv[2];
    if (strcmp(verb, "check") == 0) {
        return check(options, out);
    }
    if (strcmp(verb, "list") == 0) {
        return list(options, out);
    }
    if (strcmp(verb, "guess") == 0) {
        *out = json_incref(document);
        return ops->guess(document, &arena, &err);
    }
    if (strcmp(verb, "payer") == 0 && argc == 4) {
        *out = json_string(ops->payer(options, argv[3], &arena));
        return WEIR_OK;
    }
    if (strcmp(verb, "request") == 0 && argc == 4) {
        return request(options, argv[3], out);
    }
    if (strcmp(verb, "poll") == 0) {
        return poll(options, argv + 3, (size_t)argc - 3, out);
    }
    if (strcmp(verb, "release") == 0 && argc == 4) {
        *out = json_object();
        return ops->release(options, argv[3], &err);
    }
    return weir_error_set(&err, WEIR_ERR_INVALID, "slurm_case OPTIONS VERB [ARGUMENT …]");
}

int main(int argc, char **argv)
{
    struct weir_configured configured = {0};
    json_t *document = argc > 2 ? json_loads(argv[1], 0, NULL) : NULL, *out = NULL;
    weir_arena_init(&arena, 0);
    weir_status status =
        weir_kind_read(&weir_driver_slurm, document, "$", &arena, &configured, &err);
    if (status == WEIR_OK) {
        ops = configured.kind->ops;
        status = run(argc, argv, configured.options, document, &out);
    }
    if (status != WEIR_OK) {
        json_decref(out);
        out = json_pack("{s:s,s:s}", "status", weir_status_name(status), "error", err.message);
    }
    (void)json_dumpf(out, stdout, JSON_COMPACT | JSON_ENCODE_ANY);
    (void)puts("");
    json_decref(out);
    json_decref(document);
    weir_arena_fini(&arena);
    return status == WEIR_OK ? 0 : 1;
}
