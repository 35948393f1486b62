#include "kube/config.h"

#include "base/base64.h"
#include "base/file.h"
#include "base/names.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILES_MAX      16
#define FILE_MAX_BYTES ((size_t)1 << 20)
#define WORDS_MAX      64
#define POD_FOLDER     "/var/run/secrets/kubernetes.io/serviceaccount"
#define POD_HOST       "KUBERNETES_SERVICE_HOST"
#define POD_PORT       "KUBERNETES_SERVICE_PORT"

extern char **environ;

/* What is read of kubeconfigs, and where. */
struct reader {
    const struct weir_kube_file *files;
    size_t n_files;
    struct weir_arena *arena;
    struct weir_error *err;
    const struct weir_kube_file *file; /* from which the current entry is */
    const char *where;                 /* "users ann" */
};

/* ---- entries by their names ------------------------------------------------------------------ */

static const json_t *find_in(const json_t *list, const char *name)
{
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one)
    {
        const char *has = json_string_value(json_object_get(one, "name"));
        if (has != NULL && strcmp(has, name) == 0) {
            return one;
        }
    }
    return NULL;
}

static weir_status no_entry(struct reader *reader, const char *list, const char *name)
{
    struct weir_names names = {0};
    for (size_t i = 0; i < reader->n_files; i++) {
        size_t k;
        json_t *one;
        json_array_foreach(json_object_get(reader->files[i].document, list), k, one)
        {
            const char *has = json_string_value(json_object_get(one, "name"));
            if (has != NULL) {
                weir_names_add(&names, has, strlen(has));
            }
        }
    }
    return weir_error_set(reader->err, WEIR_ERR_NOT_FOUND, "%s: %s has no \"%.80s\"%s%s",
                          reader->files[0].path, list, name, names.len > 0 ? ": there are " : "",
                          names.text);
}

/* The object MEMBER of the entry of that name in LIST. */
static weir_status find(struct reader *reader, const char *list, const char *member,
                        const char *name, const json_t **out)
{
    for (size_t i = 0; i < reader->n_files; i++) {
        const json_t *entry = find_in(json_object_get(reader->files[i].document, list), name);
        if (entry != NULL) {
            reader->file = &reader->files[i];
            reader->where = weir_arena_printf(reader->arena, "%s %.80s", list, name);
            *out = json_object_get(entry, member);
            return WEIR_OK;
        }
    }
    return no_entry(reader, list, name);
}

static const char *first_text(const struct reader *reader, const char *member)
{
    for (size_t i = 0; i < reader->n_files; i++) {
        const char *text = json_string_value(json_object_get(reader->files[i].document, member));
        if (text != NULL && text[0] != '\0') {
            return text;
        }
    }
    return NULL;
}

/* ---- values ---------------------------------------------------------------------------------- */

static weir_status wrong(struct reader *reader, const char *member, const char *why)
{
    return weir_error_set(reader->err, WEIR_ERR_INVALID, "%s: %s: %s: %s", reader->file->path,
                          reader->where, member, why);
}

static const char *text_of(const struct reader *reader, const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));
    return text != NULL && text[0] != '\0' ? weir_arena_strdup(reader->arena, text) : NULL;
}

/* A file that the kubeconfig names lies beside it unless its path says otherwise. */
static const char *beside(const struct reader *reader, const char *path)
{
    const char *slash = strrchr(reader->file->path, '/');
    if (path[0] == '/' || slash == NULL) {
        return path;
    }
    return weir_arena_printf(reader->arena, "%.*s/%s", (int)(slash - reader->file->path),
                             reader->file->path, path);
}

static weir_status read_base64(struct reader *reader, const char *member, const char *text,
                               const char **out)
{
    size_t size = strlen(text), len = 0;
    char *bytes = weir_arena_alloc(reader->arena, size + 1);
    if (weir_base64_decode(text, bytes, size, &len) != WEIR_OK) {
        return wrong(reader, member, "no base64");
    }
    bytes[len] = '\0';
    *out = bytes;
    return WEIR_OK;
}

/* MEMBER-data as base64, which counts more, or the file that MEMBER names. */
static weir_status read_pem(struct reader *reader, const json_t *object, const char *member,
                            const char **out)
{
    const char *data = weir_arena_printf(reader->arena, "%s-data", member);
    const char *base64 = text_of(reader, object, data), *path = text_of(reader, object, member);
    char *bytes = NULL;
    size_t len = 0;
    if (base64 != NULL) {
        return read_base64(reader, data, base64, out);
    }
    if (path == NULL) {
        return WEIR_OK;
    }
    path = beside(reader, path);
    WEIR_TRY(weir_file_read(path, FILE_MAX_BYTES, reader->arena, &bytes, &len, reader->err));
    *out = bytes;
    return WEIR_OK;
}

/* ---- cluster --------------------------------------------------------------------------------- */

static const char *without_slash(const char *url, struct weir_arena *arena)
{
    size_t len = strlen(url);
    while (len > 0 && url[len - 1] == '/') {
        len--;
    }
    return weir_arena_memdup(arena, url, len);
}

static weir_status add_server(struct reader *reader, const char *url, struct weir_kube_config *out)
{
    bool is_url = strncmp(url, "https://", 8) == 0 || strncmp(url, "http://", 7) == 0;
    if (!is_url || strpbrk(url, " \t\r\n\"") != NULL) {
        return weir_error_set(reader->err, WEIR_ERR_INVALID,
                              "\"%.120s\" is no address of an API server: expected "
                              "https://HOST:PORT",
                              url);
    }
    if (out->n_servers == WEIR_KUBE_SERVERS_MAX) {
        return weir_error_set(reader->err, WEIR_ERR_LIMIT, "more than %d API servers",
                              WEIR_KUBE_SERVERS_MAX);
    }
    out->servers[out->n_servers++] = without_slash(url, reader->arena);
    return WEIR_OK;
}

static weir_status read_cluster(struct reader *reader, const char *name,
                                struct weir_kube_config *out)
{
    const json_t *cluster = NULL;
    WEIR_TRY(find(reader, "clusters", "cluster", name, &cluster));
    const char *server = text_of(reader, cluster, "server");
    if (server == NULL) {
        return wrong(reader, "server", "it is not said");
    }
    WEIR_TRY(add_server(reader, server, out));
    out->server_name = text_of(reader, cluster, "tls-server-name");
    out->proxy = text_of(reader, cluster, "proxy-url");
    out->is_unverified = json_is_true(json_object_get(cluster, "insecure-skip-tls-verify"));
    return read_pem(reader, cluster, "certificate-authority", &out->ca_pem);
}

/* ---- user ------------------------------------------------------------------------------------ */

/* Our environment with what the kubeconfig adds. */
static weir_status read_exec_env(struct reader *reader, const json_t *list, const char ***out)
{
    size_t n = 0, n_own = 0, i;
    json_t *one;
    while (environ[n_own] != NULL) {
        n_own++;
    }
    const char **env =
        WEIR_ARENA_ARRAY(reader->arena, n_own + json_array_size(list) + 1, const char *);
    for (; n < n_own; n++) {
        env[n] = weir_arena_strdup(reader->arena, environ[n]);
    }
    json_array_foreach(list, i, one)
    {
        const char *name = text_of(reader, one, "name");
        const char *value = json_string_value(json_object_get(one, "value"));
        if (name == NULL || strchr(name, '=') != NULL || value == NULL) {
            return wrong(reader, "exec.env", "expected a list of {name, value}");
        }
        env[n++] = weir_arena_printf(reader->arena, "%s=%s", name, value);
    }
    *out = env;
    return WEIR_OK;
}

static weir_status read_exec(struct reader *reader, const json_t *exec, struct weir_kube_exec *out)
{
    static const char *const versions[] = {"client.authentication.k8s.io/v1",
                                           "client.authentication.k8s.io/v1beta1"};
    const json_t *args = json_object_get(exec, "args");
    const char **words = WEIR_ARENA_ARRAY(reader->arena, WORDS_MAX + 2, const char *);
    const char **env = NULL;
    const char *command = text_of(reader, exec, "command");
    out->api_version = text_of(reader, exec, "apiVersion");
    out->hint = text_of(reader, exec, "installHint");
    bool is_known = false;
    for (size_t i = 0; out->api_version != NULL && i < WEIR_ARRAY_LEN(versions); i++) {
        is_known = is_known || strcmp(out->api_version, versions[i]) == 0;
    }
    if (command == NULL || !is_known) {
        return wrong(reader, "exec",
                     "expected command, and apiVersion client.authentication.k8s.io/v1 or v1beta1");
    }
    if (json_array_size(args) > WORDS_MAX) {
        return wrong(reader, "exec.args", "more than 64");
    }
    out->command = strchr(command, '/') != NULL ? beside(reader, command) : command;
    words[0] = out->command;
    for (size_t i = 0; i < json_array_size(args); i++) {
        const char *word = json_string_value(json_array_get(args, i));
        if (word == NULL) {
            return wrong(reader, "exec.args", "expected a list of strings");
        }
        words[i + 1] = weir_arena_strdup(reader->arena, word);
    }
    WEIR_TRY(read_exec_env(reader, json_object_get(exec, "env"), &env));
    out->words = words;
    out->env = env;
    return WEIR_OK;
}

static weir_status read_impersonation(struct reader *reader, const json_t *user,
                                      struct weir_kube_config *out)
{
    const json_t *groups = json_object_get(user, "as-groups");
    out->as_user = text_of(reader, user, "as");
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const char *group = json_string_value(json_array_get(groups, i));
        if (group == NULL || out->n_as_groups == WEIR_KUBE_GROUPS_MAX) {
            return wrong(reader, "as-groups", "expected a list of at most 16 strings");
        }
        out->as_groups[out->n_as_groups++] = weir_arena_strdup(reader->arena, group);
    }
    return WEIR_OK;
}

static weir_status read_user(struct reader *reader, const char *name, struct weir_kube_config *out)
{
    static const char *const gone[] = {"auth-provider", "username", "password"};
    const json_t *user = NULL;
    WEIR_TRY(find(reader, "users", "user", name, &user));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(gone); i++) {
        if (json_object_get(user, gone[i]) != NULL) {
            return weir_error_set(reader->err, WEIR_ERR_UNSUPPORTED,
                                  "%s: %s: %s is not supported, and Kubernetes has it no more: use "
                                  "a token, a client certificate or exec",
                                  reader->file->path, reader->where, gone[i]);
        }
    }
    const char *token_file = text_of(reader, user, "tokenFile");
    out->token_file = token_file != NULL ? beside(reader, token_file) : NULL;
    out->token = token_file != NULL ? NULL : text_of(reader, user, "token");
    if (json_is_object(json_object_get(user, "exec"))) {
        WEIR_TRY(read_exec(reader, json_object_get(user, "exec"), &out->exec));
    }
    WEIR_TRY(read_pem(reader, user, "client-certificate", &out->cert_pem));
    WEIR_TRY(read_pem(reader, user, "client-key", &out->key_pem));
    if ((out->cert_pem != NULL) != (out->key_pem != NULL)) {
        return wrong(reader, "client-certificate", "it and client-key go together");
    }
    return read_impersonation(reader, user, out);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static weir_status read_place(struct reader *reader, const struct weir_kube_place *place,
                              struct weir_kube_config *out)
{
    if (place->namespace_name != NULL) {
        out->namespace_name = place->namespace_name;
    }
    if (out->namespace_name == NULL) {
        out->namespace_name = "default";
    }
    for (size_t i = 0; i < place->n_servers; i++) {
        WEIR_TRY(add_server(reader, place->servers[i], out));
    }
    return WEIR_OK;
}

weir_status weir_kube_config_read(const struct weir_kube_file *files, size_t n_files,
                                  const struct weir_kube_place *place, struct weir_arena *arena,
                                  struct weir_kube_config *out, struct weir_error *err)
{
    struct reader reader = {.files = files, .n_files = n_files, .arena = arena, .err = err};
    const char *name =
        place->context != NULL ? place->context : first_text(&reader, "current-context");
    const json_t *context = NULL;
    *out = (struct weir_kube_config){0};
    if (name == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: it has no current-context: name one of its contexts",
                              files[0].path);
    }
    WEIR_TRY(find(&reader, "contexts", "context", name, &context));
    const char *cluster = text_of(&reader, context, "cluster"),
               *user = text_of(&reader, context, "user");
    out->namespace_name = text_of(&reader, context, "namespace");
    out->file = weir_arena_strdup(arena, reader.file->path);
    out->context = weir_arena_strdup(arena, name);
    out->from = weir_arena_printf(arena, "context %s of %s", name, out->file);
    if (cluster == NULL || user == NULL) {
        return wrong(&reader, cluster == NULL ? "cluster" : "user", "it is not said");
    }
    WEIR_TRY(read_cluster(&reader, cluster, out));
    WEIR_TRY(read_user(&reader, user, out));
    return read_place(&reader, place, out);
}

static weir_status read_pod(const struct weir_kube_place *place, struct weir_arena *arena,
                            struct weir_kube_config *out, struct weir_error *err)
{
    struct reader reader = {.arena = arena, .err = err};
    const char *host = getenv(POD_HOST), *port = getenv(POD_PORT);
    char *text = NULL;
    size_t len;
    *out = (struct weir_kube_config){.from = "the pod's service account",
                                     .token_file = POD_FOLDER "/token"};
    bool is_v6 = strchr(host, ':') != NULL;
    WEIR_TRY(add_server(&reader,
                        weir_arena_printf(arena, "https://%s%s%s:%s", is_v6 ? "[" : "", host,
                                          is_v6 ? "]" : "", port != NULL ? port : "443"),
                        out));
    WEIR_TRY(weir_file_read(POD_FOLDER "/ca.crt", FILE_MAX_BYTES, arena, &text, &len, err));
    out->ca_pem = text;
    if (weir_file_read(POD_FOLDER "/namespace", FILE_MAX_BYTES, arena, &text, &len, NULL) ==
        WEIR_OK) {
        text[strcspn(text, "\r\n")] = '\0';
        out->namespace_name = text;
    }
    return read_place(&reader, place, out);
}

/* The paths that $KUBECONFIG names, or the one that is meant; those that are not there are left out, as by kubectl. */
static size_t paths_of(const struct weir_kube_place *place, struct weir_arena *arena,
                       const char *paths[FILES_MAX])
{
    const char *list = place->file != NULL ? NULL : getenv("KUBECONFIG"), *home = getenv("HOME");
    size_t n = 0;
    if (place->file != NULL) {
        paths[n++] = place->file;
        return n;
    }
    while (list != NULL && *list != '\0' && n < FILES_MAX) {
        size_t len = strcspn(list, ":");
        const char *path = weir_arena_memdup(arena, list, len);
        if (len > 0 && weir_path_exists(path)) {
            paths[n++] = path;
        }
        list += len + (list[len] == ':');
    }
    if (n == 0 && home != NULL) {
        const char *path = weir_arena_printf(arena, "%s/.kube/config", home);
        if (weir_path_exists(path)) {
            paths[n++] = path;
        }
    }
    return n;
}

static weir_status load_files(const char *const *paths, size_t n, struct weir_kube_file *files,
                              struct weir_arena *arena, struct weir_error *err)
{
    for (size_t i = 0; i < n; i++) {
        char *text;
        size_t len;
        files[i].path = paths[i];
        WEIR_TRY(weir_file_read(paths[i], FILE_MAX_BYTES, arena, &text, &len, err));
        WEIR_TRY(weir_yaml_parse(text, len, paths[i], false, &files[i].document, err));
    }
    return WEIR_OK;
}

static weir_status load_and_read(const char *const *paths, size_t n, struct weir_kube_file *files,
                                 const struct weir_kube_place *place, struct weir_arena *arena,
                                 struct weir_kube_config *out, struct weir_error *err)
{
    WEIR_TRY(load_files(paths, n, files, arena, err));
    return weir_kube_config_read(files, n, place, arena, out, err);
}

weir_status weir_kube_config_load(const struct weir_kube_place *place, struct weir_arena *arena,
                                  struct weir_kube_config *out, struct weir_error *err)
{
    const char *paths[FILES_MAX];
    struct weir_kube_file files[FILES_MAX] = {{0}};
    size_t n = paths_of(place, arena, paths);
    if (n == 0 && getenv(POD_HOST) != NULL) {
        return read_pod(place, arena, out, err);
    }
    if (n == 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "there is no kubeconfig: neither in $KUBECONFIG nor in "
                              "~/.kube/config; name one with kubeconfig=FILE");
    }
    weir_status status = load_and_read(paths, n, files, place, arena, out, err);
    for (size_t i = 0; i < n; i++) {
        json_decref(files[i].document);
    }
    return status;
}
