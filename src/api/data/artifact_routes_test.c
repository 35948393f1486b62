/* Files of runs: what is put there, who sees it, ranges, uploads in parts. */
#include "api/caller_fixture.h"

#include "base/test_main.h"

#define RUN     API "/runs/run-1"
#define FILES   RUN "/artifacts"
#define UPLOADS RUN "/uploads"
#define JOB     "00000000-0000-4000-8000-0000000000b1"
#define TASK    "00000000-0000-4000-8000-0000000000a1"

static void set_up(void)
{
    callers_open();
    EXPECT(204, "PUT " API "/nodes/n\n\n{\"cpu_slots\":4}");
    place_job(&(struct placed_job){.id = JOB,
                                   .task = TASK,
                                   .kind = "train",
                                   .node = "n",
                                   .run = "run-1",
                                   .spec = "{\"model_name\":\"face\"}"});
}

START_TEST(a_file_is_listed_where_it_was_put)
{
    EXPECT(200, "PUT " FILES "/model/data/a.bin\n\nfirst");
    ck_assert_str_eq(said_text("path"), "model/data/a.bin");
    ck_assert_int_eq(json_integer_value(said("bytes")), 5);
    EXPECT(200, "PUT " FILES "/model%%2Fnotes.txt\n\nx"); /* a slash may be encoded */
    EXPECT(200, "PUT " FILES "/empty\n\n");
    EXPECT(200, "GET " FILES);
    ck_assert_uint_eq(json_array_size(said("items")), 2);
    ck_assert_str_eq(said_text("items.0.path"), "empty");
    ck_assert(json_is_true(said("items.1.is_folder")));
    EXPECT(200, "GET " FILES "?path=model&limit=1");
    ck_assert_str_eq(said_text("items.0.path"), "model/data");
    ck_assert(json_is_string(said("next")));
    EXPECT(200, "GET " FILES "?path=model/data");
    ck_assert_str_eq(said_text("items.0.path"), "model/data/a.bin");
    EXPECT(200, "GET " FILES "/model/data/a.bin");
    EXPECT(404, "GET " FILES "/model/data");
    EXPECT(404, "GET " FILES "/nothing");
    EXPECT(404, "PUT " API "/runs/none/artifacts/a\n\nx");
    EXPECT(409, "PUT " FILES "/model\n\nx");
    EXPECT(409, "PUT " FILES "/empty/x\n\nx");
    EXPECT(204, "DELETE " FILES "/model");
    EXPECT(404, "DELETE " FILES "/model");
    EXPECT(404, "GET " FILES "/model/data/a.bin");
}

END_TEST

static const char *const bad_paths[] = {"..%2Fx", "a%2F..%2F..%2Fx", "%252e%252e%2Fx",
                                        "a%23b",  "a%5Cb",           "%2Fetc%2Fpasswd",
                                        "a%0Ab",  "C%3A%2Fx",        "%2525%32e%252e/x"};

START_TEST(a_path_that_leads_elsewhere_is_refused_by_every_method)
{
    static const char *const methods[] = {"GET", "PUT", "DELETE"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad_paths); i++) {
        for (size_t k = 0; k < WEIR_ARRAY_LEN(methods); k++) {
            int status = ask("%s " FILES "/%s\n\nx", methods[k], bad_paths[i]);
            ck_assert_msg(status == 400, "%s %s: %d", methods[k], bad_paths[i], status);
        }
    }
    EXPECT(400, "GET " FILES "?path=../x");
    EXPECT(400, "POST " UPLOADS "\n\n{\"path\":\"../x\",\"n_parts\":1}");
    EXPECT(200, "GET " FILES);
    ck_assert_uint_eq(json_array_size(said("items")), 0);
}

END_TEST

START_TEST(a_range_is_answered_with_its_bytes_alone)
{
    EXPECT(200, "PUT " FILES "/a\n\n0123456789");
    EXPECT_STATUS(206, ask("GET " FILES "/a\nRange: bytes=2-3\n"));
    ck_assert_str_eq(said_header("Content-Range"), "bytes 2-3/10");
    ck_assert_ptr_nonnull(said_header("ETag"));
    EXPECT_STATUS(416, ask("GET " FILES "/a\nRange: bytes=10-\n"));
    char etag[80];
    (void)snprintf(etag, sizeof etag, "%s", said_header("ETag"));
    EXPECT_STATUS(304, ask("GET " FILES "/a\nIf-None-Match: %s\n", etag));
    EXPECT(200, "PUT " FILES "/a\n\nother bytes"); /* what was known is not known any more */
    EXPECT_STATUS(200, ask("GET " FILES "/a\nIf-None-Match: %s\n", etag));
    EXPECT_STATUS(200, ask("GET " FILES "/a\nRange: bytes=2-3\nIf-Range: %s\n", etag));
}

END_TEST

START_TEST(parts_become_a_file_once_all_are_there)
{
    char id[64];
    EXPECT(200, "POST " UPLOADS "\n\n{\"path\":\"big/file\",\"n_parts\":2}");
    (void)snprintf(id, sizeof id, "%s", said_text("id"));
    EXPECT_STATUS(200, ask("PUT " UPLOADS "/%s/parts/2\n\nworld", id));
    EXPECT_STATUS(409, ask("POST " UPLOADS "/%s/complete\n\n", id));
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "part 1 of 2"));
    EXPECT(200, "GET " UPLOADS); /* whoever was cut off sees what is there */
    ck_assert_str_eq(said_text("items.0.path"), "big/file");
    ck_assert_int_eq(json_integer_value(said("items.0.parts.0.number")), 2);
    EXPECT_STATUS(200, ask("PUT " UPLOADS "/%s/parts/1\n\nhello ", id));
    EXPECT_STATUS(400, ask("PUT " UPLOADS "/%s/parts/3\n\nx", id));
    EXPECT_STATUS(400, ask("PUT " UPLOADS "/%s/parts/x\n\nx", id));
    EXPECT_STATUS(404, ask("PUT " UPLOADS "/none/parts/1\n\nx"));
    EXPECT(404, "GET " FILES "/big/file");
    EXPECT_STATUS(200, ask("POST " UPLOADS "/%s/complete\n\n", id));
    ck_assert_int_eq(json_integer_value(said("bytes")), 11);
    char expected[WEIR_SHA256_TEXT_BYTES];
    weir_sha256("hello world", 11, expected);
    ck_assert_str_eq(said_text("blob"), expected);
    EXPECT_STATUS(404, ask("POST " UPLOADS "/%s/complete\n\n", id));
    EXPECT(200, "GET " UPLOADS);
    ck_assert_uint_eq(json_array_size(said("items")), 0);
    char path[160];
    (void)snprintf(path, sizeof path, "%s/parts/%s", callers.fixture.dir, id);
    ck_assert(!weir_path_exists(path));
}

END_TEST

START_TEST(an_upload_that_is_given_up_or_old_is_gone)
{
    char id[64];
    EXPECT(200, "POST " UPLOADS "\n\n{\"path\":\"a\",\"n_parts\":1}");
    (void)snprintf(id, sizeof id, "%s", said_text("id"));
    EXPECT_STATUS(200, ask("PUT " UPLOADS "/%s/parts/1\n\nx", id));
    EXPECT_STATUS(204, ask("DELETE " UPLOADS "/%s", id));
    EXPECT_STATUS(404, ask("PUT " UPLOADS "/%s/parts/1\n\nx", id));
    EXPECT(400, "POST " UPLOADS "\n\n{\"path\":\"a\",\"n_parts\":0}");
    EXPECT(400, "POST " UPLOADS "\n\n{\"path\":\"a\",\"n_parts\":10001}");
    EXPECT(200, "POST " UPLOADS "\n\n{\"path\":\"a\",\"n_parts\":1}");
    (void)snprintf(id, sizeof id, "%s", said_text("id"));
    callers.now_ms = weir_time_ms() + (int64_t)8 * 24 * 3600 * 1000;
    EXPECT_STATUS(404, ask("POST " UPLOADS "/%s/complete\n\n", id));
    for (int i = 0; i < 100; i++) {
        EXPECT(200, "POST " UPLOADS "\n\n{\"path\":\"a\",\"n_parts\":1}");
    }
    EXPECT(413, "POST " UPLOADS "\n\n{\"path\":\"a\",\"n_parts\":1}");
}

END_TEST

WEIR_TEST_MAIN_WITH("artifact routes", set_up, callers_close, a_file_is_listed_where_it_was_put,
                    a_path_that_leads_elsewhere_is_refused_by_every_method,
                    a_range_is_answered_with_its_bytes_alone,
                    parts_become_a_file_once_all_are_there,
                    an_upload_that_is_given_up_or_old_is_gone)
