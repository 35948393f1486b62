#include "comm/core/sum.h"

#include "base/test_main.h"
#include "comm/core/test_group.h"

START_TEST(slices_follow_each_other_and_cover_everything)
{
    static const size_t sizes[] = {0, 1, 15, 16, 17, 31, 100, 1000, 1000003, SIZE_MAX / 2};
    for (size_t k = 0; k < WEIR_ARRAY_LEN(sizes); k++) {
        for (int parts = 1; parts <= 9; parts++) {
            size_t next = 0;
            for (int i = 0; i < parts; i++) {
                struct comm_slice slice = comm_slice(sizes[k], parts, i);
                ck_assert_uint_eq(slice.first, next);
                ck_assert(slice.n == 0 || slice.first % 16 == 0);
                next = slice.first + slice.n;
            }
            ck_assert_uint_eq(next, sizes[k]);
        }
    }
}

END_TEST

START_TEST(slices_are_balanced_to_one_unit)
{
    for (int parts = 1; parts <= 9; parts++) {
        size_t least = SIZE_MAX, most = 0;
        for (int i = 0; i < parts; i++) {
            size_t n = comm_slice(16 * 1000, parts, i).n;
            least = WEIR_MIN(least, n);
            most = WEIR_MAX(most, n);
        }
        ck_assert_uint_le(most - least, 16);
        for (int i = 0; i < parts; i++) {
            ck_assert_uint_eq(comm_slice(16 * 77 * (size_t)parts, parts, i).n, 16 * 77);
        }
    }
}

END_TEST

START_TEST(f32_sums_are_those_of_a_serial_loop_in_source_order)
{
    enum { MOST = 8, N = 203 };

    static float data[MOST][N];
    for (int n_sources = 1; n_sources <= MOST; n_sources++) {
        for (size_t n = 0; n <= N; n += n < 70 ? 1 : 19) {
            const void *sources[MOST];
            void *targets[MOST];
            for (int r = 0; r < n_sources; r++) {
                for (size_t i = 0; i < N; i++) {
                    data[r][i] = test_value(7, r, i);
                }
                sources[r] = targets[r] = data[r];
            }
            comm_sum(WEIR_COMM_F32, targets, n_sources, sources, n_sources, n);
            int n_wrong = 0;
            for (int r = 0; r < n_sources; r++) {
                for (size_t i = 0; i < N; i++) {
                    float expected = i < n ? test_sum(7, n_sources, i) : test_value(7, r, i);
                    n_wrong += !test_is_same(data[r][i], expected);
                }
            }
            ck_assert_msg(n_wrong == 0, "%d sources, %zu elements: %d are wrong", n_sources, n,
                          n_wrong);
        }
    }
}

END_TEST

START_TEST(i64_sums_wrap_around_and_f64_sums_keep_order)
{
    int64_t a = INT64_MAX, b = 1, sum = 0;
    const void *integers[] = {&a, &b};
    void *integer_target = &sum;
    comm_sum(WEIR_COMM_I64, &integer_target, 1, integers, 2, 1);
    ck_assert(sum == INT64_MIN);
    double big = 1e16, one = 1, minus = -1e16, result = -1;
    const void *doubles[] = {&big, &one, &minus};
    void *double_target = &result;
    comm_sum(WEIR_COMM_F64, &double_target, 1, doubles, 3, 1);
    ck_assert_double_eq(result, 0); /* (1e16 + 1) - 1e16; another order gives 1 */
}

END_TEST

WEIR_TEST_MAIN("sum", slices_follow_each_other_and_cover_everything,
               slices_are_balanced_to_one_unit, f32_sums_are_those_of_a_serial_loop_in_source_order,
               i64_sums_wrap_around_and_f64_sums_keep_order)
