#include "notify/receiver.h"

#include "http/post.h"
#include "notify/mail.h"

#include <curl/curl.h>
#include <string.h>

#define ADDRESSES_MAX      32
#define CONNECT_TIMEOUT_MS 5000L

struct weir_receiver_email {
    char *server, *tls, *user, *password_file, *from, *ca_file;
    const json_t *to;
};

static const struct weir_option options_of[] = {
    WEIR_OPT_JSON(weir_receiver_email, server, "server", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "Mail server: smtp://HOST:PORT, or smtps://HOST:PORT for TLS from the start"),
    {.name = "tls",
     .type = WEIR_OPTION_TEXT,
     .offset = offsetof(struct weir_receiver_email, tls),
     .fallback = "starttls",
     .words = WEIR_WORDS("starttls", "none"),
     .doc = "With smtp://: STARTTLS before anything else, or no TLS at all"},
    WEIR_OPT_JSON(weir_receiver_email, user, "user", TEXT, 0, NULL, 0, 0,
                  "User to log in as; only over TLS"),
    WEIR_OPT_JSON(weir_receiver_email, password_file, "password-file", TEXT, 0, NULL, 0, 0,
                  "File on the server's machine whose first line is the user's password"),
    WEIR_OPT_JSON(weir_receiver_email, from, "from", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "Address of the sender"),
    WEIR_OPT_JSON(weir_receiver_email, to, "to", TEXTS, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "Addresses of the receivers"),
    WEIR_OPT_JSON(weir_receiver_email, ca_file, "ca-file", TEXT, 0, NULL, 0, 0,
                  "File with the authorities to trust, in place of the system's"),
};

static bool is_smtps(const struct weir_receiver_email *email)
{
    return strncmp(email->server, "smtps://", 8) == 0;
}

static bool has_tls(const struct weir_receiver_email *email)
{
    return is_smtps(email) || strcmp(email->tls, "starttls") == 0;
}

static weir_status check_server(const struct weir_receiver_email *email, struct weir_error *err)
{
    const char *host = strncmp(email->server, "smtp://", 7) == 0 ? email->server + 7
                       : is_smtps(email)                         ? email->server + 8
                                                                 : NULL;
    bool is_good = host != NULL && *host != '\0';
    for (const char *p = is_good ? host : ""; *p != '\0'; p++) {
        is_good = is_good && *p > ' ' && *p < 0x7f && strchr("/@?#", *p) == NULL;
    }
    return is_good ? WEIR_OK
                   : weir_error_set(err, WEIR_ERR_INVALID,
                                    "$.options.server: expected smtp://HOST:PORT or "
                                    "smtps://HOST:PORT");
}

static weir_status check(const void *options, struct weir_error *err)
{
    const struct weir_receiver_email *email = options;
    const json_t *address;
    size_t i;
    WEIR_TRY(check_server(email, err));
    if ((email->user != NULL) != (email->password_file != NULL)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.options: user and password_file belong together");
    }
    if (email->user != NULL && !has_tls(email)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.options.tls: with a user it must not be none: the password would "
                              "cross the network in the clear");
    }
    if (!notify_address_is_valid(email->from)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.options.from: expected NAME@HOST");
    }
    if (json_array_size(email->to) == 0 || json_array_size(email->to) > ADDRESSES_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.options.to: expected 1 to %d addresses",
                              ADDRESSES_MAX);
    }
    json_array_foreach(email->to, i, address)
    {
        if (!notify_address_is_valid(json_string_value(address))) {
            return weir_error_set(err, WEIR_ERR_INVALID, "$.options.to[%zu]: expected NAME@HOST",
                                  i);
        }
    }
    return WEIR_OK;
}

/* ---- sending --------------------------------------------------------------------------------- */

struct letter {
    const char *text;
    size_t len, at;
};

static size_t read_letter(char *out, size_t size, size_t n, void *context)
{
    struct letter *letter = context;
    size_t len = WEIR_MIN(size * n, letter->len - letter->at);
    memcpy(out, letter->text + letter->at, len);
    letter->at += len;
    return len;
}

static size_t ignore_answer(char *bytes, size_t size, size_t n, void *context)
{
    (void)bytes;
    (void)context;
    return size * n;
}

/* Called about once a second, and whenever something moves; not 0 ends the transfer. */
static int look_at_stop(void *context, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
                        curl_off_t up)
{
    (void)down_total;
    (void)down;
    (void)up_total;
    (void)up;
    return weir_poster_is_stopped(context);
}

static void set_server(CURL *easy, const struct weir_receiver_email *email, const char *password,
                       const struct weir_receiver_send *send)
{
    curl_easy_setopt(easy, CURLOPT_URL, email->server);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)send->timeout_ms);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, look_at_stop);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, send->poster);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_USE_SSL,
                     (long)(has_tls(email) ? CURLUSESSL_ALL : CURLUSESSL_NONE));
    if (email->ca_file != NULL) {
        curl_easy_setopt(easy, CURLOPT_CAINFO, email->ca_file);
    }
    if (email->user != NULL) {
        curl_easy_setopt(easy, CURLOPT_USERNAME, email->user);
        curl_easy_setopt(easy, CURLOPT_PASSWORD, password);
    }
}

/* 5xx of the protocol is a refusal; what the network does may be better later. */
static weir_status judge(const struct weir_receiver_send *send, CURL *easy, CURLcode code,
                         const char *detail, struct weir_error *err)
{
    long answer = 0;
    if (code == CURLE_OK) {
        return WEIR_OK;
    }
    receiver_log(send, detail[0] != '\0' ? detail : curl_easy_strerror(code));
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &answer);
    switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
        return weir_error_set(err, WEIR_ERR_DENIED, "its mail server's certificate is not trusted");
    case CURLE_SSL_CONNECT_ERROR:
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                              "no TLS connection could be made to its mail server");
    case CURLE_USE_SSL_FAILED:
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE, "its mail server offers no STARTTLS");
    case CURLE_OPERATION_TIMEDOUT:
        return weir_error_set(err, WEIR_ERR_TIMEOUT,
                              "its mail server did not answer within %lld ms",
                              (long long)send->timeout_ms);
    case CURLE_LOGIN_DENIED:
        return weir_error_set(
            err, answer >= 400 && answer < 500 ? WEIR_ERR_UNAVAILABLE : WEIR_ERR_DENIED,
            "its mail server refuses its user or password (%ld)", answer);
    default:
        break;
    }
    if (answer >= 400 && answer < 600) {
        return weir_error_set(err, answer >= 500 ? WEIR_ERR_INVALID : WEIR_ERR_UNAVAILABLE,
                              "its mail server did not take the letter (%ld)", answer);
    }
    return weir_error_set(err, WEIR_ERR_UNAVAILABLE, "its mail server cannot be reached");
}

static weir_status send_to(const struct weir_receiver_send *send, struct weir_error *err)
{
    const struct weir_receiver_email *email = send->options;
    const struct notify_mail mail = {email->from, email->to, send->delivery, send->message,
                                     send->now_ms};
    char detail[CURL_ERROR_SIZE] = "", *password = NULL;
    const json_t *address;
    size_t i;
    if (email->password_file != NULL) {
        WEIR_TRY(receiver_read_secret(send, email->password_file, &password, err));
    }
    struct letter letter = {.text = notify_mail_make(&mail, send->arena)};
    letter.len = strlen(letter.text);
    CURL *easy = curl_easy_init();
    struct curl_slist *to = NULL;
    if (easy == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a mail client");
    }
    json_array_foreach(email->to, i, address)
    {
        to = curl_slist_append(to,
                               weir_arena_printf(send->arena, "<%s>", json_string_value(address)));
    }
    set_server(easy, email, password, send);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, detail);
    curl_easy_setopt(easy, CURLOPT_MAIL_FROM, weir_arena_printf(send->arena, "<%s>", email->from));
    curl_easy_setopt(easy, CURLOPT_MAIL_RCPT, to);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, read_letter);
    curl_easy_setopt(easy, CURLOPT_READDATA, &letter);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, ignore_answer);
    curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    weir_status status = judge(send, easy, curl_easy_perform(easy), detail, err);
    curl_slist_free_all(to);
    curl_easy_cleanup(easy);
    return status;
}

static const struct weir_receiver_ops ops = {.check = check, .send = send_to};

const struct weir_kind weir_receiver_email = {
    .name = "email",
    .doc = "Letters by SMTP, over TLS unless it is said otherwise.",
    WEIR_KIND_OPTIONS(weir_receiver_email, options_of),
    .ops = &ops,
};
