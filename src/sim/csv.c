#include "sim/csv.h"

#include "base/names.h"
#include "sim/import.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_BYTES 48
#define SHOWN_BYTES  40

static weir_status refuse_row(const struct csv *csv, const char *what, struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_INVALID, "%s: line %lld: %s", csv->what,
                          (long long)csv->line, what);
}

/** One field from `at`; the comma or line end behind it is not taken. */
static weir_status read_field(const struct csv *csv, const char **at, struct csv_field *out,
                              struct weir_error *err)
{
    const char *p = *at;
    if (p < csv->end && *p == '"') {
        const char *start = ++p;
        while (p < csv->end && *p != '\n' && (*p != '"' || (p + 1 < csv->end && p[1] == '"'))) {
            p += *p == '"' ? 2 : 1;
        }
        if (p >= csv->end || *p != '"') {
            return refuse_row(csv, "a quoted field does not end on its line: close it with \"",
                              err);
        }
        *out = (struct csv_field){.text = start, .len = (size_t)(p - start), .is_quoted = true};
        p++;
        if (p < csv->end && *p != ',' && *p != '\n' && *p != '\r') {
            return refuse_row(csv, "expected a comma behind a quoted field", err);
        }
    } else {
        const char *start = p;
        while (p < csv->end && *p != ',' && *p != '\n' && *p != '\r') {
            p++;
        }
        *out = (struct csv_field){.text = start, .len = (size_t)(p - start)};
    }
    *at = p;
    return WEIR_OK;
}

static weir_status read_row(struct csv *csv, struct csv_field *fields, int *out_n,
                            struct weir_error *err)
{
    const char *p = csv->text;
    int n = 0;
    for (;;) {
        if (n == CSV_MAX_FIELDS) {
            return refuse_row(csv, "more than 256 fields: is this a CSV file?", err);
        }
        WEIR_TRY(read_field(csv, &p, &fields[n++], err));
        if (p >= csv->end || *p != ',') {
            break;
        }
        p++;
    }
    if (p < csv->end && *p == '\r') {
        p++;
    }
    if (p < csv->end && *p != '\n') {
        return refuse_row(csv, "a carriage return inside a line", err);
    }
    csv->text = p < csv->end ? p + 1 : p;
    *out_n = n;
    return WEIR_OK;
}

static void skip_empty_lines(struct csv *csv)
{
    for (;;) {
        const char *p = csv->text;
        while (p < csv->end && *p == '\r') {
            p++;
        }
        if (p >= csv->end || *p != '\n') {
            return;
        }
        csv->text = p + 1;
        csv->line++;
    }
}

weir_status csv_open(struct csv *csv, const char *text, size_t len, const char *what,
                     struct weir_error *err)
{
    *csv = (struct csv){.text = text, .end = text + len, .what = what};
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        csv->text += 3; /* the byte order mark that spreadsheets write */
    }
    skip_empty_lines(csv);
    csv->line++;
    if (csv->text == csv->end) {
        return refuse_row(csv, "the file is empty: expected a header line with column names", err);
    }
    return read_row(csv, csv->columns, &csv->n_columns, err);
}

int csv_column(const struct csv *csv, const char *name)
{
    for (int i = 0; i < csv->n_columns; i++) {
        if (csv->columns[i].len == strlen(name) &&
            memcmp(csv->columns[i].text, name, csv->columns[i].len) == 0) {
            return i;
        }
    }
    return CSV_NO_COLUMN;
}

weir_status csv_need(const struct csv *csv, const char *name, int *out_column,
                     struct weir_error *err)
{
    int column = csv_column(csv, name);
    if (column == CSV_NO_COLUMN) {
        struct weir_names have = {0};
        for (int i = 0; i < csv->n_columns; i++) {
            weir_names_add(&have, csv->columns[i].text, WEIR_MIN(csv->columns[i].len, SHOWN_BYTES));
        }
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: line %lld: no column is called \"%s\"; there are: %s. Is this "
                              "the right --format?",
                              csv->what, (long long)csv->line, name, have.text);
    }
    *out_column = column;
    return WEIR_OK;
}

weir_status csv_next(struct csv *csv, bool *out_has, struct weir_error *err)
{
    csv->line++;
    skip_empty_lines(csv);
    if (csv->text >= csv->end) {
        *out_has = false;
        return WEIR_OK;
    }
    int n;
    WEIR_TRY(read_row(csv, csv->fields, &n, err));
    if (n != csv->n_columns) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: line %lld: %d fields, but the header names %d columns",
                              csv->what, (long long)csv->line, n, csv->n_columns);
    }
    *out_has = true;
    return WEIR_OK;
}

bool csv_is_empty(const struct csv *csv, int column)
{
    return column == CSV_NO_COLUMN || csv->fields[column].len == 0;
}

weir_status csv_refuse(const struct csv *csv, int column, const char *expected,
                       struct weir_error *err)
{
    const struct csv_field *name = &csv->columns[column], *field = &csv->fields[column];
    return weir_error_set(
        err, WEIR_ERR_INVALID, "%s: line %lld, column %d (%.*s): expected %s, got \"%.*s\"",
        csv->what, (long long)csv->line, column + 1, (int)WEIR_MIN(name->len, SHOWN_BYTES),
        name->text, expected, (int)WEIR_MIN(field->len, SHOWN_BYTES), field->text);
}

/** The whole field as a finite number. */
static bool read_number(const struct csv *csv, int column, double *out)
{
    const struct csv_field *field = &csv->fields[column];
    char text[NUMBER_BYTES];
    if (field->len == 0 || field->len >= sizeof text) {
        return false;
    }
    memcpy(text, field->text, field->len);
    text[field->len] = '\0';
    if (strspn(text, "0123456789+-.eE") != field->len) {
        return false; /* no "inf", "nan", hexadecimal or leading spaces */
    }
    char *end;
    *out = strtod(text, &end);
    return *end == '\0' && end != text && isfinite(*out);
}

weir_status csv_int(const struct csv *csv, int column, int64_t low, int64_t high, int64_t fallback,
                    int64_t *out, struct weir_error *err)
{
    double value;
    if (csv_is_empty(csv, column)) {
        *out = fallback;
        return WEIR_OK;
    }
    if (!read_number(csv, column, &value) || value != floor(value) || value < (double)low ||
        value > (double)high) {
        char expected[96];
        (void)snprintf(expected, sizeof expected, "a whole number from %lld to %lld",
                       (long long)low, (long long)high);
        return csv_refuse(csv, column, expected, err);
    }
    *out = (int64_t)value;
    return WEIR_OK;
}

weir_status csv_scaled(const struct csv *csv, int column, double low, double high, double scale,
                       int64_t fallback, int64_t *out, struct weir_error *err)
{
    double value;
    if (csv_is_empty(csv, column)) {
        *out = fallback;
        return WEIR_OK;
    }
    if (!read_number(csv, column, &value) || value < low || value > high) {
        char expected[96];
        (void)snprintf(expected, sizeof expected, "a number from %g to %g", low, high);
        return csv_refuse(csv, column, expected, err);
    }
    *out = (int64_t)llround(value * scale);
    return WEIR_OK;
}

weir_status csv_time(const struct csv *csv, int column, int64_t *out_ms, struct weir_error *err)
{
    double seconds;
    if (column != CSV_NO_COLUMN &&
        trace_time_parse(csv->fields[column].text, csv->fields[column].len, out_ms)) {
        return WEIR_OK;
    }
    if (csv_is_empty(csv, column) || !read_number(csv, column, &seconds) || seconds < 0 ||
        seconds * 1000 > (double)WEIR_SIM_TIME_MAX) {
        return csv_refuse(csv, column, "seconds, or a time such as 2026-01-31 10:00:00", err);
    }
    *out_ms = (int64_t)llround(seconds * 1000);
    return WEIR_OK;
}
