/* The head of a batch script: read as sbatch reads it, whichever way its options are written. */
#include "cli/job/sbatch.h"

#include "base/macros.h"
#include "base/test_main.h"
#include "base/test_seed.h"
#include "cli/job/sbatch_private.h"

#include <string.h>

static struct weir_arena arena;
static struct weir_error err;
static struct sbatch head;

static void set_up(void)
{
    weir_arena_init(&arena, 0);
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
}

static weir_status read_text(const char *text)
{
    err.message[0] = '\0';
    return sbatch_read(text, strlen(text), &arena, &head, &err);
}

/* A script with one line of options. */
static weir_status read_line(const char *line)
{
    return read_text(weir_arena_printf(&arena, "#!/bin/bash\n#SBATCH %s\necho\n", line));
}

static const char *show(const char *text)
{
    return text != NULL ? text : "-";
}

static int by_option(const void *a, const void *b)
{
    const struct sbatch_remark *x = a, *y = b;
    int order = strcmp(x->option, y->option);
    return order != 0 ? order : strcmp(x->say, y->say);
}

/* All that was read, as one text; the remarks without their lines, which differ. */
static char *shown(void)
{
    qsort(head.remarks, head.n_remarks, sizeof *head.remarks, by_option);
    char *text = weir_arena_printf(
        &arena,
        "name=%s dir=%s gpus=%s time=%s env=%s taken=%s save=%s/%s/%d memory=%lld fixed=%d "
        "nodes=%lld "
        "tasks=%lld/%lld cpus=%lld/%lld gpt=%lld array=%s%%%lld",
        show(head.name), show(head.dir), show(head.gpus), show(head.time_limit), show(head.env),
        show(head.env_taken), show(head.save_signal), show(head.save_within),
        head.is_signal_of_script, (long long)head.memory_bytes, head.is_fixed,
        (long long)head.nodes, (long long)head.tasks, (long long)head.tasks_per_node,
        (long long)head.cpus, (long long)head.cpus_per_task, (long long)head.gpus_per_task,
        show(head.array), (long long)head.parallel);
    for (size_t i = 0; i < head.n_remarks; i++) {
        text = weir_arena_printf(&arena, "%s\n%s: %s", text, head.remarks[i].option,
                                 head.remarks[i].say);
    }
    return text;
}

/* A value of any form that each option takes; those that are only remarked on take any. */
static const char *value_of(const struct sbatch_option *option, struct weir_rng *rng)
{
    static const char *const numbers[] = {"1", "2", "3"};
    static const char *const sizes[] = {"1G", "2048", "3g", "512M"};
    static const char *const times[] = {"5", "1:30", "2:0:0", "1-2", "1-2:3", "1-2:3:4"};
    static const char *const texts[] = {"a b", "x#y", "q'r", "plain", "w\"z"};
    uint64_t n = weir_rng_u32(rng);
    switch ((int)option->value) {
    case SBATCH_GPUS:
    case SBATCH_GPUS_PER_NODE:
    case SBATCH_GPUS_PER_TASK:
        return "h100:2";
    case SBATCH_GRES:
        return "gpu:h100:2";
    case SBATCH_ARRAY:
        return n % 2 ? "1,3,5-9:2%2" : "0-9";
    case SBATCH_SIGNAL:
        return n % 2 ? "B:USR1@60" : "12";
    case SBATCH_EXPORT:
        return n % 2 ? "NONE" : "ALL,A=b c,D";
    case SBATCH_TIME:
        return times[n % WEIR_ARRAY_LEN(times)];
    case SBATCH_MEMORY:
    case SBATCH_MEMORY_PER_CPU:
    case SBATCH_MEMORY_PER_GPU:
        return sizes[n % WEIR_ARRAY_LEN(sizes)];
    case SBATCH_NODES:
    case SBATCH_TASKS:
    case SBATCH_TASKS_PER_NODE:
    case SBATCH_CPUS_PER_TASK:
    case SBATCH_CPUS_PER_GPU:
        return numbers[n % WEIR_ARRAY_LEN(numbers)];
    default:
        return texts[n % WEIR_ARRAY_LEN(texts)];
    }
}

/* A value in quotes of one kind or the other, with backslashes, or bare where it may be. */
static char *quoted(const char *value, struct weir_rng *rng)
{
    bool is_plain = strpbrk(value, " #'\"\\") == NULL;
    uint64_t way = weir_rng_below(rng, is_plain ? 3 : 2);
    char mark = way == 0 ? '\'' : '"', *out = weir_arena_alloc(&arena, 2 * strlen(value) + 3),
         *end = out;
    if (way == 2) {
        return weir_arena_strdup(&arena, value);
    }
    *end++ = mark;
    for (; *value != '\0'; value++) {
        if (*value == mark || *value == '\\') {
            *end++ = '\\';
        }
        *end++ = *value;
    }
    *end = mark;
    return out;
}

/* One option written in one of the ways that sbatch knows. */
static char *written(const struct sbatch_option *option, const char *value, struct weir_rng *rng)
{
    bool is_short = option->short_name != 0 && weir_rng_below(rng, 2) == 0;
    const char *name = is_short ? weir_arena_printf(&arena, "-%c", option->short_name)
                                : weir_arena_printf(&arena, "--%s", option->name);
    if (value == NULL) {
        return weir_arena_strdup(&arena, name);
    }
    bool is_joined = option->takes == SBATCH_PERHAPS || weir_rng_below(rng, 2) == 0;
    const char *between = !is_joined ? " " : is_short ? "" : "=";
    return weir_arena_printf(&arena, "%s%s%s", name, between, quoted(value, rng));
}

/* One head of these options: on one line or on several, with comments among them. */
static char *composed(const struct sbatch_option *const *options, const char *const *values,
                      size_t n, struct weir_rng *rng)
{
    static const char *const between[] = {"\n#SBATCH ", "  ", " # -N 7 \"\n#SBATCH\t",
                                          "\n\n##SBATCH -N 7\n  # echo\n#SBATCH "};
    char *text = "#!/bin/bash\n#SBATCH ";
    for (size_t i = 0; i < n; i++) {
        text =
            weir_arena_printf(&arena, "%s%s%s", text, i > 0 ? between[weir_rng_below(rng, 4)] : "",
                              written(options[i], values[i], rng));
    }
    return weir_arena_printf(&arena, "%s\necho\n", text);
}

/* Two ways to write the same options are the same job, or are refused alike. */
START_TEST(options_say_the_same_however_they_are_written)
{
    struct weir_rng rng;
    size_t n_good = 0;
    (void)test_seed(&rng);
    for (int round = 0; round < WEIR_TEST_TIMES(1500, 200); round++) {
        const struct sbatch_option *options[6];
        const char *values[6];
        size_t n = 1 + weir_rng_below(&rng, 6);
        for (size_t i = 0; i < n; i++) {
            options[i] = &sbatch_options[weir_rng_below(&rng, sbatch_n_options)];
            bool has_value = options[i]->takes == SBATCH_A_VALUE ||
                             (options[i]->takes == SBATCH_PERHAPS && weir_rng_below(&rng, 2) == 0);
            values[i] = has_value ? value_of(options[i], &rng) : NULL;
        }
        char *first = composed(options, values, n, &rng),
             *second = composed(options, values, n, &rng);
        weir_status status = read_text(first);
        const char *one = status == WEIR_OK ? shown() : "";
        ck_assert_msg(read_text(second) == status, "%s\n--\n%s\n%s", first, second, err.message);
        ck_assert_msg(strcmp(one, status == WEIR_OK ? shown() : "") == 0, "%s\n--\n%s", first,
                      second);
        n_good += status == WEIR_OK;
    }
    ck_assert_uint_gt(n_good, WEIR_TEST_TIMES(500, 60));
    weir_arena_fini(&arena);
}

END_TEST

/* Columns: options; nodes, tasks, tasks of a node, CPUs of a node; its GPUs, its memory in MiB. What `sbatch -v` says of
 * them is the model of the readings, and what Slurm gives such a job that of the numbers. */
START_TEST(nodes_and_what_each_has_are_what_slurm_gives)
{
    static const struct {
        const char *line;
        int nodes, tasks, per_node, cpus;
        const char *gpus;
        int memory_mib;
    } rows[] = {
        {"-J x", 1, 1, 1, 1, NULL, 0},
        {"-N 2", 2, 2, 1, 1, NULL, 0},
        {"-n 8", 1, 8, 8, 8, NULL, 0},
        {"-n 8 -c 2", 1, 8, 8, 16, NULL, 0},
        {"-N 2 -n 8", 2, 8, 4, 4, NULL, 0},
        {"-N 2 -n 7", 2, 7, 4, 4, NULL, 0},
        {"-N 2 --ntasks-per-node=4 -c 3", 2, 8, 4, 12, NULL, 0},
        {"-N 2 -n 4 --ntasks-per-node=3", 2, 4, 3, 3, NULL, 0},
        {"-n 7 --ntasks-per-node=3", 3, 7, 3, 3, NULL, 0},
        {"--ntasks-per-node=3", 1, 3, 3, 3, NULL, 0},
        {"-N 4 -n 2", 2, 2, 1, 1, NULL, 0},
        {"-N 2-4", 2, 2, 1, 1, NULL, 0},
        {"-N 2 --gres=gpu:4", 2, 2, 1, 1, "4", 0},
        {"-N 2 --gres=gpu:h100:4,lustre:1", 2, 2, 1, 1, "4:h100", 0},
        {"--gres=gpu", 1, 1, 1, 1, "1", 0},
        {"--gres=gpu:h100", 1, 1, 1, 1, "1:h100", 0},
        {"-N 2 -G 8", 2, 2, 1, 1, "4", 0},
        {"--gpus-per-node=a100:2", 1, 1, 1, 1, "2:a100", 0},
        {"-n 4 --gpus-per-task=1", 4, 4, 1, 1, "1", 0},
        {"-N 1 -n 4 --gpus-per-task=1 --gres=gpu:a:4", 1, 4, 4, 4, "4:a", 0},
        {"--gres=gpu:2 --cpus-per-gpu=6", 1, 1, 1, 12, "2", 0},
        {"--mem=2000", 1, 1, 1, 1, NULL, 2000},
        {"--mem=4GB -N 3", 3, 3, 1, 1, NULL, 4096},
        {"--mem=512K", 1, 1, 1, 1, NULL, 1},
        {"--mem-per-cpu=2G -N 2 --ntasks-per-node=2 -c 2", 2, 4, 2, 4, NULL, 8192},
        {"--mem-per-gpu=1g --gres=gpu:3", 1, 1, 1, 1, "3", 3072},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        ck_assert_msg(read_line(rows[i].line) == WEIR_OK, "%s: %s", rows[i].line, err.message);
        ck_assert_msg(head.nodes == rows[i].nodes && head.tasks == rows[i].tasks &&
                          head.tasks_per_node == rows[i].per_node && head.cpus == rows[i].cpus &&
                          head.memory_bytes == (int64_t)rows[i].memory_mib << 20,
                      "%s: %s", rows[i].line, shown());
        ck_assert_pstr_eq(head.gpus, rows[i].gpus);
    }
}

END_TEST

/* As `sbatch -v` prints them: whole minutes, rounded up. */
START_TEST(times_have_all_of_slurms_forms)
{
    static const struct {
        const char *text, *limit;
    } rows[] = {{"5", "5m"},       {"1:2", "2m"},        {"90:61", "92m"},   {"1:2:3", "63m"},
                {"0:0:30", "1m"},  {"1-2", "1560m"},     {"1-2:3", "1563m"}, {"1-2:3:4", "1564m"},
                {"1-", "1440m"},   {"0", NULL},          {"infinite", NULL}, {"UNLIMITED", NULL},
                {"1-24", "2880m"}, {"366-0", "527040m"}, {"00:30", "1m"}};

    static const char *const bad[] = {
        "x",     "1:2:3:4", "1-2:3:4:5",           "-5", "1:", ":5", "1-x", "5m",
        "367-0", "1:-2",    "99999999999999999999"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        ck_assert_int_eq(read_line(weir_arena_printf(&arena, "-t %s", rows[i].text)), WEIR_OK);
        ck_assert_pstr_eq(head.time_limit, rows[i].limit);
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        ck_assert_msg(read_line(weir_arena_printf(&arena, "--time=%s", bad[i])) == WEIR_ERR_INVALID,
                      "%s", bad[i]);
        ck_assert_ptr_nonnull(strstr(err.message, "line 2: --time: expected"));
    }
}

END_TEST

/* What sbatch refuses, each with its line and what was written. */
START_TEST(what_sbatch_refuses_is_refused_with_its_line)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"#SBATCH -N", "line 2: --nodes: a value is missing"},
        {"#SBATCH -Z 3", "line 2: -Z: sbatch has no option -Z"},
        {"\n#SBATCH --ndoes=3",
         "line 3: --ndoes=3: sbatch has no such option; did you mean --nodes?"},
        {"#SBATCH --nod=3", "line 2: --nod=3: may be any of"},
        {"#SBATCH --hold=3", "line 2: --hold=3: --hold takes no value"},
        {"#SBATCH foo -A acc", "line 2: \"foo\" is no option"},
        {"#SBATCH --nice 3", "line 2: \"3\" is no option"},
        {"#SBATCHfoo", "line 2: \"foo\" is no option"},
        {"#SBATCH -- -N2", "line 2: \"--\" is no option"},
        {"#SBATCH -J \"x", "line 2: a quote is not closed: \"x"},
        {"#SBATCH -N=2", "line 2: --nodes: expected 1 to 1024 nodes, or LEAST-MOST, got \"=2\""},
        {"#SBATCH -N 0", "line 2: --nodes"},
        {"#SBATCH -N 4-2", "line 2: --nodes"},
        {"#SBATCH -n 1k", "line 2: --ntasks: expected a number from 1 on, got \"1k\""},
        {"#SBATCH -c 0", "line 2: --cpus-per-task"},
        {"#SBATCH --mem=3X", "line 2: --mem: expected a size"},
        {"#SBATCH --mem=1.5G", "line 2: --mem"},
        {"#SBATCH --mem=2G --mem-per-cpu=1G", "--mem, --mem-per-cpu and --mem-per-gpu"},
        {"#SBATCH -a 1-", "line 2: --array: \"1-\": expected numbers"},
        {"#SBATCH -a 5-1", "line 2: --array"},
        {"#SBATCH -a 0-5000", "line 2: --array: \"0-5000\": more than 1024"},
        {"#SBATCH -a 1-4%x", "line 2: --array"},
        {"#SBATCH -a 1-4 -N 2", "line 2: --array: each of its parts would have 2 nodes"},
        {"#SBATCH --gpus=a:2,b:1", "line 2: --gpus=a:2,b:1: a job has GPUs of one model"},
        {"#SBATCH -N 3 -G 4", "line 2: --gpus=4: 3 nodes cannot have equally many"},
        {"#SBATCH --gres=gpu:2 --gpus-per-node=3", "one says 3 GPUs of each node, another 2"},
        {"#SBATCH --gres=gpu:x:y:2", "line 2: --gres"},
        {"#SBATCH --signal=XX", "line 2: --signal"},
        {"#SBATCH --signal=B:", "line 2: --signal"},
        {"#SBATCH --signal=USR1@70000", "line 2: --signal"},
        {"#SBATCH -N 2\r\necho", "line 2 ends as on Windows"},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        weir_status status = read_text(weir_arena_printf(&arena, "#!/bin/sh\n%s\n", rows[i].text));
        ck_assert_msg(status == WEIR_ERR_INVALID || status == WEIR_ERR_UNSUPPORTED ||
                          status == WEIR_ERR_LIMIT,
                      "%s", rows[i].text);
        ck_assert_msg(strstr(err.message, rows[i].message) != NULL, "%s: %s", rows[i].text,
                      err.message);
    }
    ck_assert_int_eq(read_text("echo\n"), WEIR_OK);
    ck_assert_int_eq(read_text("\n#SBATCH -N 2\n"), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "line 1: a batch script begins with \"#!\""));
}

END_TEST

START_TEST(only_the_head_counts_and_what_stands_behind_it_is_named)
{
    ck_assert_int_eq(
        read_text("#!/bin/bash -l x\n\n# c\n  # d\n##SBATCH -N 3\n #SBATCH -N 4\n#SBATCH -N 2\n"
                  "set -e\n#SBATCH -N 9 nonsense\n#SBATCH -n 9\n"),
        WEIR_OK);
    ck_assert_int_eq(head.nodes, 2);
    ck_assert_uint_eq(head.n_argv, 2);
    ck_assert_str_eq(head.argv[0], "/bin/bash");
    ck_assert_str_eq(head.argv[1], "-l x");
    ck_assert_uint_eq(head.n_remarks, 1);
    ck_assert_int_eq(head.remarks[0].line, 9);
    static const char *const none[] = {"", "#!/bin/sh\necho\n", "#!/bin/sh\necho\n#SBATCH -N 2\n",
                                       "#!/bin/sh\n#SBATC -N\n", "#!/bin/sh\n##SBATCH nonsense\n"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(none); i++) {
        ck_assert_int_eq(read_text(none[i]), WEIR_OK);
        ck_assert(!head.has_options);
    }
}

END_TEST

START_TEST(signals_arrays_and_variables_are_taken_apart)
{
    ck_assert_int_eq(read_line("--signal=B:SIGUSR1@90 -a 1,3,5-9:2%2 --export=NONE,A=b,C"),
                     WEIR_OK);
    ck_assert_str_eq(head.save_signal, "USR1");
    ck_assert_str_eq(head.save_within, "90s");
    ck_assert(head.is_signal_of_script);
    ck_assert_str_eq(head.array, "1,3,5-9:2");
    ck_assert_int_eq(head.parallel, 2);
    ck_assert_str_eq(head.env, "A=b");
    ck_assert_str_eq(head.env_taken, "C");
    ck_assert_int_eq(read_line("--signal=12"), WEIR_OK);
    ck_assert_str_eq(head.save_signal, "USR2");
    ck_assert_str_eq(head.save_within, "60s");
    ck_assert(!head.is_signal_of_script);
    ck_assert_int_eq(read_line("-N 2 -N 3 --requeue --no-requeue"), WEIR_OK);
    ck_assert_int_eq(head.nodes, 3);
    ck_assert(head.is_fixed);
}

END_TEST

/* Each option becomes something, or says what to do; names are not cut short by each other. */
START_TEST(each_option_of_the_table_has_an_effect_or_a_remark)
{
    for (size_t i = 0; i < sbatch_n_options; i++) {
        const struct sbatch_option *option = &sbatch_options[i], *found;
        ck_assert_msg((option->value == SBATCH_REMARK) == (option->say != NULL), "%s",
                      option->name);
        ck_assert_int_eq(sbatch_option_find(option->name, strlen(option->name), &found, &err),
                         WEIR_OK);
        ck_assert_ptr_eq(found, option);
        ck_assert(i == 0 || strcmp(sbatch_options[i - 1].name, option->name) < 0);
        for (size_t k = 0; k < i && option->short_name != 0; k++) {
            ck_assert_int_ne(sbatch_options[k].short_name, option->short_name);
        }
        if (option->value == SBATCH_REMARK) {
            ck_assert_int_eq(
                read_line(weir_arena_printf(&arena, "--%s%s", option->name,
                                            option->takes == SBATCH_A_VALUE ? "=x" : "")),
                WEIR_OK);
            ck_assert_uint_eq(head.n_remarks, 1);
        }
    }
}

END_TEST

WEIR_TEST_MAIN_WITH("sbatch", set_up, tear_down, options_say_the_same_however_they_are_written,
                    nodes_and_what_each_has_are_what_slurm_gives, times_have_all_of_slurms_forms,
                    what_sbatch_refuses_is_refused_with_its_line,
                    only_the_head_counts_and_what_stands_behind_it_is_named,
                    signals_arrays_and_variables_are_taken_apart,
                    each_option_of_the_table_has_an_effect_or_a_remark)
