#include "gateway/front.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CALLER_MAX_BYTES ((size_t)4 << 20)
#define TIMEOUT_MAX_MS   ((int64_t)10 * 60 * 1000)
#define TOKEN_MAX_BYTES  4096

const char *front_token(const char *authorization)
{
    static const char bearer[] = "Bearer ";
    if (authorization == NULL || strncasecmp(authorization, bearer, sizeof bearer - 1) != 0) {
        return NULL;
    }
    return authorization + sizeof bearer - 1;
}

int64_t front_timeout_ms(const char *text)
{
    if (text == NULL || text[strspn(text, "0123456789")] != '\0' || strlen(text) > 12) {
        return 0;
    }
    return WEIR_MIN((int64_t)strtoll(text, NULL, 10), TIMEOUT_MAX_MS);
}

struct caller *front_remembered(struct weir_gateway *gateway, const char *token)
{
    uint64_t generation;
    return token == NULL || strlen(token) > TOKEN_MAX_BYTES
               ? NULL
               : callers_find(gateway->callers, token, weir_mono_ms(), &generation);
}

weir_status front_caller(struct weir_gateway *gateway, const char *token,
                         const struct weir_http_request *request, struct caller **out,
                         struct weir_error *err)
{
    uint64_t generation = 0;
    int64_t now_ms = weir_mono_ms();
    if (token != NULL && strlen(token) > TOKEN_MAX_BYTES) {
        return weir_error_set(err, WEIR_ERR_UNAUTH, "the token is too long to be one");
    }
    if (token != NULL) {
        struct caller *found = callers_find(gateway->callers, token, now_ms, &generation);
        if (found != NULL) {
            *out = found;
            return WEIR_OK;
        }
    }
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    struct weir_gateway_caller about = {0};
    weir_arena_init(&arena, CALLER_MAX_BYTES);
    WEIR_TRY(gateway->config.authorise(gateway->config.authorise_context, token, request, &arena,
                                       &about, err));
    struct caller *caller = caller_make(&about);
    int64_t keep_ms = CALLERS_KEEP_MS;
    if (about.expires_ms > 0) {
        keep_ms = WEIR_MIN(keep_ms, about.expires_ms - weir_time_ms());
    }
    if (token != NULL) {
        callers_remember(gateway->callers, token, caller, generation, now_ms + keep_ms);
    }
    *out = caller;
    return WEIR_OK;
}

weir_status front_find(const struct weir_gateway_table *table, const struct caller *caller,
                       const char *name, int64_t version,
                       const struct weir_gateway_deployment **out, struct weir_error *err)
{
    const struct weir_gateway_deployment *found = weir_gateway_table_find(table, name);
    if (found == NULL || !caller_may(caller, found->project)) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "there is no deployment \"%.80s\" that you may send requests to: "
                              "`weir get deployments` lists them",
                              name);
    }
    if (version != 0 && weir_gateway_version_find(found, version) < 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "the deployment \"%s\" does not serve version %lld", name,
                              (long long)version);
    }
    *out = found;
    return WEIR_OK;
}

bool front_is_ready(const struct weir_gateway_deployment *deployment, int64_t version)
{
    if (!weir_gateway_has_replica(deployment)) {
        return deployment->can_start;
    }
    for (size_t i = 0; i < deployment->n_versions; i++) {
        const struct weir_gateway_version *v = &deployment->versions[i];
        bool is_meant = version != 0 ? v->version == version : v->weight_ppm > 0;
        for (size_t j = 0; j < deployment->n_replicas && is_meant; j++) {
            if ((deployment->replicas[j].ready >> i & 1) != 0) {
                return true;
            }
        }
    }
    return false;
}
