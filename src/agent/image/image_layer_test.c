#include "agent/image/image_layer.h"

#include "base/file.h"
#include "base/macros.h"
#include "base/test_main.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define BLOCK 512

static char dir[WEIR_DIR_TEMPORARY_BYTES];
static int root_fd;
static unsigned char archive[64 * BLOCK];
static size_t len;

static void setup(void)
{
    struct weir_error err;
    char root[WEIR_DIR_TEMPORARY_BYTES + 8];
    ck_assert_int_eq(weir_dir_make_temporary("image-layer", dir, &err), WEIR_OK);
    (void)snprintf(root, sizeof root, "%s/root", dir);
    ck_assert_int_eq(mkdir(root, 0755), 0);
    root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    len = 0;
}

static void teardown(void)
{
    close(root_fd);
    ck_assert_int_eq(weir_dir_remove(dir, NULL), WEIR_OK);
}

/* One entry as GNU tar writes it. */
static void put(char type, const char *name, const char *link, const char *text, unsigned mode)
{
    unsigned char *h = archive + len;
    unsigned sum = 0;
    size_t size = strlen(text);
    memset(h, 0, BLOCK);
    memcpy(h, name, WEIR_MIN(strlen(name), (size_t)100));
    (void)snprintf((char *)h + 100, 8, "%07o", mode);
    (void)snprintf((char *)h + 124, 12, "%011o", (unsigned)size);
    memset(h + 148, ' ', 8);
    h[156] = (unsigned char)type;
    memcpy(h + 157, link, WEIR_MIN(strlen(link), (size_t)100));
    memcpy(h + 257, "ustar\0", 6);
    for (size_t i = 0; i < BLOCK; i++) {
        sum += h[i];
    }
    (void)snprintf((char *)h + 148, 8, "%06o", sum);
    len += BLOCK;
    memset(archive + len, 0, (size + BLOCK - 1) / BLOCK * BLOCK);
    memcpy(archive + len, text, size);
    len += (size + BLOCK - 1) / BLOCK * BLOCK;
}

static weir_status unpack_with(int64_t max_bytes, int64_t max_entries, struct weir_error *err)
{
    char path[WEIR_DIR_TEMPORARY_BYTES + 8];
    struct image_bounds bounds = {.max_bytes = max_bytes, .max_entries = max_entries};
    (void)snprintf(path, sizeof path, "%s/a.tar", dir);
    memset(archive + len, 0, (size_t)2 * BLOCK);
    ck_assert_int_eq(weir_file_write(path, archive, len + (size_t)2 * BLOCK, 0600, err), WEIR_OK);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    weir_status status = image_layer_unpack(fd, root_fd, &bounds, err);
    close(fd);
    len = 0;
    return status;
}

static weir_status unpack(void)
{
    struct weir_error err;
    return unpack_with(1 << 20, 100, &err);
}

static bool has(const char *name)
{
    struct stat info;
    return fstatat(root_fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

static const char *text_of(const char *name)
{
    static char text[64];
    int fd = openat(root_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n >= 0 ? text : "(none)";
}

START_TEST(files_folders_and_links_are_made)
{
    struct stat info;
    put('5', "./usr/", "", "", 0700);
    put('0', "./usr/bin/go", "", "run me", 04700);
    put('0', "etc/secret", "", "s", 0600);
    put('2', "bin", "usr/bin", "", 0777);
    put('0', "bin/more", "", "through the link", 0644);
    put('1', "usr/again", "usr/bin/go", "", 0700);
    put('3', "dev/mem", "", "", 0666);
    ck_assert_int_eq(unpack(), WEIR_OK);
    ck_assert_str_eq(text_of("usr/bin/go"), "run me");
    ck_assert_str_eq(text_of("usr/again"), "run me");
    ck_assert_str_eq(text_of("usr/bin/more"), "through the link");
    ck_assert(!has("dev/mem"));
    ck_assert_int_eq(fstatat(root_fd, "usr/bin/go", &info, 0), 0);
    ck_assert_int_eq(info.st_mode & 07777, 0755); /* for every user, and nobody's but his */
    ck_assert_int_eq(fstatat(root_fd, "etc/secret", &info, 0), 0);
    ck_assert_int_eq(info.st_mode & 07777, 0644);
}

END_TEST

START_TEST(a_later_layer_replaces_and_takes_away)
{
    put('0', "a/x", "", "1", 0644);
    put('0', "a/y", "", "1", 0644);
    put('0', "b/x", "", "1", 0644);
    put('0', "c", "", "1", 0644);
    ck_assert_int_eq(unpack(), WEIR_OK);
    put('0', "a/.wh.x", "", "", 0644);
    put('0', "b/.wh..wh..opq", "", "", 0644);
    put('0', "b/z", "", "2", 0644);
    put('5', "c", "", "", 0755);
    put('0', "c/d", "", "2", 0644);
    ck_assert_int_eq(unpack(), WEIR_OK);
    ck_assert(!has("a/x"));
    ck_assert(has("a/y"));
    ck_assert(!has("b/x"));
    ck_assert_str_eq(text_of("b/z"), "2");
    ck_assert_str_eq(text_of("c/d"), "2");
    put('0', "a", "", "3", 0644); /* a file in a folder's place */
    ck_assert_int_eq(unpack(), WEIR_OK);
    ck_assert_str_eq(text_of("a"), "3");
}

END_TEST

/* Each tries to write "victim" beside the root. */
START_TEST(nothing_leads_out_of_the_root)
{
    char victim[WEIR_DIR_TEMPORARY_BYTES + 8];
    (void)snprintf(victim, sizeof victim, "%s/victim", dir);
    ck_assert_int_eq(weir_file_write(victim, "v", 1, 0600, NULL), WEIR_OK);
    put('0', "../victim", "", "bad", 0644);
    ck_assert_int_eq(unpack(), WEIR_ERR_CORRUPT);
    put('0', "x/../../victim", "", "bad", 0644);
    ck_assert_int_eq(unpack(), WEIR_ERR_CORRUPT);
    put('2', "up", "..", "", 0777);
    put('0', "up/victim", "", "inside", 0644);
    ck_assert_int_eq(unpack(), WEIR_OK);
    ck_assert_str_eq(text_of("victim"), "inside");
    put('2', "abs", dir, "", 0777);
    put('0', "abs/victim", "", "bad", 0644);
    ck_assert_int_ne(unpack(), WEIR_OK); /* there is no such folder inside */
    put('2', "file", victim, "", 0777);
    put('0', "file", "", "replaced", 0644);
    ck_assert_int_eq(unpack(), WEIR_OK);
    ck_assert_str_eq(text_of("file"), "replaced");
    put('1', "hard", "../victim", "", 0644);
    ck_assert_int_eq(unpack(), WEIR_ERR_CORRUPT);
    put('1', "hard", victim, "", 0644);
    ck_assert_int_ne(unpack(), WEIR_OK);
    put('0', ".wh...", "", "", 0644);
    ck_assert_int_eq(unpack(), WEIR_ERR_CORRUPT);
    ck_assert_int_eq(access(victim, F_OK), 0);
    char text[2] = "";
    size_t n = 0;
    ck_assert_int_eq(weir_file_read_into(victim, text, 1, &n, NULL), WEIR_OK);
    ck_assert_str_eq(text, "v");
}

END_TEST

START_TEST(long_names_of_gnu_and_pax_are_read)
{
    char name[201], pax[256];
    memset(name, 'n', 200);
    name[200] = '\0';
    put('L', "././@LongLink", "", name, 0);
    put('0', "cut", "", "long", 0644);
    (void)snprintf(pax, sizeof pax, "%zu path=%s\n", 10 + (size_t)150, name + 50);
    put('x', "pax", "", pax, 0);
    put('0', "cut too", "", "pax", 0644);
    put('0', "short", "", "again", 0644);
    ck_assert_int_eq(unpack(), WEIR_OK);
    ck_assert_str_eq(text_of(name), "long");
    ck_assert_str_eq(text_of(name + 50), "pax");
    ck_assert_str_eq(text_of("short"), "again");
    ck_assert(!has("cut"));
}

END_TEST

START_TEST(what_is_too_much_or_damaged_is_refused)
{
    struct weir_error err;
    put('0', "big", "", "0123456789", 0644);
    ck_assert_int_eq(unpack_with(9, 100, &err), WEIR_ERR_LIMIT);
    put('5', "a", "", "", 0755);
    put('5', "b", "", "", 0755);
    ck_assert_int_eq(unpack_with(9, 1, &err), WEIR_ERR_LIMIT);
    put('0', "a", "", "text", 0644);
    archive[0] = 'b'; /* its sum is another then */
    ck_assert_int_eq(unpack(), WEIR_ERR_CORRUPT);
    ck_assert_int_eq(unpack(), WEIR_OK); /* two empty blocks: an archive of nothing */
    put('x', "pax", "", "99 path=no\n", 0);
    ck_assert_int_eq(unpack(), WEIR_ERR_CORRUPT);
    put('0', "a", "", "0123456789", 0644);
    memcpy(archive + 124, "00000177777", 11); /* longer than the archive */
    memset(archive + 148, ' ', 8);
    unsigned sum = 0;
    for (size_t i = 0; i < BLOCK; i++) {
        sum += archive[i];
    }
    (void)snprintf((char *)archive + 148, 8, "%06o", sum);
    ck_assert_int_eq(unpack(), WEIR_ERR_CORRUPT);
}

END_TEST

WEIR_TEST_MAIN_WITH("agent image layer", setup, teardown, files_folders_and_links_are_made,
                    a_later_layer_replaces_and_takes_away, nothing_leads_out_of_the_root,
                    long_names_of_gnu_and_pax_are_read, what_is_too_much_or_damaged_is_refused)
