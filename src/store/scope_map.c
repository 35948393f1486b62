#include "store/scope_map.h"

#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

/** What it is made of. */
struct making {
    struct scope_map *map;
    weir_noun_at_fn noun_at;
    size_t cap_tables, cap_owners;
};

static const struct weir_noun *noun_of(const struct making *making, const char *table)
{
    const struct weir_noun *noun = NULL;
    for (size_t i = 0; making->noun_at != NULL && (noun = making->noun_at(i)) != NULL &&
                       strcmp(noun->table, table) != 0;
         i++) {
    }
    return noun;
}

/* SQL of the project of the row whose key is what `is` says; NULL: that is not known. */
static char *project_sql(const struct making *making, const struct weir_noun *noun, const char *key,
                         const char *is)
{
    struct weir_arena *arena = &making->map->arena;
    if (noun == NULL || (noun->project == NULL && noun->of.table == NULL)) {
        return NULL;
    }
    char *one = weir_arena_printf(arena, "SELECT \"%s\" FROM main.\"%s\" WHERE \"%s\" = %s",
                                  noun->project != NULL ? noun->project : noun->of.column,
                                  noun->table, key, is);
    return noun->project != NULL ? one
                                 : project_sql(making, noun_of(making, noun->of.table),
                                               noun->of.key, weir_arena_printf(arena, "(%s)", one));
}

/* The owner's place; n_owners: it is not known. */
static size_t owner_of(struct making *making, const struct weir_noun *noun, const char *key)
{
    struct scope_map *map = making->map;
    size_t i = SCOPE_PROJECT + 1;
    while (i < map->n_owners &&
           (map->owners[i].noun != noun || strcmp(map->owners[i].key, key) != 0)) {
        i++;
    }
    char *sql = i == map->n_owners ? project_sql(making, noun, key, "?") : NULL;
    if (sql != NULL) {
        weir_arena_grow(&map->arena, &map->owners, sizeof *map->owners, map->n_owners,
                        &making->cap_owners);
        map->owners[map->n_owners++] = (struct scope_owner){noun, key, sql};
    }
    return i;
}

static void add_table(struct making *making, const char *name)
{
    struct scope_map *map = making->map;
    const struct weir_noun *noun = noun_of(making, name);
    struct scope_table table = {.name = name, .kind = SCOPE_TABLE_UNKNOWN};
    if (noun != NULL && noun->project != NULL) {
        table.kind = SCOPE_TABLE_OF_PROJECTS;
        table.column = noun->project;
        table.i_owner = SCOPE_PROJECT;
    } else if (noun != NULL && noun->of.table != NULL) {
        table.column = noun->of.column;
        table.i_owner = owner_of(making, noun_of(making, noun->of.table), noun->of.key);
        table.kind = table.i_owner < map->n_owners ? SCOPE_TABLE_OF_PROJECTS : SCOPE_TABLE_UNKNOWN;
    } else if (noun != NULL) {
        table.kind = SCOPE_TABLE_OF_PLATFORM;
    }
    weir_arena_grow(&map->arena, &map->tables, sizeof *map->tables, map->n_tables,
                    &making->cap_tables);
    map->tables[map->n_tables++] = table;
}

static void find_owners(struct making *making)
{
    struct scope_map *map = making->map;
    const struct weir_noun *noun;
    for (size_t i = 0; making->noun_at != NULL && (noun = making->noun_at(i)) != NULL; i++) {
        if (noun->subject.noun != NULL) {
            (void)owner_of(making, noun, noun->subject.key);
        }
    }
    for (size_t i = 0; i < map->n_tables; i++) {
        for (size_t k = SCOPE_PROJECT + 1; k < map->n_owners; k++) {
            map->tables[i].is_owner |= strcmp(map->owners[k].noun->table, map->tables[i].name) == 0;
        }
    }
}

static void meet_table(void *context, const char *name)
{
    struct making *making = context;
    add_table(making, weir_arena_strdup(&making->map->arena, name));
}

weir_status scope_map_create(struct connection *connection, weir_noun_at_fn noun_at,
                             struct scope_map **out, struct weir_error *err)
{
    struct scope_map *map = calloc(1, sizeof *map);
    struct making making = {.map = map, .noun_at = noun_at};
    if (map == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "setting up scopes: out of memory");
    }
    weir_arena_init(&map->arena, 0);
    weir_arena_grow(&map->arena, &map->owners, sizeof *map->owners, 0, &making.cap_owners);
    map->owners[map->n_owners++] = (struct scope_owner){0};
    weir_status status =
        connection_end(connection, connection->ops->each_table(connection->db, meet_table, &making),
                       "reading tables", err);
    if (status != WEIR_OK) {
        scope_map_destroy(map);
        return status;
    }
    find_owners(&making);
    *out = map;
    return WEIR_OK;
}

void scope_map_destroy(struct scope_map *map)
{
    if (map != NULL) {
        weir_arena_fini(&map->arena);
        free(map);
    }
}

static int compare_name(const void *name, const void *table)
{
    return strcmp(name, ((const struct scope_table *)table)->name);
}

const struct scope_table *scope_map_table(const struct scope_map *map, const char *name)
{
    return bsearch(name, map->tables, map->n_tables, sizeof *map->tables, compare_name);
}

const struct scope_owner *scope_map_subject(const struct scope_map *map, const char *noun,
                                            size_t len)
{
    const struct scope_owner *found = NULL;
    for (size_t i = SCOPE_PROJECT + 1; found == NULL && i < map->n_owners; i++) {
        const struct weir_subject *subject = &map->owners[i].noun->subject;
        if (subject->noun != NULL && strcmp(subject->key, map->owners[i].key) == 0 &&
            strlen(subject->noun) == len && strncmp(subject->noun, noun, len) == 0) {
            found = &map->owners[i];
        }
    }
    return found;
}
