/* Cookies of services. Browsers know no port and no owner of a cookie: what tells one service's from
 * another's, and from Weir's, is a prefix of its name. */
#include "proxy/rules.h"

#include "base/buf.h"

#include <string.h>
#include <strings.h>

#define PREFIX "weir-svc-"

/* RFC 6265, 4.1.1: a name is a token, a value is visible characters without a few. */
static bool is_cookie_name(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c <= ' ' || c >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", c) != NULL) {
            return false;
        }
    }
    return len > 0;
}

static bool is_cookie_value(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < ' ' || c >= 0x7f || c == ';') {
            return false;
        }
    }
    return true;
}

static size_t trim(const char **text, size_t len)
{
    while (len > 0 && (**text == ' ' || **text == '\t')) {
        (*text)++;
        len--;
    }
    while (len > 0 && ((*text)[len - 1] == ' ' || (*text)[len - 1] == '\t')) {
        len--;
    }
    return len;
}

char *rules_cookies_inward(const struct proxy_place *place, const char *value,
                           struct weir_arena *arena)
{
    const char *prefix = weir_arena_printf(arena, PREFIX "%s-", place->id);
    size_t prefix_len = strlen(prefix);
    char *out = weir_arena_alloc(arena, strlen(value) + 1);
    size_t n = 0;
    while (*value != '\0') {
        size_t len = strcspn(value, ";");
        const char *part = value;
        size_t part_len = trim(&part, len);
        const char *equals = memchr(part, '=', part_len);
        if (equals != NULL && part_len > prefix_len && strncmp(part, prefix, prefix_len) == 0) {
            const char *name = part + prefix_len;
            size_t rest = part_len - prefix_len;
            if (equals > name && is_cookie_name(name, (size_t)(equals - name)) &&
                is_cookie_value(equals + 1, (size_t)(part + part_len - equals - 1))) {
                n += n > 0 ? (memcpy(out + n, "; ", 2), (size_t)2) : 0;
                memcpy(out + n, name, rest);
                n += rest;
            }
        }
        value += len + (value[len] == ';');
    }
    out[n] = '\0';
    return n > 0 ? out : NULL;
}

struct attributes {
    const char *path, *expires, *max_age, *same_site;
    size_t path_len, expires_len, max_age_len, same_site_len;
    bool is_http_only, is_secure;
};

static bool is_word(const char *text, size_t len, const char *word)
{
    return len == strlen(word) && strncasecmp(text, word, len) == 0;
}

static void read_attribute(const char *text, size_t len, struct attributes *out)
{
    const char *equals = memchr(text, '=', len);
    size_t name_len = equals != NULL ? (size_t)(equals - text) : len;
    const char *name = text, *value = equals != NULL ? equals + 1 : text + len;
    size_t value_len = trim(&value, (size_t)(text + len - value));
    name_len = trim(&name, name_len);
    if (is_word(name, name_len, "Path")) {
        out->path = value;
        out->path_len = value_len;
    } else if (is_word(name, name_len, "Expires")) {
        out->expires = value;
        out->expires_len = value_len;
    } else if (is_word(name, name_len, "Max-Age")) {
        out->max_age = value;
        out->max_age_len = value_len;
    } else if (is_word(name, name_len, "SameSite")) {
        out->same_site = value;
        out->same_site_len = value_len;
    } else if (is_word(name, name_len, "HttpOnly")) {
        out->is_http_only = true;
    } else if (is_word(name, name_len, "Secure")) {
        out->is_secure = true;
    } /* Domain: never; what else there may be is not known to be harmless */
}

/* Never more than the place's own path. */
static char *outer_path(const struct proxy_place *place, const struct attributes *attributes,
                        struct weir_arena *arena)
{
    size_t inner = strlen(place->inner), outer = strlen(place->path), len = attributes->path_len;
    const char *path = attributes->path;
    bool is_plain = path != NULL && len > 0;
    for (size_t i = 0; is_plain && i < len; i++) {
        unsigned char c = (unsigned char)path[i];
        is_plain = c > ' ' && c < 0x7f && c != ';';
    }
    if (!is_plain || memmem(path, len, "..", 2) != NULL || memchr(path, '%', len) != NULL) {
        return weir_arena_strdup(arena, place->path);
    }
    if (len >= outer && strncmp(path, place->path, outer) == 0) {
        return weir_arena_memdup(arena, path, len);
    }
    if (len >= inner && strncmp(path, place->inner, inner) == 0) {
        return weir_arena_printf(arena, "%s%.*s", place->path, (int)(len - inner), path + inner);
    }
    return weir_arena_strdup(arena, place->path);
}

static bool is_all(const char *text, size_t len, const char *letters)
{
    for (size_t i = 0; i < len; i++) {
        if (strchr(letters, text[i]) == NULL) {
            return false;
        }
    }
    return len > 0;
}

char *rules_cookie_outward(const struct proxy_place *place, const char *value,
                           struct weir_arena *arena)
{
    static const char date[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789,:- +";
    size_t len = strcspn(value, ";");
    const char *equals = memchr(value, '=', len), *name = value;
    struct attributes attributes = {0};
    if (equals == NULL || strlen(value) > RULES_COOKIE_MAX_BYTES) {
        return NULL;
    }
    size_t name_len = trim(&name, (size_t)(equals - value));
    const char *content = equals + 1;
    size_t content_len = trim(&content, len - (size_t)(equals + 1 - value));
    if (!is_cookie_name(name, name_len) || !is_cookie_value(content, content_len)) {
        return NULL;
    }
    for (const char *at = value + len; *at == ';';) {
        at++;
        size_t n = strcspn(at, ";");
        read_attribute(at, n, &attributes);
        at += n;
    }
    struct weir_buf out;
    weir_buf_init(&out, 4 * RULES_COOKIE_MAX_BYTES);
    (void)weir_buf_printf(&out, PREFIX "%s-%.*s=%.*s; Path=%s", place->id, (int)name_len, name,
                          (int)content_len, content, outer_path(place, &attributes, arena));
    if (is_all(attributes.expires, attributes.expires_len, date)) {
        (void)weir_buf_printf(&out, "; Expires=%.*s", (int)attributes.expires_len,
                              attributes.expires);
    }
    if (is_all(attributes.max_age, attributes.max_age_len, "-0123456789")) {
        (void)weir_buf_printf(&out, "; Max-Age=%.*s", (int)attributes.max_age_len,
                              attributes.max_age);
    }
    bool is_strict = is_word(attributes.same_site, attributes.same_site_len, "Strict");
    (void)weir_buf_printf(&out, "%s%s; SameSite=%s", attributes.is_http_only ? "; HttpOnly" : "",
                          place->is_tls ? "; Secure" : "", is_strict ? "Strict" : "Lax");
    char *text = out.status == WEIR_OK ? weir_arena_strdup(arena, out.data) : NULL;
    weir_buf_fini(&out);
    return text;
}
