#include "cli/job/program_files.h"
#include "cli/core/input.h"

#include "cli/admin/project_find.h"
#include "cli/job/code_send.h"

#include <string.h>

#define REQUIREMENTS_MAX_BYTES ((size_t)64 << 10)

static const char *path_beside(struct cli_call *call, const char *document, const char *given)
{
    const char *slash = strrchr(document, '/');
    bool is_here = given[0] == '/' || slash == NULL || strcmp(document, "-") == 0;
    return is_here ? given
                   : weir_arena_printf(call->arena, "%.*s/%s", (int)(slash - document), document,
                                       given);
}

weir_status program_files_read_python(struct cli_call *call, const char *path, json_t *spec,
                                      struct weir_error *err)
{
    char *text;
    size_t len;
    WEIR_TRY(cli_input_read(path, REQUIREMENTS_MAX_BYTES, call->arena, &text, &len, err));
    json_t *value = strlen(text) == len ? json_stringn(text, len) : NULL;
    if (value == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s: it is no text", path);
    }
    json_object_set_new(spec, "python", value);
    return WEIR_OK;
}

static bool names_a_file(const char *python)
{
    size_t len = strlen(python);
    return len > 4 && strcmp(python + len - 4, ".txt") == 0 && strpbrk(python, "\r\n") == NULL;
}

static weir_status send_python(struct cli_call *call, const char *path, const char *place,
                               json_t *spec, struct weir_error *err)
{
    const char *given = json_string_value(json_object_get(spec, "python"));
    if (given == NULL || !names_a_file(given)) {
        return WEIR_OK;
    }
    weir_status status = program_files_read_python(call, path_beside(call, path, given), spec, err);
    return status == WEIR_OK ? WEIR_OK : weir_error_prefix(err, "%s.python: ", place);
}

static weir_status send_code(struct cli_call *call, const char *path, const char *project,
                             const char *place, json_t *spec, struct weir_error *err)
{
    const char *given = json_string_value(json_object_get(spec, "code"));
    if (given == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(cli_project_find(call, project, "submit jobs", &project, err));
    json_t *code = json_object();
    weir_status status = code_send_folder(call, path_beside(call, path, given), project, code, err);
    if (status != WEIR_OK) {
        json_decref(code);
        return weir_error_prefix(err, "%s.code: ", place);
    }
    json_object_set_new(spec, "code", code);
    return WEIR_OK;
}

weir_status program_files_send(struct cli_call *call, const char *path, const char *project,
                               const char *place, json_t *spec, struct weir_error *err)
{
    WEIR_TRY(send_python(call, path, place, spec, err));
    return send_code(call, path, project, place, spec, err);
}

weir_status program_files_send_ion(struct cli_call *call, const char *path, json_t *document,
                                   struct weir_error *err)
{
    const char *project = json_string_value(json_object_get(document, "project"));
    const json_t *pipelines = json_object_get(document, "pipelines");
    json_t *pipeline;
    size_t i;
    json_array_foreach(pipelines, i, pipeline)
    {
        const char *place = weir_arena_printf(call->arena, "$.pipelines[%zu].parameters", i);
        WEIR_TRY(program_files_send(call, path, project, place,
                                    json_object_get(pipeline, "parameters"), err));
    }
    return WEIR_OK;
}
