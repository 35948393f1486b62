/** Tests: a folder of their own, and files in it by name. */
#ifndef WEIR_DATA_TEST_FOLDER_H
#define WEIR_DATA_TEST_FOLDER_H

#include "base/file.h"
#include "base/test_main.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

static char folder[64];

static inline void make_folder(void)
{
    (void)snprintf(folder, sizeof folder, "/tmp/weir-data-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static inline void remove_folder(void)
{
    ck_assert_int_eq(weir_dir_remove(folder, NULL), WEIR_OK);
}

/** Folders in the name are made. */
static inline void put(const char *name, const void *data, size_t size)
{
    char path[256], parent[256];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    (void)snprintf(parent, sizeof parent, "%s", path);
    *strrchr(parent, '/') = '\0';
    ck_assert_int_eq(weir_dir_make(parent, 0755, NULL), WEIR_OK);
    ck_assert_int_eq(weir_file_write(path, data, size, 0644, NULL), WEIR_OK);
}

static inline void put_gzip(const char *name, const void *data, unsigned size)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    gzFile file = gzopen(path, "wb");
    ck_assert_int_eq(gzwrite(file, data, size), (int)size);
    ck_assert_int_eq(gzclose(file), Z_OK);
}

#endif
