#include "base/options_private.h"

#include "base/macros.h"
#include "base/names.h"
#include "base/quantity.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct weir_option *options_find_long(const struct options_parser *parser, const char *name,
                                            size_t len)
{
    for (size_t i = 0; i < parser->n_options; i++) {
        const struct weir_option *option = &parser->options[i];
        if (strlen(option->name) == len && memcmp(option->name, name, len) == 0) {
            return option;
        }
    }
    return NULL;
}

static const struct weir_option *find_short(const struct options_parser *parser, char name)
{
    for (size_t i = 0; i < parser->n_options; i++) {
        if (parser->options[i].short_name == name) {
            return &parser->options[i];
        }
    }
    return NULL;
}

/* -1 is "not said" of those whose range begins there. */
static weir_status set_cpus(const struct options_parser *parser, const struct weir_option *option,
                            const char *source, const char *text)
{
    int64_t millis = -1000;
    bool is_unsaid = option->min < 0 && strcmp(text, "-1") == 0;
    if (!is_unsaid && !weir_cpus_parse(text, &millis)) {
        return weir_error_set(parser->err, WEIR_ERR_INVALID,
                              "%s: expected processors, as 2, 0.5 or 500m, got \"%.60s\"", source,
                              text);
    }
    if (!is_unsaid && option->min < option->max && (double)millis > option->max * 1000) {
        return weir_error_set(parser->err, WEIR_ERR_INVALID, "%s: %s is outside 0 … %g", source,
                              text, option->max);
    }
    *(int64_t *)((char *)parser->out + option->offset) = millis;
    return WEIR_OK;
}

static weir_status set_number(const struct options_parser *parser, const struct weir_option *option,
                              const char *source, const char *text)
{
    void *member = (char *)parser->out + option->offset;
    char *end;
    errno = 0;
    bool is_int = option->type == WEIR_OPTION_INT;
    long long integer = is_int ? strtoll(text, &end, 10) : 0;
    double number = is_int ? (double)integer : strtod(text, &end);
    if (end == text || *end != '\0' || errno != 0 || !isfinite(number)) {
        return weir_error_set(parser->err, WEIR_ERR_INVALID, "%s: expected %s, got \"%.60s\"",
                              source, is_int ? "an integer" : "a number", text);
    }
    if (option->min < option->max && (number < option->min || number > option->max)) {
        return weir_error_set(parser->err, WEIR_ERR_INVALID, "%s: %s is outside %g … %g", source,
                              text, option->min, option->max);
    }
    if (is_int) {
        *(int64_t *)member = integer;
    } else {
        *(double *)member = number;
    }
    return WEIR_OK;
}

weir_status weir_option_check_word(const struct weir_option *option, const char *source,
                                   const char *text, struct weir_error *err)
{
    struct weir_names known = {0};
    struct weir_nearest nearest = {0};
    char key[OPTIONS_NAME_BYTES];
    size_t len = option->flags & WEIR_OPTION_SETTINGS ? strcspn(text, ":") : strlen(text);
    for (size_t i = 0; option->words != NULL && option->words[i] != NULL; i++) {
        const char *word = option->words[i];
        if (strlen(word) == len && memcmp(word, text, len) == 0) {
            return WEIR_OK;
        }
        weir_names_add(&known, word, strlen(word));
        weir_nearest_see(&nearest, text, len, word);
    }
    bool is_near = nearest.name != NULL;
    return option->words == NULL
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "%s: \"%.*s\" is none of %s%s%s%s",
                                source != NULL ? source : options_swap(option->name, '-', '_', key),
                                (int)WEIR_MIN(len, (size_t)60), text, known.text,
                                is_near ? "; did you mean " : "", is_near ? nearest.name : "",
                                is_near ? "?" : "");
}

const char *options_swap(const char *text, char from, char to, char out[OPTIONS_NAME_BYTES])
{
    (void)snprintf(out, OPTIONS_NAME_BYTES, "%s", text);
    for (char *p = out; *p != '\0'; p++) {
        *p = *p == from ? to : *p;
    }
    return out;
}

weir_status options_set(const struct options_parser *parser, const struct weir_option *option,
                        const char *source, const char *text)
{
    void *member = (char *)parser->out + option->offset;
    switch (option->type) {
    case WEIR_OPTION_TEXTS:
    case WEIR_OPTION_MAP:
    case WEIR_OPTION_JSON:
        return weir_error_set(parser->err, WEIR_ERR_INVALID, "%s: can only be given as JSON",
                              source);
    case WEIR_OPTION_TEXT:
        WEIR_TRY(weir_option_check_word(option, source, text, parser->err));
        *(char **)member = weir_arena_strdup(parser->arena, text);
        return WEIR_OK;
    case WEIR_OPTION_LIST: {
        char *before = *(char **)member;
        *(char **)member = before == NULL
                               ? weir_arena_strdup(parser->arena, text)
                               : weir_arena_printf(parser->arena, "%s\n%s", before, text);
        return WEIR_OK;
    }
    case WEIR_OPTION_BOOL:
        if (strcmp(text, "true") != 0 && strcmp(text, "1") != 0 && strcmp(text, "false") != 0 &&
            strcmp(text, "0") != 0) {
            return weir_error_set(parser->err, WEIR_ERR_INVALID,
                                  "%s: expected true or false, got \"%.60s\"", source, text);
        }
        *(bool *)member = text[0] == 't' || text[0] == '1';
        return WEIR_OK;
    case WEIR_OPTION_CPUS:
        return set_cpus(parser, option, source, text);
    default:
        return set_number(parser, option, source, text);
    }
}

weir_status options_set_defaults(const struct options_parser *parser)
{
    for (size_t i = 0; i < parser->n_options; i++) {
        const struct weir_option *option = &parser->options[i];
        if (option->fallback != NULL) {
            WEIR_TRY(options_set(parser, option, option->name, option->fallback));
        }
    }
    return WEIR_OK;
}

void weir_options_defaults(const struct weir_option *options, size_t n_options,
                           struct weir_arena *arena, void *out)
{
    struct options_parser parser = {options, n_options, arena, out, NULL, false};
    /* A table's defaults are valid: a test of each registry sees to it. */
    weir_status status = options_set_defaults(&parser);
    assert(status == WEIR_OK);
    (void)status;
}

static weir_status set_from_environment(const struct options_parser *parser)
{
    for (size_t i = 0; i < parser->n_options; i++) {
        char name[OPTIONS_NAME_BYTES] = "WEIR_";
        size_t len = strlen(name);
        for (const char *p = parser->options[i].name; *p != '\0' && len + 1 < sizeof name; p++) {
            name[len++] = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
        }
        name[len] = '\0';
        const char *text = getenv(name);
        if (text != NULL) {
            WEIR_TRY(options_set(parser, &parser->options[i], name, text));
        }
    }
    return WEIR_OK;
}

static weir_status unknown_flag(const struct options_parser *parser, const char *word,
                                size_t name_len)
{
    struct weir_nearest nearest = {0};
    for (size_t i = 0; i < parser->n_options; i++) {
        weir_nearest_see(&nearest, word + 2, name_len, parser->options[i].name);
    }
    if (nearest.name != NULL) {
        return weir_error_set(parser->err, WEIR_ERR_INVALID,
                              "unknown option %.*s; did you mean --%s?", (int)(name_len + 2), word,
                              nearest.name);
    }
    return weir_error_set(parser->err, WEIR_ERR_INVALID, "unknown option %.60s; --help lists them",
                          word);
}

/* One flag at argv[*i]; moves *i to its last word. */
static weir_status parse_flag(const struct options_parser *parser, int argc, char *const *argv,
                              int *i)
{
    const char *word = argv[*i], *value = NULL;
    const struct weir_option *option;
    char source[OPTIONS_NAME_BYTES];
    if (word[1] == '-') {
        size_t len = strcspn(word + 2, "=");
        value = word[2 + len] == '=' ? word + 3 + len : NULL;
        option = options_find_long(parser, word + 2, len);
        if (option == NULL && strncmp(word, "--no-", 5) == 0 && value == NULL) {
            option = options_find_long(parser, word + 5, strlen(word + 5));
            if (option != NULL && option->type == WEIR_OPTION_BOOL) {
                return options_set(parser, option, word, "false");
            }
            option = NULL;
        }
        if (option == NULL) {
            return unknown_flag(parser, word, len);
        }
    } else {
        option = find_short(parser, word[1]);
        value = word[2] != '\0' ? word + 2 : NULL;
        if (option == NULL) {
            return weir_error_set(parser->err, WEIR_ERR_INVALID, "unknown option %.60s", word);
        }
    }
    if (option->type == WEIR_OPTION_BOOL && value == NULL) {
        value = "true";
    } else if (value == NULL && *i + 1 < argc) {
        value = argv[++*i];
    }
    (void)snprintf(source, sizeof source, "--%s", option->name);
    if (value == NULL) {
        return weir_error_set(parser->err, WEIR_ERR_INVALID, "%s needs a value (%s)", source,
                              option->arg != NULL ? option->arg : "VALUE");
    }
    return options_set(parser, option, source, value);
}

/* A LIST given as flags replaces what default and environment said, then collects. */
static void clear_flagged_lists(const struct options_parser *parser, int argc, char *const *argv)
{
    for (size_t o = 0; o < parser->n_options; o++) {
        const struct weir_option *option = &parser->options[o];
        size_t len = strlen(option->name);
        for (int i = 0; i < argc && option->type == WEIR_OPTION_LIST; i++) {
            bool is_long =
                strncmp(argv[i], "--", 2) == 0 && strncmp(argv[i] + 2, option->name, len) == 0;
            bool is_short = argv[i][0] == '-' && argv[i][1] != '-' && argv[i][1] != '\0' &&
                            argv[i][1] == option->short_name;
            if (is_long || is_short) {
                *(char **)((char *)parser->out + option->offset) = NULL;
            }
        }
    }
}

weir_status weir_options_parse(const struct weir_option *options, size_t n_options, int argc,
                               char *const *argv, struct weir_arena *arena, void *out,
                               char ***out_words, size_t *out_n_words, struct weir_error *err)
{
    struct options_parser parser = {options, n_options, arena, out, err, false};
    WEIR_TRY(options_set_defaults(&parser));
    WEIR_TRY(set_from_environment(&parser));
    clear_flagged_lists(&parser, argc, argv);
    char **words = WEIR_ARENA_ARRAY(arena, (size_t)argc + 1, char *);
    size_t n_words = 0;
    bool has_ended = false;
    for (int i = 0; i < argc; i++) {
        if (!has_ended && strcmp(argv[i], "--") == 0) {
            has_ended = true;
        } else if (!has_ended && argv[i][0] == '-' && argv[i][1] != '\0') {
            WEIR_TRY(parse_flag(&parser, argc, argv, &i));
        } else {
            words[n_words++] = weir_arena_strdup(arena, argv[i]);
        }
    }
    *out_words = words;
    *out_n_words = n_words;
    return WEIR_OK;
}

void weir_options_print(const struct weir_option *options, size_t n_options, FILE *file)
{
    enum { COLUMN = 34 };

    for (size_t i = 0; i < n_options; i++) {
        const struct weir_option *option = &options[i];
        char flag[120], shorts[6] = "    ";
        if (option->short_name != 0) {
            (void)snprintf(shorts, sizeof shorts, "-%c, ", option->short_name);
        }
        bool has_arg = option->type != WEIR_OPTION_BOOL;
        (void)snprintf(flag, sizeof flag, "  %s--%s%s%s", shorts, option->name, has_arg ? " " : "",
                       !has_arg              ? ""
                       : option->arg != NULL ? option->arg
                                             : "VALUE");
        (void)fprintf(file, "%-*s  %s", COLUMN, flag, option->doc);
        if (option->fallback != NULL && option->fallback[0] != '\0') {
            (void)fprintf(file, " [%s]", option->fallback);
        }
        (void)fputc('\n', file);
    }
}
