/* Calls of gRPC through the gateway to replicas that speak REST. */
#include "fixture.h"
#include "grpc/test_client.h"

#include "base/protobuf.h"
#include "grpc/grpc.h"

#define SERVICE "/inference.GRPCInferenceService/"

static struct test_client client;
static struct weir_buf message;
static const char *const as_vision[] = {"authorization", "Bearer vision", NULL};

static void start(void)
{
    struct weir_error err = {0};
    int port;
    set_up();
    ck_assert_msg(weir_gateway_grpc_start(f.gateway, "127.0.0.1:0", &port, &err) == WEIR_OK, "%s",
                  err.message);
    client_open(&client, port);
    weir_buf_init(&message, 1 << 20);
    publish_replicas(1);
}

static void stop(void)
{
    client_close(&client);
    weir_buf_fini(&message);
    tear_down();
}

static int call(const char *method, const char *const *headers)
{
    char path[128];
    (void)snprintf(path, sizeof path, SERVICE "%s", method);
    return client_call(&client, path, headers, message.data, message.len);
}

static void put_infer(const char *name, const char *version, const void *raw, size_t len)
{
    weir_buf_reset(&message);
    weir_protobuf_put_text(&message, 1, name);
    weir_protobuf_put_text(&message, 2, version);
    size_t input = weir_protobuf_begin(&message, 5);
    weir_protobuf_put_text(&message, 1, "x");
    weir_protobuf_put_text(&message, 2, "FP32");
    weir_protobuf_put_packed(&message, 3, (const uint64_t[]){1, len / 4}, 2);
    weir_protobuf_end(&message, input);
    weir_protobuf_put_bytes(&message, 7, raw, len);
}

/* The content of the answer's field with this number. */
static struct weir_protobuf field_of_answer(uint32_t number)
{
    struct weir_protobuf at = {(uint8_t *)client.body.data + 5,
                               (uint8_t *)client.body.data + client.body.len};
    struct weir_protobuf_field field;
    while (weir_protobuf_next(&at, &field, NULL) == WEIR_OK) {
        if (field.number == number) {
            return field.bytes;
        }
    }
    ck_abort_msg("the answer has no field %u", number);
}

START_TEST(a_tensor_goes_to_a_replica_and_comes_back)
{
    const float x[] = {1, 2, 3, 4};
    put_infer("cats", "2", x, sizeof x);
    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(call("ModelInfer", as_vision), WEIR_GRPC_OK);
        struct weir_protobuf raw = field_of_answer(6), version = field_of_answer(2);
        ck_assert_uint_eq(weir_protobuf_len(&raw), sizeof x);
        ck_assert_mem_eq(raw.at, x, sizeof x);
        ck_assert_uint_eq(weir_protobuf_len(&version), 1);
        ck_assert_int_eq(version.at[0], '2');
    }
    /* Its parameter: a map's entry, whose value has its text in field 3. */
    struct weir_protobuf entry = field_of_answer(4);
    const char key[] = "\x0a\x0cweir_request\x12";
    ck_assert_uint_gt(weir_protobuf_len(&entry), sizeof key + 3);
    ck_assert_mem_eq(entry.at, key, sizeof key - 1);
    ck_assert_int_eq(entry.at[sizeof key], 0x1a);
    ck_assert_mem_eq(entry.at + sizeof key + 2, "cats.2.", 7);
    ck_assert_int_eq(f.n_authorised, 1);
    ck_assert_int_eq(figures_now().n_requests, 20);
}

END_TEST

START_TEST(what_the_gateway_knows_needs_no_replica)
{
    ck_assert_int_eq(call("ServerLive", NULL), WEIR_GRPC_OK);
    ck_assert_uint_eq(client.body.len, 7);
    ck_assert_int_eq(call("ServerReady", NULL), WEIR_GRPC_OK);
    ck_assert_int_eq(call("ServerMetadata", NULL), WEIR_GRPC_OK);
    ck_assert_int_eq(client_call(&client, "/grpc.health.v1.Health/Check", NULL, "", 0), 0);
    weir_protobuf_put_text(&message, 1, "cats");
    ck_assert_int_eq(call("ModelReady", as_vision), WEIR_GRPC_OK);
    ck_assert_uint_eq(client.body.len, 7);
    ck_assert_int_eq(call("RepositoryIndex", as_vision), WEIR_GRPC_OK);
    ck_assert_int_eq(f.replicas[0].n_requests, 0);
}

END_TEST

START_TEST(refusals_have_their_codes)
{
    const char *const as_other[] = {"authorization", "Bearer other", NULL};
    put_infer("cats", "", "abcd", 4);
    ck_assert_int_eq(call("ModelInfer", NULL), WEIR_GRPC_UNAUTHENTICATED);
    ck_assert_int_eq(call("ModelInfer", as_other), WEIR_GRPC_NOT_FOUND);
    ck_assert_int_eq(call("ModelNothing", as_vision), WEIR_GRPC_UNIMPLEMENTED);
    put_infer("dogs", "", "abcd", 4);
    ck_assert_int_eq(call("ModelInfer", as_vision), WEIR_GRPC_NOT_FOUND);
    put_infer("cats", "9", "abcd", 4);
    ck_assert_int_eq(call("ModelInfer", as_vision), WEIR_GRPC_NOT_FOUND);
    put_infer("cats", "x", "abcd", 4);
    ck_assert_int_eq(call("ModelInfer", as_vision), WEIR_GRPC_INVALID_ARGUMENT);
    put_infer("cats", "1", "abcd", 4);
    f.replicas[0].http_status = 400;
    ck_assert_int_eq(call("ModelInfer", as_vision), WEIR_GRPC_INVALID_ARGUMENT);
    ck_assert_str_eq(client.text, "as told");
    f.replicas[0].http_status = 503;
    ck_assert_int_eq(call("ModelInfer", as_vision), WEIR_GRPC_UNAVAILABLE);
    f.replicas[0].http_status = 200; /* with what is no binary answer */
    ck_assert_int_eq(call("ModelInfer", as_vision), WEIR_GRPC_INTERNAL);
}

END_TEST

/* The client's side stays open, and nothing of a message comes. */
START_TEST(what_cannot_be_is_said_at_once)
{
    static const struct {
        const char *method;
        bool is_known;
        int code;
    } calls[] = {{"ModelStreamInfer", true, WEIR_GRPC_UNIMPLEMENTED},
                 {"ModelStreamInfer", false, WEIR_GRPC_UNIMPLEMENTED},
                 {"CudaSharedMemoryStatus", true, WEIR_GRPC_UNIMPLEMENTED},
                 {"ModelInfer", false, WEIR_GRPC_UNAUTHENTICATED},
                 {"RepositoryIndex", false, WEIR_GRPC_UNAUTHENTICATED}};

    client.stays_open = true;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char path[128];
        (void)snprintf(path, sizeof path, SERVICE "%s", calls[i].method);
        client_begin(&client, path, calls[i].is_known ? as_vision : NULL, "", 0);
        ck_assert_int_eq(client_finish(&client), calls[i].code);
    }
    client_begin(&client, SERVICE "ModelInfer", as_vision, "\1\0\0\0\2ab", 7); /* compressed */
    ck_assert_int_eq(client_finish(&client), WEIR_GRPC_UNIMPLEMENTED);
    client.stays_open = false;
    ck_assert_int_eq(call("ModelStatistics", as_vision), WEIR_GRPC_UNIMPLEMENTED); /* of all */
}

END_TEST

START_TEST(a_revocation_and_a_deadline_hold)
{
    const char *const soon[] = {"authorization", "Bearer vision", "grpc-timeout", "100m", NULL};
    put_infer("cats", "1", "abcd", 4);
    ck_assert_int_eq(call("ModelInfer", as_vision), WEIR_GRPC_OK);
    f.replicas[0].wait_ms = 100000;
    ck_assert_int_eq(call("ModelInfer", soon), WEIR_GRPC_DEADLINE_EXCEEDED);
    f.replicas[0].wait_ms = 0;
    UNTIL(figures_now().n_in_flight == 0);
    f.is_revoked = true;
    weir_gateway_forget_callers(f.gateway);
    ck_assert_int_eq(call("ModelInfer", as_vision), WEIR_GRPC_UNAUTHENTICATED);
}

END_TEST

START_TEST(it_stops_with_a_call_under_way)
{
    f.replicas[0].wait_ms = 100000;
    put_infer("cats", "1", "abcd", 4);
    char bytes[512] = {0, 0, 0, 0, (char)message.len};
    memcpy(bytes + 5, message.data, message.len);
    client_begin(&client, SERVICE "ModelInfer", as_vision, bytes, message.len + 5);
    UNTIL(figures_now().n_in_flight == 1);
}

END_TEST

WEIR_TEST_MAIN_WITH("grpc front", start, stop, a_tensor_goes_to_a_replica_and_comes_back,
                    what_the_gateway_knows_needs_no_replica, refusals_have_their_codes,
                    what_cannot_be_is_said_at_once, a_revocation_and_a_deadline_hold,
                    it_stops_with_a_call_under_way)
