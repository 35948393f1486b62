/*
 * An answer is a function of its request alone. Random models, half of them with steps that look at the
 * whole batch, are loaded as a replica loads them; requests, one of them with numbers far from all
 * others, are put into the batcher together, and must be answered as each is alone.
 */
#include "serve/rows.h"

#include "agree.h"
#include "probe.h"
#include "sample.h"
#include "serve/batch/batcher.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/protobuf.h"
#include "base/test_main.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH    4
#define N_MODELS WEIR_TEST_TIMES(400, 60)
#define N_CALLS  6
#define FAR      1e4F
#define ROUNDING 1e-4 /* Of an answer's size. */

/** A model that is written: values are called v0, v1 …, constants c0, c1 … */
struct model {
    struct weir_rng rng;
    struct weir_buf graph;
    int n_values, n_constants;
    bool mixes;
};

static char folder[WEIR_DIR_TEMPORARY_BYTES], path[WEIR_DIR_TEMPORARY_BYTES + 16];
static struct weir_error err;

static uint64_t below(struct model *m, uint64_t n)
{
    return weir_rng_below(&m->rng, n);
}

/* ---- writing ---------------------------------------------------------------------------------- */

static int put_constant(struct model *m, int type, const int64_t *dims, int rank, const void *data,
                        size_t n_bytes)
{
    char name[16];
    size_t at = weir_protobuf_begin(&m->graph, 5);
    (void)snprintf(name, sizeof name, "c%d", m->n_constants);
    for (int i = 0; i < rank; i++) {
        weir_protobuf_put_varint(&m->graph, 1, (uint64_t)dims[i]);
    }
    weir_protobuf_put_varint(&m->graph, 2, (uint64_t)type);
    weir_protobuf_put_text(&m->graph, 8, name);
    weir_protobuf_put_bytes(&m->graph, 9, data, n_bytes);
    weir_protobuf_end(&m->graph, at);
    return m->n_constants++;
}

static int put_ints(struct model *m, const int64_t *values, int64_t n)
{
    return put_constant(m, WEIR_DTYPE_INT64, &n, 1, values, (size_t)n * sizeof *values);
}

static int put_floats(struct model *m, const int64_t *dims, int rank)
{
    float values[WIDTH * WIDTH];
    size_t n = 1;
    for (int i = 0; i < rank; i++) {
        n *= (size_t)dims[i];
    }
    for (size_t i = 0; i < n; i++) {
        values[i] = (float)weir_rng_normal(&m->rng);
    }
    return put_constant(m, WEIR_DTYPE_FLOAT, dims, rank, values, n * sizeof values[0]);
}

/* A node of names divided by blanks; "a=1" is an attribute of a number. Output v<n_values>. */
static int node(struct model *m, const char *type, const char *in, const char *attributes)
{
    char out[16];
    size_t at = weir_protobuf_begin(&m->graph, 1);
    for (const char *word = in; *word != '\0';) {
        size_t len = strcspn(word, " ");
        weir_protobuf_put_bytes(&m->graph, 1, word, len);
        word += len + (word[len] == ' ');
    }
    (void)snprintf(out, sizeof out, "v%d", m->n_values);
    weir_protobuf_put_text(&m->graph, 2, out);
    weir_protobuf_put_text(&m->graph, 4, type);
    for (const char *word = attributes; *word != '\0';) {
        size_t len = strcspn(word, "="), whole = strcspn(word, " ");
        size_t attribute = weir_protobuf_begin(&m->graph, 5);
        weir_protobuf_put_bytes(&m->graph, 1, word, len);
        weir_protobuf_put_varint(&m->graph, 3, (uint64_t)strtoll(word + len + 1, NULL, 10));
        weir_protobuf_put_varint(&m->graph, 20, 2);
        weir_protobuf_end(&m->graph, attribute);
        word += whole + (word[whole] == ' ');
    }
    weir_protobuf_end(&m->graph, at);
    return m->n_values++;
}

/* The same, with the names made by a format. */
#define NODE(m, type, attributes, ...)                                                             \
    (snprintf(names, sizeof names, __VA_ARGS__), node(m, type, names, attributes))

static void put_port(struct model *m, uint32_t number, const char *name, const int64_t *dims,
                     int rank)
{
    size_t port = weir_protobuf_begin(&m->graph, number);
    weir_protobuf_put_text(&m->graph, 1, name);
    size_t outer = weir_protobuf_begin(&m->graph, 2), tensor = weir_protobuf_begin(&m->graph, 1);
    weir_protobuf_put_varint(&m->graph, 1, WEIR_DTYPE_FLOAT);
    size_t shape = weir_protobuf_begin(&m->graph, 2);
    for (int i = 0; i < rank; i++) {
        size_t dim = weir_protobuf_begin(&m->graph, 1);
        if (dims[i] < 0) {
            weir_protobuf_put_text(&m->graph, 2, "n");
        } else {
            weir_protobuf_put_varint(&m->graph, 1, (uint64_t)dims[i]);
        }
        weir_protobuf_end(&m->graph, dim);
    }
    weir_protobuf_end(&m->graph, shape);
    weir_protobuf_end(&m->graph, tensor);
    weir_protobuf_end(&m->graph, outer);
    weir_protobuf_end(&m->graph, port);
}

/* ---- steps: from value x of [N, WIDTH] to one of that shape ----------------------------------- */

static int apart_step(struct model *m, int x)
{
    static const char *const each[] = {"Relu", "Sigmoid", "Tanh", "Abs", "Neg"};
    static const int64_t square[] = {WIDTH, WIDTH}, row[] = {WIDTH}, one_row[] = {1, WIDTH};
    char names[64];
    int a, b;
    switch (below(m, 9)) {
    case 0:
        return NODE(m, each[below(m, WEIR_ARRAY_LEN(each))], "", "v%d", x);
    case 1:
        return NODE(m, "MatMul", "", "v%d c%d", x, put_floats(m, square, 2));
    case 2:
        return NODE(m, "Gemm", "", "v%d c%d c%d", x, put_floats(m, square, 2),
                    put_floats(m, row, 1));
    case 3:
        return NODE(m, "Softmax", "axis=-1", "v%d", x);
    case 4:
        return NODE(m, "Add", "", "v%d c%d", x, put_floats(m, one_row, 2));
    case 5: /* attention of a row with itself, as shapes are computed in exports */
        a = NODE(m, "Shape", "", "v%d", x);
        a = NODE(m, "Gather", "axis=0", "v%d c%d", a, put_ints(m, (int64_t[]){0}, 1));
        a = NODE(m, "Concat", "axis=0", "v%d c%d", a, put_ints(m, (int64_t[]){2, WIDTH / 2}, 2));
        a = NODE(m, "Reshape", "", "v%d v%d", x, a);
        b = NODE(m, "Softmax", "axis=2", "v%d", a);
        return NODE(m, "Reshape", "", "v%d c%d", b, put_ints(m, (int64_t[]){-1, WIDTH}, 2));
    case 6:
        a = NODE(m, "ReduceMean", "keepdims=1", "v%d c%d", x, put_ints(m, (int64_t[]){1}, 1));
        return NODE(m, "Sub", "", "v%d v%d", x, a);
    case 7:
        a = NODE(m, "Unsqueeze", "", "v%d c%d", x, put_ints(m, (int64_t[]){1}, 1));
        return NODE(m, "Flatten", "axis=1", "v%d", a);
    default:
        a = NODE(m, "Transpose", "", "v%d", x);
        a = NODE(m, "Relu", "", "v%d", a);
        return NODE(m, "Transpose", "", "v%d", a);
    }
}

static int mixing_step(struct model *m, int x)
{
    char names[64];
    int a, b;
    int64_t zero = 0, one = 1;
    switch (below(m, 14)) {
    case 0:
        return NODE(m, "Softmax", "axis=0", "v%d", x);
    case 1:
        a = NODE(m, "ReduceMean", "keepdims=1", "v%d c%d", x, put_ints(m, &zero, 1));
        return NODE(m, "Sub", "", "v%d v%d", x, a);
    case 2:
        a = NODE(m, "ReduceMax", "keepdims=1", "v%d", x);
        return NODE(m, "Div", "", "v%d v%d", x, a);
    case 3: /* each with each */
        a = NODE(m, "Transpose", "", "v%d", x);
        a = NODE(m, "MatMul", "", "v%d v%d", x, a);
        return NODE(m, "MatMul", "", "v%d v%d", a, x);
    case 4: /* the first with all */
        a = NODE(m, "Gather", "axis=0", "v%d c%d", x, put_ints(m, &zero, 1));
        return NODE(m, "Add", "", "v%d v%d", x, a);
    case 5:
        return NODE(m, "CumSum", "", "v%d c%d", x,
                    put_constant(m, WEIR_DTYPE_INT64, NULL, 0, &zero, 8));
    case 6: /* how many there are */
        a = NODE(m, "Shape", "", "v%d", x);
        a = NODE(m, "Gather", "axis=0", "v%d c%d", a, put_ints(m, &zero, 1));
        a = NODE(m, "Cast", "to=1", "v%d", a);
        return NODE(m, "Mul", "", "v%d v%d", x, a);
    case 7: /* in the other order */
        a = put_ints(m, (int64_t[]){-1}, 1);
        b = put_ints(m, (int64_t[]){INT64_MIN + 1}, 1);
        return NODE(m, "Slice", "", "v%d c%d c%d c%d c%d", x, a, b, put_ints(m, &zero, 1),
                    put_ints(m, (int64_t[]){-1}, 1));
    case 8: /* its place */
        a = NODE(m, "Shape", "", "v%d", x);
        a = NODE(m, "Gather", "axis=0", "v%d c%d", a,
                 put_constant(m, WEIR_DTYPE_INT64, NULL, 0, &zero, 8));
        a = NODE(m, "Range", "", "c%d v%d c%d",
                 put_constant(m, WEIR_DTYPE_INT64, NULL, 0, &zero, 8), a,
                 put_constant(m, WEIR_DTYPE_INT64, NULL, 0, &one, 8));
        a = NODE(m, "Cast", "to=1", "v%d", a);
        a = NODE(m, "Unsqueeze", "", "v%d c%d", a, put_ints(m, &one, 1));
        return NODE(m, "Add", "", "v%d v%d", x, a);
    case 9: /* as a matrix that has the rows as columns */
        a = NODE(m, "Reshape", "", "v%d c%d", x, put_ints(m, (int64_t[]){WIDTH, -1}, 2));
        a = NODE(m, "Softmax", "axis=1", "v%d", a);
        return NODE(m, "Reshape", "", "v%d c%d", a, put_ints(m, (int64_t[]){-1, WIDTH}, 2));
    case 10:
        a = NODE(m, "ReduceSum", "keepdims=0", "v%d c%d", x, put_ints(m, &zero, 1));
        return NODE(m, "Mul", "", "v%d v%d", x, a);
    case 11:
        a = NODE(m, "Transpose", "", "v%d", x);
        a = NODE(m, "LogSoftmax", "axis=1", "v%d", a);
        return NODE(m, "Transpose", "", "v%d", a);
    case 12: /* with what is in a row above it */
        a = NODE(m, "Concat", "axis=0", "v%d v%d", x, x);
        b = NODE(m, "CumSum", "", "v%d c%d", a,
                 put_constant(m, WEIR_DTYPE_INT64, NULL, 0, &zero, 8));
        a = NODE(m, "Shape", "end=1", "v%d", x);
        return NODE(m, "Slice", "", "v%d c%d v%d c%d", b, put_ints(m, &zero, 1), a,
                    put_ints(m, &zero, 1));
    default: /* Squeeze takes the batch away where it is one row */
        a = NODE(m, "Unsqueeze", "", "v%d c%d", x, put_ints(m, (int64_t[]){2}, 1));
        a = NODE(m, "Squeeze", "", "v%d", a);
        return NODE(m, "Softmax", "axis=0", "v%d", a);
    }
}

/* From x, v0, of dims to value y, in the file. */
static void write_file(struct model *m, const int64_t *dims, int y)
{
    struct weir_buf file;
    char name[16];
    (void)snprintf(name, sizeof name, "v%d", y);
    put_port(m, 11, "v0", dims, 2);
    put_port(m, 12, name, dims, 2);
    weir_buf_init(&file, (size_t)1 << 20);
    weir_protobuf_put_varint(&file, 1, 8);
    weir_protobuf_put_bytes(&file, 7, m->graph.data, m->graph.len);
    size_t opset = weir_protobuf_begin(&file, 8);
    weir_protobuf_put_text(&file, 1, "");
    weir_protobuf_put_varint(&file, 2, 18);
    weir_protobuf_end(&file, opset);
    ck_assert_int_eq(file.status, WEIR_OK);
    ck_assert_int_eq(weir_file_write(path, file.data, file.len, 0600, &err), WEIR_OK);
    weir_buf_fini(&file);
    weir_buf_fini(&m->graph);
}

static void begin_model(struct model *m, uint64_t seed)
{
    memset(m, 0, sizeof *m);
    weir_rng_init(&m->rng, seed, 3);
    weir_buf_init(&m->graph, (size_t)1 << 20);
    m->n_values = 1;
}

static void write_model(struct model *m, uint64_t seed)
{
    static const int64_t dims[] = {-1, WIDTH};
    begin_model(m, seed);
    int x = 0, n_steps = 1 + (int)below(m, 5),
        at = below(m, 2) == 0 ? -1 : (int)below(m, (uint64_t)n_steps);
    for (int i = 0; i < n_steps; i++) {
        x = i == at ? mixing_step(m, x) : apart_step(m, x);
    }
    m->mixes = at >= 0;
    write_file(m, dims, x);
}

/* ---- asking ----------------------------------------------------------------------------------- */

/** A model behind a batcher whose first run waits until all have asked. */
struct served {
    struct serve_model *model;
    struct batcher *batcher;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_open;           /* Under lock, as the rest. */
    int n_runs, n_answered; /* Of the batcher. */
};

struct asked {
    struct batch_request request; /* First. */
    struct weir_tensor *in[1], *alone;
};

static weir_status run(void *context, struct weir_tensor *const *in, struct weir_tensor **out,
                       struct weir_error *why)
{
    struct served *s = context;
    pthread_mutex_lock(&s->lock);
    s->n_runs++;
    while (!s->is_open) {
        pthread_cond_wait(&s->changed, &s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return serve_model_run(s->model, in, out, why);
}

static void on_done(struct batch_request *request)
{
    struct served *s = request->context;
    pthread_mutex_lock(&s->lock);
    s->n_answered++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void make_request(struct asked *asked, struct served *s, struct model *m, bool is_far)
{
    const int64_t dims[] = {1 + (int64_t)below(m, 3), WIDTH};
    ck_assert_int_eq(weir_tensor_create(WEIR_DTYPE_FLOAT, 2, dims, &asked->in[0], &err), WEIR_OK);
    ck_assert_int_eq(sample_fill(asked->in[0], SAMPLE_SMALL, &m->rng, &err), WEIR_OK);
    for (int i = 0; is_far && i < WIDTH; i++) {
        ((float *)asked->in[0]->data)[i] *= FAR;
    }
    asked->alone = NULL;
    if (serve_model_run(s->model, asked->in, &asked->alone, &err) != WEIR_OK) {
        asked->alone = NULL; /* so it must be refused in company, too */
    }
    asked->request = (struct batch_request){.in = asked->in,
                                            .n_rows = dims[0],
                                            .deadline_ns = BATCH_NO_DEADLINE,
                                            .done = on_done,
                                            .context = s};
}

static bool is_as_alone(const struct asked *asked)
{
    if (asked->alone == NULL) {
        return asked->request.status != WEIR_OK;
    }
    return asked->request.status == WEIR_OK &&
           sample_distance(asked->request.out[0], asked->alone) <= ROUNDING;
}

/* How many answers are not those to the same request alone. */
static int ask_together(struct served *s, struct model *m)
{
    struct asked asked[N_CALLS];
    int n_wrong = 0;
    for (int i = 0; i < N_CALLS; i++) {
        make_request(&asked[i], s, m, i == 2);
    }
    s->is_open = false;
    for (int i = 0; i < N_CALLS; i++) {
        ck_assert_int_eq(batcher_submit(s->batcher, &asked[i].request, &err), WEIR_OK);
    }
    pthread_mutex_lock(&s->lock);
    s->is_open = true;
    pthread_cond_broadcast(&s->changed);
    while (s->n_answered < N_CALLS) {
        pthread_cond_wait(&s->changed, &s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    for (int i = 0; i < N_CALLS; i++) {
        n_wrong += !is_as_alone(&asked[i]);
        serve_tensors_release(asked[i].in, 1);
        weir_tensor_release(asked[i].alone);
        if (asked[i].request.status == WEIR_OK) {
            weir_tensor_release(asked[i].request.out[0]);
        }
    }
    return n_wrong;
}

/* As a version is pushed, and then loaded. False: it cannot be, as some of these cannot. */
static bool load(struct serve_model **model, struct weir_signature *signature,
                 struct weir_arena *arena)
{
    const struct executor_options options = {.n_threads = 1, .device = EXECUTOR_PROCESSOR};
    const struct signature_extras none = {0};
    ck_assert_msg(executor_load("onnx", path, &options, model, &err) == WEIR_OK, "%s", err.message);
    ck_assert_int_eq(
        weir_signature_make(*model, WEIR_MODEL_FORMAT_ONNX, "so", &none, arena, signature, &err),
        WEIR_OK);
    return weir_signature_probe(*model, signature, NULL, arena, NULL, &err) == WEIR_OK;
}

static void play(uint64_t seed, int *n_wrong, int *n_joined, int *n_apart)
{
    struct served s = {.is_open = true};
    struct model m;
    struct weir_signature signature;
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    pthread_mutex_init(&s.lock, NULL);
    pthread_cond_init(&s.changed, NULL);
    write_model(&m, seed);
    if (load(&s.model, &signature, &arena)) {
        bool joins = serve_model_joins(s.model, &signature);
        const struct batcher_config config = {.n_inputs = 1,
                                              .n_outputs = 1,
                                              .is_batched = joins,
                                              .rules = {.batch_max = 16, .queue_max = 64},
                                              .run = run,
                                              .context = &s};
        ck_assert_int_eq(batcher_start(&config, &s.batcher, &err), WEIR_OK);
        int n = ask_together(&s, &m);
        batcher_stop(s.batcher);
        if (n > 0) {
            printf("seed %llu: %d of %d answers are not those to the same rows alone\n",
                   (unsigned long long)seed, n, N_CALLS);
        }
        *n_wrong += n;
        *n_joined += !m.mixes && s.n_runs < N_CALLS;
        *n_apart += !m.mixes;
    }
    serve_model_unload(s.model);
    weir_arena_fini(&arena);
    pthread_cond_destroy(&s.changed);
    pthread_mutex_destroy(&s.lock);
}

START_TEST(an_answer_is_a_function_of_its_request_alone)
{
    const char *seed = getenv("WEIR_TEST_SEED");
    uint64_t first = seed != NULL ? strtoull(seed, NULL, 10) : 1;
    int n_wrong = 0, n_joined = 0, n_apart = 0;
    for (int i = 0; i < (seed != NULL ? 1 : N_MODELS); i++) {
        play(first + (uint64_t)i, &n_wrong, &n_joined, &n_apart);
    }
    printf("%d models; %d of %d whose rows are apart were run in batches\n", N_MODELS, n_joined,
           n_apart);
    (void)fflush(stdout);
    ck_assert_int_eq(n_wrong, 0);
    ck_assert_int_eq(n_joined, n_apart); /* it would be no use to join nothing */
}

END_TEST

/* Another file stands for a fault of the executor: it gives other answers. */
START_TEST(what_is_computed_wrongly_is_found_out)
{
    static const int64_t dims[] = {-1, WIDTH};
    const struct executor_options options = {.n_threads = 1, .device = EXECUTOR_PROCESSOR};
    const struct signature_extras none = {0};
    struct weir_tensor *in[SERVE_PORTS_MAX];
    struct weir_signature signature;
    struct serve_model *served;
    struct weir_arena arena;
    struct model m;
    weir_arena_init(&arena, 0);
    begin_model(&m, 1);
    write_file(&m, dims, node(&m, "Sigmoid", "v0", ""));
    ck_assert_int_eq(executor_load("onnx", path, &options, &served, &err), WEIR_OK);
    ck_assert_int_eq(
        weir_signature_make(served, WEIR_MODEL_FORMAT_ONNX, "so", &none, &arena, &signature, &err),
        WEIR_OK);
    ck_assert_int_eq(weir_signature_probe(served, &signature, NULL, &arena, in, &err), WEIR_OK);
    ck_assert_int_eq(agree_check(path, &options, served, in, "onnx", &err), WEIR_OK);
    begin_model(&m, 1);
    write_file(&m, dims, node(&m, "Tanh", "v0", ""));
    ck_assert_int_eq(agree_check(path, &options, served, in, "onnx", &err), WEIR_ERR_UNSUPPORTED);
    ck_assert_msg(strstr(err.message, "output \"v1\"") != NULL, "%s", err.message);
    serve_tensors_release(in, 1);
    serve_model_unload(served);
    weir_arena_fini(&arena);
}

END_TEST

/* It reads column 40: neither one column nor 32 are enough. And one that no size of ours suits says so,
 * and what to do; with a golden input of its own it is taken. */
START_TEST(a_model_that_zeros_of_size_one_do_not_suit_is_tried_on_others)
{
    static const char golden[] =
        "{\"inputs\":[{\"name\":\"v0\",\"shape\":[1,3],\"datatype\":\"FP32\",\"data\":[1,2,3]}],"
        "\"outputs\":[{\"name\":\"v1\",\"shape\":[1,3],\"datatype\":\"FP32\",\"data\":[1,2,3]}]}";
    static const int64_t dims[] = {-1, -1};
    const struct executor_options options = {.n_threads = 1, .device = EXECUTOR_PROCESSOR};
    const struct signature_extras none = {0};
    const struct probe_golden given = {golden, sizeof golden - 1};
    const int64_t column = 40, row_of_three[] = {1, 3};
    for (int i = 0; i < 2; i++) {
        struct weir_signature signature;
        struct serve_model *served;
        struct weir_arena arena;
        struct model m;
        char names[64];
        weir_arena_init(&arena, 0);
        begin_model(&m, 1);
        int y = i == 0 ? NODE(&m, "Gather", "axis=1", "v0 c%d", put_ints(&m, &column, 1))
                       : NODE(&m, "Reshape", "", "v0 c%d", put_ints(&m, row_of_three, 2));
        write_file(&m, dims, y);
        ck_assert_int_eq(executor_load("onnx", path, &options, &served, &err), WEIR_OK);
        ck_assert_int_eq(weir_signature_make(served, WEIR_MODEL_FORMAT_ONNX, "so", &none, &arena,
                                             &signature, &err),
                         WEIR_OK);
        weir_status status = weir_signature_probe(served, &signature, NULL, &arena, NULL, &err);
        ck_assert_int_eq(status, i == 0 ? WEIR_OK : WEIR_ERR_INVALID);
        if (i == 1) {
            ck_assert_msg(strstr(err.message, "golden input") != NULL, "%s", err.message);
            ck_assert_int_eq(weir_signature_probe(served, &signature, &given, &arena, NULL, &err),
                             WEIR_OK);
        }
        serve_model_unload(served);
        weir_arena_fini(&arena);
    }
}

END_TEST

static void set_up(void)
{
    ck_assert_int_eq(weir_dir_make_temporary("rows", folder, &err), WEIR_OK);
    (void)snprintf(path, sizeof path, "%s/m.onnx", folder);
}

static void tear_down(void)
{
    ck_assert_int_eq(weir_dir_remove(folder, &err), WEIR_OK);
}

int main(void)
{
    const TTest *const tests[] = {an_answer_is_a_function_of_its_request_alone,
                                  what_is_computed_wrongly_is_found_out,
                                  a_model_that_zeros_of_size_one_do_not_suit_is_tried_on_others};
    return weir_test_run(
        weir_test_suite_with("rows", set_up, tear_down, tests, WEIR_ARRAY_LEN(tests)));
}
