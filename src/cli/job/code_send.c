#include "cli/job/code_send.h"

#include "base/file.h"
#include "cli/core/progress.h"
#include "cli/job/folder.h"
#include "cli/job/git_state.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define ASK_MAX    5000
#define SENDERS    4
#define HEX        "0123456789abcdef"
#define COMMIT_MIN 7
#define COMMIT_MAX 64

/** One folder on its way. */
struct sending {
    struct cli_call *call;
    const char *dir, *project;
    struct folder folder;
    bool *is_missing; /* by entry */
    size_t n_files, n_missing, n_sent;
    int64_t bytes_missing, bytes_sent;
    struct cli_progress progress;
    /* While several send: the next entry to look at, and a lock of what they count. */
    atomic_size_t i_next;
    atomic_bool has_failed;
    pthread_mutex_t lock;
};

static void show(struct sending *s, const char *doing, size_t n, size_t n_all, int64_t bytes,
                 int64_t bytes_all)
{
    cli_progress_tell(s->call, &s->progress, "%s %zu of %zu files, %.1f of %.1f MiB", doing, n,
                      n_all, (double)bytes / (1 << 20), (double)bytes_all / (1 << 20));
}

static char *path_of(const struct sending *s, const struct weir_tree_entry *entry)
{
    return weir_arena_printf(s->call->arena, "%s/%s", s->dir, entry->path);
}

static weir_status hash_files(struct sending *s, struct weir_error *err)
{
    struct weir_tree *tree = &s->folder.tree;
    int64_t bytes_all = tree->n_bytes, bytes_done = 0;
    for (size_t i = 0; i < tree->n; i++) {
        struct weir_tree_entry *entry = &tree->entries[i];
        char sha256[WEIR_SHA256_TEXT_BYTES];
        uint64_t bytes;
        if (entry->kind == WEIR_TREE_LINK) {
            continue;
        }
        WEIR_TRY(weir_file_sha256(path_of(s, entry), sha256, &bytes, err));
        entry->sha256 = weir_arena_strdup(s->call->arena, sha256);
        entry->bytes = (int64_t)bytes;
        bytes_done += entry->bytes;
        s->n_files++;
        show(s, "read", s->n_files, tree->n, bytes_done, bytes_all);
    }
    return WEIR_OK;
}

/* ---- what is missing ---------------------------------------------------------------------------- */

/** A file to be asked about; equal ones are neighbours. */
struct asked {
    const char *sha256;
    size_t i_entry;
};

static int by_sha256(const void *a, const void *b)
{
    return strcmp(((const struct asked *)a)->sha256, ((const struct asked *)b)->sha256);
}

static void note_missing(struct sending *s, const struct asked *asked, size_t n, const char *sha256)
{
    const struct asked wanted = {.sha256 = sha256};
    const struct asked *found = bsearch(&wanted, asked, n, sizeof wanted, by_sha256);
    if (found != NULL && !s->is_missing[found->i_entry]) {
        s->is_missing[found->i_entry] = true;
        s->n_missing++;
        s->bytes_missing += s->folder.tree.entries[found->i_entry].bytes;
    }
}

static weir_status ask(struct sending *s, const struct asked *asked, size_t n,
                       struct weir_error *err)
{
    json_t *list = json_array(), *answer, *item;
    size_t i;
    for (i = 0; i < n; i++) {
        json_array_append_new(list, json_string(asked[i].sha256));
    }
    json_t *body = json_pack("{s:s,s:o}", "project", s->project, "blobs", list);
    weir_status status = cli_rest(s->call, "POST", "/api/v1/blobs/missing", body, &answer, err);
    json_decref(body);
    WEIR_TRY(status);
    json_array_foreach(json_object_get(answer, "missing"), i, item)
    {
        const char *sha256 = json_string_value(item);
        note_missing(s, asked, n, sha256 != NULL ? sha256 : "");
    }
    json_decref(answer);
    return WEIR_OK;
}

static weir_status find_missing(struct sending *s, struct weir_error *err)
{
    const struct weir_tree *tree = &s->folder.tree;
    struct asked *asked = WEIR_ARENA_ARRAY(s->call->arena, tree->n + 1, struct asked);
    size_t n = 0, n_once = 0;
    s->is_missing = WEIR_ARENA_ARRAY(s->call->arena, tree->n + 1, bool);
    for (size_t i = 0; i < tree->n; i++) {
        if (tree->entries[i].kind != WEIR_TREE_LINK) {
            asked[n++] = (struct asked){tree->entries[i].sha256, i};
        }
    }
    if (n > 0) {
        qsort(asked, n, sizeof *asked, by_sha256);
    }
    for (size_t i = 0; i < n; i++) {
        if (n_once == 0 || by_sha256(&asked[n_once - 1], &asked[i]) != 0) {
            asked[n_once++] = asked[i];
        }
    }
    for (size_t from = 0; from < n_once; from += ASK_MAX) {
        WEIR_TRY(ask(s, asked + from, WEIR_MIN(n_once - from, (size_t)ASK_MAX), err));
    }
    return WEIR_OK;
}

/* ---- sending ------------------------------------------------------------------------------------ */

static char *put_path(struct cli_call *call, const char *sha256, const char *project,
                      const char *as)
{
    return cli_path2(call, weir_arena_printf(call->arena, "/api/v1/blobs/{}?project={}%s", as),
                     sha256, project);
}

/** One of those that send at the same time: each waits for the server's disk most of the time. */
struct sender {
    struct sending *s;
    struct weir_arena arena;
    struct cli_call call; /* a client of its own */
    pthread_t thread;
    weir_status status;
    struct weir_error err;
};

static weir_status send_file(struct sender *sender, const struct weir_tree_entry *entry)
{
    const struct sending *s = sender->s;
    char *path = put_path(&sender->call, entry->sha256, s->project, "");
    char *file = weir_arena_printf(&sender->arena, "%s/%s", s->dir, entry->path);
    weir_status status = weir_client_send_file(
        sender->call.client, "PUT", path, "application/octet-stream", file, NULL, &sender->err);
    return status == WEIR_ERR_CORRUPT
               ? weir_error_set(&sender->err, WEIR_ERR_INVALID,
                                "%s changed while it was sent: try again", entry->path)
               : status;
}

/* The next missing file, until there is none or somebody has failed. */
static void *send_main(void *context)
{
    struct sender *sender = context;
    struct sending *s = sender->s;
    const struct weir_tree *tree = &s->folder.tree;
    sender->status = cli_connect(&sender->call, &sender->err);
    while (sender->status == WEIR_OK && !atomic_load(&s->has_failed)) {
        size_t i = atomic_fetch_add(&s->i_next, 1);
        if (i >= tree->n) {
            break;
        }
        if (s->is_missing[i]) {
            sender->status = send_file(sender, &tree->entries[i]);
            pthread_mutex_lock(&s->lock);
            s->n_sent += sender->status == WEIR_OK;
            s->bytes_sent += sender->status == WEIR_OK ? tree->entries[i].bytes : 0;
            show(s, "sent", s->n_sent, s->n_missing, s->bytes_sent, s->bytes_missing);
            pthread_mutex_unlock(&s->lock);
        }
    }
    if (sender->status != WEIR_OK) {
        atomic_store(&s->has_failed, true);
    }
    return NULL;
}

static weir_status send_files(struct sending *s, struct weir_error *err)
{
    struct sender *senders = WEIR_ARENA_ARRAY(s->call->arena, SENDERS, struct sender);
    size_t n = 0, n_wanted = WEIR_MIN(s->n_missing, (size_t)SENDERS);
    weir_status status = WEIR_OK;
    while (n < n_wanted) {
        struct sender *sender = &senders[n];
        *sender = (struct sender){.s = s, .call = *s->call};
        weir_arena_init(&sender->arena, 0);
        sender->call.arena = &sender->arena;
        sender->call.client = NULL;
        if (pthread_create(&sender->thread, NULL, send_main, sender) != 0) {
            weir_arena_fini(&sender->arena);
            break;
        }
        n++;
    }
    if (n == 0 && n_wanted > 0) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "cannot start a thread that sends");
    }
    for (size_t i = 0; i < n; i++) {
        (void)pthread_join(senders[i].thread, NULL);
        if (status == WEIR_OK && senders[i].status != WEIR_OK) {
            status = senders[i].status;
            *err = senders[i].err;
        }
        weir_client_close(senders[i].call.client);
        weir_arena_fini(&senders[i].arena);
    }
    return status;
}

/* Bytes that lie in no file here. An empty text is no body to the server. */
static weir_status send_bytes(struct sending *s, const char *bytes, size_t len, const char *as,
                              char out_sha256[WEIR_SHA256_TEXT_BYTES], struct weir_error *err)
{
    int http;
    weir_sha256(bytes, len, out_sha256);
    return weir_client_call_raw(s->call->client, "PUT",
                                put_path(s->call, out_sha256, s->project, as),
                                "application/octet-stream", bytes, len, &http, NULL, err);
}

static weir_status send_manifest(struct sending *s, json_t *code, struct weir_error *err)
{
    char sha256[WEIR_SHA256_TEXT_BYTES];
    struct weir_buf text;
    weir_buf_init(&text, WEIR_TREE_TEXT_MAX);
    weir_status status = weir_tree_write(&s->folder.tree, &text, err);
    if (status == WEIR_OK) {
        status = send_bytes(s, text.data, text.len, "&as=code", sha256, err);
    }
    weir_buf_fini(&text);
    WEIR_TRY(status);
    json_object_set_new(code, "manifest", json_string(sha256));
    return WEIR_OK;
}

static weir_status add_git_state(struct sending *s, json_t *code, struct weir_error *err)
{
    struct git_state state;
    char sha256[WEIR_SHA256_TEXT_BYTES];
    if (!git_state_read(s->dir, s->call->arena, &state)) {
        return WEIR_OK;
    }
    json_object_set_new(code, "commit", json_string(state.commit));
    json_object_set_new(code, "dirty", json_boolean(state.is_dirty));
    if (state.branch != NULL) {
        json_object_set_new(code, "branch", json_string(state.branch));
    }
    if (state.repository != NULL) {
        json_object_set_new(code, "repository", json_string(state.repository));
    }
    if (state.is_patch_too_large) {
        (void)fprintf(stderr,
                      "weir: the changes since the commit are over %zu MiB: the folder is "
                      "sent as it is, and no patch is kept with the run\n",
                      GIT_PATCH_MAX >> 20);
    }
    if (state.patch != NULL) {
        WEIR_TRY(send_bytes(s, state.patch, state.patch_bytes, "", sha256, err));
        json_object_set_new(code, "patch", json_string(sha256));
    }
    return WEIR_OK;
}

/* What a person wants to know once, whatever is printed. */
static void tell(const struct sending *s)
{
    const struct folder *folder = &s->folder;
    (void)fprintf(stderr, "weir: sent %zu of %zu files, %.1f of %.1f KiB\n", s->n_sent, s->n_files,
                  (double)s->bytes_sent / 1024, (double)folder->tree.n_bytes / 1024);
    if (folder->n_left_out > 0) {
        (void)fprintf(
            stderr, "weir: %s is left out: %s%s\n", folder->first_left_out, folder->why_left_out,
            folder->n_left_out > 1
                ? weir_arena_printf(s->call->arena, "; and %zu more are", folder->n_left_out - 1)
                : "");
    }
}

weir_status code_send_folder(struct cli_call *call, const char *dir, const char *project,
                             json_t *code, struct weir_error *err)
{
    struct sending s = {
        .call = call, .dir = dir, .project = project, .lock = PTHREAD_MUTEX_INITIALIZER};
    WEIR_TRY(folder_read(dir, call->arena, &s.folder, err));
    WEIR_TRY(cli_connect(call, err));
    weir_status status = hash_files(&s, err);
    status = status == WEIR_OK ? find_missing(&s, err) : status;
    status = status == WEIR_OK ? send_files(&s, err) : status;
    cli_progress_end(&s.progress);
    WEIR_TRY(status);
    WEIR_TRY(send_manifest(&s, code, err));
    WEIR_TRY(add_git_state(&s, code, err));
    tell(&s);
    return WEIR_OK;
}

/* ---- a repository ------------------------------------------------------------------------------- */

static bool is_commit(const char *text)
{
    size_t len = strlen(text);
    return len >= COMMIT_MIN && len <= COMMIT_MAX && strspn(text, HEX) == len;
}

weir_status code_read_git(struct cli_call *call, const char *text, json_t *code,
                          struct weir_error *err)
{
    const char *at = strrchr(text, '@');
    /* "git@host:path" and "https://user@host/path" have no commit. */
    bool has_ref = at != NULL && at > text && at[1] != '\0' && strchr(at, ':') == NULL &&
                   !(strncmp(text, "http", 4) == 0 && strchr(at, '/') != NULL);
    char *address = has_ref ? weir_arena_memdup(call->arena, text, (size_t)(at - text))
                            : weir_arena_strdup(call->arena, text);
    const char *ref = has_ref ? at + 1 : "HEAD";
    if (address[0] == '-' || ref[0] == '-') {
        return weir_error_set(err, WEIR_ERR_INVALID, "--git: expected ADDRESS@COMMIT");
    }
    if (strcmp(git_address_plain(address, call->arena), address) != 0 &&
        strncmp(address, "http", 4) == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--git: leave user and password out of the address, and give the "
                              "password as a secret: --secret NAME=GIT_TOKEN");
    }
    const char *commit = is_commit(ref) ? ref : git_resolve(address, ref, call->arena);
    if (commit == NULL) {
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                              "--git: git does not find \"%.60s\" in %.200s from here: give the "
                              "commit, as ADDRESS@COMMIT",
                              ref, address);
    }
    json_object_set_new(code, "git", json_string(address));
    json_object_set_new(code, "commit", json_string(commit));
    return WEIR_OK;
}
