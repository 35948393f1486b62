#include "agent/supervise/carry.h"

#include "agent/code/places.h"
#include "agent/supervise/carry_lock.h"
#include "agent/supervise/carry_look.h"
#include "agent/supervise/helper.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NICE       10
#define HELD_MAX   256 /* files that are open from the look to the end */
#define READ_MAX   ((size_t)1 << 20)
#define MS_NS      INT64_C(1000000)
#define RETRY_MIN  500
#define RETRY_MAX  15000
#define LOOK_SHARE 50 /* looks take at most this part of the time */
#define ROUNDS     3  /* for parts that others took meanwhile */
#define WHY_BYTES  400

/** What the child says at its end. */
struct said {
    int64_t n_files, bytes;
    bool is_all;
    char why[WHY_BYTES];
};

/** In the child. */
struct bringing {
    const struct carry *carry;
    struct weir_client *client;
    int64_t restless_since_ms; /* the folder has had no quiet moment since; 0: it had */
    bool is_ending;
    struct said said;
};

/** One file of a change. */
struct load {
    const struct carry_file *file;
    int fd; /* -1: it is opened again */
    char part[WEIR_SHA256_TEXT_BYTES + 17];
};

/* ---- in the child: one file -------------------------------------------------------------------- */

static bool is_file(int fd, const struct carry_file *file)
{
    struct stat info;
    return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size == file->bytes &&
           (int64_t)info.st_ino == file->number &&
           (int64_t)info.st_mtim.tv_sec * 1000 * MS_NS + info.st_mtim.tv_nsec == file->changed_ns;
}

static weir_status changed(const char *path, struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_CONFLICT, "%.200s changed while it was read", path);
}

static weir_status open_load(int folder_fd, struct load *load, int *out_fd, struct weir_error *err)
{
    int fd = load->fd >= 0 ? load->fd : helper_open_beneath(folder_fd, load->file->path, 0);
    if (fd < 0 || !is_file(fd, load->file)) {
        if (fd >= 0 && fd != load->fd) {
            close(fd);
        }
        return changed(load->file->path, err);
    }
    *out_fd = fd;
    return WEIR_OK;
}

static void close_load(const struct load *load, int fd)
{
    if (fd != load->fd) {
        close(fd);
    }
}

/* SHA-256 of its bytes, and something of its path: two files of the same bytes are two parts. */
static weir_status name_part(int fd, struct load *load, struct weir_error *err)
{
    static char bytes[READ_MAX];
    struct weir_sha256_stream hash;
    char sha256[WEIR_SHA256_TEXT_BYTES], path[WEIR_SHA256_TEXT_BYTES];
    ssize_t n;
    off_t at = 0;
    weir_sha256_begin(&hash);
    while ((n = pread(fd, bytes, sizeof bytes, at)) > 0) {
        weir_sha256_add(&hash, bytes, (size_t)n);
        at += n;
    }
    weir_sha256_end(&hash, sha256);
    weir_sha256(load->file->path, strlen(load->file->path), path);
    (void)snprintf(load->part, sizeof load->part, "%s-%.15s", sha256, path);
    return n == 0 && is_file(fd, load->file) ? WEIR_OK : changed(load->file->path, err);
}

static weir_status send_part(struct bringing *b, int folder_fd, struct load *load,
                             struct weir_arena *arena, struct weir_error *err)
{
    int fd;
    char file[64];
    const char *values[] = {b->carry->job, load->part};
    const char *url = weir_client_path(arena, "/api/v1/jobs/{}/checkpoint/parts/{}", values, 2);
    WEIR_TRY(open_load(folder_fd, load, &fd, err));
    (void)snprintf(file, sizeof file, "/proc/self/fd/%d", fd);
    weir_status status =
        weir_client_send_file(b->client, "PUT", url, "application/octet-stream", file, NULL, err);
    bool is_same = is_file(fd, load->file);
    close_load(load, fd);
    return status == WEIR_ERR_CORRUPT && !is_same ? changed(load->file->path, err) : status;
}

/* ---- in the child: one change ------------------------------------------------------------------ */

static json_t *change_body(const struct carry_change *change, const struct load *loads)
{
    json_t *puts = json_array(), *removed = json_array();
    for (size_t i = 0; i < change->n_puts; i++) {
        json_array_append_new(
            puts, json_pack("{s:s,s:s}", "path", loads[i].file->path, "part", loads[i].part));
    }
    for (size_t i = 0; i < change->n_removed; i++) {
        json_array_append_new(removed, json_string(change->removed[i]));
    }
    return json_pack("{s:o,s:o}", "put", puts, "remove", removed);
}

static bool is_missing(const json_t *missing, const char *part)
{
    size_t i;
    const json_t *item;
    json_array_foreach(missing, i, item)
    {
        if (strcmp(json_string_value(item) != NULL ? json_string_value(item) : "", part) == 0) {
            return true;
        }
    }
    return false;
}

static weir_status send_change(struct bringing *b, int folder_fd, const struct carry_change *change,
                               struct load *loads, struct carry_record *record,
                               struct weir_arena *arena, struct weir_error *err)
{
    const char *url = weir_client_path(arena, "/api/v1/jobs/{}/checkpoint", &b->carry->job, 1);
    WEIR_AUTO(weir_json_auto_free) json_t *body = change_body(change, loads);
    for (int round = 0; round < ROUNDS; round++) {
        WEIR_AUTO(weir_json_auto_free) json_t *answer = NULL;
        WEIR_TRY(weir_client_call(b->client, "POST", url, body, &answer, err));
        const json_t *missing = json_object_get(answer, "missing");
        if (json_array_size(missing) == 0) {
            const char *version = json_string_value(json_object_get(answer, "version"));
            (void)snprintf(record->version, sizeof record->version, "%s",
                           version != NULL ? version : "");
            return WEIR_OK;
        }
        for (size_t i = 0; i < change->n_puts; i++) {
            if (is_missing(missing, loads[i].part)) {
                WEIR_TRY(send_part(b, folder_fd, &loads[i], arena, err));
                b->said.bytes += loads[i].file->bytes;
            }
        }
    }
    return weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                          "the server does not keep the parts it is sent");
}

static weir_status read_and_send(struct bringing *b, int folder_fd,
                                 const struct carry_change *change, struct load *loads,
                                 struct carry_record *record, struct weir_arena *arena,
                                 struct weir_error *err)
{
    for (size_t i = 0; i < change->n_puts; i++) {
        int fd;
        WEIR_TRY(open_load(folder_fd, &loads[i], &fd, err));
        weir_status status = name_part(fd, &loads[i], err);
        close_load(&loads[i], fd);
        WEIR_TRY(status);
    }
    return send_change(b, folder_fd, change, loads, record, arena, err);
}

/* All are opened before the first is read: what is replaced meanwhile is there as it was. */
static weir_status bring_change(struct bringing *b, int folder_fd,
                                const struct carry_change *change, struct carry_record *record,
                                struct weir_arena *arena, struct weir_error *err)
{
    struct load *loads = WEIR_ARENA_ARRAY(arena, change->n_puts + 1, struct load);
    for (size_t i = 0; i < change->n_puts; i++) {
        loads[i] = (struct load){.file = &change->puts[i], .fd = -1};
        if (i < HELD_MAX) {
            loads[i].fd = helper_open_beneath(folder_fd, change->puts[i].path, 0);
        }
    }
    weir_status status = read_and_send(b, folder_fd, change, loads, record, arena, err);
    for (size_t i = 0; i < change->n_puts; i++) {
        if (loads[i].fd >= 0) {
            close(loads[i].fd);
        }
    }
    return status;
}

/* What may be brought now; false: nothing yet. The look is over. */
static bool choose(struct bringing *b, const struct carry_view *view, struct carry_change *change)
{
    int64_t now_ms = weir_mono_ms(), now_ns = weir_time_ms() * MS_NS;
    int64_t since_ns = now_ns - b->carry->quiet_ms * MS_NS;
    struct carry_change quiet = *change;
    if (b->is_ending || b->carry->quiet_ms == 0) {
        return true;
    }
    bool is_quiet = !carry_is_young(view->folders_changed_ns, since_ns, now_ns);
    if (carry_leave_young(&quiet, since_ns, now_ns) == 0 && is_quiet) {
        b->restless_since_ms = 0;
        return true;
    }
    b->restless_since_ms = b->restless_since_ms > 0 ? b->restless_since_ms : now_ms;
    if (now_ms - b->restless_since_ms < CARRY_PATIENCE_MS) {
        return false;
    }
    change->n_puts = quiet.n_puts;
    return true;
}

/* The lock is held. *out_is_all: the server has it all then. */
static weir_status look_and_bring(struct bringing *b, struct weir_arena *arena, bool *out_is_all,
                                  struct weir_error *err)
{
    const char *folder = b->carry->folder;
    struct carry_record record;
    struct carry_view view;
    struct carry_change change;
    WEIR_AUTO(weir_fd_auto_close)
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        *out_is_all = errno == ENOENT;
        return *out_is_all ? WEIR_OK : weir_error_set_errno(err, errno, "cannot open %s", folder);
    }
    carry_record_read(folder, arena, &record);
    WEIR_TRY(carry_look(fd, b->carry->is_atomic, arena, &view, err));
    carry_compare(&record, &view, arena, &change);
    *out_is_all = change.n_puts + change.n_removed == 0;
    if (*out_is_all || !choose(b, &view, &change)) {
        return WEIR_OK;
    }
    WEIR_TRY(bring_change(b, fd, &change, &record, arena, err));
    b->said.n_files += (int64_t)change.n_puts;
    carry_record_apply(&record, &change, arena);
    return carry_record_write(folder, &record, err);
}

static weir_status bring(struct bringing *b, bool *out_is_all, struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    WEIR_AUTO(weir_fd_auto_close)
    int lock_fd = carry_lock(b->carry->folder, CARRY_LOCK, LOCK_EX | LOCK_NB);
    int errno_value = errno;
    weir_arena_init(&arena, 0);
    *out_is_all = false;
    if (lock_fd < 0) {
        return errno_value == EWOULDBLOCK
                   ? weir_error_set(err, WEIR_ERR_CONFLICT, "another task of the job is at it")
                   : weir_error_set_errno(err, errno_value, "cannot lock %s", b->carry->folder);
    }
    if (b->client == NULL) {
        WEIR_TRY(weir_client_open(&(struct weir_client_config){.server = b->carry->server,
                                                               .token = b->carry->token,
                                                               .ca_file = b->carry->ca_file},
                                  &b->client, err));
    }
    return look_and_bring(b, &arena, out_is_all, err);
}

/* ---- the child --------------------------------------------------------------------------------- */

/* True: the program has ended. */
static bool wait_for_end(int finish_fd, int64_t timeout_ms)
{
    struct pollfd end = {.fd = finish_fd, .events = POLLIN};
    return poll(&end, 1, (int)timeout_ms) > 0;
}

/* Each sentence once. */
static void tell(struct bringing *b, const struct weir_error *err)
{
    if (strncmp(b->said.why, err->message, WHY_BYTES - 1) != 0) {
        (void)snprintf(b->said.why, sizeof b->said.why, "%.*s", WHY_BYTES - 1, err->message);
        weir_log(WEIR_LOG_WARN, "checkpoint_not_brought", WEIR_KV_STR("error", err->message));
    }
}

static void bring_until_end(struct bringing *b, int finish_fd)
{
    struct weir_backoff backoff = {.base_ms = RETRY_MIN, .max_ms = RETRY_MAX};
    int64_t wait_ms = b->carry->tick_ms;
    bool is_all;
    while (!wait_for_end(finish_fd, wait_ms)) {
        struct weir_error err = {0};
        int64_t began_ms = weir_mono_ms();
        weir_status status = bring(b, &is_all, &err);
        if (status != WEIR_OK && status != WEIR_ERR_CONFLICT) {
            tell(b, &err);
            wait_ms = weir_backoff_next_ms(&backoff);
        } else {
            weir_backoff_reset(&backoff);
            wait_ms = is_all ? LOOK_SHARE * (weir_mono_ms() - began_ms) : 0;
            wait_ms = WEIR_MIN(WEIR_MAX(wait_ms, b->carry->tick_ms), (int64_t)RETRY_MAX);
        }
    }
}

static void bring_rest(struct bringing *b)
{
    struct weir_backoff backoff = {.base_ms = RETRY_MIN, .max_ms = RETRY_MAX};
    int64_t give_up_ms = weir_mono_ms() + CARRY_END_MS;
    b->is_ending = true;
    for (;;) {
        struct weir_error err = {0};
        weir_status status = bring(b, &b->said.is_all, &err);
        bool can_retry =
            status == WEIR_OK || status == WEIR_ERR_CONFLICT || weir_client_can_retry(status);
        if (status != WEIR_OK) {
            tell(b, &err);
        }
        if (b->said.is_all || !can_retry || weir_mono_ms() >= give_up_ms) {
            return;
        }
        if (status != WEIR_OK) {
            (void)poll(NULL, 0, (int)weir_backoff_next_ms(&backoff));
        }
    }
}

static _Noreturn void child_main(const struct carry *carry, int finish_fd, int said_fd,
                                 pid_t parent)
{
    struct bringing b = {.carry = carry};
    (void)prctl(PR_SET_NAME, "weir-carry", 0, 0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || dup2(finish_fd, 3) != 3 || dup2(said_fd, 4) != 4 ||
        close_range(5, ~0U, 0) != 0) { /* locks and pipes of the supervisor are not to be held */
        _exit(1);
    }
    (void)setpriority(PRIO_PROCESS, 0, NICE);
    bring_until_end(&b, 3);
    bring_rest(&b);
    (void)!write(4, &b.said, sizeof b.said);
    _exit(0);
}

/* ---- in the supervisor ------------------------------------------------------------------------- */

void carry_read(const char *dir, const json_t *document, const struct task *task,
                struct weir_arena *arena, struct carry *out)
{
    struct places places;
    const json_t *node = json_object_get(document, "surroundings");
    places_find(dir, document, arena, &places);
    *out = (struct carry){
        .folder = places_checkpoint(&places, document, task, arena),
        .is_atomic = json_object_get(document, "checkpoint") == NULL,
        .tick_ms = CARRY_TICK_MS,
        .job = task->job,
        .token = json_string_value(json_object_get(json_object_get(document, "files"), "token")),
        .server = json_string_value(json_object_get(node, "server")),
        .ca_file = json_string_value(json_object_get(node, "ca_file")),
        .used_fd = -1,
        .finish_fd = -1,
        .said_fd = -1};
    out->quiet_ms = out->is_atomic ? 0 : CARRY_QUIET_MS;
    if (task->job == NULL || out->token == NULL || out->server == NULL) {
        out->folder = NULL; /* it reports to nobody */
    }
}

void carry_start(struct carry *carry)
{
    int finish[2], said[2];
    pid_t parent = getpid();
    if (carry->folder == NULL || pipe2(finish, O_CLOEXEC) != 0) {
        return;
    }
    if (pipe2(said, O_CLOEXEC) != 0) {
        close(finish[0]);
        close(finish[1]);
        return;
    }
    /* Out of the way of what the child makes of them. */
    int finish_fd = fcntl(finish[0], F_DUPFD_CLOEXEC, 5),
        said_fd = fcntl(said[1], F_DUPFD_CLOEXEC, 5);
    pid_t pid = finish_fd >= 0 && said_fd >= 0 ? fork() : -1;
    if (pid == 0) {
        close(finish[1]); /* else it would never see the end of it */
        child_main(carry, finish_fd, said_fd, parent);
    }
    const int not_ours[] = {finish[0], said[1], finish_fd, said_fd};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(not_ours); i++) {
        if (not_ours[i] >= 0) {
            close(not_ours[i]);
        }
    }
    if (pid < 0) {
        close(finish[1]);
        close(said[0]);
        return;
    }
    carry->pid = pid;
    carry->finish_fd = finish[1];
    carry->said_fd = said[0];
}

void carry_note_end(struct carry *carry, pid_t pid)
{
    if (pid > 0 && pid == carry->pid) {
        close(carry->finish_fd);
        close(carry->said_fd);
        carry->pid = 0;
    }
}

/* Where several end at a time, one at least finds that it is the last: each lets go before it looks. */
static bool is_last(struct carry *carry)
{
    if (carry->used_fd >= 0) {
        (void)flock(carry->used_fd, LOCK_UN); /* a child that has just begun may have it open yet */
        close(carry->used_fd);
    }
    carry->used_fd = carry_lock(carry->folder, CARRY_USED, LOCK_EX | LOCK_NB);
    if (carry->used_fd < 0) {
        return false;
    }
    carry_lock_share(carry->used_fd);
    return true;
}

/* Nothing is there that the server has not, and nobody has come to use it. */
static void remove_folder(const struct carry *carry)
{
    static const char *const beside[] = {"", ".json", CARRY_USED, CARRY_LOCK};
    int lock_fd = carry_lock(carry->folder, CARRY_LOCK, LOCK_EX | LOCK_NB);
    if (lock_fd < 0) {
        return;
    }
    if (carry_lock_is_alone(carry->used_fd)) {
        for (size_t i = 0; i < WEIR_ARRAY_LEN(beside); i++) {
            char path[TASK_PATH_BYTES];
            struct weir_error err;
            (void)snprintf(path, sizeof path, "%s%s", carry->folder, beside[i]);
            if (weir_dir_remove(path, &err) != WEIR_OK) {
                weir_log(WEIR_LOG_WARN, "checkpoint_not_removed",
                         WEIR_KV_STR("error", err.message));
            }
        }
    }
    close(lock_fd);
}

static void end_child(struct carry *carry)
{
    if (carry->pid > 0) {
        (void)kill(carry->pid, SIGKILL);
        (void)waitpid(carry->pid, NULL, 0);
        carry_note_end(carry, carry->pid);
    }
}

static void describe(const struct carry *carry, const struct said *said, char out[CARRY_LINE_BYTES])
{
    out[0] = '\0';
    if (!said->is_all) {
        (void)snprintf(
            out, CARRY_LINE_BYTES,
            "weir: what was written last in the folder of checkpoints is not with the server, "
            "and stays on this node alone, in %.300s%s%.380s",
            carry->folder, said->why[0] != '\0' ? ": " : "", said->why);
    } else if (said->n_files > 0) {
        (void)snprintf(out, CARRY_LINE_BYTES,
                       "weir: %lld %s of the folder of checkpoints brought to the server",
                       (long long)said->n_files, said->n_files == 1 ? "file" : "files");
    }
}

void carry_finish(struct carry *carry, bool (*must_end)(void *context), void *context,
                  char out_line[CARRY_LINE_BYTES])
{
    struct said said = {0};
    out_line[0] = '\0';
    if (carry->folder == NULL) {
        return;
    }
    if (!is_last(carry)) { /* those who use it yet bring the rest */
        end_child(carry);
        return;
    }
    if (carry->pid == 0) {
        carry_start(carry);
    }
    if (carry->pid > 0) {
        close(carry->finish_fd);
        if (!helper_wait(carry->pid, carry->said_fd, must_end, context, &said, sizeof said)) {
            said = (struct said){.why = "there was no time to send it"};
        }
        close(carry->said_fd);
        carry->pid = 0;
    }
    describe(carry, &said, out_line);
    if (said.is_all) {
        remove_folder(carry);
    }
    close(carry->used_fd);
    carry->used_fd = -1;
}
