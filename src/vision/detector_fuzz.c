/* Bytes as a model and its answer: a kind, ports, shapes, numbers. It is refused, or what is found lies in the picture. */
#include "vision/detector.h"
#include "vision/view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bytes {
    const uint8_t *data;
    size_t size;
};

static uint8_t next(struct bytes *bytes)
{
    if (bytes->size == 0) {
        return 0;
    }
    bytes->size--;
    return *bytes->data++;
}

#define OUTPUTS_MAX 16
#define RANK_MAX    5
#define VALUES_MAX  ((size_t)1 << 18)

/* Numbers: the bytes again and again, as f32; many are NaN, infinite, huge. */
static void fill(const struct bytes *bytes, float *values)
{
    memset(values, 0x3f, VALUES_MAX * sizeof *values);
    for (size_t i = 0; bytes->size >= 4 && i < VALUES_MAX; i++) {
        memcpy(&values[i], bytes->data + i * 4 % (bytes->size - 3), 4);
    }
}

static const char *const names[] = {"cls_8",  "obj_16", "boxes", "scores", "labels",
                                    "logits", "num",    "a",     "b",      "detection_classes"};

static size_t read_ports(struct bytes *bytes, struct weir_detector_port *ports,
                         int64_t dims[][RANK_MAX])
{
    static const int64_t sides[] = {-1, 0, 1, 2, 3, 4, 5, 6, 7, 10, 16, 64, 84, 85, 100, 300};
    size_t n = next(bytes) % (OUTPUTS_MAX + 1);
    for (size_t i = 0; i < n; i++) {
        uint8_t name = next(bytes), rank = next(bytes) % 6;
        for (size_t k = 0; k < rank; k++) {
            uint8_t side = next(bytes);
            dims[i][k] = side < 128 ? sides[side % 16] : (int64_t)side * (side - 127);
        }
        ports[i] = (struct weir_detector_port){names[name % 10], dims[i], rank, false};
    }
    return n;
}

static bool has_values(const struct weir_detector_port *port)
{
    int64_t n = 1;
    for (size_t k = 0; k < port->rank; k++) {
        n = port->dims[k] < 0 ? 0 : n * port->dims[k];
        if (n > (int64_t)VALUES_MAX) {
            return false;
        }
    }
    return true;
}

static void check(const struct weir_detection *found, size_t n, const struct weir_view *view)
{
    for (size_t i = 0; i < n; i++) {
        const struct weir_box *box = &found[i].box;
        if (!(box->x >= 0 && box->y >= 0 && box->w > 0 && box->h > 0 && found[i].score >= 0 &&
              found[i].score <= 1 && box->x + box->w <= (float)view->width + 0.01f &&
              box->y + box->h <= (float)view->height + 0.01f)) {
            abort();
        }
    }
    if (n > WEIR_DETECTIONS_MAX) {
        abort();
    }
}

static void answer(struct weir_detector *detector, const struct weir_detector_port *ports, size_t n,
                   const float *values)
{
    const struct weir_view view = {.form = WEIR_VIEW_GREY, .width = 100, .height = 70};
    struct weir_detector_output outputs[OUTPUTS_MAX] = {{0}};
    const struct weir_detection *found;
    bool is_small = true;
    for (size_t i = 0; i < n; i++) {
        outputs[i] =
            (struct weir_detector_output){ports[i].name, ports[i].dims, ports[i].rank, values};
        is_small = is_small && has_values(&ports[i]);
    }
    size_t n_tiles = weir_detector_look(detector, &view);
    for (size_t i = 0; is_small && i < n_tiles; i++) {
        (void)!weir_detector_take(detector, i, outputs, n, NULL);
    }
    n = weir_detector_found(detector, &found);
    check(found, n, &view);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static float values[VALUES_MAX];
    struct bytes bytes = {data, size};
    struct weir_detector_port ports[OUTPUTS_MAX] = {{0}};
    int64_t dims[OUTPUTS_MAX][RANK_MAX] = {{0}};
    uint8_t kind = next(&bytes), form = next(&bytes);
    const int64_t in[] = {1, 3, (form & 1) != 0 ? -1 : 32 * (1 + (form >> 2) % 8),
                          (form & 2) != 0 ? -1 : 32 * (1 + (form >> 5))};
    const struct weir_detector_port input = {"images", in, 4, false};
    struct weir_detector_options options = {
        .kind = kind < weir_detectors.n_kinds ? weir_detectors.kinds[kind]->name : NULL,
        .threshold = (float)(next(&bytes) % 16) / 15,
        .overlap = NAN,
        .min_size = next(&bytes),
        .tiles_max = next(&bytes)};
    size_t n = read_ports(&bytes, ports, dims);
    struct weir_detector *detector;
    const char *why;
    fill(&bytes, values);
    if (weir_detector_create(&options, &input, 1, ports, n, &detector, &why, NULL) == WEIR_OK) {
        answer(detector, ports, n, values);
        weir_detector_destroy(detector);
    }
    return 0;
}
