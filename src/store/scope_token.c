#include "store/scope_token.h"

#include <string.h>
#include <strings.h>

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

struct scope_token scope_token_after(const char *at)
{
    struct scope_token token = {.at = skip_space(at)};
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

struct scope_token scope_token_next(const struct scope_token *token)
{
    return scope_token_after(token->at + token->len);
}

bool scope_token_is_sign(const struct scope_token *token, char sign)
{
    return !token->is_word && token->len == 1 && *token->at == sign;
}

bool scope_token_is_keyword(const struct scope_token *token, const char *word)
{
    return token->is_word && !token->is_quoted && token->len == strlen(word) &&
           strncasecmp(token->at, word, token->len) == 0;
}

bool scope_token_is_one_of(const struct scope_token *token, const char *const *words, size_t n)
{
    bool is = false;
    for (size_t i = 0; i < n; i++) {
        is = is || scope_token_is_keyword(token, words[i]);
    }
    return is;
}

/* Of a name, without its quotes. */
bool scope_token_is_named(const struct scope_token *token, const char *name)
{
    size_t quotes = token->is_quoted ? 1 : 0;
    return token->is_word && token->len == strlen(name) + 2 * quotes &&
           strncasecmp(token->at + quotes, name, strlen(name)) == 0;
}

/* The name without quotes and with a NUL; "" if it is too long for a table. */
void scope_token_copy(const struct scope_token *token, char *out, size_t size)
{
    size_t quotes = token->is_quoted ? 1 : 0;
    size_t len = token->len >= 2 * quotes ? token->len - 2 * quotes : 0;
    len = len < size ? len : 0;
    memcpy(out, token->at + quotes, len);
    out[len] = '\0';
}
