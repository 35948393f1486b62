#include "data/image.h"

#include "data/image_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const struct weir_image_limits weir_image_limits_file = {WEIR_IMAGE_MAX_PIXELS, 200};
const struct weir_image_limits weir_image_limits_frame = {16u << 20, 32};

weir_status image_check_size(uint64_t width, uint64_t height,
                             const struct weir_image_limits *limits, struct weir_error *err)
{
    if (width == 0 || height == 0) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "picture of %llu x %llu pixels",
                              (unsigned long long)width, (unsigned long long)height);
    }
    if (width > WEIR_IMAGE_MAX_SIDE || height > WEIR_IMAGE_MAX_SIDE ||
        width * height > limits->max_pixels) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "picture of %llu x %llu pixels: at most %d per side and %llu in all",
                              (unsigned long long)width, (unsigned long long)height,
                              WEIR_IMAGE_MAX_SIDE, (unsigned long long)limits->max_pixels);
    }
    return WEIR_OK;
}

weir_status weir_image_init(struct weir_image *image, int width, int height, int channels,
                            struct weir_error *err)
{
    if (width < 1 || height < 1 || (channels != 1 && channels != 3)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "no picture has the shape %d x %d x %d", width,
                              height, channels);
    }
    WEIR_TRY(image_check_size((uint64_t)width, (uint64_t)height, &weir_image_limits_file, err));
    uint8_t *pixels = calloc((size_t)width * (size_t)height, (size_t)channels);
    if (pixels == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a picture of %d x %d", width,
                              height);
    }
    *image = (struct weir_image){width, height, channels, pixels, false};
    return WEIR_OK;
}

void weir_image_fini(struct weir_image *image)
{
    if (image == NULL) {
        return;
    }
    if (!image->is_view) {
        free(image->pixels);
    }
    memset(image, 0, sizeof *image);
}

enum weir_image_format weir_image_sniff(const void *data, size_t size)
{
    const uint8_t *bytes = data;
    if (size >= 3 && bytes[0] == 'P' && strchr("2356", bytes[1]) != NULL && bytes[1] != '\0' &&
        (strchr(" \t\r\n\v\f#", bytes[2]) != NULL && bytes[2] != '\0')) {
        return WEIR_IMAGE_FORMAT_PNM;
    }
    if (size >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0) {
        return WEIR_IMAGE_FORMAT_PNG;
    }
    if (size >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0) {
        return WEIR_IMAGE_FORMAT_JPEG;
    }
    return WEIR_IMAGE_FORMAT_UNKNOWN;
}

weir_status weir_image_decode(const void *data, size_t size, struct weir_image *out,
                              struct weir_error *err)
{
    return weir_image_decode_within(data, size, &weir_image_limits_file, out, err);
}

/* As its pixels lie in the file. */
static weir_status decode_stored(const void *data, size_t size,
                                 const struct weir_image_limits *limits, struct weir_image *out,
                                 struct weir_error *err)
{
    if (size > WEIR_IMAGE_MAX_FILE_BYTES) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "picture file of %zu bytes: at most %u", size,
                              WEIR_IMAGE_MAX_FILE_BYTES);
    }
    switch (weir_image_sniff(data, size)) {
    case WEIR_IMAGE_FORMAT_PNM:
        return image_pnm_decode(data, size, limits, out, err);
    case WEIR_IMAGE_FORMAT_PNG:
        return image_png_decode(data, size, limits, out, err);
    case WEIR_IMAGE_FORMAT_JPEG:
        return image_jpeg_decode(data, size, limits, out, err);
    case WEIR_IMAGE_FORMAT_UNKNOWN:
        break;
    }
    return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "%s",
                          size == 0 ? "empty file: not a picture"
                                    : "not a picture of a known kind (PGM, PPM, PNG, JPEG)");
}

weir_status weir_image_decode_within(const void *data, size_t size,
                                     const struct weir_image_limits *limits, struct weir_image *out,
                                     struct weir_error *err)
{
    struct weir_image image;
    WEIR_TRY(decode_stored(data, size, limits, &image, err));
    weir_status status =
        image_turn(&image, image_orientation(weir_image_sniff(data, size), data, size), err);
    if (status != WEIR_OK) {
        weir_image_fini(&image);
        return status;
    }
    *out = image;
    return WEIR_OK;
}

/** Not weir_file_read: that aborts when memory is out, and a loader must answer NOMEM. */
static weir_status read_open_file(int fd, const char *path, uint8_t **out_data, size_t *out_size,
                                  struct weir_error *err)
{
    struct stat info;
    if (fstat(fd, &info) != 0) {
        return weir_error_set_errno(err, errno, "%s", path);
    }
    if (!S_ISREG(info.st_mode)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s: not a regular file", path);
    }
    if (info.st_size > (off_t)WEIR_IMAGE_MAX_FILE_BYTES) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%s: %lld bytes, a picture has at most %u", path,
                              (long long)info.st_size, WEIR_IMAGE_MAX_FILE_BYTES);
    }
    size_t size = (size_t)info.st_size, n_read = 0;
    uint8_t *data = malloc(size + 1);
    if (data == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "%s: no memory for %zu bytes", path, size);
    }
    while (n_read < size) {
        ssize_t n = read(fd, data + n_read, size - n_read);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            int saved = errno;
            free(data);
            return weir_error_set_errno(err, saved, "%s", path);
        }
        if (n == 0) {
            break; // shrunk meanwhile: the decoder finds it truncated
        }
        n_read += (size_t)n;
    }
    *out_data = data;
    *out_size = n_read;
    return WEIR_OK;
}

weir_status weir_image_load(const char *path, struct weir_image *out, struct weir_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a FIFO must not hang the loader
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "%s", path);
    }
    uint8_t *data = NULL;
    size_t size = 0;
    weir_status status = read_open_file(fd, path, &data, &size, err);
    (void)close(fd);
    if (status != WEIR_OK) {
        return status;
    }
    status = weir_image_decode(data, size, out, err);
    free(data);
    return status == WEIR_OK ? WEIR_OK : (weir_error_prefix(err, "%s: ", path), status);
}

weir_status weir_image_encode(const struct weir_image *image, enum weir_image_format format,
                              int quality, struct weir_buf *buf, struct weir_error *err)
{
    weir_status status = WEIR_ERR_INVALID;
    switch (format) {
    case WEIR_IMAGE_FORMAT_PNM:
        status = image_pnm_encode(image, buf);
        break;
    case WEIR_IMAGE_FORMAT_PNG:
        return image_png_encode(image, buf, err);
    case WEIR_IMAGE_FORMAT_JPEG:
        if (quality < 1 || quality > 100) {
            return weir_error_set(err, WEIR_ERR_INVALID, "JPEG quality %d: expected 1 to 100",
                                  quality);
        }
        return image_jpeg_encode(image, quality, buf, err);
    case WEIR_IMAGE_FORMAT_UNKNOWN:
        break;
    }
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "picture not encoded: %s", weir_status_text(status));
    }
    return WEIR_OK;
}

weir_status weir_image_crop(const struct weir_image *image, int x, int y, int width, int height,
                            struct weir_image *out, struct weir_error *err)
{
    if (x < 0 || y < 0 || width < 1 || height < 1 || x > image->width - width ||
        y > image->height - height) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "rectangle %d x %d at (%d, %d) is outside the picture of %d x %d",
                              width, height, x, y, image->width, image->height);
    }
    struct weir_image made;
    WEIR_TRY(weir_image_init(&made, width, height, image->channels, err));
    size_t pixel = (size_t)image->channels, row = (size_t)width * pixel;
    for (int i = 0; i < height; i++) {
        size_t from = ((size_t)(y + i) * (size_t)image->width + (size_t)x) * pixel;
        memcpy(made.pixels + (size_t)i * row, image->pixels + from, row);
    }
    *out = made;
    return WEIR_OK;
}

weir_status weir_image_mirror(const struct weir_image *image, struct weir_image *out,
                              struct weir_error *err)
{
    struct weir_image made;
    WEIR_TRY(weir_image_init(&made, image->width, image->height, image->channels, err));
    size_t pixel = (size_t)image->channels, width = (size_t)image->width;
    size_t n = width * (size_t)image->height;
    for (size_t i = 0; i < n; i++) {
        size_t from = i - i % width + (width - 1 - i % width);
        memcpy(made.pixels + i * pixel, image->pixels + from * pixel, pixel);
    }
    *out = made;
    return WEIR_OK;
}

weir_status weir_image_convert(const struct weir_image *image, int channels, struct weir_image *out,
                               struct weir_error *err)
{
    struct weir_image made;
    WEIR_TRY(weir_image_init(&made, image->width, image->height, channels, err));
    size_t n = (size_t)image->width * (size_t)image->height;
    const uint8_t *from = image->pixels;
    if (channels == image->channels) {
        memcpy(made.pixels, from, n * (size_t)channels);
    } else if (channels == 1) {
        for (size_t i = 0; i < n; i++, from += 3) {
            // BT.601 in 16-bit fixed point, the weights sum to 65536.
            uint32_t sum = 19595u * from[0] + 38470u * from[1] + 7471u * from[2];
            made.pixels[i] = (uint8_t)((sum + 32768) >> 16);
        }
    } else {
        for (size_t i = 0; i < n; i++) {
            memset(made.pixels + 3 * i, from[i], 3);
        }
    }
    *out = made;
    return WEIR_OK;
}
