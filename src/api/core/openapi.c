/** The OpenAPI 3.0 document, made from the route table, the record tables and the shapes of answers. */
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/core/shape.h"
#include "api/core/word.h"
#include "api/kind.h"
#include "api/routes.h"

#include "base/kind.h"
#include "control/deploy.h"
#include "sweep/doc.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* "model version" as the name of a schema: "model_version". */
static json_t *ref_to(const char *name)
{
    json_t *ref = json_sprintf("#/components/schemas/%s", name);
    char *text = strdup(json_string_value(ref));
    for (char *p = text; p != NULL && *p != '\0'; p++) {
        *p = *p == ' ' ? '_' : *p;
    }
    json_string_set(ref, text);
    free(text);
    return json_pack("{s:o}", "$ref", ref);
}

static json_t *field_schema(const struct weir_field *field, bool is_filled)
{
    static const char *const types[] = {
        [WEIR_FIELD_TYPE_TEXT] = "string", [WEIR_FIELD_TYPE_INT] = "integer",
        [WEIR_FIELD_TYPE_F64] = "number",  [WEIR_FIELD_TYPE_BOOL] = "boolean",
        [WEIR_FIELD_TYPE_TIME] = "string",
    };
    json_t *schema = json_object();
    if (field->type < WEIR_FIELD_TYPE_JSON) {
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
    /* Text, a time or a number that is not known is null; whole numbers and truth values are not. */
    bool has_null = field->type != WEIR_FIELD_TYPE_INT && field->type != WEIR_FIELD_TYPE_BOOL;
    bool is_needed = is_filled || (field->flags & (WEIR_FIELD_KEY | WEIR_FIELD_REQUIRED)) != 0;
    json_object_set_new(
        schema, "nullable",
        json_boolean(has_null && (!is_needed || field->type == WEIR_FIELD_TYPE_F64)));
    json_object_set_new(schema, "readOnly",
                        json_boolean((field->flags & WEIR_FIELD_READ_ONLY) != 0));
    json_object_set_new(schema, "description",
                        json_sprintf("%s%s%s%s", field->doc, field->unit[0] != '\0' ? " (" : "",
                                     field->unit, field->unit[0] != '\0' ? ")" : ""));
    return schema;
}

static json_t *list_of(json_t *items)
{
    return json_pack("{s:s,s:o}", "type", "array", "items", items);
}

/* The schema of "text", "list of link", "map of number" …, see struct weir_member. */
static json_t *type_schema(const char *type)
{
    static const struct {
        const char *name, *type, *format;
    } plain[] = {{"text", "string", NULL},
                 {"integer", "integer", "int64"},
                 {"number", "number", NULL},
                 {"bool", "boolean", NULL},
                 {"time", "string", "date-time"}};

    if (strncmp(type, "list of ", 8) == 0) {
        return list_of(type_schema(type + 8));
    }
    if (strncmp(type, "map of ", 7) == 0) {
        return json_pack("{s:s,s:o}", "type", "object", "additionalProperties",
                         type_schema(type + 7));
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(plain); i++) {
        if (strcmp(type, plain[i].name) == 0) {
            return json_pack("{s:s,s:s*}", "type", plain[i].type, "format", plain[i].format);
        }
    }
    return strcmp(type, "any") == 0 ? json_object() : ref_to(type);
}

/* The schema of a member's type, whatever its presence. */
static json_t *kind_schema(const struct weir_member *member)
{
    static const char *const words[] = {
        [WEIR_MEMBER_TEXT] = "text",
        [WEIR_MEMBER_INT] = "integer",
        [WEIR_MEMBER_F64] = "number",
        [WEIR_MEMBER_BOOL] = "bool",
        [WEIR_MEMBER_TIME] = "time",
        [WEIR_MEMBER_MILLI] = "number",
        [WEIR_MEMBER_FROM_1] = "integer",
        [WEIR_MEMBER_TEXTS] = "list of text",
        [WEIR_MEMBER_INTS] = "list of integer",
    };
    switch (member->type) {
    case WEIR_MEMBER_VIEW_OF:
    case WEIR_MEMBER_IN:
        return ref_to(member->view()->head->title);
    case WEIR_MEMBER_ROW_OF:
        return ref_to(member->resource->name);
    case WEIR_MEMBER_VIEWS:
        return list_of(ref_to(member->view()->head->title));
    case WEIR_MEMBER_ROWS:
        return list_of(ref_to(member->resource->name));
    case WEIR_MEMBER_MAP:
    case WEIR_MEMBER_MAP_F64:
    case WEIR_MEMBER_HOLDS:
    case WEIR_MEMBER_JSON:
        return type_schema(member->words);
    default:
        return type_schema(words[member->type]);
    }
}

/* OpenAPI 3.0 ignores what stands beside a $ref: allOf carries it. */
static json_t *member_schema(const struct weir_member *member, bool is_read_only)
{
    json_t *schema = kind_schema(member);
    if (json_object_get(schema, "$ref") != NULL) {
        schema = json_pack("{s:[o]}", "allOf", schema);
    }
    json_object_set_new(schema, "nullable", json_boolean(member->presence != WEIR_MEMBER_ALWAYS));
    json_object_set_new(schema, "readOnly", json_boolean(is_read_only));
    json_object_set_new(schema, "description", json_string(member->doc));
    return schema;
}

/* How members of a shape are written: to be read alone, and each of them may be missing. */
struct manner {
    bool is_read_only, may_miss;
};

static void add_members(const struct weir_member *members, size_t n, struct manner manner,
                        json_t *properties, json_t *optional)
{
    for (size_t i = 0; i < n; i++) {
        struct weir_member member = members[i];
        member.presence = manner.may_miss ? WEIR_MEMBER_MAY_MISS : member.presence;
        if (member.type == WEIR_MEMBER_FLAT || member.type == WEIR_MEMBER_FLAT_OF) {
            const struct manner its = {manner.is_read_only,
                                       member.presence == WEIR_MEMBER_MAY_MISS};
            add_members(member.view()->members, member.view()->n_members, its, properties,
                        optional);
            continue;
        }
        json_object_set_new(properties, member.name, member_schema(&member, manner.is_read_only));
        if (member.presence == WEIR_MEMBER_MAY_MISS) {
            json_array_append_new(optional, json_string(member.name));
        }
    }
}

/* What an object has: the fields of its record, and the members of its shape before them. */
static json_t *object_schema(const struct weir_resource *resource, const struct api_shape *shape)
{
    json_t *properties = json_object(), *required = json_array(), *optional = json_array();
    for (size_t i = 0; resource != NULL && i < resource->n_fields; i++) {
        const struct weir_field *field = &resource->fields[i];
        if (field->flags & WEIR_FIELD_SECRET) {
            continue;
        }
        bool is_filled = shape != NULL && api_words_have(shape->filled, field->name);
        json_object_set_new(properties, field->name, field_schema(field, is_filled));
        if (field->flags & WEIR_FIELD_REQUIRED) {
            json_array_append_new(required, json_string(field->name));
        }
    }
    if (shape != NULL) {
        size_t n;
        const struct weir_member *members = api_shape_members(shape, &n);
        add_members(members, n, (struct manner){.is_read_only = shape->body == NULL}, properties,
                    optional);
    }
    json_t *schema = json_pack("{s:s,s:o}", "type", "object", "properties", properties);
    if (json_array_size(required) > 0) {
        json_object_set(schema, "required", required);
    }
    if (json_array_size(optional) > 0) {
        json_object_set(schema, "x-weir-optional", optional);
    }
    json_decref(required);
    json_decref(optional);
    return schema;
}

static json_t *schema_ref(const struct weir_resource *resource)
{
    return ref_to(resource->name);
}

static json_t *answer_schema(const struct weir_route *route)
{
    const struct api_shape *shape = api_shape_of_route(route->method, route->pattern);
    if (shape != NULL) {
        return ref_to(shape->name);
    }
    if (route->out == NULL) {
        return json_pack("{s:s}", "type", "object");
    }
    if (route->flags & ROUTE_LIST) {
        return json_pack("{s:s,s:{s:{s:s,s:o},s:{s:s,s:b}}}", "type", "object", "properties",
                         "items", "type", "array", "items", schema_ref(route->out), "next", "type",
                         "string", "nullable", 1);
    }
    return schema_ref(route->out);
}

static void add_parameter(json_t *parameters, const char *name, size_t len, const char *doc,
                          json_t *schema)
{
    json_array_append_new(parameters, json_pack("{s:s%,s:s,s:b,s:s*,s:o}", "name", name, len, "in",
                                                doc != NULL ? "query" : "path", "required",
                                                doc == NULL, "description", doc, "schema", schema));
}

/* {"type": "string", "enum": [...]} of words with blanks between; NULL: any text. */
static json_t *words_schema(const char *words)
{
    json_t *list = words != NULL ? json_array() : NULL;
    for (const char *p = words; p != NULL && *p != '\0'; p += strcspn(p, " "), p += *p == ' ') {
        json_array_append_new(list, json_stringn(p, strcspn(p, " ")));
    }
    return json_pack("{s:s,s:o*}", "type", "string", "enum", list);
}

static json_t *int_schema(const struct weir_route_param *param)
{
    json_t *schema = json_pack("{s:s,s:s,s:I,s:I}", "type", "integer", "format", "int64", "minimum",
                               (json_int_t)param->lo, "maximum", (json_int_t)param->hi);
    if (param->fallback >= param->lo && param->fallback <= param->hi) {
        json_object_set_new(schema, "default", json_integer(param->fallback));
    }
    return schema;
}

static json_t *param_schema(const struct weir_route_param *param, const char *words)
{
    switch (param->type) {
    case ROUTE_INT:
        return int_schema(param);
    case ROUTE_BOOL:
        return json_pack("{s:s,s:[i,i]}", "type", "integer", "enum", 0, 1);
    case ROUTE_TIME:
        return json_pack("{s:s,s:s}", "type", "string", "format", "date-time");
    default:
        return words_schema(words);
    }
}

static json_t *parameters_of(const struct weir_route *route)
{
    struct weir_arena arena;
    json_t *parameters = json_array();
    weir_arena_init(&arena, 0);
    for (const char *p = strchr(route->pattern, '{'); p != NULL; p = strchr(p + 1, '{')) {
        add_parameter(parameters, p + 1, strcspn(p + 1, "}"), NULL,
                      json_pack("{s:s}", "type", "string"));
    }
    for (const struct weir_route_param *param = route->query; param != NULL && param->name != NULL;
         param++) {
        bool is_field = param->type == ROUTE_FIELD;
        add_parameter(parameters, param->name, strlen(param->name),
                      is_field ? weir_resource_field(route->out, param->name)->doc : param->doc,
                      param_schema(param, is_field ? api_words_of(route->out, param->name, &arena)
                                                   : param->words));
    }
    weir_arena_fini(&arena);
    return parameters;
}

static const char *content_of(const struct weir_route *route)
{
    if (route->flags & ROUTE_EVENTS) {
        return "text/event-stream";
    }
    return route->flags & ROUTE_BYTES_OUT ? "application/octet-stream" : "application/json";
}

/* What the route takes as JSON; NULL: nothing, or what the summary says. */
static json_t *body_schema(const struct weir_route *route)
{
    const struct api_shape *shape = api_shape_of_body(route->method, route->pattern);
    if (shape != NULL) {
        return ref_to(shape->name);
    }
    if (route->fn == api_deploy_put) {
        return weir_options_schema(control_deploy_options, CONTROL_DEPLOY_N_OPTIONS);
    }
    if (route->fn == api_sweep_create) {
        return weir_options_schema(weir_sweep_doc_options, weir_sweep_doc_n_options);
    }
    return route->in != NULL && strcmp(route->method, "DELETE") != 0 ? schema_ref(route->in) : NULL;
}

static json_t *operation_of(const struct weir_route *route)
{
    json_t *body;
    json_t *operation =
        json_pack("{s:s,s:o}", "summary", route->summary, "parameters", parameters_of(route));
    bool is_json_out = (route->flags & (ROUTE_BYTES_OUT | ROUTE_EVENTS)) == 0;
    json_t *schema = is_json_out ? answer_schema(route) : json_pack("{s:s}", "type", "string");
    json_object_set_new(
        operation, "responses",
        json_pack("{s:{s:s,s:{s:{s:o}}},s:{s:s,s:{s:{s:{s:s}}}}}", "2XX", "description", "Done",
                  "content", content_of(route), "schema", schema, "default", "description", "Error",
                  "content", "application/json", "schema", "$ref", "#/components/schemas/error"));
    if (route->flags & (ROUTE_UPLOAD | ROUTE_BYTES_IN)) {
        json_object_set_new(operation, "requestBody",
                            json_pack("{s:{s:{s:{s:s,s:s}}}}", "content",
                                      "application/octet-stream", "schema", "type", "string",
                                      "format", "binary"));
    } else if ((body = body_schema(route)) != NULL) {
        json_object_set_new(
            operation, "requestBody",
            json_pack("{s:{s:{s:o}}}", "content", "application/json", "schema", body));
    }
    if (route->flags & ROUTE_OPEN) {
        json_object_set_new(operation, "security", json_array());
    } else {
        json_object_set_new(operation, "x-weir-right",
                            json_pack("{s:s,s:s}", "noun", weir_right_noun(route->right), "verb",
                                      weir_right_verb(route->right)));
    }
    return operation;
}

static void add_common(json_t *schema, const struct weir_registry *registry)
{
    json_t *common = weir_options_schema(registry->common, registry->n_common);
    json_object_update(json_object_get(schema, "properties"),
                       json_object_get(common, "properties"));
    json_decref(common);
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
            add_common(schema, registry);
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

static void add_schema(json_t *schemas, const char *name, const struct weir_resource *resource,
                       const struct api_shape *shape)
{
    json_t *ref = ref_to(name);
    const char *key = strrchr(json_string_value(json_object_get(ref, "$ref")), '/') + 1;
    if (json_object_get(schemas, key) == NULL) {
        json_object_set_new(schemas, key, object_schema(resource, shape));
    }
    json_decref(ref);
}

static void add_schemas(json_t *schemas)
{
    const struct weir_route *route;
    const struct api_shape *shape;
    for (size_t i = 0; (shape = api_shape_at(i)) != NULL; i++) {
        add_schema(schemas, shape->name, shape->record, shape);
    }
    for (size_t i = 0; (route = weir_route_at(api_routes, i)) != NULL; i++) {
        const struct weir_resource *used[] = {route->in, route->out};
        for (size_t k = 0; k < WEIR_ARRAY_LEN(used); k++) {
            if (used[k] != NULL) {
                add_schema(schemas, used[k]->name, used[k], api_shape_of_record(used[k]));
            }
        }
    }
}

json_t *weir_api_openapi(void)
{
    const struct weir_route *route;
    json_t *paths = json_object();
    json_t *schemas = json_pack("{s:{s:s,s:{s:{s:s,s:{s:{s:s},s:{s:s}}}}}}", "error", "type",
                                "object", "properties", "error", "type", "object", "properties",
                                "status", "type", "string", "message", "type", "string");
    for (size_t i = 0; (route = weir_route_at(api_routes, i)) != NULL; i++) {
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
    }
    add_schemas(schemas);
    add_kind_schemas(schemas);
    return json_pack(
        "{s:s,s:{s:s,s:s,s:s},s:o,s:{s:o,s:{s:{s:s,s:s},s:{s:s,s:s,s:s}}},s:[{s:[]},{s:[]}]}",
        "openapi", "3.0.3", "info", "title", "Weir", "version", WEIR_VERSION, "description",
        "The REST API of the Weir server.", "paths", paths, "components", "schemas", schemas,
        "securitySchemes", "token", "type", "http", "scheme", "bearer", "session", "type", "apiKey",
        "in", "cookie", "name", "weir_session", "security", "token", "session");
}
