#include "cli/job/sbatch.h"

#include "cli/job/sbatch_private.h"

#include <ctype.h>
#include <string.h>

static const char magic[] = "#SBATCH";

/* ---- lines ---------------------------------------------------------------------------------------- */

/* One line of the script, without its end. */
struct line {
    const char *text;
    size_t len;
    int number;
};

/* False: there is none more. */
static bool next_line(const char **rest, struct line *line)
{
    if (**rest == '\0') {
        return false;
    }
    line->text = *rest;
    line->len = strcspn(*rest, "\n");
    line->number++;
    *rest += line->len + ((*rest)[line->len] == '\n');
    return true;
}

static bool is_of_sbatch(const struct line *line)
{
    return strncmp(line->text, magic, sizeof magic - 1) == 0;
}

static bool is_command(const struct line *line)
{
    size_t i = 0;
    while (i < line->len && isspace((unsigned char)line->text[i])) {
        i++;
    }
    return i < line->len && line->text[i] != '#';
}

/* ---- words ---------------------------------------------------------------------------------------- */

/* A word of a line #SBATCH. */
struct word {
    char *text;
    int line;
};

struct words {
    struct word *items;
    size_t n, capacity;
};

static void add_word(struct words *words, struct weir_arena *arena, char *text, int line)
{
    if (words->n == words->capacity) {
        struct word *old = words->items;
        words->capacity = words->capacity * 2 + 16;
        words->items = WEIR_ARENA_ARRAY(arena, words->capacity, struct word);
        if (words->n > 0) {
            memcpy(words->items, old, words->n * sizeof *old);
        }
    }
    words->items[words->n++] = (struct word){text, line};
}

/* The word at `at`, without its quotes, into `out`. @return Behind it; NULL: a quote is not closed. */
static const char *copy_word(const char *at, const char *end, char *out)
{
    char quote = 0;
    while (at < end && (quote != 0 || (!isspace((unsigned char)*at) && *at != '#'))) {
        bool is_escape = *at == '\\' && at + 1 < end && !isspace((unsigned char)at[1]);
        if (is_escape) {
            at++;
            *out++ = *at;
        } else if (quote == 0 && (*at == '"' || *at == '\'')) {
            quote = *at;
        } else if (quote != 0 && *at == quote) {
            quote = 0;
        } else {
            *out++ = *at;
        }
        at++;
    }
    *out = '\0';
    return quote == 0 ? at : NULL;
}

static weir_status split(const struct line *line, struct weir_arena *arena, struct words *words,
                         struct weir_error *err)
{
    const char *at = line->text + sizeof magic - 1, *end = line->text + line->len;
    for (;;) {
        while (at < end && isspace((unsigned char)*at)) {
            at++;
        }
        if (at == end || *at == '#') {
            return WEIR_OK;
        }
        char *word = weir_arena_alloc(arena, (size_t)(end - at) + 1);
        const char *behind = copy_word(at, end, word);
        if (behind == NULL) {
            return weir_error_set(err, WEIR_ERR_INVALID, "line %d: a quote is not closed: %.*s",
                                  line->number, (int)WEIR_MIN(end - at, (ptrdiff_t)80), at);
        }
        at = behind;
        add_word(words, arena, word, line->number);
    }
}

/* ---- options -------------------------------------------------------------------------------------- */

struct reading {
    struct words words;
    size_t i; /* the next word */
    struct weir_arena *arena;
    struct sbatch_values values;
    struct sbatch *out;
};

/* The value that the next word is; NULL: there is none. */
static const char *value_behind(struct reading *reading)
{
    return reading->i < reading->words.n ? reading->words.items[reading->i++].text : NULL;
}

static weir_status take(struct reading *reading, const struct sbatch_option *option,
                        const char *given, int line, struct weir_error *err)
{
    if (option->takes == SBATCH_A_VALUE && given == NULL) {
        given = value_behind(reading);
    }
    if (option->takes == SBATCH_A_VALUE && given == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "line %d: --%s: a value is missing", line,
                              option->name);
    }
    return sbatch_take(option, given, line, reading->arena, &reading->values, reading->out, err);
}

static weir_status take_long(struct reading *reading, const struct word *word,
                             struct weir_error *err)
{
    const struct sbatch_option *option;
    const char *name = word->text + 2, *equals = strchr(name, '=');
    size_t len = equals != NULL ? (size_t)(equals - name) : strlen(name);
    if (sbatch_option_find(name, len, &option, err) != WEIR_OK) {
        return weir_error_prefix(err, "line %d: %.60s: ", word->line, word->text);
    }
    if (option->takes == SBATCH_NOTHING && equals != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "line %d: %.60s: --%s takes no value",
                              word->line, word->text, option->name);
    }
    return take(reading, option, equals != NULL ? equals + 1 : NULL, word->line, err);
}

/* "-HN2" is -H and -N 2. */
static weir_status take_letters(struct reading *reading, const struct word *word,
                                struct weir_error *err)
{
    for (const char *at = word->text + 1; *at != '\0'; at++) {
        const struct sbatch_option *option = sbatch_option_of_letter(*at);
        if (option == NULL) {
            return weir_error_set(err, WEIR_ERR_INVALID, "line %d: %.60s: sbatch has no option -%c",
                                  word->line, word->text, *at);
        }
        bool has_value = option->takes != SBATCH_NOTHING && at[1] != '\0';
        WEIR_TRY(take(reading, option, has_value ? at + 1 : NULL, word->line, err));
        if (has_value) {
            return WEIR_OK;
        }
    }
    return WEIR_OK;
}

static weir_status take_all(struct reading *reading, struct weir_error *err)
{
    while (reading->i < reading->words.n) {
        const struct word word = reading->words.items[reading->i++];
        bool is_long = strncmp(word.text, "--", 2) == 0 && word.text[2] != '\0';
        bool is_short =
            !is_long && word.text[0] == '-' && word.text[1] != '\0' && word.text[1] != '-';
        if (!is_long && !is_short) {
            return weir_error_set(
                err, WEIR_ERR_INVALID,
                "line %d: \"%.60s\" is no option: expected --NAME=VALUE or -LETTER "
                "VALUE",
                word.line, word.text);
        }
        WEIR_TRY(is_long ? take_long(reading, &word, err) : take_letters(reading, &word, err));
    }
    return WEIR_OK;
}

/* ---- the script ----------------------------------------------------------------------------------- */

/* "#!/bin/bash -l": the program, and the rest as one word, as the kernel has it. */
static weir_status read_interpreter(const struct line *line, struct weir_arena *arena,
                                    struct sbatch *out, struct weir_error *err)
{
    const char *at = line->text + 2, *end = line->text + line->len;
    out->argv = WEIR_ARENA_ARRAY(arena, 2, char *);
    if (line->len < 2 || strncmp(line->text, "#!", 2) != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "line 1: a batch script begins with \"#!\" and the path of what runs "
                              "it, as #!/bin/bash");
    }
    while (at < end && out->n_argv < 2) {
        size_t blanks = strspn(at, " \t");
        at += WEIR_MIN((ptrdiff_t)blanks, end - at);
        size_t len = out->n_argv == 0 ? strcspn(at, " \t\n") : (size_t)(end - at);
        while (len > 0 && isspace((unsigned char)at[len - 1])) {
            len--;
        }
        if (len == 0) {
            break;
        }
        out->argv[out->n_argv++] = weir_arena_memdup(arena, at, len);
        at += len;
    }
    return out->n_argv > 0 ? WEIR_OK
                           : weir_error_set(err, WEIR_ERR_INVALID, "line 1: #! names no program");
}

/* The lines up to the first command; then what stands behind it in vain. */
static weir_status read_lines(const char *text, struct reading *reading, struct weir_error *err)
{
    struct line line = {0}, first = {0};
    bool is_over = false;
    while (next_line(&text, &line)) {
        first = line.number == 1 ? line : first;
        bool is_own = is_of_sbatch(&line);
        if (is_over && is_own) {
            sbatch_remark(
                reading->out, line.number, magic,
                "it stands behind the first command, where sbatch does not read it either");
            break;
        }
        is_over = is_over || (!is_own && is_command(&line));
        if (is_own) {
            reading->out->has_options = true;
            WEIR_TRY(split(&line, reading->arena, &reading->words, err));
        }
    }
    return reading->out->has_options ? read_interpreter(&first, reading->arena, reading->out, err)
                                     : WEIR_OK;
}

static weir_status check_text(const char *text, size_t len, struct weir_error *err)
{
    const char *dos = strstr(text, "\r\n");
    int line = 1;
    for (const char *at = text; dos != NULL && at < dos; at++) {
        line += *at == '\n';
    }
    if (strlen(text) != len) {
        return weir_error_set(err, WEIR_ERR_INVALID, "it is no text: it has a byte of zero");
    }
    return dos == NULL
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "line %d ends as on Windows, with which no shell gets along: "
                                "sed -i 's/\\r$//' SCRIPT",
                                line);
}

weir_status sbatch_read(const char *text, size_t len, struct weir_arena *arena, struct sbatch *out,
                        struct weir_error *err)
{
    struct reading reading = {.arena = arena, .out = out};
    *out = (struct sbatch){0};
    weir_status status = read_lines(text, &reading, err);
    if (!out->has_options) {
        *out = (struct sbatch){0};
        return WEIR_OK;
    }
    WEIR_TRY(status);
    WEIR_TRY(check_text(text, len, err));
    WEIR_TRY(take_all(&reading, err));
    return sbatch_settle(&reading.values, arena, out, err);
}
