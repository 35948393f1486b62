/**
 * Serve: the worker side of model serving. What runs a model file is executor.h, what it takes and
 * gives is signature.h; batches are batcher.h, loaded versions versions.h, protocols protocol.h, the
 * HTTP server in front front.h. A replica (replica.h) puts them together, on a host (host/host.h).
 */
#ifndef WEIR_SERVE_SERVE_H
#define WEIR_SERVE_SERVE_H

/**
 * `weir-worker serve`: answers requests for models until SIGTERM or SIGINT.
 *
 * With --spec it is a replica of a deployment: it asks the server what to load, and reports. With
 * --model it serves these files, by itself.
 *
 * @return Exit status.
 */
int weir_serve_main(int argc, char **argv);

/** Keep the library onnxruntime from sending anything to its maker. For main, before there are
 *  threads: it changes the environment. */
void weir_onnxruntime_silence(void);

#endif
