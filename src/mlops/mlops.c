#include "mlops/mlops_private.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/uuid.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CALL_TIMEOUT_MS 10000

/* Compared by address: records of one list are told together. */
static const char list_metrics[] = "metrics", list_statistics[] = "statistics",
                  list_feedback[] = "feedback";

/* ---- open and close --------------------------------------------------------------------------- */

static const char *given(const char *value, const char *variable)
{
    const char *text = value != NULL ? value : getenv(variable);
    return text != NULL && text[0] != '\0' ? text : NULL;
}

static void open_clients(struct weir_mlops *mlops, const struct weir_mlops_options *options)
{
    const char *token = given(options->token, "WEIR_TOKEN");
    struct weir_client_config config = {
        .server = given(options->server, "WEIR_SERVER"),
        .token = token,
        .token_file = token == NULL && access("token", R_OK) == 0 ? "token" : NULL,
        .ca_file = given(options->ca_file, "WEIR_CA_FILE"),
        .timeout_ms = CALL_TIMEOUT_MS};
    if (weir_client_open(&config, &mlops->client, &mlops->error) == WEIR_OK &&
        weir_client_open(&config, &mlops->asking, &mlops->error) != WEIR_OK) {
        weir_client_close(mlops->client);
        mlops->client = NULL;
    }
}

/* Signals are the program's own. @return false: there is no thread, so records go into the file. */
static bool start_thread(struct weir_mlops *mlops)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&mlops->thread, NULL, mlops_send, mlops);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0) {
        (void)weir_error_set_errno(&mlops->error, code, "cannot start the thread that sends");
    }
    return code == 0;
}

static void close_clients(struct weir_mlops *mlops)
{
    weir_client_close(mlops->client);
    weir_client_close(mlops->asking);
    mlops->client = mlops->asking = NULL;
}

struct weir_mlops *weir_mlops_open(const struct weir_mlops_options *options)
{
    static const struct weir_mlops_options none = {0};
    struct weir_mlops *mlops = calloc(1, sizeof *mlops);
    struct mlops_record *records = calloc(WEIR_MLOPS_QUEUE_MAX, sizeof *records);
    if (mlops == NULL || records == NULL) {
        free(mlops);
        free(records);
        return NULL;
    }
    options = options != NULL ? options : &none;
    mlops->records = records;
    weir_arena_init(&mlops->arena, 0);
    pthread_cond_init(&mlops->has_changed, NULL);
    (void)pthread_mutex_init(&mlops->mutex, NULL);
    (void)pthread_mutex_init(&mlops->is_asking, NULL);
    const char *ion = given(options->ion, "WEIR_ION");
    const char *pipeline = given(options->pipeline, "WEIR_PIPELINE");
    const char *run = given(options->run, "WEIR_RUN");
    const char *file = given(options->file, "WEIR_MLOPS_FILE");
    mlops->ion = ion != NULL ? weir_arena_strdup(&mlops->arena, ion) : NULL;
    mlops->pipeline = pipeline != NULL ? weir_arena_strdup(&mlops->arena, pipeline) : NULL;
    mlops->run = run != NULL ? weir_arena_strdup(&mlops->arena, run) : NULL;
    mlops->file = weir_arena_strdup(&mlops->arena, file != NULL ? file : "weir-mlops.jsonl");
    open_clients(mlops, options);
    if (mlops->client != NULL && !start_thread(mlops)) {
        close_clients(mlops);
    }
    return mlops;
}

size_t weir_mlops_close(struct weir_mlops *mlops, int64_t timeout_ms)
{
    if (mlops == NULL) {
        return 0;
    }
    if (mlops->client != NULL) {
        (void)pthread_mutex_lock(&mlops->mutex);
        mlops->is_stopping = true;
        mlops->stop_ms = weir_mono_ms() + WEIR_MAX(timeout_ms, 0);
        (void)pthread_cond_broadcast(&mlops->has_changed);
        (void)pthread_mutex_unlock(&mlops->mutex);
        if (weir_mlops_flush(mlops, timeout_ms) > 0) {
            weir_client_cancel(mlops->client);
        }
        (void)pthread_join(mlops->thread, NULL);
    }
    size_t n_lost = mlops->n_lost + mlops->n - mlops_write(mlops, mlops->records, mlops->n);
    for (size_t i = 0; i < mlops->n; i++) {
        mlops_record_free(&mlops->records[i]);
    }
    free(mlops->records);
    close_clients(mlops);
    weir_arena_fini(&mlops->arena);
    (void)pthread_cond_destroy(&mlops->has_changed);
    (void)pthread_mutex_destroy(&mlops->mutex);
    (void)pthread_mutex_destroy(&mlops->is_asking);
    free(mlops);
    return n_lost;
}

int weir_mlops_has_server(const struct weir_mlops *mlops)
{
    return mlops != NULL && mlops->client != NULL;
}

void weir_mlops_error(struct weir_mlops *mlops, char *out, size_t size)
{
    if (mlops == NULL) {
        (void)snprintf(out, size, "no memory");
        return;
    }
    (void)pthread_mutex_lock(&mlops->mutex);
    (void)snprintf(out, size, "%s", mlops->error.message);
    (void)pthread_mutex_unlock(&mlops->mutex);
}

/* ---- what is told ------------------------------------------------------------------------------ */

static int refuse(struct weir_mlops *mlops, const char *why)
{
    struct weir_error err = {0};
    (void)weir_error_set(&err, WEIR_ERR_INVALID, "%s", why);
    mlops_remember(mlops, &err);
    return MLOPS_WRONG;
}

/* "/api/v1/ions/door/kpis", for free(). */
static char *path_of(const char *pattern, const char *name)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    char *path = strdup(weir_client_path(&arena, pattern, &name, 1));
    weir_arena_fini(&arena);
    return path;
}

/* Without a server the ION may be named when the file is sent. */
static char *ion_path(const struct weir_mlops *mlops, const char *pattern)
{
    return path_of(pattern, mlops->ion != NULL ? mlops->ion : "-");
}

static bool has_ion(const struct weir_mlops *mlops)
{
    return mlops->ion != NULL || mlops->client == NULL;
}

int weir_mlops_metric(struct weir_mlops *mlops, const char *key, int64_t step, double value)
{
    if (mlops == NULL) {
        return 0;
    }
    if (key == NULL || !isfinite(value)) {
        return refuse(mlops, "a metric has a key and a finite value");
    }
    if (mlops->run == NULL) {
        return refuse(mlops, "metrics are of a run: set WEIR_RUN");
    }
    return mlops_tell(mlops, path_of("/api/v1/runs/{}/metrics", mlops->run), list_metrics,
                      json_pack("{s:s,s:I,s:f,s:I}", "key", key, "step", (json_int_t)step, "value",
                                value, "time_ms", (json_int_t)weir_time_ms()));
}

int weir_mlops_kpi(struct weir_mlops *mlops, const char *name, double value, const char *unit)
{
    if (mlops == NULL) {
        return 0;
    }
    if (name == NULL || !isfinite(value)) {
        return refuse(mlops, "a KPI has a name and a finite value");
    }
    if (!has_ion(mlops)) {
        return refuse(mlops, "KPIs are of an ION: set WEIR_ION");
    }
    return mlops_tell(mlops, ion_path(mlops, "/api/v1/ions/{}/kpis"), NULL,
                      json_pack("{s:s,s:f,s:s*,s:I}", "name", name, "value", value, "unit", unit,
                                "time_ms", (json_int_t)weir_time_ms()));
}

static int tell_statistic(struct weir_mlops *mlops, const char *name, const char *kind,
                          json_t *value)
{
    char id[WEIR_UUID_BYTES];
    weir_uuid_make(id);
    return mlops_tell(mlops, ion_path(mlops, "/api/v1/ions/{}/statistics"), list_statistics,
                      json_pack("{s:s,s:s*,s:s,s:s,s:o,s:I}", "id", id, "pipeline", mlops->pipeline,
                                "name", name, "kind", kind, "value", value, "time_ms",
                                (json_int_t)weir_time_ms()));
}

int weir_mlops_statistic(struct weir_mlops *mlops, const char *name, const char *kind,
                         const char *value)
{
    struct weir_error err = {0};
    json_t *json = NULL;
    if (mlops == NULL) {
        return 0;
    }
    if (name == NULL || kind == NULL || value == NULL) {
        return refuse(mlops, "a statistic has a name, a kind and a value");
    }
    if (!has_ion(mlops)) {
        return refuse(mlops, "statistics are of an ION: set WEIR_ION");
    }
    if (weir_json_parse(value, strlen(value), "value", &json, &err) != WEIR_OK) {
        mlops_remember(mlops, &err);
        return MLOPS_WRONG;
    }
    return tell_statistic(mlops, name, kind, json);
}

int weir_mlops_distribution(struct weir_mlops *mlops, const char *name, const double *values,
                            size_t n)
{
    if (mlops == NULL) {
        return 0;
    }
    if (name == NULL || (values == NULL && n > 0)) {
        return refuse(mlops, "a distribution has a name and values");
    }
    if (!has_ion(mlops)) {
        return refuse(mlops, "statistics are of an ION: set WEIR_ION");
    }
    json_t *value = mlops_distribution(values, n);
    return value != NULL ? tell_statistic(mlops, name, "distribution", value)
                         : refuse(mlops, "a distribution has one finite value or more");
}

int weir_mlops_alert(struct weir_mlops *mlops, const char *about, const char *title, int is_healthy,
                     const char *message)
{
    if (mlops == NULL) {
        return 0;
    }
    if (about == NULL || title == NULL) {
        return refuse(mlops, "an alert says what it is about, and has a title");
    }
    if (!has_ion(mlops)) {
        return refuse(mlops, "alerts are of an ION: set WEIR_ION");
    }
    /* Each later than the one before: told again, or after a later one, it changes nothing. */
    (void)pthread_mutex_lock(&mlops->mutex);
    int64_t time_ms = mlops->told_ms = WEIR_MAX(weir_time_ms(), mlops->told_ms + 1);
    (void)pthread_mutex_unlock(&mlops->mutex);
    return mlops_tell(mlops, ion_path(mlops, "/api/v1/ions/{}/told"), NULL,
                      json_pack("{s:s,s:s,s:b,s:s*,s:I}", "about", about, "title", title,
                                "is_healthy", is_healthy, "message", message, "time_ms",
                                (json_int_t)time_ms));
}

int weir_mlops_feedback(struct weir_mlops *mlops, const char *decision, const char *truth)
{
    if (mlops == NULL) {
        return 0;
    }
    if (decision == NULL || truth == NULL) {
        return refuse(mlops, "feedback has a decision and its truth");
    }
    return mlops_tell(mlops, strdup("/api/v1/feedback"), list_feedback,
                      json_pack("{s:s,s:s}", "decision", decision, "truth", truth));
}
