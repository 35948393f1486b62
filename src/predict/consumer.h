/**
 * Consumer: the one reader of the outbox that everything which takes decisions shares: the server and
 * each sink (sink.h).
 *
 * It has a thread, gives batches of up to 200 decisions to its sink, and keeps its place. Without an
 * answer it tries again for ever (0.2 s to 30 s between tries, unless the sink says when). A batch that
 * is refused is halved, down to a single decision, which is set aside (refused.h): it neither stops the
 * others nor is lost. While a sink takes nothing, decisions wait in the outbox, and the log says so
 * at most once in 10 s.
 *
 * The place is saved once a second and at the end. So after a kill a sink may be given up to a second's
 * decisions again.
 */
#ifndef WEIR_PREDICT_CONSUMER_H
#define WEIR_PREDICT_CONSUMER_H

#include "predict/refused.h"
#include "predict/sink.h"

struct consumer;

/** All borrowed. */
struct consumer_config {
    const char *name; /**< Of the sink's kind, [a-z0-9-]; "server". */
    const struct sink_ops *ops;
    const void *options; /**< Of the kind. */
    const struct predict_spec *spec;
    struct outbox *outbox;
    struct pictures *pictures;
    struct refused *refused;
};

/** @return What the sink's open says, too. */
weir_status consumer_start(const struct consumer_config *config, struct consumer **out,
                           struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Stop them all, each once it has given on what is there, and none later than after grace_ms, which all
 * have together. NULLs among them are passed over.
 */
void consumers_stop(struct consumer *const *consumers, size_t n, int64_t grace_ms);

/**
 * For people: contact_to_json and {"name" (of the kind), "taken", "refused"}, counts since its start; a new
 * reference. It is connected unless its last try failed. Any thread.
 */
json_t *consumer_status(struct consumer *consumer);

#endif
