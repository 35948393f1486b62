/** From frames in a folder to cameras that stream, as soon as there is a detector that finds the faces in their pictures. */
#include "demo/cameras.h"
#include "demo/stream.h"

#include "base/clock.h"
#include "base/file.h"
#include "video/camera.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#define DOCUMENT    "cameras.yaml"
#define FINDER      "find-faces"
#define POLL_MS     200
#define WAIT_MAX_MS ((int64_t)10 * 60 * 1000)

bool demo_video_is_there(const struct demo *demo)
{
    char program[PATH_MAX];
    struct weir_error ignored;
    const char *path = weir_arena_printf(demo->call->arena, "%s/%s", demo->example_dir, DOCUMENT);
    return weir_video_program(program, sizeof program, &ignored) == WEIR_OK &&
           access(path, R_OK) == 0;
}

static json_t *find_pipeline(json_t *document, const char *key, const char *value)
{
    json_t *pipeline;
    size_t i;
    json_array_foreach(json_object_get(document, "pipelines"), i, pipeline)
    {
        const char *text = json_string_value(json_object_get(pipeline, key));
        if (text != NULL && strcmp(text, value) == 0) {
            return pipeline;
        }
    }
    return NULL;
}

weir_status demo_video_add_finder(struct demo *demo, json_t *document, struct weir_error *err)
{
    json_t *other;
    WEIR_TRY(demo_read_ion(demo, DOCUMENT, &other, err));
    json_array_append(json_object_get(document, "pipelines"), find_pipeline(other, "name", FINDER));
    json_decref(other);
    return WEIR_OK;
}

weir_status demo_video_learn(struct demo *demo, struct weir_error *err)
{
    demo_say("a detector is trained, which finds faces in the pictures of cameras");
    return demo_trigger(demo, FINDER, err);
}

/* Wait until what it registers is there. */
static weir_status wait_for_finder(struct demo *demo, json_t *document, int signal_fd,
                                   struct weir_error *err)
{
    const json_t *finder = find_pipeline(document, "name", FINDER);
    const char *model = json_string_value(json_object_get(finder, "registers"));
    const char *path = cli_path1(demo->call, "/api/v1/models/{}/versions", model);
    int64_t until = weir_mono_ms() + WAIT_MAX_MS;
    for (;;) {
        json_t *versions = NULL;
        weir_status status = demo_get(demo, path, &versions, err);
        size_t n = json_array_size(json_object_get(versions, "items"));
        json_decref(versions);
        if (status != WEIR_OK && status != WEIR_ERR_NOT_FOUND) {
            return status;
        }
        if (n > 0) {
            return WEIR_OK;
        }
        if (weir_mono_ms() > until) {
            return weir_error_set(err, WEIR_ERR_TIMEOUT,
                                  "no detector within %lld minutes; see `weir get jobs`",
                                  (long long)(WAIT_MAX_MS / 60000));
        }
        WEIR_TRY(demo_pause_ms(signal_fd, POLL_MS));
    }
}

weir_status demo_streams_start(struct demo *demo, struct weir_error *err)
{
    struct weir_arena *arena = demo->call->arena;
    size_t n = (size_t)demo->options->cameras;
    const char **names = WEIR_ARENA_ARRAY(arena, n, const char *);
    for (size_t i = 0; i < n; i++) {
        names[i] = demo_camera_name(arena, i);
    }
    const struct demo_streams_options options = {
        .listen = demo->options->listen, .login = demo->options->login, .names = names, .n = n};
    return demo_streams_open(&options, &demo->streams, &demo->streams_port, err);
}

/* The document's cameras are ours. */
static void put_cameras(struct demo *demo, json_t *document)
{
    json_t *source = json_object_get(find_pipeline(document, "type", "prediction"), "source");
    json_t *cameras = json_array();
    for (size_t i = 0; i < (size_t)demo->options->cameras; i++) {
        const char *name = demo_camera_name(demo->call->arena, i);
        char *url = weir_arena_printf(demo->call->arena, "rtsp://127.0.0.1:%d/%s",
                                      demo->streams_port, name);
        json_array_append_new(cameras, json_pack("{s:s,s:s}", "name", name, "url", url));
    }
    json_object_set_new(source, "cameras", cameras);
    json_object_set_new(source, "fps", json_real(demo->options->frames_per_second));
}

static weir_status wait_for_watchers(struct demo *demo, int signal_fd, struct weir_error *err)
{
    int64_t until = weir_mono_ms() + WAIT_MAX_MS;
    for (size_t i = 0; i < demo->n_cameras;) {
        if (demo_streams_watchers(demo->streams, i) > 0) {
            i++;
            continue;
        }
        if (weir_mono_ms() > until) {
            return weir_error_set(err, WEIR_ERR_TIMEOUT,
                                  "nobody watches the cameras; see `weir logs %s`", demo->ion);
        }
        WEIR_TRY(demo_pause_ms(signal_fd, POLL_MS));
    }
    return WEIR_OK;
}

weir_status demo_video_switch(struct demo *demo, int signal_fd, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *document = NULL;
    json_t *answer;
    WEIR_TRY(demo_read_ion(demo, DOCUMENT, &document, err));
    WEIR_TRY(wait_for_finder(demo, document, signal_fd, err));
    WEIR_TRY(demo_streams_start(demo, err));
    demo_cameras_stop(demo);
    WEIR_TRY(demo_catch_up(demo, err));
    put_cameras(demo, document);
    WEIR_TRY(demo_cameras_start(demo, &camera_of_stream, err));
    WEIR_TRY(demo_send(demo, "POST", "/api/v1/ions", json_incref(document), &answer, err));
    demo_say("ION %s applied, revision %s: a detector, and cameras over RTSP", demo->ion,
             cli_text(demo->call, answer, "revision"));
    json_decref(answer);
    WEIR_TRY(wait_for_watchers(demo, signal_fd, err));
    demo_say("%zu cameras stream over RTSP, at port %d", demo->n_cameras, demo->streams_port);
    return WEIR_OK;
}
