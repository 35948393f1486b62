/** Filters and orders as text: a parser by recursive descent, bounded in length, depth and number. */
#include "track/search.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum token_kind { END, WORD, QUOTED, NUMBER, OP, OPEN, CLOSE, COMMA };

struct token {
    enum token_kind kind;
    size_t at;        /**< Where it begins. */
    const char *text; /**< Of a word: as it stands; quoted: without its quotes. */
    size_t len;       /**< Of a word, what of it is bare: before a quoted key. */
    char quote;       /**< Of QUOTED: which. */
    double number;
    enum weir_search_op op;
};

struct parser {
    const char *what, *text;
    size_t pos;
    const struct weir_search_noun *noun;
    struct weir_arena *arena;
    struct weir_error *err;
    struct token token; /**< The next one. */
    size_t n_comparisons, depth;
};

static weir_status fail(const struct parser *parser, size_t at, const char *why)
{
    return weir_error_set(parser->err, WEIR_ERR_INVALID, "%s, character %zu: %s", parser->what,
                          at + 1, why);
}

static weir_status fail_at_token(const struct parser *parser, const char *expected)
{
    const struct token *token = &parser->token;
    if (token->kind == END) {
        return fail(parser, token->at,
                    weir_arena_printf(parser->arena, "expected %s, but the text ends", expected));
    }
    size_t len = strcspn(parser->text + token->at, " \t\r\n");
    return fail(parser, token->at,
                weir_arena_printf(parser->arena, "expected %s, got %.*s", expected,
                                  (int)WEIR_MIN(len, (size_t)40), parser->text + token->at));
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static bool is_bare(char c)
{
    return isalnum((unsigned char)c) || (c != '\0' && strchr("_./-:", c) != NULL) ||
           (unsigned char)c >= 0x80;
}

/* Text up to the quote that closes it; a doubled quote stands for one. */
static weir_status read_quoted(struct parser *parser, struct token *out)
{
    const char *text = parser->text;
    char quote = text[parser->pos];
    size_t begin = parser->pos++, n = 0;
    char *copy = weir_arena_alloc(parser->arena, strlen(text + begin) + 1);
    for (;; parser->pos++) {
        char c = text[parser->pos];
        if (c == '\0') {
            return fail(parser, begin, "the quote is not closed");
        }
        if (c == quote && text[parser->pos + 1] != quote) {
            parser->pos++;
            break;
        }
        parser->pos += c == quote;
        copy[n++] = c;
    }
    *out = (struct token){.kind = QUOTED, .at = begin, .text = copy, .len = n, .quote = quote};
    return WEIR_OK;
}

static weir_status read_number(struct parser *parser, struct token *out)
{
    char *end;
    const char *begin = parser->text + parser->pos;
    double number = strtod(begin, &end);
    size_t len = (size_t)(end - begin);
    if (len == 0 || is_bare(*end) || !isfinite(number)) {
        return fail(parser, parser->pos, "expected a number");
    }
    *out = (struct token){.kind = NUMBER, .at = parser->pos, .number = number};
    parser->pos += len;
    return WEIR_OK;
}

static bool read_op(struct parser *parser, struct token *out)
{
    static const struct {
        const char *text;
        enum weir_search_op op;
    } ops[] = {{"==", WEIR_SEARCH_EQ}, {"!=", WEIR_SEARCH_NE}, {"<>", WEIR_SEARCH_NE},
               {"<=", WEIR_SEARCH_LE}, {">=", WEIR_SEARCH_GE}, {"=", WEIR_SEARCH_EQ},
               {"<", WEIR_SEARCH_LT},  {">", WEIR_SEARCH_GT}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(ops); i++) {
        size_t len = strlen(ops[i].text);
        if (strncmp(parser->text + parser->pos, ops[i].text, len) == 0) {
            *out = (struct token){.kind = OP, .at = parser->pos, .op = ops[i].op};
            parser->pos += len;
            return true;
        }
    }
    return false;
}

static bool begins_number(const char *text)
{
    const char *digits = text + (*text == '-' || *text == '+');
    digits += *digits == '.';
    return isdigit((unsigned char)*digits);
}

static void read_word(struct parser *parser, struct token *out)
{
    size_t begin = parser->pos;
    while (is_bare(parser->text[parser->pos])) {
        parser->pos++;
    }
    *out = (struct token){
        .kind = WORD, .at = begin, .text = parser->text + begin, .len = parser->pos - begin};
}

static weir_status advance(struct parser *parser)
{
    parser->pos += strspn(parser->text + parser->pos, " \t\r\n");
    const char *p = parser->text + parser->pos;
    static const char brackets[] = "(),";

    static const enum token_kind kinds[] = {OPEN, CLOSE, COMMA};

    const char *bracket = *p != '\0' ? strchr(brackets, *p) : NULL;
    if (*p == '\0') {
        parser->token = (struct token){.kind = END, .at = parser->pos};
        return WEIR_OK;
    }
    if (bracket != NULL) {
        parser->token = (struct token){.kind = kinds[bracket - brackets], .at = parser->pos++};
        return WEIR_OK;
    }
    if (*p == '\'' || *p == '"' || *p == '`') {
        return read_quoted(parser, &parser->token);
    }
    if (begins_number(p)) {
        return read_number(parser, &parser->token);
    }
    if (read_op(parser, &parser->token)) {
        return WEIR_OK;
    }
    if (!is_bare(*p)) {
        return fail(parser, parser->pos, "this character belongs to no filter");
    }
    read_word(parser, &parser->token);
    return WEIR_OK;
}

static bool is_word(const struct parser *parser, const char *word)
{
    const struct token *token = &parser->token;
    return token->kind == WORD && token->len == strlen(word) &&
           strncasecmp(token->text, word, token->len) == 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

static const struct {
    const char *text;
    enum weir_search_entity entity;
} entities[] = {
    {"metric", WEIR_SEARCH_METRIC},
    {"metrics", WEIR_SEARCH_METRIC},
    {"param", WEIR_SEARCH_PARAMETER},
    {"params", WEIR_SEARCH_PARAMETER},
    {"parameter", WEIR_SEARCH_PARAMETER},
    {"parameters", WEIR_SEARCH_PARAMETER},
    {"tag", WEIR_SEARCH_TAG},
    {"tags", WEIR_SEARCH_TAG},
    {"attribute", WEIR_SEARCH_ATTRIBUTE},
    {"attributes", WEIR_SEARCH_ATTRIBUTE},
    {"attr", WEIR_SEARCH_ATTRIBUTE},
    {"run", WEIR_SEARCH_ATTRIBUTE},
    {"dataset", WEIR_SEARCH_DATASET},
    {"datasets", WEIR_SEARCH_DATASET},
};

static bool find_entity(const char *text, size_t len, enum weir_search_entity *out)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(entities); i++) {
        if (strlen(entities[i].text) == len && strncasecmp(entities[i].text, text, len) == 0) {
            *out = entities[i].entity;
            return true;
        }
    }
    return false;
}

static weir_status find_attribute(struct parser *parser, size_t at, const char *key,
                                  const struct weir_search_attribute **out)
{
    const char *names = "";
    for (size_t i = 0; i < parser->noun->n_attributes; i++) {
        const struct weir_search_attribute *attribute = &parser->noun->attributes[i];
        if (strcasecmp(attribute->name, key) == 0) {
            *out = attribute;
            return WEIR_OK;
        }
        names = weir_arena_printf(parser->arena, "%s%s%s", names, *names != '\0' ? ", " : "",
                                  attribute->name);
    }
    return fail(parser, at,
                weir_arena_printf(parser->arena, "a %s has no attribute '%.80s'; there are: %s",
                                  parser->noun->name, key, names));
}

struct name {
    enum weir_search_entity entity;
    const char *key;
    const struct weir_search_attribute *attribute;
    size_t at;
};

static bool is_dataset_key(const char *key)
{
    return strcmp(key, "name") == 0 || strcmp(key, "digest") == 0 || strcmp(key, "context") == 0;
}

static weir_status check_name(struct parser *parser, struct name *out)
{
    if (*out->key == '\0') {
        return fail(parser, out->at, "the name is empty");
    }
    if (out->entity == WEIR_SEARCH_ATTRIBUTE) {
        return find_attribute(parser, out->at, out->key, &out->attribute);
    }
    if (parser->noun->exists[out->entity] == NULL) {
        return fail(parser, out->at,
                    weir_arena_printf(parser->arena, "a %s cannot be searched for by that",
                                      parser->noun->name));
    }
    return out->entity != WEIR_SEARCH_DATASET || is_dataset_key(out->key)
               ? WEIR_OK
               : fail(parser, out->at, "of a dataset there are: name, digest, context");
}

/* A word is "key" or "entity.key"; what follows it at once in quotes is the key: entity."key". */
static weir_status read_name(struct parser *parser, struct name *out)
{
    const struct token token = parser->token;
    *out = (struct name){.entity = WEIR_SEARCH_ATTRIBUTE, .at = token.at};
    if (token.kind != WORD && !(token.kind == QUOTED && token.quote != '\'')) {
        return fail_at_token(parser, "a name, as metrics.loss or status");
    }
    const char *dot = token.kind == WORD ? memchr(token.text, '.', token.len) : NULL;
    size_t first = dot != NULL ? (size_t)(dot - token.text) : token.len;
    bool has_entity = dot != NULL && find_entity(token.text, first, &out->entity);
    if (dot != NULL && !has_entity) {
        return fail(parser, token.at,
                    weir_arena_printf(parser->arena,
                                      "'%.*s' is none of: metrics, params, tags, attributes, "
                                      "datasets",
                                      (int)WEIR_MIN(first, (size_t)40), token.text));
    }
    size_t skip = has_entity ? first + 1 : 0;
    WEIR_TRY(advance(parser));
    bool is_quoted = has_entity && skip == token.len && parser->token.kind == QUOTED &&
                     parser->token.quote != '\'' && parser->token.at == token.at + token.len;
    if (is_quoted) {
        out->key = parser->token.text;
        WEIR_TRY(advance(parser));
    } else {
        out->key = weir_arena_memdup(parser->arena, token.text + skip, token.len - skip);
    }
    return check_name(parser, out);
}

/* ---- comparisons ------------------------------------------------------------------------------- */

static bool takes_numbers(const struct name *name)
{
    return name->entity == WEIR_SEARCH_METRIC ||
           (name->attribute != NULL && name->attribute->is_number);
}

static bool is_order_op(enum weir_search_op op)
{
    return op == WEIR_SEARCH_LT || op == WEIR_SEARCH_LE || op == WEIR_SEARCH_GT ||
           op == WEIR_SEARCH_GE;
}

static weir_status read_operator(struct parser *parser, enum weir_search_op *out)
{
    size_t at = parser->token.at;
    if (parser->token.kind == OP) {
        *out = parser->token.op;
        return advance(parser);
    }
    bool is_not = is_word(parser, "not");
    if (is_not) {
        WEIR_TRY(advance(parser));
    }
    if (is_word(parser, "in")) {
        *out = is_not ? WEIR_SEARCH_NOT_IN : WEIR_SEARCH_IN;
    } else if (!is_not && is_word(parser, "like")) {
        *out = WEIR_SEARCH_LIKE;
    } else if (!is_not && is_word(parser, "ilike")) {
        *out = WEIR_SEARCH_ILIKE;
    } else {
        parser->token.at = is_not ? at : parser->token.at;
        return fail_at_token(parser, "one of = != < <= > >= LIKE ILIKE IN NOT IN");
    }
    return advance(parser);
}

static bool is_text(const struct parser *parser)
{
    return parser->token.kind == QUOTED && parser->token.quote != '`';
}

static weir_status read_list(struct parser *parser, struct weir_search_node *out)
{
    out->texts = WEIR_ARENA_ARRAY(parser->arena, WEIR_SEARCH_LISTED_MAX, const char *);
    if (parser->token.kind != OPEN) {
        return fail_at_token(parser, "a list: ('a', 'b')");
    }
    do {
        WEIR_TRY(advance(parser));
        if (!is_text(parser)) {
            return fail_at_token(parser, "a text in quotes");
        }
        if (out->n_texts == WEIR_SEARCH_LISTED_MAX) {
            return fail(parser, parser->token.at, "the list is too long");
        }
        out->texts[out->n_texts++] = parser->token.text;
        WEIR_TRY(advance(parser));
    } while (parser->token.kind == COMMA);
    return parser->token.kind == CLOSE ? advance(parser) : fail_at_token(parser, "\",\" or \")\"");
}

static weir_status read_value(struct parser *parser, const struct name *name,
                              struct weir_search_node *out)
{
    out->is_number = takes_numbers(name);
    if (out->is_number) {
        if (parser->token.kind != NUMBER) {
            return fail_at_token(parser, "a number");
        }
        out->number = parser->token.number;
    } else {
        if (!is_text(parser)) {
            return fail_at_token(parser, "a text in quotes");
        }
        out->texts = WEIR_ARENA_NEW(parser->arena, const char *);
        out->texts[0] = parser->token.text;
        out->n_texts = 1;
    }
    return advance(parser);
}

static weir_status read_comparison(struct parser *parser, struct weir_search_node **out)
{
    struct name name;
    struct weir_search_node *node = WEIR_ARENA_NEW(parser->arena, struct weir_search_node);
    if (++parser->n_comparisons > WEIR_SEARCH_COMPARISONS_MAX) {
        return fail(parser, parser->token.at,
                    weir_arena_printf(parser->arena, "there are more than %d comparisons",
                                      WEIR_SEARCH_COMPARISONS_MAX));
    }
    WEIR_TRY(read_name(parser, &name));
    *node = (struct weir_search_node){.kind = WEIR_SEARCH_COMPARE,
                                      .entity = name.entity,
                                      .key = name.key,
                                      .attribute = name.attribute};
    size_t at = parser->token.at;
    WEIR_TRY(read_operator(parser, &node->op));
    bool is_of_numbers = takes_numbers(&name);
    bool is_list = node->op == WEIR_SEARCH_IN || node->op == WEIR_SEARCH_NOT_IN;
    if (is_of_numbers ? node->op >= WEIR_SEARCH_LIKE : is_order_op(node->op)) {
        return fail(parser, at,
                    is_of_numbers ? "a number is compared with = != < <= > >="
                                  : "a text is compared with = != LIKE ILIKE IN NOT IN");
    }
    *out = node;
    return is_list ? read_list(parser, node) : read_value(parser, &name, node);
}

/* ---- and, or, not ------------------------------------------------------------------------------ */

static weir_status read_or(struct parser *parser, struct weir_search_node **out);

static struct weir_search_node *join(struct parser *parser, enum weir_search_kind kind,
                                     struct weir_search_node *left, struct weir_search_node *right)
{
    struct weir_search_node *node = WEIR_ARENA_NEW(parser->arena, struct weir_search_node);
    *node = (struct weir_search_node){.kind = kind, .left = left, .right = right};
    return node;
}

static weir_status read_not(struct parser *parser, struct weir_search_node **out)
{
    if (++parser->depth > WEIR_SEARCH_DEPTH_MAX) {
        return fail(parser, parser->token.at, "it is nested too deep");
    }
    if (is_word(parser, "not")) {
        struct weir_search_node *of;
        WEIR_TRY(advance(parser));
        WEIR_TRY(read_not(parser, &of));
        *out = join(parser, WEIR_SEARCH_NOT, of, NULL);
    } else if (parser->token.kind == OPEN) {
        WEIR_TRY(advance(parser));
        WEIR_TRY(read_or(parser, out));
        if (parser->token.kind != CLOSE) {
            return fail_at_token(parser, "AND, OR or \")\"");
        }
        WEIR_TRY(advance(parser));
    } else {
        WEIR_TRY(read_comparison(parser, out));
    }
    parser->depth--;
    return WEIR_OK;
}

static weir_status read_and(struct parser *parser, struct weir_search_node **out)
{
    WEIR_TRY(read_not(parser, out));
    while (is_word(parser, "and")) {
        struct weir_search_node *right;
        WEIR_TRY(advance(parser));
        WEIR_TRY(read_not(parser, &right));
        *out = join(parser, WEIR_SEARCH_AND, *out, right);
    }
    return WEIR_OK;
}

static weir_status read_or(struct parser *parser, struct weir_search_node **out)
{
    WEIR_TRY(read_and(parser, out));
    while (is_word(parser, "or")) {
        struct weir_search_node *right;
        WEIR_TRY(advance(parser));
        WEIR_TRY(read_and(parser, &right));
        *out = join(parser, WEIR_SEARCH_OR, *out, right);
    }
    return WEIR_OK;
}

static weir_status begin(struct parser *parser)
{
    if (strlen(parser->text) > WEIR_SEARCH_TEXT_MAX) {
        return weir_error_set(parser->err, WEIR_ERR_INVALID, "%s: more than %d bytes", parser->what,
                              WEIR_SEARCH_TEXT_MAX);
    }
    return advance(parser);
}

weir_status weir_search_parse(const char *text, const struct weir_search_noun *noun,
                              struct weir_arena *arena, struct weir_search_node **out,
                              struct weir_error *err)
{
    struct weir_error ignored;
    struct parser parser = {.what = "filter",
                            .text = text != NULL ? text : "",
                            .noun = noun,
                            .arena = arena,
                            .err = err != NULL ? err : &ignored};
    struct weir_search_node *root = NULL;
    WEIR_TRY(begin(&parser));
    if (parser.token.kind != END) {
        WEIR_TRY(read_or(&parser, &root));
        if (parser.token.kind != END) {
            return fail_at_token(&parser, "AND, OR or the end");
        }
    }
    *out = root;
    return WEIR_OK;
}

weir_status weir_search_parse_order(const char *text, const struct weir_search_noun *noun,
                                    struct weir_arena *arena, struct weir_search_order *out,
                                    struct weir_error *err)
{
    struct weir_error ignored;
    struct parser parser = {.what = "order",
                            .text = text,
                            .noun = noun,
                            .arena = arena,
                            .err = err != NULL ? err : &ignored};
    struct name name;
    WEIR_TRY(begin(&parser));
    WEIR_TRY(read_name(&parser, &name));
    if (name.entity != WEIR_SEARCH_ATTRIBUTE && noun->join[name.entity] == NULL) {
        return fail(&parser, name.at, "nothing is ordered by that");
    }
    *out = (struct weir_search_order){name.entity, name.key, name.attribute, false};
    if (is_word(&parser, "desc") || is_word(&parser, "asc")) {
        out->is_descending = is_word(&parser, "desc");
        WEIR_TRY(advance(&parser));
    }
    return parser.token.kind == END ? WEIR_OK : fail_at_token(&parser, "ASC, DESC or the end");
}

/* ---- made without a text ----------------------------------------------------------------------- */

struct weir_search_node *weir_search_and(struct weir_arena *arena, struct weir_search_node *a,
                                         struct weir_search_node *b)
{
    if (a == NULL || b == NULL) {
        return a != NULL ? a : b;
    }
    struct weir_search_node *node = WEIR_ARENA_NEW(arena, struct weir_search_node);
    *node = (struct weir_search_node){.kind = WEIR_SEARCH_AND, .left = a, .right = b};
    return node;
}

struct weir_search_node *weir_search_equals(struct weir_arena *arena,
                                            const struct weir_search_noun *noun, const char *name,
                                            const char *value)
{
    struct weir_search_node *node = WEIR_ARENA_NEW(arena, struct weir_search_node);
    size_t i = 0;
    while (i + 1 < noun->n_attributes && strcmp(noun->attributes[i].name, name) != 0) {
        i++;
    }
    assert(strcmp(noun->attributes[i].name, name) == 0 && !noun->attributes[i].is_number);
    *node = (struct weir_search_node){.kind = WEIR_SEARCH_COMPARE,
                                      .entity = WEIR_SEARCH_ATTRIBUTE,
                                      .key = name,
                                      .attribute = &noun->attributes[i],
                                      .op = WEIR_SEARCH_EQ,
                                      .texts = WEIR_ARENA_NEW(arena, const char *),
                                      .n_texts = 1};
    node->texts[0] = value;
    return node;
}
