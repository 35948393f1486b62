/**
 * Reads a trace in the form in which a cluster has published it, and writes it as the CSV that
 * `weir simulate` reads.
 *
 *     trace-convert FORMAT FILE >trace.csv
 *
 * Without arguments it lists the formats. Exit status: as of weir.
 */
#include "trace_convert/formats.h"

static int list_formats(void)
{
    (void)fprintf(stderr, "Usage: trace-convert FORMAT FILE >trace.csv\n\nFormats:\n");
    for (size_t i = 0; i < convert_n_formats; i++) {
        (void)fprintf(stderr, "  %-13s %s\n", convert_formats[i]->name, convert_formats[i]->doc);
    }
    return weir_status_exit(WEIR_ERR_INVALID);
}

int main(int argc, char **argv)
{
    struct weir_error err = {0};
    struct weir_sim_trace trace = {0};
    const struct weir_sim_format *format;
    if (argc != 3) {
        return list_formats();
    }
    weir_status status = convert_format_named(argv[1], &format, &err);
    if (status == WEIR_OK) {
        status = weir_sim_trace_load(argv[2], format, &trace, &err);
    }
    if (status == WEIR_OK) {
        status = convert_write(&trace, stdout, &err);
    }
    if (status != WEIR_OK) {
        (void)fprintf(stderr, "trace-convert: %s\n", err.message);
    } else if (trace.n_left_out > 0) {
        (void)fprintf(stderr, "%d jobs; %d rows tell of no work and are left out\n", trace.n_jobs,
                      trace.n_left_out);
    }
    weir_sim_trace_fini(&trace);
    return status == WEIR_OK ? 0 : weir_status_exit(status);
}
