/** weir demo building-security: the scenario, step by step. */
#include "demo/demo.h"

#include "base/clock.h"
#include "base/file.h"
#include "demo/cameras.h"
#include "demo/stream.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENROLLED_PHOTOS 5
#define TRAINING_MAX_MS ((int64_t)20 * 60 * 1000)
#define CATCH_UP_MAX_MS ((int64_t)60 * 1000)
#define POLL_MS         300

static const struct weir_option options[] = {
    CLI_COMMON_OPTIONS(demo_options),
    WEIR_OPT(demo_options, faces, "faces", 0, TEXT, NULL, 0, 0, "DIR",
             "Real photos, a folder per person; without it people are drawn"),
    WEIR_OPT(demo_options, is_once, "once", 0, BOOL, NULL, 0, 0, NULL,
             "End after the scenario; status 9 if a frame was lost or doubled"),
    WEIR_OPT(demo_options, example, "example", 0, TEXT, NULL, 0, 0, "DIR",
             "Folder of the example's files [found beside the program]"),
    WEIR_OPT(demo_options, work, "work", 0, TEXT, NULL, 0, 0, "DIR",
             "Where photos, frames and the ledger go [STATE/demo]; of camera: the ledger, else "
             "there is none"),
    WEIR_OPT(demo_options, seed, "seed", 0, INT, "1", 0, 1e15, "N",
             "What the people and their coming and going are drawn from"),
    WEIR_OPT(demo_options, people, "people", 0, INT, "72", 6, DEMO_MAX_PEOPLE, "N",
             "How many people come, impostors included"),
    WEIR_OPT(demo_options, photos, "photos", 0, INT, "24", 8, DEMO_MAX_PHOTOS, "N",
             "Photos of each drawn person; five are enrolled"),
    WEIR_OPT(demo_options, passers, "passers", 0, INT, "150", 0, DEMO_MAX_PASSERS, "N",
             "Passers-by by whose photos the threshold is set; 0: by the gallery itself"),
    WEIR_OPT(demo_options, cameras, "cameras", 0, INT, "3", 1, DEMO_MAX_CAMERAS, "N",
             "How many cameras"),
    WEIR_OPT(demo_options, frames_per_second, "fps", 0, F64, "10", 0.1, 200, "N",
             "Frames a second of each camera"),
    WEIR_OPT(demo_options, listen, "listen", 0, TEXT, "127.0.0.1:0", 0, 0, "HOST:PORT",
             "Where cameras stream over RTSP; port 0: any free one"),
    WEIR_OPT(demo_options, login, "login", 0, TEXT, NULL, 0, 0, "USER:PASSWORD",
             "Of camera: what a watcher has to know"),
    WEIR_OPT(demo_options, seconds, "seconds", 0, F64, "8", 1, 3600, "S",
             "How long frames flow between two steps"),
};

void demo_say(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)fprintf(stderr, "demo: ");
    (void)vfprintf(stderr, fmt, args);
    (void)fputc('\n', stderr);
    va_end(args);
}

weir_status demo_pause_ms(int signal_fd, int64_t ms)
{
    struct pollfd wait = {.fd = signal_fd, .events = POLLIN};
    int64_t until = weir_mono_ms() + ms;
    for (int64_t left = ms; left > 0; left = until - weir_mono_ms()) {
        if (poll(&wait, 1, (int)left) > 0) {
            return WEIR_ERR_CANCELLED;
        }
    }
    return WEIR_OK;
}

weir_status demo_get(struct demo *demo, const char *path, json_t **out, struct weir_error *err)
{
    return weir_client_call_retry(demo->call->client, "GET", path, NULL, 30000, out, err);
}

weir_status demo_send(struct demo *demo, const char *method, const char *path, json_t *body,
                      json_t **out, struct weir_error *err)
{
    weir_status status = cli_rest(demo->call, method, path, body, out, err);
    json_decref(body);
    return status;
}

/* ---- where things are -------------------------------------------------------------------------
 */

static weir_status find_example(struct demo *demo, struct weir_error *err)
{
    static const char *const beside[] = {"../../../examples", "../examples",
                                         "../share/weir/examples"};
    struct weir_arena *arena = demo->call->arena;
    char self[4096];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    self[len > 0 ? len : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
    if (demo->options->example != NULL) {
        demo->example_dir = demo->options->example;
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(beside) && demo->example_dir == NULL; i++) {
        char *dir = weir_arena_printf(arena, "%s/%s/building-security", self, beside[i]);
        demo->example_dir = weir_path_is_dir(dir) ? dir : NULL;
    }
    if (demo->example_dir == NULL || !weir_path_is_dir(demo->example_dir)) {
        return weir_error_set(
            err, WEIR_ERR_NOT_FOUND,
            "the example's folder is not beside the program; name it with --example DIR");
    }
    return WEIR_OK;
}

static weir_status make_stage(struct demo *demo, struct weir_error *err)
{
    struct weir_arena *arena = demo->call->arena;
    const char *wanted =
        demo->options->work != NULL
            ? demo->options->work
            : weir_arena_printf(arena, "%s/demo", cli_state_dir(arena, demo->call->common->state));
    WEIR_TRY(weir_dir_make(wanted, 0700, err));
    char *absolute = realpath(wanted, NULL);
    if (absolute == NULL) {
        return weir_error_set_errno(err, errno, "cannot resolve %s", wanted);
    }
    demo->work_dir = weir_arena_strdup(arena, absolute);
    free(absolute);
    demo->frames_dir = weir_arena_printf(arena, "%s/frames", demo->work_dir);
    demo->ledger_path = weir_arena_printf(arena, "%s/sent.jsonl", demo->work_dir);
    demo->sink_path = weir_arena_printf(arena, "%s/decisions.jsonl", demo->work_dir);
    WEIR_TRY(weir_dir_remove(weir_arena_printf(arena, "%s/people", demo->work_dir), err));
    return weir_dir_make(demo->frames_dir, 0700, err);
}

/* ---- steps ------------------------------------------------------------------------------------
 */

static char *replace_all(struct weir_arena *arena, const char *text, const char *what,
                         const char *with)
{
    char *result = weir_arena_strdup(arena, text);
    for (char *at = strstr(result, what); at != NULL; at = strstr(result, what)) {
        result = weir_arena_printf(arena, "%.*s%s%s", (int)(at - result), result, with,
                                   at + strlen(what));
    }
    return result;
}

static weir_status upload_person(struct demo *demo, const char *dataset,
                                 const struct demo_person *person, struct weir_error *err)
{
    for (size_t i = 1; i <= demo_uploaded_photos(demo, person); i++) {
        char *file = weir_arena_printf(demo->call->arena, "%s/people/%s/%zu.pgm", demo->work_dir,
                                       person->name, i);
        char *name = weir_arena_printf(demo->call->arena, "%zu.pgm", i);
        const char *parts[] = {dataset, person->name, name};
        char *path =
            weir_client_path(demo->call->arena, "/api/v1/datasets/{}/files/{}/{}", parts, 3);
        WEIR_TRY(weir_client_send_file(demo->call->client, "PUT", path, "application/octet-stream",
                                       file, NULL, err));
    }
    return WEIR_OK;
}

/* Freeze a dataset; its new version. */
static weir_status freeze(struct demo *demo, const char *dataset, int64_t *out_version,
                          struct weir_error *err)
{
    json_t *answer;
    WEIR_TRY(demo_send(demo, "POST", cli_path1(demo->call, "/api/v1/datasets/{}/versions", dataset),
                       NULL, &answer, err));
    *out_version = json_integer_value(json_object_get(answer, "version"));
    json_decref(answer);
    return WEIR_OK;
}

/* Upload everyone of a part, freeze, and remember from which version on they are enrolled. */
static weir_status enrol(struct demo *demo, enum demo_part part, struct weir_error *err)
{
    int64_t version;
    int n = 0;
    for (size_t i = 0; i < demo->n_people; i++) {
        if (demo->people[i].part == part) {
            WEIR_TRY(upload_person(demo, demo->dataset, &demo->people[i], err));
            n++;
        }
    }
    WEIR_TRY(freeze(demo, demo->dataset, &version, err));
    for (size_t i = 0; i < demo->n_people; i++) {
        if (demo->people[i].part == part) {
            atomic_store(&demo->people[i].enrolled_version, version);
        }
    }
    demo_say("%d people enrolled: dataset %s version %lld", n, demo->dataset, (long long)version);
    return WEIR_OK;
}

/* People who are neither enrolled nor trained on. The first model is trained meanwhile. */
static weir_status show_passers(struct demo *demo, struct weir_error *err)
{
    int64_t version;
    if (demo->n_passers == 0) {
        return WEIR_OK;
    }
    WEIR_TRY(demo_cast_passers(demo, err));
    for (size_t i = 0; i < demo->n_passers; i++) {
        WEIR_TRY(upload_person(demo, demo->impostors, &demo->passers[i], err));
    }
    WEIR_TRY(freeze(demo, demo->impostors, &version, err));
    demo_say("%zu passers-by: dataset %s version %lld", demo->n_passers, demo->impostors,
             (long long)version);
    return WEIR_OK;
}

/* What an earlier run left of these people goes. */
static weir_status create_dataset(struct demo *demo, const char *dataset,
                                  const struct demo_person *people, size_t n_people,
                                  struct weir_error *err)
{
    struct weir_error reason;
    weir_status status =
        demo_send(demo, "POST", "/api/v1/datasets",
                  json_pack("{s:s,s:s}", "name", dataset, "kind", "folder"), NULL, &reason);
    if (status != WEIR_OK && status != WEIR_ERR_EXISTS) {
        return weir_error_set(err, status, "%s", reason.message);
    }
    for (size_t i = 0; status == WEIR_ERR_EXISTS && i < n_people; i++) {
        const char *parts[] = {dataset, people[i].name};
        char *path = weir_client_path(demo->call->arena, "/api/v1/datasets/{}/files/{}", parts, 2);
        weir_status removed = cli_rest(demo->call, "DELETE", path, NULL, NULL, &reason);
        if (removed != WEIR_OK && removed != WEIR_ERR_NOT_FOUND) {
            return weir_error_set(err, removed, "%s", reason.message);
        }
    }
    return WEIR_OK;
}

/* Without passers-by the threshold is set by the gallery. */
static void drop_impostors(json_t *document)
{
    json_t *pipeline;
    size_t i;
    json_array_foreach(json_object_get(document, "pipelines"), i, pipeline)
    {
        (void)json_object_del(json_object_get(pipeline, "gallery"), "impostors");
    }
}

weir_status demo_read_ion(struct demo *demo, const char *file, json_t **out, struct weir_error *err)
{
    struct weir_arena *arena = demo->call->arena;
    char *text, *path = weir_arena_printf(arena, "%s/%s", demo->example_dir, file);
    size_t len;
    WEIR_TRY(weir_file_read(path, DEMO_MAX_BYTES, arena, &text, &len, err));
    text = replace_all(arena, text, "@WORK@", demo->work_dir);
    WEIR_TRY(weir_yaml_parse(text, strlen(text), path, false, out, err));
    if (demo->n_passers == 0) {
        drop_impostors(*out);
    }
    return WEIR_OK;
}

/* Nodes that joined by themselves are taken to share this machine's folders; those of clusters have disks of their own. */
static weir_status find_nodes(struct demo *demo, struct weir_error *err)
{
    json_t *clusters, *nodes, *node;
    size_t i;
    WEIR_TRY(demo_get(demo, "/api/v1/clusters", &clusters, err));
    demo->is_apart = json_array_size(json_object_get(clusters, "items")) > 0;
    json_decref(clusters);
    WEIR_TRY(demo_get(demo, "/api/v1/nodes?limit=1000", &nodes, err));
    json_array_foreach(json_object_get(nodes, "items"), i, node)
    {
        demo->is_apart = demo->is_apart && !json_is_null(json_object_get(node, "cluster"));
    }
    json_decref(nodes);
    return WEIR_OK;
}

/* Whether video is shown: to replicas that reach this machine. */
static bool shows_video(const struct demo *demo)
{
    return !demo->is_apart && demo_video_is_there(demo);
}

static weir_status apply_ion(struct demo *demo, struct weir_error *err)
{
    json_t *document, *answer;
    WEIR_TRY(find_nodes(demo, err));
    WEIR_TRY(demo_read_ion(demo, "ion.yaml", &document, err));
    if (shows_video(demo)) {
        WEIR_TRY(demo_video_add_finder(demo, document, err));
    }
    if (demo->is_apart) {
        WEIR_TRY(demo_requests_put(demo, document, err));
        demo_say("its nodes are a cluster's, with disks of their own: cameras send frames over "
                 "HTTP, and no video");
    }
    WEIR_TRY(demo_send(demo, "POST", "/api/v1/ions", document, &answer, err));
    demo_say("ION %s applied, revision %s", demo->ion, cli_text(demo->call, answer, "revision"));
    json_decref(answer);
    return WEIR_OK;
}

weir_status demo_trigger(struct demo *demo, const char *pipeline, struct weir_error *err)
{
    return demo_send(demo, "POST", cli_path1(demo->call, "/api/v1/ions/{}/trigger", demo->ion),
                     json_pack("{s:s}", "pipeline", pipeline), NULL, err);
}

/* Version that the ION's link serves, and the gallery's; 0 = none yet. */
static weir_status serving(struct demo *demo, int64_t *out_model, int64_t *out_gallery,
                           int64_t *out_lists, struct weir_error *err)
{
    json_t *ion, *pipeline;
    size_t i;
    WEIR_TRY(demo_get(demo, cli_path1(demo->call, "/api/v1/ions/{}", demo->ion), &ion, err));
    json_t *link = json_array_get(json_object_get(ion, "links"), 0);
    *out_model = json_integer_value(json_object_get(link, "serving_version"));
    *out_lists = json_integer_value(json_object_get(ion, "list_revision"));
    *out_gallery = 0;
    json_array_foreach(json_object_get(ion, "pipelines"), i, pipeline)
    {
        int64_t version = json_integer_value(json_object_get(pipeline, "gallery_version"));
        *out_gallery = WEIR_MAX(*out_gallery, version);
    }
    json_decref(ion);
    return WEIR_OK;
}

/* One line about the training that runs. */
static weir_status show_training(struct demo *demo, char *last, size_t size, struct weir_error *err)
{
    json_t *runs;
    char line[256];
    WEIR_TRY(demo_get(demo, "/api/v1/runs?limit=1", &runs, err));
    json_t *run = json_array_get(json_object_get(runs, "items"), 0);
    (void)snprintf(
        line, sizeof line, "training: %s, epoch %s of %s, loss %s, accuracy %s, %s images/s",
        cli_text(demo->call, run, "status"), cli_text(demo->call, run, "epoch"),
        cli_text(demo->call, run, "epochs"), cli_text(demo->call, run, "loss"),
        cli_text(demo->call, run, "accuracy"), cli_text(demo->call, run, "images_per_second"));
    const char *status = json_string_value(json_object_get(run, "status"));
    if (status != NULL && strcmp(status, "FAILED") == 0) {
        json_decref(runs);
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                              "the training failed; see `weir get jobs` and `weir logs %s`",
                              demo->ion);
    }
    if (strcmp(line, last) != 0 && run != NULL) {
        demo_say("%s", line);
        (void)snprintf(last, size, "%s", line);
    }
    json_decref(runs);
    return WEIR_OK;
}

/* Wait until a later model than `model` serves. */
static weir_status wait_for_model(struct demo *demo, int64_t model, int signal_fd,
                                  int64_t *out_model, struct weir_error *err)
{
    char last[256] = "";
    int64_t until = weir_mono_ms() + TRAINING_MAX_MS, now, gallery, lists;
    for (int round = 0;; round++) {
        WEIR_TRY(serving(demo, &now, &gallery, &lists, err));
        if (now > model) {
            demo_say("model version %lld serves", (long long)now);
            *out_model = now;
            return WEIR_OK;
        }
        if (weir_mono_ms() > until) {
            return weir_error_set(err, WEIR_ERR_TIMEOUT, "no new model within %lld minutes",
                                  (long long)(TRAINING_MAX_MS / 60000));
        }
        if (round % 7 == 0) {
            WEIR_TRY(show_training(demo, last, sizeof last, err));
        }
        WEIR_TRY(demo_pause_ms(signal_fd, POLL_MS));
    }
}

static weir_status count_decisions(struct demo *demo, int64_t *out_n, int64_t *out_last_seq,
                                   struct weir_error *err)
{
    json_t *summary;
    char *path = weir_arena_printf(demo->call->arena, "/api/v1/decisions/summary?ion=%s&after=%lld",
                                   demo->ion, (long long)demo->first_seq);
    WEIR_TRY(demo_get(demo, path, &summary, err));
    *out_n = json_integer_value(json_object_get(summary, "decisions"));
    *out_last_seq = json_integer_value(json_object_get(summary, "last_seq"));
    json_decref(summary);
    return WEIR_OK;
}

static weir_status wait_for_first_decision(struct demo *demo, int signal_fd, struct weir_error *err)
{
    int64_t until = weir_mono_ms() + CATCH_UP_MAX_MS, n = 0, seq;
    while (n == 0) {
        WEIR_TRY(count_decisions(demo, &n, &seq, err));
        if (weir_mono_ms() > until) {
            return weir_error_set(err, WEIR_ERR_TIMEOUT,
                                  "no decision within %lld s; see `weir logs %s`",
                                  (long long)(CATCH_UP_MAX_MS / 1000), demo->ion);
        }
        WEIR_TRY(demo_pause_ms(signal_fd, 100));
    }
    demo_say("first live decision %.1f s after the start",
             (double)(weir_time_ms() - demo->started_ms) / 1000);
    return WEIR_OK;
}

static weir_status bar_someone(struct demo *demo, struct weir_error *err)
{
    struct demo_person *person = &demo->people[0];
    int64_t model, gallery, lists;
    const char *parts[] = {demo->ion, person->name};
    char *path = weir_client_path(demo->call->arena, "/api/v1/ions/{}/members/{}", parts, 2);
    WEIR_TRY(demo_send(demo, "PUT", path, json_pack("{s:s}", "list", "deny"), NULL, err));
    WEIR_TRY(serving(demo, &model, &gallery, &lists, err));
    atomic_store(&person->barred_revision, lists);
    demo_say("%s is barred: list revision %lld", person->name, (long long)lists);
    return WEIR_OK;
}

/* Lists of an earlier run must not be judged as this one's. */
static weir_status clear_lists(struct demo *demo, struct weir_error *err)
{
    const char *parts[] = {demo->ion, demo->people[0].name};
    return cli_rest(demo->call, "DELETE",
                    weir_client_path(demo->call->arena, "/api/v1/ions/{}/members/{}", parts, 2),
                    NULL, NULL, err);
}

static weir_status play(struct demo *demo, int signal_fd, struct weir_error *err)
{
    int64_t pause = (int64_t)(demo->options->seconds * 1000), model, gallery, lists, n;
    WEIR_TRY(create_dataset(demo, demo->dataset, demo->people, demo->n_people, err));
    if (demo->n_passers > 0) {
        WEIR_TRY(create_dataset(demo, demo->impostors, demo->passers, demo->n_passers, err));
    }
    WEIR_TRY(enrol(demo, DEMO_STAFF, err));
    struct weir_error ignored;
    int64_t before = 0;
    if (serving(demo, &before, &gallery, &lists, &ignored) != WEIR_OK) {
        before = 0;
    }
    WEIR_TRY(apply_ion(demo, err));
    WEIR_TRY(clear_lists(demo, err));
    WEIR_TRY(count_decisions(demo, &n, &demo->first_seq, err));
    if (before > 0) {
        WEIR_TRY(demo_trigger(demo, "training", err));
    }
    WEIR_TRY(show_passers(demo, err));
    WEIR_TRY(wait_for_model(demo, before, signal_fd, &model, err));
    WEIR_TRY(demo_ledger_open(demo, err));
    WEIR_TRY(
        demo_cameras_start(demo, demo->is_apart ? &camera_of_requests : &camera_of_folder, err));
    demo_say("%zu cameras, %.3g frames a second each", demo->n_cameras,
             demo->options->frames_per_second);
    WEIR_TRY(wait_for_first_decision(demo, signal_fd, err));
    const bool has_video = shows_video(demo);
    if (has_video) {
        WEIR_TRY(demo_video_learn(demo, err));
    }
    WEIR_TRY(demo_pause_ms(signal_fd, pause));
    WEIR_TRY(bar_someone(demo, err));
    WEIR_TRY(demo_pause_ms(signal_fd, pause));
    if (has_video) {
        WEIR_TRY(demo_video_switch(demo, signal_fd, err));
    }
    WEIR_TRY(enrol(demo, DEMO_JOINER, err));
    WEIR_TRY(wait_for_model(demo, model, signal_fd, &model, err));
    WEIR_TRY(demo_pause_ms(signal_fd, pause));
    WEIR_TRY(demo_trigger(demo, "training", err));
    demo_say("retraining by hand, frames flow on");
    WEIR_TRY(wait_for_model(demo, model, signal_fd, &model, err));
    return demo_pause_ms(signal_fd, pause);
}

static int64_t ledger_lines(const struct demo *demo)
{
    int64_t n = 0;
    FILE *file = fopen(demo->ledger_path, "re");
    for (int c = file != NULL ? fgetc(file) : EOF; c != EOF; c = fgetc(file)) {
        n += c == '\n';
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return n;
}

weir_status demo_catch_up(struct demo *demo, struct weir_error *err)
{
    int64_t until = weir_mono_ms() + CATCH_UP_MAX_MS, n_sent = ledger_lines(demo), n = 0, seq;
    struct timespec pause = {.tv_nsec = 100000000};
    while (n < n_sent && weir_mono_ms() < until) {
        WEIR_TRY(count_decisions(demo, &n, &seq, err));
        if (n < n_sent) {
            (void)nanosleep(&pause, NULL);
        }
    }
    return WEIR_OK;
}

static weir_status run_stage(struct demo *demo, int signal_fd, struct weir_error *err)
{
    if (demo->options->login != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--login is of the demo \"camera\"; building-security watches its "
                              "cameras without one");
    }
    demo->ion = "building-security";
    demo->dataset = "faces";
    demo->impostors = "passers-by";
    demo->started_ms = weir_time_ms();
    demo->first_frame = demo->started_ms / 1000 * 1000;
    WEIR_TRY(cli_connect(demo->call, err));
    WEIR_TRY(find_example(demo, err));
    WEIR_TRY(make_stage(demo, err));
    demo->n_enrolled_photos = ENROLLED_PHOTOS;
    WEIR_TRY(demo_cast(demo, err));
    WEIR_TRY(demo_cast_write(demo, err));
    weir_status status = play(demo, signal_fd, err);
    if (status == WEIR_OK && !demo->options->is_once) {
        demo_say("the scenario is over; frames flow on until you press Ctrl-C");
        (void)demo_pause_ms(signal_fd, INT32_MAX);
    }
    demo_cameras_stop(demo);
    if (status != WEIR_OK && status != WEIR_ERR_CANCELLED) {
        return status;
    }
    WEIR_TRY(demo_catch_up(demo, err));
    return demo_report(demo, err);
}

/* The people walking by are noted where --work says. */
static weir_status note_walkers(struct demo *demo, struct weir_error *err)
{
    const char *folder = demo->options->work;
    if (folder == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_dir_make(folder, 0700, err));
    demo->ledger_path = weir_arena_printf(demo->call->arena, "%s/sent.jsonl", folder);
    return demo_ledger_open(demo, err);
}

/* A camera of the network, until a signal. */
static weir_status run_camera(struct demo *demo, int signal_fd, struct weir_error *err)
{
    WEIR_TRY(demo_cast(demo, err));
    WEIR_TRY(note_walkers(demo, err));
    WEIR_TRY(demo_streams_start(demo, err));
    WEIR_TRY(demo_cameras_start(demo, &camera_of_stream, err));
    for (size_t i = 0; i < demo->n_cameras; i++) {
        demo_say("%s: rtsp://%.*s:%d/%s", demo_camera_name(demo->call->arena, i),
                 (int)(strrchr(demo->options->listen, ':') - demo->options->listen),
                 demo->options->listen, demo->streams_port, demo_camera_name(demo->call->arena, i));
    }
    demo_say("people come by while somebody watches, until you press Ctrl-C");
    weir_status status = demo_pause_ms(signal_fd, INT32_MAX);
    return status == WEIR_ERR_CANCELLED ? WEIR_OK : status;
}

static const struct play {
    const char *name;
    weir_status (*run)(struct demo *demo, int signal_fd, struct weir_error *err);
} plays[] = {{"building-security", run_stage}, {"camera", run_camera}};

static const struct play *find_play(const char *name)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(plays); i++) {
        if (strcmp(plays[i].name, name) == 0) {
            return &plays[i];
        }
    }
    return NULL;
}

static weir_status run_demo(struct cli_call *call, struct weir_error *err)
{
    struct demo *demo = WEIR_ARENA_NEW(call->arena, struct demo);
    sigset_t signals;
    const struct play *play = find_play(call->words[0]);
    if (play == NULL) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "there is no demo \"%.40s\"; there are building-security and camera",
                              call->words[0]);
    }
    demo->call = call;
    demo->options = call->options;
    (void)umask(077); /* what it makes lies in the state folder */
    demo->ledger_fd = -1;
    pthread_mutex_init(&demo->ledger_lock, NULL);
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    int signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
    weir_status status = play->run(demo, signal_fd, err);
    demo_cameras_stop(demo);
    demo_streams_close(demo->streams);
    if (demo->ledger_fd >= 0) {
        (void)close(demo->ledger_fd);
    }
    (void)close(signal_fd);
    pthread_mutex_destroy(&demo->ledger_lock);
    return status;
}

const struct cli_command weir_demo = {
    .name = "demo",
    .usage = "building-security|camera [--faces DIR] [--once] [-o json]",
    .summary = "Play an example against a running server, or a camera",
    .help =
        "building-security: two workers train a face recogniser, the model goes live, cameras "
        "send\n"
        "enrolled, barred and unknown people, someone is barred, others are enrolled, the model "
        "is\n"
        "retrained and swapped while frames flow. Where weir-camera is installed, a detector is\n"
        "trained meanwhile, and then the cameras send video. Ends with a report from the recorded\n"
        "decisions.\n"
        "camera: cameras over RTSP for who has none at hand, whom people walk by; without a "
        "server.",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(demo_options, options),
    .run = run_demo,
};
