/*
 * Steps that always take the same work and no memory: what is uneven about them is the machine.
 *
 *     steady_work N_THREADS N_STEPS STEP_MS
 *
 * All threads multiply in registers, and wait for the last one, without sleeping, after every step;
 * the work of a step is what took one thread about STEP_MS. Prints a line of JSON: seconds of each.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_THREADS = 64, CALIBRATION = 5000000 };

struct team {
    int n_threads;
    size_t n_steps;
    uint64_t work; /* rounds of a step */
    double *taken_s;
    atomic_size_t n_arrived;
};

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* So many multiplications in a row. */
static uint64_t work(uint64_t n_rounds)
{
    uint64_t x = 1;
    for (uint64_t i = 0; i < n_rounds; i++) {
        x = x * 3 + i;
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}

static void *run(void *given)
{
    struct team *team = given;
    const size_t n = (size_t)team->n_threads;
    volatile uint64_t sink = 0;
    for (size_t i = 0; i < team->n_steps; i++) {
        double start_s = now_s();
        sink = sink + work(team->work);
        size_t arrived = atomic_fetch_add(&team->n_arrived, 1) + 1;
        while (atomic_load(&team->n_arrived) < (i + 1) * n) {
        }
        if (arrived == (i + 1) * n) {
            team->taken_s[i] = now_s() - start_s;
        }
    }
    return NULL;
}

/* Rounds that take about so long, by the quickest of five goes. */
static uint64_t calibrate(double ms)
{
    double least_s = 1e9;
    volatile uint64_t sink = 0;
    for (int i = 0; i < 5; i++) {
        double start_s = now_s();
        sink = sink + work(CALIBRATION);
        double taken_s = now_s() - start_s;
        least_s = taken_s < least_s ? taken_s : least_s;
    }
    return (uint64_t)(ms / 1e3 / least_s * CALIBRATION) + 1;
}

int main(int argc, char **argv)
{
    struct team team = {.n_threads = argc == 4 ? (int)strtol(argv[1], NULL, 10) : 0};
    team.n_steps = argc == 4 ? strtoull(argv[2], NULL, 10) : 0;
    double ms = argc == 4 ? strtod(argv[3], NULL) : 0;
    if (team.n_threads < 1 || team.n_threads > MOST_THREADS || team.n_steps < 1 || !(ms > 0)) {
        (void)fprintf(stderr, "steady_work N_THREADS N_STEPS STEP_MS, of at most %d threads\n",
                      MOST_THREADS);
        return 2;
    }
    pthread_t threads[MOST_THREADS];
    team.taken_s = calloc(team.n_steps, sizeof *team.taken_s);
    team.work = calibrate(ms);
    for (int i = 1; team.taken_s != NULL && i < team.n_threads; i++) {
        if (pthread_create(&threads[i], NULL, run, &team) != 0) {
            perror("pthread_create");
            return 1;
        }
    }
    if (team.taken_s == NULL) {
        perror("calloc");
        return 1;
    }
    (void)run(&team);
    for (int i = 1; i < team.n_threads; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    for (size_t i = 0; i < team.n_steps; i++) {
        printf("%s%.9f", i == 0 ? "{\"times\": [" : ", ", team.taken_s[i]);
    }
    printf("]}\n");
    free(team.taken_s);
    return 0;
}
