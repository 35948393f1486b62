/* Oracle: batches made here, one sample after the other, from order.h, the dataset and augment.h.
 */
#include "data/loader.h"

#include "base/test_alloc.h"
#include "data/test_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_FILES 53
#define SIDE    12
#define LEN     (SIDE * SIDE)

static struct weir_dataset *dataset;

static void write_file(int i, bool is_damaged)
{
    char name[32];
    uint8_t file[64 + LEN];
    (void)snprintf(name, sizeof name, "c%d/%02d.pgm", i % 3, i);
    int head = snprintf((char *)file, sizeof file, "P5 %d %d 255\n", SIDE, SIDE);
    for (int k = 0; k < LEN; k++) {
        file[head + k] = (uint8_t)(i * 4 + k);
    }
    put(name, file, (size_t)head + LEN - (is_damaged ? 7 : 0));
}

static void open_dataset(void)
{
    weir_dataset_close(dataset);
    struct weir_dataset_options options = {.cache_bytes = 20 * LEN};
    ck_assert_int_eq(weir_dataset_open(folder, &options, &dataset, NULL), WEIR_OK);
    ck_assert_uint_eq(weir_dataset_n_samples(dataset), N_FILES);
}

static void make_dataset(void)
{
    make_folder();
    for (int i = 0; i < N_FILES; i++) {
        write_file(i, false);
    }
    dataset = NULL;
    open_dataset();
}

static void remove_dataset(void)
{
    weir_dataset_close(dataset);
    remove_folder();
}

static struct weir_loader_config usual(void)
{
    return (struct weir_loader_config){
        .input = {.c = 1, .h = SIDE, .w = SIDE, .mean = {0.5f}, .std = {0.25f}},
        .batch = 8,
        .seed = 17,
        .shuffle = true,
        .augment = WEIR_AUGMENT_FACE,
        .n_threads = 2};
}

static struct weir_loader *create(const struct weir_loader_config *config)
{
    struct weir_loader *loader = NULL;
    struct weir_error err = {0};
    ck_assert_msg(weir_loader_create(dataset, config, &loader, &err) == WEIR_OK, "%s", err.message);
    return loader;
}

/** Is slot `slot` of the batch what position `position` of `epoch` must give? */
static void check_slot(const struct weir_batch *batch, uint32_t slot,
                       const struct weir_loader_config *config, uint64_t epoch, uint64_t position)
{
    const float *images = batch->images + slot * LEN;
    if (position >= N_FILES) {
        ck_assert_int_eq(batch->labels[slot], -1);
        ck_assert_uint_eq(batch->samples[slot], UINT64_MAX);
        for (int i = 0; i < LEN; i++) {
            ck_assert_float_eq(images[i], 0);
        }
        return;
    }
    uint64_t sample =
        config->shuffle ? weir_permute(config->seed, epoch, N_FILES, position) : position;
    ck_assert_uint_eq(batch->samples[slot], sample);
    ck_assert_int_eq(batch->labels[slot], weir_dataset_label(dataset, sample));
    struct weir_image image;
    float scratch[2 * LEN], expected[LEN];
    ck_assert_uint_le(weir_augment_scratch_len(&config->input), 2 * LEN);
    ck_assert_int_eq(weir_dataset_read(dataset, sample, &image, NULL), WEIR_OK);
    struct weir_augment_key key = {config->seed, epoch, sample};
    ck_assert_int_eq(
        weir_augment_apply(config->augment, key, &image, &config->input, scratch, expected, NULL),
        WEIR_OK);
    weir_image_fini(&image);
    ck_assert_mem_eq(images, expected, sizeof expected);
}

START_TEST(batches_are_the_orders_whatever_the_threads_and_the_world_size)
{
    static const unsigned n_threads[] = {0, 1, 3};
    static const uint32_t sizes[] = {1, 2, 3, 5};
    for (int t = 0; t < 3; t++) {
        for (int s = 0; s < 4; s++) {
            for (uint32_t rank = 0; rank < sizes[s]; rank++) {
                struct weir_loader_config config = usual();
                config.n_threads = n_threads[t];
                config.rank = rank;
                config.size = sizes[s];
                config.depth = 1 + (unsigned)t;
                struct weir_loader *loader = create(&config);
                uint32_t first, n;
                weir_order_share(8, rank, sizes[s], &first, &n);
                for (uint64_t b = 0; b < 15; b++) { // 6 whole batches per epoch of 53
                    struct weir_batch batch;
                    ck_assert_int_eq(weir_loader_next(loader, &batch, NULL), WEIR_OK);
                    ck_assert_uint_eq(batch.n_slots, (8 + sizes[s] - 1) / sizes[s]);
                    ck_assert_uint_eq(batch.n_valid, n);
                    ck_assert_uint_eq(batch.place.epoch, b / 6);
                    ck_assert_uint_eq(batch.place.position, b % 6 * 8);
                    for (uint32_t i = 0; i < batch.n_slots; i++) {
                        uint64_t position = i < n ? b % 6 * 8 + first + i : N_FILES;
                        check_slot(&batch, i, &config, b / 6, position);
                    }
                }
                weir_loader_destroy(loader);
            }
        }
    }
}

END_TEST

START_TEST(evaluation_sees_every_sample_once_and_then_ends)
{
    struct weir_loader_config config = usual();
    config.shuffle = false;
    config.augment = WEIR_AUGMENT_NONE;
    config.tail = WEIR_TAIL_PAD;
    config.n_epochs = 1;
    for (unsigned t = 0; t < 3; t++) {
        config.n_threads = t;
        struct weir_loader *loader = create(&config);
        struct weir_batch batch;
        struct weir_error err;
        uint32_t n_valid = 0;
        for (uint64_t b = 0; b < 7; b++) {
            ck_assert_int_eq(weir_loader_next(loader, &batch, NULL), WEIR_OK);
            for (uint32_t i = 0; i < 8; i++) {
                check_slot(&batch, i, &config, 0, b * 8 + i);
            }
            n_valid += batch.n_valid;
        }
        ck_assert_uint_eq(n_valid, N_FILES);
        ck_assert_int_eq(weir_loader_next(loader, &batch, &err), WEIR_ERR_END);
        ck_assert_int_eq(weir_loader_next(loader, &batch, &err), WEIR_ERR_END);
        weir_loader_destroy(loader);
    }
}

END_TEST

START_TEST(a_loader_started_at_a_stored_place_goes_on_with_the_same_bits)
{
    struct weir_loader_config config = usual();
    struct weir_loader *whole = create(&config);
    for (int b = 0; b < 14; b++) {
        struct weir_batch batch, resumed_batch;
        ck_assert_int_eq(weir_loader_next(whole, &batch, NULL), WEIR_OK);
        struct weir_loader_config later = config;
        later.start = batch.place;
        later.n_threads = 1;
        struct weir_loader *resumed = create(&later);
        ck_assert_int_eq(weir_loader_next(resumed, &resumed_batch, NULL), WEIR_OK);
        ck_assert_mem_eq(resumed_batch.images, batch.images, 8 * LEN * sizeof(float));
        ck_assert_mem_eq(resumed_batch.labels, batch.labels, 8 * sizeof(int32_t));
        ck_assert_uint_eq(resumed_batch.next.epoch, batch.next.epoch);
        ck_assert_uint_eq(resumed_batch.next.position, batch.next.position);
        weir_loader_destroy(resumed);
    }
    weir_loader_destroy(whole);
}

END_TEST

/* Run a rank of two in a process of its own, with its log in `log_path`. */
static void run_rank(uint32_t rank, const char *log_path)
{
    pid_t pid = fork();
    if (pid == 0) {
        int fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
        (void)dup2(fd, STDERR_FILENO);
        struct weir_loader_config config = usual();
        struct weir_batch batch;
        config.rank = rank;
        config.size = 2;
        config.n_epochs = 6;
        struct weir_loader *loader = create(&config);
        while (weir_loader_next(loader, &batch, NULL) == WEIR_OK) {
        }
        weir_loader_destroy(loader);
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}

/* In six epochs each rank meets nearly every sample. */
START_TEST(the_ranks_of_a_gang_tell_once_of_a_damaged_file)
{
    char log_path[128], line[512];
    int n_told[N_FILES] = {0}, n_lines = 0;
    for (int i = 0; i < N_FILES; i += 5) {
        write_file(i, true);
    }
    open_dataset();
    (void)snprintf(log_path, sizeof log_path, "%s.log", folder);
    run_rank(0, log_path);
    run_rank(1, log_path);
    FILE *file = fopen(log_path, "re");
    while (fgets(line, sizeof line, file) != NULL) {
        int class_number, i;
        const char *name = strstr(line, "sample=c");
        ck_assert(name != NULL && sscanf(name, "sample=c%d/%d", &class_number, &i) == 2);
        n_told[i]++;
        n_lines++;
    }
    (void)fclose(file);
    ck_assert_int_eq(unlink(log_path), 0);
    for (int i = 0; i < N_FILES; i++) {
        ck_assert_msg(n_told[i] == (i % 5 == 0), "%d: %d times", i, n_told[i]);
    }
    ck_assert_int_gt(n_lines, 5);
}

END_TEST

START_TEST(a_damaged_file_is_skipped_and_listed_once)
{
    write_file(4, true); // c1/04.pgm
    write_file(30, true);
    char path[128];
    (void)snprintf(path, sizeof path, "%s/c2/20.pgm", folder);
    open_dataset();
    ck_assert_int_eq(unlink(path), 0); // vanishes after the dataset was opened
    struct weir_loader_config config = usual();
    config.tail = WEIR_TAIL_PAD;
    config.n_epochs = 3;
    struct weir_loader *loader = create(&config);
    struct weir_batch batch;
    unsigned n_valid = 0, n_skipped = 0;
    while (weir_loader_next(loader, &batch, NULL) == WEIR_OK) {
        n_valid += batch.n_valid;
        for (uint32_t i = 0; i < batch.n_slots; i++) {
            n_skipped += batch.labels[i] < 0 && batch.samples[i] != UINT64_MAX;
        }
    }
    ck_assert_uint_eq(n_valid, 3 * (N_FILES - 3));
    ck_assert_uint_eq(n_skipped, 9);
    uint64_t damaged[8];
    ck_assert_uint_eq(weir_loader_damaged(loader, damaged, 8), 3);
    static const char *const names[] = {"c0/30.pgm", "c1/04.pgm", "c2/20.pgm"};
    for (int i = 0; i < 3; i++) {
        char name[WEIR_SAMPLE_NAME_BYTES];
        ck_assert_str_eq(weir_dataset_sample_name(dataset, damaged[i], name), names[i]);
    }
    weir_loader_destroy(loader);
}

END_TEST

START_TEST(fatal_damage_is_reported_at_its_place_by_name)
{
    write_file(4, true);
    open_dataset();
    struct weir_loader_config config = usual();
    config.tail = WEIR_TAIL_PAD;
    config.on_damage = WEIR_ON_DAMAGE_FATAL;
    config.shuffle = false;
    // Classes come first: c0 has 18 files, c1/04.pgm is sample 19, in the third batch.
    for (unsigned t = 0; t < 4; t++) {
        config.n_threads = t;
        struct weir_loader *loader = create(&config);
        struct weir_batch batch;
        struct weir_error err = {0};
        ck_assert_int_eq(weir_loader_next(loader, &batch, &err), WEIR_OK);
        ck_assert_int_eq(weir_loader_next(loader, &batch, &err), WEIR_OK);
        ck_assert_int_eq(weir_loader_next(loader, &batch, &err), WEIR_ERR_CORRUPT);
        ck_assert_ptr_nonnull(strstr(err.message, "c1/04.pgm"));
        ck_assert_int_eq(weir_loader_next(loader, &batch, &err), WEIR_ERR_CORRUPT);
        weir_loader_destroy(loader);
    }
}

END_TEST

START_TEST(a_loader_can_be_destroyed_at_any_moment)
{
    for (unsigned i = 0; i < 60; i++) {
        struct weir_loader_config config = usual();
        config.n_threads = i % 4;
        config.depth = 1 + i % 3;
        struct weir_loader *loader = create(&config);
        for (unsigned b = 0; b < i % 5; b++) {
            struct weir_batch batch;
            ck_assert_int_eq(weir_loader_next(loader, &batch, NULL), WEIR_OK);
            batch.images[0] = 1; // the caller may write
        }
        weir_loader_destroy(loader);
    }
}

END_TEST

START_TEST(two_loaders_share_one_cached_dataset)
{
    struct weir_loader_config config = usual();
    struct weir_loader *a = create(&config), *b = create(&config);
    for (int i = 0; i < 20; i++) {
        struct weir_batch x, y;
        ck_assert_int_eq(weir_loader_next(a, &x, NULL), WEIR_OK);
        ck_assert_int_eq(weir_loader_next(b, &y, NULL), WEIR_OK);
        ck_assert_mem_eq(x.images, y.images, 8 * LEN * sizeof(float));
    }
    weir_loader_destroy(a);
    weir_loader_destroy(b);
}

END_TEST

START_TEST(unusable_configurations_are_refused_with_a_sentence)
{
    for (int i = 0; i < 9; i++) {
        struct weir_loader_config config = usual();
        config.batch = i == 0 ? 0 : i == 1 ? N_FILES + 1 : 8;
        config.size = i == 2 ? 9 : i == 3 ? 2 : 1;
        config.rank = i == 3 ? 2 : 0;
        config.n_threads = i == 4 ? 1000 : 1;
        config.depth = i == 5 ? 1000 : 1;
        config.start.position = i == 6 ? N_FILES + 1 : 0;
        config.input.std[0] = i == 7 ? 0 : 1;
        config.augment = i == 8 ? WEIR_AUGMENT_COUNT : WEIR_AUGMENT_NONE;
        struct weir_loader *loader = NULL;
        struct weir_error err = {0};
        ck_assert_msg(weir_loader_create(dataset, &config, &loader, &err) == WEIR_ERR_INVALID,
                      "case %d", i);
        ck_assert_uint_gt(strlen(err.message), 10);
        ck_assert_ptr_null(loader);
    }
}

END_TEST

/** One epoch; *out_sum is the sum of all its pixels. */
static weir_status load_an_epoch(unsigned n_threads, double *out_sum)
{
    struct weir_loader_config config = usual();
    config.n_threads = n_threads;
    config.n_epochs = 1;
    config.shuffle = false;
    config.tail = WEIR_TAIL_PAD;
    config.augment = WEIR_AUGMENT_FLIP; // sums are exact: no rounding depends on the order
    struct weir_loader *loader = NULL;
    struct weir_batch batch;
    WEIR_TRY(weir_loader_create(dataset, &config, &loader, NULL));
    double sum = 0;
    weir_status status;
    while ((status = weir_loader_next(loader, &batch, NULL)) == WEIR_OK) {
        for (size_t i = 0; i < (size_t)batch.n_slots * LEN; i++) {
            sum += (double)batch.images[i];
        }
    }
    /* Lack of memory is no damage: no file is at fault. It stays the loader's last word. */
    weir_status again = weir_loader_next(loader, &batch, NULL);
    bool is_right = again == status && weir_loader_damaged(loader, NULL, 0) == 0;
    weir_loader_destroy(loader);
    *out_sum = sum;
    return !is_right ? WEIR_ERR_INTERNAL : status == WEIR_ERR_END ? WEIR_OK : status;
}

START_TEST(every_failed_allocation_is_reported_whichever_thread_it_hits)
{
    weir_dataset_close(dataset);
    struct weir_dataset_options options = {.cache_bytes = 0};
    ck_assert_int_eq(weir_dataset_open(folder, &options, &dataset, NULL), WEIR_OK);
    for (unsigned n_threads = 0; n_threads < 4; n_threads++) {
        double expected, sum;
        ck_assert_int_eq(load_an_epoch(n_threads, &expected), WEIR_OK);
        long n = 0;
        for (bool was_hit = true; was_hit; n++) {
            test_alloc_fail(n);
            weir_status status = load_an_epoch(n_threads, &sum);
            was_hit = test_alloc_end();
            ck_assert_int_eq(status, was_hit ? WEIR_ERR_NOMEM : WEIR_OK);
            ck_assert_int_eq(load_an_epoch(n_threads, &sum), WEIR_OK);
            ck_assert_double_eq(sum, expected);
        }
        ck_assert_int_gt(n, 2 * N_FILES); // each file was among those swept
    }
}

END_TEST

WEIR_TEST_MAIN_WITH("loader", make_dataset, remove_dataset,
                    batches_are_the_orders_whatever_the_threads_and_the_world_size,
                    evaluation_sees_every_sample_once_and_then_ends,
                    a_loader_started_at_a_stored_place_goes_on_with_the_same_bits,
                    the_ranks_of_a_gang_tell_once_of_a_damaged_file,
                    a_damaged_file_is_skipped_and_listed_once,
                    fatal_damage_is_reported_at_its_place_by_name,
                    a_loader_can_be_destroyed_at_any_moment, two_loaders_share_one_cached_dataset,
                    every_failed_allocation_is_reported_whichever_thread_it_hits,
                    unusable_configurations_are_refused_with_a_sentence)
