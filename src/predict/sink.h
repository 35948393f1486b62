/**
 * Sinks: where decisions go. A sink is told batches of decisions and says what it took; everything
 * else about it is the consumer's (consumer.h): the thread, the place in the outbox, waiting between
 * tries, and what is never taken.
 *
 * What kinds people can name, and their options, is in endpoint/sinks.def; the code of each is
 * predict/sink/NAME.c, which defines sink_NAME. The server is a sink that nobody names (shipper.h).
 *
 * Sinks are told less of a passage than the server: not whom else it could have been (`nearest`), not the frames one by one, and not whether an unknown person came
 * before (`visitor`): the server knows the right of each reader.
 *
 *   jsonl  One line per decision in a file that others read. Each decision is there once, also
 *          across kills: the sink's place in the outbox is saved at most once a second together
 *          with the file's length; after a restart the lines behind that length are read, and a
 *          decision whose identifier is there already is not written again. Several replicas may
 *          write one file: lines are appended under a lock on it. A writer that finds the last line
 *          without its end (a kill in the middle of a write) cuts it off; its own writer writes it
 *          again. The file has a bound (rotated_file.h): what it held becomes PATH.1, PATH.2 …,
 *          and the oldest goes. While the file cannot be written the sink waits and tries again.
 *   mqtt   A message to a broker for each decision, at least once: those that its broker has not taken
 *          come again.
 *   webhook  A POST of each batch as JSON, signed (http/post.h). The receiver tells decisions that come
 *          again by their identifiers.
 */
#ifndef WEIR_PREDICT_SINK_H
#define WEIR_PREDICT_SINK_H

#include "endpoint/endpoint.h"
#include "predict/outbox.h"
#include "predict/pictures.h"
#include "predict/spec.h"

struct sink;

/** What a sink is told at its start. Everything is borrowed, and there until after close. */
struct sink_config {
    const void *options; /**< The struct of the kind's options; NULL: the kind has none. */
    const struct predict_spec *spec; /**< ION, pipeline, replica, server, authorities to trust. */
    struct pictures *pictures;       /**< That decisions name; NULL: none are kept. */
    /** The sink's place in the outbox: for the number that it keeps beside it, not to read. */
    struct outbox_reader *reader;
};

/** What became of a batch. */
struct sink_outcome {
    /** How many from the front of the batch the answer is about. Before: all of them. */
    size_t n;
    int64_t retry_ms; /**< When to try again; 0: as the consumer likes. */
};

struct sink_ops {
    weir_status (*open)(const struct sink_config *config, struct sink **out,
                        struct weir_error *err);
    /**
     * Give decisions on, an array of one at least, and wait for the answer. A decision may come again
     * after an error and after a kill: the sink, or the receiver behind it, must bear that. The sink
     * may change the decisions; they come again as it left them. On the consumer's thread.
     *
     * @return OK: the first outcome->n are taken. INVALID or LIMIT: these n would be refused again;
     *         they come again in halves, and one alone is set aside. Any other: none is taken, try again.
     */
    weir_status (*deliver)(struct sink *sink, json_t *decisions, struct sink_outcome *outcome,
                           struct weir_error *err);
    /** What was taken must outlast a kill now: the place is about to be saved, and with it the number
     *  that is returned. NULL: it does so anyway; the number is 0. On the consumer's thread. */
    int64_t (*sync)(struct sink *sink);
    /** Called at least every idle_ms between deliveries, for what has to be done in time. On the
     *  consumer's thread. NULL: nothing has. */
    void (*tick)(struct sink *sink);
    int64_t idle_ms; /**< 0: 1 s. */
    /** Add to what people see of the consumer (consumer_status), or say it better. Any thread; NULL: there is no
     *  more to say. */
    void (*describe)(struct sink *sink, json_t *status);
    /** A delivery in progress, or else the next, is to end soon. NULL: none lasts. Any thread. */
    void (*cancel)(struct sink *sink);
    void (*close)(struct sink *sink);
    /** What tells it from others of its kind; its place in the outbox has a name made of it. NULL: there
     *  is one at most. */
    const char *(*identity)(const void *options);
    const char *waits_event; /**< In the log, while it takes nothing. */
};

#define WEIR_KIND(name) extern const struct sink_ops sink_##name;
#include "endpoint/sinks.def"
#undef WEIR_KIND

#endif
