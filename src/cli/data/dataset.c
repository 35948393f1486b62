/** weir dataset: create, fill and freeze datasets. */
#include "cli/command.h"
#include "cli/core/hint.h"
#include "cli/core/progress.h"
#include "cli/core/verb.h"
#include "cli/data/dataset_get.h"
#include "cli/data/dataset_put.h"

#include "base/picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dataset_options {
    struct cli_common common;
    char *path, *kind, *project;
};

static const struct weir_option dataset_options[] = {
    CLI_COMMON_OPTIONS(dataset_options),
    CLI_TEXT(dataset_options, path, "path", 0, "DIR", "create: a folder that exists on the server"),
    WEIR_OPT(dataset_options, kind, "kind", 0, TEXT, "folder", 0, 0, "folder|idx",
             "create: how the files lie"),
    CLI_TEXT(dataset_options, project, "project", 0, "NAME",
             "create: whose it is (else the only project of one's own, or default)"),
};

static weir_status take_path(struct cli_call *call, json_t *body, struct weir_error *err)
{
    const struct dataset_options *options = call->options;
    char *absolute = options->path != NULL ? realpath(options->path, NULL) : NULL;
    (void)err;
    if (options->path != NULL) {
        json_object_set_new(body, "path", json_string(absolute != NULL ? absolute : options->path));
    }
    free(absolute);
    return WEIR_OK;
}

/* Of files that are no pictures: a dataset may well be of such. */
static void tell_of_others(size_t n, size_t n_files)
{
    if (n > 0) {
        (void)fprintf(stderr,
                      "weir: %zu of %zu files are no pictures (" WEIR_PICTURE_KINDS
                      "): trainings of `weir train` skip them, programs of your own read them\n",
                      n, n_files);
    }
}

static void warn_of_damage(struct cli_call *call, const json_t *version)
{
    json_int_t n = json_integer_value(json_object_get(version, "n_damaged"));
    size_t i;
    json_t *name;
    tell_of_others((size_t)json_integer_value(json_object_get(version, "n_other")),
                   (size_t)json_integer_value(json_object_get(version, "n_files")));
    if (n == 0) {
        return;
    }
    (void)fprintf(stderr, "weir: %lld of %s files seem damaged, and a training would skip them:\n",
                  (long long)n, cli_text(call, version, "n_files"));
    json_array_foreach(json_object_get(version, "damaged"), i, name)
    {
        (void)fprintf(stderr, "  %s\n", json_string_value(name));
    }
    if ((json_int_t)i < n) {
        (void)fprintf(stderr, "  and %lld more\n", (long long)n - (long long)i);
    }
}

/* Until the freeze is over; *answer becomes the version. */
static weir_status follow_freeze(struct cli_call *call, json_t **answer, struct weir_error *err)
{
    struct cli_progress progress = {0};
    const char *path = cli_path1(call, "/api/v1/datasets/{}/freeze?wait_s=1", call->words[1]);
    const char *state = json_string_value(json_object_get(*answer, "state"));
    while (state != NULL && strcmp(state, "running") == 0) {
        cli_progress_tell(call, &progress, "%s files, %lld MB read",
                          cli_text(call, *answer, "files"),
                          json_integer_value(json_object_get(*answer, "bytes")) / 1000000);
        json_decref(*answer);
        *answer = NULL;
        WEIR_TRY(cli_rest(call, "GET", path, NULL, answer, err));
        state = json_string_value(json_object_get(*answer, "state"));
    }
    cli_progress_end(&progress);
    json_t *error = json_object_get(*answer, "error");
    if (json_is_object(error)) {
        return weir_error_set(err, weir_status_from_name(cli_text(call, error, "status")), "%s",
                              cli_text(call, error, "message"));
    }
    json_t *version = json_object_get(*answer, "version");
    if (json_is_object(version)) { /* else it was done at once, and this is the version */
        json_object_set(version, "n_damaged", json_object_get(*answer, "n_damaged"));
        json_object_set(version, "n_other", json_object_get(*answer, "n_other"));
        json_object_set(version, "damaged", json_object_get(*answer, "damaged"));
        json_incref(version);
        json_decref(*answer);
        *answer = version;
    }
    return WEIR_OK;
}

static weir_status freeze(struct cli_call *call, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *answer = NULL;
    WEIR_TRY(cli_rest(call, "POST",
                      cli_path1(call, "/api/v1/datasets/{}/versions?wait_s=0", call->words[1]),
                      NULL, &answer, err));
    WEIR_TRY(follow_freeze(call, &answer, err));
    if (cli_is_json(call)) {
        cli_print_json(answer);
        return WEIR_OK;
    }
    bool has_folders = json_integer_value(json_object_get(answer, "n_classes")) > 0;
    printf("%s%s\n", cli_fill(call, "dataset/{1} version {version}: {n_files} files", NULL, answer),
           has_folders ? cli_fill(call, " in {n_classes} classes", NULL, answer)
                       : ""); /* other kinds of data name their classes otherwise */
    warn_of_damage(call, answer);
    return WEIR_OK;
}

static weir_status send_all(struct cli_call *call, const struct put_list *list,
                            struct weir_error *err)
{
    struct cli_progress progress = {0};
    for (size_t i = 0; i < list->n; i++) {
        const struct put_file *file = &list->items[i];
        const char *parts[] = {call->words[1], file->class_name, file->name};
        char *path = weir_client_path(call->arena, "/api/v1/datasets/{}/files/{}/{}", parts, 3);
        struct weir_error why;
        weir_status status = weir_client_send_file(
            call->client, "PUT", path, "application/octet-stream", file->path, NULL, &why);
        if (status != WEIR_OK) {
            cli_progress_end(&progress);
            return weir_error_set(err, status,
                                  "%s/%s: %s; %zu of %zu files are put: put all again before "
                                  "`weir dataset freeze`",
                                  file->class_name, file->name, why.message, i, list->n);
        }
        cli_progress_tell(call, &progress, "%zu of %zu files are put", i + 1, list->n);
    }
    cli_progress_end(&progress);
    return WEIR_OK;
}

/* Its files are pictures, unless it is of another kind. */
static weir_status has_pictures(struct cli_call *call, bool *out, struct weir_error *err)
{
    json_t *dataset;
    WEIR_TRY(cli_rest(call, "GET", cli_path1(call, "/api/v1/datasets/{}", call->words[1]), NULL,
                      &dataset, err));
    *out = strcmp(cli_text(call, dataset, "kind"), "idx") != 0;
    json_decref(dataset);
    return WEIR_OK;
}

/* Before anything is sent. */
static void warn_of_files(const struct put_list *list, const struct put_check *check)
{
    size_t n = list->n;
    if (check->left_out != NULL) {
        (void)fprintf(stderr, "weir: %zu of %zu files %s left out: %s\n", check->n_left_out,
                      n + check->n_left_out, check->n_left_out == 1 ? "is" : "are",
                      check->left_out);
    }
    tell_of_others(check->n_other, n);
    if (check->damaged != NULL) {
        (void)fprintf(stderr,
                      "weir: %zu of %zu files seem damaged, and a training would skip them: %s\n",
                      check->n_damaged, n, check->damaged);
    }
}

static void print_put(struct cli_call *call, const struct put_list *list,
                      const struct put_check *check)
{
    if (cli_is_json(call)) {
        json_t *answer = json_pack("{s:s,s:I,s:I,s:I,s:I}", "dataset", call->words[1], "files",
                                   (json_int_t)list->n, "damaged", (json_int_t)check->n_damaged,
                                   "left_out", (json_int_t)check->n_left_out);
        cli_print_json(answer);
        json_decref(answer);
    } else {
        printf("dataset/%s: %zu files put; `weir dataset freeze %s` makes them a version\n",
               call->words[1], list->n, call->words[1]);
    }
}

static weir_status put(struct cli_call *call, struct weir_error *err)
{
    struct put_list list = {0};
    struct put_check check;
    bool are_pictures;
    WEIR_TRY(has_pictures(call, &are_pictures, err));
    WEIR_TRY(put_list_read(&list, call->words[2], call->n_words == 4 ? call->words[3] : NULL,
                           call->arena, err));
    const char *left_out = put_list_left_out(&list, call->arena);
    if (left_out != NULL) {
        (void)fprintf(stderr, "weir: %s\n", left_out);
    }
    WEIR_TRY(put_list_check(&list, are_pictures, call->arena, &check, err));
    warn_of_files(&list, &check);
    WEIR_TRY(send_all(call, &list, err));
    print_put(call, &list, &check);
    return check.n_lost == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "%zu of the files that were left out %s not empty: see above",
                                check.n_lost, check.n_lost == 1 ? "is" : "are");
}

static weir_status get(struct cli_call *call, struct weir_error *err)
{
    return dataset_get(call, call->words[1], call->words[2], err);
}

static weir_status refuse(struct cli_call *call, struct weir_error *err)
{
    static const char *const usages[][2] = {{"put", "put NAME DIR [CLASS]"},
                                            {"remove", "remove NAME CLASS [FILE]"},
                                            {"get", "get NAME[@v3] DIR"}};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(usages); i++) {
        if (strcmp(usages[i][0], call->words[0]) == 0) {
            return weir_error_set(err, WEIR_ERR_INVALID, "usage: weir dataset %s", usages[i][1]);
        }
    }
    const char *say = cli_hint_second("dataset", call->words[0]);
    return say != NULL
               ? weir_error_set(err, WEIR_ERR_INVALID,
                                "there is no command \"dataset %.40s\": say %s", call->words[0],
                                say)
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "weir dataset %.40s: expected create, put, freeze, remove or get",
                                call->words[0]);
}

#define CLASS "/api/v1/datasets/{1}/files/{2}"

const struct cli_command cli_dataset = {
    .name = "dataset",
    .usage = "create|put|freeze|remove|get NAME …",
    .summary = "Create, fill and freeze datasets",
    .help =
        "  create NAME [--path DIR] [--kind folder|idx] [--project NAME]   a folder of the server, "
        "or empty for "
        "uploads\n"
        "  put NAME DIR [CLASS]                           upload class folders, or DIR's files as "
        "CLASS\n"
        "  freeze NAME                                    make a version of the files as they are\n"
        "  remove NAME CLASS [FILE]                       delete uploaded files\n"
        "  get NAME[@v3] DIR                              fetch the files of a version",
    CLI_WORDS(2, 4),
    CLI_OPTIONS(dataset_options, dataset_options),
    // clang-format off: a table
    CLI_VERBS({"create", 2, 4, take_path, .call = "POST /api/v1/datasets",
               .body = "name=1 -kind -project", .say = "dataset/{1} created"},
              {"put", 3, 4, .run = put}, {"freeze", 2, 4, .run = freeze},
              {"remove", 3, 3, .call = "DELETE " CLASS, .say = "dataset/{1}: {2} removed",
               .gives = "dataset=1 class=2 file=null removed=true"},
              {"remove", 4, 4, .call = "DELETE " CLASS "/{3}", .say = "dataset/{1}: {2} removed",
               .gives = "dataset=1 class=2 file=3 removed=true"},
              {"get", 3, 3, .run = get}, {.run = refuse}),
    // clang-format on
};
