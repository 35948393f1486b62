/*
 * A folder that is carried between nodes that are lost, over a server that fails now and then: what the next node
 * finds is what the folder once was, and after an end in order what it was last.
 */
#include "agent/supervise/carry.h"

#include "blob/kept_folder.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/test_main.h"
#include "http/http.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_NAMES  5
#define N_NODES  8
#define N_STATES 600
#define N_CHARS  8
#define QUIET_MS 30
#define TICK_MS  5

static const char *const names[N_NAMES] = {"last.pt", "best.pt", "meta", "shards/0",
                                           "shards/deep/1"};

/** What each name holds; "": there is no file. */
struct content {
    char text[N_NAMES][N_CHARS + 1];
};

static struct {
    struct weir_http_server *http;
    char dir[WEIR_DIR_TEMPORARY_BYTES + 16], url[64];
    atomic_int n_calls, n_changes;
    atomic_bool is_flaky;
    pthread_mutex_t lock; /* guards what follows, and the folder */
    char token[16];       /* The node's that has the job: what another asks for late is not done. */
} server;

static char root[WEIR_DIR_TEMPORARY_BYTES];
static struct weir_arena arena;
static struct weir_error err;
static struct weir_rng rng;
static struct content now, states[N_STATES]; /* every state that there was since the last fetch */
static size_t n_states;

/* ---- the server ----------------------------------------------------------------------------------- */

static void answer_list(struct weir_arena *memory, struct weir_http_response *response,
                        const char *member, json_t *items)
{
    struct weir_kept kept;
    struct weir_error problem;
    if (weir_kept_list(server.dir, memory, &kept, &problem) != WEIR_OK) {
        weir_http_response_errorf(response, WEIR_ERR_IO, "%s", problem.message);
        json_decref(items);
        return;
    }
    for (size_t i = 0; i < kept.n && strcmp(member, "files") == 0; i++) {
        json_array_append_new(items, json_pack("{s:s}", "path", kept.files[i].path));
    }
    weir_http_response_json(response, 200,
                            json_pack("{s:o,s:s}", member, items, "version", kept.version));
}

static void take_part(struct weir_http_request *request, struct weir_http_response *response)
{
    char file[sizeof server.dir + 64], sha256[WEIR_SHA256_TEXT_BYTES];
    const char *part = request->segments[request->n_segments - 1];
    (void)snprintf(file, sizeof file, "%s.upload-%d", server.dir, atomic_load(&server.n_calls));
    weir_sha256(request->body, request->body_len, sha256);
    struct weir_error problem;
    if (strncmp(part, sha256, strlen(sha256)) != 0) {
        weir_http_response_errorf(response, WEIR_ERR_CORRUPT, "other bytes");
    } else if (weir_file_write(file, request->body, request->body_len, 0600, &problem) != WEIR_OK ||
               weir_kept_part(server.dir, part, file, &problem) != WEIR_OK) {
        weir_http_response_errorf(response, WEIR_ERR_IO, "%s", problem.message);
    } else {
        weir_http_response_empty(response);
    }
}

static void make_change(struct weir_http_request *request, struct weir_arena *memory,
                        struct weir_http_response *response)
{
    json_t *body = json_loadb(request->body, request->body_len, 0, NULL);
    const json_t *put = json_object_get(body, "put"), *removed = json_object_get(body, "remove");
    struct weir_kept_put *puts =
        WEIR_ARENA_ARRAY(memory, json_array_size(put) + 1, struct weir_kept_put);
    const char **gone = WEIR_ARENA_ARRAY(memory, json_array_size(removed) + 1, const char *),
               **missing;
    for (size_t i = 0; i < json_array_size(put); i++) {
        const json_t *item = json_array_get(put, i);
        puts[i] = (struct weir_kept_put){json_string_value(json_object_get(item, "path")),
                                         json_string_value(json_object_get(item, "part"))};
    }
    for (size_t i = 0; i < json_array_size(removed); i++) {
        gone[i] = json_string_value(json_array_get(removed, i));
    }
    const struct weir_kept_change change = {puts, json_array_size(put), gone,
                                            json_array_size(removed)};
    struct weir_error problem;
    size_t n_missing;
    if (weir_kept_change(server.dir, &change, memory, &missing, &n_missing, &problem) != WEIR_OK) {
        weir_http_response_errorf(response, WEIR_ERR_IO, "%s", problem.message);
    } else {
        json_t *list = json_array();
        for (size_t i = 0; i < n_missing; i++) {
            json_array_append_new(list, json_string(missing[i]));
        }
        atomic_fetch_add(&server.n_changes, n_missing == 0);
        answer_list(memory, response, "missing", list);
    }
    json_decref(body);
}

/* A supervisor that was killed may have asked for something that is read later: its token is no longer the job's. */
static void write_for_node(struct weir_http_request *request, struct weir_arena *memory,
                           struct weir_http_response *response)
{
    const char *shown = weir_http_request_header(request, "Authorization");
    pthread_mutex_lock(&server.lock);
    if (shown == NULL || strcmp(shown + strlen("Bearer "), server.token) != 0) {
        weir_http_response_errorf(response, WEIR_ERR_DENIED, "another node has the job");
    } else if (strcmp(request->method, "PUT") == 0) {
        take_part(request, response);
    } else {
        make_change(request, memory, response);
    }
    pthread_mutex_unlock(&server.lock);
}

/* Every fourth call fails, before or after it was done. */
static void handle(void *context, struct weir_http_request *request,
                   struct weir_http_response *response)
{
    struct weir_arena memory;
    char path[256] = "";
    (void)context;
    uint32_t chance = (uint32_t)atomic_fetch_add(&server.n_calls, 1) * 2654435761U >> 29;
    bool is_flaky = atomic_load(&server.is_flaky);
    if (is_flaky && chance == 3) {
        weir_http_response_errorf(response, WEIR_ERR_UNAVAILABLE, "not now");
        return;
    }
    weir_arena_init(&memory, 0);
    for (size_t i = 6; i < request->n_segments; i++) {
        (void)snprintf(path + strlen(path), sizeof path - strlen(path), "%s%s", i > 6 ? "/" : "",
                       request->segments[i]);
    }
    int fd;
    if (strcmp(request->method, "GET") != 0) {
        write_for_node(request, &memory, response);
    } else if (request->n_segments == 5) {
        answer_list(&memory, response, "files", json_array());
    } else if (weir_kept_open(server.dir, path, &fd, NULL) == WEIR_OK) {
        weir_http_response_fd(response, 200, "application/octet-stream", fd);
    } else {
        weir_http_response_errorf(response, WEIR_ERR_NOT_FOUND, "no %s", path);
    }
    if (is_flaky && chance == 7 && strcmp(request->method, "GET") != 0) {
        weir_http_response_errorf(response, WEIR_ERR_UNAVAILABLE, "done, and not said");
    }
    weir_arena_fini(&memory);
}

static void set_up(void)
{
    struct weir_http_config config = {.listen = "127.0.0.1:0"};
    uint64_t seed;
    memset(&server, 0, sizeof server);
    pthread_mutex_init(&server.lock, NULL);
    memset(&now, 0, sizeof now);
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(weir_dir_make_temporary("carry-test", root, &err), WEIR_OK);
    (void)snprintf(server.dir, sizeof server.dir, "%s/server", root);
    ck_assert_int_eq(weir_http_server_start(&config, handle, NULL, &server.http, &err), WEIR_OK);
    (void)snprintf(server.url, sizeof server.url, "http://127.0.0.1:%d",
                   weir_http_server_port(server.http));
    weir_random_bytes(&seed, sizeof seed);
    (void)printf("seed %llu\n", (unsigned long long)seed);
    weir_rng_init(&rng, seed, 0);
}

static void tear_down(void)
{
    weir_http_server_stop(server.http, 1000);
    weir_arena_fini(&arena);
    ck_assert_int_eq(weir_dir_remove(root, NULL), WEIR_OK);
}

/* ---- a node --------------------------------------------------------------------------------------- */

static bool never(void *context)
{
    (void)context;
    return false;
}

static struct carry node_of(int i)
{
    char *token = weir_arena_printf(&arena, "t-%d", i);
    pthread_mutex_lock(&server.lock);
    (void)snprintf(server.token, sizeof server.token, "%s", token);
    pthread_mutex_unlock(&server.lock);
    return (struct carry){.folder = weir_arena_printf(&arena, "%s/node-%d/checkpoints/j1", root, i),
                          .job = "j1",
                          .server = server.url,
                          .token = token,
                          .tick_ms = TICK_MS,
                          .quiet_ms = QUIET_MS,
                          .used_fd = -1};
}

static weir_status fetch(struct carry *carry)
{
    struct weir_client *client;
    ck_assert_int_eq(
        weir_client_open(&(struct weir_client_config){.server = server.url, .token = "t"}, &client,
                         &err),
        WEIR_OK);
    weir_status status =
        carry_fetch(carry, client, weir_mono_ms() + 30000, never, NULL, &arena, &err);
    weir_client_close(client);
    return status;
}

static struct content read_folder(const char *folder)
{
    struct content found = {0};
    for (int i = 0; i < N_NAMES; i++) {
        size_t len = 0;
        weir_status status =
            weir_file_read_into(weir_arena_printf(&arena, "%s/%s", folder, names[i]), found.text[i],
                                N_CHARS, &len, NULL);
        ck_assert(status == WEIR_OK || status == WEIR_ERR_NOT_FOUND);
    }
    return found;
}

/* One step: a file is replaced by another, written over with as many bytes, or removed. */
static void step(const char *folder)
{
    int i = (int)weir_rng_below(&rng, N_NAMES);
    char *file = weir_arena_printf(&arena, "%s/%s", folder, names[i]);
    char *beside = weir_arena_printf(&arena, "%s/beside", root);
    char text[N_CHARS + 1];
    (void)snprintf(text, sizeof text, "%08x", weir_rng_u32(&rng));
    bool is_there = now.text[i][0] != '\0';
    switch (weir_rng_below(&rng, 4)) {
    case 0:
        ck_assert(!is_there || unlink(file) == 0);
        memset(text, 0, sizeof text);
        break;
    case 1:
        if (is_there) {
            int fd = open(file, O_WRONLY);
            ck_assert_int_eq(pwrite(fd, text, N_CHARS, 0), N_CHARS);
            close(fd);
            break;
        }
        /* fall through */
    default:
        ck_assert_int_eq(
            weir_dir_make(weir_arena_printf(&arena, "%.*s", (int)(strrchr(file, '/') - file), file),
                          0700, &err),
            WEIR_OK);
        ck_assert_int_eq(weir_file_write(beside, text, N_CHARS, 0600, &err), WEIR_OK);
        ck_assert_int_eq(rename(beside, file), 0);
    }
    memcpy(now.text[i], text, sizeof text);
    ck_assert_uint_lt(n_states, N_STATES);
    states[n_states++] = now;
}

/* Its supervisor dies. */
static void stop(struct carry *carry)
{
    (void)kill(carry->pid, SIGKILL);
    (void)waitpid(carry->pid, NULL, 0);
    carry_note_end(carry, carry->pid);
    close(carry->used_fd);
}

/* With its disk. */
static void lose(struct carry *carry)
{
    stop(carry);
    ck_assert_int_eq(
        weir_dir_remove(weir_arena_printf(&arena, "%.*s",
                                          (int)(strrchr(carry->folder, '/') - carry->folder),
                                          carry->folder),
                        &err),
        WEIR_OK);
}

static bool was_there(const struct content *found)
{
    for (size_t i = 0; i < n_states; i++) {
        if (memcmp(found, &states[i], sizeof *found) == 0) {
            return true;
        }
    }
    return false;
}

/* Until the server was told something new, or it is clear that it will not be. */
static void wait_for_change(int64_t patience_ms)
{
    int before = atomic_load(&server.n_changes);
    int64_t give_up_ms = weir_mono_ms() + patience_ms;
    while (atomic_load(&server.n_changes) == before && weir_mono_ms() < give_up_ms) {
        (void)poll(NULL, 0, 1);
    }
}

START_TEST(the_next_node_finds_what_the_folder_once_was)
{
    size_t n_changes = 0;
    states[0] = now;
    n_states = 1;
    for (int k = 0; k < N_NODES; k++) {
        struct carry carry = node_of(k);
        char line[CARRY_LINE_BYTES];
        atomic_store(&server.is_flaky, true);
        ck_assert_msg(fetch(&carry) == WEIR_OK, "%s", err.message);
        struct content found = read_folder(carry.folder);
        ck_assert_msg(was_there(&found), "node %d: what it fetched was never there", k);
        now = found;
        states[0] = now;
        n_states = 1;
        carry_start(&carry);
        ck_assert_int_gt(carry.pid, 0);
        for (uint64_t i = weir_rng_below(&rng, 6); i > 0; i--) {
            for (uint64_t n = 1 + weir_rng_below(&rng, 8); n > 0; n--) {
                step(carry.folder);
            }
            wait_for_change((int64_t)weir_rng_below(&rng, 4 * QUIET_MS));
        }
        if (weir_rng_below(&rng, 2) == 0) {
            lose(&carry);
        } else {
            carry_finish(&carry, never, NULL, line);
            ck_assert_msg(strstr(line, "alone") == NULL, "%s", line);
            ck_assert(!weir_path_exists(carry.folder));
            states[0] = now; /* nothing is lost now */
            n_states = 1;
        }
        n_changes = (size_t)atomic_load(&server.n_changes);
    }
    ck_assert_uint_gt(n_changes, 0);
}

END_TEST

/* Of two tasks on a node the last one brings what both wrote; the server being away, it stays, and is there again. */
START_TEST(the_last_task_brings_all_and_what_is_not_brought_stays)
{
    struct carry first = node_of(0), second = node_of(0);
    char line[CARRY_LINE_BYTES];
    ck_assert_int_eq(fetch(&first), WEIR_OK);
    ck_assert_int_eq(fetch(&second), WEIR_OK);
    now = (struct content){.text = {"one", "two"}};
    for (int i = 0; i < 2; i++) {
        char *file = weir_arena_printf(&arena, "%s/%s", first.folder, names[i]);
        ck_assert_int_eq(weir_file_write(file, now.text[i], 3, 0600, &err), WEIR_OK);
    }
    carry_finish(&first, never, NULL, line);
    ck_assert_str_eq(line, "");
    ck_assert_int_eq(atomic_load(&server.n_changes), 0);
    carry_finish(&second, never, NULL, line);
    ck_assert_ptr_nonnull(strstr(line, "2 files"));
    ck_assert(!weir_path_exists(first.folder));
    ck_assert_int_eq(fetch(&first), WEIR_OK);
    struct content found = read_folder(first.folder);
    ck_assert_int_eq(memcmp(&found, &now, sizeof now), 0);
    first.server = "http://127.0.0.1:1";
    char *file = weir_arena_printf(&arena, "%s/meta", first.folder);
    ck_assert_int_eq(weir_file_write(file, "new", 3, 0600, &err), WEIR_OK);
    carry_start(&first);
    stop(&first);
    first = node_of(0);
    ck_assert_int_eq(fetch(&first), WEIR_OK);
    ck_assert(weir_path_exists(file));
    carry_finish(&first, never, NULL, line);
    ck_assert_ptr_nonnull(strstr(line, "1 file of"));
}

END_TEST

WEIR_TEST_MAIN_WITH("carry", set_up, tear_down, the_next_node_finds_what_the_folder_once_was,
                    the_last_task_brings_all_and_what_is_not_brought_stays)
