/* IDX, the format of MNIST: big-endian 0, 0, type, number of dimensions; 32-bit dimensions; data.
 * zlib reads raw files as they are, so raw and gzip take the same way. */
#include "data/dataset_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#define FIRST_PIECE_BYTES ((size_t)1 << 20)

static weir_status read_failed(gzFile file, const char *path, struct weir_error *err)
{
    int code = Z_OK;
    const char *message = gzerror(file, &code);
    if (code == Z_ERRNO) {
        return weir_error_set_errno(err, errno, "%s", path);
    }
    if (code == Z_MEM_ERROR) {
        return dataset_nomem(err);
    }
    return weir_error_set(err, WEIR_ERR_CORRUPT, "%s: %s", path,
                          code == Z_OK || code == Z_BUF_ERROR ? "truncated" : message);
}

static weir_status read_header(gzFile file, const char *path, unsigned n_dims, uint32_t *out_dims,
                               struct weir_error *err)
{
    uint8_t head[16];
    unsigned size = 4 + 4 * n_dims;
    if (gzread(file, head, size) != (int)size) {
        return read_failed(file, path, err);
    }
    if (head[0] != 0 || head[1] != 0 || head[2] != 8 || head[3] != n_dims) {
        return weir_error_set(err, WEIR_ERR_CORRUPT,
                              "%s: not an IDX file of unsigned bytes in %u dimension%s", path,
                              n_dims, n_dims == 1 ? "" : "s");
    }
    for (unsigned i = 0; i < n_dims; i++) {
        const uint8_t *at = head + 4 + 4 * i;
        out_dims[i] = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
    }
    return WEIR_OK;
}

/** Nothing more, and a whole gzip trailer whose checksum fits. */
static weir_status expect_end(gzFile file, const char *path, struct weir_error *err)
{
    uint8_t more;
    int code = Z_OK, n = gzread(file, &more, 1);
    (void)gzerror(file, &code);
    if (n > 0) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "%s: more bytes than its header says", path);
    }
    return n < 0 || (code != Z_OK && code != Z_STREAM_END) ? read_failed(file, path, err) : WEIR_OK;
}

/** Exactly `size` bytes and then the end. Memory grows with what is really there, so that a header
 *  alone cannot ask for gigabytes. */
static weir_status read_body(gzFile file, const char *path, size_t size, uint8_t **out,
                             struct weir_error *err)
{
    size_t cap = WEIR_MIN(size, FIRST_PIECE_BYTES), n_read = 0;
    uint8_t *data = malloc(cap + 1), *moved;
    weir_status status = data == NULL ? dataset_nomem(err) : WEIR_OK;
    while (status == WEIR_OK && n_read < size) {
        if (n_read == cap) {
            cap = WEIR_MIN(size, 2 * cap);
            moved = realloc(data, cap + 1);
            if (moved == NULL) {
                status = dataset_nomem(err);
                break;
            }
            data = moved;
        }
        int n = gzread(file, data + n_read, (unsigned)WEIR_MIN(cap - n_read, (size_t)1 << 30));
        if (n <= 0) {
            status = read_failed(file, path, err);
            break;
        }
        n_read += (size_t)n;
    }
    if (status == WEIR_OK) {
        status = expect_end(file, path, err);
    }
    if (status != WEIR_OK) {
        free(data);
        return status;
    }
    *out = data;
    return WEIR_OK;
}

static weir_status size_of(const char *path, const uint32_t *dims, unsigned n_dims, size_t *out,
                           struct weir_error *err)
{
    size_t size = 1;
    for (unsigned i = 0; i < n_dims; i++) {
        if (dims[i] == 0) {
            return weir_error_set(err, WEIR_ERR_CORRUPT, "%s: a dimension is 0", path);
        }
        if (size > WEIR_DATASET_MAX_IDX_BYTES / dims[i]) {
            return weir_error_set(err, WEIR_ERR_LIMIT, "%s: holds more than %zu bytes", path,
                                  WEIR_DATASET_MAX_IDX_BYTES);
        }
        size *= dims[i];
    }
    *out = size;
    return WEIR_OK;
}

static weir_status read_file(const char *path, unsigned n_dims, uint32_t *out_dims, uint8_t **out,
                             struct weir_error *err)
{
    gzFile file = gzopen(path, "rbe");
    if (file == NULL) {
        return errno == 0 ? dataset_nomem(err) : weir_error_set_errno(err, errno, "%s", path);
    }
    (void)gzbuffer(file, 1 << 17);
    size_t size = 0;
    weir_status status = WEIR_OK;
    WEIR_TRY_GOTO(read_header(file, path, n_dims, out_dims, err), status, close);
    WEIR_TRY_GOTO(size_of(path, out_dims, n_dims, &size, err), status, close);
    status = read_body(file, path, size, out, err);
close:
    (void)gzclose(file);
    return status;
}

static weir_status take_labels(struct weir_dataset *dataset, const uint8_t *labels,
                               struct weir_error *err)
{
    int32_t n_classes = 0;
    for (size_t i = 0; i < dataset->n_samples; i++) {
        dataset->labels[i] = labels[i];
        n_classes = WEIR_MAX(n_classes, labels[i] + 1);
    }
    for (int32_t i = 0; i < n_classes; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "%d", i);
        if (name_list_add(&dataset->classes, name) != WEIR_OK) {
            return dataset_nomem(err);
        }
    }
    return WEIR_OK;
}

weir_status idx_load(struct weir_dataset *dataset, const char *images_path, const char *labels_path,
                     struct weir_error *err)
{
    uint32_t dims[3], n_labels;
    uint8_t *labels = NULL;
    WEIR_TRY(read_file(images_path, 3, dims, &dataset->idx_pixels, err));
    if (dims[1] > WEIR_IMAGE_MAX_SIDE || dims[2] > WEIR_IMAGE_MAX_SIDE ||
        dims[0] > WEIR_DATASET_MAX_SAMPLES) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "%s: %u pictures of %u x %u are too many or "
                              "too large",
                              images_path, dims[0], dims[2], dims[1]);
    }
    WEIR_TRY(read_file(labels_path, 1, &n_labels, &labels, err));
    weir_status status = WEIR_OK;
    if (n_labels != dims[0]) {
        status = weir_error_set(err, WEIR_ERR_CORRUPT, "%s holds %u labels, %s %u pictures",
                                labels_path, n_labels, images_path, dims[0]);
        goto free_labels;
    }
    dataset->n_samples = dims[0];
    dataset->idx_height = (int)dims[1];
    dataset->idx_width = (int)dims[2];
    WEIR_TRY_GOTO(dataset_seal(dataset, 0, err), status, free_labels);
    WEIR_TRY_GOTO(take_labels(dataset, labels, err), status, free_labels);
    if (name_list_add(&dataset->files, images_path) != WEIR_OK ||
        name_list_add(&dataset->files, labels_path) != WEIR_OK) {
        status = dataset_nomem(err);
    }
free_labels:
    free(labels);
    return status;
}
