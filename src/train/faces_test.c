/* The recogniser on real faces, beside recognisers that need no network. Slow: trains two nets. */
#include "train/identification.h"

#include "base/file.h"
#include "base/test_main.h"

#define EXIT_SKIPPED 77

START_TEST(the_recogniser_beats_pixels_and_eigenfaces)
{
    char data[4096];
    struct identification_result result;
    struct weir_error err;
    (void)snprintf(data, sizeof data, "%s/orl_faces", getenv("WEIR_SHARED_DATA"));
    const struct identification_config config = {
        .model = "face-embed", .backend = "onednn", .data = data, .n_seeds = 2, .progress = stdout};
    weir_status status = identification_run(&config, &result, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    identification_print(&result, false, stdout);
    for (int g = 0; g < IDENTIFICATION_GROUPS; g++) {
        const struct recognition *weir = &result.summaries[g][IDENTIFICATION_WEIR].mean;
        for (int m = IDENTIFICATION_PIXEL_COSINE; m < IDENTIFICATION_METHODS; m++) {
            const struct recognition *other = &result.summaries[g][m].mean;
            ck_assert_double_ge(weir->rank1, other->rank1);
            ck_assert_double_gt(weir->tar, other->tar);
        }
    }
    /* People it knows: at most half the errors of the better of the others. */
    const struct recognition *weir = &result.summaries[0][IDENTIFICATION_WEIR].mean;
    for (int m = IDENTIFICATION_PIXEL_COSINE; m < IDENTIFICATION_METHODS; m++) {
        const struct recognition *other = &result.summaries[0][m].mean;
        ck_assert_double_le(1 - weir->rank1, (1 - other->rank1) / 2);
        ck_assert_double_le(1 - weir->tar, (1 - other->tar) / 2);
    }
}

END_TEST

int main(void)
{
    char data[4096];
    const char *shared = getenv("WEIR_SHARED_DATA");
    (void)snprintf(data, sizeof data, "%s/orl_faces", shared != NULL ? shared : "");
    if (shared == NULL || !weir_path_is_dir(data)) {
        (void)printf("skipped: no %s\n", data);
        return EXIT_SKIPPED;
    }
    Suite *suite = suite_create("faces");
    TCase *tcase = tcase_create("faces");
    tcase_set_timeout(tcase, 900);
    tcase_add_test(tcase, the_recogniser_beats_pixels_and_eigenfaces);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
