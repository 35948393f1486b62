#include "text.h"

#include <string.h>
#include <strings.h>

struct rtsp_text rtsp_text_of(const char *text)
{
    return (struct rtsp_text){text, strlen(text)};
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

struct rtsp_text rtsp_text_trim(struct rtsp_text text)
{
    while (text.n > 0 && is_blank(text.at[0])) {
        text.at++;
        text.n--;
    }
    while (text.n > 0 && is_blank(text.at[text.n - 1])) {
        text.n--;
    }
    return text;
}

bool rtsp_text_begins(struct rtsp_text text, const char *word)
{
    size_t n = strlen(word);
    return text.n >= n && strncasecmp(text.at, word, n) == 0;
}

bool rtsp_text_is(struct rtsp_text text, const char *word)
{
    return text.n == strlen(word) && rtsp_text_begins(text, word);
}

/* The part of `n` bytes; *rest goes on after it and the byte behind it. */
static struct rtsp_text part_of(struct rtsp_text *rest, size_t n)
{
    struct rtsp_text part = {rest->at, n};
    size_t n_used = n < rest->n ? n + 1 : n;
    rest->at += n_used;
    rest->n -= n_used;
    return part;
}

struct rtsp_text rtsp_text_cut(struct rtsp_text *rest, char end)
{
    const char *found = rest->n > 0 ? memchr(rest->at, end, rest->n) : NULL;
    return part_of(rest, found == NULL ? rest->n : (size_t)(found - rest->at));
}

bool rtsp_text_line(struct rtsp_text *rest, struct rtsp_text *out_line)
{
    if (rest->n == 0) {
        return false;
    }
    struct rtsp_text line = rtsp_text_cut(rest, '\n');
    line.n -= line.n > 0 && line.at[line.n - 1] == '\r';
    *out_line = line;
    return true;
}

bool rtsp_text_parameter(struct rtsp_text *rest, char separator, struct rtsp_text *out_name,
                         struct rtsp_text *out_value)
{
    struct rtsp_text part;
    do {
        if (rest->n == 0) {
            return false;
        }
        bool is_quoted = false;
        size_t n = 0;
        for (; n < rest->n && (is_quoted || rest->at[n] != separator); n++) {
            if (rest->at[n] == '"') {
                is_quoted = !is_quoted;
            } else if (is_quoted && rest->at[n] == '\\' && n + 1 < rest->n) {
                n++;
            }
        }
        part = rtsp_text_trim(part_of(rest, n));
    } while (part.n == 0);
    *out_name = rtsp_text_trim(rtsp_text_cut(&part, '='));
    part = rtsp_text_trim(part);
    if (part.n >= 2 && part.at[0] == '"' && part.at[part.n - 1] == '"') {
        part = (struct rtsp_text){part.at + 1, part.n - 2};
    }
    *out_value = part;
    return true;
}

bool rtsp_text_find(struct rtsp_text list, char separator, const char *name,
                    struct rtsp_text *out_value)
{
    struct rtsp_text at, value;
    while (rtsp_text_parameter(&list, separator, &at, &value)) {
        if (rtsp_text_is(at, name)) {
            *out_value = value;
            return true;
        }
    }
    return false;
}

int64_t rtsp_text_number(struct rtsp_text text, int64_t most)
{
    int64_t value = 0;
    size_t i = 0;
    for (; i < text.n && text.at[i] >= '0' && text.at[i] <= '9'; i++) {
        value = value * 10 + (text.at[i] - '0');
        if (value > most) {
            return -1;
        }
    }
    return i == 0 ? -1 : value;
}

weir_status rtsp_text_copy(struct rtsp_text text, char *out, size_t size)
{
    if (text.n >= size) {
        return WEIR_ERR_LIMIT;
    }
    for (size_t i = 0; i < text.n; i++) {
        if ((unsigned char)text.at[i] < ' ' || text.at[i] == 0x7f) {
            return WEIR_ERR_INVALID;
        }
    }
    memcpy(out, text.at, text.n);
    out[text.n] = '\0';
    return WEIR_OK;
}
