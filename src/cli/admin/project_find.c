#include "cli/admin/project_find.h"

#include "base/names.h"

#include <string.h>

#define FALLBACK "default"

weir_status cli_project_find(struct cli_call *call, const char *given, const char *right,
                             const char **out, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *session = NULL;
    const char *name, *only = NULL;
    struct weir_names names = {0};
    json_t *rights;
    size_t n = 0;
    if (given != NULL) {
        *out = given;
        return WEIR_OK;
    }
    WEIR_TRY(cli_rest(call, "GET", "/api/v1/session", NULL, &session, err));
    bool is_everywhere = cli_has_text(json_object_get(session, "rights"), right);
    json_object_foreach(json_object_get(session, "projects"), name, rights)
    {
        if (cli_has_text(rights, right)) {
            only = weir_arena_strdup(call->arena, name);
            n++;
            is_everywhere = is_everywhere || strcmp(name, FALLBACK) == 0;
            weir_names_add(&names, name, strlen(name));
        }
    }
    if (!is_everywhere && n > 1) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "which project? You may %s in %s: name one with --project", right,
                              names.text);
    }
    *out = is_everywhere || n == 0 ? FALLBACK : only;
    return WEIR_OK;
}
