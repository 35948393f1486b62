/**
 * Faces: people who do not exist, drawn from numbers.
 *
 * A face is a pure function of (seed, person, photo): the person fixes its identity (proportions,
 * skin, hair, brows, eyes, nose, mouth, ears, glasses, beard), the photo everything else (pose,
 * light, expression, occlusion, noise). Pictures are 8-bit grey, 92 × 112, like those of the ORL
 * database, so that either can be used.
 */
#ifndef WEIR_DEMO_FACES_H
#define WEIR_DEMO_FACES_H

#include <stdint.h>

#define FACE_WIDTH  92
#define FACE_HEIGHT 112

/** Draw one photo of one person. Cost: about 2 ms. */
void face_draw(uint64_t seed, uint32_t person, uint32_t photo,
               uint8_t out[FACE_WIDTH * FACE_HEIGHT]);

#endif
