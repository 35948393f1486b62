#include "address.h"
#include "auth.h"
#include "base/test_main.h"
#include "base/test_seed.h"
#include "md5.h"
#include "message.h"
#include "sdp.h"

#include <string.h>

/* RFC 1321, A.5; the last one is 80 bytes long, and those of 55 to 64 end a block in their own way. */
START_TEST(md5_is_that_of_the_rfc)
{
    static const struct {
        const char *text, *sum;
    } rows[] = {
        {"", "d41d8cd98f00b204e9800998ecf8427e"},
        {"abc", "900150983cd24fb0d6963f7d28e17f72"},
        {"message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
         "d174ab98d277d9f5a5611c2c9f419d9f"},
        {"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
         "57edf4a22be3c955ac49da2e2107b67a"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         "ef1772b6dff9a122358552954ad0df65"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         "014842d480b571495a4a0363793f7367"},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        char sum[RTSP_MD5_TEXT_BYTES];
        rtsp_md5(rows[i].text, strlen(rows[i].text), sum);
        ck_assert_str_eq(sum, rows[i].sum);
    }
}

END_TEST

static struct rtsp_message message_of(const char *text)
{
    struct rtsp_message message = {0};
    size_t used = 0;
    ck_assert_int_eq(rtsp_message_take(text, strlen(text), &message, &used), WEIR_OK);
    ck_assert_uint_eq(used, strlen(text));
    return message;
}

/* RFC 7616, 3.9.1, both; RFC 2069 with the answer of its errata; Basic of RFC 7617. */
START_TEST(proofs_are_those_of_the_rfcs)
{
    static const char rfc7616[] = "realm=\"http-auth@example.org\", qop=\"auth, auth-int\", "
                                  "nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", "
                                  "opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\"";

    static const struct {
        const char *challenges, *user, *password, *url, *cnonce, *answer;
    } rows[] = {
        {"Digest %s, algorithm=MD5", "Mufasa", "Circle of Life", "/dir/index.html",
         "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
         "response=\"8ca523f5e9506fed4657c9700eebdbec\""},
        {"Digest %s, algorithm=SHA-256", "Mufasa", "Circle of Life", "/dir/index.html",
         "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
         "response=\"753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1\""},
        {"Digest realm=\"testrealm@host.com\",nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\"",
         "Mufasa", "CircleOfLife", "/dir/index.html", "",
         "response=\"1949323746fe6a43ef61f9606e7febea\""},
        {"Basic realm=\"WallyWorld\"", "Aladdin", "open sesame", "/", "",
         "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        char text[1024], challenge[512];
        struct rtsp_auth auth = {0};
        struct weir_buf out;
        const char *place = strstr(rows[i].challenges, "%s");
        (void)snprintf(
            challenge, sizeof challenge, "%.*s%s%s",
            place == NULL ? (int)strlen(rows[i].challenges) : (int)(place - rows[i].challenges),
            rows[i].challenges, place == NULL ? "" : rfc7616, place == NULL ? "" : place + 2);
        (void)snprintf(text, sizeof text,
                       "RTSP/1.0 401 Unauthorized\r\nWWW-Authenticate: %s\r\n\r\n", challenge);
        struct rtsp_message message = message_of(text);
        ck_assert_int_eq(rtsp_auth_challenge(&auth, &message), WEIR_OK);
        weir_buf_init(&out, 4096);
        (void)snprintf(auth.cnonce, sizeof auth.cnonce, "%s", rows[i].cnonce);
        rtsp_auth_put(&auth, rows[i].user, rows[i].password, "GET", rows[i].url, &out);
        ck_assert_msg(strstr(out.data, rows[i].answer) != NULL, "%s", out.data);
        weir_buf_fini(&out);
    }
}

END_TEST

START_TEST(the_strongest_known_challenge_is_taken)
{
    struct rtsp_auth auth = {0};
    struct rtsp_message message =
        message_of("RTSP/1.0 401 No\r\nWWW-Authenticate: Basic realm=\"a\"\r\n"
                   "www-authenticate: Digest realm=\"a\", nonce=\"1\", algorithm=SHA-256\r\n"
                   "WWW-Authenticate: Digest realm=\"a\", nonce=\"2\"\r\n\r\n");
    ck_assert_int_eq(rtsp_auth_challenge(&auth, &message), WEIR_OK);
    ck_assert_int_eq(auth.scheme, RTSP_AUTH_SHA256);
    ck_assert_str_eq(auth.nonce, "1");
    message = message_of("RTSP/1.0 401 No\r\nWWW-Authenticate: Digest realm=\"a\", nonce=\"2\", "
                         "qop=\"auth-int\"\r\nWWW-Authenticate: Bearer\r\n\r\n");
    ck_assert_int_eq(rtsp_auth_challenge(&auth, &message), WEIR_ERR_UNSUPPORTED);
    ck_assert_str_eq(auth.nonce, "1");
}

END_TEST

START_TEST(addresses_are_taken_apart)
{
    static const struct {
        const char *url, *host, *user, *password, *request;
        int port;
    } rows[] = {
        {"rtsp://cam", "cam", "", "", "rtsp://cam:554/", 554},
        {"RTSP://a:b%40c:@10.0.0.1:8554/s/1?x=@", "10.0.0.1", "a",
         "b@c:", "rtsp://10.0.0.1:8554/s/1?x=@", 8554},
        {"rtsp://u@x:p@[fe80::1]/s", "fe80::1", "u@x", "p", "rtsp://[fe80::1]:554/s", 554},
        {"rtsp://cam?a=1", "cam", "", "", "rtsp://cam:554/?a=1", 554},
        {"http://cam/", NULL, NULL, NULL, NULL, 0},
        {"rtsp://", NULL, NULL, NULL, NULL, 0},
        {"rtsp://:554/", NULL, NULL, NULL, NULL, 0},
        {"rtsp://cam:0/", NULL, NULL, NULL, NULL, 0},
        {"rtsp://cam:99999/", NULL, NULL, NULL, NULL, 0},
        {"rtsp://cam:5x/", NULL, NULL, NULL, NULL, 0},
        {"rtsp://cam/a b", NULL, NULL, NULL, NULL, 0},
        {"rtsp://cam/a\r\nX: y", NULL, NULL, NULL, NULL, 0},
        {"rtsp://u:p%0d%0a@cam/", NULL, NULL, NULL, NULL, 0},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        struct rtsp_address address;
        struct weir_error err = {0};
        weir_status status = rtsp_address_parse(rows[i].url, &address, &err);
        ck_assert_msg((status == WEIR_OK) == (rows[i].host != NULL), "%s", rows[i].url);
        if (status == WEIR_OK) {
            ck_assert_str_eq(address.host, rows[i].host);
            ck_assert_str_eq(address.user, rows[i].user);
            ck_assert_str_eq(address.password, rows[i].password);
            ck_assert_str_eq(address.url, rows[i].request);
            ck_assert_int_eq(address.port, rows[i].port);
        } else {
            ck_assert_int_eq(status, WEIR_ERR_INVALID);
        }
    }
    struct rtsp_address address;
    struct weir_error err = {0};
    ck_assert_int_eq(rtsp_address_parse("rtsps://cam/", &address, &err), WEIR_ERR_UNSUPPORTED);
}

END_TEST

START_TEST(parts_have_addresses_of_their_own)
{
    static const struct {
        const char *base, *control, *out;
    } rows[] = {
        {"rtsp://c/s", "trackID=1", "rtsp://c/s/trackID=1"},
        {"rtsp://c/s/", "trackID=1", "rtsp://c/s/trackID=1"},
        {"rtsp://c/s?a=b", "trackID=1", "rtsp://c/s?a=b/trackID=1"},
        {"rtsp://c/s", "*", "rtsp://c/s"},
        {"rtsp://c/s", "", "rtsp://c/s"},
        {"rtsp://c/s/t", "/u", "rtsp://c/u"},
        {"rtsp://c/s", "rtsp://d/u", "rtsp://d/u"},
        {"rtsp://c/s", "a b", NULL},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        char out[RTSP_URL_BYTES];
        weir_status status = rtsp_address_of_part(rows[i].base, rtsp_text_of(rows[i].control), out);
        ck_assert_int_eq(status, rows[i].out == NULL ? WEIR_ERR_INVALID : WEIR_OK);
        if (rows[i].out != NULL) {
            ck_assert_str_eq(out, rows[i].out);
        }
    }
}

END_TEST

/* A message that has not come whole is none yet, wherever it is cut; what follows it is left. */
START_TEST(a_message_is_taken_when_it_is_whole)
{
    static const char text[] = "RTSP/1.0 200 OK\r\ncseq: 7\r\nContent-Length:  5 \r\n\r\nhello$\0";
    struct rtsp_message message;
    struct rtsp_text value;
    size_t n = sizeof text - 3, used = 0;
    for (size_t i = 0; i < n; i++) {
        ck_assert_int_eq(rtsp_message_take(text, i, &message, &used), WEIR_OK);
        ck_assert_uint_eq(used, 0);
    }
    ck_assert_int_eq(rtsp_message_take(text, sizeof text, &message, &used), WEIR_OK);
    ck_assert_uint_eq(used, n);
    ck_assert_int_eq(message.code, 200);
    ck_assert(rtsp_text_is(message.body, "hello"));
    ck_assert(rtsp_message_header(&message, "CSeq", 0, &value) && rtsp_text_is(value, "7"));
    ck_assert(!rtsp_message_header(&message, "CSeq", 1, &value));
    message = message_of("OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n");
    ck_assert_int_eq(message.code, 0);
}

END_TEST

START_TEST(what_is_no_message_is_refused)
{
    static const struct {
        const char *text;
        weir_status status;
    } rows[] = {
        {"HTTP/1.1 400 Bad\r\n\r\n", WEIR_ERR_CORRUPT},
        {"SSH-2.0-x", WEIR_ERR_CORRUPT},
        {"\x16\x03\x01", WEIR_ERR_CORRUPT},
        {"RTSP/1.0 OK\r\n\r\n", WEIR_ERR_CORRUPT},
        {"RTSP/1.0 99 OK\r\n\r\n", WEIR_ERR_CORRUPT},
        {"RTSP/1.0 200 OK\r\nContent-Length: x\r\n\r\n", WEIR_ERR_CORRUPT},
        {"RTSP/1.0 200 OK\r\nContent-Length: 70000\r\n\r\n", WEIR_ERR_LIMIT},
        {"RTSP/1.0 200 OK\r\nContent-Length: 65530\r\n\r\n", WEIR_ERR_LIMIT},
    };
    struct rtsp_message message;
    size_t used = 0;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        ck_assert_msg(rtsp_message_take(rows[i].text, strlen(rows[i].text), &message, &used) ==
                          rows[i].status,
                      "%s", rows[i].text);
    }
    static char endless[WEIR_RTSP_MESSAGE_MAX_BYTES] = "RTSP/1.0 200 OK\r\nX: ";
    memset(endless + strlen(endless), 'x', sizeof endless - strlen(endless));
    ck_assert_int_eq(rtsp_message_take(endless, sizeof endless, &message, &used), WEIR_ERR_LIMIT);
}

END_TEST

START_TEST(the_first_known_video_is_taken)
{
    static const char text[] =
        "v=0\r\no=- 1 1 IN IP4 10.0.0.1\r\ns=x\r\na=control:*\r\nt=0 0\r\n"
        "m=audio 0 RTP/AVP 0\r\na=control:track1\r\n"
        "m=video 0 RTP/AVP 98\r\na=rtpmap:98 VP8/90000\r\na=control:track2\r\n"
        "m=video 0 RTP/AVP 97 96\r\na=rtpmap:97 rtx/90000\r\na=rtpmap:96 h264/90000\r\n"
        "a=fmtp:97 apt=96\r\na=fmtp:96 packetization-mode=1; profile-level-id=42e01f;"
        "sprop-parameter-sets=Z0LgHw,aM4xsg==,?,\r\na=framesize:96 1920-1080\r\na=rtcp-mux\r\n"
        "a=control:track3\r\n"
        "m=video 0 RTP/AVP 26\r\na=control:track4\r\n";
    static const uint8_t sets[] = {0, 0, 0, 1, 0x67, 0x42, 0xe0, 0x1f,
                                   0, 0, 0, 1, 0x68, 0xce, 0x31, 0xb2};
    struct rtsp_sdp sdp;
    struct weir_error err = {0};
    ck_assert_int_eq(rtsp_sdp_parse(rtsp_text_of(text), &sdp, &err), WEIR_OK);
    ck_assert_int_eq(sdp.codec, WEIR_RTSP_H264);
    ck_assert_int_eq(sdp.payload_type, 96);
    ck_assert(rtsp_text_is(sdp.control, "track3"));
    ck_assert(rtsp_text_is(sdp.session_control, "*"));
    ck_assert_int_eq(sdp.width, 1920);
    ck_assert_int_eq(sdp.height, 1080);
    ck_assert_uint_eq(sdp.n_parameter_bytes, sizeof sets);
    ck_assert_mem_eq(sdp.parameter_sets, sets, sizeof sets);
}

END_TEST

START_TEST(descriptions_say_what_is_wanted_or_are_refused)
{
    static const struct {
        const char *text, *control; /* or what the sentence says */
        weir_status status;
        enum weir_rtsp_codec codec;
    } rows[] = {
        {"v=0\nm=video 0 RTP/AVP 26\na=control:t\n", "t", WEIR_OK, WEIR_RTSP_JPEG},
        {"m=video 0 RTP/AVP 99\na=rtpmap:99 H265/90000\na=fmtp:99 sprop-vps=QAE=;sprop-sps=QgE=;"
         "sprop-pps=RAE=\n",
         "", WEIR_OK, WEIR_RTSP_H265},
        {"m=video 0 RTP/AVP 26\na=sendonly\na=control:back\nm=video 0 RTP/AVP 26\na=control:t\n",
         "t", WEIR_OK, WEIR_RTSP_JPEG},
        {"m=video 0 RTP/AVP 26\na=sendonly\na=control:t\nm=video 0 RTP/AVP 26\na=sendonly\n", "t",
         WEIR_OK, WEIR_RTSP_JPEG},
        {"m=video 0 RTP/AVP 26\na=inactive\n", "another codec", WEIR_ERR_UNSUPPORTED, 0},
        {"m=video 0 RTP/AVP 96\na=rtpmap:96 MP4V-ES/90000\n", "MP4V-ES", WEIR_ERR_UNSUPPORTED, 0},
        {"m=audio 0 RTP/AVP 0\n", "no video", WEIR_ERR_UNSUPPORTED, 0},
        {"", "no video", WEIR_ERR_UNSUPPORTED, 0},
        {"m=video 0 RTP/AVP 96\na=rtpmap:96 H264/90000\na=fmtp:96 packetization-mode=2\n",
         "interleaved", WEIR_ERR_UNSUPPORTED, 0},
        {"m=video 0 RTP/AVP 96\na=rtpmap:96 H265/90000\na=fmtp:96 sprop-max-don-diff=1\n",
         "out of order", WEIR_ERR_UNSUPPORTED, 0},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        struct rtsp_sdp sdp;
        struct weir_error err = {0};
        ck_assert_int_eq(rtsp_sdp_parse(rtsp_text_of(rows[i].text), &sdp, &err), rows[i].status);
        if (rows[i].status != WEIR_OK) {
            ck_assert_msg(strstr(err.message, rows[i].control) != NULL, "%s", err.message);
            continue;
        }
        ck_assert_int_eq(sdp.codec, rows[i].codec);
        ck_assert(rtsp_text_is(sdp.control, rows[i].control));
        ck_assert_uint_eq(sdp.n_parameter_bytes, sdp.codec == WEIR_RTSP_H265 ? 18 : 0);
    }
}

END_TEST

WEIR_TEST_MAIN("rtsp_text", md5_is_that_of_the_rfc, proofs_are_those_of_the_rfcs,
               the_strongest_known_challenge_is_taken, addresses_are_taken_apart,
               parts_have_addresses_of_their_own, a_message_is_taken_when_it_is_whole,
               what_is_no_message_is_refused, the_first_known_video_is_taken,
               descriptions_say_what_is_wanted_or_are_refused)
