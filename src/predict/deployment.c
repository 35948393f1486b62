#include "predict/deployment.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "find/finder.h"
#include "predict/threshold_report.h"

#include <stdlib.h>
#include <string.h>

#define OBJECTS_AT_ONCE    8
#define MANIFEST_MAX_BYTES ((size_t)256 << 20)
#define KEY_MAX_BYTES      256 /* two sums */
#define PATH_BYTES         WEIR_HOST_PATH_BYTES

/** Blobs of a model that was served, of its detector, its gallery and the impostors, and what its embeddings are filed under; "" for
 *  none. */
struct served {
    char model[WEIR_SHA256_TEXT_BYTES], detector[WEIR_SHA256_TEXT_BYTES],
        embeddings[WEIR_SHA256_TEXT_BYTES], gallery[WEIR_SHA256_TEXT_BYTES],
        impostors[WEIR_SHA256_TEXT_BYTES];
};

struct deployer {
    struct deployer_config config;
    struct weir_host *host;
    json_t *unreported;         /**< Threshold that the server has not been told; NULL: none. */
    struct served last, before; /**< Whose files are kept. */
};

/** Nanoseconds that the parts of a deployment took. */
struct timing {
    uint64_t fetch_ns, load_ns, embed_ns, switch_ns;
};

static weir_status fetch(void *context, const char *sha256, const char *path,
                         struct weir_error *err)
{
    const struct deployer *deployer = context;
    return weir_host_get(deployer->host, sha256, path, err);
}

/* ---- applying -------------------------------------------------------------------------------- */

/* The model of the deployment: the one in service if it is the same, else loaded. New reference; NULL: the detector is all. */
static weir_status get_model(struct deployer *deployer, const struct deployment *wanted,
                             const struct serving *old, struct timing *timing, struct model **out,
                             struct weir_error *err)
{
    char path[PATH_BYTES];
    uint64_t start_ns = weir_mono_ns();
    /* Version and name are in the decisions, so they must agree too. */
    if (!wanted->has_model) {
        *out = NULL;
        return WEIR_OK;
    }
    if (old != NULL && old->model != NULL && strcmp(old->model->blob, wanted->model.blob) == 0 &&
        strcmp(old->model->id, wanted->model.id) == 0 &&
        strcmp(old->model->name, wanted->model.name) == 0 &&
        old->model->version == wanted->model.version) {
        *out = model_ref(old->model);
        return WEIR_OK;
    }
    weir_host_cache_path(deployer->host, "model", wanted->model.blob, path);
    WEIR_TRY(fetch(deployer, wanted->model.blob, path, err));
    timing->fetch_ns = weir_mono_ns() - start_ns;
    weir_status status =
        model_load(path, &wanted->model, wanted->has_detector ? OBJECTS_AT_ONCE : 1, out, err);
    timing->load_ns = weir_mono_ns() - start_ns - timing->fetch_ns;
    return status;
}

/* What a list of stages says about these kinds, as text. To be freed. */
static char *said_of(const json_t *list, const char *kind, const char *other)
{
    const json_t *stage;
    size_t i;
    json_t *said = json_array();
    json_array_foreach(list, i, stage)
    {
        const char *name =
            json_string_value(json_is_string(stage) ? stage : json_object_get(stage, "kind"));
        if (name != NULL && (strcmp(name, kind) == 0 || strcmp(name, other) == 0)) {
            json_array_append(said, (json_t *)(uintptr_t)stage);
        }
    }
    char *text = json_dumps(said, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(said);
    return text != NULL ? text : weir_xstrdup("");
}

/* Does what was served say the same of these kinds? */
static bool is_said(const struct serving *old, const json_t *list, const char *kind,
                    const char *other)
{
    char *before = said_of(stages_list(old->stages), kind, other),
         *now = said_of(list, kind, other);
    bool is_same = strcmp(before, now) == 0;
    free(before);
    free(now);
    return is_same;
}

/* The same of the detector, as often as frames are looked at at once. It goes by the options of the new stages. What is in *parts is the
 * caller's on errors, too. */
static weir_status get_finders(struct deployer *deployer, const struct deployment *wanted,
                               const struct serving *old, struct serving_parts *parts,
                               struct weir_error *err)
{
    char path[PATH_BYTES];
    struct finder_wish wish;
    if (!finder_wish_of(stages_chain(parts->stages), &wish)) {
        return WEIR_OK;
    }
    if (old != NULL && old->n_finders > 0 && finder_is(old->finders[0], &wanted->detector) &&
        is_said(old, wanted->stages, "detect", "detect")) {
        for (; parts->n_finders < old->n_finders; parts->n_finders++) {
            parts->finders[parts->n_finders] = finder_ref(old->finders[parts->n_finders]);
        }
        return WEIR_OK;
    }
    weir_host_cache_path(deployer->host, "model", wanted->detector.blob, path);
    WEIR_TRY(fetch(deployer, wanted->detector.blob, path, err));
    for (; parts->n_finders < WEIR_MAX(deployer->config.n_at_once, (size_t)1); parts->n_finders++) {
        WEIR_TRY(
            finder_load(path, &wanted->detector, &wish, &parts->finders[parts->n_finders], err));
    }
    weir_log(WEIR_LOG_INFO, "detector_ready", WEIR_KV_STR("model", wanted->detector.name),
             WEIR_KV_INT("model_version", wanted->detector.version),
             WEIR_KV_INT("at_once", (int64_t)parts->n_finders),
             WEIR_KV_STR("outputs", finder_why(parts->finders[0])));
    return WEIR_OK;
}

/* The manifest of people or impostors, into the cache and read. */
static weir_status get_manifest(struct deployer *deployer, const char *what, const char *blob,
                                json_t **out, struct weir_error *err)
{
    char path[PATH_BYTES];
    struct weir_error json_err;
    weir_host_cache_path(deployer->host, "manifest", blob, path);
    weir_status status = fetch(deployer, blob, path, err);
    if (status != WEIR_OK) {
        (void)weir_error_prefix(err, "%s: ", what);
        return status;
    }
    if (weir_json_load(path, MANIFEST_MAX_BYTES, out, &json_err) != WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "%s: manifest: %.400s", what,
                              json_err.message);
    }
    return WEIR_OK;
}

/* Vectors of one precision are not compared with those of another. */
static const char *embeddings_kind(const struct deployer *deployer)
{
    const char *precision = deployer->config.spec->executor.precision;
    return precision == NULL || strcmp(precision, "f32") == 0 ? "embeddings"
           : strcmp(precision, "bf16") == 0                   ? "embeddings-bf16"
                                                              : "embeddings-tf32";
}

/* What embeddings of photos are filed under: the model, and how faces are found in them and cut out. What other stages say
 * changes none. */
static void embeddings_key(const struct deployment *wanted, char out[WEIR_SHA256_TEXT_BYTES])
{
    struct weir_buf text;
    (void)snprintf(out, WEIR_SHA256_TEXT_BYTES, "%s", wanted->model.blob);
    if (!wanted->has_detector) {
        return;
    }
    char *stages = said_of(wanted->stages, "detect", "align");
    weir_buf_init(&text, KEY_MAX_BYTES + strlen(stages));
    weir_buf_printf(&text, "%s\n%s\n%s", wanted->model.blob, wanted->detector.blob, stages);
    weir_sha256(text.data, text.len, out);
    weir_buf_fini(&text);
    free(stages);
}

static weir_status build_gallery(struct deployer *deployer, const struct deployment *wanted,
                                 const struct stages *stages, struct gallery **out,
                                 struct weir_error *err)
{
    char model[PATH_BYTES], detector[PATH_BYTES], store[PATH_BYTES], key[WEIR_SHA256_TEXT_BYTES];
    json_t *people = NULL, *impostors = NULL;
    weir_host_cache_path(deployer->host, "model", wanted->model.blob, model);
    if (wanted->has_detector) {
        weir_host_cache_path(deployer->host, "model", wanted->detector.blob, detector);
    }
    embeddings_key(wanted, key);
    weir_host_cache_path(deployer->host, embeddings_kind(deployer), key, store);
    weir_status status = get_manifest(deployer, "gallery", wanted->gallery_blob, &people, err);
    if (status == WEIR_OK && wanted->impostors_blob != NULL) {
        status = get_manifest(deployer, "impostors", wanted->impostors_blob, &impostors, err);
    }
    if (status == WEIR_OK) {
        const struct gallery_request request = {
            .people = {"gallery", people, wanted->gallery_version, wanted->gallery_blob,
                       wanted->gallery_path},
            .impostors = {"impostors", impostors, wanted->impostors_version, wanted->impostors_blob,
                          wanted->impostors_path},
            .embedder = {.model_path = model,
                         .model = wanted->model,
                         .detector_path = wanted->has_detector ? detector : NULL,
                         .detector = wanted->detector,
                         .chain = stages_chain(stages),
                         .store_path = store,
                         .cache_dir = weir_host_cache_dir(deployer->host),
                         .fetch = fetch,
                         .context = deployer,
                         .is_stopping = weir_host_stopping(deployer->host)},
            .rates = wanted->rates};
        status = gallery_build(&request, out, err);
    }
    json_decref(people);
    json_decref(impostors);
    return status;
}

static bool is_same_blob(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static weir_status get_gallery(struct deployer *deployer, const struct deployment *wanted,
                               const struct serving *old, const struct serving_parts *parts,
                               struct gallery **out, struct weir_error *err)
{
    if (!wanted->has_gallery) {
        *out = NULL;
        return WEIR_OK;
    }
    if (old != NULL && old->model == parts->model && old->finders[0] == parts->finders[0] &&
        is_said(old, wanted->stages, "align", "align") && old->gallery != NULL &&
        old->gallery->version == wanted->gallery_version &&
        strcmp(old->gallery->blob, wanted->gallery_blob) == 0 &&
        old->gallery->impostors_version == wanted->impostors_version &&
        is_same_blob(old->gallery->impostors_blob, wanted->impostors_blob) &&
        old->gallery->rates.accept == wanted->rates.accept &&
        old->gallery->rates.deny == wanted->rates.deny) {
        *out = gallery_ref(old->gallery);
        return WEIR_OK;
    }
    return build_gallery(deployer, wanted, parts->stages, out, err);
}

static void log_ready(const struct serving *serving, const struct timing *timing)
{
    const struct gallery *gallery = serving->gallery;
    const struct model *model = serving->model;
    struct weir_kv kvs[16];
    size_t n = 0;
    kvs[n++] = WEIR_KV_INT("revision", serving->revision);
    kvs[n++] =
        WEIR_KV_STR("model", model != NULL ? model->name : finder_name(serving->finders[0])->name);
    kvs[n++] = WEIR_KV_INT("model_version", serving->model_version);
    if (model != NULL) {
        kvs[n++] = WEIR_KV_STR("place", model->serve->place);
    }
    if (gallery != NULL) {
        kvs[n++] = WEIR_KV_INT("gallery_version", gallery->version);
        kvs[n++] = WEIR_KV_INT("people", (int64_t)gallery->n_persons);
        kvs[n++] = WEIR_KV_INT("photos", (int64_t)gallery->templates.n);
        kvs[n++] = WEIR_KV_INT("photos_embedded", (int64_t)gallery->n_embedded);
        kvs[n++] = WEIR_KV_INT("photos_skipped", (int64_t)gallery->n_damaged);
        kvs[n++] = WEIR_KV_INT("photos_whole", (int64_t)gallery->n_whole);
    } else if (model != NULL) {
        kvs[n++] = WEIR_KV_INT("labels", (int64_t)model->dim);
        kvs[n++] = WEIR_KV_F64("threshold", serving_threshold(serving));
    }
    kvs[n++] = WEIR_KV_F64("fetch_ms", (double)timing->fetch_ns / 1e6);
    kvs[n++] = WEIR_KV_F64("load_ms", (double)timing->load_ns / 1e6);
    if (gallery != NULL) {
        kvs[n++] = WEIR_KV_F64("gallery_ms", (double)timing->embed_ns / 1e6);
    }
    kvs[n++] = WEIR_KV_F64("switch_ms", (double)timing->switch_ns / 1e6);
    weir_log_kvs(WEIR_LOG_INFO, "deployment_ready", kvs, n);
}

/* Where the threshold comes from. The server is told when it can be. */
static void tell_threshold(struct deployer *deployer, const struct serving *serving)
{
    const struct gallery *gallery = serving->gallery;
    if (gallery == NULL) {
        return; /* The document says it. */
    }
    const struct calibration *found = &gallery->calibration;
    weir_log(WEIR_LOG_INFO, "threshold_set", WEIR_KV_INT("revision", serving->revision),
             WEIR_KV_F64("threshold", found->threshold),
             WEIR_KV_STR("rule", calibration_rule_text(found->rule)),
             WEIR_KV_F64("threshold_low", found->threshold_low),
             WEIR_KV_F64("threshold_high", found->threshold_high),
             WEIR_KV_F64("deny_threshold", found->deny_threshold),
             WEIR_KV_F64("asked_rate", gallery->rates.accept),
             WEIR_KV_F64("expected_rate", found->expected_rate),
             WEIR_KV_INT("impostor_scores", (int64_t)found->n_impostors),
             WEIR_KV_INT("impostor_people", (int64_t)found->n_impostor_people),
             WEIR_KV_INT("impostors_enrolled", (int64_t)gallery->n_known_impostors),
             WEIR_KV_INT("impostors_version", gallery->impostors_version),
             WEIR_KV_INT("gallery_scores", (int64_t)found->n_between),
             WEIR_KV_F64("between_mean", found->between_mean),
             WEIR_KV_F64("genuine_mean", found->genuine_mean),
             WEIR_KV_F64("refused_share", found->refused_share));
    json_decref(deployer->unreported);
    deployer->unreported = threshold_report(serving, deployer->config.spec->host.replica);
}

static weir_status send_threshold(const struct deployer *deployer, struct weir_error *err)
{
    const struct predict_spec *spec = deployer->config.spec;
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    char *path = weir_client_path(&arena, "/api/v1/ions/{}/pipelines/{}/threshold",
                                  (const char *[]){spec->ion, spec->pipeline}, 2);
    weir_status status = weir_client_call(weir_host_client(deployer->host), "PUT", path,
                                          deployer->unreported, NULL, err);
    weir_arena_fini(&arena);
    return status;
}

/* A server that is down is told later; one that does not want to know is not asked again. */
static void report_threshold(void *context)
{
    struct deployer *deployer = context;
    struct weir_error err;
    if (deployer->unreported == NULL) {
        return;
    }
    weir_status status = send_threshold(deployer, &err);
    if (weir_client_can_retry(status)) {
        return;
    }
    if (status != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "threshold_report_refused", WEIR_KV_STR("reason", err.message));
    }
    json_decref(deployer->unreported);
    deployer->unreported = NULL;
}

/* Model, stages that fit it, and the gallery if they compare with one. */
static weir_status make_serving(struct deployer *deployer, const struct deployment *wanted,
                                const struct serving *old, struct timing *timing,
                                struct serving **out, struct weir_error *err)
{
    struct serving_parts parts = {0};
    weir_status status;
    uint64_t start_ns;
    WEIR_TRY(get_model(deployer, wanted, old, timing, &parts.model, err));
    WEIR_TRY_GOTO(stages_create(wanted->stages, parts.model, &parts.stages, err), status, undo);
    WEIR_TRY_GOTO(get_finders(deployer, wanted, old, &parts, err), status, undo);
    start_ns = weir_mono_ns();
    WEIR_TRY_GOTO(get_gallery(deployer, wanted, old, &parts, &parts.gallery, err), status, undo);
    timing->embed_ns = weir_mono_ns() - start_ns;
    *out = serving_create(&parts, &wanted->lists, wanted->revision, wanted->list_revision);
    return WEIR_OK;
undo:
    for (size_t i = 0; i < parts.n_finders; i++) {
        finder_unref(parts.finders[i]);
    }
    stages_destroy(parts.stages);
    model_unref(parts.model);
    return status;
}

static weir_status apply_parsed(struct deployer *deployer, const struct deployment *wanted,
                                struct weir_error *err)
{
    struct timing timing = {0};
    struct serving *serving = NULL, *old = serving_slot_get(deployer->config.slot);
    weir_status status = make_serving(deployer, wanted, old, &timing, &serving, err);
    serving_unref(old);
    WEIR_TRY(status);
    serving_ref(serving);
    uint64_t start_ns = weir_mono_ns();
    serving_slot_publish(deployer->config.slot, serving);
    timing.switch_ns = weir_mono_ns() - start_ns;
    intake_open(deployer->config.intake);
    log_ready(serving, &timing);
    tell_threshold(deployer, serving);
    serving_unref(serving);
    return WEIR_OK;
}

/* What one may go back to is the model served before: it is kept, and its embeddings as long as the
 * gallery is the same (people who were removed from it must be forgotten). */
static void note_models(struct deployer *deployer, const struct deployment *wanted)
{
    const char *impostors = wanted->impostors_blob != NULL ? wanted->impostors_blob : "";
    const char *gallery = wanted->gallery_blob != NULL ? wanted->gallery_blob : "";
    bool is_new_gallery = strcmp(deployer->last.gallery, gallery) != 0 ||
                          strcmp(deployer->last.impostors, impostors) != 0;
    const char *detector = wanted->has_detector ? wanted->detector.blob : "";
    if (strcmp(deployer->last.model, wanted->model.blob) != 0 ||
        strcmp(deployer->last.detector, detector) != 0) {
        deployer->before = deployer->last;
    }
    if (is_new_gallery) {
        deployer->before.gallery[0] = '\0';
    }
    (void)snprintf(deployer->last.model, sizeof deployer->last.model, "%s", wanted->model.blob);
    (void)snprintf(deployer->last.detector, sizeof deployer->last.detector, "%s", detector);
    embeddings_key(wanted, deployer->last.embeddings);
    (void)snprintf(deployer->last.gallery, sizeof deployer->last.gallery, "%s", gallery);
    (void)snprintf(deployer->last.impostors, sizeof deployer->last.impostors, "%s", impostors);
}

static bool is_of(const char *file, const char *sha256)
{
    return sha256[0] != '\0' && strstr(file, sha256) != NULL;
}

static bool needs(const void *context, const json_t *wanted, const char *file)
{
    const struct deployer *deployer = context;
    (void)wanted; /* it is the last one */
    const struct served *last = &deployer->last, *before = &deployer->before;
    return is_of(file, last->model) || is_of(file, last->detector) ||
           is_of(file, last->embeddings) || is_of(file, last->gallery) ||
           is_of(file, last->impostors) ||
           (strncmp(file, "embeddings", 10) != 0
                ? is_of(file, before->model) || is_of(file, before->detector)
                : before->gallery[0] != '\0' && is_of(file, before->embeddings));
}

static weir_status apply(void *context, const json_t *json, struct weir_error *err)
{
    struct deployer *deployer = context;
    struct weir_arena arena;
    struct deployment wanted;
    weir_arena_init(&arena, 0);
    weir_status status = deployment_parse(json, &arena, &wanted, err);
    wanted.model.executor = &deployer->config.spec->executor;
    wanted.detector.executor = &deployer->config.spec->executor;
    if (status == WEIR_OK) {
        status = apply_parsed(deployer, &wanted, err);
    }
    if (status == WEIR_OK) {
        note_models(deployer, &wanted);
    }
    weir_arena_fini(&arena);
    return status;
}

/* ---- what is hosted -------------------------------------------------------------------------- */

static json_t *report(void *context, const struct weir_host_standing *standing)
{
    const struct deployer *deployer = context;
    return heartbeat_make(&deployer->config.heartbeat, standing);
}

static void reported(void *context)
{
    const struct deployer *deployer = context;
    door_orders_taken(deployer->config.heartbeat.orders);
}

static const struct weir_hosted hosted = {.place = "/api/v1/ions/{}/pipelines/{}",
                                          .wanted = "deployment",
                                          .member = "model",
                                          .file = "deployment.json",
                                          .is_low_priority = true,
                                          .report_ms = HEARTBEAT_MS,
                                          .unsendable_event = "heartbeat_not_utf8",
                                          .refused_event = "heartbeat_refused",
                                          .refused_level = WEIR_LOG_DEBUG,
                                          .apply = apply,
                                          .needs = needs,
                                          .report = report,
                                          .reported = reported,
                                          .before_asking = report_threshold};

static weir_status start_host(struct deployer *deployer, struct weir_error *err)
{
    const struct predict_spec *spec = deployer->config.spec;
    const struct weir_host_config host = {.spec = &spec->host,
                                          .names = {spec->ion, spec->pipeline},
                                          .n_names = 2,
                                          .hosted = &hosted,
                                          .context = deployer};
    WEIR_TRY(weir_host_create(&host, &deployer->host, err));
    return weir_host_start(deployer->host, err);
}

weir_status deployer_start(const struct deployer_config *config, struct deployer **out,
                           struct weir_error *err)
{
    struct deployer *deployer = weir_xalloc(sizeof *deployer);
    *deployer = (struct deployer){.config = *config};
    weir_status status = start_host(deployer, err);
    if (status != WEIR_OK) {
        deployer_stop(deployer);
        return status;
    }
    *out = deployer;
    return WEIR_OK;
}

void deployer_notify(void *context)
{
    const struct deployer *deployer = context;
    weir_host_notify(deployer->host);
}

void deployer_stop(struct deployer *deployer)
{
    if (deployer == NULL) {
        return;
    }
    weir_host_destroy(deployer->host);
    json_decref(deployer->unreported);
    free(deployer);
}
