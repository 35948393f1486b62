/* Deployments in the store: what is saved is loaded again, what is deleted leaves nothing. */
#include "deploy/deploy.h"

#include "deploy/step_fixture.h"
#include "store/identity.h"
#include "store/store_fixture.h"
#include "store/table.h"
#include "track/track.h"

static struct store_fixture store;
static struct deploy_fixture f;

static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    MUST(weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "p"}, err));
    for (int64_t i = 1; i <= 4; i++) {
        struct weir_model_version out, in = {.model = "m", .blob = "b"};
        in.id = weir_arena_printf(&store.arena, "id-%d", (int)i);
        MUST(weir_model_register(txn, &in, "p", 1, &store.arena, &out, NULL, err));
    }
    return WEIR_OK;
}

static void set_up(void)
{
    fixture_make(&store, populate);
    deploy_fixture_init(&f);
}

static void tear_down(void)
{
    weir_arena_fini(&f.arena);
    fixture_fini(&store);
}

static weir_status save_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return weir_deploy_save(txn, &f.state, err);
}

static weir_status load_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_deploy_load(txn, "d", &f.arena, context, err);
}

static weir_status change_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_deploy_change(txn, context, err);
}

START_TEST(what_is_saved_is_loaded_again)
{
    struct weir_deploy_state loaded;
    int64_t before, after;
    struct weir_shares shares = {.items = {{3, 900000}, {4, 100000}}, .n = 2};
    fixture_read(&store, change_in, &before);
    deploy_apply(&f, wanted_of(shares, 2, 4));
    fixture_write(&store, save_in, NULL);
    fixture_read(&store, change_in, &after);
    ck_assert_int_ne(before, after);
    fixture_read(&store, load_in, &loaded);
    struct weir_shares got = weir_deploy_shares(&loaded, false);
    ck_assert_int_eq(memcmp(&got, &shares, sizeof got), 0);
    ck_assert_uint_eq(loaded.n_replicas, 2);
    ck_assert_str_eq(loaded.replicas[1].row.id, "d-2");
    ck_assert_str_eq(loaded.deployment.secret, "secret");
    ck_assert_int_eq(loaded.deployment.replicas_max, 4);
}

END_TEST

START_TEST(a_deleted_deployment_leaves_no_row)
{
    struct weir_deploy_state loaded;
    deploy_apply(&f, wanted_of(weir_shares_of(3), 1, 1));
    fixture_write(&store, save_in, NULL);
    deploy_do(&f, (struct weir_deploy_event){.type = WEIR_DEPLOY_EVENT_DELETED});
    fixture_write(&store, save_in, NULL);
    ck_assert_int_eq(weir_store_read(store.store, load_in, &loaded, &store.err),
                     WEIR_ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(store.err.message, "`weir deploy MODEL` makes one"));
}

END_TEST

START_TEST(a_version_that_is_not_there_is_refused_by_the_store)
{
    deploy_apply(&f, wanted_of(weir_shares_of(9), 1, 1));
    ck_assert_int_eq(weir_store_write(store.store, save_in, NULL, &store.err), WEIR_ERR_CONFLICT);
}

END_TEST

WEIR_TEST_MAIN_WITH("deploy", set_up, tear_down, what_is_saved_is_loaded_again,
                    a_deleted_deployment_leaves_no_row,
                    a_version_that_is_not_there_is_refused_by_the_store)
