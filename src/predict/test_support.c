#include "predict/test_support.h"

#include "base/clock.h"
#include "base/rng.h"
#include "http/http_client.h"
#include "predict/outbox.h"
#include "predict/test_model.h"

#include <dirent.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#define PATIENCE_MS 120000
#elif defined(__SANITIZE_THREAD__)
#define PATIENCE_MS 120000
#else
#define PATIENCE_MS 20000
#endif

void test_dir_make(struct test_dir *dir)
{
    (void)snprintf(dir->path, sizeof dir->path, "/tmp/weir-predict-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir->path));
}

void test_dir_drop(struct test_dir *dir)
{
    struct weir_error err;
    ck_assert_msg(weir_dir_remove(dir->path, &err) == WEIR_OK, "%s", err.message);
}

const char *test_path(const struct test_dir *dir, const char *fmt, ...)
{
    static _Thread_local char ring[16][256];
    static _Thread_local unsigned i_next;
    char *out = ring[i_next++ % 16];
    va_list args;
    va_start(args, fmt);
    int n = snprintf(out, sizeof ring[0], "%s/", dir->path);
    (void)vsnprintf(out + n, sizeof ring[0] - (size_t)n, fmt, args);
    va_end(args);
    return out;
}

bool test_wait(bool (*is_done)(void *context), void *context)
{
    int64_t deadline_ms = weir_mono_ms() + PATIENCE_MS;
    while (!is_done(context)) {
        if (weir_mono_ms() > deadline_ms) {
            return false;
        }
        (void)poll(NULL, 0, 2);
    }
    return true;
}

size_t test_picture(int i_person, int i_photo, char out[1024])
{
    struct weir_rng face, noise;
    weir_rng_init(&face, 77, (uint64_t)i_person);
    weir_rng_init(&noise, 78, (uint64_t)i_person * 1000 + (uint64_t)i_photo);
    int n = snprintf(out, 1024, "P5 %d %d 255\n", TEST_SIDE, TEST_SIDE);
    for (int i = 0; i < TEST_SIDE * TEST_SIDE; i++) {
        uint64_t value = 20 + weir_rng_below(&face, 200) + weir_rng_below(&noise, 30);
        out[n++] = (char)(unsigned char)value;
    }
    return (size_t)n;
}

void test_write_file(const char *path, const void *bytes, size_t len)
{
    char temporary[300];
    const char *slash = strrchr(path, '/');
    (void)snprintf(temporary, sizeof temporary, "%.*s/.new-%s", (int)(slash - path), path,
                   slash + 1);
    ck_assert_int_eq(weir_file_write(temporary, bytes, len, 0644, NULL), WEIR_OK);
    ck_assert_int_eq(rename(temporary, path), 0);
}

void test_write_model(const char *path, uint64_t seed, const char *baseline)
{
    static const char text[] = "{\"input\":[1,16,16],\"layers\":["
                               "{\"name\":\"fc1\",\"type\":\"linear\",\"k\":64},"
                               "{\"name\":\"act\",\"type\":\"prelu\"},"
                               "{\"name\":\"fc2\",\"type\":\"linear\",\"k\":32},"
                               "{\"name\":\"unit\",\"type\":\"l2_normalise\"}],"
                               "\"loss\":{\"type\":\"margin\"}}";
    struct weir_error err = {0};
    ck_assert_msg(test_model_save(path, text, seed, baseline, &err) == WEIR_OK, "%s", err.message);
}

void test_write_classifier(const char *path, uint64_t seed, const char *baseline)
{
    static const char text[] = "{\"input\":[1,16,16],\"layers\":["
                               "{\"name\":\"fc1\",\"type\":\"linear\",\"k\":8},"
                               "{\"name\":\"act\",\"type\":\"relu\"},"
                               "{\"name\":\"fc2\",\"type\":\"linear\",\"k\":\"classes\"}],"
                               "\"loss\":{\"type\":\"softmax\"}}";
    struct weir_error err = {0};
    ck_assert_msg(test_model_save(path, text, seed, baseline, &err) == WEIR_OK, "%s", err.message);
}

const char *test_write_spec(const struct test_dir *dir, int server_port, const char *source,
                            const char *sink)
{
    struct weir_error err = {0};
    const char *path = test_path(dir, "spec.json");
    json_t *spec = json_pack("{s:s,s:s,s:s,s:s,s:i}", "ion", "building", "pipeline", "entrance",
                             "replica", "job-0", "dir", test_path(dir, "replica"), "replicas", 1);
    if (server_port != 0) {
        json_object_set_new(spec, "server", json_sprintf("http://127.0.0.1:%d", server_port));
        json_object_set_new(spec, "token_file", json_string(test_path(dir, "token")));
        test_write_file(test_path(dir, "token"), "weir_test\n", 10);
    }
    json_object_set_new(spec, "source", json_loads(source, 0, NULL));
    json_object_set_new(spec, "sinks",
                        sink != NULL ? json_pack("[{s:s,s:s}]", "kind", "jsonl", "path", sink)
                                     : json_array());
    char *text = json_dumps(spec, JSON_INDENT(1));
    ck_assert_msg(weir_file_write_atomic(path, text, strlen(text), 0644, &err) == WEIR_OK, "%s",
                  err.message);
    free(text);
    json_decref(spec);
    return path;
}

/* ---- a replica in this process ----------------------------------------------------------------
 */

static struct weir_arena spec_arena;
static struct predict_spec spec;

struct replica *test_replica_start(const struct test_dir *dir, int server_port, const char *source,
                                   const char *sink)
{
    struct weir_error err = {0};
    struct replica *replica;
    weir_arena_init(&spec_arena, 0);
    const char *path = test_write_spec(dir, server_port, source, sink);
    ck_assert_msg(predict_spec_load(path, &spec_arena, &spec, &err) == WEIR_OK, "%s", err.message);
    ck_assert_msg(replica_start(&spec, &replica, &err) == WEIR_OK, "%s", err.message);
    return replica;
}

void test_replica_stop(struct replica *replica)
{
    replica_stop(replica);
    predict_spec_fini(&spec);
    weir_arena_fini(&spec_arena);
}

const char *test_directory_source(const struct test_dir *dir)
{
    static char text[256];
    (void)snprintf(text, sizeof text, "{\"kind\":\"directory\",\"path\":\"%s/frames\"}", dir->path);
    return text;
}

void test_put_frame(const struct test_dir *dir, const char *camera, int64_t frame,
                    const void *bytes, size_t len)
{
    struct weir_error err;
    ck_assert_int_eq(weir_dir_make(test_path(dir, "frames/%s", camera), 0755, &err), WEIR_OK);
    test_write_file(test_path(dir, "frames/%s/%06lld.pgm", camera, (long long)frame), bytes, len);
}

size_t test_count_files(const char *path)
{
    DIR *stream = opendir(path);
    size_t n = 0;
    const struct dirent *entry;
    while (stream != NULL && (entry = readdir(stream)) != NULL) {
        n += entry->d_name[0] != '.';
    }
    if (stream != NULL) {
        closedir(stream);
    }
    return n;
}

const char *test_text(const json_t *decision, const char *key)
{
    const char *text = json_string_value(json_object_get(decision, key));
    return text != NULL ? text : "";
}

int64_t test_int(const json_t *decision, const char *key)
{
    return json_integer_value(json_object_get(decision, key));
}

int test_post_frame(struct weir_http_client *client, const char *url, const char *camera,
                    int64_t frame, const void *bytes, size_t len, const char *token, json_t **out)
{
    char name[128];
    (void)snprintf(name, sizeof name, "%s/%lld", camera, (long long)frame);
    return test_post_named(client, url, name, bytes, len, token, out);
}

int test_post_named(struct weir_http_client *client, const char *url, const char *name,
                    const void *bytes, size_t len, const char *token, json_t **out)
{
    struct weir_error err = {0};
    struct weir_http_client *own = NULL;
    struct weir_http_reply reply;
    char target[256];
    (void)snprintf(target, sizeof target, "%s/frames/%s", url, name);
    if (client == NULL) {
        ck_assert_int_eq(weir_http_client_open(&(struct weir_http_client_config){0}, &own, &err),
                         WEIR_OK);
    }
    const struct weir_http_call call = {.method = "POST",
                                        .url = target,
                                        .bearer = token,
                                        .content_type = "application/octet-stream",
                                        .body = bytes,
                                        .body_len = len,
                                        .timeout_ms = PATIENCE_MS};
    weir_status status = weir_http_client_call(client != NULL ? client : own, &call, &reply, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    int http_status = reply.http_status;
    if (out != NULL) {
        *out = json_loadb(reply.body.data, reply.body.len, 0, NULL);
    }
    weir_http_reply_fini(&reply);
    if (own != NULL) {
        weir_http_client_close(own);
    }
    return http_status;
}

const char *test_endpoint(const struct test_dir *dir)
{
    static char url[128];
    json_t *json;
    struct weir_error err = {0};
    weir_status status = weir_json_load(test_path(dir, "replica/endpoint.json"), 4096, &json, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    (void)snprintf(url, sizeof url, "%s", test_text(json, "url"));
    json_decref(json);
    return url;
}

void test_outbox_put(struct outbox *outbox, const char *id, const char *camera, int64_t frame,
                     void *ticket)
{
    struct outbox_item item = {
        .decision = decision_create(), .received_ns = weir_mono_ns(), .ticket = ticket};
    (void)snprintf(item.decision->id, sizeof item.decision->id, "%s", id);
    item.decision->camera = camera;
    item.decision->frame = frame;
    outbox_put(outbox, &item);
}

struct wanted {
    struct test_server *server;
    size_t n;
};

static bool has_decisions(void *context)
{
    const struct wanted *wanted = context;
    return test_server_n_decisions(wanted->server, NULL) >= wanted->n;
}

void test_wait_for_decisions(struct test_server *server, size_t n)
{
    struct wanted wanted = {server, n};
    ck_assert_msg(test_wait(has_decisions, &wanted), "only %zu of %zu decisions came",
                  test_server_n_decisions(server, NULL), n);
}
