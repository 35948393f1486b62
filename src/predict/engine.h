/**
 * Engine: threads that take frames and decide them.
 *
 *   intake ▸ stages (stage.h: decode … decide) ▸ outbox
 *
 * Each thread takes a frame that waits and runs the first stages, which look at one frame alone (stages_begin); several threads
 * do this at once. No frame waits for one that has not come. The threads run the rest of the chain in turn: one frame at a time, in
 * the order in which they took the frames. Other headers call the thread in turn "the engine's thread".
 *
 * Each frame is decided by the serving of the moment it was taken, from the first stage to the
 * last. A frame that cannot be decoded
 * gets the verdict "error" and a sentence: it is a decision like any other, and nothing is lost. In a camera's
 * video such a frame is logged, and the next one comes. One
 * that meets a GPU which fails is left to its source, as if the process had been killed. A
 * frame whose decision is remembered is acknowledged again and not decided again.
 *
 * A frame in which a detector looks gives one decision for each that it found, with the frame's key and "/0", "/1" …,
 * and is acknowledged when all are durable. Where what is found is followed (passage.h), a frame may give none: it is done at
 * once, and a passage is decided once, under its own key. While somebody is followed and no frame comes, time passes for the stages every
 * ENGINE_TICK_MS (stages_wait): a passage of a camera that fell silent is over so soon after twice its gone_ms.
 *
 * The intake is told what each frame has cost, and of which camera a passage is not decided.
 */
#ifndef WEIR_PREDICT_ENGINE_H
#define WEIR_PREDICT_ENGINE_H

#include "base/status.h"
#include "predict/desk.h"
#include "predict/health.h"
#include "predict/intake.h"
#include "predict/outbox.h"
#include "predict/serving.h"
#include "predict/spec.h"

#define ENGINE_TICK_MS     200
#define ENGINE_AT_ONCE_MAX SERVING_FINDERS_MAX

struct engine;

struct engine_config {
    const struct predict_spec *spec; /**< Borrowed, like the rest. */
    struct intake *intake;
    struct serving_slot *slot;
    struct outbox *outbox;
    const char *present_path; /**< File of persons present (passage.h); not kept. */
    struct health *health;    /**< May be NULL. */
    struct desk *desk;        /**< Shows frames to people; may be NULL. */
    struct counts *counts;
    /** Threads, at most ENGINE_AT_ONCE_MAX; 0: 1. A serving that detects has a finder for each. */
    size_t n_at_once;
    /** The model's GPU has failed: no frame can be decided until the process is started anew. Called on
     *  the engine's thread, with the frame neither decided nor acknowledged; it does not return. */
    void (*on_broken)(const char *reason);
};

/** On an error the intake is closed. */
weir_status engine_start(const struct engine_config *config, struct engine **out,
                         struct weir_error *err) WEIR_MUST_CHECK;

/** Decisions that an engine has put are durable: acknowledge the frames of which all are. For outbox_config.on_durable. */
void engine_durable(struct intake *intake, void *const *tickets, size_t n);

/** Waits until the intake, which must be closed, is empty and its frames are handed over. */
void engine_stop(struct engine *engine);

#endif
