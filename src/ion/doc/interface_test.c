/* What a version changes of its interface: by hand, and against callers who call both versions. */
#include "ion/interface.h"

#include "base/json.h"
#include "base/macros.h"
#include "base/rng.h"
#include "base/test_main.h"

#include <stdio.h>
#include <string.h>

#define SEED      45
#define N_CASES   WEIR_TEST_TIMES(3000, 300)
#define PORTS_MAX 2
#define DIMS_MAX  3
#define DIM_MAX   3 /* sizes are 1 to 3: all requests can be tried */

static struct weir_arena arena;

static void set_up(void)
{
    weir_arena_init(&arena, 0);
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
}

#define SIGNATURE(inputs, outputs, more)                                                           \
    "{\"inputs\":[" inputs "],\"outputs\":[" outputs "]" more "}"
#define PORT(name, type, shape)                                                                    \
    "{\"name\":\"" name "\",\"datatype\":\"" type "\",\"shape\":" shape "}"
#define X16    PORT("x", "FP32", "[-1,16]")
#define Y3     PORT("y", "FP32", "[-1,3]")
#define LABELS ",\"output_kind\":\"logits\",\"labels\":[\"a\",\"b\",\"c\"]"

static const struct {
    const char *now, *words; /* NULL: nothing is another thing */
    bool is_compatible;
} cases[] = {
    {SIGNATURE(X16, Y3, LABELS), NULL, true},
    {SIGNATURE(X16, Y3, LABELS ",\"format\":\"onnx\",\"why\":\"so\""), NULL, true},
    {SIGNATURE(PORT("x", "FP32", "[-1,8]"), Y3, LABELS),
     "its input x is FP32 [-1,8], before FP32 [-1,16]", false},
    {SIGNATURE(PORT("x", "FP32", "[-1,-1]"), Y3, LABELS), "its input x is FP32 [-1,-1]", true},
    {SIGNATURE(PORT("x", "FP64", "[-1,16]"), Y3, LABELS), "its input x is FP64", false},
    {SIGNATURE(PORT("z", "FP32", "[-1,16]"), Y3, LABELS), "it has no input x any more", false},
    {SIGNATURE(X16 "," PORT("z", "FP32", "[-1]"), Y3, LABELS), "it has a new input z", false},
    {SIGNATURE(X16, Y3 "," PORT("z", "FP32", "[-1]"), LABELS), "it has a new output z", true},
    {SIGNATURE(X16, PORT("z", "FP32", "[-1,3]"), LABELS), "it has no output y any more", false},
    {SIGNATURE(X16, PORT("y", "FP32", "[-1,3,1]"), LABELS), "its output y is", false},
    {SIGNATURE(X16, PORT("y", "FP32", "[-1,4]"),
               ",\"output_kind\":\"logits\",\"labels\":[\"a\",\"b\",\"c\",\"d\"]"),
     "it has 4 classes, before 3", true},
    {SIGNATURE(X16, PORT("y", "FP32", "[-1,2]"),
               ",\"output_kind\":\"logits\",\"labels\":[\"a\",\"b\"]"),
     "it has 2 classes, before 3", false},
    {SIGNATURE(X16, Y3, ",\"output_kind\":\"logits\",\"labels\":[\"a\",\"c\",\"b\"]"),
     "its class 1 is \"c\", before \"b\"", false},
    {SIGNATURE(X16, Y3, ",\"output_kind\":\"probabilities\",\"labels\":[\"a\",\"b\",\"c\"]"),
     "what it gives is \"probabilities\"", false},
    {SIGNATURE(X16, Y3, ",\"output_kind\":\"logits\""), "no names any more", false},
};

START_TEST(changes_are_named)
{
    bool is_compatible;
    const char *before = SIGNATURE(X16, Y3, LABELS);
    const char *changes = weir_interface_changes(before, cases[_i].now, &arena, &is_compatible);
    ck_assert_int_eq(is_compatible, cases[_i].is_compatible);
    if (cases[_i].words == NULL) {
        ck_assert_msg(changes == NULL, "%s", changes);
    } else {
        ck_assert_msg(changes != NULL && strstr(changes, cases[_i].words) != NULL, "%s",
                      changes != NULL ? changes : "(none)");
    }
    /* What is kept of a signature says the same. */
    const char *kept =
        weir_interface_changes(weir_interface_of(before, &arena),
                               weir_interface_of(cases[_i].now, &arena), &arena, &is_compatible);
    ck_assert_int_eq(is_compatible, cases[_i].is_compatible);
    ck_assert((kept == NULL) == (changes == NULL));
    ck_assert(kept == NULL || strcmp(kept, changes) == 0);
}

END_TEST

START_TEST(of_what_is_not_known_nothing_is_said)
{
    bool is_compatible = false;
    ck_assert_ptr_null(
        weir_interface_changes(NULL, SIGNATURE(X16, Y3, ""), &arena, &is_compatible));
    ck_assert(is_compatible);
    ck_assert_ptr_null(weir_interface_changes(SIGNATURE(X16, Y3, ""), "[", &arena, NULL));
    ck_assert_ptr_null(weir_interface_of("{}", &arena));
    ck_assert_ptr_null(weir_interface_of(NULL, &arena));
}

END_TEST

START_TEST(many_classes_are_kept_as_their_sum)
{
    json_t *labels = json_array();
    for (int i = 0; i <= WEIR_INTERFACE_LABELS_MAX; i++) {
        json_array_append_new(labels, json_integer(i));
    }
    json_t *one = json_pack("{s:[],s:[],s:O}", "inputs", "outputs", "labels", labels);
    char *before = weir_json_text(one, &arena);
    json_array_set_new(labels, 7, json_integer(-1));
    char *now = weir_json_text(one, &arena);
    json_decref(labels);
    json_decref(one);
    bool is_compatible;
    ck_assert_uint_lt(strlen(weir_interface_of(before, &arena)), 300);
    ck_assert_ptr_null(
        weir_interface_changes(before, weir_interface_of(before, &arena), &arena, NULL));
    ck_assert_ptr_nonnull(weir_interface_changes(before, now, &arena, &is_compatible));
    ck_assert(!is_compatible);
}

END_TEST

/* ---- callers ------------------------------------------------------------------------------------- */

struct port {
    int datatype, n_dims, dims[DIMS_MAX];
    bool is_there;
};

/** Inputs a and b. */
struct model {
    struct port inputs[PORTS_MAX];
};

static struct port random_port(struct weir_rng *rng)
{
    struct port port = {.datatype = (int)weir_rng_below(rng, 2),
                        .n_dims = 1 + (int)weir_rng_below(rng, DIMS_MAX),
                        .is_there = weir_rng_below(rng, 4) > 0};
    for (int i = 0; i < port.n_dims; i++) {
        port.dims[i] = weir_rng_below(rng, 2) == 0 ? -1 : 1 + (int)weir_rng_below(rng, DIM_MAX);
    }
    return port;
}

static const char *text_of(const struct model *model)
{
    json_t *inputs = json_array();
    for (int i = 0; i < PORTS_MAX; i++) {
        const struct port *port = &model->inputs[i];
        json_t *shape = json_array();
        for (int k = 0; k < port->n_dims; k++) {
            json_array_append_new(shape, json_integer(port->dims[k]));
        }
        json_t *one = json_pack("{s:s,s:s,s:o}", "name", i == 0 ? "a" : "b", "datatype",
                                port->datatype == 0 ? "FP32" : "INT64", "shape", shape);
        json_array_append(inputs, port->is_there ? one : NULL);
        json_decref(one);
    }
    json_t *signature = json_pack("{s:o,s:[]}", "inputs", inputs, "outputs");
    char *text = weir_json_text(signature, &arena);
    json_decref(signature);
    return text;
}

/* A request names each input's datatype and sizes; the model takes it, or answers 400. */
static bool takes(const struct port *port, const struct port *sent)
{
    if (port->is_there != sent->is_there) {
        return false;
    }
    bool fits =
        !port->is_there || (port->datatype == sent->datatype && port->n_dims == sent->n_dims);
    for (int i = 0; port->is_there && fits && i < port->n_dims; i++) {
        fits = port->dims[i] == -1 || port->dims[i] == sent->dims[i];
    }
    return fits;
}

/* The number'th of all tensors of up to three dimensions of 1 to 3 (and one more, which is taken where the
 * size is free only). */
static struct port tensor(int number)
{
    struct port sent = {
        .is_there = number > 0, .datatype = number & 1, .n_dims = 1 + (number >> 1) % 3};
    number = (number >> 1) / 3;
    for (int i = 0; i < DIMS_MAX; i++) {
        sent.dims[i] = 1 + number % (DIM_MAX + 1);
        number /= DIM_MAX + 1;
    }
    return sent;
}

#define N_TENSORS (2 * 3 * 64)

/* Is there a tensor that the old one takes and the new one does not? */
static bool is_refused(const struct port *before, const struct port *now)
{
    for (int i = 0; i < N_TENSORS; i++) {
        struct port sent = tensor(i);
        if (takes(before, &sent) && !takes(now, &sent)) {
            return true;
        }
    }
    return false;
}

START_TEST(a_compatible_version_takes_what_the_one_before_takes_and_no_other_does)
{
    struct weir_rng rng;
    int n_compatible = 0;
    weir_rng_init(&rng, SEED, 0);
    for (int i = 0; i < N_CASES; i++) {
        struct model before = {{random_port(&rng), random_port(&rng)}}, now = before;
        for (int k = 0; k < PORTS_MAX; k++) {
            struct port *port = &now.inputs[k];
            if (weir_rng_below(&rng, 3) == 0) {
                *port = random_port(&rng);
            } else if (weir_rng_below(&rng, 2) == 0) {
                port->dims[weir_rng_below(&rng, (uint64_t)port->n_dims)] = -1;
            }
        }
        bool is_compatible, is_any_refused = false;
        const char *changes =
            weir_interface_changes(text_of(&before), text_of(&now), &arena, &is_compatible);
        for (int k = 0; k < PORTS_MAX; k++) {
            is_any_refused = is_any_refused || is_refused(&before.inputs[k], &now.inputs[k]);
        }
        ck_assert_msg(is_compatible == !is_any_refused, "seed %d, case %d: %s and %s: %s", SEED, i,
                      text_of(&before), text_of(&now), changes != NULL ? changes : "(nothing)");
        n_compatible += is_compatible;
        weir_arena_fini(&arena);
        weir_arena_init(&arena, 0);
    }
    printf("seed %d: %d of %d changes are compatible\n", SEED, n_compatible, N_CASES);
    ck_assert_int_gt(n_compatible, N_CASES / 10);
    ck_assert_int_lt(n_compatible, N_CASES * 9 / 10);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("interface");
    TCase *tcase = tcase_create("all");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, changes_are_named, 0, WEIR_ARRAY_LEN(cases));
    tcase_add_test(tcase, of_what_is_not_known_nothing_is_said);
    tcase_add_test(tcase, many_classes_are_kept_as_their_sum);
    tcase_add_test(tcase, a_compatible_version_takes_what_the_one_before_takes_and_no_other_does);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
