#include "gateway/reply.h"

#include "base/test_main.h"

#include <string.h>

static const struct {
    const char *text;
    weir_status status; /* after all bytes */
    int http_status;
    const char *body;
    bool keeps_alive;
    size_t n_behind; /* bytes that are not the answer's */
} cases[] = {
    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", WEIR_ERR_END, 200, "hello", true, 0},
    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP", WEIR_ERR_END, 200, "hello", true, 4},
    {"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", WEIR_ERR_END, 200, "x", false, 0},
    {"HTTP/1.1 200 OK\r\ncontent-length: 1\r\nConnection: close\r\n\r\nx", WEIR_ERR_END, 200, "x",
     false, 0},
    {"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", WEIR_ERR_END, 503, "", true, 0},
    {"HTTP/1.1 204 \r\n\r\n", WEIR_ERR_END, 204, "", true, 0},
    {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", WEIR_ERR_END,
     200, "ok", true, 0},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: "
     "chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nT: 1\r\n\r\n",
     WEIR_ERR_END, 200, "abc0123456789", true, 0},
    {"HTTP/1.1 200 OK\r\n\r\nto the end", WEIR_OK, 200, "to the end", false, 0},
    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", WEIR_OK, 200, "hel", true, 0},
    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", WEIR_ERR_CORRUPT, 0,
     NULL, false, 0},
    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", WEIR_ERR_CORRUPT,
     0, NULL, false, 0},
    {"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", WEIR_ERR_CORRUPT, 0, NULL, false, 0},
    {"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n", WEIR_ERR_LIMIT, 0, NULL, false, 0},
    {"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", WEIR_ERR_CORRUPT, 0, NULL, false, 0},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", WEIR_ERR_CORRUPT, 0, NULL,
     false, 0},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", WEIR_ERR_CORRUPT, 0, NULL,
     false, 0},
    {"HTTP/2 200\r\n\r\n", WEIR_ERR_CORRUPT, 0, NULL, false, 0},
    {"garbage\n", WEIR_ERR_CORRUPT, 0, NULL, false, 0},
};

/* Feed it in pieces of `piece` bytes. */
static weir_status feed(struct reply *reply, const char *text, size_t piece, size_t *out_at)
{
    size_t len = strlen(text), at = 0;
    weir_status status = WEIR_OK;
    while (status == WEIR_OK && at < len) {
        size_t n = WEIR_MIN(piece, len - at), taken = 0;
        status = reply_feed(reply, text + at, n, &taken);
        at += taken;
    }
    *out_at = at;
    return status;
}

START_TEST(answers_are_read_alike_in_whatever_pieces_they_come)
{
    struct reply reply;
    size_t len = strlen(cases[_i].text);
    for (size_t piece = 1; piece <= len; piece++) {
        size_t at;
        reply_init(&reply, 1000);
        ck_assert_int_eq(feed(&reply, cases[_i].text, piece, &at), cases[_i].status);
        if (cases[_i].body != NULL) {
            ck_assert_int_eq(reply.http_status, cases[_i].http_status);
            ck_assert_str_eq(reply.body.data, cases[_i].body);
            ck_assert_int_eq(reply.keeps_alive, cases[_i].keeps_alive);
            ck_assert_uint_eq(len - at, cases[_i].n_behind);
        }
        reply_fini(&reply);
    }
}

END_TEST

static const struct {
    const char *text;
    int class, score;
} outputs[] = {{"3 17", 3, 17},
               {"0 0", 0, 0},
               {"63 63", 63, 63},
               {"64 0", -1, -1},
               {"0 64", -1, -1},
               {"-1 0", -1, -1},
               {"3", -1, -1},
               {"3  1", -1, -1},
               {"3 1 2", -1, -1},
               {"", -1, -1},
               {"9999999999999999999 1", -1, -1}};

START_TEST(what_a_classifier_said_is_kept_if_it_is_two_bins)
{
    struct reply reply;
    size_t at;
    char text[160];
    reply_init(&reply, 1000);
    (void)snprintf(text, sizeof text,
                   "HTTP/1.1 200 OK\r\nWeir-Output: %s\r\nContent-Length: 0\r\n\r\n",
                   outputs[_i].text);
    ck_assert_int_eq(feed(&reply, text, 7, &at), WEIR_ERR_END);
    ck_assert_int_eq(reply.output_class, outputs[_i].class);
    ck_assert_int_eq(reply.output_score, outputs[_i].score);
    reply_reset(&reply);
    ck_assert_int_eq(reply.output_class, -1);
    reply_fini(&reply);
}

END_TEST

START_TEST(headers_that_matter_are_kept)
{
    struct reply reply;
    size_t at;
    reply_init(&reply, 1000);
    ck_assert_int_eq(feed(&reply,
                          "HTTP/1.1 200 OK\r\nContent-Type:application/octet-stream \r\n"
                          "Inference-Header-Content-Length: 17\r\nWeir-Model-Version: 4\r\n"
                          "Retry-After: 2\r\nWeir-Times: read;dur=1.5\r\nContent-Length: 0\r\n\r\n",
                          7, &at),
                     WEIR_ERR_END);
    ck_assert_str_eq(reply.content_type, "application/octet-stream");
    ck_assert_int_eq(reply.inference_header_bytes, 17);
    ck_assert_int_eq(reply.model_version, 4);
    ck_assert_int_eq(reply.retry_after_s, 2);
    ck_assert_str_eq(reply.times, "read;dur=1.5");
    ck_assert_int_eq(reply.output_class, -1);
    reply_reset(&reply);
    ck_assert_int_eq(feed(&reply, "HTTP/1.1 200 OK\r\n\r\nx", 100, &at), WEIR_OK);
    ck_assert_int_eq(reply.inference_header_bytes, -1);
    ck_assert_str_eq(reply.times, "");
    ck_assert_int_eq(reply_close(&reply), WEIR_ERR_END);
    reply_reset(&reply);
    ck_assert_int_eq(feed(&reply, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx", 100, &at),
                     WEIR_OK);
    ck_assert_int_eq(reply_close(&reply), WEIR_ERR_PEER);
    reply_fini(&reply);
}

END_TEST

WEIR_TEST_LOOPS_MAIN("reply",
                     {answers_are_read_alike_in_whatever_pieces_they_come, WEIR_ARRAY_LEN(cases)},
                     {what_a_classifier_said_is_kept_if_it_is_two_bins, WEIR_ARRAY_LEN(outputs)},
                     {headers_that_matter_are_kept, 1})
