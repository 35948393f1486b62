/* PNG through libpng. Its errors arrive by longjmp: everything that must be freed afterwards lives
 * in a struct outside of the function that calls setjmp. */
#include "data/image_private.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CHUNK_BYTES (8u << 20) /* of an ancillary chunk, unpacked: a bomb's usual place */

/* Compressed bytes that may stand behind the last row's: they are unpacked too, to a thousand times
 * as many, before the file's end is found. */
#define MAX_SURPLUS_BYTES ((size_t)8 << 10)

#define MAX_PIXEL_BYTES  8 /* Four channels of 16 bits. */
#define SIGNATURE_BYTES  8
#define CHUNK_HEAD_BYTES 8  /* Length and type. */
#define CHUNK_BYTES      12 /* With the checksum, beside the data. */

/* Chunks that say nothing of the pixels are passed over: texts and profiles are unpacked, and kept, a
 * thousand to a file. */
static const uint8_t passed_over[] = "iCCP\0zTXt\0iTXt\0tEXt\0sPLT\0hIST\0pCAL\0sCAL\0bKGD";

struct codec {
    png_structp png;
    png_infop info;
    const uint8_t *first, *at, *end;
    const struct weir_image_limits *limits;
    struct weir_image image; /**< Being decoded. */
    struct weir_buf *buf;    /**< Being encoded into. */
    struct weir_error *err;
    weir_status status;
    bool is_out_of_memory; /**< libpng's own message would blame the file. */
};

static png_voidp take_memory(png_structp png, png_alloc_size_t size)
{
    struct codec *codec = png_get_mem_ptr(png);
    void *memory = malloc(size);
    codec->is_out_of_memory = codec->is_out_of_memory || memory == NULL;
    return memory;
}

static void free_memory(png_structp png, png_voidp memory)
{
    (void)png;
    free(memory);
}

/** Also where libpng went on without: what it left out is not known. */
static void judge_memory(struct codec *codec)
{
    if (codec->is_out_of_memory) {
        codec->status = weir_error_set(codec->err, WEIR_ERR_NOMEM, "PNG: out of memory");
    }
}

static void on_error(png_structp png, png_const_charp message)
{
    struct codec *codec = png_get_error_ptr(png);
    if (codec->status == WEIR_OK) {
        codec->status = weir_error_set(codec->err, WEIR_ERR_CORRUPT, "PNG: %s", message);
    }
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message; // about ancillary chunks: the pixels are whole
}

static void read_bytes(png_structp png, png_bytep out, size_t size)
{
    struct codec *codec = png_get_io_ptr(png);
    if ((size_t)(codec->end - codec->at) < size) {
        png_error(png, "truncated");
    }
    memcpy(out, codec->at, size);
    codec->at += size;
}

/** Ask libpng for 8-bit grey or RGB whatever the file holds. */
static int simplify(struct codec *codec)
{
    png_byte type = png_get_color_type(codec->png, codec->info);
    png_set_expand(codec->png); // palette → RGB, 1/2/4-bit grey → 8, tRNS → alpha
    png_set_scale_16(codec->png);
    png_set_strip_alpha(codec->png);
    bool is_grey = (type & PNG_COLOR_MASK_COLOR) == 0;
    int n_passes = png_set_interlace_handling(codec->png);
    png_read_update_info(codec->png, codec->info);
    size_t row = png_get_rowbytes(codec->png, codec->info);
    if (row != (size_t)codec->image.width * (is_grey ? 1 : 3)) {
        png_error(codec->png, "unexpected form of the pixels");
    }
    return n_passes;
}

static uint32_t number_at(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/** Bytes of pixels' data that are not read yet: those of chunks behind where the reader is. */
static size_t data_left(const struct codec *codec)
{
    size_t n = 0, left = (size_t)(codec->end - codec->first) - SIGNATURE_BYTES;
    for (const uint8_t *at = codec->first + SIGNATURE_BYTES; left >= CHUNK_BYTES;) {
        size_t len = number_at(at), whole = WEIR_MIN(len + CHUNK_BYTES, left);
        const uint8_t *begin = at + CHUNK_HEAD_BYTES,
                      *end = begin + WEIR_MIN(len, left - CHUNK_BYTES);
        if (memcmp(at + 4, "IDAT", 4) == 0 && end > codec->at) {
            n += (size_t)(end - WEIR_MAX(begin, codec->at));
        }
        at += whole;
        left -= whole;
    }
    return n;
}

/** Before the last row, since libpng unpacks all there is with it: behind the rows of a small picture a
 *  gigabyte may lie, which gives nothing and costs time. */
static void check_surplus(struct codec *codec)
{
    const size_t row_bytes = (size_t)png_get_image_width(codec->png, codec->info) * MAX_PIXEL_BYTES;
    if (data_left(codec) > row_bytes + row_bytes / 1000 + MAX_SURPLUS_BYTES) {
        png_error(codec->png, "more data than the picture has pixels");
    }
}

/** Runs under the caller's setjmp: it takes memory. */
static void bound(png_structp png)
{
    // libpng's own limit would call a large picture damaged: ours answers first.
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, passed_over,
                                (int)(sizeof passed_over / 5));
    png_set_chunk_malloc_max(png, MAX_CHUNK_BYTES);
}

/** Runs under the caller's setjmp. */
static void read_picture(struct codec *codec)
{
    png_read_info(codec->png, codec->info);
    uint32_t width = png_get_image_width(codec->png, codec->info);
    uint32_t height = png_get_image_height(codec->png, codec->info);
    int channels =
        (png_get_color_type(codec->png, codec->info) & PNG_COLOR_MASK_COLOR) != 0 ? 3 : 1;
    codec->status = image_check_size(width, height, codec->limits, codec->err);
    if (codec->status == WEIR_OK) {
        codec->status =
            weir_image_init(&codec->image, (int)width, (int)height, channels, codec->err);
    }
    if (codec->status != WEIR_OK) {
        return;
    }
    int n_passes = simplify(codec);
    for (int pass = 0; pass < n_passes; pass++) {
        uint8_t *row = codec->image.pixels;
        for (uint32_t y = 0; y < height; y++, row += (size_t)width * (size_t)channels) {
            if (pass == n_passes - 1 && y == height - 1) {
                check_surplus(codec);
            }
            png_read_row(codec->png, row, NULL);
        }
    }
    png_read_end(codec->png, NULL); // a file cut behind its pixels is truncated as well
}

static void run_decoder(struct codec *codec)
{
    if (setjmp(png_jmpbuf(codec->png)) == 0) {
        bound(codec->png);
        read_picture(codec);
    }
}

weir_status image_png_decode(const uint8_t *data, size_t size,
                             const struct weir_image_limits *limits, struct weir_image *out,
                             struct weir_error *err)
{
    struct codec codec = {
        .first = data, .at = data, .end = data + size, .limits = limits, .err = err};
    codec.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &codec, on_error, on_warning,
                                         &codec, take_memory, free_memory);
    codec.info = codec.png == NULL ? NULL : png_create_info_struct(codec.png);
    if (codec.info == NULL) {
        png_destroy_read_struct(&codec.png, NULL, NULL);
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the PNG decoder");
    }
    png_set_read_fn(codec.png, &codec, read_bytes);
    run_decoder(&codec);
    png_destroy_read_struct(&codec.png, &codec.info, NULL);
    judge_memory(&codec);
    if (codec.status != WEIR_OK) {
        weir_image_fini(&codec.image);
        return codec.status;
    }
    *out = codec.image;
    return WEIR_OK;
}

static void write_bytes(png_structp png, png_bytep bytes, size_t size)
{
    struct codec *codec = png_get_io_ptr(png);
    weir_status status = weir_buf_append(codec->buf, bytes, size);
    if (status != WEIR_OK) {
        codec->status = weir_error_set(codec->err, status, "picture does not fit in %zu bytes",
                                       codec->buf->max_bytes);
        png_error(png, "output is full");
    }
}

static void flush_nothing(png_structp png)
{
    (void)png;
}

static void run_encoder(struct codec *codec)
{
    if (setjmp(png_jmpbuf(codec->png)) != 0) {
        return;
    }
    const struct weir_image *image = &codec->image;
    png_set_IHDR(codec->png, codec->info, (png_uint_32)image->width, (png_uint_32)image->height, 8,
                 image->channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(codec->png, codec->info);
    for (int y = 0; y < image->height; y++) {
        png_write_row(codec->png,
                      image->pixels + (size_t)y * (size_t)image->width * (size_t)image->channels);
    }
    png_write_end(codec->png, codec->info);
}

weir_status image_png_encode(const struct weir_image *image, struct weir_buf *buf,
                             struct weir_error *err)
{
    struct codec codec = {.buf = buf, .err = err, .image = *image};
    codec.png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, &codec, on_error, on_warning,
                                          &codec, take_memory, free_memory);
    codec.info = codec.png == NULL ? NULL : png_create_info_struct(codec.png);
    if (codec.info == NULL) {
        png_destroy_write_struct(&codec.png, NULL);
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the PNG encoder");
    }
    png_set_write_fn(codec.png, &codec, write_bytes, flush_nothing);
    run_encoder(&codec);
    png_destroy_write_struct(&codec.png, &codec.info);
    judge_memory(&codec);
    return codec.status;
}
