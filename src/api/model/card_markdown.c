#include "api/model/card.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- text of others -------------------------------------------------------------------------- */

/* What can become markup inside of a line, or of a line that begins with it. */
static bool is_sign(const char *c)
{
    return strchr("\\`*_[]<>|#~&@$", *c) != NULL || (*c == ':' && c[1] == '/');
}

static bool begins(const char *text, const char *word)
{
    return strncasecmp(text, word, strlen(word)) == 0;
}

void card_escape(const char *text, struct weir_buf *out)
{
    for (const char *c = text; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7F) {
            weir_buf_puts(out, " ");
        } else if (begins(c, "www.")) {
            weir_buf_printf(out, "%.3s\\.", c); /* some readers make links of it */
            c += 3;
        } else {
            weir_buf_puts(out, is_sign(c) ? "\\" : "");
            weir_buf_append(out, c, 1);
        }
    }
}

/* What would be a tag, a link or a picture, as entities: a backslash in front of them changes nothing. */
static const char *entity_of(const char *c)
{
    switch (*c) {
    case '<':
        return "&lt;";
    case '[':
        return "&#91;";
    case ']':
        return "&#93;";
    case '@':
        return "&#64;";
    case '/':
        return c[1] == '/' ? "&#47;" : NULL;
    default:
        return NULL;
    }
}

/* Markdown of a person, quoted: no line of it is the card's own; no tags, no links, no pictures. */
static void put_quoted(struct weir_buf *out, const char *text)
{
    weir_buf_puts(out, "> ");
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\n' || (*c == '\r' && c[1] != '\n')) {
            weir_buf_puts(out, "\n> ");
        } else if (begins(c, "www.")) {
            weir_buf_printf(out, "%.3s&#46;", c);
            c += 3;
        } else if (entity_of(c) != NULL) {
            weir_buf_puts(out, entity_of(c));
        } else if ((unsigned char)*c >= 0x20 && *c != 0x7F) {
            weir_buf_append(out, c, 1);
        } else if (*c == '\t') {
            weir_buf_puts(out, "\t");
        }
    }
    weir_buf_puts(out, "\n\n");
}

/* ---- values ---------------------------------------------------------------------------------- */

static const json_t *at(const json_t *object, const char *path)
{
    char name[64];
    while (object != NULL) {
        size_t len = strcspn(path, ".");
        (void)snprintf(name, sizeof name, "%.*s", (int)len, path);
        object = json_object_get(object, name);
        if (path[len] == '\0') {
            return object;
        }
        path += len + 1;
    }
    return NULL;
}

/* Numbers as they are, text escaped, null as a dash, and what is composed as JSON. */
static void put_value(struct weir_buf *out, const json_t *value)
{
    if (json_is_string(value)) {
        card_escape(json_string_value(value), out);
    } else if (json_is_integer(value)) {
        weir_buf_printf(out, "%lld", (long long)json_integer_value(value));
    } else if (json_is_real(value)) {
        weir_buf_printf(out, "%.6g", json_real_value(value));
    } else if (json_is_boolean(value)) {
        weir_buf_puts(out, json_is_true(value) ? "yes" : "no");
    } else if (value == NULL || json_is_null(value)) {
        weir_buf_puts(out, "–");
    } else {
        char *text = json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(6));
        card_escape(text != NULL ? text : "", out);
        free(text);
    }
}

static bool is_there(const json_t *value)
{
    return value != NULL && !json_is_null(value) &&
           !(json_is_string(value) && json_string_length(value) == 0) &&
           !(json_is_array(value) && json_array_size(value) == 0) &&
           !(json_is_object(value) && json_object_size(value) == 0);
}

/* "- Label: value", if there is one. */
static void put_fact(struct weir_buf *out, const char *label, const json_t *value)
{
    if (is_there(value)) {
        weir_buf_printf(out, "- %s: ", label);
        put_value(out, value);
        weir_buf_puts(out, "\n");
    }
}

static void put_heading(struct weir_buf *out, const char *text)
{
    weir_buf_printf(out, "\n## %s\n\n", text);
}

static void put_row(struct weir_buf *out, const json_t *const *cells, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        weir_buf_puts(out, "| ");
        put_value(out, cells[i]);
        weir_buf_puts(out, " ");
    }
    weir_buf_puts(out, "|\n");
}

/* An object's members as a table; nothing of an empty one. */
static void put_pairs(struct weir_buf *out, const char *head, const json_t *object)
{
    const char *key;
    json_t *value;
    if (!is_there(object)) {
        return;
    }
    weir_buf_printf(out, "\n%s\n|---|---|\n", head);
    json_object_foreach((json_t *)object, key, value)
    {
        weir_buf_puts(out, "| ");
        card_escape(key, out);
        weir_buf_puts(out, " ");
        put_row(out, (const json_t *const[]){value}, 1);
    }
}

/* ---- sections -------------------------------------------------------------------------------- */

static void put_ports(struct weir_buf *out, const char *label, const json_t *ports)
{
    size_t i;
    json_t *port;
    json_array_foreach((json_t *)ports, i, port)
    {
        weir_buf_printf(out, "- %s: ", label);
        put_value(out, at(port, "name"));
        weir_buf_puts(out, ", ");
        put_value(out, at(port, "datatype"));
        weir_buf_puts(out, " ");
        put_value(out, at(port, "shape"));
        weir_buf_puts(out, "\n");
    }
}

static void put_what(struct weir_buf *out, const json_t *card)
{
    const json_t *labels = at(card, "version.signature.labels");
    put_heading(out, "What it is");
    put_fact(out, "Project", at(card, "model.project"));
    put_fact(out, "Architecture", at(card, "architecture"));
    put_fact(out, "Format", at(card, "version.signature.format"));
    put_fact(out, "Runs on", at(card, "version.executor"));
    put_fact(out, "Size (bytes)", at(card, "version.bytes"));
    put_fact(out, "SHA-256", at(card, "version.blob"));
    put_ports(out, "Input", at(card, "version.signature.inputs"));
    put_ports(out, "Output", at(card, "version.signature.outputs"));
    put_fact(out, "Gives", at(card, "version.signature.output_kind"));
    put_fact(out, "Labels", at(card, "n_labels"));
    for (size_t i = 0; i < json_array_size(labels); i++) {
        weir_buf_puts(out, i == 0 ? "\n" : ", ");
        put_value(out, json_array_get(labels, i));
    }
    weir_buf_puts(out, json_array_size(labels) > 0 ? "\n" : "");
    put_fact(out, "Stage", at(card, "version.stage"));
    put_fact(out, "Aliases", at(card, "version.aliases"));
    put_fact(out, "Cannot be served", at(card, "version.unservable"));
    put_fact(out, "Deleted", at(card, "version.deleted_ms"));
    put_pairs(out, "| tag of the version | value |", at(card, "version.tags"));
    put_pairs(out, "| tag of the model | value |", at(card, "model.tags"));
    put_heading(out, "Who made it");
    put_fact(out, "Registered by", at(card, "version.created_by"));
    put_fact(out, "Registered", at(card, "version.created_ms"));
    put_fact(out, "Source", at(card, "version.source"));
    const json_t *run = json_array_get(at(card, "lineage.runs"), 0);
    put_fact(out, "Run", at(run, "name"));
    put_fact(out, "Run's identifier", at(run, "id"));
    put_fact(out, "Started by", at(run, "created_by"));
    put_fact(out, "Because of", at(run, "trigger"));
    put_fact(out, "Started", at(run, "created_ms"));
    put_fact(out, "Ended", at(run, "finished_ms"));
}

static void put_forgotten(struct weir_buf *out, const json_t *dataset)
{
    int64_t n_files = 0;
    size_t i;
    json_t *one;
    const json_t *list = at(dataset, "forgotten");
    json_array_foreach((json_t *)list, i, one)
    {
        n_files += json_integer_value(at(one, "n_files"));
    }
    if (json_array_size(list) > 0) {
        weir_buf_printf(out, "  - %zu people were forgotten: %lld of its files are gone\n",
                        json_array_size(list), (long long)n_files);
    }
}

static void put_datasets(struct weir_buf *out, const json_t *datasets)
{
    size_t i;
    json_t *one;
    json_array_foreach((json_t *)datasets, i, one)
    {
        weir_buf_puts(out, "- ");
        put_value(out, at(one, "dataset"));
        weir_buf_puts(out, " v");
        put_value(out, at(one, "version"));
        weir_buf_puts(out, json_is_false(at(one, "is_there")) ? ", which is gone" : ": ");
        if (!json_is_false(at(one, "is_there"))) {
            put_value(out, at(one, "n_files"));
            weir_buf_puts(out, " files, ");
            if (json_integer_value(at(one, "n_classes")) > 0) {
                put_value(out, at(one, "n_classes"));
                weir_buf_puts(out, " classes, ");
            }
            weir_buf_puts(out, "by ");
            put_value(out, at(one, "created_by"));
            weir_buf_puts(out, ", ");
            put_value(out, at(one, "created_ms"));
            weir_buf_puts(out, ", digest ");
            put_value(out, at(one, "digest"));
        }
        weir_buf_puts(out, "\n");
        put_forgotten(out, one);
    }
}

static void put_data(struct weir_buf *out, const json_t *card)
{
    size_t i;
    json_t *one;
    const json_t *classes = at(card, "data.classes");
    put_heading(out, "Data");
    put_datasets(out, at(card, "lineage.datasets"));
    if (json_array_size(classes) > 0) {
        weir_buf_puts(out, "\n| class | files |\n|---|---:|\n");
    }
    json_array_foreach((json_t *)classes, i, one)
    {
        put_row(out, (const json_t *const[]){at(one, "name"), at(one, "n_files")}, 2);
    }
    if (json_integer_value(at(card, "data.n_others")) > 0) {
        weir_buf_printf(out, "| %lld more | |\n",
                        (long long)json_integer_value(at(card, "data.n_others")));
    }
    put_fact(out, "Classes are not counted", at(card, "data.why"));
    put_fact(out, "Baseline of", at(card, "baseline"));
}

static void put_training(struct weir_buf *out, const json_t *card)
{
    const json_t *run = json_array_get(at(card, "lineage.runs"), 0);
    static const char *const members[][2] = {
        {"version", "Version"},           {"commit", "Commit"},         {"branch", "Branch"},
        {"dirty", "With changes"},        {"repository", "Repository"}, {"patch", "Patch (blob)"},
        {"manifest", "Files (manifest)"}, {"source", "Command"}};
    put_heading(out, "Training");
    put_fact(out, "Weights it began with", at(run, "weights"));
    put_fact(out, "Goes on from run", at(run, "parent"));
    put_pairs(out, "| parameter | value |",
              is_there(at(run, "parameters")) ? at(run, "parameters")
                                              : at(card, "version.parameters"));
    put_heading(out, "Code");
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        put_fact(out, members[i][1], json_object_get(at(run, "code"), members[i][0]));
    }
    if (!is_there(at(run, "code.version"))) {
        put_fact(out, "Version", at(card, "version.code_version"));
    }
}

static void put_quality(struct weir_buf *out, const json_t *card)
{
    size_t i;
    json_t *one;
    put_heading(out, "Measured");
    put_pairs(out, "| at its training | value |", at(card, "version.metrics"));
    json_array_foreach((json_t *)at(card, "evaluations"), i, one)
    {
        weir_buf_puts(out, "\nOn ");
        put_value(out, at(one, "dataset"));
        weir_buf_puts(out, " v");
        put_value(out, at(one, "dataset_version"));
        weir_buf_puts(out, ", run ");
        put_value(out, at(one, "name"));
        weir_buf_puts(out, ", ");
        put_value(out, at(one, "created_ms"));
        weir_buf_puts(out, ":\n");
        put_pairs(out, "| measure | value |", at(one, "metrics"));
    }
}

static void put_policies(struct weir_buf *out, const json_t *place)
{
    size_t i;
    json_t *one;
    const json_t *list = at(place, "policies");
    if (json_array_size(list) > 0) {
        weir_buf_puts(
            out, "\n| when | policy | verdict | by | rule | note |\n|---|---|---|---|---|---|\n");
    }
    json_array_foreach((json_t *)list, i, one)
    {
        put_row(out,
                (const json_t *const[]){at(one, "time_ms"), at(one, "policy"), at(one, "verdict"),
                                        at(one, "actor"), at(one, "rule"), at(one, "note")},
                6);
    }
    if (json_is_true(at(place, "are_policies_gone"))) {
        weir_buf_puts(out, "\nWhat the policies said is no longer kept.\n");
    }
}

static void put_place(struct weir_buf *out, const json_t *place)
{
    weir_buf_puts(out, "\n### ");
    put_value(out, at(place, "ion"));
    weir_buf_puts(out, ", link ");
    put_value(out, at(place, "link"));
    weir_buf_puts(out, "\n\n");
    put_fact(out, "State", at(place, "state"));
    put_fact(out, "Served since", at(place, "served_ms"));
    put_fact(out, "Decisions made", at(place, "decisions.n_made"));
    put_fact(out, "Of these kept", at(place, "decisions.n_kept"));
    put_fact(out, "First", at(place, "decisions.first_ms"));
    put_fact(out, "Last", at(place, "decisions.last_ms"));
    put_fact(out, "Decisions", at(place, "decisions.why"));
    put_policies(out, place);
}

static void put_use(struct weir_buf *out, const json_t *card)
{
    size_t i;
    json_t *one;
    put_heading(out, "Where it serves and served");
    put_fact(out, "Deployments", at(card, "lineage.deployments"));
    if (json_array_size(at(card, "lineage.places")) == 0 &&
        json_array_size(at(card, "lineage.deployments")) == 0) {
        weir_buf_puts(out, "Nowhere.\n");
    }
    json_array_foreach((json_t *)at(card, "lineage.places"), i, one)
    {
        put_place(out, one);
    }
}

static void put_signals(struct weir_buf *out, const json_t *signals)
{
    size_t i;
    json_t *one;
    if (json_array_size(signals) > 0) {
        weir_buf_puts(out, "\n| drift of | test | value | p | drifted | samples | when |\n"
                           "|---|---|---:|---:|---|---:|---|\n");
    }
    json_array_foreach((json_t *)signals, i, one)
    {
        put_row(out,
                (const json_t *const[]){at(one, "signal"), at(one, "statistic"), at(one, "value"),
                                        at(one, "p_value"), at(one, "drifted"),
                                        at(one, "n_samples"), at(one, "time_ms")},
                7);
    }
}

static void put_live(struct weir_buf *out, const json_t *card)
{
    size_t i, k;
    json_t *live, *group;
    json_array_foreach((json_t *)at(card, "live"), i, live)
    {
        if (i == 0) {
            put_heading(out, "Live, of the last 7 days");
        }
        weir_buf_puts(out, "\n### ");
        put_value(out, at(live, "ion"));
        weir_buf_puts(out, ", ");
        put_value(out, at(live, "pipeline"));
        weir_buf_puts(out, "\n");
        if (json_integer_value(at(live, "accuracy.n")) > 0) {
            weir_buf_puts(out, "\n| camera | truth known of | right | accuracy | 95 % from | to |\n"
                               "|---|---:|---:|---:|---:|---:|\n| all ");
            const json_t *all = at(live, "accuracy");
            put_row(out,
                    (const json_t *const[]){at(all, "n"), at(all, "right"), at(all, "accuracy"),
                                            at(all, "low"), at(all, "high")},
                    5);
        }
        json_array_foreach((json_t *)at(live, "cameras"), k, group)
        {
            put_row(out,
                    (const json_t *const[]){at(group, "name"), at(group, "n"), at(group, "right"),
                                            at(group, "accuracy"), at(group, "low"),
                                            at(group, "high")},
                    6);
        }
        put_signals(out, at(live, "signals"));
    }
}

static void put_limits(struct weir_buf *out, const json_t *card)
{
    size_t i;
    json_t *one;
    put_heading(out, "Known limits: what is not known");
    if (json_array_size(at(card, "limits")) == 0) {
        weir_buf_puts(out, "Nothing is missing of what this card asks for.\n");
    }
    json_array_foreach((json_t *)at(card, "limits"), i, one)
    {
        weir_buf_puts(out, "- ");
        put_value(out, one);
        weir_buf_puts(out, "\n");
    }
}

void card_markdown(const json_t *card, struct weir_buf *out)
{
    const char *about = json_string_value(at(card, "version.description"));
    const char *model = json_string_value(at(card, "model.description"));
    weir_buf_puts(out, "# ");
    put_value(out, at(card, "version.model"));
    weir_buf_puts(out, " v");
    put_value(out, at(card, "version.version"));
    weir_buf_puts(out, "\n\nModel card of ");
    put_value(out, at(card, "made_ms"));
    weir_buf_puts(out, ".\n\n");
    if (about != NULL && about[0] != '\0') {
        put_quoted(out, about);
    }
    if (model != NULL && model[0] != '\0') {
        weir_buf_puts(out, "Of the model:\n\n");
        put_quoted(out, model);
    }
    put_what(out, card);
    put_data(out, card);
    put_training(out, card);
    put_quality(out, card);
    put_use(out, card);
    put_live(out, card);
    put_limits(out, card);
}
