/**
 * CSV with a header line, field by field. Columns are asked for by name, so their order does not
 * matter. A field may be quoted ("a ""b"", c"), not over the end of a line. Empty lines are passed
 * over. Errors name source, line, column and what was expected.
 */
#ifndef WEIR_SIM_CSV_H
#define WEIR_SIM_CSV_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CSV_MAX_FIELDS 256
#define CSV_NO_COLUMN  (-1)

struct csv_field {
    const char *text; /**< Not terminated. */
    size_t len;
    bool is_quoted; /**< May still hold doubled quotes. */
};

struct csv {
    const char *text, *end, *what;
    int64_t line; /**< Of the row that was read last. */
    int n_columns;
    struct csv_field columns[CSV_MAX_FIELDS], fields[CSV_MAX_FIELDS];
};

/**
 * Read the header. `text` and `what` must outlive the reader. INVALID: there is no header, or too
 * many columns.
 */
weir_status csv_open(struct csv *csv, const char *text, size_t len, const char *what,
                     struct weir_error *err) WEIR_MUST_CHECK;

/** A column's number; CSV_NO_COLUMN if the header does not name it. */
int csv_column(const struct csv *csv, const char *name);

/** A column that must be there. INVALID, naming the columns there are, if it is not. */
weir_status csv_need(const struct csv *csv, const char *name, int *out_column,
                     struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Read the next row. *out_has is false behind the last one. INVALID: too many fields, or a quote
 * without end.
 */
weir_status csv_next(struct csv *csv, bool *out_has, struct weir_error *err) WEIR_MUST_CHECK;

/** Whether a field is absent (no such column) or empty. */
bool csv_is_empty(const struct csv *csv, int column);

/** A whole number in [low, high]. `fallback` where the field is empty. INVALID. */
weir_status csv_int(const struct csv *csv, int column, int64_t low, int64_t high, int64_t fallback,
                    int64_t *out, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * A decimal number in [low, high], times `scale`, rounded. `fallback` where the field is empty.
 * INVALID.
 */
weir_status csv_scaled(const struct csv *csv, int column, double low, double high, double scale,
                       int64_t fallback, int64_t *out, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * A moment in ms: seconds as a decimal number, or a date and time. INVALID, also if the field is
 * empty.
 */
weir_status csv_time(const struct csv *csv, int column, int64_t *out_ms,
                     struct weir_error *err) WEIR_MUST_CHECK;

/** Say that a field is not what it must be. Returns INVALID. */
weir_status csv_refuse(const struct csv *csv, int column, const char *expected,
                       struct weir_error *err);

#endif
