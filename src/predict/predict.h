/**
 * predict: the prediction replica, which decides about frames while models change under it.
 *
 *   source ▸ intake ▸ stages ▸ outbox ▸ server and sinks
 *
 *   stages: decode ▸ embed ▸ match ▸ decide, or decode ▸ classify ▸ decide
 *
 * A *frame* is a picture with a camera and a number; together they name it for ever. A *serving* is
 * everything a decision depends on: model, stages, gallery (embeddings of known people; none for a
 * classifier), threshold, lists. It is immutable and counted; a new one is made beside the old by a
 * thread of low priority and takes over between two frames with one pointer, so a decision is never
 * made with the gallery of one model and the net of another. The *outbox* is a log on disk: a frame is acknowledged to its
 * source only after its decision is durable there, and everything behind it (the server, files of
 * JSON lines) reads from it at its own pace. So a replica decides while the server is down, and
 * killing it at any moment loses nothing that was acknowledged and decides nothing twice.
 *
 * Objects, one header each: source.h (directory, http), intake.h (bounded queue), engine.h (the
 * thread), stage.h (a chain of stages and their kinds), model.h (what executes models), find/finder.h (a detector), passage.h (people
 * followed over frames), outcome.h (what was decided about a frame), matcher.h,
 * calibrate.h and decide.h (pure), gallery.h, serving.h, deployment.h (what the host hosts: what the server wants
 * served), outbox.h (log, readers), consumer.h (what reads it), sink.h, shipper.h, health.h (drift), spec.h.
 *
 * Threads of a replica: one per source (http: its pool), the engine, the outbox's writer, one per
 * reader of the outbox, health, those of the host (host/host.h: deployment, heartbeat), and main, which waits for signals.
 *
 * Maximums, and what happens at them: intake full — a directory is not read on (nothing is
 * dropped), http answers 503; outbox queue full — the engine waits; disk full — nothing is
 * acknowledged until it is not; pictures for the console — the oldest are dropped, never a
 * decision.
 */
#ifndef WEIR_PREDICT_PREDICT_H
#define WEIR_PREDICT_PREDICT_H

/**
 * Run a replica: `predict --spec spec.json` (spec.h tells what the file holds). Returns when
 * SIGTERM or SIGINT arrives: sources are closed, frames that were taken are decided, everything is
 * made durable and, if the server answers within two seconds, shipped. What is not stays in the
 * outbox for the next start.
 * @return Exit status: 0 after a signal; that of the error (weir_status_exit) otherwise.
 */
int weir_predict_main(int argc, char **argv);

#endif
