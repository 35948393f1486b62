/** weir delete: anything that can be, by its noun and its name. */
#include "cli/core/noun.h"
#include "cli/track/model_name.h"

#include <string.h>

struct delete_options {
    struct cli_common common;
    bool is_forced;
};

static const struct weir_option delete_options[] = {
    CLI_COMMON_OPTIONS(delete_options),
    CLI_FLAG(delete_options, is_forced, "force", 0,
             "Of a deployment: also if a link of an ION leads to it; of a dataset: also if models "
             "were trained on it"),
};

/** A noun whose records can be deleted. What still needs one is the server's to say. */
static const struct deletable {
    const char *noun, *path;
    const char *after; /**< What stays or goes besides; "": nothing to tell. */
    bool has_force;
} deletables[] = {
    {"ion", "/api/v1/ions/{}", "what it ran stops", false},
    {"job", "/api/v1/jobs/{}", "its run, logs and figures go with it", false},
    {"dataset", "/api/v1/datasets/{}", "its versions and files go with it", true},
    {"deployment", "/api/v1/deployments/{}", "its replicas stop; its model stays", true},
    {"service", "/api/v1/services/{}", "its folder goes with it", false},
    {"sweep", "/api/v1/sweeps/{}", "its jobs and runs stay", false},
    {"snapshot", "/api/v1/snapshots/{}", "", false},
    {"experiment", "/api/v1/experiments/{}", "its runs go with it", false},
    {"queue", "/api/v1/queues/{}", "its project's jobs go on without a guarantee", false},
    {"reservation", "/api/v1/reservations/{}", "its nodes are everybody's again", false},
    {"token", "/api/v1/tokens/{}", "", false},
    {"session", "/api/v1/sessions/{}", "", false},
    {"role", "/api/v1/roles/{}", "", false},
    {"user", "/api/v1/users/{}", "", false},
    {"group", "/api/v1/groups/{}", "", false},
    {"alert-rule", "/api/v1/alert-rules/{}", "", false},
    {"alert-receiver", "/api/v1/alert-receivers/{}", "", false},
    {"alert-silence", "/api/v1/alert-silences/{}", "", false},
};

/** Why others cannot be, and what is done instead. */
static const struct {
    const char *noun, *instead;
} kept[] = {
    {"run", "it goes with its job (`weir delete job JOB`) or its experiment"},
    {"task", "it goes with its job: `weir delete job JOB`"},
    {"metric", "it goes with its run's job: `weir delete job JOB`"},
    {"trial", "it goes with its sweep: `weir delete sweep SWEEP`"},
    {"node", "it leaves by itself: `weir node leave`, on that machine"},
    {"device", "it goes with its node"},
    {"cluster", "`weir cluster remove NAME`, once no allocation of it is left"},
    {"allocation", "`weir allocation release ID` gives its nodes back"},
    {"alias", "`weir model alias MODEL ALIAS --delete` takes it away"},
    {"project", "its name stays in the audit; `weir project revoke` takes people out of it"},
    {"project-member", "`weir project revoke PROJECT USER` takes one out"},
    {"group-member", "`weir group remove GROUP USER` takes one out"},
    {"member", "`weir member remove ION PERSON` takes one off the lists"},
    {"alert", "`weir alert resolve ALERT` closes it"},
};

static const struct deletable *find_deletable(const char *noun)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(deletables); i++) {
        if (strcmp(deletables[i].noun, noun) == 0) {
            return &deletables[i];
        }
    }
    return NULL;
}

static weir_status refuse(const struct cli_noun *noun, struct weir_error *err)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(kept); i++) {
        if (strcmp(kept[i].noun, noun->singular) == 0) {
            return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "a %s is not deleted by itself: %s",
                                  noun->singular, kept[i].instead);
        }
    }
    return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                          "%s are kept as long as their project says: `weir project retention "
                          "PROJECT` tells how long, `weir project set` changes it",
                          noun->plural);
}

static void say(struct cli_call *call, const char *noun, const char *name, const char *after)
{
    if (cli_is_json(call)) {
        cli_print_change(json_pack("{s:s,s:s,s:b}", "noun", noun, "name", name, "deleted", 1));
    } else {
        printf("%s/%s deleted%s%s\n", noun, name, after[0] != '\0' ? "; " : "", after);
    }
}

/* A version, or a model with all of them. */
static weir_status delete_model(struct cli_call *call, const char *word, struct weir_error *err)
{
    char *name, *version;
    int64_t number = 0;
    WEIR_TRY(cli_model_split(call, word, &name, &version, err));
    const char *path = cli_path1(call, "/api/v1/models/{}", name);
    if (version != NULL) {
        WEIR_TRY(cli_model_version(call, name, version, &number, err));
        path = cli_path2(call, "/api/v1/models/{}/versions/{}", name,
                         weir_arena_printf(call->arena, "%lld", (long long)number));
    }
    WEIR_TRY(cli_rest(call, "DELETE", path, NULL, NULL, err));
    say(call, version != NULL ? "version" : "model", word,
        version != NULL ? "its file goes with the next sweep" : "all its versions go with it");
    return WEIR_OK;
}

static weir_status delete_one(struct cli_call *call, const struct cli_noun *noun, const char *word,
                              struct weir_error *err)
{
    const struct delete_options *options = call->options;
    const struct deletable *what = find_deletable(noun->singular);
    char *key;
    if (strcmp(noun->singular, "model") == 0 || strcmp(noun->singular, "version") == 0) {
        return delete_model(call, word, err);
    }
    if (what == NULL) {
        return refuse(noun, err);
    }
    WEIR_TRY(cli_noun_key(call, noun, word, &key, err));
    const char *pattern = what->has_force && options->is_forced
                              ? weir_arena_printf(call->arena, "%s?force=1", what->path)
                              : what->path;
    WEIR_TRY(cli_rest(call, "DELETE", cli_path1(call, pattern, key), NULL, NULL, err));
    say(call, noun->singular, word, what->after);
    return WEIR_OK;
}

/* "job train", "job a b", "job/a dataset/b"; a word alone is an ION. */
static weir_status run_delete(struct cli_call *call, struct weir_error *err)
{
    const struct cli_noun *noun = cli_noun_find(call->words[0]);
    size_t first = noun != NULL ? 1 : 0;
    if (noun != NULL && call->n_words == 1) {
        return find_deletable(noun->singular) == NULL && strcmp(noun->singular, "model") != 0
                   ? refuse(noun, err)
                   : weir_error_set(err, WEIR_ERR_INVALID,
                                    "which %s? weir delete %s NAME; `weir get %s` lists them",
                                    noun->singular, noun->singular, noun->plural);
    }
    for (size_t i = first; i < call->n_words; i++) {
        char *name = call->words[i];
        const struct cli_noun *own = cli_noun_split(call->arena, call->words[i], &name);
        const struct cli_noun *of = own != NULL ? own : noun != NULL ? noun : cli_noun_find("ion");
        if (own == NULL && noun == NULL && call->n_words > 1) {
            return cli_noun_unknown(call->words[0], err);
        }
        WEIR_TRY(delete_one(call, of, name, err));
    }
    return WEIR_OK;
}

const struct cli_command cli_delete = {
    .name = "delete",
    .usage = "NOUN NAME … | NOUN/NAME … | ION [--force] [-o json]",
    .summary = "Delete an ION, a job that is over, a dataset, a model, a deployment, a token …",
    .help =
        "NOUN is ion, job, dataset, model (NAME or NAME@v3), deployment, service, sweep, "
        "snapshot, experiment,\n"
        "queue, reservation, token, session, role, user, group, alert-rule, alert-receiver or "
        "alert-silence. "
        "What something\nelse still needs is refused, and the answer says what needs it. A job and "
        "a dataset are deleted by who made\nthem, or by who has the right to delete models.",
    CLI_WORDS(1, 100),
    CLI_OPTIONS(delete_options, delete_options),
    .run = run_delete,
};
