/* weir lineage and weir model card against the real API. */
#include "cli/core/cli_fixture.h"

#include "api/lineage_fixture.h"
#include "base/file.h"
#include "base/test_main.h"

static void set_up(void)
{
    cli_open();
    lineage_fill();
}

START_TEST(a_decision_is_a_tree_back_to_its_data)
{
    EXPECT_EXIT(0, "lineage", "decision", "d0");
    EXPECT_OUT("decision d0: grant ann at ");
    EXPECT_OUT("\n  model face v1 by bea");
    EXPECT_OUT("\n    link learn:see of ION door: face v1, SERVING");
    EXPECT_OUT("manual: promote by rev (a person approves) note: looks | right");
    EXPECT_OUT("\n    run learn.1 (train, FINISHED) by bea");
    EXPECT_OUT("\n      parameters epochs=7\n");
    EXPECT_OUT("\n      data staff@v1 (dataset) by ann");
    EXPECT_EXIT(0, "lineage", "decision", "d0", "-ojson");
    ck_assert(json_is_array(json_object_get(cli.json, "runs")));
    EXPECT_REFUSED(4, "none", "lineage", "decision", "none");
}

END_TEST

START_TEST(a_dataset_version_is_a_tree_on_to_its_decisions)
{
    EXPECT_EXIT(0, "lineage", "dataset", "staff@v1");
    EXPECT_OUT("data staff@v1 by ann");
    EXPECT_OUT("\n    run learn.1 (train, FINISHED) by bea");
    EXPECT_OUT("\n    model face v1 by bea");
    EXPECT_OUT("\n      decisions 3, of which 3 are kept");
    EXPECT_EXIT(0, "lineage", "dataset", "staff@1", "-ojson");
    EXPECT_REFUSED(2, "expected NAME@v3", "lineage", "dataset", "staff");
    EXPECT_REFUSED(2, "expected NAME@v3", "lineage", "dataset", "staff@latest");
    EXPECT_REFUSED(4, "no version 7", "lineage", "dataset", "staff@v7");
}

END_TEST

START_TEST(a_model_version_is_a_tree_both_ways)
{
    EXPECT_EXIT(0, "lineage", "version", "face@v1");
    EXPECT_OUT("\n  came of\n    run learn.1");
    EXPECT_OUT("\n  reached\n    link learn:see");
    EXPECT_EXIT(0, "lineage", "version", "face"); /* the newest */
    EXPECT_REFUSED(4, "no alias", "lineage", "version", "face@live");
}

END_TEST

START_TEST(a_card_is_printed_or_written)
{
    char path[256], text[1 << 14] = "";
    size_t len;
    struct weir_error err;
    EXPECT_EXIT(0, "model", "card", "face@v1");
    EXPECT_OUT("# face v1\n");
    EXPECT_OUT("No validation was measured");
    EXPECT_EXIT(0, "model", "card", "face@v1", "-ojson");
    ck_assert(json_is_array(json_object_get(cli.json, "limits")));
    (void)snprintf(path, sizeof path, "%s/card.md", callers.fixture.dir);
    EXPECT_EXIT(0, "model", "card", "face", "--file", path);
    must(weir_file_read_into(path, text, sizeof text - 1, &len, &err), &err);
    ck_assert_ptr_eq(strstr(text, "# face v1\n"), text);
    EXPECT_REFUSED(5, "--force overwrites", "model", "card", "face", "--file", path);
    EXPECT_EXIT(0, "model", "card", "face", "--file", path, "--force");
    EXPECT_REFUSED(4, "there is no model", "model", "card", "none");
}

END_TEST

WEIR_TEST_MAIN_WITH("lineage", set_up, cli_close, a_decision_is_a_tree_back_to_its_data,
                    a_dataset_version_is_a_tree_on_to_its_decisions,
                    a_model_version_is_a_tree_both_ways, a_card_is_printed_or_written)
