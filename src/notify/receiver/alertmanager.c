#include "notify/receiver.h"

#include "base/clock.h"
#include "base/url.h"
#include "http/post.h"
#include "notify/notify.h"

#include <string.h>

/* Longer than two repeats: Alertmanager ends an alert by itself at this age. */
#define LASTS_MS (3 * WEIR_RECEIVER_RESEND_MS)

struct weir_receiver_alertmanager {
    char *url, *user, *password_file, *token, *ca_file;
};

static const struct weir_option options_of[] = {
    WEIR_OPT_JSON(weir_receiver_alertmanager, url, "url", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "Of the Alertmanager, without /api/v2: http://HOST:9093"),
    WEIR_OPT_JSON(weir_receiver_alertmanager, user, "user", TEXT, 0, NULL, 0, 0,
                  "User of basic authentication"),
    WEIR_OPT_JSON(weir_receiver_alertmanager, password_file, "password-file", TEXT, 0, NULL, 0, 0,
                  "File on the server's machine whose first line is the user's password"),
    WEIR_OPT_JSON(weir_receiver_alertmanager, token, "token", TEXT, WEIR_OPTION_SECRET, NULL, 0, 0,
                  "Token of the header Authorization: Bearer"),
    WEIR_OPT_JSON(weir_receiver_alertmanager, ca_file, "ca-file", TEXT, 0, NULL, 0, 0,
                  "File with the authorities to trust, in place of the system's"),
};

static weir_status check(const void *options, struct weir_error *err)
{
    const struct weir_receiver_alertmanager *manager = options;
    WEIR_TRY(weir_url_check_token(manager->token, "$.options.token", err));
    if ((manager->user != NULL) != (manager->password_file != NULL)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.options: user and password_file belong together");
    }
    if (manager->user != NULL && manager->token != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.options: a user or a token, not both: there is one header "
                              "Authorization");
    }
    return weir_url_check(manager->url, "$.options.url", err);
}

static const char *text_of(const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));
    return text != NULL ? text : "";
}

/* The same labels make it the same alert there: nothing that changes while it lasts. */
static json_t *one(const struct weir_receiver_send *send, const json_t *alert)
{
    char ends[WEIR_TIME_TEXT_BYTES];
    const char *resolved = json_string_value(json_object_get(alert, "resolved"));
    const char *server = text_of(send->message, "server");
    weir_time_format(send->now_ms + LASTS_MS, ends);
    return json_pack(
        "{s:{s:s,s:s,s:s,s:s,s:s,s:s,s:s},s:{s:s,s:s},s:s,s:s,s:s*}", "labels", "alertname",
        text_of(alert, "kind"), "severity", text_of(alert, "severity"), "subject",
        text_of(alert, "subject"), "key", text_of(alert, "key"), "rule",
        text_of(send->message, "rule"), "project", text_of(send->message, "project"), "weir_alert",
        text_of(alert, "id"), "annotations", "summary", text_of(alert, "message"), "description",
        text_of(alert, "message"), "startsAt", text_of(alert, "raised"), "endsAt",
        resolved != NULL ? resolved : ends, "generatorURL", server[0] != '\0' ? server : NULL);
}

static weir_status send_to(const struct weir_receiver_send *send, struct weir_error *err)
{
    const struct weir_receiver_alertmanager *manager = send->options;
    const json_t *alerts = json_object_get(send->message, "alerts"), *alert;
    const char *slash = strrchr(manager->url, '/');
    struct weir_post post = {.token = manager->token, .ca_file = manager->ca_file};
    char *password;
    json_t *list = json_array();
    size_t i;
    json_array_foreach(alerts, i, alert)
    {
        json_array_append_new(list, one(send, alert));
    }
    post.body = weir_json_text(list, send->arena);
    json_decref(list);
    bool has_slash = slash != NULL && slash[1] == '\0';
    post.url =
        weir_arena_printf(send->arena, "%s%sapi/v2/alerts", manager->url, has_slash ? "" : "/");
    if (manager->user != NULL) {
        WEIR_TRY(receiver_read_secret(send, manager->password_file, &password, err));
        post.basic = weir_arena_printf(send->arena, "%s:%s", manager->user, password);
    }
    return receiver_post(send, &post, err);
}

static const struct weir_receiver_ops ops = {.check = check, .send = send_to, .forgets = true};

const struct weir_kind weir_receiver_alertmanager = {
    .name = "alertmanager",
    .doc = "A Prometheus Alertmanager: alerts go to its API (/api/v2/alerts) with labels, again "
           "every 5 minutes as long as they last, and once more when they are over.",
    WEIR_KIND_OPTIONS(weir_receiver_alertmanager, options_of),
    .ops = &ops,
};
