/* Event files against bytes that TensorBoard's own writer (tensorboard 2.21) wrote for the same events. */
#include "base/file.h"
#include "base/test_main.h"
#include "train/tensorboard.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char folder[WEIR_DIR_TEMPORARY_BYTES];
static struct weir_arena arena;

/* Step 42: loss 0.5, accuracy 0.75. Step 43: a session begins. Times are 8 bytes behind the first of each. */
static const char recorded_values[] =
    "2b00000000000000861bc34b0900001040fc54d941102a2a1e0a0b0a046c6f7373150000003f0a0f0a08616363"
    "7572616379150000403fae738aa0";
static const char recorded_session[] =
    "0f000000000000006d532b090900006040fc54d941102b3a020801719f7367";

#define HEAD_BYTES 12
#define TIME_AT    (HEAD_BYTES + 1)

static size_t from_hex(const char *hex, unsigned char *out)
{
    size_t n = strlen(hex) / 2;
    for (size_t i = 0; i < n; i++) {
        char digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        out[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    return n;
}

/* CRC-32C by the polynomial as it is written: the other way round than the code does. */
static uint32_t reflect(uint32_t value)
{
    uint32_t out = 0;
    for (int i = 0; i < 32; i++) {
        out |= (value >> i & 1) << (31 - i);
    }
    return out;
}

static uint32_t crc_of(const unsigned char *bytes, size_t len)
{
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < len; i++) {
        for (int bit = 0; bit < 8; bit++) {
            uint32_t top = crc >> 31 ^ (bytes[i] >> bit & 1u);
            crc = crc << 1 ^ (top ? 0x1edc6f41u : 0);
        }
    }
    return ~reflect(crc);
}

static uint32_t number_at(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

static bool has_right_sums(const unsigned char *record, size_t len)
{
    uint32_t head = crc_of(record, 8), body = crc_of(record + HEAD_BYTES, len - HEAD_BYTES - 4);
    return number_at(record + 8) == (head >> 15 | head << 17) + 0xa282ead8u &&
           number_at(record + len - 4) == (body >> 15 | body << 17) + 0xa282ead8u;
}

static char *only_file(void)
{
    char *path = NULL;
    DIR *dir = opendir(folder);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (entry->d_name[0] != '.') {
            ck_assert_ptr_null(path);
            ck_assert_int_eq(strncmp(entry->d_name, "events.out.tfevents.", 20), 0);
            path = weir_arena_printf(&arena, "%s/%s", folder, entry->d_name);
        }
    }
    closedir(dir);
    ck_assert_ptr_nonnull(path);
    return path;
}

static size_t read_file(unsigned char **out)
{
    struct weir_error err;
    char *text;
    size_t len;
    ck_assert_int_eq(weir_file_read(only_file(), 1 << 20, &arena, &text, &len, &err), WEIR_OK);
    *out = (unsigned char *)text;
    return len;
}

static size_t record_len(const unsigned char *record)
{
    return number_at(record) + HEAD_BYTES + 4;
}

static void expect_record(const unsigned char *record, const char *hex)
{
    unsigned char wanted[256];
    size_t n = from_hex(hex, wanted);
    ck_assert(has_right_sums(wanted, n)); /* so the sums here are TensorBoard's */
    ck_assert_uint_eq(record_len(record), n);
    ck_assert(has_right_sums(record, n));
    ck_assert_int_eq(memcmp(record, wanted, TIME_AT), 0);
    ck_assert_int_eq(memcmp(record + TIME_AT + 8, wanted + TIME_AT + 8, n - TIME_AT - 8 - 4), 0);
}

static struct train_tick tick_of(uint64_t step)
{
    struct train_tick tick = {.step = step};
    train_tick_add(&tick, "loss", 0.5);
    train_tick_add(&tick, "accuracy", 0.75);
    return tick;
}

START_TEST(an_event_file_is_as_tensorboard_writes_it)
{
    struct train_tensorboard *board;
    struct weir_error err = {0};
    unsigned char *bytes;
    ck_assert_msg(train_tensorboard_open(folder, 42, &board, &err) == WEIR_OK, "%s", err.message);
    train_tensorboard_add(board, &(struct train_tick){0});
    const struct train_tick tick = tick_of(42);
    train_tensorboard_add(board, &tick);
    train_tensorboard_close(board);
    size_t len = read_file(&bytes), at = 0, n = 0;
    const unsigned char *records[4];
    while (at < len && n < 4) {
        records[n++] = bytes + at;
        ck_assert(has_right_sums(bytes + at, record_len(bytes + at)));
        at += record_len(bytes + at);
    }
    ck_assert_uint_eq(at, len);
    ck_assert_uint_eq(n, 4);
    ck_assert_ptr_nonnull(memmem(records[0], record_len(records[0]), "brain.Event:2", 13));
    expect_record(records[1], recorded_session);
    expect_record(records[3], recorded_values);
}

END_TEST

START_TEST(a_file_of_before_is_left_alone)
{
    struct train_tensorboard *first, *second;
    struct weir_error err = {0};
    char *deeper = weir_arena_printf(&arena, "%s/a/b", folder);
    ck_assert_int_eq(train_tensorboard_open(deeper, 0, &first, &err), WEIR_OK);
    ck_assert_int_eq(train_tensorboard_open(deeper, 0, &second, &err), WEIR_OK);
    train_tensorboard_close(first);
    train_tensorboard_close(second);
    int n = 0;
    DIR *dir = opendir(deeper);
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        n += entry->d_name[0] != '.';
    }
    closedir(dir);
    ck_assert_int_eq(n, 2);
}

END_TEST

START_TEST(a_folder_that_cannot_be_is_an_error_with_its_path)
{
    struct train_tensorboard *board;
    struct weir_error err = {0};
    char *file = weir_arena_printf(&arena, "%s/file", folder);
    ck_assert_int_eq(weir_file_write(file, "x", 1, 0600, &err), WEIR_OK);
    ck_assert_int_ne(train_tensorboard_open(file, 0, &board, &err), WEIR_OK);
    ck_assert_ptr_nonnull(strstr(err.message, file));
    train_tensorboard_add(NULL, &(struct train_tick){0});
    train_tensorboard_close(NULL);
}

END_TEST

START_TEST(the_sums_here_are_those_of_the_rfc)
{
    unsigned char zeros[32] = {0}; /* RFC 3720, appendix B.4 */
    ck_assert_uint_eq(crc_of(zeros, sizeof zeros), 0x8a9136aau);
    ck_assert_uint_eq(crc_of((const unsigned char *)"123456789", 9), 0xe3069283u);
}

END_TEST

static void set_up(void)
{
    struct weir_error err;
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(weir_dir_make_temporary("tensorboard", folder, &err), WEIR_OK);
}

static void tear_down(void)
{
    struct weir_error err;
    ck_assert_int_eq(weir_dir_remove(folder, &err), WEIR_OK);
    weir_arena_fini(&arena);
}

WEIR_TEST_MAIN_WITH("tensorboard", set_up, tear_down, an_event_file_is_as_tensorboard_writes_it,
                    a_file_of_before_is_left_alone,
                    a_folder_that_cannot_be_is_an_error_with_its_path,
                    the_sums_here_are_those_of_the_rfc)
