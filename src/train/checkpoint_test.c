/*
 * Checkpoints on disk: what comes back, what is kept, that no flipped bit and no cut goes
 * unnoticed, and that who is killed while it writes one leaves another.
 */
#include "train/saver.h"

#include "base/file.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/test_main.h"
#include "nn/zoo.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char dir[64];
static struct weir_net *net;
static struct weir_optimizer *optimizer;
static struct weir_error err;
static struct weir_arena arena;
static const char identity[] = "{\"model\":\"mlp\",\"seed\":1}";

static void setup(void)
{
    const struct weir_shape shape = {1, 4, 4};
    struct weir_graph *graph = NULL;
    const struct weir_net_config config = {
        .batch = 1, .n_threads = 1, .is_training = true, .backend = &weir_reference_backend};
    (void)snprintf(dir, sizeof dir, "/tmp/weir-checkpoint-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(weir_zoo_build("mlp", &shape, 3, &graph, &err), WEIR_OK);
    ck_assert_int_eq(weir_net_create(graph, &config, &net, &err), WEIR_OK);
    weir_graph_destroy(graph);
    struct weir_optimizer_config adam;
    size_t n = 0;
    const struct weir_param *params = weir_net_params(net, &n);
    ck_assert_int_eq(weir_optimizer_defaults("adam", &adam, &err), WEIR_OK);
    ck_assert_int_eq(weir_optimizer_create(&adam, params, n, &optimizer, &err), WEIR_OK);
    weir_log_set_level(WEIR_LOG_ERROR); /* damage is warned about: that is not the test's news */
}

static void teardown(void)
{
    weir_optimizer_destroy(optimizer);
    weir_net_destroy(net);
    weir_arena_fini(&arena);
    ck_assert_int_eq(weir_dir_remove(dir, NULL), WEIR_OK);
}

/** Weights and states that depend on the step only. */
static void fill(uint64_t step)
{
    size_t n_states = 0;
    struct weir_rng rng;
    const struct weir_optimizer_state *states = weir_optimizer_states(optimizer, &n_states);
    weir_net_init_weights(net, step);
    weir_rng_init(&rng, step, 1);
    for (size_t s = 0; s < n_states; s++) {
        for (size_t i = 0; i < states[s].n_elems; i++) {
            states[s].data[i] = (float)weir_rng_normal(&rng);
        }
    }
}

static struct checkpoint_parts parts(bool has_optimizer, int n_servers)
{
    return (struct checkpoint_parts){.net = net,
                                     .optimizer = has_optimizer ? optimizer : NULL,
                                     .identity = identity,
                                     .n_servers = n_servers};
}

static struct train_state state_of(uint64_t step)
{
    return (struct train_state){.step = step,
                                .loss_scale = {32768, (uint32_t)step % 2000, step / 2},
                                .place = {3, step * 7},
                                .epoch_loss = 1.0 / 3,
                                .epoch_correct = 12,
                                .epoch_seen = 1e17 / 7,
                                .input = {.shape = {1, 4, 4}, .mean = {0.1f}, .std = {0.3f, 1, 1}}};
}

static void save_parts(uint64_t step, const struct checkpoint_parts *from)
{
    struct checkpoint_image image;
    const struct train_state state = state_of(step);
    ck_assert_int_eq(checkpoint_image_take(&image, from, &state, &err), WEIR_OK);
    ck_assert_msg(checkpoint_image_write(&image, dir, &err) == WEIR_OK, "%s", err.message);
    checkpoint_image_fini(&image);
}

static void save(uint64_t step)
{
    const struct checkpoint_parts all = parts(true, 0);
    fill(step);
    save_parts(step, &all);
}

static const char *path_of(uint64_t step, const char *suffix)
{
    return weir_arena_printf(&arena, "%s/step-%012llu%s.safetensors", dir, (unsigned long long)step,
                             suffix);
}

/** The net and the optimiser hold what fill(step) made. */
static void check_filled(uint64_t step)
{
    size_t n = 0, n_states = 0;
    const float *weights = weir_net_weights(net, &n);
    float *copy = (float *)(void *)weir_arena_memdup(&arena, weights, n * sizeof *copy);
    const struct weir_optimizer_state *states = weir_optimizer_states(optimizer, &n_states);
    float *moments[2];
    ck_assert_uint_eq(n_states, 2);
    for (size_t s = 0; s < n_states; s++) {
        moments[s] = (float *)(void *)weir_arena_memdup(&arena, states[s].data,
                                                        states[s].n_elems * sizeof(float));
    }
    fill(step);
    ck_assert_mem_eq(copy, weir_net_weights(net, NULL), n * sizeof *copy);
    for (size_t s = 0; s < n_states; s++) {
        ck_assert_mem_eq(moments[s], states[s].data, states[s].n_elems * sizeof(float));
    }
}

START_TEST(everything_comes_back_bit_by_bit)
{
    struct train_state state;
    const struct checkpoint_parts all = parts(true, 0);
    save(41);
    fill(1000);
    ck_assert_int_eq(checkpoint_load(dir, &all, &state, &err), WEIR_OK);
    const struct train_state expected = state_of(41);
    ck_assert_mem_eq(&state, &expected, sizeof state);
    check_filled(41);
}

END_TEST

START_TEST(the_last_two_are_kept_and_a_past_that_is_taken_up_again_removes_its_future)
{
    for (uint64_t step = 1; step <= 4; step++) {
        save(step);
    }
    ck_assert(!weir_path_exists(path_of(2, "")));
    ck_assert(weir_path_exists(path_of(3, "")) && weir_path_exists(path_of(4, "")));
    save(3);
    ck_assert(weir_path_exists(path_of(3, "")) && !weir_path_exists(path_of(4, "")));
}

END_TEST

START_TEST(no_flipped_bit_and_no_cut_goes_unnoticed)
{
    const struct checkpoint_parts all = parts(true, 0);
    struct train_state state;
    struct weir_rng rng;
    uint64_t seed;
    char *bytes = NULL;
    size_t len = 0;
    weir_random_bytes(&seed, sizeof seed);
    (void)fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
    weir_rng_init(&rng, seed, 0);
    save(5);
    save(6);
    ck_assert_int_eq(weir_file_read(path_of(6, ""), 1 << 24, &arena, &bytes, &len, &err), WEIR_OK);
    for (int i = 0; i < 150; i++) {
        char *bad = weir_arena_memdup(&arena, bytes, len);
        size_t at = (size_t)weir_rng_below(&rng, i % 3 == 0 ? 700 : len), bad_len = len;
        if (i % 10 == 9) {
            bad_len = at;
        } else {
            bad[at] ^= (char)(1u << weir_rng_below(&rng, 8));
        }
        ck_assert_int_eq(weir_file_write_atomic(path_of(6, ""), bad, bad_len, 0644, &err), WEIR_OK);
        weir_status status = checkpoint_load(dir, &all, &state, &err);
        if (status == WEIR_OK && state.step == 6) {
            check_filled(6); /* only a byte that means nothing: the header's white space */
        } else if (status == WEIR_OK) {
            ck_assert_uint_eq(state.step, 5);
            check_filled(5);
        } else {
            ck_assert_int_eq(status, WEIR_ERR_CONFLICT);
            ck_abort_msg("byte %zu: taken for another training's: %s", at, err.message);
        }
    }
}

END_TEST

START_TEST(another_training_is_refused_with_what_differs)
{
    struct train_state state;
    struct checkpoint_parts all = parts(true, 0);
    save(1);
    all.identity = "{\"model\":\"mlp\",\"seed\":2}";
    ck_assert_int_eq(checkpoint_load(dir, &all, &state, &err), WEIR_ERR_CONFLICT);
    ck_assert_msg(strstr(err.message, "seed is 1 there and 2 here") != NULL, "%s", err.message);
}

END_TEST

START_TEST(no_checkpoint_is_told_from_no_whole_one)
{
    struct train_state state;
    const struct checkpoint_parts all = parts(true, 0);
    ck_assert_int_eq(checkpoint_load(dir, &all, &state, &err), WEIR_ERR_NOT_FOUND);
    save(1);
    ck_assert_int_eq(truncate(path_of(1, ""), 100), 0);
    ck_assert_int_eq(checkpoint_load(dir, &all, &state, &err), WEIR_ERR_CORRUPT);
}

END_TEST

START_TEST(shares_of_servers_become_one_state_again)
{
    size_t n_states = 0;
    const struct checkpoint_parts workers = parts(false, 3), all = parts(true, 0);
    struct checkpoint_image image;
    struct train_state loaded;
    fill(8);
    size_t n_elems = weir_optimizer_states(optimizer, &n_states)[0].n_elems;
    const size_t piece = n_elems / 5;
    for (int i = 0; i < 3; i++) {
        /* Pieces in turns; the slab that they are cut from ends in padding that the state does not
         * have. */
        const size_t i_last = (size_t)i + 3;
        const struct checkpoint_range ranges[] = {
            {(size_t)i * piece, piece},
            {i_last * piece, i_last < 5 ? piece : n_elems + 5 - 5 * piece}};
        const struct checkpoint_share share = {.i_server = i, .ranges = ranges, .n_ranges = 2};
        ck_assert_int_eq(checkpoint_image_take_share(&image, 8, &share, optimizer, &err), WEIR_OK);
        ck_assert_int_eq(checkpoint_image_write(&image, dir, &err), WEIR_OK);
        checkpoint_image_fini(&image);
    }
    save_parts(8, &workers);
    fill(1000);
    ck_assert_msg(checkpoint_load(dir, &all, &loaded, &err) == WEIR_OK, "%s", err.message);
    check_filled(8);
    fill(1000);
    weir_net_init_weights(net, 8);
    ck_assert_int_eq(checkpoint_load_optimizer(dir, 8, optimizer, &err), WEIR_OK);
    check_filled(8);
    /* A share that has what another has leaves a gap. */
    const struct checkpoint_range other = {0, piece};
    const struct checkpoint_share wrong = {.i_server = 1, .ranges = &other, .n_ranges = 1};
    ck_assert_int_eq(checkpoint_image_take_share(&image, 8, &wrong, optimizer, &err), WEIR_OK);
    ck_assert_int_eq(checkpoint_image_write(&image, dir, &err), WEIR_OK);
    checkpoint_image_fini(&image);
    ck_assert_int_eq(checkpoint_load(dir, &workers, &loaded, &err), WEIR_ERR_CORRUPT);
    ck_assert_int_eq(unlink(path_of(8, ".server-1")), 0);
    ck_assert_int_eq(checkpoint_load(dir, &workers, &loaded, &err), WEIR_ERR_CORRUPT);
}

END_TEST

/* ---- beside the training -------------------------------------------------------------------- */

START_TEST(what_was_handed_over_is_written_and_not_what_came_after)
{
    struct train_saver *saver = NULL;
    struct train_state state;
    const struct checkpoint_parts all = parts(true, 0);
    ck_assert_int_eq(train_saver_create(dir, &saver, &err), WEIR_OK);
    for (uint64_t step = 1; step <= 20; step++) {
        const struct train_state now = state_of(step);
        fill(step);
        ck_assert_int_eq(train_saver_save(saver, &all, &now, &err), WEIR_OK);
    }
    fill(1000); /* the training goes on, also beside the last one */
    ck_assert_int_eq(train_saver_wait(saver, &err), WEIR_OK);
    ck_assert(!train_saver_is_busy(saver));
    train_saver_destroy(saver);
    ck_assert_int_eq(checkpoint_load(dir, &all, &state, &err), WEIR_OK);
    ck_assert_uint_eq(state.step, 20);
    check_filled(20);
    ck_assert(weir_path_exists(path_of(19, "")) && !weir_path_exists(path_of(18, "")));
}

END_TEST

START_TEST(worker_0s_file_waits_for_the_servers_shares)
{
    struct train_saver *saver = NULL;
    struct checkpoint_image image;
    const struct checkpoint_parts workers = parts(false, 1);
    const struct train_state now = state_of(3);
    const struct checkpoint_range all = {0, SIZE_MAX / 2};
    const struct checkpoint_share share = {.i_server = 0, .ranges = &all, .n_ranges = 1};
    ck_assert_int_eq(train_saver_create(dir, &saver, &err), WEIR_OK);
    fill(3);
    ck_assert_int_eq(train_saver_save(saver, &workers, &now, &err), WEIR_OK);
    ck_assert(train_saver_is_busy(saver) && !weir_path_exists(path_of(3, "")));
    ck_assert_int_eq(checkpoint_image_take_share(&image, 3, &share, optimizer, &err), WEIR_OK);
    ck_assert_int_eq(checkpoint_image_write(&image, dir, &err), WEIR_OK);
    checkpoint_image_fini(&image);
    ck_assert_int_eq(train_saver_wait(saver, &err), WEIR_OK);
    ck_assert(weir_path_exists(path_of(3, "")));
    const struct train_state next = state_of(4); /* a server that is lost writes nothing */
    ck_assert_int_eq(train_saver_save(saver, &workers, &next, &err), WEIR_OK);
    train_saver_destroy(saver);
    ck_assert(weir_path_exists(path_of(3, "")) && !weir_path_exists(path_of(4, "")));
}

END_TEST

START_TEST(what_fails_in_the_background_is_told_by_the_next_call)
{
    struct train_saver *saver = NULL;
    const struct checkpoint_parts all = parts(true, 0);
    const struct train_state now = state_of(1);
    char missing[80];
    (void)snprintf(missing, sizeof missing, "%s/missing", dir);
    ck_assert_int_eq(train_saver_create(missing, &saver, &err), WEIR_OK);
    ck_assert_int_eq(train_saver_save(saver, &all, &now, &err), WEIR_OK);
    ck_assert_int_ne(train_saver_wait(saver, &err), WEIR_OK);
    ck_assert_msg(strstr(err.message, missing) != NULL, "%s", err.message);
    ck_assert_int_ne(train_saver_save(saver, &all, &now, &err), WEIR_OK);
    train_saver_destroy(saver);
}

END_TEST

/** How a process that saves one checkpoint after the other is ended. */
enum end { AT_A_BYTE, AT_A_TIME };

/** In a process: checkpoints from step 2 on, until it is ended. */
static void save_on_and_on(enum end end, size_t byte, volatile bool *has_begun)
{
    struct train_saver *saver = NULL;
    const struct checkpoint_parts all = parts(true, 0);
    const struct rlimit limit = {.rlim_cur = byte, .rlim_max = byte};
    if (train_saver_create(dir, &saver, &err) != WEIR_OK ||
        (end == AT_A_BYTE && setrlimit(RLIMIT_FSIZE, &limit) != 0)) {
        _exit(1);
    }
    *has_begun = true;
    for (uint64_t step = 2; step < 10000; step++) {
        const struct train_state now = state_of(step);
        fill(step);
        if (train_saver_save(saver, &all, &now, &err) != WEIR_OK) {
            _exit(2);
        }
    }
    _exit(3);
}

static void check_whole_after(enum end end, struct weir_rng *rng, volatile bool *has_begun)
{
    struct train_state state;
    struct stat file;
    const struct checkpoint_parts all = parts(true, 0);
    save(1);
    ck_assert_int_eq(stat(path_of(1, ""), &file), 0);
    size_t byte = (size_t)weir_rng_below(rng, (uint64_t)file.st_size);
    const struct timespec wait = {.tv_nsec = (long)weir_rng_below(rng, 12000000)};
    *has_begun = false;
    pid_t pid = fork();
    if (pid == 0) {
        save_on_and_on(end, byte, has_begun);
    }
    int status = 0;
    if (end == AT_A_TIME) {
        while (!*has_begun) {
        }
        (void)nanosleep(&wait, NULL); /* the moment is what is random, nothing is waited for */
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    /* The kernel ends who writes beyond the limit, right behind the last byte that is allowed. */
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(WTERMSIG(status), end == AT_A_BYTE ? SIGXFSZ : SIGKILL);
    fill(1000);
    ck_assert_msg(checkpoint_load(dir, &all, &state, &err) == WEIR_OK, "%s", err.message);
    check_filled(state.step);
    ck_assert(end == AT_A_TIME || state.step == 1);
    ck_assert_int_eq(weir_dir_remove(dir, NULL), WEIR_OK);
    ck_assert_int_eq(weir_dir_make(dir, 0700, NULL), WEIR_OK);
}

START_TEST(who_is_killed_while_it_writes_leaves_a_whole_checkpoint)
{
    struct weir_rng rng;
    uint64_t seed;
    volatile bool *has_begun =
        mmap(NULL, sizeof(bool), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne((void *)has_begun, MAP_FAILED);
    weir_random_bytes(&seed, sizeof seed);
    (void)fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
    weir_rng_init(&rng, seed, 0);
    for (int i = 0; i < 40; i++) {
        check_whole_after(i % 2 == 0 ? AT_A_BYTE : AT_A_TIME, &rng, has_begun);
    }
    (void)munmap((void *)has_begun, sizeof(bool));
}

END_TEST

WEIR_TEST_MAIN_WITH("checkpoint", setup, teardown, everything_comes_back_bit_by_bit,
                    the_last_two_are_kept_and_a_past_that_is_taken_up_again_removes_its_future,
                    no_flipped_bit_and_no_cut_goes_unnoticed,
                    another_training_is_refused_with_what_differs,
                    no_checkpoint_is_told_from_no_whole_one,
                    shares_of_servers_become_one_state_again,
                    what_was_handed_over_is_written_and_not_what_came_after,
                    worker_0s_file_waits_for_the_servers_shares,
                    what_fails_in_the_background_is_told_by_the_next_call,
                    who_is_killed_while_it_writes_leaves_a_whole_checkpoint)
