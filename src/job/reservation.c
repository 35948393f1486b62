#include "job/reservation.h"

#include "base/json.h"
#include "job/queue.h"
#include "store/identity.h"
#include "store/stmt.h"
#include "store/table.h"

#include <stdlib.h>
#include <string.h>

#define NODES_MAX_BYTES ((size_t)512 << 10)
#define AMOUNT_MAX      10000000

// clang-format off
static const struct weir_field fields[] = {
    WEIR_FIELD(weir_reservation, name,       TEXT, WEIR_FIELD_KEY | WEIR_FIELD_REQUIRED | WEIR_FIELD_NAME | WEIR_FIELD_COLUMN, "", "Name"),
    WEIR_FIELD(weir_reservation, project,    TEXT, WEIR_FIELD_COLUMN, "", "Project whose jobs may have the nodes; null: a queue's"),
    WEIR_FIELD(weir_reservation, queue,      TEXT, WEIR_FIELD_COLUMN, "", "Queue whose jobs, and those below it, may have them; null: a project's"),
    WEIR_FIELD_SIZED(weir_reservation, nodes, JSON, WEIR_FIELD_COLUMN, NODES_MAX_BYTES, "", "Names of the nodes; null when it is made: those that have what is asked for are chosen"),
    WEIR_FIELD(weir_reservation, gpus,       INT,  0, "", "GPUs that were asked for; 0: none"),
    WEIR_FIELD(weir_reservation, cpus,       INT,  0, "", "CPUs that were asked for; 0: none"),
    WEIR_FIELD(weir_reservation, from_ms,    TIME, WEIR_FIELD_COLUMN, "ms", "When it begins; null when it is made: now"),
    WEIR_FIELD(weir_reservation, until_ms,   TIME, WEIR_FIELD_COLUMN, "ms", "When it is over"),
    WEIR_FIELD(weir_reservation, created_by, TEXT, WEIR_FIELD_READ_ONLY, "", "Who made it"),
    WEIR_FIELD(weir_reservation, created_ms, TIME, WEIR_FIELD_READ_ONLY, "ms", "When"),
};
// clang-format on

const struct weir_resource weir_reservation_resource =
    WEIR_RESOURCE("reservation", "reservations", weir_reservation, fields);

static const char sql_forget[] = "DELETE FROM reservations WHERE until_ms < :before"
                                 " OR (name = :name AND until_ms <= :now)";
static const char sql_nodes[] = "SELECT name, n_accelerators, cpu_slots, is_draining, "
                                "closed_from_ms, closed_until_ms FROM nodes"
                                " WHERE left_ms = 0 ORDER BY name";

weir_status weir_reservation_list(struct weir_txn *txn, int64_t now_ms, struct weir_arena *arena,
                                  struct weir_reservation **out, size_t *out_n,
                                  struct weir_error *err)
{
    const struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_INT("until_ms", GT, now_ms)),
                                     .limit = WEIR_RESERVATIONS_MAX};
    return weir_txn_list(txn, &weir_reservation_resource, &query, arena, (void **)out, out_n, NULL,
                         err);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

struct node {
    const char *name;
    int64_t gpus, cpus;
    const char *taken_by; /* Reservation that has it in the span; NULL. */
    bool is_shut;         /* It takes no tasks then. */
    bool is_chosen;
};

struct choice {
    struct node *nodes;
    size_t n;
};

static struct node *find_node(const struct choice *choice, const char *name)
{
    for (size_t i = 0; name != NULL && i < choice->n; i++) {
        if (strcmp(choice->nodes[i].name, name) == 0) {
            return &choice->nodes[i];
        }
    }
    return NULL;
}

/* One that is drained now may be back by a time to come. */
static bool is_shut(const struct weir_stmt *row, const struct weir_reservation *wanted,
                    int64_t now_ms)
{
    int64_t from_ms = weir_stmt_int(row, 4), until_ms = weir_stmt_int(row, 5);
    return (weir_stmt_int(row, 3) != 0 && wanted->from_ms <= now_ms) ||
           (from_ms > 0 && from_ms < wanted->until_ms &&
            (until_ms == 0 || until_ms > wanted->from_ms));
}

static weir_status list_nodes(struct weir_txn *txn, const struct weir_reservation *wanted,
                              int64_t now_ms, struct weir_arena *arena, struct choice *out,
                              struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    bool has_row;
    out->nodes = WEIR_ARENA_ARRAY(arena, WEIR_RESERVATION_NODES_MAX, struct node);
    WEIR_TRY(weir_stmt_open(txn, sql_nodes, WEIR_NO_BINDS, &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    while (has_row && out->n < WEIR_RESERVATION_NODES_MAX) {
        out->nodes[out->n++] = (struct node){.name = weir_stmt_text(row, 0, arena),
                                             .gpus = weir_stmt_int(row, 1),
                                             .cpus = weir_stmt_int(row, 2),
                                             .is_shut = is_shut(row, wanted, now_ms)};
        WEIR_TRY(weir_stmt_step(row, &has_row, err));
    }
    return WEIR_OK;
}

static weir_status mark_taken(struct weir_txn *txn, const struct weir_reservation *wanted,
                              int64_t now_ms, struct weir_arena *arena, struct choice *choice,
                              struct weir_error *err)
{
    struct weir_reservation *others;
    size_t n, k;
    const json_t *name;
    WEIR_TRY(weir_reservation_list(txn, now_ms, arena, &others, &n, err));
    if (n >= WEIR_RESERVATIONS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "there are %d reservations that are not over: delete some",
                              WEIR_RESERVATIONS_MAX);
    }
    for (size_t i = 0; i < n; i++) {
        WEIR_AUTO(weir_json_auto_free) json_t *names = json_loads(others[i].nodes, 0, NULL);
        bool overlaps =
            others[i].from_ms < wanted->until_ms && others[i].until_ms > wanted->from_ms;
        json_array_foreach(names, k, name)
        {
            struct node *node = find_node(choice, json_string_value(name));
            if (overlaps && node != NULL) {
                node->taken_by = others[i].name;
            }
        }
    }
    return WEIR_OK;
}

/* Of the nodes nobody has, and that take tasks, the smallest that has all that is left to find; else the largest. */
static struct node *next_best(const struct choice *choice, int64_t gpus, int64_t cpus)
{
    struct node *best = NULL;
    bool best_is_enough = false;
    for (size_t i = 0; i < choice->n; i++) {
        struct node *node = &choice->nodes[i];
        int64_t has = gpus > 0 ? node->gpus : node->cpus;
        int64_t best_has = best == NULL ? 0 : gpus > 0 ? best->gpus : best->cpus;
        bool is_enough = node->gpus >= gpus && node->cpus >= cpus;
        if (node->taken_by != NULL || node->is_shut || node->is_chosen || has == 0) {
            continue;
        }
        bool is_better =
            best == NULL || (is_enough && !best_is_enough) ||
            (is_enough == best_is_enough && (is_enough ? has < best_has : has > best_has));
        if (is_better) {
            best = node;
            best_is_enough = is_enough;
        }
    }
    return best;
}

static weir_status choose_by_amount(struct choice *choice, const struct weir_reservation *wanted,
                                    struct weir_error *err)
{
    int64_t gpus = wanted->gpus, cpus = wanted->cpus;
    while (gpus > 0 || cpus > 0) {
        struct node *node = next_best(choice, gpus, cpus);
        if (node == NULL) {
            return weir_error_set(
                err, WEIR_ERR_CONFLICT,
                "the nodes that nobody has reserved then have %lld %s too few: ask "
                "for less, or for another time",
                (long long)(gpus > 0 ? gpus : cpus), gpus > 0 ? "GPUs" : "CPUs");
        }
        node->is_chosen = true;
        gpus -= node->gpus;
        cpus -= node->cpus;
    }
    return WEIR_OK;
}

static weir_status choose_by_name(struct choice *choice, const char *text, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *names = json_loads(text, 0, NULL);
    const json_t *item;
    size_t i;
    if (!json_is_array(names) || json_array_size(names) == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.nodes: expected a list of names of nodes");
    }
    json_array_foreach(names, i, item)
    {
        const char *name = json_string_value(item);
        struct node *node = find_node(choice, name);
        if (node == NULL) {
            return weir_error_set(
                err, WEIR_ERR_NOT_FOUND,
                "$.nodes: there is no node \"%.60s\"; `weir get nodes` lists them",
                name != NULL ? name : "");
        }
        if (node->taken_by != NULL) {
            return weir_error_set(err, WEIR_ERR_CONFLICT,
                                  "$.nodes: reservation %.60s has node %.60s then", node->taken_by,
                                  name);
        }
        node->is_chosen = true;
    }
    return WEIR_OK;
}

static char *chosen_text(const struct choice *choice, struct weir_arena *arena)
{
    WEIR_AUTO(weir_json_auto_free) json_t *names = json_array();
    for (size_t i = 0; i < choice->n; i++) {
        if (choice->nodes[i].is_chosen) {
            json_array_append_new(names, json_string(choice->nodes[i].name));
        }
    }
    return weir_json_text(names, arena);
}

/* ---- making ---------------------------------------------------------------------------------- */

static weir_status check_span(struct weir_reservation *wanted, int64_t now_ms,
                              struct weir_error *err)
{
    wanted->from_ms = wanted->from_ms > now_ms ? wanted->from_ms : now_ms;
    if (wanted->until_ms <= wanted->from_ms ||
        wanted->until_ms > now_ms + WEIR_RESERVATION_AHEAD_MS) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.until_ms: expected a time after its begin and now, within a year");
    }
    return WEIR_OK;
}

static weir_status check_holder(struct weir_txn *txn, const struct weir_reservation *wanted,
                                struct weir_arena *arena, struct weir_error *err)
{
    struct weir_project project;
    struct weir_queue queue;
    if ((wanted->project == NULL) == (wanted->queue == NULL)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "say for whom: $.project or $.queue, one of the two");
    }
    return wanted->project != NULL
               ? weir_txn_get(txn, &weir_project_resource, wanted->project, arena, &project, err)
               : weir_txn_get(txn, &weir_queue_resource, wanted->queue, arena, &queue, err);
}

static weir_status check_amounts(const struct weir_reservation *wanted, struct weir_error *err)
{
    bool has_amount = wanted->gpus > 0 || wanted->cpus > 0;
    if (wanted->gpus < 0 || wanted->cpus < 0 || wanted->gpus > AMOUNT_MAX ||
        wanted->cpus > AMOUNT_MAX || has_amount == (wanted->nodes != NULL)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "say what: $.nodes, or else how many $.gpus or $.cpus the nodes have "
                              "together, at most %d",
                              AMOUNT_MAX);
    }
    return WEIR_OK;
}

weir_status weir_reservation_make(struct weir_txn *txn, struct weir_reservation *reservation,
                                  int64_t now_ms, struct weir_arena *arena, struct weir_error *err)
{
    struct choice choice = {0};
    WEIR_TRY(check_span(reservation, now_ms, err));
    WEIR_TRY(check_amounts(reservation, err));
    WEIR_TRY(check_holder(txn, reservation, arena, err));
    WEIR_TRY(weir_txn_exec(txn, sql_forget,
                           WEIR_BINDS(WEIR_BIND_INT("before", now_ms - WEIR_RESERVATION_KEPT_MS),
                                      WEIR_BIND_TEXT("name", reservation->name),
                                      WEIR_BIND_INT("now", now_ms)),
                           NULL, err));
    WEIR_TRY(list_nodes(txn, reservation, now_ms, arena, &choice, err));
    WEIR_TRY(mark_taken(txn, reservation, now_ms, arena, &choice, err));
    if (reservation->nodes != NULL) {
        WEIR_TRY(choose_by_name(&choice, reservation->nodes, err));
    } else {
        WEIR_TRY(choose_by_amount(&choice, reservation, err));
    }
    reservation->nodes = chosen_text(&choice, arena);
    reservation->created_ms = now_ms;
    return weir_txn_insert(txn, &weir_reservation_resource, reservation, err);
}
