#include "video/camera.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/spawn.h"
#include "video/open.h"
#include "vision/condition.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECT_MS   10000
#define PAUSE_NOW_MS 100 /* after a connection that lived: somebody may be in the picture */
#define PAUSE_MIN_MS 1000
#define PAUSE_MAX_MS 60000
#define STABLE_MS    10000
#define N_FDS        2

struct weir_video_camera {
    const struct weir_video_config *config;
    char program[PATH_MAX];
    char *setup; /**< JSON. */
    struct weir_video_slots *slots;
    pthread_t thread;
    int wake_fd;
    atomic_bool is_stopping;
    pthread_mutex_t lock;
    struct weir_video_status status; /**< Under lock. */
    int64_t connection;              /**< The thread's, like all below. */
    int64_t learnt_us;               /**< The camera's period, of earlier connections. */
    struct weir_error told; /**< Why it was lost, as the log has it; of a live one, nothing. */
};

/** A life of the process. */
struct session {
    struct weir_video_camera *camera;
    int socket;
    pid_t pid;
    int64_t begun_ms, heard_ms;
    bool is_over;
};

const char *weir_video_state_name(enum weir_video_state state)
{
    static const char *const names[] = {"connecting", "live", "lost", "ended"};
    return names[state];
}

weir_status weir_video_program(char *out, size_t size, struct weir_error *err)
{
    ssize_t n = readlink("/proc/self/exe", out, size - sizeof "weir-camera");
    char *slash = n > 0 ? memrchr(out, '/', (size_t)n) : NULL;
    if (slash != NULL) {
        (void)snprintf(slash + 1, size - (size_t)(slash + 1 - out), "weir-camera");
    }
    if (slash != NULL && access(out, X_OK) == 0) {
        return WEIR_OK;
    }
    const char *path = getenv("PATH");
    while (path != NULL && *path != '\0') {
        size_t len = strcspn(path, ":");
        (void)snprintf(out, size, "%.*s/weir-camera", (int)WEIR_MIN(len, size / 2), path);
        if (len > 0 && access(out, X_OK) == 0) {
            return WEIR_OK;
        }
        path += len + (path[len] == ':');
    }
    return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                          "weir-camera is neither beside this program nor in PATH: install it (the "
                          "package weir-camera, or a build of Weir where libavformat-dev is)");
}

/* ---- what is known --------------------------------------------------------------------------- */

static void set_state(struct weir_video_camera *camera, enum weir_video_state state)
{
    const struct weir_video_config *config = camera->config;
    pthread_mutex_lock(&camera->lock);
    camera->status.state = state;
    camera->status.since_ms = weir_time_ms();
    camera->status.lost_ms = state == WEIR_VIDEO_IS_LIVE ? 0 : camera->status.lost_ms;
    pthread_mutex_unlock(&camera->lock);
    if (config->on_state != NULL) {
        config->on_state(config->context, state, "");
    }
}

/* Lost, or at its end. What it says of that may be a stranger's text. */
static void set_lost(struct weir_video_camera *camera, enum weir_video_state state,
                     const struct weir_error *why)
{
    const struct weir_video_config *config = camera->config;
    struct weir_video_status *status = &camera->status;
    pthread_mutex_lock(&camera->lock);
    status->state = state;
    status->since_ms = weir_time_ms();
    status->lost_ms = status->lost_ms != 0 ? status->lost_ms : status->since_ms;
    status->cause = why->status;
    (void)snprintf(status->why, sizeof status->why, "%s", why->message);
    for (char *c = status->why; *c != '\0'; c++) {
        *c = (unsigned char)*c < ' ' ? ' ' : *c;
    }
    pthread_mutex_unlock(&camera->lock);
    if (config->on_state != NULL) {
        config->on_state(config->context, state, status->why);
    }
}

void weir_video_status(struct weir_video_camera *camera, struct weir_video_status *out)
{
    pthread_mutex_lock(&camera->lock);
    *out = camera->status;
    pthread_mutex_unlock(&camera->lock);
}

/* ---- a connection ---------------------------------------------------------------------------- */

static weir_status open_thing(const struct session *session, uint32_t thing,
                              struct weir_video_message *answer, int fds[N_FDS],
                              struct weir_error *err)
{
    const struct weir_video_reach *reach = &session->camera->config->reach;
    int port = 0;
    weir_status status;
    if (thing == WEIR_VIDEO_CONNECTION && reach->host != NULL) {
        status = weir_video_open_connection(reach->host, reach->port, CONNECT_MS,
                                            session->camera->wake_fd, &fds[0], err);
    } else if (thing == WEIR_VIDEO_UDP_PAIR && reach->host != NULL) {
        status = weir_video_open_udp_pair(reach->host, reach->port, fds, &port, err);
    } else if (thing == WEIR_VIDEO_FILE && reach->path != NULL) {
        status = weir_video_open_file(reach->path, reach->is_device, &fds[0], err);
    } else {
        status = weir_error_set(err, WEIR_ERR_DENIED, "the document names no such thing");
    }
    answer->port = port;
    return status;
}

static weir_status answer_open(struct session *session, uint32_t thing, struct weir_error *err)
{
    struct weir_video_message answer = {.kind = WEIR_VIDEO_OPENED};
    struct weir_error why = {0};
    int fds[N_FDS] = {-1, -1};
    answer.status = open_thing(session, thing, &answer, fds, &why);
    (void)snprintf(answer.text, sizeof answer.text, "%s", why.message);
    size_t n = fds[0] < 0 ? 0 : fds[1] < 0 ? 1 : 2;
    weir_status status = weir_video_send(session->socket, &answer, fds, n, false);
    for (size_t i = 0; i < n; i++) {
        (void)close(fds[i]);
    }
    session->heard_ms = weir_mono_ms(); /* it waited for us */
    return status == WEIR_OK ? WEIR_OK : weir_error_set(err, status, "weir-camera does not listen");
}

static weir_status take_frame(struct session *session, const struct weir_video_message *message,
                              struct weir_error *err)
{
    struct weir_video_camera *camera = session->camera;
    const struct weir_video_config *config = camera->config;
    struct weir_video_frame frame = message->frame;
    struct weir_video_taken taken = {.frame = &frame,
                                     .slots = camera->slots,
                                     .slot = message->slot,
                                     .connection = camera->connection};
    uint64_t now_ns = weir_mono_ns();
    if (weir_video_slots_hold(camera->slots, message->slot, &frame, &taken.view) != WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "weir-camera gave a frame that is none");
    }
    frame.received_ns = WEIR_MIN(frame.received_ns, now_ns);
    frame.condition = frame.condition >= 0 && frame.condition < WEIR_CONDITION_COUNT
                          ? frame.condition
                          : (int32_t)WEIR_CONDITION_WELL;
    pthread_mutex_lock(&camera->lock);
    camera->status.frame = frame;
    camera->status.n_frames++;
    camera->status.last_ms = weir_time_ms();
    pthread_mutex_unlock(&camera->lock);
    config->on_frame(config->context, &taken);
    return WEIR_OK;
}

static weir_status take_message(struct session *session, const struct weir_video_message *message,
                                struct weir_error *err)
{
    struct weir_video_camera *camera = session->camera;
    session->heard_ms = weir_mono_ms();
    switch (message->kind) {
    case WEIR_VIDEO_OPEN:
        return answer_open(session, message->slot, err);
    case WEIR_VIDEO_LIVE:
        pthread_mutex_lock(&camera->lock);
        (void)snprintf(camera->status.codec, sizeof camera->status.codec, "%.31s", message->text);
        pthread_mutex_unlock(&camera->lock);
        camera->told = (struct weir_error){0};
        set_state(camera, WEIR_VIDEO_IS_LIVE);
        return WEIR_OK;
    case WEIR_VIDEO_FRAME:
        return take_frame(session, message, err);
    case WEIR_VIDEO_REPORT:
        pthread_mutex_lock(&camera->lock);
        camera->status.counts = message->counts;
        pthread_mutex_unlock(&camera->lock);
        camera->learnt_us =
            message->counts.period_us > 0 ? message->counts.period_us : camera->learnt_us;
        return WEIR_OK;
    case WEIR_VIDEO_END:
        session->is_over = true;
        return weir_error_set(err,
                              message->status < 0 && message->status > -(int)WEIR_STATUS_COUNT
                                  ? message->status
                                  : WEIR_ERR_CORRUPT,
                              "%s", weir_text_is_utf8(message->text) ? message->text : "");
    default:
        return weir_error_set(err, WEIR_ERR_CORRUPT, "weir-camera broke the rules");
    }
}

/* Until the process ends or must. Never OK. */
static weir_status serve(struct session *session, struct weir_error *err)
{
    struct weir_video_camera *camera = session->camera;
    for (;;) {
        struct weir_video_message message;
        int fds[N_FDS];
        struct pollfd polls[2] = {{.fd = session->socket, .events = POLLIN},
                                  {.fd = camera->wake_fd, .events = POLLIN}};
        int64_t left_ms = session->heard_ms + WEIR_VIDEO_SILENCE_MS - weir_mono_ms();
        (void)poll(polls, 2, (int)WEIR_MAX(left_ms, 0));
        if (atomic_load(&camera->is_stopping)) {
            return weir_error_set(err, WEIR_ERR_CANCELLED, "it is being stopped");
        }
        weir_status status = weir_video_receive(session->socket, &message, fds);
        if (status == WEIR_ERR_UNAVAILABLE && left_ms > 0) {
            continue;
        }
        if (status != WEIR_OK) {
            return weir_error_set(err, status,
                                  status == WEIR_ERR_UNAVAILABLE ? "weir-camera hangs"
                                  : status == WEIR_ERR_PEER      ? "weir-camera has died"
                                                                 : "weir-camera broke the rules");
        }
        for (size_t i = 0; i < N_FDS; i++) {
            if (fds[i] >= 0) {
                (void)close(fds[i]);
            }
        }
        WEIR_TRY(take_message(session, &message, err));
    }
}

static weir_status tell_setup(struct session *session, struct weir_error *err)
{
    struct weir_video_camera *camera = session->camera;
    const struct weir_video_config *config = camera->config;
    struct weir_video_message setup = {.kind = WEIR_VIDEO_SETUP, .slot = (uint32_t)config->n_slots};
    int fd = weir_video_slots_fd(camera->slots);
    setup.counts.period_us = camera->learnt_us;
    setup.frame.seq = (int64_t)config->slot_bytes;
    weir_status status = weir_video_send(session->socket, &setup, &fd, 1, false);
    ssize_t n = status == WEIR_OK ? send(session->socket, camera->setup, strlen(camera->setup),
                                         MSG_NOSIGNAL | MSG_DONTWAIT)
                                  : -1;
    if (n < 0) {
        return weir_error_set(err, WEIR_ERR_IO, "weir-camera does not listen");
    }
    weir_video_slots_attach(camera->slots, session->socket);
    return WEIR_OK;
}

static weir_status start_process(struct session *session, struct weir_error *err)
{
    static char name[] = "weir-camera", serve_flag[] = "--serve";
    char *const argv[] = {name, serve_flag, NULL};
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0 ||
        fcntl(pair[0], F_SETFL, O_NONBLOCK) != 0) {
        return weir_error_set_errno(err, errno, "a pair of sockets");
    }
    const struct weir_spawn spawn = {
        .program = session->camera->program, .argv = argv, .in = pair[1], .said = WEIR_SPAWN_OWN};
    weir_status status = weir_spawn_start(&spawn, &session->pid, err);
    (void)close(pair[1]);
    if (status != WEIR_OK) {
        (void)close(pair[0]);
        return status;
    }
    session->socket = pair[0];
    return WEIR_OK;
}

/* One life of the process, from its start to its end. Never OK. */
static weir_status connect_once(struct weir_video_camera *camera, struct session *session,
                                struct weir_error *err)
{
    *session = (struct session){
        .camera = camera, .socket = -1, .begun_ms = weir_mono_ms(), .heard_ms = weir_mono_ms()};
    camera->connection = WEIR_MAX(weir_time_ms(), camera->connection + 1);
    pthread_mutex_lock(&camera->lock);
    camera->status.n_connections++;
    camera->status.counts = (struct weir_video_counts){0};
    pthread_mutex_unlock(&camera->lock);
    set_state(camera, WEIR_VIDEO_CONNECTING);
    WEIR_TRY(start_process(session, err));
    weir_status status = tell_setup(session, err);
    status = status != WEIR_OK ? status : serve(session, err);
    weir_video_slots_attach(camera->slots, -1);
    (void)kill(session->pid, SIGKILL);
    (void)weir_spawn_wait(session->pid);
    (void)close(session->socket);
    return status;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void pause_for(struct weir_video_camera *camera, int64_t pause_ms)
{
    uint32_t random;
    weir_random_bytes(&random, sizeof random);
    struct pollfd wake = {.fd = camera->wake_fd, .events = POLLIN};
    (void)poll(&wake, 1, (int)(pause_ms / 2 + random % (pause_ms / 2 + 1)));
}

/* A camera that stays away is a line, not one for each time that it is tried: there may be hundreds of them. */
static void log_lost(struct weir_video_camera *camera, const struct weir_error *why,
                     int64_t pause_ms)
{
    bool is_known = strcmp(camera->told.message, why->message) == 0;
    weir_log(is_known ? WEIR_LOG_DEBUG : WEIR_LOG_WARN, "camera_lost",
             WEIR_KV_STR("camera", camera->config->name), WEIR_KV_STR("why", why->message),
             WEIR_KV_INT("again_in_ms", pause_ms));
    camera->told = *why;
}

static void *camera_main(void *context)
{
    struct weir_video_camera *camera = context;
    int64_t pause_ms = PAUSE_MIN_MS;
    while (!atomic_load(&camera->is_stopping)) {
        struct weir_error err = {0};
        struct session session;
        weir_status status = connect_once(camera, &session, &err);
        if (atomic_load(&camera->is_stopping)) {
            break;
        }
        if (status == WEIR_ERR_END && session.is_over) {
            set_lost(camera, WEIR_VIDEO_ENDED, &err);
            break;
        }
        if (weir_mono_ms() - session.begun_ms >= STABLE_MS) {
            pause_ms = PAUSE_NOW_MS;
        }
        log_lost(camera, &err, pause_ms);
        set_lost(camera, WEIR_VIDEO_IS_LOST, &err);
        pause_for(camera, pause_ms);
        pause_ms = WEIR_MIN(WEIR_MAX(2 * pause_ms, PAUSE_MIN_MS), PAUSE_MAX_MS);
    }
    return NULL;
}

static void destroy(struct weir_video_camera *camera)
{
    weir_video_slots_unref(camera->slots);
    if (camera->wake_fd >= 0) {
        (void)close(camera->wake_fd);
    }
    pthread_mutex_destroy(&camera->lock);
    free(camera->setup);
    free(camera);
}

static weir_status begin(struct weir_video_camera *camera, struct weir_error *err)
{
    const struct weir_video_config *config = camera->config;
    camera->setup = json_dumps(config->source, JSON_COMPACT);
    if (camera->setup == NULL || strlen(camera->setup) >= WEIR_VIDEO_SETUP_MAX_BYTES) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "camera %s: its options are too long",
                              config->name);
    }
    if (config->program != NULL) {
        (void)snprintf(camera->program, sizeof camera->program, "%s", config->program);
    } else {
        WEIR_TRY(weir_video_program(camera->program, sizeof camera->program, err));
    }
    WEIR_TRY(weir_video_slots_create(config->n_slots, config->slot_bytes, &camera->slots, err));
    camera->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int failed =
        camera->wake_fd < 0 ? errno : pthread_create(&camera->thread, NULL, camera_main, camera);
    return failed == 0 ? WEIR_OK
                       : weir_error_set_errno(err, failed, "camera %s: a thread", config->name);
}

weir_status weir_video_start(const struct weir_video_config *config, struct weir_video_camera **out,
                             struct weir_error *err)
{
    struct weir_video_camera *camera = weir_xalloc(sizeof *camera);
    *camera = (struct weir_video_camera){.config = config, .wake_fd = -1};
    camera->status.since_ms = weir_time_ms();
    pthread_mutex_init(&camera->lock, NULL);
    weir_status status = begin(camera, err);
    if (status != WEIR_OK) {
        destroy(camera);
        return status;
    }
    *out = camera;
    return WEIR_OK;
}

void weir_video_stop(struct weir_video_camera *camera)
{
    if (camera == NULL) {
        return;
    }
    atomic_store(&camera->is_stopping, true);
    (void)eventfd_write(camera->wake_fd, 1);
    pthread_join(camera->thread, NULL);
    destroy(camera);
}
