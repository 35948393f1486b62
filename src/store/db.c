#include "store/db.h"

#include "base/log.h"

#include <string.h>

#define WEIR_KIND(name) extern const struct weir_kind db_##name;
#include "store/databases.def"
#undef WEIR_KIND

static const struct weir_kind *const kinds[] = {
#define WEIR_KIND(name) &db_##name,
#include "store/databases.def"
#undef WEIR_KIND
};

const struct weir_registry db_kinds = {
    .noun = "database",
    .plural = "databases",
    .doc = "What holds the state.",
    .kinds = kinds,
    .n_kinds = WEIR_ARRAY_LEN(kinds),
};

weir_status db_find(const char *path, const struct db_ops **out, struct weir_error *err)
{
    char name[32] = "sqlite";
    const struct weir_kind *kind;
    const char *end = strstr(path, "://");
    if (end != NULL) {
        (void)snprintf(name, sizeof name, "%.*s", (int)(end - path), path);
    }
    WEIR_TRY(weir_registry_find(&db_kinds, name, path, &kind, err));
    *out = kind->ops;
    return WEIR_OK;
}

static const weir_status statuses[] = {
    [DB_OK] = WEIR_OK,
    [DB_ROW] = WEIR_OK,
    [DB_FULL] = WEIR_ERR_NOSPACE,
    [DB_IO] = WEIR_ERR_IO,
    [DB_AWAY] = WEIR_ERR_IO,
    [DB_CORRUPT] = WEIR_ERR_CORRUPT,
    [DB_NOMEM] = WEIR_ERR_NOMEM,
    [DB_BUSY] = WEIR_ERR_UNAVAILABLE,
    [DB_READ_ONLY] = WEIR_ERR_DENIED,
    [DB_TOO_LARGE] = WEIR_ERR_LIMIT,
    [DB_EXISTS] = WEIR_ERR_EXISTS,
    [DB_REFERENCE] = WEIR_ERR_CONFLICT,
    [DB_INVALID] = WEIR_ERR_INVALID,
    [DB_ERROR] = WEIR_ERR_INTERNAL,
};

/* What is wrong with the database or its disk is told in words of their own; the statement that met it is for the log. */
static weir_status fail_by_disk(weir_status status, const char *what, const char *text,
                                struct weir_error *err)
{
    weir_log(WEIR_LOG_DEBUG, "store_error", WEIR_KV_STR("error", text), WEIR_KV_STR("at", what));
    switch (status) {
    case WEIR_ERR_NOSPACE:
        return weir_error_set(err, status,
                              "the database cannot grow: the disk is full or its maximum size is "
                              "reached: make room on the disk of the state folder");
    case WEIR_ERR_CORRUPT:
        return weir_error_set(err, status,
                              STORE_DAMAGED " or is no database (%s): stop the server and `weir "
                                            "restore` the last backup",
                              text);
    default:
        return weir_error_set(err, status,
                              "the database's disk failed (%s): look at the disk of the state "
                              "folder (dmesg, mount)",
                              text);
    }
}

weir_status db_fail(enum db_end end, const char *what, const char *text, struct weir_error *err)
{
    weir_status status = statuses[end];
    switch (status) {
    case WEIR_ERR_NOSPACE:
    case WEIR_ERR_CORRUPT:
    case WEIR_ERR_IO:
        return fail_by_disk(status, what, text, err);
    case WEIR_ERR_EXISTS:
        return weir_error_set(err, status, "%s: exists already (%s)", what, text);
    case WEIR_ERR_CONFLICT:
        return weir_error_set(
            err, status, "%s: refers to something that does not exist, or is referred to", what);
    case WEIR_ERR_DENIED:
        return weir_error_set(err, status, "%s: not allowed to write (%s)", what, text);
    case WEIR_ERR_UNAVAILABLE:
        return weir_error_set(err, status, "%s: another process has locked the database", what);
    default:
        return weir_error_set(err, status, "%s: %s", what, text);
    }
}
