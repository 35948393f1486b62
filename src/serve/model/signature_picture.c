#include "signature_private.h"

#include <math.h>
#include <string.h>

/** A rule as it is written. */
struct picture_options {
    char *input, *layout, *datatype, *fit, *order;
    int64_t width, height, channels, shorter;
    double scale;
    const json_t *mean, *std;
};

#define SIDE SIGNATURE_PICTURE_SIDE

#define MEMBER(member, type, dflt, lo, hi, doc)                                                    \
    WEIR_OPT_JSON(picture_options, member, #member, type, 0, dflt, lo, hi, doc)

static const struct weir_option options[] = {
    MEMBER(input, TEXT, NULL, 0, 0, "Input that the picture becomes; the only one"),
    MEMBER(width, INT, "0", 0, SIDE, "Pixels of a row"),
    MEMBER(height, INT, "0", 0, SIDE, "Rows"),
    MEMBER(channels, INT, "0", 0, 3, "1: grey, 3: colours"),
    MEMBER(layout, TEXT, NULL, 0, 0, "NCHW or NHWC"),
    MEMBER(datatype, TEXT, NULL, 0, 0, "Type of the input"),
    MEMBER(fit, TEXT, NULL, 0, 0, "stretch or crop"),
    MEMBER(shorter, INT, "0", 0, 2 * SIDE, "With crop: pixels of the shorter side before"),
    MEMBER(order, TEXT, "RGB", 0, 0, "RGB or BGR"),
    MEMBER(scale, F64, "0", 0, 255, "What white is before mean and std: 1 or 255"),
    MEMBER(mean, JSON, NULL, 0, 0, "Taken away, per channel"),
    MEMBER(std, JSON, NULL, 0, 0, "Divided by, per channel"),
};

#undef MEMBER

static weir_status read_word(const char *text, const char *const words[2], const char *where,
                             const char *member, bool *out_is_second, struct weir_error *err)
{
    *out_is_second = strcmp(text, words[1]) == 0;
    if (*out_is_second || strcmp(text, words[0]) == 0) {
        return WEIR_OK;
    }
    return weir_error_set(err, WEIR_ERR_INVALID, "%s.%s: expected %s or %s, got \"%.40s\"", where,
                          member, words[0], words[1], text);
}

/* A number for all channels, or one for each. */
static weir_status read_channels(const json_t *value, int32_t channels, const char *where,
                                 const char *member, double out[3], struct weir_error *err)
{
    if (value == NULL) {
        return WEIR_OK;
    }
    if (json_is_array(value) && json_array_size(value) != (size_t)channels) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s.%s: expected %d numbers, got %zu", where,
                              member, channels, json_array_size(value));
    }
    for (int32_t i = 0; i < channels; i++) {
        const json_t *number = json_is_array(value) ? json_array_get(value, (size_t)i) : value;
        if (!json_is_number(number)) {
            return weir_error_set(err, WEIR_ERR_INVALID, "%s.%s[%d]: expected a number", where,
                                  member, i);
        }
        out[i] = json_number_value(number);
    }
    return WEIR_OK;
}

static weir_status find_input(const char *name, const char *where, const struct serve_port *inputs,
                              size_t n_inputs, size_t *out, struct weir_error *err)
{
    for (size_t i = 0; i < n_inputs && name != NULL; i++) {
        if (strcmp(inputs[i].name, name) == 0) {
            *out = i;
            return WEIR_OK;
        }
    }
    if (name == NULL && n_inputs == 1) {
        *out = 0;
        return WEIR_OK;
    }
    return name != NULL
               ? weir_error_set(err, WEIR_ERR_INVALID, "%s.input: the model has no input \"%.80s\"",
                                where, name)
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "%s.input: missing: the model has %zu inputs", where, n_inputs);
}

/** An image's dimensions in a port: [N, C, H, W] and the like; free ones are -1. */
struct image_dims {
    int64_t c, h, w;
};

static weir_status dims_of(const struct serve_port *port, bool is_nhwc, const char *where,
                           struct image_dims *out, struct weir_error *err)
{
    if (port->rank != 3 && port->rank != 4) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: input \"%.80s\" has %d dimensions, a picture has 3, or 4 with "
                              "the batch",
                              where, port->name, port->rank);
    }
    const int64_t *dims = port->dims + (port->rank - 3);
    *out = is_nhwc ? (struct image_dims){.h = dims[0], .w = dims[1], .c = dims[2]}
                   : (struct image_dims){.c = dims[0], .h = dims[1], .w = dims[2]};
    return WEIR_OK;
}

/* NHWC if only that makes grey or colours of the shape. */
static bool looks_nhwc(const struct serve_port *port)
{
    if (port->rank != 3 && port->rank != 4) {
        return false;
    }
    const int64_t *dims = port->dims + (port->rank - 3);
    bool is_first = dims[0] == 1 || dims[0] == 3, is_last = dims[2] == 1 || dims[2] == 3;
    return is_last && !is_first;
}

static int32_t chosen(int64_t given, int64_t of_shape)
{
    return (int32_t)(given > 0 ? given : of_shape > 0 && of_shape <= SIDE ? of_shape : 0);
}

static weir_status read_size(const struct picture_options *from, const struct serve_port *port,
                             const char *where, struct signature_picture *out,
                             struct weir_error *err)
{
    struct image_dims dims = {0};
    WEIR_TRY(dims_of(port, out->is_nhwc, where, &dims, err));
    out->width = chosen(from->width, dims.w);
    out->height = chosen(from->height, dims.h);
    out->channels = chosen(from->channels, dims.c);
    if (out->width == 0 || out->height == 0 || out->channels == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s.%s: missing: the input's is free or beyond %d", where,
                              out->width == 0    ? "width"
                              : out->height == 0 ? "height"
                                                 : "channels",
                              SIDE);
    }
    if (out->channels != 1 && out->channels != 3) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s.channels: expected 1 or 3, got %d", where,
                              out->channels);
    }
    return WEIR_OK;
}

/* Without `fit`, `shorter` decides; without `shorter`, the middle is as large as can be. */
static weir_status read_fit(const struct picture_options *from, const char *where,
                            struct signature_picture *out, struct weir_error *err)
{
    out->is_crop = from->shorter > 0;
    if (from->fit != NULL) {
        WEIR_TRY(read_word(from->fit, (const char *const[]){"stretch", "crop"}, where, "fit",
                           &out->is_crop, err));
    }
    if (out->is_crop) {
        int32_t least = WEIR_MAX(out->width, out->height);
        out->shorter = from->shorter > 0 ? (int32_t)from->shorter : least;
    }
    return WEIR_OK;
}

static weir_status read_values(const struct picture_options *from, const char *where,
                               struct signature_picture *out, struct weir_error *err)
{
    bool is_bytes = out->dtype == WEIR_DTYPE_UINT8;
    double usual = is_bytes ? 255 : 1;
    out->scale = from->scale > 0 ? from->scale : usual;
    for (int i = 0; i < 3; i++) {
        out->mean[i] = 0;
        out->std[i] = 1;
    }
    WEIR_TRY(read_channels(from->mean, out->channels, where, "mean", out->mean, err));
    return read_channels(from->std, out->channels, where, "std", out->std, err);
}

weir_status picture_read(const json_t *object, const char *where, const struct serve_port *inputs,
                         size_t n_inputs, struct weir_arena *arena, struct signature_picture *out,
                         struct weir_error *err)
{
    struct picture_options from = {0};
    WEIR_TRY(weir_options_read(options, WEIR_ARRAY_LEN(options), object, where, NULL, arena, &from,
                               err));
    struct signature_picture made = {0};
    WEIR_TRY(find_input(from.input, where, inputs, n_inputs, &made.i_input, err));
    const struct serve_port *port = &inputs[made.i_input];
    made.dtype = port->dtype;
    if (from.datatype != NULL && signature_dtype_of(from.datatype) != port->dtype) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s.datatype: \"%.20s\", the input is of %s",
                              where, from.datatype, weir_dtype_name(port->dtype));
    }
    made.is_nhwc = looks_nhwc(port);
    if (from.layout != NULL) {
        WEIR_TRY(read_word(from.layout, (const char *const[]){"NCHW", "NHWC"}, where, "layout",
                           &made.is_nhwc, err));
    }
    WEIR_TRY(read_word(from.order, (const char *const[]){"RGB", "BGR"}, where, "order",
                       &made.is_bgr, err));
    WEIR_TRY(read_size(&from, port, where, &made, err));
    WEIR_TRY(read_fit(&from, where, &made, err));
    WEIR_TRY(read_values(&from, where, &made, err));
    WEIR_TRY(picture_check(&made, inputs, n_inputs, where, err));
    *out = made;
    return WEIR_OK;
}

/* ---- check ------------------------------------------------------------------------------------ */

static weir_status check_values(const struct signature_picture *picture, const char *where,
                                struct weir_error *err)
{
    if (picture->scale != 1 && picture->scale != 255) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s.scale: expected 1 or 255, got %g", where,
                              picture->scale);
    }
    for (int32_t i = 0; i < picture->channels; i++) {
        if (!isfinite(picture->mean[i]) || !isfinite(picture->std[i]) || !(picture->std[i] > 0)) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "%s.std[%d]: expected a number > 0, got %g", where, i,
                                  picture->std[i]);
        }
    }
    return WEIR_OK;
}

static bool fits(int64_t dim, int32_t given)
{
    return dim < 0 || dim == given;
}

weir_status picture_check(const struct signature_picture *picture, const struct serve_port *inputs,
                          size_t n_inputs, const char *where, struct weir_error *err)
{
    if (picture->i_input >= n_inputs) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s.input: there is no such input", where);
    }
    const struct serve_port *port = &inputs[picture->i_input];
    if (port->dtype != WEIR_DTYPE_FLOAT && port->dtype != WEIR_DTYPE_FLOAT16 &&
        port->dtype != WEIR_DTYPE_UINT8) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "%s: input \"%.80s\" is of %s, a picture becomes FP32, FP16 or UINT8",
                              where, port->name, weir_dtype_name(port->dtype));
    }
    struct image_dims dims = {0};
    WEIR_TRY(dims_of(port, picture->is_nhwc, where, &dims, err));
    if (!fits(dims.c, picture->channels) || !fits(dims.h, picture->height) ||
        !fits(dims.w, picture->width)) {
        char shape[WEIR_TENSOR_TEXT_BYTES];
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: %d channels, %d rows and %d pixels as %s do not fit input "
                              "\"%.80s\" of %s",
                              where, picture->channels, picture->height, picture->width,
                              picture->is_nhwc ? "NHWC" : "NCHW", port->name,
                              weir_tensor_dims_text(port->rank, port->dims, shape));
    }
    if (picture->is_crop && picture->shorter < WEIR_MAX(picture->width, picture->height)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s.shorter: expected at least %d, of which the middle is taken, got "
                              "%d",
                              where, WEIR_MAX(picture->width, picture->height), picture->shorter);
    }
    return check_values(picture, where, err);
}

/* ---- print ------------------------------------------------------------------------------------ */

static json_t *numbers(const double *values, int32_t n)
{
    json_t *array = json_array();
    for (int32_t i = 0; i < n; i++) {
        (void)json_array_append_new(array, json_real(values[i]));
    }
    return array;
}

json_t *picture_json(const struct signature_picture *picture, const struct serve_port *inputs)
{
    const struct serve_port *port = &inputs[picture->i_input];
    json_t *object =
        json_pack("{s:s, s:i, s:i, s:i, s:s, s:s, s:s}", "input", port->name, "width",
                  picture->width, "height", picture->height, "channels", picture->channels,
                  "layout", picture->is_nhwc ? "NHWC" : "NCHW", "datatype",
                  signature_datatype(picture->dtype), "fit", picture->is_crop ? "crop" : "stretch");
    if (picture->is_crop) {
        (void)json_object_set_new(object, "shorter", json_integer(picture->shorter));
    }
    (void)json_object_set_new(object, "order", json_string(picture->is_bgr ? "BGR" : "RGB"));
    (void)json_object_set_new(object, "scale", json_integer((json_int_t)picture->scale));
    (void)json_object_set_new(object, "mean", numbers(picture->mean, picture->channels));
    (void)json_object_set_new(object, "std", numbers(picture->std, picture->channels));
    return object;
}
