/* Pictures over HTTP: what cameras answer, piece by piece as it comes, and a sentence for everything else. */
#include "http.h"

#include "base/clock.h"
#include "base/rng.h"
#include "base/test_main.h"
#include "base/test_seed.h"

#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define OK     "HTTP/1.1 200 OK\r\n"
#define STREAM OK "Content-Type: multipart/x-mixed-replace;boundary=frame\r\n\r\n"
#define LENGTH "--frame\r\nContent-Type: image/jpeg\r\nContent-Length: 5\r\n\r\n"
#define BARE   "--frame\r\nContent-Type: image/jpeg\r\n\r\n"

static struct weir_rng rng;
static struct camera_http http;
static struct weir_error err;
static int pair[2];

static void begin(const char *password)
{
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    camera_http_init(&http, "h", "/x.cgi?a=1", "ada", password);
    camera_http_begin(&http, pair[0]);
}

static void end(void)
{
    camera_http_fini(&http);
    (void)close(pair[0]);
    (void)close(pair[1]);
}

/* Sends the answer in pieces; collects the pictures, with "|" behind each, until the status is another. */
static weir_status play(const char *answer, char out[256])
{
    size_t n = strlen(answer), at = 0;
    weir_status status = WEIR_OK;
    out[0] = '\0';
    for (;;) {
        const uint8_t *bytes;
        size_t n_bytes;
        status = camera_http_next(&http, weir_mono_ms(), &bytes, &n_bytes, &err);
        if (status == WEIR_OK) {
            size_t len = strlen(out);
            (void)snprintf(out + len, 256 - len, "%.*s|", (int)n_bytes, (const char *)bytes);
            if (http.boundary[0] == '\0') {
                return status;
            }
        } else if (status != WEIR_ERR_TIMEOUT) {
            return status;
        } else if (at < n) {
            size_t some = 1 + weir_rng_below(&rng, 40), step = WEIR_MIN(some, n - at);
            ck_assert_int_eq(send(pair[1], answer + at, step, 0), (ssize_t)step);
            at += step;
        } else {
            (void)shutdown(pair[1], SHUT_WR);
        }
    }
}

static const struct {
    const char *answer, *pictures, *message;
    weir_status status;
} cases[] = {
    {OK "Content-Length: 5\r\n\r\nhello", "hello|", NULL, WEIR_OK},
    {STREAM "\r\n" LENGTH "first\r\n" LENGTH "other\r\n", "first|other|", "ended the connection",
     WEIR_ERR_PEER},
    {STREAM BARE "first\r\n" BARE "longer one\r\n--frame\r\n", "first\r\n|longer one\r\n|",
     "ended the connection", WEIR_ERR_PEER},
    {OK "Content-Type: multipart/x-mixed-replace; boundary=\"--frame\"\r\n\r\n" LENGTH "first\r\n",
     "first|", "ended the connection", WEIR_ERR_PEER},
    {OK "Content-Type: multipart/x-mixed-replace; boundary=frame\r\n\r\n"
        "\r\nframe\r\nContent-Length: 5\r\n\r\nfirst\r\nframe\r\n\r\nother\r\nframe\r\n",
     "first|other\r\n|", "ended the connection", WEIR_ERR_PEER},
    {OK "Content-Type: multipart/x-mixed-replace; boundary=f\r\n\r\n"
        "f\r\nContent-Length: 5\r\n\r\nhello\r\nf\r\nContent-Length: 5\r\n\r\nagain\r\n",
     "hello|again|", "ended the connection", WEIR_ERR_PEER},
    {OK "Content-Type: multipart/x-mixed-replace; boundary=--\r\n\r\n"
        "?\r\n--\r\nContent-Length: 5\r\n\r\nfirst\r\n",
     "first|", "ended the connection", WEIR_ERR_PEER},
    {STREAM
     "--frame\nContent-Type: image/jpeg\nContent-Length: 5\n\nfirst\n--frame\n\nother\n--frame\n",
     "first|other\n|", "ended the connection", WEIR_ERR_PEER},
    {STREAM "--frame\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nwords\r\n" LENGTH
            "first\r\n--frame\r\nContent-Type: application/xml\r\n\r\n<a/>\r\n" LENGTH "other\r\n",
     "first|other|", "ended the connection", WEIR_ERR_PEER},
    {OK "Content-Type: image/jpeg\r\n\r\nhello", "hello|", NULL, WEIR_OK},
    {OK "Content-Type: text/html; charset=utf-8\r\nContent-Length: 5\r\n\r\nhello", "",
     "gives text/html; charset=utf-8, which is no picture", WEIR_ERR_CORRUPT},
    {"HTTP/1.1 404 No\r\n\r\n", "", "nothing at this path", WEIR_ERR_NOT_FOUND},
    {"HTTP/1.0 302 Found\r\nLocation: http://x/\r\n\r\n", "", "another address (302)",
     WEIR_ERR_UNSUPPORTED},
    {"HTTP/1.1 500 No\r\n\r\n", "", "answers 500", WEIR_ERR_UNAVAILABLE},
    {"HTTP/1.1 401 No\r\n\r\n", "", "wants a user and a password", WEIR_ERR_UNAUTH},
    {OK "Transfer-Encoding: gzip, chunked\r\n\r\n", "", "packed", WEIR_ERR_UNSUPPORTED},
    {OK "Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nTrailer: x\r\n\r\n", "hello|",
     NULL, WEIR_OK},
    {OK "Transfer-Encoding: chunked\r\n\r\nhello", "", "in chunks, and", WEIR_ERR_CORRUPT},
    {OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello6\r\n", "", "in chunks, and",
     WEIR_ERR_CORRUPT},
    {OK "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", "", "32 MiB", WEIR_ERR_LIMIT},
    {OK "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "", "empty", WEIR_ERR_CORRUPT},
    {OK "\r\n", "", "no length", WEIR_ERR_UNSUPPORTED},
    {OK "Content-Length: 0\r\n\r\n", "", "empty", WEIR_ERR_CORRUPT},
    {"RTSP/1.0 200 OK\r\n\r\n", "", "HTTP/1", WEIR_ERR_CORRUPT},
    {OK "Content-Type: multipart/x-mixed-replace\r\n\r\n", "", "no boundary", WEIR_ERR_CORRUPT},
    {"", "", "ended the connection", WEIR_ERR_PEER},
};

START_TEST(what_a_camera_answers_is_pictures_or_a_sentence)
{
    char pictures[256];
    begin(NULL);
    weir_status status = play(cases[_i].answer, pictures);
    ck_assert_msg(status == cases[_i].status, "%d %s", status, err.message);
    ck_assert_str_eq(pictures, cases[_i].pictures);
    ck_assert_msg(cases[_i].message == NULL || strstr(err.message, cases[_i].message) != NULL, "%s",
                  err.message);
    end();
}

END_TEST

/* The same answer with its body in chunks, wherever they are cut. */
static void cut_into_chunks(const char *answer, char out[2048])
{
    const char *body = strstr(answer, "\r\n\r\n") + 4;
    int len = snprintf(out, 2048, "%.*sTransfer-Encoding: chunked\r\n\r\n",
                       (int)(body - answer) - 2, answer);
    for (size_t left = strlen(body); left > 0;) {
        size_t n = 1 + weir_rng_below(&rng, (uint32_t)left);
        static const char *const ends[] = {"", ";name=\"v\"", " "};
        len +=
            snprintf(out + len, 2048 - (size_t)len, "%0*zX%s\r\n", 1 + (int)weir_rng_below(&rng, 4),
                     n, ends[weir_rng_below(&rng, WEIR_ARRAY_LEN(ends))]);
        len += snprintf(out + len, 2048 - (size_t)len, "%.*s\r\n", (int)n, body);
        body += n;
        left -= n;
    }
    (void)snprintf(out + len, 2048 - (size_t)len, "0\r\n%s\r\n",
                   weir_rng_below(&rng, 2) == 0 ? "" : "Trailer: 1\r\nOther: x\r\n");
}

START_TEST(chunks_change_no_picture)
{
    char pictures[256], answer[2048];
    for (int i = 0; i < _i; i++) {
        (void)weir_rng_below(&rng,
                             2); /* each turn is another process, with the same numbers before it */
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        if (cases[i].pictures[0] == '\0' || strstr(cases[i].answer, "chunked") != NULL) {
            continue;
        }
        cut_into_chunks(cases[i].answer, answer);
        begin(NULL);
        weir_status status = play(answer, pictures);
        ck_assert_msg(status == cases[i].status, "%d %s: %s", status, err.message, answer);
        ck_assert_str_eq(pictures, cases[i].pictures);
        end();
    }
}

END_TEST

START_TEST(a_password_is_proven_once_it_is_asked_for)
{
    char pictures[256], text[2048];
    begin("secret");
    ck_assert_int_eq(
        play("HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"x\"\r\n\r\n", pictures),
        WEIR_ERR_CONFLICT);
    ssize_t n = recv(pair[1], text, sizeof text - 1, 0);
    ck_assert_int_gt(n, 0);
    text[n] = '\0';
    ck_assert_ptr_nonnull(strstr(text, "GET /x.cgi?a=1 HTTP/1.1\r\nHost: h\r\n"));
    ck_assert_ptr_null(strstr(text, "Authorization"));
    (void)close(pair[0]);
    (void)close(pair[1]);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    camera_http_begin(&http, pair[0]);
    ck_assert_int_eq(play("HTTP/1.1 401 No\r\n\r\n", pictures), WEIR_ERR_UNAUTH);
    ck_assert_ptr_nonnull(strstr(err.message, "does not accept"));
    n = recv(pair[1], text, sizeof text - 1, 0);
    ck_assert_int_gt(n, 0);
    text[n] = '\0';
    ck_assert_ptr_nonnull(strstr(text, "Authorization: Basic YWRhOnNlY3JldA==\r\n"));
    end();
}

END_TEST

START_TEST(a_stream_of_other_parts_says_what_they_are)
{
    const char *part = "--frame\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nwords\r\n";
    const uint8_t *bytes;
    size_t n_bytes;
    weir_status status = WEIR_ERR_TIMEOUT;
    begin(NULL);
    ck_assert_int_gt(send(pair[1], STREAM, strlen(STREAM), 0), 0);
    for (int i = 0; status == WEIR_ERR_TIMEOUT && i < 2000; i++) {
        ck_assert_int_gt(send(pair[1], part, strlen(part), 0), 0);
        status = camera_http_next(&http, weir_mono_ms(), &bytes, &n_bytes, &err);
    }
    ck_assert_int_eq(status, WEIR_ERR_CORRUPT);
    ck_assert_str_eq(err.message, "its stream has parts of text/plain, and no picture among them");
    end();
}

END_TEST

/* It need not wait for the next one's boundary; the smaller picture in its head ends before it. */
START_TEST(a_picture_without_a_length_is_there_with_its_last_byte)
{
    static const uint8_t jpeg[] = {0xff, 0xd8, 0xff, 0xe1, 0,   7,    0xff, 0xd8, 0xff, 0xd9, '.',
                                   0xff, 0xda, 0,    2,    's', 0xff, 0,    's',  0xff, 0xd9};
    const char *head = STREAM BARE;
    const uint8_t *bytes;
    size_t n_bytes;
    begin(NULL);
    ck_assert_int_gt(send(pair[1], head, strlen(head), 0), 0);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof jpeg; i++) {
            ck_assert_int_eq(camera_http_next(&http, weir_mono_ms(), &bytes, &n_bytes, &err),
                             WEIR_ERR_TIMEOUT);
            ck_assert_int_eq(send(pair[1], &jpeg[i], 1, 0), 1);
        }
        ck_assert_int_eq(camera_http_next(&http, weir_mono_ms(), &bytes, &n_bytes, &err), WEIR_OK);
        ck_assert_uint_eq(n_bytes, sizeof jpeg);
        ck_assert_mem_eq(bytes, jpeg, sizeof jpeg);
        ck_assert_int_gt(send(pair[1], "\r\n" BARE, strlen("\r\n" BARE), 0), 0);
    }
    end();
}

END_TEST

/* Where a flood is not a picture yet, one piece of it is read, not all that comes. */
START_TEST(a_flood_without_a_picture_holds_nobody)
{
    static const char *const heads[] = {"5;", "0\r\n"};
    static char flood[150000];
    const uint8_t *bytes;
    size_t n_bytes;
    int n_left = 0;
    const char *head = heads[_i];
    begin(NULL);
    const char *answer = OK "Content-Type: multipart/x-mixed-replace;boundary=frame\r\n"
                            "Transfer-Encoding: chunked\r\n\r\n";
    memset(flood, 'x', sizeof flood);
    ck_assert_int_gt(send(pair[1], answer, strlen(answer), 0), 0);
    ck_assert_int_gt(send(pair[1], head, strlen(head), 0), 0);
    ck_assert_int_gt(send(pair[1], flood, sizeof flood, 0), 1 << 17);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(camera_http_next(&http, weir_mono_ms(), &bytes, &n_bytes, &err),
                         WEIR_ERR_TIMEOUT);
        ck_assert_int_eq(ioctl(pair[0], FIONREAD, &n_left), 0);
        ck_assert_int_gt(n_left, 0);
    }
    end();
}

END_TEST

int main(void)
{
    (void)test_seed(&rng);
    const struct weir_test_loop tests[] = {
        {what_a_camera_answers_is_pictures_or_a_sentence, WEIR_ARRAY_LEN(cases)},
        {chunks_change_no_picture, 50},
        {a_password_is_proven_once_it_is_asked_for, 0},
        {a_stream_of_other_parts_says_what_they_are, 0},
        {a_picture_without_a_length_is_there_with_its_last_byte, 0},
        {a_flood_without_a_picture_holds_nobody, 2}};
    return weir_test_run(weir_test_loops("camera_http", tests, WEIR_ARRAY_LEN(tests)));
}
