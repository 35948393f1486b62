#include "agent/code/prepare.h"

#include "agent/code/kept.h"
#include "agent/code/places.h"
#include "agent/node/reach.h"
#include "agent/supervise/carry.h"

#include "base/clock.h"
#include "base/file.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#define CALL_TIMEOUT_MS 30000
#define UNUSED_S        ((int64_t)7 * 86400)

/* The attempt's folder lies in the agent's, which is no job's. */
static weir_status prepare_paths(struct prepare *prepare, struct weir_error *err)
{
    const struct task *task = prepare->task;
    return reach_check_places(&task->sandbox, task->job, task->rank,
                              weir_arena_printf(prepare->arena, "%s/../..", prepare->dir),
                              prepare->arena, err);
}

/* Where it says that it has saved, as it was asked. */
static weir_status prepare_saved(struct prepare *prepare, struct weir_error *err)
{
    char path[TASK_PATH_BYTES];
    (void)err;
    if (prepare->task->save_signal != 0) {
        prepare_env(prepare, "WEIR_SAVED", task_path(path, prepare->dir, "work/" TASK_SAVED_MARK));
    }
    return WEIR_OK;
}

static const struct prepare_step steps[] = {
    {"places", prepare_places},
    {"paths", prepare_paths},
    {"secrets", prepare_secrets},
    {"code", prepare_code},
    {"output", prepare_output},
    {"checkpoint", prepare_checkpoint},
    {"saved", prepare_saved},
    {"rendezvous", prepare_rendezvous},
    {"environment", prepare_environment},
    {"service", prepare_service},
};

/** A thread that waits for a stop request, and ends the call that is going on then. */
struct prepare_watch {
    const char *dir;
    int inotify_fd, end_fd;
    pthread_t thread;
    pthread_mutex_t lock;
    struct weir_client *client; /* lock; NULL: none is open */
    atomic_bool is_stopped;
};

static void look_for_stop(struct prepare_watch *watch)
{
    if (!atomic_load(&watch->is_stopped) && task_has(watch->dir, "stop")) {
        pthread_mutex_lock(&watch->lock);
        atomic_store(&watch->is_stopped, true);
        if (watch->client != NULL) {
            weir_client_cancel(watch->client);
        }
        pthread_mutex_unlock(&watch->lock);
    }
}

static void *watch_main(void *context)
{
    struct prepare_watch *watch = context;
    struct pollfd fds[] = {{.fd = watch->inotify_fd, .events = POLLIN},
                           {.fd = watch->end_fd, .events = POLLIN}};
    char events[4096];
    look_for_stop(watch);
    while (poll(fds, WEIR_ARRAY_LEN(fds), -1) < 0 || fds[1].revents == 0) {
        (void)!read(watch->inotify_fd, events, sizeof events);
        look_for_stop(watch);
    }
    return NULL;
}

/* The agent writes the request under another name and moves it to its place. */
static weir_status watch_start(struct prepare_watch *watch, struct weir_error *err)
{
    sigset_t all, before;
    watch->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    watch->end_fd = eventfd(0, EFD_CLOEXEC);
    if (watch->inotify_fd < 0 || watch->end_fd < 0 ||
        inotify_add_watch(watch->inotify_fd, watch->dir, IN_MOVED_TO | IN_CREATE) < 0) {
        return weir_error_set(err, WEIR_ERR_IO, "cannot watch for a stop request");
    }
    sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before); /* signals are for the supervisor's own */
    int rc = pthread_create(&watch->thread, NULL, watch_main, watch);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc == 0 ? WEIR_OK : weir_error_set_errno(err, rc, "cannot start a thread");
}

static void watch_end(struct prepare_watch *watch, bool is_started)
{
    uint64_t one = 1;
    if (is_started) {
        (void)!write(watch->end_fd, &one, sizeof one);
        (void)pthread_join(watch->thread, NULL);
    }
    if (watch->inotify_fd >= 0) {
        close(watch->inotify_fd);
    }
    if (watch->end_fd >= 0) {
        close(watch->end_fd);
    }
    weir_client_close(watch->client);
    pthread_mutex_destroy(&watch->lock);
}

bool prepare_is_stopped(const struct prepare *prepare)
{
    return atomic_load(&prepare->watch->is_stopped);
}

const char *prepare_node_fact(const struct prepare *prepare, const char *name)
{
    return json_string_value(
        json_object_get(json_object_get(prepare->document, "surroundings"), name));
}

static const char *find_token(const struct task *task)
{
    for (size_t i = 0; i < task->n_files; i++) {
        if (strcmp(task->files[i].name, "token") == 0) {
            return task->files[i].value;
        }
    }
    return NULL;
}

weir_status prepare_client(struct prepare *prepare, struct weir_client **out,
                           struct weir_error *err)
{
    struct prepare_watch *watch = prepare->watch;
    const struct weir_client_config config = {.server = prepare_node_fact(prepare, "server"),
                                              .token = find_token(prepare->task),
                                              .ca_file = prepare_node_fact(prepare, "ca_file"),
                                              .timeout_ms = CALL_TIMEOUT_MS};
    if (prepare->client == NULL) {
        struct weir_client *client;
        if (config.server == NULL || config.token == NULL) {
            return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                  "this node's agent does not say where the server is: it is of an "
                                  "older version");
        }
        WEIR_TRY(weir_client_open(&config, &client, err));
        pthread_mutex_lock(&watch->lock);
        prepare->client = watch->client = client;
        if (atomic_load(&watch->is_stopped)) {
            weir_client_cancel(client);
        }
        pthread_mutex_unlock(&watch->lock);
    }
    *out = prepare->client;
    return WEIR_OK;
}

const char *prepare_get_env(const struct prepare *prepare, const char *name)
{
    for (size_t i = 0; i < prepare->task->n_env; i++) {
        if (strcmp(prepare->task->env[i].name, name) == 0) {
            return prepare->task->env[i].value;
        }
    }
    return NULL;
}

void prepare_env(struct prepare *prepare, const char *name, const char *value)
{
    struct task *task = prepare->task;
    const char *copy = weir_arena_strdup(prepare->arena, value);
    for (size_t i = 0; i < task->n_env; i++) {
        if (strcmp(task->env[i].name, name) == 0) {
            task->env[i].value = copy;
            return;
        }
    }
    struct task_pair *grown = WEIR_ARENA_ARRAY(prepare->arena, task->n_env + 1, struct task_pair);
    if (task->n_env > 0) {
        memcpy(grown, task->env, task->n_env * sizeof *grown);
    }
    grown[task->n_env++] = (struct task_pair){weir_arena_strdup(prepare->arena, name), copy};
    task->env = grown;
}

static bool is_stopped(void *context)
{
    return prepare_is_stopped(context);
}

/* On a node that does not see the server's disk the folder is filled from there. */
static weir_status fetch_checkpoint(struct prepare *prepare, struct weir_error *err)
{
    struct carry carry;
    struct weir_client *client;
    carry_read(prepare->dir, prepare->document, prepare->task, prepare->arena, &carry);
    if (carry.folder == NULL) {
        return WEIR_OK;
    }
    /* Others lie there that could not be brought: their attempt was given up meanwhile. */
    kept_sweep(weir_arena_printf(prepare->arena, "%.*s",
                                 (int)(strrchr(carry.folder, '/') - carry.folder), carry.folder),
               UNUSED_S);
    WEIR_TRY(prepare_client(prepare, &client, err));
    weir_status status =
        carry_fetch(&carry, client, prepare->deadline_ms, is_stopped, prepare, prepare->arena, err);
    prepare->task->checkpoint_fd = carry.used_fd;
    return status;
}

/* A folder of the job's own in the state folder, which outlives its attempts. Where that folder
 * cannot be made (on another machine, by an agent that is not root) the variable is not set. */
weir_status prepare_checkpoint(struct prepare *prepare, struct weir_error *err)
{
    const char *said = json_string_value(json_object_get(prepare->document, "checkpoint"));
    const char *folder = said != NULL ? places_map(prepare->places, said, prepare->arena) : NULL;
    struct sandbox *sandbox = &prepare->task->sandbox;
    const struct sandbox_path path = {.path = folder, .is_writable = true, .is_dir = true};
    const char *below;
    WEIR_TRY(fetch_checkpoint(prepare, err));
    if (folder == NULL) {
        return WEIR_OK;
    }
    if (sandbox_place(sandbox, prepare->task->job, prepare->task->rank, &path, prepare->arena,
                      &below) != SANDBOX_OWN) {
        return weir_error_set(err, WEIR_ERR_DENIED, "%.200s is not this job's own folder", folder);
    }
    if (weir_dir_make(folder, 0700, NULL) != WEIR_OK) {
        return WEIR_OK;
    }
    struct sandbox_path *grown =
        WEIR_ARENA_ARRAY(prepare->arena, sandbox->n_paths + 1, struct sandbox_path);
    if (sandbox->n_paths > 0) {
        memcpy(grown, sandbox->paths, sandbox->n_paths * sizeof *grown);
    }
    grown[sandbox->n_paths] = path;
    sandbox->paths = grown;
    sandbox->n_paths++;
    prepare_env(prepare, "WEIR_CHECKPOINT", folder);
    return WEIR_OK;
}

static weir_status take_steps(struct prepare *prepare, struct weir_error *err)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(steps); i++) {
        weir_status status = steps[i].fn(prepare, err);
        if (prepare_is_stopped(prepare)) {
            return weir_error_set(err, WEIR_ERR_CANCELLED, "stopped before it was started");
        }
        if (status != WEIR_OK) {
            return weir_error_prefix(err, "%s: ", steps[i].name);
        }
    }
    return WEIR_OK;
}

weir_status prepare_task(const char *dir, const json_t *document, struct task *task,
                         struct weir_arena *arena, struct weir_error *err)
{
    struct prepare_watch watch = {.dir = dir, .inotify_fd = -1, .end_fd = -1};
    struct prepare prepare = {.dir = dir,
                              .document = document,
                              .task = task,
                              .arena = arena,
                              .deadline_ms = weir_mono_ms() + PREPARE_PATIENCE_MS,
                              .watch = &watch};
    pthread_mutex_init(&watch.lock, NULL);
    weir_status status = watch_start(&watch, err);
    bool is_started = status == WEIR_OK;
    if (is_started) {
        status = take_steps(&prepare, err);
    }
    watch_end(&watch, is_started);
    return status;
}
