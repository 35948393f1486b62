#include "base/kind.h"

#include "base/kind_laws.h"
#include "base/test_main.h"

struct drum {
    char *skin, *colour;
    int64_t beats;
    double volume;
    bool is_loud;
    const json_t *players, *marks, *score;
};

// clang-format off
static const struct weir_option drum_options[] = {
    WEIR_OPT_JSON(drum, skin,    "skin",    TEXT,  WEIR_OPTION_REQUIRED | WEIR_OPTION_PATH, NULL, 0, 0, "What is beaten"),
    WEIR_OPT_JSON(drum, beats,   "n-beats", INT,   0, "4", 1, 9, "How often"),
    WEIR_OPT_JSON(drum, volume,  "volume",  F64,   0, "0.5", 0, 1, "How strongly"),
    WEIR_OPT_JSON(drum, is_loud, "loud",    BOOL,  0, NULL, 0, 0, "Whether all hear it"),
    WEIR_OPT_JSON(drum, players, "players", TEXTS, 0, NULL, 0, 0, "Who beat it"),
    WEIR_OPT_JSON(drum, marks,   "marks",   MAP,   0, NULL, 0, 0, "What is written on it"),
    WEIR_OPT_JSON(drum, score,   "score",   JSON,  WEIR_OPTION_INTERNAL, NULL, 0, 0, "Anything"),
    { .name = "colour", .type = WEIR_OPTION_TEXT, .offset = offsetof(struct drum, colour), .fallback = "red",
      .words = WEIR_WORDS("red", "blue"), .doc = "What it looks like" },
};
// clang-format on

static const struct weir_kind_words drum_words[] = {
    {WEIR_WORDS("strokes", "beat"), "n_beats", "weir beat N"},
    {WEIR_WORDS("strings"), NULL, "a drum has no strings"},
};
static const struct weir_kind drum_kind = {.name = "drum",
                                           .doc = "Something that is beaten, loudly.",
                                           WEIR_KIND_OPTIONS(drum, drum_options),
                                           WEIR_KIND_WORDS(drum_words)};
static const struct weir_kind bell_kind = {.name = "bell",
                                           .doc = "Something that rings, without options."};
static const struct weir_option common_options[] = {
    WEIR_OPT_JSON(drum, colour, "shop", TEXT, 0, NULL, 0, 0, "Where it was bought"),
};
static const struct weir_kind *const kinds[] = {&drum_kind, &bell_kind};
static const struct weir_registry toys = {.noun = "toy",
                                          .plural = "toys",
                                          .doc = "What makes noise.",
                                          .kinds = kinds,
                                          .n_kinds = WEIR_ARRAY_LEN(kinds),
                                          .planned = WEIR_WORDS("organ"),
                                          .instead = "take a bell",
                                          .common = common_options,
                                          .n_common = WEIR_ARRAY_LEN(common_options)};

static struct weir_arena arena;
static struct weir_error err;

static weir_status read_text(const char *text, struct weir_configured *out, json_t **out_json)
{
    *out_json = json_loads(text, JSON_DECODE_ANY, NULL);
    ck_assert_msg(*out_json != NULL, "%s", text);
    return weir_registry_read(&toys, *out_json, "$.music", &arena, out, &err);
}

START_TEST(a_registry_keeps_its_laws)
{
    kind_laws_check(&toys);
}

END_TEST

START_TEST(a_kind_is_read_with_its_defaults)
{
    struct weir_configured read;
    json_t *json;
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(
        read_text("{\"kind\":\"drum\",\"skin\":\"/s\",\"n_beats\":\"7\",\"loud\":true,"
                  "\"players\":[\"a\"],\"marks\":{\"b\":\"c\"},\"score\":[1],\"volume\":null}",
                  &read, &json),
        WEIR_OK);
    const struct drum *drum = read.options;
    ck_assert_ptr_eq(read.kind, &drum_kind);
    ck_assert_str_eq(drum->skin, "/s");
    ck_assert_str_eq(drum->colour, "red");
    ck_assert_int_eq(drum->beats, 7);
    ck_assert_double_eq(drum->volume, 0.5);
    ck_assert(drum->is_loud);
    ck_assert_uint_eq(json_array_size(drum->players), 1);
    ck_assert_str_eq(json_string_value(json_object_get(drum->marks, "b")), "c");
    ck_assert_int_eq(json_integer_value(json_array_get(drum->score, 0)), 1);
    json_decref(json);
    ck_assert_int_eq(read_text("{\"kind\":\"bell\"}", &read, &json), WEIR_OK);
    ck_assert_ptr_null(read.options);
    json_decref(json);
    weir_arena_fini(&arena);
}

END_TEST

#define DRUM "{\"kind\":\"drum\",\"skin\":\"s\","

static const struct {
    const char *json, *message;
    weir_status status;
} wrong[] = {
    {"[]", "$.music: missing: which toy", WEIR_ERR_INVALID},
    {"{\"kind\":3}", "$.music.kind: missing", WEIR_ERR_INVALID},
    {"{\"kind\":\"organ\"}",
     "$.music.kind: \"organ\" is not a toy of this version: it has drum, bell; take a bell",
     WEIR_ERR_UNSUPPORTED},
    {"{\"kind\":\"drums\"}", "$.music.kind: \"drums\" is none of drum, bell; did you mean drum?",
     WEIR_ERR_INVALID},
    {"{\"kind\":\"drum\"}", "$.music.skin: missing: What is beaten", WEIR_ERR_INVALID},
    {"{\"kind\":\"drum\",\"skin\":\"\"}", "$.music.skin: missing", WEIR_ERR_INVALID},
    {"{\"kind\":\"drum\",\"skin\":[\"s\"]}", "$.music.skin: expected text, got an array",
     WEIR_ERR_INVALID},
    {"{\"kind\":\"bell\",\"skin\":\"s\"}", "$.music.skin: unknown option", WEIR_ERR_INVALID},
    {DRUM "\"n_beat\":2}", "$.music.n_beat: unknown option; did you mean n_beats?",
     WEIR_ERR_INVALID},
    {DRUM "\"n_beats\":10}", "$.music.n_beats: 10 is outside 1 … 9", WEIR_ERR_INVALID},
    {DRUM "\"n_beats\":1.5}", "$.music.n_beats: expected an integer, got \"1.5\"",
     WEIR_ERR_INVALID},
    {DRUM "\"volume\":{}}", "$.music.volume: expected a number, got an object", WEIR_ERR_INVALID},
    {DRUM "\"colour\":\"bleu\"}",
     "$.music.colour: \"bleu\" is none of red, blue; did you mean blue?", WEIR_ERR_INVALID},
    {DRUM "\"players\":[1]}", "$.music.players: expected an array of strings: number 1 is a number",
     WEIR_ERR_INVALID},
    {DRUM "\"marks\":{\"a\":1}}", "$.music.marks.a: expected a string", WEIR_ERR_INVALID},
};

START_TEST(what_is_wrong_is_named_by_its_place)
{
    struct weir_configured read;
    json_t *json;
    weir_arena_init(&arena, 0);
    weir_status status = read_text(wrong[_i].json, &read, &json);
    ck_assert_msg(status == wrong[_i].status, "%s: %s", wrong[_i].json, err.message);
    ck_assert_msg(strncmp(err.message, wrong[_i].message, strlen(wrong[_i].message)) == 0, "%s",
                  err.message);
    json_decref(json);
    weir_arena_fini(&arena);
}

END_TEST

static const struct {
    const char *json, *text, *message; /* message NULL: it is read, and stands for text */
} named[] = {
    {"\"bell\"", "{\"kind\":\"bell\"}", NULL},
    {"{\"kind\":\"bell\"}", "{\"kind\":\"bell\"}", NULL},
    {DRUM "\"n_beats\":3}", DRUM "\"n_beats\":3}", NULL},
    {"\"drum\"", NULL, "$.music.skin: missing"},
    {"\"bel\"", NULL, "$.music: \"bel\" is none of drum, bell; did you mean bell?"},
    {"\"organ\"", NULL, "$.music: \"organ\" is not a toy of this version"},
    {"{\"kind\":\"bel\"}", NULL, "$.music.kind: \"bel\" is none of"},
    {"3", NULL, "$.music: expected the name of a toy, or an object with kind"},
    {"null", NULL, "$.music: expected the name of a toy, or an object with kind"},
};

START_TEST(a_kind_is_read_by_its_name_alone_too)
{
    struct weir_configured read;
    char *text;
    weir_arena_init(&arena, 0);
    json_t *json = json_loads(named[_i].json, JSON_DECODE_ANY, NULL);
    weir_status status =
        weir_registry_read_named(&toys, json, "$.music", &arena, &read, &text, &err);
    if (named[_i].message == NULL) {
        ck_assert_msg(status == WEIR_OK, "%s", err.message);
        ck_assert_str_eq(text, named[_i].text);
        ck_assert_int_eq(
            weir_registry_read_named(&toys, json, "$.music", &arena, &read, NULL, &err), WEIR_OK);
        ck_assert_str_eq(read.kind->name, strstr(text, "bell") != NULL ? "bell" : "drum");
    } else {
        ck_assert_int_ne(status, WEIR_OK);
        ck_assert_msg(strncmp(err.message, named[_i].message, strlen(named[_i].message)) == 0, "%s",
                      err.message);
    }
    json_decref(json);
    weir_arena_fini(&arena);
}

END_TEST

static const struct {
    const struct weir_kind *kind;
    const char *json, *message; /* NULL: nothing is wrong */
} members[] = {
    {&drum_kind, "{\"kind\":\"drum\",\"skin\":3,\"shop\":4,\"score\":5}", NULL},
    {&drum_kind, "{\"strokes\":2}",
     "$.music.strokes: unknown option; n_beats is meant (weir beat N); drum has skin, n_beats, "
     "volume, loud, players, marks, colour, shop"},
    /* Its letters are nearest to the same one; the words go before. */
    {&drum_kind, "{\"beat\":2}", "$.music.beat: unknown option; n_beats is meant (weir beat N); "},
    {&drum_kind, "{\"strings\":2}",
     "$.music.strings: unknown option: a drum has no strings; drum has skin, "},
    {&drum_kind, "{\"n_beat\":2}", "$.music.n_beat: unknown option; did you mean n_beats?"},
    {&drum_kind, "{\"shops\":2}", "$.music.shops: unknown option; did you mean shop?"},
    {&drum_kind, "{\"weight\":2}", "$.music.weight: unknown option; drum has skin, n_beats, "},
    {&bell_kind, "{\"weight\":2}", "$.music.weight: unknown option; bell has shop"},
};

START_TEST(a_member_that_is_no_option_is_told_which_is_meant)
{
    json_t *json = json_loads(members[_i].json, 0, NULL);
    weir_status status = weir_kind_check_members(&toys, members[_i].kind, json, "$.music", &err);
    json_decref(json);
    if (members[_i].message == NULL) {
        ck_assert_msg(status == WEIR_OK, "%s", err.message);
        return;
    }
    ck_assert_int_eq(status, WEIR_ERR_INVALID);
    ck_assert_msg(strncmp(err.message, members[_i].message, strlen(members[_i].message)) == 0, "%s",
                  err.message);
}

END_TEST

START_TEST(a_text_has_a_maximum)
{
    struct weir_configured read;
    weir_arena_init(&arena, 0);
    char *text = weir_arena_printf(&arena, "%0*d", (int)WEIR_OPTION_TEXT_MAX_BYTES, 0);
    json_t *json = json_pack("{s:s,s:s}", "kind", "drum", "skin", text);
    ck_assert_int_eq(weir_registry_read(&toys, json, "$", &arena, &read, &err), WEIR_OK);
    json_object_set_new(json, "skin", json_sprintf("%s0", text));
    ck_assert_int_eq(weir_registry_read(&toys, json, "$", &arena, &read, &err), WEIR_ERR_LIMIT);
    json_decref(json);
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(a_kind_is_described_for_those_who_fill_it_in)
{
    json_t *wanted = json_loads(
        "[{\"name\":\"skin\",\"type\":\"text\",\"required\":true,\"path\":true,\"doc\":\"What is "
        "beaten\"},"
        "{\"name\":\"n_beats\",\"type\":\"integer\",\"default\":4,\"minimum\":1,\"maximum\":9,"
        "\"doc\":\"How often\"},"
        "{\"name\":\"volume\",\"type\":\"number\",\"default\":0.5,\"minimum\":0.0,\"maximum\":1.0,"
        "\"doc\":\"How strongly\"},"
        "{\"name\":\"loud\",\"type\":\"boolean\",\"default\":false,\"doc\":\"Whether all hear "
        "it\"},"
        "{\"name\":\"players\",\"type\":\"array\",\"doc\":\"Who beat it\"},"
        "{\"name\":\"marks\",\"type\":\"object\",\"doc\":\"What is written on it\"},"
        "{\"name\":\"colour\",\"type\":\"text\",\"default\":\"red\",\"words\":[\"red\",\"blue\"],"
        "\"doc\":\"What it looks like\"},"
        "{\"name\":\"shop\",\"type\":\"text\",\"doc\":\"Where it was bought\"}]",
        0, NULL);
    json_t *told = weir_kind_describe(&toys, &drum_kind);
    ck_assert_str_eq(json_string_value(json_object_get(told, "noun")), "toy");
    ck_assert(json_equal(json_object_get(told, "options"), wanted));
    json_t *schema = weir_options_schema(drum_options, WEIR_ARRAY_LEN(drum_options));
    json_t *required = json_pack("[s]", "skin");
    ck_assert(json_equal(json_object_get(schema, "required"), required));
    ck_assert_ptr_null(json_object_get(json_object_get(schema, "properties"), "score"));
    json_decref(required);
    json_decref(schema);
    json_decref(told);
    json_decref(wanted);
}

END_TEST

static weir_status note(void *context, const char *where, const char *path, bool is_written)
{
    ck_assert(!is_written);
    ck_assert_str_eq(where, "$.music.skin");
    *(char **)context = weir_arena_strdup(&arena, path);
    return WEIR_ERR_CANCELLED;
}

START_TEST(paths_are_found_by_the_table)
{
    char *seen = NULL;
    json_t *json = json_pack("{s:s,s:s,s:s}", "kind", "drum", "skin", "/a", "colour", "red");
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(weir_registry_paths(&toys, json, "$.music", note, &seen), WEIR_ERR_CANCELLED);
    ck_assert_str_eq(seen, "/a");
    json_object_set_new(json, "kind", json_string("lute"));
    ck_assert_int_eq(weir_registry_paths(&toys, json, "$.music", note, &seen), WEIR_OK);
    json_decref(json);
    weir_arena_fini(&arena);
}

END_TEST

WEIR_TEST_LOOPS_MAIN("kind", {a_registry_keeps_its_laws, 0}, {a_kind_is_read_with_its_defaults, 0},
                     {what_is_wrong_is_named_by_its_place, WEIR_ARRAY_LEN(wrong)},
                     {a_kind_is_read_by_its_name_alone_too, WEIR_ARRAY_LEN(named)},
                     {a_member_that_is_no_option_is_told_which_is_meant, WEIR_ARRAY_LEN(members)},
                     {a_text_has_a_maximum, 0}, {a_kind_is_described_for_those_who_fill_it_in, 0},
                     {paths_are_found_by_the_table, 0})
