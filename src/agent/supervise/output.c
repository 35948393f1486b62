#include "agent/supervise/output.h"

#include "agent/supervise/helper.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/tree.h"
#include "client/client.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define SENT        "output.sent"
#define SENT_MAX    ((size_t)OUTPUT_FILES_MAX * 300)
#define RETRY_MIN   200
#define RETRY_MAX   10000
#define WHY_BYTES   400
#define ENTRIES_MAX 200000 /* looked at: files, folders and what is neither */

/** What the child says at its end. */
struct said {
    int64_t n_sent, n_before, n_not, bytes;
    char first[200], why[WHY_BYTES]; /* the first that was not sent, and why */
};

/** In the child. */
struct sending {
    const struct output *output;
    struct weir_client *client;
    struct weir_arena arena;
    char *before; /* lines of output.sent, with a newline in front */
    int sent_fd;
    size_t n_entries;
    int64_t bytes_seen;
    bool has_given_up;
    struct said said;
};

void output_read(const char *dir, const json_t *document, const struct task *task,
                 struct output *out)
{
    const json_t *node = json_object_get(document, "surroundings");
    *out = (struct output){
        .dir = dir,
        .run = json_string_value(json_object_get(json_object_get(document, "env"), "WEIR_RUN")),
        .token = json_string_value(json_object_get(json_object_get(document, "files"), "token")),
        .server = json_string_value(json_object_get(node, "server")),
        .ca_file = json_string_value(json_object_get(node, "ca_file")),
        .rank = task->rank,
        .max_bytes = task->disk_max_bytes};
}

static int open_folder(const char *dir)
{
    char path[TASK_PATH_BYTES];
    int work = open(task_path(path, dir, "work"), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int fd = work >= 0 ? helper_open_beneath(work, OUTPUT_FOLDER, O_DIRECTORY) : -1;
    if (work >= 0) {
        close(work);
    }
    return fd;
}

/* Also what is no folder is something: that it is not kept is to be said. */
bool output_is_there(const char *dir)
{
    char path[TASK_PATH_BYTES];
    struct stat info;
    int fd = open_folder(dir);
    if (fd < 0) {
        return lstat(task_path(path, dir, "work/" OUTPUT_FOLDER), &info) == 0;
    }
    DIR *folder = fdopendir(fd);
    bool is_there = false;
    for (struct dirent *entry = folder != NULL ? readdir(folder) : NULL; entry != NULL && !is_there;
         entry = readdir(folder)) {
        is_there = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    if (folder != NULL) {
        closedir(folder);
    } else {
        close(fd);
    }
    return is_there;
}

/* ---- in the child ------------------------------------------------------------------------------- */

static void note_not(struct sending *s, const char *path, const char *why)
{
    if (s->said.n_not++ == 0) {
        (void)snprintf(s->said.first, sizeof s->said.first, "%s", path);
        (void)snprintf(s->said.why, sizeof s->said.why, "%s", why);
    }
}

static bool was_sent(const struct sending *s, const char *path)
{
    const char *line = weir_arena_printf((struct weir_arena *)(uintptr_t)&s->arena, "\n%s\n", path);
    return s->before != NULL && strstr(s->before, line) != NULL;
}

/* "a/b c" as a path of a URL. */
static char *url_of(struct sending *s, const char *path)
{
    const char *run = s->output->run;
    char *url = weir_client_path(&s->arena, "/api/v1/runs/{}/artifacts", &run, 1);
    if (s->output->rank > 0) {
        url = weir_arena_printf(&s->arena, "%s/rank-%lld", url, (long long)s->output->rank);
    }
    while (*path != '\0') {
        size_t len = strcspn(path, "/");
        const char *part = weir_arena_memdup(&s->arena, path, len);
        url =
            weir_arena_printf(&s->arena, "%s%s", url, weir_client_path(&s->arena, "/{}", &part, 1));
        path += len + (path[len] == '/');
    }
    return url;
}

/* Until the server takes it, or says that it never will. */
static weir_status send_one(struct sending *s, int fd, const char *path, struct weir_error *err)
{
    char file[64];
    struct weir_backoff backoff = {.base_ms = RETRY_MIN, .max_ms = RETRY_MAX};
    int64_t give_up_ms = weir_mono_ms() + OUTPUT_PATIENCE_MS;
    const char *url = url_of(s, path);
    (void)snprintf(file, sizeof file, "/proc/self/fd/%d", fd);
    for (;;) {
        weir_status status = weir_client_send_file(s->client, "PUT", url,
                                                   "application/octet-stream", file, NULL, err);
        if (status == WEIR_OK || !weir_client_can_retry(status)) {
            return status;
        }
        if (weir_mono_ms() >= give_up_ms) {
            s->has_given_up = true;
            return status;
        }
        (void)poll(NULL, 0, (int)weir_backoff_next_ms(&backoff));
    }
}

/* One regular file. */
static void send_file(struct sending *s, int fd, const char *path, int64_t bytes)
{
    struct weir_error err = {0};
    s->bytes_seen += bytes;
    if (was_sent(s, path)) {
        s->said.n_before++;
        return;
    }
    if (s->output->max_bytes > 0 && s->bytes_seen > s->output->max_bytes) {
        note_not(s, path, "all together are longer than what the task may have of the disk");
        return;
    }
    weir_status status = send_one(s, fd, path, &err);
    if (status != WEIR_OK) {
        note_not(s, path, err.message);
        s->has_given_up = s->has_given_up || status == WEIR_ERR_UNAUTH;
        return;
    }
    s->said.n_sent++;
    s->said.bytes += bytes;
    (void)!write(s->sent_fd, path, strlen(path));
    (void)!write(s->sent_fd, "\n", 1);
}

static void send_folder(struct sending *s, int fd, const char *inside, int depth);

static void send_entry(struct sending *s, int folder_fd, const char *name, const char *inside,
                       int depth)
{
    struct stat info;
    char *path = weir_arena_printf(&s->arena, "%s%s%s", inside, inside[0] != '\0' ? "/" : "", name);
    if (++s->n_entries > ENTRIES_MAX || s->said.n_sent + s->said.n_before >= OUTPUT_FILES_MAX) {
        note_not(s, path, "there are more than 20000 files");
        s->has_given_up = true;
        return;
    }
    if (strchr(path, '\n') != NULL || strlen(path) > WEIR_TREE_PATH_MAX) {
        note_not(s, name, "its path is too long, or holds a line break");
        return;
    }
    int fd = helper_open_beneath(folder_fd, name, 0);
    if (fd < 0 || fstat(fd, &info) != 0) {
        note_not(s, path, errno == ELOOP ? "it is a link" : strerror(errno));
    } else if (S_ISDIR(info.st_mode) && depth < OUTPUT_DEPTH_MAX) {
        send_folder(s, fd, path, depth + 1);
    } else if (S_ISREG(info.st_mode)) {
        send_file(s, fd, path, (int64_t)info.st_size);
    } else {
        note_not(s, path, "it is no file, or lies too deep");
    }
    if (fd >= 0) {
        close(fd);
    }
}

static void send_folder(struct sending *s, int fd, const char *inside, int depth)
{
    int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = own >= 0 ? fdopendir(own) : NULL;
    if (dir == NULL) {
        note_not(s, inside, strerror(errno));
        if (own >= 0) {
            close(own);
        }
        return;
    }
    for (struct dirent *entry = readdir(dir); entry != NULL && !s->has_given_up;
         entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            send_entry(s, dirfd(dir), entry->d_name, inside, depth);
        }
    }
    closedir(dir);
}

static weir_status open_all(struct sending *s, struct weir_error *err)
{
    char path[TASK_PATH_BYTES], *text;
    size_t len;
    const struct output *output = s->output;
    (void)task_path(path, output->dir, SENT);
    if (weir_file_read(path, SENT_MAX, &s->arena, &text, &len, NULL) == WEIR_OK) {
        s->before = weir_arena_printf(&s->arena, "\n%s", text);
    }
    s->sent_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (s->sent_fd < 0) {
        return weir_error_set_errno(err, errno, "cannot write %s", path);
    }
    return weir_client_open(&(struct weir_client_config){.server = output->server,
                                                         .token = output->token,
                                                         .ca_file = output->ca_file},
                            &s->client, err);
}

static _Noreturn void child_main(const struct output *output, int said_fd)
{
    struct sending s = {.output = output, .sent_fd = -1};
    struct weir_error err = {0};
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    weir_arena_init(&s.arena, 0);
    int fd = open_folder(output->dir);
    if (fd < 0) {
        note_not(&s, OUTPUT_FOLDER,
                 errno == ELOOP || errno == ENOTDIR ? "it is a link or a file, and no folder"
                                                    : strerror(errno));
    } else if (open_all(&s, &err) != WEIR_OK) {
        note_not(&s, OUTPUT_FOLDER, err.message);
    } else {
        send_folder(&s, fd, "", 0);
    }
    (void)!write(said_fd, &s.said, sizeof s.said);
    _exit(0);
}

/* ---- in the supervisor -------------------------------------------------------------------------- */

static void describe(const struct output *output, const struct said *said,
                     char out[OUTPUT_LINE_BYTES])
{
    int64_t n = said->n_sent + said->n_before;
    int len = 0;
    out[0] = '\0';
    if (n > 0) {
        len = snprintf(out, OUTPUT_LINE_BYTES, "weir: %lld %s of output kept with run %.64s",
                       (long long)n, n == 1 ? "file" : "files", output->run);
    }
    if (said->n_not > 0) {
        (void)snprintf(out + len, OUTPUT_LINE_BYTES - (size_t)len,
                       "%sof output %lld not kept, first \"%.150s\": %.380s",
                       n > 0 ? "; " : "weir: ", (long long)said->n_not, said->first, said->why);
    }
}

void output_send(const struct output *output, bool (*must_end)(void *context), void *context,
                 char out_line[OUTPUT_LINE_BYTES])
{
    int fds[2];
    struct said said = {0};
    out_line[0] = '\0';
    if (output->run == NULL) {
        (void)snprintf(out_line, OUTPUT_LINE_BYTES,
                       "weir: the job has no run, so what lies in " OUTPUT_FOLDER " is not kept");
        return;
    }
    pid_t child = pipe2(fds, O_CLOEXEC) == 0 ? fork() : -1;
    if (child == 0) {
        close(fds[0]);
        child_main(output, fds[1]);
    }
    if (child < 0) {
        (void)snprintf(out_line, OUTPUT_LINE_BYTES, "weir: the output is not kept: %s",
                       strerror(errno));
        return;
    }
    close(fds[1]);
    if (helper_wait(child, fds[0], must_end, context, &said, sizeof said)) {
        describe(output, &said, out_line);
    } else {
        (void)snprintf(out_line, OUTPUT_LINE_BYTES,
                       "weir: the output was not sent to its end, and what is missing is not kept");
    }
    close(fds[0]);
}
