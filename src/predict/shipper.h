/**
 * Shipper: the sink (sink.h) that brings decisions and their pictures to the server. Nobody names it:
 * a replica that has a server has it.
 *
 * Decisions go in batches, each with its picture and a passage's film ("film": the pictures of its frames one behind the other,
 * each as long as the frame says), and as many at once as their pictures fit into a
 * request; a batch may be sent twice and is stored once. One that the server calls invalid or too large
 * is halved, down to a single decision, as consumer.h does. That one is sent without its picture, and is
 * refused only if the server refuses that, too.
 */
#ifndef WEIR_PREDICT_SHIPPER_H
#define WEIR_PREDICT_SHIPPER_H

#include "predict/consumer.h"

/** The specification must name a server. @return What opening a client says. */
weir_status shipper_start(const struct predict_spec *spec, struct outbox *outbox,
                          struct pictures *pictures, struct refused *refused, struct consumer **out,
                          struct weir_error *err) WEIR_MUST_CHECK;

#endif
