#include "endpoint/broker.h"

#include <stdlib.h>
#include <string.h>

#define PORT     1883
#define PORT_TLS 8883

/* "HOST:PORT" or "[ADDRESS]:PORT": where the host ends. */
static const char *end_of_host(const char *text)
{
    const char *bracket = text[0] == '[' ? strchr(text, ']') : NULL;
    return bracket != NULL ? bracket + 1 : text + strcspn(text, ":/");
}

static weir_status refuse(const char *url, struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_INVALID,
                          ".url: \"%.200s\" is no address of a broker: write mqtt://HOST[:PORT] or "
                          "mqtts://HOST[:PORT]; user and password are options of their own",
                          url);
}

weir_status weir_broker_place_read(const char *url, struct weir_broker_place *out,
                                   struct weir_error *err)
{
    struct weir_broker_place place = {.is_tls = strncmp(url, "mqtts://", 8) == 0};
    bool is_plain = strncmp(url, "mqtt://", 7) == 0;
    const char *host = url + (place.is_tls ? 8 : 7);
    if ((!is_plain && !place.is_tls) || strpbrk(url, "@ \t\n?#") != NULL) {
        return refuse(strchr(url, '@') != NULL ? "mqtt://…@…" : url, err);
    }
    const char *end = end_of_host(host);
    bool is_bracketed = host[0] == '[';
    size_t len = (size_t)(end - host) - (is_bracketed ? 2 : 0);
    place.port = place.is_tls ? PORT_TLS : PORT;
    if (*end == ':') {
        char *rest;
        place.port = strtoll(end + 1, &rest, 10);
        end = rest == end + 1 ? end : rest;
    }
    if (end == host || (*end != '\0' && strcmp(end, "/") != 0) || len == 0 ||
        len >= sizeof place.host || place.port < 1 || place.port > 65535) {
        return refuse(url, err);
    }
    memcpy(place.host, host + (is_bracketed ? 1 : 0), len);
    *out = place;
    return WEIR_OK;
}

weir_status weir_broker_check(const struct weir_broker *broker, struct weir_error *err)
{
    struct weir_broker_place place;
    WEIR_TRY(weir_broker_place_read(broker->url, &place, err));
    if (broker->password != NULL && broker->user == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              ".user: a password belongs to a user: name it");
    }
    if (broker->ca_file != NULL && !place.is_tls) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              ".ca_file: mqtt:// is not encrypted: write mqtts:// in the address");
    }
    return WEIR_OK;
}

weir_status weir_broker_check_topic(const char *topic, const char *place, struct weir_error *err)
{
    if (topic[0] == '\0' || topic[0] == '$' || strpbrk(topic, "+#\n\t") != NULL ||
        strlen(topic) > WEIR_BROKER_TOPIC_MAX) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "%s: \"%.80s\" is no topic to send to: 1 to %d bytes without +, # and "
            "control characters, and no $ in front",
            place, topic, WEIR_BROKER_TOPIC_MAX);
    }
    return WEIR_OK;
}
