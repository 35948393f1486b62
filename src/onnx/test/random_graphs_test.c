/*
 * The law: a graph gives the same planned (fast/) as interpreted node by node, whatever its operators,
 * types and shapes are, and however its values are read. A seed that is wrong is printed with its graph;
 * WEIR_TEST_SEED=N plays it alone, WEIR_TEST_SEEDS=N plays that many.
 *
 * random_graphs_test --write FOLDER FIRST N writes graphs of N seeds that other runtimes know too, with
 * inputs and what came out: tests/serve/random_graphs_test.py compares them.
 */
#include "random_graph.h"

#include "onnx/op.h"

#include "base/clock.h"
#include "base/test_main.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MODEL_BYTES ((size_t)64 << 20)
#define IN_MAX      64
#define N_RUNS      4
#define N_GRAPHS    WEIR_TEST_TIMES(1000, 60)
#define N_CASES     4

/* ---- what was played -------------------------------------------------------------------------- */

#define PLAYED_MAX 256

static struct {
    const char *types[PLAYED_MAX];
    int n;
} played;

static void note_played(const struct random_graph *g)
{
    for (int i = 0; i < g->n_steps; i++) {
        int k = 0;
        while (k < played.n && strcmp(played.types[k], g->steps[i].type) != 0) {
            k++;
        }
        if (k == played.n && k < PLAYED_MAX) {
            played.types[played.n++] = g->steps[i].type;
        }
    }
}

/* ---- a graph ---------------------------------------------------------------------------------- */

static struct random_graph graph;

static void make(struct random_graph *g, uint64_t seed, bool is_common)
{
    random_graph_begin(g, seed, is_common);
    int most = (int)graph_pick(g, 1, 14);
    for (int i = 0; i < 3 * most && g->n_steps < most; i++) {
        random_ops_add(g);
    }
    random_graph_close(g);
    note_played(g);
}

static struct weir_onnx *load(const struct random_graph *g, bool only_interprets)
{
    const struct weir_onnx_limits limits = {.run_bytes = MODEL_BYTES,
                                            .n_threads = g->seed % 64 == 0 ? 2 : 1,
                                            .only_interprets = only_interprets};
    struct weir_buf model;
    struct weir_onnx *onnx;
    struct weir_error err;
    weir_buf_init(&model, MODEL_BYTES);
    random_graph_write(g, &model);
    weir_status status = weir_onnx_load(model.data, model.len, &limits, &onnx, &err);
    weir_buf_fini(&model);
    if (status != WEIR_OK) {
        (void)fprintf(stderr, "seed %llu: %s\n", (unsigned long long)g->seed, err.message);
        abort();
    }
    return onnx;
}

static weir_status run(const struct random_graph *g, struct weir_onnx *onnx,
                       struct weir_tensor **out, struct weir_error *err)
{
    struct weir_tensor *in[IN_MAX];
    int n = 0;
    for (int i = 0; i < g->n_values; i++) {
        if (g->values[i].is_input && n < IN_MAX) {
            in[n++] = g->values[i].now;
        }
    }
    return weir_onnx_run(onnx, in, out, err);
}

/** Seeds that were wrong. */
static struct {
    int n;
    uint64_t first, last;
    char what[200];
} wrong;

static void complain(const struct random_graph *g, int i_run, const char *what)
{
    if (wrong.n == 0 || wrong.last != g->seed) {
        (void)fprintf(stderr, "seed %llu, run %d: %s\n", (unsigned long long)g->seed, i_run, what);
        random_graph_print(g, stderr);
        wrong.n++;
        wrong.last = g->seed;
    }
    if (wrong.n == 1 && wrong.what[0] == '\0') {
        wrong.first = g->seed;
        (void)snprintf(wrong.what, sizeof wrong.what, "run %d: %s", i_run, what);
    }
}

static void compare(struct random_graph *g, struct weir_onnx *onnx, int i_run)
{
    struct weir_tensor *out[GRAPH_VALUES_MAX] = {NULL};
    struct weir_error err = {.message = ""};
    char what[160];
    bool is_whole = random_graph_compute(g);
    bool is_done = run(g, onnx, out, &err) == WEIR_OK;
    if (is_whole != is_done) {
        (void)snprintf(what, sizeof what, is_whole ? "%.150s" : "no step is refused", err.message);
        complain(g, i_run, what);
    }
    for (int i = 0; is_whole && is_done && i < g->n_outputs; i++) {
        if (random_graph_differs(g, i, out[i], what)) {
            complain(g, i_run, what);
        }
    }
    for (int i = 0; is_done && i < g->n_outputs; i++) {
        weir_tensor_release(out[i]);
    }
}

static char seed_text[32]; /* Of the graph at hand. */

/* A graph that ends the process is to be known too. */
static void tell_seed(int signal_number)
{
    (void)!write(STDERR_FILENO, seed_text, sizeof seed_text);
    (void)signal(signal_number, SIG_DFL);
    (void)raise(signal_number);
}

static void play(uint64_t seed)
{
    struct random_graph *g = &graph;
    (void)snprintf(seed_text, sizeof seed_text, "seed %llu\n", (unsigned long long)seed);
    make(g, seed, false);
    if (g->n_outputs > 0) {
        static const int64_t more[] = {0, 0, 3, 1};
        struct weir_onnx *planned = load(g, false);
        struct weir_onnx *interpreted = seed % 8 == 0 ? load(g, true) : NULL;
        for (int i = 0; i < N_RUNS; i++) {
            if (i > 0) {
                random_graph_draw(g, more[i] > 0 ? more[i] : g->batch);
            }
            compare(g, planned, i);
            if (interpreted != NULL) {
                compare(g, interpreted, i);
            }
        }
        weir_onnx_free(planned);
        weir_onnx_free(interpreted);
    }
    random_graph_end(g);
}

/* ---- tests ------------------------------------------------------------------------------------ */

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *given = getenv(name);
    return given != NULL ? strtoull(given, NULL, 10) : otherwise;
}

START_TEST(a_graph_gives_the_same_planned_as_interpreted)
{
    (void)signal(SIGSEGV, tell_seed);
    (void)signal(SIGABRT, tell_seed);
    uint64_t n = number_of("WEIR_TEST_SEEDS", N_GRAPHS), one = number_of("WEIR_TEST_SEED", 0);
    uint64_t from = number_of("WEIR_TEST_FIRST", 0) + 1 + n * (uint64_t)_i / N_CASES;
    uint64_t end = number_of("WEIR_TEST_FIRST", 0) + 1 + n * (uint64_t)(_i + 1) / N_CASES;
    for (uint64_t seed = from; one == 0 && seed < end; seed++) {
        play(seed);
    }
    if (one > 0 && _i == 0) {
        play(one);
    }
    ck_assert_msg(wrong.n == 0, "%d graphs are wrong, the first of seed %llu, %s", wrong.n,
                  (unsigned long long)wrong.first, wrong.what);
}

END_TEST

#define X(name)                                                                                    \
    extern const struct onnx_op onnx_ops_##name[];                                                 \
    extern const size_t onnx_n_ops_##name;
#include "onnx/families.def"
#undef X

/* Is every operator among those that graphs have? Written without computing them again. */
START_TEST(every_operator_is_played)
{
    static const struct {
        const struct onnx_op *ops;
        const size_t *n;
    } families[] = {

#define X(name) {onnx_ops_##name, &onnx_n_ops_##name},
#include "onnx/families.def"
#undef X
    };
    char missing[1024] = "";
    for (uint64_t seed = 1; seed <= WEIR_TEST_TIMES(1500, 1500); seed++) {
        make(&graph, seed, false);
        random_graph_end(&graph);
    }
    for (size_t f = 0; f < WEIR_ARRAY_LEN(families); f++) {
        for (size_t i = 0; i < *families[f].n; i++) {
            const char *type = families[f].ops[i].type;
            bool has = false;
            for (int k = 0; k < played.n; k++) {
                has = has || strcmp(played.types[k], type) == 0;
            }
            if (!has && strstr(missing, type) == NULL) {
                size_t len = strlen(missing);
                (void)snprintf(missing + len, sizeof missing - len, " %s", type);
            }
        }
    }
    ck_assert_msg(missing[0] == '\0', "no graph has%s", missing);
}

END_TEST

/* ---- for other runtimes ------------------------------------------------------------------------ */

static FILE *create(const char *folder, uint64_t seed, const char *name)
{
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/%llu.%s", folder, (unsigned long long)seed, name);
    return fopen(path, "wb");
}

/* Its name, type, dimensions, elements. For an output: how far each may be off, as f64. */
static void put(FILE *to, const struct random_value *value, const struct weir_tensor *tensor)
{
    (void)fprintf(to, "%s %d %d", value->name, (int)tensor->dtype, tensor->rank);
    for (int32_t i = 0; i < tensor->rank; i++) {
        (void)fprintf(to, " %lld", (long long)tensor->dims[i]);
    }
    (void)fprintf(to, "\n");
    (void)fwrite(tensor->data, weir_dtype_bytes(tensor->dtype), tensor->n_elems, to);
}

static void put_output(const struct random_graph *g, FILE *to, int i_out,
                       const struct weir_tensor *tensor)
{
    put(to, &g->values[g->outputs[i_out]], tensor);
    for (size_t i = 0; i < tensor->n_elems; i++) {
        double most = random_graph_tolerance(g, i_out, i);
        (void)fwrite(&most, sizeof most, 1, to);
    }
}

static bool has_strings(const struct random_graph *g)
{
    for (int i = 0; i < g->n_values; i++) {
        if (g->values[i].now->dtype == WEIR_DTYPE_STRING) {
            return true;
        }
    }
    return false;
}

static void write_graph(const char *folder, uint64_t seed)
{
    struct random_graph *g = &graph;
    struct weir_tensor *out[GRAPH_VALUES_MAX];
    struct weir_error err;
    make(g, seed, true);
    if (g->n_outputs > 0 && !has_strings(g) && random_graph_compute(g)) {
        struct weir_onnx *onnx = load(g, false);
        struct weir_buf model;
        FILE *file = create(folder, seed, "onnx"), *in = create(folder, seed, "in"),
             *to = create(folder, seed, "out");
        weir_buf_init(&model, MODEL_BYTES);
        random_graph_write(g, &model);
        (void)fwrite(model.data, 1, model.len, file);
        for (int i = 0; i < g->n_values; i++) {
            if (g->values[i].is_input) {
                put(in, &g->values[i], g->values[i].now);
            }
        }
        bool is_done = run(g, onnx, out, &err) == WEIR_OK;
        for (int i = 0; is_done && i < g->n_outputs; i++) {
            put_output(g, to, i, out[i]);
            weir_tensor_release(out[i]);
        }
        (void)fclose(file);
        (void)fclose(in);
        (void)fclose(to);
        weir_buf_fini(&model);
        weir_onnx_free(onnx);
    }
    random_graph_end(g);
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "--write") == 0) {
        uint64_t first = strtoull(argv[3], NULL, 10), n = strtoull(argv[4], NULL, 10);
        for (uint64_t seed = first; seed < first + n; seed++) {
            write_graph(argv[2], seed);
        }
        return EXIT_SUCCESS;
    }
    Suite *suite = suite_create("random graphs");
    TCase *tests = tcase_create("random graphs");
    tcase_set_timeout(tests, 7200);
    tcase_add_loop_test(tests, a_graph_gives_the_same_planned_as_interpreted, 0, N_CASES);
    tcase_add_test(tests, every_operator_is_played);
    suite_add_tcase(suite, tests);
    return weir_test_run(suite);
}
