/* Versions on the emulated GPU: replaced under load, beside each other in a share of its memory, and
 * taken out of service when it fails. */
#include "emulated_backend.h"
#include "serve/executor/gpu_share.h"
#include "serve/replica/test_replica.h"
#include "serve/replica/versions.h"

#include <pthread.h>

static struct test_replica t; /* for its files */
static struct versions *versions;
static struct weir_error err;

/* ---- a failure that was reported -------------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    int n;
    char reason[WEIR_ERROR_MESSAGE_BYTES];
} said = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void on_broken(void *context, const char *reason)
{
    ck_assert_ptr_eq(context, &said);
    (void)pthread_mutex_lock(&said.lock);
    said.n++;
    (void)snprintf(said.reason, sizeof said.reason, "%s", reason);
    (void)pthread_mutex_unlock(&said.lock);
}

static int n_said(void)
{
    (void)pthread_mutex_lock(&said.lock);
    int n = said.n;
    (void)pthread_mutex_unlock(&said.lock);
    return n;
}

static void start(void)
{
    const struct versions_config config = {
        .executor = {.n_threads = 1, .device = EXECUTOR_GPU, .gpu = emulated_backend()},
        .on_broken = on_broken,
        .context = &said};
    test_replica_files(&t);
    ck_assert_int_eq(versions_create(&config, &versions, &err), WEIR_OK);
}

static void stop(void)
{
    emulated_set_failed(false);
    versions_destroy(versions);
    test_replica_stop(&t);
    ck_assert_uint_eq(gpu_share_taken(), 0);
}

static weir_status load(const char *model, int64_t number, const char *blob)
{
    const struct version_wanted wanted = {.model = model,
                                          .number = number,
                                          .path = t.net_path,
                                          .blob = blob,
                                          .rules = {.batch_max = 4, .queue_max = 64}};
    return versions_load(versions, &wanted, &err);
}

/* ---- a request, and its answer ---------------------------------------------------------------- */

struct asked {
    struct batch_request request; /**< First. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_done;
};

static void on_done(struct batch_request *request)
{
    struct asked *asked = (struct asked *)request;
    (void)pthread_mutex_lock(&asked->lock);
    asked->is_done = true;
    (void)pthread_cond_signal(&asked->changed);
    (void)pthread_mutex_unlock(&asked->lock);
}

/* Three pictures; OK with their numbers, else as the version answers. */
static weir_status ask(const char *model, struct weir_error *out_err, struct weir_tensor **out)
{
    struct version *version;
    struct weir_tensor *in;
    struct asked asked = {.request = {.n_rows = 3,
                                      .deadline_ns = BATCH_NO_DEADLINE,
                                      .done = on_done,
                                      .is_gone = NULL},
                          .lock = PTHREAD_MUTEX_INITIALIZER,
                          .changed = PTHREAD_COND_INITIALIZER};
    WEIR_TRY(versions_get(versions, model, 0, &version, out_err));
    test_model_zeros(version->executor, 3, &in);
    for (size_t i = 0; i < in->n_elems; i++) {
        ((float *)in->data)[i] = (float)(i % 17) / 17;
    }
    asked.request.in = &in;
    weir_status status = batcher_submit(version->batcher, &asked.request, out_err);
    if (status == WEIR_OK) {
        (void)pthread_mutex_lock(&asked.lock);
        while (!asked.is_done) {
            (void)pthread_cond_wait(&asked.changed, &asked.lock);
        }
        (void)pthread_mutex_unlock(&asked.lock);
        status = asked.request.status;
        *out_err = asked.request.error;
        *out = status == WEIR_OK ? asked.request.out[0] : NULL;
    }
    weir_tensor_release(in);
    version_unref(version);
    return status;
}

struct user {
    pthread_t thread;
    atomic_bool is_over;
    int n_answers, n_wrong;
};

static void *use(void *context)
{
    struct user *user = context;
    struct weir_tensor *first = NULL, *out;
    while (!atomic_load(&user->is_over) || user->n_answers == 0) {
        struct weir_error own;
        bool is_right = ask("m", &own, &out) == WEIR_OK;
        if (is_right && first == NULL) {
            first = out;
        } else if (is_right) {
            is_right = memcmp(out->data, first->data, out->n_elems * sizeof(float)) == 0;
            weir_tensor_release(out);
        }
        user->n_answers++;
        user->n_wrong += !is_right;
    }
    weir_tensor_release(first);
    return NULL;
}

START_TEST(versions_are_replaced_under_load)
{
    struct user users[2] = {{.n_answers = 0}};
    ck_assert_msg(load("m", 1, "a") == WEIR_OK, "%s", err.message);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(pthread_create(&users[i].thread, NULL, use, &users[i]), 0);
    }
    for (int i = 0; i < 6; i++) {
        ck_assert_msg(load("m", 1, i % 2 == 0 ? "b" : "a") == WEIR_OK, "%s", err.message);
    }
    for (size_t i = 0; i < 2; i++) {
        atomic_store(&users[i].is_over, true);
        (void)pthread_join(users[i].thread, NULL);
        ck_assert_int_eq(users[i].n_wrong, 0);
    }
    ck_assert_int_eq(n_said(), 0);
}

END_TEST

START_TEST(a_version_that_does_not_fit_beside_another_waits_for_room)
{
    char text[32];
    ck_assert_int_eq(load("m", 1, "a"), WEIR_OK);
    (void)snprintf(text, sizeof text, "%zu", gpu_share_taken() * 3 / 2);
    setenv("WEIR_DEVICE_MEMORY", text, 1);
    ck_assert_int_eq(load("m", 2, "b"), WEIR_ERR_LIMIT);
    ck_assert(versions_unload(versions, "m", 1));
    versions_wait_freed(versions);
    ck_assert_msg(load("m", 2, "b") == WEIR_OK, "%s", err.message);
    unsetenv("WEIR_DEVICE_MEMORY");
}

END_TEST

static void expect_out_of_service(const char *model)
{
    struct version *version;
    ck_assert_int_eq(versions_get(versions, model, 0, &version, &err), WEIR_ERR_UNAVAILABLE);
    ck_assert_msg(strstr(err.message, "LOADING: ") && strstr(err.message, "the GPU failed"), "%s",
                  err.message);
}

START_TEST(a_gpu_that_fails_takes_its_versions_out_of_service_and_is_said_once)
{
    struct weir_tensor *out = NULL;
    ck_assert_int_eq(load("m", 1, "a"), WEIR_OK);
    ck_assert_int_eq(load("n", 1, "b"), WEIR_OK);
    ck_assert_int_eq(ask("m", &err, &out), WEIR_OK);
    weir_tensor_release(out);
    emulated_set_failed(true);
    ck_assert_int_eq(ask("m", &err, &out), WEIR_ERR_INTERNAL);
    ck_assert_msg(strstr(err.message, "the GPU failed") != NULL, "%s", err.message);
    ck_assert_int_eq(ask("n", &err, &out), WEIR_ERR_INTERNAL);
    expect_out_of_service("m");
    expect_out_of_service("n");
    ck_assert_int_eq(n_said(), 1);
    ck_assert_ptr_nonnull(strstr(said.reason, "the GPU failed"));
    ck_assert_int_eq(load("m", 2, "c"), WEIR_ERR_INTERNAL); /* nor does it take another */
}

END_TEST

/* The program ends when it is told; until then nothing is sent here, and what is gets a sentence. */
START_TEST(a_replica_answers_over_http_until_its_gpu_fails)
{
    static const float zeros[3 * 8 * 6];
    struct weir_buf body;
    t.options.n_given = 1;
    t.options.executor.device = EXECUTOR_GPU;
    t.options.executor.gpu = emulated_backend();
    t.options.on_broken = on_broken;
    t.options.context = &said;
    test_replica_start(&t);
    weir_buf_init(&body, 1 << 20);
    (void)weir_buf_puts(&body, "{\"inputs\":[{\"name\":\"input\",\"datatype\":\"FP32\","
                               "\"shape\":[1,3,8,6],\"data\":[0");
    for (size_t i = 1; i < WEIR_ARRAY_LEN(zeros); i++) {
        (void)weir_buf_puts(&body, ",0");
    }
    (void)weir_buf_puts(&body, "]}]}");
    ck_assert_int_eq(test_replica_get(&t, "/v2/health/ready"), 200);
    ck_assert_int_eq(test_replica_post(&t, "/v2/models/net/infer", body.data), 200);
    struct weir_tensor *expected =
        test_replica_oracle(t.net_path, 4, (int64_t[]){1, 3, 8, 6}, zeros);
    const json_t *data =
        json_object_get(json_array_get(json_object_get(t.json, "outputs"), 0), "data");
    ck_assert_uint_eq(json_array_size(data), expected->n_elems);
    for (size_t i = 0; i < expected->n_elems; i++) {
        ck_assert_double_eq_tol(json_number_value(json_array_get(data, i)),
                                (double)((const float *)expected->data)[i], 1e-5);
    }
    weir_tensor_release(expected);
    emulated_set_failed(true);
    ck_assert_int_eq(test_replica_post(&t, "/v2/models/net/infer", body.data), 500);
    ck_assert_ptr_nonnull(strstr(t.reply.body.data, "the GPU failed"));
    ck_assert_int_eq(n_said(), 1);
    ck_assert_int_eq(test_replica_get(&t, "/v2/models/net/ready"), 503);
    ck_assert_int_eq(test_replica_get(&t, "/v2/health/ready"), 503);
    ck_assert_int_eq(test_replica_post(&t, "/v2/models/net/infer", body.data), 503);
    weir_buf_fini(&body);
}

END_TEST

WEIR_TEST_MAIN_WITH("versions on a GPU", start, stop, versions_are_replaced_under_load,
                    a_version_that_does_not_fit_beside_another_waits_for_room,
                    a_gpu_that_fails_takes_its_versions_out_of_service_and_is_said_once,
                    a_replica_answers_over_http_until_its_gpu_fails)
