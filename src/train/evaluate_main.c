#include "train/identification.h"
#include "train/score.h"
#include "train/task.h"
#include "train/train.h"

#include <stdio.h>
#include <string.h>

struct evaluate_options {
    char *weights, *data, *data_kind, *split, *format, *backend, *precision, *protocol, *model;
    int64_t batch_size, threads, seeds;
    bool is_help;
};

// clang-format off
#define OPT(member, name, letter, type, fallback, low, high, arg, doc)                             \
    WEIR_OPT(evaluate_options, member, name, letter, type, fallback, low, high, arg, doc)

static const struct weir_option options[] = {
    OPT(weights,    "weights",    0,   TEXT, NULL,     0, 0,      "FILE",   "The trained model"),
    OPT(data,       "data",       0,   TEXT, NULL,     0, 0,      "DIR",    "Pictures: a folder per class, or IDX files"),
    OPT(data_kind,  "data-kind",  0,   TEXT, "auto",   0, 0,      "KIND",   "auto, folder or idx"),
    OPT(split,      "split",      0,   TEXT, "test",   0, 0,      "NAME",   "Of IDX files: test or train"),
    OPT(protocol,   "protocol",   0,   TEXT, NULL,     0, 0,      "NAME",   "Instead of --weights: train and measure on parts of the data: identification"),
    OPT(model,      "model",      0,   TEXT, "face-embed", 0, 0,  "NAME|FILE", "What the protocol trains"),
    OPT(seeds,      "seeds",      0,   INT,  "10",     1, IDENTIFICATION_SEEDS_MAX, "N", "Splits that the protocol is repeated with"),
    OPT(batch_size, "batch-size", 0,   INT,  "64",     1, 65536,  "N",      "Pictures at a time"),
    OPT(threads,    "threads",    0,   INT,  "0",      0, 1024,   "N",      "Computing threads; 0: one per CPU"),
    OPT(backend,    "backend",    0,   TEXT, "onednn", 0, 0,      "NAME",   "onednn, cuda (an NVIDIA GPU) or reference"),
    OPT(precision,  "precision",  0,   TEXT, "f32",    0, 0,      "NAME",   "f32, or with --weights bf16, where the processor or GPU has bfloat16, or on a GPU tf32 or fp16"),
    OPT(format,     "format",     'o', TEXT, "text",   0, 0,      "FORMAT", "text or json"),
    OPT(is_help,    "help",       'h', BOOL, NULL,     0, 0,      NULL,     "Show this list"),
};

// clang-format on

static void print_score(const struct evaluate_options *given, const struct train_score *score)
{
    if (strcmp(given->format, "json") != 0) {
        (void)printf("accuracy %.4f  loss %.4f  over %llu pictures\n", score->accuracy, score->loss,
                     (unsigned long long)score->n);
        return;
    }
    json_t *object = json_pack("{s:f,s:f,s:I}", "accuracy", score->accuracy, "loss", score->loss,
                               "pictures", (json_int_t)score->n);
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9));
    (void)printf("%s\n", text != NULL ? text : "{}");
    free(text);
    json_decref(object);
}

static weir_status evaluate(const struct evaluate_options *given, const struct weir_net_file *file,
                            struct weir_dataset *dataset, struct weir_error *err)
{
    const struct weir_net_file_info *info = weir_net_file_info(file);
    bool is_embedding = weir_graph_is_embedding(weir_net_file_graph(file));
    if (is_embedding) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s is an embedding, which has no classes to be right about; "
                              "--protocol identification measures such models",
                              given->weights);
    }
    if (weir_graph_is_detector(weir_net_file_graph(file))) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "%s is a detector, which is measured on scenes while it is trained: "
                              "give the training validation",
                              given->weights);
    }
    WEIR_TRY(train_check_classes(dataset, info->labels, info->n_labels, given->data, err));
    enum weir_precision precision;
    WEIR_TRY(weir_precision_parse(given->precision, &precision, err));
    const struct weir_net_config config = {.batch = (int32_t)given->batch_size,
                                           .n_threads = (int32_t)given->threads,
                                           .precision = precision,
                                           .backend = weir_backend_find(given->backend)};
    struct weir_net *net = NULL;
    WEIR_TRY(weir_net_file_create_net(file, &config, &net, err));
    struct train_score score;
    weir_status status = train_score_measure(
        net,
        &(struct train_score_config){.dataset = dataset, .input = &info->input, .n_threads = 1},
        &score, err);
    weir_net_destroy(net);
    WEIR_TRY(status);
    print_score(given, &score);
    return WEIR_OK;
}

static weir_status check_protocol(const struct evaluate_options *given, struct weir_error *err)
{
    if (strcmp(given->protocol, "identification") != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "protocol: \"%.40s\" is not identification",
                              given->protocol);
    }
    return given->weights == NULL
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "weights: the protocol trains networks of its own, on parts of the "
                                "data; leave them out");
}

static weir_status check(const struct evaluate_options *given, struct weir_error *err)
{
    bool is_model_missing = given->weights == NULL && given->protocol == NULL;
    if (is_model_missing || given->data == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s is missing: see --help",
                              is_model_missing ? "--weights" : "--data");
    }
    if (given->protocol != NULL) {
        WEIR_TRY(check_protocol(given, err));
    }
    if (weir_backend_find(given->backend) == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "backend: \"%.40s\" is none of onednn, cuda and reference",
                              given->backend);
    }
    enum weir_precision precision;
    WEIR_TRY(weir_precision_parse(given->precision, &precision, err));
    if (given->protocol != NULL && precision != WEIR_PRECISION_F32) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "precision: the protocol trains and measures in f32");
    }
    if (strcmp(given->format, "text") != 0 && strcmp(given->format, "json") != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "format: \"%.40s\" is neither text nor json",
                              given->format);
    }
    return WEIR_OK;
}

static weir_status run_protocol(const struct evaluate_options *given, struct weir_error *err)
{
    struct identification_result result;
    const struct identification_config config = {.model = given->model,
                                                 .backend = given->backend,
                                                 .data = given->data,
                                                 .n_seeds = (size_t)given->seeds,
                                                 .n_threads = given->threads,
                                                 .progress = stderr};
    WEIR_TRY(identification_run(&config, &result, err));
    identification_print(&result, strcmp(given->format, "json") == 0, stdout);
    return WEIR_OK;
}

static weir_status run(const struct evaluate_options *given, struct weir_error *err)
{
    WEIR_TRY(check(given, err));
    if (given->protocol != NULL) {
        return run_protocol(given, err);
    }
    struct weir_dataset_options opening = {.split = given->split};
    struct weir_net_file *file = NULL;
    struct weir_dataset *dataset = NULL;
    WEIR_TRY(train_data_kind(given->data_kind, &opening.kind, err));
    weir_status status = WEIR_OK;
    WEIR_TRY_GOTO(weir_net_file_open(given->weights, &file, err), status, close);
    WEIR_TRY_GOTO(weir_dataset_open(given->data, &opening, &dataset, err), status, close);
    status = evaluate(given, file, dataset, err);
close:
    weir_dataset_close(dataset);
    weir_net_file_close(file);
    return status;
}

int weir_evaluate_main(int argc, char **argv)
{
    struct evaluate_options given = {0};
    struct weir_arena arena;
    struct weir_error err = {0};
    char **args = NULL;
    size_t n_args = 0;
    weir_arena_init(&arena, 0);
    weir_status status = weir_options_parse(options, WEIR_ARRAY_LEN(options), argc - 1, argv + 1,
                                            &arena, &given, &args, &n_args, &err);
    if (status == WEIR_OK && n_args > 0) {
        status = weir_error_set(&err, WEIR_ERR_INVALID, "\"%.60s\": expected a flag", args[0]);
    }
    if (status == WEIR_OK && given.is_help) {
        (void)printf("usage: weir-worker evaluate --weights FILE --data DIR [option …]\n"
                     "       weir-worker evaluate --protocol identification --data DIR\n\n");
        weir_options_print(options, WEIR_ARRAY_LEN(options), stdout);
    } else if (status == WEIR_OK) {
        status = run(&given, &err);
    }
    if (status != WEIR_OK) {
        (void)fprintf(stderr, "weir-worker evaluate: %s\n", err.message);
    }
    weir_arena_fini(&arena);
    return weir_status_exit(status);
}
