/** For tests: a group of ranks, one process each, on this host. */
#ifndef WEIR_COMM_TEST_GROUP_H
#define WEIR_COMM_TEST_GROUP_H

#include "comm/comm.h"

#include <sys/types.h>

struct test_group {
    int size, n_servers;
    const char *transport, *algorithm, *wire;
    int n_hosts; /**< Above 1: ranks are divided into so many groups, as on different hosts. */
    int timeout_ms;
    char dir[64]; /**< Own temporary folder, made by test_group_init. */
    pid_t pids[WEIR_COMM_MAX_RANKS];
};

/** Runs in the rank's process. @return 0 if the rank is right. */
typedef int (*test_rank_fn)(struct weir_comm *comm, void *context);

void test_group_init(struct test_group *group, int size, const char *transport);
void test_group_fini(struct test_group *group);

/** A rank's configuration. */
struct weir_comm_config test_group_config(const struct test_group *group, int rank);

/** Start all ranks: each creates its communicator, calls the function, destroys it, exits. */
void test_group_start(struct test_group *group, test_rank_fn function, void *context);

/** Wait for one rank; its exit status, or 256 + signal. */
int test_group_wait(struct test_group *group, int rank);

/** Start all and wait for all: the number of ranks that failed. */
int test_group_run(struct test_group *group, test_rank_fn function, void *context);

/** Make, run and remove a group with this transport. The last n_servers ranks are servers; the
 *  ranks are spread over n_hosts (0 and 1: one host). @return The number of ranks that failed. */
int test_group_try(const char *transport, int n_workers, int n_servers, int n_hosts,
                   test_rank_fn function, void *context);

/** In a rank: print the condition if it does not hold, and return 1. */
#define RANK_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)fprintf(stderr, "%s:%d: rank %d: %s\n", __FILE__, __LINE__,                      \
                          weir_comm_rank(comm), #condition);                                       \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

/** Element i of rank r's test data: magnitudes differ, so that the order of a sum shows. */
float test_value(uint64_t seed, int rank, size_t i);

/** The serial sum in rank order. */
float test_sum(uint64_t seed, int n_ranks, size_t i);

/** The same bits? (Zeros have a sign, and rounding must not differ at all.) */
bool test_is_same(float a, float b);

#endif
