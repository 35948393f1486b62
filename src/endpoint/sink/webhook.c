#include "endpoint/sink/webhook.h"

#include "base/url.h"
#include "endpoint/endpoint.h"

static const struct weir_option options[] = {
    WEIR_OPT_JSON(weir_sink_webhook, url, "url", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "Where decisions are sent to: http://HOST/PATH or https://HOST/PATH"),
    WEIR_OPT_JSON(weir_sink_webhook, secret, "secret", TEXT, WEIR_OPTION_SECRET, NULL, 0, 0,
                  "Key of the signature in the header Weir-Signature; without one there is none"),
    WEIR_OPT_JSON(weir_sink_webhook, token, "token", TEXT, WEIR_OPTION_SECRET, NULL, 0, 0,
                  "Token of the header Authorization: Bearer"),
    WEIR_OPT_JSON(weir_sink_webhook, ca_file, "ca-file", TEXT, WEIR_OPTION_PATH, NULL, 0, 0,
                  "File on the node with the authorities to trust, in place of the system's"),
};

static weir_status check(const void *options_of, struct weir_error *err)
{
    const struct weir_sink_webhook *webhook = options_of;
    WEIR_TRY(weir_url_check_token(webhook->token, ".token", err));
    return weir_url_check(webhook->url, ".url", err);
}

static const struct weir_endpoint_ops ops = {.check = check};

const struct weir_kind weir_sink_webhook_kind = {
    .name = "webhook",
    .doc =
        "A program that takes decisions as JSON by HTTP POST, up to 200 at once: {\"ion\", "
        "\"pipeline\", \"replica\", \"decisions\": […]}. A decision may come again, with the same "
        "\"id\". With a secret there is a signature that the program can check. Until it answers "
        "with 2xx, decisions wait in the replica's outbox; those that it answers with 400, 413 or "
        "422 even alone are set aside in the replica's refused.jsonl.",
    WEIR_KIND_OPTIONS(weir_sink_webhook, options),
    .ops = &ops,
};
