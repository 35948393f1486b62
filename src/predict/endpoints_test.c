/* Every source, sink and stage that an ION may name has code here. */
#include "predict/kinds.h"
#include "predict/sink.h"
#include "predict/source.h"
#include "predict/stage.h"

#include "base/library.h"
#include "base/test_main.h"

/* Without its library it has none, and is refused by name. */
static bool has_code(const struct weir_kind *kind)
{
    struct weir_error err;
    return kind->library == NULL || weir_library_need(kind->library, kind->name, &err) == WEIR_OK;
}

START_TEST(every_kind_has_its_code)
{
    for (size_t i = 0; i < weir_sources.n_kinds; i++) {
        const struct source_ops *ops = predict_ops_of(weir_sources.kinds[i]);
        if (!has_code(weir_sources.kinds[i])) {
            continue;
        }
        ck_assert_msg(ops != NULL && ops->start != NULL && ops->close != NULL &&
                          ops->stop != NULL && ops->ignored != NULL && ops->status != NULL,
                      "%s", weir_sources.kinds[i]->name);
        ck_assert_uint_gt(ops->limits.max_queued, 0);
        ck_assert_uint_ge(ops->limits.max_in_hand, ops->limits.max_queued);
        ck_assert_uint_gt(ops->limits.max_bytes, 0);
    }
    for (size_t i = 0; i < weir_sinks.n_kinds; i++) {
        const struct sink_ops *ops = predict_ops_of(weir_sinks.kinds[i]);
        ck_assert_msg(!has_code(weir_sinks.kinds[i]) ||
                          (ops != NULL && ops->open != NULL && ops->deliver != NULL &&
                           ops->close != NULL && ops->waits_event != NULL),
                      "%s", weir_sinks.kinds[i]->name);
    }
    for (size_t i = 0; i < weir_stages.n_kinds; i++) {
        const struct stage_ops *ops = predict_ops_of(weir_stages.kinds[i]);
        ck_assert_msg(!has_code(weir_stages.kinds[i]) || (ops != NULL && ops->run != NULL), "%s",
                      weir_stages.kinds[i]->name);
    }
    const struct weir_kind other = {.name = weir_sinks.kinds[0]->name};
    ck_assert_ptr_null(predict_ops_of(&other));
}

END_TEST

/* Computed with Python. The hash is for ever: a replica of the version before and one of this must not both take a camera. */
START_TEST(each_camera_is_of_one_replica_unless_the_source_shares_itself)
{
    static const char *const cameras[] = {"cam", "entrance", "a", "b", "nord-1", "nord-2"};
    static const int64_t of[] = {2, 1, 0, 0, 0, 2};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(cameras); i++) {
        for (int64_t rank = 0; rank < 3; rank++) {
            struct predict_spec spec = {.n_replicas = 3, .rank = rank};
            spec.source.kind = &weir_source_directory_kind;
            ck_assert_msg(source_is_ours(&spec, cameras[i]) == (rank == of[i]), "%s %d", cameras[i],
                          (int)rank);
            spec.source.kind = &weir_source_http_kind;
            ck_assert(source_is_ours(&spec, cameras[i]));
        }
    }
}

END_TEST

WEIR_TEST_MAIN("endpoints", every_kind_has_its_code,
               each_camera_is_of_one_replica_unless_the_source_shares_itself)
