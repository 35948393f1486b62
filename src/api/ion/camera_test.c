/* Cameras are listed page by page, found and looked at by their ids; sources are as replicas report them. */
#include "api/caller_fixture.h"

#include "base/clock.h"
#include "base/test_main.h"
#include "store/stmt.h"

static const char *const cameras[] = {"door-1", "door-2", "a:b", "カメラ", "x/y z"};
#define N_CAMERAS WEIR_ARRAY_LEN(cameras)

static weir_status run_sql(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_exec(txn, context, WEIR_NO_BINDS, NULL, err);
}

static void sql(const char *text)
{
    struct weir_error err;
    must(weir_store_write(callers.fixture.store, run_sql, (void *)text, &err), &err);
}

/* Two IONs, whose cameras their decisions name. */
static void set_up(void)
{
    callers_open();
    EXPECT(200, "POST " API "/datasets\n\n{\"name\":\"staff\"}");
    for (int i = 0; i < 2; i++) {
        const char *ion = i == 0 ? "gate" : "site";
        EXPECT(200,
               "POST " API "/ions\n\n{\"name\":\"%s\",\"pipelines\":[{\"name\":\"learn\","
               "\"type\":\"training\",\"dataset\":\"staff\",\"model\":\"face-embed\"},"
               "{\"name\":\"see\",\"type\":\"prediction\",\"source\":{\"kind\":\"http\"},"
               "\"gallery\":{\"dataset\":\"staff\"}}],"
               "\"links\":[{\"from\":\"learn\",\"to\":\"see\"}]}",
               ion);
        for (size_t k = 0; k < N_CAMERAS; k++) {
            EXPECT(200,
                   "POST " API "/decisions\n\n{\"decisions\":[{\"id\":\"%s-%zu\",\"ion\":\"%s\","
                   "\"time_ms\":%lld,"
                   "\"pipeline\":\"see\",\"replica\":\"j-0\",\"camera\":\"%s\",\"frame\":1,"
                   "\"verdict\":\"unknown\"}]}",
                   ion, k, ion, (long long)weir_time_ms(), cameras[k]);
        }
    }
}

START_TEST(all_pages_together_are_all_cameras_once)
{
    char cursor[256] = "", last[256] = "";
    size_t n = 0;
    do {
        EXPECT(200, "GET " API "/cameras?limit=3%s%s", cursor[0] != '\0' ? "&cursor=" : "", cursor);
        size_t i;
        json_t *item;
        json_array_foreach(said("items"), i, item)
        {
            const char *id = json_string_value(json_object_get(item, "id"));
            ck_assert_int_gt(strcmp(id, last), 0);
            (void)snprintf(last, sizeof last, "%s", id);
            ck_assert_int_eq(json_integer_value(json_object_get(item, "n_unknown")), 1);
            ck_assert(json_is_null(json_object_get(item, "width")));
            ck_assert_str_eq(json_string_value(json_object_get(item, "state")), "unknown");
            n++;
        }
        const char *next = said_text("next");
        cursor[0] = '\0';
        for (size_t k = 0; next != NULL && next[k] != '\0'; k++) {
            size_t len = strlen(cursor);
            (void)snprintf(cursor + len, sizeof cursor - len, "%%%02X", (unsigned char)next[k]);
        }
    } while (cursor[0] != '\0');
    ck_assert_uint_eq(n, 2 * N_CAMERAS);
}

END_TEST

START_TEST(a_camera_is_found_by_a_part_of_its_id_and_looked_at_by_all_of_it)
{
    EXPECT(200, "GET " API "/cameras?q=SITE:see:door");
    ck_assert_uint_eq(json_array_size(said("items")), 2);
    EXPECT(200, "GET " API "/cameras?ion=gate&name=door-2&state=unknown");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    EXPECT(200, "GET " API "/cameras?ion=other");
    ck_assert_uint_eq(json_array_size(said("items")), 0);
    EXPECT(200, "GET " API "/cameras/site:see:x%%2Fy%%20z");
    ck_assert_str_eq(said_text("name"), "x/y z");
    ck_assert_str_eq(said_text("mode"), "production");
    EXPECT(404, "GET " API "/cameras/site:see:door-3");
    EXPECT(404, "GET " API "/cameras/other:see:door-1");
    EXPECT(404, "GET " API "/cameras/site");
    EXPECT(204, "DELETE " API "/ions/site");
    EXPECT(404, "GET " API "/cameras/site:see:door-1");
    EXPECT(200, "GET " API "/cameras");
    ck_assert_uint_eq(json_array_size(said("items")), N_CAMERAS);
}

END_TEST

START_TEST(sources_and_sinks_are_connected_or_lost_as_their_replica_says)
{
    EXPECT(200, "GET " API "/sources");
    ck_assert_uint_eq(json_array_size(said("items")), 2); /* of pipelines that nobody runs */
    sql("UPDATE ion_pipelines SET job = 'j' WHERE id = 'site:see'");
    sql("INSERT INTO ion_replicas (id, ion, pipeline, replica, revision, state, served_revision,"
        " frames_taken, frames_decided, frames_waiting, last_frame_ms, backlog_ms, time_ms, source,"
        " consumers) VALUES ('site:see:j-0', 'site', 'see', 'j-0', 1, 'APPLIED', 1, 7, 7, 0, 0, 0,"
        " 9000000000000, '{\"connected\":true,\"error\":\"it was away\"}', '[{\"name\":\"server\","
        "\"connected\":true,\"taken\":7},{\"name\":\"webhook\",\"connected\":false,\"refused\":2},"
        "{\"name\":\"door\",\"door\":\"gate\",\"kind\":\"mqtt\",\"connected\":false},17]')");
    EXPECT(200, "GET " API "/sources?ion=site&state=lost");
    ck_assert_uint_eq(json_array_size(said("items")), 2);
    EXPECT(200, "GET " API "/sources?role=door");
    ck_assert_str_eq(said_text("items.0.name"), "gate");
    ck_assert_str_eq(said_text("items.0.kind"), "mqtt");
    EXPECT(200, "GET " API "/sources?role=source&state=connected");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    ck_assert_str_eq(said_text("items.0.error"), "it was away");
    ck_assert_int_eq(json_integer_value(said("items.0.n_taken")), 7);
}

END_TEST

WEIR_TEST_MAIN_WITH("camera", set_up, callers_close, all_pages_together_are_all_cameras_once,
                    a_camera_is_found_by_a_part_of_its_id_and_looked_at_by_all_of_it,
                    sources_and_sinks_are_connected_or_lost_as_their_replica_says)
