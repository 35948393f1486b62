/**
 * Tests: an empty database that is up to date, without the migrations. Each of these takes its time (they alter
 * tables that are there), and hundreds of tests begin with a database of their own.
 *
 * The first test that needs one keeps it in the folder WEIR_TEST_CACHE (ctest sets it), under the hash of
 * this build's migrations; the others copy it. Without the variable all is as for users.
 */
#ifndef WEIR_STORE_STORE_TEMPLATE_H
#define WEIR_STORE_STORE_TEMPLATE_H

#include "base/file.h"
#include "base/sha256.h"
#include "store/store.h"
#include "store/store_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STORE_TEMPLATE_MAX_BYTES (64 << 20)

/** The hash of all migrations, one after the other. */
static inline void store_template_hash(char out[WEIR_SHA256_TEXT_BYTES])
{
    struct weir_sha256_stream hash;
    const struct db_ops *ops;
    size_t n = 0;
    weir_sha256_begin(&hash);
    const struct migration *all = db_find("", &ops, NULL) == WEIR_OK ? ops->migrations(&n) : NULL;
    for (size_t i = 0; i < n; i++) {
        weir_sha256_add(&hash, all[i].sql, strlen(all[i].sql) + 1);
    }
    weir_sha256_end(&hash, out);
}

/** Make it beside its place; whoever comes first puts it there, and nobody reads a part of one. */
static inline weir_status store_template_make(const char *path, struct weir_error *err)
{
    char *own = NULL, *lock = NULL;
    if (asprintf(&own, "%s.%ld", path, (long)getpid()) < 0 || asprintf(&lock, "%s.lock", own) < 0) {
        abort();
    }
    struct weir_store *store = NULL;
    weir_status status =
        weir_store_open(&(struct weir_store_config){.path = own, .n_readers = 1}, &store, err);
    weir_store_close(store);
    (void)unlink(lock);
    if (status == WEIR_OK && rename(own, path) != 0) {
        status = weir_error_set(err, WEIR_ERR_IO, "renaming %s", own);
    }
    free(own);
    free(lock);
    return status;
}

/** Lay an empty database at `path`, where there is no file; without WEIR_TEST_CACHE nothing is done. */
static inline weir_status store_template_lay(const char *path, struct weir_error *err)
{
    const char *folder = getenv("WEIR_TEST_CACHE");
    char template[4096], hash[WEIR_SHA256_TEXT_BYTES];
    char *bytes = NULL;
    size_t len = 0;
    if (folder == NULL || weir_path_exists(path)) {
        return WEIR_OK;
    }
    store_template_hash(hash);
    (void)snprintf(template, sizeof template, "%s/store-%s.db", folder, hash);
    if (!weir_path_exists(template)) {
        WEIR_TRY(weir_dir_make(folder, 0700, err));
        WEIR_TRY(store_template_make(template, err));
    }
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    weir_status status =
        weir_file_read(template, STORE_TEMPLATE_MAX_BYTES, &arena, &bytes, &len, err);
    if (status == WEIR_OK) {
        status = weir_file_write(path, bytes, len, 0600, err);
    }
    weir_arena_fini(&arena);
    return status;
}

#endif
