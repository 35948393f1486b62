#include "demo/faces.h"

#include "base/test_main.h"

#include <math.h>
#include <stdio.h>

#define PIXELS (FACE_WIDTH * FACE_HEIGHT)

/* Cosine of two pictures without their means. */
static double likeness(const uint8_t *a, const uint8_t *b)
{
    double mean_a = 0, mean_b = 0, ab = 0, aa = 0, bb = 0;
    for (int i = 0; i < PIXELS; i++) {
        mean_a += a[i] / (double)PIXELS;
        mean_b += b[i] / (double)PIXELS;
    }
    for (int i = 0; i < PIXELS; i++) {
        ab += (a[i] - mean_a) * (b[i] - mean_b);
        aa += (a[i] - mean_a) * (a[i] - mean_a);
        bb += (b[i] - mean_b) * (b[i] - mean_b);
    }
    return ab / sqrt(aa * bb);
}

START_TEST(a_face_is_a_pure_function_of_its_numbers)
{
    uint8_t a[PIXELS], b[PIXELS];
    face_draw(3, 5, 7, a);
    face_draw(3, 5, 7, b);
    ck_assert_mem_eq(a, b, PIXELS);
    face_draw(3, 5, 8, b);
    ck_assert_mem_ne(a, b, PIXELS);
    face_draw(4, 5, 7, b);
    ck_assert_mem_ne(a, b, PIXELS);
}

END_TEST

START_TEST(photos_of_one_person_are_more_alike_than_those_of_two)
{
    enum { PEOPLE = 12, PHOTOS = 4 };

    static uint8_t faces[PEOPLE][PHOTOS][PIXELS];
    double same = 0, other = 0;
    int n_same = 0, n_other = 0;
    for (uint32_t p = 0; p < PEOPLE; p++) {
        for (uint32_t k = 0; k < PHOTOS; k++) {
            face_draw(11, p, k, faces[p][k]);
        }
    }
    for (int i = 0; i < PEOPLE * PHOTOS; i++) {
        for (int j = 0; j < i; j++) {
            double score = likeness(faces[i / PHOTOS][i % PHOTOS], faces[j / PHOTOS][j % PHOTOS]);
            *(i / PHOTOS == j / PHOTOS ? &same : &other) += score;
            *(i / PHOTOS == j / PHOTOS ? &n_same : &n_other) += 1;
        }
    }
    printf("same %.3f other %.3f\n", same / n_same, other / n_other);
    ck_assert_double_gt(same / n_same, other / n_other + 0.05);
}

END_TEST

WEIR_TEST_MAIN("faces", a_face_is_a_pure_function_of_its_numbers,
               photos_of_one_person_are_more_alike_than_those_of_two)
