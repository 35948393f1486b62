/**
 * Stages: what a replica makes of a frame, step by step, as far as server and replica must agree on
 * it: names, what each takes and gives, options, and which chains of them make sense. Pure.
 *
 *     decode ▸ embed ▸ match ▸ decide     recognises people: a model of embeddings, and a gallery
 *     decode ▸ classify ▸ decide          names what a picture shows: a classifier
 *     decode ▸ detect ▸ align ▸ judge ▸ embed ▸ match ▸ track ▸ decide
 *                                         finds faces, and decides about each person who passes
 *     decode ▸ detect ▸ track ▸ count ▸ decide
 *                                         counts what a detector finds; it is the pipeline's model
 *
 * A stage works on each object of a frame: the whole picture, or each that a detector found in it.
 *
 * In a document a chain is a list of names and of objects with options:
 * `stages: [decode, {kind: classify, threshold: 0.8}, decide]`. Without one the chain follows from
 * whether there is a gallery.
 */
#ifndef WEIR_ENDPOINT_STAGE_H
#define WEIR_ENDPOINT_STAGE_H

#include "base/kind.h"

/** Stages of one pipeline. */
#define WEIR_STAGES_MAX 16

/** What passes from one stage to the next. */
enum weir_stage_value {
    WEIR_STAGE_FRAME,     /**< A file's bytes, or a picture of a camera. */
    WEIR_STAGE_PICTURE,   /**< Pixels. */
    WEIR_STAGE_OBJECTS,   /**< Boxes in the picture. */
    WEIR_STAGE_FACES,     /**< What lies in them, upright and of one size. */
    WEIR_STAGE_EMBEDDING, /**< A unit vector of each. */
    WEIR_STAGE_FINDING,   /**< A name with a score, of each. */
    WEIR_STAGE_TRACK,     /**< What was followed over frames. */
    WEIR_STAGE_DECISION,
};

/** What a model gives, where a stage runs one. */
enum weir_stage_model {
    WEIR_STAGE_MODEL_NONE,
    WEIR_STAGE_MODEL_EMBEDS,
    WEIR_STAGE_MODEL_CLASSIFIES
};

#define WEIR_STAGE_TAKES(value) (1u << WEIR_STAGE_##value)

/** `ops` of a stage's kind. */
struct weir_stage_facts {
    unsigned takes; /**< WEIR_STAGE_TAKES of each that will do. */
    enum weir_stage_value gives;
    enum weir_stage_model model;
    bool needs_gallery;
    bool needs_objects; /**< A detector must have found what comes to it. */
};

extern const struct weir_registry weir_stages;

#define WEIR_KIND(name) extern const struct weir_kind weir_stage_##name##_kind;
#include "endpoint/stages.def"
#undef WEIR_KIND

/** A chain, in order. */
struct weir_stage_chain {
    struct weir_configured items[WEIR_STAGES_MAX];
    size_t n;
};

/**
 * Read a chain and check that each stage takes what the one before gives: from a frame to a
 * decision.
 *
 * @param list  NULL or null: the chain that people write none of, by has_gallery.
 * @param where  "$.pipelines[0].stages".
 * @return INVALID with the place of what is wrong; UNSUPPORTED for a stage that is planned; LIMIT.
 */
weir_status weir_stages_read(const json_t *list, bool has_gallery, const char *where,
                             struct weir_arena *arena, struct weir_stage_chain *out,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** @return INVALID if a stage compares with a gallery and there is none, or there is one that no
 *          stage compares with. */
weir_status weir_stages_check_gallery(const struct weir_stage_chain *chain, bool has_gallery,
                                      const char *where, struct weir_error *err) WEIR_MUST_CHECK;

/** The chain that stands for none, as people would write it; a literal. */
const char *weir_stages_default(bool has_gallery);

/** The options of the chain's first stage of that kind; NULL: it has none of it, or the kind takes none. */
const void *weir_stages_options(const struct weir_stage_chain *chain, const struct weir_kind *kind);

/** What the chain's model must give. */
enum weir_stage_model weir_stages_model(const struct weir_stage_chain *chain);

/** Does a stage compare with a gallery? */
bool weir_stages_need_gallery(const struct weir_stage_chain *chain);

#endif
