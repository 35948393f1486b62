#include "http/unpack.h"

#include "base/macros.h"
#include "base/test_main.h"
#include "base/test_seed.h"
#include "http/test_support.h"

#include <stdatomic.h>
#include <string.h>
#include <zlib.h>

#define PLAIN_BYTES  300000
#define PACKED_BYTES (2 * PLAIN_BYTES)
#define PIECE_BYTES  65536
#define N_BODIES     60

enum form { FORM_GZIP, FORM_ZLIB, FORM_BARE, FORM_MEMBERS, N_FORMS };

static struct weir_rng rng;
static char plain[PLAIN_BYTES], packed[PACKED_BYTES], out[PLAIN_BYTES];
static size_t n_out, max_out;

static const char *name_of(enum form form)
{
    return form == FORM_GZIP || form == FORM_MEMBERS ? "gzip" : "deflate";
}

/* Text with much of it again, and noise. */
static size_t make_plain(void)
{
    size_t n = (size_t)weir_rng_below(&rng, 2) == 0 ? (size_t)weir_rng_below(&rng, 300)
                                                    : (size_t)weir_rng_below(&rng, PLAIN_BYTES);
    n = weir_rng_below(&rng, 4) == 0 ? n / PIECE_BYTES * PIECE_BYTES : n; /* of whole pieces */
    bool is_noise = weir_rng_below(&rng, 3) == 0;
    for (size_t i = 0; i < n; i++) {
        plain[i] = (char)(is_noise ? weir_rng_below(&rng, 256) : i / 1000 % 7 + (i & 3));
    }
    return n;
}

static size_t pack_at(size_t at, const char *bytes, size_t n, int bits)
{
    z_stream stream = {0};
    ck_assert_int_eq(deflateInit2(&stream, (int)weir_rng_below(&rng, 10), Z_DEFLATED, bits, 8,
                                  Z_DEFAULT_STRATEGY),
                     Z_OK);
    stream.next_in = (unsigned char *)bytes;
    stream.avail_in = (uInt)n;
    stream.next_out = (unsigned char *)packed + at;
    stream.avail_out = (uInt)(sizeof packed - at);
    ck_assert_int_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
    size_t end = sizeof packed - stream.avail_out;
    ck_assert_int_eq(deflateEnd(&stream), Z_OK);
    return end;
}

static size_t pack(enum form form, size_t n)
{
    static const int bits[] = {MAX_WBITS + 16, MAX_WBITS, -MAX_WBITS, MAX_WBITS + 16};
    size_t cut = form == FORM_MEMBERS ? (size_t)weir_rng_below(&rng, n + 1) : 0;
    size_t at = form == FORM_MEMBERS ? pack_at(0, plain, cut, bits[form]) : 0;
    return pack_at(at, plain + cut, n - cut, bits[form]);
}

static bool take(void *context, const char *bytes, size_t len)
{
    (void)context;
    if (len > max_out - n_out) {
        return false;
    }
    memcpy(out + n_out, bytes, len);
    n_out += len;
    return true;
}

static weir_status unpack_in_pieces(enum form form, size_t n_packed, size_t max_piece)
{
    struct unpack *unpack = unpack_open(name_of(form));
    struct weir_error err;
    weir_status status = WEIR_OK;
    n_out = 0;
    for (size_t at = 0; at < n_packed && status == WEIR_OK;) {
        size_t some = (size_t)weir_rng_below(&rng, max_piece) + 1;
        size_t n = WEIR_MIN(some, n_packed - at);
        status = unpack_add(unpack, packed + at, n, take, NULL, &err);
        at += n;
    }
    status = status == WEIR_OK ? unpack_end(unpack, &err) : status;
    unpack_close(unpack);
    return status;
}

START_TEST(what_was_packed_comes_out_whatever_the_pieces)
{
    (void)test_seed(&rng);
    max_out = sizeof out;
    for (int i = 0; i < N_BODIES; i++) {
        enum form form = (enum form)weir_rng_below(&rng, N_FORMS);
        size_t n = make_plain(), n_packed = pack(form, n);
        size_t max_piece = n_packed < 2000 ? 1 + (size_t)weir_rng_below(&rng, 5) : 9000;
        ck_assert_int_eq(unpack_in_pieces(form, n_packed, max_piece), WEIR_OK);
        ck_assert_uint_eq(n_out, n);
        ck_assert_int_eq(memcmp(out, plain, n), 0);
        if (form != FORM_MEMBERS) { /* of which a part is a whole one */
            size_t cut = 1 + (size_t)weir_rng_below(&rng, n_packed - 1);
            ck_assert_int_eq(unpack_in_pieces(form, cut, 9000), WEIR_ERR_INVALID);
        }
        if (form != FORM_BARE) { /* which has no sum of its bytes */
            packed[n_packed - 2] ^= (char)(1 << weir_rng_below(&rng, 8));
            weir_status status = unpack_in_pieces(form, n_packed, 9000);
            ck_assert(status == WEIR_ERR_INVALID);
        }
    }
}

END_TEST

START_TEST(what_is_no_such_stream_is_refused)
{
    (void)test_seed(&rng);
    max_out = sizeof out;
    (void)snprintf(packed, sizeof packed, "%s", "{\"instances\": [[1, 2, 3]]}");
    ck_assert_int_eq(unpack_in_pieces(FORM_GZIP, 26, 30), WEIR_ERR_INVALID);
    packed[0] = 0x1f;
    ck_assert_int_eq(unpack_in_pieces(FORM_GZIP, 1, 1), WEIR_ERR_INVALID);
    memset(plain, 0, 1000);
    size_t n = pack(FORM_ZLIB, 1000);
    packed[n] = 'x';
    ck_assert_int_eq(unpack_in_pieces(FORM_ZLIB, n + 1, 5), WEIR_ERR_INVALID);
    ck_assert_int_eq(unpack_in_pieces(FORM_GZIP, 0, 1), WEIR_OK); /* no body */
    ck_assert(!unpack_knows("br") && !unpack_knows(NULL) && !unpack_knows("gzip, gzip"));
    ck_assert(unpack_knows("GZip") && unpack_knows("x-gzip") && unpack_knows("deflate"));
}

END_TEST

START_TEST(no_more_comes_than_is_wanted)
{
    (void)test_seed(&rng);
    memset(plain, 0, sizeof plain);
    size_t n = pack(FORM_GZIP, sizeof plain);
    max_out = 100000;
    struct unpack *unpack = unpack_open("gzip");
    n_out = 0;
    ck_assert_int_eq(unpack_add(unpack, packed, n, take, NULL, NULL), WEIR_OK);
    ck_assert_uint_le(n_out, max_out);
    unpack_close(unpack);
}

END_TEST

/* ---- by a server ----------------------------------------------------------------------------------- */

#define BODY_MAX_BYTES 200000

static atomic_int n_called;

static void handle(void *context, struct weir_http_request *request,
                   struct weir_http_response *response)
{
    struct weir_error error;
    (void)context;
    n_called++;
    if (weir_http_request_check_plain(request, &error) != WEIR_OK) {
        weir_http_response_error(response, &error);
        weir_http_response_not_plain(response);
        return;
    }
    char text[64];
    (void)snprintf(text, sizeof text, "%zu bytes, sum %08lx", request->body_len,
                   crc32(0, (const unsigned char *)request->body, (uInt)request->body_len));
    weir_http_response_text(response, 200, "text/plain", text);
}

static void rule(void *context, const struct weir_http_request *request,
                 struct weir_http_body_rule *to)
{
    (void)context;
    (void)request;
    to->is_unpacked = true;
}

static void admit(void *context, struct weir_http_request *request,
                  struct weir_http_response *response)
{
    (void)context;
    if (weir_http_request_header(request, "X-Refuse") != NULL) {
        weir_http_response_errorf(response, WEIR_ERR_DENIED, "not for you");
    }
}

/* The answer to n bytes of `packed` again and again, with no length given. */
static const char *post_again(const struct weir_http_server *server, size_t n, size_t n_times)
{
    static char answer[4096];
    char size[32];
    int fd = connect_to(server);
    send_text(fd, "POST /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Encoding: "
                  "gzip\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (size_t i = 0; i < n_times; i++) {
        (void)snprintf(size, sizeof size, "%s%zx\r\n", i > 0 ? "\r\n" : "", n);
        send_text(fd, size);
        ck_assert_int_eq(send(fd, packed, n, MSG_NOSIGNAL), (ssize_t)n);
    }
    send_text(fd, "\r\n0\r\n\r\n");
    read_until(fd, NULL, answer, sizeof answer);
    close(fd);
    return answer;
}

/* The answer to n bytes of `packed`, sent in pieces. */
static const char *post(const struct weir_http_server *server, const char *headers, size_t n)
{
    static char answer[4096];
    char head[512];
    int fd = connect_to(server);
    (void)snprintf(
        head, sizeof head,
        "POST /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%sContent-Length: %zu\r\n\r\n",
        headers, n);
    send_text(fd, head);
    for (size_t at = 0; at < n;) {
        size_t some = (size_t)weir_rng_below(&rng, 30000) + 1, len = WEIR_MIN(some, n - at);
        if (send(fd, packed + at, len, MSG_NOSIGNAL) != (ssize_t)len) {
            break; /* it has said enough */
        }
        at += len;
    }
    read_until(fd, NULL, answer, sizeof answer);
    close(fd);
    return answer;
}

static void expect(const char *answer, const char *text)
{
    ck_assert_msg(strstr(answer, text) != NULL, "no %s in %s", text, answer);
}

START_TEST(a_packed_body_is_answered_as_a_plain_one_and_has_its_bound)
{
    const struct weir_http_config config = {.n_handlers = 2,
                                            .max_body_bytes = BODY_MAX_BYTES,
                                            .max_bodies_bytes = (uint64_t)8 * BODY_MAX_BYTES,
                                            .body_rule = rule,
                                            .admit = admit};
    struct weir_http_server *server = serve(&config, handle, NULL);
    char wanted[64], headers[64];
    (void)test_seed(&rng);
    for (int i = 0; i < 20; i++) {
        enum form form = (enum form)weir_rng_below(&rng, N_FORMS);
        size_t n = make_plain() % BODY_MAX_BYTES, n_packed = pack(form, n);
        (void)snprintf(wanted, sizeof wanted, "%zu bytes, sum %08lx", n,
                       crc32(0, (const unsigned char *)plain, (uInt)n));
        (void)snprintf(headers, sizeof headers, "Content-Encoding: %s\r\n", name_of(form));
        if (n_packed <= BODY_MAX_BYTES) { /* noise grows */
            expect(post(server, headers, n_packed), wanted);
        }
        if (form != FORM_MEMBERS) { /* of which a part may be a whole one */
            expect(post(server, headers, n_packed / 2), "HTTP/1.1 400");
        }
    }
    memset(plain, 0, sizeof plain);
    size_t n; /* a bomb: small, and more than the bound when unpacked */
    do {
        n = pack(FORM_GZIP, sizeof plain);
    } while (n > 10000); /* level 0 packs nothing */
    int n_before = n_called;
    expect(post(server, "Content-Encoding: gzip\r\n", n), "HTTP/1.1 413");
    expect(post(server, "Content-Encoding: gzip\r\nX-Refuse: 1\r\n", n), "HTTP/1.1 403");
    expect(post(server, "Content-Encoding: deflate\r\n", n), "HTTP/1.1 400");
    ck_assert_int_eq(n_called, n_before);
    const char *answer = post(server, "Content-Encoding: br\r\n", n);
    expect(answer, "HTTP/1.1 415");
    expect(answer, "Accept-Encoding: gzip, deflate, identity\r\n");
    expect(answer, "or as one of gzip, deflate");
    expect(post(server, "Content-Encoding: gzip\r\n", 0), "0 bytes");
    size_t n_all =
        0; /* members in which nothing is: they have no end that the bound of bytes sets */
    while (n_all < 20000) {
        n_all = pack_at(n_all, plain, 0, MAX_WBITS + 16);
    }
    expect(post_again(server, n_all, 2), "0 bytes");
    expect(post_again(server, n_all, 12), "HTTP/1.1 413");
    weir_http_server_stop(server, 1000);
}

END_TEST

int main(void)
{
    const TTest *tests[] = {what_was_packed_comes_out_whatever_the_pieces,
                            what_is_no_such_stream_is_refused, no_more_comes_than_is_wanted,
                            a_packed_body_is_answered_as_a_plain_one_and_has_its_bound};
    return weir_test_run(weir_test_suite("unpack", tests, WEIR_ARRAY_LEN(tests)));
}
