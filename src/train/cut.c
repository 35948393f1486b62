#include "train/cut.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "client/client.h"
#include "find/cutter.h"
#include "train/task.h"
#include "vision/face.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define NAMED_MAX   5 /* photos without a face that the log names */
#define THREADS_MAX 64
#define TELL_MS     10000 /* how often the log says how far it is */

/** What is known of a photo. */
enum place_kind { PLACE_DAMAGED, PLACE_WHOLE, PLACE_CUT };

struct place {
    enum place_kind kind;
    struct weir_affine map; /**< From the cut to the photo. */
};

struct train_cut {
    const struct weir_train_config *config;
    struct weir_dataset *photos, *view;
    struct weir_shape shape; /**< A cut's. */
    struct weir_cut cut;
    json_t *signature; /**< What stands with the detector's version; NULL: nothing. */
    char digest[WEIR_SHA256_TEXT_BYTES];
    char dir[WEIR_DIR_TEMPORARY_BYTES]; /**< What the server gave lies in; "": nothing. */
    char path[WEIR_DIR_TEMPORARY_BYTES + 16];
    struct place *places; /**< One for each photo; NULL: nobody looks at them. */
};

/* ---- reading -------------------------------------------------------------------------------- */

/** A weir_dataset_show_fn. */
static weir_status show(const void *context, size_t i_sample, struct weir_image *in_out,
                        struct weir_error *err)
{
    const struct train_cut *cut = context;
    const struct place *place = cut->places != NULL ? &cut->places[i_sample] : NULL;
    const struct weir_view view = weir_view_of(in_out);
    struct weir_image face;
    if (place == NULL || place->kind != PLACE_CUT) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_image_init(&face, cut->shape.w, cut->shape.h, cut->shape.c, err));
    weir_view_cut(&view, &place->map, WEIR_FACE_AROUND, &face);
    weir_image_fini(in_out);
    *in_out = face;
    return WEIR_OK;
}

/* ---- finding -------------------------------------------------------------------------------- */

/** Threads that look at photos, each with a detector of its own. */
struct finding {
    struct train_cut *cut;
    size_t n;
    /** Detectors are opened one after the other: a library of kernels makes its cache with the first. */
    pthread_mutex_t opening;
    atomic_size_t next, n_done;
    atomic_int_fast64_t told_ms;
    atomic_bool has_failed;
    struct weir_error error; /**< What the first met that failed. */
};

/** A photo that cannot be read is the loader's to report. */
static weir_status find_one(struct finding *finding, struct cutter *cutter, size_t i_sample,
                            struct weir_error *err)
{
    struct place *place = &finding->cut->places[i_sample];
    struct weir_image photo;
    struct weir_error damage;
    bool is_there = false;
    weir_status status = weir_dataset_read(finding->cut->photos, i_sample, &photo, &damage);
    if (status == WEIR_ERR_NOMEM) {
        return weir_error_set(err, status, "%s", damage.message);
    }
    if (status != WEIR_OK) {
        place->kind = PLACE_DAMAGED;
        return WEIR_OK;
    }
    status = cutter_find(cutter, &photo, &place->map, &is_there, err);
    place->kind = is_there ? PLACE_CUT : PLACE_WHOLE;
    weir_image_fini(&photo);
    return status;
}

static void tell(struct finding *finding)
{
    size_t n_done = atomic_fetch_add(&finding->n_done, 1) + 1;
    int_fast64_t told_ms = atomic_load(&finding->told_ms), now_ms = weir_mono_ms();
    if (now_ms - told_ms >= TELL_MS && n_done < finding->n &&
        atomic_compare_exchange_strong(&finding->told_ms, &told_ms, now_ms) &&
        finding->cut->config->group.rank <= 0) {
        weir_log(WEIR_LOG_INFO, "looking_for_faces", WEIR_KV_INT("photos", (int64_t)n_done),
                 WEIR_KV_INT("of", (int64_t)finding->n));
    }
}

static weir_status find_all(struct finding *finding, struct weir_error *err)
{
    const struct train_cut *cut = finding->cut;
    const struct cutter_config config = {.path = cut->path,
                                         .signature = cut->signature,
                                         .cut = &cut->cut,
                                         .width = cut->shape.w,
                                         .height = cut->shape.h,
                                         .channels = cut->shape.c};
    struct cutter *cutter;
    pthread_mutex_lock(&finding->opening);
    weir_status status = cutter_open(&config, &cutter, err);
    pthread_mutex_unlock(&finding->opening);
    WEIR_TRY(status);
    for (size_t i; (i = atomic_fetch_add(&finding->next, 1)) < finding->n;) {
        WEIR_TRY_GOTO(find_one(finding, cutter, i, err), status, close);
        tell(finding);
        if (atomic_load(&finding->has_failed)) {
            break;
        }
    }
close:
    cutter_close(cutter);
    return status;
}

static void *run_thread(void *context)
{
    struct finding *finding = context;
    struct weir_error err = {0};
    if (find_all(finding, &err) != WEIR_OK && !atomic_exchange(&finding->has_failed, true)) {
        finding->error = err;
    }
    return NULL;
}

/** Always by threads of its own, which end before anything is forked. */
static weir_status find_places(struct train_cut *cut, size_t n_threads, struct weir_error *err)
{
    struct finding finding = {
        .cut = cut, .n = weir_dataset_n_samples(cut->photos), .opening = PTHREAD_MUTEX_INITIALIZER};
    pthread_t threads[THREADS_MAX];
    size_t n_started = 0;
    int code = 0;
    cut->places = calloc(finding.n + 1, sizeof *cut->places);
    if (cut->places == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the places of faces");
    }
    atomic_store(&finding.told_ms, weir_mono_ms());
    while (code == 0 && n_started < WEIR_MIN(WEIR_MIN(n_threads, finding.n), (size_t)THREADS_MAX)) {
        code = pthread_create(&threads[n_started], NULL, run_thread, &finding);
        n_started += code == 0;
    }
    for (size_t i = 0; i < n_started; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    if (n_started == 0) {
        return weir_error_set_errno(err, code, "a thread that looks for faces");
    }
    return atomic_load(&finding.has_failed)
               ? weir_error_set(err, finding.error.status, "%s", finding.error.message)
               : WEIR_OK;
}

/** How it went; worker 0 says so. */
static weir_status conclude(const struct train_cut *cut, struct weir_error *err)
{
    size_t n[PLACE_CUT + 1] = {0}, n_all = weir_dataset_n_samples(cut->photos);
    bool is_told = cut->config->group.rank <= 0;
    for (size_t i = 0; i < n_all; i++) {
        char name[WEIR_SAMPLE_NAME_BYTES];
        if (cut->places[i].kind == PLACE_WHOLE && n[PLACE_WHOLE] < NAMED_MAX && is_told) {
            weir_log(WEIR_LOG_WARN, "photo_without_face",
                     WEIR_KV_STR("file", weir_dataset_sample_name(cut->photos, i, name)),
                     WEIR_KV_STR("meaning", "it is taken whole"));
        }
        n[cut->places[i].kind]++;
    }
    if (is_told) {
        weir_log(WEIR_LOG_INFO, "photos_cut", WEIR_KV_STR("by", cut->config->data.detector),
                 WEIR_KV_INT("cut", (int64_t)n[PLACE_CUT]),
                 WEIR_KV_INT("whole", (int64_t)n[PLACE_WHOLE]),
                 WEIR_KV_INT("damaged", (int64_t)n[PLACE_DAMAGED]));
    }
    return n[PLACE_CUT] > 0
               ? WEIR_OK
               : weir_error_set(
                     err, WEIR_ERR_INVALID,
                     "detector: %s finds no face in any of the %zu photos of %s: lower the "
                     "threshold in detect, or leave the detector out",
                     cut->config->data.detector, n_all, cut->config->data.path);
}

/* ---- the detector --------------------------------------------------------------------------- */

/** A version's file comes from the server; on a command line of weir-worker it is a file. */
static weir_status get_detector(struct train_cut *cut, struct weir_error *err)
{
    const struct weir_train_config *config = cut->config;
    struct weir_client *client;
    if (config->data.detector_blob == NULL) {
        (void)snprintf(cut->path, sizeof cut->path, "%s", config->data.detector);
        weir_status status =
            weir_file_sha256(config->data.detector, cut->digest, &(uint64_t){0}, err);
        return status == WEIR_OK ? WEIR_OK : weir_error_prefix(err, "detector: ");
    }
    (void)snprintf(cut->digest, sizeof cut->digest, "%s", config->data.detector_blob);
    WEIR_TRY(weir_dir_make_temporary("detector", cut->dir, err));
    (void)snprintf(cut->path, sizeof cut->path, "%s/model", cut->dir);
    WEIR_TRY(weir_client_open(&(struct weir_client_config){.server = config->report.server,
                                                           .token_file = config->report.token_file,
                                                           .ca_file = config->report.ca_file},
                              &client, err));
    weir_status status = weir_client_blob_cache(client, cut->digest, cut->path, err);
    weir_client_close(client);
    return status == WEIR_OK ? WEIR_OK
                             : weir_error_prefix(err, "detector %s: ", config->data.detector);
}

static weir_status read_options(struct train_cut *cut, struct weir_arena *arena,
                                struct weir_error *err)
{
    const struct weir_train_data *data = &cut->config->data;
    WEIR_TRY(weir_cut_read(data->detector, data->detect, data->align, arena, &cut->cut, err));
    const char *signature = data->detector_signature;
    return signature == NULL ? WEIR_OK
                             : weir_json_parse(signature, strlen(signature), "detector_signature",
                                               &cut->signature, err);
}

/* ---- the whole ------------------------------------------------------------------------------ */

static void drop_file(struct train_cut *cut)
{
    if (cut->dir[0] != '\0' && weir_dir_remove(cut->dir, NULL) != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "folder_not_removed", WEIR_KV_STR("path", cut->dir));
    }
    cut->dir[0] = '\0';
}

static weir_status open_cut(struct train_task *task, struct train_cut *cut, struct weir_error *err)
{
    WEIR_TRY(read_options(cut, &task->arena, err));
    WEIR_TRY(get_detector(cut, err));
    if (!train_is_server(task->config)) {
        WEIR_TRY(find_places(cut, (size_t)task->n_threads, err));
        WEIR_TRY(conclude(cut, err));
    }
    return weir_dataset_open_view(cut->photos, show, cut, &cut->view, err);
}

weir_status train_cut_open(struct train_task *task, struct weir_error *err)
{
    if (task->config->data.detector == NULL) {
        return WEIR_OK;
    }
    if (strcmp(weir_model_spec_loss(task->spec), "margin") != 0) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "detector: only photos that an embedding learns from are cut, and %s "
                              "learns none; leave it out, or take the model face-embed",
                              task->config->model.name);
    }
    struct train_cut *cut = calloc(1, sizeof *cut);
    if (cut == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a detector");
    }
    *cut = (struct train_cut){.config = task->config,
                              .photos = task->dataset,
                              .shape = weir_model_spec_input(task->spec)};
    task->dataset = NULL; /* The cut's, now. */
    task->cut = cut;
    weir_status status = open_cut(task, cut, err);
    drop_file(cut);
    task->dataset = cut->view;
    return status;
}

void train_cut_close(struct train_cut *cut)
{
    if (cut != NULL) {
        drop_file(cut);
        weir_dataset_close(cut->view);
        weir_dataset_close(cut->photos);
        weir_cut_fini(&cut->cut);
        json_decref(cut->signature);
        free(cut->places);
        free(cut);
    }
}

static json_t *parsed(const char *text)
{
    json_t *object = text != NULL ? json_loads(text, 0, NULL) : NULL;
    return object != NULL ? object : json_object();
}

json_t *train_cut_describe(const struct train_cut *cut)
{
    const struct weir_train_data *data = &cut->config->data;
    return json_pack("{s:s,s:s,s:o,s:o}", "detector", data->detector, "digest", cut->digest,
                     "detect", parsed(data->detect), "align", parsed(data->align));
}
