#include "library.h"

#include "base/macros.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** A function of a library and where its address goes. */
struct symbol {
    const char *name;
    size_t offset;
};

/** A library: what it may be called, newest first, and what we call in it. */
struct library {
    const char *what;
    const char *names[3];
    const char *remedy;
    const struct symbol *symbols;
    size_t n_symbols;
};

static const struct symbol driver_symbols[] = {
#define X(member, symbol, arguments) {#symbol, offsetof(struct cuda_driver, member)},
    CUDA_FUNCTIONS(X)
#undef X
};

static const struct symbol nvrtc_symbols[] = {
#define X(member, symbol, arguments) {#symbol, offsetof(struct nvrtc, member)},
    NVRTC_FUNCTIONS(X)
#undef X
};

static const struct symbol cudnn_symbols[] = {
#define X(member, symbol, arguments) {#symbol, offsetof(struct cudnn, member)},
    CUDNN_FUNCTIONS(X)
#undef X
#define X(member, symbol, result, arguments) {#symbol, offsetof(struct cudnn, member)},
        CUDNN_OTHER_FUNCTIONS(X)
#undef X
};

static const struct symbol nccl_symbols[] = {
#define X(member, symbol, arguments) {#symbol, offsetof(struct nccl, member)},
    NCCL_FUNCTIONS(X)
#undef X
#define X(member, symbol, result, arguments) {#symbol, offsetof(struct nccl, member)},
        NCCL_OTHER_FUNCTIONS(X)
#undef X
};

static const struct library driver_library = {
    .what = "NVIDIA's driver",
    .names = {"libcuda.so.1"},
    .remedy = "install the NVIDIA driver, or compute on the processor",
    .symbols = driver_symbols,
    .n_symbols = WEIR_ARRAY_LEN(driver_symbols),
};

static const struct library nvrtc_library = {
    .what = "NVRTC",
    .names = {"libnvrtc.so.13", "libnvrtc.so.12"},
    .remedy = "install NVRTC of CUDA 12 or 13 and name its folder in WEIR_CUDA_LIBRARIES",
    .symbols = nvrtc_symbols,
    .n_symbols = WEIR_ARRAY_LEN(nvrtc_symbols),
};

static const struct library cublas_library = {
    .what = "cuBLASLt, which cuDNN needs",
    .names = {"libcublasLt.so.13", "libcublasLt.so.12"},
    .remedy = "install cuBLAS of CUDA 12 or 13 and name its folder in WEIR_CUDA_LIBRARIES",
};

static const struct library cudnn_library = {
    .what = "cuDNN",
    .names = {"libcudnn.so.9"},
    .remedy = "install cuDNN 9 and name its folder in WEIR_CUDA_LIBRARIES",
    .symbols = cudnn_symbols,
    .n_symbols = WEIR_ARRAY_LEN(cudnn_symbols),
};

#define NCCL_REMEDY "install NCCL 2.14 or later and name its folder in WEIR_CUDA_LIBRARIES"

static const struct library nccl_library = {
    .what = "NCCL",
    .names = {"libnccl.so.2"},
    .remedy = NCCL_REMEDY,
    .symbols = nccl_symbols,
    .n_symbols = WEIR_ARRAY_LEN(nccl_symbols),
};

/* Opens `name` in the first of the folders that has it; keeps in `why` what the loader says of one
 * that is there and cannot be loaded. */
static void *open_in_folders(const char *folders, const char *name, char *why, size_t why_size)
{
    while (*folders != '\0') {
        size_t len = strcspn(folders, ":");
        char path[1024];
        int n = snprintf(path, sizeof path, "%.*s/%s", (int)len, folders, name);
        void *library = NULL;
        if (len > 0 && n > 0 && (size_t)n < sizeof path) {
            library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        }
        if (library != NULL) {
            return library;
        }
        const char *text = dlerror();
        if (text != NULL && strstr(text, "cannot open shared object file") == NULL) {
            (void)snprintf(why, why_size, "; %s", text);
        }
        folders += len + (folders[len] == ':');
    }
    return NULL;
}

static void *open_library(const struct library *library, char *why, size_t why_size)
{
    const char *folders = getenv("WEIR_CUDA_LIBRARIES");
    why[0] = '\0';
    for (size_t i = 0; folders != NULL && i < WEIR_ARRAY_LEN(library->names); i++) {
        if (library->names[i] != NULL) {
            void *opened = open_in_folders(folders, library->names[i], why, why_size);
            if (opened != NULL) {
                return opened;
            }
        }
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(library->names); i++) {
        if (library->names[i] != NULL) {
            void *opened = dlopen(library->names[i], RTLD_NOW | RTLD_LOCAL);
            if (opened != NULL) {
                return opened;
            }
            const char *text = dlerror();
            if (text != NULL && strstr(text, "cannot open shared object file") == NULL) {
                (void)snprintf(why, why_size, "; %s", text);
            }
        }
    }
    return NULL;
}

static weir_status load(const struct library *library, void *out, struct weir_error *err)
{
    char why[256];
    void *opened = open_library(library, why, sizeof why);
    if (opened == NULL) {
        return weir_error_set(
            err, WEIR_ERR_UNSUPPORTED,
            "cannot load %s (%s%s%s; looked in $WEIR_CUDA_LIBRARIES, then where "
            "the loader looks%s): %s",
            library->what, library->names[0], library->names[1] != NULL ? " or " : "",
            library->names[1] != NULL ? library->names[1] : "", why, library->remedy);
    }
    for (size_t i = 0; i < library->n_symbols; i++) {
        void *function = dlsym(opened, library->symbols[i].name);
        if (function == NULL) {
            return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "%s is too old: %s has no %s; %s",
                                  library->what, library->names[0], library->symbols[i].name,
                                  library->remedy);
        }
        memcpy((char *)out + library->symbols[i].offset, &function, sizeof function);
    }
    return WEIR_OK;
}

weir_status library_load_driver(struct cuda_driver *out, struct weir_error *err)
{
    return load(&driver_library, out, err);
}

weir_status library_load_nvrtc(struct nvrtc *out, struct weir_error *err)
{
    return load(&nvrtc_library, out, err);
}

weir_status library_load_cudnn(struct cudnn *out, struct weir_error *err)
{
    /* cuDNN ends the process if it does not find cuBLASLt when it wants it. */
    WEIR_TRY(load(&cublas_library, NULL, err));
    return load(&cudnn_library, out, err);
}

weir_status library_load_nccl(struct nccl *out, struct weir_error *err)
{
    int version = 0;
    WEIR_TRY(load(&nccl_library, out, err));
    if (out->version(&version) != ncclSuccess || version < NCCL_VERSION_MIN) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "NCCL is too old: its version is %d; %s",
                              version, NCCL_REMEDY);
    }
    return WEIR_OK;
}
