/* What is packed comes out as it went in, and only who takes gzip gets it. */
#include "http/pack.h"

#include "base/rng.h"
#include "base/test_seed.h"
#include "http/test_support.h"

#include <stdio.h>
#include <zlib.h>

#define N_TRIALS WEIR_TEST_TIMES(200, 40)
#define MAX_LEN  ((size_t)70000)

static const struct {
    const char *accepts;
    bool is_taken;
} clients[] = {
    {NULL, false},
    {"", false},
    {"gzip", true},
    {"GZip", true},
    {"x-gzip", true},
    {"gzip, deflate, br, zstd", true},
    {"br;q=1.0, gzip;q=0.8, *;q=0.1", true},
    {"deflate", false},
    {"identity", false},
    {"*", true},
    {"*;q=0", false},
    {"gzip;q=0", false},
    {"gzip;q=0.000, *", false},
    {"gzip; q=0", false},
    {"gzip;q=0.5", true},
    {"*;q=0, gzip", true},
    {"gzipped, notgzip", false},
    {"gzip;q=0.001", true},
    {",, gzip ,", true},
};

START_TEST(a_client_gets_what_it_takes)
{
    ck_assert_msg(http_takes_gzip(clients[_i].accepts) == clients[_i].is_taken, "\"%s\"",
                  clients[_i].accepts != NULL ? clients[_i].accepts : "(none)");
}

END_TEST

/* Unpacked by zlib alone. */
static size_t unpack(const char *packed, size_t len, char *out, size_t size)
{
    z_stream z = {.next_in = (Bytef *)packed, .avail_in = (uInt)len};
    ck_assert_int_eq(inflateInit2(&z, 16 + 15), Z_OK);
    z.next_out = (Bytef *)out;
    z.avail_out = (uInt)size;
    ck_assert_int_eq(inflate(&z, Z_FINISH), Z_STREAM_END);
    size_t n = z.total_out;
    (void)inflateEnd(&z);
    return n;
}

/* Some text that repeats itself, or noise. */
static size_t make(struct weir_rng *rng, char *out)
{
    size_t len = weir_rng_below(rng, MAX_LEN), n_letters = 1 + weir_rng_below(rng, 256);
    for (size_t i = 0; i < len; i++) {
        out[i] = (char)weir_rng_below(rng, n_letters);
    }
    return len;
}

START_TEST(what_is_packed_comes_out_as_it_went_in_and_is_smaller)
{
    static char in[MAX_LEN], out[MAX_LEN];
    struct weir_rng rng;
    uint64_t seed = test_seed(&rng);
    for (int i = 0; i < N_TRIALS; i++) {
        size_t len = make(&rng, in), n_packed = 0;
        char *packed = http_gzip(in, len, 1 + (int)weir_rng_below(&rng, 9), &n_packed);
        if (packed != NULL) {
            ck_assert_msg(n_packed <= len, "seed %llu, trial %d", (unsigned long long)seed, i);
            ck_assert_msg(unpack(packed, n_packed, out, sizeof out) == len &&
                              memcmp(in, out, len) == 0,
                          "seed %llu, trial %d of %zu bytes", (unsigned long long)seed, i, len);
        }
        free(packed);
    }
}

END_TEST

static char long_text[5 * PACK_MIN_BYTES];

static struct weir_http_asset asset = {
    .content_type = "text/css", .bytes = long_text, .end = long_text + sizeof long_text - 1};

/* Each path is a kind of answer. */
static void answer(void *context, struct weir_http_request *request,
                   struct weir_http_response *response)
{
    const char *path = request->path;
    (void)context;
    if (strcmp(path, "/asset") == 0) {
        weir_http_response_asset(response, request, &asset);
    } else if (strcmp(path, "/short") == 0) {
        weir_http_response_text(response, 200, "text/plain", "short\n");
    } else if (strncmp(path, "/json", 5) == 0) {
        weir_http_response_text(response, strcmp(path, "/json/error") == 0 ? 409 : 200,
                                "application/json",
                                strcmp(path, "/json/short") == 0 ? "{}" : long_text);
    } else {
        weir_http_response_text(response, strcmp(path, "/error") == 0 ? 409 : 200,
                                strcmp(path, "/picture") == 0 ? "image/png" : "text/plain",
                                long_text);
    }
    if (strcmp(path, "/secret") == 0 || strcmp(path, "/json/secret") == 0) {
        weir_http_response_keep_plain(response);
    }
}

static struct weir_http_server *server;
static char said[8 * PACK_MIN_BYTES];

static void open_server(void)
{
    memset(long_text, 'a', sizeof long_text - 1);
    struct weir_http_config config = {0};
    server = serve(&config, answer, NULL);
}

static void close_server(void)
{
    weir_http_server_stop(server, 1000);
}

/* What comes of a request with these headers, each with its line end. */
static const char *ask(const char *first, const char *headers)
{
    char request[512];
    (void)snprintf(request, sizeof request, "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n",
                   first, headers);
    return exchange_text(server, request, said, sizeof said);
}

#define TAKES         "Accept-Encoding: gzip\r\n"
#define HAS(text)     ck_assert_msg(strstr(said, text) != NULL, "no \"%s\" in %.400s", text, said)
#define HAS_NOT(text) ck_assert_msg(strstr(said, text) == NULL, "\"%s\" in %.400s", text, said)

START_TEST(answers_are_packed_for_who_takes_it_and_never_others)
{
    static const char *const plain[] = {"GET /short", "GET /error", "GET /picture", "GET /secret",
                                        "POST /long"};
    ask("GET /long", TAKES);
    HAS("200");
    HAS("Content-Encoding: gzip");
    HAS("Vary: Accept-Encoding");
    HAS_NOT("aaaaaaaa");
    ask("GET /long", "");
    HAS_NOT("Content-Encoding");
    HAS("Vary: Accept-Encoding");
    HAS(long_text);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(plain); i++) {
        ask(plain[i], TAKES);
        HAS_NOT("Content-Encoding");
    }
}

END_TEST

START_TEST(json_that_a_client_has_is_not_sent_again_until_it_changes)
{
    static const char *const nameless[] = {"GET /long", "GET /json/short", "GET /json/error",
                                           "GET /json/secret", "POST /json"};
    char known[160];
    ask("GET /json", "");
    HAS("Cache-Control: private, no-cache");
    HAS(long_text);
    (void)snprintf(known, sizeof known, TAKES "If-None-Match: %.*s\r\n",
                   (int)strcspn(strstr(said, "ETag: ") + 6, "\r"), strstr(said, "ETag: ") + 6);
    ask("GET /json", known);
    HAS("304");
    HAS("ETag: W/\"");
    HAS_NOT("Content-Encoding");
    ck_assert_ptr_null(strstr(strstr(said, "\r\n\r\n") + 4, "a"));
    long_text[7] = 'b';
    ask("GET /json", known);
    HAS("200");
    HAS("Content-Encoding: gzip");
    long_text[7] = 'a';
    for (size_t i = 0; i < WEIR_ARRAY_LEN(nameless); i++) {
        ask(nameless[i], known);
        HAS_NOT("ETag");
        HAS_NOT("304");
        HAS("no-store");
    }
}

END_TEST

START_TEST(an_asset_is_packed_kept_and_known_again)
{
    char named[128], etag[160];
    ask("GET /asset", TAKES);
    HAS("Content-Encoding: gzip");
    HAS("Cache-Control: private, no-cache");
    HAS_NOT("aaaaaaaa");
    (void)snprintf(etag, sizeof etag, "If-None-Match: %.*s\r\n",
                   (int)strcspn(strstr(said, "ETag: ") + 6, "\r"), strstr(said, "ETag: ") + 6);
    ask("GET /asset", etag);
    HAS("304");
    HAS_NOT("aaaaaaaa");
    ask("GET /asset", "If-None-Match: W/\"another\"\r\n");
    HAS("200");
    HAS_NOT("Content-Encoding");
    HAS(long_text);

    (void)snprintf(named, sizeof named, "GET /asset?v=%.10s", asset.digest);
    ask(named, TAKES);
    HAS("max-age=31536000, immutable");
    ask("GET /asset?v=0000000000", TAKES);
    HAS("no-cache");
    ask("GET /asset?v=", TAKES);
    HAS("no-cache");
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("pack");
    TCase *tcase = tcase_create("pure");
    tcase_add_loop_test(tcase, a_client_gets_what_it_takes, 0, WEIR_ARRAY_LEN(clients));
    tcase_add_test(tcase, what_is_packed_comes_out_as_it_went_in_and_is_smaller);
    suite_add_tcase(suite, tcase);
    TCase *with_server = tcase_create("server");
    tcase_add_checked_fixture(with_server, open_server, close_server);
    tcase_add_test(with_server, answers_are_packed_for_who_takes_it_and_never_others);
    tcase_add_test(with_server, json_that_a_client_has_is_not_sent_again_until_it_changes);
    tcase_add_test(with_server, an_asset_is_packed_kept_and_known_again);
    suite_add_tcase(suite, with_server);
    return weir_test_run(suite);
}
