/**
 * Record tables: each noun is described once, beside the noun, and everything else is derived.
 *
 * A record is a plain struct whose members are text (char *, in an arena; NULL = absent), int64_t,
 * double, bool, JSON text (char * that holds any JSON value), or records of another resource: one, or
 * a list. Its `struct weir_resource` lists the fields. From that table come JSON in and out with exact error paths, the SQL binding (store),
 * the OpenAPI schema (api) and the columns of the command line (cli).
 *
 *     struct weir_project { char *id; char *name; int64_t created_ms; };
 *     static const struct weir_field project_fields[] = {
 *         WEIR_FIELD(weir_project, id, TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_KEY, "",
 *                    "Identifier"),
 *         WEIR_FIELD(weir_project, name, TEXT, WEIR_FIELD_REQUIRED, "", "Unique name"),
 *         WEIR_FIELD(weir_project, created_ms, TIME, WEIR_FIELD_READ_ONLY, "ms", "Creation"),
 *     };
 *     const struct weir_resource weir_project_resource =
 *         WEIR_RESOURCE("project", "projects", weir_project, project_fields);
 */
#ifndef WEIR_BASE_RECORD_H
#define WEIR_BASE_RECORD_H

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum weir_field_type {
    WEIR_FIELD_TYPE_TEXT, /**< char *  ↔ JSON string  ↔ SQL TEXT */
    WEIR_FIELD_TYPE_INT,  /**< int64_t ↔ JSON integer ↔ SQL INTEGER */
    WEIR_FIELD_TYPE_F64,  /**< double  ↔ JSON number (NaN ↔ null) ↔ SQL REAL */
    WEIR_FIELD_TYPE_BOOL, /**< bool    ↔ JSON boolean ↔ SQL INTEGER 0/1 */
    WEIR_FIELD_TYPE_TIME, /**< int64_t ms since 1970 ↔ JSON RFC 3339 string (an integer is read
                           * too), 0 ↔ null ↔ SQL INTEGER
                           */
    WEIR_FIELD_TYPE_JSON, /**< char * JSON text ↔ JSON value ↔ SQL TEXT */
    /* These are read when their record is, and written with it: between the two nobody sees their JSON. */
    WEIR_FIELD_TYPE_RECORD,  /**< const struct S *, NULL = absent ↔ JSON object ↔ SQL TEXT */
    WEIR_FIELD_TYPE_RECORDS, /**< An array `m` of `n_m`, NULL = absent ↔ JSON array ↔ SQL TEXT */
};

enum weir_field_flags {
    WEIR_FIELD_REQUIRED = 1 << 0,  /**< Must be given on create. */
    WEIR_FIELD_READ_ONLY = 1 << 1, /**< Made by the server: refused in input from outside. */
    WEIR_FIELD_KEY = 1 << 2,       /**< Primary key (one per resource). */
    WEIR_FIELD_SECRET = 1 << 3,    /**< Never leaves the server. */
    WEIR_FIELD_COLUMN = 1 << 4,    /**< A column of `weir get`, in the order of the table. */
    WEIR_FIELD_NAME = 1 << 5,      /**< Text with a name's form: [a-z0-9][a-z0-9._-]{0,62}. */
    WEIR_FIELD_MUTABLE = 1 << 6,   /**< May be changed after creation. */
    WEIR_FIELD_FIRST = 1 << 7,     /**< With COLUMN: before the others. */
    WEIR_FIELD_MODEL = 1 << 9,     /**< Text with the form of a model's name. */
    WEIR_FIELD_LAST = 1 << 8,      /**< With COLUMN: behind the others; sentences are. */
};

struct weir_field {
    const char *name; /**< Member, JSON key and SQL column. */
    enum weir_field_type type;
    size_t offset;
    unsigned flags;
    const char *unit;    /**< "" if none. */
    const char *doc;     /**< One sentence. */
    size_t max_bytes;    /**< Of TEXT and JSON; 0: the type's, see weir_field_max_bytes. */
    const char *secrets; /**< Of JSON: paths of what does not leave the server (base/secret.h). */
    const struct weir_resource *of; /**< Of RECORD and RECORDS: what S is. */
    size_t n_offset;                /**< Of RECORDS: where their number lies. */
};

struct weir_resource {
    const char *name;   /**< "project": singular, for errors and the schema. */
    const char *plural; /**< "projects": SQL table and URL segment. */
    size_t size;        /**< sizeof the struct. */
    const struct weir_field *fields;
    size_t n_fields;
    /** What a record within another holds where its JSON says nothing; NULL: zeros. */
    const void *unknown;
};

#define WEIR_FIELD(strct, member, field_type, field_flags, field_unit, field_doc)                  \
    {                                                                                              \
        .name = #member, .type = WEIR_FIELD_TYPE_##field_type,                                     \
        .offset = offsetof(struct strct, member), .flags = (field_flags), .unit = (field_unit),    \
        .doc = (field_doc)                                                                         \
    }

/** A text or JSON field with a maximum of its own. */
#define WEIR_FIELD_SIZED(strct, member, field_type, field_flags, field_max_bytes, field_unit,      \
                         field_doc)                                                                \
    {                                                                                              \
        .name = #member, .type = WEIR_FIELD_TYPE_##field_type,                                     \
        .offset = offsetof(struct strct, member), .flags = (field_flags), .unit = (field_unit),    \
        .doc = (field_doc), .max_bytes = (field_max_bytes)                                         \
    }

/** A JSON field with secrets inside: weir_record_to_json masks what lies at the paths. */
#define WEIR_FIELD_HIDING(strct, member, field_flags, field_secrets, field_unit, field_doc)        \
    {                                                                                              \
        .name = #member, .type = WEIR_FIELD_TYPE_JSON, .offset = offsetof(struct strct, member),   \
        .flags = (field_flags), .unit = (field_unit), .doc = (field_doc),                          \
        .secrets = (field_secrets)                                                                 \
    }

/** A field whose member lies deeper, in structs by value: `path` is how C names it. */
#define WEIR_FIELD_AT(strct, field_name, path, field_type, field_flags, field_unit, field_doc)     \
    {                                                                                              \
        .name = #field_name, .type = WEIR_FIELD_TYPE_##field_type,                                 \
        .offset = offsetof(struct strct, path), .flags = (field_flags), .unit = (field_unit),      \
        .doc = (field_doc)                                                                         \
    }

/** A pointer to a record of the resource; and an array of them. */
#define WEIR_FIELD_RECORD(strct, member, resource, field_flags, field_doc)                         \
    {                                                                                              \
        .name = #member, .type = WEIR_FIELD_TYPE_RECORD, .offset = offsetof(struct strct, member), \
        .flags = (field_flags), .unit = "", .doc = (field_doc), .of = &(resource)                  \
    }
#define WEIR_FIELD_RECORDS(strct, member, resource, field_flags, field_doc)                        \
    {                                                                                              \
        .name = #member, .type = WEIR_FIELD_TYPE_RECORDS,                                          \
        .offset = offsetof(struct strct, member), .flags = (field_flags), .unit = "",              \
        .doc = (field_doc), .of = &(resource), .n_offset = offsetof(struct strct, n_##member)      \
    }

/** The members behind the table may be more of the struct: `.unknown = &x`. */
#define WEIR_RESOURCE(noun, nouns, strct, table, ...)                                              \
    {                                                                                              \
        .name = (noun), .plural = (nouns), .size = sizeof(struct strct), .fields = (table),        \
        .n_fields = WEIR_ARRAY_LEN(table), __VA_ARGS__                                             \
    }

const struct weir_field *weir_resource_field(const struct weir_resource *resource,
                                             const char *name);
const struct weir_field *weir_resource_key(const struct weir_resource *resource);

#define WEIR_FIELD_NAME_MAX_BYTES 63
#define WEIR_FIELD_TEXT_MAX_BYTES ((size_t)4 << 10)
#define WEIR_FIELD_JSON_MAX_BYTES ((size_t)1 << 20)

/** Most bytes of the field's text (UTF-8; of JSON in its compact form); 0 for other types. */
size_t weir_field_max_bytes(const struct weir_field *field);

/** Where a field of a record lies, by type. */
static inline void *weir_field_ptr(const struct weir_field *field, void *record)
{
    return (char *)record + field->offset;
}

static inline const void *weir_field_cptr(const struct weir_field *field, const void *record)
{
    return (const char *)record + field->offset;
}

enum weir_record_mode {
    WEIR_RECORD_CREATE,  /**< From outside: required fields must be there, read-only ones must not.
                          */
    WEIR_RECORD_UPDATE,  /**< From outside: only MUTABLE fields may be there. */
    WEIR_RECORD_REPORT,  /**< From a task or an agent: every field allowed, required ones must be
                          *   there. */
    WEIR_RECORD_TRUSTED, /**< From our own server: every field allowed, unknown ones ignored. */
};

/**
 * Fill *record (zeroed or with defaults; absent keys leave a member as it is) from a JSON object.
 * Text is copied into `arena`. Unknown keys, wrong types and missing fields are INVALID with a
 * path:
 * "$.workers: expected integer, got string"; text over its field's maximum, or more than the arena
 * may hold, is LIMIT. `record` is undefined on error.
 */
weir_status weir_record_from_json(const struct weir_resource *resource, const json_t *object,
                                  enum weir_record_mode mode, struct weir_arena *arena,
                                  void *record, struct weir_error *err) WEIR_MUST_CHECK;

/** A new JSON object with every field that is not SECRET; absent text is null, secrets inside JSON
 *  are masked. Aborts if no memory. */
json_t *weir_record_to_json(const struct weir_resource *resource, const void *record);

/** The same as compact text in the arena. */
char *weir_record_text(const struct weir_resource *resource, const void *record,
                       struct weir_arena *arena);

/** The JSON of a RECORD or RECORDS field, to be freed; NULL: absent. */
char *weir_field_text(const struct weir_field *field, const void *record);

/** The other way, of a text that Weir itself made; absent: it is NULL, or of another form. */
void weir_field_of_text(const struct weir_field *field, const char *text, struct weir_arena *arena,
                        void *record);

/**
 * Is each INT field whose unit is "ms", of records inside too, a time that a row can have: from 1970 to
 * before year 10000? For records of outside, whose times are added to. @return INVALID with the field's name.
 */
weir_status weir_record_check_times(const struct weir_resource *resource, const void *record,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/** About the most memory, in bytes, that weir_record_to_json and its text take for this record. */
size_t weir_record_weight(const struct weir_resource *resource, const void *record);

/** Does text have a name's form (lower case, digits, ".", "_", "-"; 1 to 63 bytes)? */
bool weir_name_is_valid(const char *text);

/** The form of a model's name, which other registries' names have too: UTF-8 of 1 to
 *  WEIR_MODEL_NAME_MAX_BYTES without "/", ":" and control characters, that is not "." or "..". */
bool weir_model_name_is_valid(const char *text);
#define WEIR_MODEL_NAME_MAX_BYTES 256

#endif
