#include "threads.h"

/* libgomp's own interface, as compilers call it: <omp.h> and -fopenmp are not there for every
 * compiler that Weir is built with. */
void omp_set_num_threads(int n_threads);
int omp_get_thread_num(void);
int omp_get_num_threads(void);
void GOMP_parallel(void (*fn)(void *), void *data, unsigned n_threads, unsigned flags);

struct team {
    threads_fn fn;
    const void *job;
};

static void run_part(void *data)
{
    const struct team *team = data;
    team->fn(team->job, omp_get_thread_num(), omp_get_num_threads());
}

void threads_run(int32_t n_threads, threads_fn fn, const void *job)
{
    struct team team = {fn, job};
    if (n_threads <= 1) {
        fn(job, 0, 1);
    } else {
        GOMP_parallel(run_part, &team, (unsigned)n_threads, 0);
    }
}

void threads_set(int32_t n_threads)
{
    omp_set_num_threads(n_threads);
}
