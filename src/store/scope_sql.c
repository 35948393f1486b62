#include "store/scope_sql.h"

#include <string.h>
#include <strings.h>

/** A word (also one in quotes) is a name or a keyword; anything else is a sign, a parameter or a number. */
struct token {
    const char *at; /**< At the end of the text: its NUL. */
    size_t len;
    bool is_word, is_quoted;
};

/** What the walk over a statement has found. */
struct found {
    struct token verb, target, name; /**< name: what the statement calls its target. */
    const char *where;               /**< After the word WHERE; NULL: there is none. */
    const char *end;                 /**< Of the condition, or where one would stand. */
};

static bool is_of_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || (unsigned char)c >= 0x80;
}

static const char *skip_space(const char *at)
{
    for (;;) {
        if (*at == ' ' || (*at >= '\t' && *at <= '\r')) {
            at++;
        } else if (strncmp(at, "\xEF\xBB\xBF", 3) == 0) { /* a byte order mark is a space, too */
            at += 3;
        } else if (strncmp(at, "--", 2) == 0) {
            at += strcspn(at, "\n");
        } else if (strncmp(at, "/*", 2) == 0) {
            const char *end = strstr(at + 2, "*/");
            at = end != NULL ? end + 2 : at + strlen(at);
        } else {
            return at;
        }
    }
}

/* Behind the closing quote; two of it in a row are one of the text. */
static const char *skip_quoted(const char *at)
{
    char quote = *at == '[' ? ']' : *at;
    for (at++; *at != '\0'; at++) {
        if (*at == quote && (quote == ']' || at[1] != quote)) {
            return at + 1;
        }
        at += *at == quote;
    }
    return at;
}

static struct token token_after(const char *at)
{
    struct token token = {.at = skip_space(at)};
    const char *end = token.at;
    token.is_quoted = *end == '"' || *end == '\'' || *end == '`' || *end == '[';
    token.is_word = token.is_quoted || is_of_word(*end);
    if (token.is_quoted) {
        end = skip_quoted(end);
    } else if (token.is_word || *end == ':' || *end == '@' || *end == '?') {
        do {
            end++;
        } while (is_of_word(*end));
    } else if (*end != '\0') {
        end++;
    }
    token.len = (size_t)(end - token.at);
    return token;
}

static struct token next(const struct token *token)
{
    return token_after(token->at + token->len);
}

static bool is_sign(const struct token *token, char sign)
{
    return !token->is_word && token->len == 1 && *token->at == sign;
}

static bool is_keyword(const struct token *token, const char *word)
{
    return token->is_word && !token->is_quoted && token->len == strlen(word) &&
           strncasecmp(token->at, word, token->len) == 0;
}

static bool is_one_of(const struct token *token, const char *const *words, size_t n)
{
    bool is = false;
    for (size_t i = 0; i < n; i++) {
        is = is || is_keyword(token, words[i]);
    }
    return is;
}

/* Of a name, without its quotes. */
static bool is_named(const struct token *token, const char *name)
{
    size_t quotes = token->is_quoted ? 1 : 0;
    return token->is_word && token->len == strlen(name) + 2 * quotes &&
           strncasecmp(token->at + quotes, name, strlen(name)) == 0;
}

/* The target behind INTO, FROM or UPDATE, and what the statement calls it. */
static struct token find_target(struct token token, struct found *out)
{
    bool is_update = is_keyword(&token, "UPDATE");
    while (token.len > 0 && !is_keyword(&token, is_update ? "UPDATE" : "INTO") &&
           !is_keyword(&token, "FROM")) {
        token = next(&token);
    }
    token = next(&token);
    if (is_update && is_keyword(&token, "OR")) {
        token = next(&token);
        token = next(&token);
    }
    out->target = out->name = token;
    struct token as = next(&token);
    if (is_keyword(&as, "AS")) {
        token = out->name = next(&as);
    }
    return next(&token);
}

/* Where the condition is, or would be, of an UPDATE or DELETE. */
static void find_condition(struct token token, struct found *out)
{
    static const char *const closing[] = {"RETURNING", "ORDER", "LIMIT"};
    int depth = 0;
    out->end = out->name.at + out->name.len;
    for (; token.len > 0; token = next(&token)) {
        depth += is_sign(&token, '(') - is_sign(&token, ')');
        if (depth == 0 &&
            (is_one_of(&token, closing, WEIR_ARRAY_LEN(closing)) || is_sign(&token, ';'))) {
            return;
        }
        out->end = token.at + token.len;
        if (depth == 0 && is_keyword(&token, "WHERE")) {
            out->where = out->end;
        }
    }
}

static void find_parts(const char *sql, struct found *out)
{
    static const char *const verbs[] = {"SELECT", "VALUES",  "INSERT",
                                        "UPDATE", "REPLACE", "DELETE"};
    struct token token = token_after(sql);
    bool has_with = is_keyword(&token, "WITH");
    int depth = 0;
    while (has_with && token.len > 0 &&
           (depth > 0 || !is_one_of(&token, verbs, WEIR_ARRAY_LEN(verbs)))) {
        depth += is_sign(&token, '(') - is_sign(&token, ')');
        token = next(&token);
    }
    out->verb = token;
    if (is_one_of(&token, verbs + 2, WEIR_ARRAY_LEN(verbs) - 2)) {
        token = find_target(token, out);
    }
    if (is_keyword(&out->verb, "UPDATE") || is_keyword(&out->verb, "DELETE")) {
        find_condition(token, out);
    }
}

static weir_status check_schemas(const char *sql, struct weir_error *err)
{
    struct token before = {0};
    for (struct token token = token_after(sql); token.len > 0; token = next(&token)) {
        if (is_sign(&token, '.') && (is_named(&before, "main") || is_named(&before, "temp"))) {
            return weir_error_set(err, WEIR_ERR_INTERNAL,
                                  "a statement names a table past its scope (%.*s.): name the "
                                  "table alone: %.300s",
                                  (int)before.len, before.at, sql);
        }
        before = token;
    }
    return WEIR_OK;
}

/* The name without quotes and with a NUL; "" if it is too long for a table. */
static void copy_name(const struct token *token, char *out, size_t size)
{
    size_t quotes = token->is_quoted ? 1 : 0;
    size_t len = token->len >= 2 * quotes ? token->len - 2 * quotes : 0;
    len = len < size ? len : 0;
    memcpy(out, token->at + quotes, len);
    out[len] = '\0';
}

weir_status scope_sql_write(const char *sql, scope_condition_fn condition, const void *context,
                            struct weir_buf *out, struct weir_error *err)
{
    struct found found = {0};
    struct weir_buf limit;
    char table[64] = "";
    WEIR_TRY(check_schemas(sql, err));
    find_parts(sql, &found);
    weir_buf_init(&limit, 1024);
    if (found.target.is_word) {
        copy_name(&found.target, table, sizeof table);
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
