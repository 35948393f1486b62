#include "address.h"

#include "base/url.h"

#include <stdio.h>
#include <string.h>

enum { DEFAULT_PORT = 554 };

/* "%40" becomes "@". */
static weir_status decode(struct rtsp_text text, char out[RTSP_CREDENTIAL_BYTES])
{
    return weir_url_decode(text.at, text.n, out, RTSP_CREDENTIAL_BYTES) ? WEIR_OK
                                                                        : WEIR_ERR_INVALID;
}

static weir_status parse_host(struct rtsp_text text, struct rtsp_address *out)
{
    struct rtsp_text host = {0};
    if (text.n > 0 && text.at[0] == '[') {
        text.at++;
        text.n--;
        host = rtsp_text_cut(&text, ']');
        if (text.n > 0 && text.at[0] != ':') {
            return WEIR_ERR_INVALID;
        }
        (void)rtsp_text_cut(&text, ':');
    } else {
        host = rtsp_text_cut(&text, ':');
    }
    out->port = text.n == 0 ? DEFAULT_PORT : (int)rtsp_text_number(text, 65535);
    if (host.n == 0 || memchr(host.at, ' ', host.n) != NULL || out->port <= 0) {
        return WEIR_ERR_INVALID;
    }
    for (size_t i = 0; i < text.n; i++) {
        if (text.at[i] < '0' || text.at[i] > '9') {
            return WEIR_ERR_INVALID;
        }
    }
    return rtsp_text_copy(host, out->host, sizeof out->host);
}

/* What stands between "rtsp://" and the path. */
static weir_status parse_authority(struct rtsp_text text, struct rtsp_address *out)
{
    size_t n_login = 0;
    for (size_t i = 0; i < text.n; i++) {
        n_login = text.at[i] == '@' ? i + 1 : n_login;
    }
    if (n_login > 0) {
        struct rtsp_text login = {text.at, n_login - 1};
        struct rtsp_text user = rtsp_text_cut(&login, ':');
        WEIR_TRY(decode(user, out->user));
        WEIR_TRY(decode(login, out->password));
    }
    return parse_host((struct rtsp_text){text.at + n_login, text.n - n_login}, out);
}

weir_status rtsp_address_parse(const char *url, struct rtsp_address *out, struct weir_error *err)
{
    struct rtsp_text rest = rtsp_text_of(url);
    if (rtsp_text_begins(rest, "rtsps://")) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "rtsps (RTSP over TLS) is not supported: use the camera's rtsp:// "
                              "address, in a network of its own");
    }
    static const char scheme[] = "rtsp://";
    struct rtsp_address address = {0};
    char whole[RTSP_URL_BYTES] = "";
    weir_status status = WEIR_ERR_INVALID;
    if (rtsp_text_begins(rest, scheme) && rest.n < sizeof whole) {
        rest.at += strlen(scheme);
        rest.n -= strlen(scheme);
        size_t n = strcspn(rest.at, "/?");
        status = parse_authority((struct rtsp_text){rest.at, n}, &address);
        rest.at += n;
        bool is_v6 = strchr(address.host, ':') != NULL;
        int n_written =
            snprintf(whole, sizeof whole, "rtsp://%s%s%s:%d%s%s", is_v6 ? "[" : "", address.host,
                     is_v6 ? "]" : "", address.port, rest.at[0] == '/' ? "" : "/", rest.at);
        if (n_written >= (int)sizeof whole || strchr(whole, ' ') != NULL ||
            rtsp_text_copy(rtsp_text_of(whole), address.url, sizeof address.url) != WEIR_OK) {
            status = WEIR_ERR_INVALID;
        }
    }
    if (status != WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "the camera's address must be rtsp://HOST[:PORT]/PATH, of at most %d "
                              "characters, without blanks",
                              WEIR_RTSP_URL_MAX_BYTES);
    }
    *out = address;
    return WEIR_OK;
}

weir_status rtsp_address_of_part(const char *base, struct rtsp_text control,
                                 char out[RTSP_URL_BYTES])
{
    char part[RTSP_URL_BYTES];
    WEIR_TRY(rtsp_text_copy(control, part, sizeof part));
    size_t n = strlen(base);
    if (strchr(part, ' ') != NULL) {
        return WEIR_ERR_INVALID;
    }
    if (rtsp_text_begins(control, "rtsp://")) {
        base = "";
    } else if (part[0] == '\0' || strcmp(part, "*") == 0) {
        part[0] = '\0';
    } else if (part[0] == '/') {
        const char *host = strstr(base, "://");
        n = host == NULL ? 0 : (size_t)(host + 3 - base) + strcspn(host + 3, "/");
    }
    bool is_joined = base[0] == '\0' || part[0] == '\0' || part[0] == '/' || base[n - 1] == '/';
    int n_written =
        snprintf(out, RTSP_URL_BYTES, "%.*s%s%s", (int)n, base, is_joined ? "" : "/", part);
    return n_written < RTSP_URL_BYTES ? WEIR_OK : WEIR_ERR_LIMIT;
}
