/* The pure part of a rendezvous: texts, and what ranks say of themselves. */
#include "agent/rendezvous/rendezvous.h"

#include "base/buf.h"
#include "base/json.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#define NOT_A_TEXT "a text of \"meet\" is not of the form {{RANKS|ITEM|SEPARATOR}}: \"%.60s\""

/* "{{" … "}}", taken apart; text is borrowed. */
struct place {
    size_t first, last;
    const char *item, *separator;
    size_t item_len, separator_len;
};

static bool read_rank(const char **at, size_t *out)
{
    char *end;
    if (**at < '0' || **at > '9') {
        return false;
    }
    unsigned long value = strtoul(*at, &end, 10);
    *out = (size_t)value;
    bool is_good = end - *at <= 5;
    *at = end;
    return is_good;
}

/* What stands between the braces. */
static bool read_place(const char *text, size_t len, struct place *out)
{
    const char *at = text, *end = text + len;
    if (!read_rank(&at, &out->first)) {
        return false;
    }
    out->last = out->first;
    if (*at == '-') {
        at++;
        if (!read_rank(&at, &out->last)) {
            return false;
        }
    }
    if (at >= end || *at != '|' || out->last < out->first) {
        return false;
    }
    out->item = at + 1;
    const char *bar = memchr(out->item, '|', (size_t)(end - out->item));
    out->item_len = (size_t)((bar != NULL ? bar : end) - out->item);
    out->separator = bar != NULL ? bar + 1 : end;
    out->separator_len = (size_t)(end - out->separator);
    return true;
}

static void add_item(struct weir_buf *buf, const struct place *place, size_t rank,
                     const struct rendezvous_member *member)
{
    static const char *const names[] = {"@address", "@port", "@rank", "@node"};
    char port[16], number[24];
    (void)snprintf(port, sizeof port, "%d", member->port);
    (void)snprintf(number, sizeof number, "%zu", rank);
    const char *const values[] = {member->address, port, number, member->node};
    for (size_t i = 0; i < place->item_len;) {
        size_t k = 0, left = place->item_len - i, name_len = 0;
        for (; k < WEIR_ARRAY_LEN(names); k++) {
            name_len = strlen(names[k]);
            if (name_len <= left && strncmp(place->item + i, names[k], name_len) == 0) {
                break;
            }
        }
        if (k < WEIR_ARRAY_LEN(names)) {
            (void)weir_buf_puts(buf, values[k]);
            i += name_len;
        } else {
            (void)weir_buf_append(buf, place->item + i, 1);
            i++;
        }
    }
}

static bool is_word(const char *text, size_t len, const char *word)
{
    return len == strlen(word) && strncmp(text, word, len) == 0;
}

static weir_status add_place(struct weir_buf *buf, const char *text, size_t len,
                             const struct rendezvous_known *known, struct weir_error *err)
{
    struct place place;
    if (is_word(text, len, "interface")) {
        (void)weir_buf_puts(buf, known->interface);
        return WEIR_OK;
    }
    if (is_word(text, len, "address")) {
        (void)weir_buf_puts(buf, known->address);
        return WEIR_OK;
    }
    if (is_word(text, len, "restarts")) {
        (void)weir_buf_printf(buf, "%lld", (long long)known->n_restarts);
        return WEIR_OK;
    }
    if (!read_place(text, len, &place) || place.last >= known->n_members) {
        return weir_error_set(err, WEIR_ERR_INVALID, NOT_A_TEXT, text);
    }
    for (size_t rank = place.first; rank <= place.last && buf->status == WEIR_OK; rank++) {
        if (rank > place.first) {
            (void)weir_buf_append(buf, place.separator, place.separator_len);
        }
        add_item(buf, &place, rank, &known->members[rank]);
    }
    return WEIR_OK;
}

weir_status rendezvous_fill(const char *text, const struct rendezvous_known *known,
                            struct weir_arena *arena, char **out, struct weir_error *err)
{
    WEIR_AUTO(weir_buf_fini) struct weir_buf buf;
    weir_buf_init(&buf, RENDEZVOUS_TEXT_MAX);
    for (const char *at = text; *at != '\0';) {
        const char *begin = strstr(at, "{{");
        const char *end = begin != NULL ? strstr(begin + 2, "}}") : NULL;
        if (begin == NULL) {
            (void)weir_buf_puts(&buf, at);
            break;
        }
        (void)weir_buf_append(&buf, at, (size_t)(begin - at));
        if (end == NULL) {
            return weir_error_set(err, WEIR_ERR_INVALID, NOT_A_TEXT, begin);
        }
        WEIR_TRY(add_place(&buf, begin + 2, (size_t)(end - begin - 2), known, err));
        at = end + 2;
    }
    if (buf.status != WEIR_OK) {
        return weir_error_set(err, buf.status, "a text of \"meet\" has more than %zu bytes",
                              RENDEZVOUS_TEXT_MAX);
    }
    *out = weir_arena_strdup(arena, buf.data);
    return WEIR_OK;
}

json_t *rendezvous_member_write(const struct rendezvous_member *member)
{
    return json_pack("{s:s,s:i,s:s}", "address", member->address, "port", member->port, "node",
                     member->node);
}

static bool is_address(const char *text)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    return text != NULL && strlen(text) < RENDEZVOUS_ADDRESS_BYTES &&
           (inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, text, bytes) == 1);
}

weir_status rendezvous_member_read(const char *text, struct rendezvous_member *out,
                                   struct weir_error *err)
{
    json_error_t where;
    WEIR_AUTO(weir_json_auto_free) json_t *object = json_loads(text, 0, &where);
    const char *address = json_string_value(json_object_get(object, "address"));
    const char *node = json_string_value(json_object_get(object, "node"));
    json_int_t port = json_integer_value(json_object_get(object, "port"));
    if (!is_address(address) || node == NULL || strlen(node) >= sizeof out->node || port < 0 ||
        port > 65535 || strpbrk(node, " \t\n\"'\\{}") != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "what another rank says of itself cannot be read: %.100s", text);
    }
    *out = (struct rendezvous_member){.port = (int)port};
    (void)snprintf(out->address, sizeof out->address, "%s", address);
    (void)snprintf(out->node, sizeof out->node, "%s", node);
    return WEIR_OK;
}

const char *rendezvous_key(char out[RENDEZVOUS_KEY_BYTES], int64_t rank)
{
    (void)snprintf(out, RENDEZVOUS_KEY_BYTES, "at.%04d", (int)(rank % 10000));
    return out;
}
