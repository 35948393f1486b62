/* Views against JSON that is made by hand, of random values; a record's members among a view's. */
#include "base/test_main.h"
#include "base/test_seed.h"

#include <math.h>
#include <string.h>

struct weir_sample {
    char *name;
    int64_t count;
};

struct sample_pair {
    const char *key, *value;
};

struct sample_number {
    int64_t other;
    double value;
    const char *key;
};

/* Each kind of member, in each presence. */
// clang-format off
#define SAMPLE_VIEWS                                                                              \
    VIEW(sample_part, "sample part")                                                              \
        ALWAYS(INT, number, "A number")                                                           \
        OR_NULL(TEXT, word, "A word")                                                             \
    END(sample_part)                                                                              \
    VIEW(sample_whole, "sample whole")                                                            \
        ALWAYS(TEXT, text, "Never null")                                                          \
        OR_NULL(TEXT, text_or_null, "Or null")                                                    \
        MAY_MISS(TEXT, text_or_none, "Or missing")                                                \
        ALWAYS(INT, whole, "Always")                                                              \
        OR_NULL(INT, whole_or_null, "Or null")                                                    \
        MAY_MISS(INT, whole_or_none, "Or missing")                                                \
        OR_NULL(FROM_1, from_1, "Or null")                                                        \
        OR_NULL(F64, real_or_null, "Or null")                                                     \
        MAY_MISS(F64, real_or_none, "Or missing")                                                 \
        ALWAYS(BOOL, is_so, "Truth")                                                              \
        OR_NULL(TIME, time_ms, "Time")                                                            \
        MAY_MISS(MILLI, milli, "Thousandths")                                                     \
        ALWAYS(TEXTS, texts, "Texts")                                                             \
        OR_NULL(INTS, wholes, "Numbers")                                                          \
        OR_NULL(VIEW_OF(sample_part), part, "One")                                                \
        MAY_MISS(VIEWS(sample_part), parts, "Many")                                               \
        OR_NULL(ROW_OF(weir_sample), record, "A record")                                          \
        ALWAYS(ROWS(weir_sample), records, "Records")                                             \
        ALWAYS(MAP(sample_pair), map, "Texts by text")                                            \
        ALWAYS(MAP_F64(sample_number), numbers, "Numbers by text")                                \
        MAY_MISS(JSON("map of text"), json, "Anything")                                           \
        MEMBER(ALWAYS, BOOL, standard, "default", "Its name is a word of C")                      \
    END(sample_whole)                                                                             \
    OVER(sample_over, "sample over", other_struct)                                                \
        FIELD(ALWAYS, INT, n, "count", "Another name")                                            \
        FIELD(OR_NULL, TEXT, inner.word, "word", "Of a struct inside")                            \
        FIELD(ALWAYS, IN(sample_part), inner, "inner", "The struct inside")                       \
    END_OVER(sample_over)                                                                         \
    PART(sample_common)                                                                           \
        ALWAYS(INT, common, "Of both")                                                            \
    END(sample_common)                                                                            \
    VIEW(sample_of_other, "sample of other")                                                      \
        ALWAYS(VIEWS_AS(sample_over, other_struct), others, "Many")                               \
        ALWAYS(FLAT(sample_common), part, "")                                                     \
        MAY_MISS(FLAT_OF(sample_part), more, "")                                                  \
    END(sample_of_other)                                                                          \
    RECORD(sample_with_row, "sample with row", weir_sample, "name")                               \
        ALWAYS(INT, count, "In the place of the record's")                                        \
        HOLDS(OR_NULL, "text", name, "Nothing is written")                                        \
        OR_NULL(TEXT, beside, "Beside its fields")                                                \
    END(sample_with_row)
// clang-format on

#include "base/view_struct.h"

// clang-format off
SAMPLE_VIEWS

// clang-format on

struct other_struct {
    int64_t n;
    struct sample_part inner;
};

static const struct weir_field sample_fields[] = {
    WEIR_FIELD(weir_sample, name, TEXT, WEIR_FIELD_KEY, "", "Name"),
    WEIR_FIELD(weir_sample, count, INT, 0, "", "How many"),
};
static const struct weir_resource weir_sample_resource =
    WEIR_RESOURCE("sample", "samples", weir_sample, sample_fields);

#include "base/view_table.h"

// clang-format off
SAMPLE_VIEWS
// clang-format on

#define N_TRIES 300

static struct weir_rng rng;

static bool coin(void)
{
    return weir_rng_below(&rng, 2) == 1;
}

static int64_t some(void)
{
    return (int64_t)weir_rng_below(&rng, 1000) - 500;
}

/* What is said in the JSON that is made by hand: `name`, unless it is not known and may be left out. */
static void say(json_t *object, const char *name, bool is_known, bool may_miss, json_t *value)
{
    if (is_known) {
        json_object_set_new(object, name, value);
        return;
    }
    json_decref(value);
    if (!may_miss) {
        json_object_set_new(object, name, json_null());
    }
}

static json_t *part_by_hand(const struct sample_part *part)
{
    return json_pack("{s:I,s:s?}", "number", (json_int_t)part->number, "word", part->word);
}

static struct sample_part parts[3];
static struct weir_sample rows[3] = {{"a", 1}, {"b", 2}, {"c", 3}};
static const char *const words[] = {"one", "zwei", "drei mit \"Zeichen\"", ""};
static char *const texts[] = {"x", "y", "z"};
static const struct sample_pair pairs[] = {{"one", "1"}, {"nothing", NULL}};
static const struct sample_number numbers[] = {{1, 0.5, "half"}, {2, NAN, "none"}};
static const int64_t wholes[] = {0, -1, INT64_MAX};

static struct sample_whole random_view(bool known[static 12])
{
    for (size_t i = 0; i < 12; i++) {
        known[i] = coin();
    }
    for (size_t i = 0; i < 3; i++) {
        parts[i] = (struct sample_part){some(), coin() ? words[weir_rng_below(&rng, 4)] : NULL};
    }
    return (struct sample_whole){
        .text = known[0] ? "text" : NULL,
        .text_or_null = known[1] ? words[weir_rng_below(&rng, 4)] : NULL,
        .text_or_none = known[2] ? "there" : NULL,
        .whole = some(),
        .whole_or_null = known[3] ? some() : WEIR_INT_NONE,
        .whole_or_none = known[4] ? some() : WEIR_INT_NONE,
        .from_1 = known[4] ? 7 : 0,
        .real_or_null = known[5] ? (double)some() / 8
                        : coin() ? NAN
                                 : INFINITY,
        .real_or_none = known[6] ? (double)some() / 8 : NAN,
        .is_so = coin(),
        .time_ms = known[7] ? 1769853600123 : 0,
        .milli = known[8] ? 2500 : WEIR_INT_NONE,
        .texts = texts,
        .n_texts = weir_rng_below(&rng, 4),
        .wholes = known[9] ? wholes : NULL,
        .n_wholes = known[9] ? weir_rng_below(&rng, 4) : 0,
        .part = known[10] ? &parts[0] : NULL,
        .parts = known[11] ? parts : NULL,
        .n_parts = known[11] ? weir_rng_below(&rng, 4) : 0,
        .record = known[10] ? &rows[1] : NULL,
        .records = rows,
        .n_records = weir_rng_below(&rng, 4),
        .map = pairs,
        .n_map = weir_rng_below(&rng, 3),
        .numbers = numbers,
        .n_numbers = weir_rng_below(&rng, 3),
        .json = known[9] ? json_pack("{s:s}", "k", "v") : NULL,
        .standard = coin(),
    };
}

static json_t *by_hand(const struct sample_whole *view, const bool known[static 12])
{
    json_t *object = json_object(), *list = json_array();
    say(object, "text", true, false, json_string(known[0] ? "text" : ""));
    say(object, "text_or_null", known[1], false, json_string(known[1] ? view->text_or_null : ""));
    say(object, "text_or_none", known[2], true, json_string("there"));
    say(object, "whole", true, false, json_integer(view->whole));
    say(object, "whole_or_null", known[3], false, json_integer(view->whole_or_null));
    say(object, "whole_or_none", known[4], true, json_integer(view->whole_or_none));
    say(object, "from_1", known[4], false, json_integer(7));
    say(object, "real_or_null", known[5], false, json_real(known[5] ? view->real_or_null : 0));
    say(object, "real_or_none", known[6], true, json_real(known[6] ? view->real_or_none : 0));
    say(object, "is_so", true, false, json_boolean(view->is_so));
    say(object, "time_ms", known[7], false, json_string("2026-01-31T10:00:00.123Z"));
    say(object, "milli", known[8], true, json_real(2.5));
    for (size_t i = 0; i < view->n_texts; i++) {
        json_array_append_new(list, json_string(texts[i]));
    }
    say(object, "texts", true, false, list);
    list = json_array();
    for (size_t i = 0; i < view->n_wholes; i++) {
        json_array_append_new(list, json_integer(wholes[i]));
    }
    say(object, "wholes", known[9], false, list);
    say(object, "part", known[10], false, part_by_hand(&parts[0]));
    list = json_array();
    for (size_t i = 0; i < view->n_parts; i++) {
        json_array_append_new(list, part_by_hand(&parts[i]));
    }
    say(object, "parts", known[11], true, list);
    say(object, "record", known[10], false, json_pack("{s:s,s:i}", "name", "b", "count", 2));
    list = json_array();
    for (size_t i = 0; i < view->n_records; i++) {
        json_array_append_new(
            list, json_pack("{s:s,s:I}", "name", rows[i].name, "count", (json_int_t)rows[i].count));
    }
    say(object, "records", true, false, list);
    json_t *map = json_object();
    for (size_t i = 0; i < view->n_map; i++) {
        json_object_set_new(map, pairs[i].key, i == 0 ? json_string(pairs[i].value) : json_null());
    }
    say(object, "map", true, false, map);
    map = json_object();
    for (size_t i = 0; i < view->n_numbers; i++) {
        json_object_set_new(map, numbers[i].key, i == 0 ? json_real(0.5) : json_null());
    }
    say(object, "numbers", true, false, map);
    say(object, "json", known[9], true, json_pack("{s:s}", "k", "v"));
    say(object, "default", true, false, json_boolean(view->standard));
    return object;
}

static char *text_of(json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    return text;
}

START_TEST(a_view_is_written_as_it_is_by_hand)
{
    uint64_t seed = test_seed(&rng);
    for (int i = 0; i < N_TRIES; i++) {
        bool known[12];
        struct sample_whole view = random_view(known);
        char *expected = text_of(by_hand(&view, known));
        char *written = text_of(weir_view_to_json(sample_whole_view(), &view));
        ck_assert_msg(strcmp(expected, written) == 0, "seed %llu:\n%s\n%s",
                      (unsigned long long)seed, expected, written);
        free(expected);
        free(written);
    }
}

END_TEST

START_TEST(a_member_takes_the_place_of_a_field_of_its_name)
{
    char *text = text_of(WEIR_VIEW_JSON(sample_with_row, .row = &rows[1], .count = 9));
    ck_assert_str_eq(text, "{\"name\":\"b\",\"count\":9,\"beside\":null}");
    free(text);
    text = text_of(WEIR_VIEW_JSON(sample_with_row, .count = 9, .beside = "\xff"));
    ck_assert_str_eq(text, "{\"count\":9,\"beside\":\"(not UTF-8)\"}");
    free(text);
}

END_TEST

START_TEST(a_view_may_lie_over_a_struct_that_is_there)
{
    const struct other_struct others[] = {{1, {2, "a"}}, {3, {4, NULL}}};
    char *text =
        text_of(WEIR_VIEW_JSON(sample_of_other, .others = others, .n_others = 2, .part = {5}));
    ck_assert_str_eq(text, "{\"others\":[{\"count\":1,\"word\":\"a\",\"inner\":{\"number\":2,"
                           "\"word\":\"a\"}},{\"count\":3,\"word\":null,\"inner\":{\"number\":4,"
                           "\"word\":null}}],\"common\":5}");
    free(text);
    text = text_of(WEIR_VIEW_JSON(sample_of_other, .part = {6}, .more = &others[0].inner));
    ck_assert_str_eq(text, "{\"others\":[],\"common\":6,\"number\":2,\"word\":\"a\"}");
    free(text);
}

END_TEST

WEIR_TEST_MAIN("view", a_view_is_written_as_it_is_by_hand,
               a_member_takes_the_place_of_a_field_of_its_name,
               a_view_may_lie_over_a_struct_that_is_there)
