/* What a replica is told (spec, deployment), and what it keeps (embeddings, pictures). */
#include "predict/deployment.h"

#include "endpoint/sink/jsonl.h"
#include "endpoint/source/directory.h"
#include "endpoint/source/http.h"

#include "base/rng.h"
#include "base/uuid.h"
#include "predict/embedding_store.h"
#include "predict/pictures.h"
#include "predict/test_support.h"

#include <string.h>

#define BLOB "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct test_dir dir;
static struct weir_error err;

/* ---- deployment ------------------------------------------------------------------------------ */

static const char whole[] =
    "{'revision':4,'model':{'name':'m','version':3,'id':'i','blob':'" BLOB "'},"
    "'gallery':{'dataset':'d','version':2,'path':'/p','digest':'x','blob':'" BLOB "',"
    "'impostors':{'dataset':'s','version':8,'path':'/s','digest':'y','blob':'" BLOB "'}},"
    "'list_revision':9,'lists':{'allow':['zoe','ann'],'deny':['bob']},'default':'deny',"
    "'false_accept_rate':0.02,'false_deny_rate':0.03,'source':{'kind':'http'},'sinks':[]}";

/* `text` with ' for ", and with the first `from` replaced. */
static json_t *variant(const char *from, const char *to)
{
    char text[2048];
    const char *at = from != NULL ? strstr(whole, from) : NULL;
    ck_assert(from == NULL || at != NULL);
    int n = at == NULL ? snprintf(text, sizeof text, "%s", whole)
                       : snprintf(text, sizeof text, "%.*s%s%s", (int)(at - whole), whole, to,
                                  at + strlen(from));
    for (int i = 0; i < n; i++) {
        text[i] = text[i] == '\'' ? '"' : text[i];
    }
    json_t *json = json_loads(text, 0, NULL);
    ck_assert_msg(json != NULL, "%s", text);
    return json;
}

START_TEST(a_deployment_is_read_whole)
{
    struct weir_arena arena;
    struct deployment found;
    json_t *json = variant(NULL, NULL);
    weir_arena_init(&arena, 0);
    ck_assert_msg(deployment_parse(json, &arena, &found, &err) == WEIR_OK, "%s", err.message);
    ck_assert_int_eq(found.revision, 4);
    ck_assert_int_eq(found.list_revision, 9);
    ck_assert_str_eq(found.model.name, "m");
    ck_assert_int_eq(found.model.version, 3);
    ck_assert_str_eq(found.model.blob, BLOB);
    ck_assert_int_eq(found.gallery_version, 2);
    ck_assert_str_eq(found.gallery_path, "/p");
    ck_assert_int_eq(found.impostors_version, 8);
    ck_assert_str_eq(found.impostors_path, "/s");
    ck_assert_str_eq(found.impostors_blob, BLOB);
    ck_assert_uint_eq(found.lists.n_allow, 2);
    ck_assert_uint_eq(found.lists.n_deny, 1);
    ck_assert_int_eq(found.lists.fallback, VERDICT_DENY);
    ck_assert_double_eq(found.rates.accept, 0.02);
    ck_assert_double_eq(found.rates.deny, 0.03);
    json_decref(json);
    weir_arena_fini(&arena);
}

END_TEST

static const struct {
    const char *from, *to;
    weir_status wanted;
} changes[] = {
    {"'path':'/p'", "'path':null", WEIR_OK},
    {"'id':'i'", "'id':null", WEIR_OK},
    {"'deny':['bob']", "'deny':null", WEIR_OK},
    {"'path':'/s'", "'path':null", WEIR_OK},
    {"'impostors':{", "'impostors':null,'other':{", WEIR_OK},
    {"'impostors':{", "'impostors':7,'other':{", WEIR_ERR_INVALID},
    {"'digest':'y','blob':'" BLOB "'", "'blob':'/etc/passwd'", WEIR_ERR_INVALID},
    {"'digest':'y','blob':'" BLOB "'", "'digest':'y'", WEIR_ERR_INVALID},
    {"'default':'deny'", "'default':null", WEIR_OK},
    {"'name':'m'", "'name':''", WEIR_ERR_INVALID},
    {"'blob':'" BLOB, "'blob':'../../etc/passwd", WEIR_ERR_INVALID},
    {"'digest':'x','blob':'" BLOB "'", "'blob':'..'", WEIR_ERR_INVALID},
    {"'default':'deny'", "'default':'maybe'", WEIR_ERR_INVALID},
    {"'false_accept_rate':0.02", "'false_accept_rate':0", WEIR_ERR_INVALID},
    {"'false_accept_rate':0.02", "'false_accept_rate':'x'", WEIR_ERR_INVALID},
    {"'false_deny_rate':0.03", "'false_deny_rate':1", WEIR_ERR_INVALID},
    {"'false_deny_rate':0.03", "'false_deny_rate':null", WEIR_ERR_INVALID},
    {"['bob']", "['bob',7]", WEIR_ERR_INVALID},
    {"'gallery':{", "'gallery':null,'other':{", WEIR_ERR_UNSUPPORTED},
    {"'model':{", "'model':null,'other':{", WEIR_ERR_NOT_FOUND},
};

START_TEST(what_is_wrong_in_a_deployment_is_named)
{
    struct weir_arena arena;
    struct deployment found;
    json_t *json = variant(changes[_i].from, changes[_i].to);
    weir_arena_init(&arena, 0);
    err.message[0] = '\0';
    ck_assert_int_eq(deployment_parse(json, &arena, &found, &err), changes[_i].wanted);
    ck_assert(changes[_i].wanted == WEIR_OK || err.message[0] != '\0');
    json_decref(json);
    weir_arena_fini(&arena);
}

END_TEST

/* ---- spec ------------------------------------------------------------------------------------ */

static weir_status load_spec(const char *text, struct weir_arena *arena, struct predict_spec *out)
{
    test_write_file(test_path(&dir, "spec.json"), text, strlen(text));
    return predict_spec_load(test_path(&dir, "spec.json"), arena, out, &err);
}

#define SPEC_START "{\"ion\":\"i\",\"pipeline\":\"p\",\"dir\":\"/d\",\"replica\":\"01-ab-5\","

START_TEST(a_specification_is_read_and_its_mistakes_are_named)
{
    struct weir_arena arena;
    struct predict_spec spec;
    test_dir_make(&dir);
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(load_spec(SPEC_START "\"replicas\":3,\"source\":{\"kind\":\"directory\","
                                          "\"path\":\"/f\"},\"sinks\":[{\"kind\":\"jsonl\","
                                          "\"path\":\"/s\"}]}",
                               &arena, &spec),
                     WEIR_OK);
    ck_assert_int_eq(spec.rank, 2);
    ck_assert_int_eq(spec.health_window, 200);
    const struct weir_source_directory *directory = spec.source.options;
    ck_assert_ptr_eq(spec.source.kind, &weir_source_directory_kind);
    ck_assert_str_eq(directory->path, "/f");
    const struct weir_sink_jsonl *jsonl = spec.sinks[0].options;
    ck_assert_str_eq(jsonl->path, "/s");
    ck_assert_int_eq(jsonl->max_mb, 128);
    ck_assert_int_eq(jsonl->keep, 7);
    predict_spec_fini(&spec);
    ck_assert_int_eq(load_spec(SPEC_START "\"source\":{\"kind\":\"http\"}}", &arena, &spec),
                     WEIR_OK);
    ck_assert_str_eq(((const struct weir_source_http *)spec.source.options)->listen, "127.0.0.1:0");
    predict_spec_fini(&spec);
    ck_assert_int_eq(load_spec(SPEC_START "\"source\":{\"kind\":\"directory\"}}", &arena, &spec),
                     WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "$.source.path"));
    ck_assert_int_eq(load_spec(SPEC_START "\"source\":{\"kind\":\"kafka\"}}", &arena, &spec),
                     WEIR_ERR_UNSUPPORTED);
    ck_assert_int_eq(
        load_spec(SPEC_START "\"source\":{\"kind\":\"http\"},\"replicas\":0}", &arena, &spec),
        WEIR_ERR_INVALID);
    const char *planned = weir_arena_printf(
        &arena, SPEC_START "\"source\":{\"kind\":\"http\"},\"sinks\":[{\"kind\":\"%s\"}]}",
        weir_sinks.planned[0]);
    ck_assert_int_eq(load_spec(planned, &arena, &spec), WEIR_ERR_UNSUPPORTED);
    ck_assert_int_eq(load_spec("{}", &arena, &spec), WEIR_ERR_INVALID);
    weir_arena_fini(&arena);
    test_dir_drop(&dir);
}

END_TEST

/* ---- embeddings ------------------------------------------------------------------------------ */

START_TEST(embeddings_are_found_by_digest_and_a_damaged_file_is_as_good_as_none)
{
    enum { N = 37, DIM = 5 };

    char digests[N][WEIR_SHA256_TEXT_BYTES];
    const char *pointers[N];
    float vectors[N * DIM], found[DIM];
    struct embedding_store store;
    struct weir_arena arena;
    char *data;
    size_t len;
    test_dir_make(&dir);
    for (int i = 0; i < N; i++) {
        weir_sha256(&i, sizeof i, digests[i]);
        pointers[i] = digests[i];
        for (int d = 0; d < DIM; d++) {
            vectors[i * DIM + d] = (float)(i * 100 + d);
        }
    }
    embedding_store_load(&store, test_path(&dir, "none"), DIM);
    ck_assert(!embedding_store_find(&store, digests[0], found));
    embedding_store_fini(&store);
    ck_assert_int_eq(
        embedding_store_save(test_path(&dir, "e"), DIM, pointers, vectors, N - 1, &err), WEIR_OK);
    embedding_store_load(&store, test_path(&dir, "e"), DIM);
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(embedding_store_find(&store, digests[i], found), i < N - 1);
        ck_assert(i == N - 1 || memcmp(found, vectors + i * DIM, sizeof found) == 0);
    }
    embedding_store_fini(&store);
    embedding_store_load(&store, test_path(&dir, "e"), DIM + 1);
    ck_assert_uint_eq(store.n, 0);
    embedding_store_fini(&store);
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(weir_file_read(test_path(&dir, "e"), 1 << 20, &arena, &data, &len, &err),
                     WEIR_OK);
    for (size_t at = 0; at < len; at += 11) {
        data[at] ^= 4;
        test_write_file(test_path(&dir, "e"), data, len);
        embedding_store_load(&store, test_path(&dir, "e"), DIM);
        ck_assert_uint_eq(store.n, 0);
        embedding_store_fini(&store);
        data[at] ^= 4;
        test_write_file(test_path(&dir, "e"), data, at);
        embedding_store_load(&store, test_path(&dir, "e"), DIM);
        ck_assert_uint_eq(store.n, 0);
        embedding_store_fini(&store);
    }
    weir_arena_fini(&arena);
    test_dir_drop(&dir);
}

END_TEST

/* ---- pictures -------------------------------------------------------------------------------- */

START_TEST(the_oldest_pictures_go_when_there_are_too_many)
{
    struct pictures *pictures;
    char ids[8][WEIR_UUID_BYTES], path[PICTURE_PATH_BYTES];
    test_dir_make(&dir);
    ck_assert_int_eq(pictures_open(test_path(&dir, "p"), 5, &pictures, &err), WEIR_OK);
    for (int i = 0; i < 6; i++) {
        weir_uuid_make(ids[i]);
        ck_assert_int_eq(pictures_put(pictures, ids[i], "x", 1, &err), WEIR_OK);
    }
    ck_assert(!weir_path_exists(pictures_path(pictures, ids[0], path)));
    ck_assert(weir_path_exists(pictures_path(pictures, ids[1], path)));
    pictures_close(pictures);
    /* Another process knows them by their names. */
    ck_assert_int_eq(pictures_open(test_path(&dir, "p"), 5, &pictures, &err), WEIR_OK);
    pictures_remove(pictures, ids[1]);
    for (int i = 6; i < 8; i++) {
        weir_uuid_make(ids[i]);
        ck_assert_int_eq(pictures_put(pictures, ids[i], "x", 1, &err), WEIR_OK);
    }
    for (int i = 0; i < 8; i++) {
        ck_assert_int_eq(weir_path_exists(pictures_path(pictures, ids[i], path)), i >= 3);
    }
    pictures_close(pictures);
    test_dir_drop(&dir);
}

END_TEST

START_TEST(a_picture_is_shrunk_to_fit)
{
    struct weir_image large, small;
    struct weir_buf jpeg;
    ck_assert_int_eq(weir_image_init(&large, 640, 320, 3, &err), WEIR_OK);
    weir_buf_init(&jpeg, 1 << 20);
    ck_assert_int_eq(picture_encode(&large, &jpeg, &err), WEIR_OK);
    ck_assert_int_eq(weir_image_decode(jpeg.data, jpeg.len, &small, &err), WEIR_OK);
    ck_assert_int_eq(small.width, PICTURE_SIDE_MAX);
    ck_assert_int_eq(small.height, PICTURE_SIDE_MAX / 2);
    weir_image_fini(&small);
    weir_image_fini(&large);
    weir_buf_fini(&jpeg);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("deployment");
    TCase *tcase = tcase_create("deployment");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, a_deployment_is_read_whole);
    tcase_add_loop_test(tcase, what_is_wrong_in_a_deployment_is_named, 0,
                        sizeof changes / sizeof changes[0]);
    tcase_add_test(tcase, a_specification_is_read_and_its_mistakes_are_named);
    tcase_add_test(tcase, embeddings_are_found_by_digest_and_a_damaged_file_is_as_good_as_none);
    tcase_add_test(tcase, the_oldest_pictures_go_when_there_are_too_many);
    tcase_add_test(tcase, a_picture_is_shrunk_to_fit);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
