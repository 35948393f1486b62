/** Live pictures of cameras, and looks at photos: people ask, and replicas answer (api/ion/desk.h). */
#include "api/core/answer.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/ion/desk.h"
#include "api/ion/desk_said.h"
#include "api/ion/ion.h"
#include "base/base64.h"
#include "base/clock.h"

#include <string.h>

#define LIVE_PER_CALL    8
#define ANSWERS_PER_CALL 4
#define PICTURES_MAX     10
#define PERSON_MAX_BYTES 256
#define WHY_MAX_BYTES    400
#define ANSWER_MAX_BYTES ((size_t)64 << 20)

/* One photo. A replica reads no more than 16 MiB at once, and so the route bounds them together. */
#define PICTURE_MAX_BYTES ((size_t)8 << 20)

static void wake(const struct api_call *call, uint64_t topic)
{
    if (call->api->http != NULL) {
        weir_http_wake(call->api->http, topic);
    }
}

/* ---- which pipeline -------------------------------------------------------------------------- */

/** What is looked for among an ION's prediction pipelines, and what was found. In the call's arena. */
struct wanted {
    struct api_call *call;
    const char *name;   /**< NULL: any will do. */
    const char *camera; /**< NULL: one with a gallery. */
    const char *project;
    const struct weir_ion_pipeline *pipeline;
};

/* 2: its document names the camera; 1: cameras are what comes; 0: it has not got it. */
static int has_camera(const struct weir_ion_doc_pipeline *doc, const char *camera)
{
    size_t i;
    json_t *one, *source = doc->source != NULL ? json_loads(doc->source, 0, NULL) : NULL;
    const json_t *cameras = json_object_get(source, "cameras");
    int has = source != NULL && !json_is_array(cameras);
    json_array_foreach(cameras, i, one)
    {
        const char *name = json_string_value(json_object_get(one, "name"));
        has = name != NULL && strcmp(name, camera) == 0 ? 2 : has;
    }
    json_decref(source);
    return has;
}

static int fits(const struct wanted *wanted, const struct weir_ion_state *state,
                const struct weir_ion_pipeline *pipeline)
{
    const struct weir_ion_doc_pipeline *doc = weir_ion_doc_pipeline(&state->doc, pipeline->name);
    if (strcmp(pipeline->type, "prediction") != 0 || strcmp(pipeline->state, "REMOVED") == 0 ||
        doc == NULL || (wanted->name != NULL && strcmp(pipeline->name, wanted->name) != 0)) {
        return 0;
    }
    return wanted->camera != NULL ? has_camera(doc, wanted->camera) : doc->gallery_dataset != NULL;
}

static weir_status find_pipeline(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_ion_state state;
    struct wanted *wanted = context;
    int best = 0;
    WEIR_TRY(api_ion_load(wanted->call, txn, &state, err));
    wanted->project = state.ion.project;
    for (size_t i = 0; i < state.n_pipelines; i++) {
        int fit = fits(wanted, &state, &state.pipelines[i]);
        if (fit > best) {
            best = fit;
            wanted->pipeline = &state.pipelines[i];
        }
    }
    if (best > 0) {
        return WEIR_OK;
    }
    const char *of = wanted->name != NULL
                         ? weir_arena_printf(wanted->call->arena, " \"%.63s\"", wanted->name)
                         : "";
    return wanted->camera != NULL
               ? weir_error_set(err, WEIR_ERR_NOT_FOUND,
                                "ion \"%s\" has no camera \"%.63s\" in a prediction pipeline%s",
                                state.ion.name, wanted->camera, of)
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "ion \"%s\" has no prediction pipeline%s with a gallery: it "
                                "recognises nobody",
                                state.ion.name, of);
}

static struct desk_place place_of(const struct wanted *wanted)
{
    return (struct desk_place){.ion = wanted->pipeline->ion,
                               .pipeline = wanted->pipeline->name,
                               .project = wanted->project,
                               .job = wanted->pipeline->job};
}

/* Nothing runs that could answer. */
static weir_status check_job(const struct wanted *wanted, struct weir_error *err)
{
    const struct weir_ion_pipeline *pipeline = wanted->pipeline;
    return pipeline->job != NULL
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                                "no replica serves pipeline \"%s\" of ion \"%s\": it is %s%s",
                                pipeline->name, pipeline->ion, pipeline->state,
                                pipeline->paused_by != NULL ? ", and paused" : "");
}

/* ---- viewers --------------------------------------------------------------------------------- */

static weir_status answer_live(struct api_call *call, const struct wanted *wanted,
                               struct weir_error *err)
{
    struct weir_buf text;
    struct desk *desk = call->api->desk;
    const struct desk_place place = place_of(wanted);
    const struct weir_row_scope people = api_projects_with(call, WEIR_RIGHT_DECISIONS_READ);
    bool sees_people = weir_row_scope_sees(&people, wanted->project);
    int64_t now_ms = weir_mono_ms();
    weir_buf_init(&text, ANSWER_MAX_BYTES);
    if (desk_live(desk, place, wanted->camera, sees_people, now_ms, &text) == 0) {
        weir_buf_fini(&text);
        call->is_act = false;
        return weir_error_set(
            err, WEIR_ERR_UNAVAILABLE,
            "no replica of pipeline \"%s\" has sent a picture of camera \"%.63s\" "
            "yet: it connects, its camera is lost, or no frame comes",
            place.pipeline, wanted->camera);
    }
    call->is_act = call->is_act && sees_people &&
                   desk_is_first_view(desk, call->actor, place, wanted->camera, now_ms);
    weir_http_response_buf(call->response, 200, "application/json", &text);
    return WEIR_OK;
}

weir_status api_camera_live(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    bool is_new;
    int64_t wait_ms = api_query_int(call, "wait_s") * 1000, now_ms = weir_mono_ms();
    struct wanted wanted = {
        .call = call, .camera = call->params[1], .name = api_query_text(call, "pipeline")};
    (void)txn;
    WEIR_TRY(api_read(call, find_pipeline, &wanted, err));
    const struct desk_place place = place_of(&wanted);
    int64_t seq = desk_live_seq(call->api->desk, place, wanted.camera, now_ms);
    WEIR_TRY(seq == 0 ? check_job(&wanted, err) : WEIR_OK);
    WEIR_TRY(desk_watch(call->api->desk, place, wanted.camera, now_ms,
                        now_ms + wait_ms + DESK_WATCHED_MS, &is_new, err));
    if (is_new) {
        wake(call, desk_place_topic(place));
    }
    if ((seq == 0 || seq == api_query_int(call, "after")) && wait_ms > 0 &&
        !call->request->is_expired) {
        weir_http_response_wait(call->response, desk_camera_topic(place, wanted.camera), wait_ms);
        return WEIR_OK;
    }
    return answer_live(call, &wanted, err);
}

/* ---- looks ----------------------------------------------------------------------------------- */

/** A request's question; lives as long as the request. */
struct asked {
    struct desk *desk;
    char id[WEIR_UUID_BYTES];
};

static void drop_look(void *state)
{
    struct asked *asked = state;
    desk_look_drop(asked->desk, asked->id);
}

static weir_status check_pictures(const struct api_call *call, const json_t *pictures,
                                  struct weir_error *err)
{
    size_t i, longest = 0, len, n = json_array_size(pictures);
    json_t *one;
    if (!json_is_array(pictures) || n == 0 || n > PICTURES_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.pictures: expected a list of 1 to %d photos in base64",
                              PICTURES_MAX);
    }
    json_array_foreach(pictures, i, one)
    {
        longest = WEIR_MAX(longest, json_string_length(one));
    }
    size_t size = WEIR_MIN(longest / 4 * 3 + 3, PICTURE_MAX_BYTES);
    void *bytes = weir_arena_alloc(call->arena, size);
    json_array_foreach(pictures, i, one)
    {
        if (!json_is_string(one) ||
            weir_base64_decode(json_string_value(one), bytes, size, &len) != WEIR_OK || len == 0) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "$.pictures[%zu]: expected a photo of at most %zu MiB in base64",
                                  i, PICTURE_MAX_BYTES >> 20);
        }
    }
    return WEIR_OK;
}

static weir_status ask_for_look(struct api_call *call, struct weir_error *err)
{
    static const char *const fields[] = {"pictures", "person", "pipeline", NULL};
    struct wanted wanted = {.call = call};
    const char *person;
    json_t *pictures = json_object_get(call->body, "pictures");
    WEIR_TRY(api_body_only(call, fields, err));
    WEIR_TRY(api_body_text(call, "person", &person, err));
    WEIR_TRY(api_body_text(call, "pipeline", &wanted.name, err));
    if (!api_is_plain(person, PERSON_MAX_BYTES)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.person: expected a name");
    }
    WEIR_TRY(check_pictures(call, pictures, err));
    WEIR_TRY(api_read(call, find_pipeline, &wanted, err));
    WEIR_TRY(check_job(&wanted, err));
    struct asked *asked = WEIR_ARENA_NEW(call->request->arena, struct asked);
    WEIR_AUTO(weir_json_auto_free)
    json_t *ask = json_pack("{s:O,s:s?}", "pictures", pictures, "person", person);
    asked->desk = call->api->desk;
    WEIR_TRY(desk_look_begin(asked->desk, place_of(&wanted), ask, asked->id, err));
    call->request->state = asked;
    call->request->end_fn = drop_look;
    wake(call, desk_place_topic(place_of(&wanted)));
    return WEIR_OK;
}

weir_status api_photo_look(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_buf text;
    (void)txn;
    if (call->request->state == NULL) {
        WEIR_TRY(ask_for_look(call, err));
    }
    const struct asked *asked = call->request->state;
    if (!desk_look_is_answered(asked->desk, asked->id) && !call->request->is_expired) {
        weir_http_response_wait(call->response, desk_look_topic(asked->id), DESK_LOOK_MS);
        return WEIR_OK;
    }
    weir_buf_init(&text, ANSWER_MAX_BYTES);
    weir_status status = desk_look_end(asked->desk, asked->id, &text, err);
    if (status != WEIR_OK) {
        weir_buf_fini(&text);
        return status;
    }
    weir_http_response_buf(call->response, 200, "application/json", &text);
    return WEIR_OK;
}

/* ---- replicas -------------------------------------------------------------------------------- */

static struct desk_place own_place(const struct api_call *call)
{
    return (struct desk_place){
        .ion = call->params[0], .pipeline = call->params[1], .replica = call->params[2]};
}

/* False: there is no news. */
static bool answer_asked(struct api_call *call, int64_t after, bool is_asked,
                         struct desk_news *out_news)
{
    struct weir_buf text;
    weir_buf_init(&text, ANSWER_MAX_BYTES);
    bool is_news = desk_poll(call->api->desk, own_place(call), after, is_asked, weir_mono_ms(),
                             &text, out_news);
    if (is_news) {
        weir_http_response_buf(call->response, 200, "application/json", &text);
    } else {
        weir_buf_fini(&text);
    }
    return is_news;
}

weir_status api_desk_ask(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct desk_news news;
    int64_t wait_ms = api_query_int(call, "wait_s") * 1000;
    bool is_asked = wait_ms == 0 || call->request->is_expired;
    (void)txn;
    (void)err;
    if (!answer_asked(call, api_query_int(call, "after"), is_asked, &news)) {
        int64_t left_ms = news.until_ms > 0 ? news.until_ms - weir_mono_ms() + 1 : wait_ms;
        weir_http_response_wait(call->response, desk_place_topic(own_place(call)),
                                WEIR_MAX((int64_t)1, WEIR_MIN(wait_ms, left_ms)));
    }
    call->is_act = call->is_act && news.has_look; /* photos of people */
    return WEIR_OK;
}

static weir_status take_live(struct api_call *call, const json_t *given, const char *where,
                             struct weir_error *err)
{
    json_t *live;
    const char *camera = json_string_value(json_object_get(given, "camera"));
    if (camera == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s.camera: expected a name", where);
    }
    WEIR_TRY(desk_said_live(given, where, &live, err));
    if (desk_show(call->api->desk, own_place(call), camera, live, weir_mono_ms())) {
        wake(call, desk_camera_topic(own_place(call), camera));
    }
    json_decref(live);
    return WEIR_OK;
}

/* Why a look failed, as the replica says it: its question's fault, or of the moment. */
static weir_status read_why(const json_t *given, const char *where, struct weir_error *out,
                            struct weir_error *err)
{
    const char *text = json_string_value(json_object_get(given, "error"));
    bool is_passing = json_is_true(json_object_get(given, "is_passing"));
    if (text == NULL || !api_is_plain(text, WHY_MAX_BYTES)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s: expected an answer, or an error", where);
    }
    (void)weir_error_set(out, is_passing ? WEIR_ERR_UNAVAILABLE : WEIR_ERR_INVALID, "%s", text);
    return WEIR_OK;
}

/* Nobody waits for the answer to a look that is over, or that another replica has answered. */
static weir_status take_answer(struct api_call *call, const json_t *given, const char *where,
                               struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *answer = NULL;
    struct weir_error why = {0};
    const char *id = json_string_value(json_object_get(given, "id"));
    const json_t *said = json_object_get(given, "answer");
    size_t n = id != NULL ? desk_look_pictures(call->api->desk, own_place(call), id) : 0;
    if (n == 0) {
        return WEIR_OK;
    }
    if (said != NULL && !json_is_null(said)) {
        WEIR_TRY(desk_said_look(said, n, where, &answer, err));
    } else {
        WEIR_TRY(read_why(given, where, &why, err));
    }
    if (desk_look_answer(call->api->desk, own_place(call), id, answer, &why)) {
        wake(call, desk_look_topic(id));
    }
    return WEIR_OK;
}

/** One of a list that a replica sends. */
typedef weir_status (*take_one_fn)(struct api_call *call, const json_t *given, const char *where,
                                   struct weir_error *err);

static weir_status take_each(struct api_call *call, const char *name, size_t max, take_one_fn take,
                             struct weir_error *err)
{
    size_t i;
    json_t *one;
    const json_t *list = json_object_get(call->body, name);
    if (list != NULL && (!json_is_array(list) || json_array_size(list) > max)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.%s: expected a list of at most %zu", name,
                              max);
    }
    json_array_foreach(list, i, one)
    {
        char where[64];
        (void)snprintf(where, sizeof where, "$.%s[%zu]", name, i);
        WEIR_TRY(take(call, one, where, err));
    }
    return WEIR_OK;
}

weir_status api_desk_say(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    static const char *const fields[] = {"live", "looks", NULL};
    struct desk_news ignored;
    (void)txn;
    WEIR_TRY(api_body_only(call, fields, err));
    WEIR_TRY(take_each(call, "live", LIVE_PER_CALL, take_live, err));
    WEIR_TRY(take_each(call, "looks", ANSWERS_PER_CALL, take_answer, err));
    (void)answer_asked(call, 0, true, &ignored);
    return WEIR_OK;
}
