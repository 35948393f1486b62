#include "notify/receiver.h"

#include "http/http_client.h"
#include "notify/signature.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

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

void notify_signature(const char *secret, const char *time, const char *body, size_t body_len,
                      char out[NOTIFY_SIGNATURE_BYTES])
{
    crypto_auth_hmacsha256_state state;
    unsigned char sum[crypto_auth_hmacsha256_BYTES];
    crypto_auth_hmacsha256_init(&state, (const unsigned char *)secret, strlen(secret));
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)time, strlen(time));
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)".", 1);
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)body, body_len);
    crypto_auth_hmacsha256_final(&state, sum);
    (void)sodium_bin2hex(out, NOTIFY_SIGNATURE_BYTES, sum, sizeof sum);
    sodium_memzero(&state, sizeof state);
}

static weir_status check(const void *options, struct weir_error *err)
{
    const struct weir_receiver_webhook *webhook = options;
    WEIR_TRY(receiver_check_token(webhook->token, err));
    return receiver_check_url(webhook->url, "$.options.url", err);
}

static weir_status send_to(const struct weir_receiver_send *send, struct weir_error *err)
{
    const struct weir_receiver_webhook *webhook = send->options;
    const char *body = weir_json_text(send->message, send->arena);
    char time[24], signature[NOTIFY_SIGNATURE_BYTES];
    const char *headers[4];
    struct weir_http_call call = {.url = webhook->url,
                                  .bearer = webhook->token,
                                  .headers = headers,
                                  .content_type = "application/json",
                                  .body = body,
                                  .body_len = strlen(body)};
    (void)snprintf(time, sizeof time, "%" PRId64, send->now_ms / 1000);
    headers[call.n_headers++] = "User-Agent: weir";
    headers[call.n_headers++] = weir_arena_printf(send->arena, "Weir-Delivery: %s", send->delivery);
    headers[call.n_headers++] = weir_arena_printf(send->arena, "Weir-Timestamp: %s", time);
    if (webhook->secret != NULL) {
        notify_signature(webhook->secret, time, body, call.body_len, signature);
        headers[call.n_headers++] =
            weir_arena_printf(send->arena, "Weir-Signature: v1=%s", signature);
    }
    return receiver_post(send, &call, webhook->ca_file, err);
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
