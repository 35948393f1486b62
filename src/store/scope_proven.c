#include "store/scope_proven.h"

#include "store/scope_sql.h"
#include "store/scope_token.h"

#include <string.h>
#include <strings.h>

#define REFS_MAX  128
#define DEPTH_MAX 32
#define NONE      SIZE_MAX

/** A table that a SELECT reads. */
struct ref {
    struct scope_token table, name; /**< name: what the SELECT calls it. */
    const struct scope_table *is;   /**< NULL: no table of the schema. */
    size_t select;
    bool is_left; /**< Of a LEFT JOIN. */
    bool is_raw;  /**< All rows that are read of it are shown to be of the project. */
};

/** The first condition of a WHERE or an ON: LEFT.COLUMN = RIGHT.COLUMN, or = :project. */
struct fact {
    struct scope_token left, left_column, right, right_column; /**< right.len 0: :project. */
    size_t select;
    size_t joined; /**< The table of the LEFT JOIN whose ON it is; NONE: it is of no such. */
    bool is_on;
    bool is_void; /**< An OR may widen it. */
};

/** Where the walk is, within parentheses of one depth. */
struct level {
    size_t select, fact; /**< NONE: in none. */
    bool is_from;        /**< Between FROM and what follows it. */
};

struct walk {
    const struct scope_map *map;
    struct ref refs[REFS_MAX];
    struct fact facts[REFS_MAX];
    size_t parents[REFS_MAX]; /**< Of each SELECT, the one around it. */
    size_t n_refs, n_facts, n_selects, depth;
    struct level levels[DEPTH_MAX];
    bool is_strange; /**< It is of another form, or too long. */
};

static bool is_same(const struct scope_token *a, const struct scope_token *b)
{
    size_t skip_a = a->is_quoted, skip_b = b->is_quoted;
    return a->is_word && b->is_word && a->len - 2 * skip_a == b->len - 2 * skip_b &&
           strncasecmp(a->at + skip_a, b->at + skip_b, a->len - 2 * skip_a) == 0;
}

/* ---- what the text says ------------------------------------------------------------------------ */

static void see_select(struct walk *walk)
{
    struct level *level = &walk->levels[walk->depth];
    if (walk->n_selects == REFS_MAX) {
        walk->is_strange = true;
        return;
    }
    walk->parents[walk->n_selects] = walk->depth > 0 ? walk->levels[walk->depth - 1].select : NONE;
    *level = (struct level){.select = walk->n_selects++, .fact = NONE};
}

/* Behind FROM or JOIN. @return The last token of it. */
static struct scope_token see_table(struct walk *walk, struct scope_token word, bool is_left)
{
    static const char *const no_names[] = {"ON",     "WHERE",     "LEFT",  "JOIN",   "CROSS",
                                           "INNER",  "ORDER",     "GROUP", "LIMIT",  "UNION",
                                           "EXCEPT", "INTERSECT", "NOT",   "INDEXED"};
    struct level *level = &walk->levels[walk->depth];
    struct scope_token table = scope_token_next(&word), name = scope_token_next(&table);
    char text[64];
    bool has_as = scope_token_is_keyword(&name, "AS");
    if (!table.is_word || scope_token_is_sign(&name, '(') || level->select == NONE ||
        walk->n_refs == REFS_MAX) {
        walk->is_strange = true;
        return word;
    }
    if (has_as) {
        name = scope_token_next(&name);
    } else if (!name.is_word || scope_token_is_one_of(&name, no_names, WEIR_ARRAY_LEN(no_names))) {
        name = table;
    }
    for (size_t i = 0; i < walk->n_refs; i++) {
        walk->is_strange |=
            walk->refs[i].select == level->select && is_same(&walk->refs[i].name, &name);
    }
    scope_token_copy(&table, text, sizeof text);
    walk->refs[walk->n_refs++] = (struct ref){.table = table,
                                              .name = name,
                                              .is = scope_map_table(walk->map, text),
                                              .select = level->select,
                                              .is_left = is_left};
    level->is_from = true;
    level->fact = NONE;
    return name;
}

/* A.B behind `before`, or :project. @return Is it one? */
static bool read_side(struct scope_token before, struct scope_token *out,
                      struct scope_token *out_column, struct scope_token *out_last)
{
    struct scope_token token = scope_token_next(&before);
    if (token.len == strlen(SCOPE_PROVEN_PARAMETER) &&
        memcmp(token.at, SCOPE_PROVEN_PARAMETER, token.len) == 0) {
        *out = (struct scope_token){0};
        *out_last = token;
        return true;
    }
    struct scope_token dot = scope_token_next(&token);
    *out = token;
    *out_column = *out_last = scope_token_next(&dot);
    return token.is_word && scope_token_is_sign(&dot, '.') && out_column->is_word;
}

/* Behind WHERE or ON. */
static void see_condition(struct walk *walk, struct scope_token word)
{
    static const char *const closing[] = {"AND",   "WHERE", "JOIN",   "LEFT",
                                          "CROSS", "INNER", "ORDER",  "GROUP",
                                          "LIMIT", "UNION", "EXCEPT", "INTERSECT"};
    struct level *level = &walk->levels[walk->depth];
    struct fact fact = {
        .select = level->select, .joined = NONE, .is_on = scope_token_is_keyword(&word, "ON")};
    struct scope_token last, plus = scope_token_next(&word);
    level->is_from = fact.is_on;
    level->fact = NONE;
    if (fact.is_on && walk->n_refs > 0 && walk->refs[walk->n_refs - 1].is_left) {
        fact.joined = walk->n_refs - 1;
    }
    bool is_one = read_side(scope_token_is_sign(&plus, '+') ? plus : word, &fact.left,
                            &fact.left_column, &last) &&
                  fact.left.len > 0;
    last = is_one ? scope_token_next(&last) : word;
    is_one = is_one && scope_token_is_sign(&last, '=') &&
             read_side(last, &fact.right, &fact.right_column, &last);
    struct scope_token next = is_one ? scope_token_next(&last) : word;
    bool is_whole = next.len == 0 || scope_token_is_sign(&next, ')') ||
                    scope_token_is_one_of(&next, closing, WEIR_ARRAY_LEN(closing));
    if (is_one && is_whole && walk->n_facts < REFS_MAX) {
        level->fact = walk->n_facts;
        walk->facts[walk->n_facts++] = fact;
    }
}

static void see_sign(struct walk *walk, const struct scope_token *token)
{
    struct level *level = &walk->levels[walk->depth];
    if (scope_token_is_sign(token, '(') && walk->depth + 1 < DEPTH_MAX) {
        walk->levels[++walk->depth] = (struct level){.select = level->select, .fact = NONE};
    } else if (scope_token_is_sign(token, ')') && walk->depth > 0) {
        walk->depth--;
    } else if (scope_token_is_sign(token, '(') || scope_token_is_sign(token, ')') ||
               scope_token_is_sign(token, ';') ||
               (scope_token_is_sign(token, ',') && level->is_from)) {
        walk->is_strange = true;
    }
}

static void read_text(struct walk *walk, const char *sql)
{
    /* A FILTER's WHERE leaves no row out, and behind IS DISTINCT a FROM names no table. */
    static const char *const strange[] = {"WITH",  "RIGHT",  "FULL",    "NATURAL",
                                          "USING", "FILTER", "DISTINCT"};
    static const char *const ends[] = {"GROUP", "HAVING", "ORDER",     "LIMIT",
                                       "UNION", "EXCEPT", "INTERSECT", "WINDOW"};
    bool is_left = false;
    walk->is_strange = strstr(sql, "/*+") != NULL; /* SQL to the driver, and a comment here */
    walk->levels[0] = (struct level){NONE, NONE, false};
    for (struct scope_token token = scope_token_after(sql); token.len > 0 && !walk->is_strange;
         token = scope_token_next(&token)) {
        struct level *level = &walk->levels[walk->depth];
        if (scope_token_is_keyword(&token, "SELECT")) {
            see_select(walk);
        } else if (scope_token_is_keyword(&token, "FROM") ||
                   scope_token_is_keyword(&token, "JOIN")) {
            token = see_table(walk, token, is_left);
        } else if (scope_token_is_keyword(&token, "ON") ||
                   scope_token_is_keyword(&token, "WHERE")) {
            see_condition(walk, token);
        } else if (scope_token_is_keyword(&token, "OR") && level->fact != NONE) {
            walk->facts[level->fact].is_void = true;
        } else if (scope_token_is_one_of(&token, ends, WEIR_ARRAY_LEN(ends))) {
            level->fact = NONE;
            level->is_from = false;
        } else if (!token.is_word) {
            see_sign(walk, &token);
        }
        walk->is_strange |= scope_token_is_one_of(&token, strange, WEIR_ARRAY_LEN(strange));
        is_left = scope_token_is_keyword(&token, "LEFT") ||
                  (is_left && scope_token_is_keyword(&token, "OUTER"));
    }
}

/* ---- what follows from it ---------------------------------------------------------------------- */

/* What the name means in the SELECT, or in one around it. NONE: nothing. */
static size_t find_ref(const struct walk *walk, const struct scope_token *name, size_t select,
                       bool is_own)
{
    for (; select != NONE; select = is_own ? NONE : walk->parents[select]) {
        for (size_t i = 0; i < walk->n_refs; i++) {
            if (walk->refs[i].select == select && is_same(&walk->refs[i].name, name)) {
                return i;
            }
        }
    }
    return NONE;
}

/* Does the fact show that rows of what is called `name`, of the SELECT itself, are of the project? */
static size_t shown_by(const struct walk *walk, const struct fact *fact,
                       const struct scope_token *name, const struct scope_token *column,
                       const struct scope_token *of, const struct scope_token *of_column)
{
    size_t i = find_ref(walk, name, fact->select, true);
    const struct scope_table *is = i != NONE ? walk->refs[i].is : NULL;
    if (is == NULL || is->kind != SCOPE_TABLE_OF_PROJECTS ||
        !scope_token_is_named(column, is->column) || (fact->joined != NONE && fact->joined != i)) {
        return NONE;
    }
    if (of->len == 0) {
        return is->i_owner == SCOPE_PROJECT && !fact->is_on ? i : NONE;
    }
    size_t k = find_ref(walk, of, fact->select, false);
    const struct scope_owner *owner = &walk->map->owners[is->i_owner];
    bool is_of = k != NONE && walk->refs[k].is_raw && is->i_owner != SCOPE_PROJECT &&
                 strcmp(walk->refs[k].is->name, owner->noun->table) == 0 &&
                 scope_token_is_named(of_column, owner->key);
    return is_of ? i : NONE;
}

static void conclude(struct walk *walk)
{
    for (size_t round = 0; round < walk->n_facts; round++) {
        bool is_news = false;
        for (size_t f = 0; f < walk->n_facts; f++) {
            const struct fact *fact = &walk->facts[f];
            size_t i = shown_by(walk, fact, &fact->left, &fact->left_column, &fact->right,
                                &fact->right_column);
            if (i == NONE && fact->right.len > 0) {
                i = shown_by(walk, fact, &fact->right, &fact->right_column, &fact->left,
                             &fact->left_column);
            }
            if (i != NONE && !fact->is_void) {
                is_news = is_news || !walk->refs[i].is_raw;
                walk->refs[i].is_raw = true;
            }
        }
        if (!is_news) {
            return;
        }
    }
}

weir_status scope_proven_write(const struct scope_map *map, const char *sql, struct weir_buf *out,
                               struct weir_error *err)
{
    struct walk walk = {.map = map};
    const char *at = sql;
    WEIR_TRY(scope_sql_check(sql, err));
    read_text(&walk, sql);
    if (!walk.is_strange) {
        conclude(&walk);
    }
    for (size_t i = 0; i < walk.n_refs; i++) {
        if (walk.refs[i].is_raw) {
            weir_buf_printf(out, "%.*smain.", (int)(walk.refs[i].table.at - at), at);
            at = walk.refs[i].table.at;
        }
    }
    weir_buf_puts(out, at);
    return out->status == WEIR_OK
               ? WEIR_OK
               : weir_error_set(err, out->status, "a statement is too long: %.200s", sql);
}
