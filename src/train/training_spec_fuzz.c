/* Any bytes as spec.json of a training: refused with a sentence, or a configuration that passes its
 * own check. */
#include "train/config.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_arena arena;
    struct weir_error err = {0};
    struct weir_train_config config;
    char path[64], flag[] = "--spec";
    int fd = memfd_create("spec", MFD_CLOEXEC);
    if (fd < 0 || weir_fd_write_all(fd, data, size, NULL) != WEIR_OK) {
        abort();
    }
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    char *const argv[] = {flag, path, NULL};
    weir_arena_init(&arena, 0);
    if (weir_train_config_parse(2, argv, &arena, &config, &err) != WEIR_OK) {
        if (err.message[0] == '\0') {
            abort();
        }
    } else if (!config.is_help && weir_train_config_check(&config, &err) != WEIR_OK) {
        abort();
    }
    weir_arena_fini(&arena);
    (void)close(fd);
    return 0;
}
