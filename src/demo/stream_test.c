/* Streams, watched by the reader of RTSP that weir-camera has: each picture comes as it was given, to those alone who may see it. */
#include "demo/stream.h"

#include "base/clock.h"
#include "base/rng.h"
#include "base/test_main.h"
#include "base/test_seed.h"
#include "data/image.h"
#include "demo/film.h"
#include "demo/rtp_jpeg.h"
#include "rtsp/rtsp.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAIT_MS 5000

static const char *const names[] = {"door-1", "door-2"};
static struct weir_error err;
static int port;

static struct demo_streams *open_streams(const char *login)
{
    const struct demo_streams_options options = {
        .listen = "127.0.0.1:0", .login = login, .names = names, .n = 2};
    struct demo_streams *streams = NULL;
    ck_assert_msg(demo_streams_open(&options, &streams, &port, &err) == WEIR_OK, "%s", err.message);
    return streams;
}

static weir_status connect_to(void *context, const char *host, int its_port, int64_t deadline_ms,
                              int *out_fd, struct weir_error *out_err)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)its_port)};
    (void)context, (void)host, (void)deadline_ms;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
        (void)close(fd);
        return weir_error_set(out_err, WEIR_ERR_UNAVAILABLE, "nobody is there");
    }
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    *out_fd = fd;
    return WEIR_OK;
}

static weir_status watch(const char *name, const char *user, const char *password,
                         struct weir_rtsp **out)
{
    char url[128];
    (void)snprintf(url, sizeof url, "rtsp://127.0.0.1:%d/%s", port, name);
    const struct weir_rtsp_config config = {.url = url,
                                            .user = user,
                                            .password = password,
                                            .transport = WEIR_RTSP_TCP,
                                            .sockets = {.connect = connect_to}};
    return weir_rtsp_open(&config, weir_mono_ms() + WAIT_MS, out, &err);
}

/* A picture of noise, of random size and quality, as a file. */
static void make_picture(struct weir_rng *rng, struct weir_buf *out)
{
    struct weir_image image = {0};
    int width = 16 * (1 + (int)weir_rng_below(rng, 40)),
        height = 16 * (1 + (int)weir_rng_below(rng, 30));
    ck_assert(weir_image_init(&image, width, height, 3, &err) == WEIR_OK);
    for (size_t i = 0; i < (size_t)width * (size_t)height * 3; i++) {
        image.pixels[i] = (uint8_t)(i / 7 + weir_rng_below(rng, 40));
    }
    weir_buf_init(out, 4 << 20);
    ck_assert(weir_image_encode(&image, WEIR_IMAGE_FORMAT_JPEG, 1 + (int)weir_rng_below(rng, 100),
                                out, &err) == WEIR_OK);
    weir_image_fini(&image);
}

static void check_same(const void *a, size_t n_a, const void *b, size_t n_b)
{
    struct weir_image one = {0}, other = {0};
    ck_assert(weir_image_decode(a, n_a, &one, &err) == WEIR_OK);
    ck_assert_msg(weir_image_decode(b, n_b, &other, &err) == WEIR_OK, "%s", err.message);
    ck_assert_int_eq(one.width, other.width);
    ck_assert_int_eq(one.height, other.height);
    size_t n = (size_t)one.width * (size_t)one.height * 3;
    ck_assert(one.channels == 3 && other.channels == 3 && memcmp(one.pixels, other.pixels, n) == 0);
    weir_image_fini(&one);
    weir_image_fini(&other);
}

START_TEST(each_picture_comes_as_it_was_given)
{
    struct weir_rng rng;
    struct demo_streams *streams = open_streams(NULL);
    struct weir_rtsp *one = NULL, *other = NULL;
    test_seed(&rng);
    ck_assert_uint_eq(demo_streams_watchers(streams, 0), 0);
    ck_assert_msg(watch("door-1", NULL, NULL, &one) == WEIR_OK, "%s", err.message);
    ck_assert_msg(watch("door-2", NULL, NULL, &other) == WEIR_OK, "%s", err.message);
    ck_assert_uint_eq(demo_streams_watchers(streams, 0), 1);
    for (int i = 0; i < 30; i++) {
        struct weir_buf picture;
        struct weir_rtsp_unit unit;
        size_t camera = weir_rng_below(&rng, 2);
        make_picture(&rng, &picture);
        demo_streams_show(streams, camera, picture.data, picture.len);
        ck_assert_msg(weir_rtsp_next(camera == 0 ? one : other, weir_mono_ms() + WAIT_MS, &unit,
                                     &err) == WEIR_OK,
                      "%s", err.message);
        check_same(picture.data, picture.len, unit.bytes, unit.n_bytes);
        weir_buf_fini(&picture);
    }
    ck_assert_uint_eq(weir_rtsp_counts(one).n_lost + weir_rtsp_counts(other).n_lost, 0);
    weir_rtsp_close(one);
    int64_t until = weir_mono_ms() + WAIT_MS;
    while (demo_streams_watchers(streams, 0) > 0 && weir_mono_ms() < until) {
        (void)usleep(1000);
    }
    ck_assert_uint_eq(demo_streams_watchers(streams, 0), 0);
    ck_assert_uint_eq(demo_streams_watchers(streams, 1), 1);
    demo_streams_close(streams);
    weir_rtsp_close(other);
}

END_TEST

START_TEST(who_does_not_know_the_login_sees_nothing)
{
    struct demo_streams *streams = open_streams("ada:se:crets");
    struct weir_rtsp *rtsp = NULL;
    ck_assert_int_eq(watch("door-1", NULL, NULL, &rtsp), WEIR_ERR_UNAUTH);
    ck_assert_int_eq(watch("door-1", "ada", "se:cret", &rtsp), WEIR_ERR_UNAUTH);
    ck_assert_int_eq(watch("door-1", "ada", "se:crets2", &rtsp), WEIR_ERR_UNAUTH);
    ck_assert_int_eq(watch("door-9", "ada", "se:crets", &rtsp), WEIR_ERR_NOT_FOUND);
    ck_assert_uint_eq(demo_streams_watchers(streams, 0), 0);
    ck_assert_msg(watch("door-1", "ada", "se:crets", &rtsp) == WEIR_OK, "%s", err.message);
    weir_rtsp_close(rtsp);
    demo_streams_close(streams);
    const struct demo_streams_options options = {
        .listen = "127.0.0.1:0", .login = "ada", .names = names, .n = 2};
    ck_assert_int_eq(demo_streams_open(&options, &streams, &port, &err), WEIR_ERR_INVALID);
}

END_TEST

START_TEST(noise_of_a_stranger_ends_the_connection_alone)
{
    struct weir_rng rng;
    struct demo_streams *streams = open_streams(NULL);
    test_seed(&rng);
    for (int i = 0; i < 50; i++) {
        int fd;
        char noise[6000];
        ck_assert(connect_to(NULL, "", port, 0, &fd, &err) == WEIR_OK);
        int n = snprintf(noise, sizeof noise, "%s",
                         i % 2 == 0 ? "PLAY rtsp://x/door-1 RTSP/1.0\r\n" : "$");
        for (size_t k = (size_t)n; k < sizeof noise; k++) {
            noise[k] = (char)weir_rng_below(&rng, 256);
        }
        (void)send(fd, noise, sizeof noise, MSG_NOSIGNAL);
        (void)close(fd);
    }
    struct weir_rtsp *rtsp = NULL;
    ck_assert_msg(watch("door-1", NULL, NULL, &rtsp) == WEIR_OK, "%s", err.message);
    weir_rtsp_close(rtsp);
    demo_streams_close(streams);
}

END_TEST

/* What is no such file is refused whole; a file that is cut off, or has a byte changed, is never read beyond its end. */
START_TEST(a_damaged_file_is_refused_or_sent)
{
    struct weir_rng rng;
    struct weir_buf picture, out;
    test_seed(&rng);
    for (int i = 0; i < WEIR_TEST_TIMES(300, 100); i++) {
        struct rtp_jpeg rtp = {.source = 1};
        make_picture(&rng, &picture);
        size_t n = picture.len;
        char *file = malloc(n);
        memcpy(file, picture.data, n);
        for (int k = 0; k < 3; k++) {
            file[weir_rng_below(&rng, 700) % n] = (char)weir_rng_below(&rng, 256);
        }
        n = weir_rng_below(&rng, 2) == 0 ? n : weir_rng_below(&rng, n);
        char *exact = malloc(n + 1);
        memcpy(exact, file, n);
        exact = realloc(exact, n > 0 ? n : 1);
        weir_buf_init(&out, 16 << 20);
        weir_status status = rtp_jpeg_put(&rtp, exact, n, 0, &out, &err);
        ck_assert(status == WEIR_OK || (status == WEIR_ERR_UNSUPPORTED && out.len == 0));
        weir_buf_fini(&out);
        weir_buf_fini(&picture);
        free(exact);
        free(file);
    }
}

END_TEST

START_TEST(a_person_goes_from_left_to_right_before_the_wall)
{
    struct weir_image wall = {0}, photo = {0}, picture = {0};
    int64_t last = -1;
    ck_assert(film_wall(1, &wall, &err) == WEIR_OK);
    ck_assert(weir_image_init(&photo, 92, 112, 1, &err) == WEIR_OK);
    memset(photo.pixels, 200, 92 * 112);
    for (int i = 0; i <= 10; i++) {
        int64_t sum = 0, n = 0;
        ck_assert(weir_image_crop(&wall, 0, 0, wall.width, wall.height, &picture, &err) == WEIR_OK);
        ck_assert(film_paint(&photo, 3, i / 10.0, &picture, &err) == WEIR_OK);
        for (int x = 0; x < picture.width; x++) {
            bool is_there = picture.pixels[3 * (100 * picture.width + x)] > 150;
            sum += is_there ? x : 0;
            n += is_there;
        }
        ck_assert_int_gt(n, 60);
        ck_assert_int_gt(sum / n, last);
        last = sum / n;
        weir_image_fini(&picture);
    }
    weir_image_fini(&photo);
    weir_image_fini(&wall);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("stream");
    TCase *tcase = tcase_create("stream");
    tcase_add_test(tcase, each_picture_comes_as_it_was_given);
    tcase_add_test(tcase, who_does_not_know_the_login_sees_nothing);
    tcase_add_test(tcase, noise_of_a_stranger_ends_the_connection_alone);
    tcase_add_test(tcase, a_damaged_file_is_refused_or_sent);
    tcase_add_test(tcase, a_person_goes_from_left_to_right_before_the_wall);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
