/**
 * `weir-worker inspect FILE`: which executor runs a model file and why, and what it takes and gives.
 *
 * The server runs it, as a process with limits, before a file becomes a version of a model.
 */
#ifndef WEIR_SERVE_INSPECT_H
#define WEIR_SERVE_INSPECT_H

/**
 * Prints the signature as JSON (signature.h) on stdout. A file that cannot be served is a sentence
 * on stderr.
 * @return Exit status: 0; that of the error (weir_status_exit). Beyond the memory limit 8, beyond
 *         the time limit 9.
 */
int weir_inspect_main(int argc, char **argv);

#endif
