#include "base/url.h"

#include <stdbool.h>
#include <string.h>

weir_status weir_url_check(const char *url, const char *place, struct weir_error *err)
{
    const char *host = strncmp(url, "http://", 7) == 0    ? url + 7
                       : strncmp(url, "https://", 8) == 0 ? url + 8
                                                          : NULL;
    size_t host_len = host != NULL ? strcspn(host, "/?#") : 0;
    bool is_plain = true;
    for (const char *p = url; *p != '\0'; p++) {
        is_plain = is_plain && *p > ' ' && *p != 0x7f;
    }
    if (host_len == 0 || !is_plain || memchr(host, '@', host_len) != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: expected http://HOST… or https://HOST…, without blanks and "
                              "without a user or password in it",
                              place);
    }
    return WEIR_OK;
}

weir_status weir_url_check_token(const char *token, const char *place, struct weir_error *err)
{
    for (const char *p = token != NULL ? token : ""; *p != '\0'; p++) {
        if (*p <= ' ' || *p >= 0x7f) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "%s: expected a word of ASCII letters and signs", place);
        }
    }
    return WEIR_OK;
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = c != '\0' ? strchr(digits, c | 0x20) : NULL;
    return found == NULL ? -1 : (int)(found - digits);
}

bool weir_url_decode(const char *text, size_t len, char *out, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++, n++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '%' && i + 2 < len && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0) {
            c = (unsigned char)(hex_digit(text[i + 1]) << 4 | hex_digit(text[i + 2]));
            i += 2;
        }
        if (n + 1 >= size || c < 0x20 || c == 0x7f) {
            return false;
        }
        out[n] = (char)c;
    }
    if (n >= size) {
        return false;
    }
    out[n] = '\0';
    return true;
}
