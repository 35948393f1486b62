/** Any bytes as an IDX file of images; labels are a fixed good file. */
#include "data/dataset.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int file_of(const void *data, size_t size)
{
    int fd = memfd_create("idx", MFD_CLOEXEC);
    if (fd < 0 || weir_fd_write_all(fd, data, size, NULL) != WEIR_OK) {
        abort();
    }
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 1, 0};
    char images_path[64], labels_path[64];
    int images_fd = file_of(data, size), labels_fd = file_of(labels, sizeof labels);
    (void)snprintf(images_path, sizeof images_path, "/proc/self/fd/%d", images_fd);
    (void)snprintf(labels_path, sizeof labels_path, "/proc/self/fd/%d", labels_fd);
    struct weir_dataset *dataset = NULL;
    struct weir_error err = {0};
    if (weir_dataset_open_idx(images_path, labels_path, &dataset, &err) == WEIR_OK) {
        struct weir_image image;
        for (size_t i = 0; i < weir_dataset_n_samples(dataset); i++) {
            if (weir_dataset_read(dataset, i, &image, &err) != WEIR_OK) {
                abort();
            }
            char digest[WEIR_SHA256_TEXT_BYTES]; // reads every pixel that is promised
            weir_sha256(image.pixels, (size_t)image.width * (size_t)image.height, digest);
        }
        weir_dataset_close(dataset);
    } else if (err.message[0] == '\0') {
        abort();
    }
    // The same bytes as labels: one dimension.
    if (weir_dataset_open_idx(labels_path, images_path, &dataset, &err) == WEIR_OK) {
        abort(); // the "images" are one-dimensional
    }
    (void)close(images_fd);
    (void)close(labels_fd);
    return 0;
}
