/** The kinds: the rules of all nouns, the folders and the blobs, in the order of lists; and the SQL of those that are rows. */
#include "retain/retain_private.h"

#include "nouns/nouns.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

static struct retain_kind kinds[WEIR_RETAIN_KINDS_MAX];
static int n_kinds;
static struct weir_arena texts; /* of their SQL; as long as the program runs */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- SQL ------------------------------------------------------------------------------------- */

#define TEXT(...) weir_arena_printf(&texts, __VA_ARGS__)

static const char *given_or(const char *given, const char *fallback)
{
    return given != NULL ? given : fallback;
}

/* Of a project numbered rows go by what they are of, one after the other: an ION has an index for it. */
static void number_own(struct retain_sql *sql, const struct weir_noun *noun,
                       const struct weir_retain_rule *rule)
{
    const struct weir_row_of *of = &noun->of;
    const char *table = noun->table, *time = rule->time;
    sql->own_keys = TEXT("SELECT %s FROM %s WHERE project = :project AND EXISTS (SELECT 1 FROM %s"
                         " WHERE %s = %s.%s AND %s <= :before) ORDER BY %s LIMIT :n",
                         of->key, of->table, table, of->column, of->table, of->key, time, of->key);
    sql->own_remove[0] = TEXT("DELETE FROM %s WHERE seq IN (SELECT seq FROM %s WHERE %s = :key AND"
                              " %s <= :before LIMIT :n)",
                              table, table, of->column, time);
    sql->own_count = TEXT("SELECT count(*) FROM %s WHERE %s AND %s <= :before", table,
                          weir_noun_in_project(noun, &texts), time);
    sql->count_all = TEXT("SELECT count(*) FROM %s", table);
}

static void number_rows(struct retain_sql *sql, const struct weir_noun *noun,
                        const struct weir_retain_rule *rule)
{
    const char *table = noun->table, *where = rule->where, *time = rule->time;
    sql->first = TEXT("SELECT min(seq) FROM %s WHERE %s", table, where);
    sql->oldest = TEXT("SELECT %s FROM %s WHERE %s ORDER BY seq LIMIT 1", time, table, where);
    sql->cut_old = TEXT("SELECT max(seq) FROM (SELECT seq, %s FROM %s WHERE %s ORDER BY seq LIMIT"
                        " :n) AS first WHERE %s <= :before",
                        time, table, where, time);
    sql->cut_n = TEXT("SELECT max(seq) FROM (SELECT seq FROM %s WHERE %s ORDER BY seq LIMIT :n) AS"
                      " first",
                      table, where);
    sql->remove[0] = TEXT("DELETE FROM %s WHERE %s AND seq <= :cut", table, where);
    if (rule->is_of_project) {
        number_own(sql, noun, rule);
    }
}

static void time_rows(struct retain_sql *sql, const struct weir_noun *noun,
                      const struct weir_retain_rule *rule)
{
    const char *table = noun->table, *where = rule->where, *time = rule->time, *key = rule->key;
    sql->keys = TEXT("SELECT DISTINCT CAST(%s AS TEXT) FROM %s WHERE %s AND %s <= :before ORDER BY"
                     " %s LIMIT :n",
                     time, table, where, time, time);
    sql->remove[0] = TEXT("DELETE FROM %s WHERE (%s) IN (SELECT %s FROM %s WHERE %s AND %s ="
                          " CAST(:key AS BIGINT) LIMIT :n)",
                          table, key, key, table, where, time);
}

static void key_rows(struct retain_sql *sql, const struct weir_noun *noun,
                     const struct weir_retain_rule *rule)
{
    const char *order =
        TEXT(" ORDER BY %s, %s LIMIT :n", rule->time, given_or(rule->tie, rule->key));
    const char *old = TEXT("SELECT %s FROM %s WHERE %s AND %s <= :before AND %s", rule->key,
                           rule->from, rule->where, rule->time, rule->may);
    sql->keys = TEXT("%s%s", old, order);
    if (rule->is_of_project) {
        bool is_its_own = rule->from == noun->table;
        sql->own_keys =
            TEXT("%s AND %s%s", old,
                 is_its_own ? weir_noun_in_project(noun, &texts) : "project = :project", order);
        sql->own_count =
            TEXT("%s (%s)", given_or(rule->counted, "SELECT count(*) FROM"), sql->own_keys);
    }
    memcpy(sql->remove, rule->remove, sizeof sql->remove);
    sql->remove[0] =
        given_or(rule->remove[0], TEXT("DELETE FROM %s WHERE %s = :key AND %s AND %s", noun->table,
                                       rule->key, rule->where, rule->may));
}

/* Numbers without a condition have no gaps worth speaking of: nobody counts millions of rows. */
static const char *count_of(const struct weir_noun *noun, const struct weir_retain_rule *rule)
{
    const char *table = noun->table;
    if (rule->by == WEIR_ROWS_NUMBERED && rule->where == NULL) {
        return TEXT("SELECT coalesce((SELECT max(seq) FROM %s) - (SELECT min(seq) FROM %s) + 1, 0)",
                    table, table);
    }
    return rule->where != NULL ? TEXT("SELECT count(*) FROM %s WHERE %s", table, rule->where)
                               : TEXT("SELECT count(*) FROM %s", table);
}

static void write_sql(struct retain_sql *sql, const struct weir_noun *noun,
                      const struct weir_retain_rule *rule)
{
    struct weir_retain_rule full = *rule;
    full.from = given_or(rule->from, noun->table);
    full.key = given_or(rule->key, "id");
    full.where = given_or(rule->where, "1 = 1");
    full.may = given_or(rule->may, "1 = 1");
    sql->count = given_or(rule->count, count_of(noun, rule));
    sql->oldest = TEXT("SELECT %s FROM %s WHERE %s ORDER BY %s LIMIT 1", full.time, full.from,
                       full.where, full.time);
    if (rule->by == WEIR_ROWS_KEYED) {
        key_rows(sql, noun, &full);
    } else if (rule->by == WEIR_ROWS_NUMBERED) {
        number_rows(sql, noun, &full);
    } else {
        time_rows(sql, noun, &full);
    }
}

/* ---- the list -------------------------------------------------------------------------------- */

static struct retain_kind *add_kind(const struct weir_retain_rule *rule,
                                    const struct retain_ops *ops)
{
    int at = n_kinds++;
    assert(n_kinds <= WEIR_RETAIN_KINDS_MAX);
    for (; at > 0 && kinds[at - 1].rule->place > rule->place; at--) {
        kinds[at] = kinds[at - 1];
    }
    kinds[at] = (struct retain_kind){.rule = rule, .ops = ops};
    return &kinds[at];
}

static void gather(void)
{
    const struct weir_noun *noun;
    weir_arena_init(&texts, 0);
    for (size_t i = 0; (noun = weir_noun_at(i)) != NULL; i++) {
        for (size_t k = 0; k < WEIR_ARRAY_LEN(noun->rules) && noun->rules[k] != NULL; k++) {
            struct retain_kind *kind = add_kind(noun->rules[k], &retain_rows_ops);
            write_sql(&kind->sql, noun, noun->rules[k]);
        }
    }
    for (size_t i = 0; i < retain_n_folders; i++) {
        add_kind(&retain_folders[i].rule, &retain_folders_ops)->folder = &retain_folders[i];
    }
    (void)add_kind(&retain_blobs_rule, &retain_blobs_ops);
}

int weir_retain_n(void)
{
    (void)pthread_once(&once, gather);
    return n_kinds;
}

const struct retain_kind *retain_kind(int kind)
{
    assert(kind >= 0 && kind < weir_retain_n());
    return &kinds[kind];
}

const struct weir_retain_rule *weir_retain_rule(int kind)
{
    return retain_kind(kind)->rule;
}

int weir_retain_kind_from_text(const char *name)
{
    for (int i = 0; i < weir_retain_n(); i++) {
        if (strcmp(kinds[i].rule->name, name) == 0) {
            return i;
        }
    }
    return -1;
}
