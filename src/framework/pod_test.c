#include "framework/pod.h"

#include "base/test_main.h"

#include <string.h>

static struct weir_error err;

/* A specification with ' in place of ". */
static json_t *spec_of(const char *text)
{
    char copy[1024];
    (void)snprintf(copy, sizeof copy, "%s", text);
    for (char *c = copy; *c != '\0'; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    json_t *spec = json_loads(copy, 0, NULL);
    ck_assert_msg(spec != NULL, "%s", text);
    return spec;
}

static const struct {
    const char *image;
    bool is_of_registry, is_any;
} images[] = {
    {"pytorch/pytorch:2.3.0", true, true},
    {"python:3.12", true, true},
    {"registry.example:5000/a/b@sha256:0123", true, true},
    {"docker.io/library/ubuntu", true, true},
    {"alpine", false, true},
    {"alpine-3.20.tar", false, true},
    {"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", false, true},
    {"sha256:0123", false, false},
    {"./alpine.tar", false, false},
    {"/srv/alpine.tar", false, false},
    {"a//b", false, false},
    {"a/b/", false, false},
    {"a:", false, false},
    {"-a/b", false, false},
    {"a b/c", false, false},
    {"http://registry.example/a", false, false},
    {"", false, false},
};

START_TEST(an_image_is_a_file_or_of_a_registry)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(images); i++) {
        json_t *spec = json_pack("{s:s}", "image", images[i].image);
        bool is_any = weir_pod_check(spec, &err) == WEIR_OK;
        ck_assert_msg(weir_image_is_of_registry(images[i].image) == images[i].is_of_registry, "%s",
                      images[i].image);
        ck_assert_msg(is_any == images[i].is_any, "%s", images[i].image);
        json_decref(spec);
    }
}

END_TEST

static const struct {
    const char *spec, *wrong;
} wrongs[] = {
    {"{'image': 5}", "$.spec.image: expected a string"},
    {"{'volumes': {}}", "$.spec.volumes: a list"},
    {"{'volumes': [{'path': '/a', 'claim': 'c'}, {'path': 'b', 'claim': 'c'}]}",
     "$.spec.volumes[1]: "},
    {"{'volumes': [{'path': '/a', 'claim': 'c'}, {'path': '/a', 'claim': 'd'}]}",
     "$.spec.volumes[1].path: /a is there twice"},
    {"{'volumes': [{'path': '/a', 'host': '/etc'}]}", "$.spec.volumes[0].host: "},
    {"{'image': 'alpine', 'volumes': [{'path': '/a', 'claim': 'c'}]}", "$.spec.volumes: pods"},
};

START_TEST(what_is_wrong_is_named_with_its_place)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(wrongs); i++) {
        json_t *spec = spec_of(wrongs[i].spec);
        ck_assert_int_eq(weir_pod_check(spec, &err), WEIR_ERR_INVALID);
        ck_assert_msg(strstr(err.message, wrongs[i].wrong) == err.message, "%s", err.message);
        json_decref(spec);
    }
}

END_TEST

/* Equal wants have one form: pods are shared by it. */
START_TEST(what_is_wanted_has_one_form)
{
    static const char *const same[] = {
        "{'image': 'a/b', 'argv': ['x'], 'volumes': [{'path': '/b', 'nfs': 'h:/x'},"
        " {'claim': 'c', 'path': '/a', 'writable': true}]}",
        "{'volumes': [{'writable': true, 'path': '/a', 'claim': 'c'},"
        " {'nfs': 'h:/x', 'writable': false, 'path': '/b'}], 'image': 'a/b'}"};
    static const char *const none[] = {"{}", "{'image': 'alpine'}", "{'volumes': []}"};
    char *texts[WEIR_ARRAY_LEN(same)];
    for (size_t i = 0; i < WEIR_ARRAY_LEN(same); i++) {
        json_t *spec = spec_of(same[i]);
        ck_assert_int_eq(weir_pod_check(spec, &err), WEIR_OK);
        json_t *wanted = weir_pod_wanted(spec);
        texts[i] = json_dumps(wanted, JSON_COMPACT);
        json_decref(wanted);
        json_decref(spec);
    }
    ck_assert_str_eq(texts[0], texts[1]);
    ck_assert_str_eq(texts[0], "{\"image\":\"a/b\",\"volumes\":[{\"path\":\"/a\",\"claim\":\"c\","
                               "\"writable\":true},{\"path\":\"/b\",\"nfs\":\"h:/x\"}]}");
    free(texts[0]);
    free(texts[1]);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(none); i++) {
        json_t *spec = spec_of(none[i]);
        ck_assert_int_eq(weir_pod_check(spec, &err), WEIR_OK);
        ck_assert_ptr_null(weir_pod_wanted(spec));
        json_decref(spec);
    }
}

END_TEST

WEIR_TEST_MAIN("pod", an_image_is_a_file_or_of_a_registry, what_is_wrong_is_named_with_its_place,
               what_is_wanted_has_one_form)
