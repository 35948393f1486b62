#include "endpoint/endpoint.h"

#include "base/kind_laws.h"
#include "base/test_main.h"
#include "endpoint/sink/jsonl.h"
#include "endpoint/source/camera.h"
#include "endpoint/source/directory.h"
#include "endpoint/source/http.h"

static struct weir_arena arena;
static struct weir_error err;
static struct weir_configured source, sinks[WEIR_ENDPOINT_SINKS_MAX];
static size_t n_sinks;

static weir_status read_texts(const char *source_text, const char *sinks_text)
{
    json_t *source_json = json_loads(source_text, JSON_DECODE_ANY, NULL);
    json_t *sinks_json = json_loads(sinks_text, JSON_DECODE_ANY, NULL);
    ck_assert(source_json != NULL && sinks_json != NULL);
    weir_status status = weir_endpoints_read(source_json, sinks_json, "$.pipelines[1]", &arena,
                                             &source, sinks, &n_sinks, &err);
    json_decref(source_json);
    json_decref(sinks_json);
    return status;
}

static void set_up(void)
{
    weir_arena_init(&arena, 0);
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
}

START_TEST(sources_and_sinks_keep_the_laws_of_registries)
{
    kind_laws_check(&weir_sources);
    kind_laws_check(&weir_sinks);
}

END_TEST

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);
    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

START_TEST(secret_options_have_the_names_that_are_masked)
{
    const struct weir_registry *const registries[] = {&weir_sources, &weir_sinks};
    for (size_t r = 0; r < 2; r++) {
        for (size_t k = 0; k < registries[r]->n_kinds; k++) {
            const struct weir_kind *kind = registries[r]->kinds[k];
            for (size_t i = 0; i < kind->n_options; i++) {
                const char *name = kind->options[i].name;
                bool is_masked = strcmp(name, "token") == 0 || strcmp(name, "password") == 0 ||
                                 strcmp(name, "secret") == 0;
                ck_assert_msg(is_masked == !!(kind->options[i].flags & WEIR_OPTION_SECRET), "%s.%s",
                              kind->name, name);
                ck_assert_msg(!ends_with(name, "-secret") && !ends_with(name, "-key"), "%s.%s",
                              kind->name, name);
            }
        }
    }
}

END_TEST

START_TEST(each_kind_is_read_into_its_own_struct)
{
    ck_assert_int_eq(read_texts("{\"kind\":\"directory\",\"path\":\"/f\"}",
                                "[{\"kind\":\"jsonl\",\"path\":\"/a\"},"
                                "{\"kind\":\"jsonl\",\"path\":\"/b\",\"max_mb\":1,\"keep\":0}]"),
                     WEIR_OK);
    ck_assert_str_eq(((const struct weir_source_directory *)source.options)->path, "/f");
    ck_assert_uint_eq(n_sinks, 2);
    const struct weir_sink_jsonl *first = sinks[0].options, *second = sinks[1].options;
    ck_assert_str_eq(first->path, "/a");
    ck_assert_int_eq(first->max_mb * (first->keep + 1), 1024); /* a gigabyte unless told */
    ck_assert_int_eq(second->max_mb, 1);
    ck_assert_int_eq(second->keep, 0);
    ck_assert_int_eq(read_texts("{\"kind\":\"http\",\"token\":\"t\"}", "null"), WEIR_OK);
    const struct weir_source_http *http = source.options;
    ck_assert_str_eq(http->listen, "127.0.0.1:0");
    ck_assert_str_eq(http->token, "t");
    ck_assert_uint_eq(n_sinks, 0);
}

END_TEST

static const struct {
    const char *source, *sinks, *message;
    weir_status status;
} wrong[] = {
    {"{\"kind\":\"nats\"}", "[]",
     "$.pipelines[1].source.kind: \"nats\" is not a source of this version: it has ",
     WEIR_ERR_UNSUPPORTED},
    {"{\"kind\":\"htpp\"}", "[]", "$.pipelines[1].source.kind: \"htpp\" is none of ",
     WEIR_ERR_INVALID},
    {"{\"kind\":\"directory\"}", "[]", "$.pipelines[1].source.path: missing", WEIR_ERR_INVALID},
    {"{\"kind\":\"directory\",\"path\":\"/f\",\"listen\":\"x\"}", "[]",
     "$.pipelines[1].source.listen: unknown option", WEIR_ERR_INVALID},
    {"{\"kind\":\"http\"}", "{}", "$.pipelines[1].sinks: expected an array", WEIR_ERR_INVALID},
    {"{\"kind\":\"http\"}", "[{\"kind\":\"jsonl\",\"path\":\"/a\"},{\"kind\":\"jsonl\"}]",
     "$.pipelines[1].sinks[1].path: missing", WEIR_ERR_INVALID},
    {"{\"kind\":\"http\"}", "[{\"kind\":\"jsonl\",\"path\":\"/a\",\"keep\":10001}]",
     "$.pipelines[1].sinks[0].keep: 10001 is outside 0", WEIR_ERR_INVALID},
    {"{\"kind\":\"http\"}", "[{\"kind\":\"webhook\",\"url\":\"ftp://h\"}]",
     "$.pipelines[1].sinks[0].url: expected http://", WEIR_ERR_INVALID},
    {"{\"kind\":\"http\"}", "[{\"kind\":\"webhook\",\"url\":\"http://h\",\"token\":\"a b\"}]",
     "$.pipelines[1].sinks[0].token: expected a word", WEIR_ERR_INVALID},
    {"{\"kind\":\"http\",\"secrets\":\"token=door\"}", "[]",
     "$.pipelines[1].source.secrets: expected an array", WEIR_ERR_INVALID},
    {"{\"kind\":\"http\",\"secrets\":[\"listen=door\"]}", "[]",
     "$.pipelines[1].source.secrets[0]: expected OPTION=NAME", WEIR_ERR_INVALID},
    {"{\"kind\":\"http\",\"secrets\":[\"token=\"]}", "[]",
     "$.pipelines[1].source.secrets[0]: expected OPTION=NAME", WEIR_ERR_INVALID},
    {"{\"kind\":\"http\",\"token\":\"t\",\"secrets\":[\"token=door\"]}", "[]",
     "$.pipelines[1].source.token: it is given here and by ", WEIR_ERR_INVALID},

#define RTSP(camera) "{\"kind\":\"rtsp\",\"cameras\":[" camera "]}"
#define PORCH        "\"name\":\"porch\",\"url\":\"rtsp://h/x\""
    {"{\"kind\":\"rtsp\"}", "[]", "$.pipelines[1].source.cameras: missing", WEIR_ERR_INVALID},
    {RTSP("{\"name\":\"porch\"}"), "[]", "$.pipelines[1].source.cameras[0].url: missing",
     WEIR_ERR_INVALID},
    {RTSP("{" PORCH "},{" PORCH "}"), "[]",
     "$.pipelines[1].source.cameras[1].name: \"porch\" is .cameras[0] already", WEIR_ERR_INVALID},
    {RTSP("{\"name\":\"a/b\",\"url\":\"rtsp://h/x\"}"), "[]",
     "$.pipelines[1].source.cameras[0].name: expected 1 to 63 bytes", WEIR_ERR_INVALID},
    {RTSP("{\"name\":\"porch\",\"url\":\"rtsp://u:p@h/x\"}"), "[]",
     "$.pipelines[1].source.cameras[0].url: the address has a password", WEIR_ERR_INVALID},
    {RTSP("{\"name\":\"porch\",\"url\":\"rtsp://u%3Ap@h/x\"}"), "[]",
     "$.pipelines[1].source.cameras[0].url: the address has a password", WEIR_ERR_INVALID},
    {RTSP("{\"name\":\"porch\",\"url\":\"rtsp://a%0d%0ab@h/x\"}"), "[]",
     "$.pipelines[1].source.cameras[0].url: the user in the address is too long, or has a control",
     WEIR_ERR_INVALID},
    {RTSP("{\"name\":\"porch\",\"url\":\"rtsps://h/x\"}"), "[]",
     "$.pipelines[1].source.cameras[0].url: rtsps is not supported", WEIR_ERR_UNSUPPORTED},
    {RTSP("{\"name\":\"porch\",\"url\":\"http://h/x\"}"), "[]",
     "$.pipelines[1].source.cameras[0].url: expected rtsp://HOST", WEIR_ERR_INVALID},
    {RTSP("{\"name\":\"porch\",\"url\":\"rtsp://h:0/x\"}"), "[]",
     "$.pipelines[1].source.cameras[0].url: expected HOST or HOST:PORT", WEIR_ERR_INVALID},
    {RTSP("{" PORCH ",\"rotate\":45}"), "[]",
     "$.pipelines[1].source.cameras[0].rotate: expected 0, 90, 180 or 270", WEIR_ERR_INVALID},
    {RTSP("{" PORCH ",\"region\":[0.5,0,0.6,1]}"), "[]",
     "$.pipelines[1].source.cameras[0].region: expected [x, y, width, height]", WEIR_ERR_INVALID},
    {RTSP("{" PORCH ",\"masks\":[[[0,0],[1,1]]]}"), "[]",
     "$.pipelines[1].source.cameras[0].masks[0]: expected 3 to 32 points", WEIR_ERR_INVALID},
    {RTSP("{" PORCH ",\"secrets\":[\"name=x\"]}"), "[]",
     "$.pipelines[1].source.cameras[0].secrets[0]: expected OPTION=NAME", WEIR_ERR_INVALID},
    {"{\"kind\":\"http\"}", "[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]",
     "$.pipelines[1].sinks: 17 sinks; at most 16", WEIR_ERR_LIMIT},
};

/* A build without its library refuses the kind before anything else. */
static bool has_video(void)
{
    return weir_library_need("libav", "video", &err) == WEIR_OK;
}

START_TEST(what_is_wrong_is_named_by_its_place)
{
    if (strstr(wrong[_i].source, "rtsp") != NULL && !has_video()) {
        return;
    }
    weir_status status = read_texts(wrong[_i].source, wrong[_i].sinks);
    ck_assert_msg(status == wrong[_i].status, "%s", err.message);
    ck_assert_msg(strncmp(err.message, wrong[_i].message, strlen(wrong[_i].message)) == 0, "%s",
                  err.message);
}

END_TEST

static void list_secret(void *context, const struct weir_endpoint_secret *secret)
{
    char *text = context;
    (void)snprintf(text + strlen(text), 300 - strlen(text), "%s=%s ", secret->variable,
                   secret->name);
    json_object_set_new(secret->endpoint, secret->option, json_string("filled"));
}

START_TEST(a_camera_names_its_own_secrets)
{
    char text[300] = "";
    if (!has_video()) {
        return;
    }
    json_t *json =
        json_loads(RTSP("{" PORCH "},{\"name\":\"b\",\"url\":\"rtsp://ada%40home%2f@[::1]:8554/x\","
                        "\"secrets\":[\"password=own\"]}"),
                   0, NULL);
    json_object_set_new(json, "secrets", json_pack("[s]", "password=all"));
    ck_assert_int_eq(weir_endpoints_read(json, NULL, "$", &arena, &source, sinks, &n_sinks, &err),
                     WEIR_OK);
    weir_endpoints_secrets(json, NULL, list_secret, text);
    ck_assert_str_eq(text, "SOURCE_PASSWORD=all SOURCE_CAMERAS_1_PASSWORD=own ");
    const struct weir_endpoint_ops *ops = source.kind->ops;
    const struct weir_camera *camera;
    struct weir_camera_host host;
    ck_assert_int_eq(weir_camera_read(ops->item,
                                      json_array_get(json_object_get(json, "cameras"), 1), "$",
                                      &arena, &camera, &err),
                     WEIR_OK);
    ck_assert_str_eq(camera->password, "filled");
    ck_assert_int_eq(weir_camera_host_read(camera->address, "rtsp", 554, &host, &err), WEIR_OK);
    ck_assert_str_eq(host.user, "ada@home/");
    ck_assert_str_eq(host.host, "::1");
    ck_assert_int_eq(host.port, 8554);
    ck_assert_str_eq(host.path, "/x");
    json_decref(json);
}

END_TEST

static weir_status count(void *context, const char *where, const char *path, bool is_written)
{
    (void)where;
    *(size_t *)context += path[0] == '/' && is_written;
    return WEIR_OK;
}

START_TEST(all_paths_are_found)
{
    size_t n = 0;
    json_t *source_json = json_pack("{s:s,s:s}", "kind", "directory", "path", "/f");
    json_t *sinks_json = json_pack("[{s:s,s:s}]", "kind", "jsonl", "path", "/a");
    ck_assert_int_eq(weir_endpoints_paths(source_json, sinks_json, "$", count, &n), WEIR_OK);
    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(weir_endpoints_paths(NULL, NULL, "$", count, &n), WEIR_OK);
    ck_assert_uint_eq(n, 2);
    json_decref(source_json);
    json_decref(sinks_json);
}

END_TEST

static void write_down(void *context, const struct weir_endpoint_secret *secret)
{
    char *text = context;
    (void)snprintf(text + strlen(text), 200 - strlen(text), "%s %s=%s;", secret->option,
                   secret->variable, secret->name);
}

START_TEST(secrets_are_found_with_the_variables_that_bring_them)
{
    char text[200] = "";
    const char source_text[] = "{\"kind\":\"http\",\"secrets\":[\"token=door\"]}";
    const char sinks_text[] = "[{\"kind\":\"jsonl\",\"path\":\"/a\",\"secrets\":[]},"
                              "{\"kind\":\"webhook\",\"url\":\"http://h\","
                              "\"secrets\":[\"secret=a.b\",\"token=c\"]}]";
    ck_assert_int_eq(read_texts(source_text, sinks_text), WEIR_OK);
    json_t *source_json = json_loads(source_text, 0, NULL);
    json_t *sinks_json = json_loads(sinks_text, 0, NULL);
    weir_endpoints_secrets(source_json, sinks_json, write_down, text);
    ck_assert_str_eq(text,
                     "token SOURCE_TOKEN=door;secret SINK_1_SECRET=a.b;token SINK_1_TOKEN=c;");
    json_decref(source_json);
    json_decref(sinks_json);
}

END_TEST

int main(void)
{
    const struct weir_test_loop loops[] = {
        {sources_and_sinks_keep_the_laws_of_registries, 0},
        {secret_options_have_the_names_that_are_masked, 0},
        {each_kind_is_read_into_its_own_struct, 0},
        {what_is_wrong_is_named_by_its_place, WEIR_ARRAY_LEN(wrong)},
        {secrets_are_found_with_the_variables_that_bring_them, 0},
        {a_camera_names_its_own_secrets, 0},
        {all_paths_are_found, 0}};
    Suite *suite = suite_create("endpoint");
    TCase *tests = tcase_create("endpoint");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(loops); i++) {
        tcase_add_loop_test(tests, loops[i].test, 0, loops[i].n_loops > 0 ? loops[i].n_loops : 1);
    }
    suite_add_tcase(suite, tests);
    return weir_test_run(suite);
}
