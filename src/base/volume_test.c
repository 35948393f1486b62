#include "base/volume.h"

#include "base/status.h"
#include "base/test_main.h"

#include <string.h>

static const struct {
    const char *document;
    bool is_good;
} cases[] = {
    {"{'path':'/data','claim':'datasets'}", true},
    {"{'path':'/data','claim':'datasets','writable':true}", true},
    {"{'path':'/data','claim':'datasets','writable':false}", true},
    {"{'path':'/data/','claim':'a'}", true},
    {"{'path':'/data/x','nfs':'10.0.0.3:/home'}", true},
    {"{'path':'/data','nfs':'[fd00::3]:/home'}", true},
    {"{'path':'/data','host':'/'}", true},
    {"{'path':'/tmp/x','host':'/srv'}", true},
    {"{'path':'/prochain','host':'/srv'}", true},
    {"{'path':'/a/.hidden/..x','host':'/srv'}", true},
    {"{'path':'data','claim':'datasets'}", false},
    {"{'path':'/data'}", false},
    {"{'claim':'datasets'}", false},
    {"{'path':'/data','claim':'a','nfs':'h:/x'}", false},
    {"{'path':'/data','claim':'a','writable':1}", false},
    {"{'path':'/data','claim':'a','read_only':true}", false},
    {"{'path':'/data','claim':''}", false},
    {"{'path':'/data','claim':'A_b'}", false},
    {"{'path':'/data','claim':5}", false},
    {"{'path':'/data','nfs':'/home'}", false},
    {"{'path':'/data','nfs':':/home'}", false},
    {"{'path':'/data','nfs':'h:/../x'}", false},
    {"{'path':'/data','host':'srv'}", false},
    {"{'path':'/data:rw','claim':'a'}", false},
    {"{'path':'/data/../weir','claim':'a'}", false},
    {"{'path':'/data/..','claim':'a'}", false},
    {"{'path':'/./weir','claim':'a'}", false},
    {"{'path':'//weir','claim':'a'}", false},
    {"{'path':'/weir','claim':'a'}", false},
    {"{'path':'/weir/bin','claim':'a'}", false},
    {"{'path':'/dev/shm','claim':'a'}", false},
    {"{'path':'/tmp','claim':'a'}", false},
    {"{'path':'/tmp/','claim':'a'}", false},
    {"{'path':'/weir/','claim':'a'}", false},
    {"{'path':'/','claim':'a'}", false},
    {"{'path':'/a\\nb','claim':'a'}", false},
    {"[]", false},
    {"'/data'", false},
};

START_TEST(each_is_read_or_said_what_it_should_be)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        char text[256];
        struct weir_volume volume = {0};
        (void)snprintf(text, sizeof text, "%s", cases[i].document);
        for (char *c = text; *c != '\0'; c++) {
            *c = *c == '\'' ? '"' : *c;
        }
        json_t *document = json_loads(text, JSON_DECODE_ANY, NULL);
        ck_assert_ptr_nonnull(document);
        const char *wrong = weir_volume_read(document, &volume);
        ck_assert_msg((wrong == NULL) == cases[i].is_good, "%s: %s", text, wrong);
        ck_assert_msg((volume.path != NULL) == cases[i].is_good, "%s", text);
        json_decref(document);
    }
    struct weir_volume volume = {0};
    ck_assert_ptr_nonnull(weir_volume_read(NULL, &volume));
}

END_TEST

WEIR_TEST_MAIN("volume", each_is_read_or_said_what_it_should_be)
