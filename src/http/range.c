#include "http/range.h"

#include <string.h>
#include <strings.h>

/* Digits, at most UINT64_MAX. *text is left behind them; false: none, or too many. */
static bool read_number(const char **text, uint64_t *out)
{
    uint64_t value = 0;
    const char *c = *text;
    for (; *c >= '0' && *c <= '9'; c++) {
        uint64_t digit = (uint64_t)(*c - '0');
        if (value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    bool has_digits = c != *text;
    *text = c;
    *out = value;
    return has_digits;
}

static const char *skip_blanks(const char *text)
{
    return text + strspn(text, " \t");
}

/* "-500": the last bytes. None of them is no part of any file. */
static enum http_range read_suffix(const char *text, uint64_t size, uint64_t *out_offset,
                                   uint64_t *out_len)
{
    uint64_t n;
    if (!read_number(&text, &n) || *skip_blanks(text) != '\0') {
        return HTTP_RANGE_NONE;
    }
    if (n == 0 || size == 0) {
        return HTTP_RANGE_BAD;
    }
    *out_len = n < size ? n : size;
    *out_offset = size - *out_len;
    return HTTP_RANGE_PART;
}

enum http_range http_range_parse(const char *text, uint64_t size, uint64_t *out_offset,
                                 uint64_t *out_len)
{
    uint64_t first, last = UINT64_MAX;
    if (text == NULL || strncasecmp(text, "bytes=", 6) != 0) {
        return HTTP_RANGE_NONE;
    }
    text = skip_blanks(text + 6);
    if (*text == '-') {
        return read_suffix(text + 1, size, out_offset, out_len);
    }
    if (!read_number(&text, &first) || *text != '-') {
        return HTTP_RANGE_NONE;
    }
    text = skip_blanks(text + 1);
    if (*text != '\0' &&
        (!read_number(&text, &last) || *skip_blanks(text) != '\0' || last < first)) {
        return HTTP_RANGE_NONE;
    }
    if (first >= size) {
        return HTTP_RANGE_BAD;
    }
    last = last < size ? last : size - 1;
    *out_offset = first;
    *out_len = last - first + 1;
    return HTTP_RANGE_PART;
}

bool http_etag_is_listed(const char *list, const char *etag)
{
    size_t len = strlen(etag);
    list = skip_blanks(list);
    if (strcmp(list, "*") == 0) {
        return true;
    }
    while (*list != '\0') {
        const char *tag = strncmp(list, "W/", 2) == 0 ? list + 2 : list;
        if (*tag != '"') {
            return false;
        }
        size_t tag_len = 1 + strcspn(tag + 1, "\"");
        if (tag[tag_len] == '\0') {
            return false;
        }
        if (tag_len + 1 == len && strncmp(tag, etag, len) == 0) {
            return true;
        }
        list = tag + tag_len + 1;
        list += strspn(list, " \t,");
    }
    return false;
}
