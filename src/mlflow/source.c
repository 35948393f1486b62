#include "mlflow/source.h"

#include "mlflow/call.h"
#include "track/artifact.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define PROXY     "/mlflow-artifacts/artifacts/"
#define SHOWN_MAX 300

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* "NAME:" of a URI; 0: it has none. A letter alone is a drive. */
static size_t scheme_len(const char *source)
{
    size_t n = 0;
    while (isalnum((unsigned char)source[n]) ||
           (n > 0 && strchr("+-.", source[n]) != NULL && source[n] != '\0')) {
        n++;
    }
    return n > 1 && source[n] == ':' && isalpha((unsigned char)source[0]) ? n : 0;
}

/* What is behind "mlflow-artifacts:", a host and slashes; NULL: another scheme. */
static const char *proxied(const char *source)
{
    if (begins(source, "mlflow-artifacts:")) {
        const char *path = source + strlen("mlflow-artifacts:");
        if (begins(path, "//")) {
            path = strchr(path + 2, '/');
        }
        return path != NULL ? path + strspn(path, "/") : NULL;
    }
    const char *at =
        begins(source, "http://") || begins(source, "https://") ? strstr(source, PROXY) : NULL;
    return at != NULL ? at + strlen(PROXY) : NULL;
}

/* Without slashes at its end, and only if it is a path of artifacts, or empty. */
static const char *clean(struct weir_arena *arena, const char *path)
{
    size_t len = strlen(path);
    struct weir_error ignored;
    while (len > 0 && path[len - 1] == '/') {
        len--;
    }
    char *text = weir_arena_memdup(arena, path, len);
    return len == 0 || weir_artifact_path_check(text, &ignored) == WEIR_OK ? text : NULL;
}

bool mlflow_source_read(const char *source, struct weir_arena *arena, struct mlflow_source *out)
{
    static const char word[] = "/artifacts";
    const char *path = proxied(source), *run = NULL, *rest = NULL;
    if (begins(source, "runs:/")) {
        run = source + strlen("runs:/");
        run += strspn(run, "/");
        rest = run + strcspn(run, "/");
        out->run = weir_arena_memdup(arena, run, (size_t)(rest - run));
    } else if (path != NULL) {
        const char *slash = strchr(path, '/');
        run = slash != NULL ? slash + 1 : NULL;
        rest = run != NULL ? strchr(run, '/') : NULL;
        if (rest == NULL || !begins(rest, word) ||
            (rest[sizeof word - 1] != '/' && rest[sizeof word - 1] != '\0')) {
            return false;
        }
        out->run = weir_arena_memdup(arena, run, (size_t)(rest - run));
        rest += sizeof word - 1;
    } else {
        return false;
    }
    out->path = clean(arena, rest + strspn(rest, "/"));
    return out->run[0] != '\0' && out->path != NULL;
}

bool mlflow_source_is_logged_model(const char *source, const char **out_id)
{
    if (!begins(source, "models:/")) {
        return false;
    }
    const char *id = source + strlen("models:/");
    id += strspn(id, "/");
    *out_id = id;
    return weir_logged_model_is_id(id);
}

const char *mlflow_source_logged_model(const char *source, struct weir_arena *arena)
{
    static const char folder[] = WEIR_LOGGED_MODEL_FOLDER "/";
    const char *id;
    struct mlflow_source from;
    if (mlflow_source_is_logged_model(source, &id)) {
        return id;
    }
    if (mlflow_source_read(source, arena, &from) && begins(from.path, folder) &&
        weir_logged_model_is_id(from.path + sizeof folder - 1)) {
        return from.path + sizeof folder - 1;
    }
    return NULL;
}

weir_status mlflow_source_find(struct weir_mlflow_call *call, struct weir_txn *txn,
                               const char *source, struct mlflow_source *out, bool *out_is_here,
                               struct weir_error *err)
{
    struct weir_logged_model model;
    const char *id;
    if (!mlflow_source_is_logged_model(source, &id)) {
        *out_is_here = mlflow_source_read(source, call->arena, out);
        return WEIR_OK;
    }
    WEIR_TRY(weir_logged_model_get(txn, id, call->arena, &model, err));
    if (!weir_row_scope_sees(&call->rows, model.project)) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "Logged model with ID '%.100s' not found.",
                              id);
    }
    out->run = model.run;
    out->path = weir_arena_printf(call->arena, WEIR_LOGGED_MODEL_FOLDER "/%s", model.id);
    *out_is_here = true;
    return WEIR_OK;
}

bool mlflow_source_is_model(const char *source, struct weir_arena *arena, const char **out_name,
                            int64_t *out_version)
{
    if (!begins(source, "models:/")) {
        return false;
    }
    const char *name = source + strlen("models:/");
    name += strspn(name, "/");
    const char *slash = strrchr(name, '/');
    char *end = NULL;
    long long version = slash != NULL ? strtoll(slash + 1, &end, 10) : 0;
    if (version < 1 || *end != '\0') {
        return false;
    }
    *out_name = weir_arena_memdup(arena, name, (size_t)(slash - name));
    *out_version = version;
    return true;
}

static int hex_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static bool has_up(const char *text)
{
    for (const char *part = text; part != NULL; part = strpbrk(part, "/\\")) {
        part += part != text || strchr("/\\", *part) != NULL ? strspn(part, "/\\") : 0;
        if (begins(part, "..") && (part[2] == '\0' || strchr("/\\?#;", part[2]) != NULL)) {
            return true;
        }
        if (*part == '\0') {
            break;
        }
    }
    return false;
}

/* Does ".." or a NUL stand in it, however often it is percent-decoded? */
static bool leads_up(const char *source)
{
    char text[4096];
    bool is_changed = true;
    if (strlen(source) >= sizeof text) {
        return true;
    }
    memcpy(text, source, strlen(source) + 1);
    for (int i = 0; i < 10 && is_changed; i++) {
        size_t n = 0;
        if (has_up(text)) {
            return true;
        }
        is_changed = false;
        for (const char *c = text; *c != '\0'; c++) {
            int high = *c == '%' ? hex_value(c[1]) : -1, low = high >= 0 ? hex_value(c[2]) : -1;
            if (low >= 0 && (high | low) == 0) {
                return true;
            }
            if (low >= 0) {
                text[n++] = (char)(high << 4 | low);
                c += 2;
                is_changed = true;
            } else {
                text[n++] = *c;
            }
        }
        text[n] = '\0';
    }
    return is_changed;
}

weir_status mlflow_source_check(const char *source, struct weir_error *err)
{
    size_t len = scheme_len(source);
    bool is_local = len == 0 || begins(source, "file:");
    for (const unsigned char *c = (const unsigned char *)source; *c != '\0'; c++) {
        if (*c < 0x20 || *c == 0x7f) {
            return weir_error_set(err, WEIR_ERR_INVALID, "Invalid model version source");
        }
    }
    if (is_local) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "Invalid model version source: '%.*s'. To use a local path as a model version source, "
            "the run_id request parameter has to be specified and the local path has to be "
            "contained within the artifact directory of the run specified by the run_id.",
            SHOWN_MAX, source);
    }
    if (leads_up(source) || strchr(source, '#') != NULL) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "Invalid model version source: '%.*s'. If supplying a source as an http, https, local "
            "file path, ftp, objectstore, or mlflow-artifacts uri, an absolute path must be "
            "provided without relative path references present. Please provide an absolute path.",
            SHOWN_MAX, source);
    }
    return WEIR_OK;
}
