#include "ion/ion_doc.h"

#include "base/test_main.h"
#include "ion/old_words.h"

#include <string.h>

static struct weir_arena arena;
static struct weir_error err;

static weir_status parse(const char *yaml, struct weir_ion_doc *out)
{
    json_t *json;
    weir_status status = weir_yaml_parse(yaml, strlen(yaml), "test", false, &json, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    status = weir_ion_doc_parse(json, &arena, out, &err);
    json_decref(json);
    return status;
}

static void set_up(void)
{
    weir_arena_init(&arena, 0);
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
}

START_TEST(an_old_word_is_replaced_and_named)
{
    json_t *document = json_loads("{\"pipelines\":[{\"name\":\"t\"},{\"gallery\":"
                                  "{\"dataset\":\"p\",\"strangers\":\"s\"}},"
                                  "{\"gallery\":{\"strangers\":\"a\",\"impostors\":\"b\"}}]}",
                                  0, NULL);
    json_t *wanted = json_loads("{\"pipelines\":[{\"name\":\"t\"},{\"gallery\":"
                                "{\"dataset\":\"p\",\"impostors\":\"s\"}},"
                                "{\"gallery\":{\"strangers\":\"a\",\"impostors\":\"b\"}}]}",
                                0, NULL);
    json_t *warnings = json_array();
    weir_ion_replace_old_words(document, warnings);
    ck_assert(json_equal(document, wanted));
    ck_assert_uint_eq(json_array_size(warnings), 1);
    const char *said = json_string_value(json_array_get(warnings, 0));
    ck_assert_ptr_nonnull(strstr(said, "$.pipelines[1].gallery.strangers"));
    json_t *none = json_array();
    weir_ion_replace_old_words(none, warnings);
    weir_ion_replace_old_words(NULL, warnings);
    ck_assert_uint_eq(json_array_size(warnings), 1);
    json_decref(none);
    json_decref(document);
    json_decref(wanted);
    json_decref(warnings);
}

END_TEST

START_TEST(the_reference_document_is_read_as_it_is_written)
{
    struct weir_ion_doc doc;
    weir_status status =
        parse("kind: ion\n"
              "name: building-security\n"
              "project: default\n"
              "pipelines:\n"
              "  - name: training\n"
              "    type: training\n"
              "    dataset: faces\n"
              "    model: face-embed\n"
              "    workers: 2\n"
              "    parameter_servers: 1\n"
              "    parameters: {epochs: 20, batch_size: 32}\n"
              "    triggers: {manual: true, new_data: true, schedule: \"0 0 3 * * *\"}\n"
              "  - name: entrance\n"
              "    type: prediction\n"
              "    replicas: 2\n"
              "    gpus: 1\n"
              "    source: {kind: directory, path: /frames}\n"
              "    gallery: {dataset: people, impostors: passers-by, false_accept_rate: 0.001,"
              " default: allow}\n"
              "    sinks: [{kind: jsonl, path: /out.jsonl}]\n"
              "links:\n"
              "  - {from: training, to: entrance, policy: always-update}\n",
              &doc);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    ck_assert_str_eq(doc.name, "building-security");
    ck_assert_uint_eq(doc.n_pipelines, 2);
    const struct weir_ion_doc_pipeline *training = weir_ion_doc_pipeline(&doc, "training");
    ck_assert_int_eq(training->workers, 2);
    ck_assert_int_eq(training->parameter_servers, 1);
    ck_assert_ptr_nonnull(strstr(training->parameters, "\"batch_size\""));
    ck_assert_uint_eq(training->triggers.n, 3); /* The old form is a list of the same. */
    ck_assert_str_eq(training->triggers.items[0].text, "{\"kind\":\"manual\"}");
    ck_assert_str_eq(training->triggers.items[1].text, "{\"kind\":\"new-data\"}");
    ck_assert_str_eq(training->triggers.items[2].kind->name, "schedule");
    struct weir_cron cron;
    int64_t next_ms;
    ck_assert_int_eq(weir_cron_parse(weir_trigger_cron(&training->triggers.items[2]), &cron, NULL),
                     WEIR_OK);
    ck_assert_int_eq(weir_cron_next(&cron, 0, &next_ms), WEIR_OK);
    ck_assert_int_eq(next_ms, 3 * 3600000);
    const struct weir_ion_doc_pipeline *entrance = weir_ion_doc_pipeline(&doc, "entrance");
    ck_assert_int_eq(entrance->replicas, 2);
    ck_assert_int_eq(entrance->gpus, 1);
    ck_assert_str_eq(entrance->gallery_dataset, "people");
    ck_assert_str_eq(entrance->impostors, "passers-by");
    ck_assert_double_eq(entrance->false_accept_rate, 0.001);
    ck_assert_str_eq(entrance->gallery_default, "allow");
    const struct weir_ion_doc_link *link = weir_ion_doc_link_into(&doc, "entrance");
    ck_assert_str_eq(link->id, "training:entrance");
    ck_assert_str_eq(link->policies.names, "always-update");
}

END_TEST

#define TRAINING              "{name: t, type: training, dataset: d, model: m}"
#define PREDICTION            "{name: p, type: prediction, source: {kind: http}}"
#define LINK                  "{from: t, to: p}"
#define DOC(pipelines, links) "{kind: ion, name: x, pipelines: [" pipelines "], links: [" links "]}"

START_TEST(what_is_left_out_has_its_default)
{
    struct weir_ion_doc doc;
    ck_assert_msg(parse(DOC(TRAINING ", " PREDICTION, LINK), &doc) == WEIR_OK, "%s", err.message);
    ck_assert_str_eq(doc.project, "default");
    ck_assert_int_eq(doc.pipelines[0].workers, 1);
    ck_assert_str_eq(doc.pipelines[0].parameters, "{}");
    ck_assert_uint_eq(doc.pipelines[0].triggers.n, 1);
    ck_assert_str_eq(doc.pipelines[0].triggers.items[0].text, "{\"kind\":\"manual\"}");
    ck_assert_int_eq(doc.pipelines[1].replicas, 1);
    ck_assert_int_eq(doc.pipelines[1].gpus, 0);
    ck_assert_str_eq(doc.pipelines[1].sinks, "[]");
    ck_assert_ptr_null(doc.pipelines[1].gallery_dataset);
    ck_assert_str_eq(doc.links[0].policies.names, "manual"); /* Nothing goes live unasked. */
}

END_TEST

#define CLASSIFIER(stages)                                                                         \
    DOC(TRAINING ", {name: p, type: prediction, source: {kind: http}, stages: " stages "}", LINK)

#define KEEPS(keep)                                                                                \
    DOC(TRAINING ", {name: p, type: prediction, source: {kind: http}, keep: " keep "}", LINK)

START_TEST(how_long_pictures_are_kept_is_an_age_or_none)
{
    static const struct {
        const char *yaml;
        int64_t keep_ms;
    } kept[] = {{KEEPS("{pictures: 24h}"), 86400000},
                {KEEPS("{pictures: none}"), -1},
                {KEEPS("{pictures: '0'}"), -1},
                {KEEPS("{}"), 0},
                {KEEPS("null"), 0},
                {DOC(TRAINING ", " PREDICTION, LINK), 0}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(kept); i++) {
        struct weir_ion_doc doc;
        ck_assert_msg(parse(kept[i].yaml, &doc) == WEIR_OK, "%s", err.message);
        ck_assert_int_eq(doc.pipelines[1].keep_pictures_ms, kept[i].keep_ms);
    }
}

END_TEST

static const struct {
    const char *yaml, *message;
    weir_status status;
} wrong[] = {
    {"[]", "$: expected an object", WEIR_ERR_INVALID},
    {"{name: x, pipelines: [], colour: red}", "$.colour: unknown field", WEIR_ERR_INVALID},
    {"{pipelines: [" TRAINING "]}", "$.name: missing", WEIR_ERR_INVALID},
    {"{name: Big One, pipelines: [" TRAINING "]}", "$.name: \"Big One\" is not a name",
     WEIR_ERR_INVALID},
    {"{kind: job, name: x, pipelines: [" TRAINING "]}", "$.kind: \"job\" is not", WEIR_ERR_INVALID},
    {"{name: x, pipelines: []}", "$.pipelines: expected an array of 1 to", WEIR_ERR_INVALID},
    {"{name: x, pipelines: {}}", "$.pipelines: expected an array of 1 to", WEIR_ERR_INVALID},
    {DOC("3", ""), "$.pipelines[0].type: expected", WEIR_ERR_INVALID},
    {DOC("{name: t, type: magic}", ""), "$.pipelines[0].type: \"magic\"", WEIR_ERR_INVALID},
    {DOC("{name: t, type: training, model: m}", ""), "$.pipelines[0].dataset: missing",
     WEIR_ERR_INVALID},
    {DOC("{name: t, type: training, dataset: d, model: m, workers: two}", ""),
     "$.pipelines[0].workers: expected integer, got string", WEIR_ERR_INVALID},
    {DOC("{name: t, type: training, dataset: d, model: m, workers: 0}", ""),
     "$.pipelines[0].workers: 0 is not in 1 to 1024", WEIR_ERR_INVALID},
    {DOC("{name: t, type: training, dataset: d, model: m, replicas: 1}", ""),
     "$.pipelines[0].replicas: unknown field of a training pipeline", WEIR_ERR_INVALID},
    {DOC("{name: t, type: training, dataset: d, model: m, parameters: [1]}", ""),
     "$.pipelines[0].parameters: expected an object", WEIR_ERR_INVALID},
    {DOC("{name: t, type: training, dataset: d, model: m, triggers: {often: true}}", ""),
     "$.pipelines[0].triggers.often: unknown field", WEIR_ERR_INVALID},
    {DOC("{name: t, type: training, dataset: d, model: m, triggers: {schedule: 0 61 * * * ?}}", ""),
     "$.pipelines[0].triggers.schedule: schedule \"0 61 * * * ?\": minute 61", WEIR_ERR_INVALID},
    {DOC(TRAINING ", " TRAINING, ""), "$.pipelines[1].name: there are two pipelines \"t\"",
     WEIR_ERR_INVALID},
    {DOC(TRAINING ", {name: p, type: prediction, source: {kind: http}, gpus: 65}", LINK),
     "$.pipelines[1].gpus: 65 is not in 0 to 64", WEIR_ERR_INVALID},
    {KEEPS("{pictures: often}"),
     "$.pipelines[1].keep.pictures: \"often\" is neither an age (24h, 7d) nor none",
     WEIR_ERR_INVALID},
    {KEEPS("{pictures: -1h}"), "$.pipelines[1].keep.pictures: \"-1h\" is neither",
     WEIR_ERR_INVALID},
    {KEEPS("{pictures: 24}"), "$.pipelines[1].keep.pictures: expected string", WEIR_ERR_INVALID},
    {KEEPS("{films: 24h}"), "$.pipelines[1].keep.films: unknown field", WEIR_ERR_INVALID},
    {KEEPS("24h"), "$.pipelines[1].keep: expected an object", WEIR_ERR_INVALID},
    {DOC(TRAINING ", {name: p, type: prediction}", LINK), "$.pipelines[1].source: missing",
     WEIR_ERR_INVALID},
    {DOC(TRAINING ", {name: p, type: prediction, source: {kind: kafka}}", LINK),
     "$.pipelines[1].source.kind: \"kafka\" is not a source of this version", WEIR_ERR_UNSUPPORTED},
    {DOC(TRAINING ", {name: p, type: prediction, source: {kind: directory}}", LINK),
     "$.pipelines[1].source.path: missing: Folder", WEIR_ERR_INVALID},
    {DOC(TRAINING ", {name: p, type: prediction, source: {kind: http, path: /x}}", LINK),
     "$.pipelines[1].source.path: unknown option", WEIR_ERR_INVALID},
    {DOC(TRAINING ", {name: p, type: prediction, source: {kind: http}, sinks: [{kind: kafka}]}",
         LINK),
     "$.pipelines[1].sinks[0].kind: \"kafka\"", WEIR_ERR_UNSUPPORTED},
    {DOC(TRAINING ", {name: p, type: prediction, source: {kind: http}, gallery: {dataset: g, "
                  "false_accept_rate: 2}}",
         LINK),
     "$.pipelines[1].gallery.false_accept_rate: 2 is not between 0 and 1", WEIR_ERR_INVALID},
    {DOC(TRAINING ", {name: p, type: prediction, source: {kind: http}, gallery: {dataset: g, "
                  "default: maybe}}",
         LINK),
     "$.pipelines[1].gallery.default: \"maybe\"", WEIR_ERR_INVALID},
    {DOC(TRAINING ", {name: p, type: prediction, source: {kind: http}, gallery: {dataset: g, "
                  "impostors: g}}",
         LINK),
     "$.pipelines[1].gallery.impostors: \"g\" is the gallery itself", WEIR_ERR_INVALID},
    {DOC(TRAINING ", {name: p, type: prediction, source: {kind: http}, gallery: {dataset: g, "
                  "impostors: d}}",
         LINK),
     "$.pipelines[1].gallery.impostors: \"d\" is what pipeline \"t\" learns from",
     WEIR_ERR_INVALID},
    {DOC(TRAINING ", {name: p, type: prediction, source: {kind: http}, gallery: {dataset: g, "
                  "impostors: [s]}}",
         LINK),
     "$.pipelines[1].gallery.impostors: expected string", WEIR_ERR_INVALID},
    {DOC(TRAINING ", {name: p, type: prediction, source: {kind: http}, gallery: {dataset: g, "
                  "impostors: Passers By}}",
         LINK),
     "$.pipelines[1].gallery.impostors: \"Passers By\" is not a name", WEIR_ERR_INVALID},
    {DOC(TRAINING ", " PREDICTION, ""), "$.pipelines[1]: no link leads into \"p\"",
     WEIR_ERR_INVALID},
    {DOC(TRAINING ", " PREDICTION, "{from: t, to: q}"), "$.links[0].to: there is no pipeline \"q\"",
     WEIR_ERR_INVALID},
    {DOC(TRAINING ", " PREDICTION, "{from: p, to: p}"), "$.links[0].from: \"p\" is not a training",
     WEIR_ERR_INVALID},
    {DOC(TRAINING ", " PREDICTION, LINK ", " LINK), "$.links[1].to: two links lead into \"p\"",
     WEIR_ERR_INVALID},
    {DOC(TRAINING, "{from: t, to: {deployment: d}}, {from: {model: m}, to: {deployment: d}}"),
     "$.links[1].to: two links lead into \"deployment/d\"", WEIR_ERR_INVALID},
    {DOC(TRAINING ", " PREDICTION, "{from: t, to: p, policy: canary}"),
     "$.links[0].policy: canary is for a link that leads to a deployment", WEIR_ERR_INVALID},
    {DOC(TRAINING ", " PREDICTION, "{from: t, to: p, default: base}"),
     "$.links[0].default: expected MODEL@VERSION", WEIR_ERR_INVALID},
    {DOC(TRAINING ", " PREDICTION, "{from: t, to: p, default: base@0}"),
     "$.links[0].default: expected MODEL@VERSION", WEIR_ERR_INVALID},
    {DOC(TRAINING ", " PREDICTION, "{from: t, to: p, default: 'a:b@1'}"),
     "$.links[0].default: \"a:b\" is not the name", WEIR_ERR_INVALID},
    {DOC(TRAINING ", " PREDICTION, "{from: t, to: p, policy: ab}"),
     "$.links[0].policy: ab is for a link that leads to a deployment", WEIR_ERR_INVALID},
    {DOC(TRAINING ", " PREDICTION, "{from: t, to: p, policy: yolo}"), "$.links[0].policy: \"yolo\"",
     WEIR_ERR_INVALID},
    {DOC(TRAINING ", " PREDICTION, "{from: t}"), "$.links[0].to: missing", WEIR_ERR_INVALID},
    {DOC(TRAINING ", " PREDICTION, "{from: {model: 'a:b'}, to: p}"),
     "$.links[0].from.model: ", WEIR_ERR_INVALID},
    {DOC(TRAINING ", " PREDICTION, "{from: {}, to: p}"), "$.links[0].from.model: missing",
     WEIR_ERR_INVALID},
    {DOC(TRAINING ", " PREDICTION, "{from: {model: a, alias: 'b c'}, to: p}"),
     "$.links[0].from.alias: \"b c\" is not the name of an alias", WEIR_ERR_INVALID},
    {DOC(TRAINING ", " PREDICTION, "{from: {model: a, x: 1}, to: p}"),
     "$.links[0].from.x: unknown field", WEIR_ERR_INVALID},
    {DOC(TRAINING ", " PREDICTION, "{from: 7, to: p}"),
     "$.links[0].from: expected the name of a training pipeline, or {model: NAME}",
     WEIR_ERR_INVALID},
    {DOC(TRAINING ", " PREDICTION, "{from: model/a, to: p}"),
     "$.links[0].from: there is no pipeline \"model/a\"", WEIR_ERR_INVALID},
    {CLASSIFIER("[decode, detect, classify, decide]"), "$.pipelines[1].stages[1].model: missing",
     WEIR_ERR_INVALID},
    {CLASSIFIER("[classify, decide]"), "$.pipelines[1].stages[0]: \"classify\" takes a picture",
     WEIR_ERR_INVALID},
    {CLASSIFIER("[decode, embed, match, decide]"),
     "$.pipelines[1].stages: \"match\" compares with a gallery", WEIR_ERR_INVALID},
    {CLASSIFIER("[decode, classify, decide], gallery: {dataset: g}"),
     "$.pipelines[1].stages: none of them compares with the gallery", WEIR_ERR_INVALID},
};

START_TEST(what_is_wrong_is_named_by_its_place)
{
    struct weir_ion_doc doc;
    weir_status status = parse(wrong[_i].yaml, &doc);
    ck_assert_msg(status == wrong[_i].status, "%s: %s", wrong[_i].yaml, err.message);
    ck_assert_msg(strstr(err.message, wrong[_i].message) != NULL, "%s", err.message);
}

END_TEST

START_TEST(a_pipeline_without_a_gallery_classifies)
{
    struct weir_ion_doc doc;
    ck_assert_int_eq(parse(DOC(TRAINING ", " PREDICTION, LINK), &doc), WEIR_OK);
    ck_assert_int_eq(weir_ion_doc_check(&doc, &err), WEIR_OK);
    ck_assert_str_eq(doc.pipelines[1].stages, "[\"decode\",\"classify\",\"decide\"]");
    ck_assert(!doc.pipelines[1].embeds);
    ck_assert_int_eq(parse(CLASSIFIER("null"), &doc), WEIR_OK);
    ck_assert_str_eq(doc.pipelines[1].stages, "[\"decode\",\"classify\",\"decide\"]");
    ck_assert_int_eq(parse(CLASSIFIER("[decode, {kind: classify, top: 3}, decide]"), &doc),
                     WEIR_OK);
    ck_assert_ptr_nonnull(strstr(doc.pipelines[1].stages, "\"top\":3"));
    ck_assert_int_eq(parse(DOC(TRAINING ", {name: p, type: prediction, source: {kind: http}, "
                                        "gallery: {dataset: g}}",
                               LINK),
                           &doc),
                     WEIR_OK);
    ck_assert(doc.pipelines[1].embeds);
    ck_assert_str_eq(doc.pipelines[1].stages, "[\"decode\",\"embed\",\"match\",\"decide\"]");
}

END_TEST

START_TEST(a_link_may_begin_at_a_registered_model)
{
    struct weir_ion_doc doc;
    ck_assert_int_eq(
        parse("{name: x, pipelines: [{name: p, type: prediction, source: {kind: http}}],"
              " links: [{from: {model: people.sorter-1}, to: p}]}",
              &doc),
        WEIR_OK);
    ck_assert_str_eq(doc.links[0].model, "people.sorter-1");
    ck_assert_str_eq(doc.links[0].from, "model/people.sorter-1");
    ck_assert_str_eq(doc.links[0].id, "model/people.sorter-1:p");
}

END_TEST

static const struct {
    const char *source, *sinks;
    const char *said; /**< NULL: it is fine. */
} paths[] = {
    {"{kind: directory, path: /srv/frames}", "[{kind: jsonl, path: /srv/out.jsonl}]", NULL},
    {"{kind: directory, path: /srv/me@home/A@B}", "[]", NULL},
    {"{kind: directory, path: '@WORK@/frames'}", "[]",
     "$.pipelines[1].source.path: \"@WORK@/frames\" still holds the mark @WORK@ of a template"},
    {"{kind: directory, path: '/srv/@DIR_1@/x'}", "[]", "holds the mark @DIR_1@"},
    {"{kind: directory, path: frames}", "[]",
     "$.pipelines[1].source.path: \"frames\" is a relative"},
    {"{kind: directory, path: ./frames}", "[]", "write an absolute one"},
    {"{kind: rtsp, cameras: [{name: a, url: 'rtsp://me@h/@B'}]}", "[]", NULL},
    {"{kind: rtsp, cameras: [{name: a, url: 'rtsp://h/x'}, {name: b, url: 'rtsp://@CAMERA@/x'}]}",
     "[]",
     "$.pipelines[1].source.cameras[1].url: \"rtsp://@CAMERA@/x\" still holds the mark @CAMERA@"},
    {"{kind: http}", "[{kind: jsonl, path: /a}, {kind: jsonl, path: out.jsonl}]",
     "$.pipelines[1].sinks[1].path: \"out.jsonl\" is a relative path"},
};

START_TEST(doors_of_an_ion_have_names_of_their_own)
{
    static const char gate[] = "[{name: gate, by: {kind: webhook, url: \"http://c/\"}}]",
                      door[] = "[{name: door, by: {kind: webhook, url: \"http://c/\"}}]";
    for (int i = 0; i < 2; i++) {
        struct weir_ion_doc doc;
        char text[1024];
        (void)snprintf(text, sizeof text,
                       DOC(TRAINING ", {name: p, type: prediction, source: {kind: http}, gallery: "
                                    "{dataset: g}, doors: %s}, "
                                    "{name: q, type: prediction, source: {kind: http}, gallery: "
                                    "{dataset: g}, doors: %s}",
                           LINK ", {from: t, to: q}"),
                       gate, i == 0 ? door : gate);
        ck_assert_int_eq(parse(text, &doc), WEIR_OK);
        ck_assert_int_eq(weir_ion_doc_check(&doc, &err), i == 0 ? WEIR_OK : WEIR_ERR_INVALID);
    }
    ck_assert_ptr_nonnull(strstr(err.message, "$.pipelines[2].doors[0].name"));
}

END_TEST

#define RTSP "{kind: rtsp, cameras: [{name: porch, url: 'rtsp://h/x'}]}"
#define BY   "by: {kind: webhook, url: 'http://c/'}"

static const struct {
    const char *source, *door;
    bool has_gallery;
    const char *said; /**< NULL: it is fine. */
} doors[] = {
    {RTSP, "{name: porch, " BY "}", true, NULL},
    {RTSP, "{name: gate, cameras: [porch], " BY "}", true, NULL},
    {"{kind: http}", "{name: gate, " BY "}", true, NULL},
    {RTSP, "{name: gate, hold_open: [{days: [mon]}], " BY "}", false, NULL},
    {RTSP, "{name: gate, " BY "}", true,
     "$.pipelines[1].doors[0].cameras: missing: the source has no camera \"gate\""},
    {RTSP, "{name: gate, cameras: [porch, drive], " BY "}", true,
     "$.pipelines[1].doors[0].cameras[1]: the source has no camera \"drive\""},
    {"{kind: http}", "{name: gate, " BY "}", false, "$.pipelines[1].doors[0]: it would never open"},
};

START_TEST(a_door_that_nothing_could_open_is_refused_when_it_is_applied)
{
    struct weir_ion_doc doc;
    char text[1024];
    (void)snprintf(text, sizeof text,
                   DOC(TRAINING ", {name: p, type: prediction, source: %s, doors: [%s]%s}", LINK),
                   doors[_i].source, doors[_i].door,
                   doors[_i].has_gallery ? ", gallery: {dataset: g}" : "");
    ck_assert_msg(parse(text, &doc) == WEIR_OK, "%s", err.message); /* as a stored one is */
    weir_status status = weir_ion_doc_check(&doc, &err);
    ck_assert_int_eq(status, doors[_i].said == NULL ? WEIR_OK : WEIR_ERR_INVALID);
    ck_assert_msg(doors[_i].said == NULL || strstr(err.message, doors[_i].said) != NULL, "%s",
                  err.message);
}

END_TEST

START_TEST(a_path_that_means_something_else_on_a_node_is_refused)
{
    struct weir_ion_doc doc;
    char text[1024];
    (void)snprintf(text, sizeof text,
                   DOC(TRAINING ", {name: p, type: prediction, source: %s, sinks: %s, "
                                "gallery: {dataset: g}}",
                       LINK),
                   paths[_i].source, paths[_i].sinks);
    ck_assert_int_eq(parse(text, &doc), WEIR_OK);
    weir_status status = weir_ion_doc_check(&doc, &err);
    ck_assert_int_eq(status, paths[_i].said == NULL ? WEIR_OK : WEIR_ERR_INVALID);
    if (paths[_i].said != NULL) {
        ck_assert_msg(strstr(err.message, paths[_i].said) != NULL, "%s", err.message);
    }
}

END_TEST

/* Stored before, it is read; applied, it is refused. Kinds of cameras are there where weir-camera is. */
START_TEST(a_password_among_the_parameters_of_an_address_is_refused_when_it_is_applied)
{
    static const struct {
        const char *address;
        bool is_good;
    } addresses[] = {
        {"http://h/snap?user=ada&pwd=x", false}, {"http://h/snap?Pass%77ord=x", false},
        {"http://h/snap?a=1;passwd=x", false},   {"http://h/snap?a=1&&password=", false},
        {"http://h/snap?password", true},        {"http://h/password=x?a=pwd", true},
        {"http://h/snap?passwords=2&x=1", true}, {"http://ada@h/snap?", true}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(addresses); i++) {
        struct weir_ion_doc doc = {0};
        struct weir_ion_doc_pipeline pipeline = {.type = WEIR_PIPELINE_PREDICTION, .sinks = "[]"};
        char source[256];
        (void)snprintf(source, sizeof source,
                       "{\"kind\":\"mjpeg\",\"cameras\":[{\"name\":\"a\",\"url\":\"http://h/\"},"
                       "{\"name\":\"b\",\"url\":\"%s\"}]}",
                       addresses[i].address);
        pipeline.source = source;
        pipeline.doors = "[]";
        doc.pipelines = &pipeline;
        doc.n_pipelines = 1;
        weir_status status = weir_ion_doc_check(&doc, &err);
        ck_assert_msg((status == WEIR_OK) == addresses[i].is_good, "%s: %s", addresses[i].address,
                      err.message);
        if (!addresses[i].is_good) {
            ck_assert_ptr_nonnull(strstr(err.message, "$.pipelines[0].source.cameras[1].url: \""));
            ck_assert_ptr_nonnull(strstr(err.message, "secrets: [\"password=NAME\"]"));
            ck_assert_ptr_null(strstr(err.message, "=x"));
        }
    }
}

END_TEST

static const struct {
    const char *policy;
    const char *said; /**< NULL: it is fine. */
} chains[] = {
    {"[{kind: shadow}, manual, canary]", NULL},
    {"[ab, manual]", "$.links[0].policy[0]: ab must be the last"},
    {"[canary, manual]", "$.links[0].policy[0]: canary must be the last"},
    {"[manual, canary, {kind: rate-limit, min_interval_s: 9}]",
     "$.links[0].policy[1]: canary must be the last"},
};

START_TEST(what_would_wait_behind_a_canary_is_refused_when_it_is_applied)
{
    struct weir_ion_doc doc;
    char text[1024];
    (void)snprintf(text, sizeof text, DOC(TRAINING, "{from: t, to: {deployment: d}, policy: %s}"),
                   chains[_i].policy);
    ck_assert_int_eq(parse(text, &doc), WEIR_OK); /* a stored one is read as it is */
    weir_status status = weir_ion_doc_check(&doc, &err);
    ck_assert_int_eq(status, chains[_i].said == NULL ? WEIR_OK : WEIR_ERR_INVALID);
    if (chains[_i].said != NULL) {
        ck_assert_msg(strstr(err.message, chains[_i].said) != NULL, "%s", err.message);
    }
}

END_TEST

#define YARD(model, links)                                                                         \
    "{name: n, pipelines: [{name: yard, type: prediction, source: {kind: http}, stages: [decode, " \
    "{kind: detect, model: " model "}, track, count, decide]}]" links "}"

START_TEST(a_detector_without_a_model_beside_it_is_the_model)
{
    struct weir_ion_doc doc;
    ck_assert_msg(parse(YARD("people@best", ""), &doc) == WEIR_OK, "%s", err.message);
    ck_assert_ptr_null(doc.pipelines[0].detector);
    ck_assert_str_eq(doc.pipelines[0].finds_with, "people");
    ck_assert_uint_eq(doc.n_links, 1);
    ck_assert_str_eq(doc.links[0].id, "model/people@best:yard");
    ck_assert_str_eq(doc.links[0].alias, "best");
    ck_assert_str_eq(doc.links[0].policies.names, "always-update");
    ck_assert_str_eq(weir_ion_doc_link_place(&doc.links[0], "from", &arena),
                     "$.pipelines[0].stages: detect");
    ck_assert_int_eq(parse(YARD("people/3", ""), &doc), WEIR_OK);
    ck_assert_str_eq(doc.links[0].default_model, "people");
    ck_assert_int_eq(doc.links[0].default_version, 3);
    ck_assert_str_eq(doc.links[0].policies.names, "always-reject");
    ck_assert_int_eq(
        parse(YARD("people", ", links: [{from: {model: people}, to: yard, policy: manual}]"), &doc),
        WEIR_OK);
    ck_assert_uint_eq(doc.n_links, 1);
    ck_assert_str_eq(doc.links[0].policies.names, "manual");
    ck_assert_int_eq(parse(YARD("people", ", links: [{from: {model: cars}, to: yard}]"), &doc),
                     WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "$.links[0]: it brings model \"cars\" to \"yard\""));
    ck_assert_int_eq(parse(YARD("people/3", ", links: [{from: {model: people}, to: yard}]"), &doc),
                     WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "a link decides which version"));
}

END_TEST

/* A training cut as "p", whose stages these are. */
#define CUT(training, stages)                                                                      \
    "{name: n, pipelines: [{name: t, type: training, dataset: d, model: m, " training "}, {name: " \
    "p, type: prediction, source: {kind: http}, gallery: {dataset: d}, stages: [" stages "]}],"    \
    " links: [{from: t, to: p}]}"
#define FINDS "decode, {kind: detect, model: f@best, min_face: 30}, "

START_TEST(a_training_is_cut_as_a_pipeline_cuts_or_refused)
{
    static const struct {
        const char *yaml, *said;
    } refused[] = {
        {CUT("cut_as: q", FINDS "align, embed, match, decide"),
         "$.pipelines[0].cut_as: there is no pipeline \"q\""},
        {CUT("cut_as: t", FINDS "align, embed, match, decide"),
         "$.pipelines[0].cut_as: \"t\" is not a prediction pipeline"},
        {CUT("cut_as: p", "decode, embed, match, decide"),
         "$.pipelines[0].cut_as: \"p\" takes its pictures whole"},
        {CUT("cut_as: p, parameters: {detector: g}", FINDS "align, embed, match, decide"),
         "$.pipelines[0].parameters.detector: cut_as says"},
        {CUT("cut_as: p, kind: command, parameters: {argv: [x]}",
             FINDS "align, embed, match, decide"),
         "unknown field of a training by a program"},
    };

    struct weir_ion_doc doc;
    ck_assert_msg(parse(CUT("cut_as: p", FINDS "{kind: align, by: box, left: 0.1}, embed, match, "
                                               "decide"),
                        &doc) == WEIR_OK,
                  "%s", err.message);
    ck_assert_str_eq(doc.pipelines[0].cut_as, "p");
    ck_assert_str_eq(doc.pipelines[0].cut_detector, "f@best");
    ck_assert_str_eq(doc.pipelines[0].cut_detect, "{\"min_face\":30}");
    ck_assert_ptr_nonnull(strstr(doc.pipelines[0].cut_align, "\"by\":\"box\""));
    ck_assert_int_eq(parse(CUT("cut_as: p", FINDS "align, embed, match, decide"), &doc), WEIR_OK);
    ck_assert_str_eq(doc.pipelines[0].cut_align, "{}");
    for (size_t i = 0; i < WEIR_ARRAY_LEN(refused); i++) {
        ck_assert_int_ne(parse(refused[i].yaml, &doc), WEIR_OK);
        ck_assert_msg(strstr(err.message, refused[i].said) != NULL, "%s", err.message);
    }
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("ion_doc");
    TCase *tcase = tcase_create("ion_doc");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, an_old_word_is_replaced_and_named);
    tcase_add_test(tcase, the_reference_document_is_read_as_it_is_written);
    tcase_add_test(tcase, what_is_left_out_has_its_default);
    tcase_add_test(tcase, how_long_pictures_are_kept_is_an_age_or_none);
    tcase_add_test(tcase,
                   a_password_among_the_parameters_of_an_address_is_refused_when_it_is_applied);
    tcase_add_test(tcase, a_pipeline_without_a_gallery_classifies);
    tcase_add_test(tcase, a_link_may_begin_at_a_registered_model);
    tcase_add_test(tcase, a_detector_without_a_model_beside_it_is_the_model);
    tcase_add_test(tcase, a_training_is_cut_as_a_pipeline_cuts_or_refused);
    tcase_add_test(tcase, doors_of_an_ion_have_names_of_their_own);
    tcase_add_loop_test(tcase, a_path_that_means_something_else_on_a_node_is_refused, 0,
                        sizeof(paths) / sizeof(paths[0]));
    tcase_add_loop_test(tcase, a_door_that_nothing_could_open_is_refused_when_it_is_applied, 0,
                        sizeof(doors) / sizeof(doors[0]));
    tcase_add_loop_test(tcase, what_would_wait_behind_a_canary_is_refused_when_it_is_applied, 0,
                        sizeof(chains) / sizeof(chains[0]));
    tcase_add_loop_test(tcase, what_is_wrong_is_named_by_its_place, 0,
                        sizeof(wrong) / sizeof(wrong[0]));
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
