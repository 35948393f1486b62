/* Archives: what is written is read again, names of any length, and hostile ones are refused whole. */
#include "capture/tar.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[WEIR_DIR_TEMPORARY_BYTES];
static struct weir_arena arena;
static struct weir_error err;

static void set_up(void)
{
    ck_assert_int_eq(weir_dir_make_temporary("tar", dir, &err), WEIR_OK);
    weir_arena_init(&arena, 0);
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
    ck_assert_int_eq(weir_dir_remove(dir, &err), WEIR_OK);
}

#define MUST(call) ck_assert_msg((call) == WEIR_OK, "%s", err.message)

static char *path_of(const char *name)
{
    return weir_arena_printf(&arena, "%s/%s", dir, name);
}

static void put(struct tar_writer *writer, const char *name, const char *text)
{
    struct tar_made made;
    char sha256[WEIR_SHA256_TEXT_BYTES];
    MUST(tar_begin(writer, name, &err));
    MUST(tar_write(writer, text, strlen(text), &err));
    MUST(tar_end(writer, &made, &err));
    weir_sha256(text, strlen(text), sha256);
    ck_assert_str_eq(made.sha256, sha256);
    ck_assert_uint_eq(made.bytes, strlen(text));
}

/* List a file's bytes. */
static weir_status list(const void *bytes, size_t len, struct tar_member **out, size_t *out_n)
{
    char *path = path_of("listed");
    MUST(weir_file_write(path, bytes, len, 0600, &err));
    int fd = open(path, O_RDONLY);
    ck_assert_int_ge(fd, 0);
    weir_status status = tar_list(fd, len, &arena, out, out_n, &err);
    (void)close(fd);
    return status;
}

static char *long_name(size_t len)
{
    char *name = weir_arena_alloc(&arena, len + 1);
    memset(name, 'n', len);
    return name;
}

START_TEST(what_is_written_is_read_again)
{
    struct tar_writer writer;
    struct tar_member *members;
    size_t n, len;
    char *bytes;
    const char *const names[] = {"a", "folder/b.csv", long_name(100),
                                 weir_arena_printf(&arena, "%s/%s", long_name(150), long_name(90)),
                                 weir_arena_printf(&arena, "f/%s", long_name(300))};
    MUST(tar_create(&writer, path_of("half"), 1 << 20, 1700000000000, &err));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(names); i++) {
        put(&writer, names[i], names[i]);
    }
    ck_assert(!weir_path_exists(path_of("whole")));
    MUST(tar_finish(&writer, path_of("whole"), &err));
    ck_assert(!weir_path_exists(path_of("half")));
    tar_abandon(&writer);
    MUST(weir_file_read(path_of("whole"), 1 << 20, &arena, &bytes, &len, &err));
    ck_assert_uint_eq(len % TAR_BLOCK_BYTES, 0);
    MUST(list(bytes, len, &members, &n));
    ck_assert_uint_eq(n, WEIR_ARRAY_LEN(names));
    for (size_t i = 0; i < n; i++) {
        ck_assert_str_eq(members[i].name, names[i]);
        ck_assert_uint_eq(members[i].bytes, strlen(names[i]));
        ck_assert_int_eq(memcmp(bytes + members[i].offset, names[i], strlen(names[i])), 0);
    }
}

END_TEST

START_TEST(what_does_not_fit_leaves_no_file)
{
    struct tar_writer writer;
    char block[4096] = {0};
    MUST(tar_create(&writer, path_of("half"), 4096, 0, &err));
    MUST(tar_begin(&writer, "a", &err));
    ck_assert_int_eq(tar_write(&writer, block, sizeof block, &err), WEIR_ERR_LIMIT);
    tar_abandon(&writer);
    ck_assert(!weir_path_exists(path_of("half")));
    ck_assert_int_eq(tar_create(&writer, path_of("none/half"), 4096, 0, &err), WEIR_ERR_NOT_FOUND);
    tar_abandon(&writer);
}

END_TEST

START_TEST(names_that_lead_elsewhere_are_none)
{
    static const char *const bad[] = {"",     "/etc/passwd", "../x", "a/../../x", "a//b",
                                      "a/",   "a/./b",       "..",   "a\nb",      "a b",
                                      "a\\b", "~/x",         "c:/x", "\xc3\xa9",  "a/.././b"};
    static const char *const good[] = {"a", "a/b.csv", "...", "a..b/c", "-x", "models/0f"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        ck_assert_msg(!tar_name_is_valid(bad[i]), "%s", bad[i]);
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(good); i++) {
        ck_assert_msg(tar_name_is_valid(good[i]), "%s", good[i]);
    }
    ck_assert(!tar_name_is_valid(long_name(TAR_NAME_MAX_BYTES + 1)));
}

END_TEST

/* A header by hand, at `bytes`. */
static void head(char *bytes, const char *name, char type, const char *size)
{
    unsigned sum = 0;
    memset(bytes, 0, TAR_BLOCK_BYTES);
    memcpy(bytes, name, strlen(name));
    memcpy(bytes + 100, "0000644", 8);
    memcpy(bytes + 124, size, strlen(size));
    bytes[156] = type;
    memcpy(bytes + 257,
           "ustar\0"
           "00",
           8);
    memset(bytes + 148, ' ', 8);
    for (size_t i = 0; i < TAR_BLOCK_BYTES; i++) {
        sum += (unsigned char)bytes[i];
    }
    (void)snprintf(bytes + 148, 8, "%06o", sum);
}

START_TEST(hostile_archives_are_refused)
{
    static const struct {
        const char *name, *size;
        char type;
    } bad[] = {
        {"../../etc/passwd", "00000000000", '0'},
        {"/etc/passwd", "00000000000", '0'},
        {"link", "00000000000", '2'},
        {"hard", "00000000000", '1'},
        {"device", "00000000000", '3'},
        {"fifo", "00000000000", '6'},
        {"sparse", "00000000000", 'S'},
        {"gnu-long", "00000000000", 'L'},
        {"huge", "77777777777", '0'},
        {"binary", "\x80\x7f\xff\xff", '0'},
        {"negative", "-1", '0'},
        {"none", "", '0'},
        {"beyond", "00000002001", '0'},
        {"pax-huge", "00000177777", 'x'},
        {"folder", "00000000010", '5'},
    };

    static char bytes[4 * TAR_BLOCK_BYTES];
    struct tar_member *members;
    size_t n;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        memset(bytes, 0, sizeof bytes);
        head(bytes, bad[i].name, bad[i].type, bad[i].size);
        ck_assert_msg(list(bytes, sizeof bytes, &members, &n) == WEIR_ERR_INVALID, "%s",
                      bad[i].name);
    }
    memset(bytes, 0, sizeof bytes);
    head(bytes, "good", '0', "00000000000");
    head(bytes + TAR_BLOCK_BYTES, "./good", '0', "00000000000");
    ck_assert_int_eq(list(bytes, sizeof bytes, &members, &n), WEIR_ERR_INVALID); /* twice */
    memset(bytes + TAR_BLOCK_BYTES, 0, TAR_BLOCK_BYTES);
    MUST(list(bytes, sizeof bytes, &members, &n));
    ck_assert_int_eq(list(bytes, TAR_BLOCK_BYTES, &members, &n), WEIR_ERR_INVALID); /* cut off */
    ck_assert_int_eq(list(bytes, 0, &members, &n), WEIR_ERR_INVALID);
    bytes[0] = 'G'; /* the sum is another's */
    ck_assert_int_eq(list(bytes, sizeof bytes, &members, &n), WEIR_ERR_INVALID);
}

END_TEST

START_TEST(a_pax_header_gives_a_name_and_a_size)
{
    static const struct {
        const char *record;
        weir_status status;
    } records[] = {
        {"15 path=f/long\n", WEIR_OK},
        {"17 path=../hosts\n", WEIR_ERR_INVALID},
        {"12 size=100\n", WEIR_OK},
        {"13 size=9999\n", WEIR_ERR_INVALID},
        {"99 path=f/long\n", WEIR_ERR_INVALID},
        {"0 path=f/long\n", WEIR_ERR_INVALID},
        {"path=f\n", WEIR_ERR_INVALID},
        {"3 p\n", WEIR_ERR_INVALID},
        {"15 path=f/longX", WEIR_ERR_INVALID},
        {"17 comment=hello\n", WEIR_OK},
        {"-5 path=f/long\n", WEIR_ERR_INVALID},
    };

    static char bytes[6 * TAR_BLOCK_BYTES];
    struct tar_member *members;
    size_t n;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(records); i++) {
        char size[24];
        memset(bytes, 0, sizeof bytes);
        (void)snprintf(size, sizeof size, "%011zo", strlen(records[i].record));
        head(bytes, "pax", 'x', size);
        memcpy(bytes + TAR_BLOCK_BYTES, records[i].record, strlen(records[i].record));
        head(bytes + (size_t)2 * TAR_BLOCK_BYTES, "short", '0', "00000000000");
        weir_status status = list(bytes, sizeof bytes, &members, &n);
        ck_assert_msg(status == records[i].status, "%s: %s", records[i].record, err.message);
        if (status == WEIR_OK) {
            ck_assert_str_eq(members[0].name, i == 0 ? "f/long" : "short");
            ck_assert_uint_eq(members[0].bytes, strstr(records[i].record, "size") ? 100 : 0);
        }
    }
}

END_TEST

/* Whatever a byte becomes, each member that is listed lies in the file and has a good name. */
START_TEST(a_changed_byte_never_leads_out_of_the_file)
{
    struct tar_writer writer;
    struct weir_rng rng;
    char *bytes;
    size_t len;
    uint64_t seed = 20261125;
    printf("seed %llu\n", (unsigned long long)seed);
    weir_rng_init(&rng, seed, 0);
    MUST(tar_create(&writer, path_of("half"), 1 << 20, 0, &err));
    put(&writer, "a", "hello");
    put(&writer, weir_arena_printf(&arena, "f/%s", long_name(200)), "world");
    MUST(tar_finish(&writer, path_of("whole"), &err));
    tar_abandon(&writer);
    MUST(weir_file_read(path_of("whole"), 1 << 20, &arena, &bytes, &len, &err));
    for (int i = 0; i < WEIR_TEST_TIMES(500, 100); i++) {
        struct tar_member *members;
        size_t n, at = (size_t)weir_rng_below(&rng, len), cut = len;
        char was = bytes[at];
        bytes[at] = (char)weir_rng_below(&rng, 256);
        cut -= weir_rng_below(&rng, 4) == 0 ? (size_t)weir_rng_below(&rng, len) : 0;
        if (list(bytes, cut, &members, &n) == WEIR_OK) {
            for (size_t k = 0; k < n; k++) {
                ck_assert(tar_name_is_valid(members[k].name));
                ck_assert(members[k].offset + members[k].bytes <= cut);
            }
        }
        bytes[at] = was;
    }
}

END_TEST

int main(void)
{
    const TTest *const tests[] = {
        what_is_written_is_read_again,        what_does_not_fit_leaves_no_file,
        names_that_lead_elsewhere_are_none,   hostile_archives_are_refused,
        a_pax_header_gives_a_name_and_a_size, a_changed_byte_never_leads_out_of_the_file};
    return weir_test_run(
        weir_test_suite_with("tar", set_up, tear_down, tests, WEIR_ARRAY_LEN(tests)));
}
