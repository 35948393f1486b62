#include "predict/embedding_store.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define HEADER_BYTES   20
#define TRAILER_BYTES  4
#define STORE_MAX_SIZE ((size_t)4 << 30)

static const char magic[8] = "WEIREMB1";

static size_t row_bytes(size_t dim)
{
    return EMBEDDING_DIGEST_LEN + dim * sizeof(float);
}

static uint32_t checksum(const void *bytes, size_t len)
{
    return (uint32_t)crc32_z(0L, bytes, len);
}

static bool is_usable(const char *data, size_t len, size_t dim, uint64_t *out_n)
{
    uint32_t file_dim, crc;
    uint64_t n;
    if (len < HEADER_BYTES + TRAILER_BYTES || memcmp(data, magic, sizeof magic) != 0) {
        return false;
    }
    memcpy(&file_dim, data + 8, sizeof file_dim);
    memcpy(&n, data + 12, sizeof n);
    memcpy(&crc, data + len - TRAILER_BYTES, sizeof crc);
    size_t rows_bytes = len - HEADER_BYTES - TRAILER_BYTES;
    *out_n = n;
    return file_dim == dim && rows_bytes % row_bytes(dim) == 0 &&
           n == rows_bytes / row_bytes(dim) && crc == checksum(data, len - TRAILER_BYTES);
}

void embedding_store_load(struct embedding_store *store, const char *path, size_t dim)
{
    char *data;
    size_t len;
    uint64_t n;
    struct weir_error err;
    *store = (struct embedding_store){.dim = dim};
    weir_arena_init(&store->arena, STORE_MAX_SIZE + ((size_t)1 << 20));
    weir_status status = weir_file_read(path, STORE_MAX_SIZE, &store->arena, &data, &len, &err);
    if (status == WEIR_OK && is_usable(data, len, dim, &n)) {
        store->n = (size_t)n;
        store->rows = data + HEADER_BYTES;
    } else if (status != WEIR_ERR_NOT_FOUND) {
        weir_log(WEIR_LOG_WARN, "embeddings_unusable", WEIR_KV_STR("file", path));
    }
}

void embedding_store_fini(struct embedding_store *store)
{
    weir_arena_fini(&store->arena);
    store->rows = NULL;
    store->n = 0;
}

static int by_digest(const void *a, const void *b)
{
    return memcmp(a, b, EMBEDDING_DIGEST_LEN);
}

bool embedding_store_find(const struct embedding_store *store, const char *digest, float *out)
{
    if (store->n == 0) {
        return false;
    }
    const char *row = bsearch(digest, store->rows, store->n, row_bytes(store->dim), by_digest);
    if (row == NULL) {
        return false;
    }
    memcpy(out, row + EMBEDDING_DIGEST_LEN, store->dim * sizeof(float));
    return true;
}

weir_status embedding_store_save(const char *path, size_t dim, const char *const *digests,
                                 const float *vectors, size_t n, struct weir_error *err)
{
    size_t len = HEADER_BYTES + n * row_bytes(dim);
    char *data = malloc(len + TRAILER_BYTES);
    if (data == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "%s: out of memory", path);
    }
    uint32_t file_dim = (uint32_t)dim;
    uint64_t count = n;
    memcpy(data, magic, sizeof magic);
    memcpy(data + 8, &file_dim, sizeof file_dim);
    memcpy(data + 12, &count, sizeof count);
    char *rows = data + HEADER_BYTES;
    for (size_t i = 0; i < n; i++) {
        memcpy(rows + i * row_bytes(dim), digests[i], EMBEDDING_DIGEST_LEN);
        memcpy(rows + i * row_bytes(dim) + EMBEDDING_DIGEST_LEN, vectors + i * dim,
               dim * sizeof(float));
    }
    if (n > 0) {
        qsort(rows, n, row_bytes(dim), by_digest);
    }
    uint32_t crc = checksum(data, len);
    memcpy(data + len, &crc, sizeof crc);
    weir_status status = weir_file_write_atomic(path, data, len + TRAILER_BYTES, 0600, err);
    free(data);
    return status;
}
