/* Which chains of stages are read, and what is said of the others. */
#include "endpoint/stage.h"

#include "base/kind_laws.h"
#include "base/test_main.h"
#include "endpoint/stage/classify.h"
#include "endpoint/stage/count.h"
#include "endpoint/stage/detect.h"

#include <string.h>

static struct weir_arena arena;
static struct weir_error err;

static weir_status read_text(const char *text, bool has_gallery, struct weir_stage_chain *out)
{
    json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);
    ck_assert_ptr_nonnull(json);
    weir_arena_init(&arena, 0);
    weir_status status = weir_stages_read(json, has_gallery, "$.stages", &arena, out, &err);
    json_decref(json);
    WEIR_TRY(status);
    return weir_stages_check_gallery(out, has_gallery, "$.stages", &err);
}

START_TEST(stages_keep_the_laws_of_registries)
{
    kind_laws_check(&weir_stages);
    for (size_t i = 0; i < weir_stages.n_kinds; i++) {
        ck_assert_ptr_nonnull(weir_stages.kinds[i]->ops);
    }
}

END_TEST

START_TEST(without_a_list_the_chain_follows_from_the_gallery)
{
    struct weir_stage_chain chain;
    ck_assert_int_eq(read_text("null", true, &chain), WEIR_OK);
    ck_assert_uint_eq(chain.n, 4);
    ck_assert_str_eq(chain.items[2].kind->name, "match");
    ck_assert_int_eq(weir_stages_model(&chain), WEIR_STAGE_MODEL_EMBEDS);
    ck_assert(weir_stages_need_gallery(&chain));
    weir_arena_fini(&arena);
    ck_assert_int_eq(read_text("null", false, &chain), WEIR_OK);
    ck_assert_uint_eq(chain.n, 3);
    ck_assert_int_eq(weir_stages_model(&chain), WEIR_STAGE_MODEL_CLASSIFIES);
    ck_assert(!weir_stages_need_gallery(&chain));
    const struct weir_stage_classify *classify = chain.items[1].options;
    ck_assert_int_eq(classify->top, 1);
    ck_assert_double_eq(classify->threshold, 0.5);
    ck_assert_ptr_null(classify->reject);
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(options_stand_with_their_stage)
{
    struct weir_stage_chain chain;
    ck_assert_int_eq(read_text("[\"decode\",{\"kind\":\"classify\",\"top\":3,\"threshold\":0.9,"
                               "\"reject\":\"background\"},\"decide\"]",
                               false, &chain),
                     WEIR_OK);
    const struct weir_stage_classify *classify = chain.items[1].options;
    ck_assert_int_eq(classify->top, 3);
    ck_assert_double_eq(classify->threshold, 0.9);
    ck_assert_str_eq(classify->reject, "background");
    weir_arena_fini(&arena);
}

END_TEST

#define DETECT "{\"kind\":\"detect\",\"model\":\"faces\"}"
#define COUNT(options)                                                                             \
    "[\"decode\"," DETECT ",\"track\",{\"kind\":\"count\"," options "},\"decide\"]"

START_TEST(things_are_counted_without_a_model_beside_the_detector)
{
    struct weir_stage_chain chain;
    float points[2 * WEIR_STAGE_COUNT_POINTS];
    json_t *list = json_loads(COUNT("\"zone\":[[0,0],[1,0.5],[0.25,1]],\"for_s\":2"), 0, NULL);
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(weir_stages_read(list, false, "$", &arena, &chain, &err), WEIR_OK);
    ck_assert_int_eq(weir_stages_model(&chain), WEIR_STAGE_MODEL_NONE);
    const struct weir_stage_count *count = weir_stages_options(&chain, &weir_stage_count_kind);
    ck_assert_uint_eq(weir_stage_count_points(count->zone, points), 3);
    ck_assert_float_eq(points[4], 0.25F);
    ck_assert_double_eq(count->for_s, 2);
    ck_assert_int_eq(count->over, -1);
    ck_assert(weir_stage_count_has_zone(count));
    weir_arena_fini(&arena);
    json_decref(list);
}

END_TEST

static const struct {
    const char *list, *message;
    bool has_gallery;
    weir_status status;
} wrong[] = {
    {"[\"decode\",\"detect\",\"classify\",\"decide\"]", "$.stages[1].model: ", false,
     WEIR_ERR_INVALID},
    {"[\"decode\",\"align\",\"embed\",\"match\",\"decide\"]",
     "$.stages[1]: \"align\" takes objects, and what comes to it is a picture", true,
     WEIR_ERR_INVALID},
    {"[\"decode\"," DETECT ",\"embed\",\"match\",\"decide\"]",
     "$.stages[2]: \"embed\" takes a picture or faces, and what comes to it is objects", true,
     WEIR_ERR_INVALID},
    {"[\"decode\",\"embed\",\"match\",\"track\",\"decide\"]",
     "$.stages[3]: \"track\" needs what a detector finds in the picture: ", true, WEIR_ERR_INVALID},
    {"[\"decode\"," DETECT ",\"align\",\"embed\",\"match\",{\"kind\":\"track\",\"m\":17},"
     "\"decide\"]",
     "$.stages[5].m: ", true, WEIR_ERR_INVALID},
    {"[\"decode\"," DETECT ",\"count\",\"decide\"]",
     "$.stages[2]: \"count\" takes a track, and what comes to it is objects", false,
     WEIR_ERR_INVALID},
    {COUNT("\"zone\":[[0,0],[1,1]]"), "$.stages[3].zone: expected 3 to 32 points", false,
     WEIR_ERR_INVALID},
    {COUNT("\"zone\":[[0,0],[1,1],[2,0]]"), "$.stages[3].zone[2]: expected [x, y]", false,
     WEIR_ERR_INVALID},
    {COUNT("\"line\":[[0,0],[1,1],[1,0]]"), "$.stages[3].line: expected two points", false,
     WEIR_ERR_INVALID},
    {COUNT("\"over\":2,\"under\":3"), "$.stages[3].under: more than 2 ", false, WEIR_ERR_INVALID},
    {"[\"decode\"," DETECT ",\"track\",\"count\",\"count\",\"decide\"]",
     "$.stages[4].name: there are two places \"picture\"", false, WEIR_ERR_INVALID},
    {COUNT("\"of\":2"), "$.stages[3]", false, WEIR_ERR_INVALID},
    {"[\"decode\",{\"kind\":\"detect\",\"model\":\"a b\"},\"classify\",\"decide\"]",
     "$.stages[1].model: \"a b\" is not NAME, NAME@ALIAS or NAME/VERSION", false, WEIR_ERR_INVALID},
    {"[\"decode\",{\"kind\":\"detect\",\"model\":\"a/0\"},\"classify\",\"decide\"]",
     "$.stages[1].model: \"a/0\" is not NAME", false, WEIR_ERR_INVALID},
    {"[\"decode\"," DETECT "," DETECT ",\"classify\",\"decide\"]",
     "$.stages[2]: \"detect\" takes a picture, and what comes to it is objects", false,
     WEIR_ERR_INVALID},
    {"[\"decode\",\"clasify\",\"decide\"]", "$.stages[1]: \"clasify\" is none of ", false,
     WEIR_ERR_INVALID},
    {"[]", "$.stages: expected a list", false, WEIR_ERR_INVALID},
    {"\"classify\"", "$.stages: expected a list", false, WEIR_ERR_INVALID},
    {"[7]", "$.stages[0]: expected the name", false, WEIR_ERR_INVALID},
    {"[\"classify\",\"decide\"]",
     "$.stages[0]: \"classify\" takes a picture, and what comes to it is a frame", false,
     WEIR_ERR_INVALID},
    {"[\"decode\",\"match\",\"decide\"]",
     "$.stages[1]: \"match\" takes an embedding, and what comes to it is a picture", true,
     WEIR_ERR_INVALID},
    {"[\"decode\",\"classify\"]", "$.stages: they end in a finding", false, WEIR_ERR_INVALID},
    {"[\"decode\",\"embed\",\"match\",\"decide\"]", "$.stages: \"match\" compares with a gallery",
     false, WEIR_ERR_INVALID},
    {"[\"decode\",\"classify\",\"decide\"]", "$.stages: none of them compares with the gallery",
     true, WEIR_ERR_INVALID},
    {"[\"decode\",{\"kind\":\"classify\",\"threshold\":1.5},\"decide\"]",
     "$.stages[1].threshold: ", false, WEIR_ERR_INVALID},
    {"[\"decode\",{\"kind\":\"classify\",\"top\":0},\"decide\"]", "$.stages[1].top: ", false,
     WEIR_ERR_INVALID},
    {"[\"decode\",{\"kind\":\"embed\",\"top\":1},\"match\",\"decide\"]",
     "$.stages[1].top: unknown option", true, WEIR_ERR_INVALID},
    {"[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]", "$.stages: 17 stages; at most 16", false,
     WEIR_ERR_LIMIT},
};

START_TEST(a_chain_with_a_detector_works_on_what_it_finds)
{
    struct weir_stage_chain chain;
    ck_assert_msg(
        read_text("[\"decode\",{\"kind\":\"detect\",\"model\":\"faces@best\",\"tiles\":4},"
                  "\"align\",\"judge\",\"embed\",\"match\",\"track\",\"decide\"]",
                  true, &chain) == WEIR_OK,
        "%s", err.message);
    const struct weir_stage_detect *detect = weir_stages_options(&chain, &weir_stage_detect_kind);
    struct weir_detector_name name;
    ck_assert_int_eq(detect->tiles, 4);
    ck_assert_int_eq(weir_detector_name_parse(detect->model, "$", &arena, &name, &err), WEIR_OK);
    ck_assert_str_eq(name.name, "faces");
    ck_assert_str_eq(name.alias, "best");
    ck_assert_int_eq(name.version, 0);
    ck_assert_int_eq(weir_detector_name_parse("faces/12", "$", &arena, &name, &err), WEIR_OK);
    ck_assert_ptr_null(name.alias);
    ck_assert_int_eq(name.version, 12);
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(what_is_wrong_is_named_by_its_place)
{
    struct weir_stage_chain chain;
    weir_status status = read_text(wrong[_i].list, wrong[_i].has_gallery, &chain);
    ck_assert_msg(status == wrong[_i].status, "%s", err.message);
    ck_assert_msg(strncmp(err.message, wrong[_i].message, strlen(wrong[_i].message)) == 0, "%s",
                  err.message);
    weir_arena_fini(&arena);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("stage");
    TCase *tests = tcase_create("stage");
    tcase_add_test(tests, stages_keep_the_laws_of_registries);
    tcase_add_test(tests, without_a_list_the_chain_follows_from_the_gallery);
    tcase_add_test(tests, things_are_counted_without_a_model_beside_the_detector);
    tcase_add_test(tests, options_stand_with_their_stage);
    tcase_add_test(tests, a_chain_with_a_detector_works_on_what_it_finds);
    tcase_add_loop_test(tests, what_is_wrong_is_named_by_its_place, 0, WEIR_ARRAY_LEN(wrong));
    suite_add_tcase(suite, tests);
    return weir_test_run(suite);
}
