/** Printing: tables, objects, JSON. */
#include "cli/core/find.h"

#include "base/clock.h"
#include "base/uuid.h"
#include "base/yaml_write.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool cli_is_json(const struct cli_call *call)
{
    return call->common->output != NULL && strcmp(call->common->output, "json") == 0;
}

bool cli_is_yaml(const struct cli_call *call)
{
    return call->common->output != NULL && strcmp(call->common->output, "yaml") == 0;
}

bool cli_is_name(const struct cli_call *call)
{
    return call->common->output != NULL && strcmp(call->common->output, "name") == 0;
}

static bool is_wide(const struct cli_call *call)
{
    return call->common->output != NULL && strcmp(call->common->output, "wide") == 0;
}

void cli_print_json(const json_t *value)
{
    (void)json_dumpf(value, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY);
    (void)fputc('\n', stdout);
}

void cli_print_change(json_t *change)
{
    cli_print_json(change);
    json_decref(change);
}

void cli_print_done(const struct cli_call *call, const char *name, const char *done)
{
    if (cli_is_json(call)) {
        cli_print_change(json_pack("{s:s,s:b}", "name", name, done, 1));
    } else {
        printf("%s: %s\n", name, done);
    }
}

/* A terminal must not be steered by what a record holds: control characters become "?". */
static char *printable(struct weir_arena *arena, const char *text)
{
    char *copy = weir_arena_strdup(arena, text);
    for (char *p = copy; *p != '\0'; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7f) {
            *p = '?';
        }
    }
    return copy;
}

static char *value_text(struct weir_arena *arena, const json_t *value)
{
    if (value == NULL || json_is_null(value)) {
        return weir_arena_strdup(arena, "-");
    }
    if (json_is_string(value)) {
        return printable(arena, json_string_value(value));
    }
    if (json_is_real(value)) {
        return weir_arena_printf(arena, "%.4g", json_real_value(value));
    }
    return weir_json_text(value, arena);
}

char *cli_text(const struct cli_call *call, const json_t *object, const char *member)
{
    char name[64];
    for (;;) {
        size_t len = strcspn(member, ".");
        (void)snprintf(name, sizeof name, "%.*s", (int)len, member);
        object = json_object_get(object, name);
        if (member[len] == '\0') {
            return value_text(call->arena, object);
        }
        member += len + 1;
    }
}

/* Characters on the screen, near enough: UTF-8 continuation bytes take no place. */
static int width_of(const char *text)
{
    int width = 0;
    for (const char *p = text; *p != '\0'; p++) {
        width += ((unsigned char)*p & 0xc0) != 0x80;
    }
    return width;
}

/* How a task ended: its status, or the signal that killed it; "-" while it has neither. */
static char *exit_text(const struct cli_call *call, const json_t *item)
{
    json_int_t code = json_integer_value(json_object_get(item, "exit_code"));
    int number = (int)json_integer_value(json_object_get(item, "signal"));
    const char *name = number > 0 ? sigabbrev_np(number) : NULL;
    if (code >= 0) {
        return weir_arena_printf(call->arena, "%lld", (long long)code);
    }
    return name != NULL ? weir_arena_printf(call->arena, "SIG%s", name)
                        : weir_arena_strdup(call->arena, "-");
}

/* "red, blue" of an array, "lr=0.1, batch=32" of an object, as long as their values are plain; else NULL. */
static char *list_text(const struct cli_call *call, const json_t *value)
{
    char *text = NULL;
    const char *key;
    json_t *inner;
    size_t i;
    json_array_foreach(value, i, inner)
    {
        if (json_is_object(inner) || json_is_array(inner)) {
            return NULL;
        }
        text = weir_arena_printf(call->arena, "%s%s%s", text != NULL ? text : "",
                                 text != NULL ? ", " : "", value_text(call->arena, inner));
    }
    json_object_foreach((json_t *)value, key, inner)
    {
        if (json_is_object(inner) || json_is_array(inner)) {
            return NULL;
        }
        text = weir_arena_printf(call->arena, "%s%s%s=%s", text != NULL ? text : "",
                                 text != NULL ? ", " : "", printable(call->arena, key),
                                 value_text(call->arena, inner));
    }
    return text != NULL ? text : weir_arena_strdup(call->arena, "-");
}

/* "5 min ago", "in 2 h": a time of a table whose exact ones -o wide shows; NULL: it is none. */
static char *distance_text(const struct cli_call *call, const char *member, const json_t *value)
{
    static const struct {
        int64_t ms;
        const char *unit;
    } units[] = {{INT64_C(86400000), "d"}, {3600000, "h"}, {60000, "min"}, {1000, "s"}};

    size_t len = strlen(member);
    int64_t time_ms, unit = WEIR_ARRAY_LEN(units) - 1;
    if (len < 3 || strcmp(member + len - 3, "_ms") != 0 || !json_is_string(value) ||
        (call->command->flags & CLI_WIDE) == 0 || is_wide(call) || call->has_exact_times ||
        weir_time_parse(json_string_value(value), &time_ms) != WEIR_OK) {
        return NULL;
    }
    int64_t ago_ms = weir_time_ms() - time_ms, far_ms = ago_ms < 0 ? -ago_ms : ago_ms;
    for (int64_t i = unit; i-- > 0;) {
        unit = far_ms >= 2 * units[i].ms ? i : unit; /* 100 min rather than 1 h */
    }
    long long n = (long long)(far_ms / units[unit].ms);
    return weir_arena_printf(call->arena, ago_ms < 0 ? "in %lld %s" : "%lld %s ago", n,
                             units[unit].unit);
}

char *cli_cell_text(const struct cli_call *call, const json_t *item, const char *member)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    static const char suffix[] = "_bytes";
    const json_t *value = json_object_get(item, member);
    size_t len = strlen(member), unit = 0;
    if (strcmp(member, "exit_code") == 0 && json_is_integer(value)) {
        return exit_text(call, item);
    }
    if (json_is_array(value) || json_is_object(value)) {
        char *list = list_text(call, value);
        return list != NULL ? list : cli_text(call, item, member);
    }
    char *distance = distance_text(call, member, value);
    if (distance != NULL) {
        return distance;
    }
    if (json_is_string(value) && weir_uuid_is_valid(json_string_value(value)) && !is_wide(call)) {
        return weir_arena_strdup(call->arena, cli_short_id(json_string_value(value)));
    }
    if (len < sizeof suffix || strcmp(member + len - (sizeof suffix - 1), suffix) != 0 ||
        !json_is_integer(value)) {
        return cli_text(call, item, member);
    }
    double size = (double)json_integer_value(value);
    while (size >= 1024 && unit + 1 < WEIR_ARRAY_LEN(units)) {
        size /= 1024;
        unit++;
    }
    return weir_arena_printf(call->arena, unit == 0 ? "%.0f %s" : "%.1f %s", size, units[unit]);
}

void cli_print_table(const struct cli_call *call, const json_t *answer,
                     const struct cli_column *columns, size_t n_columns)
{
    if (cli_is_json(call) || cli_is_yaml(call)) {
        cli_print_object(call, answer);
        return;
    }
    cli_print_rows(call, answer, columns, n_columns, true);
    if (json_array_size(json_object_get(answer, "items")) == 0) {
        (void)fflush(stdout);
        (void)fprintf(stderr, "(none)\n");
    }
}

/* A sentence at the end would break each row of a terminal in two: it is cut there, but with -o wide. */
static void fit_last(const struct cli_call *call, char **cells, const int *widths, size_t n_rows,
                     size_t n_columns)
{
    struct winsize screen;
    int used = 0;
    if (is_wide(call) || isatty(STDOUT_FILENO) != 1 ||
        ioctl(STDOUT_FILENO, TIOCGWINSZ, &screen) != 0) {
        return;
    }
    for (size_t col = 0; col + 1 < n_columns; col++) {
        used += widths[col] + 2;
    }
    int room = (int)screen.ws_col - used;
    for (size_t row = 1; row <= n_rows && room >= 16; row++) {
        char *cell = cells[row * n_columns + n_columns - 1], *p = cell;
        if (width_of(cell) <= room) {
            continue;
        }
        for (int width = 0; *p != '\0' && (width < room - 1 || ((unsigned char)*p & 0xc0) == 0x80);
             p++) {
            width += ((unsigned char)*p & 0xc0) != 0x80;
        }
        *p = '\0';
        cells[row * n_columns + n_columns - 1] = weir_arena_printf(call->arena, "%s…", cell);
    }
}

void cli_print_rows(const struct cli_call *call, const json_t *answer,
                    const struct cli_column *columns, size_t n_columns, bool has_titles)
{
    const json_t *items = json_object_get(answer, "items");
    size_t n_rows = json_array_size(items);
    char **cells = WEIR_ARENA_ARRAY(call->arena, (n_rows + 1) * n_columns, char *);
    int *widths = WEIR_ARENA_ARRAY(call->arena, n_columns, int);
    for (size_t row = 0; row <= n_rows; row++) {
        for (size_t col = 0; col < n_columns; col++) {
            char *cell =
                row == 0 ? weir_arena_strdup(call->arena, columns[col].title)
                         : cli_cell_text(call, json_array_get(items, row - 1), columns[col].member);
            int width = width_of(cell);
            cells[row * n_columns + col] = cell;
            widths[col] = WEIR_MAX(widths[col], width);
        }
    }
    fit_last(call, cells, widths, n_rows, n_columns);
    for (size_t row = has_titles ? 0 : 1; row <= n_rows; row++) {
        for (size_t col = 0; col < n_columns; col++) {
            const char *cell = cells[row * n_columns + col];
            int pad = col + 1 < n_columns ? widths[col] - width_of(cell) + 2 : 0;
            printf("%s%*s", cell, pad, "");
        }
        putchar('\n');
    }
}

static void write_scalar(const struct cli_call *call, FILE *file, const json_t *value)
{
    if (json_is_string(value) && weir_yaml_is_plain(json_string_value(value))) {
        (void)fprintf(file, "%s\n", json_string_value(value));
        return;
    }
    /* 15 digits: what people wrote comes back as they wrote it (0.01). */
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15));
    (void)fprintf(file, "%s\n", text != NULL ? printable(call->arena, text) : "null");
    free(text);
}

static void write_item(const struct cli_call *call, FILE *file, const json_t *value, int indent)
{
    bool is_nested = (json_is_object(value) && json_object_size(value) > 0) ||
                     (json_is_array(value) && json_array_size(value) > 0);
    if (is_nested) {
        (void)fputc('\n', file);
        cli_write_yaml(call, file, value, indent + 2);
    } else {
        (void)fputc(' ', file);
        write_scalar(call, file, value);
    }
}

void cli_write_yaml(const struct cli_call *call, FILE *file, const json_t *value, int indent)
{
    const char *key;
    json_t *member;
    size_t i;
    if (json_is_array(value)) {
        json_array_foreach(value, i, member)
        {
            (void)fprintf(file, "%*s-", indent, "");
            write_item(call, file, member, indent);
        }
        return;
    }
    json_object_foreach((json_t *)value, key, member)
    {
        if (!json_is_null(member)) {
            (void)fprintf(file, "%*s%s:", indent, "", printable(call->arena, key));
            write_item(call, file, member, indent);
        }
    }
}

void cli_print_yaml(const struct cli_call *call, const json_t *value, int indent)
{
    cli_write_yaml(call, stdout, value, indent);
}

void cli_print_object(const struct cli_call *call, const json_t *object)
{
    if (cli_is_json(call)) {
        cli_print_json(object);
    } else {
        cli_print_yaml(call, object, 0);
    }
}

void cli_print_said(const struct cli_call *call, const json_t *object, const char *line)
{
    if (cli_is_json(call) || cli_is_yaml(call)) {
        cli_print_object(call, object);
    } else {
        printf("%s\n", line);
    }
}
