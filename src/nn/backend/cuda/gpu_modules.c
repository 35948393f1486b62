#include "gpu_modules.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/macros.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES      1024
#define STEM_BYTES      64
#define IMAGE_MAX_BYTES ((size_t)64 << 20)
#define OPTIONS_MAX     4

/* The files of the kernels, in the order in which they are read; cuda.cmake embeds them. */
#define KERNEL_FILES(X)                                                                            \
    X(common)                                                                                      \
    X(elementwise)                                                                                 \
    X(norm)                                                                                        \
    X(pool)                                                                                        \
    X(conv)                                                                                        \
    X(depthwise)                                                                                   \
    X(loss)                                                                                        \
    X(scale)                                                                                       \
    X(update)

extern const char gpu_kernels_h[];
#define X(name) extern const char gpu_kernels_##name[];
KERNEL_FILES(X)
#undef X

static const char kernels_code[] = ""
#define X(name) "#include \"" #name ".cu\"\n"
    KERNEL_FILES(X)
#undef X
    ;

/* weir_embed puts a NUL behind the bytes. */
static const char *const kernel_texts[] = {
#define X(name) gpu_kernels_##name,
    KERNEL_FILES(X) gpu_kernels_h
#undef X
};

static const char *const kernel_text_names[] = {
#define X(name) #name ".cu",
    KERNEL_FILES(X) "kernels.h"
#undef X
};

/** The options of a compilation, as texts. */
struct options {
    char arch[40];
    const char *texts[OPTIONS_MAX];
    int n;
};

struct module_source module_source_of_kernels(int arch, const char *option)
{
    return (struct module_source){
        .code = kernels_code,
        .headers = kernel_texts,
        .header_names = kernel_text_names,
        .n_headers = WEIR_ARRAY_LEN(kernel_texts),
        .arch = arch,
        .option = option,
    };
}

static void options_set(struct options *options, const struct module_source *source)
{
    *options = (struct options){.n = 0};
    (void)snprintf(options->arch, sizeof options->arch, "--gpu-architecture=sm_%d", source->arch);
    options->texts[options->n++] = options->arch;
    options->texts[options->n++] = "--std=c++17";
    if (source->option != NULL) {
        options->texts[options->n++] = source->option;
    }
}

/* ---- the cache ------------------------------------------------------------------------------- */

/* "kernels-sm_90-0123456789abcdef-": what a file's name begins with. NVRTC's version ends it. */
static void cache_stem(const struct module_source *source, const struct options *options,
                       char out[STEM_BYTES])
{
    uint64_t hash = WEIR_HASH_BEGIN;
    hash = weir_hash_bytes(hash, source->code, strlen(source->code) + 1);
    for (int i = 0; i < source->n_headers; i++) {
        hash = weir_hash_bytes(hash, source->headers[i], strlen(source->headers[i]) + 1);
    }
    for (int i = 0; i < options->n; i++) {
        hash = weir_hash_bytes(hash, options->texts[i], strlen(options->texts[i]) + 1);
    }
    (void)snprintf(out, STEM_BYTES, "kernels-sm_%d-%016" PRIx64 "-", source->arch, hash);
}

/* False: there is no folder for a cache. */
static bool cache_folder(char out[PATH_BYTES])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (cache != NULL && cache[0] == '/') {
        n = snprintf(out, PATH_BYTES, "%s/weir", cache);
    } else if (home != NULL && home[0] == '/') {
        n = snprintf(out, PATH_BYTES, "%s/.cache/weir", home);
    }
    return n > 0 && n < PATH_BYTES;
}

/* Any version's file, for a machine without NVRTC. */
static bool cache_find(const char *folder, const char *stem, char out[PATH_BYTES])
{
    bool is_found = false;
    DIR *dir = opendir(folder);
    for (struct dirent *entry = NULL; dir != NULL && !is_found;) {
        entry = readdir(dir);
        if (entry == NULL) {
            break;
        }
        size_t len = strlen(entry->d_name);
        if (strncmp(entry->d_name, stem, strlen(stem)) == 0 && len > 6 &&
            strcmp(entry->d_name + len - 6, ".cubin") == 0) {
            int n = snprintf(out, PATH_BYTES, "%s/%s", folder, entry->d_name);
            is_found = n > 0 && n < PATH_BYTES;
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return is_found;
}

/* The path of the image. False: there is no cache, or, without NVRTC, no such file. */
static bool cache_path(const struct nvrtc *nvrtc, const struct module_source *source,
                       const struct options *options, char folder[PATH_BYTES], char out[PATH_BYTES])
{
    char stem[STEM_BYTES];
    cache_stem(source, options, stem);
    if (!cache_folder(folder)) {
        return false;
    }
    if (nvrtc == NULL) {
        return cache_find(folder, stem, out);
    }
    int major = 0, minor = 0;
    if (nvrtc->version(&major, &minor) != NVRTC_SUCCESS) {
        return false;
    }
    int n = snprintf(out, PATH_BYTES, "%s/%snvrtc%d.%d.cubin", folder, stem, major, minor);
    return n > 0 && n < PATH_BYTES;
}

/* A CUBIN is an ELF file. */
static bool is_image(const void *bytes, size_t n)
{
    return n > 64 && memcmp(bytes, "\177ELF", 4) == 0;
}

/* False: it is not there, or no image. */
static bool cache_read(const char *path, void **out, size_t *out_bytes)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        return false;
    }
    long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    (void)fclose(file);
    void *bytes = size > 0 && (size_t)size <= IMAGE_MAX_BYTES ? malloc((size_t)size) : NULL;
    size_t n = 0;
    if (bytes == NULL || weir_file_read_into(path, bytes, (size_t)size, &n, NULL) != WEIR_OK ||
        !is_image(bytes, n)) {
        free(bytes);
        return false;
    }
    *out = bytes;
    *out_bytes = n;
    return true;
}

static void cache_write(const char *folder, const char *path, const void *bytes, size_t n)
{
    struct weir_error err = {.status = WEIR_OK};
    if (weir_dir_make(folder, 0700, &err) != WEIR_OK ||
        weir_file_write_atomic(path, bytes, n, 0600, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_DEBUG, "gpu_kernels_not_cached", WEIR_KV_STR("reason", err.message));
    }
}

/* ---- NVRTC ----------------------------------------------------------------------------------- */

static weir_status compile_failed(const struct nvrtc *nvrtc, nvrtc_program program,
                                  nvrtc_result result, struct weir_error *err)
{
    size_t size = 0;
    char *log = NULL;
    if (nvrtc->log_size(program, &size) == NVRTC_SUCCESS && size > 0) {
        log = calloc(1, size + 1);
    }
    if (log != NULL && nvrtc->log(program, log) == NVRTC_SUCCESS) {
        weir_log(WEIR_LOG_WARN, "gpu_kernels_do_not_compile", WEIR_KV_STR("log", log));
    }
    (void)weir_error_set(err, WEIR_ERR_INTERNAL,
                         "NVRTC does not compile the GPU's kernels (error %u): %s", result,
                         log != NULL ? log : "no log");
    free(log);
    return WEIR_ERR_INTERNAL;
}

static weir_status program_image(const struct nvrtc *nvrtc, nvrtc_program program,
                                 const struct options *options, void **out, size_t *out_bytes,
                                 struct weir_error *err)
{
    nvrtc_result result = nvrtc->compile(program, options->n, options->texts);
    if (result != NVRTC_SUCCESS) {
        return compile_failed(nvrtc, program, result, err);
    }
    size_t size = 0;
    result = nvrtc->cubin_size(program, &size);
    if (result != NVRTC_SUCCESS || size == 0) {
        return weir_error_set(err, WEIR_ERR_INTERNAL, "NVRTC gives no code for %s (error %u)",
                              options->arch, result);
    }
    char *image = malloc(size);
    if (image == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the GPU's kernels");
    }
    result = nvrtc->cubin(program, image);
    if (result != NVRTC_SUCCESS) {
        free(image);
        return weir_error_set(err, WEIR_ERR_INTERNAL, "NVRTC gives no code (error %u)", result);
    }
    *out = image;
    *out_bytes = size;
    return WEIR_OK;
}

static weir_status compile(const struct nvrtc *nvrtc, const struct module_source *source,
                           const struct options *options, void **out, size_t *out_bytes,
                           struct weir_error *err)
{
    nvrtc_program program = NULL;
    nvrtc_result result = nvrtc->create(&program, source->code, "kernels.cu", source->n_headers,
                                        source->headers, source->header_names);
    if (result != NVRTC_SUCCESS) {
        return weir_error_set(err, WEIR_ERR_INTERNAL, "NVRTC does not start (error %u)", result);
    }
    weir_status status = program_image(nvrtc, program, options, out, out_bytes, err);
    (void)nvrtc->destroy(&program);
    return status;
}

weir_status module_image(const struct nvrtc *nvrtc, const struct module_source *source,
                         bool is_cache_trusted, void **out, size_t *out_bytes,
                         struct weir_error *err)
{
    struct options options;
    char folder[PATH_BYTES], path[PATH_BYTES];
    options_set(&options, source);
    bool has_path = cache_path(nvrtc, source, &options, folder, path);
    if (has_path && is_cache_trusted && cache_read(path, out, out_bytes)) {
        return WEIR_OK;
    }
    if (nvrtc == NULL) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "the GPU's kernels were not compiled before, and NVRTC is missing");
    }
    WEIR_TRY(compile(nvrtc, source, &options, out, out_bytes, err));
    if (has_path) {
        cache_write(folder, path, *out, *out_bytes);
    }
    return WEIR_OK;
}
