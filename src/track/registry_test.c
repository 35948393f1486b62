#include "track/registry.h"

#include "store/identity.h"
#include "store/store_fixture.h"
#include "store/table.h"

#include <string.h>

static struct store_fixture fixture;

static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "default"},
                           err);
}

static void set_up(void)
{
    fixture_make(&fixture, populate);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

static weir_status make(struct weir_txn *txn, const char *name, struct weir_error *err)
{
    return weir_model_create(txn,
                             &(struct weir_model){.name = (char *)name,
                                                  .project = "default",
                                                  .description = "d",
                                                  .created_by = "ann",
                                                  .created_ms = 5},
                             err);
}

static weir_status add(struct weir_txn *txn, const char *name, const char *id,
                       struct weir_model_version *out, struct weir_error *err)
{
    const struct weir_model_version version = {
        .id = (char *)id, .model = (char *)name, .blob = "", .unservable = "no file"};
    return weir_model_register(txn, &version, "default", 6, &fixture.arena, out, NULL, err);
}

static const struct {
    const char *name;
    bool is_valid;
} names[] = {
    {"a", true},   {"My Model 1", true}, {"größe@2", true}, {"a.b-c_d", true},
    {"", false},   {"a/b", false},       {"a:b", false},    {".", false},
    {"..", false}, {"a\nb", false},      {"a\xff", false},
};

START_TEST(a_models_name_is_what_other_registries_allow)
{
    ck_assert_msg(weir_model_name_is_valid(names[_i].name) == names[_i].is_valid, "%s",
                  names[_i].name);
}

END_TEST

static weir_status make_models(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    struct weir_model model;
    struct weir_model_version version;
    MUST(make(txn, "My Model", err));
    ck_assert_int_eq(make(txn, "My Model", err), WEIR_ERR_EXISTS);
    ck_assert_int_eq(make(txn, "a/b", err), WEIR_ERR_INVALID);
    MUST(weir_model_get(txn, "My Model", &fixture.arena, &model, err));
    ck_assert_str_eq(model.description, "d");
    MUST(add(txn, "My Model", "1", &version, err));
    ck_assert_int_eq(version.version, 1);
    ck_assert_str_eq(version.stage, WEIR_STAGE_NONE);
    ck_assert_int_eq(weir_version_check_servable(&version, err), WEIR_ERR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(err->message, "no file"));
    MUST(weir_model_describe(txn, "My Model", "other", 9, err));
    MUST(weir_model_get(txn, "My Model", &fixture.arena, &model, err));
    ck_assert_str_eq(model.description, "other");
    ck_assert_int_eq(model.updated_ms, 9);
    return WEIR_OK;
}

START_TEST(a_model_is_there_before_its_first_version)
{
    fixture_write(&fixture, make_models, NULL);
}

END_TEST

static weir_status rename_model(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    struct weir_model_version version;
    struct weir_model model;
    struct weir_tag *tags;
    size_t n;
    MUST(make(txn, "old", err));
    MUST(make(txn, "other", err));
    MUST(add(txn, "old", "1", &version, err));
    MUST(weir_model_tag(txn, "old", &(struct weir_tag){"k", "v"}, err));
    MUST(weir_txn_exec(txn,
                       "INSERT INTO model_aliases (id, model, alias, version, updated_ms) VALUES"
                       " ('old:best', 'old', 'best', 1, 0)",
                       WEIR_NO_BINDS, NULL, err));
    ck_assert_int_eq(weir_model_rename(txn, "old", "other", 9, &fixture.arena, err),
                     WEIR_ERR_EXISTS);
    ck_assert_int_eq(weir_model_rename(txn, "old", "a:b", 9, &fixture.arena, err),
                     WEIR_ERR_INVALID);
    ck_assert_int_eq(weir_model_rename(txn, "none", "x", 9, &fixture.arena, err),
                     WEIR_ERR_NOT_FOUND);
    MUST(weir_model_rename(txn, "old", "new", 9, &fixture.arena, err));
    ck_assert_int_eq(weir_model_get(txn, "old", &fixture.arena, &model, err), WEIR_ERR_NOT_FOUND);
    MUST(weir_model_version_get(txn, "new", 1, &fixture.arena, &version, err));
    MUST(weir_model_tags(txn, "new", &fixture.arena, &tags, &n, err));
    ck_assert_uint_eq(n, 1);
    int64_t n_aliases;
    MUST(weir_txn_query_int(txn,
                            "SELECT count(*) FROM model_aliases WHERE id = 'new:best' AND model = "
                            "'new' AND version = 1",
                            WEIR_NO_BINDS, 0, &n_aliases, err));
    ck_assert_int_eq(n_aliases, 1);
    MUST(weir_txn_exec(
        txn,
        "INSERT INTO deployments (name, project, model, mirror, replicas_min, "
        "replicas_max, batch_max, delay_max_us, queue_max, cpu_millis, memory_bytes, gpus, "
        "idle_after_ms, hold_ms, secret, state, state_ms, revision, n_wanted, "
        "n_started, n_failures, next_start_ms, more_ms, less_ms, created_ms, "
        "updated_ms) VALUES ('d', 'default', 'new', 0,1,1,1,1,1,1,1,0,1,1,'s','IDLE',"
        "0,0,0,0,0,0,0,0,0,0)",
        WEIR_NO_BINDS, NULL, err));
    return WEIR_OK;
}

static weir_status rename_deployed(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    struct weir_error refused;
    ck_assert_int_eq(weir_model_rename(txn, "new", "newer", 9, &fixture.arena, &refused),
                     WEIR_ERR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(refused.message, "a deployment serves it"));
    return weir_error_set(err, WEIR_ERR_CONFLICT, "undo");
}

START_TEST(a_model_is_renamed_with_all_that_is_its_own_unless_it_is_served)
{
    fixture_write(&fixture, rename_model, NULL);
    ck_assert_int_eq(weir_store_write(fixture.store, rename_deployed, NULL, &fixture.err),
                     WEIR_ERR_CONFLICT);
}

END_TEST

static weir_status tag_things(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    struct weir_model_version version;
    struct weir_tag *tags;
    size_t n;
    MUST(make(txn, "m", err));
    MUST(add(txn, "m", "1", &version, err));
    MUST(weir_version_tag(txn, "1", &(struct weir_tag){"b", "1"}, err));
    MUST(weir_version_tag(txn, "1", &(struct weir_tag){"a", "x"}, err));
    MUST(weir_version_tag(txn, "1", &(struct weir_tag){"b", "2"}, err));
    MUST(weir_version_tags(txn, "1", &fixture.arena, &tags, &n, err));
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(tags[0].key, "a");
    ck_assert_str_eq(tags[1].value, "2");
    MUST(weir_version_untag(txn, "1", "a", err));
    MUST(weir_version_untag(txn, "1", "a", err));
    MUST(weir_version_tags(txn, "1", &fixture.arena, &tags, &n, err));
    ck_assert_uint_eq(n, 1);
    ck_assert_int_eq(weir_model_tag(txn, "m", &(struct weir_tag){"", "x"}, err), WEIR_ERR_INVALID);
    return WEIR_OK;
}

START_TEST(a_tag_has_the_value_that_it_got_last)
{
    fixture_write(&fixture, tag_things, NULL);
}

END_TEST

static weir_status stage_versions(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    struct weir_model_version made[3], *latest;
    static const char *const ids[] = {"1", "2", "3"};
    size_t n;
    MUST(make(txn, "m", err));
    for (size_t i = 0; i < 3; i++) {
        MUST(add(txn, "m", ids[i], &made[i], err));
    }
    MUST(weir_version_set_stage(txn, &made[0], WEIR_STAGE_PRODUCTION, false, 7, err));
    MUST(weir_version_set_stage(txn, &made[1], WEIR_STAGE_PRODUCTION, false, 7, err));
    MUST(weir_model_latest(txn, "m", NULL, &fixture.arena, &latest, &n, err));
    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(latest[0].version, 2);
    ck_assert_int_eq(latest[1].version, 3);
    MUST(weir_version_set_stage(txn, &made[2], WEIR_STAGE_PRODUCTION, true, 8, err));
    MUST(weir_model_latest(txn, "m", WEIR_STAGE_ARCHIVED, &fixture.arena, &latest, &n, err));
    ck_assert_uint_eq(n, 1);
    ck_assert_int_eq(latest[0].version, 2);
    ck_assert_str_eq(weir_stage_of("production"), WEIR_STAGE_PRODUCTION);
    ck_assert_ptr_null(weir_stage_of("elsewhere"));
    return WEIR_OK;
}

START_TEST(one_version_of_a_stage_can_archive_the_others)
{
    fixture_write(&fixture, stage_versions, NULL);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("registry");
    TCase *rule = tcase_create("names");
    tcase_add_loop_test(rule, a_models_name_is_what_other_registries_allow, 0,
                        WEIR_ARRAY_LEN(names));
    suite_add_tcase(suite, rule);
    TCase *tcase = tcase_create("registry");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_model_is_there_before_its_first_version);
    tcase_add_test(tcase, a_model_is_renamed_with_all_that_is_its_own_unless_it_is_served);
    tcase_add_test(tcase, a_tag_has_the_value_that_it_got_last);
    tcase_add_test(tcase, one_version_of_a_stage_can_archive_the_others);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
