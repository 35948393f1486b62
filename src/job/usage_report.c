#include "job/usage_report.h"

#include "store/stmt.h"

#include <string.h>

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
    return (struct weir_usage_figures){
        seconds(row, i),     seconds(row, i + 1), seconds(row, i + 2),
        seconds(row, i + 3), seconds(row, i + 4), seconds(row, i + 5),
        seconds(row, i + 6), seconds(row, i + 7), seconds(row, i + 8)};
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

weir_status weir_usage_report(struct weir_txn *txn, const struct weir_usage_query *query,
                              struct weir_arena *arena, struct weir_usage_row **out, size_t *out_n,
                              struct weir_error *err)
{
    WEIR_TRY(read_rows(txn, query, arena, out, out_n, err));
    return query->by == WEIR_USAGE_BY_JOB ? name_jobs(txn, *out, *out_n, arena, err) : WEIR_OK;
}
