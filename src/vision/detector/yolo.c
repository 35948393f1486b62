#include "vision/detector/yolo.h"

#include <string.h>

static const struct weir_option options[] = {
    {.name = "version",
     .type = WEIR_OPTION_TEXT,
     .offset = offsetof(struct weir_detector_yolo, version),
     .doc =
         "What the outputs are: those of YOLOv5, of v8 to v13, of YOLOX; the heads alone; or after "
         "suppression in the model (v10 and other end2end exports, YOLOv7's, TensorRT's "
         "plug-in); else by shapes",
     .words =
         WEIR_WORDS("v5", "v5_raw", "v8", "v8_raw", "yolox", "end2end", "v7_end2end", "plugin")},
    WEIR_OPT_JSON(weir_detector_yolo, points, "points", INT, 0, "0", 0, 64,
                  "Points that each thing has, of v5 and v8; 5 are a face's"),
    WEIR_OPT_JSON(weir_detector_yolo, anchors, "anchors", JSON, 0, NULL, 0, 0,
                  "Of v5_raw: three lists, of strides 8, 16 and 32, each of three widths and "
                  "heights in pixels; else COCO's"),
};

/* ---- which version ------------------------------------------------------------------------------------ */

/* Dimension i from the last of output k; 0: there is none. */
static int64_t dim(const struct detector_plan *plan, size_t k, size_t i)
{
    const struct detector_port *port = &plan->outputs[k];
    return i < port->rank ? port->dims[port->rank - 1 - i] : 0;
}

/* Cells of the three strides; 0: the input's size is free. */
static int64_t count_places(const struct detector_plan *plan)
{
    int64_t n = 0;
    for (int stride = 8; plan->width > 0 && plan->height > 0 && stride <= 32; stride *= 2) {
        n += (int64_t)detector_places(plan->width, stride) * detector_places(plan->height, stride);
    }
    return n;
}

static bool is_one(const struct detector_plan *plan)
{
    return plan->n_outputs == 1 && (plan->outputs[0].rank == 3 || plan->outputs[0].rank == 2);
}

static bool is_v7_end2end(const struct detector_plan *plan)
{
    return plan->n_outputs == 1 && detector_port_is(plan, 0, 2, 7);
}

static bool is_plugin(const struct detector_plan *plan)
{
    return plan->n_outputs == 4 &&
           (plan->is_asked || detector_port_named(plan, "num_dets") < plan->n_outputs);
}

static bool is_v5_raw(const struct detector_plan *plan)
{
    bool is_its = plan->n_outputs == YOLO_HEADS;
    for (size_t k = 0; is_its && k < YOLO_HEADS; k++) {
        is_its = plan->outputs[k].rank == 5 && (dim(plan, k, 0) >= 5 || dim(plan, k, 0) < 0) &&
                 detector_dim_is(plan, dim(plan, k, 3), YOLO_ANCHORS);
    }
    return is_its;
}

static bool is_v8_raw(const struct detector_plan *plan)
{
    bool is_its = plan->n_outputs == YOLO_HEADS;
    for (size_t k = 0; is_its && k < YOLO_HEADS; k++) {
        int64_t n = dim(plan, k, 2);
        is_its = plan->outputs[k].rank == 4 && (n > 4 * YOLO_BINS || (n < 0 && plan->is_asked)) &&
                 n == dim(plan, 0, 2);
    }
    return is_its;
}

static bool is_end2end(const struct detector_plan *plan)
{
    int64_t rows = is_one(plan) ? dim(plan, 0, 1) : 0, n_places = count_places(plan);
    bool is_list = rows > 0 && rows <= 1000 && rows != n_places && rows != 3 * n_places;
    return is_one(plan) && detector_port_is(plan, 0, 0, 6) && (is_list || plan->is_asked);
}

static bool is_v8(const struct detector_plan *plan)
{
    int64_t channels = is_one(plan) ? dim(plan, 0, 1) : 0,
            places = is_one(plan) ? dim(plan, 0, 0) : 0;
    return (channels >= 5 && (places < 0 || places > channels || places == count_places(plan))) ||
           (is_one(plan) && plan->is_asked && (channels < 0 || channels >= 5));
}

static bool is_rows(const struct detector_plan *plan)
{
    int64_t rows = is_one(plan) ? dim(plan, 0, 1) : 0, columns = is_one(plan) ? dim(plan, 0, 0) : 0;
    return (columns >= 6 || (columns < 0 && plan->is_asked)) &&
           (rows < 0 || rows > columns || (rows > 0 && plan->is_asked));
}

static bool is_yolox(const struct detector_plan *plan)
{
    return is_rows(plan) && (plan->is_asked || dim(plan, 0, 1) == count_places(plan));
}

/* In the order that they are guessed in. */
static const struct version {
    const char *name;
    bool (*is)(const struct detector_plan *plan);
    yolo_decode_fn decode;
    size_t n_roles;
    const char *by;
} versions[] = {
    {"v7_end2end", is_v7_end2end, yolo_decode_v7_end2end, 1, "its output has rows of 7"},
    {"plugin", is_plugin, yolo_decode_plugin, 4, "one of its 4 outputs is called num_dets"},
    {"v5_raw", is_v5_raw, yolo_decode_v5_raw, 3, "its 3 outputs have 3 anchors for each place"},
    {"v8_raw", is_v8_raw, yolo_decode_v8_raw, 3, "its 3 outputs have more than 64 channels"},
    {"end2end", is_end2end, yolo_decode_end2end, 1, "its output has at most 1000 rows of 6"},
    {"v8", is_v8, yolo_decode_v8, 1, "its output has more places than channels, channels first"},
    {"yolox", is_yolox, yolo_decode_yolox, 1, "its output has a row for each place"},
    {"v5", is_rows, yolo_decode_v5, 1,
     "its output has rows, and not one for each place (if it is YOLOX, say version: yolox)"},
};

enum { YOLOX = 6 };

static void take(struct detector_plan *plan, size_t i)
{
    static const char *const plugin[] = {"num", "box", "score", "class|label"};
    const struct version *version = &versions[i];
    plan->variant = (int)i;
    if (version->n_roles != WEIR_ARRAY_LEN(plugin) ||
        !detector_roles_named(plan, plugin, version->n_roles)) {
        detector_roles_in_order(plan, version->n_roles);
    }
    if (i == YOLOX) {
        plan->look = (struct detector_look){.is_bgr = true,
                                            .scale = 1,
                                            .std = {1, 1, 1},
                                            .fit = DETECTOR_CORNER,
                                            .pad = 114,
                                            .divisor = 32};
    }
    if (strstr(version->name, "end2end") != NULL || strcmp(version->name, "plugin") == 0) {
        plan->overlap = NAN;
    }
    (void)snprintf(plan->why, sizeof plan->why, "version %s: %s", version->name, version->by);
}

static bool fit(struct detector_plan *plan)
{
    const struct weir_detector_yolo *own = plan->options;
    float anchors[YOLO_HEADS][2 * YOLO_ANCHORS];
    struct detector_plan strict = *plan;
    strict.is_asked = own->version != NULL;
    if (!yolo_anchors(own->anchors, anchors)) {
        return false;
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(versions); i++) {
        if ((own->version == NULL || strcmp(own->version, versions[i].name) == 0) &&
            versions[i].is(&strict)) {
            take(plan, i);
            return true;
        }
    }
    return false;
}

static weir_status decode(const struct detector_answer *answer, struct harvest *harvest,
                          struct weir_error *err)
{
    return versions[answer->plan->variant].decode(answer, harvest, err);
}

static const struct detector_ops ops = {
    .takes = "an output of rows or channels of 4 or 5 and the classes, three heads, or a finished "
             "list; anchors are three lists of six numbers",
    .look =
        {.scale = 1 / 255.0f, .std = {1, 1, 1}, .fit = DETECTOR_CENTRE, .pad = 114, .divisor = 32},
    .threshold = 0.25f,
    .overlap = 0.45f,
    .least = 16,
    .fit = fit,
    .decode = decode,
};

const struct weir_kind weir_detector_yolo_kind = {
    .name = "yolo",
    .doc = "YOLO of any classes: v5, v7, v8 and its followers, v10, YOLOX. RGB from 0 to 1, padded "
           "with 114 on both sides; YOLOX takes BGR from 0 to 255, padded right and below. "
           "Threshold 0.25, overlap 0.45.",
    WEIR_KIND_OPTIONS(weir_detector_yolo, options),
    .ops = &ops,
};
