/*
 * weir-camera from end to end, each as a process in its sandbox: files whose frames carry their number in their pixels, at the top and
 * at the bottom, come whole, each once, in order; whatever a file is, the camera's end is a sentence.
 */
#include "camera.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/test_main.h"
#include "base/test_seed.h"
#include "endpoint/source/camera.h"
#include "video/camera.h"

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/opt.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK    16
#define N_BITS   16
#define WIDTH    (BLOCK * N_BITS)
#define HEIGHT   96
#define N_FRAMES 40
#define N_SLOTS  3

/* ---- files ----------------------------------------------------------------------------------- */

static void burn(AVFrame *frame, int y0, unsigned number)
{
    for (int bit = 0; bit < N_BITS; bit++) {
        for (int y = y0; y < y0 + BLOCK; y++) {
            memset(frame->data[0] + y * frame->linesize[0] + bit * BLOCK,
                   number >> bit & 1 ? 220 : 30, BLOCK);
        }
    }
}

static bool is_still; /**< Each frame shows the same. */

static void draw(AVFrame *frame, unsigned number)
{
    number = is_still ? 7 : number;
    for (int y = 0; y < frame->height; y++) {
        for (int x = 0; x < frame->width; x++) {
            frame->data[0][y * frame->linesize[0] + x] =
                (uint8_t)(40 + (x + 3 * (int)number) % 160);
        }
    }
    for (int i = 1; i < 3; i++) {
        for (int y = 0; y < frame->height / 2; y++) {
            memset(frame->data[i] + y * frame->linesize[i], 100 + 20 * i, (size_t)frame->width / 2);
        }
    }
    burn(frame, 0, number);
    burn(frame, frame->height - BLOCK, number);
}

static AVCodecContext *open_encoder(enum AVCodecID id, int height, int gop)
{
    AVCodecContext *encoder = avcodec_alloc_context3(avcodec_find_encoder(id));
    encoder->width = WIDTH;
    encoder->height = height;
    encoder->time_base = (AVRational){1, 25};
    encoder->pix_fmt = id == AV_CODEC_ID_MJPEG ? AV_PIX_FMT_YUVJ420P : AV_PIX_FMT_YUV420P;
    encoder->gop_size = gop;
    encoder->max_b_frames = id == AV_CODEC_ID_MJPEG ? 0 : 2;
    encoder->flags |= AV_CODEC_FLAG_QSCALE;
    encoder->global_quality = 3 * FF_QP2LAMBDA;
    encoder->thread_count = 1;
    ck_assert_int_ge(avcodec_open2(encoder, NULL, NULL), 0);
    return encoder;
}

typedef void (*take_fn)(void *context, AVPacket *packet);

static void encode(AVCodecContext *encoder, unsigned first, unsigned n, take_fn take, void *context)
{
    AVFrame *frame = av_frame_alloc();
    AVPacket *packet = av_packet_alloc();
    frame->format = encoder->pix_fmt;
    frame->width = encoder->width;
    frame->height = encoder->height;
    frame->quality = encoder->global_quality;
    ck_assert_int_eq(av_frame_get_buffer(frame, 0), 0);
    for (unsigned i = 0; i <= n; i++) {
        if (i < n) {
            ck_assert_int_eq(av_frame_make_writable(frame), 0);
            draw(frame, first + i);
            frame->pts = i;
        }
        ck_assert_int_ge(avcodec_send_frame(encoder, i < n ? frame : NULL), 0);
        while (avcodec_receive_packet(encoder, packet) == 0) {
            take(context, packet);
            av_packet_unref(packet);
        }
    }
    av_packet_free(&packet);
    av_frame_free(&frame);
}

static const char *container = "matroska";
static bool is_one_far; /**< The fifth frame is shown years after it is decoded. */

static void put_in_file(void *context, AVPacket *packet)
{
    AVFormatContext *file = context;
    packet->stream_index = 0;
    packet->pts += is_one_far && packet->dts == 5 ? 1000000 : 0;
    av_packet_rescale_ts(packet, (AVRational){1, 25}, file->streams[0]->time_base);
    ck_assert_int_ge(av_interleaved_write_frame(file, packet), 0);
}

static void write_video(const char *path, enum AVCodecID id, int gop)
{
    AVFormatContext *file;
    AVCodecContext *encoder = open_encoder(id, HEIGHT, gop);
    ck_assert_int_ge(avformat_alloc_output_context2(&file, NULL, container, path), 0);
    AVStream *stream = avformat_new_stream(file, NULL);
    ck_assert_int_ge(avcodec_parameters_from_context(stream->codecpar, encoder), 0);
    stream->time_base = encoder->time_base;
    ck_assert_int_ge(avio_open(&file->pb, path, AVIO_FLAG_WRITE), 0);
    ck_assert_int_ge(avformat_write_header(file, NULL), 0);
    encode(encoder, 0, N_FRAMES, put_in_file, file);
    ck_assert_int_eq(av_write_trailer(file), 0);
    (void)avio_closep(&file->pb);
    avformat_free_context(file);
    avcodec_free_context(&encoder);
}

static void put_bytes(void *context, AVPacket *packet)
{
    ck_assert_uint_eq(fwrite(packet->data, 1, (size_t)packet->size, context), (size_t)packet->size);
}

/* JPEG pictures one after the other; from the middle on they are larger. */
static void write_two_sizes(const char *path)
{
    FILE *file = fopen(path, "wbe");
    for (unsigned part = 0; part < 2; part++) {
        AVCodecContext *encoder = open_encoder(AV_CODEC_ID_MJPEG, (int)(1 + part) * HEIGHT, 1);
        encode(encoder, part * N_FRAMES / 2, N_FRAMES / 2, put_bytes, file);
        avcodec_free_context(&encoder);
    }
    ck_assert_int_eq(fclose(file), 0);
}

/* ---- the camera ------------------------------------------------------------------------------ */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned numbers[4 * N_FRAMES];
    int heights[4 * N_FRAMES];
    size_t n;
    bool is_good, is_over, was_live;
    enum weir_video_state state;
    char why[WEIR_VIDEO_TEXT_BYTES];
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static unsigned read_number(const struct weir_view *view, int y0)
{
    unsigned number = 0;
    for (int bit = 0; bit < N_BITS; bit++) {
        size_t at = (size_t)((y0 + BLOCK / 2) * view->strides[0] + bit * BLOCK + BLOCK / 2);
        number |= (unsigned)(view->planes[0][at] > 125) << bit;
    }
    return number;
}

static void on_frame(void *context, const struct weir_video_taken *taken)
{
    const struct weir_view *view = &taken->view;
    (void)context;
    pthread_mutex_lock(&seen.lock);
    unsigned number = read_number(view, 0);
    seen.is_good =
        seen.is_good && view->width == WIDTH && number == read_number(view, view->height - BLOCK);
    if (seen.n < WEIR_ARRAY_LEN(seen.numbers)) {
        seen.heights[seen.n] = view->height;
        seen.numbers[seen.n++] = number;
    }
    pthread_cond_broadcast(&seen.changed);
    pthread_mutex_unlock(&seen.lock);
    weir_video_slots_free(taken->slots, taken->slot);
}

static void on_state(void *context, enum weir_video_state state, const char *why)
{
    (void)context;
    pthread_mutex_lock(&seen.lock);
    seen.was_live = seen.was_live || state == WEIR_VIDEO_IS_LIVE;
    if (state == WEIR_VIDEO_ENDED || state == WEIR_VIDEO_IS_LOST) {
        seen.is_over = true;
        seen.state = state;
        (void)snprintf(seen.why, sizeof seen.why, "%s", why);
    }
    pthread_cond_broadcast(&seen.changed);
    pthread_mutex_unlock(&seen.lock);
}

static char path[64];
static struct weir_video_status last;

/* Play the file until its end, or until so many frames came. */
static void play(const char *options, size_t n_frames)
{
    struct weir_error err;
    struct weir_video_camera *camera;
    json_t *source = json_loads(options, 0, NULL);
    ck_assert_ptr_nonnull(source);
    json_object_set_new(source, "kind", json_string("video"));
    json_object_set_new(source, "cameras", json_pack("[{s:s,s:s}]", "name", "c", "path", path));
    const struct weir_video_config config = {.program = "/proc/self/exe",
                                             .name = "c",
                                             .source = source,
                                             .reach = {.path = path},
                                             .n_slots = N_SLOTS,
                                             .slot_bytes =
                                                 weir_video_frame_bytes(WIDTH, 2 * HEIGHT),
                                             .on_frame = on_frame,
                                             .on_state = on_state};
    seen.n = 0;
    seen.is_good = true;
    seen.is_over = seen.was_live = false;
    seen.why[0] = '\0';
    ck_assert_msg(weir_video_start(&config, &camera, &err) == WEIR_OK, "%s", err.message);
    pthread_mutex_lock(&seen.lock);
    while (!seen.is_over && seen.n < n_frames) {
        pthread_cond_wait(&seen.changed, &seen.lock);
    }
    pthread_mutex_unlock(&seen.lock);
    weir_video_status(camera, &last);
    weir_video_stop(camera);
    json_decref(source);
}

static void set_up(void)
{
    (void)snprintf(path, sizeof path, "/tmp/weir-camera-test-%d", (int)getpid());
    (void)avformat_version();
    av_log_set_level(AV_LOG_QUIET);
}

static void tear_down(void)
{
    (void)unlink(path);
}

static const enum AVCodecID codecs[] = {AV_CODEC_ID_MPEG4, AV_CODEC_ID_MJPEG};

START_TEST(every_frame_of_a_file_comes_once_and_whole)
{
    write_video(path, codecs[_i], 12);
    play("{\"pace\":\"fast\",\"fps\":0}", SIZE_MAX);
    ck_assert_str_eq(seen.why, "the file is over");
    ck_assert_int_eq(seen.state, WEIR_VIDEO_ENDED);
    ck_assert(seen.was_live);
    ck_assert_uint_eq(seen.n, N_FRAMES);
    ck_assert(seen.is_good);
    for (unsigned i = 0; i < N_FRAMES; i++) {
        ck_assert_uint_eq(seen.numbers[i], i);
    }
    ck_assert_str_eq(last.codec, avcodec_get_name(codecs[_i]));
    ck_assert_uint_eq(last.counts.n_damaged + last.counts.n_dropped, 0);
    ck_assert_int_ge(last.counts.period_us, 38000); /* 25 a second, in whatever order */
    ck_assert_int_le(last.counts.period_us, 70000);
}

END_TEST

/* 25 a second are there: every fifth is wanted, by the stream's clock. */
START_TEST(as_many_frames_come_as_are_wanted)
{
    write_video(path, codecs[_i], 12);
    play("{\"pace\":\"fast\",\"fps\":5}", SIZE_MAX);
    ck_assert_uint_ge(seen.n, N_FRAMES / 5);
    ck_assert_uint_le(seen.n, N_FRAMES / 5 + 1);
    for (unsigned i = 0; i < seen.n; i++) { /* a quarter of a period early at most */
        ck_assert_msg(seen.numbers[i] + 2 > 5 * i && seen.numbers[i] <= 5 * i, "%u: %u", i,
                      seen.numbers[i]);
    }
}

END_TEST

/* Else every frame behind it would be early. */
START_TEST(a_frame_that_is_shown_years_later_holds_no_other)
{
    is_one_far = true;
    container = "mp4";
    write_video(path, AV_CODEC_ID_MJPEG, 1);
    is_one_far = false;
    container = "matroska";
    play("{\"pace\":\"fast\",\"fps\":5}", SIZE_MAX);
    ck_assert_str_eq(seen.why, "the file is over");
    ck_assert_uint_ge(seen.n, N_FRAMES / 5);
    ck_assert_int_lt(last.counts.period_us, 1000000);
}

END_TEST

/* A file of gigabytes in which no picture ends: libavformat would keep them all. */
START_TEST(a_file_without_end_is_a_sentence)
{
    AVCodecContext *encoder = open_encoder(AV_CODEC_ID_MPEG4, HEIGHT, 12);
    FILE *file = fopen(path, "wbe");
    encode(encoder, 0, N_FRAMES, put_bytes, file);
    avcodec_free_context(&encoder);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(truncate(path, (off_t)10 << 30), 0);
    play("{\"pace\":\"fast\",\"fps\":0}", SIZE_MAX);
    ck_assert_str_eq(seen.why, "the file has 128 MiB without a picture");
    ck_assert_uint_ge(seen.n, N_FRAMES - 3);
}

END_TEST

START_TEST(key_frames_alone_come_if_they_are_asked_for)
{
    write_video(path, AV_CODEC_ID_MPEG4, 10);
    play("{\"pace\":\"fast\",\"fps\":0,\"key_frames\":true}", SIZE_MAX);
    ck_assert_uint_ge(seen.n, N_FRAMES / 10);
    ck_assert_uint_le(seen.n, N_FRAMES / 8);
    for (unsigned i = 1; i < seen.n; i++) {
        ck_assert_uint_ge(seen.numbers[i] - seen.numbers[i - 1], 8);
    }
}

END_TEST

START_TEST(a_file_may_change_its_size_and_begin_again)
{
    write_two_sizes(path);
    play("{\"pace\":\"fast\",\"fps\":0}", SIZE_MAX);
    ck_assert_uint_eq(seen.n, N_FRAMES);
    for (unsigned i = 0; i < N_FRAMES; i++) {
        ck_assert_uint_eq(seen.numbers[i], i);
        ck_assert_int_eq(seen.heights[i], i < N_FRAMES / 2 ? HEIGHT : 2 * HEIGHT);
    }
    write_video(path, AV_CODEC_ID_MPEG4, 10);
    play("{\"pace\":\"fast\",\"fps\":0,\"loop\":true}", 3 * N_FRAMES);
    for (unsigned i = 0; i < 3 * N_FRAMES; i++) {
        ck_assert_uint_eq(seen.numbers[i], i % N_FRAMES);
    }
}

END_TEST

START_TEST(frames_that_are_too_large_are_refused_with_their_size)
{
    write_video(path, codecs[_i], 10);
    play("{\"pace\":\"fast\",\"max_pixels\":10000}", SIZE_MAX);
    ck_assert_uint_eq(seen.n, 0);
    ck_assert_msg(strstr(seen.why, "256 × 96 pixels, more than max_pixels (10000)") != NULL, "%s",
                  seen.why);
}

END_TEST

/* A camera that were live at each try would be lost anew each time, and never for long enough to be told. */
START_TEST(a_picture_that_cannot_be_given_is_not_live)
{
    static const char head[] = "P6\n256 96\n255\n";
    static char bytes[sizeof head - 1 + 3 * (size_t)WIDTH * HEIGHT];
    struct weir_error err;
    memcpy(bytes, head, sizeof head - 1);
    ck_assert_int_eq(weir_file_write_atomic(path, bytes, sizeof bytes, 0600, &err), WEIR_OK);
    play("{\"pace\":\"fast\"}", SIZE_MAX);
    ck_assert_int_eq(seen.state, WEIR_VIDEO_IS_LOST);
    ck_assert_msg(strstr(seen.why, "its pixels are rgb24") != NULL, "%s", seen.why);
    ck_assert(!seen.was_live);
}

END_TEST

START_TEST(frames_in_which_nothing_moves_come_once_a_second)
{
    is_still = _i == 0;
    write_video(path, AV_CODEC_ID_MPEG4, 12);
    is_still = false;
    play("{\"pace\":\"fast\",\"fps\":0,\"motion\":0.01}", SIZE_MAX);
    ck_assert_msg(_i == 0 ? seen.n == 2 : seen.n > N_FRAMES / 2, "%zu", seen.n);
}

END_TEST

/* A list of others' files and addresses, as a video file. */
START_TEST(a_file_that_names_others_reaches_none)
{
    static const char *const lists[] = {
        "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n",
        "ffconcat version 1.0\nfile /etc/passwd\n"};
    struct weir_error err;
    ck_assert_int_eq(weir_file_write_atomic(path, lists[_i], strlen(lists[_i]), 0600, &err),
                     WEIR_OK);
    play("{\"pace\":\"fast\"}", SIZE_MAX);
    ck_assert_uint_eq(seen.n, 0);
    ck_assert_int_eq(seen.state, WEIR_VIDEO_IS_LOST);
    ck_assert_str_ne(seen.why, "weir-camera has died");
    ck_assert_str_ne(seen.why, "");
}

END_TEST

/* Cut short: frames that come show their number at both ends, in order. With bytes changed a picture may be another, and no more. */
START_TEST(a_damaged_file_is_a_sentence_and_no_wrong_frame)
{
    struct weir_rng rng;
    struct weir_error err;
    static char bytes[2 << 20];
    size_t n;
    (void)test_seed(&rng);
    write_video(path, _i % 2 == 0 ? AV_CODEC_ID_MPEG4 : AV_CODEC_ID_MJPEG, 12);
    ck_assert_int_eq(weir_file_read_into(path, bytes, sizeof bytes, &n, &err), WEIR_OK);
    size_t n_left = _i < 4 ? weir_rng_below(&rng, n) : n;
    for (int i = 0; _i >= 4 && i < 1 << (_i - 4); i++) {
        bytes[weir_rng_below(&rng, n)] = (char)weir_rng_below(&rng, 256);
    }
    ck_assert_int_eq(weir_file_write_atomic(path, bytes, n_left, 0600, &err), WEIR_OK);
    play("{\"pace\":\"fast\",\"fps\":0}", SIZE_MAX);
    ck_assert_str_ne(seen.why, "");
    ck_assert_str_ne(seen.why, "weir-camera has died");
    ck_assert(seen.is_good || _i >= 4);
    for (size_t i = 1; _i < 4 && i < seen.n; i++) {
        ck_assert_uint_lt(seen.numbers[i - 1], seen.numbers[i]);
    }
}

END_TEST

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--serve") == 0) {
        return weir_camera_serve(0);
    }
    const struct weir_test_loop loops[] = {
        {every_frame_of_a_file_comes_once_and_whole, WEIR_ARRAY_LEN(codecs)},
        {as_many_frames_come_as_are_wanted, WEIR_ARRAY_LEN(codecs)},
        {key_frames_alone_come_if_they_are_asked_for, 1},
        {a_file_may_change_its_size_and_begin_again, 1},
        {frames_that_are_too_large_are_refused_with_their_size, WEIR_ARRAY_LEN(codecs)},
        {a_picture_that_cannot_be_given_is_not_live, 1},
        {frames_in_which_nothing_moves_come_once_a_second, 2},
        {a_file_that_names_others_reaches_none, 2},
        {a_frame_that_is_shown_years_later_holds_no_other, 1},
        {a_file_without_end_is_a_sentence, 1},
        {a_damaged_file_is_a_sentence_and_no_wrong_frame, 8},
    };
    Suite *suite = suite_create("camera");
    TCase *tests = tcase_create("camera");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 120);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(loops); i++) {
        tcase_add_loop_test(tests, loops[i].test, 0, loops[i].n_loops);
    }
    suite_add_tcase(suite, tests);
    return weir_test_run(suite);
}
