#include "vision/assign.h"

#include "base/macros.h"

#include <math.h>
#include <stdbool.h>

#define ALONE 1.0 /* What a row costs that stays alone. */
#define NEVER 2.0 /* More than that: never the best. */

/* Columns behind the real ones, as many as rows, stand for staying alone. Rows and columns count from 1; 0 is the row that is being
 * joined, or no row. */
struct table {
    const float *costs;
    size_t n_rows, n_cols, n_all;
    double row_price[ASSIGN_MAX + 1], col_price[2 * ASSIGN_MAX + 1];
    size_t row_of[2 * ASSIGN_MAX + 1]; /* By columns; 0: free. */
};

static double cost_of(const struct table *table, size_t row, size_t col)
{
    if (col > table->n_cols) {
        return ALONE;
    }
    float cost = table->costs[(row - 1) * table->n_cols + col - 1];
    return cost < (float)ALONE ? cost : NEVER;
}

/* The paths from one row to all columns, as far as they have been looked at. */
struct paths {
    double length[2 * ASSIGN_MAX + 1];
    size_t from[2 * ASSIGN_MAX + 1]; /* The column before. */
    bool is_done[2 * ASSIGN_MAX + 1];
};

/* Lengthen the paths by the row of column `at`. @return The nearest column that is not done; its distance is made 0. */
static size_t lengthen(struct table *table, struct paths *paths, size_t at)
{
    size_t row = table->row_of[at];
    size_t nearest = 0;
    double least = INFINITY;
    paths->is_done[at] = true;
    for (size_t col = 1; col <= table->n_all; col++) {
        if (paths->is_done[col]) {
            continue;
        }
        double length = cost_of(table, row, col) - table->row_price[row] - table->col_price[col];
        if (length < paths->length[col]) {
            paths->length[col] = length;
            paths->from[col] = at;
        }
        if (paths->length[col] < least) {
            least = paths->length[col];
            nearest = col;
        }
    }
    for (size_t col = 0; col <= table->n_all; col++) {
        if (paths->is_done[col]) {
            table->row_price[table->row_of[col]] += least;
            table->col_price[col] -= least;
        } else {
            paths->length[col] -= least;
        }
    }
    return nearest;
}

/* Join one more row by the shortest path to a free column; the rows along the path move on by one. */
static void join(struct table *table, size_t row)
{
    struct paths paths;
    for (size_t col = 0; col <= table->n_all; col++) {
        paths.length[col] = INFINITY;
        paths.from[col] = 0;
        paths.is_done[col] = false;
    }
    table->row_of[0] = row;
    size_t at = 0;
    do {
        at = lengthen(table, &paths, at);
    } while (table->row_of[at] != 0);
    while (at != 0) {
        table->row_of[at] = table->row_of[paths.from[at]];
        at = paths.from[at];
    }
}

void assign_least(const float *costs, size_t n_rows, size_t n_cols, int32_t *out_cols)
{
    struct table table = {
        .costs = costs, .n_rows = n_rows, .n_cols = n_cols, .n_all = n_cols + n_rows};
    for (size_t row = 1; row <= n_rows; row++) {
        out_cols[row - 1] = -1;
        join(&table, row);
    }
    for (size_t col = 1; col <= n_cols; col++) {
        if (table.row_of[col] != 0) {
            out_cols[table.row_of[col] - 1] = (int32_t)(col - 1);
        }
    }
}
