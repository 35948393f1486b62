/* Where the folders of a definition are on a node that sees the server's state folder, and on one that does not. */
#include "agent/code/places.h"

#include "base/file.h"
#include "base/folder_id.h"
#include "base/test_main.h"

#include <string.h>

static char root[WEIR_DIR_TEMPORARY_BYTES];
static struct weir_arena arena;
static struct weir_error err;
static struct places places;

static void set_up(void)
{
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(weir_dir_make_temporary("places-test", root, &err), WEIR_OK);
    ck_assert_int_eq(
        weir_dir_make(weir_arena_printf(&arena, "%s/agent/tasks/t.1", root), 0700, &err), WEIR_OK);
    ck_assert_int_eq(weir_dir_make(weir_arena_printf(&arena, "%s/state", root), 0700, &err),
                     WEIR_OK);
}

static void tear_down(void)
{
    ck_assert_int_eq(weir_dir_remove(root, NULL), WEIR_OK);
    weir_arena_fini(&arena);
}

static json_t *find(const char *id)
{
    json_t *document =
        json_pack("{s:o,s:s?}", "state", json_sprintf("%s/state", root), "state_id", id);
    places_find(weir_arena_printf(&arena, "%s/agent/tasks/t.1", root), document, &arena, &places);
    return document;
}

START_TEST(a_node_sees_the_folder_that_has_the_servers_identity)
{
    char id[WEIR_UUID_BYTES], again[WEIR_UUID_BYTES];
    char *state = weir_arena_printf(&arena, "%s/state", root);
    json_decref(find("01234567-0123-4123-8123-0123456789ab"));
    ck_assert_ptr_nonnull(places.own_dir); /* it is there, and another one */
    ck_assert_int_eq(weir_folder_id(state, id, &err), WEIR_OK);
    ck_assert_int_eq(weir_folder_id(state, again, &err), WEIR_OK);
    ck_assert_str_eq(id, again);
    json_decref(find(id));
    ck_assert_ptr_null(places.own_dir);
    json_decref(find("01234567-0123-4123-8123-0123456789ab"));
    ck_assert_ptr_nonnull(places.own_dir);
    json_decref(find(NULL)); /* an older server's definition */
    ck_assert_ptr_null(places.own_dir);
    ck_assert_int_eq(
        weir_file_write(weir_arena_printf(&arena, "%s/" WEIR_FOLDER_ID, state), "x", 1, 0600, &err),
        WEIR_OK);
    ck_assert_int_eq(weir_folder_id(state, id, &err), WEIR_ERR_CORRUPT);
    ck_assert_int_eq(weir_folder_id("/nonexistent", id, &err), WEIR_ERR_NOT_FOUND);
}

END_TEST

START_TEST(what_leads_into_the_state_folder_leads_below_the_agents)
{
    json_decref(find("01234567-0123-4123-8123-0123456789ab"));
    struct place fetched[] = {
        {weir_arena_printf(&arena, "%s/state/datasets/faces", root), "/fetched"},
        {"/srv/doors", "/doors"}};
    places.fetched = fetched;
    places.n_fetched = 2;

    const struct {
        const char *from, *to; /* %s: the root; NULL: it stays */
    } cases[] = {
        {"%s/state/checkpoints/j", "%s/agent/state/checkpoints/j"},
        {"file://%s/state/checkpoints/j", "file://%s/agent/state/checkpoints/j"},
        {"%s/state", "%s/agent/state"},
        {"%s/state/datasets/faces", "/fetched"},
        {"%s/state/datasets/faces/p0", "/fetched/p0"},
        {"%s/state/datasets/faces2", "%s/agent/state/datasets/faces2"},
        {"/srv/doors", "/doors"},
        {"/srv/doors2", NULL},
        {"%s/statement", NULL},
        {"%s/state/../x", NULL},
        {"state/checkpoints", NULL},
        {"", NULL},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        char *from = weir_arena_printf(&arena, "%s", cases[i].from), *at = strstr(from, "%s");
        if (at != NULL) {
            from = weir_arena_printf(&arena, "%.*s%s%s", (int)(at - from), from, root, at + 2);
        }
        const char *to = cases[i].to != NULL ? cases[i].to : from, *hole = strstr(to, "%s");
        if (hole != NULL) {
            to = weir_arena_printf(&arena, "%.*s%s%s", (int)(hole - to), to, root, hole + 2);
        }
        ck_assert_str_eq(places_map(&places, from, &arena), to);
    }
}

END_TEST

WEIR_TEST_MAIN_WITH("places", set_up, tear_down,
                    a_node_sees_the_folder_that_has_the_servers_identity,
                    what_leads_into_the_state_folder_leads_below_the_agents)
