#include "device/finder.h"

#include "base/file.h"
#include "base/log.h"
#include "base/macros.h"
#include "base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROVIDERS_MAX 16
#define ERROR_BYTES   200
#define READ_BYTES    ((size_t)64 << 10)
#define READS_MAX     32 /* in one look */

/** What is known of one provider. */
struct known {
    json_t *devices;         /* As it told them last, or as bad ones. NULL: nothing yet. */
    char error[ERROR_BYTES]; /* "" if it found its devices. */
};

struct weir_finder {
    struct weir_finder_config config;
    pid_t child; /* 0: none */
    int fd;      /* -1: none */
    char *line;  /* WEIR_FINDER_LINE_MAX_BYTES */
    size_t line_len;
    int begun;             /* Provider that the child is at; -1: none. */
    int64_t begun_ms;      /* Since when. */
    int64_t not_before_ms; /* No new child before. */
    struct known known[PROVIDERS_MAX];
    char *signature; /* Identifiers and states of all, as they were told last. */
    bool is_complete;
};

struct weir_finder *weir_finder_create(const struct weir_finder_config *config)
{
    struct weir_finder *finder = weir_xalloc(sizeof *finder);
    *finder = (struct weir_finder){.config = *config, .fd = -1, .begun = -1};
    finder->line = weir_xalloc(WEIR_FINDER_LINE_MAX_BYTES);
    if (finder->config.deadline_ms == 0) {
        finder->config.deadline_ms = WEIR_FINDER_DEADLINE_MS;
    }
    if (finder->config.retry_ms == 0) {
        finder->config.retry_ms = WEIR_FINDER_RETRY_MS;
    }
    return finder;
}

static void close_pipe(struct weir_finder *finder)
{
    if (finder->fd >= 0) {
        (void)close(finder->fd);
    }
    finder->fd = -1;
    finder->line_len = 0;
    finder->begun = -1;
}

void weir_finder_destroy(struct weir_finder *finder)
{
    if (finder == NULL) {
        return;
    }
    if (finder->child > 0) {
        (void)kill(finder->child, SIGKILL);
        (void)waitpid(finder->child, NULL, WNOHANG); /* one that hangs is left to init */
    }
    close_pipe(finder);
    for (size_t i = 0; i < PROVIDERS_MAX; i++) {
        json_decref(finder->known[i].devices);
    }
    free(finder->signature);
    free(finder->line);
    free(finder);
}

int weir_finder_fd(const struct weir_finder *finder)
{
    return finder->fd;
}

/* ---- what is known --------------------------------------------------------------------------- */

static int provider_index(const json_t *name)
{
    for (size_t i = 0; i < weir_device_providers.n_kinds; i++) {
        if (json_is_string(name) &&
            strcmp(weir_device_providers.kinds[i]->name, json_string_value(name)) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static bool has_device(const json_t *devices, const json_t *id)
{
    size_t i;
    json_t *device;
    json_array_foreach(devices, i, device)
    {
        if (json_equal(json_object_get(device, "id"), id)) {
            return true;
        }
    }
    return false;
}

/* The provider failed: what was known of it stays, and is bad unless it was told just now. */
static void fail(struct known *known, const char *error, json_t *told)
{
    size_t i;
    json_t *device;
    json_t *devices = told != NULL ? told : json_array();
    json_array_foreach(known->devices, i, device)
    {
        if (!has_device(devices, json_object_get(device, "id"))) {
            json_t *bad = json_copy(device);
            json_object_set_new(bad, "state", json_string("bad"));
            json_object_set_new(bad, "reason", json_string(error));
            json_object_set_new(bad, "temperature_c", json_null());
            json_object_set_new(bad, "power_w", json_null());
            json_object_set_new(bad, "utilisation_pct", json_null());
            json_array_append_new(devices, bad);
        }
    }
    json_decref(known->devices);
    known->devices = devices;
    (void)snprintf(known->error, sizeof known->error, "%s", error);
}

static void take_line(struct weir_finder *finder, const char *text, size_t len, int64_t now_ms)
{
    struct weir_error err;
    json_t *line;
    if (weir_json_parse(text, len, "finder", &line, &err) != WEIR_OK) {
        return; /* a library wrote to standard output */
    }
    int begun = provider_index(json_object_get(line, "begin"));
    int told = provider_index(json_object_get(line, "provider"));
    json_t *devices = json_object_get(line, "devices");
    const char *error = json_string_value(json_object_get(line, "error"));
    if (begun >= 0) {
        finder->begun = begun;
        finder->begun_ms = now_ms;
    } else if (told >= 0 && json_is_array(devices)) {
        struct known *known = &finder->known[told];
        finder->begun = -1;
        finder->begun_ms = now_ms;
        if (error != NULL) {
            fail(known, error, json_incref(devices));
        } else {
            json_decref(known->devices);
            known->devices = json_incref(devices);
            known->error[0] = '\0';
        }
    }
    json_decref(line);
}

json_t *weir_finder_devices(const struct weir_finder *finder)
{
    json_t *all = json_array();
    for (size_t i = 0; i < weir_device_providers.n_kinds; i++) {
        json_array_extend(all, finder->known[i].devices);
    }
    return all;
}

json_t *weir_finder_errors(const struct weir_finder *finder)
{
    json_t *errors = json_object();
    for (size_t i = 0; i < weir_device_providers.n_kinds; i++) {
        if (finder->known[i].error[0] != '\0') {
            json_object_set_new(errors, weir_device_providers.kinds[i]->name,
                                json_string(finder->known[i].error));
        }
    }
    return errors;
}

bool weir_finder_is_complete(const struct weir_finder *finder)
{
    return finder->is_complete;
}

/* Has anything changed but measurements? */
static bool update_signature(struct weir_finder *finder)
{
    json_t *all = weir_finder_devices(finder), *states = json_array(), *device;
    size_t i;
    json_array_foreach(all, i, device)
    {
        json_array_append(states, json_object_get(device, "id"));
        json_array_append(states, json_object_get(device, "state"));
    }
    bool is_complete = true;
    for (i = 0; i < weir_device_providers.n_kinds; i++) {
        is_complete = is_complete && finder->known[i].devices != NULL;
    }
    char *signature = json_dumps(states, JSON_COMPACT);
    bool is_other =
        is_complete && (!finder->is_complete || signature == NULL || finder->signature == NULL ||
                        strcmp(signature, finder->signature) != 0);
    free(finder->signature);
    finder->signature = signature;
    finder->is_complete = finder->is_complete || is_complete;
    json_decref(states);
    json_decref(all);
    return is_other;
}

/* ---- the child ------------------------------------------------------------------------------- */

static void start_child(struct weir_finder *finder, int64_t now_ms)
{
    int fds[2];
    struct weir_error err;
    finder->not_before_ms = now_ms + finder->config.retry_ms;
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) {
        return;
    }
    (void)fcntl(fds[1], F_SETFL, 0); /* the child waits for its reader */
    const struct weir_spawn spawn = {
        .argv = finder->config.argv, .out = fds[1], .said = WEIR_SPAWN_OWN};
    weir_status status = weir_spawn_start(&spawn, &finder->child, &err);
    (void)close(fds[1]);
    if (status != WEIR_OK) {
        (void)close(fds[0]);
        weir_log(WEIR_LOG_ERROR, "devices_not_looked_at", WEIR_KV_STR("error", err.message));
        return;
    }
    finder->fd = fds[0];
    finder->begun_ms = now_ms;
}

/* The child is of no use any more: what it was at has failed. Without that, all that never told. */
static void end_child(struct weir_finder *finder, const char *error, int64_t now_ms)
{
    int at = finder->begun;
    for (int i = 0; i < (int)weir_device_providers.n_kinds; i++) {
        if (i == at || (at < 0 && finder->known[i].devices == NULL) ||
            (i > at && finder->known[i].devices == NULL)) {
            fail(&finder->known[i], error, NULL);
        }
    }
    weir_log(WEIR_LOG_ERROR, "devices_not_found", WEIR_KV_STR("error", error),
             WEIR_KV_STR("provider", at >= 0 ? weir_device_providers.kinds[at]->name : "none"));
    (void)kill(finder->child, SIGKILL);
    close_pipe(finder);
    finder->not_before_ms = now_ms + finder->config.retry_ms;
}

/* @return false at the end of the pipe. */
static bool read_lines(struct weir_finder *finder, int64_t now_ms)
{
    for (int i = 0; i < READS_MAX; i++) {
        size_t room = WEIR_FINDER_LINE_MAX_BYTES - finder->line_len;
        ssize_t n = read(finder->fd, finder->line + finder->line_len, WEIR_MIN(room, READ_BYTES));
        if (n < 0) {
            return errno == EAGAIN || errno == EINTR;
        }
        if (n == 0) {
            return false; /* its end, or a line without one */
        }
        finder->line_len += (size_t)n;
        char *begin = finder->line, *end = finder->line + finder->line_len, *newline;
        while ((newline = memchr(begin, '\n', (size_t)(end - begin))) != NULL) {
            take_line(finder, begin, (size_t)(newline - begin), now_ms);
            begin = newline + 1;
        }
        finder->line_len = (size_t)(end - begin);
        memmove(finder->line, begin, finder->line_len);
    }
    return true;
}

bool weir_finder_look(struct weir_finder *finder, int64_t now_ms)
{
    if (finder->fd >= 0) {
        bool is_alive = read_lines(finder, now_ms);
        bool is_late = now_ms - finder->begun_ms >= finder->config.deadline_ms;
        if (!is_alive) {
            end_child(finder, "the program that looks at it has crashed; it is tried again",
                      now_ms);
        } else if (is_late) {
            end_child(finder, "its driver does not answer; it is tried again", now_ms);
        }
    }
    if (finder->child > 0 && finder->fd < 0 && waitpid(finder->child, NULL, WNOHANG) != 0) {
        finder->child = 0;
    }
    if (finder->child == 0 && now_ms >= finder->not_before_ms) {
        start_child(finder, now_ms);
    }
    return update_signature(finder);
}

/* ---- inside of the child --------------------------------------------------------------------- */

/* One line; takes the reference. False: nobody reads. */
static bool tell(int fd, json_t *line)
{
    char *text = json_dumps(line, JSON_COMPACT);
    struct weir_error ignored;
    json_decref(line);
    bool is_told = text != NULL && weir_fd_write_all(fd, text, strlen(text), &ignored) == WEIR_OK &&
                   weir_fd_write_all(fd, "\n", 1, &ignored) == WEIR_OK;
    free(text);
    return is_told;
}

static bool look_with(struct weir_device_context *context, const struct weir_kind *kind, int fd)
{
    const struct weir_device_provider *provider = kind->ops;
    struct weir_found_list list = {0};
    struct weir_error err;
    if (!tell(fd, json_pack("{s:s}", "begin", kind->name))) {
        return false;
    }
    weir_status status = provider->find(context, &list, &err);
    json_t *devices = json_array();
    for (size_t i = 0; i < list.n; i++) {
        json_array_append_new(devices, weir_found_json(&list.items[i]));
    }
    weir_found_list_fini(&list);
    return tell(fd, json_pack("{s:s,s:s?,s:o}", "provider", kind->name, "error",
                              status != WEIR_OK ? err.message : NULL, "devices", devices));
}

void weir_device_serve(struct weir_device_context *context, int fd, int64_t every_ms)
{
    bool is_read = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
    (void)signal(SIGPIPE, SIG_IGN);
    while (is_read) {
        for (size_t i = 0; is_read && i < weir_device_providers.n_kinds; i++) {
            is_read = look_with(context, weir_device_providers.kinds[i], fd);
        }
        struct pollfd closed = {.fd = fd, .events = 0};
        (void)poll(&closed, 1, (int)(every_ms > 0 ? every_ms : WEIR_FINDER_EVERY_MS));
        is_read = is_read && (closed.revents & (POLLERR | POLLHUP)) == 0;
    }
}
