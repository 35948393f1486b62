/**
 * Film: what a camera at a door sees. One person after the other walks through its picture, with a pause in between, in which
 * nobody is there.
 *
 * A picture is made of a photo of the person, before a wall that is as dark as the photos' own, with a body below it. It is a pure function of
 * what is shown, where, and of the camera's number.
 */
#ifndef WEIR_DEMO_FILM_H
#define WEIR_DEMO_FILM_H

#include "data/image.h"

#define FILM_WIDTH  480
#define FILM_HEIGHT 288

/** A passage takes so long, and the pause behind it: longer than the example's stage "track" waits for somebody. */
#define FILM_PASSAGE_S 2.4
#define FILM_PAUSE_S   2.2

/** Faces are so high, and their middle lies there, as a detector finds them. */
#define FILM_FACE_HEIGHT 99
#define FILM_FACE_Y      146

/** The wall that camera `number` looks at: RGB, FILM_WIDTH × FILM_HEIGHT. @return NOMEM. */
weir_status film_wall(uint32_t number, struct weir_image *out,
                      struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Paint a person into a picture that shows the wall.
 * @param photo  Grey or RGB, of any size, upright, filled by the head: shown 120 pixels high.
 * @param cloth  What the body wears, a number.
 * @param at     How far through the picture: 0 to 1.
 * @return NOMEM: the picture may show a part.
 */
weir_status film_paint(const struct weir_image *photo, uint32_t cloth, double at,
                       struct weir_image *picture, struct weir_error *err) WEIR_MUST_CHECK;

#endif
