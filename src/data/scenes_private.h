/** A scene's plan, and its painting: internal to data. */
#ifndef WEIR_DATA_SCENES_PRIVATE_H
#define WEIR_DATA_SCENES_PRIVATE_H

#include "base/rng.h"
#include "data/scenes.h"

#define SCENE_DECOYS_MAX  2
#define SCENE_FIGURES_MAX (WEIR_SCENE_FACES_MAX + SCENE_DECOYS_MAX)

enum figure_kind {
    FIGURE_FACE,
    FIGURE_TEXTURE,
    FIGURE_BLURRED, /**< A face of three pixels across. */
    FIGURE_STRIPS,  /**< A face cut into strips, in another order. */
    FIGURE_PHOTO,
    FIGURE_KINDS
};

/** One person, or decoy. */
struct figure {
    enum figure_kind kind;
    size_t sample;   /**< Picture of a face; the decoys' too. */
    float cx, cy, w; /**< Middle of the face, and its width. */
    float h;         /**< By the picture's; scene_measure sets it. */
    float roll, gain, cloth;
    bool is_mirrored;
    uint64_t seed; /**< A decoy is filled by it. */
};

struct scene_plan {
    struct figure figures[SCENE_FIGURES_MAX]; /**< Far ones first. */
    size_t n_figures;
    uint64_t seed; /**< Background, blur and noise follow from it. */
};

struct scenes {
    struct weir_dataset *faces, *backgrounds; /**< backgrounds may be NULL. */
    struct weir_scenes_options options;
};

struct scene_plan scene_plan_make(const struct scenes *scenes, size_t i_scene);

/** Set the figures' heights. @return What reading a picture gives. */
weir_status scene_measure(const struct scenes *scenes, struct scene_plan *plan,
                          struct weir_error *err);

/** How much of the figure's head is at this place of the scene, 0 to 1; and where in the face's box that is, in shares. */
float figure_head_at(const struct figure *figure, float x, float y, float *out_bx, float *out_by);

/** Is its torso here? */
bool figure_torso_at(const struct figure *figure, float x, float y);

/** The number of a photograph of the part that is used. */
size_t scenes_background(const struct scenes *scenes, struct weir_rng *rng);
size_t scenes_n_backgrounds(const struct scenes *scenes);

/** Paint scene i. @return What reading a picture gives; NOMEM. */
weir_status scene_paint(const struct scenes *scenes, size_t i_scene, struct weir_image *out,
                        struct weir_error *err);

/** A sample as grey. */
weir_status scene_read_grey(struct weir_dataset *dataset, size_t i_sample, struct weir_image *out,
                            struct weir_error *err);

#endif
