#include "notify/receiver.h"

#include "base/url.h"
#include "http/post.h"

struct weir_receiver_webhook {
    char *url, *secret, *token, *ca_file;
};

static const struct weir_option options_of[] = {
    WEIR_OPT_JSON(weir_receiver_webhook, url, "url", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "Where messages are sent to: http://HOST/PATH or https://HOST/PATH"),
    WEIR_OPT_JSON(weir_receiver_webhook, secret, "secret", TEXT, WEIR_OPTION_SECRET, NULL, 0, 0,
                  "Key of the signature in the header Weir-Signature; without one there is none"),
    WEIR_OPT_JSON(weir_receiver_webhook, token, "token", TEXT, WEIR_OPTION_SECRET, NULL, 0, 0,
                  "Token of the header Authorization: Bearer"),
    WEIR_OPT_JSON(weir_receiver_webhook, ca_file, "ca-file", TEXT, 0, NULL, 0, 0,
                  "File with the authorities to trust, in place of the system's"),
};

static weir_status check(const void *options, struct weir_error *err)
{
    const struct weir_receiver_webhook *webhook = options;
    WEIR_TRY(weir_url_check_token(webhook->token, "$.options.token", err));
    return weir_url_check(webhook->url, "$.options.url", err);
}

static weir_status send_to(const struct weir_receiver_send *send, struct weir_error *err)
{
    const struct weir_receiver_webhook *webhook = send->options;
    struct weir_post post = {.url = webhook->url,
                             .ca_file = webhook->ca_file,
                             .token = webhook->token,
                             .secret = webhook->secret,
                             .id = send->delivery,
                             .body = weir_json_text(send->message, send->arena)};
    return receiver_post(send, &post, err);
}

static const struct weir_receiver_ops ops = {.check = check, .send = send_to};

const struct weir_kind weir_receiver_webhook = {
    .name = "webhook",
    .doc = "A program that takes messages as JSON by HTTP POST. Each has an identifier in "
           "Weir-Delivery, the same with each try, and with a secret a signature that the program "
           "can check.",
    WEIR_KIND_OPTIONS(weir_receiver_webhook, options_of),
    .ops = &ops,
};
