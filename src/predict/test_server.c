/* The part of Weir's server that a replica talks to, in memory. */
#include "base/base64.h"
#include "base/clock.h"
#include "base/log.h"
#include "endpoint/stage.h"
#include "http/http.h"
#include "predict/test_support.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

struct test_server {
    struct weir_http_server *http;
    char blob_dir[128];
    pthread_mutex_t lock;
    json_t *deployment; /**< NULL: none yet. */
    int64_t revision;
    json_t *decisions; /**< "camera/frame" → record. */
    json_t *health_reports;
    json_t *thresholds;
    json_t *heartbeats;
    json_t *desk;        /**< What is asked of the replica's desk; NULL: nothing. */
    json_t *desk_said;   /**< What it sent. */
    int64_t n_desk_asks; /**< The revision. */
    size_t n_again;
    size_t most_at_once;   /**< Decisions of a call; 0: any number. */
    int64_t refused_frame; /**< A decision about it is too large; 0: none is. */
    bool is_down;
};

static const char *blob_path(const struct test_server *server, const char *digest, char out[256])
{
    (void)snprintf(out, 256, "%s/%s", server->blob_dir, digest);
    return out;
}

static void answer_deployment(struct test_server *server, struct weir_http_request *request,
                              struct weir_http_response *response)
{
    const char *after = weir_http_request_query(request, "after");
    bool is_new = server->deployment != NULL && server->revision > strtoll(after, NULL, 10);
    if (!is_new && !request->is_expired) {
        weir_http_response_wait(response, 1, 5000);
        return;
    }
    json_t *reply = server->deployment != NULL ? json_deep_copy(server->deployment) : json_object();
    json_object_set_new(reply, "revision", json_integer(server->revision));
    weir_http_response_json(response, 200, reply);
}

/* As the real server: the picture is kept under the digest that the decision names. */
static void take_picture(struct test_server *server, json_t *decision)
{
    static char bytes[1 << 20];
    char path[256], digest[WEIR_SHA256_TEXT_BYTES];
    size_t len;
    const char *picture = json_string_value(json_object_get(decision, "picture"));
    if (picture != NULL) {
        ck_assert_int_eq(weir_base64_decode(picture, bytes, sizeof bytes, &len), WEIR_OK);
        weir_sha256(bytes, len, digest);
        ck_assert_str_eq(digest, json_string_value(json_object_get(decision, "image")));
        test_write_file(blob_path(server, digest, path), bytes, len);
        json_object_del(decision, "picture");
    }
    ck_assert(picture != NULL || json_object_get(decision, "film") == NULL);
}

/* As the real server where a call or a decision is over one of its limits. */
static bool is_too_large(const struct test_server *server, const json_t *decisions)
{
    size_t i;
    const json_t *decision;
    json_array_foreach(decisions, i, decision)
    {
        if (server->refused_frame != 0 && test_int(decision, "frame") == server->refused_frame) {
            return true;
        }
    }
    return server->most_at_once != 0 && json_array_size(decisions) > server->most_at_once;
}

static void take_decisions(struct test_server *server, struct weir_http_request *request,
                           struct weir_http_response *response)
{
    json_t *body = json_loadb(request->body, request->body_len, 0, NULL), *decision;
    size_t i;
    if (is_too_large(server, json_object_get(body, "decisions"))) {
        weir_http_response_errorf(response, WEIR_ERR_LIMIT, "$.decisions: too large");
        json_decref(body);
        return;
    }
    json_array_foreach(json_object_get(body, "decisions"), i, decision)
    {
        char key[128];
        take_picture(server, decision);
        (void)snprintf(key, sizeof key, "%s/%lld",
                       json_string_value(json_object_get(decision, "camera")),
                       (long long)json_integer_value(json_object_get(decision, "frame")));
        if (json_object_get(server->decisions, key) != NULL) {
            server->n_again++;
        } else {
            json_object_set(server->decisions, key, decision);
        }
    }
    json_decref(body);
    weir_http_response_json(response, 200, json_object());
}

static void handle_blob(struct test_server *server, struct weir_http_request *request,
                        struct weir_http_response *response)
{
    char path[256], digest[WEIR_SHA256_TEXT_BYTES];
    blob_path(server, request->segments[3], path);
    if (strcmp(request->method, "PUT") == 0) {
        weir_sha256(request->body, request->body_len, digest);
        if (strcmp(digest, request->segments[3]) != 0) {
            weir_http_response_errorf(response, WEIR_ERR_INVALID, "another digest");
            return;
        }
        test_write_file(path, request->body, request->body_len);
        weir_http_response_json(response, 200, json_object());
    } else {
        weir_http_response_file(response, 200, "application/octet-stream", path);
    }
}

/* As the real server: a look is handed out once. */
static void answer_desk(struct test_server *server, struct weir_http_request *request,
                        struct weir_http_response *response)
{
    bool says = strcmp(request->method, "POST") == 0;
    const char *after = weir_http_request_query(request, "after");
    if (says && request->state == NULL) {
        json_array_append_new(server->desk_said,
                              json_loadb(request->body, request->body_len, 0, NULL));
    }
    if (!says && server->n_desk_asks == strtoll(after, NULL, 10) && !request->is_expired) {
        weir_http_response_wait(response, 1, 5000);
        return;
    }
    json_t *reply = server->desk != NULL ? json_deep_copy(server->desk) : json_object();
    json_object_set_new(reply, "revision", json_integer(server->n_desk_asks));
    json_object_del(server->desk, "looks");
    weir_http_response_json(response, 200, reply);
}

static bool is_desk(const struct weir_http_request *request)
{
    return request->n_segments == 9 && strcmp(request->segments[8], "desk") == 0;
}

static void handle(void *context, struct weir_http_request *request,
                   struct weir_http_response *response)
{
    struct test_server *server = context;
    const char *what = request->n_segments > 2 ? request->segments[2] : "";
    pthread_mutex_lock(&server->lock);
    if (server->is_down) {
        weir_http_response_errorf(response, WEIR_ERR_UNAVAILABLE, "down");
    } else if (is_desk(request)) {
        answer_desk(server, request, response);
    } else if (strcmp(what, "ions") == 0 && strcmp(request->method, "PUT") == 0) {
        bool is_heartbeat = strcmp(request->segments[6], "replicas") == 0;
        json_array_append_new(is_heartbeat ? server->heartbeats : server->thresholds,
                              json_loadb(request->body, request->body_len, 0, NULL));
        weir_http_response_empty(response);
    } else if (strcmp(what, "ions") == 0) {
        answer_deployment(server, request, response);
    } else if (strcmp(what, "decisions") == 0) {
        take_decisions(server, request, response);
    } else if (strcmp(what, "health-reports") == 0) {
        json_array_append_new(server->health_reports,
                              json_loadb(request->body, request->body_len, 0, NULL));
        weir_http_response_empty(response);
    } else if (strcmp(what, "blobs") == 0) {
        handle_blob(server, request, response);
    } else {
        weir_http_response_errorf(response, WEIR_ERR_NOT_FOUND, "no such thing");
    }
    pthread_mutex_unlock(&server->lock);
}

struct test_server *test_server_start(const struct test_dir *dir, int port)
{
    char listen[32];
    struct weir_error err = {0};
    struct test_server *server = calloc(1, sizeof *server);
    ck_assert_ptr_nonnull(server);
    (void)snprintf(server->blob_dir, sizeof server->blob_dir, "%s/blobs", dir->path);
    (void)snprintf(listen, sizeof listen, "127.0.0.1:%d", port);
    ck_assert_int_eq(weir_dir_make(server->blob_dir, 0755, &err), WEIR_OK);
    pthread_mutex_init(&server->lock, NULL);
    server->decisions = json_object();
    server->health_reports = json_array();
    server->thresholds = json_array();
    server->heartbeats = json_array();
    server->desk_said = json_array();
    const struct weir_http_config config = {.listen = listen, .n_handlers = 2, .n_io_threads = 1};
    ck_assert_msg(weir_http_server_start(&config, handle, server, &server->http, &err) == WEIR_OK,
                  "%s", err.message);
    return server;
}

void test_server_stop(struct test_server *server)
{
    weir_http_server_stop(server->http, 1000);
    json_decref(server->deployment);
    json_decref(server->decisions);
    json_decref(server->health_reports);
    json_decref(server->thresholds);
    json_decref(server->heartbeats);
    json_decref(server->desk);
    json_decref(server->desk_said);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

int test_server_port(const struct test_server *server)
{
    return weir_http_server_port(server->http);
}

void test_server_blob(struct test_server *server, const char *path, char out[65])
{
    struct weir_arena arena;
    struct weir_error err = {0};
    char *data, to[256];
    size_t len;
    weir_arena_init(&arena, 0);
    ck_assert_msg(weir_file_read(path, 1 << 24, &arena, &data, &len, &err) == WEIR_OK, "%s",
                  err.message);
    weir_sha256(data, len, out);
    test_write_file(blob_path(server, out, to), data, len);
    weir_arena_fini(&arena);
}

void test_server_deploy(struct test_server *server, json_t *deployment)
{
    pthread_mutex_lock(&server->lock);
    json_decref(server->deployment);
    server->deployment = deployment;
    server->revision++;
    pthread_mutex_unlock(&server->lock);
    weir_http_wake(server->http, 1);
}

void test_server_ask_desk(struct test_server *server, json_t *asked)
{
    pthread_mutex_lock(&server->lock);
    json_decref(server->desk);
    server->desk = asked;
    server->n_desk_asks++;
    pthread_mutex_unlock(&server->lock);
    weir_http_wake(server->http, 1);
}

json_t *test_server_desk_said(struct test_server *server, const char *list)
{
    size_t i;
    json_t *one, *all = json_array();
    pthread_mutex_lock(&server->lock);
    json_array_foreach(server->desk_said, i, one)
    {
        json_t *copy = json_deep_copy(json_object_get(one, list));
        json_array_extend(all, copy);
        json_decref(copy);
    }
    pthread_mutex_unlock(&server->lock);
    return all;
}

void test_server_set_down(struct test_server *server, bool is_down)
{
    pthread_mutex_lock(&server->lock);
    server->is_down = is_down;
    pthread_mutex_unlock(&server->lock);
    weir_http_wake(server->http, 1);
}

void test_server_limit(struct test_server *server, size_t most_at_once, int64_t refused_frame)
{
    pthread_mutex_lock(&server->lock);
    server->most_at_once = most_at_once;
    server->refused_frame = refused_frame;
    pthread_mutex_unlock(&server->lock);
}

size_t test_server_n_decisions(struct test_server *server, size_t *out_n_again)
{
    pthread_mutex_lock(&server->lock);
    size_t n = json_object_size(server->decisions);
    if (out_n_again != NULL) {
        *out_n_again = server->n_again;
    }
    pthread_mutex_unlock(&server->lock);
    return n;
}

json_t *test_server_decision(struct test_server *server, const char *camera, int64_t frame)
{
    char key[128];
    (void)snprintf(key, sizeof key, "%s/%lld", camera, (long long)frame);
    pthread_mutex_lock(&server->lock);
    json_t *decision = json_deep_copy(json_object_get(server->decisions, key));
    pthread_mutex_unlock(&server->lock);
    return decision;
}

json_t *test_server_health_reports(struct test_server *server)
{
    pthread_mutex_lock(&server->lock);
    json_t *reports = json_deep_copy(server->health_reports);
    pthread_mutex_unlock(&server->lock);
    return reports;
}

json_t *test_server_thresholds(struct test_server *server)
{
    pthread_mutex_lock(&server->lock);
    json_t *thresholds = json_deep_copy(server->thresholds);
    pthread_mutex_unlock(&server->lock);
    return thresholds;
}

json_t *test_server_heartbeat(struct test_server *server)
{
    pthread_mutex_lock(&server->lock);
    size_t n = json_array_size(server->heartbeats);
    json_t *last =
        n > 0 ? json_deep_copy(json_array_get(server->heartbeats, n - 1)) : json_object();
    pthread_mutex_unlock(&server->lock);
    return last;
}

bool test_server_has_blob(struct test_server *server, const char *digest)
{
    char path[256];
    return weir_path_exists(blob_path(server, digest, path));
}

static json_t *write_people(struct test_server *server, const struct test_dir *dir,
                            const char *folder, int first, int n_people, int n_photos)
{
    struct weir_error err = {0};
    json_t *files = json_array();
    for (int i = 0; i < n_people * n_photos; i++) {
        char bytes[1024], digest[65];
        int person = first + i / n_photos, photo = i % n_photos;
        size_t len = test_picture(person, photo, bytes);
        const char *path = test_path(dir, "%s/p%02d/%d.pgm", folder, person, photo);
        ck_assert_int_eq(weir_dir_make(test_path(dir, "%s/p%02d", folder, person), 0755, &err),
                         WEIR_OK);
        test_write_file(path, bytes, len);
        test_server_blob(server, path, digest);
        json_array_append_new(
            files, json_pack("{s:o,s:o,s:s,s:i}", "class", json_sprintf("p%02d", person), "file",
                             json_sprintf("%d.pgm", photo), "sha256", digest, "bytes", (int)len));
    }
    return files;
}

static void put_manifest(struct test_server *server, const struct test_dir *dir, json_t *files,
                         char out_digest[65])
{
    json_t *manifest = json_pack("{s:s,s:o}", "dataset", "people", "files", files);
    char *text = json_dumps(manifest, JSON_COMPACT);
    const char *path = test_path(dir, "manifest.json");
    test_write_file(path, text, strlen(text));
    test_server_blob(server, path, out_digest);
    free(text);
    json_decref(manifest);
}

json_t *test_impostors(struct test_server *server, const struct test_dir *dir, int first,
                       int n_people, int n_photos, int64_t version)
{
    char digest[65];
    json_t *files = write_people(server, dir, "impostors", first, n_people, n_photos);
    put_manifest(server, dir, files, digest);
    return json_pack("{s:s,s:I,s:s,s:s,s:s}", "dataset", "passers-by", "version",
                     (json_int_t)version, "path", test_path(dir, "impostors"), "digest", digest,
                     "blob", digest);
}

json_t *test_deployment(struct test_server *server, const struct test_dir *dir, const char *model,
                        int64_t model_version, int n_people, int n_photos, int64_t gallery_version,
                        bool with_path)
{
    char model_digest[65], manifest_digest[65];
    test_server_blob(server, model, model_digest); /* First: test_path gives its buffers again. */
    put_manifest(server, dir, write_people(server, dir, "people", 0, n_people, n_photos),
                 manifest_digest);
    return json_pack("{s:{s:s,s:I,s:s,s:s},s:{s:s,s:I,s:s,s:s,s:s},s:i,s:{s:[],s:[]},s:s,s:f}",
                     "model", "name", "face-embed", "version", (json_int_t)model_version, "id",
                     model_digest, "blob", model_digest, "gallery", "dataset", "people", "version",
                     (json_int_t)gallery_version, "path",
                     with_path ? test_path(dir, "people") : "/nowhere", "digest", manifest_digest,
                     "blob", manifest_digest, "list_revision", 1, "lists", "allow", "deny",
                     "default", "allow", "false_accept_rate", 0.01);
}

json_t *test_classifier_deployment(struct test_server *server, const char *model,
                                   int64_t model_version, const char *stages)
{
    char digest[65];
    test_server_blob(server, model, digest);
    json_t *chain = json_loads(stages != NULL ? stages : weir_stages_default(false), 0, NULL);
    ck_assert_ptr_nonnull(chain);
    return json_pack("{s:{s:s,s:I,s:s,s:s},s:n,s:o,s:i,s:{s:[],s:[]},s:s}", "model", "name",
                     "sorter", "version", (json_int_t)model_version, "id", digest, "blob", digest,
                     "gallery", "stages", chain, "list_revision", 1, "lists", "allow", "deny",
                     "default", "unknown");
}
