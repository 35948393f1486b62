#include "notify/mail.h"

#include "base/base64.h"
#include "base/test_main.h"
#include "notify/receiver.h"

#include <string.h>

static struct weir_arena arena;

static char *letter_about(const char *text)
{
    json_t *to = json_pack("[s,s]", "ann@example.org", "bob@example.org");
    json_t *message = json_pack(
        "{s:s,s:s,s:s,s:[{s:s,s:s,s:s,s:s,s:s,s:s,s:s}]}", "event", "raised", "rule", "r", "server",
        "http://h:1", "alerts", "id", "a", "severity", "critical", "kind", "drift", "subject",
        "ion/door", "state", "open", "raised", "2026-11-25T10:00:00.000Z", "message", text);
    const struct notify_mail mail = {"weir@example.org", to, "d-1", message, 1795600800000};
    char *letter = notify_mail_make(&mail, &arena);
    json_decref(message);
    json_decref(to);
    return letter;
}

/* The subject as a mail program shows it. */
static void decode_subject(const char *letter, char *out, size_t size)
{
    const char *at = strstr(letter, "\r\nSubject:"), *end = strstr(letter, "\r\nDate:");
    size_t n = 0;
    ck_assert_ptr_nonnull(at);
    ck_assert_ptr_nonnull(end);
    for (at = strstr(at, "=?UTF-8?B?"); at != NULL && at < end; at = strstr(at, "=?UTF-8?B?")) {
        char word[128] = "";
        size_t len, word_len = strcspn(at + 10, "?");
        ck_assert_uint_le(word_len + 12, 75);
        memcpy(word, at + 10, word_len);
        ck_assert_int_eq(weir_base64_decode(word, out + n, size - n - 1, &len), WEIR_OK);
        n += len;
        at += 10 + word_len;
    }
    out[n] = '\0';
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) {
        n++;
    }
    return n;
}

START_TEST(a_letter_has_its_headers_and_its_text)
{
    char subject[512];
    weir_arena_init(&arena, 0);
    const char *letter = letter_about("Node a is lost");
    decode_subject(letter, subject, sizeof subject);
    ck_assert_str_eq(subject, "[critical] Node a is lost");
    ck_assert_ptr_nonnull(strstr(letter, "To: ann@example.org,\r\n bob@example.org\r\n"));
    ck_assert_ptr_nonnull(strstr(letter, "Message-ID: <d-1@example.org>\r\n"));
    ck_assert_ptr_nonnull(strstr(letter, "Date: Wed, 25 Nov 2026 10:00:00 +0000\r\n"));
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(no_text_breaks_out_of_the_subject_or_the_body)
{
    static const char *const texts[] = {
        "a\r\nBcc: eve@example.org\r\n\r\nbody", "\r\n.\r\nQUIT\r\n", "\n\n", "=?UTF-8?B?",
        "Tür öffnet nicht — ein sehr langer Satz, damit mehrere Wörter kodiert werden müssen, und "
        "noch mehr davon, weil es so schön ist, und noch ein wenig, bis zweihundert Bytes voll "
        "sind"};
    weir_arena_init(&arena, 0);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(texts); i++) {
        char subject[512], expected[1024];
        const char *letter = letter_about(texts[i]);
        decode_subject(letter, subject, sizeof subject);
        (void)snprintf(expected, sizeof expected, "[critical] %s", texts[i]);
        ck_assert_int_eq(strncmp(expected, subject, strlen(subject)), 0);
        ck_assert_uint_eq(count(letter, "\r\n\r\n"), 1);
        ck_assert_ptr_null(strstr(letter, "Bcc"));
        ck_assert_ptr_null(strstr(letter, "\r\n."));
        for (const char *line = letter; *line != '\0'; line = strstr(line, "\r\n") + 2) {
            size_t len = strcspn(line, "\r\n");
            ck_assert_uint_le(len, 998);
            ck_assert_int_eq(strncmp(line + len, "\r\n", 2), 0);
        }
    }
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(addresses_are_plain)
{
    static const char *const wrong[] = {"",      "ann",      "@h",      "ann@",
                                        "a n@h", "a@h\r\nx", "a@h,b@h", "<a@h>",
                                        "a@h@h", "\"a\"@h",  "a@h;b",   "t\xc3\xbcr@h"};
    ck_assert(notify_address_is_valid("ann@example.org"));
    ck_assert(notify_address_is_valid("ann+alerts@mail.example.org"));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(wrong); i++) {
        ck_assert_msg(!notify_address_is_valid(wrong[i]), "%s", wrong[i]);
    }
}

END_TEST

static weir_status check(const char *kind, json_t *options)
{
    struct weir_configured configured;
    struct weir_error err;
    weir_status status = weir_receiver_read(kind, options, "$.options", &arena, &configured, &err);
    json_decref(options);
    return status;
}

START_TEST(options_that_would_go_wrong_are_refused)
{
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(check("webhook", json_pack("{s:s}", "url", "https://h/x")), WEIR_OK);
    ck_assert_int_eq(check("webhook", json_pack("{s:s}", "url", "file:///etc/passwd")),
                     WEIR_ERR_INVALID);
    ck_assert_int_eq(check("webhook", json_pack("{s:s}", "url", "http://u:p@h/")),
                     WEIR_ERR_INVALID);
    ck_assert_int_eq(check("webhook", json_pack("{s:s}", "url", "http://h/\r\nX: y")),
                     WEIR_ERR_INVALID);
    ck_assert_int_eq(
        check("webhook", json_pack("{s:s,s:s}", "url", "http://h/", "token", "a\r\nX: y")),
        WEIR_ERR_INVALID);
    ck_assert_int_eq(check("alertmanager", json_pack("{s:s,s:s,s:s}", "url", "http://h/", "user",
                                                     "u", "password_file", "/p")),
                     WEIR_OK);
    ck_assert_int_eq(
        check("alertmanager", json_pack("{s:s,s:s,s:s,s:s}", "url", "http://h/", "user", "u",
                                        "password_file", "/p", "token", "t")),
        WEIR_ERR_INVALID);
    ck_assert_int_eq(check("pager", json_object()), WEIR_ERR_INVALID);
    ck_assert_int_eq(check("email", json_pack("{s:s,s:s,s:[s]}", "server", "smtp://h:25", "from",
                                              "a@h", "to", "b@h")),
                     WEIR_OK);
    ck_assert_int_eq(check("email", json_pack("{s:s,s:s,s:[s]}", "server", "http://h:25", "from",
                                              "a@h", "to", "b@h")),
                     WEIR_ERR_INVALID);
    ck_assert_int_eq(check("email", json_pack("{s:s,s:s,s:[s]}", "server", "smtp://h:25", "from",
                                              "a@h", "to", "b@h\r\nBcc: c@h")),
                     WEIR_ERR_INVALID);
    ck_assert_int_eq(check("email", json_pack("{s:s,s:s,s:[s],s:s,s:s,s:s}", "server",
                                              "smtp://h:25", "from", "a@h", "to", "b@h", "tls",
                                              "none", "user", "u", "password_file", "/p")),
                     WEIR_ERR_INVALID);
    weir_arena_fini(&arena);
}

END_TEST

WEIR_TEST_MAIN("mail", a_letter_has_its_headers_and_its_text,
               no_text_breaks_out_of_the_subject_or_the_body, addresses_are_plain,
               options_that_would_go_wrong_are_refused)
