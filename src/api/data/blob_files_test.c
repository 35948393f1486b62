#include "api/data/blob_files.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <stdio.h>
#include <string.h>

enum { N_MANIFESTS = 12, N_FILES = 400 };

static struct weir_blobs *blobs;
static struct weir_rng rng;
static char dir[WEIR_DIR_TEMPORARY_BYTES];

/** What should be so: which manifest names which file. */
static char files[N_FILES][WEIR_SHA256_TEXT_BYTES], manifests[N_MANIFESTS][WEIR_SHA256_TEXT_BYTES];
static bool names[N_MANIFESTS][N_FILES];

/* JSON as of a dataset's version, or lines as of a folder; with digits that are no hash between them. */
static void put_manifest(size_t m, size_t n_about)
{
    static char text[N_FILES * 200];
    size_t len =
        (size_t)snprintf(text, sizeof text, "{\"m\":%zu,\"odd\":\"%s0\",\"files\":[", m, files[0]);
    for (size_t f = 0; f < N_FILES; f++) {
        names[m][f] = weir_rng_below(&rng, N_FILES) < n_about;
        if (names[m][f]) {
            len += (size_t)snprintf(text + len, sizeof text - len, "%s%s%s",
                                    m % 2 == 0 ? "{\"sha256\":\"" : "\nf\t", files[f],
                                    m % 2 == 0 ? "\"}," : "\t12\tabc/def0");
        }
    }
    ck_assert_int_eq(weir_blob_put(blobs, text, len, NULL, manifests[m], NULL), WEIR_OK);
}

static void set_up(void)
{
    weir_rng_init(&rng, 20261128, 0);
    ck_assert_int_eq(weir_dir_make_temporary("blob-files", dir, NULL), WEIR_OK);
    ck_assert_int_eq(weir_blobs_open(dir, &blobs, NULL), WEIR_OK);
    for (size_t f = 0; f < N_FILES; f++) {
        weir_sha256(&f, sizeof f, files[f]);
    }
    for (size_t m = 0; m < N_MANIFESTS; m++) {
        put_manifest(m, m * N_FILES / N_MANIFESTS);
    }
}

static void tear_down(void)
{
    weir_blobs_close(blobs);
    ck_assert_int_eq(weir_dir_remove(dir, NULL), WEIR_OK);
}

/* The bound is such that none, some or all are kept. */
START_TEST(a_manifest_names_its_files_and_no_others_however_many_are_kept)
{
    static const size_t bounds[] = {0, 200 * sizeof(uint64_t), 900 * sizeof(uint64_t),
                                    WEIR_BLOB_FILES_MAX_BYTES};
    for (size_t b = 0; b < WEIR_ARRAY_LEN(bounds); b++) {
        struct blob_files *kept = blob_files_create(blobs, bounds[b]);
        for (int i = 0; i < WEIR_TEST_TIMES(4000, 1000); i++) {
            size_t m = weir_rng_below(&rng, N_MANIFESTS), f = weir_rng_below(&rng, N_FILES);
            bool found = false;
            ck_assert_int_eq(blob_files_have(kept, manifests[m], files[f], &found, NULL), WEIR_OK);
            ck_assert_msg(found == names[m][f], "bound %zu: manifest %zu, file %zu", bounds[b], m,
                          f);
        }
        bool found = true;
        ck_assert_int_eq(blob_files_have(kept, files[0], files[1], &found, NULL), WEIR_OK);
        ck_assert(!found); /* a manifest that is not there */
        ck_assert_int_eq(blob_files_have(kept, manifests[1], "short", &found, NULL), WEIR_OK);
        ck_assert(!found);
        blob_files_destroy(kept);
    }
}

END_TEST

WEIR_TEST_MAIN_WITH("blob files", set_up, tear_down,
                    a_manifest_names_its_files_and_no_others_however_many_are_kept)
