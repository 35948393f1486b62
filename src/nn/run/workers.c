#include "workers.h"

#include "base/clock.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SPIN_NS        50000
#define SPIN_IN_RUN_NS 1000000

/* Preemptions a second and thread: 20 on a quiet machine, 95 beside one busy process on two
 * processors. */
#define MOST_ASIDE_PER_S 50
#define LOOK_NS          20000000

/* Bit of `inside` that lets threads in; the bits below count those inside. */
#define RUN_OPEN (1u << 31)

struct pool_thread {
    struct workers *pool;
    pthread_t thread;
    int32_t index;
};

/*
 * All words are sequentially consistent: a step has a few thousand of these operations, and the
 * proof that no wake-up is lost needs the total order (a sleeper announces itself, then reads
 * `epoch`; a waker changes `epoch`, then reads `n_sleeping`).
 */
struct workers {
    int32_t n_threads; /* with the caller */
    int32_t n_started, max_stages;
    struct pool_thread *workers;
    void (*enter_thread)(void);

    uint64_t looked_ns; /* when n_put_aside was looked up last: by the caller alone */
    int64_t n_put_aside;
    const struct program *program; /* written before RUN_OPEN is set, read by threads inside */
    _Atomic uint64_t claim;        /* open stage << 32 | next tile of it */
    _Atomic int32_t n_tiles_done;
    _Atomic int32_t n_deferred_open, i_next_deferred;
    _Atomic int32_t n_left; /* stages and deferred tasks not done */
    _Atomic int32_t *gates; /* per stage: what must end before it opens */
    _Atomic int status;     /* first failure */

    _Atomic uint32_t epoch; /* futex: changes whenever there may be something new to do */
    _Atomic int32_t n_sleeping;
    _Atomic uint64_t spin_in_run_ns;
    _Atomic uint32_t inside;
    _Atomic bool is_stopping;
};

static void cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void wake_all(struct workers *pool)
{
    atomic_fetch_add(&pool->epoch, 1);
    if (atomic_load(&pool->n_sleeping) > 0) {
        syscall(SYS_futex, &pool->epoch, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
    }
}

uint64_t workers_spin_ns(int64_t n_put_aside, uint64_t elapsed_ns, int32_t n_threads)
{
    double most = (double)n_threads * MOST_ASIDE_PER_S * (double)elapsed_ns / 1e9;
    return (double)n_put_aside > most ? SPIN_NS : SPIN_IN_RUN_NS;
}

/* How often the kernel has preempted threads of this process. */
static int64_t count_put_aside(void)
{
    struct rusage usage = {0};
    (void)getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nivcsw;
}

/* Looks now and then whether other processes need the processors: asking costs as much as a small
 * run. */
static void look_around(struct workers *pool)
{
    uint64_t now_ns = weir_mono_ns(), elapsed_ns = now_ns - pool->looked_ns;
    if (pool->n_threads == 1 || elapsed_ns < LOOK_NS) {
        return;
    }
    int64_t n = count_put_aside();
    atomic_store(&pool->spin_in_run_ns,
                 workers_spin_ns(n - pool->n_put_aside, elapsed_ns, pool->n_threads));
    pool->n_put_aside = n;
    pool->looked_ns = now_ns;
}

static uint64_t spin_ns(struct workers *pool)
{
    bool is_run = (atomic_load(&pool->inside) & RUN_OPEN) != 0;
    return is_run ? atomic_load(&pool->spin_in_run_ns) : SPIN_NS;
}

/* Spin, then sleep, until epoch is no longer `seen`. */
static void wait_for_news(struct workers *pool, uint32_t seen)
{
    uint64_t begin_ns = weir_mono_ns();
    while (atomic_load(&pool->epoch) == seen) {
        for (int i = 0; i < 32; i++) {
            cpu_relax();
        }
        if (weir_mono_ns() - begin_ns < spin_ns(pool)) {
            continue;
        }
        atomic_fetch_add(&pool->n_sleeping, 1);
        syscall(SYS_futex, &pool->epoch, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
        atomic_fetch_sub(&pool->n_sleeping, 1);
    }
}

static void note_status(struct workers *pool, weir_status status)
{
    int none = WEIR_OK;
    if (status != WEIR_OK) {
        atomic_compare_exchange_strong(&pool->status, &none, status);
    }
}

/* One of the things stage i waits for has ended; the last opens it. */
static void pass_gate(struct workers *pool, int32_t i_stage)
{
    if (i_stage < pool->program->n_stages && atomic_fetch_sub(&pool->gates[i_stage], 1) == 1) {
        atomic_store(&pool->n_tiles_done, 0);
        atomic_store(&pool->claim, (uint64_t)i_stage << 32);
        wake_all(pool);
    }
}

static void count_done(struct workers *pool)
{
    if (atomic_fetch_sub(&pool->n_left, 1) == 1) {
        wake_all(pool);
    }
}

static void run_tile(struct workers *pool, int32_t i_thread, int32_t i_stage, int32_t i_tile)
{
    const struct program *program = pool->program;
    note_status(pool, program->run_tile(program->context, i_thread, i_stage, i_tile));
    if (atomic_fetch_add(&pool->n_tiles_done, 1) + 1 < program->n_tiles) {
        return;
    }
    if (program->end_stage) {
        note_status(pool, program->end_stage(program->context, i_thread, i_stage));
    }
    if (program->stages[i_stage].n_deferred > 0) {
        atomic_fetch_add(&pool->n_deferred_open, program->stages[i_stage].n_deferred);
        wake_all(pool);
    }
    pass_gate(pool, i_stage + 1);
    count_done(pool);
}

static bool take_tile(struct workers *pool, int32_t i_thread)
{
    uint64_t claim = atomic_load(&pool->claim);
    while ((int32_t)(claim & UINT32_MAX) < pool->program->n_tiles) {
        if (atomic_compare_exchange_weak(&pool->claim, &claim, claim + 1)) {
            run_tile(pool, i_thread, (int32_t)(claim >> 32), (int32_t)(claim & UINT32_MAX));
            return true;
        }
    }
    return false;
}

static bool take_deferred(struct workers *pool, int32_t i_thread)
{
    const struct program *program = pool->program;
    int32_t i_deferred = atomic_load(&pool->i_next_deferred);
    while (i_deferred < atomic_load(&pool->n_deferred_open)) {
        if (atomic_compare_exchange_weak(&pool->i_next_deferred, &i_deferred, i_deferred + 1)) {
            note_status(pool, program->run_deferred(program->context, i_thread, i_deferred));
            pass_gate(pool, program->deferred[i_deferred].deadline);
            count_done(pool);
            return true;
        }
    }
    return false;
}

/* Takes and runs one task; false if there is none just now. */
static bool work_once(struct workers *pool, int32_t i_thread)
{
    /* A single thread has no gaps to fill, and whoever waits for gradients gets them sooner. */
    if (pool->n_threads == 1) {
        return take_deferred(pool, i_thread) || take_tile(pool, i_thread);
    }
    return take_tile(pool, i_thread) || take_deferred(pool, i_thread);
}

/* A thread is inside a run only while it works. A thread that finds no work leaves before it waits,
 * so the end of a run never waits for a thread that the kernel has preempted. */
static bool enter_run(struct workers *pool)
{
    uint32_t inside = atomic_load(&pool->inside);
    while (inside & RUN_OPEN) {
        if (atomic_compare_exchange_weak(&pool->inside, &inside, inside + 1)) {
            return true;
        }
    }
    return false;
}

static void *worker_main(void *argument)
{
    struct pool_thread *worker = argument;
    struct workers *pool = worker->pool;
    if (pool->enter_thread) {
        pool->enter_thread();
    }
    while (!atomic_load(&pool->is_stopping)) {
        uint32_t seen = atomic_load(&pool->epoch);
        bool has_worked = false;
        if (enter_run(pool)) {
            while (work_once(pool, worker->index)) {
                has_worked = true;
            }
            atomic_fetch_sub(&pool->inside, 1);
        }
        if (!has_worked && !atomic_load(&pool->is_stopping)) {
            wait_for_news(pool, seen);
        }
    }
    return NULL;
}

static void open_run(struct workers *pool, const struct program *program)
{
    pool->program = program;
    atomic_store(&pool->status, WEIR_OK);
    atomic_store(&pool->n_left, program->n_stages + program->n_deferred);
    atomic_store(&pool->n_tiles_done, 0);
    atomic_store(&pool->i_next_deferred, 0);
    atomic_store(&pool->n_deferred_open, program->n_stages == 0 ? program->n_deferred : 0);
    for (int32_t i = 0; i < program->n_stages; i++) {
        atomic_store(&pool->gates[i], 1 + program->stages[i].n_due);
    }
    atomic_store(&pool->claim, program->n_stages > 0 ? 0 : (uint64_t)INT32_MAX);
    atomic_store(&pool->inside, RUN_OPEN);
    wake_all(pool);
}

weir_status workers_run(struct workers *pool, const struct program *program)
{
    if (program->n_stages + program->n_deferred == 0) {
        return WEIR_OK;
    }
    look_around(pool);
    open_run(pool, program);
    while (atomic_load(&pool->n_left) > 0) {
        uint32_t seen = atomic_load(&pool->epoch);
        if (!work_once(pool, 0) && atomic_load(&pool->n_left) > 0) {
            wait_for_news(pool, seen);
        }
    }
    atomic_fetch_and(&pool->inside, ~RUN_OPEN);
    for (int n_spins = 0; atomic_load(&pool->inside) != 0; n_spins++) {
        if (n_spins < 1000) {
            cpu_relax();
        } else {
            sched_yield();
        }
    }
    return atomic_load(&pool->status);
}

weir_status workers_create(int32_t n_threads, int32_t max_stages, void (*enter_thread)(void),
                           struct workers **out)
{
    struct workers *pool = calloc(1, sizeof(*pool));
    if (!pool) {
        return WEIR_ERR_NOMEM;
    }
    pool->n_threads = n_threads;
    pool->spin_in_run_ns = SPIN_NS; /* until it has looked around */
    pool->n_put_aside = count_put_aside();
    pool->looked_ns = weir_mono_ns();
    pool->max_stages = max_stages;
    pool->enter_thread = enter_thread;
    pool->workers = calloc((size_t)n_threads, sizeof(*pool->workers));
    pool->gates = calloc((size_t)max_stages + 1, sizeof(*pool->gates));
    if (!pool->workers || !pool->gates) {
        workers_destroy(pool);
        return WEIR_ERR_NOMEM;
    }
    for (int32_t i = 1; i < n_threads; i++) {
        struct pool_thread *worker = &pool->workers[i];
        worker->pool = pool;
        worker->index = i;
        int error = pthread_create(&worker->thread, NULL, worker_main, worker);
        if (error != 0) {
            workers_destroy(pool);
            return weir_status_from_errno(error);
        }
        pool->n_started = i;
    }
    *out = pool;
    return WEIR_OK;
}

void workers_destroy(struct workers *pool)
{
    if (!pool) {
        return;
    }
    atomic_store(&pool->is_stopping, true);
    wake_all(pool);
    for (int32_t i = 1; i <= pool->n_started; i++) {
        pthread_join(pool->workers[i].thread, NULL);
    }
    free(pool->workers);
    free((void *)pool->gates);
    free(pool);
}
