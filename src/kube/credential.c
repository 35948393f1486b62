#include "kube/credential.h"

#include "base/clock.h"
#include "base/command.h"
#include "base/file.h"
#include "kube/client.h"

#include <stdlib.h>
#include <string.h>

#define FILE_FRESH_MS   60000
#define EXPIRES_SOON_MS 60000
#define EXEC_MS         30000
#define TOKEN_MAX_BYTES ((size_t)16 << 10)

static void forget(char **secret)
{
    if (*secret != NULL) {
        explicit_bzero(*secret, strlen(*secret));
    }
    free(*secret);
    *secret = NULL;
}

void kube_credential_fini(struct kube_credential *credential)
{
    forget(&credential->token);
    forget(&credential->cert_pem);
    forget(&credential->key_pem);
    credential->got_ms = 0;
}

static bool is_same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static void replace(char **secret, const char *text)
{
    char *copy = text != NULL ? weir_xstrdup(text) : NULL;
    forget(secret);
    *secret = copy;
}

static void take(struct kube_credential *credential, const char *token, const char *cert_pem,
                 const char *key_pem, bool *out_is_other)
{
    *out_is_other =
        !is_same(credential->cert_pem, cert_pem) || !is_same(credential->key_pem, key_pem);
    replace(&credential->token, token);
    replace(&credential->cert_pem, cert_pem);
    replace(&credential->key_pem, key_pem);
    credential->got_ms = weir_mono_ms();
}

static weir_status read_token(struct kube_credential *credential, struct weir_arena *arena,
                              bool *out_is_other, struct weir_error *err)
{
    const struct weir_kube_config *config = credential->config;
    char *text;
    size_t len;
    WEIR_TRY(weir_file_read(config->token_file, TOKEN_MAX_BYTES, arena, &text, &len, err));
    text[strcspn(text, "\r\n")] = '\0';
    take(credential, text, config->cert_pem, config->key_pem, out_is_other);
    return WEIR_OK;
}

weir_status kube_credential_take(struct kube_credential *credential, const json_t *printed,
                                 bool *out_is_other, struct weir_error *err)
{
    const struct weir_kube_config *config = credential->config;
    const char *version = weir_kube_text(printed, "apiVersion");
    const char *kind = weir_kube_text(printed, "kind");
    const char *token = weir_kube_text(printed, "status.token");
    const char *cert = weir_kube_text(printed, "status.clientCertificateData");
    const char *key = weir_kube_text(printed, "status.clientKeyData");
    if (!is_same(version, config->exec.api_version) || !is_same(kind, "ExecCredential")) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s: exec: %s prints no ExecCredential of %s",
                              config->from, config->exec.command, config->exec.api_version);
    }
    if ((token == NULL && cert == NULL) || (cert != NULL) != (key != NULL)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: exec: what %s prints has neither status.token nor "
                              "status.clientCertificateData with clientKeyData",
                              config->from, config->exec.command);
    }
    credential->expires_ms =
        weir_kube_time_ms(weir_kube_text(printed, "status.expirationTimestamp"));
    take(credential, token, cert != NULL ? cert : config->cert_pem,
         cert != NULL ? key : config->key_pem, out_is_other);
    return WEIR_OK;
}

/* Our environment for it, and what it is to know: nobody is there to answer questions. */
static const char **exec_env(const struct weir_kube_exec *exec, struct weir_arena *arena)
{
    size_t n = 0;
    while (exec->env[n] != NULL) {
        n++;
    }
    const char **env = WEIR_ARENA_ARRAY(arena, n + 2, const char *);
    memcpy((void *)env, (const void *)exec->env, n * sizeof env[0]);
    env[n] = weir_arena_printf(arena,
                               "KUBERNETES_EXEC_INFO={\"apiVersion\":\"%s\",\"kind\":"
                               "\"ExecCredential\",\"spec\":{\"interactive\":false}}",
                               exec->api_version);
    return env;
}

static weir_status run_exec(struct kube_credential *credential, struct weir_arena *arena,
                            bool *out_is_other, struct weir_error *err)
{
    const struct weir_kube_exec *exec = &credential->config->exec;
    const struct weir_command command = {
        .words = exec->words, .env = exec_env(exec, arena), .timeout_ms = EXEC_MS};
    struct weir_command_answer answer;
    json_t *printed = NULL;
    weir_status status = weir_command_run(&command, arena, &answer, err);
    if (status == WEIR_ERR_NOT_FOUND) {
        return weir_error_set(err, status, "%s: exec: there is no %s%s%s", credential->config->from,
                              exec->command, exec->hint != NULL ? ": " : "",
                              exec->hint != NULL ? exec->hint : "");
    }
    WEIR_TRY(status);
    if (answer.exit_status != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s: exec: %s ended with %d: %.300s",
                              credential->config->from, exec->command, answer.exit_status,
                              answer.said);
    }
    WEIR_TRY(weir_json_parse(answer.out, strlen(answer.out), exec->command, &printed, err));
    status = kube_credential_take(credential, printed, out_is_other, err);
    json_decref(printed);
    return status;
}

static bool is_good(const struct kube_credential *credential)
{
    const struct weir_kube_config *config = credential->config;
    if (credential->got_ms == 0) {
        return false;
    }
    if (config->exec.command != NULL) {
        return credential->expires_ms == 0 || weir_system_clock.now_ms(weir_system_clock.context) <
                                                  credential->expires_ms - EXPIRES_SOON_MS;
    }
    return config->token_file == NULL || weir_mono_ms() - credential->got_ms < FILE_FRESH_MS;
}

weir_status kube_credential_get(struct kube_credential *credential, bool *out_is_other,
                                struct weir_error *err)
{
    const struct weir_kube_config *config = credential->config;
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    *out_is_other = false;
    if (is_good(credential)) {
        return WEIR_OK;
    }
    if (config->exec.command != NULL) {
        return run_exec(credential, &arena, out_is_other, err);
    }
    if (config->token_file != NULL) {
        return read_token(credential, &arena, out_is_other, err);
    }
    take(credential, config->token, config->cert_pem, config->key_pem, out_is_other);
    return WEIR_OK;
}

bool kube_credential_refused(struct kube_credential *credential)
{
    credential->got_ms = 0;
    return credential->config->exec.command != NULL || credential->config->token_file != NULL;
}
