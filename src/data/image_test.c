/* Oracles: pixels that Pillow decoded (image_test_data.h), and
 * every strict prefix of a file, which must be refused. */
#include "data/image.h"

#include "base/file.h"
#include "base/rng.h"
#include "base/test_main.h"
#include "base/test_seed.h"
#include "data/image_test_data.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#define N_PICTURES (sizeof pictures / sizeof pictures[0])

START_TEST(every_kind_of_file_decodes_to_the_pixels_pillow_sees)
{
    for (size_t i = 0; i < N_PICTURES; i++) {
        struct weir_image image;
        struct weir_error err = {0};
        ck_assert_msg(weir_image_decode(pictures[i].file, pictures[i].size, &image, &err) ==
                          WEIR_OK,
                      "%s: %s", pictures[i].name, err.message);
        ck_assert_int_eq(image.width, pictures[i].width);
        ck_assert_int_eq(image.height, pictures[i].height);
        ck_assert_msg(image.channels == pictures[i].channels, "%s", pictures[i].name);
        // Conversion from CMYK may round by one.
        int tolerance = strcmp(pictures[i].name, "jpeg_cmyk") == 0 ? 1 : 0;
        for (int k = 0; k < image.width * image.height * image.channels; k++) {
            ck_assert_msg(abs(image.pixels[k] - pictures[i].pixels[k]) <= tolerance,
                          "%s, byte %d: %d, expected %d", pictures[i].name, k, image.pixels[k],
                          pictures[i].pixels[k]);
        }
        weir_image_fini(&image);
    }
}

END_TEST

START_TEST(every_strict_prefix_of_a_file_is_refused_with_a_sentence)
{
    for (size_t i = 0; i < N_PICTURES; i++) {
        for (size_t size = 0; size < pictures[i].size; size++) {
            uint8_t *cut = malloc(size + 1); // on the heap, so that a sanitizer sees an overrun
            memcpy(cut, pictures[i].file, size);
            struct weir_image image = {.width = 77};
            struct weir_error err = {0};
            weir_status status = weir_image_decode(cut, size, &image, &err);
            ck_assert_msg(status == WEIR_ERR_CORRUPT ||
                              (size < 8 && status == WEIR_ERR_UNSUPPORTED),
                          "%s cut to %zu: status %d", pictures[i].name, size, status);
            ck_assert_uint_gt(strlen(err.message), 8);
            ck_assert_int_eq(image.width, 77);
            free(cut);
        }
    }
}

END_TEST

START_TEST(flipped_bits_never_crash_the_decoder)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 21, 0);
    for (int trial = 0; trial < 20000; trial++) {
        size_t i = weir_rng_below(&rng, N_PICTURES);
        uint8_t *copy = malloc(pictures[i].size);
        memcpy(copy, pictures[i].file, pictures[i].size);
        for (uint64_t n = 1 + weir_rng_below(&rng, 4); n > 0; n--) {
            copy[weir_rng_below(&rng, pictures[i].size)] ^= 1u << weir_rng_below(&rng, 8);
        }
        struct weir_image image;
        if (weir_image_decode(copy, pictures[i].size, &image, NULL) == WEIR_OK) {
            weir_image_fini(&image);
        }
        free(copy);
    }
}

END_TEST

struct text_case {
    const char *file;
    size_t size;
    weir_status status;
    uint8_t pixels[8];
    int n_pixels;
};

#define TEXT(s) (s), sizeof(s) - 1

START_TEST(pnm_forms_follow_the_netpbm_manual)
{
    static const struct text_case cases[] = {
        {TEXT("P2 3 1 255\n0 128 255"), WEIR_OK, {0, 128, 255}, 3},
        {TEXT("P2\n# c\n3 # w\n1\n15\n0 7 15\n"), WEIR_OK, {0, 119, 255}, 3},
        {TEXT("P3 1 1 1 0 1 1"), WEIR_OK, {0, 255, 255}, 3},
        {TEXT("P5 3 1 255\nABC"), WEIR_OK, {'A', 'B', 'C'}, 3},
        {TEXT("P5 3 1 255\nABCtrailing"), WEIR_OK, {'A', 'B', 'C'}, 3},
        {TEXT("P5 2 1 65535\n\x80\x00\xff\xff"), WEIR_OK, {128, 255}, 2},
        {TEXT("P5 2 1 100\n\x32\x64"), WEIR_OK, {128, 255}, 2},
        {TEXT("P6 1 1 255\nRGB"), WEIR_OK, {'R', 'G', 'B'}, 3},
        {TEXT("P5 2 1 100\n\x32\x65"), WEIR_ERR_CORRUPT, {0}, 0}, // above the maximum
        {TEXT("P2 1 1 10 11"), WEIR_ERR_CORRUPT, {0}, 0},
        {TEXT("P2 2 1 10 1 x"), WEIR_ERR_CORRUPT, {0}, 0},
        {TEXT("P5 3 1 255\nAB"), WEIR_ERR_CORRUPT, {0}, 0},
        {TEXT("P5 0 1 255\n"), WEIR_ERR_CORRUPT, {0}, 0},
        {TEXT("P5 1 1 0\nA"), WEIR_ERR_CORRUPT, {0}, 0},
        {TEXT("P5 1 1 65536\nAA"), WEIR_ERR_CORRUPT, {0}, 0},
        {TEXT("P5 -1 1 255\nA"), WEIR_ERR_CORRUPT, {0}, 0},
        {TEXT("P5 99999999999999999999 1 255\nA"), WEIR_ERR_CORRUPT, {0}, 0},
        {TEXT("P5 16385 1 255\nA"), WEIR_ERR_LIMIT, {0}, 0},
        {TEXT("P6 16384 16384 255\nA"), WEIR_ERR_LIMIT, {0}, 0},
        {TEXT("P6 8192 8192 255\nA"), WEIR_ERR_CORRUPT, {0}, 0},
        {TEXT("P4 1 1\nA"), WEIR_ERR_UNSUPPORTED, {0}, 0},
        {TEXT("P5"), WEIR_ERR_UNSUPPORTED, {0}, 0},
        {TEXT("GIF89a"), WEIR_ERR_UNSUPPORTED, {0}, 0},
        {TEXT(""), WEIR_ERR_UNSUPPORTED, {0}, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_image image;
        struct weir_error err = {0};
        weir_status status = weir_image_decode(cases[i].file, cases[i].size, &image, &err);
        ck_assert_msg(status == cases[i].status, "case %zu: %d %s", i, status, err.message);
        if (status == WEIR_OK) {
            ck_assert_int_eq(image.width * image.height * image.channels, cases[i].n_pixels);
            ck_assert_mem_eq(image.pixels, cases[i].pixels, (size_t)cases[i].n_pixels);
            weir_image_fini(&image);
        }
    }
}

END_TEST

START_TEST(a_header_that_promises_a_giant_is_over_the_limit)
{
    // IHDR of the first PNG with a width of 2^30 (the checksum does not fit: any refusal is right).
    uint8_t copy[200];
    memcpy(copy, png_grey_file, sizeof png_grey_file);
    memcpy(copy + 16, "\x40\0\0\0", 4);
    struct weir_image image;
    ck_assert_int_ne(weir_image_decode(copy, sizeof png_grey_file, &image, NULL), WEIR_OK);
    // A JPEG frame header carries no checksum: 65500 x 65500.
    uint8_t jpeg[2000];
    memcpy(jpeg, jpeg_grey_file, sizeof jpeg_grey_file);
    for (size_t i = 0; i + 9 < sizeof jpeg_grey_file; i++) {
        if (jpeg[i] == 0xff && jpeg[i + 1] == 0xc0) {
            memcpy(jpeg + i + 5, "\xff\xdc\xff\xdc", 4);
        }
    }
    ck_assert_int_eq(weir_image_decode(jpeg, sizeof jpeg_grey_file, &image, NULL), WEIR_ERR_LIMIT);
}

END_TEST

START_TEST(a_frame_may_cost_less_than_a_file)
{
    static const char head[] = "P5 16384 1025 255\n"; /* one line over 16 Mi pixels */
    size_t size = sizeof head - 1 + (size_t)16384 * 1025;
    uint8_t *file = calloc(1, size);
    struct weir_image image;
    struct weir_error err;
    memcpy(file, head, sizeof head - 1);
    ck_assert_int_eq(weir_image_decode(file, size, &image, &err), WEIR_OK);
    weir_image_fini(&image);
    ck_assert_int_eq(weir_image_decode_within(file, size, &weir_image_limits_frame, &image, &err),
                     WEIR_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.message, "16384 x 1025"));
    memcpy(file, "P5 16384 1024", 13);
    ck_assert_int_eq(weir_image_decode_within(file, size, &weir_image_limits_frame, &image, &err),
                     WEIR_OK);
    weir_image_fini(&image);
    free(file);
    const struct weir_image_limits no_scan = {WEIR_IMAGE_MAX_PIXELS, 0};
    ck_assert_int_eq(
        weir_image_decode_within(jpeg_grey_file, sizeof jpeg_grey_file, &no_scan, &image, &err),
        WEIR_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.message, "scans"));
}

END_TEST

static void put_chunk(struct weir_buf *file, const char *type, const void *data, size_t len)
{
    uint8_t head[8] = {(uint8_t)(len >> 24), (uint8_t)(len >> 16), (uint8_t)(len >> 8),
                       (uint8_t)len};
    memcpy(head + 4, type, 4);
    uint32_t sum = (uint32_t)crc32(crc32(crc32(0, NULL, 0), head + 4, 4), data, (uInt)len);
    const uint8_t tail[4] = {(uint8_t)(sum >> 24), (uint8_t)(sum >> 16), (uint8_t)(sum >> 8),
                             (uint8_t)sum};
    ck_assert_int_eq(weir_buf_append(file, head, sizeof head), WEIR_OK);
    ck_assert_int_eq(weir_buf_append(file, data, len), WEIR_OK);
    ck_assert_int_eq(weir_buf_append(file, tail, sizeof tail), WEIR_OK);
}

/* Zeros, packed; the caller frees them. */
static uint8_t *pack_zeros(size_t n, size_t *out_len)
{
    uLongf len = compressBound(n);
    uint8_t *zeros = calloc(1, n), *packed = malloc(len);
    ck_assert_int_eq(compress2(packed, &len, zeros, n, 1), Z_OK);
    free(zeros);
    *out_len = len;
    return packed;
}

/* A grey picture of 28 x 28 with packed data for its rows, in chunks of `each` bytes. */
static void make_png(struct weir_buf *file, const uint8_t *packed, size_t len, bool is_interlaced,
                     size_t each)
{
    const uint8_t head[13] = {0, 0, 0, 28, 0, 0, 0, 28, 8, 0, 0, 0, is_interlaced};
    ck_assert_int_eq(weir_buf_append(file, "\x89PNG\r\n\x1a\n", 8), WEIR_OK);
    put_chunk(file, "IHDR", head, sizeof head);
    for (size_t at = 0; at < len; at += each) {
        put_chunk(file, "IDAT", packed + at, WEIR_MIN(each, len - at));
    }
    put_chunk(file, "IEND", "", 0);
}

static double processor_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

/* The work is what the pixels take, whatever lies behind them or beside them. The bound is far above
 * that, and a tenth of what unpacking all would take. */
START_TEST(a_small_picture_is_little_work_whatever_lies_in_its_file)
{
    static const size_t each[] = {SIZE_MAX / 2, 1000};
    struct weir_image image;
    struct weir_error err;
    size_t len;
    uint8_t *packed = pack_zeros((size_t)1 << 28, &len);
    for (int i = 0; i < 4; i++) {
        struct weir_buf file;
        weir_buf_init(&file, 1 << 22);
        make_png(&file, packed, len, i % 2 == 1, each[i / 2]);
        double begin = processor_seconds();
        ck_assert_int_eq(weir_image_decode(file.data, file.len, &image, &err), WEIR_ERR_CORRUPT);
        ck_assert_ptr_nonnull(strstr(err.message, "more data than the picture has pixels"));
        ck_assert(processor_seconds() - begin < 0.1);
        weir_buf_fini(&file);
    }
    free(packed);
}

END_TEST

START_TEST(a_little_too_much_data_does_no_harm)
{
    struct weir_buf file;
    struct weir_image image;
    weir_buf_init(&file, 1 << 20);
    size_t len;
    uint8_t *packed = pack_zeros(29 * 28 + 100000, &len);
    make_png(&file, packed, len, false, SIZE_MAX / 2);
    free(packed);
    ck_assert_int_eq(weir_image_decode(file.data, file.len, &image, NULL), WEIR_OK);
    ck_assert_int_eq(image.width, 28);
    weir_image_fini(&image);
    weir_buf_fini(&file);
}

END_TEST

/* Texts and a profile that are unpacked to megabytes each, before and behind the pixels. */
START_TEST(what_says_nothing_of_the_pixels_is_not_unpacked)
{
    static const char *const types[] = {"zTXt", "iCCP", "iTXt"};
    struct weir_image image;
    struct weir_buf file;
    size_t len;
    uint8_t *packed = pack_zeros((size_t)7 << 20, &len), *chunk = malloc(len + 16);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(types); i++) {
        const size_t n_head = i == 2 ? 7 : 3; /* "k", then what kind of packing, languages */
        memcpy(chunk, i == 2 ? "k\0\1\0\0\0" : "k\0", n_head);
        memcpy(chunk + n_head - 1, packed, len);
        weir_buf_init(&file, 1 << 24);
        ck_assert_int_eq(weir_buf_append(&file, png_grey_file, 33), WEIR_OK); /* to IHDR's end */
        for (int k = 0; k < 300; k++) {
            put_chunk(&file, types[i], chunk, n_head - 1 + len);
        }
        ck_assert_int_eq(weir_buf_append(&file, png_grey_file + 33, sizeof png_grey_file - 33),
                         WEIR_OK);
        double begin = processor_seconds();
        ck_assert_int_eq(weir_image_decode(file.data, file.len, &image, NULL), WEIR_OK);
        ck_assert(processor_seconds() - begin < 0.5);
        weir_image_fini(&image);
        weir_buf_fini(&file);
    }
    free(packed);
    free(chunk);
}

END_TEST

static struct weir_image random_image(int width, int height, int channels, uint64_t seed)
{
    struct weir_image image;
    ck_assert_int_eq(weir_image_init(&image, width, height, channels, NULL), WEIR_OK);
    struct weir_rng rng;
    weir_rng_init(&rng, seed, 0);
    for (int i = 0; i < width * height * channels; i++) {
        image.pixels[i] = (uint8_t)weir_rng_u32(&rng);
    }
    return image;
}

START_TEST(lossless_formats_bring_back_every_pixel)
{
    static const enum weir_image_format formats[] = {WEIR_IMAGE_FORMAT_PNM, WEIR_IMAGE_FORMAT_PNG};

    for (int i = 0; i < 8; i++) {
        struct weir_image image = random_image(1 + 13 * i, 1 + 7 * i, i % 2 == 0 ? 1 : 3, 31), back;
        struct weir_buf buf;
        weir_buf_init(&buf, 1 << 20);
        enum weir_image_format format = formats[i / 2 % 2];
        ck_assert_int_eq(weir_image_encode(&image, format, 0, &buf, NULL), WEIR_OK);
        ck_assert_int_eq(weir_image_sniff(buf.data, buf.len), format);
        ck_assert_int_eq(weir_image_decode(buf.data, buf.len, &back, NULL), WEIR_OK);
        ck_assert_int_eq(back.channels, image.channels);
        ck_assert_mem_eq(back.pixels, image.pixels,
                         (size_t)image.width * (size_t)image.height * (size_t)image.channels);
        weir_buf_fini(&buf);
        weir_image_fini(&image);
        weir_image_fini(&back);
    }
}

END_TEST

/* ---- turned ---------------------------------------------------------------------------------------- */

static void add16(struct weir_buf *buf, unsigned value, bool is_big)
{
    const uint8_t bytes[] = {(uint8_t)(value >> 8), (uint8_t)value};
    const uint8_t turned[] = {bytes[1], bytes[0]};
    ck_assert_int_eq(weir_buf_append(buf, is_big ? bytes : turned, 2), WEIR_OK);
}

static void add32(struct weir_buf *buf, uint32_t value, bool is_big)
{
    add16(buf, is_big ? value >> 16 : value & 0xffff, is_big);
    add16(buf, is_big ? value & 0xffff : value >> 16, is_big);
}

/* A TIFF with some entries, of which one is the orientation. */
static void add_tiff(struct weir_buf *buf, struct weir_rng *rng, unsigned orientation)
{
    bool is_big = weir_rng_below(rng, 2) == 0;
    unsigned n = 1 + (unsigned)weir_rng_below(rng, 4), at = (unsigned)weir_rng_below(rng, n);
    uint32_t gap = (uint32_t)weir_rng_below(rng, 9);
    (void)weir_buf_append(buf, is_big ? "MM" : "II", 2);
    add16(buf, 42, is_big);
    add32(buf, 8 + gap, is_big);
    (void)weir_buf_append(buf, "\0\0\0\0\0\0\0\0\0", gap);
    add16(buf, n, is_big);
    for (unsigned i = 0; i < n; i++) {
        bool is_long = weir_rng_below(rng, 4) == 0;
        add16(buf, i == at ? 0x0112 : 0x0100 + i, is_big);
        add16(buf, is_long ? 4 : 3, is_big);
        add32(buf, 1, is_big);
        if (is_long) {
            add32(buf, i == at ? orientation : 6, is_big);
        } else {
            add16(buf, i == at ? orientation : 6, is_big);
            add16(buf, 0, is_big);
        }
    }
    add32(buf, 0, is_big);
}

/* The file with that EXIF in its place: behind the first bytes of a JPEG, or IHDR of a PNG. */
static void insert_exif(const struct weir_buf *file, enum weir_image_format format,
                        const struct weir_buf *tiff, struct weir_buf *out)
{
    size_t at = format == WEIR_IMAGE_FORMAT_JPEG ? 2 : 33;
    (void)weir_buf_append(out, file->data, at);
    if (format == WEIR_IMAGE_FORMAT_JPEG) {
        (void)weir_buf_append(out, "\xff\xe1", 2);
        add16(out, (unsigned)tiff->len + 8, true);
        (void)weir_buf_append(out, "Exif\0\0", 6);
        (void)weir_buf_append(out, tiff->data, tiff->len);
    } else {
        add32(out, (uint32_t)tiff->len, true);
        size_t from = out->len;
        (void)weir_buf_append(out, "eXIf", 4);
        (void)weir_buf_append(out, tiff->data, tiff->len);
        add32(out, (uint32_t)crc32(0, (const uint8_t *)out->data + from, (uInt)(out->len - from)),
              true);
    }
    ck_assert_int_eq(weir_buf_append(out, file->data + at, file->len - at), WEIR_OK);
}

/* Where the standard puts the first row and the first column of what is stored: "T" top, "B", "L", "R". */
static const char *const sides[] = {"TL", "TR", "BR", "BL", "LT", "RT", "RB", "LB"};

static void expect_turned(const struct weir_image *stored, const struct weir_image *shown,
                          unsigned orientation)
{
    for (int row = 0; row < stored->height; row++) {
        for (int column = 0; column < stored->width; column++) {
            int x = -1, y = -1;
            for (int i = 0; i < 2; i++) { /* the row's side, then the column's */
                int from_side = i == 0 ? row : column;
                switch (sides[orientation - 1][i]) {
                case 'T':
                    y = from_side;
                    break;
                case 'B':
                    y = shown->height - 1 - from_side;
                    break;
                case 'L':
                    x = from_side;
                    break;
                default:
                    x = shown->width - 1 - from_side;
                }
            }
            ck_assert(x >= 0 && y >= 0 && x < shown->width && y < shown->height);
            size_t n = (size_t)stored->channels;
            ck_assert_mem_eq(
                shown->pixels + ((size_t)y * (size_t)shown->width + (size_t)x) * n,
                stored->pixels + ((size_t)row * (size_t)stored->width + (size_t)column) * n, n);
        }
    }
}

static struct weir_image decode(const struct weir_buf *file)
{
    struct weir_image image;
    struct weir_error err = {0};
    ck_assert_msg(weir_image_decode(file->data, file->len, &image, &err) == WEIR_OK, "%s",
                  err.message);
    return image;
}

START_TEST(a_picture_comes_as_its_camera_was_held_and_damaged_exif_does_no_harm)
{
    struct weir_rng rng;
    (void)test_seed(&rng);
    for (unsigned i = 0; i < 160; i++) {
        unsigned orientation = 1 + i % 8;
        enum weir_image_format format =
            i / 8 % 2 == 0 ? WEIR_IMAGE_FORMAT_JPEG : WEIR_IMAGE_FORMAT_PNG;
        struct weir_image picture;
        struct weir_buf file, tiff, with;
        ck_assert_int_eq(weir_image_init(&picture, 1 + (int)weir_rng_below(&rng, 20),
                                         1 + (int)weir_rng_below(&rng, 20),
                                         weir_rng_below(&rng, 2) == 0 ? 1 : 3, NULL),
                         WEIR_OK);
        for (int k = 0; k < picture.width * picture.height * picture.channels; k++) {
            picture.pixels[k] = (uint8_t)weir_rng_below(&rng, 256);
        }
        weir_buf_init(&file, 1 << 20);
        weir_buf_init(&tiff, 1 << 16);
        weir_buf_init(&with, 1 << 20);
        ck_assert_int_eq(weir_image_encode(&picture, format, 90, &file, NULL), WEIR_OK);
        add_tiff(&tiff, &rng, orientation);
        insert_exif(&file, format, &tiff, &with);
        struct weir_image stored = decode(&file), shown = decode(&with);
        ck_assert_int_eq(shown.width, orientation > 4 ? stored.height : stored.width);
        ck_assert_int_eq(shown.height, orientation > 4 ? stored.width : stored.height);
        expect_turned(&stored, &shown, orientation);
        weir_image_fini(&shown);
        for (int j = 0; j < 20; j++) { /* cut, and with other bytes */
            struct weir_buf bad;
            tiff.len = weir_rng_below(&rng, 2) == 0 ? (size_t)weir_rng_below(&rng, tiff.len + 1)
                                                    : tiff.len;
            for (size_t k = weir_rng_below(&rng, 4); k > 0 && tiff.len > 0; k--) {
                tiff.data[weir_rng_below(&rng, tiff.len)] = (char)weir_rng_below(&rng, 256);
            }
            weir_buf_init(&bad, 1 << 20);
            insert_exif(&file, format, &tiff, &bad);
            shown = decode(&bad);
            ck_assert_int_eq(shown.width * shown.height, stored.width * stored.height);
            weir_image_fini(&shown);
            weir_buf_fini(&bad);
        }
        weir_image_fini(&stored);
        weir_image_fini(&picture);
        weir_buf_fini(&file);
        weir_buf_fini(&tiff);
        weir_buf_fini(&with);
    }
}

END_TEST

START_TEST(an_encoder_says_when_its_output_does_not_fit)
{
    static const enum weir_image_format formats[] = {WEIR_IMAGE_FORMAT_PNM, WEIR_IMAGE_FORMAT_PNG,
                                                     WEIR_IMAGE_FORMAT_JPEG};
    struct weir_image image = random_image(50, 50, 3, 32);
    for (int i = 0; i < 3; i++) {
        struct weir_buf buf;
        weir_buf_init(&buf, 300);
        struct weir_error err = {0};
        ck_assert_int_eq(weir_image_encode(&image, formats[i], 90, &buf, &err), WEIR_ERR_LIMIT);
        ck_assert_uint_gt(strlen(err.message), 10);
        weir_buf_fini(&buf);
    }
    struct weir_buf buf;
    weir_buf_init(&buf, 1 << 20);
    ck_assert_int_eq(weir_image_encode(&image, WEIR_IMAGE_FORMAT_JPEG, 0, &buf, NULL),
                     WEIR_ERR_INVALID);
    ck_assert_int_eq(weir_image_encode(&image, WEIR_IMAGE_FORMAT_UNKNOWN, 0, &buf, NULL),
                     WEIR_ERR_INVALID);
    weir_buf_fini(&buf);
    weir_image_fini(&image);
}

END_TEST

START_TEST(crop_takes_exactly_the_rectangle_and_nothing_outside)
{
    struct weir_image image = random_image(11, 8, 3, 33), part;
    ck_assert_int_eq(weir_image_crop(&image, 4, 2, 7, 6, &part, NULL), WEIR_OK);
    for (int y = 0; y < 6; y++) {
        for (int x = 0; x < 7 * 3; x++) {
            ck_assert_int_eq(part.pixels[y * 21 + x], image.pixels[(y + 2) * 33 + 12 + x]);
        }
    }
    weir_image_fini(&part);
    static const int bad[][4] = {{-1, 0, 1, 1}, {0, 0, 12, 1}, {5, 0, 7, 1},
                                 {0, 8, 1, 1},  {0, 0, 0, 1},  {0, 0, 1, INT32_MAX}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_eq(
            weir_image_crop(&image, bad[i][0], bad[i][1], bad[i][2], bad[i][3], &part, NULL),
            WEIR_ERR_INVALID);
    }
    weir_image_fini(&image);
}

END_TEST

START_TEST(luma_is_bt601)
{
    struct weir_image image, grey, rgb;
    ck_assert_int_eq(weir_image_init(&image, 256, 64, 3, NULL), WEIR_OK);
    for (int i = 0; i < 256 * 64 * 3; i++) {
        image.pixels[i] = (uint8_t)(i * 7919 >> 3);
    }
    ck_assert_int_eq(weir_image_convert(&image, 1, &grey, NULL), WEIR_OK);
    for (int i = 0; i < 256 * 64; i++) {
        const uint8_t *p = image.pixels + 3 * i;
        double exact = 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2];
        ck_assert_double_eq_tol(grey.pixels[i], exact, 0.51);
    }
    ck_assert_int_eq(weir_image_convert(&grey, 3, &rgb, NULL), WEIR_OK);
    ck_assert_int_eq(rgb.pixels[3 * 77 + 1], grey.pixels[77]);
    weir_image_fini(&rgb);
    weir_image_fini(&grey);
    weir_image_fini(&image);
}

END_TEST

START_TEST(errors_of_a_file_name_the_file)
{
    char path[] = "/tmp/weir-image-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(weir_fd_write_all(fd, png_rgb_file, sizeof png_rgb_file - 20, NULL), WEIR_OK);
    (void)close(fd);
    struct weir_image image;
    struct weir_error err = {0};
    ck_assert_int_eq(weir_image_load(path, &image, &err), WEIR_ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(err.message, path));
    (void)unlink(path);
    ck_assert_int_eq(weir_image_load(path, &image, &err), WEIR_ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(err.message, path));
    ck_assert_int_eq(weir_image_load("/tmp", &image, &err), WEIR_ERR_INVALID);
}

END_TEST

WEIR_TEST_MAIN("image", a_small_picture_is_little_work_whatever_lies_in_its_file,
               a_little_too_much_data_does_no_harm, what_says_nothing_of_the_pixels_is_not_unpacked,
               a_frame_may_cost_less_than_a_file,
               every_kind_of_file_decodes_to_the_pixels_pillow_sees,
               every_strict_prefix_of_a_file_is_refused_with_a_sentence,
               flipped_bits_never_crash_the_decoder, pnm_forms_follow_the_netpbm_manual,
               a_header_that_promises_a_giant_is_over_the_limit,
               lossless_formats_bring_back_every_pixel,
               a_picture_comes_as_its_camera_was_held_and_damaged_exif_does_no_harm,
               an_encoder_says_when_its_output_does_not_fit,
               crop_takes_exactly_the_rectangle_and_nothing_outside, luma_is_bt601,
               errors_of_a_file_name_the_file)
