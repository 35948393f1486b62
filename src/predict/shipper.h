/**
 * Shipper: brings decisions and their pictures to the server.
 *
 * A reader of the outbox. Decisions go in batches of up to 200, each with its picture; a batch may
 * be sent twice and is stored once. Without an answer it tries again for ever (0.2 s to 30 s
 * between tries). A batch that the server calls invalid or too large is halved, down to a single
 * decision. That one is sent without its picture, and if it is refused again it is set aside
 * (refused.h): it neither stops the others nor is lost.
 */
#ifndef WEIR_PREDICT_SHIPPER_H
#define WEIR_PREDICT_SHIPPER_H

#include "predict/outbox.h"
#include "predict/pictures.h"
#include "predict/refused.h"
#include "predict/spec.h"

struct shipper;

/** The spec must name a server. All borrowed. */
weir_status shipper_start(const struct predict_spec *spec, struct outbox *outbox,
                          struct pictures *pictures, struct refused *refused, struct shipper **out,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** Ship what is there for at most grace_ms, then stop. NULL is accepted. */
void shipper_stop(struct shipper *shipper, int64_t grace_ms);

#endif
