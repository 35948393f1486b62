/** For test and fuzz target: the API over a store of its own, and requests made as the HTTP server
 *  makes them, without a network. */
#ifndef WEIR_API_REQUEST_FIXTURE_H
#define WEIR_API_REQUEST_FIXTURE_H

#include "api/api.h"
#include "base/file.h"
#include "http/server_private.h"
#include "nouns/nouns.h"
#include "store/identity.h"
#include "store/store_template.h"
#include "store/table.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const unsigned char fixture_task_key[32] = "the key of the tests";

struct request_fixture {
    const struct weir_clock *clock; /**< Set before it is opened; NULL: the system's. */
    const char *remote;             /**< From where requests come; NULL: 127.0.0.1. */
    const char *proofs;             /**< As weir_api_config has them; NULL: the default. */
    const struct weir_registry *proof_kinds;
    const struct weir_registry *drivers;
    char dir[64];
    char bearer[WEIR_SECRET_BYTES + sizeof "Bearer "];
    struct weir_store *store;
    struct weir_blobs *blobs;
    struct weir_retainer *retainer; /**< Without a thread. */
    struct weir_packs *pictures;
    struct weir_api *api;
};

static inline void must(weir_status status, const struct weir_error *err)
{
    if (status != WEIR_OK) {
        (void)fprintf(stderr, "%s: %s\n", weir_status_name(status), err->message);
        abort();
    }
}

static inline weir_status make_admin(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static char name[] = "ann", kind[] = "person", role[] = "admin", id[] = "token-of-ann";
    char hash[WEIR_SHA256_TEXT_BYTES];
    struct weir_project project = {.name = "default", .description = "", .created_ms = 1};
    struct weir_user user = {.name = name, .kind = kind, .role = role, .created_ms = 1};
    struct weir_token token = {.id = id, .user = name, .name = "t", .role = role, .created_ms = 1};
    weir_secret_hash(context, hash);
    token.secret_hash = hash;
    WEIR_TRY(weir_txn_insert(txn, &weir_project_resource, &project, err));
    WEIR_TRY(weir_txn_insert(txn, &weir_user_resource, &user, err));
    return weir_txn_insert(txn, &weir_token_resource, &token, err);
}

static inline void request_fixture_close(struct request_fixture *fixture)
{
    struct weir_error err;
    weir_api_destroy(fixture->api);
    weir_retainer_destroy(fixture->retainer);
    weir_packs_close(fixture->pictures);
    weir_blobs_close(fixture->blobs);
    weir_store_close(fixture->store);
    if (fixture->dir[0] != '\0') {
        must(weir_dir_remove(fixture->dir, &err), &err);
    }
    memset(fixture, 0, sizeof *fixture);
}

#define FIXTURE_NAME "weir-request-fixture-"

/** Folders of programs that ended without closing theirs: killed, or by abort(). */
static inline void request_fixture_sweep(const char *base)
{
    DIR *folder = opendir(base);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char path[sizeof "/dev/shm/" + sizeof entry->d_name];
        struct weir_error ignored;
        long pid = strncmp(entry->d_name, FIXTURE_NAME, strlen(FIXTURE_NAME)) == 0
                       ? strtol(entry->d_name + strlen(FIXTURE_NAME), NULL, 10)
                       : 0;
        if (pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH) {
            (void)snprintf(path, sizeof path, "%s/%s", base, entry->d_name);
            weir_status status = weir_dir_remove(path, &ignored);
            (void)status; /* another does it at the same time */
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
}

/** Looks at model files as the tests say: what begins with "bad" is no model; a JSON array in one is
 *  the list of its inputs. */
static inline weir_status fixture_inspect(void *context, const struct inspect_request *request,
                                          struct weir_arena *arena, char **out,
                                          struct weir_error *err)
{
    char *text;
    size_t len;
    (void)context;
    WEIR_TRY(weir_file_read(request->path, 1 << 20, arena, &text, &len, err));
    if (len >= 3 && memcmp(text, "bad", 3) == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s: the file is neither Weir's nor ONNX",
                              request->name);
    }
    const char *inputs = strchr(text, '[');
    *out = weir_arena_printf(arena,
                             "{\"format\":\"onnx\",\"executor\":\"onnx\",\"why\":\"Weir runs it\","
                             "\"inputs\":%s,\"outputs\":[],\"is_batched\":true,\"picture\":%s,"
                             "\"output_kind\":\"logits\",\"labels\":%s}",
                             inputs != NULL ? inputs : "[]",
                             request->preprocess != NULL ? "{}" : "null",
                             request->labels != NULL ? "[\"cat\"]" : "null");
    return WEIR_OK;
}

/** Open a store with the project "default" and an admin. */
/** Its API, on what else is open. */
static inline void request_fixture_start_api(struct request_fixture *fixture)
{
    struct weir_error err;
    struct weir_api_config config = {.store = fixture->store,
                                     .blobs = fixture->blobs,
                                     .retainer = fixture->retainer,
                                     .pictures = fixture->pictures,
                                     .clock = fixture->clock,
                                     .state_dir = fixture->dir,
                                     .task_key = fixture_task_key,
                                     .inspect = fixture_inspect,
                                     .proofs = fixture->proofs,
                                     .proof_kinds = fixture->proof_kinds,
                                     .drivers = fixture->drivers,
                                     .server_url = "http://127.0.0.1:1"};
    must(weir_api_create(&config, &fixture->api, &err), &err);
}

static inline void request_fixture_open(struct request_fixture *fixture)
{
    struct weir_error err;
    char path[128], secret[WEIR_SECRET_BYTES];
    /* In memory: a transaction waits for the disk. */
    const char *base = weir_path_is_dir("/dev/shm") ? "/dev/shm" : "/tmp";
    request_fixture_sweep(base);
    (void)snprintf(fixture->dir, sizeof fixture->dir, "%s/" FIXTURE_NAME "%ld-XXXXXX", base,
                   (long)getpid());
    if (mkdtemp(fixture->dir) == NULL) {
        abort();
    }
    (void)snprintf(path, sizeof path, "%s/weir.db", fixture->dir);
    must(store_template_lay(path, &err), &err);
    const struct weir_store_config config = {.path = path, .n_readers = 1, .noun_at = weir_noun_at};
    must(weir_store_open(&config, &fixture->store, &err), &err);
    (void)snprintf(path, sizeof path, "%s/blobs", fixture->dir);
    must(weir_blobs_open(path, &fixture->blobs, &err), &err);
    (void)snprintf(path, sizeof path, "%s/pictures", fixture->dir);
    must(weir_packs_open(path, 0, &fixture->pictures, &err), &err);
    fixture->retainer =
        weir_retainer_create(&(struct weir_retainer_config){.store = fixture->store,
                                                            .blobs = fixture->blobs,
                                                            .pictures = fixture->pictures,
                                                            .state_dir = fixture->dir});
    request_fixture_start_api(fixture);
    weir_secret_make(secret);
    (void)snprintf(fixture->bearer, sizeof fixture->bearer, "Bearer %s", secret);
    must(weir_store_write(fixture->store, make_admin, secret, &err), &err);
}

static inline void read_headers(struct request_fixture *fixture, struct http_exchange *x,
                                char **rest)
{
    bool has_authorization = false;
    while (*rest != NULL && **rest != '\0' && **rest != '\n') {
        char *line = strsep(rest, "\n"), *value = strchr(line, ':');
        if (value != NULL) {
            *value++ = '\0';
            request_add_header(x, line, value + strspn(value, " "));
            has_authorization = has_authorization || strcasecmp(line, "Authorization") == 0;
        }
    }
    if (!has_authorization) {
        request_add_header(x, "Authorization", fixture->bearer);
    }
    if (*rest != NULL && **rest == '\n') {
        ++*rest;
    }
}

/* As the server does for a route that takes its body as a file. */
static inline void give_body(struct request_fixture *fixture, struct http_exchange *x,
                             const char *body, size_t len)
{
    struct weir_http_body_rule rule = {.max_bytes = 1 << 20};
    weir_api_body_rule(fixture->api, &x->request, &rule);
    if (!rule.to_file) {
        x->request.body = weir_arena_memdup(&x->arena, body, len);
        x->request.body_len = len;
        return;
    }
    char *path = weir_arena_printf(&x->arena, "%s/upload", fixture->dir);
    struct weir_error err;
    must(weir_file_write_atomic(path, body, len, 0600, &err), &err);
    x->request.body = "";
    x->request.body_file = path;
    x->request.body_file_bytes = len;
    weir_sha256(body, len, x->upload_sha256);
    x->request.body_file_sha256 = x->upload_sha256;
}

/**
 * A request of "METHOD target", header lines, an empty line and the body (copied). An
 * admin's token is added where there is no Authorization. NULL if the target is malformed.
 */
static inline struct http_exchange *request_fixture_make(struct request_fixture *fixture,
                                                         const char *bytes, size_t len)
{
    struct http_exchange *x = calloc(1, sizeof *x);
    if (x == NULL) {
        abort();
    }
    weir_arena_init(&x->arena, REQUEST_ARENA_MAX_BYTES);
    x->request.arena = &x->arena;
    x->request.remote = fixture->remote != NULL ? fixture->remote : "127.0.0.1";
    char *text = weir_arena_memdup(&x->arena, bytes, len);
    const char *end = text + len;
    char *rest = text, *line = strsep(&rest, "\n");
    x->request.method = strsep(&line, " ");
    x->target = line != NULL ? line : "/";
    read_headers(fixture, x, &rest);
    if (request_read_target(x, NULL) != WEIR_OK) {
        weir_arena_fini(&x->arena);
        free(x);
        return NULL;
    }
    give_body(fixture, x, rest != NULL ? rest : "", rest != NULL ? (size_t)(end - rest) : 0);
    return x;
}

static inline void request_fixture_free(struct http_exchange *x)
{
    if (x != NULL) {
        response_fini(&x->response);
        weir_arena_fini(&x->arena);
        free(x);
    }
}

/** Let the API answer, or answer anew. */
static inline void request_fixture_handle(struct request_fixture *fixture, struct http_exchange *x)
{
    response_fini(&x->response);
    response_init(&x->response);
    weir_api_handle(fixture->api, &x->request, &x->response);
}

#endif
