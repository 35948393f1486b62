#include "predict/health.h"

#include "base/log.h"
#include "client/client.h"
#include "predict/intake.h"
#include "stats/above.h"
#include "stats/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAILBOX_MAX    1024
#define CAMERAS_MAX    1024
#define REPORT_EVERY   10
#define REPORT_WAIT_MS 5000
#define DRAWS_SEED     1

struct sample {
    struct serving *serving; /**< Counted. */
    char camera[FRAME_CAMERA_BYTES];
    int64_t time_ms;
    double score, brightness;
};

/** When a camera last gave a value. */
struct camera {
    char name[FRAME_CAMERA_BYTES];
    int64_t time_ms;
};

struct signal {
    const char *name;
    bool is_watched, is_drifted;
    double cut; /**< Only values above are counted. */
    struct weir_drift drift;
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
    struct signal score, brightness;
    struct camera *cameras;
    size_t n_cameras;
};

bool health_score_baseline(const struct weir_histogram *score, double threshold,
                           struct weir_histogram *out, double *out_cut)
{
    return weir_histogram_above(score, threshold, WEIR_DRIFT_MIN_VALUES, out, out_cut);
}

static void watch(struct health *health, struct signal *signal, const char *name,
                  const struct weir_histogram *baseline, double cut)
{
    struct weir_error err;
    const struct weir_drift_config config = {.window = (uint32_t)health->spec->health_window,
                                             .seed = DRAWS_SEED};
    *signal = (struct signal){.name = name, .cut = cut};
    if (baseline == NULL) {
        return;
    }
    if (weir_drift_init(&signal->drift, baseline, &config, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "health_signal_not_watched", WEIR_KV_STR("signal", name),
                 WEIR_KV_STR("reason", err.message));
        return;
    }
    signal->is_watched = true;
}

static void begin_anew(struct health *health, struct serving *serving)
{
    struct weir_histogram kept;
    double cut = 0;
    const struct model *model = serving->model;
    bool has_score = model->has_score_baseline;
    if (has_score && serving->gallery == NULL) {
        /* Labels: a picture that the model is unsure of is what is looked for. */
        kept = model->score_baseline;
        cut = -INFINITY;
        has_score = kept.n >= WEIR_DRIFT_MIN_VALUES;
    } else if (has_score) {
        has_score =
            health_score_baseline(&model->score_baseline, serving_threshold(serving), &kept, &cut);
    }
    serving_unref(health->serving);
    health->serving = serving_ref(serving);
    watch(health, &health->score, "score", has_score ? &kept : NULL, cut);
    watch(health, &health->brightness, "brightness",
          model->has_brightness_baseline ? &model->brightness_baseline : NULL, -INFINITY);
    health->n_cameras = 0;
}

/* ---- reports --------------------------------------------------------------------------------- */

static void report(struct health *health, const struct signal *signal,
                   const struct weir_drift_report *found)
{
    struct weir_error err;
    const struct predict_spec *spec = health->spec;
    weir_log(signal->is_drifted ? WEIR_LOG_WARN : WEIR_LOG_INFO, "health_report",
             WEIR_KV_STR("signal", signal->name), WEIR_KV_INT("drifted", signal->is_drifted),
             WEIR_KV_F64("p_value", found->p_value), WEIR_KV_F64("effect", found->effect),
             WEIR_KV_F64("live_mean", found->live_mean),
             WEIR_KV_F64("baseline_mean", found->baseline_mean));
    if (health->client == NULL) {
        return;
    }
    json_t *body = json_pack("{s:s,s:s,s:s,s:s,s:s,s:f,s:f,s:b,s:I,s:I}", "ion", spec->ion,
                             "pipeline", spec->pipeline, "replica", spec->replica, "signal",
                             signal->name, "statistic", weir_drift_kind_name(found->kind), "value",
                             found->statistic, "p_value", found->p_value, "drifted",
                             (int)signal->is_drifted, "n_samples", (json_int_t)found->n_values,
                             "model_version", (json_int_t)health->serving->model->version);
    json_object_set_new(body, "detail",
                        json_pack("{s:I,s:f,s:f,s:f,s:f,s:f}", "window",
                                  (json_int_t)found->i_window, "effect", found->effect, "live_mean",
                                  found->live_mean, "live_stddev", found->live_stddev,
                                  "baseline_mean", found->baseline_mean, "baseline_stddev",
                                  found->baseline_stddev));
    if (weir_client_call(health->client, "POST", "/api/v1/health-reports", body, NULL, &err) !=
        WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "health_report_lost", WEIR_KV_STR("reason", err.message));
    }
    json_decref(body);
}

static void add_value(struct health *health, struct signal *signal, double value)
{
    struct weir_drift_report found;
    if (!signal->is_watched || !(value > signal->cut) ||
        !weir_drift_add(&signal->drift, value, &found)) {
        return;
    }
    bool is_change = found.is_confirmed != signal->is_drifted;
    signal->is_drifted = found.is_confirmed;
    if (is_change || (found.i_window + 1) % REPORT_EVERY == 0) {
        report(health, signal, &found);
    }
}

/* One value per camera and interval. Beyond CAMERAS_MAX cameras the rest is not looked at. */
static bool is_camera_due(struct health *health, const struct sample *sample)
{
    size_t i = 0;
    while (i < health->n_cameras && strcmp(health->cameras[i].name, sample->camera) != 0) {
        i++;
    }
    if (i == CAMERAS_MAX) {
        return false;
    }
    if (i == health->n_cameras) {
        memcpy(health->cameras[i].name, sample->camera, sizeof sample->camera);
        health->n_cameras++;
    } else if (sample->time_ms - health->cameras[i].time_ms < health->spec->health_interval_ms &&
               sample->time_ms >= health->cameras[i].time_ms) {
        return false;
    }
    health->cameras[i].time_ms = sample->time_ms;
    return true;
}

static void look_at(struct health *health, const struct sample *sample)
{
    const struct serving *now = health->serving;
    if (now == NULL || now->model != sample->serving->model ||
        (now->gallery != NULL) != (sample->serving->gallery != NULL) ||
        (now->gallery != NULL && serving_threshold(now) != serving_threshold(sample->serving))) {
        begin_anew(health, sample->serving);
    }
    if (is_camera_due(health, sample)) {
        add_value(health, &health->brightness, sample->brightness);
        add_value(health, &health->score, sample->score);
    }
}

/* ---- mailbox --------------------------------------------------------------------------------- */

void health_note(struct health *health, struct serving *serving, const char *camera,
                 int64_t time_ms, double score, double brightness)
{
    pthread_mutex_lock(&health->lock);
    if (health->n < MAILBOX_MAX) {
        struct sample *sample = &health->mailbox[(health->i_first + health->n++) % MAILBOX_MAX];
        *sample = (struct sample){.serving = serving_ref(serving),
                                  .time_ms = time_ms,
                                  .score = score,
                                  .brightness = brightness};
        (void)snprintf(sample->camera, sizeof sample->camera, "%s", camera);
        pthread_cond_signal(&health->changed);
    }
    pthread_mutex_unlock(&health->lock);
}

static bool take(struct health *health, struct sample *out)
{
    pthread_mutex_lock(&health->lock);
    while (health->n == 0 && !health->is_stopping) {
        pthread_cond_wait(&health->changed, &health->lock);
    }
    bool has_sample = health->n > 0 && !health->is_stopping;
    if (has_sample) {
        *out = health->mailbox[health->i_first];
        health->i_first = (health->i_first + 1) % MAILBOX_MAX;
        health->n--;
    }
    pthread_mutex_unlock(&health->lock);
    return has_sample;
}

static void *health_main(void *context)
{
    struct health *health = context;
    struct sample sample;
    while (take(health, &sample)) {
        look_at(health, &sample);
        serving_unref(sample.serving);
    }
    return NULL;
}

static void health_free(struct health *health)
{
    for (size_t i = 0; i < health->n; i++) {
        serving_unref(health->mailbox[(health->i_first + i) % MAILBOX_MAX].serving);
    }
    serving_unref(health->serving);
    if (health->client != NULL) {
        weir_client_close(health->client);
    }
    pthread_cond_destroy(&health->changed);
    pthread_mutex_destroy(&health->lock);
    free(health->mailbox);
    free(health->cameras);
    free(health);
}

weir_status health_start(const struct predict_spec *spec, struct health **out,
                         struct weir_error *err)
{
    struct health *health = weir_xalloc(sizeof *health);
    memset(health, 0, sizeof *health);
    health->spec = spec;
    health->mailbox = weir_xalloc(MAILBOX_MAX * sizeof *health->mailbox);
    health->cameras = weir_xalloc(CAMERAS_MAX * sizeof *health->cameras);
    pthread_mutex_init(&health->lock, NULL);
    pthread_cond_init(&health->changed, NULL);
    weir_status status = WEIR_OK;
    if (spec->server != NULL) {
        status = weir_client_open(&(struct weir_client_config){.server = spec->server,
                                                               .token_file = spec->token_file,
                                                               .ca_file = spec->ca_file,
                                                               .timeout_ms = REPORT_WAIT_MS},
                                  &health->client, err);
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
