#include "job/secret.h"

#include "store/identity.h"
#include "store/store_fixture.h"
#include "store/table.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VALUE "correct horse"

static struct store_fixture fixture;

static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    MUST(weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "p"}, err));
    return weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "q"}, err);
}

static void set_up(void)
{
    fixture_make(&fixture, populate);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

static weir_status set(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_secret secret;
    return weir_secret_set(txn, fixture.dir, "p", context, VALUE, "ann", 1000, &fixture.arena,
                           &secret, err);
}

static weir_status status;
static json_t *env;

static weir_status add(struct weir_txn *txn, void *context, struct weir_error *err)
{
    json_t *names = json_pack("[s]", context);
    env = json_object();
    status = weir_secrets_add(txn, fixture.dir, "p", names, env, &fixture.arena, err);
    json_decref(names);
    return WEIR_OK;
}

/** What `names` adds of project p. */
static const char *value_of(const char *name, const char *variable)
{
    json_decref(env);
    fixture_read(&fixture, add, (char *)name);
    return json_string_value(json_object_get(env, variable));
}

static const char *key_path(void)
{
    return weir_arena_printf(&fixture.arena, "%s/" WEIR_SECRET_FILE, fixture.dir);
}

static bool file_has(const char *path, const char *text)
{
    char *bytes;
    size_t len;
    ck_assert_int_eq(weir_file_read(path, 1 << 24, &fixture.arena, &bytes, &len, NULL), WEIR_OK);
    return memmem(bytes, len, text, strlen(text)) != NULL;
}

START_TEST(a_value_lies_nowhere_in_the_clear_and_opens_with_its_key_alone)
{
    struct stat info;
    fixture_write(&fixture, set, "hf-token");
    ck_assert_str_eq(value_of("hf-token", "HF_TOKEN"), VALUE);
    ck_assert_str_eq(value_of("X=hf-token", "X"), VALUE);
    ck_assert_int_eq(stat(key_path(), &info), 0);
    ck_assert_int_eq(info.st_mode & 0777, 0600);
    ck_assert(!file_has(fixture.path, VALUE));
    ck_assert(!file_has(weir_arena_printf(&fixture.arena, "%s-wal", fixture.path), VALUE));
    char *key;
    size_t len;
    ck_assert_int_eq(weir_file_read(key_path(), 100, &fixture.arena, &key, &len, NULL), WEIR_OK);
    key[0] = key[0] == '0' ? '1' : '0';
    ck_assert_int_eq(weir_file_write(key_path(), key, len, 0600, NULL), WEIR_OK);
    ck_assert_ptr_null(value_of("hf-token", "HF_TOKEN"));
    ck_assert_int_eq(status, WEIR_ERR_CORRUPT);
    json_decref(env);
    env = NULL;
}

END_TEST

static weir_status move(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return weir_txn_exec(txn,
                         "INSERT INTO secrets SELECT 'p/stolen', 'p', 'stolen', sealed,"
                         " created_by, created_ms, updated_ms FROM secrets WHERE name = 'a'",
                         WEIR_NO_BINDS, NULL, err);
}

START_TEST(a_row_put_elsewhere_does_not_open)
{
    fixture_write(&fixture, set, "a");
    fixture_write(&fixture, move, NULL);
    ck_assert_ptr_null(value_of("stolen", "STOLEN"));
    ck_assert_int_eq(status, WEIR_ERR_CORRUPT);
    ck_assert_ptr_null(value_of("none", "NONE"));
    ck_assert_int_eq(status, WEIR_ERR_NOT_FOUND);
    json_decref(env);
    env = NULL;
}

END_TEST

START_TEST(a_lost_key_is_not_made_anew_while_there_are_secrets)
{
    fixture_write(&fixture, set, "a");
    ck_assert_int_eq(unlink(key_path()), 0);
    ck_assert_int_eq(weir_store_write(fixture.store, set, "b", &fixture.err), WEIR_ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "backup"));
    ck_assert_ptr_null(value_of("a", "A"));
    ck_assert_int_eq(status, WEIR_ERR_CORRUPT);
    json_decref(env);
    env = NULL;
}

END_TEST

static weir_status check(struct weir_txn *txn, void *context, struct weir_error *err)
{
    json_t *spec = json_pack("{s:[s]}", "secrets", (const char *)context);
    status = weir_secrets_check(txn, "p", spec, &fixture.arena, err);
    json_decref(spec);
    return WEIR_OK;
}

START_TEST(the_variable_comes_first_and_who_turns_it_round_is_told)
{
    static const struct {
        const char *text, *words;
        weir_status status;
    } cases[] = {{"hf-token", NULL, WEIR_OK},
                 {"X=hf-token", NULL, WEIR_OK},
                 {"TOKEN=TOKEN", NULL, WEIR_OK},
                 {"hf-token=X", "write VARIABLE=hf-token", WEIR_ERR_INVALID},
                 {"TOKEN=X", "write VARIABLE=TOKEN", WEIR_ERR_INVALID},
                 {"X=none", "no secret \"none\"", WEIR_ERR_NOT_FOUND},
                 {"no-such=X", "VARIABLE=NAME", WEIR_ERR_INVALID},
                 {"WEIR_X=hf-token", "WEIR_", WEIR_ERR_INVALID},
                 {"=hf-token", "VARIABLE=NAME", WEIR_ERR_INVALID},
                 {"X=", "VARIABLE=NAME", WEIR_ERR_INVALID}};

    fixture_write(&fixture, set, "hf-token");
    fixture_write(&fixture, set, "TOKEN");
    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        struct weir_error *err = &fixture.err;
        ck_assert_int_eq(weir_store_read(fixture.store, check, (char *)cases[i].text, err),
                         WEIR_OK);
        ck_assert_msg(status == cases[i].status, "%s: %d", cases[i].text, status);
        ck_assert_msg(cases[i].words == NULL || strstr(err->message, cases[i].words) != NULL,
                      "%s: %s", cases[i].text, err->message);
    }
}

END_TEST

WEIR_TEST_MAIN_WITH("secret", set_up, tear_down,
                    a_value_lies_nowhere_in_the_clear_and_opens_with_its_key_alone,
                    a_row_put_elsewhere_does_not_open,
                    a_lost_key_is_not_made_anew_while_there_are_secrets,
                    the_variable_comes_first_and_who_turns_it_round_is_told)
