#include "api/model/finds.h"

#include "base/json.h"
#include "endpoint/stage/detect.h"
#include "vision/detector.h"

#include <math.h>
#include <string.h>

/* A signature's ports, in the arena. */
static struct weir_detector_port *ports_of(const json_t *list, struct weir_arena *arena)
{
    const json_t *port, *side;
    size_t i, k;
    struct weir_detector_port *ports =
        WEIR_ARENA_ARRAY(arena, json_array_size(list) + 1, struct weir_detector_port);
    json_array_foreach(list, i, port)
    {
        const char *name = json_string_value(json_object_get(port, "name"));
        const char *type = json_string_value(json_object_get(port, "datatype"));
        const json_t *shape = json_object_get(port, "shape");
        int64_t *dims = WEIR_ARENA_ARRAY(arena, json_array_size(shape) + 1, int64_t);
        json_array_foreach(shape, k, side)
        {
            dims[k] = json_integer_value(side);
        }
        ports[i] =
            (struct weir_detector_port){.name = weir_arena_strdup(arena, name != NULL ? name : ""),
                                        .dims = dims,
                                        .rank = json_array_size(shape),
                                        .is_u8 = type != NULL && strcmp(type, "UINT8") == 0};
    }
    return ports;
}

weir_status api_finds(const char *signature, const struct weir_stage_detect *detect,
                      struct weir_arena *arena, char **out_why, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free)
    json_t *json = signature != NULL ? json_loads(signature, 0, NULL) : NULL;
    const json_t *inputs = json_object_get(json, "inputs");
    const json_t *outputs = json_object_get(json, "outputs");
    const struct weir_detector_options options = {.kind = detect != NULL ? detect->as : NULL,
                                                  .of_kind =
                                                      detect != NULL ? detect->options : NULL,
                                                  .threshold = NAN,
                                                  .overlap = NAN};
    struct weir_detector *detector;
    const char *why;
    *out_why = NULL;
    if (json_array_size(inputs) == 0 || json_array_size(outputs) == 0) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_detector_create(&options, ports_of(inputs, arena), json_array_size(inputs),
                                  ports_of(outputs, arena), json_array_size(outputs), &detector,
                                  &why, err));
    *out_why = weir_arena_strdup(arena, why);
    weir_detector_destroy(detector);
    return WEIR_OK;
}
