/* What models of each kind of input are said to take, and that what is proposed is a request. */
#include "cli/track/try_it.h"

#include "base/test_main.h"

#include <string.h>
#include <unistd.h>

static struct weir_arena arena;
static char said[4096];

/* What try_it_print writes for a deployment "d". */
static void print(const json_t *signature)
{
    struct cli_call call = {.arena = &arena};
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    (void)fflush(stdout);
    int saved = dup(STDOUT_FILENO);
    ck_assert(dup2(fileno(file), STDOUT_FILENO) >= 0);
    try_it_print(&call, "d", signature);
    (void)fflush(stdout);
    (void)dup2(saved, STDOUT_FILENO);
    (void)close(saved);
    rewind(file);
    said[fread(said, 1, sizeof said - 1, file)] = '\0';
    (void)fclose(file);
}

#define PORT(name, datatype, shape)                                                                \
    "{\"name\":\"" name "\",\"datatype\":\"" datatype "\",\"shape\":" shape "}"
#define SIGNATURE(picture, inputs) "{\"picture\":" picture ",\"inputs\":[" inputs "]}"
#define ASK                        "  try it   weir predict d request.json\n  request  {\"inputs\":["

static const struct {
    const char *signature;
    enum try_it_input input;
    const char *said;
} cases[] = {
    {"null", TRY_IT_UNKNOWN, "  try it   weir predict d FILE\n"},
    {SIGNATURE("{}", PORT("x", "FP32", "[-1,3,224,224]")), TRY_IT_PICTURE,
     "  try it   weir predict d PICTURE\n"},
    {SIGNATURE("null", PORT("x", "FP32", "[-1,3,224,224]")), TRY_IT_IMAGE,
     ASK "{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1,3,224,224],\"data\":[… 150528 "
         "values]}]}\n"},
    {SIGNATURE("null", PORT("x", "UINT8", "[1,28,28,1]")), TRY_IT_IMAGE, NULL},
    {SIGNATURE("null", PORT("x", "FP32", "[-1,2]")), TRY_IT_TENSOR,
     ASK "{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1,2],\"data\":[0.5,0.5]}]}\n"},
    {SIGNATURE("null", PORT("x", "FP32", "[-1,16,50,2]")), TRY_IT_TENSOR, NULL},
    {SIGNATURE("null", PORT("x", "FP32", "[]")), TRY_IT_TENSOR, NULL},
    {SIGNATURE("null", PORT("x", "FP32", "[-1,9223372036854775807,4]")), TRY_IT_TENSOR, NULL},
    {SIGNATURE("null", PORT("ids", "INT64", "[-1,3]") "," PORT("mask", "BOOL", "[-1,1]")),
     TRY_IT_TENSOR,
     ASK "{\"name\":\"ids\",\"datatype\":\"INT64\",\"shape\":[1,3],\"data\":[0,0,0]},"
         "{\"name\":\"mask\",\"datatype\":\"BOOL\",\"shape\":[1,1],\"data\":[false]}]}\n"},
    {SIGNATURE("null", PORT("n", "FP32", "[-1,1]") "," PORT("t", "BYTES", "[-1,1]")), TRY_IT_TEXT,
     ASK "{\"name\":\"n\",\"datatype\":\"FP32\",\"shape\":[1,1],\"data\":[0.5]},"
         "{\"name\":\"t\",\"datatype\":\"BYTES\",\"shape\":[1,1],\"data\":[\"a text\"]}]}\n"},
};

START_TEST(each_input_is_told_apart_and_asked_in_its_way)
{
    weir_arena_init(&arena, 0);
    json_t *signature = json_loads(cases[_i].signature, JSON_DECODE_ANY, NULL);
    ck_assert_ptr_nonnull(signature);
    ck_assert_int_eq(try_it_input_of(signature), cases[_i].input);
    print(signature);
    if (cases[_i].said != NULL) {
        ck_assert_str_eq(said, cases[_i].said);
    }
    json_decref(signature);
    weir_arena_fini(&arena);
}

END_TEST

/* As many values as the shape has, of the type: what the file must hold is JSON as it stands. */
START_TEST(a_short_request_can_be_sent_as_it_is_printed)
{
    const json_t *input;
    size_t i, n_inputs = 0;
    weir_arena_init(&arena, 0);
    json_t *signature =
        json_loads(SIGNATURE("null", PORT("a \\\"b\\\"", "INT32", "[-1,4,4]") "," PORT(
                                         "t", "BYTES", "[-1]") "," PORT("u", "UINT8", "[2,2]")),
                   0, NULL);
    print(signature);
    json_t *request = json_loads(strchr(said, '{'), JSON_DISABLE_EOF_CHECK, NULL);
    ck_assert_msg(request != NULL, "%s", said);
    json_array_foreach(json_object_get(request, "inputs"), i, input)
    {
        const json_t *side;
        size_t k, n = 1;
        json_array_foreach(json_object_get(input, "shape"), k, side)
        {
            n *= (size_t)json_integer_value(side);
        }
        ck_assert_uint_eq(json_array_size(json_object_get(input, "data")), n);
        n_inputs++;
    }
    ck_assert_uint_eq(n_inputs, 3);
    json_decref(request);
    json_decref(signature);
    weir_arena_fini(&arena);
}

END_TEST

WEIR_TEST_LOOPS_MAIN("try_it",
                     {each_input_is_told_apart_and_asked_in_its_way, WEIR_ARRAY_LEN(cases)},
                     {a_short_request_can_be_sent_as_it_is_printed, 0})
