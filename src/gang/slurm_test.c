/* What srun and scontrol decide before anything is started. */
#include "gang/slurm.h"

#include "base/macros.h"
#include "base/rng.h"
#include "base/test_main.h"
#include "base/test_seed.h"

#include <string.h>

static struct weir_arena arena;
static struct weir_error err;

static void set_up(void)
{
    weir_arena_init(&arena, 0);
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
}

static const char *expanded(const char *list)
{
    char **hosts, *text = "";
    size_t n;
    if (slurm_hosts_expand(list, &arena, &hosts, &n, &err) != WEIR_OK) {
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        text = weir_arena_printf(&arena, "%s%s%s", text, i > 0 ? " " : "", hosts[i]);
    }
    return text;
}

START_TEST(lists_of_hosts_are_written_out_as_slurm_does)
{
    static const struct {
        const char *list, *hosts;
    } rows[] = {
        {"a", "a"},
        {"10.0.0.1,fe80::3", "10.0.0.1 fe80::3"},
        {"n[1-3,7]", "n1 n2 n3 n7"},
        {"n[08-11]x,m", "n08x n09x n10x n11x m"},
        {"n[1]", "n1"},
        {"", NULL},
        {"a,", NULL},
        {"n[", NULL},
        {"n[]", NULL},
        {"n[3-1]", NULL},
        {"n[1-2", NULL},
        {"n]1[", NULL},
        {"n[1-9999]", NULL},
        {"n[1-2][3-4]", NULL},
        {"n[1-]", NULL},
        {"n[a]", NULL},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        ck_assert_pstr_eq(expanded(rows[i].list), rows[i].hosts);
    }
}

END_TEST

/* Whatever is asked for: all tasks are laid out, on different nodes, evenly, and on none more than the job has. */
START_TEST(tasks_are_laid_out_evenly_or_refused)
{
    struct weir_rng rng;
    (void)test_seed(&rng);
    for (int round = 0; round < 2000; round++) {
        int64_t on[4] = {3, 1, 0, 2};
        struct slurm_asked asked = {.job_nodes = 4, .on = on};
        struct slurm_layout layout;
        asked.job_tasks_per_node = 1 + (int64_t)weir_rng_below(&rng, 4);
        asked.job_tasks =
            4 + (int64_t)weir_rng_below(&rng, (uint64_t)(asked.job_tasks_per_node * 4 - 3));
        asked.nodes = (int64_t)weir_rng_below(&rng, 6);
        asked.tasks = (int64_t)weir_rng_below(&rng, 20);
        asked.tasks_per_node = (int64_t)weir_rng_below(&rng, 4);
        asked.n_on = weir_rng_below(&rng, 5);
        asked.is_overcommitted = weir_rng_below(&rng, 4) == 0;
        int64_t most = asked.n_on > 0 ? (int64_t)asked.n_on : 4;
        if (slurm_layout_make(&asked, &arena, &layout, &err) != WEIR_OK) {
            int64_t nodes = asked.nodes > 0 ? asked.nodes : most;
            int64_t tasks = asked.tasks > 0 ? asked.tasks : asked.tasks_per_node * nodes;
            ck_assert(nodes > most || tasks > nodes * asked.job_tasks_per_node);
            continue;
        }
        int64_t n = 0, least = layout.counts[0], largest = 0;
        for (int64_t i = 0; i < layout.n_nodes; i++) {
            n += layout.counts[i];
            least = WEIR_MIN(least, layout.counts[i]);
            largest = WEIR_MAX(largest, layout.counts[i]);
            for (int64_t k = 0; k < i; k++) {
                ck_assert_int_ne(layout.nodes[i], layout.nodes[k]);
            }
        }
        ck_assert_int_eq(n, layout.n_tasks);
        ck_assert(asked.tasks == 0 || n == asked.tasks);
        ck_assert_int_ge(least, 1);
        ck_assert_int_le(largest - least, 1);
        ck_assert(asked.is_overcommitted || largest <= asked.job_tasks_per_node);
        ck_assert_int_le(layout.n_nodes, asked.nodes > 0 ? asked.nodes : most);
    }
}

END_TEST

START_TEST(how_many_tasks_nodes_have_is_written_as_slurm_does)
{
    int64_t counts[] = {3, 3, 2, 1, 1, 1};
    const struct slurm_layout layout = {.counts = counts, .n_nodes = 6, .n_tasks = 11};
    ck_assert_str_eq(slurm_layout_text(&layout, &arena), "3(x2),2,1(x3)");
}

END_TEST

START_TEST(the_jobs_folder_is_that_of_the_node)
{
    static const char *const rows[][2] = {
        {"/a/work", "/b/w"},
        {"/a/work/x.py", "/b/w/x.py"},
        {"--in=/a/work/x:/a/work", "--in=/b/w/x:/b/w"},
        {"/a/workshop", "/a/workshop"},
        {"/a/work-2/a/work", "/a/work-2/b/w"},
        {"", ""},
    };
    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        ck_assert_str_eq(slurm_relocate(rows[i][0], "/a/work", "/b/w", &arena), rows[i][1]);
    }
}

END_TEST

WEIR_TEST_MAIN_WITH("slurm", set_up, tear_down, lists_of_hosts_are_written_out_as_slurm_does,
                    tasks_are_laid_out_evenly_or_refused,
                    how_many_tasks_nodes_have_is_written_as_slurm_does,
                    the_jobs_folder_is_that_of_the_node)
