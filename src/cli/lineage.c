/** weir lineage: from a decision back, and from a dataset or model version both ways, as a tree. */
#include "cli/model_name.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX      32
#define PARAMETERS_MAX 12 /* on one line; -o json has all */

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

static bool is_there(const json_t *object, const char *member)
{
    const json_t *value = json_object_get(object, member);
    return value != NULL && !json_is_null(value);
}

/* " LABEL VALUE" if there is one, else nothing; " VALUE" if the label is NULL. */
static const char *maybe(const struct tree *tree, const char *label, const json_t *object,
                         const char *member)
{
    return is_there(object, member)
               ? weir_arena_printf(tree->call->arena, "%s%s %s", label != NULL ? " " : "",
                                   label != NULL ? label : "", cli_text(tree->call, object, member))
               : "";
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
    const json_t *code = json_object_get(run, "code");
    const char *text = weir_arena_printf(
        tree->call->arena, "%s%s%s%s%s%s", maybe(tree, NULL, code, "version"),
        maybe(tree, "commit", code, "commit"), maybe(tree, "of", code, "repository"),
        maybe(tree, "patch", code, "patch"), maybe(tree, "files", code, "manifest"),
        maybe(tree, "command", code, "source"));
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
    line(todo->depth, "run %s (%s, %s)%s%s%s%s%s", name, cli_text(tree->call, run, "kind"),
         cli_text(tree->call, run, "status"), maybe(tree, "by", run, "created_by"),
         maybe(tree, "at", run, "created_ms"), maybe(tree, "because of", run, "trigger"),
         maybe(tree, "deleted at", run, "deleted_ms"), maybe(tree, "begun with", run, "weights"));
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
        line(depth, "forgotten: %s, %s files%s%s%s", cli_text(tree->call, one, "person"),
             cli_text(tree->call, one, "n_files"), maybe(tree, "by", one, "actor"),
             maybe(tree, "at", one, "time_ms"), maybe(tree, "because", one, "reason"));
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
    line(todo->depth, "data %s%s%s%s%s%s", name, as, maybe(tree, "by", dataset, "created_by"),
         maybe(tree, "at", dataset, "created_ms"), maybe(tree, "files", dataset, "n_files"),
         maybe(tree, "digest", dataset, "digest"));
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
    struct cli_call *call = tree->call;
    if (counts == NULL || json_is_null(counts)) {
        return;
    }
    if (is_there(counts, "n_made")) {
        line(depth, "decisions %s%s, of which %s are kept%s%s%s",
             json_is_true(json_object_get(counts, "is_whole")) ? "" : "at least ",
             cli_text(call, counts, "n_made"), cli_text(call, counts, "n_kept"),
             maybe(tree, "tried", counts, "n_tried"), maybe(tree, "from", counts, "first_ms"),
             maybe(tree, "to", counts, "last_ms"));
    } else {
        line(depth, "decisions: how many is not known. %s", cli_text(call, counts, "why"));
    }
}

static void print_place(const struct tree *tree, const json_t *place, int depth)
{
    struct cli_call *call = tree->call;
    size_t i;
    json_t *one;
    line(depth, "link %s of ION %s: %s v%s, %s%s%s", cli_text(call, place, "link"),
         cli_text(call, place, "ion"), cli_text(call, place, "model"),
         cli_text(call, place, "version"), cli_text(call, place, "state"),
         maybe(tree, "since", place, "served_ms"), maybe(tree, "made by", place, "made_by"));
    json_array_foreach(json_object_get(place, "policies"), i, one)
    {
        line(depth + 1, "%s %s: %s by %s (%s)%s", cli_text(call, one, "time_ms"),
             cli_text(call, one, "policy"), cli_text(call, one, "verdict"),
             cli_text(call, one, "actor"), cli_text(call, one, "rule"),
             maybe(tree, "note:", one, "note"));
    }
    if (json_is_true(json_object_get(place, "are_policies_gone"))) {
        line(depth + 1, "what the policies said is no longer kept");
    }
    print_counts(tree, json_object_get(place, "decisions"), depth + 1);
}

static void print_version(const struct tree *tree, const json_t *version, int depth)
{
    struct cli_call *call = tree->call;
    line(depth, "model %s v%s%s%s%s%s", cli_text(call, version, "model"),
         cli_text(call, version, "version"), maybe(tree, "by", version, "created_by"),
         maybe(tree, "at", version, "created_ms"), maybe(tree, "deleted at", version, "deleted_ms"),
         maybe(tree, "source", version, "source"));
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
    struct cli_call *call = tree->call;
    const json_t *answer = tree->answer;
    const json_t *decision = json_object_get(answer, "decision");
    const json_t *gallery = json_object_get(answer, "gallery");
    const json_t *forgotten = json_object_get(answer, "forgotten");
    line(0, "decision %s: %s%s%s at %s, camera %s, %s / %s", cli_text(call, decision, "id"),
         cli_text(call, decision, "verdict"), maybe(tree, NULL, decision, "person"),
         maybe(tree, NULL, decision, "label"), cli_text(call, decision, "time_ms"),
         cli_text(call, decision, "camera"), cli_text(call, decision, "ion"),
         cli_text(call, decision, "pipeline"));
    if (json_is_object(forgotten)) {
        line(1, "%s was forgotten%s%s%s", cli_text(call, forgotten, "person"),
             maybe(tree, "by", forgotten, "actor"), maybe(tree, "at", forgotten, "time_ms"),
             maybe(tree, "because", forgotten, "reason"));
    }
    if (is_there(answer, "revision")) {
        line(1, "revision %s of ION %s%s%s", cli_text(call, answer, "revision.revision"),
             cli_text(call, decision, "ion"),
             maybe(tree, "by", json_object_get(answer, "revision"), "actor"),
             maybe(tree, "at", json_object_get(answer, "revision"), "time_ms"));
    }
    if (is_there(answer, "version")) {
        print_version(tree, json_object_get(answer, "version"), 1);
        print_place(tree, json_object_get(answer, "place"), 2);
        print_origin(tree, json_object_get(answer, "version"), 2);
    } else if (is_there(answer, "place")) {
        print_place(tree, json_object_get(answer, "place"), 1);
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
    struct cli_call *call = tree->call;
    const json_t *dataset = json_object_get(tree->answer, "dataset");
    size_t i;
    json_t *one;
    print_back(tree,
               (struct todo){.dataset = json_string_value(json_object_get(dataset, "dataset")),
                             .version = json_integer_value(json_object_get(dataset, "version"))});
    line(1, "reached");
    json_array_foreach(json_object_get(tree->answer, "read_by"), i, one)
    {
        line(2, "run %s (%s, %s)%s%s", cli_text(call, one, "name"), cli_text(call, one, "kind"),
             cli_text(call, one, "status"), maybe(tree, "by", one, "created_by"),
             maybe(tree, "at", one, "created_ms"));
    }
    json_array_foreach(json_object_get(tree->answer, "made"), i, one)
    {
        line(2, "data %s@v%s", cli_text(call, one, "dataset"), cli_text(call, one, "version"));
    }
    json_array_foreach(json_object_get(tree->answer, "versions"), i, one)
    {
        print_version(tree, one, 2);
    }
    print_places(tree, 2);
    json_array_foreach(json_object_get(tree->answer, "galleries"), i, one)
    {
        line(2, "gallery of %s / %s (%s@v%s)", cli_text(call, one, "ion"),
             cli_text(call, one, "pipeline"), cli_text(call, one, "dataset"),
             cli_text(call, one, "version"));
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
