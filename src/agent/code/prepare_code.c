/* Steps: what the job brings along. Its folder is unpacked into the task's before the program starts; a
 * repository and Python packages are fetched by scripts that run in the task's sandbox, in front of the
 * program, because what they fetch and run is the user's. */
#include "agent/code/code_cache.h"
#include "agent/code/prepare.h"
#include "agent/supervise/launch.h"
#include "agent/supervise/output.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/log.h"
#include "base/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define PART         ".weir-part"
#define REQUIREMENTS ".weir-requirements.txt"
#define COPY_BYTES   65536

extern const char prepare_git_sh[], prepare_git_sh_end[];
extern const char prepare_python_py[], prepare_python_py_end[];

static const char *text_of(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

/* ---- secrets ------------------------------------------------------------------------------------ */

/* The server could not open a secret of the job. */
weir_status prepare_secrets(struct prepare *prepare, struct weir_error *err)
{
    const char *why = text_of(prepare->document, "refused");
    return why == NULL ? WEIR_OK : weir_error_set(err, WEIR_ERR_CONFLICT, "%s", why);
}

/* ---- the folder --------------------------------------------------------------------------------- */

struct unpack {
    struct prepare *prepare;
    struct weir_client *client;
    struct code_cache cache;
    bool has_told; /* that the server is away */
    int work_fd;
    int dir_fd;                       /* the folder of the last entry */
    char dir[WEIR_TREE_PATH_MAX + 1]; /* its path; "" is work_fd */
};

/* A file of the cache. The server may be away for a while. */
static weir_status get(struct unpack *u, const char *sha256, int64_t bytes, int *out_fd,
                       struct weir_error *err)
{
    struct weir_backoff backoff = {.base_ms = 200, .max_ms = 5000};
    for (;;) {
        weir_status status = code_cache_get(&u->cache, u->client, sha256, bytes, out_fd, err);
        if (status == WEIR_OK || !weir_client_can_retry(status) || prepare_is_stopped(u->prepare) ||
            weir_mono_ms() >= u->prepare->deadline_ms) {
            return status;
        }
        if (!u->has_told) {
            u->has_told = true;
            weir_log(WEIR_LOG_WARN, "code_not_fetched_yet", WEIR_KV_STR("blob", sha256),
                     WEIR_KV_STR("error", err->message));
        }
        (void)poll(NULL, 0, (int)weir_backoff_next_ms(&backoff));
    }
}

/* Into the folder of a path, which is made. No part of it is a link: only this process has written there. */
static weir_status enter_parent(struct unpack *u, const char *path, struct weir_error *err)
{
    const char *slash = strrchr(path, '/');
    size_t len = slash != NULL ? (size_t)(slash - path) : 0;
    if (strncmp(u->dir, path, len) == 0 && u->dir[len] == '\0') {
        return WEIR_OK;
    }
    int fd = dup(u->work_fd);
    for (const char *part = path; fd >= 0 && part < path + len;) {
        char name[256];
        size_t part_len = strcspn(part, "/");
        (void)snprintf(name, sizeof name, "%.*s", (int)part_len, part);
        (void)mkdirat(fd, name, 0700);
        int next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int errno_value = errno;
        close(fd);
        errno = errno_value;
        fd = next;
        part += part_len + 1;
    }
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "cannot make the folder of %s", path);
    }
    close(u->dir_fd);
    u->dir_fd = fd;
    memcpy(u->dir, path, len);
    u->dir[len] = '\0';
    return WEIR_OK;
}

static weir_status copy_bytes(int from, int to, struct weir_error *err)
{
    char bytes[COPY_BYTES];
    ssize_t n;
    if (ioctl(to, FICLONE, from) == 0) {
        return WEIR_OK;
    }
    while ((n = copy_file_range(from, NULL, to, NULL, (size_t)1 << 30, 0)) > 0) {
    }
    if (n == 0) {
        return WEIR_OK;
    }
    if (lseek(from, 0, SEEK_SET) != 0 || ftruncate(to, 0) != 0 || lseek(to, 0, SEEK_SET) != 0) {
        return weir_error_set_errno(err, errno, "cannot copy a file");
    }
    while ((n = read(from, bytes, sizeof bytes)) > 0) {
        WEIR_TRY(weir_fd_write_all(to, bytes, (size_t)n, err));
    }
    return n == 0 ? WEIR_OK : weir_error_set_errno(err, errno, "cannot read a file");
}

static weir_status unpack_file(struct unpack *u, const struct weir_tree_entry *entry,
                               const char *name, struct weir_error *err)
{
    WEIR_AUTO(weir_fd_auto_close) int from = -1;
    WEIR_TRY(get(u, entry->sha256, entry->bytes, &from, err));
    (void)unlinkat(u->work_fd, PART, 0);
    int to = openat(u->work_fd, PART, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    entry->kind == WEIR_TREE_PROGRAM ? 0700 : 0600);
    if (to < 0) {
        return weir_error_set_errno(err, errno, "cannot make %s", entry->path);
    }
    weir_status status = copy_bytes(from, to, err);
    int errno_value = close(to) == 0 ? 0 : errno;
    WEIR_TRY(status);
    if (errno_value != 0) {
        return weir_error_set_errno(err, errno_value, "cannot write %s", entry->path);
    }
    return renameat(u->work_fd, PART, u->dir_fd, name) == 0
               ? WEIR_OK
               : weir_error_set_errno(err, errno, "cannot make %s", entry->path);
}

static weir_status unpack_link(struct unpack *u, const struct weir_tree_entry *entry,
                               const char *name, struct weir_error *err)
{
    (void)unlinkat(u->dir_fd, name, 0);
    return symlinkat(entry->target, u->dir_fd, name) == 0
               ? WEIR_OK
               : weir_error_set_errno(err, errno, "cannot make the link %s", entry->path);
}

/* Files first: nothing is then written through a link, whatever an earlier try left. */
static weir_status unpack_tree(struct unpack *u, const struct weir_tree *tree,
                               struct weir_error *err)
{
    for (int is_link = 0; is_link < 2; is_link++) {
        for (size_t i = 0; i < tree->n; i++) {
            const struct weir_tree_entry *entry = &tree->entries[i];
            const char *slash = strrchr(entry->path, '/');
            const char *name = slash != NULL ? slash + 1 : entry->path;
            if ((entry->kind == WEIR_TREE_LINK) != (is_link == 1)) {
                continue;
            }
            if (prepare_is_stopped(u->prepare)) {
                return weir_error_set(err, WEIR_ERR_CANCELLED, "stopped");
            }
            WEIR_TRY(enter_parent(u, entry->path, err));
            WEIR_TRY(is_link ? unpack_link(u, entry, name, err) : unpack_file(u, entry, name, err));
        }
    }
    return WEIR_OK;
}

static weir_status read_manifest(struct unpack *u, const char *sha256, struct weir_tree *out,
                                 struct weir_error *err)
{
    char path[64];
    char *text;
    size_t len;
    int fd;
    WEIR_TRY(get(u, sha256, -1, &fd, err));
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    weir_status status =
        weir_file_read(path, WEIR_TREE_TEXT_MAX, u->prepare->arena, &text, &len, err);
    close(fd);
    WEIR_TRY(status);
    return weir_tree_parse(text, len, u->prepare->arena, out, err);
}

static weir_status unpack_manifest(struct unpack *u, const char *sha256, struct weir_error *err)
{
    struct weir_tree tree;
    char work[TASK_PATH_BYTES];
    if (strlen(sha256) != 64 || strspn(sha256, "0123456789abcdef") != 64) {
        return weir_error_set(err, WEIR_ERR_INVALID, "task $.code.manifest: expected a SHA-256");
    }
    WEIR_TRY(read_manifest(u, sha256, &tree, err));
    u->work_fd = open(task_path(work, u->prepare->dir, "work"),
                      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    u->dir_fd = dup(u->work_fd);
    if (u->work_fd < 0 || u->dir_fd < 0) {
        return weir_error_set_errno(err, errno, "cannot open %s", work);
    }
    return unpack_tree(u, &tree, err);
}

weir_status prepare_code(struct prepare *prepare, struct weir_error *err)
{
    struct unpack u = {.prepare = prepare, .work_fd = -1, .dir_fd = -1};
    const char *manifest = text_of(json_object_get(prepare->document, "code"), "manifest");
    if (manifest == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(code_cache_open(prepare->dir, text_of(prepare->document, "project"), prepare->arena,
                             &u.cache, err));
    code_cache_sweep(&u.cache, weir_time_ms() / 1000);
    WEIR_TRY(prepare_client(prepare, &u.client, err));
    weir_status status = unpack_manifest(&u, manifest, err);
    code_cache_sweep(&u.cache, weir_time_ms() / 1000);
    if (u.work_fd >= 0) {
        close(u.work_fd);
    }
    if (u.dir_fd >= 0) {
        close(u.dir_fd);
    }
    return status;
}

/* ---- its output --------------------------------------------------------------------------------- */

/* A preparation of an ION writes into the folder of its dataset instead. Weir's own programs do not keep
 * to the variable: to them it is their option `output`, as the environment has it. */
weir_status prepare_output(struct prepare *prepare, struct weir_error *err)
{
    char path[TASK_PATH_BYTES];
    if (!json_is_true(json_object_get(prepare->document, "is_tracked")) ||
        prepare_get_env(prepare, "WEIR_OUTPUT") != NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_dir_make(task_path(path, prepare->dir, "work/" OUTPUT_FOLDER), 0700, err));
    prepare_env(prepare, "WEIR_OUTPUT", path);
    return WEIR_OK;
}

/* ---- what runs in front of the program ---------------------------------------------------------- */

static size_t count(char *const words[])
{
    size_t n = 0;
    while (words[n] != NULL) {
        n++;
    }
    return n;
}

/* `front`, then the program. */
static void put_in_front(struct prepare *prepare, const char *const *front, size_t n_front)
{
    struct task *task = prepare->task;
    size_t n = count(task->argv);
    char **argv = WEIR_ARENA_ARRAY(prepare->arena, n_front + n + 1, char *);
    for (size_t i = 0; i < n_front; i++) {
        argv[i] = weir_arena_strdup(prepare->arena, front[i]);
    }
    for (size_t i = 0; i < n; i++) {
        argv[n_front + i] = task->argv[i];
    }
    argv[n_front] = (char *)(uintptr_t)launch_program(task, prepare->arena);
    task->argv = argv;
}

static char *script(struct prepare *prepare, const char *from, const char *end)
{
    return weir_arena_memdup(prepare->arena, from, (size_t)(end - from));
}

static weir_status add_python(struct prepare *prepare, const char *requirements,
                              struct weir_error *err)
{
    char path[TASK_PATH_BYTES];
    struct code_cache cache;
    struct task *task = prepare->task;
    WEIR_TRY(code_cache_open(prepare->dir, text_of(prepare->document, "project"), prepare->arena,
                             &cache, err));
    code_cache_sweep(&cache, weir_time_ms() / 1000);
    WEIR_TRY(weir_file_write(task_path(path, prepare->dir, "work/" REQUIREMENTS), requirements,
                             strlen(requirements), 0600, err));
    task->sandbox.cache_dir = cache.python_dir;
    const char *const front[] = {"python3", "-c",
                                 script(prepare, prepare_python_py, prepare_python_py_end),
                                 cache.python_dir, task->image != NULL ? task->image : ""};
    put_in_front(prepare, front, WEIR_ARRAY_LEN(front));
    return WEIR_OK;
}

/* The last step: what others put in place of the program runs behind these. */
weir_status prepare_environment(struct prepare *prepare, struct weir_error *err)
{
    const json_t *code = json_object_get(prepare->document, "code");
    const char *git = text_of(code, "git"), *commit = text_of(code, "commit");
    const char *python = text_of(prepare->document, "python");
    if (python != NULL && python[0] != '\0') {
        WEIR_TRY(add_python(prepare, python, err));
    }
    if (git != NULL && commit != NULL) {
        const char *const front[] = {
            "/bin/sh", "-c", script(prepare, prepare_git_sh, prepare_git_sh_end),
            "weir",    git,  commit};
        put_in_front(prepare, front, WEIR_ARRAY_LEN(front));
    }
    return WEIR_OK;
}
