/**
 * Scenes: grey pictures composed of people's faces and photographs, for detectors to learn from and to be measured on.
 *
 * A scene is a background, and on it, the far ones first, people: a torso and a head, cut from a picture of a face by an ellipse
 * with a soft edge, scaled, turned, squeezed, made lighter or darker. Beside them stand decoys: the same shape on the same torso,
 * filled with something that is no face. Without them a detector would learn the cut and not the face. Then the whole is
 * blurred, gets noise, and goes through JPEG. What a scene shows, and where, is a pure function of (options, its number): as a
 * dataset it is read like any other, by any thread, and the same faces and photographs give the same pictures anywhere.
 *
 * Backgrounds and torsos are photographs, or textures that are made where there are none. A photograph should show no faces.
 *
 * Cost: about 6 ms a scene of 320 × 192.
 */
#ifndef WEIR_DATA_SCENES_H
#define WEIR_DATA_SCENES_H

#include "data/dataset.h"

/** Faces of one scene, decoys not counted; none is as likely as any other number. */
#define WEIR_SCENE_FACES_MAX 4

/** Numbers of a face's points: x, y of eyes, nose and corners of the mouth; what is left in the picture comes first. */
#define WEIR_SCENE_POINTS 10

/** Where the face lies in the pictures of faces, from forehead to chin: shares of their width and height. */
struct weir_face_box {
    float left, top, right, bottom;
};

/** Pictures of a head that fills them, as the ORL database's. */
extern const struct weir_face_box weir_face_box_usual;

/** Four numbers, 0 <= left < right <= 1 and likewise top and bottom: "0.08,0.14,0.91,0.97". @return INVALID. */
weir_status weir_face_box_parse(const char *text, struct weir_face_box *out,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** Which of the photographs are used: those to measure with are no part of those to learn from. */
enum weir_scenes_part { WEIR_SCENES_ALL, WEIR_SCENES_LEARNT, WEIR_SCENES_MEASURED };

struct weir_scenes_options {
    int width, height; /**< A scene has so many pixels; 32 to 4096. */
    size_t n;          /**< Scenes; 1 at least. */
    uint64_t seed;
    struct weir_face_box box;
    enum weir_scenes_part part; /**< MEASURED: every fifth photograph; LEARNT: the others. */
    float min_width,
        max_width;      /**< Faces are so wide, in pixels. 0: 9, and 72 or 2/5 of the height. */
    size_t cache_bytes; /**< As of a dataset. */
};

/** A face of a scene, in its pixels. Parts of it may lie outside. */
struct weir_scene_face {
    float x, y, w, h; /**< x, y: the upper left corner. */
    float points[WEIR_SCENE_POINTS];
    float visible; /**< Share that nothing hides, 0 to 1. */
};

/**
 * Make the dataset of scenes: one class, "face", label 0 of every sample, faces or none.
 *
 * @param faces        Pictures of one face each; the dataset's from now on, also on error.
 * @param backgrounds  Photographs; NULL: textures. The dataset's from now on, also on error.
 * @return INVALID: sizes, or a part of the photographs that is empty; NOMEM.
 */
weir_status weir_dataset_open_scenes(struct weir_dataset *faces, struct weir_dataset *backgrounds,
                                     const struct weir_scenes_options *options,
                                     struct weir_dataset **out,
                                     struct weir_error *err) WEIR_MUST_CHECK;

/** The pictures of faces; NULL: the dataset is none of scenes. */
const struct weir_dataset *weir_scenes_faces(const struct weir_dataset *scenes);

/** Every scene has this size. Call it for scenes alone. */
void weir_scenes_size(const struct weir_dataset *scenes, int *out_width, int *out_height);

/**
 * What scene i shows, far ones first.
 * @return What reading a picture of a face gives: the scene cannot be read either.
 */
weir_status weir_scene_look(const struct weir_dataset *scenes, size_t i_scene,
                            struct weir_scene_face out[WEIR_SCENE_FACES_MAX], size_t *out_n,
                            struct weir_error *err) WEIR_MUST_CHECK;

#endif
