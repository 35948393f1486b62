#include "predict/health.h"

#include "base/clock.h"
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
#define REPORT_GAP_NS  ((int64_t)10 * 1000 * 1000 * 1000)
#define REPORT_WAIT_MS 5000
#define DRAWS_SEED     1
#define LIMIT_RATE     0.01 /* of a single window: what a report's limits are passed by */
#define LOOK_EFFECT    0.3
#define FAR_OUT        2.0  /* deviations of training's distances */
#define DUPLICATES_MAX 0.01 /* share of frames that may come again */
#define DUPLICATES_P   0.001

struct sample {
    struct serving *serving; /**< Counted. */
    char camera[FRAME_CAMERA_BYTES];
    struct health_values values; /**< Its camera is the one above. */
};

/** What is remembered of a camera. */
struct camera {
    char name[FRAME_CAMERA_BYTES];
    int64_t time_ms; /**< When it last gave a value. */
    struct weir_frozen frozen;
    bool is_frozen;
};

struct signal {
    const char *name;
    bool is_watched, is_drifted;
    double cut; /**< Only values above are counted. */
    struct weir_drift drift;
    struct weir_sequence sequence;
    int64_t reported_ns; /**< 0: never. */
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
    struct camera *cameras;
    size_t n_cameras;
};

bool health_score_baseline(const struct weir_histogram *score, double threshold,
                           struct weir_histogram *out, double *out_cut)
{
    return weir_histogram_above(score, threshold, WEIR_DRIFT_MIN_VALUES, out, out_cut);
}

static void watch(struct health *health, enum model_signal i, const struct weir_histogram *baseline,
                  double cut)
{
    struct weir_error err;
    struct signal *signal = &health->signals[i];
    bool is_look = i == MODEL_CONTRAST || i == MODEL_SHARPNESS || i == MODEL_ENTROPY;
    const struct weir_drift_config config = {.window = (uint32_t)health->spec->health_window,
                                             .min_effect = is_look ? LOOK_EFFECT : 0,
                                             .seed = DRAWS_SEED};
    *signal = (struct signal){.name = model_signal_names[i], .cut = cut};
    if (baseline == NULL) {
        return;
    }
    if (weir_drift_init(&signal->drift, baseline, &config, &err) != WEIR_OK ||
        weir_sequence_init(&signal->sequence, baseline, 0, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "health_signal_not_watched", WEIR_KV_STR("signal", signal->name),
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
    bool has_score = model->has_baseline[MODEL_SCORE];
    if (has_score && serving->gallery == NULL) {
        /* Labels: a picture that the model is unsure of is what is looked for. */
        kept = model->baselines[MODEL_SCORE];
        cut = -INFINITY;
        has_score = kept.n >= WEIR_DRIFT_MIN_VALUES;
    } else if (has_score) {
        has_score = health_score_baseline(&model->baselines[MODEL_SCORE],
                                          serving_threshold(serving), &kept, &cut);
    }
    serving_unref(health->serving);
    health->serving = serving_ref(serving);
    watch(health, MODEL_SCORE, has_score ? &kept : NULL, cut);
    for (int i = MODEL_SCORE + 1; i < MODEL_N_SIGNALS; i++) {
        bool is_known = model->has_baseline[i] && model->baselines[i].n >= WEIR_DRIFT_MIN_VALUES;
        watch(health, (enum model_signal)i, is_known ? &model->baselines[i] : NULL, -INFINITY);
    }
    health->duplicates = (struct duplicates){0};
    health->n_cameras = 0;
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
    json_t *body =
        json_pack("{s:s,s:s,s:s,s:s,s:s,s:f,s:f,s:b,s:I,s:I,s:o}", "ion", spec->ion, "pipeline",
                  spec->pipeline, "replica", spec->replica, "signal", told->signal, "statistic",
                  told->statistic, "value", told->value, "p_value", told->p_value, "drifted",
                  (int)told->is_drifted, "n_samples", (json_int_t)told->n_values, "model_version",
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
        double limit = weir_distance_limit(distance, baseline, live, LIMIT_RATE, DRAWS_SEED);
        if (isfinite(value) && isfinite(limit)) {
            json_object_set_new(values, distance->name, json_real(value));
            json_object_set_new(limits, distance->name, json_real(limit));
        }
    }
    json_object_set_new(detail, "distances", values);
    json_object_set_new(detail, "limits", limits);
}

static void report(struct health *health, const struct signal *signal,
                   const struct weir_drift_report *found, const struct weir_histogram *live)
{
    bool is_slow = signal->is_drifted && !found->is_confirmed;
    json_t *detail = json_pack(
        "{s:I,s:f,s:f,s:f,s:f,s:f,s:f,s:o,s:o}", "window", (json_int_t)found->i_window, "effect",
        found->effect, "live_mean", found->live_mean, "live_stddev", found->live_stddev,
        "baseline_mean", found->baseline_mean, "baseline_stddev", found->baseline_stddev, "level",
        weir_sequence_level(&signal->sequence), "live", weir_histogram_counts_json(live),
        "baseline", weir_histogram_counts_json(&signal->drift.baseline));
    add_distances(detail, &signal->drift.baseline, live);
    tell(health, &(struct told){.signal = signal->name,
                                .statistic = is_slow ? "slow" : weir_drift_kind_name(found->kind),
                                .value = found->statistic,
                                .p_value = found->p_value,
                                .is_drifted = signal->is_drifted,
                                .n_values = found->n_values,
                                .detail = detail});
}

/* May it be told, though nothing changed? */
static bool is_due(int64_t *reported_ns)
{
    int64_t now_ns = weir_mono_ns();
    if (*reported_ns != 0 && now_ns - *reported_ns < REPORT_GAP_NS) {
        return false;
    }
    *reported_ns = now_ns;
    return true;
}

/* Vectors of few people lie otherwise than those of many: only far out is a drift. */
static bool is_far_out(const struct signal *signal, const struct weir_drift_report *found)
{
    return found->live_mean - found->baseline_mean > FAR_OUT * found->baseline_stddev ||
           signal->name != model_signal_names[MODEL_EMBEDDING];
}

static void add_value(struct health *health, struct signal *signal, double value)
{
    struct weir_drift_report found;
    if (!signal->is_watched || !(value > signal->cut)) {
        return;
    }
    struct weir_histogram live = signal->drift.live;
    weir_histogram_add(&live, value);
    bool is_slow = weir_sequence_add(&signal->sequence, value);
    if (!weir_drift_add(&signal->drift, value, &found)) {
        return;
    }
    bool is_drifted = (found.is_confirmed || is_slow) && is_far_out(signal, &found);
    bool is_change = is_drifted != signal->is_drifted;
    signal->is_drifted = is_drifted;
    if (is_due(&signal->reported_ns) || is_change) {
        report(health, signal, &found, &live);
    }
}

/* ---- cameras --------------------------------------------------------------------------------- */

/* Beyond CAMERAS_MAX cameras the rest is not looked at. */
static struct camera *find_camera(struct health *health, const char *name)
{
    size_t i = 0;
    while (i < health->n_cameras && strcmp(health->cameras[i].name, name) != 0) {
        i++;
    }
    if (i == CAMERAS_MAX) {
        return NULL;
    }
    if (i == health->n_cameras) {
        health->cameras[i] = (struct camera){.time_ms = INT64_MIN};
        (void)snprintf(health->cameras[i].name, sizeof health->cameras[i].name, "%s", name);
        health->n_cameras++;
    }
    return &health->cameras[i];
}

static void report_frozen(struct health *health)
{
    json_t *names = json_array();
    uint64_t n_equal = 0;
    for (size_t i = 0; i < health->n_cameras; i++) {
        const struct camera *camera = &health->cameras[i];
        if (camera->is_frozen) {
            json_array_append_new(names, json_string(camera->name));
            n_equal = WEIR_MAX(n_equal, camera->frozen.n_equal);
        }
    }
    size_t n = json_array_size(names);
    tell(health, &(struct told){.signal = "frozen",
                                .statistic = "rate",
                                .value = (double)n / (double)WEIR_MAX(health->n_cameras, (size_t)1),
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
    if (is_due(&duplicates->reported_ns) || is_change) {
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
static void look_for_equal(struct health *health, struct camera *camera,
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

/* One value per camera and interval. */
static bool is_camera_due(const struct health *health, struct camera *camera, int64_t time_ms)
{
    if (camera->time_ms != INT64_MIN && time_ms >= camera->time_ms &&
        time_ms - camera->time_ms < health->spec->health_interval_ms) {
        return false;
    }
    camera->time_ms = time_ms;
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
    struct camera *camera = find_camera(health, sample->camera);
    if (camera == NULL) {
        return;
    }
    look_for_equal(health, camera, &sample->values);
    if (is_camera_due(health, camera, sample->values.time_ms)) {
        for (size_t i = 0; i < MODEL_N_SIGNALS; i++) {
            add_value(health, &health->signals[i], sample->values.of[i]);
        }
    }
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
