#include "base/picture.h"

#include "base/macros.h"
#include "base/test_main.h"

#include <string.h>

#define PNG_HEAD "\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
#define PNG_END  "\0\0\0\0IEND\xae\x42\x60\x82"

struct sample {
    const char *bytes;
    size_t len;
    const char *problem; /* a part of the answer; NULL: none */
};

#define SAMPLE(text, wanted)                                                                       \
    {                                                                                              \
        .bytes = (text), .len = sizeof(text) - 1, .problem = (wanted)                              \
    }

static const struct sample samples[] = {
    SAMPLE("", "empty"),
    SAMPLE("hello", "no JPEG"),
    SAMPLE("\xff\xd8\xff\xe0 pixels \xff\xd9", NULL),
    SAMPLE("\xff\xd8\xff\xe0 pixels \xff\xd9 and more of a camera", NULL),
    SAMPLE("\xff\xd8\xff\xe0 pixels", "cut off"),
    SAMPLE(PNG_HEAD "\0\0\0\2\0\0\0\3\10\0\0\0\0crc!" PNG_END, NULL),
    SAMPLE(PNG_HEAD "\0\0\0\2\0\0\0\3\10\0\0\0\0crc! pixels", "cut off"),
    SAMPLE(PNG_HEAD "\0\1\x86\xa0\0\1\x86\xa0\10\0\0\0\0crc!" PNG_END, "16384"),
    SAMPLE(PNG_HEAD, "cut off"),
    SAMPLE("P5\n2 3\n255\nabcdef", NULL),
    SAMPLE("P5\n2 3 # 9 9\n255\n", NULL), /* 16 bytes are enough for six pixels: the head counts */
    SAMPLE("P5\n20 30\n255\nabcdef", "cut off"),
    SAMPLE("P6\n4 4\n65535\nabcdef", "cut off"),
    SAMPLE("P5\n100000 1\n255\nabcdef", "16384"),
    SAMPLE("P2\n2 1\n255\n7 8\n", NULL),
    SAMPLE("P5", "no JPEG"),
};

START_TEST(what_is_wrong_is_seen_in_the_first_and_last_bytes)
{
    const struct sample *s = &samples[_i];
    const unsigned char *bytes = (const unsigned char *)s->bytes;
    size_t n_tail = s->len < 24 ? s->len : 24;
    const char *problem = weir_picture_problem(
        bytes, s->len < WEIR_PICTURE_HEAD_BYTES ? s->len : WEIR_PICTURE_HEAD_BYTES,
        bytes + s->len - n_tail, n_tail, s->len);
    ck_assert_msg((problem == NULL) == (s->problem == NULL) &&
                      (problem == NULL || strstr(problem, s->problem) != NULL),
                  "sample %d: %s", _i, problem != NULL ? problem : "nothing");
}

END_TEST

START_TEST(a_picture_is_meant_by_its_name_or_by_how_it_begins)
{
    static const struct {
        const char *name, *bytes;
        bool is_meant;
    } files[] = {{"a/1.JPG", "hello", true},     {"1.jpeg", "", true},
                 {"rows.csv", "a,b\n", false},   {"no", "P5 9 9 255\n", true},
                 {"jpg", "hello", false},        {"notes.txt", "P", false},
                 {"x.bin", "\xff\xd8\xff", true}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(files); i++) {
        ck_assert_msg(weir_picture_is_meant(files[i].name, (const unsigned char *)files[i].bytes,
                                            strlen(files[i].bytes)) == files[i].is_meant,
                      "%s", files[i].name);
    }
}

END_TEST

WEIR_TEST_LOOPS_MAIN("picture", {a_picture_is_meant_by_its_name_or_by_how_it_begins, 1},
                     {what_is_wrong_is_seen_in_the_first_and_last_bytes, WEIR_ARRAY_LEN(samples)})
