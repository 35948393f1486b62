/*
 * The batches that are taken ahead, in one run or several, are those that the loader gives otherwise. A
 * processor's net takes none by itself: the test calls what a GPU's net would call.
 */
#include "train/test_support.h"
#include "train/worker.h"

struct ahead_fixture {
    struct train_task task;
    struct weir_train_config config;
    struct worker worker;
    struct weir_loader *plain;
};

static struct weir_loader *loader_of(struct ahead_fixture *f)
{
    struct weir_loader *loader = NULL;
    const struct weir_loader_config config = train_loader_config(&f->task, &f->worker.state.input);
    ck_assert_int_eq(
        weir_loader_create(train_task_stream(&f->task), &config, &loader, &fixture.err), WEIR_OK);
    return loader;
}

/* Steps of 16 pictures, six an epoch. @param n_images  Of a run. */
static void set_up(struct ahead_fixture *f, int32_t n_images, int epochs)
{
    *f = (struct ahead_fixture){.config = fixture_config(1, 0, epochs)};
    ck_assert_int_eq(train_task_open(&f->task, &f->config, &fixture.err), WEIR_OK);
    f->worker.task = &f->task;
    ck_assert_int_eq(train_measure_input(&f->task, &f->worker.state.input, &fixture.err), WEIR_OK);
    const struct weir_net_config shape = {
        .batch = n_images, .n_threads = 1, .is_training = true, .backend = &weir_reference_backend};
    ck_assert_int_eq(weir_net_create(f->task.graph, &shape, &f->worker.net, &fixture.err), WEIR_OK);
    f->worker.loader = loader_of(f);
    f->plain = loader_of(f);
}

static void tear_down(struct ahead_fixture *f)
{
    weir_loader_destroy(f->worker.loader);
    weir_loader_destroy(f->plain);
    weir_net_destroy(f->worker.net);
    train_task_close(&f->task);
}

/* The net has the pictures and labels of slots [first, first + n). */
static void expect_slots(struct worker *worker, const struct weir_batch *batch, uint32_t first)
{
    size_t len = (size_t)TEST_SIDE * TEST_SIDE, n = (size_t)weir_net_batch(worker->net);
    ck_assert_mem_eq(weir_net_input(worker->net), batch->images + first * len,
                     n * len * sizeof(float));
    ck_assert_mem_eq(weir_net_labels(worker->net), batch->labels + first, n * sizeof(int32_t));
}

/* @return Batches that were taken ahead. */
static int walk(struct ahead_fixture *f, int32_t n_images)
{
    int n_ahead = 0;
    struct worker *worker = &f->worker;
    for (; worker->state.step < f->task.n_steps; worker->state.step++) {
        struct weir_batch batch, expected;
        n_ahead += worker->ahead.has_next;
        ck_assert_int_eq(worker_next_batch(worker, &batch, &fixture.err), WEIR_OK);
        ck_assert_int_eq(weir_loader_next(f->plain, &expected, &fixture.err), WEIR_OK);
        ck_assert_uint_eq(batch.place.position, expected.place.position);
        ck_assert_uint_eq(batch.next.epoch, expected.next.epoch);
        for (uint32_t first = 0; first < batch.n_slots; first += (uint32_t)n_images) {
            worker_bring_run(worker, &batch, first);
            expect_slots(worker, &expected, first);
            bool is_last = first + (uint32_t)n_images >= batch.n_slots;
            bool is_filled = worker_fill_ahead(worker);
            ck_assert(is_filled || is_last);
            ck_assert(!worker_fill_ahead(worker) || !is_last); /* once */
        }
    }
    return n_ahead;
}

START_TEST(batches_ahead_are_those_of_the_loader)
{
    static const int32_t sizes[] = {16, 8, 4};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(sizes); i++) {
        struct ahead_fixture f;
        set_up(&f, sizes[i], 3);
        ck_assert_uint_eq(f.task.n_steps, 18);
        ck_assert_int_eq(walk(&f, sizes[i]), 15); /* all but each epoch's first */
        tear_down(&f);
    }
}

END_TEST

START_TEST(what_was_taken_ahead_is_dropped_with_the_loader)
{
    struct ahead_fixture f;
    struct weir_batch batch, expected;
    set_up(&f, 16, 1);
    ck_assert_int_eq(worker_next_batch(&f.worker, &batch, &fixture.err), WEIR_OK);
    worker_bring_run(&f.worker, &batch, 0);
    ck_assert(worker_fill_ahead(&f.worker));
    worker_forget_ahead(&f.worker);
    weir_loader_destroy(f.worker.loader);
    f.worker.loader = loader_of(&f);
    ck_assert_int_eq(worker_next_batch(&f.worker, &batch, &fixture.err), WEIR_OK);
    ck_assert_int_eq(weir_loader_next(f.plain, &expected, &fixture.err), WEIR_OK);
    worker_bring_run(&f.worker, &batch, 0);
    expect_slots(&f.worker, &expected, 0);
    tear_down(&f);
}

END_TEST

/* The loader's answer is told when the batch is wanted. */
START_TEST(a_damaged_picture_ahead_is_told_in_its_step)
{
    struct ahead_fixture f;
    struct weir_batch batch;
    weir_status status = WEIR_OK;
    char path[160];
    (void)snprintf(path, sizeof path, "%s/class-1/03.pgm", fixture.data);
    ck_assert_int_eq(truncate(path, 40), 0);
    set_up(&f, 16, 1);
    weir_loader_destroy(f.worker.loader);
    f.config.data.on_damage = "fatal";
    f.worker.loader = loader_of(&f);
    for (; status == WEIR_OK && f.worker.state.step < 6; f.worker.state.step++) {
        bool has_failed = f.worker.ahead.has_next && f.worker.ahead.status != WEIR_OK;
        status = worker_next_batch(&f.worker, &batch, &fixture.err);
        ck_assert(!has_failed || status != WEIR_OK);
        if (status == WEIR_OK) {
            worker_bring_run(&f.worker, &batch, 0);
            (void)worker_fill_ahead(&f.worker);
        }
    }
    ck_assert_int_ne(status, WEIR_OK);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "03.pgm"));
    tear_down(&f);
}

END_TEST

WEIR_TEST_MAIN_WITH("ahead", fixture_make, fixture_drop, batches_ahead_are_those_of_the_loader,
                    what_was_taken_ahead_is_dropped_with_the_loader,
                    a_damaged_picture_ahead_is_told_in_its_step)
