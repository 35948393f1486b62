/**
 * weir_mlops: what a pipeline's own code tells Weir, and asks of it, from C; weir_mlops.py is the
 * same from Python. Link with -lweir_mlops.
 *
 *     struct weir_mlops *mlops = weir_mlops_open(NULL);
 *     weir_mlops_metric(mlops, "loss", step, loss);
 *     weir_mlops_kpi(mlops, "parcels", 120, "1/h");
 *     weir_mlops_close(mlops, 5000);
 *
 * *It never ends or holds up the caller.* What is told waits in a queue of WEIR_MLOPS_QUEUE_MAX
 * records, which a thread of its own sends, again and again while the server cannot be reached. A call
 * on a NULL handle does nothing. A function that fails returns a status other than 0 and leaves its
 * sentence for weir_mlops_error.
 *
 * *It works without a server.* Then records go into a file of JSON lines, which weir_mlops_send_file
 * tells a server later. Also what could not be sent until weir_mlops_close goes there. Everything may
 * be told twice: a record carries what the server needs to know it again.
 *
 * In a task of an ION nothing need be given: server, token, ION, pipeline and run are in the
 * environment. Threads: all functions may be called from any thread, but open and close.
 */
#ifndef WEIR_MLOPS_H
#define WEIR_MLOPS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library hides all other names. */
#pragma GCC visibility push(default)

#define WEIR_MLOPS_QUEUE_MAX 4096

struct weir_mlops;

/** NULL: from the environment variable. Texts are copied. */
struct weir_mlops_options {
    const char *server;   /**< WEIR_SERVER; none: the server of this machine, if one runs. */
    const char *token;    /**< WEIR_TOKEN; none: the first line of the file "token" here. */
    const char *ca_file;  /**< WEIR_CA_FILE */
    const char *ion;      /**< WEIR_ION; none: only metrics, truths and models can be told. */
    const char *pipeline; /**< WEIR_PIPELINE */
    const char *run;      /**< WEIR_RUN; none: no metrics, and models of no run. */
    const char *file;     /**< WEIR_MLOPS_FILE; none: weir-mlops.jsonl */
};

/** Never waits for the server. @return NULL if there is no memory, which all functions accept. */
struct weir_mlops *weir_mlops_open(const struct weir_mlops_options *options);

/**
 * Send what waits, for at most so long; then the rest goes into the file. The handle is freed.
 * @return how many records are neither sent nor in the file: those that the server refused, that found
 *         the queue full, or whose file could not be written.
 */
size_t weir_mlops_close(struct weir_mlops *mlops, int64_t timeout_ms);

/** Send what waits, for at most so long. @return how many records still wait. */
size_t weir_mlops_flush(struct weir_mlops *mlops, int64_t timeout_ms);

/** 1: to a server; 0: into the file. */
int weir_mlops_has_server(const struct weir_mlops *mlops);

/** The sentence of the last error, of the caller's or of the sending thread; "" if there was none. */
void weir_mlops_error(struct weir_mlops *mlops, char *out, size_t size);

/* What is told. All return 0, or a status: 1 for what is wrong with the arguments, 2 for a full queue
 * (the record is dropped and counted), 3 for no memory. */

/** A number of the run, by key and step. */
int weir_mlops_metric(struct weir_mlops *mlops, const char *key, int64_t step, double value);

/** A business figure of the ION. unit may be NULL. */
int weir_mlops_kpi(struct weir_mlops *mlops, const char *name, double value, const char *unit);

/**
 * A statistic of the pipeline.
 * @param kind   "number", "text", "lines", "bars", "table", "graph", "heat-map", "distribution" or
 *               "opaque".
 * @param value  JSON in the form of its kind (`POST /ions/{name}/statistics`), at most 64 KiB.
 */
int weir_mlops_statistic(struct weir_mlops *mlops, const char *name, const char *kind,
                         const char *value);

/**
 * The distribution of n values as a statistic: with at most 25 different values their counts, else 11
 * equal bins within two standard deviations of the mean and one on either side, as MCenter has them.
 * NaN is not counted.
 */
int weir_mlops_distribution(struct weir_mlops *mlops, const char *name, const double *values,
                            size_t n);

/**
 * That something is not well, which raises an alert of the ION; or that it is again, which ends it.
 * @param about    "data", "health" or "system".
 * @param message  More words, or NULL.
 */
int weir_mlops_alert(struct weir_mlops *mlops, const char *about, const char *title, int is_healthy,
                     const char *message);

/** What a decision should have been. */
int weir_mlops_feedback(struct weir_mlops *mlops, const char *decision, const char *truth);

/* What is asked; these wait for the server. All return 0, or a status of Weir (weir_mlops_error). */

/**
 * Register a file as the next version of a model of the run (of none, for a person's token).
 * @param metrics, baseline  JSON objects, or NULL.
 * @param out_version  Its number; may be NULL.
 */
int weir_mlops_publish_model(struct weir_mlops *mlops, const char *name, const char *file,
                             const char *metrics, const char *baseline, int64_t *out_version);

/**
 * The model that the policies of the ION let through last.
 * @param link  "FROM:TO"; NULL: of any link.
 * @param file  It is written there, whole or not at all; NULL: only its number is asked for.
 */
int weir_mlops_last_approved_model(struct weir_mlops *mlops, const char *link, const char *file,
                                   int64_t *out_version);

/** A GET of the REST API, such as "/api/v1/models". @return its JSON, for free(); NULL: an error. */
char *weir_mlops_get(struct weir_mlops *mlops, const char *path);

/**
 * Tell the server what a file holds that was written without one. Lines that are told are not taken
 * out: told twice they change nothing. Statistics and alerts without an ION of their own are told of
 * this handle's.
 * @param out_n  Lines that were told; may be NULL.
 */
int weir_mlops_send_file(struct weir_mlops *mlops, const char *file, size_t *out_n);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
