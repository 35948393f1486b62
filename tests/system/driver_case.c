/*
 * driver_case DRIVER OPTIONS VERB [ARGUMENT …]: a driver's operations, for tests of drivers. OPTIONS is the cluster's
 * document as JSON. Prints one line of JSON; an error is {"status", "error"}, and exit status 1.
 *
 *     check | list | guess | payer QUEUE | request REQUEST | poll TAG … | release TAG | tend QUEUES | show SERVER JOBS
 *
 * `check` says also what only the showing of jobs lacks (ops->check_show); `show` what was seen before: {"is_wanted", "ids",
 * "deleted"}.
 *
 * driver_case DRIVER OPTIONS: the same, of one link, as lines of standard input that are each [VERB, ARGUMENT …] in JSON.
 */
#include "cluster/driver.h"

#include "base/json.h"
#include "sched/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 256

static const struct weir_driver_ops *ops;
static struct weir_arena arena;
static struct weir_error err;

static weir_status check(struct weir_driver_link *link, json_t **out)
{
    const char *missing;
    WEIR_TRY(ops->check(link, &arena, &missing, &err));
    if (missing == NULL && ops->check_show != NULL) {
        WEIR_TRY(ops->check_show(link, &arena, &missing, &err));
    }
    *out = json_pack("{s:s?}", "missing", missing);
    return WEIR_OK;
}

static weir_status list(struct weir_driver_link *link, json_t **out)
{
    struct weir_pool_offer *offers;
    size_t n;
    WEIR_TRY(ops->list(link, &arena, &offers, &n, &err));
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

static weir_status request(struct weir_driver_link *link, const char *document, json_t **out)
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
                                             .accelerator_milli =
                                                 number(object, "accelerator_milli"),
                                             .queue = text(object, "queue"),
                                             .text = text(object, "text"),
                                             .agent = {.server = text(object, "server"),
                                                       .secret = text(object, "secret"),
                                                       .ca_file = text(object, "ca_file")}};
    weir_status status = ops->request(link, &wanted, &err);
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

static weir_status poll(struct weir_driver_link *link, char **tags, size_t n, json_t **out)
{
    struct weir_allocation_report *reports =
        WEIR_ARENA_ARRAY(&arena, n + 1, struct weir_allocation_report);
    WEIR_TRY(ops->poll(link, (const char *const *)tags, n, &arena, reports, &err));
    *out = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(*out, report_json(&reports[i]));
    }
    return WEIR_OK;
}

/* What is not said of a resource is `otherwise`; below 0 is no limit. */
static int64_t share_of(const json_t *queue, const char *what, const char *resource,
                        int64_t otherwise, int64_t unit)
{
    const json_t *has = json_object_get(json_object_get(queue, what), resource);
    double value = json_number_value(has);
    return has == NULL ? otherwise
           : value < 0 ? WEIR_SCHED_UNLIMITED
                       : (int64_t)(value * (double)unit);
}

/* {"name", "parent", "priority", "quota": {"gpu", "cpu", "gib"}, "weight": {…}, "limit": {…}} */
static void read_queue(const json_t *object, const struct weir_sched_queue *before, size_t n,
                       struct weir_sched_queue *out)
{
    static const char *const resources[] = {"gpu", "cpu", "gib"};
    static const int64_t units[] = {1000, 1000, (int64_t)1 << 30};
    const char *parent = text(object, "parent");
    *out = (struct weir_sched_queue){.name = text(object, "name"),
                                     .parent = WEIR_SCHED_NONE,
                                     .priority = (int32_t)number(object, "priority"),
                                     .preempt_min_run_ms = -1,
                                     .reclaim_min_run_ms = -1};
    for (size_t k = 0; parent != NULL && k < n; k++) {
        out->parent = strcmp(before[k].name, parent) == 0 ? (int32_t)k : out->parent;
    }
    for (size_t k = 0; k < WEIR_ARRAY_LEN(resources); k++) {
        out->shares[k] = (struct weir_sched_share){
            share_of(object, "quota", resources[k], 0, units[k]),
            share_of(object, "weight", resources[k], 1, 1),
            share_of(object, "limit", resources[k], WEIR_SCHED_UNLIMITED, units[k])};
    }
}

static weir_status tend(struct weir_driver_link *link, const char *document, json_t **out)
{
    json_t *list = json_loads(document, 0, NULL), *one;
    size_t i, n = json_array_size(list);
    struct weir_sched_queue *rows = WEIR_ARENA_ARRAY(&arena, n + 1, struct weir_sched_queue);
    json_array_foreach(list, i, one)
    {
        read_queue(one, rows, i, &rows[i]);
    }
    weir_status status = ops->tend(link, rows, n, &err);
    json_decref(list);
    *out = json_object();
    return status;
}

static json_t *texts_json(const char *const *texts, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(list, json_string(texts[i]));
    }
    return list;
}

/* [{"id", "name", "project", "queue", "kind", "state", "reason", "n_nodes", "started_ms", "ended_ms", "is_ending"}] */
static weir_status show(struct weir_driver_link *link, const char *server, const char *document,
                        json_t **out)
{
    struct weir_shown seen;
    WEIR_TRY(ops->shown(link, &arena, &seen, &err));
    json_t *list = json_loads(document, 0, NULL), *one;
    size_t i, n = json_array_size(list);
    struct weir_shown_job *jobs = WEIR_ARENA_ARRAY(&arena, n + 1, struct weir_shown_job);
    json_array_foreach(list, i, one)
    {
        jobs[i] =
            (struct weir_shown_job){.id = text(one, "id"),
                                    .name = text(one, "name"),
                                    .project = text(one, "project"),
                                    .queue = text(one, "queue"),
                                    .kind = text(one, "kind"),
                                    .state = text(one, "state"),
                                    .reason = text(one, "reason"),
                                    .n_nodes = number(one, "n_nodes"),
                                    .started_ms = number(one, "started_ms"),
                                    .ended_ms = number(one, "ended_ms"),
                                    .is_ending = json_is_true(json_object_get(one, "is_ending"))};
    }
    const struct weir_showing showing = {.server = server, .jobs = jobs, .n = n};
    weir_status status = ops->show(link, &showing, &err);
    json_decref(list);
    *out = json_pack("{s:b,s:o,s:o}", "is_wanted", seen.is_wanted, "ids",
                     texts_json(seen.ids, seen.n_ids), "deleted",
                     texts_json(seen.deleted, seen.n_deleted));
    return status;
}

/* @param words  The verb and its arguments. */
static weir_status run(int n, char **words, struct weir_driver_link *link, json_t *document,
                       json_t **out)
{
    const char *verb = words[0];
    if (strcmp(verb, "check") == 0) {
        return check(link, out);
    }
    if (strcmp(verb, "list") == 0) {
        return list(link, out);
    }
    if (strcmp(verb, "guess") == 0) {
        *out = json_incref(document);
        return ops->guess(document, &arena, &err);
    }
    if (strcmp(verb, "payer") == 0 && n == 2) {
        *out = json_string(ops->payer(link->options, words[1], &arena));
        return WEIR_OK;
    }
    if (strcmp(verb, "request") == 0 && n == 2) {
        return request(link, words[1], out);
    }
    if (strcmp(verb, "poll") == 0) {
        return poll(link, words + 1, (size_t)n - 1, out);
    }
    if (strcmp(verb, "release") == 0 && n == 2) {
        *out = json_object();
        return ops->release(link, words[1], &err);
    }
    if (strcmp(verb, "tend") == 0 && n == 2) {
        return tend(link, words[1], out);
    }
    if (strcmp(verb, "show") == 0 && n == 3) {
        return show(link, words[1], words[2], out);
    }
    return weir_error_set(&err, WEIR_ERR_INVALID, "driver_case DRIVER OPTIONS [VERB [ARGUMENT …]]");
}

static void print(weir_status status, json_t *out)
{
    if (status != WEIR_OK) {
        json_decref(out);
        out = json_pack("{s:s,s:s}", "status", weir_status_name(status), "error", err.message);
    }
    (void)json_dumpf(out, stdout, JSON_COMPACT | JSON_ENCODE_ANY);
    (void)puts("");
    (void)fflush(stdout);
    json_decref(out);
}

static void run_line(const char *line, struct weir_driver_link *link, json_t *document)
{
    char *words[WORDS_MAX];
    json_t *list = json_loads(line, 0, NULL), *out = NULL;
    size_t n = WEIR_MIN(json_array_size(list), (size_t)WORDS_MAX);
    for (size_t i = 0; i < n; i++) {
        words[i] = (char *)(uintptr_t)json_string_value(json_array_get(list, i));
    }
    weir_status status = n > 0 ? run((int)n, words, link, document, &out)
                               : weir_error_set(&err, WEIR_ERR_INVALID, "no list of words");
    print(status, out);
    json_decref(list);
}

static void run_lines(struct weir_driver_link *link, json_t *document)
{
    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, stdin) > 0) {
        run_line(line, link, document);
        weir_arena_fini(&arena);
    }
    free(line);
}

int main(int argc, char **argv)
{
    struct weir_configured configured = {0};
    struct weir_arena kept; /* of the options */
    json_t *document = argc > 2 ? json_loads(argv[2], 0, NULL) : NULL, *out = NULL;
    weir_arena_init(&arena, 0);
    weir_arena_init(&kept, 0);
    weir_status status = weir_registry_find(&weir_drivers, argc > 2 ? argv[1] : "", "DRIVER",
                                            &configured.kind, &err);
    if (status == WEIR_OK) {
        status = weir_kind_read(configured.kind, document, "$", &kept, &configured, &err);
    }
    struct weir_driver_link link = {.options = configured.options};
    if (status == WEIR_OK) {
        ops = configured.kind->ops;
        if (argc == 3) {
            run_lines(&link, document);
        } else {
            status = run(argc - 3, argv + 3, &link, document, &out);
        }
        weir_driver_close(ops, &link);
    }
    if (status != WEIR_OK || argc != 3) {
        print(status, out);
    }
    json_decref(document);
    weir_arena_fini(&kept);
    weir_arena_fini(&arena);
    return status == WEIR_OK ? 0 : 1;
}
