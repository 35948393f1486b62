#include "serve/preprocess.h"

#include "tensor/convert.h"

#include <math.h>

#define N_VALUES 256

/** What each value of a pixel becomes in a channel of the tensor. */
union values {
    float f32[N_VALUES];
    uint16_t f16[N_VALUES];
    uint8_t u8[N_VALUES];
};

size_t weir_picture_bytes(const struct signature_picture *picture)
{
    return (size_t)picture->channels * (size_t)picture->width * (size_t)picture->height *
           weir_dtype_bytes(picture->dtype);
}

/* ---- values ----------------------------------------------------------------------------------- */

static void make_values(const struct signature_picture *picture, int32_t channel, union values *out)
{
    double values[N_VALUES];
    for (int i = 0; i < N_VALUES; i++) {
        values[i] = (i * picture->scale / 255 - picture->mean[channel]) / picture->std[channel];
        if (picture->dtype == WEIR_DTYPE_UINT8) {
            values[i] = fmin(fmax(rint(values[i]), 0), 255);
        }
    }
    weir_elems_from_f64(picture->dtype, values, out, N_VALUES, WEIR_OVERFLOW_IS_LOST);
}

/* Pixels lie stride_from bytes apart, elements stride_to. */
#define PUT(member, type)                                                                          \
    for (size_t i = 0; i < n; i++) {                                                               \
        ((type *)to)[i * stride_to] = values->member[from[i * stride_from]];                       \
    }

static void put_channel(enum weir_dtype dtype, const union values *values, const uint8_t *from,
                        size_t stride_from, void *to, size_t stride_to, size_t n)
{
    if (dtype == WEIR_DTYPE_FLOAT) {
        PUT(f32, float)
    } else if (dtype == WEIR_DTYPE_FLOAT16) {
        PUT(f16, uint16_t)
    } else {
        PUT(u8, uint8_t)
    }
}

#undef PUT

static void put_image(const struct signature_picture *picture, const struct weir_image *image,
                      void *out)
{
    size_t n_pixels = (size_t)picture->width * (size_t)picture->height;
    size_t n_channels = (size_t)picture->channels, bytes = weir_dtype_bytes(picture->dtype);
    for (size_t c = 0; c < n_channels; c++) {
        union values values;
        make_values(picture, (int32_t)c, &values);
        size_t first = picture->is_nhwc ? c : c * n_pixels;
        const uint8_t *from = image->pixels + (picture->is_bgr ? n_channels - 1 - c : c);
        put_channel(picture->dtype, &values, from, n_channels, (char *)out + first * bytes,
                    picture->is_nhwc ? n_channels : 1, n_pixels);
    }
}

/* ---- fit -------------------------------------------------------------------------------------- */

/* Longer sides are cut towards zero, and the middle begins at half the rest, rounded to even. */
static weir_status crop(const struct signature_picture *picture, const struct weir_image *image,
                        struct weir_image *out, struct weir_error *err)
{
    struct weir_image resized = {0};
    int64_t shorter = picture->shorter, w = image->width, h = image->height;
    int64_t width = w <= h ? shorter : shorter * w / h;
    int64_t height = w <= h ? shorter * h / w : shorter;
    if (width > WEIR_IMAGE_MAX_SIDE || height > WEIR_IMAGE_MAX_SIDE) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "a picture of %lldx%lld is too narrow for a shorter side of %lld",
                              (long long)w, (long long)h, (long long)shorter);
    }
    WEIR_TRY(weir_image_resize(image, (int)width, (int)height, &resized, err));
    int x = (int)lrint((double)(width - picture->width) / 2);
    int y = (int)lrint((double)(height - picture->height) / 2);
    weir_status status = weir_image_crop(&resized, x, y, picture->width, picture->height, out, err);
    weir_image_fini(&resized);
    return status;
}

/* Weir's own nets, and all that take the same: the tensor that training and evaluation make, whose
 * values are not rounded to 8 bits between resizing and normalising. */
static bool is_plain(const struct signature_picture *picture)
{
    return !picture->is_crop && !picture->is_nhwc && !picture->is_bgr &&
           picture->dtype == WEIR_DTYPE_FLOAT;
}

static weir_status fill_plain(const struct signature_picture *picture,
                              const struct weir_image *image, void *out, struct weir_error *err)
{
    struct weir_input input = {.c = picture->channels, .h = picture->height, .w = picture->width};
    for (int32_t i = 0; i < picture->channels; i++) {
        input.mean[i] = (float)(picture->mean[i] / picture->scale);
        input.std[i] = (float)(picture->std[i] / picture->scale);
    }
    return weir_image_to_tensor(image, &input, out, err);
}

weir_status weir_picture_fill(const struct signature_picture *picture,
                              const struct weir_image *image, void *out, struct weir_error *err)
{
    struct weir_image converted = {0}, fitted = {0};
    const struct weir_image *source = image;
    if (is_plain(picture)) {
        return fill_plain(picture, image, out, err);
    }
    if (image->channels != picture->channels) {
        WEIR_TRY(weir_image_convert(image, picture->channels, &converted, err));
        source = &converted;
    }
    weir_status status =
        picture->is_crop ? crop(picture, source, &fitted, err)
                         : weir_image_resize(source, picture->width, picture->height, &fitted, err);
    if (status == WEIR_OK) {
        put_image(picture, &fitted, out);
    }
    weir_image_fini(&fitted);
    weir_image_fini(&converted);
    return status;
}

/* ---- bytes ------------------------------------------------------------------------------------ */

static weir_status make_tensor(const struct weir_signature *signature, struct weir_tensor **out,
                               struct weir_error *err)
{
    const struct signature_picture *picture = &signature->picture;
    int64_t c = picture->channels, h = picture->height, w = picture->width;
    const int64_t dims[] = {1, picture->is_nhwc ? h : c, picture->is_nhwc ? w : h,
                            picture->is_nhwc ? c : w};
    int32_t rank = signature->inputs[picture->i_input].rank;
    return weir_tensor_create(picture->dtype, rank, dims + (4 - rank), out, err);
}

weir_status weir_picture_tensor(const struct weir_signature *signature, const void *bytes, size_t n,
                                struct weir_tensor **out, struct weir_error *err)
{
    struct weir_image image = {0};
    struct weir_tensor *tensor;
    if (!signature->has_picture) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "the model takes tensors: nothing says how a picture becomes one "
                              "(weir model push --preprocess)");
    }
    WEIR_TRY(weir_image_decode_within(bytes, n, &weir_image_limits_frame, &image, err));
    weir_status status = make_tensor(signature, &tensor, err);
    if (status == WEIR_OK) {
        status = weir_picture_fill(&signature->picture, &image, tensor->data, err);
        if (status == WEIR_OK) {
            *out = tensor;
        } else {
            weir_tensor_release(tensor);
        }
    }
    weir_image_fini(&image);
    return status;
}
