#include "serve/export.h"

#include "net_texts.h"
#include "serve/executor.h"

#include "base/file.h"
#include "base/options.h"
#include "nn/onnx_file.h"

#include <stdio.h>
#include <stdlib.h>

struct options {
    char *output;
    bool help;
};

static const struct weir_option options[] = {
    WEIR_OPT(options, output, "output", 'o', TEXT, NULL, 0, 0, "FILE", "The ONNX file. Required"),
    WEIR_OPT(options, help, "help", 'h', BOOL, NULL, 0, 0, NULL, "Show this list"),
};

static weir_status export_file(const struct weir_net_file *file, const char *out_path,
                               struct weir_error *err)
{
    struct weir_arena arena;
    struct weir_buf buf;
    weir_arena_init(&arena, 0);
    weir_buf_init(&buf, WEIR_ONNX_FILE_MAX_BYTES);
    struct net_texts texts = net_texts_make(file, &arena);
    const struct weir_onnx_file_text given[] = {
        {"weir.picture", texts.picture},
        {"weir.output_kind", texts.output_kind},
        {"weir.labels", texts.labels},
    };
    size_t n = texts.labels != NULL ? WEIR_ARRAY_LEN(given) : WEIR_ARRAY_LEN(given) - 1;
    weir_status status = weir_net_file_export_onnx(file, given, n, &buf, err);
    if (status == WEIR_OK) {
        status = weir_file_write_atomic(out_path, buf.data, buf.len, 0644, err);
    }
    weir_buf_fini(&buf);
    weir_arena_fini(&arena);
    return status;
}

weir_status weir_serve_export(const char *path, const char *out_path, struct weir_error *err)
{
    struct weir_net_file *file;
    WEIR_TRY(weir_net_file_open(path, &file, err));
    weir_status status = export_file(file, out_path, err);
    weir_net_file_close(file);
    return status;
}

int weir_export_main(int argc, char **argv)
{
    static const char usage[] = "usage: weir-worker export FILE --output FILE";
    struct weir_arena arena;
    struct options chosen = {0};
    char **words;
    size_t n_words;
    struct weir_error err = {0};
    weir_arena_init(&arena, 0);
    weir_status status = weir_options_parse(options, WEIR_ARRAY_LEN(options), argc - 1, argv + 1,
                                            &arena, &chosen, &words, &n_words, &err);
    if (status == WEIR_OK && chosen.help) {
        (void)printf("%s\n\n", usage);
        weir_options_print(options, WEIR_ARRAY_LEN(options), stdout);
    } else if (status == WEIR_OK && (n_words != 1 || chosen.output == NULL)) {
        status = weir_error_set(&err, WEIR_ERR_INVALID, "%s", usage);
    } else if (status == WEIR_OK) {
        status = weir_serve_export(words[0], chosen.output, &err);
    }
    if (status != WEIR_OK) {
        (void)fprintf(stderr, "weir-worker export: %s\n", err.message);
    }
    weir_arena_fini(&arena);
    return status == WEIR_OK ? EXIT_SUCCESS : weir_status_exit(status);
}
