/** Printing: tables, objects, JSON. */
#include "cli/cli_private.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

bool cli_is_json(const struct cli_call *call)
{
    return call->common->output != NULL && strcmp(call->common->output, "json") == 0;
}

void cli_print_json(const json_t *value)
{
    (void)json_dumpf(value, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY);
    (void)fputc('\n', stdout);
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

/* What a table shows of a member: sizes and exits as people say them, all else as it is. */
static char *cell_text(const struct cli_call *call, const json_t *item, const char *member)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    static const char suffix[] = "_bytes";
    const json_t *value = json_object_get(item, member);
    size_t len = strlen(member), unit = 0;
    if (strcmp(member, "exit_code") == 0 && json_is_integer(value)) {
        return exit_text(call, item);
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
    const json_t *items = json_object_get(answer, "items");
    if (cli_is_json(call)) {
        cli_print_json(answer);
        return;
    }
    size_t n_rows = json_array_size(items);
    char **cells = WEIR_ARENA_ARRAY(call->arena, (n_rows + 1) * n_columns, char *);
    int *widths = WEIR_ARENA_ARRAY(call->arena, n_columns, int);
    for (size_t row = 0; row <= n_rows; row++) {
        for (size_t col = 0; col < n_columns; col++) {
            char *cell = row == 0
                             ? weir_arena_strdup(call->arena, columns[col].title)
                             : cell_text(call, json_array_get(items, row - 1), columns[col].member);
            int width = width_of(cell);
            cells[row * n_columns + col] = cell;
            widths[col] = WEIR_MAX(widths[col], width);
        }
    }
    for (size_t row = 0; row <= n_rows; row++) {
        for (size_t col = 0; col < n_columns; col++) {
            const char *cell = cells[row * n_columns + col];
            int pad = col + 1 < n_columns ? widths[col] - width_of(cell) + 2 : 0;
            printf("%s%*s", cell, pad, "");
        }
        putchar('\n');
    }
    if (n_rows == 0) {
        (void)fprintf(stderr, "(none)\n");
    }
}

static void print_members(const struct cli_call *call, const json_t *object, int indent)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        if (json_is_object(value) && json_object_size(value) > 0) {
            printf("%*s%s:\n", indent, "", key);
            print_members(call, value, indent + 2);
        } else if (json_is_array(value) && json_is_object(json_array_get(value, 0))) {
            printf("%*s%s:\n", indent, "", key);
            for (size_t i = 0; i < json_array_size(value); i++) {
                printf("%*s-\n", indent + 2, "");
                print_members(call, json_array_get(value, i), indent + 4);
            }
        } else {
            printf("%*s%s: %s\n", indent, "", key, value_text(call->arena, value));
        }
    }
}

void cli_print_object(const struct cli_call *call, const json_t *object)
{
    if (cli_is_json(call)) {
        cli_print_json(object);
    } else {
        print_members(call, object, 0);
    }
}
