/* Any text as a filter and as an order. What is taken has SQL whose "?" are as many as its values, and in
 * which nothing of the text stands. */
#include "track/run_search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_sql(const struct weir_search_sql *sql)
{
    size_t n = 0;
    for (const char *p = sql->text.data; *p != '\0'; p++) {
        n += *p == '?';
        if ((unsigned char)*p >= 0x80 || *p == ';' || *p == '`') {
            abort();
        }
    }
    if (n != sql->n_binds || sql->text.status != WEIR_OK) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_error err = {0};
    struct weir_arena arena;
    struct weir_search_node *root;
    struct weir_search_order order;
    struct weir_search_sql sql;
    weir_arena_init(&arena, 0);
    char *text = weir_arena_memdup(&arena, data, size);
    if (weir_search_parse(text, &weir_run_noun, &arena, &root, &err) == WEIR_OK) {
        weir_search_sql_init(&sql, &arena);
        weir_search_sql_filter(&sql, &weir_run_noun, root);
        check_sql(&sql);
        weir_search_sql_fini(&sql);
    } else if (err.message[0] == '\0') {
        abort();
    }
    if (weir_search_parse_order(text, &weir_run_noun, &arena, &order, &err) == WEIR_OK) {
        struct weir_search_columns columns;
        weir_search_columns_of(&order, 1, &arena, &columns);
        weir_search_sql_init(&sql, &arena);
        weir_search_sql_joins(&sql, &weir_run_noun, &order, 1);
        weir_search_sql_order(&sql, &columns);
        check_sql(&sql);
        weir_search_sql_fini(&sql);
    }
    weir_arena_fini(&arena);
    return 0;
}
