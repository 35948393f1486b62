#include "endpoint/door/webhook.h"

#include "base/url.h"
#include "endpoint/door.h"

static const struct weir_option options[] = {
    WEIR_OPT_JSON(weir_door_webhook, url, "url", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "Where commands are sent to: http://HOST/PATH or https://HOST/PATH"),
    WEIR_OPT_JSON(weir_door_webhook, secret, "secret", TEXT, WEIR_OPTION_SECRET, NULL, 0, 0,
                  "Key of the signature: whsec_ and the base64 of 24 to 64 bytes, or any text; "
                  "without one there is no signature"),
    WEIR_OPT_JSON(weir_door_webhook, token, "token", TEXT, WEIR_OPTION_SECRET, NULL, 0, 0,
                  "Token of the header Authorization: Bearer"),
    WEIR_OPT_JSON(weir_door_webhook, ca_file, "ca-file", TEXT, WEIR_OPTION_PATH, NULL, 0, 0,
                  "File on the node with the authorities to trust, in place of the system's"),
};

static weir_status check(const void *options_of, struct weir_error *err)
{
    const struct weir_door_webhook *webhook = options_of;
    WEIR_TRY(weir_url_check_token(webhook->token, ".token", err));
    return weir_url_check(webhook->url, ".url", err);
}

static const struct weir_endpoint_ops ops = {.check = check};

const struct weir_kind weir_door_webhook_kind = {
    .name = "webhook",
    .doc =
        "A controller that takes commands by HTTP POST, as Standard Webhooks 1.0 have it: "
        "{\"type\": \"door.command\", \"timestamp\", \"data\": the command}, with the headers "
        "webhook-id, webhook-timestamp and, with a secret, webhook-signature. It answers 2xx with "
        "{\"answer\": done, repeated, late, refused or jammed}; 2xx without such a body is done, "
        "4xx is refused. Anything else is tried again until the command is not valid any more. "
        "Redirects are not followed.",
    WEIR_KIND_OPTIONS(weir_door_webhook, options),
    .ops = &ops,
};
