/** The tokens of a statement's text (store/scope_sql.h, store/scope_proven.h). Nothing is copied. */
#ifndef WEIR_STORE_SCOPE_TOKEN_H
#define WEIR_STORE_SCOPE_TOKEN_H

#include <stdbool.h>
#include <stddef.h>

/** A word (also one in quotes) is a name or a keyword; anything else is a sign, a parameter or a number. */
struct scope_token {
    const char *at; /**< At the end of the text: its NUL. */
    size_t len;
    bool is_word, is_quoted;
};

/** The first token from here on; spaces and comments are none. len 0: the text has ended. */
struct scope_token scope_token_after(const char *at);
struct scope_token scope_token_next(const struct scope_token *token);

bool scope_token_is_sign(const struct scope_token *token, char sign);
bool scope_token_is_keyword(const struct scope_token *token, const char *word);
bool scope_token_is_one_of(const struct scope_token *token, const char *const *words, size_t n);

/** Is it this name, in quotes or not? */
bool scope_token_is_named(const struct scope_token *token, const char *name);

/** The name without quotes and with a NUL; "" if it is too long. */
void scope_token_copy(const struct scope_token *token, char *out, size_t size);

#endif
