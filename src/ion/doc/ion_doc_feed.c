/* Links that start pipelines which run jobs: data links, and those that bring models to be measured. */
#include "ion/doc/ion_doc_reader.h"

#include <string.h>

struct feed {
    char *from, *to, *dataset;
};

struct feed_from {
    char *model;
};

// clang-format off
static const struct weir_field feed_fields[] = {
    WEIR_FIELD(feed, from,    TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_NAME, "", "preparation that makes the dataset"),
    WEIR_FIELD(feed, to,      TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_NAME, "", "pipeline that runs with it"),
    WEIR_FIELD(feed, dataset, TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_NAME, "", "dataset whose versions start it"),
};
static const struct weir_field model_feed_fields[] = {
    WEIR_FIELD(feed, from, JSON, WEIR_FIELD_REQUIRED, "", "training pipeline, or a registered model"),
    WEIR_FIELD(feed, to,   TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_NAME, "", "evaluation or comparison"),
};
static const struct weir_field feed_from_fields[] = {
    WEIR_FIELD(feed_from, model, TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_MODEL, "", "registered model"),
};
// clang-format on

static const struct weir_resource feed_resource = WEIR_RESOURCE("data link", "", feed, feed_fields);
static const struct weir_resource model_feed_resource =
    WEIR_RESOURCE("link to what measures", "", feed, model_feed_fields);
static const struct weir_resource feed_from_resource =
    WEIR_RESOURCE("link's from", "", feed_from, feed_from_fields);

static bool is_same(const char *a, const char *b)
{
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

bool doc_is_feed(const struct weir_ion_doc *doc, const json_t *link)
{
    const json_t *dataset = json_object_get(link, "dataset");
    const struct weir_ion_doc_pipeline *to =
        weir_ion_doc_pipeline(doc, json_string_value(json_object_get(link, "to")));
    return (dataset != NULL && !json_is_null(dataset)) ||
           (to != NULL && weir_pipeline_measures(to->type));
}

static weir_status check_from(const struct doc_reader *reader, const struct weir_ion_doc *doc,
                              const struct feed *feed)
{
    const struct weir_ion_doc_pipeline *from = weir_ion_doc_pipeline(doc, feed->from);
    if (from == NULL) {
        return weir_error_set(reader->err, WEIR_ERR_INVALID,
                              "%s.from: there is no pipeline \"%.63s\"", reader->path, feed->from);
    }
    if (from->type != WEIR_PIPELINE_PREPARATION) {
        return weir_error_set(reader->err, WEIR_ERR_INVALID,
                              "%s.from: \"%s\" is a %s: a data link begins at a preparation, which "
                              "makes a dataset; a link without dataset carries models",
                              reader->path, from->name, weir_pipeline_type_name(from->type));
    }
    return is_same(from->output, feed->dataset)
               ? WEIR_OK
               : weir_error_set(reader->err, WEIR_ERR_INVALID,
                                "%s.dataset: \"%s\" makes \"%s\", not \"%.63s\"", reader->path,
                                from->name, from->output, feed->dataset);
}

static weir_status check_to(const struct doc_reader *reader, const struct weir_ion_doc *doc,
                            const struct feed *feed)
{
    const struct weir_ion_doc_pipeline *to = weir_ion_doc_pipeline(doc, feed->to);
    if (to == NULL) {
        return weir_error_set(reader->err, WEIR_ERR_INVALID,
                              "%s.to: there is no pipeline \"%.63s\"", reader->path, feed->to);
    }
    if (to->type == WEIR_PIPELINE_PREDICTION) {
        return weir_error_set(reader->err, WEIR_ERR_INVALID,
                              "%s.to: \"%s\" is a prediction, which no dataset starts; a gallery "
                              "sees new versions of its dataset without a link",
                              reader->path, to->name);
    }
    return is_same(to->dataset, feed->dataset)
               ? WEIR_OK
               : weir_error_set(reader->err, WEIR_ERR_INVALID,
                                "%s.dataset: the dataset of \"%s\" is %s%s%s, not \"%.63s\"",
                                reader->path, to->name, to->dataset != NULL ? "\"" : "none",
                                to->dataset != NULL ? to->dataset : "",
                                to->dataset != NULL ? "\"" : "", feed->dataset);
}

static weir_status read_data(const struct doc_reader *reader, const json_t *json,
                             const struct weir_ion_doc *doc, struct weir_ion_doc_feed *out)
{
    struct feed feed = {0};
    WEIR_TRY(doc_read_object(reader, &feed_resource, json, &feed));
    WEIR_TRY(check_from(reader, doc, &feed));
    WEIR_TRY(check_to(reader, doc, &feed));
    *out = (struct weir_ion_doc_feed){.from = feed.from, .to = feed.to, .dataset = feed.dataset};
    return WEIR_OK;
}

/** A model link begins at a training pipeline, or at a registered model: {model: NAME}. */
static weir_status read_model_from(const struct doc_reader *parent, const json_t *json,
                                   const struct weir_ion_doc *doc, struct weir_ion_doc_feed *out)
{
    struct doc_reader reader = doc_reader_at(parent, "from", SIZE_MAX);
    struct feed_from from = {0};
    const char *name = json_string_value(json);
    if (json_is_object(json)) {
        WEIR_TRY(doc_read_object(&reader, &feed_from_resource, json, &from));
        out->model = from.model;
        out->from = weir_arena_printf(reader.arena, WEIR_ION_FROM_MODEL "%s", from.model);
        return WEIR_OK;
    }
    const struct weir_ion_doc_pipeline *pipeline = weir_ion_doc_pipeline(doc, name);
    if (pipeline == NULL || pipeline->type != WEIR_PIPELINE_TRAINING) {
        return weir_error_set(
            reader.err, WEIR_ERR_INVALID,
            "%s: expected the name of a training pipeline, or {model: NAME}: what "
            "comes to \"%s\" is measured",
            reader.path, out->to);
    }
    out->from = pipeline->name;
    return WEIR_OK;
}

static weir_status read_models(const struct doc_reader *reader, const json_t *json,
                               const struct weir_ion_doc *doc, struct weir_ion_doc_feed *out)
{
    struct feed feed = {0};
    WEIR_TRY(doc_read_object(reader, &model_feed_resource, json, &feed));
    *out = (struct weir_ion_doc_feed){.to = feed.to};
    WEIR_TRY(read_model_from(reader, json_object_get(json, "from"), doc, out));
    for (size_t i = 0; i < doc->n_feeds; i++) {
        if (doc->feeds[i].dataset == NULL && is_same(doc->feeds[i].to, out->to)) {
            return weir_error_set(
                reader->err, WEIR_ERR_INVALID,
                "%s.to: two links bring models to \"%s\" (the other from \"%s\"): "
                "it measures those of one",
                reader->path, out->to, doc->feeds[i].from);
        }
    }
    return WEIR_OK;
}

weir_status doc_read_feed(const struct doc_reader *reader, const json_t *json,
                          const struct weir_ion_doc *doc, struct weir_ion_doc_feed *out)
{
    struct weir_ion_doc_feed feed;
    const json_t *dataset = json_object_get(json, "dataset");
    if (dataset != NULL && !json_is_null(dataset)) {
        WEIR_TRY(read_data(reader, json, doc, &feed));
    } else {
        WEIR_TRY(read_models(reader, json, doc, &feed));
    }
    for (size_t i = 0; i < doc->n_feeds; i++) {
        if (is_same(doc->feeds[i].from, feed.from) && is_same(doc->feeds[i].to, feed.to)) {
            return weir_error_set(reader->err, WEIR_ERR_INVALID,
                                  "%s: there are two such links from \"%s\" to \"%s\"",
                                  reader->path, feed.from, feed.to);
        }
    }
    feed.id = weir_arena_printf(reader->arena, "%s:%s", feed.from, feed.to);
    *out = feed;
    return WEIR_OK;
}

/* ---- what a data link starts ------------------------------------------------------------------ */

static const struct weir_trigger *new_data_of(const struct weir_ion_doc_pipeline *pipeline)
{
    return weir_trigger_of_kind(&pipeline->triggers, &weir_trigger_kind_new_data);
}

/** A pipeline that says nothing of new data runs with any new version. */
static weir_status add_trigger(const struct doc_reader *root,
                               struct weir_ion_doc_pipeline *pipeline, size_t i_pipeline)
{
    struct weir_trigger_list more;
    size_t n = pipeline->triggers.n;
    if (n > WEIR_TRIGGERS_MAX) {
        return weir_error_set(root->err, WEIR_ERR_INVALID,
                              "%s.pipelines[%zu].triggers: the data link needs room for one more: "
                              "at most %d triggers",
                              root->path, i_pipeline, WEIR_TRIGGERS_MAX);
    }
    json_t *list = json_pack("[s]", weir_trigger_kind_new_data.name);
    weir_status status = weir_triggers_read(list, root->path, root->arena, &more, root->err);
    json_decref(list);
    WEIR_TRY(status);
    struct weir_trigger *items = WEIR_ARENA_ARRAY(root->arena, n + 1, struct weir_trigger);
    memcpy(items, pipeline->triggers.items, n * sizeof *items);
    items[n] = more.items[0];
    pipeline->triggers = (struct weir_trigger_list){.items = items, .n = n + 1};
    return WEIR_OK;
}

/* ---- pipelines that would start each other without end ---------------------------------------- */

/** Does each version that `from` makes start `to` at once? A least interval bounds it. */
static bool starts(const struct weir_ion_doc_pipeline *from, const struct weir_ion_doc_pipeline *to)
{
    const struct weir_trigger *trigger = new_data_of(to);
    return is_same(from->output, to->dataset) && trigger != NULL &&
           ((const struct weir_trigger_common *)trigger->options)->least_interval_s == 0;
}

enum mark { NEW, ENTERED, LEFT };

/** Depth first: what is entered twice on one way is a cycle. @return the place where; SIZE_MAX: none. */
static size_t find_cycle(const struct weir_ion_doc *doc, size_t at, enum mark *marks)
{
    marks[at] = ENTERED;
    for (size_t i = 0; i < doc->n_pipelines; i++) {
        if (marks[i] == LEFT || !starts(&doc->pipelines[at], &doc->pipelines[i])) {
            continue;
        }
        size_t found = marks[i] == ENTERED ? i : find_cycle(doc, i, marks);
        if (found != SIZE_MAX) {
            return found;
        }
    }
    marks[at] = LEFT;
    return SIZE_MAX;
}

static weir_status check_cycles(const struct doc_reader *root, const struct weir_ion_doc *doc)
{
    enum mark marks[WEIR_ION_PIPELINES_MAX] = {NEW};

    for (size_t i = 0; i < doc->n_pipelines; i++) {
        size_t found = marks[i] == NEW ? find_cycle(doc, i, marks) : SIZE_MAX;
        if (found != SIZE_MAX) {
            return weir_error_set(root->err, WEIR_ERR_INVALID,
                                  "%s.pipelines[%zu]: each run of \"%s\" would start the next "
                                  "without end, by the versions that it makes: give its trigger "
                                  "{kind: new-data} a least_interval_s",
                                  root->path, found, doc->pipelines[found].name);
        }
    }
    return WEIR_OK;
}

/** Two that write into one folder would make versions of each other's files. */
static weir_status check_output(const struct doc_reader *root, const struct weir_ion_doc *doc,
                                size_t i_pipeline)
{
    const struct weir_ion_doc_pipeline *pipeline = &doc->pipelines[i_pipeline];
    for (size_t i = 0; i < i_pipeline; i++) {
        if (is_same(doc->pipelines[i].output, pipeline->output)) {
            return weir_error_set(root->err, WEIR_ERR_INVALID,
                                  "%s.pipelines[%zu].output: \"%s\" makes dataset \"%s\" already: "
                                  "name another",
                                  root->path, i_pipeline, doc->pipelines[i].name, pipeline->output);
        }
    }
    return WEIR_OK;
}

/** A pipeline that measures needs models, and a comparison something to compare with. */
static weir_status check_measuring(const struct doc_reader *root, const struct weir_ion_doc *doc,
                                   size_t i_pipeline)
{
    const struct weir_ion_doc_pipeline *pipeline = &doc->pipelines[i_pipeline];
    bool has_models = !weir_pipeline_measures(pipeline->type);
    for (size_t i = 0; i < doc->n_feeds; i++) {
        has_models = has_models ||
                     (doc->feeds[i].dataset == NULL && is_same(doc->feeds[i].to, pipeline->name));
    }
    if (!has_models) {
        return weir_error_set(root->err, WEIR_ERR_INVALID,
                              "%s.pipelines[%zu]: no link brings models to \"%s\": it would never "
                              "measure one",
                              root->path, i_pipeline, pipeline->name);
    }
    return pipeline->against == NULL || weir_ion_doc_link_into(doc, pipeline->against) != NULL
               ? WEIR_OK
               : weir_error_set(root->err, WEIR_ERR_INVALID,
                                "%s.pipelines[%zu].against: no link of this document leads to "
                                "\"%.80s\": name a prediction pipeline, or {deployment: NAME}",
                                root->path, i_pipeline, pipeline->against);
}

weir_status doc_check_feeds(const struct doc_reader *root, struct weir_ion_doc *doc)
{
    for (size_t i = 0; i < doc->n_pipelines; i++) {
        WEIR_TRY(check_output(root, doc, i));
        WEIR_TRY(check_measuring(root, doc, i));
    }
    for (size_t i = 0; i < doc->n_feeds; i++) {
        for (size_t k = 0; k < doc->n_pipelines; k++) {
            struct weir_ion_doc_pipeline *to = &doc->pipelines[k];
            if (doc->feeds[i].dataset != NULL && is_same(to->name, doc->feeds[i].to) &&
                new_data_of(to) == NULL) {
                WEIR_TRY(add_trigger(root, to, k));
            }
        }
    }
    return check_cycles(root, doc);
}
