/* Any bytes: refused with a sentence, or members that lie in the file, one behind the other, each with
 * a name of its own that leads nowhere else. */
#include "capture/tar.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_arena arena;
    struct weir_error err = {0};
    struct tar_member *members;
    size_t n;
    uint64_t after = 0;
    int fd = memfd_create("tar", MFD_CLOEXEC);
    if (fd < 0 || weir_fd_write_all(fd, data, size, &err) != WEIR_OK) {
        abort();
    }
    weir_arena_init(&arena, 16 << 20);
    if (tar_list(fd, size, &arena, &members, &n, &err) == WEIR_OK) {
        for (size_t i = 0; i < n; i++) {
            if (!tar_name_is_valid(members[i].name) || members[i].offset < after ||
                members[i].offset > size || members[i].bytes > size - members[i].offset) {
                abort();
            }
            after = members[i].offset + members[i].bytes;
        }
    } else if (err.message[0] == '\0') {
        abort();
    }
    weir_arena_fini(&arena);
    (void)close(fd);
    return 0;
}
