#include "vision/detector_private.h"

#include <string.h>

enum role { HEAT, SIZE, OFFSET };

#define STRIDE 4
#define TOP    100 /* best places that are looked at */

struct weir_detector_centernet_generic {
    bool is_raw;
};

static const struct weir_option options[] = {
    WEIR_OPT_JSON(weir_detector_centernet_generic, is_raw, "sigmoid", BOOL, 0, "true", 0, 0,
                  "The heat map is given before the sigmoid"),
};

static bool fit(struct detector_plan *plan)
{
    bool is_its = plan->n_outputs == 3;
    for (size_t i = 0; is_its && i < 3; i++) {
        is_its = plan->outputs[i].rank == 4 &&
                 (i == 0 || detector_dim_is(plan, plan->outputs[i].dims[1], 2));
    }
    if (is_its) {
        detector_roles_in_order(plan, 3);
        (void)snprintf(plan->why, sizeof plan->why,
                       "its 3 outputs have C, 2 and 2 channels: heat, size, offset");
    }
    return is_its;
}

/* Is none of the eight around it greater? Each of equal ones is a maximum. */
static bool is_peak(const float *map, int w, int h, int x, int y)
{
    float value = map[y * w + x];
    for (int j = WEIR_MAX(0, y - 1); j <= WEIR_MIN(h - 1, y + 1); j++) {
        for (int i = WEIR_MAX(0, x - 1); i <= WEIR_MIN(w - 1, x + 1); i++) {
            if (map[j * w + i] > value) {
                return false;
            }
        }
    }
    return true;
}

struct peak {
    float value;
    int32_t class_id;
    int x, y;
};

/* The best are first; what is less than the last of a full list goes. @return How many there are. */
static size_t add_peak(struct peak peaks[TOP], size_t n, struct peak one)
{
    size_t i = n < TOP ? n : TOP;
    if (n == TOP && !(one.value > peaks[TOP - 1].value)) {
        return n;
    }
    i = n == TOP ? TOP - 1 : n;
    for (; i > 0 && peaks[i - 1].value < one.value; i--) {
        peaks[i] = peaks[i - 1];
    }
    peaks[i] = one;
    return n == TOP ? TOP : n + 1;
}

static size_t find_peaks(const float *heat, size_t n_classes, int w, int h, float least,
                         struct peak peaks[TOP])
{
    size_t n = 0, n_places = (size_t)w * (size_t)h;
    for (size_t c = 0; c < n_classes; c++) {
        const float *map = heat + c * n_places;
        for (size_t i = 0; i < n_places; i++) {
            int x = (int)(i % (size_t)w), y = (int)(i / (size_t)w);
            if (map[i] >= least && is_peak(map, w, h, x, y)) {
                n = add_peak(peaks, n, (struct peak){map[i], (int32_t)c, x, y});
            }
        }
    }
    return n;
}

static weir_status decode(const struct detector_answer *answer, struct harvest *harvest,
                          struct weir_error *err)
{
    const struct weir_detector_centernet_generic *own = answer->plan->options;
    int w = detector_places(answer->width, STRIDE), h = detector_places(answer->height, STRIDE);
    size_t n_places = (size_t)w * (size_t)h, n_classes = detector_rows(answer, HEAT, n_places);
    const float *heat, *size, *offset;
    struct peak peaks[TOP];
    WEIR_TRY(detector_values(answer, HEAT, n_classes * n_places, &heat, err));
    WEIR_TRY(detector_values(answer, SIZE, 2 * n_places, &size, err));
    WEIR_TRY(detector_values(answer, OFFSET, 2 * n_places, &offset, err));
    float least =
        own->is_raw ? logf(answer->threshold / (1 - answer->threshold)) - 1e-5f : answer->threshold;
    size_t n = find_peaks(heat, n_classes, w, h, least, peaks);
    for (size_t k = 0; k < n; k++) {
        size_t i = (size_t)peaks[k].y * (size_t)w + (size_t)peaks[k].x;
        const float box[] = {((float)peaks[k].x + offset[i]) * STRIDE,
                             ((float)peaks[k].y + offset[n_places + i]) * STRIDE, size[i] * STRIDE,
                             size[n_places + i] * STRIDE};
        float score = own->is_raw ? detector_sigmoid(peaks[k].value) : peaks[k].value;
        harvest_add_centred(harvest, score, peaks[k].class_id, box, NULL);
    }
    return WEIR_OK;
}

static const struct detector_ops ops = {
    .takes = "3 outputs N×C×h×w, C = classes, 2, 2: heat, size, offset",
    .look = {.is_bgr = true,
             .scale = 1 / 255.0f,
             .mean = {0.408f, 0.447f, 0.470f},
             .std = {0.289f, 0.274f, 0.278f},
             .fit = DETECTOR_CENTRE,
             .divisor = 32},
    .threshold = 0.3f,
    .overlap = NAN,
    .least = 16,
    .fit = fit,
    .decode = decode,
};

const struct weir_kind weir_detector_centernet_generic_kind = {
    .name = "centernet-generic",
    .doc =
        "CenterNet of any classes: the 100 best maxima of a heat map at a quarter of the input's "
        "size, with the size and offset that stand there. BGR, normalised, padded on both sides. "
        "Threshold 0.3, nothing overlaps.",
    WEIR_KIND_OPTIONS(weir_detector_centernet_generic, options),
    .ops = &ops,
};
