/**
 * Reading: one document on its way to a job. A place is a value of the document and its path; reading it marks it, and what
 * is not marked at the end is an error (kubeflow_check_read). The fields of an object are rows of a table:
 *
 *     struct replica { struct kubeflow_place replicas, template; };
 *     static const struct kubeflow_field fields[] = {
 *         KUBEFLOW_TAKEN(replica, replicas, "replicas", INTEGER),
 *         KUBEFLOW_TAKEN(replica, template, "template", OBJECT),
 *         KUBEFLOW_REMARK("dnsPolicy", "names are those of the machine"),
 *         KUBEFLOW_REFUSED("initContainers", "a job has one program"),
 *     };
 *
 * A field that is taken is stored as a place, and marked when its value is asked for.
 */
#ifndef WEIR_KUBEFLOW_READING_H
#define WEIR_KUBEFLOW_READING_H

#include "kubeflow/kubeflow.h"

#include <stdint.h>

struct kubeflow_place {
    const json_t *value; /**< NULL: the document does not have it. */
    const char *path;
};

struct kubeflow_reading {
    struct weir_arena *arena;
    struct weir_error *err;
    const struct weir_kubeflow_given *given;
    struct weir_kubeflow *out;
    const char *name, *namespace; /**< The job's, once they are read. */
    const char *runtime; /**< Names of variables that the tasks get, separated by blanks. */
    /** A file that operators make, and the variable that says where it is in a task; NULL: there is none. */
    const char *file, *file_variable;
    json_t *marks; /**< {path: true} of what was read, whole. */
    json_t *kept;  /**< Values that were made on the way. */
};

enum kubeflow_type {
    KUBEFLOW_ANY,
    KUBEFLOW_TEXT,
    KUBEFLOW_INTEGER,
    KUBEFLOW_BOOLEAN,
    KUBEFLOW_OBJECT,
    KUBEFLOW_LIST
};

enum kubeflow_way { KUBEFLOW_IS_TAKEN, KUBEFLOW_IS_REMARKED, KUBEFLOW_IS_REFUSED };

struct kubeflow_field {
    const char *name;
    enum kubeflow_way way;
    enum kubeflow_type type;
    size_t offset; /**< The place's, in the struct that is filled; only taken fields have it. */
    const char *const *words; /**< What a text may be, with NULL at the end; NULL: anything. */
    const char *say;          /**< What is done instead; others have it. */
    const char *plain;        /**< A value that is so here anyway, as text: "false"; or NULL. */
};

#define KUBEFLOW_TAKEN(strct, member, key, kind)                                                   \
    {                                                                                              \
        .name = (key), .type = KUBEFLOW_##kind, .offset = offsetof(struct strct, member)           \
    }
#define KUBEFLOW_WORD(strct, member, key, ...)                                                     \
    {                                                                                              \
        .name = (key), .type = KUBEFLOW_TEXT, .offset = offsetof(struct strct, member),            \
        .words = (const char *const[])                                                             \
        {                                                                                          \
            __VA_ARGS__, NULL                                                                      \
        }                                                                                          \
    }
#define KUBEFLOW_REMARK(key, text)                                                                 \
    {                                                                                              \
        .name = (key), .way = KUBEFLOW_IS_REMARKED, .say = (text)                                  \
    }
#define KUBEFLOW_REMARK_UNLESS(key, value, text)                                                   \
    {                                                                                              \
        .name = (key), .way = KUBEFLOW_IS_REMARKED, .plain = (value), .say = (text)                \
    }
#define KUBEFLOW_REFUSED(key, text)                                                                \
    {                                                                                              \
        .name = (key), .way = KUBEFLOW_IS_REFUSED, .say = (text)                                   \
    }
#define KUBEFLOW_REFUSED_UNLESS(key, value, text)                                                  \
    {                                                                                              \
        .name = (key), .way = KUBEFLOW_IS_REFUSED, .plain = (value), .say = (text)                 \
    }

/** Is there a value, other than null? */
bool kubeflow_is_there(struct kubeflow_place at);

/** A member, or an item; it need not be there. */
struct kubeflow_place kubeflow_member(const struct kubeflow_reading *reading,
                                      struct kubeflow_place at, const char *name);
struct kubeflow_place kubeflow_item(const struct kubeflow_reading *reading,
                                    struct kubeflow_place at, size_t i);

/** The members of an object: "for (i = 0; kubeflow_next(…, &i, &name, &item);)". */
bool kubeflow_next(const struct kubeflow_reading *reading, struct kubeflow_place at,
                   void **iterator, const char **out_name, struct kubeflow_place *out);

/** All of it was read. */
void kubeflow_mark(struct kubeflow_reading *reading, struct kubeflow_place at);

/** It was read, and is not taken over, or not quite. */
void kubeflow_remark(struct kubeflow_reading *reading, struct kubeflow_place at, const char *format,
                     ...) WEIR_PRINTF(3, 4);

/** The same, without marking the place: its parts are read, too. Nothing, if it is empty. */
void kubeflow_remark_path(struct kubeflow_reading *reading, struct kubeflow_place at,
                          const char *say);

/** INVALID, "PATH: expected …", with what is there. */
weir_status kubeflow_wrong(struct kubeflow_reading *reading, struct kubeflow_place at,
                           const char *expected);
/** UNSUPPORTED, "PATH: …". */
weir_status kubeflow_refuse(struct kubeflow_reading *reading, struct kubeflow_place at,
                            const char *format, ...) WEIR_PRINTF(3, 4);

/** The value of a place, which is marked; as it is if the place is empty. @return INVALID: another type, or outside. */
weir_status kubeflow_text(struct kubeflow_reading *reading, struct kubeflow_place at,
                          const char **out) WEIR_MUST_CHECK;
weir_status kubeflow_integer(struct kubeflow_reading *reading, struct kubeflow_place at,
                             int64_t min, int64_t max, int64_t *out) WEIR_MUST_CHECK;
weir_status kubeflow_boolean(struct kubeflow_reading *reading, struct kubeflow_place at,
                             bool *out) WEIR_MUST_CHECK;

/** Is a taken text this word? Marked if it is there. */
bool kubeflow_is_word(struct kubeflow_reading *reading, struct kubeflow_place at, const char *word);

/**
 * Read an object by its table, in the order of the table. An empty place has no fields.
 * @param out  The struct, with a place for each field that is taken; zeros before.
 */
weir_status kubeflow_fields(struct kubeflow_reading *reading, struct kubeflow_place at,
                            const struct kubeflow_field *fields, size_t n_fields,
                            void *out) WEIR_MUST_CHECK;

/** Takes the reference, and has it until the reading is over. */
json_t *kubeflow_keep(struct kubeflow_reading *reading, json_t *value);

/** Was all of the document read? @return UNSUPPORTED with the first place that was not. */
weir_status kubeflow_check_read(struct kubeflow_reading *reading,
                                struct kubeflow_place at) WEIR_MUST_CHECK;

#endif
