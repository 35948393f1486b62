/** Clusters that nodes are asked of, and their pools: job/cluster.h. Their drivers are asked aside (cluster_ask.h). */
#include "job/cluster.h"
#include "api/cluster/cluster_ask.h"
#include "api/core/answer.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/core/records.h"
#include "api/core/slow.h"
#include "api/core/views.h"

#include "base/secret.h"
#include "cluster/driver.h"
#include "store/event.h"
#include "store/stmt.h"

#include <string.h>

#define IDLE_USUAL_MS ((int64_t)60000)
#define SPAN_MOST_MS  ((int64_t)366 * 24 * 3600 * 1000)
#define NODES_MOST    1000000
#define ASK_WAIT_MS   120000
/* With "-" and 8 digits it is an allocation's tag, and its node's name has a number more. */
#define NAME_MAX_BYTES 40

/* ---- looking at them --------------------------------------------------------------------------- */

/* What was asked of a cluster's pool, and has not ended, by state. */
struct held {
    char *cluster, *pool;
    int64_t n_open, n_nodes, n_wanted;
};

#define N_STATES_OPEN 4
#define HELD_MAX      ((size_t)WEIR_CLUSTERS_MAX * WEIR_POOLS_MAX * N_STATES_OPEN)

static const char sql_held[] = "SELECT cluster, pool, state, count(*), sum(n_nodes)"
                               " FROM allocations WHERE state <> 'ended'"
                               " GROUP BY cluster, pool, state LIMIT :n";

static struct held held_of(const struct weir_stmt *row, struct weir_arena *arena)
{
    const char *state = weir_stmt_text(row, 2, arena);
    bool waits =
        strcmp(state, WEIR_ALLOCATION_WANTED) == 0 || strcmp(state, WEIR_ALLOCATION_PENDS) == 0;
    int64_t n_nodes = weir_stmt_int(row, 4);
    return (struct held){.cluster = weir_stmt_text(row, 0, arena),
                         .pool = weir_stmt_text(row, 1, arena),
                         .n_open = weir_stmt_int(row, 3),
                         .n_nodes = waits ? 0 : n_nodes,
                         .n_wanted = waits ? n_nodes : 0};
}

static weir_status read_held(struct api_call *call, struct weir_txn *txn, struct held **out,
                             size_t *out_n, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    struct held *held = NULL;
    size_t n = 0, cap = 0;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql_held, WEIR_BINDS(WEIR_BIND_INT("n", HELD_MAX)), &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    while (has_row && n < HELD_MAX) {
        if (n == cap) {
            struct held *more = WEIR_ARENA_ARRAY(call->arena, 2 * cap + 16, struct held);
            if (n > 0) {
                memcpy(more, held, n * sizeof *held);
            }
            held = more;
            cap = 2 * cap + 16;
        }
        held[n++] = held_of(row, call->arena);
        WEIR_TRY(weir_stmt_step(row, &has_row, err));
    }
    *out = held;
    *out_n = n;
    return WEIR_OK;
}

/* The sum over a cluster, or over one pool of it. */
static struct held sum_of(const struct held *held, size_t n, const char *cluster, const char *pool)
{
    struct held sum = {0};
    for (size_t i = 0; i < n; i++) {
        if (strcmp(held[i].cluster, cluster) == 0 &&
            (pool == NULL || strcmp(held[i].pool, pool) == 0)) {
            sum.n_open += held[i].n_open;
            sum.n_nodes += held[i].n_nodes;
            sum.n_wanted += held[i].n_wanted;
        }
    }
    return sum;
}

/* The paths of the driver's secret options: "token password". */
static const char *secrets_of(const struct api_call *call, const char *driver)
{
    const struct weir_kind *kind = weir_registry_get(call->api->drivers, driver);
    const char *paths = "";
    for (size_t i = 0; kind != NULL && i < kind->n_options; i++) {
        if (kind->options[i].flags & WEIR_OPTION_SECRET) {
            paths = weir_arena_printf(call->arena, "%s%s%s", paths, paths[0] != '\0' ? " " : "",
                                      weir_option_key(&kind->options[i], call->arena));
        }
    }
    return paths[0] != '\0' ? paths : NULL;
}

static json_t *options_of(const char *text)
{
    json_t *options = text != NULL ? json_loads(text, 0, NULL) : NULL;
    return options != NULL ? options : json_object();
}

static void hide_secrets(const struct api_call *call, struct weir_cluster *cluster)
{
    const char *paths = secrets_of(call, cluster->driver);
    if (paths != NULL) {
        WEIR_AUTO(weir_json_auto_free) json_t *options = options_of(cluster->options);
        weir_secrets_mask(options, paths);
        cluster->options = weir_json_text(options, call->arena);
    }
}

static struct api_cluster view_of(const struct api_call *call, struct weir_cluster *cluster,
                                  const struct held *held, size_t n)
{
    const struct held sum = sum_of(held, n, cluster->name, NULL);
    hide_secrets(call, cluster);
    return (struct api_cluster){.row = cluster,
                                .n_allocations = sum.n_open,
                                .n_nodes = sum.n_nodes,
                                .n_wanted = sum.n_wanted};
}

weir_status api_cluster_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct api_rows rows;
    struct held *held;
    size_t n;
    WEIR_TRY(api_rows_read(call, txn, &(struct weir_query){0}, &rows, err));
    WEIR_TRY(read_held(call, txn, &held, &n, err));
    struct weir_cluster *clusters = rows.items;
    struct api_cluster *views = WEIR_ARENA_ARRAY(call->arena, rows.n, struct api_cluster);
    for (size_t i = 0; i < rows.n; i++) {
        views[i] = view_of(call, &clusters[i], held, n);
    }
    api_answer_views(call, api_cluster_view(), views, rows.n, rows.next);
    return WEIR_OK;
}

static weir_status load(struct api_call *call, struct weir_txn *txn, const char *name,
                        struct weir_cluster *out, struct weir_error *err)
{
    return weir_txn_get(txn, &weir_cluster_resource, name, call->arena, out, err);
}

static weir_status answer_cluster(struct api_call *call, struct weir_txn *txn, const char *name,
                                  struct weir_error *err)
{
    struct weir_cluster cluster;
    struct held *held;
    size_t n;
    WEIR_TRY(load(call, txn, name, &cluster, err));
    WEIR_TRY(read_held(call, txn, &held, &n, err));
    const struct api_cluster view = view_of(call, &cluster, held, n);
    api_answer(call, weir_view_to_json(api_cluster_view(), &view));
    return WEIR_OK;
}

weir_status api_cluster_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    return answer_cluster(call, txn, call->params[0], err);
}

weir_status api_pool_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct api_rows rows;
    struct held *held;
    size_t n;
    WEIR_TRY(api_rows_read(call, txn, &(struct weir_query){0}, &rows, err));
    WEIR_TRY(read_held(call, txn, &held, &n, err));
    const struct weir_pool *pools = rows.items;
    struct api_pool *views = WEIR_ARENA_ARRAY(call->arena, rows.n, struct api_pool);
    for (size_t i = 0; i < rows.n; i++) {
        const struct held sum = sum_of(held, n, pools[i].cluster, pools[i].name);
        views[i] =
            (struct api_pool){.row = &pools[i], .n_nodes = sum.n_nodes, .n_wanted = sum.n_wanted};
    }
    api_answer_views(call, api_pool_view(), views, rows.n, rows.next);
    return WEIR_OK;
}

/* ---- what a person writes ---------------------------------------------------------------------- */

static weir_status check_name(const char *name, struct weir_error *err)
{
    size_t len = strlen(name);
    if (strcmp(name, WEIR_CLUSTER_OWN) == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.name: \"" WEIR_CLUSTER_OWN
                              "\" stands for the nodes that joined by themselves");
    }
    return len <= NAME_MAX_BYTES && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "$.name: \"%.60s\": expected at most %d of a-z 0-9 -, which are "
                                "in the names of its nodes",
                                name, NAME_MAX_BYTES);
}

static weir_status find_driver(const struct api_call *call, const char *name,
                               const struct weir_kind **out, struct weir_error *err)
{
    if (name == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.driver: expected who supplies the nodes: `weir explain drivers`");
    }
    if (strcmp(name, "local") == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.driver: local: this machine is a node already; others join by "
                              "`weir node token`");
    }
    return weir_registry_find(call->api->drivers, name, "$.driver", out, err);
}

/* $.options, with the stored secrets in place of masks; read by the driver's table unless they are to be guessed. A new
 * reference. */
static weir_status read_options(struct api_call *call, const char *driver, const char *stored,
                                bool is_whole, json_t **out, struct weir_error *err)
{
    const struct weir_kind *kind;
    struct weir_configured configured;
    const json_t *said = json_object_get(call->body, "options");
    WEIR_TRY(find_driver(call, driver, &kind, err));
    if (said != NULL && !json_is_null(said) && !json_is_object(said)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.options: expected an object");
    }
    WEIR_AUTO(weir_json_auto_free) json_t *before = options_of(stored);
    WEIR_AUTO(weir_json_auto_free)
    json_t *options = json_is_object(said) ? json_deep_copy(said) : json_object();
    WEIR_TRY(weir_secrets_restore(options, before, secrets_of(call, driver), "$.options", err));
    WEIR_TRY(weir_kind_check_members(call->api->drivers, kind, options, "$.options", err));
    if (is_whole) {
        WEIR_TRY(weir_kind_read(kind, options, "$.options", call->arena, &configured, err));
    }
    *out = json_incref(options);
    return WEIR_OK;
}

static weir_status check_numbers(const struct weir_cluster *cluster, struct weir_error *err)
{
    const struct {
        const char *member;
        int64_t value, most;
    } numbers[] = {{"after_ms", cluster->after_ms, SPAN_MOST_MS},
                   {"idle_ms", cluster->idle_ms, SPAN_MOST_MS},
                   {"time_ms", cluster->time_ms, SPAN_MOST_MS},
                   {"max_nodes", cluster->max_nodes, NODES_MOST}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(numbers); i++) {
        if (numbers[i].value < 0 || numbers[i].value > numbers[i].most) {
            return weir_error_set(err, WEIR_ERR_INVALID, "$.%s: expected 0 to %lld",
                                  numbers[i].member, (long long)numbers[i].most);
        }
    }
    return WEIR_OK;
}

/* The body, over what is there; `before` is zeros if nothing is. */
static weir_status read_cluster(struct api_call *call, const struct weir_cluster *before,
                                struct weir_cluster *out, struct weir_error *err)
{
    bool is_new = before->name == NULL;
    *out = (struct weir_cluster){.idle_ms = IDLE_USUAL_MS};
    WEIR_TRY(weir_record_from_json(&weir_cluster_resource, call->body, WEIR_RECORD_CREATE,
                                   call->arena, out, err));
    WEIR_TRY(check_name(out->name, err));
    WEIR_TRY(check_numbers(out, err));
    if (!is_new && strcmp(out->driver, before->driver) != 0) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "$.driver: cluster %s is one of %s: add another one for %s",
                              out->name, before->driver, out->driver);
    }
    json_t *options;
    WEIR_TRY(read_options(call, out->driver, before->options, true, &options, err));
    out->options = weir_json_text(options, call->arena);
    json_decref(options);
    bool is_asked_anew = is_new || strcmp(out->options, before->options) != 0;
    out->state = is_asked_anew ? (char *)WEIR_CLUSTER_NEW : before->state;
    out->said = is_asked_anew ? NULL : before->said;
    out->heard_ms = before->heard_ms;
    out->created_by = is_new ? (char *)call->actor : before->created_by;
    out->created_ms = is_new ? call->now_ms : before->created_ms;
    return WEIR_OK;
}

/* ---- changing them ----------------------------------------------------------------------------- */

static weir_status tell(struct api_call *call, struct weir_txn *txn, const char *kind,
                        const char *cluster, const char *message, struct weir_error *err)
{
    const struct weir_event event = {.time_ms = call->now_ms,
                                     .topic = "nodes",
                                     .kind = (char *)kind,
                                     .subject =
                                         weir_arena_printf(call->arena, "cluster/%s", cluster),
                                     .actor = (char *)call->actor,
                                     .message = (char *)message};
    return weir_event_append(txn, &event, NULL, err);
}

weir_status api_cluster_create(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const struct weir_cluster none = {0};
    struct weir_cluster made, there;
    WEIR_TRY(read_cluster(call, &none, &made, err));
    if (load(call, txn, made.name, &there, NULL) == WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_EXISTS,
                              "cluster %s is there already: `weir cluster set %s` changes it",
                              made.name, made.name);
    }
    WEIR_TRY(weir_cluster_set(txn, &made, err));
    WEIR_TRY(tell(call, txn, "cluster_added", made.name,
                  weir_arena_printf(call->arena, "%s added cluster %s, by driver %s.", call->actor,
                                    made.name, made.driver),
                  err));
    return answer_cluster(call, txn, made.name, err);
}

/* Which members differ: "options, idle_ms". */
static const char *changes_of(struct api_call *call, const struct weir_cluster *before,
                              const struct weir_cluster *after)
{
    WEIR_AUTO(weir_json_auto_free)
    json_t *was = weir_record_to_json(&weir_cluster_resource, before);
    WEIR_AUTO(weir_json_auto_free)
    json_t *is = weir_record_to_json(&weir_cluster_resource, after);
    const char *text = "", *member;
    json_t *value;
    json_object_foreach(is, member, value)
    {
        const struct weir_field *field = weir_resource_field(&weir_cluster_resource, member);
        if ((field->flags & WEIR_FIELD_MUTABLE) &&
            !json_equal(value, json_object_get(was, member))) {
            text =
                weir_arena_printf(call->arena, "%s%s%s", text, text[0] != '\0' ? ", " : "", member);
        }
    }
    return text[0] != '\0' ? text : "nothing";
}

weir_status api_cluster_put(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_cluster before, after;
    const char *name = json_string_value(json_object_get(call->body, "name"));
    if (name != NULL && strcmp(name, call->params[0]) != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.name: the path names cluster %s",
                              call->params[0]);
    }
    WEIR_TRY(load(call, txn, call->params[0], &before, err));
    json_object_set_new(call->body, "name", json_string(before.name));
    WEIR_TRY(read_cluster(call, &before, &after, err));
    WEIR_TRY(weir_cluster_set(txn, &after, err));
    WEIR_TRY(weir_cluster_note(txn, &after, err));
    WEIR_TRY(tell(call, txn, "cluster_changed", after.name,
                  weir_arena_printf(call->arena, "%s changed cluster %s: %s.", call->actor,
                                    after.name, changes_of(call, &before, &after)),
                  err));
    return answer_cluster(call, txn, after.name, err);
}

weir_status api_cluster_update(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    static const char *const fields[] = {"is_draining", NULL};
    struct weir_cluster cluster;
    WEIR_TRY(api_body_only(call, fields, err));
    WEIR_TRY(load(call, txn, call->params[0], &cluster, err));
    bool was_draining = cluster.is_draining;
    WEIR_TRY(api_body_bool(call, "is_draining", was_draining, &cluster.is_draining, err));
    if (cluster.is_draining != was_draining) {
        const char *what = cluster.is_draining
                               ? "is asked for no more nodes; what runs there goes on"
                               : "is asked for nodes again";
        WEIR_TRY(weir_cluster_set(txn, &cluster, err));
        WEIR_TRY(tell(call, txn, cluster.is_draining ? "cluster_drained" : "cluster_resumed",
                      cluster.name,
                      weir_arena_printf(call->arena, "Cluster %s %s.", cluster.name, what), err));
    }
    return answer_cluster(call, txn, cluster.name, err);
}

weir_status api_cluster_delete(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    WEIR_TRY(weir_cluster_remove(txn, call->params[0], err));
    WEIR_TRY(
        tell(call, txn, "cluster_removed", call->params[0],
             weir_arena_printf(call->arena, "%s removed cluster %s.", call->actor, call->params[0]),
             err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}

/* ---- asking their drivers ---------------------------------------------------------------------- */

/* NULL: the request waits. */
static weir_status ask(struct api_call *call, const char *question, json_t **out,
                       struct weir_error *err)
{
    char *text;
    *out = NULL;
    switch (slow_look(call->api->slow, question, call->arena, &text, err)) {
    case SLOW_DONE:
        return weir_json_parse(text, strlen(text), "answer", out, err);
    case SLOW_REFUSED:
        return err->status;
    default:
        break;
    }
    if (call->request->is_expired) {
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                              "the cluster has not answered for %d s: ask again",
                              ASK_WAIT_MS / 1000);
    }
    weir_http_response_wait(call->response, WEIR_HTTP_ALL_TOPICS, ASK_WAIT_MS);
    return WEIR_OK;
}

/* Does the address lead nowhere but to the machine that uses it? */
static bool is_loopback(const char *url)
{
    static const char *const hosts[] = {"://127.", "://localhost", "://[::1]"};
    bool is = false;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(hosts); i++) {
        is = is || strstr(url, hosts[i]) != NULL;
    }
    return is;
}

/* What need not be wrong, and mostly is: agents elsewhere are told to come here by an address of this machine alone. */
static const char *notice_of(struct api_call *call, const json_t *options)
{
    const char *told = json_string_value(json_object_get(options, "server"));
    const char *url = told != NULL ? told : api_control(call).server_url;
    return url != NULL && is_loopback(url)
               ? weir_arena_printf(
                     call->arena,
                     "agents are told that this server is at %.200s, which other machines do not "
                     "reach: start it with --listen ADDRESS:PORT, or set server=URL here as its "
                     "nodes reach it",
                     url)
               : NULL;
}

static weir_status check_and_answer(struct api_call *call, const char *name, const char *driver,
                                    const json_t *options, struct weir_error *err)
{
    json_t *said;
    WEIR_TRY(ask(call, cluster_ask_text(CLUSTER_ASK_CHECK, name, driver, options, call->arena),
                 &said, err));
    if (said != NULL) {
        const char *missing = json_string_value(json_object_get(said, "missing"));
        API_ANSWER(call, api_cluster_check, .is_ready = missing == NULL,
                   .missing = weir_arena_strdup(call->arena, missing),
                   .notice = notice_of(call, options),
                   .pools = json_incref(json_object_get(said, "pools")));
        json_decref(said);
    }
    return WEIR_OK;
}

struct find {
    struct api_call *call;
    const char *name;
    struct weir_cluster cluster;
};

static weir_status find_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct find *find = context;
    return load(find->call, txn, find->name, &find->cluster, err);
}

weir_status api_cluster_check_one(struct api_call *call, struct weir_txn *txn,
                                  struct weir_error *err)
{
    struct find find = {.call = call, .name = call->params[0]};
    (void)txn;
    WEIR_TRY(api_read(call, find_in, &find, err));
    WEIR_AUTO(weir_json_auto_free) json_t *options = options_of(find.cluster.options);
    return check_and_answer(call, find.cluster.name, find.cluster.driver, options, err);
}

/* The body: {"driver", "options"}. With the "name" of a cluster that is there, its stored secrets replace masks. */
static weir_status read_asked(struct api_call *call, bool is_whole, struct find *find,
                              const char **out_driver, json_t **out_options, struct weir_error *err)
{
    static const char *const fields[] = {"name", "driver", "options", NULL};
    WEIR_TRY(api_body_only(call, fields, err));
    WEIR_TRY(api_body_text(call, "name", &find->name, err));
    WEIR_TRY(api_body_text(call, "driver", out_driver, err));
    if (find->name != NULL) {
        weir_status status = api_read(call, find_in, find, err);
        WEIR_TRY(status == WEIR_ERR_NOT_FOUND ? WEIR_OK : status);
    }
    return read_options(call, *out_driver, find->cluster.options, is_whole, out_options, err);
}

weir_status api_cluster_check_new(struct api_call *call, struct weir_txn *txn,
                                  struct weir_error *err)
{
    struct find find = {.call = call};
    const char *driver;
    json_t *read;
    (void)txn;
    WEIR_TRY(read_asked(call, true, &find, &driver, &read, err));
    WEIR_AUTO(weir_json_auto_free) json_t *options = read;
    return check_and_answer(call, find.name, driver, options, err);
}

weir_status api_cluster_guess(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct find find = {.call = call};
    const char *driver;
    json_t *read, *said;
    (void)txn;
    WEIR_TRY(read_asked(call, false, &find, &driver, &read, err));
    WEIR_AUTO(weir_json_auto_free) json_t *options = read;
    WEIR_TRY(ask(call, cluster_ask_text(CLUSTER_ASK_GUESS, find.name, driver, options, call->arena),
                 &said, err));
    if (said != NULL) {
        const char *paths = secrets_of(call, driver);
        json_t *guessed = json_incref(json_object_get(said, "options"));
        if (paths != NULL) {
            weir_secrets_mask(guessed, paths);
        }
        API_ANSWER(call, api_cluster_guessed, .driver = driver, .options = guessed);
        json_decref(said);
    }
    return WEIR_OK;
}
