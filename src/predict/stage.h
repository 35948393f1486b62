/**
 * Stages: what the engine makes of a frame, in a chain.
 *
 * What kinds there are, and their options, is in endpoint/stages.def; the code of each is
 * predict/stage/NAME.c, which defines stage_NAME. A chain belongs to one serving. Its first stages that are apart may be at several frames at
 * once, each in a thread; of the others a frame is through before the next one begins.
 */
#ifndef WEIR_PREDICT_STAGE_H
#define WEIR_PREDICT_STAGE_H

#include "data/image.h"
#include "endpoint/stage.h"
#include "predict/decision.h"
#include "predict/intake.h"
#include "predict/matcher.h"
#include "predict/model.h"
#include "vision/face.h"

#include <stdbool.h>

struct counts;
struct finder;
struct passage;
struct passages;
struct serving;

/** What a picture was taken for. */
struct finding {
    bool is_label;           /**< A classifier's label; else a person of the gallery. */
    bool is_rejected;        /**< A label that stands for none of the others. */
    const char *name;        /**< NULL: nobody to compare with. Borrowed from the serving. */
    double score, threshold; /**< NaN: none. */
};

/** What a decision is about: the whole picture, or one of what a detector found in it. */
struct stage_object {
    bool has_box;                     /**< Found; else it is the whole picture. */
    struct weir_detection detection;  /**< If has_box. */
    struct weir_image cut;            /**< By align: upright, of one size; zeroed before. */
    struct weir_face face;            /**< By align. */
    struct weir_face_quality quality; /**< By judge; width 0: it was not judged. */
    const char *refused; /**< Why it is not decided by what it looks like; a literal or NULL. */
    const struct passage *passage; /**< By track: what is known of it so far. NULL: none. */
    const float *embedding;        /**< By embed; the frame's. NULL: it has none. */
    double brightness;             /**< As the model sees it; NaN: it has not. */
    struct finding finding; /**< By match or classify; by track, as found, without a model. */
    const struct weir_track *track;      /**< By track; NULL: it is not followed. */
    const struct decision_label *labels; /**< By classify, if they are asked for. */
    size_t n_labels;
};

/** What has happened in a place (stage "count"). Texts are the frame's. */
struct stage_event {
    char id[48]; /**< Never given again. */
    const char *camera, *place;
    const char *what;  /**< "entered", "left", "long", "crossed"; "over", "under", "within". */
    const char *label; /**< The thing's class; else what the number is: "too many" … */
    const char *to;    /**< "right" or "left", of "crossed"; else NULL. */
    int64_t n;         /**< So many are in the place now. */
    double score;      /**< The thing's best; NaN: it is about none. */
    const struct stage_object *object;   /**< The thing in this frame; NULL: it is not in it. */
    const char *passage;                 /**< Identifies the thing; NULL: its way is not told. */
    int64_t first_ms, last_ms, n_frames; /**< How long it was there, if `passage`. */
};

/** One frame on its way through the chain; each stage fills what it gives. */
struct stage_frame {
    const struct frame *frame;
    struct serving *serving;
    struct finder *finder;   /**< One of the serving's, for this frame alone; NULL: it has none. */
    struct weir_arena arena; /**< Holds what follows. */
    struct weir_image image; /**< By decode, for a frame that comes as bytes; zeroed before. */
    struct weir_view view;   /**< By decode: the picture, whichever way it came. */
    struct stage_object *objects;
    size_t n_objects;
    /** Its picture lies first in the model's input; NULL: none does. */
    const struct stage_object *shown;
    struct passages *passages;            /**< The engine's; NULL: nothing can be followed. */
    struct passage **due;                 /**< By track: what is to be decided now. */
    size_t n_due, due_cap, n_due_decided; /**< The first of them are decided. */
    struct counts *counts;                /**< The engine's; NULL: nothing can be counted. */
    struct stage_event *events;           /**< By count: what has happened. */
    size_t n_events, events_cap;
    bool has_counts;                  /**< What is counted is decided, not each thing. */
    bool has_tracks;                  /**< What is followed is decided, not each object. */
    bool has_detector;                /**< The objects are what a detector found: none, too. */
    struct stage_decision *decisions; /**< By decide. */
    size_t n_decisions, decisions_cap;
};

/** A decision in the making. */
struct stage_decision {
    struct decision *decision; /**< The frame's, until it is handed over. */
    struct weir_image picture; /**< The frame's likewise. */
};

/** A frame with nothing in it but room, and the first finder; stage_frame_fini. Both of caller memory. */
void stage_frame_init(struct stage_frame *at, const struct frame *frame, struct serving *serving);
void stage_frame_fini(struct stage_frame *at);

/** Room for n objects, zeroed but for what is not known. */
void stage_objects_reset(struct stage_frame *at, size_t n);

struct weir_stage_align;

/** Cut a face as the stage "align" does, for this model. `out` is new. */
weir_status stage_align_cut(const struct weir_stage_align *options, const struct model *model,
                            const struct weir_view *view, const struct weir_detection *detection,
                            struct weir_image *out, struct weir_face *out_face,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** An object as people see it: its box with a margin, else the picture, of at most PICTURE_SIDE_MAX. `out` is new. */
weir_status stage_object_show(const struct weir_view *view, const struct stage_object *object,
                              struct weir_image *out, struct weir_error *err) WEIR_MUST_CHECK;

/** Make an object picture i of the model's next run, and note its brightness. */
weir_status stage_object_put(struct stage_frame *at, struct stage_object *object, size_t i,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Room for one more, of which is known what all of the serving's have in common. Its decision is new. */
struct stage_decision *stage_decision_add(struct stage_frame *at);

/** Decide what is due and is not yet decided, also if a stage behind "track" has failed: what a passage says is known then. */
void stage_decide_due(struct stage_frame *at);

/** Only those of passages are left. */
void stage_decisions_drop_others(struct stage_frame *at);

/** None are left. */
void stage_decisions_drop(struct stage_frame *at);

struct stage_ops {
    /** Do it, for each object that is not refused. On an error the frame is decided as an error, with the sentence. */
    weir_status (*run)(const void *options, struct stage_frame *frame, struct weir_error *err);
    /** Time has passed and no frame has come: the same, of what is in the making. NULL: nothing is. */
    weir_status (*wait)(const void *options, struct stage_frame *frame, struct weir_error *err);
    /** Can it work with this model? NULL: with any. The sentence is about the model. */
    weir_status (*check)(const void *options, const struct model *model, struct weir_error *err);
    /** It needs nothing but the frame, its finder, and what never changes. */
    bool is_apart;
};

#define WEIR_KIND(name) extern const struct stage_ops stage_##name;
#include "endpoint/stages.def"
#undef WEIR_KIND

struct stages;

/**
 * Make a chain and check that it can work with the model.
 *
 * @param list  As weir_stages_read takes it; NULL: that of a server which has recognisers only.
 * @return As weir_stages_read; UNSUPPORTED or INVALID if the model does not fit, naming it.
 */
weir_status stages_create(const json_t *list, const struct model *model, struct stages **out,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** The list that they were made of; theirs. NULL: none was written. */
const json_t *stages_list(const struct stages *stages);

/** NULL is accepted. */
void stages_destroy(struct stages *stages);

/** Run the first stages, as far as they are apart; one that fails ends it. Any thread, with a finder of its own. */
weir_status stages_begin(const struct stages *stages, struct stage_frame *frame,
                         struct weir_error *err) WEIR_MUST_CHECK;

/** Run the others, of a frame that was begun. */
weir_status stages_end(const struct stages *stages, struct stage_frame *frame,
                       struct weir_error *err) WEIR_MUST_CHECK;

/** No frame has come; `frame` stands for none. As stages_end. */
weir_status stages_wait(const struct stages *stages, struct stage_frame *frame,
                        struct weir_error *err) WEIR_MUST_CHECK;

/** Run those that look at one picture alone: what is found has a name then, and nothing is followed or decided. */
weir_status stages_look(const struct stages *stages, struct stage_frame *frame,
                        struct weir_error *err) WEIR_MUST_CHECK;

/** As it was read; its options are the stages'. */
const struct weir_stage_chain *stages_chain(const struct stages *stages);

/** The threshold of the chain's classify; NaN if it has none. */
double stages_threshold(const struct stages *stages);

#endif
