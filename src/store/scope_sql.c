#include "store/scope_sql.h"

#include "store/scope_token.h"

#include <string.h>

/** What the walk over a statement has found. */
struct found {
    struct scope_token verb, target, name; /**< name: what the statement calls its target. */
    const char *where;                     /**< After the word WHERE; NULL: there is none. */
    const char *end;                       /**< Of the condition, or where one would stand. */
};

/* The target behind INTO, FROM or UPDATE, and what the statement calls it. */
static struct scope_token find_target(struct scope_token token, struct found *out)
{
    bool is_update = scope_token_is_keyword(&token, "UPDATE");
    while (token.len > 0 && !scope_token_is_keyword(&token, is_update ? "UPDATE" : "INTO") &&
           !scope_token_is_keyword(&token, "FROM")) {
        token = scope_token_next(&token);
    }
    token = scope_token_next(&token);
    if (is_update && scope_token_is_keyword(&token, "OR")) {
        token = scope_token_next(&token);
        token = scope_token_next(&token);
    }
    out->target = out->name = token;
    struct scope_token as = scope_token_next(&token);
    if (scope_token_is_keyword(&as, "AS")) {
        token = out->name = scope_token_next(&as);
    }
    return scope_token_next(&token);
}

/* Where the condition is, or would be, of an UPDATE or DELETE. */
static void find_condition(struct scope_token token, struct found *out)
{
    static const char *const closing[] = {"RETURNING", "ORDER", "LIMIT"};
    int depth = 0;
    out->end = out->name.at + out->name.len;
    for (; token.len > 0; token = scope_token_next(&token)) {
        depth += scope_token_is_sign(&token, '(') - scope_token_is_sign(&token, ')');
        if (depth == 0 && (scope_token_is_one_of(&token, closing, WEIR_ARRAY_LEN(closing)) ||
                           scope_token_is_sign(&token, ';'))) {
            return;
        }
        out->end = token.at + token.len;
        if (depth == 0 && scope_token_is_keyword(&token, "WHERE")) {
            out->where = out->end;
        }
    }
}

static void find_parts(const char *sql, struct found *out)
{
    static const char *const verbs[] = {"SELECT", "VALUES",  "INSERT",
                                        "UPDATE", "REPLACE", "DELETE"};
    struct scope_token token = scope_token_after(sql);
    bool has_with = scope_token_is_keyword(&token, "WITH");
    int depth = 0;
    while (has_with && token.len > 0 &&
           (depth > 0 || !scope_token_is_one_of(&token, verbs, WEIR_ARRAY_LEN(verbs)))) {
        depth += scope_token_is_sign(&token, '(') - scope_token_is_sign(&token, ')');
        token = scope_token_next(&token);
    }
    out->verb = token;
    if (scope_token_is_one_of(&token, verbs + 2, WEIR_ARRAY_LEN(verbs) - 2)) {
        token = find_target(token, out);
    }
    if (scope_token_is_keyword(&out->verb, "UPDATE") ||
        scope_token_is_keyword(&out->verb, "DELETE")) {
        find_condition(token, out);
    }
}

weir_status scope_sql_check(const char *sql, struct weir_error *err)
{
    struct scope_token before = {0};
    for (struct scope_token token = scope_token_after(sql); token.len > 0;
         token = scope_token_next(&token)) {
        if (scope_token_is_sign(&token, '.') &&
            (scope_token_is_named(&before, "main") || scope_token_is_named(&before, "temp"))) {
            return weir_error_set(err, WEIR_ERR_INTERNAL,
                                  "a statement names a table past its scope (%.*s.): name the "
                                  "table alone: %.300s",
                                  (int)before.len, before.at, sql);
        }
        before = token;
    }
    return WEIR_OK;
}

weir_status scope_sql_write(const char *sql, scope_condition_fn condition, const void *context,
                            struct weir_buf *out, struct weir_error *err)
{
    struct found found = {0};
    struct weir_buf limit;
    char table[64] = "";
    WEIR_TRY(scope_sql_check(sql, err));
    find_parts(sql, &found);
    weir_buf_init(&limit, 1024);
    if (found.target.is_word) {
        scope_token_copy(&found.target, table, sizeof table);
    }
    if (table[0] == '\0' || !condition(context, table, found.name.at, found.name.len, &limit)) {
        weir_buf_puts(out, sql);
    } else {
        weir_buf_printf(out, "%.*smain.", (int)(found.target.at - sql), sql);
        if (found.end == NULL) {
            weir_buf_puts(out, found.target.at);
        } else if (found.where == NULL) {
            weir_buf_printf(out, "%.*s WHERE %s%s", (int)(found.end - found.target.at),
                            found.target.at, limit.data, found.end);
        } else {
            weir_buf_printf(out, "%.*s (%.*s) AND (%s)%s", (int)(found.where - found.target.at),
                            found.target.at, (int)(found.end - found.where), found.where,
                            limit.data, found.end);
        }
    }
    weir_status status = limit.status != WEIR_OK ? limit.status : out->status;
    weir_buf_fini(&limit);
    return status == WEIR_OK ? WEIR_OK
                             : weir_error_set(err, status, "a statement is too long: %.200s", sql);
}
