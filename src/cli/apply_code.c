#include "cli/apply_code.h"

#include "cli/code_send.h"

#include <string.h>

static const char *folder_at(struct cli_call *call, const char *document, const char *given)
{
    const char *slash = strrchr(document, '/');
    bool is_here = given[0] == '/' || slash == NULL || strcmp(document, "-") == 0;
    return is_here ? given
                   : weir_arena_printf(call->arena, "%.*s/%s", (int)(slash - document), document,
                                       given);
}

weir_status apply_code_send_one(struct cli_call *call, const char *path, const char *project,
                                const char *place, json_t *spec, struct weir_error *err)
{
    const char *given = json_string_value(json_object_get(spec, "code"));
    if (given == NULL) {
        return WEIR_OK;
    }
    json_t *code = json_object();
    weir_status status = code_send_folder(call, folder_at(call, path, given),
                                          project != NULL ? project : "default", code, err);
    if (status != WEIR_OK) {
        json_decref(code);
        return weir_error_prefix(err, "%s.code: ", place);
    }
    json_object_set_new(spec, "code", code);
    return WEIR_OK;
}

weir_status apply_code_send(struct cli_call *call, const char *path, json_t *document,
                            struct weir_error *err)
{
    const char *project = json_string_value(json_object_get(document, "project"));
    const json_t *pipelines = json_object_get(document, "pipelines");
    json_t *pipeline;
    size_t i;
    json_array_foreach(pipelines, i, pipeline)
    {
        const char *place = weir_arena_printf(call->arena, "$.pipelines[%zu].parameters", i);
        WEIR_TRY(apply_code_send_one(call, path, project, place,
                                     json_object_get(pipeline, "parameters"), err));
    }
    return WEIR_OK;
}
