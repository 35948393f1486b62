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

weir_status apply_code_send(struct cli_call *call, const char *path, json_t *document,
                            struct weir_error *err)
{
    const char *project = json_string_value(json_object_get(document, "project"));
    const json_t *pipelines = json_object_get(document, "pipelines");
    json_t *pipeline;
    size_t i;
    json_array_foreach(pipelines, i, pipeline)
    {
        json_t *parameters = json_object_get(pipeline, "parameters");
        const char *given = json_string_value(json_object_get(parameters, "code"));
        if (given == NULL) {
            continue;
        }
        json_t *code = json_object();
        weir_status status = code_send_folder(call, folder_at(call, path, given),
                                              project != NULL ? project : "default", code, err);
        if (status != WEIR_OK) {
            json_decref(code);
            return weir_error_prefix(err, "$.pipelines[%zu].parameters.code: ", i);
        }
        json_object_set_new(parameters, "code", code);
    }
    return WEIR_OK;
}
