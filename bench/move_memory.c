/*
 * The bound of bench/allreduce.py's ranks in shared memory: every byte of every rank's array is
 * read once and written once, by as many processes as there are ranks, each its slice of all
 * arrays, in whole vectors; they meet before and after, and that is all there is.
 *
 *     move_memory N_RANKS BYTES...
 *
 * Prints a line of JSON: bytes to the median time in microseconds, of the slowest rank.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_RANKS = 16, WARMUP = 3, SAMPLES = 21, STEP = 4 };

typedef float vec __attribute__((vector_size(64)));

struct measurement {
    pthread_barrier_t barrier;
    double taken_s[MOST_RANKS];
};

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void *shared(size_t bytes)
{
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) {
        fail("mmap");
    }
    return memory;
}

/** Vectors first .. end, a multiple of STEP, of all arrays become their sum. */
static void sum(vec *arrays, size_t n_vecs, int n_ranks, size_t first, size_t end)
{
    for (size_t i = first; i < end; i += STEP) {
        vec a = arrays[i], b = arrays[i + 1], c = arrays[i + 2], d = arrays[i + 3];
        for (int r = 1; r < n_ranks; r++) {
            const vec *from = arrays + (size_t)r * n_vecs + i;
            a += from[0];
            b += from[1];
            c += from[2];
            d += from[3];
        }
        for (int r = 0; r < n_ranks; r++) {
            vec *to = arrays + (size_t)r * n_vecs + i;
            to[0] = a;
            to[1] = b;
            to[2] = c;
            to[3] = d;
        }
    }
}

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double longest_s(const double *taken_s, int n)
{
    double longest = 0;
    for (int r = 0; r < n; r++) {
        longest = taken_s[r] > longest ? taken_s[r] : longest;
    }
    return longest;
}

/** What one rank does; the median of the slowest rank's times, the same for all. */
static double run_rank(struct measurement *measurement, vec *arrays, size_t n_vecs, int rank,
                       int n_ranks)
{
    const size_t n_steps = n_vecs / STEP, parts = (size_t)n_ranks, part = (size_t)rank;
    const size_t first = n_steps * part / parts * STEP, end = n_steps * (part + 1) / parts * STEP;
    double samples[SAMPLES];
    for (int k = -WARMUP; k < SAMPLES; k++) {
        (void)pthread_barrier_wait(&measurement->barrier);
        double start_s = now_s();
        sum(arrays, n_vecs, n_ranks, first, end);
        (void)pthread_barrier_wait(&measurement->barrier);
        measurement->taken_s[rank] = now_s() - start_s;
        (void)pthread_barrier_wait(&measurement->barrier);
        samples[k < 0 ? 0 : k] = longest_s(measurement->taken_s, n_ranks);
    }
    qsort(samples, SAMPLES, sizeof samples[0], by_size);
    return samples[SAMPLES / 2];
}

static double measure(struct measurement *measurement, size_t bytes, int n_ranks)
{
    const size_t n_vecs = bytes / sizeof(vec) / STEP * STEP;
    const size_t all = n_vecs * sizeof(vec) * (size_t)n_ranks;
    vec *arrays = shared(all + 1);
    memset(arrays, 0, all);
    for (int rank = 1; rank < n_ranks; rank++) {
        pid_t child = fork();
        if (child < 0) {
            fail("fork");
        }
        if (child == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody meets a dead rank for ever */
            (void)run_rank(measurement, arrays, n_vecs, rank, n_ranks);
            _exit(0);
        }
    }
    double median_s = run_rank(measurement, arrays, n_vecs, 0, n_ranks);
    while (wait(NULL) > 0) {
    }
    (void)munmap(arrays, all + 1);
    return median_s;
}

int main(int argc, char **argv)
{
    const int n_ranks = argc > 2 ? (int)strtol(argv[1], NULL, 10) : 0;
    if (n_ranks < 1 || n_ranks > MOST_RANKS) {
        (void)fprintf(stderr, "move_memory N_RANKS BYTES..., of at most %d ranks\n", MOST_RANKS);
        return 2;
    }
    struct measurement *measurement = shared(sizeof *measurement);
    pthread_barrierattr_t among_processes;
    (void)pthread_barrierattr_init(&among_processes);
    (void)pthread_barrierattr_setpshared(&among_processes, PTHREAD_PROCESS_SHARED);
    (void)pthread_barrier_init(&measurement->barrier, &among_processes, (unsigned)n_ranks);
    for (int i = 2; i < argc; i++) {
        const size_t bytes = strtoull(argv[i], NULL, 10);
        printf("%s\"%zu\": %.1f%s", i == 2 ? "{" : ", ", bytes,
               measure(measurement, bytes, n_ranks) * 1e6, i + 1 == argc ? "}\n" : "");
        (void)fflush(stdout);
    }
    return 0;
}
