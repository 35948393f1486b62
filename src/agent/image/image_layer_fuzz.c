/** Any bytes as a layer of an image: nothing may appear beside the root, whatever comes of it. */
#include "agent/image/image_layer.h"

#include "base/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char dir[WEIR_DIR_TEMPORARY_BYTES], root[WEIR_DIR_TEMPORARY_BYTES + 8];
    struct weir_error err = {0};
    struct stat info;
    struct image_bounds bounds = {.max_bytes = 1 << 20, .max_entries = 200};
    int fd = memfd_create("layer", MFD_CLOEXEC);
    if (fd < 0 || weir_fd_write_all(fd, data, size, &err) != WEIR_OK ||
        lseek(fd, 0, SEEK_SET) != 0 ||
        weir_dir_make_temporary("image-layer-fuzz", dir, &err) != WEIR_OK) {
        abort();
    }
    (void)snprintf(root, sizeof root, "%s/root", dir);
    if (weir_dir_make(root, 0755, &err) != WEIR_OK) {
        abort();
    }
    int root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (image_layer_unpack(fd, root_fd, &bounds, &err) != WEIR_OK && err.message[0] == '\0') {
        abort();
    }
    if (stat(dir, &info) != 0 || info.st_nlink != 3 || bounds.bytes > bounds.max_bytes) {
        abort(); /* another folder beside the root */
    }
    (void)close(root_fd);
    (void)close(fd);
    return weir_dir_remove(dir, &err) == WEIR_OK ? 0 : (abort(), 0);
}
