#include "base/hosts.h"

#include <stdio.h>
#include <string.h>

/* Numbers longer than this are none of a host or a count. */
#define DIGITS_MAX 9

static bool is_host_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("._-@", c) != NULL);
}

bool weir_host_is_valid(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!is_host_char(text[i])) {
            return false;
        }
    }
    return len > 0 && len < WEIR_HOST_BYTES && text[0] != '-'; /* "-" would be an option of ssh */
}

int weir_hosts_number(const char **at)
{
    int value = 0, n_digits = 0;
    for (; **at >= '0' && **at <= '9' && n_digits < DIGITS_MAX; (*at)++, n_digits++) {
        value = value * 10 + (**at - '0');
    }
    bool is_good = n_digits > 0 && (**at < '0' || **at > '9');
    return is_good ? value : -1;
}

struct reading {
    const char *list;
    weir_host_fn fn;
    void *context;
    struct weir_error *err;
};

static weir_status bad_list(const struct reading *reading)
{
    return weir_error_set(reading->err, WEIR_ERR_INVALID, "cannot read \"%.100s\" as hosts",
                          reading->list);
}

static weir_status tell(const struct reading *reading, const char *host, size_t len)
{
    char name[WEIR_HOST_BYTES];
    if (!weir_host_is_valid(host, len)) {
        return weir_error_set(reading->err, WEIR_ERR_INVALID, "\"%.*s\" is no name of a host",
                              (int)WEIR_MIN(len, (size_t)60), host);
    }
    memcpy(name, host, len);
    name[len] = '\0';
    return reading->fn(reading->context, name, reading->err);
}

/** "01-03" behind `prefix`: three hosts, as many digits as the first number has. */
static weir_status tell_range(const struct reading *reading, const char *prefix, size_t prefix_len,
                              const char **at)
{
    const char *first_text = *at;
    int first = weir_hosts_number(at), width = (int)(*at - first_text), last = first;
    if (**at == '-') {
        (*at)++;
        last = weir_hosts_number(at);
    }
    if (first < 0 || last < first || prefix_len >= WEIR_HOST_BYTES - 16) {
        return bad_list(reading);
    }
    for (int i = first; i <= last; i++) {
        char host[WEIR_HOST_BYTES];
        int len = snprintf(host, sizeof host, "%.*s%0*d", (int)prefix_len, prefix, width, i);
        WEIR_TRY(tell(reading, host, (size_t)len));
    }
    return WEIR_OK;
}

/** One item: "login" or "gpu[01-03,7]". */
static weir_status tell_item(const struct reading *reading, const char **at)
{
    const char *prefix = *at;
    size_t len = strcspn(prefix, ",[");
    *at += len;
    if (**at != '[') {
        return tell(reading, prefix, len);
    }
    do {
        (*at)++; /* "[" or "," */
        WEIR_TRY(tell_range(reading, prefix, len, at));
    } while (**at == ',');
    if (**at != ']') {
        return bad_list(reading);
    }
    (*at)++;
    return **at == ',' || **at == '\0' ? WEIR_OK : bad_list(reading);
}

weir_status weir_hosts_read(const char *list, weir_host_fn fn, void *context,
                            struct weir_error *err)
{
    const struct reading reading = {list, fn, context, err};
    const char *at = list;
    WEIR_TRY(tell_item(&reading, &at));
    while (*at == ',') {
        at++;
        WEIR_TRY(tell_item(&reading, &at));
    }
    return WEIR_OK;
}
