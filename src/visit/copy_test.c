/* A copy of any folder is that folder, less what must not leave it; and no stream writes anywhere else. */
#include "visit/copy_private.h"

#include "base/file.h"
#include "base/macros.h"
#include "base/test_main.h"
#include "base/test_seed.h"
#include "visit/frame.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINES_MAX        2000
#define STREAM_MAX_BYTES (8 << 20) /* of a random folder */

static char dir[WEIR_DIR_TEMPORARY_BYTES];
static struct weir_rng rng;
static int64_t n_complaints;

static void start(void)
{
    (void)test_seed(&rng);
    (void)umask(022);
    ck_assert_int_eq(weir_dir_make_temporary("copy", dir, NULL), WEIR_OK);
    ck_assert_int_eq(chdir(dir), 0);
    n_complaints = 0;
}

static void stop(void)
{
    ck_assert_int_eq(weir_dir_remove(dir, NULL), WEIR_OK);
}

static size_t below(size_t n)
{
    return (size_t)weir_rng_below(&rng, n);
}

/* ---- folders ------------------------------------------------------------------------------------------------------ */

/* What a folder should have and what it has: a line for each thing, sorted. */
struct listing {
    char *lines[LINES_MAX];
    size_t n;
};

static void add(struct listing *list, char kind, mode_t mode, const char *path, const char *rest)
{
    char line[PATH_MAX + 256];
    ck_assert_uint_lt(list->n, LINES_MAX);
    (void)snprintf(line, sizeof line, "%c %o %s %s", kind, mode & 0777U, path, rest);
    list->lines[list->n++] = strdup(line);
}

static uint64_t sum_of(const char *bytes, size_t n)
{
    uint64_t sum = 14695981039346656037U;
    for (size_t i = 0; i < n; i++) {
        sum = (sum ^ (unsigned char)bytes[i]) * 1099511628211U;
    }
    return sum;
}

static void list_folder(struct listing *list, const char *root, const char *path)
{
    char child[PATH_MAX], whole[2 * PATH_MAX], rest[300];
    struct stat info;
    (void)snprintf(whole, sizeof whole, "%s/%s", root, path);
    DIR *folder = opendir(whole);
    ck_assert_ptr_nonnull(folder);
    for (struct dirent *at = readdir(folder); at != NULL; at = readdir(folder)) {
        if (strcmp(at->d_name, ".") == 0 || strcmp(at->d_name, "..") == 0) {
            continue;
        }
        (void)snprintf(child, sizeof child, "%s%s%s", path, path[0] != '\0' ? "/" : "", at->d_name);
        (void)snprintf(whole, sizeof whole, "%s/%s", root, child);
        ck_assert_int_eq(lstat(whole, &info), 0);
        if (S_ISDIR(info.st_mode)) {
            add(list, 'D', info.st_mode, child, "");
            list_folder(list, root, child);
        } else if (S_ISLNK(info.st_mode)) {
            ssize_t n = readlink(whole, rest, sizeof rest - 1);
            ck_assert_int_gt(n, 0);
            rest[n] = '\0';
            add(list, 'L', 0777, child, rest);
        } else if (!S_ISREG(info.st_mode)) {
            add(list, 'P', info.st_mode, child, "");
        } else {
            static char bytes[STREAM_MAX_BYTES];
            size_t n;
            ck_assert_int_eq(weir_file_read_into(whole, bytes, sizeof bytes, &n, NULL), WEIR_OK);
            (void)snprintf(rest, sizeof rest, "%llu", (unsigned long long)sum_of(bytes, n));
            add(list, 'F', info.st_mode, child, rest);
        }
    }
    closedir(folder);
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void expect_equal(struct listing *expected, struct listing *found)
{
    qsort(expected->lines, expected->n, sizeof(char *), compare_lines);
    qsort(found->lines, found->n, sizeof(char *), compare_lines);
    for (size_t i = 0; i < expected->n || i < found->n; i++) {
        ck_assert_str_eq(i < found->n ? found->lines[i] : "(nothing)",
                         i < expected->n ? expected->lines[i] : "(nothing)");
        free(expected->lines[i]);
        free(found->lines[i]);
    }
    expected->n = found->n = 0;
}

/* A name of any bytes but those that a name cannot have. */
static void make_name(char out[64], size_t i)
{
    size_t len = below(12);
    for (size_t k = 0; k < len; k++) {
        char c = (char)(1 + below(255));
        out[k] = c == '/' ? '\n' : c;
    }
    (void)snprintf(out + len, 64 - len, "-%zu", i);
}

static const struct {
    const char *target;
    bool is_within; /* of a link two folders deep */
} targets[] = {{"x", true},           {"../x", true},   {"../../x/y", true}, {"./../x", true},
               {"../../../x", false}, {"/etc", false},  {"x/../y", false},   {"../x/..", false},
               {"..", true},          {"nowhere", true}};

/* Files, folders, links and a pipe; what of it is copied goes into the listing. */
static void make_folder(struct listing *list, const char *root, const char *path, size_t depth)
{
    static char bytes[200000];
    static const mode_t modes[] = {0644, 0600, 0755, 0400, 0666};
    char name[64], child[PATH_MAX], whole[2 * PATH_MAX], rest[32];
    size_t n = below(8);
    for (size_t i = 0; i < n; i++) {
        make_name(name, i);
        (void)snprintf(child, sizeof child, "%s%s%s", path, path[0] != '\0' ? "/" : "", name);
        (void)snprintf(whole, sizeof whole, "%s/%s", root, child);
        size_t kind = below(10), which = below(WEIR_ARRAY_LEN(targets));
        if (kind < 3 && depth < 4) {
            mode_t mode = below(3) == 0 ? 0700 : 0755;
            ck_assert_int_eq(mkdir(whole, mode), 0);
            add(list, 'D', mode, child, "");
            make_folder(list, root, child, depth + 1);
        } else if (kind == 3 && depth == 2) {
            ck_assert_int_eq(symlink(targets[which].target, whole), 0);
            if (targets[which].is_within) {
                add(list, 'L', 0777, child, targets[which].target);
            }
            n_complaints -= !targets[which].is_within;
        } else if (kind == 4) {
            ck_assert_int_eq(mkfifo(whole, 0600), 0);
            n_complaints--;
        } else {
            size_t len = below(below(10) == 0 ? sizeof bytes : 300);
            mode_t mode = modes[below(WEIR_ARRAY_LEN(modes))];
            weir_random_bytes(bytes, len);
            ck_assert_int_eq(weir_file_write(whole, bytes, len, 0600, NULL), WEIR_OK);
            ck_assert_int_eq(chmod(whole, mode), 0);
            (void)snprintf(rest, sizeof rest, "%llu", (unsigned long long)sum_of(bytes, len));
            add(list, 'F', mode, child, rest);
        }
    }
}

/* ---- the two ends -------------------------------------------------------------------------------------------------- */

static void count_complaint(void *context, const char *path, const char *why)
{
    (void)context;
    ck_assert_ptr_nonnull(path);
    ck_assert_ptr_nonnull(why);
    n_complaints++;
}

struct sending {
    const char *path;
    int fd;
    weir_status status;
};

static void *send_it(void *context)
{
    struct sending *sending = context;
    struct weir_copy_watch watch = {.complain = count_complaint};
    sending->status = weir_copy_send(sending->path, sending->fd, &watch, NULL);
    close(sending->fd);
    return NULL;
}

static weir_status copy(const char *from, const char *to, struct weir_copy_watch *watch)
{
    int fds[2];
    pthread_t thread;
    ck_assert_int_eq(pipe(fds), 0);
    struct sending sending = {.path = from, .fd = fds[1]};
    ck_assert_int_eq(pthread_create(&thread, NULL, send_it, &sending), 0);
    *watch = (struct weir_copy_watch){.complain = count_complaint};
    weir_status status = weir_copy_take(to, fds[0], watch, NULL);
    close(fds[0]);
    (void)pthread_join(thread, NULL);
    return sending.status != WEIR_OK ? sending.status : status;
}

START_TEST(a_copy_is_what_was_copied_less_what_leads_out)
{
    static struct listing expected, found;
    struct weir_copy_watch watch;
    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(mkdir("from", 0755), 0);
        make_folder(&expected, "from", "", 0);
        ck_assert_int_eq(copy("from", "to", &watch), WEIR_OK);
        list_folder(&found, "to", "");
        ck_assert_int_eq(n_complaints, 0); /* one for each thing that is left out */
        ck_assert(watch.is_folder);
        expect_equal(&expected, &found);
        ck_assert_int_eq(weir_dir_remove("from", NULL), WEIR_OK);
        ck_assert_int_eq(weir_dir_remove("to", NULL), WEIR_OK);
    }
}

END_TEST

static void write_text(const char *path, const char *text)
{
    ck_assert_int_eq(weir_file_write(path, text, strlen(text), 0644, NULL), WEIR_OK);
}

static void expect_text(const char *path, const char *text)
{
    char bytes[64];
    size_t n;
    ck_assert_int_eq(weir_file_read_into(path, bytes, sizeof bytes, &n, NULL), WEIR_OK);
    ck_assert_mem_eq(bytes, text, strlen(text));
    ck_assert_uint_eq(n, strlen(text));
}

START_TEST(a_copy_goes_where_cp_would_put_it)
{
    struct weir_copy_watch watch;
    ck_assert_int_eq(weir_dir_make("a/b", 0755, NULL), WEIR_OK);
    ck_assert_int_eq(weir_dir_make("there", 0755, NULL), WEIR_OK);
    write_text("a/b/f", "one");
    ck_assert_int_eq(copy("a/b", "new", &watch), WEIR_OK);
    expect_text("new/f", "one");
    ck_assert_int_eq(copy("a/b/", "there", &watch), WEIR_OK);
    expect_text("there/b/f", "one");
    ck_assert_int_eq(copy("a/b/.", "there/", &watch), WEIR_OK);
    expect_text("there/f", "one");
    ck_assert_int_eq(copy("a/b", "made/", &watch), WEIR_OK);
    expect_text("made/b/f", "one");
    ck_assert_int_eq(copy("a/b/f", "there", &watch), WEIR_OK);
    ck_assert(!watch.is_folder);
    ck_assert_int_eq(copy("a/b/f", "g", &watch), WEIR_OK);
    expect_text("g", "one");
    ck_assert_int_eq(copy("a/b/f", "none/", &watch), WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(copy("nothing", "g", &watch), WEIR_ERR_NOT_FOUND);
    expect_text("g", "one");
    /* What is there stays, and a link that is there is not followed. */
    write_text("there/b/own", "mine");
    write_text("outside", "safe");
    ck_assert_int_eq(unlink("there/b/f"), 0);
    ck_assert_int_eq(symlink("../../outside", "there/b/f"), 0);
    ck_assert_int_eq(copy("a/b", "there", &watch), WEIR_OK);
    expect_text("there/b/own", "mine");
    expect_text("there/b/f", "one");
    expect_text("outside", "safe");
    ck_assert_int_eq(weir_dir_make("a/b/sub", 0755, NULL), WEIR_OK);
    write_text("a/b/sub/f", "two");
    ck_assert_int_eq(mkdir("elsewhere", 0755), 0);
    ck_assert_int_eq(symlink("../../elsewhere", "there/b/sub"), 0);
    n_complaints = 0;
    ck_assert_int_eq(copy("a/b", "there", &watch), WEIR_OK);
    ck_assert_int_eq(n_complaints, 1);
    ck_assert_int_eq(access("elsewhere/f", F_OK), -1);
}

END_TEST

/* ---- streams -------------------------------------------------------------------------------------------------------- */

static weir_status take_bytes_of(const char *bytes, size_t n, struct weir_copy_watch *watch)
{
    *watch = (struct weir_copy_watch){.complain = count_complaint};
    ck_assert_int_eq(weir_file_write("stream", bytes, n, 0600, NULL), WEIR_OK);
    int fd = open("stream", O_RDONLY | O_CLOEXEC);
    weir_status status = weir_copy_take("in/to", fd, watch, NULL);
    close(fd);
    return status;
}

static int64_t count_files(const char *path)
{
    static struct listing list;
    int64_t n = 0;
    list_folder(&list, path, "");
    for (size_t i = 0; i < list.n; i++) {
        ck_assert(strstr(list.lines[i], ".weir-") == NULL); /* no half file */
        n += list.lines[i][0] == 'F';
        free(list.lines[i]);
    }
    list.n = 0;
    return n;
}

/* A stream that ends anywhere leaves the files that it counts, and no other; one with bytes that are not its own
 * writes nothing outside of its place. */
START_TEST(a_stream_that_breaks_leaves_whole_files_and_writes_nowhere_else)
{
    static char bytes[STREAM_MAX_BYTES];
    static struct listing ignored;
    struct weir_copy_watch watch;
    size_t n;
    ck_assert_int_eq(mkdir("from", 0755), 0);
    make_folder(&ignored, "from", "", 0);
    write_text("from/one", "more");
    int fd = open("whole", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    watch = (struct weir_copy_watch){.complain = count_complaint};
    ck_assert_int_eq(weir_copy_send("from", fd, &watch, NULL), WEIR_OK);
    close(fd);
    ck_assert_int_eq(weir_file_read_into("whole", bytes, sizeof bytes, &n, NULL), WEIR_OK);
    for (int i = 0; i < 150; i++) {
        char *copy = malloc(n);
        size_t len = i % 2 == 0 ? below(n) : n;
        ck_assert_ptr_nonnull(copy);
        memcpy(copy, bytes, n);
        for (size_t k = 0; i % 2 == 1 && k < 1 + below(4); k++) {
            size_t at = COPY_MARK_BYTES + below(below(2) == 0 ? n - COPY_MARK_BYTES : 60);
            copy[WEIR_MIN(at, n - 1)] = (char)below(256);
        }
        ck_assert_int_eq(mkdir("in", 0755), 0);
        weir_status status = take_bytes_of(copy, len, &watch);
        ck_assert(i % 2 == 1 || status == WEIR_ERR_CORRUPT);
        if (i % 2 == 0 || status == WEIR_OK) {
            ck_assert_int_le(count_files("in"), watch.n_files);
        }
        ck_assert_int_eq(access("in/to", F_OK) == 0 || watch.n_files == 0, true);
        ck_assert_int_eq(weir_dir_remove("in", NULL), WEIR_OK);
        free(copy);
    }
    static struct listing rest;
    list_folder(&rest, ".", "");
    for (size_t i = 0; i < rest.n; i++) {
        const char *path = strchr(rest.lines[i] + 2, ' ') + 1;
        ck_assert_msg(strncmp(path, "from", 4) == 0 || strncmp(path, "whole ", 6) == 0 ||
                          strncmp(path, "stream ", 7) == 0,
                      "%s", rest.lines[i]);
    }
}

END_TEST

static size_t put_entry(char *out, char kind, const char *name, const char *target)
{
    memset(out, 0, COPY_HEAD_BYTES);
    out[0] = kind;
    weir_frame_set_u16(out + 2, 0755);
    weir_frame_set_u16(out + 4, (uint16_t)strlen(name));
    weir_frame_set_u16(out + 6, (uint16_t)strlen(target));
    memcpy(out + COPY_HEAD_BYTES, name, strlen(name));
    memcpy(out + COPY_HEAD_BYTES + strlen(name), target, strlen(target));
    return COPY_HEAD_BYTES + strlen(name) + strlen(target);
}

START_TEST(a_hostile_stream_is_refused)
{
    static const struct {
        char kind;
        const char *name, *target;
        bool is_taken; /* with a complaint */
    } bad[] = {
        {COPY_FOLDER, "..", "", false},    {COPY_FOLDER, "a/b", "", false},
        {COPY_FOLDER, "/etc", "", false},  {COPY_FOLDER, ".", "", false},
        {COPY_FOLDER, "", "", false},      {COPY_FILE, "", "", false},
        {COPY_FILE, "../x", "", false},    {'?', "x", "", false},
        {COPY_LINK, "x", "/etc", true},    {COPY_LINK, "x", "..", true},
        {COPY_LINK, "x", "a/../..", true},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        char bytes[512] = COPY_MARK;
        struct weir_copy_watch watch;
        size_t n = COPY_MARK_BYTES;
        n += put_entry(bytes + n, COPY_FOLDER, "root", "");
        n += put_entry(bytes + n, bad[i].kind, bad[i].name, bad[i].target);
        n += put_entry(bytes + n, COPY_UP, "", "");
        n += put_entry(bytes + n, COPY_END, "", "");
        n_complaints = 0;
        ck_assert_int_eq(mkdir("in", 0755), 0);
        ck_assert_int_eq(take_bytes_of(bytes, n, &watch),
                         bad[i].is_taken ? WEIR_OK : WEIR_ERR_CORRUPT);
        ck_assert_int_eq(n_complaints, bad[i].is_taken);
        ck_assert_int_eq(access("in/to/x", F_OK), -1);
        ck_assert_int_eq(weir_dir_remove("in", NULL), WEIR_OK);
    }
}

END_TEST

WEIR_TEST_MAIN_WITH("copy", start, stop, a_copy_is_what_was_copied_less_what_leads_out,
                    a_copy_goes_where_cp_would_put_it,
                    a_stream_that_breaks_leaves_whole_files_and_writes_nowhere_else,
                    a_hostile_stream_is_refused)
