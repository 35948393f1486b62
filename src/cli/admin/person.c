/** weir person forget: photos of a person, wherever Weir keeps them, go. */
#include "cli/core/verb.h"

struct person_options {
    struct cli_common common;
    char *project, *reason;
    bool is_sure;
};

static const struct weir_option person_options[] = {
    CLI_COMMON_OPTIONS(person_options),
    CLI_TEXT(person_options, project, "project", 'p', "NAME", "In this project only (else in all)"),
    CLI_TEXT(person_options, reason, "reason", 0, "TEXT", "Why, for the record"),
    CLI_FLAG(person_options, is_sure, "yes", 'y', "Do it: nothing brings the photos back"),
};

static int64_t number(const json_t *object, const char *member)
{
    return json_integer_value(json_object_get(object, member));
}

static void print_list(const json_t *list, const char *what)
{
    json_t *item;
    size_t i;
    json_array_foreach(list, i, item)
    {
        printf("%s %s\n", what, json_string_value(item));
    }
}

static void print_done(struct cli_call *call, const json_t *answer)
{
    const json_t *summary = json_object_get(answer, "summary");
    printf("%s is forgotten: %lld photos and %lld blobs of them, %lld pictures of decisions, %lld "
           "files of embeddings, %lld copies of photos, %lld names in feedback, in %lld snapshots, "
           "on %lld lists.\n",
           call->words[0], (long long)number(summary, "photos"),
           (long long)number(summary, "blobs"), (long long)number(summary, "pictures"),
           (long long)number(summary, "embedding_files"), (long long)number(summary, "cached"),
           (long long)number(summary, "feedback"), (long long)number(summary, "snapshots"),
           (long long)number(answer, "n_lists"));
    print_list(json_object_get(summary, "datasets"), "Had photos, now with a tombstone: dataset");
    print_list(json_object_get(answer, "freeze_again"), "Freeze again: weir dataset freeze");
    print_list(json_object_get(summary, "outside"), "Not Weir's, delete it yourself:");
    printf(
        "Backups and exports of snapshots made before, and models trained with the photos, still "
        "have what they had.\n");
}

static weir_status is_meant(struct cli_call *call, json_t *body, struct weir_error *err)
{
    const struct person_options *options = call->options;
    (void)body;
    return options->is_sure
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "nothing brings the photos of \"%.60s\" back: say --yes if that is "
                                "meant",
                                call->words[0]);
}

const struct cli_command cli_person_forget = {
    .name = "person forget",
    .usage = "NAME --yes [--project NAME] [--reason TEXT]",
    .summary = "Delete a person's photos, pictures and embeddings",
    .help =
        "Removes the class NAME of uploaded datasets with its files, the photos from all versions "
        "and copies\n"
        "of them in folders of tasks, the pictures of decisions about NAME, embeddings, and NAME "
        "from feedback,\n"
        "lists and the rows of snapshots. The versions that had the photos say so; new ones are "
        "frozen without\n"
        "them. `weir get forgotten` lists who was forgotten.",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(person_options, person_options),
    CLI_VERBS({.prepare = is_meant,
               .call = "POST /api/v1/people/{0}/forget",
               .body = "-project -reason",
               .print = print_done}),
};
