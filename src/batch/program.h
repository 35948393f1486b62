/** What the worker's programs that read a spec of a batch (spec.h) have in common: flags, and their end. */
#ifndef WEIR_BATCH_PROGRAM_H
#define WEIR_BATCH_PROGRAM_H

#include "batch/spec.h"

/** Does what the spec says. */
typedef weir_status batch_run_fn(const struct batch_spec *spec, struct weir_error *err);

/**
 * `weir-worker VERB --spec FILE`: read the flags, load the spec, let the flags override where it says to
 * find the server and the library, and run. What failed is the last line on standard error.
 *
 * @param what  Of the flag --spec, for --help.
 * @return Exit status.
 */
int batch_program(int argc, char **argv, const char *verb, const char *what, batch_run_fn *run);

#endif
