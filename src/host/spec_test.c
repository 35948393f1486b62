/* What is told to a replica, and the integers of documents. */
#include "host/spec.h"

#include "base/file.h"
#include "base/test_main.h"
#include "base/test_seed.h"

#include <string.h>

struct told {
    struct weir_host_spec host;
    char *name, *colour;
    bool was_read;
};

static const struct weir_host_text texts[] = {{"name", offsetof(struct told, name), true},
                                              {"colour", offsetof(struct told, colour), false}};

static weir_status read_rest(json_t *root, struct weir_arena *arena, void *out,
                             struct weir_error *err)
{
    (void)arena;
    ((struct told *)out)->was_read = true;
    return json_object_get(root, "bad") == NULL
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_LIMIT, "$.bad: too much");
}

static weir_status load(const char *text, struct weir_arena *arena, struct told *out,
                        struct weir_error *err)
{
    static const struct weir_host_spec_form form = {texts, WEIR_ARRAY_LEN(texts), read_rest};
    char dir[WEIR_DIR_TEMPORARY_BYTES], path[WEIR_DIR_TEMPORARY_BYTES + 16];
    ck_assert_int_eq(weir_dir_make_temporary("weir-spec", dir, err), WEIR_OK);
    (void)snprintf(path, sizeof path, "%s/spec.json", dir);
    ck_assert_int_eq(weir_file_write(path, text, strlen(text), 0600, err), WEIR_OK);
    memset(out, 0, sizeof *out);
    weir_status status = weir_host_spec_load(path, &form, arena, out, err);
    if (status != WEIR_OK) {
        ck_assert_int_eq(strncmp(err->message, path, strlen(path)), 0);
        memmove(err->message, err->message + strlen(path), strlen(err->message + strlen(path)) + 1);
    }
    ck_assert_int_eq(weir_dir_remove(dir, NULL), WEIR_OK);
    return status;
}

START_TEST(what_is_told_is_read_or_refused_by_its_place)
{
    static const struct {
        const char *text, *message;
    } refused[] = {
        {"{\"dir\":\"/d\",\"name\":\"n\"}", ": $.replica: expected text"},
        {"{\"replica\":\"r\",\"dir\":\"\",\"name\":\"n\"}", ": $.dir: expected text"},
        {"{\"replica\":\"r\",\"dir\":\"/d\"}", ": $.name: expected text"},
        {"{\"replica\":\"r\",\"dir\":\"/d\",\"name\":\"n\",\"server\":1}",
         ": $.server: expected text"},
        {"{\"replica\":\"r\",\"dir\":\"/d\",\"name\":\"n\",\"bad\":1}", ": $.bad: too much"},
    };

    struct weir_arena arena;
    struct weir_error err = {0};
    struct told told;
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(load("{\"replica\":\"r-1\",\"dir\":\"/d\",\"name\":\"n\",\"colour\":null,"
                          "\"ca_file\":\"/ca\",\"other\":[]}",
                          &arena, &told, &err),
                     WEIR_OK);
    ck_assert_str_eq(told.host.replica, "r-1");
    ck_assert_str_eq(told.host.dir, "/d");
    ck_assert_str_eq(told.host.ca_file, "/ca");
    ck_assert_ptr_null(told.host.server);
    ck_assert_str_eq(told.name, "n");
    ck_assert(told.colour == NULL && told.was_read);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(refused); i++) {
        ck_assert_int_ne(load(refused[i].text, &arena, &told, &err), WEIR_OK);
        ck_assert_str_eq(err.message, refused[i].message);
    }
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(an_integer_is_within_its_bounds_or_absent)
{
    struct weir_rng rng;
    (void)test_seed(&rng);
    for (int i = 0; i < 2000; i++) {
        int64_t lo = (int64_t)weir_rng_below(&rng, 20) - 10;
        int64_t hi = lo + (int64_t)weir_rng_below(&rng, 10);
        int64_t value = (int64_t)weir_rng_below(&rng, 40) - 20, out = 77;
        const struct weir_host_int row = {"n", 0, 1000, lo, hi};
        unsigned kind = (unsigned)weir_rng_below(&rng, 5);
        json_t *object = json_object();
        if (kind < 3) {
            json_object_set_new(object, "n",
                                kind == 0   ? json_null()
                                : kind == 1 ? json_real((double)value)
                                            : json_integer(value));
        }
        bool is_absent = kind == 0 || kind > 2;
        bool is_right = is_absent || (kind == 2 && value >= lo && value <= hi);
        struct weir_error err;
        weir_status status =
            weir_host_read_ints(kind == 4 ? NULL : object, "$.o", &row, 1, &out, &err);
        ck_assert_int_eq(status, is_right ? WEIR_OK : WEIR_ERR_INVALID);
        ck_assert_int_eq(is_right ? out : 0, is_right ? (is_absent ? 1000 : value) : 0);
        ck_assert(is_right || strncmp(err.message, "$.o.n: expected an integer from ", 32) == 0);
        json_decref(object);
    }
}

END_TEST

WEIR_TEST_MAIN("spec", what_is_told_is_read_or_refused_by_its_place,
               an_integer_is_within_its_bounds_or_absent)
