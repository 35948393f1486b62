#include "base/record.h"

#include "base/macros.h"
#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>
#include <string.h>

struct sample {
    char *id, *name, *spec, *secret;
    int64_t count, made_ms;
    double rate;
    bool is_on;
};

static const struct weir_field sample_fields[] = {
    WEIR_FIELD(sample, id, TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "Identifier"),
    WEIR_FIELD(sample, name, TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_NAME, "", "Unique name"),
    WEIR_FIELD_SIZED(sample, spec, JSON, WEIR_FIELD_MUTABLE, 20, "", "Any JSON"),
    WEIR_FIELD(sample, secret, TEXT, WEIR_FIELD_SECRET, "", "Never shown"),
    WEIR_FIELD(sample, count, INT, WEIR_FIELD_MUTABLE, "", "How many"),
    WEIR_FIELD(sample, made_ms, TIME, WEIR_FIELD_READ_ONLY, "ms", "When"),
    WEIR_FIELD(sample, rate, F64, 0, "1/s", "How often"),
    WEIR_FIELD(sample, is_on, BOOL, 0, "", "Whether"),
};
static const struct weir_resource sample_resource =
    WEIR_RESOURCE("sample", "samples", sample, sample_fields);

static struct weir_error err;

static weir_status from_text(const char *text, enum weir_record_mode mode, struct weir_arena *arena,
                             struct sample *out)
{
    json_t *object;
    ck_assert_int_eq(weir_json_parse(text, strlen(text), "test", &object, NULL), WEIR_OK);
    weir_status status = weir_record_from_json(&sample_resource, object, mode, arena, out, &err);
    json_decref(object);
    return status;
}

START_TEST(a_record_survives_the_way_over_json)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    struct sample a = {.id = "i",
                       .name = "n",
                       .spec = "{\"x\":[1,null]}",
                       .secret = "s",
                       .count = -7,
                       .made_ms = 1769853600123,
                       .rate = 0.25,
                       .is_on = true};
    json_t *object = weir_record_to_json(&sample_resource, &a);
    ck_assert_ptr_null(json_object_get(object, "secret"));
    ck_assert_str_eq(json_string_value(json_object_get(object, "made_ms")),
                     "2026-01-31T10:00:00.123Z");
    struct sample b = {0};
    ck_assert_int_eq(
        weir_record_from_json(&sample_resource, object, WEIR_RECORD_TRUSTED, &arena, &b, &err),
        WEIR_OK);
    json_decref(object);
    ck_assert_str_eq(b.id, a.id);
    ck_assert_str_eq(b.name, a.name);
    ck_assert_str_eq(b.spec, a.spec);
    ck_assert_ptr_null(b.secret);
    ck_assert_int_eq(b.count, a.count);
    ck_assert_int_eq(b.made_ms, a.made_ms);
    ck_assert_double_eq(b.rate, a.rate);
    ck_assert(b.is_on);
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(nan_and_absence_are_null)
{
    struct sample a = {.name = "n", .rate = NAN};
    json_t *object = weir_record_to_json(&sample_resource, &a);
    ck_assert(json_is_null(json_object_get(object, "rate")));
    ck_assert(json_is_null(json_object_get(object, "id")));
    ck_assert(json_is_null(json_object_get(object, "made_ms")));
    json_decref(object);
}

END_TEST

static const struct {
    const char *text;
    enum weir_record_mode mode;
    const char *message;
} refused[] = {
    {"{\"name\":\"a\",\"count\":\"x\"}", WEIR_RECORD_CREATE,
     "$.count: expected integer, got string"},
    {"{\"count\":1}", WEIR_RECORD_CREATE, "$.name: missing (Unique name)"},
    {"{\"name\":\"a\",\"id\":\"b\"}", WEIR_RECORD_CREATE, "$.id: read-only, made by the server"},
    {"{\"name\":\"a\",\"colour\":1}", WEIR_RECORD_CREATE, "$.colour: unknown field of a sample"},
    {"{\"name\":\"b\"}", WEIR_RECORD_UPDATE, "$.name: cannot be changed once the sample exists"},
    {"{\"made_ms\":true}", WEIR_RECORD_TRUSTED,
     "$.made_ms: expected a time like \"2026-01-31T10:00:00Z\", got boolean"},
    {"[]", WEIR_RECORD_CREATE, "$: expected an object (sample)"},
    {"{\"name\":\"a\\u0000b\"}", WEIR_RECORD_TRUSTED, "$.name: a NUL character inside"},
};

START_TEST(wrong_input_is_refused_with_its_path)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct sample record = {0};
        json_t *object = json_loads(refused[i].text, JSON_ALLOW_NUL, NULL);
        ck_assert_ptr_nonnull(object);
        weir_status status =
            weir_record_from_json(&sample_resource, object, refused[i].mode, &arena, &record, &err);
        json_decref(object);
        ck_assert_int_eq(status, WEIR_ERR_INVALID);
        ck_assert_str_eq(err.message, refused[i].message);
    }
    struct sample record = {0};
    ck_assert_int_eq(from_text("{\"unknown\":1}", WEIR_RECORD_TRUSTED, &arena, &record), WEIR_OK);
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(text_over_its_fields_maximum_is_refused)
{
    struct weir_arena arena;
    struct sample s = {0};
    weir_arena_init(&arena, 0);
    char *secret = weir_arena_alloc(&arena, WEIR_FIELD_TEXT_MAX_BYTES + 2);
    memset(secret, 'x', WEIR_FIELD_TEXT_MAX_BYTES);
    char *text = weir_arena_printf(&arena, "{\"secret\":\"%s\"}", secret);
    ck_assert_int_eq(from_text(text, WEIR_RECORD_TRUSTED, &arena, &s), WEIR_OK);
    secret[WEIR_FIELD_TEXT_MAX_BYTES] = 'x';
    text = weir_arena_printf(&arena, "{\"secret\":\"%s\"}", secret);
    ck_assert_int_eq(from_text(text, WEIR_RECORD_TRUSTED, &arena, &s), WEIR_ERR_LIMIT);
    ck_assert_str_eq(err.message, "$.secret: 4097 bytes; at most 4096 are allowed");
    text = "{\"spec\":[1,2,3,4,5,6,7,8, 9]}"; /* 19 bytes without the blank */
    ck_assert_int_eq(from_text(text, WEIR_RECORD_UPDATE, &arena, &s), WEIR_OK);
    text = "{\"spec\":[1,2,3,4,5,6,7,8,910]}";
    ck_assert_int_eq(from_text(text, WEIR_RECORD_UPDATE, &arena, &s), WEIR_ERR_LIMIT);
    weir_arena_fini(&arena);
    weir_arena_init(&arena, 1);
    ck_assert_int_eq(from_text("{\"secret\":\"a\"}", WEIR_RECORD_TRUSTED, &arena, &s),
                     WEIR_ERR_LIMIT); /* the arena's maximum */
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(names_have_their_form)
{
    char longest[65];
    memset(longest, 'a', 64);
    longest[64] = '\0';
    ck_assert(!weir_name_is_valid(longest));
    longest[63] = '\0';
    ck_assert(weir_name_is_valid(longest));
    ck_assert(weir_name_is_valid("a") && weir_name_is_valid("face-embed_2.1"));
    ck_assert(!weir_name_is_valid("") && !weir_name_is_valid("-a") && !weir_name_is_valid("..") &&
              !weir_name_is_valid("A") && !weir_name_is_valid("a/b") && !weir_name_is_valid("a b"));
}

END_TEST

/** A record of records: one, by value one, and a list. */
struct whole {
    const struct sample *first;
    struct sample inner;
    const struct sample *list;
    size_t n_list;
};

static const struct weir_field whole_fields[] = {
    WEIR_FIELD_RECORD(whole, first, sample_resource, 0, "One"),
    WEIR_FIELD_AT(whole, inner_count, inner.count, INT, 0, "", "How many there"),
    WEIR_FIELD_RECORDS(whole, list, sample_resource, 0, "Some"),
};
static const struct weir_resource whole_resource =
    WEIR_RESOURCE("whole", "wholes", whole, whole_fields);

/** A record inside whose fields an older version did not know. */
struct holder {
    const struct sample *one;
};

static const struct sample sample_unknown = {.count = -1, .rate = NAN};
static const struct weir_resource doubtful_resource =
    WEIR_RESOURCE("sample", "samples", sample, sample_fields, .unknown = &sample_unknown);
static const struct weir_field holder_fields[] = {
    WEIR_FIELD_RECORD(holder, one, doubtful_resource, 0, "One"),
};
static const struct weir_resource holder_resource =
    WEIR_RESOURCE("holder", "holders", holder, holder_fields);

START_TEST(what_an_old_record_inside_does_not_say_is_unknown_and_not_zero)
{
    struct weir_arena arena;
    struct holder held = {0};
    weir_arena_init(&arena, 0);
    weir_field_of_text(&holder_fields[0], "{\"name\":\"a\"}", &arena, &held);
    ck_assert_int_eq(held.one->count, -1);
    ck_assert(isnan(held.one->rate));
    /* Nor does it become one by being written and read again. */
    char *text = weir_record_text(&holder_resource, &held, &arena);
    ck_assert_ptr_null(strstr(text, "\"rate\":0"));
    weir_field_of_text(&holder_fields[0], "{\"count\":0,\"rate\":0.5}", &arena, &held);
    ck_assert_int_eq(held.one->count, 0);
    ck_assert_double_eq(held.one->rate, 0.5);
    weir_arena_fini(&arena);
}

END_TEST

static struct sample random_sample(struct weir_rng *rng)
{
    static char *const texts[] = {NULL, "", "a", "\"quoted\" \xc3\xa4"};
    return (struct sample){.id = texts[weir_rng_below(rng, 4)],
                           .spec = weir_rng_below(rng, 2) == 0 ? NULL : "{\"x\":[1,null]}",
                           .count = (int64_t)weir_rng_below(rng, 1000) - 500,
                           .rate = weir_rng_below(rng, 4) == 0 ? NAN : weir_rng_f64(rng),
                           .made_ms = (int64_t)weir_rng_below(rng, 1000000000),
                           .is_on = weir_rng_below(rng, 2) == 0};
}

/* The texts of its fields of records, as a row has them, say the same again. */
static void require_same_by_fields(const struct whole *whole, struct weir_arena *arena)
{
    struct whole read = *whole;
    read.first = read.list = NULL;
    read.n_list = 7;
    for (size_t i = 0; i < whole_resource.n_fields; i++) {
        const struct weir_field *field = &whole_resource.fields[i];
        char *text = field->of != NULL ? weir_field_text(field, whole) : NULL;
        if (field->of != NULL) {
            weir_field_of_text(field, text, arena, &read);
        }
        free(text);
    }
    ck_assert_str_eq(weir_record_text(&whole_resource, &read, arena),
                     weir_record_text(&whole_resource, whole, arena));
    ck_assert_uint_eq(read.n_list, whole->n_list);
}

START_TEST(records_inside_survive_the_way_over_json_and_rows)
{
    uint64_t seed = 20;
    printf("seed %d\n", (int)seed);
    struct weir_rng rng;
    weir_rng_init(&rng, seed, 0);
    for (int i = 0; i < 300; i++) {
        struct weir_arena arena;
        weir_arena_init(&arena, 0);
        struct sample samples[4];
        for (size_t k = 0; k < 4; k++) {
            samples[k] = random_sample(&rng);
        }
        const struct whole whole = {.first = weir_rng_below(&rng, 3) == 0 ? NULL : &samples[0],
                                    .inner = samples[1],
                                    .list = weir_rng_below(&rng, 3) == 0 ? NULL : samples,
                                    .n_list = weir_rng_below(&rng, 5)};
        struct whole one = whole, read = {0};
        one.n_list = one.list != NULL ? one.n_list : 0;
        char *text = weir_record_text(&whole_resource, &one, &arena);
        json_t *json = json_loads(text, 0, NULL);
        ck_assert_int_eq(
            weir_record_from_json(&whole_resource, json, WEIR_RECORD_REPORT, &arena, &read, &err),
            one.first == NULL && one.n_list == 0
                ? WEIR_OK
                : WEIR_ERR_INVALID); /* a report's sample must have a name */
        read = (struct whole){0};
        ck_assert_int_eq(
            weir_record_from_json(&whole_resource, json, WEIR_RECORD_TRUSTED, &arena, &read, &err),
            WEIR_OK);
        json_decref(json);
        ck_assert_str_eq(weir_record_text(&whole_resource, &read, &arena), text);
        ck_assert(weir_record_weight(&whole_resource, &one) >= strlen(text));
        require_same_by_fields(&one, &arena);
        weir_arena_fini(&arena);
    }
}

END_TEST

static const struct {
    const char *text, *message;
} refused_inside[] = {
    {"{\"first\":{\"count\":\"x\"}}", "$.first.count: expected integer, got string"},
    {"{\"first\":3}", "$.first: expected an object (sample)"},
    {"{\"list\":{}}", "$.list: expected list, got object"},
    {"{\"list\":[{\"colour\":1}]}", "$.list[0].colour: unknown field of a sample"},
    {"{\"first\":{\"count\":1}}", "$.first.name: missing (Unique name)"},
};

START_TEST(what_is_wrong_in_a_record_inside_is_refused_with_its_path)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(refused_inside); i++) {
        struct whole whole = {0};
        json_t *json = json_loads(refused_inside[i].text, 0, NULL);
        ck_assert_int_eq(
            weir_record_from_json(&whole_resource, json, WEIR_RECORD_REPORT, &arena, &whole, &err),
            WEIR_ERR_INVALID);
        ck_assert_str_eq(err.message, refused_inside[i].message);
        json_decref(json);
    }
    struct whole whole = {.n_list = 1};
    weir_field_of_text(&whole_fields[2], "{broken", &arena, &whole);
    ck_assert(whole.list == NULL && whole.n_list == 0);
    weir_arena_fini(&arena);
}

END_TEST

WEIR_TEST_MAIN("record", a_record_survives_the_way_over_json, nan_and_absence_are_null,
               records_inside_survive_the_way_over_json_and_rows,
               what_an_old_record_inside_does_not_say_is_unknown_and_not_zero,
               what_is_wrong_in_a_record_inside_is_refused_with_its_path,
               text_over_its_fields_maximum_is_refused, wrong_input_is_refused_with_its_path,
               names_have_their_form)
