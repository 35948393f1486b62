#include "camera.h"

#include "base/clock.h"
#include "base/library.h"
#include "base/options.h"
#include "endpoint/source/camera.h"
#include "video/camera.h"
#include "video/wire.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N_SLOTS 4

struct options {
    char *transport, *password_file, *save;
    double seconds, fps;
    bool key_frames, serve, help;
};

static const struct weir_option table[] = {
    WEIR_OPT(options, seconds, "seconds", 's', F64, "5", 0.1, 86400, "S", "Look for so long"),
    WEIR_OPT(options, fps, "fps", 0, F64, "0", 0, WEIR_CAMERA_FPS_MAX, "N",
             "Frames a second; 0: all"),
    WEIR_OPT(options, transport, "transport", 't', TEXT, "tcp", 0, 0, "WORD",
             "How packets of RTSP come: tcp or udp"),
    WEIR_OPT(options, password_file, "password-file", 0, TEXT, NULL, 0, 0, "FILE",
             "File with the password of the address's user"),
    WEIR_OPT(options, key_frames, "key-frames", 0, BOOL, NULL, 0, 0, NULL, "Only key frames"),
    WEIR_OPT(options, save, "save", 0, TEXT, NULL, 0, 0, "FILE",
             "Write the last frame there, as grey picture (PGM)"),
    WEIR_OPT(options, serve, "serve", 0, BOOL, NULL, 0, 0, NULL,
             "Be the camera of the program that has started it: it says the rest"),
    WEIR_OPT(options, help, "help", 'h', BOOL, NULL, 0, 0, NULL, "Show this list"),
};

/** What a look has seen. */
struct look {
    const char *save;
    _Atomic int64_t n_frames;
    _Atomic int64_t age_sum_us;
    atomic_bool is_over;
};

/* The last one stays: it is written over by the next. */
static void save_frame(const char *path, const struct weir_view *view)
{
    FILE *file = fopen(path, "we");
    if (file == NULL) {
        return;
    }
    (void)fprintf(file, "P5\n%d %d\n255\n", view->width, view->height);
    for (int y = 0; y < view->height; y++) {
        (void)fwrite(view->planes[0] + (size_t)y * (size_t)view->strides[0], 1, (size_t)view->width,
                     file);
    }
    (void)fclose(file);
}

static void on_frame(void *context, const struct weir_video_taken *taken)
{
    struct look *look = context;
    int64_t age_us = (int64_t)(weir_mono_ns() - taken->frame->received_ns) / 1000;
    look->n_frames++;
    look->age_sum_us += age_us;
    if (look->save != NULL) {
        save_frame(look->save, &taken->view);
    }
    weir_video_slots_free(taken->slots, taken->slot);
}

static void on_state(void *context, enum weir_video_state state, const char *why)
{
    struct look *look = context;
    (void)printf("%s%s%s\n", weir_video_state_name(state), why[0] != '\0' ? ": " : "", why);
    (void)fflush(stdout);
    if (state == WEIR_VIDEO_ENDED) {
        look->is_over = true;
    }
}

static void print_status(struct weir_video_camera *camera, const struct look *look, double seconds)
{
    struct weir_video_status at;
    weir_video_status(camera, &at);
    (void)printf("%s, %d × %d, %lld frames in %.1f s, %.2f ms from the last packet to the frame\n",
                 at.codec[0] != '\0' ? at.codec : "nothing came", at.frame.width, at.frame.height,
                 (long long)look->n_frames, seconds,
                 look->n_frames > 0 ? (double)look->age_sum_us / 1000 / (double)look->n_frames : 0);
    (void)printf("a unit in %.1f ms; %llu decoded, %llu skipped, %llu dropped, %llu damaged, %llu "
                 "packets lost\n",
                 (double)at.counts.period_us / 1000, (unsigned long long)at.counts.n_decoded,
                 (unsigned long long)at.counts.n_skipped, (unsigned long long)at.counts.n_dropped,
                 (unsigned long long)at.counts.n_damaged, (unsigned long long)at.counts.n_lost);
}

/* Counts come with the reports: one that knows of the frames that have come is not far. */
static void wait_for_counts(struct weir_video_camera *camera, const struct look *look)
{
    struct weir_video_status at;
    uint64_t n_frames = (uint64_t)look->n_frames;
    int64_t end_ms = weir_mono_ms() + WEIR_VIDEO_REPORT_MS;
    do {
        weir_video_status(camera, &at);
    } while (at.counts.n_decoded < n_frames && !look->is_over && weir_mono_ms() < end_ms &&
             poll(NULL, 0, 20) == 0);
}

/* By its scheme the kind; a path is a device or a file. */
static const char *kind_of(const char *address)
{
    return strncmp(address, "rtsp", 4) == 0    ? "rtsp"
           : strncmp(address, "http", 4) == 0  ? "mjpeg"
           : strncmp(address, "/dev/", 5) == 0 ? "v4l2"
                                               : "video";
}

static json_t *source_of(const char *address, const struct options *options, const char *password)
{
    const char *kind = kind_of(address);
    bool is_rtsp = strcmp(kind, "rtsp") == 0, is_file = strcmp(kind, "video") == 0;
    json_t *camera = json_pack("{s:s,s:s}", "name", "camera",
                               is_rtsp || strcmp(kind, "mjpeg") == 0 ? "url"
                               : is_file                             ? "path"
                                                                     : "device",
                               address);
    json_t *source =
        json_pack("{s:s,s:f,s:[o]}", "kind", kind, "fps", options->fps, "cameras", camera);
    if (password != NULL) {
        json_object_set_new(camera, "password", json_string(password));
    }
    if (is_rtsp) {
        json_object_set_new(source, "transport", json_string(options->transport));
    }
    if (is_rtsp || is_file) {
        json_object_set_new(source, "key_frames", json_boolean(options->key_frames));
    }
    return source;
}

static weir_status look_at(const char *address, const struct options *options, json_t *source,
                           struct weir_error *err)
{
    struct weir_arena arena;
    struct weir_configured read, sinks[1];
    struct weir_camera_host host;
    struct look look = {.save = options->save};
    struct weir_video_camera *camera;
    size_t n_sinks;
    weir_arena_init(&arena, 0);
    weir_status status =
        weir_endpoints_read(source, NULL, "$", &arena, &read, sinks, &n_sinks, err);
    weir_arena_fini(&arena);
    WEIR_TRY(status);
    const char *kind = kind_of(address);
    struct weir_video_config config = {.program = "/proc/self/exe",
                                       .name = "camera",
                                       .source = source,
                                       .n_slots = N_SLOTS,
                                       .slot_bytes = (size_t)8192 * 8192 * 3 / 2,
                                       .on_frame = on_frame,
                                       .on_state = on_state,
                                       .context = &look};
    if (strcmp(kind, "rtsp") == 0 || strcmp(kind, "mjpeg") == 0) {
        bool is_rtsp = strcmp(kind, "rtsp") == 0;
        WEIR_TRY(weir_camera_host_read(address, is_rtsp ? "rtsp" : "http", is_rtsp ? 554 : 80,
                                       &host, err));
        config.reach = (struct weir_video_reach){.host = host.host, .port = host.port};
    } else {
        config.reach =
            (struct weir_video_reach){.path = address, .is_device = strcmp(kind, "v4l2") == 0};
    }
    int64_t begun_ms = weir_mono_ms(), end_ms = begun_ms + (int64_t)(options->seconds * 1000);
    WEIR_TRY(weir_video_start(&config, &camera, err));
    while (weir_mono_ms() < end_ms && !look.is_over) {
        (void)poll(NULL, 0, (int)WEIR_MIN(end_ms - weir_mono_ms(), 100));
    }
    wait_for_counts(camera, &look);
    print_status(camera, &look, (double)(weir_mono_ms() - begun_ms) / 1000);
    weir_video_stop(camera);
    return look.n_frames > 0 ? WEIR_OK : weir_error_set(err, WEIR_ERR_UNAVAILABLE, "no frame came");
}

static weir_status read_password(const char *path, char out[256], struct weir_error *err)
{
    FILE *file = fopen(path, "re");
    if (file == NULL || fgets(out, 256, file) == NULL) {
        if (file != NULL) {
            (void)fclose(file);
        }
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "--password-file: nothing to read in %s",
                              path);
    }
    (void)fclose(file);
    out[strcspn(out, "\r\n")] = '\0';
    return WEIR_OK;
}

static weir_status run(char **words, size_t n_words, const struct options *options,
                       struct weir_error *err)
{
    char password[256];
    if (n_words != 1) {
        return weir_error_set(err, WEIR_ERR_INVALID, "expected one ADDRESS: weir-camera --help");
    }
    if (options->password_file != NULL) {
        WEIR_TRY(read_password(options->password_file, password, err));
    }
    json_t *source = source_of(words[0], options, options->password_file != NULL ? password : NULL);
    weir_status status = look_at(words[0], options, source, err);
    json_decref(source);
    return status;
}

static void print_help(void)
{
    (void)printf("usage: weir-camera [option …] ADDRESS\n\nLook at a camera: rtsp://…, http://…, "
                 "/dev/videoN, or a file of video.\n\n");
    weir_options_print(table, WEIR_ARRAY_LEN(table), stdout);
}

static weir_status parse_and_run(int argc, char **argv, struct weir_arena *arena,
                                 struct weir_error *err)
{
    struct options options = {0};
    char **words;
    size_t n_words;
    WEIR_TRY(weir_options_parse(table, WEIR_ARRAY_LEN(table), argc - 1, argv + 1, arena, &options,
                                &words, &n_words, err));
    if (options.help) {
        print_help();
        return WEIR_OK;
    }
    return run(words, n_words, &options, err);
}

int weir_camera_main(int argc, char **argv)
{
    struct weir_arena arena;
    struct weir_error err;
    if (argc == 2 && strcmp(argv[1], "--serve") == 0) {
        return weir_camera_serve(0);
    }
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        weir_version_print("weir-camera");
        return 0;
    }
    weir_arena_init(&arena, 0);
    weir_status status = parse_and_run(argc, argv, &arena, &err);
    if (status != WEIR_OK) {
        (void)fprintf(stderr, "weir-camera: %s\n", err.message);
    }
    weir_arena_fini(&arena);
    return weir_status_exit(status);
}
