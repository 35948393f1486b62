#include "endpoint/door/command.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/spawn.h"
#include "predict/door.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PATH_BYTES   4300
#define EXIT_FIRST   10 /* repeated, late, refused: one after the other */
#define EXIT_REFUSED 12

struct door {
    char path[PATH_BYTES];
    char *folder;
};

static weir_status open_program(const struct door_config *config, struct door **out,
                                struct weir_error *err)
{
    const struct weir_door_command *options = config->options;
    const char *folder =
        config->spec->door_programs != NULL ? config->spec->door_programs : WEIR_DOOR_PROGRAMS;
    struct door *door = weir_xalloc(sizeof *door);
    *door = (struct door){.folder = weir_xstrdup(folder)};
    int n = snprintf(door->path, sizeof door->path, "%s/%s", folder, options->program);
    if (n < 0 || (size_t)n >= sizeof door->path) {
        free(door->folder);
        free(door);
        return weir_error_set(err, WEIR_ERR_INVALID, "--door-programs: the path is too long");
    }
    *out = door;
    return WEIR_OK;
}

/* Only what its operator has put there: nobody but its owner may write it, and its owner is not a task. */
static weir_status check_own(const char *path, bool is_folder, struct weir_error *err)
{
    struct stat info;
    if (stat(path, &info) != 0) {
        return weir_error_set_errno(err, errno, "%s", path);
    }
    bool is_mine = info.st_uid == geteuid() && geteuid() != 0;
    bool is_kind = is_folder ? S_ISDIR(info.st_mode) : S_ISREG(info.st_mode);
    return is_kind && !is_mine && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_DENIED,
                                "%s: programs of doors, and their folder, are root's, and nobody "
                                "else can write them",
                                path);
}

static weir_status start(const struct door *door, int *out_in, pid_t *out_pid,
                         struct weir_error *err)
{
    int ends[2];
    char *argv[] = {(char *)door->path, NULL};
    WEIR_TRY(check_own(door->folder, true, err));
    WEIR_TRY(check_own(door->path, false, err));
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return weir_error_set_errno(err, errno, "a pipe");
    }
    const struct weir_spawn spawn = {.argv = argv,
                                     .in = ends[0],
                                     .out = WEIR_SPAWN_NULL,
                                     .said = WEIR_SPAWN_NULL,
                                     .place = WEIR_SPAWN_GROUP};
    weir_status status = weir_spawn_start(&spawn, out_pid, err);
    (void)close(ends[0]);
    if (status != WEIR_OK) {
        (void)close(ends[1]);
        return status;
    }
    *out_in = ends[1];
    return WEIR_OK;
}

/* @return It has ended by then. */
static bool ends_within(pid_t pid, int64_t timeout_ms)
{
    int64_t until_ms = weir_mono_ms() + timeout_ms, left_ms = timeout_ms;
    struct pollfd end = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
    int n_ready = 0;
    while (end.fd >= 0 && n_ready == 0 && left_ms >= 0) {
        n_ready = poll(&end, 1, (int)left_ms);
        n_ready = n_ready < 0 && errno == EINTR ? 0 : n_ready;
        left_ms = until_ms - weir_mono_ms();
        left_ms = n_ready == 0 && left_ms <= 0 ? -1 : left_ms;
    }
    if (end.fd >= 0) {
        (void)close(end.fd);
    }
    return n_ready > 0;
}

/* A command fits into a pipe: writing it waits for nobody. A program that does not read it has its reasons. */
static void write_command(int in, const char *text)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    const char *line = weir_arena_printf(&arena, "%s\n", text);
    (void)fcntl(in, F_SETFL, O_NONBLOCK);
    ssize_t n = write(in, line, strlen(line));
    (void)n;
    (void)close(in);
    weir_arena_fini(&arena);
}

static void judge(int exit_status, struct door_answer *answer)
{
    bool is_word = exit_status >= EXIT_FIRST && exit_status <= EXIT_REFUSED;
    answer->word = exit_status == 0 ? DOOR_DONE
                   : is_word        ? (enum door_word)(DOOR_REPEATED + exit_status - EXIT_FIRST)
                                    : DOOR_JAMMED;
    answer->at_ms = weir_time_ms();
    if (answer->word == DOOR_JAMMED) {
        (void)snprintf(answer->said, sizeof answer->said, "its program ended with exit status %d",
                       exit_status);
    }
}

/* Once it runs it may have opened: it is not started again. */
static weir_status send_command(struct door *door, const struct door_command *command,
                                int64_t timeout_ms, struct door_answer *answer,
                                struct weir_error *err)
{
    pid_t pid = 0;
    int in = -1;
    weir_status status = start(door, &in, &pid, err);
    if (status == WEIR_ERR_DENIED) {
        answer->word = DOOR_REFUSED;
        (void)snprintf(answer->said, sizeof answer->said, "%.*s", DOOR_SAID_BYTES - 1,
                       err->message);
        return WEIR_OK;
    }
    WEIR_TRY(status);
    write_command(in, command->text);
    if (ends_within(pid, timeout_ms)) {
        judge(weir_spawn_wait(pid), answer);
        return WEIR_OK;
    }
    (void)kill(-pid, SIGKILL);
    (void)weir_spawn_wait(pid);
    answer->word = DOOR_JAMMED;
    (void)snprintf(answer->said, sizeof answer->said, "its program did not end within %lld ms",
                   (long long)timeout_ms);
    return WEIR_OK;
}

static void close_program(struct door *door)
{
    free(door->folder);
    free(door);
}

const struct door_ops door_command = {
    .open = open_program, .send = send_command, .close = close_program};
