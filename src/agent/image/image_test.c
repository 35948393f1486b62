#include "agent/image/image.h"

#include "agent/image/image_oci.h"
#include "base/file.h"
#include "base/macros.h"
#include "base/test_main.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* An image of one layer that holds one file, in the folder images/tiny. */
static char dir[WEIR_DIR_TEMPORARY_BYTES];
static struct weir_arena arena;
static struct image_source source;

static char *path_of(const char *name)
{
    return weir_arena_printf(&arena, "%s/%s", dir, name);
}

/* A blob of the layout; its digest. */
static char *put_blob(const void *bytes, size_t len)
{
    char digest[WEIR_SHA256_TEXT_BYTES];
    weir_sha256(bytes, len, digest);
    char *path = weir_arena_printf(&arena, "%s/images/tiny/blobs/sha256/%s", dir, digest);
    ck_assert_int_eq(weir_file_write(path, bytes, len, 0600, NULL), WEIR_OK);
    return weir_arena_printf(&arena, "sha256:%s", digest);
}

static char *put_text(const char *text)
{
    return put_blob(text, strlen(text));
}

static char *put_layer(void)
{
    unsigned char tar[2048] = {0};
    unsigned sum = 0;
    memcpy(tar, "hello", 5);
    memcpy(tar + 100, "0000644", 7);
    memcpy(tar + 124, "00000000002", 11);
    memset(tar + 148, ' ', 8);
    tar[156] = '0';
    for (size_t i = 0; i < 512; i++) {
        sum += tar[i];
    }
    (void)snprintf((char *)tar + 148, 8, "%06o", sum);
    memcpy(tar + 512, "hi", 2);
    return put_blob(tar, sizeof tar);
}

static void put_index(const char *manifest, const char *platform)
{
    char *index =
        weir_arena_printf(&arena, "{\"manifests\":[{\"digest\":\"%s\"%s}]}", manifest, platform);
    ck_assert_int_eq(
        weir_file_write(path_of("images/tiny/index.json"), index, strlen(index), 0600, NULL),
        WEIR_OK);
}

static char *put_manifest(const char *layer, const char *type)
{
    char *config = put_text("{\"config\":{\"Env\":[\"PATH=/opt\",\"A=b\"]}}");
    return put_text(weir_arena_printf(
        &arena,
        "{\"config\":{\"digest\":\"%s\"},\"layers\":[{\"digest\":\"%s\",\"mediaType\":\"%s\"}]}",
        config, layer, type));
}

static void start(void)
{
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(weir_dir_make_temporary("image", dir, NULL), WEIR_OK);
    ck_assert_int_eq(weir_dir_make(path_of("images/tiny/blobs/sha256"), 0700, NULL), WEIR_OK);
    ck_assert_int_eq(weir_dir_make(path_of("agent"), 0700, NULL), WEIR_OK);
    source = (struct image_source){
        .name = "tiny", .agent_dir = path_of("agent"), .folder = path_of("images")};
    put_index(put_manifest(put_layer(), "tar"), "");
}

static void stop(void)
{
    ck_assert_int_eq(weir_dir_remove(dir, NULL), WEIR_OK);
    weir_arena_fini(&arena);
}

static bool never(void *context)
{
    (void)context;
    return false;
}

static weir_status get(char **out_dir, int *out_fd, struct weir_error *err)
{
    return image_get(&source, &(struct image_watch){.is_stopped = never}, &arena, out_dir, out_fd,
                     err);
}

START_TEST(an_image_is_unpacked_once_and_kept_while_it_is_held)
{
    struct weir_error err;
    char *image = NULL, *again = NULL, *text = NULL;
    size_t len;
    int fd = -1, fd_again = -1;
    ck_assert_int_eq(get(&image, &fd, &err), WEIR_OK);
    ck_assert_int_eq(weir_file_read(weir_arena_printf(&arena, "%s/rootfs/hello", image), 10, &arena,
                                    &text, &len, &err),
                     WEIR_OK);
    ck_assert_str_eq(text, "hi");
    ck_assert_int_eq(weir_file_read(weir_arena_printf(&arena, "%s/image.json", image), 4096, &arena,
                                    &text, &len, &err),
                     WEIR_OK);
    ck_assert_ptr_nonnull(strstr(text, "PATH=/opt"));
    ck_assert_int_eq(weir_dir_remove(path_of("images/tiny/blobs"), NULL), WEIR_OK);
    ck_assert_int_eq(get(&again, &fd_again, &err), WEIR_OK); /* nothing is read again */
    ck_assert_str_eq(image, again);
    close(fd_again);
    /* Others come: the one that is held stays, of the others the newest. */
    for (int i = 0; i < IMAGES_KEPT + 2; i++) {
        char *other = weir_arena_printf(&arena, "%s/agent/images/other-%d", dir, i);
        ck_assert_int_eq(mkdir(other, 0700), 0);
        ck_assert_int_eq(
            weir_file_write(weir_arena_printf(&arena, "%s.lock", other), "", 0, 0600, NULL),
            WEIR_OK);
    }
    ck_assert_int_eq(get(&again, &fd_again, &err), WEIR_OK);
    int n = 0;
    for (int i = 0; i < IMAGES_KEPT + 2; i++) {
        n += access(weir_arena_printf(&arena, "%s/agent/images/other-%d", dir, i), F_OK) == 0;
    }
    ck_assert_int_eq(n, IMAGES_KEPT - 1);
    ck_assert_int_eq(access(image, F_OK), 0);
    close(fd);
    close(fd_again);
}

END_TEST

static void refuses(weir_status expected, const char *words)
{
    struct weir_error err;
    char *image = NULL;
    int fd = -1;
    ck_assert_int_eq(get(&image, &fd, &err), expected);
    ck_assert_msg(strstr(err.message, words) != NULL, "%s", err.message);
}

START_TEST(what_is_no_whole_image_is_named)
{
    char *layer = put_layer();
    put_index(put_manifest(layer, "application/vnd.oci.image.layer.v1.tar+zstd"), "");
    refuses(WEIR_ERR_UNSUPPORTED, "tar or gzip");
    put_index(put_manifest(layer, "tar"),
              ",\"platform\":{\"os\":\"linux\",\"architecture\":\"s390x\"}");
    refuses(WEIR_ERR_UNSUPPORTED, "not for linux/");
    put_index("md5:1", "");
    refuses(WEIR_ERR_UNSUPPORTED, "expected sha256:");
    put_index(put_manifest("sha256:"
                           "0000000000000000000000000000000000000000000000000000000000000000",
                           "tar"),
              "");
    refuses(WEIR_ERR_CORRUPT, "is not there");
    char *blob = weir_arena_printf(&arena, "%s/images/tiny/blobs/sha256/%s", dir, layer + 7);
    ck_assert_int_eq(weir_file_write(blob, "other", 5, 0600, NULL), WEIR_OK);
    put_index(put_manifest(layer, "tar"), "");
    refuses(WEIR_ERR_CORRUPT, "other bytes");
    ck_assert_int_eq(unlink(path_of("images/tiny/index.json")), 0);
    refuses(WEIR_ERR_CORRUPT, "no index.json");
    /* A link in the layout is looked up in it, not on the machine. */
    ck_assert_int_eq(symlink("/etc/passwd", path_of("images/tiny/index.json")), 0);
    refuses(WEIR_ERR_CORRUPT, "no index.json");
    source.name = "none";
    refuses(WEIR_ERR_NOT_FOUND, "neither a file nor a folder");
    source.folder = NULL;
    refuses(WEIR_ERR_NOT_FOUND, "--images");
    ck_assert_int_eq(symlink("/etc", path_of("images/link")), 0);
    source = (struct image_source){
        .name = "link", .agent_dir = path_of("agent"), .folder = path_of("images")};
    refuses(WEIR_ERR_NOT_FOUND, "neither a file nor a folder");
}

END_TEST

START_TEST(names_lead_nowhere)
{
    static const char *const bad[] = {"", ".", "..", "a/b", "/etc", ".x", "sha256:12", "a b", "é"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        ck_assert_msg(!image_name_is_good(bad[i]), "%s", bad[i]);
    }
    ck_assert(image_name_is_good("pytorch-2.4_cpu.tar"));
    ck_assert(image_name_is_good(
        "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"));
}

END_TEST

static bool at_once(void *context)
{
    (void)context;
    return true;
}

START_TEST(it_can_be_stopped)
{
    struct weir_error err;
    char *image = NULL;
    int fd = -1;
    ck_assert_int_eq(unlink(path_of("images/tiny/index.json")), 0);
    ck_assert_int_eq(rmdir(path_of("agent")), 0);
    ck_assert_int_eq(mkfifo(path_of("images/fifo"), 0600), 0);
    source.name = "tiny";
    /* Whether it ends by itself or is stopped first: it ends, and says why. */
    weir_status status =
        image_get(&source, &(struct image_watch){.is_stopped = at_once}, &arena, &image, &fd, &err);
    ck_assert(status == WEIR_ERR_CANCELLED || status == WEIR_ERR_CORRUPT);
    source.name = "fifo";
    ck_assert_int_eq(get(&image, &fd, &err), WEIR_ERR_NOT_FOUND);
}

END_TEST

static char told[200];

static void note_told(void *context, const char *how_far)
{
    (void)context;
    (void)snprintf(told, sizeof told, "%s", how_far);
}

static bool once_told(void *context)
{
    (void)context;
    return told[0] != '\0';
}

/* Who waits is told what for: here somebody else holds the image's lock. */
START_TEST(who_waits_is_told_how_far_it_is)
{
    struct weir_error err;
    char *image = NULL, path[PATH_MAX];
    int fd = -1;
    ck_assert_int_eq(get(&image, &fd, &err), WEIR_OK);
    close(fd);
    (void)snprintf(path, sizeof path, "%s.lock", image);
    ck_assert_int_eq(weir_dir_remove(image, &err), WEIR_OK);
    int other = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(flock(other, LOCK_SH), 0); /* one may look, nobody may make it */
    const struct image_watch watch = {.is_stopped = once_told, .tell = note_told};
    ck_assert_int_eq(image_get(&source, &watch, &arena, &image, &fd, &err), WEIR_ERR_CANCELLED);
    ck_assert_str_eq(told, "another task of this node is unpacking it");
    close(other);
}

END_TEST

WEIR_TEST_MAIN_WITH("agent image", start, stop, an_image_is_unpacked_once_and_kept_while_it_is_held,
                    what_is_no_whole_image_is_named, names_lead_nowhere, it_can_be_stopped,
                    who_waits_is_told_how_far_it_is)
