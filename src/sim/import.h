/**
 * Importers: how a trace becomes jobs.
 *
 * Most traces are CSV with a job per row. The importer of such a trace is a *form*: the columns it
 * takes and a function that reads one row into one job; import_rows does the rest. What is not CSV
 * is imported by a function of its own.
 *
 * Importers share a trace that grows, texts that are kept once, and times as traces write them.
 */
#ifndef WEIR_SIM_IMPORT_H
#define WEIR_SIM_IMPORT_H

#include "sim/csv.h"
#include "sim/trace.h"

#define IMPORT_SECONDS_MAX ((double)WEIR_SIM_TIME_MAX / 1000)
#define IMPORT_COLUMNS_MAX 20

/**
 * A row of a file, and the job that it describes. The job has the defaults of what a trace may
 * leave out.
 */
struct import_row {
    const struct csv *csv;
    const int *at; /**< The file's column for each of the form's; CSV_NO_COLUMN: it has none. */
    struct weir_sim_trace *trace;
    struct weir_sim_job *job;
};

struct import_form {
    const char *const *columns; /**< Names; the first n_needed must be there. */
    int n_columns, n_needed;
    bool is_closed; /**< A column of another name is an error. */
    weir_status (*read)(const struct import_row *row, struct weir_error *err);
};

/**
 * Add a job to the trace for each row.
 *
 * @return INVALID: source, line, column, what was expected; LIMIT: too many jobs. Then the trace is
 *         only good for being freed.
 */
weir_status import_rows(const struct import_form *form, const char *text, size_t len,
                        const char *what, struct weir_sim_trace *trace,
                        struct weir_error *err) WEIR_MUST_CHECK;

/** The trace's copy of a field, by the form's column; NULL if it is absent or empty. */
const char *import_text(const struct import_row *row, int column);

/** A job with nothing asked for and the defaults of what a trace may leave out, added behind the
 *  others; *out is good until the next one is added. LIMIT if there are too many. */
weir_status trace_add(struct weir_sim_trace *trace, const char *what, struct weir_sim_job **out,
                      struct weir_error *err) WEIR_MUST_CHECK;

/** Take away the job that was added last: its row describes no work. */
void trace_leave_out(struct weir_sim_trace *trace);

/** The trace's copy of a text: the same pointer for the same text. Empty gives NULL. */
const char *trace_text(struct weir_sim_trace *trace, const char *text, size_t len);

/** Make the job that was added last findable by a text that the trace keeps. */
void trace_remember(struct weir_sim_trace *trace, const char *text);

/** The last job that was remembered under such a text; -1. */
int32_t trace_find(const char *text);

/** "2017-10-09 07:01:55", fraction and zone optional (UTC without), T accepted. */
bool trace_time_parse(const char *text, size_t len, int64_t *out_ms);

#endif
