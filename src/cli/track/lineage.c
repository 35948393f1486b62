/** weir lineage: from a decision back, and from a dataset or model version both ways, as a tree. */
#include "cli/core/verb.h"
#include "cli/track/model_name.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX      32
#define PARAMETERS_MAX 12 /* on one line; -o json has all */

#define BY_AT "{created_by? by {created_by}}{created_ms? at {created_ms}}"

/** A lineage as it is printed: what was told once is named the second time. */
struct tree {
    struct cli_call *call;
    const json_t *answer;
    json_t *told; /* identifiers of runs, and datasets as NAME@vN */
};

/* ---- lines ----------------------------------------------------------------------------------- */

static void WEIR_PRINTF(2, 3) line(int depth, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("%*s", 2 * depth, "");
    (void)vprintf(format, arguments);
    (void)putchar('\n');
    va_end(arguments);
}

/* A line of what an object has, by a template of cli/core/verb.h. */
static void tell(const struct tree *tree, int depth, const json_t *object, const char *pattern)
{
    line(depth, "%s", cli_fill(tree->call, pattern, NULL, object));
}

static bool is_there(const json_t *object, const char *member)
{
    const json_t *value = json_object_get(object, member);
    return value != NULL && !json_is_null(value);
}

static bool tell_once(const struct tree *tree, const char *key)
{
    bool is_told = json_object_get(tree->told, key) != NULL;
    json_object_set_new(tree->told, key, json_true());
    return !is_told;
}

static const json_t *find(const json_t *list, const char *member, const char *value)
{
    size_t i;
    json_t *one;
    json_array_foreach((json_t *)list, i, one)
    {
        const char *its = json_string_value(json_object_get(one, member));
        if (its != NULL && strcmp(its, value) == 0) {
            return one;
        }
    }
    return NULL;
}

static const json_t *find_dataset(const struct tree *tree, const char *name, json_int_t version)
{
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(tree->answer, "datasets"), i, one)
    {
        if (strcmp(json_string_value(json_object_get(one, "dataset")), name) == 0 &&
            json_integer_value(json_object_get(one, "version")) == version) {
            return one;
        }
    }
    return NULL;
}

/* ---- back: runs and data, each with what it came of ------------------------------------------ */

/** What is still to be told, the next last. */
struct todo {
    int depth;
    const char *run;     /* NULL: a dataset version */
    const char *dataset; /* Or NULL. */
    json_int_t version;
    const char *as;
};

struct stack {
    struct todo items[256];
    size_t n;
};

static void push(struct stack *stack, struct todo todo)
{
    if (stack->n < WEIR_ARRAY_LEN(stack->items) && todo.depth < DEPTH_MAX) {
        stack->items[stack->n++] = todo;
    }
}

static void print_code(const struct tree *tree, const json_t *run, int depth)
{
    const char *text =
        cli_fill(tree->call,
                 "{version? {version}}{commit? commit {commit}}{repository? of {repository}}"
                 "{patch? patch {patch}}{manifest? files {manifest}}{source? command {source}}",
                 NULL, json_object_get(run, "code"));
    if (text[0] != '\0') {
        line(depth, "code%s", text);
    }
}

static void print_parameters(const struct tree *tree, const json_t *run, int depth)
{
    const char *key, *text = "";
    json_t *value, *parameters = json_object_get(run, "parameters");
    int n = 0;
    json_object_foreach(parameters, key, value)
    {
        if (n++ < PARAMETERS_MAX) {
            text = weir_arena_printf(tree->call->arena, "%s %s=%s", text, key,
                                     cli_text(tree->call, parameters, key));
        }
    }
    if (n > 0) {
        line(depth, "parameters%s%s", text, n > PARAMETERS_MAX ? " …" : "");
    }
}

static void print_run(const struct tree *tree, struct stack *stack, const struct todo *todo)
{
    struct weir_arena *arena = tree->call->arena;
    const json_t *run = find(json_object_get(tree->answer, "runs"), "id", todo->run);
    const json_t *reads = json_object_get(run, "reads");
    if (run == NULL) {
        line(todo->depth, "run %s, which is not there", todo->run);
        return;
    }
    const char *name = cli_text(tree->call, run, "name");
    if (!tell_once(tree, todo->run)) {
        line(todo->depth, "run %s, as above", name);
        return;
    }
    tell(tree, todo->depth, run,
         "run {name} ({kind}, {status})" BY_AT
         "{trigger? because of {trigger}}{deleted_ms? deleted at {deleted_ms}}"
         "{weights? begun with {weights}}");
    line(todo->depth + 1, "identifier %s", todo->run);
    print_code(tree, run, todo->depth + 1);
    print_parameters(tree, run, todo->depth + 1);
    if (is_there(run, "parent")) {
        push(stack, (struct todo){.depth = todo->depth + 1,
                                  .run = json_string_value(json_object_get(run, "parent"))});
    }
    for (size_t i = json_array_size(reads); i > 0; i--) {
        const json_t *read = json_array_get(reads, i - 1);
        push(stack,
             (struct todo){.depth = todo->depth + 1,
                           .dataset = weir_arena_strdup(arena, cli_text(tree->call, read, "name")),
                           .version = json_integer_value(json_object_get(read, "version")),
                           .as = cli_text(tree->call, read, "as")});
    }
}

static void print_forgotten(const struct tree *tree, const json_t *list, int depth)
{
    size_t i;
    json_t *one;
    json_array_foreach((json_t *)list, i, one)
    {
        tell(tree, depth, one,
             "forgotten: {person}, {n_files} files{actor? by {actor}}{time_ms? at {time_ms}}"
             "{reason? because {reason}}");
    }
}

static void print_dataset(const struct tree *tree, struct stack *stack, const struct todo *todo)
{
    const json_t *dataset =
        todo->version > 0 ? find_dataset(tree, todo->dataset, todo->version) : NULL;
    const char *name = todo->version > 0
                           ? weir_arena_printf(tree->call->arena, "%s@v%lld", todo->dataset,
                                               (long long)todo->version)
                           : todo->dataset;
    const char *as =
        todo->as != NULL ? weir_arena_printf(tree->call->arena, " (%s)", todo->as) : "";
    if (dataset == NULL) {
        line(todo->depth, "data %s%s%s", name, as,
             todo->version > 0 ? "" : ", whose version is not known");
        return;
    }
    if (!tell_once(tree, name)) {
        line(todo->depth, "data %s%s, as above", name, as);
        return;
    }
    if (!json_is_true(json_object_get(dataset, "is_there"))) {
        line(todo->depth, "data %s%s, which is not there", name, as);
        return;
    }
    line(todo->depth, "data %s%s%s", name, as,
         cli_fill(tree->call, BY_AT "{n_files? files {n_files}}{digest? digest {digest}}", NULL,
                  dataset));
    print_forgotten(tree, json_object_get(dataset, "forgotten"), todo->depth + 1);
    if (is_there(dataset, "run")) {
        push(stack, (struct todo){.depth = todo->depth + 1,
                                  .run = json_string_value(json_object_get(dataset, "run"))});
    }
}

static void print_back(const struct tree *tree, struct todo first)
{
    struct stack *stack = WEIR_ARENA_NEW(tree->call->arena, struct stack);
    stack->n = 0;
    push(stack, first);
    while (stack->n > 0) {
        const struct todo todo = stack->items[--stack->n];
        if (todo.run != NULL) {
            print_run(tree, stack, &todo);
        } else {
            print_dataset(tree, stack, &todo);
        }
    }
}

/* ---- versions and links ---------------------------------------------------------------------- */

static void print_counts(const struct tree *tree, const json_t *counts, int depth)
{
    if (counts == NULL || json_is_null(counts)) {
        return;
    }
    if (is_there(counts, "n_made")) {
        tell(tree, depth, counts,
             "decisions {is_whole?|at least }{n_made}, of which {n_kept} are kept"
             "{n_tried? tried {n_tried}}{first_ms? from {first_ms}}{last_ms? to {last_ms}}");
    } else {
        tell(tree, depth, counts, "decisions: how many is not known. {why}");
    }
}

static void print_place(const struct tree *tree, const json_t *place, int depth)
{
    size_t i;
    json_t *one;
    tell(tree, depth, place,
         "link {link} of ION {ion}: {model} v{version}, {state}{served_ms? since {served_ms}}"
         "{made_by? made by {made_by}}");
    json_array_foreach(json_object_get(place, "policies"), i, one)
    {
        tell(tree, depth + 1, one,
             "{time_ms} {policy}: {verdict} by {actor} ({rule}){note? note: {note}}");
    }
    if (json_is_true(json_object_get(place, "are_policies_gone"))) {
        line(depth + 1, "what the policies said is no longer kept");
    }
    print_counts(tree, json_object_get(place, "decisions"), depth + 1);
}

static void print_version(const struct tree *tree, const json_t *version, int depth)
{
    tell(tree, depth, version,
         "model {model} v{version}" BY_AT
         "{deleted_ms? deleted at {deleted_ms}}{source? source {source}}");
}

static void print_origin(const struct tree *tree, const json_t *version, int depth)
{
    if (is_there(version, "run")) {
        print_back(tree, (struct todo){.depth = depth,
                                       .run = json_string_value(json_object_get(version, "run"))});
    }
    if (is_there(version, "dataset")) {
        print_back(tree,
                   (struct todo){
                       .depth = depth,
                       .dataset = json_string_value(json_object_get(version, "dataset")),
                       .version = json_integer_value(json_object_get(version, "dataset_version"))});
    }
}

static void print_places(const struct tree *tree, int depth)
{
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(tree->answer, "places"), i, one)
    {
        print_place(tree, one, depth);
    }
    json_array_foreach(json_object_get(tree->answer, "finders"), i, one)
    {
        tell(
            tree, depth, one,
            "finds for {ion} / {pipeline}{since_ms? since {since_ms}}{until_ms? until {until_ms}}");
    }
    json_array_foreach(json_object_get(tree->answer, "deployments"), i, one)
    {
        line(depth, "deployment %s", json_string_value(one));
    }
}

static void print_unknown(const struct tree *tree)
{
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(tree->answer, "unknown"), i, one)
    {
        line(0, "not known: %s", json_string_value(one));
    }
    if (json_is_true(json_object_get(tree->answer, "is_cut"))) {
        line(0, "there is more than is named here");
    }
}

/* ---- the commands ---------------------------------------------------------------------------- */

static void print_decision(const struct tree *tree)
{
    const json_t *answer = tree->answer;
    const json_t *decision = json_object_get(answer, "decision");
    const json_t *gallery = json_object_get(answer, "gallery");
    const json_t *forgotten = json_object_get(answer, "forgotten");
    tell(
        tree, 0, decision,
        "decision {id}: {verdict}{person? {person}}{label? {label}} at {time_ms}, camera {camera}, "
        "{ion} / {pipeline}");
    if (json_is_object(forgotten)) {
        tell(tree, 1, forgotten,
             "{person} was forgotten{actor? by {actor}}{time_ms? at {time_ms}}"
             "{reason? because {reason}}");
    }
    if (is_there(answer, "revision")) {
        tell(tree, 1, answer,
             "revision {revision.revision} of ION {decision.ion}"
             "{revision.actor? by {revision.actor}}{revision.time_ms? at {revision.time_ms}}");
    }
    if (is_there(answer, "version")) {
        print_version(tree, json_object_get(answer, "version"), 1);
        print_place(tree, json_object_get(answer, "place"), 2);
        print_origin(tree, json_object_get(answer, "version"), 2);
    } else if (is_there(answer, "place")) {
        print_place(tree, json_object_get(answer, "place"), 1);
    }
    if (is_there(answer, "detector")) {
        tell(tree, 1, answer, "found by {detector.model} v{detector.version}");
        print_origin(tree, json_object_get(answer, "detector"), 2);
    }
    if (json_is_object(gallery)) {
        print_back(tree,
                   (struct todo){.depth = 1,
                                 .dataset = json_string_value(json_object_get(gallery, "dataset")),
                                 .version = json_integer_value(json_object_get(gallery, "version")),
                                 .as = "gallery"});
    }
}

static void print_model(const struct tree *tree)
{
    const json_t *version = json_object_get(tree->answer, "version");
    print_version(tree, version, 0);
    line(1, "came of");
    print_origin(tree, version, 2);
    line(1, "reached");
    print_places(tree, 2);
}

static void print_data(const struct tree *tree)
{
    const json_t *dataset = json_object_get(tree->answer, "dataset");
    size_t i;
    json_t *one;
    print_back(tree,
               (struct todo){.dataset = json_string_value(json_object_get(dataset, "dataset")),
                             .version = json_integer_value(json_object_get(dataset, "version"))});
    line(1, "reached");
    json_array_foreach(json_object_get(tree->answer, "read_by"), i, one)
    {
        tell(tree, 2, one, "run {name} ({kind}, {status})" BY_AT);
    }
    json_array_foreach(json_object_get(tree->answer, "made"), i, one)
    {
        tell(tree, 2, one, "data {dataset}@v{version}");
    }
    json_array_foreach(json_object_get(tree->answer, "versions"), i, one)
    {
        print_version(tree, one, 2);
    }
    print_places(tree, 2);
    json_array_foreach(json_object_get(tree->answer, "galleries"), i, one)
    {
        tell(tree, 2, one, "gallery of {ion} / {pipeline} ({dataset}@v{version})");
        print_counts(tree, json_object_get(one, "decisions"), 3);
    }
}

static weir_status show(struct cli_call *call, const char *path, void (*print)(const struct tree *),
                        struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *answer = NULL;
    WEIR_AUTO(weir_json_auto_free) json_t *told = json_object();
    WEIR_TRY(cli_rest(call, "GET", path, NULL, &answer, err));
    const struct tree tree = {call, answer, told};
    if (cli_is_json(call)) {
        cli_print_json(answer);
        return WEIR_OK;
    }
    print(&tree);
    print_unknown(&tree);
    return WEIR_OK;
}

static weir_status run_decision(struct cli_call *call, struct weir_error *err)
{
    return show(call, cli_path1(call, "/api/v1/decisions/{}/lineage", call->words[0]),
                print_decision, err);
}

static weir_status run_version(struct cli_call *call, struct weir_error *err)
{
    char *name, *word;
    int64_t version;
    WEIR_TRY(cli_model_split(call, call->words[0], &name, &word, err));
    WEIR_TRY(cli_model_version(call, name, word, &version, err));
    return show(call,
                cli_path2(call, "/api/v1/models/{}/versions/{}/lineage", name,
                          weir_arena_printf(call->arena, "%lld", (long long)version)),
                print_model, err);
}

static weir_status run_dataset(struct cli_call *call, struct weir_error *err)
{
    char *name = weir_arena_strdup(call->arena, call->words[0]), *at = strrchr(name, '@'), *end;
    const char *digits = at != NULL ? at + 1 + (at[1] == 'v') : "";
    long long version = strtoll(digits, &end, 10);
    if (at == NULL || at == name || end == digits || *end != '\0' || version < 1) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "\"%.80s\": expected NAME@v3; `weir get dataset-versions NAME` lists "
                              "the versions",
                              call->words[0]);
    }
    *at = '\0';
    return show(call,
                cli_path2(call, "/api/v1/datasets/{}/versions/{}/lineage", name,
                          weir_arena_printf(call->arena, "%lld", version)),
                print_data, err);
}

const struct cli_command cli_lineage_decision = {
    .name = "lineage decision",
    .usage = "ID [-o json]",
    .summary = "Trace a decision back to data, code, people and policies",
    .help = "The identifier stands in `weir get decisions -o json` and in the console's drawer.",
    CLI_WORDS(1, 1),
    CLI_PLAIN,
    .run = run_decision,
};

const struct cli_command cli_lineage_dataset = {
    .name = "lineage dataset",
    .usage = "NAME@vN [-o json]",
    .summary = "Trace a dataset version back, and on to every decision that it touched",
    .help = "Decisions are counted; GET /api/v1/datasets/NAME/versions/N/decisions lists them.",
    CLI_WORDS(1, 1),
    CLI_PLAIN,
    .run = run_dataset,
};

const struct cli_command cli_lineage_version = {
    .name = "lineage version",
    .usage = "MODEL[@vN|@ALIAS] [-o json]",
    .summary = "Trace a model version back, and on to where it serves and decided",
    .help = "Decisions are counted; GET /api/v1/models/NAME/versions/N/decisions lists them.",
    CLI_WORDS(1, 1),
    CLI_PLAIN,
    .run = run_version,
};
