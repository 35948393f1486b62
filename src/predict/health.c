#include "predict/health.h"

#include "base/clock.h"
#include "base/deadline.h"
#include "base/log.h"
#include "client/client.h"
#include "predict/camera_watch.h"
#include "predict/farthest.h"
#include "predict/intake.h"
#include "stats/stats.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAILBOX_MAX    1024
#define REPORT_GAP_NS  ((int64_t)10 * 1000 * 1000 * 1000)
#define REPORT_WAIT_MS 5000
#define LIMIT_RATE     0.01 /* of a single window: what a report's limits are passed by */
#define DUPLICATES_MAX 0.01 /* share of frames that may come again */
#define DUPLICATES_P   0.001
#define SILENCES       10 /* times as long as it takes to be frozen */
#define SILENT_MIN_MS  10000
#define FORGET_GAP_MS  1000

struct sample {
    struct serving *serving; /**< Counted. */
    char camera[FRAME_CAMERA_BYTES];
    struct health_values values; /**< Its camera is the one above. */
};

struct signal {
    struct weir_monitor monitor;
    struct farthest farthest; /**< Since the last report. */
    int64_t reported_ns;      /**< 0: never. */
};

/** What is counted of frames that came again. */
struct duplicates {
    uint64_t n, n_again, i_window;
    bool was_many; /**< In the window before. */
    bool is_drifted;
    int64_t reported_ns;
};

struct health {
    const struct predict_spec *spec;
    pthread_t thread;
    struct weir_client *client;
    /* Under lock. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct sample *mailbox; /**< Ring. */
    size_t i_first, n;
    bool is_stopping;
    /* The thread's own. */
    struct serving *serving; /**< That the signals are for. */
    struct signal signals[MODEL_N_SIGNALS];
    struct duplicates duplicates;
    struct camera_watch *cameras;
    int64_t forgot_ms; /**< When silent cameras were looked for. */
    /* The engine's thread's own. */
    struct serving *due_serving; /**< That is counted for. */
    struct camera_watch *due;
};

static void watch(struct health *health, enum model_signal i, double threshold)
{
    struct weir_error err;
    const struct model *model = health->serving->model;
    const struct weir_histogram *baseline = model->has_baseline[i] ? &model->baselines[i] : NULL;
    const struct weir_signal *asked = weir_signal_find(model_signal_names[i]);
    const struct weir_drift_config config = {.window = (uint32_t)health->spec->health_window,
                                             .seed = WEIR_MONITOR_SEED};
    struct signal *signal = &health->signals[i];
    *signal = (struct signal){0};
    if (weir_monitor_init(&signal->monitor, asked, baseline, threshold, &config, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "health_signal_not_watched", WEIR_KV_STR("signal", asked->name),
                 WEIR_KV_STR("reason", err.message));
    }
    if (signal->monitor.is_watched) {
        farthest_init(&signal->farthest, &signal->monitor.drift.baseline, asked->far_out > 0);
    }
}

/* Do frames of both count for the same windows? */
static bool is_same(const struct serving *a, const struct serving *b)
{
    return a != NULL && a->model == b->model && (a->gallery != NULL) == (b->gallery != NULL) &&
           (a->gallery == NULL || serving_threshold(a) == serving_threshold(b));
}

static void begin_anew(struct health *health, struct serving *serving)
{
    serving_unref(health->serving);
    health->serving = serving_ref(serving);
    for (int i = 0; i < MODEL_N_SIGNALS; i++) {
        /* Of labels all count: a picture that the model is unsure of is what is looked for. */
        bool is_cut = i == MODEL_SCORE && serving->gallery != NULL;
        watch(health, (enum model_signal)i, is_cut ? serving_threshold(serving) : NAN);
    }
    health->duplicates = (struct duplicates){0};
    health->cameras->n = 0;
}

/* ---- reports --------------------------------------------------------------------------------- */

/** What is told of one window of one signal. */
struct told {
    const char *signal, *statistic;
    double value, p_value;
    bool is_drifted;
    uint64_t n_values;
    json_t *detail; /**< Taken. */
};

static void tell(struct health *health, const struct told *told)
{
    struct weir_error err;
    const struct predict_spec *spec = health->spec;
    weir_log(told->is_drifted ? WEIR_LOG_WARN : WEIR_LOG_INFO, "health_report",
             WEIR_KV_STR("signal", told->signal), WEIR_KV_INT("drifted", told->is_drifted),
             WEIR_KV_STR("statistic", told->statistic), WEIR_KV_F64("value", told->value),
             WEIR_KV_F64("p_value", told->p_value));
    if (health->client == NULL) {
        json_decref(told->detail);
        return;
    }
    json_t *body = json_pack("{s:s,s:s,s:s,s:s,s:s,s:f,s:f,s:b,s:I,s:I,s:o}", "ion", spec->ion,
                             "pipeline", spec->pipeline, "replica", spec->host.replica, "signal",
                             told->signal, "statistic", told->statistic, "value", told->value,
                             "p_value", told->p_value, "drifted", (int)told->is_drifted,
                             "n_samples", (json_int_t)told->n_values, "model_version",
                             (json_int_t)health->serving->model->version, "detail", told->detail);
    if (weir_client_call(health->client, "POST", "/api/v1/health-reports", body, NULL, &err) !=
        WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "health_report_lost", WEIR_KV_STR("reason", err.message));
    }
    json_decref(body);
}

/* The measures that others use, beside what they pass by chance in a window of this size. */
static void add_distances(json_t *detail, const struct weir_histogram *baseline,
                          const struct weir_histogram *live)
{
    json_t *values = json_object(), *limits = json_object();
    for (size_t i = 0; i < weir_n_distances; i++) {
        const struct weir_distance *distance = &weir_distances[i];
        double value = distance->of(baseline, live);
        double limit = weir_distance_limit(distance, baseline, live, LIMIT_RATE, WEIR_MONITOR_SEED);
        if (isfinite(value) && isfinite(limit)) {
            json_object_set_new(values, distance->name, json_real(value));
            json_object_set_new(limits, distance->name, json_real(limit));
        }
    }
    json_object_set_new(detail, "distances", values);
    json_object_set_new(detail, "limits", limits);
}

static void report(struct health *health, struct signal *signal,
                   const struct weir_monitor_report *found)
{
    const struct weir_monitor *monitor = &signal->monitor;
    const struct weir_drift_report *window = &found->window;
    const struct weir_histogram *baseline = &monitor->drift.baseline, *live = &monitor->drift.ended;
    json_t *detail = json_pack(
        "{s:I,s:f,s:f,s:f,s:f,s:f,s:f,s:o,s:o,s:o}", "window", (json_int_t)window->i_window,
        "effect", window->effect, "live_mean", window->live_mean, "live_stddev",
        window->live_stddev, "baseline_mean", window->baseline_mean, "baseline_stddev",
        window->baseline_stddev, "level", found->level, "live", weir_histogram_counts_json(live),
        "baseline", weir_histogram_counts_json(baseline), "farthest",
        farthest_take(&signal->farthest));
    add_distances(detail, baseline, live);
    tell(health, &(struct told){.signal = monitor->signal->name,
                                .statistic = found->statistic,
                                .value = found->value,
                                .p_value = found->p_value,
                                .is_drifted = found->is_drifted,
                                .n_values = window->n_values,
                                .detail = detail});
}

/* Is a report to be told? A change always is, others once in a while. */
static bool is_due(int64_t *reported_ns, bool is_change)
{
    int64_t now_ns = weir_mono_ns();
    if (!is_change && *reported_ns != 0 && now_ns - *reported_ns < REPORT_GAP_NS) {
        return false;
    }
    *reported_ns = now_ns;
    return true;
}

static void add_value(struct health *health, struct signal *signal, const struct sample *sample,
                      double value)
{
    struct weir_monitor_report found;
    if (weir_monitor_wants(&signal->monitor, value)) {
        farthest_add(&signal->farthest, sample->camera, sample->values.frame,
                     sample->values.time_ms, value);
    }
    if (weir_monitor_add(&signal->monitor, value, &found) &&
        is_due(&signal->reported_ns, found.is_change)) {
        report(health, signal, &found);
    }
}

/* ---- cameras --------------------------------------------------------------------------------- */

static void report_frozen(struct health *health)
{
    json_t *names = json_array();
    uint64_t n_equal = 0;
    for (size_t i = 0; i < health->cameras->n; i++) {
        const struct watched_camera *camera = &health->cameras->items[i];
        if (camera->is_frozen) {
            json_array_append_new(names, json_string(camera->name));
            n_equal = WEIR_MAX(n_equal, camera->frozen.n_equal);
        }
    }
    size_t n = json_array_size(names);
    tell(health,
         &(struct told){.signal = "frozen",
                        .statistic = "rate",
                        .value = (double)n / (double)WEIR_MAX(health->cameras->n, (size_t)1),
                        .p_value = n > 0 ? 0 : 1,
                        .is_drifted = n > 0,
                        .n_values = n_equal,
                        .detail = json_pack("{s:o}", "cameras", names)});
}

/* A window of frames is over: were too many of them seen before? Twice in a row is a drift. */
static void end_duplicates(struct health *health)
{
    struct duplicates *duplicates = &health->duplicates;
    double p = weir_binomial_p(duplicates->n_again, duplicates->n, DUPLICATES_MAX);
    bool is_many = p <= DUPLICATES_P, is_drifted = is_many && duplicates->was_many;
    bool is_change = is_drifted != duplicates->is_drifted;
    duplicates->was_many = is_many;
    duplicates->is_drifted = is_drifted;
    if (is_due(&duplicates->reported_ns, is_change)) {
        tell(health, &(struct told){
                         .signal = "duplicate",
                         .statistic = "rate",
                         .value = (double)duplicates->n_again / (double)duplicates->n,
                         .p_value = p,
                         .is_drifted = is_drifted,
                         .n_values = duplicates->n,
                         .detail = json_pack("{s:I}", "window", (json_int_t)duplicates->i_window)});
        report_frozen(health);
    }
    duplicates->n = duplicates->n_again = 0;
    duplicates->i_window++;
}

/* Every frame counts here: equal ones are looked for, not independent ones. */
static void look_for_equal(struct health *health, struct watched_camera *camera,
                           const struct health_values *values)
{
    if (!values->has_digest) {
        return;
    }
    health->duplicates.n_again += weir_frozen_add(&camera->frozen, values->digest, values->time_ms);
    health->duplicates.n++;
    bool is_frozen =
        weir_frozen_is(&camera->frozen, values->time_ms, health->spec->health_frozen_after_ms);
    if (is_frozen != camera->is_frozen) {
        camera->is_frozen = is_frozen;
        report_frozen(health);
    }
    if (health->duplicates.n >= (uint64_t)health->spec->health_window) {
        end_duplicates(health);
    }
}

static int64_t silent_ms(const struct health *health)
{
    return WEIR_MAX(SILENCES * health->spec->health_frozen_after_ms, (int64_t)SILENT_MIN_MS);
}

static struct watched_camera *see(const struct health *health, struct camera_watch *cameras,
                                  const char *name)
{
    int64_t now_ms = weir_mono_ms();
    struct watched_camera *camera = camera_watch_see(cameras, name, now_ms);
    if (camera == NULL) {
        (void)camera_watch_forget(cameras, now_ms, silent_ms(health));
        camera = camera_watch_see(cameras, name, now_ms);
    }
    return camera;
}

static void look_at(struct health *health, const struct sample *sample)
{
    if (!is_same(health->serving, sample->serving)) {
        begin_anew(health, sample->serving);
    }
    struct watched_camera *camera = see(health, health->cameras, sample->camera);
    if (camera == NULL) {
        return;
    }
    look_for_equal(health, camera, &sample->values);
    for (size_t i = 0; i < MODEL_N_SIGNALS && sample->values.is_due; i++) {
        add_value(health, &health->signals[i], sample, sample->values.of[i]);
    }
}

/* A camera that is there no more is not frozen, though no frame says so. */
static void forget_silent(struct health *health)
{
    int64_t now_ms = weir_mono_ms();
    if (now_ms - health->forgot_ms < FORGET_GAP_MS) {
        return;
    }
    health->forgot_ms = now_ms;
    if (camera_watch_forget(health->cameras, now_ms, silent_ms(health))) {
        report_frozen(health);
    }
}

bool health_is_due(struct health *health, struct serving *serving, const char *camera,
                   int64_t time_ms)
{
    if (!is_same(health->due_serving, serving)) {
        serving_unref(health->due_serving);
        health->due_serving = serving_ref(serving);
        health->due->n = 0;
    }
    struct watched_camera *seen = see(health, health->due, camera);
    if (seen == NULL ||
        (seen->due_ms != INT64_MIN &&
         !weir_monitor_is_due(seen->due_ms, time_ms, health->spec->health_interval_ms))) {
        return false;
    }
    seen->due_ms = time_ms;
    return true;
}

/* ---- mailbox --------------------------------------------------------------------------------- */

void health_note(struct health *health, struct serving *serving, const struct health_values *values)
{
    pthread_mutex_lock(&health->lock);
    if (health->n < MAILBOX_MAX) {
        struct sample *sample = &health->mailbox[(health->i_first + health->n++) % MAILBOX_MAX];
        *sample = (struct sample){.serving = serving_ref(serving), .values = *values};
        (void)snprintf(sample->camera, sizeof sample->camera, "%s", values->camera);
        sample->values.camera = NULL; /* the caller's */
        pthread_cond_signal(&health->changed);
    }
    pthread_mutex_unlock(&health->lock);
}

/* Waits for a sample, FORGET_GAP_MS at most. @return false if the end has come. */
static bool take(struct health *health, struct sample *out, bool *out_has_sample)
{
    struct timespec until = weir_deadline_after(FORGET_GAP_MS);
    pthread_mutex_lock(&health->lock);
    int rc = 0;
    while (health->n == 0 && !health->is_stopping && rc != ETIMEDOUT) {
        rc = weir_cond_wait_until(&health->changed, &health->lock, &until);
    }
    bool is_stopping = health->is_stopping;
    *out_has_sample = health->n > 0 && !is_stopping;
    if (*out_has_sample) {
        *out = health->mailbox[health->i_first];
        health->i_first = (health->i_first + 1) % MAILBOX_MAX;
        health->n--;
    }
    pthread_mutex_unlock(&health->lock);
    return !is_stopping;
}

static void *health_main(void *context)
{
    struct health *health = context;
    struct sample sample;
    bool has_sample;
    while (take(health, &sample, &has_sample)) {
        if (has_sample) {
            look_at(health, &sample);
            serving_unref(sample.serving);
        }
        forget_silent(health);
    }
    return NULL;
}

static void health_free(struct health *health)
{
    for (size_t i = 0; i < health->n; i++) {
        serving_unref(health->mailbox[(health->i_first + i) % MAILBOX_MAX].serving);
    }
    serving_unref(health->serving);
    serving_unref(health->due_serving);
    if (health->client != NULL) {
        weir_client_close(health->client);
    }
    pthread_cond_destroy(&health->changed);
    pthread_mutex_destroy(&health->lock);
    free(health->mailbox);
    free(health->cameras);
    free(health->due);
    free(health);
}

weir_status health_start(const struct predict_spec *spec, struct health **out,
                         struct weir_error *err)
{
    struct health *health = weir_xalloc(sizeof *health);
    memset(health, 0, sizeof *health);
    health->spec = spec;
    health->mailbox = weir_xalloc(MAILBOX_MAX * sizeof *health->mailbox);
    health->cameras = weir_xalloc(sizeof *health->cameras);
    health->due = weir_xalloc(sizeof *health->due);
    health->cameras->n = health->due->n = 0;
    pthread_mutex_init(&health->lock, NULL);
    pthread_cond_init(&health->changed, NULL);
    weir_status status = WEIR_OK;
    if (spec->host.server != NULL) {
        status = weir_host_client_open(&spec->host, REPORT_WAIT_MS, &health->client, err);
    }
    if (status == WEIR_OK) {
        int failed = pthread_create(&health->thread, NULL, health_main, health);
        status = failed != 0 ? weir_error_set_errno(err, failed, "starting a thread") : WEIR_OK;
    }
    if (status != WEIR_OK) {
        health_free(health);
        return status;
    }
    *out = health;
    return WEIR_OK;
}

void health_stop(struct health *health)
{
    if (health == NULL) {
        return;
    }
    pthread_mutex_lock(&health->lock);
    health->is_stopping = true;
    pthread_cond_signal(&health->changed);
    pthread_mutex_unlock(&health->lock);
    if (health->client != NULL) {
        weir_client_cancel(health->client);
    }
    pthread_join(health->thread, NULL);
    health_free(health);
}
