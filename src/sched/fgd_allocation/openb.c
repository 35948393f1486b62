#include "sched/fgd_allocation/openb.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>

#define FILE_MAX_BYTES ((size_t)64 << 20)
#define CELLS_MAX      160
#define MIB            ((int64_t)1 << 20)
#define POLICY         "06-FGD"

/** A file of lines of cells, the first line their names. */
struct table {
    char *at;
    char *cells[CELLS_MAX];
    int n_cells;
    int32_t n_lines;
};

/** Cut the next line into cells, in place. @return Whether there was one. */
static bool next_line(struct table *table)
{
    char *line = table->at;
    if (line == NULL || *line == '\0') {
        return false;
    }
    char *end = line + strcspn(line, "\r\n");
    table->at = end + strspn(end, "\r\n");
    *end = '\0';
    table->n_cells = 0;
    while (line != NULL && table->n_cells < CELLS_MAX) {
        table->cells[table->n_cells++] = line;
        line = strchr(line, ',');
        if (line != NULL) {
            *line++ = '\0';
        }
    }
    return true;
}

static char *cell(const struct table *table, int at)
{
    static char empty[] = "";
    return at >= 0 && at < table->n_cells ? table->cells[at] : empty;
}

static int64_t number(const struct table *table, int at)
{
    return strtoll(cell(table, at), NULL, 10);
}

static weir_status open_table(const char *path, struct weir_arena *arena, struct table *out,
                              struct weir_error *err)
{
    size_t len;
    *out = (struct table){0};
    WEIR_TRY(weir_file_read(path, FILE_MAX_BYTES, arena, &out->at, &len, err));
    for (const char *at = out->at; *at != '\0'; at++) {
        out->n_lines += *at == '\n';
    }
    if (!next_line(out)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s: is empty", path);
    }
    return WEIR_OK;
}

/** Where a name stands in the first line; -1. */
static int column(const struct table *head, const char *name)
{
    for (int i = 0; i < head->n_cells; i++) {
        if (strcmp(head->cells[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

weir_status openb_read_nodes(const char *path, struct weir_arena *arena, struct openb_nodes *out,
                             struct weir_error *err)
{
    struct table table;
    WEIR_TRY(open_table(path, arena, &table, err));
    *out = (struct openb_nodes){
        .all = WEIR_ARENA_ARRAY(arena, (size_t)table.n_lines + 1, struct openb_node)};
    while (next_line(&table)) {
        struct openb_node *node = &out->all[out->n++];
        *node = (struct openb_node){.name = cell(&table, 0),
                                    .model = cell(&table, 4),
                                    .cpu_milli = number(&table, 1),
                                    .memory_bytes = number(&table, 2) * MIB,
                                    .n_devices = (int32_t)number(&table, 3)};
        out->milli += (int64_t)node->n_devices * WEIR_SCHED_DEVICE;
    }
    return WEIR_OK;
}

weir_status openb_read_tasks(const char *path, struct weir_arena *arena, struct openb_tasks *out,
                             struct weir_error *err)
{
    struct table table;
    WEIR_TRY(open_table(path, arena, &table, err));
    int models = column(&table, "gpu_spec"); /* Not every trace has it. */
    *out = (struct openb_tasks){
        .all = WEIR_ARENA_ARRAY(arena, (size_t)table.n_lines + 1, struct openb_task)};
    while (next_line(&table)) {
        struct openb_task *task = &out->all[out->n++];
        *task = (struct openb_task){.name = cell(&table, 0),
                                    .models = cell(&table, models),
                                    .cpu_milli = number(&table, 1),
                                    .memory_bytes = number(&table, 2) * MIB,
                                    .n_devices = (int32_t)number(&table, 3)};
        task->device_milli = task->n_devices > 0 ? (int32_t)number(&table, 4) : 0;
    }
    return WEIR_OK;
}

weir_status openb_read_expected(const char *path, const char *trace, struct weir_arena *arena,
                                struct openb_expected *out, struct weir_error *err)
{
    struct table table;
    WEIR_TRY(open_table(path, arena, &table, err));
    int workload = column(&table, "workload"), policy = column(&table, "sc_policy");
    int at_100 = column(&table, "100"), at_130 = column(&table, "130");
    struct openb_expected sum = {0};
    while (next_line(&table)) {
        if (strcmp(cell(&table, workload), trace) == 0 &&
            strcmp(cell(&table, policy), POLICY) == 0) {
            sum.at_100 += strtod(cell(&table, at_100), NULL);
            sum.at_130 += strtod(cell(&table, at_130), NULL);
            sum.n_seeds++;
        }
    }
    if (sum.n_seeds > 0) {
        sum.at_100 /= sum.n_seeds;
        sum.at_130 /= sum.n_seeds;
    }
    *out = sum;
    return WEIR_OK;
}
