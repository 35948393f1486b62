/** Formats: the forms in which clusters have published what their jobs were. */
#ifndef TOOLS_TRACE_CONVERT_FORMATS_H
#define TOOLS_TRACE_CONVERT_FORMATS_H

#include "sim/trace.h"

#include <stdio.h>

extern const struct weir_sim_format convert_acme, convert_alibaba, convert_helios,
    convert_philly_csv, convert_philly_json, convert_pollux;

/** All of them. */
extern const struct weir_sim_format *const convert_formats[];
extern const size_t convert_n_formats;

/** NOT_FOUND, naming those there are. */
weir_status convert_format_named(const char *name, const struct weir_sim_format **out,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** Write a trace as Weir's own CSV, which read again is the same trace. IO. */
weir_status convert_write(const struct weir_sim_trace *trace, FILE *file,
                          struct weir_error *err) WEIR_MUST_CHECK;

#endif
