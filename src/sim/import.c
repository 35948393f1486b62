#include "sim/import.h"

#include "base/arena.h"
#include "base/names.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_BYTES 40

static bool is_named(const struct import_form *form, const struct csv_field *column)
{
    for (int i = 0; i < form->n_columns; i++) {
        if (strlen(form->columns[i]) == column->len &&
            memcmp(form->columns[i], column->text, column->len) == 0) {
            return true;
        }
    }
    return false;
}

/** A misspelt column would be a silent default: every column must be one we know. */
static weir_status refuse_others(const struct import_form *form, const struct csv *csv,
                                 struct weir_error *err)
{
    struct weir_names names = {0};
    for (int i = 0; i < form->n_columns; i++) {
        weir_names_add(&names, form->columns[i], strlen(form->columns[i]));
    }
    for (int i = 0; i < csv->n_columns; i++) {
        const struct csv_field *column = &csv->columns[i];
        if (!is_named(form, column)) {
            return weir_error_set(
                err, WEIR_ERR_INVALID,
                "%s: line %lld, column %d: no column is called \"%.*s\"; the names are %s",
                csv->what, (long long)csv->line, i + 1, (int)WEIR_MIN(column->len, SHOWN_BYTES),
                column->text, names.text);
        }
    }
    return WEIR_OK;
}

static weir_status find_columns(const struct import_form *form, const struct csv *csv, int *at,
                                struct weir_error *err)
{
    if (form->is_closed) {
        WEIR_TRY(refuse_others(form, csv, err));
    }
    for (int i = 0; i < form->n_columns; i++) {
        if (i < form->n_needed) {
            WEIR_TRY(csv_need(csv, form->columns[i], &at[i], err));
        } else {
            at[i] = csv_column(csv, form->columns[i]);
        }
    }
    return WEIR_OK;
}

weir_status import_rows(const struct import_form *form, const char *text, size_t len,
                        const char *what, struct weir_sim_trace *trace, struct weir_error *err)
{
    struct csv csv;
    int at[IMPORT_COLUMNS_MAX];
    struct import_row row = {.csv = &csv, .at = at, .trace = trace};
    assert(form->n_columns <= IMPORT_COLUMNS_MAX);
    WEIR_TRY(csv_open(&csv, text, len, what, err));
    WEIR_TRY(find_columns(form, &csv, at, err));
    for (;;) {
        bool has;
        WEIR_TRY(csv_next(&csv, &has, err));
        if (!has) {
            return WEIR_OK;
        }
        WEIR_TRY(trace_add(trace, what, &row.job, err));
        WEIR_TRY(form->read(&row, err));
    }
}

/** A quoted field as it was before it was quoted: each doubled quote once. */
static const char *unquoted(const struct import_row *row, const struct csv_field *field)
{
    char *text = weir_xalloc(field->len);
    size_t len = 0;
    for (size_t i = 0; i < field->len; i++) {
        text[len++] = field->text[i];
        i += field->text[i] == '"';
    }
    const char *kept = trace_text(row->trace, text, len);
    free(text);
    return kept;
}

const char *import_text(const struct import_row *row, int column)
{
    if (csv_is_empty(row->csv, row->at[column])) {
        return NULL;
    }
    const struct csv_field *field = &row->csv->fields[row->at[column]];
    return field->is_quoted ? unquoted(row, field)
                            : trace_text(row->trace, field->text, field->len);
}
