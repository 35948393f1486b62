/* Any bytes as spec.json of a replica: refused by file and place, or whole. */
#include "predict/spec.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_arena arena;
    struct weir_error err = {0};
    struct predict_spec spec;
    char path[64];
    int fd = memfd_create("spec", MFD_CLOEXEC);
    if (fd < 0 || weir_fd_write_all(fd, data, size, NULL) != WEIR_OK) {
        abort();
    }
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    weir_arena_init(&arena, 0);
    if (predict_spec_load(path, &arena, &spec, &err) != WEIR_OK) {
        if (strstr(err.message, path) == NULL) {
            abort();
        }
    } else if (spec.ion == NULL || spec.pipeline == NULL || spec.host.dir == NULL ||
               spec.rank < 0 || spec.rank >= spec.n_replicas ||
               spec.n_sinks > WEIR_ENDPOINT_SINKS_MAX || spec.source.kind == NULL ||
               spec.source.options == NULL) {
        abort();
    } else {
        predict_spec_fini(&spec);
    }
    weir_arena_fini(&arena);
    (void)close(fd);
    return 0;
}
