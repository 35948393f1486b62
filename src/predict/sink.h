/**
 * Sinks: where decisions go, beside the server. A sink is a reader of the outbox with a thread of
 * its own. What has been decided stays in the outbox until every sink has it.
 *
 * What kinds there are, and their options, is in endpoint/sinks.def; the code of each is
 * predict/sink/NAME.c, which defines sink_NAME.
 *
 *   jsonl  One line per decision in a file that others read. Each decision is there once, also
 *          across kills: the sink's place in the outbox is saved at most once a second together
 *          with the file's length; after a restart the lines behind that length are read, and a
 *          decision whose identifier is there already is not written again. Several replicas may
 *          write one file: lines are appended under a lock on it, and whoever finds the last line
 *          without its end (a kill in the middle of a write) cuts it off; its writer writes it
 *          again. The file has a bound (rotated_file.h): what it held becomes PATH.1, PATH.2 …,
 *          and the oldest goes. While the file cannot be written the sink waits and tries again.
 */
#ifndef WEIR_PREDICT_SINK_H
#define WEIR_PREDICT_SINK_H

#include "endpoint/endpoint.h"
#include "predict/outbox.h"

struct sink;

struct sink_ops {
    /** @param options  The struct of the kind's options; copied. The outbox is borrowed. */
    weir_status (*start)(const void *options, struct outbox *outbox, struct sink **out,
                         struct weir_error *err);
    /** Takes to its end what is durable, if that goes at once, and stops. NULL is accepted. */
    void (*stop)(struct sink *sink);
};

#define WEIR_KIND(name) extern const struct sink_ops sink_##name;
#include "endpoint/sinks.def"
#undef WEIR_KIND

/** The code of a kind of weir_sinks. */
const struct sink_ops *sink_ops_of(const struct weir_kind *kind);

#endif
