#include "job/usage_report.h"

#include "job/task_device.h"
#include "store/stmt.h"

#include <stdlib.h>
#include <string.h>

#define CLUSTERS_SEEN_MAX 1000 /* Also such as are removed. */
#define FIGURES                                                                                    \
    "sum(waited), sum(given), sum(used), sum(unknown), sum(idle), sum(borrowed),"                  \
    " sum(cpu_waited), sum(cpu_given), sum(cpu_borrowed)"
#define WHERE                                                                                      \
    " FROM usage WHERE time_ms >= :from AND time_ms < :to"                                         \
    " AND (project = :project OR :project IS NULL) AND (\"user\" = :user OR :user IS NULL)"        \
    " AND (job = :job OR :job IS NULL) AND (model = :model OR :model IS NULL)"
#define MOST " ORDER BY sum(given) DESC, sum(cpu_given) DESC, k LIMIT :n"

static const struct {
    const char *name, *sql;
    bool is_time;
} bys[WEIR_USAGE_N_BY] = {
    [WEIR_USAGE_BY_PROJECT] = {"project", "SELECT project AS k, " FIGURES WHERE " GROUP BY k" MOST,
                               false},
    [WEIR_USAGE_BY_USER] = {"user", "SELECT \"user\" AS k, " FIGURES WHERE " GROUP BY k" MOST,
                            false},
    [WEIR_USAGE_BY_JOB] = {"job",
                           "SELECT job AS k, " FIGURES ", max(project)" WHERE " GROUP BY k" MOST,
                           false},
    [WEIR_USAGE_BY_MODEL] = {"model", "SELECT model AS k, " FIGURES WHERE " GROUP BY k" MOST,
                             false},
    [WEIR_USAGE_BY_DAY] = {"day",
                           "SELECT time_ms - time_ms % 86400000 AS k, " FIGURES WHERE
                           " GROUP BY k ORDER BY k LIMIT :n",
                           true},
    [WEIR_USAGE_BY_HOUR] = {"hour",
                            "SELECT time_ms AS k, " FIGURES WHERE " GROUP BY k ORDER BY k LIMIT :n",
                            true},
    [WEIR_USAGE_BY_CLUSTER] = {"cluster", NULL, false},
};

/* A job that is gone has only its number. */
static const char sql_job[] = "SELECT name FROM jobs WHERE id = :id";

const char *weir_usage_by_text(enum weir_usage_by by)
{
    return bys[by].name;
}

int weir_usage_by_from_text(const char *text)
{
    for (int i = 0; i < WEIR_USAGE_N_BY; i++) {
        if (strcmp(bys[i].name, text) == 0) {
            return i;
        }
    }
    return -1;
}

/* Thousandths times milliseconds are millionths of a second. */
static double seconds(const struct weir_stmt *row, int i)
{
    return weir_stmt_f64(row, i) / 1e6;
}

static struct weir_usage_figures figures_at(const struct weir_stmt *row, int i)
{
    return (struct weir_usage_figures){seconds(row, i),     seconds(row, i + 1),
                                       seconds(row, i + 2), seconds(row, i + 3),
                                       seconds(row, i + 4), seconds(row, i + 5),
                                       seconds(row, i + 6), seconds(row, i + 7),
                                       seconds(row, i + 8), 0};
}

static void *grown(struct weir_arena *arena, const void *items, size_t n, size_t *cap, size_t size)
{
    *cap = 2 * *cap + 32;
    void *more = weir_arena_alloc(arena, *cap * size);
    if (n > 0) {
        memcpy(more, items, n * size);
    }
    return more;
}

static weir_status name_jobs(struct weir_txn *txn, struct weir_usage_row *rows, size_t n,
                             struct weir_arena *arena, struct weir_error *err)
{
    for (size_t i = 0; i < n; i++) {
        char **names;
        size_t n_names;
        WEIR_TRY(weir_txn_query_texts(txn, sql_job, WEIR_BINDS(WEIR_BIND_TEXT("id", rows[i].key)),
                                      arena, &names, &n_names, err));
        rows[i].name = n_names > 0 ? names[0] : NULL;
    }
    return WEIR_OK;
}

static weir_status read_rows(struct weir_txn *txn, const struct weir_usage_query *query,
                             struct weir_arena *arena, struct weir_usage_row **out, size_t *out_n,
                             struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    struct weir_usage_row *rows = NULL;
    size_t n = 0, cap = 0;
    bool has_row, is_time = bys[query->by].is_time;
    WEIR_TRY(weir_stmt_open(
        txn, bys[query->by].sql,
        WEIR_BINDS(WEIR_BIND_INT("from", query->from_ms), WEIR_BIND_INT("to", query->to_ms),
                   WEIR_BIND_TEXT("project", query->project), WEIR_BIND_TEXT("user", query->user),
                   WEIR_BIND_TEXT("job", query->job), WEIR_BIND_TEXT("model", query->model),
                   WEIR_BIND_INT("n", WEIR_USAGE_ROWS_MAX + 1)),
        &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    while (has_row) {
        if (n == WEIR_USAGE_ROWS_MAX) {
            return weir_error_set(err, WEIR_ERR_LIMIT,
                                  "more than %d rows: ask for less time, or for one project",
                                  WEIR_USAGE_ROWS_MAX);
        }
        if (n == cap) {
            rows = grown(arena, rows, n, &cap, sizeof *rows);
        }
        rows[n++] = (struct weir_usage_row){
            .key = is_time ? NULL : weir_stmt_text(row, 0, arena),
            .time_ms = is_time ? weir_stmt_int(row, 0) : 0,
            .project = query->by == WEIR_USAGE_BY_JOB ? weir_stmt_text(row, 10, arena) : NULL,
            .is = figures_at(row, 1)};
        WEIR_TRY(weir_stmt_step(row, &has_row, err));
    }
    *out = rows;
    *out_n = n;
    return WEIR_OK;
}

/* ---- by cluster ------------------------------------------------------------------------------- */

#define ALLOCATIONS                                                                                \
    "SELECT a.cluster, a.n_nodes, a.cpu_slots, a.n_accelerators, p.cpu_slots, p.n_accelerators,"   \
    " a.started_ms, a.ended_ms, a.accelerator_milli FROM allocations AS a"                         \
    " LEFT JOIN pools AS p ON p.id = a.cluster || '/' || a.pool"                                   \
    " WHERE a.started_ms > 0 AND a.started_ms < :to"                                               \
    " AND (a.project = :project OR :project IS NULL) AND "

static const char *const sql_allocations[] = {
    ALLOCATIONS "a.state <> 'ended' AND (a.ended_ms = 0 OR a.ended_ms > :from)",
    ALLOCATIONS "a.state = 'ended' AND a.ended_ms > :from"};

static struct weir_usage_row *row_of_cluster(struct weir_usage_row *rows, size_t *n,
                                             const char *cluster, struct weir_arena *arena)
{
    for (size_t i = 0; i < *n; i++) {
        if (strcmp(rows[i].key, cluster) == 0) {
            return &rows[i];
        }
    }
    if (*n == CLUSTERS_SEEN_MAX) {
        return NULL;
    }
    rows[*n] = (struct weir_usage_row){.key = weir_arena_strdup(arena, cluster)};
    return &rows[(*n)++];
}

static void count_allocation(const struct weir_stmt *row, const struct weir_usage_query *query,
                             struct weir_usage_figures *sum)
{
    int64_t cpus = weir_stmt_int(row, 2), devices = weir_stmt_int(row, 3);
    bool is_whole = cpus == 0 && devices == 0;
    int64_t ended_ms = weir_stmt_int(row, 7);
    int64_t until_ms = WEIR_MIN(query->now_ms, query->to_ms);
    until_ms = ended_ms > 0 ? WEIR_MIN(ended_ms, until_ms) : until_ms;
    int64_t from_ms = WEIR_MAX(weir_stmt_int(row, 6), query->from_ms);
    double node_s =
        until_ms > from_ms ? (double)weir_stmt_int(row, 1) * (double)(until_ms - from_ms) / 1e3 : 0;
    int64_t milli = weir_stmt_int(row, 8);
    double each = milli > 0 ? (double)milli / WEIR_DEVICE_WHOLE : 1;
    double device_s = node_s * (double)(is_whole ? weir_stmt_int(row, 5) : devices) * each;
    sum->node += node_s;
    sum->cpu_given += node_s * (double)(is_whole ? weir_stmt_int(row, 4) : cpus);
    sum->given += device_s;
    sum->unknown += device_s;
}

static int compare_nodes(const void *left, const void *right)
{
    const struct weir_usage_row *a = left, *b = right;
    return a->is.node != b->is.node ? (a->is.node < b->is.node) - (a->is.node > b->is.node)
                                    : strcmp(a->key, b->key);
}

static weir_status read_clusters(struct weir_txn *txn, const struct weir_usage_query *query,
                                 const char *sql, struct weir_arena *arena,
                                 struct weir_usage_row *rows, size_t *n, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql,
                            WEIR_BINDS(WEIR_BIND_INT("from", query->from_ms),
                                       WEIR_BIND_INT("to", query->to_ms),
                                       WEIR_BIND_TEXT("project", query->project)),
                            &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    while (has_row) {
        struct weir_usage_row *of = row_of_cluster(rows, n, weir_stmt_text(row, 0, arena), arena);
        if (of == NULL) {
            return weir_error_set(err, WEIR_ERR_LIMIT, "more than %d clusters: ask for less time",
                                  CLUSTERS_SEEN_MAX);
        }
        count_allocation(row, query, &of->is);
        WEIR_TRY(weir_stmt_step(row, &has_row, err));
    }
    return WEIR_OK;
}

static weir_status report_clusters(struct weir_txn *txn, const struct weir_usage_query *query,
                                   struct weir_arena *arena, struct weir_usage_row **out,
                                   size_t *out_n, struct weir_error *err)
{
    struct weir_usage_row *rows = WEIR_ARENA_ARRAY(arena, CLUSTERS_SEEN_MAX, struct weir_usage_row);
    size_t n = 0;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(sql_allocations); i++) {
        WEIR_TRY(read_clusters(txn, query, sql_allocations[i], arena, rows, &n, err));
    }
    qsort(rows, n, sizeof *rows, compare_nodes);
    *out = rows;
    *out_n = n;
    return WEIR_OK;
}

weir_status weir_usage_report(struct weir_txn *txn, const struct weir_usage_query *query,
                              struct weir_arena *arena, struct weir_usage_row **out, size_t *out_n,
                              struct weir_error *err)
{
    if (query->by == WEIR_USAGE_BY_CLUSTER) {
        return report_clusters(txn, query, arena, out, out_n, err);
    }
    WEIR_TRY(read_rows(txn, query, arena, out, out_n, err));
    return query->by == WEIR_USAGE_BY_JOB ? name_jobs(txn, *out, *out_n, arena, err) : WEIR_OK;
}
