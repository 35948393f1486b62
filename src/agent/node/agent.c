#include "agent/node/agent_private.h"

#include "agent/node/own_log.h"
#include "agent/rendezvous/rendezvous.h"
#include "agent/supervise/pace.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/record.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#define HEARTBEAT_MS  5000
#define TICK_MS       1000
#define LEAVE_TICK_MS 200
#define DIR_MAX_BYTES 800 /* so that every path below it fits into TASK_PATH_BYTES */
#define CHUNKS_PER_TURN                                                                            \
    8 /* pieces of one log, before the others and the heartbeat get their turn */

/* Do what the plan says about one attempt. True: there is more to do at once. */
static bool act(struct agent *agent, struct attempt *a, unsigned actions)
{
    struct weir_error err;
    bool has_more = false;
    weir_status status = WEIR_OK;
    if ((actions & PLAN_STOP) != 0) {
        status = task_stop_write(a->dir, a->stop_grace_ms, &err);
        if (status != WEIR_OK) {
            weir_log(WEIR_LOG_ERROR, "task_not_stopped", WEIR_KV_STR("task", a->id),
                     WEIR_KV_STR("error", err.message));
        }
    }
    if ((actions & PLAN_SAVE) != 0 && task_save_write(a->dir, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_ERROR, "task_not_asked_to_save", WEIR_KV_STR("task", a->id),
                 WEIR_KV_STR("error", err.message));
    }
    if ((actions & PLAN_SUPERVISE) != 0 && status == WEIR_OK) {
        status = spawn_supervisor(agent->executable, a->dir, &a->supervisor, &err);
        a->spawned_ms = weir_mono_ms(); /* also after a failure: not at once again */
        if (status != WEIR_OK) {
            weir_log(WEIR_LOG_ERROR, "task_not_started", WEIR_KV_STR("task", a->id),
                     WEIR_KV_STR("error", err.message));
        }
    }
    if ((actions & PLAN_REPORT_RUNNING) != 0 && !report_is_quiet(agent)) {
        (void)report_running(agent, a);
    }
    if (!a->is_held_told && a->seen.reported == PLAN_REPORTED_RUNNING && !report_is_quiet(agent) &&
        task_has(a->dir, TASK_HELD)) {
        (void)report_held(agent, a);
    }
    /* Before its end, of which it decides what that means. */
    bool has_to_say_saved =
        !a->is_saved_told && a->seen.reported < PLAN_REPORTED_EXIT && task_has(a->dir, TASK_SAVED);
    if (has_to_say_saved && !report_is_quiet(agent)) {
        has_to_say_saved = report_saved(agent, a) != WEIR_OK;
    }
    for (int i = 0; (actions & PLAN_SHIP_LOG) != 0 && i < CHUNKS_PER_TURN; i++) {
        has_more = false;
        if (report_is_quiet(agent) || report_log(agent, a, &has_more) != WEIR_OK || !has_more) {
            break;
        }
    }
    if ((actions & PLAN_REPORT_EXIT) != 0 && !has_to_say_saved && !report_is_quiet(agent)) {
        (void)report_exit(agent, a);
    }
    if ((actions & PLAN_REMOVE) != 0) {
        attempts_remove(agent, a);
    }
    return has_more;
}

static void take_desired(struct agent *agent)
{
    uint64_t n;
    (void)!read(agent->event_fd, &n, sizeof n);
    pthread_mutex_lock(&agent->lock);
    struct desired latest = agent->latest_desired;
    agent->latest_desired.document = NULL;
    pthread_mutex_unlock(&agent->lock);
    if (latest.document != NULL) {
        json_decref(agent->desired.document);
        agent->desired = latest;
        attempts_apply_desired(agent);
    }
}

/* One look at everything. Returns how long nothing needs to be looked at, unless an event comes. */
static int64_t turn(struct agent *agent)
{
    int64_t now = weir_mono_ms();
    char log_path[TASK_PATH_BYTES];
    bool has_more = false;
    bool is_unsettled = false;
    take_desired(agent);
    if (atomic_load(&agent->is_leaving)) {
        leave_ask(agent);
    }
    if ((agent->finder != NULL && weir_finder_look(agent->finder, now)) || health_look(agent)) {
        agent->next_heartbeat_ms = 0; /* told at once */
    }
    own_log_bound(task_path(log_path, agent->dir, "agent.log"), OWN_LOG_MAX_BYTES);
    if (now >= agent->next_heartbeat_ms && !report_is_quiet(agent)) {
        int64_t every_ms = agent->config->heartbeat_ms;
        agent->next_heartbeat_ms = now + (every_ms > 0 ? every_ms : HEARTBEAT_MS);
        /* Sets it to "now" when the server has moved. */
        if (report_heartbeat(agent) == WEIR_ERR_CANCELLED && !atomic_load(&agent->is_stopping)) {
            (void)report_heartbeat(agent); /* it was cut short to tell that the node leaves */
        }
    }
    report_use(agent);
    int64_t held_ms = INT64_MAX;
    struct attempt *next;
    for (struct attempt *a = agent->attempts; a != NULL && !atomic_load(&agent->is_stopping);
         a = next) {
        next = a->next;
        attempts_observe(agent, a);
        unsigned kept = leave_hold_ms(agent, a) > 0 ? PLAN_REPORT_EXIT : 0;
        unsigned actions = agent_plan(a->desired, &a->seen) & ~kept;
        held_ms = kept != 0 ? WEIR_MIN(held_ms, leave_hold_ms(agent, a)) : held_ms;
        /* Shipping a running task's log is asked for all the time: it waits for events. */
        bool is_settled =
            !a->seen.is_supervised && a->seen.has_exit && (actions & ~(unsigned)PLAN_SHIP_LOG) == 0;
        is_unsettled = is_unsettled || !is_settled;
        has_more = act(agent, a, actions) || has_more;
        /* The end of the log, the exit and the removal follow each other without a pause. */
        if ((actions & (PLAN_SHIP_LOG | PLAN_REPORT_EXIT)) != 0 && a->has_exit_record &&
            (actions & PLAN_REMOVE) == 0) {
            has_more = has_more ||
                       (agent_plan(a->desired, &a->seen) & ~kept & ~(unsigned)PLAN_SHIP_LOG) != 0;
        }
    }
    now = weir_mono_ms();
    int64_t until_ms =
        WEIR_MAX(WEIR_MIN(agent->next_heartbeat_ms, agent->next_use_ms), agent->quiet_until_ms);
    if (is_unsettled || agent->finder != NULL || agent->health.child != 0) {
        until_ms = WEIR_MIN(until_ms, now + TICK_MS);
    }
    if (held_ms != INT64_MAX) {
        until_ms = WEIR_MIN(until_ms, now + held_ms);
    }
    return has_more && !report_is_quiet(agent) ? 0 : until_ms - now;
}

/* Below 0: none, which poll passes over. */
static int finder_fd(const struct agent *agent)
{
    return agent->finder != NULL ? weir_finder_fd(agent->finder) : -1;
}

/* Is it one of the files that the agent goes by? Supervisors write others, too. */
static bool is_of_interest(const struct inotify_event *event)
{
    static const char *const records[] = {"run.json", "exit.json", TASK_HELD, TASK_SAVED};
    const char *name = event->len > 0 ? event->name : "";
    if ((event->mask & IN_MODIFY) != 0) {
        return strcmp(name, "log") == 0;
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(records); i++) {
        if (strcmp(name, records[i]) == 0) {
            return true;
        }
    }
    return (event->mask & IN_Q_OVERFLOW) != 0;
}

/* Take the events of files that have come. @return Whether one of them is a reason to look. */
static bool take_events(const struct agent *agent)
{
    _Alignas(struct inotify_event) char events[4096];
    bool is_news = false;
    ssize_t n;
    while ((n = read(agent->inotify_fd, events, sizeof events)) > 0) {
        for (char *at = events; at < events + n;) {
            const struct inotify_event *event = (const struct inotify_event *)(const void *)at;
            is_news = is_news || is_of_interest(event);
            at += sizeof *event + event->len;
        }
    }
    return is_news;
}

/* Until something has come, at most so long. @return Whether it has. */
static bool await_news(const struct agent *agent, int64_t wait_ms)
{
    int64_t until_ms = weir_mono_ms() + wait_ms;
    for (;;) {
        struct pollfd fds[] = {{.fd = agent->event_fd, .events = POLLIN},
                               {.fd = finder_fd(agent), .events = POLLIN},
                               {.fd = agent->inotify_fd, .events = POLLIN}};
        int64_t left_ms = WEIR_MIN(until_ms - weir_mono_ms(), (int64_t)60000);
        if (left_ms <= 0 || poll(fds, WEIR_ARRAY_LEN(fds), (int)left_ms) <= 0) {
            return false;
        }
        bool is_file = fds[2].revents != 0 && take_events(agent);
        if (is_file || fds[0].revents != 0 || fds[1].revents != 0) {
            return true;
        }
    }
}

/* All threads return. */
static void end_calls(struct agent *agent)
{
    uint64_t one = 1;
    atomic_store(&agent->is_stopping, true);
    (void)!write(agent->wake_fd, &one, sizeof one);
    (void)!write(agent->event_fd, &one, sizeof one);
    pthread_mutex_lock(&agent->lock);
    weir_client_cancel(agent->client);
    weir_client_cancel(agent->desired_client);
    pthread_mutex_unlock(&agent->lock);
}

/* The main thread has its turn now, whatever it waits for, and ends later. */
static void begin_leave(struct agent *agent)
{
    uint64_t one = 1;
    atomic_store(&agent->is_leaving, true);
    (void)!write(agent->event_fd, &one, sizeof one);
    pthread_mutex_lock(&agent->lock);
    weir_client_cancel(agent->client);
    pthread_mutex_unlock(&agent->lock);
}

static void loop(struct agent *agent)
{
    struct pace pace = {0};
    while (!atomic_load(&agent->is_stopping)) {
        int64_t wait_ms = turn(agent);
        bool is_leaving = atomic_load(&agent->is_leaving);
        wait_ms = is_leaving ? WEIR_MIN(wait_ms, (int64_t)LEAVE_TICK_MS) : wait_ms;
        if (is_leaving && leave_is_over(agent)) {
            end_calls(agent);
        } else if (wait_ms > 0 && await_news(agent, wait_ms)) {
            struct pollfd fd = {.fd = agent->event_fd, .events = POLLIN};
            (void)poll(&fd, 1, (int)pace_wait_ms(&pace, weir_mono_ms()));
        }
        (void)take_events(agent); /* what came meanwhile is seen with this look */
    }
}

/* Waits for stop_fd, then ends the calls in progress. */
static void *stop_main(void *context)
{
    struct agent *agent = context;
    struct pollfd fds[] = {{.fd = agent->config->stop_fd, .events = POLLIN},
                           {.fd = agent->wake_fd, .events = POLLIN}};
    while (fds[0].revents == 0 && fds[1].revents == 0) {
        (void)poll(fds, WEIR_ARRAY_LEN(fds), -1);
    }
    if (agent->config->allocation != NULL && fds[1].revents == 0) {
        begin_leave(agent);
    } else {
        end_calls(agent);
    }
    return NULL;
}

static weir_status run_threads(struct agent *agent, struct weir_error *err)
{
    pthread_t desired_thread;
    pthread_t stop_thread;
    int rc = pthread_create(&stop_thread, NULL, stop_main, agent);
    if (rc != 0) {
        return weir_error_set_errno(err, rc, "cannot start the agent's threads");
    }
    rc = pthread_create(&desired_thread, NULL, desired_main, agent);
    if (rc == 0) {
        loop(agent);
    }
    uint64_t one = 1;
    (void)!write(agent->wake_fd, &one, sizeof one);
    pthread_join(stop_thread, NULL);
    if (rc == 0) {
        pthread_join(desired_thread, NULL);
        return WEIR_OK;
    }
    return weir_error_set_errno(err, rc, "cannot start the agent's threads");
}

/* agent.json: which agent works in this folder, for people and for the cluster driver. */
static weir_status write_agent_file(const struct agent *agent, struct weir_error *err)
{
    char path[TASK_PATH_BYTES];
    struct process_id self = {0};
    (void)process_identify(getpid(), &self);
    json_t *record =
        json_pack("{s:I, s:I, s:s, s:s, s:s}", "pid", (json_int_t)self.pid, "start_time",
                  (json_int_t)self.start_time, "node", agent->config->node, "server",
                  agent->config->server, "version", WEIR_VERSION);
    WEIR_AUTO(weir_auto_free) char *text = json_dumps(record, JSON_INDENT(1));
    json_decref(record);
    return weir_file_write_atomic(task_path(path, agent->config->dir, "agent.json"), text,
                                  strlen(text), 0644, err);
}

static weir_status open_folder(struct agent *agent, struct weir_error *err)
{
    const struct weir_agent_config *config = agent->config;
    char path[TASK_PATH_BYTES];
    WEIR_TRY(weir_dir_make(agent->tasks_dir, 0700, err));
    weir_status status =
        weir_file_lock_after(task_path(path, config->dir, "lock"), &agent->lock_fd, err);
    if (status == WEIR_ERR_CONFLICT) {
        return weir_error_set(err, WEIR_ERR_CONFLICT, "an agent is already running from %s",
                              config->dir);
    }
    return status == WEIR_OK ? write_agent_file(agent, err) : status;
}

/* A program of its own looks at the devices: this one, told to. */
static void open_finder(struct agent *agent)
{
    if (!agent->config->finds_devices) {
        return;
    }
    size_t n = 0;
    agent->find_argv[n++] = agent->executable;
    agent->find_argv[n++] = "agent";
    agent->find_argv[n++] = "--find-devices";
    if (agent->config->devices != NULL) {
        agent->find_argv[n++] = "--devices";
        agent->find_argv[n++] = (char *)agent->config->devices;
    }
    if (agent->config->allocation != NULL) {
        agent->find_argv[n++] = "--allocation";
        agent->find_argv[n++] = (char *)agent->config->allocation;
    }
    agent->find_argv[n] = NULL;
    agent->finder = weir_finder_create(&(struct weir_finder_config){.argv = agent->find_argv});
}

/* Tasks have other working directories. In the root folder itself it could be shared with nobody. */
static weir_status find_onnxruntime(struct agent *agent, struct weir_error *err)
{
    const char *given = agent->config->onnxruntime;
    if (given == NULL) {
        return WEIR_OK;
    }
    agent->onnxruntime_path = realpath(given, NULL);
    if (agent->onnxruntime_path == NULL) {
        return weir_error_set_errno(err, errno, "cannot use the onnxruntime %s", given);
    }
    bool is_root = strrchr(agent->onnxruntime_path, '/') == agent->onnxruntime_path &&
                   !weir_path_is_dir(agent->onnxruntime_path);
    return !is_root && agent->onnxruntime_path[1] != '\0'
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "--onnxruntime %.300s: expected the library, or a folder of it",
                                given);
}

static weir_status open_agent(struct agent *agent, struct weir_error *err)
{
    const struct weir_agent_config *config = agent->config;
    char dir[PATH_MAX];
    if (config->address != NULL) {
        WEIR_TRY(rendezvous_setting_check(config->address, err));
    }
    if (config->node == NULL || !weir_name_is_valid(config->node)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "node name \"%.80s\": expected lower-case letters, digits, . _ -",
                              config->node != NULL ? config->node : "");
    }
    WEIR_TRY(weir_dir_make(config->dir, 0700, err));
    if (realpath(config->dir, dir) == NULL) {
        return weir_error_set_errno(err, errno, "cannot use the folder %s", config->dir);
    }
    if (strlen(dir) > DIR_MAX_BYTES) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "the folder's path is longer than %d bytes: %s", DIR_MAX_BYTES, dir);
    }
    agent->dir = weir_xstrdup(dir);
    /* Absolute: supervisors and tasks have other working directories. */
    agent->tasks_dir = weir_xalloc(strlen(dir) + sizeof "/tasks");
    (void)snprintf(agent->tasks_dir, strlen(dir) + sizeof "/tasks", "%s/tasks", dir);
    char path[TASK_PATH_BYTES];
    agent->token_path = weir_xstrdup(
        config->token_file != NULL ? config->token_file : task_path(path, config->dir, "token"));
    if (config->ca_file != NULL && (agent->ca_path = realpath(config->ca_file, NULL)) == NULL) {
        return weir_error_set_errno(err, errno, "cannot use the file of authorities %s",
                                    config->ca_file);
    }
    WEIR_TRY(find_onnxruntime(agent, err));
    WEIR_TRY(open_folder(agent, err));
    WEIR_TRY(contact_open(agent->dir, &agent->contact, err));
    WEIR_TRY(connect_open(agent, config->server, &agent->client, err));
    WEIR_TRY(connect_open(agent, config->server, &agent->desired_client, err));
    agent->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    agent->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    agent->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (agent->event_fd < 0 || agent->wake_fd < 0 || agent->inotify_fd < 0) {
        return weir_error_set_errno(err, errno, "cannot make event descriptors");
    }
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    agent->executable = weir_xstrdup(config->executable != NULL ? config->executable : self);
    /* The control groups of an allocation are their owner's: nothing is moved in them. */
    if (config->allocation == NULL &&
        (config->isolation == NULL || strcmp(config->isolation, "none") != 0)) {
        weir_isolation_prepare();
    }
    open_finder(agent);
    return jobs_open(agent, err);
}

static void close_fd(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

weir_status weir_agent_run(const struct weir_agent_config *config, struct weir_error *err)
{
    struct agent agent = {.config = config,
                          .lock_fd = -1,
                          .event_fd = -1,
                          .wake_fd = -1,
                          .inotify_fd = -1,
                          .backoff = {.base_ms = 100, .max_ms = 5000}};
    pthread_mutex_init(&agent.lock, NULL);
    weir_status status = open_agent(&agent, err);
    if (status == WEIR_OK) {
        weir_log(WEIR_LOG_INFO, "agent_started", WEIR_KV_STR("node", config->node),
                 WEIR_KV_STR("server", config->server), WEIR_KV_STR("dir", config->dir));
        attempts_scan(&agent);
        jobs_clean(&agent);
        status = run_threads(&agent, err);
        weir_log_event(WEIR_LOG_INFO, "agent_stopped");
    }
    weir_finder_destroy(agent.finder);
    contact_close(agent.contact);
    health_close(&agent);
    attempts_free(&agent);
    json_decref(agent.desired.document);
    json_decref(agent.latest_desired.document);
    weir_client_close(agent.client);
    weir_client_close(agent.desired_client);
    close_fd(agent.event_fd);
    close_fd(agent.wake_fd);
    close_fd(agent.inotify_fd);
    close_fd(agent.lock_fd);
    free(agent.executable);
    free(agent.token_path);
    free(agent.ca_path);
    free(agent.onnxruntime_path);
    free(agent.tasks_dir);
    free(agent.jobs_dir);
    free(agent.dir);
    json_decref(agent.shares);
    json_decref(agent.isolation);
    pthread_mutex_destroy(&agent.lock);
    if (atomic_load(&agent.is_leaving)) {
        leave_end_rest(config);
        weir_isolation_remove(&agent.groups);
    }
    return status;
}
