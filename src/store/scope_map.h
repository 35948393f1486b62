/**
 * Whose the rows of each table are, worked out of what nouns say (store/noun.h): for the views, conditions and checks of
 * the database's driver (store/sqlite/guard.c). Made when a store opens, of its schema; after that it does not change: any thread.
 *
 * A table is the platform's, or its rows are told by one column: this names a project, or an *owner*, a row of another
 * table by one of its keys. Nobody knows whose the rows of a table without a noun are: no scope has them.
 */
#ifndef WEIR_STORE_SCOPE_MAP_H
#define WEIR_STORE_SCOPE_MAP_H

#include "store/noun.h"
#include "store/store_private.h"

/** The owner that is a project by its name: nothing is to be found. */
#define SCOPE_PROJECT 0

/** What a row's project is found by. */
struct scope_owner {
    const struct weir_noun *noun; /**< NULL: SCOPE_PROJECT. */
    const char *key;
    char *sql; /**< The project of the one whose key is ?. */
};

enum scope_kind { SCOPE_TABLE_OF_PLATFORM, SCOPE_TABLE_OF_PROJECTS, SCOPE_TABLE_UNKNOWN };

struct scope_table {
    const char *name;
    enum scope_kind kind;
    const char *column; /**< OF_PROJECTS: what it names is … */
    size_t i_owner;     /**< … this. */
    bool is_owner;
};

struct scope_map {
    struct weir_arena arena;
    struct scope_table *tables; /**< Of the schema, by name. */
    size_t n_tables;
    struct scope_owner *owners;
    size_t n_owners;
};

/** Of the tables that the connection's database has. noun_at NULL: no noun is known. To be destroyed; @return NOMEM, IO. */
weir_status scope_map_create(struct connection *connection, weir_noun_at_fn noun_at,
                             struct scope_map **out, struct weir_error *err) WEIR_MUST_CHECK;
void scope_map_destroy(struct scope_map *map); /**< NULL is accepted. */

/** NULL: the schema has no such table. */
const struct scope_table *scope_map_table(const struct scope_map *map, const char *name);

/** The owner that subjects call so ("job", of `len` bytes); NULL: none. */
const struct scope_owner *scope_map_subject(const struct scope_map *map, const char *noun,
                                            size_t len);

#endif
