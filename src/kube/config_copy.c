#include "kube/config_copy.h"

static void copy_texts(const char **texts, size_t n, struct weir_arena *arena)
{
    for (size_t i = 0; i < n; i++) {
        texts[i] = weir_arena_strdup(arena, texts[i]);
    }
}

static const char *const *copy_list(const char *const *list, struct weir_arena *arena)
{
    size_t n = 0;
    while (list != NULL && list[n] != NULL) {
        n++;
    }
    const char **copy = WEIR_ARENA_ARRAY(arena, n + 1, const char *);
    for (size_t i = 0; i < n; i++) {
        copy[i] = weir_arena_strdup(arena, list[i]);
    }
    return list != NULL ? copy : NULL;
}

void kube_config_copy(const struct weir_kube_config *config, struct weir_arena *arena,
                      struct weir_kube_config *out)
{
    *out = *config;
    const char **texts[] = {&out->file,           &out->context,          &out->from,
                            &out->namespace_name, &out->ca_pem,           &out->server_name,
                            &out->proxy,          &out->cert_pem,         &out->key_pem,
                            &out->token,          &out->token_file,       &out->as_user,
                            &out->exec.command,   &out->exec.api_version, &out->exec.hint};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(texts); i++) {
        copy_texts(texts[i], 1, arena);
    }
    copy_texts(out->servers, out->n_servers, arena);
    copy_texts(out->as_groups, out->n_as_groups, arena);
    out->exec.words = copy_list(config->exec.words, arena);
    out->exec.env = copy_list(config->exec.env, arena);
}
