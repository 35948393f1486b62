/** weir dataset: create, fill and freeze datasets. */
#include "cli/cli_private.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct dataset_options {
    struct cli_common common;
    char *path, *kind;
};

static const struct weir_option dataset_options[] = {
    CLI_COMMON_OPTIONS(dataset_options),
    WEIR_OPT(dataset_options, path, "path", 0, TEXT, NULL, 0, 0, "DIR",
             "create: a folder that exists on the server"),
    WEIR_OPT(dataset_options, kind, "kind", 0, TEXT, "folder", 0, 0, "folder|idx",
             "create: how the files lie"),
};

static weir_status create(struct cli_call *call, struct weir_error *err)
{
    const struct dataset_options *options = call->options;
    char *absolute = options->path != NULL ? realpath(options->path, NULL) : NULL;
    json_t *body = json_pack("{s:s,s:s}", "name", call->words[1], "kind", options->kind), *answer;
    if (options->path != NULL) {
        json_object_set_new(body, "path", json_string(absolute != NULL ? absolute : options->path));
    }
    free(absolute);
    weir_status status = cli_rest(call, "POST", "/api/v1/datasets", body, &answer, err);
    json_decref(body);
    WEIR_TRY(status);
    if (cli_is_json(call)) {
        cli_print_json(answer);
    } else {
        printf("dataset/%s created\n", call->words[1]);
    }
    json_decref(answer);
    return WEIR_OK;
}

static weir_status freeze(struct cli_call *call, struct weir_error *err)
{
    json_t *answer;
    WEIR_TRY(cli_rest(call, "POST", cli_path1(call, "/api/v1/datasets/{}/versions", call->words[1]),
                      NULL, &answer, err));
    if (cli_is_json(call)) {
        cli_print_json(answer);
    } else {
        printf("dataset/%s version %s: %s files in %s classes\n", call->words[1],
               cli_text(call, answer, "version"), cli_text(call, answer, "n_files"),
               cli_text(call, answer, "n_classes"));
    }
    json_decref(answer);
    return WEIR_OK;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static weir_status put_file(struct cli_call *call, const char *class_name, const char *name,
                            const char *file, struct weir_error *err)
{
    const char *parts[] = {call->words[1], class_name, name};
    char *path = weir_client_path(call->arena, "/api/v1/datasets/{}/files/{}/{}", parts, 3);
    return weir_client_send_file(call->client, "PUT", path, "application/octet-stream", file, NULL,
                                 err);
}

/* All files of `folder` as class `class_name`. */
static weir_status put_class(struct cli_call *call, const char *folder, const char *class_name,
                             int64_t *n_files, struct weir_error *err)
{
    struct dirent **entries;
    int n = scandir(folder, &entries, is_visible, alphasort);
    if (n < 0) {
        return weir_error_set_errno(err, errno, "cannot list %s", folder);
    }
    weir_status status = WEIR_OK;
    for (int i = 0; i < n; i++) {
        char *file = weir_arena_printf(call->arena, "%s/%s", folder, entries[i]->d_name);
        if (status == WEIR_OK && !weir_path_is_dir(file)) {
            status = put_file(call, class_name, entries[i]->d_name, file, err);
            *n_files += status == WEIR_OK;
        }
        free(entries[i]);
    }
    free(entries);
    return status;
}

/* A folder of class folders. */
static weir_status put_tree(struct cli_call *call, const char *root, int64_t *n_files,
                            struct weir_error *err)
{
    struct dirent **entries;
    int n = scandir(root, &entries, is_visible, alphasort);
    if (n < 0) {
        return weir_error_set_errno(err, errno, "cannot list %s", root);
    }
    weir_status status = WEIR_OK;
    for (int i = 0; i < n; i++) {
        char *folder = weir_arena_printf(call->arena, "%s/%s", root, entries[i]->d_name);
        if (status == WEIR_OK && weir_path_is_dir(folder)) {
            status = put_class(call, folder, entries[i]->d_name, n_files, err);
        }
        free(entries[i]);
    }
    free(entries);
    return status;
}

static weir_status put(struct cli_call *call, struct weir_error *err)
{
    int64_t n_files = 0;
    if (call->n_words < 3) {
        return weir_error_set(err, WEIR_ERR_INVALID, "usage: weir dataset put NAME DIR [CLASS]");
    }
    WEIR_TRY(cli_connect(call, err));
    weir_status status = call->n_words == 4
                             ? put_class(call, call->words[2], call->words[3], &n_files, err)
                             : put_tree(call, call->words[2], &n_files, err);
    WEIR_TRY(status);
    if (cli_is_json(call)) {
        json_t *answer =
            json_pack("{s:s,s:I}", "dataset", call->words[1], "files", (json_int_t)n_files);
        cli_print_json(answer);
        json_decref(answer);
    } else {
        printf("dataset/%s: %lld files put; `weir dataset freeze %s` makes them a version\n",
               call->words[1], (long long)n_files, call->words[1]);
    }
    return WEIR_OK;
}

static weir_status remove_class(struct cli_call *call, struct weir_error *err)
{
    if (call->n_words < 3) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "usage: weir dataset remove NAME CLASS [FILE]");
    }
    const char *parts[] = {call->words[1], call->words[2], call->n_words > 3 ? call->words[3] : ""};
    char *path = call->n_words > 3
                     ? weir_client_path(call->arena, "/api/v1/datasets/{}/files/{}/{}", parts, 3)
                     : weir_client_path(call->arena, "/api/v1/datasets/{}/files/{}", parts, 2);
    WEIR_TRY(cli_rest(call, "DELETE", path, NULL, NULL, err));
    if (!cli_is_json(call)) {
        printf("dataset/%s: %s removed\n", call->words[1], call->words[2]);
    }
    return WEIR_OK;
}

static const struct {
    const char *name;
    weir_status (*fn)(struct cli_call *call, struct weir_error *err);
} verbs[] = {{"create", create}, {"put", put}, {"freeze", freeze}, {"remove", remove_class}};

static weir_status run_dataset(struct cli_call *call, struct weir_error *err)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(verbs); i++) {
        if (strcmp(verbs[i].name, call->words[0]) == 0) {
            return verbs[i].fn(call, err);
        }
    }
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "weir dataset %.40s: expected create, put, freeze or remove",
                          call->words[0]);
}

const struct cli_command cli_dataset = {
    .name = "dataset",
    .usage = "create|put|freeze|remove NAME …",
    .summary = "Create, fill and freeze datasets",
    .help =
        "  create NAME [--path DIR] [--kind folder|idx]   a folder of the server, or empty for "
        "uploads\n"
        "  put NAME DIR [CLASS]                           upload class folders, or DIR's files as "
        "CLASS\n"
        "  freeze NAME                                    make a version of the files as they are\n"
        "  remove NAME CLASS [FILE]                       delete uploaded files",
    .min_words = 2,
    .max_words = 4,
    CLI_OPTIONS(dataset_options, dataset_options),
    .run = run_dataset,
};
