#include "ort_library.h"

#include "serve/serve.h"

#include "base/file.h"

#include <dlfcn.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 1024

/* From release 1.29 on the library of the Python package sends what it is used for to its maker, and
 * keeps a database for it in the home folder, unless this is set before it is loaded. */
#define ORT_TELEMETRY_VARIABLE "ORT_DISABLE_TELEMETRY"

/* The library lives as long as the process: it keeps threads, and its code cannot be unloaded. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ort_library library;
static char library_path[PATH_BYTES];

static const char *const system_names[] = {"libonnxruntime.so.1", "libonnxruntime.so"};
static const char *const system_patterns[] = {
    "/usr/local/lib/libonnxruntime.so*",
    "/usr/lib/*/libonnxruntime.so*",
    "/usr/lib64/libonnxruntime.so*",
    "/usr/lib/libonnxruntime.so*",
};

/* ---- finding ---------------------------------------------------------------------------------- */

/* The last match is the newest, where there are several. */
static bool find_by(const char *pattern, char out[PATH_BYTES])
{
    glob_t found;
    bool has = glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc > 0;
    if (has) {
        (void)snprintf(out, PATH_BYTES, "%s", found.gl_pathv[found.gl_pathc - 1]);
        globfree(&found);
    }
    return has;
}

static void *open_system(char out[PATH_BYTES])
{
    void *handle = NULL;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(system_names) && handle == NULL; i++) {
        (void)snprintf(out, PATH_BYTES, "%s", system_names[i]);
        handle = dlopen(out, RTLD_NOW | RTLD_LOCAL);
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(system_patterns) && handle == NULL; i++) {
        handle = find_by(system_patterns[i], out) ? dlopen(out, RTLD_NOW | RTLD_LOCAL) : NULL;
    }
    return handle;
}

static weir_status open_named(const char *path, void **out, struct weir_error *err)
{
    char file[PATH_BYTES], pattern[PATH_BYTES];
    (void)snprintf(file, sizeof file, "%s", path);
    if (weir_path_is_dir(path)) {
        (void)snprintf(pattern, sizeof pattern, "%.1000s/libonnxruntime.so*", path);
        if (!find_by(pattern, file)) {
            return weir_error_set(err, WEIR_ERR_NOT_FOUND, "%s holds no libonnxruntime.so", path);
        }
    } else if (!weir_path_exists(path)) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "%s: there is no such file", path);
    }
    *out = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    return *out != NULL
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "%s cannot be loaded: %s", file, dlerror());
}

/* ---- loading ---------------------------------------------------------------------------------- */

static weir_status start(void *handle, struct ort_library *out, struct weir_error *err)
{
    ort_get_api_base_fn get_base = (ort_get_api_base_fn)dlsym(handle, "OrtGetApiBase");
    if (get_base == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the library is no onnxruntime");
    }
    const struct ort_api_base *base = get_base();
    out->version = base->version();
    out->api = base->get_api(ORT_INTERFACE);
    if (out->api == NULL) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "onnxruntime %s is too old: 1.6 and later are supported",
                              out->version);
    }
    out->append_cuda =
        (ort_append_cuda_fn)dlsym(handle, "OrtSessionOptionsAppendExecutionProvider_CUDA");
    const struct ort_api *api = out->api;
    WEIR_TRY(
        ort_check(out, api->create_env(ORT_LOG_FATAL, "weir", &out->env), WEIR_ERR_INTERNAL, err));
    WEIR_TRY(ort_check(
        out, api->create_memory_info(ORT_ALLOCATOR_ARENA, ORT_MEMORY_DEFAULT, &out->memory),
        WEIR_ERR_INTERNAL, err));
    return ort_check(out, api->default_allocator(&out->allocator), WEIR_ERR_INTERNAL, err);
}

/* An arena with a bound, which grows by what is asked for. */
static weir_status start_arena(struct ort_library *out, size_t max_bytes, struct weir_error *err)
{
    const struct ort_api *api = out->api;
    ort_arena *arena;
    WEIR_TRY(
        ort_check(out, api->create_arena(max_bytes, 1, -1, -1, &arena), WEIR_ERR_INTERNAL, err));
    weir_status status = ort_check(out, api->register_allocator(out->env, out->memory, arena),
                                   WEIR_ERR_INTERNAL, err);
    api->release_arena(arena);
    out->has_arena = status == WEIR_OK;
    return status;
}

void weir_onnxruntime_silence(void)
{
    (void)setenv(ORT_TELEMETRY_VARIABLE, "1", 1);
}

static weir_status load(const char *path, size_t memory_max_bytes, struct weir_error *err)
{
    char found[PATH_BYTES];
    void *handle;
    if (getenv(ORT_TELEMETRY_VARIABLE) == NULL) {
        weir_onnxruntime_silence(); /* of a program that has not done so when it began */
    }
    if (path[0] != '\0') {
        WEIR_TRY(open_named(path, &handle, err));
    } else if ((handle = open_system(found)) == NULL) {
        return weir_error_set(
            err, WEIR_ERR_NOT_FOUND,
            "its library was not found: install libonnxruntime1.21 (Debian 13) or "
            "the Python package onnxruntime, and give the file's path as "
            "\"onnxruntime\" where it is not the system's");
    }
    struct ort_library made = {0};
    weir_status status = start(handle, &made, err);
    if (status == WEIR_OK) {
        status = start_arena(&made, memory_max_bytes, err);
    }
    if (status != WEIR_OK) {
        if (made.env != NULL) {
            made.api->release_env(made.env);
        }
        return status;
    }
    (void)snprintf(library_path, sizeof library_path, "%s", path);
    library = made;
    return WEIR_OK;
}

weir_status ort_library_get(const char *path, size_t memory_max_bytes,
                            const struct ort_library **out, struct weir_error *err)
{
    const char *name = path != NULL ? path : "";
    weir_status status = WEIR_OK;
    (void)pthread_mutex_lock(&lock);
    if (library.api == NULL) {
        status = load(name, memory_max_bytes, err);
    } else if (strcmp(library_path, name) != 0) {
        status =
            weir_error_set(err, WEIR_ERR_CONFLICT,
                           "this process has loaded onnxruntime from \"%s\" already", library_path);
    }
    (void)pthread_mutex_unlock(&lock);
    if (status == WEIR_OK) {
        *out = &library;
    }
    return status;
}

weir_status ort_check(const struct ort_library *from, ort_status *failure, weir_status status,
                      struct weir_error *err)
{
    if (failure == NULL) {
        return WEIR_OK;
    }
    const char *message = from->api->error_message(failure);
    bool is_memory = strstr(message, "emory") != NULL || strstr(message, "llocat") != NULL ||
                     strstr(message, "bad_alloc") != NULL;
    int code = from->api->error_code(failure);
    if (code == ORT_CODE_INVALID_PROTOBUF) {
        status = WEIR_ERR_CORRUPT;
    } else if (code == ORT_CODE_PROVIDER) {
        status = WEIR_ERR_INTERNAL;
    } else if (is_memory) {
        status = WEIR_ERR_LIMIT;
    }
    status = weir_error_set(err, status, "onnxruntime %s: %s", from->version, message);
    from->api->release_status(failure);
    return status;
}

void ort_ignore(const struct ort_library *from, ort_status *failure)
{
    if (failure != NULL) {
        from->api->release_status(failure);
    }
}
