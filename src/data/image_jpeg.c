/* JPEG through libjpeg-turbo. Its errors arrive through error_exit, which must not return: longjmp.
 * Where the library only warns of damage and fills in grey, the file is refused as well. */
#include "data/image_private.h"

#include <jerror.h>
#include <jpeglib.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#define MAX_MEMORY_BYTES (768l << 20) /* coefficients of the largest picture the limits allow */

struct codec {
    struct jpeg_error_mgr errors; /* first: libjpeg hands back a pointer to it */
    struct jpeg_progress_mgr progress;
    struct jpeg_decompress_struct decoder;
    struct jpeg_compress_struct encoder;
    const struct weir_image_limits *limits; /**< Of what is decoded. */
    struct weir_image image;
    uint8_t *row; /**< CMYK line; freed by the caller of setjmp's function. */
    struct weir_error *err;
    weir_status status;
    jmp_buf on_failure;
};

static weir_status status_of(int code)
{
    switch (code) {
    case JERR_OUT_OF_MEMORY:
        return WEIR_ERR_NOMEM;
    case JERR_BAD_PRECISION:
    case JERR_SOF_UNSUPPORTED:
    case JERR_ARITH_NOTIMPL:
    case JERR_NOTIMPL:
    case JERR_NOT_COMPILED:
        return WEIR_ERR_UNSUPPORTED;
    case JERR_IMAGE_TOO_BIG:
    case JERR_NO_BACKING_STORE:
        return WEIR_ERR_LIMIT;
    default:
        return WEIR_ERR_CORRUPT;
    }
}

static void fail(j_common_ptr common)
{
    struct codec *codec = (struct codec *)common->err;
    char message[JMSG_LENGTH_MAX];
    common->err->format_message(common, message);
    codec->status =
        weir_error_set(codec->err, status_of(common->err->msg_code), "JPEG: %s", message);
    longjmp(codec->on_failure, 1);
}

/** Level −1 is a warning. A few are about form only; every other means lost pixels. */
static void on_message(j_common_ptr common, int level)
{
    if (level >= 0) {
        return;
    }
    switch (common->err->msg_code) {
    case JWRN_ADOBE_XFORM:
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_JFIF_MAJOR:
    case JWRN_TOO_MUCH_DATA:
    case JWRN_BOGUS_ICC:
        return;
    default:
        fail(common);
    }
}

static void stay_silent(j_common_ptr common)
{
    (void)common;
}

static void on_progress(j_common_ptr common)
{
    j_decompress_ptr decoder = (j_decompress_ptr)common;
    struct codec *codec = (struct codec *)common->err;
    if (common->is_decompressor && decoder->input_scan_number > codec->limits->max_scans) {
        codec->status = weir_error_set(codec->err, WEIR_ERR_LIMIT, "JPEG: more than %d scans",
                                       codec->limits->max_scans);
        longjmp(codec->on_failure, 1);
    }
}

static void prepare(struct codec *codec, struct weir_error *err)
{
    memset(codec, 0, sizeof *codec);
    codec->err = err;
    (void)jpeg_std_error(&codec->errors);
    codec->errors.error_exit = fail;
    codec->errors.emit_message = on_message;
    codec->errors.output_message = stay_silent;
    codec->progress.progress_monitor = on_progress;
    codec->decoder.err = &codec->errors;
    codec->encoder.err = &codec->errors;
}

/** One line of CMYK as Adobe writes it: inverted, so that 255 is no ink. */
static void cmyk_to_rgb(const uint8_t *from, int width, bool is_inverted, uint8_t *to)
{
    for (int x = 0; x < width; x++, from += 4, to += 3) {
        for (int c = 0; c < 3; c++) {
            unsigned ink = is_inverted ? from[c] : 255u - from[c];
            unsigned black = is_inverted ? from[3] : 255u - from[3];
            to[c] = (uint8_t)((ink * black + 127) / 255);
        }
    }
}

/** Runs under the caller's setjmp. */
static void read_picture(struct codec *codec, const uint8_t *data, size_t size)
{
    j_decompress_ptr decoder = &codec->decoder;
    jpeg_create_decompress(decoder);
    decoder->progress = &codec->progress;
    decoder->mem->max_memory_to_use = MAX_MEMORY_BYTES;
    jpeg_mem_src(decoder, data, size);
    (void)jpeg_read_header(decoder, TRUE);
    codec->status =
        image_check_size(decoder->image_width, decoder->image_height, codec->limits, codec->err);
    if (codec->status != WEIR_OK) {
        return;
    }
    bool is_grey = decoder->jpeg_color_space == JCS_GRAYSCALE;
    bool is_cmyk = decoder->jpeg_color_space == JCS_CMYK || decoder->jpeg_color_space == JCS_YCCK;
    decoder->out_color_space = is_grey ? JCS_GRAYSCALE : is_cmyk ? JCS_CMYK : JCS_RGB;
    codec->status = weir_image_init(&codec->image, (int)decoder->image_width,
                                    (int)decoder->image_height, is_grey ? 1 : 3, codec->err);
    if (codec->status == WEIR_OK && is_cmyk) {
        codec->row = malloc((size_t)decoder->image_width * 4);
        if (codec->row == NULL) {
            codec->status = weir_error_set(codec->err, WEIR_ERR_NOMEM, "no memory for a line");
        }
    }
    if (codec->status != WEIR_OK) {
        return;
    }
    (void)jpeg_start_decompress(decoder);
    size_t stride = (size_t)codec->image.width * (size_t)codec->image.channels;
    while (decoder->output_scanline < decoder->output_height) {
        uint8_t *to = codec->image.pixels + decoder->output_scanline * stride;
        JSAMPROW row = is_cmyk ? codec->row : to;
        (void)jpeg_read_scanlines(decoder, &row, 1);
        if (is_cmyk) {
            cmyk_to_rgb(codec->row, codec->image.width, decoder->saw_Adobe_marker, to);
        }
    }
    (void)jpeg_finish_decompress(decoder);
}

static void run_decoder(struct codec *codec, const uint8_t *data, size_t size)
{
    if (setjmp(codec->on_failure) == 0) {
        read_picture(codec, data, size);
    }
}

weir_status image_jpeg_decode(const uint8_t *data, size_t size,
                              const struct weir_image_limits *limits, struct weir_image *out,
                              struct weir_error *err)
{
    struct codec codec;
    prepare(&codec, err);
    codec.limits = limits;
    run_decoder(&codec, data, size);
    jpeg_destroy_decompress(&codec.decoder);
    free(codec.row);
    if (codec.status != WEIR_OK) {
        weir_image_fini(&codec.image);
        return codec.status;
    }
    *out = codec.image;
    return WEIR_OK;
}

struct output {
    unsigned char *bytes; /**< malloc'ed by libjpeg, grown as needed. */
    unsigned long size;
};

static void run_encoder(struct codec *codec, int quality, struct output *output)
{
    if (setjmp(codec->on_failure) != 0) {
        return;
    }
    const struct weir_image *image = &codec->image;
    j_compress_ptr encoder = &codec->encoder;
    jpeg_create_compress(encoder);
    jpeg_mem_dest(encoder, &output->bytes, &output->size);
    encoder->image_width = (JDIMENSION)image->width;
    encoder->image_height = (JDIMENSION)image->height;
    encoder->input_components = image->channels;
    encoder->in_color_space = image->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(encoder);
    jpeg_set_quality(encoder, quality, TRUE);
    jpeg_start_compress(encoder, TRUE);
    size_t stride = (size_t)image->width * (size_t)image->channels;
    while (encoder->next_scanline < encoder->image_height) {
        JSAMPROW row = image->pixels + encoder->next_scanline * stride;
        (void)jpeg_write_scanlines(encoder, &row, 1);
    }
    jpeg_finish_compress(encoder);
}

weir_status image_jpeg_encode(const struct weir_image *image, int quality, struct weir_buf *buf,
                              struct weir_error *err)
{
    struct codec codec;
    struct output output = {0};
    prepare(&codec, err);
    codec.image = *image;
    run_encoder(&codec, quality, &output);
    if (codec.status == WEIR_OK) {
        codec.status = weir_buf_append(buf, output.bytes, output.size);
        if (codec.status != WEIR_OK) {
            (void)weir_error_set(err, codec.status, "picture does not fit in %zu bytes",
                                 buf->max_bytes);
        }
    }
    jpeg_destroy_compress(&codec.encoder);
    free(output.bytes);
    return codec.status;
}
