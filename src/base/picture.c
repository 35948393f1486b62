#include "base/picture.h"

#include "base/macros.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#define SIDE_MAX   16384u /* as of the decoder: data/image.h */
#define PIXELS_MAX ((uint64_t)64 << 20)

static const char is_cut_off[] = "is cut off";
static const char is_too_large[] = "is larger than 16384 pixels a side or 64 Mi pixels";

static bool is_size_allowed(uint64_t width, uint64_t height)
{
    return width <= SIDE_MAX && height <= SIDE_MAX && width * height <= PIXELS_MAX;
}

static uint32_t big_endian(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static const char *png_problem(const unsigned char *head, size_t head_len,
                               const unsigned char *tail, size_t tail_len)
{
    static const unsigned char end[] = {'I', 'E', 'N', 'D', 0xae, 0x42, 0x60, 0x82};
    if (head_len < 33) {
        return is_cut_off;
    }
    if (!is_size_allowed(big_endian(head + 16), big_endian(head + 20))) {
        return is_too_large;
    }
    return memmem(tail, tail_len, end, sizeof end) != NULL ? NULL : is_cut_off;
}

/* The end marker, behind which some cameras write more. */
static const char *jpeg_problem(const unsigned char *tail, size_t tail_len)
{
    return memmem(tail, tail_len, "\xff\xd9", 2) != NULL ? NULL : is_cut_off;
}

/* The next number of a PNM head, 0 if there is none; comments run to the end of their line. */
static uint64_t next_number(const unsigned char **at, const unsigned char *end)
{
    uint64_t number = 0;
    while (*at < end && (**at < '0' || **at > '9')) {
        bool is_comment = **at == '#';
        (*at)++;
        while (is_comment && *at < end && **at != '\n') {
            (*at)++;
        }
    }
    for (; *at < end && **at >= '0' && **at <= '9' && number <= UINT32_MAX; (*at)++) {
        number = number * 10 + (uint64_t)(**at - '0');
    }
    return number;
}

static const char *pnm_problem(const unsigned char *head, size_t head_len, uint64_t size)
{
    const unsigned char *at = head + 2, *end = head + head_len;
    uint64_t width = next_number(&at, end), height = next_number(&at, end);
    uint64_t max_value = next_number(&at, end);
    if (at == end) { /* a long comment, or the end of a file that is only a head */
        return size <= head_len ? is_cut_off : NULL;
    }
    if (!is_size_allowed(width, height)) {
        return is_too_large;
    }
    uint64_t channels = head[1] == '6' ? 3 : 1, bytes = max_value > 255 ? 2 : 1;
    bool is_binary = head[1] == '5' || head[1] == '6';
    return is_binary && size < width * height * channels * bytes ? is_cut_off : NULL;
}

static bool is_png(const unsigned char *head, size_t head_len)
{
    return head_len >= 8 && memcmp(head, "\x89PNG\r\n\x1a\n", 8) == 0;
}

static bool is_jpeg(const unsigned char *head, size_t head_len)
{
    return head_len >= 3 && memcmp(head, "\xff\xd8\xff", 3) == 0;
}

static bool is_pnm(const unsigned char *head, size_t head_len)
{
    return head_len >= 3 && head[0] == 'P' && head[1] != '\0' && strchr("2356", head[1]) != NULL;
}

bool weir_picture_is_meant(const char *name, const unsigned char *head, size_t head_len)
{
    static const char *const endings[] = {".jpg", ".jpeg", ".png", ".pgm", ".ppm", ".pnm"};
    const char *ending = strrchr(name, '.');
    for (size_t i = 0; ending != NULL && i < WEIR_ARRAY_LEN(endings); i++) {
        if (strcasecmp(ending, endings[i]) == 0) {
            return true;
        }
    }
    return is_png(head, head_len) || is_jpeg(head, head_len) || is_pnm(head, head_len);
}

const char *weir_picture_problem(const unsigned char *head, size_t head_len,
                                 const unsigned char *tail, size_t tail_len, uint64_t size)
{
    if (size == 0 || head_len == 0) {
        return "is empty";
    }
    if (is_png(head, head_len)) {
        return png_problem(head, head_len, tail, tail_len);
    }
    if (is_jpeg(head, head_len)) {
        return jpeg_problem(tail, tail_len);
    }
    if (is_pnm(head, head_len)) {
        return pnm_problem(head, head_len, size);
    }
    return "is no " WEIR_PICTURE_KINDS " picture";
}
