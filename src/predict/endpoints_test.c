/* Every source, sink and stage that an ION may name has code here. */
#include "predict/kinds.h"
#include "predict/sink.h"
#include "predict/source.h"
#include "predict/stage.h"

#include "base/test_main.h"

START_TEST(every_kind_has_its_code)
{
    for (size_t i = 0; i < weir_sources.n_kinds; i++) {
        const struct source_ops *ops = predict_ops_of(weir_sources.kinds[i]);
        ck_assert_msg(ops != NULL && ops->start != NULL && ops->close != NULL && ops->stop != NULL,
                      "%s", weir_sources.kinds[i]->name);
        ck_assert_uint_gt(ops->limits.max_queued, 0);
        ck_assert_uint_ge(ops->limits.max_in_hand, ops->limits.max_queued);
        ck_assert_uint_gt(ops->limits.max_bytes, 0);
    }
    for (size_t i = 0; i < weir_sinks.n_kinds; i++) {
        const struct sink_ops *ops = predict_ops_of(weir_sinks.kinds[i]);
        ck_assert_msg(ops != NULL && ops->open != NULL && ops->deliver != NULL &&
                          ops->close != NULL && ops->waits_event != NULL,
                      "%s", weir_sinks.kinds[i]->name);
    }
    for (size_t i = 0; i < weir_stages.n_kinds; i++) {
        const struct stage_ops *ops = predict_ops_of(weir_stages.kinds[i]);
        ck_assert_msg(ops != NULL && ops->run != NULL, "%s", weir_stages.kinds[i]->name);
    }
    const struct weir_kind other = {.name = weir_sinks.kinds[0]->name};
    ck_assert_ptr_null(predict_ops_of(&other));
}

END_TEST

WEIR_TEST_MAIN("endpoints", every_kind_has_its_code)
