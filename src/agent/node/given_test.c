#include "agent/node/given.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/macros.h"
#include "base/test_main.h"

#include <stdlib.h>
#include <string.h>

static char proc[64];

static void set_up(void)
{
    char path[256];
    const char *text = "Model: \t\t H100\nDevice Minor: \t 3\n";
    (void)snprintf(proc, sizeof proc, "/tmp/weir-given-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(proc));
    (void)snprintf(path, sizeof path, "%s/driver/nvidia/gpus/0000:3b:00.0", proc);
    ck_assert_int_eq(weir_dir_make(path, 0700, NULL), WEIR_OK);
    (void)snprintf(path, sizeof path, "%s/driver/nvidia/gpus/0000:3b:00.0/information", proc);
    ck_assert_int_eq(weir_file_write_atomic(path, text, strlen(text), 0600, NULL), WEIR_OK);
}

static void tear_down(void)
{
    ck_assert_int_eq(weir_dir_remove(proc, NULL), WEIR_OK);
}

static const struct {
    const char *accelerators; /* ' for "; NULL: there is no such member */
    const char *cuda, *all, *share, *memory, *nodes;
} cases[] = {
    {NULL, NULL, NULL, NULL, NULL, NULL},
    {"[]", "", "", NULL, NULL, "[]"},
    {"[{'idx':0,'id':'GPU-a','kind':'gpu','milli':1000,'pci':'00000000:3B:00.0'}]", "GPU-a",
     "GPU-a", NULL, NULL, "[\"/dev/nvidia3\"]"},
    {"[{'idx':0,'id':'GPU-a','kind':'gpu','milli':1000,'pci':'00000000:3C:00.0'}]", "GPU-a",
     "GPU-a", NULL, NULL, NULL},
    {"[{'idx':0,'id':'GPU-a','kind':'gpu','milli':1000,'pci':'../../x'}]", "GPU-a", "GPU-a", NULL,
     NULL, NULL},
    {"[{'idx':2,'id':'MIG-b','kind':'mig','milli':1000,'pci':'0000:3b:00.0'}]", "MIG-b", "MIG-b",
     NULL, NULL, "[\"/dev/nvidia3\",\"/dev/nvidia-caps\"]"},
    {"[{'idx':1,'id':'d-1','kind':'declared','milli':500,'memory_bytes':42},"
     "{'idx':4,'id':'d-4','kind':'declared','milli':500,'memory_bytes':42}]",
     "", "d-1,d-4", "0.5", "42", NULL},
};

static const char *variable(const json_t *task, const char *name)
{
    return json_string_value(json_object_get(json_object_get(task, "env"), name));
}

START_TEST(a_task_is_told_of_its_devices_and_of_no_others)
{
    char text[512] = "{\"env\":{\"CUDA_VISIBLE_DEVICES\":\"all\"}";
    if (cases[_i].accelerators != NULL) {
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), ",'accelerators':%s",
                       cases[_i].accelerators);
    }
    (void)snprintf(text + strlen(text), sizeof text - strlen(text), "}");
    for (char *at = text; *at != '\0'; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    json_t *task = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(task);
    given_apply(task, proc);
    ck_assert_pstr_eq(variable(task, "CUDA_VISIBLE_DEVICES"),
                      cases[_i].accelerators != NULL ? cases[_i].cuda : "all");
    ck_assert_pstr_eq(variable(task, "WEIR_DEVICES"), cases[_i].all);
    ck_assert_pstr_eq(variable(task, "WEIR_DEVICE_SHARE"), cases[_i].share);
    ck_assert_pstr_eq(variable(task, "WEIR_DEVICE_MEMORY"), cases[_i].memory);
    char *nodes = json_dumps(json_object_get(task, "devices"), JSON_COMPACT);
    ck_assert_pstr_eq(nodes, cases[_i].nodes);
    free(nodes);
    json_decref(task);
}

END_TEST

static struct given parse(const char *text)
{
    struct given given;
    json_t *task = json_loads(text, 0, NULL);
    given_read(task, &given);
    json_decref(task);
    return given;
}

START_TEST(parts_of_one_device_clash_when_they_are_more_than_it)
{
    struct given half = parse("{\"accelerators\":[{\"idx\":1,\"milli\":500}]}");
    struct given more = parse("{\"accelerators\":[{\"idx\":0,\"milli\":1000},"
                              "{\"idx\":1,\"milli\":501}]}");
    struct given little = parse("{\"accelerators\":[{\"idx\":1,\"milli\":1}]}");
    struct given none = parse("{\"accelerators\":7}");
    struct given sum = half;
    ck_assert(!given_add(&sum, &half));
    ck_assert(given_add(&sum, &little));
    sum = half;
    ck_assert(given_add(&sum, &more));
    sum = more;
    ck_assert(given_add(&sum, &more));
    sum = none;
    ck_assert(!given_add(&sum, &more));
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("given");
    TCase *tcase = tcase_create("given");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, a_task_is_told_of_its_devices_and_of_no_others, 0,
                        (int)WEIR_ARRAY_LEN(cases));
    tcase_add_test(tcase, parts_of_one_device_clash_when_they_are_more_than_it);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
