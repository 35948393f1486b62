/** The OpenAPI 3.0 document, made from the route table and the record tables. */
#include "api/api_private.h"

#include "base/kind.h"

#include <ctype.h>
#include <string.h>

static json_t *field_schema(const struct weir_field *field)
{
    static const char *const types[] = {
        [WEIR_FIELD_TYPE_TEXT] = "string", [WEIR_FIELD_TYPE_INT] = "integer",
        [WEIR_FIELD_TYPE_F64] = "number",  [WEIR_FIELD_TYPE_BOOL] = "boolean",
        [WEIR_FIELD_TYPE_TIME] = "string",
    };
    json_t *schema = json_object();
    if (field->type != WEIR_FIELD_TYPE_JSON) {
        json_object_set_new(schema, "type", json_string(types[field->type]));
    }
    if (field->type == WEIR_FIELD_TYPE_TEXT) {
        json_object_set_new(schema, "maxLength",
                            json_integer((json_int_t)weir_field_max_bytes(field)));
    }
    if (field->type == WEIR_FIELD_TYPE_TIME) {
        json_object_set_new(schema, "format", json_string("date-time"));
    }
    if (field->type == WEIR_FIELD_TYPE_INT) {
        json_object_set_new(schema, "format", json_string("int64"));
    }
    json_object_set_new(schema, "nullable", json_true());
    json_object_set_new(schema, "readOnly",
                        json_boolean((field->flags & WEIR_FIELD_READ_ONLY) != 0));
    json_object_set_new(schema, "description",
                        json_sprintf("%s%s%s%s", field->doc, field->unit[0] != '\0' ? " (" : "",
                                     field->unit, field->unit[0] != '\0' ? ")" : ""));
    return schema;
}

static json_t *resource_schema(const struct weir_resource *resource)
{
    json_t *properties = json_object(), *required = json_array();
    for (size_t i = 0; i < resource->n_fields; i++) {
        const struct weir_field *field = &resource->fields[i];
        if (field->flags & WEIR_FIELD_SECRET) {
            continue;
        }
        json_object_set_new(properties, field->name, field_schema(field));
        if (field->flags & WEIR_FIELD_REQUIRED) {
            json_array_append_new(required, json_string(field->name));
        }
    }
    json_t *schema = json_pack("{s:s,s:o}", "type", "object", "properties", properties);
    if (json_array_size(required) > 0) {
        json_object_set(schema, "required", required);
    }
    json_decref(required);
    return schema;
}

static json_t *schema_ref(const struct weir_resource *resource)
{
    return json_pack("{s:o}", "$ref", json_sprintf("#/components/schemas/%s", resource->name));
}

static json_t *answer_schema(const struct api_route *route)
{
    if (route->out == NULL) {
        return json_pack("{s:s}", "type", "object");
    }
    if (route->flags & API_LIST) {
        return json_pack("{s:s,s:{s:{s:s,s:o},s:{s:s,s:b}}}", "type", "object", "properties",
                         "items", "type", "array", "items", schema_ref(route->out), "next", "type",
                         "string", "nullable", 1);
    }
    return schema_ref(route->out);
}

static void add_parameter(json_t *parameters, const char *name, size_t len, const char *in)
{
    json_array_append_new(parameters, json_pack("{s:s%,s:s,s:b,s:{s:s}}", "name", name, len, "in",
                                                in, "required", strcmp(in, "path") == 0, "schema",
                                                "type", "string"));
}

static json_t *parameters_of(const struct api_route *route)
{
    json_t *parameters = json_array();
    for (const char *p = strchr(route->pattern, '{'); p != NULL; p = strchr(p + 1, '{')) {
        add_parameter(parameters, p + 1, strcspn(p + 1, "}"), "path");
    }
    for (const char *p = route->query; p != NULL && *p != '\0';) {
        size_t len = strcspn(p, " ");
        add_parameter(parameters, p, len, "query");
        p += len + (p[len] == ' ');
    }
    return parameters;
}

static const char *content_of(const struct api_route *route)
{
    if (route->flags & API_EVENTS) {
        return "text/event-stream";
    }
    return route->flags & API_BYTES_OUT ? "application/octet-stream" : "application/json";
}

static json_t *operation_of(const struct api_route *route)
{
    json_t *operation =
        json_pack("{s:s,s:o}", "summary", route->summary, "parameters", parameters_of(route));
    bool is_json_out = (route->flags & (API_BYTES_OUT | API_EVENTS)) == 0;
    json_t *schema = is_json_out ? answer_schema(route) : json_pack("{s:s}", "type", "string");
    json_object_set_new(
        operation, "responses",
        json_pack("{s:{s:s,s:{s:{s:o}}},s:{s:s,s:{s:{s:{s:s}}}}}", "2XX", "description", "Done",
                  "content", content_of(route), "schema", schema, "default", "description", "Error",
                  "content", "application/json", "schema", "$ref", "#/components/schemas/error"));
    if (route->flags & (API_UPLOAD | API_BYTES_IN)) {
        json_object_set_new(operation, "requestBody",
                            json_pack("{s:{s:{s:{s:s,s:s}}}}", "content",
                                      "application/octet-stream", "schema", "type", "string",
                                      "format", "binary"));
    } else if (route->in != NULL && strcmp(route->method, "DELETE") != 0) {
        json_object_set_new(operation, "requestBody",
                            json_pack("{s:{s:{s:o}}}", "content", "application/json", "schema",
                                      schema_ref(route->in)));
    }
    if (route->flags & API_OPEN) {
        json_object_set_new(operation, "security", json_array());
    } else {
        json_object_set_new(operation, "x-weir-role", json_string(weir_role_text(route->role)));
    }
    return operation;
}

/* Each kind as {kind, …options}, and each noun as any of its kinds. */
static void add_kind_schemas(json_t *schemas)
{
    for (size_t r = 0; r < api_n_registries; r++) {
        const struct weir_registry *registry = api_registries[r];
        json_t *any = json_array();
        for (size_t i = 0; i < registry->n_kinds; i++) {
            const struct weir_kind *kind = registry->kinds[i];
            json_t *schema = weir_options_schema(kind->options, kind->n_options);
            char name[128];
            (void)snprintf(name, sizeof name, "%s.%s", registry->noun, kind->name);
            json_object_set_new(schema, "description", json_string(kind->doc));
            json_object_set_new(schemas, name, schema);
            json_array_append_new(
                any, json_pack("{s:o}", "$ref", json_sprintf("#/components/schemas/%s", name)));
        }
        json_object_set_new(schemas, registry->noun,
                            json_pack("{s:s,s:o}", "description", registry->doc, "anyOf", any));
    }
}

json_t *weir_api_openapi(void)
{
    json_t *paths = json_object();
    json_t *schemas = json_pack("{s:{s:s,s:{s:{s:s,s:{s:{s:s},s:{s:s}}}}}}", "error", "type",
                                "object", "properties", "error", "type", "object", "properties",
                                "status", "type", "string", "message", "type", "string");
    for (size_t i = 0; i < api_n_routes; i++) {
        const struct api_route *route = &api_routes[i];
        json_t *path = json_object_get(paths, route->pattern);
        if (path == NULL) {
            path = json_object();
            json_object_set_new(paths, route->pattern, path);
        }
        char method[8] = "";
        for (size_t k = 0; route->method[k] != '\0' && k + 1 < sizeof method; k++) {
            method[k] = (char)tolower((unsigned char)route->method[k]);
        }
        json_object_set_new(path, method, operation_of(route));
        const struct weir_resource *used[] = {route->in, route->out};
        for (size_t k = 0; k < 2; k++) {
            if (used[k] != NULL && json_object_get(schemas, used[k]->name) == NULL) {
                json_object_set_new(schemas, used[k]->name, resource_schema(used[k]));
            }
        }
    }
    add_kind_schemas(schemas);
    return json_pack(
        "{s:s,s:{s:s,s:s,s:s},s:o,s:{s:o,s:{s:{s:s,s:s},s:{s:s,s:s,s:s}}},s:[{s:[]},{s:[]}]}",
        "openapi", "3.0.3", "info", "title", "Weir", "version", WEIR_VERSION, "description",
        "The REST API of the Weir server.", "paths", paths, "components", "schemas", schemas,
        "securitySchemes", "token", "type", "http", "scheme", "bearer", "session", "type", "apiKey",
        "in", "cookie", "name", "weir_session", "security", "token", "session");
}
