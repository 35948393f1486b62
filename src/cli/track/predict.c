/** weir predict: send pictures or requests to a deployment, as any client would. */
#include "cli/command.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define VALUES_SHOWN 6
#define HEAD_BYTES   8

struct predict_options {
    struct cli_common common;
    int64_t top, version;
};

static const struct weir_option predict_options[] = {
    CLI_COMMON_OPTIONS(predict_options),
    WEIR_OPT(predict_options, top, "top", 0, INT, "5", 1, 1000, "N",
             "Labels to show of each picture"),
    WEIR_OPT(predict_options, version, "version", 'v', INT, "0", 0, 1e15, "N",
             "Ask this version, whatever the shares (0: by the shares)"),
};

/* ---- asking ---------------------------------------------------------------------------------- */

static char *address(struct cli_call *call)
{
    const struct predict_options *options = call->options;
    char *number = weir_arena_printf(call->arena, "%lld", (long long)options->version);
    return options->version > 0
               ? cli_path2(call, "/v2/models/{}/versions/{}/infer", call->words[0], number)
               : cli_path1(call, "/v2/models/{}/infer", call->words[0]);
}

/* By its first bytes; NULL: it is no picture that a deployment takes. */
static weir_status picture_type(const char *file, const char **out, struct weir_error *err)
{
    static const struct {
        const char *head;
        size_t len;
        const char *type;
    } types[] = {{"\xff\xd8\xff", 3, "image/jpeg"}, {"\x89PNG\r\n\x1a\n", 8, "image/png"}};

    unsigned char head[HEAD_BYTES] = {0};
    FILE *stream = fopen(file, "rbe");
    if (stream == NULL) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "cannot read %s", file);
    }
    (void)!fread(head, 1, sizeof head, stream);
    (void)fclose(stream);
    *out = NULL;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(types); i++) {
        *out = memcmp(head, types[i].head, types[i].len) == 0 ? types[i].type : *out;
    }
    return WEIR_OK;
}

static bool has_suffix(const char *text, const char *suffix)
{
    size_t len = strlen(text), suffix_len = strlen(suffix);
    return len > suffix_len && strcmp(text + len - suffix_len, suffix) == 0;
}

static weir_status ask(struct cli_call *call, const char *file, json_t **out,
                       struct weir_error *err)
{
    const char *type = NULL;
    if (!has_suffix(file, ".json")) {
        WEIR_TRY(picture_type(file, &type, err));
        if (type == NULL) {
            return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                  "%s: neither a JPEG nor a PNG; a request of the Open Inference "
                                  "Protocol is a file NAME.json",
                                  file);
        }
    } else {
        type = "application/json";
    }
    return weir_client_send_file(call->client, "POST", address(call), type, file, out, err);
}

/* ---- telling --------------------------------------------------------------------------------- */

/* Width of the column of files. */
static int file_width(const struct cli_call *call)
{
    size_t width = strlen("FILE");
    for (size_t i = 1; i < call->n_words; i++) {
        width = WEIR_MAX(width, strlen(call->words[i]));
    }
    return (int)WEIR_MIN(width, (size_t)PATH_MAX);
}

static void print_labels(struct cli_call *call, const char *file, const json_t *answer)
{
    const struct predict_options *options = call->options;
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(answer, "labels"), i, item)
    {
        if ((int64_t)i < options->top) {
            printf("%-*s  %-32s  %11.4f\n", file_width(call), i == 0 ? file : "",
                   cli_text(call, item, "label"),
                   json_number_value(json_object_get(item, "probability")));
        }
    }
}

static void print_output(struct cli_call *call, const char *file, const json_t *output)
{
    const json_t *data = json_object_get(output, "data");
    size_t i, n = json_array_size(data);
    json_t *value;
    printf("%-*s  %s %s%s ", file_width(call), file, cli_text(call, output, "name"),
           cli_text(call, output, "datatype"), cli_text(call, output, "shape"));
    json_array_foreach(data, i, value)
    {
        if (i < VALUES_SHOWN && json_is_number(value)) {
            printf("%s%g", i > 0 ? " " : "", json_number_value(value));
        } else if (i < VALUES_SHOWN) {
            char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
            printf("%s%s", i > 0 ? " " : "", text != NULL ? text : "?");
            free(text);
        }
    }
    printf("%s\n", n > VALUES_SHOWN ? " …" : "");
}

static void print_answer(struct cli_call *call, const char *file, const json_t *answer)
{
    size_t i;
    json_t *output;
    if (json_array_size(json_object_get(answer, "labels")) > 0) {
        print_labels(call, file, answer);
        return;
    }
    json_array_foreach(json_object_get(answer, "outputs"), i, output)
    {
        print_output(call, i == 0 ? file : "", output);
    }
}

static weir_status predict_all(struct cli_call *call, json_t *answers, struct weir_error *err)
{
    for (size_t i = 1; i < call->n_words; i++) {
        json_t *answer;
        const char *file = call->words[i];
        WEIR_TRY(ask(call, file, &answer, err));
        if (cli_is_json(call)) {
            json_object_set_new(answer, "file", json_string(file));
            json_array_append_new(answers, answer);
            continue;
        }
        if (i == 1 && json_array_size(json_object_get(answer, "labels")) > 0) {
            printf("%-*s  %-32s  %s\n", file_width(call), "FILE", "LABEL", "PROBABILITY");
        }
        print_answer(call, file, answer);
        json_decref(answer);
    }
    return WEIR_OK;
}

static weir_status run_predict(struct cli_call *call, struct weir_error *err)
{
    json_t *answers = json_array();
    weir_status status = cli_connect(call, err);
    if (status == WEIR_OK) {
        status = predict_all(call, answers, err);
    }
    if (cli_is_json(call) && json_array_size(answers) > 0) {
        cli_print_json(answers);
    }
    json_decref(answers);
    return status;
}

const struct cli_command cli_predict = {
    .name = "predict",
    .usage = "DEPLOYMENT FILE… [--top N] [--version N] [-o json]",
    .summary = "Ask a deployment: a picture in, a table of labels out",
    .help = "FILE is a JPEG or a PNG, if the model's signature says how a picture becomes its "
            "input; or\n"
            "NAME.json with a request of the Open Inference Protocol.",
    CLI_WORDS(2, 1000),
    CLI_OPTIONS(predict_options, predict_options),
    .run = run_predict,
};
