#include "comm/core/test_group.h"

#include "base/file.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

void test_group_init(struct test_group *group, int size, const char *transport)
{
    *group = (struct test_group){.size = size, .transport = transport, .timeout_ms = 60000};
    (void)snprintf(group->dir, sizeof group->dir, "/tmp/weir-comm-test-XXXXXX");
    if (mkdtemp(group->dir) == NULL) {
        abort();
    }
}

void test_group_fini(struct test_group *group)
{
    if (weir_dir_remove(group->dir, NULL) != WEIR_OK) {
        abort();
    }
}

struct weir_comm_config test_group_config(const struct test_group *group, int rank)
{
    static char url[128], host[24];
    (void)snprintf(url, sizeof url, "file://%s", group->dir);
    (void)snprintf(host, sizeof host, "%d", rank * group->n_hosts / group->size);
    return (struct weir_comm_config){.rendezvous = url,
                                     .secret = "open sesame",
                                     .rank = rank,
                                     .size = group->size,
                                     .n_servers = group->n_servers,
                                     .timeout_ms = group->timeout_ms,
                                     .join_timeout_ms = 60000,
                                     .transport = group->transport,
                                     .algorithm = group->algorithm,
                                     .wire = group->wire,
                                     .host = group->n_hosts > 1 ? host : NULL};
}

static int run_rank(const struct test_group *group, int rank, test_rank_fn function, void *context)
{
    struct weir_comm_config config = test_group_config(group, rank);
    struct weir_comm *comm = NULL;
    struct weir_error err;
    if (weir_comm_create(&config, &comm, &err) != WEIR_OK) {
        (void)fprintf(stderr, "rank %d: %s\n", rank, err.message);
        return 2;
    }
    int result = function(comm, context);
    if (result != 0) {
        int at_fault = -1;
        (void)weir_comm_failure(comm, &at_fault, &err);
        (void)fprintf(stderr, "rank %d: failure: %s\n", rank, err.message);
    }
    weir_comm_destroy(comm);
    return result;
}

void test_group_start(struct test_group *group, test_rank_fn function, void *context)
{
    (void)fflush(NULL);
    for (int r = 0; r < group->size; r++) {
        group->pids[r] = fork();
        if (group->pids[r] == 0) {
            /* Neither a lost parent nor a hang may leave processes behind. */
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            (void)alarm(120);
            exit(run_rank(group, r, function, context));
        }
    }
}

int test_group_wait(struct test_group *group, int rank)
{
    int status = 0;
    if (waitpid(group->pids[rank], &status, 0) != group->pids[rank]) {
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

int test_group_run(struct test_group *group, test_rank_fn function, void *context)
{
    int n_failed = 0;
    test_group_start(group, function, context);
    for (int r = 0; r < group->size; r++) {
        n_failed += test_group_wait(group, r) != 0;
    }
    return n_failed;
}

int test_group_try(const char *transport, int n_workers, int n_servers, int n_hosts,
                   test_rank_fn function, void *context)
{
    struct test_group group;
    test_group_init(&group, n_workers + n_servers, transport);
    group.n_servers = n_servers;
    group.n_hosts = n_hosts;
    int n_failed = test_group_run(&group, function, context);
    test_group_fini(&group);
    return n_failed;
}

/* splitmix64's finaliser: cheap, because tests make many millions of values. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

float test_value(uint64_t seed, int rank, size_t i)
{
    uint64_t bits = mix(i + mix(seed + (uint64_t)rank * UINT64_C(0x9e3779b97f4a7c15)));
    float unit = (float)(bits >> 40) / 16777216.0f - 0.5f;
    return unit * (float)(1u << (bits & 15));
}

float test_sum(uint64_t seed, int n_ranks, size_t i)
{
    float sum = test_value(seed, 0, i);
    for (int r = 1; r < n_ranks; r++) {
        sum += test_value(seed, r, i);
    }
    return sum;
}

bool test_is_same(float a, float b)
{
    uint32_t bits_a, bits_b;
    memcpy(&bits_a, &a, sizeof bits_a);
    memcpy(&bits_b, &b, sizeof bits_b);
    return bits_a == bits_b;
}
