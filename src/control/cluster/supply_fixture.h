/** The scheduler, the supply line and a made-up cluster: what is asked for, what becomes of it, and what jobs have of it. */
#ifndef WEIR_CONTROL_SUPPLY_FIXTURE_H
#define WEIR_CONTROL_SUPPLY_FIXTURE_H

#include "cluster/driver.h"
#include "control/cluster/supply_line.h"
#include "control/schedule/queue_fixture.h"
#include "job/cluster.h"
#include "job/device.h"

#include <inttypes.h>
#include <math.h>

#define THERE_MAX       4096
#define THERE_SHOWN_MAX 16

/* ---- a cluster ------------------------------------------------------------------------------- */

struct there {
    char tag[64];
    int64_t n_nodes, cpu_slots, n_accelerators, accelerator_milli, time_ms;
    enum weir_allocation_phase phase;
    enum weir_allocation_ending ending;
    char secret[64];
    bool has_joined;
    int64_t stuck_since_ms; /* It waits, with machines on which its agents do not start. */
    int64_t n_gone;         /* So many of its nodes have ended, while it goes on. */
    const char *payer;
    char image[32]; /* That its pods have; "": none was wanted. */
};

/* As long as it is asked anything, its options are whole. */
struct fake {
    char *partition;
    const json_t *lines;
};

static struct {
    struct there items[THERE_MAX];
    size_t n;
    int n_requests;     /* Of which each made an allocation. */
    int n_kept;         /* What is kept for links that are not closed. */
    bool is_silent;     /* It answers nothing. */
    bool loses_words;   /* What is asked of it is done, and the answer is lost. */
    bool tells_devices; /* Its nodes do, as soon as they have joined. */
    const char *refuses, *lacks;
    bool has_place;                   /* Its people are to see jobs. */
    const char *seen, *deleted;       /* A job that is seen there; one that a person has deleted. */
    char shown[THERE_SHOWN_MAX][256]; /* What was shown last, a line for each job. */
    size_t n_shown;
    int64_t cpu_slots, n_accelerators, accelerator_parts, max_nodes;
} cluster;

static inline struct there *find_there(const char *tag)
{
    for (size_t i = 0; i < cluster.n; i++) {
        if (strcmp(cluster.items[i].tag, tag) == 0) {
            return &cluster.items[i];
        }
    }
    return NULL;
}

static inline weir_status silence(struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_UNAVAILABLE, "no answer");
}

static inline weir_status fake_check(struct weir_driver_link *link, struct weir_arena *arena,
                                     const char **out, struct weir_error *err)
{
    (void)link;
    (void)arena;
    *out = cluster.lacks;
    return cluster.is_silent ? silence(err) : WEIR_OK;
}

static inline weir_status fake_list(struct weir_driver_link *link, struct weir_arena *arena,
                                    struct weir_pool_offer **out, size_t *out_n,
                                    struct weir_error *err)
{
    (void)link;
    *out = WEIR_ARENA_ARRAY(arena, 1, struct weir_pool_offer);
    **out = (struct weir_pool_offer){.name = "main",
                                     .cpu_slots = cluster.cpu_slots,
                                     .memory_bytes = (int64_t)64 << 30,
                                     .n_accelerators = cluster.n_accelerators,
                                     .accelerator = cluster.n_accelerators > 0 ? "H200" : NULL,
                                     .accelerator_parts = cluster.accelerator_parts,
                                     .max_nodes = cluster.max_nodes,
                                     .weight = 1};
    *out_n = 1;
    return cluster.is_silent ? silence(err) : WEIR_OK;
}

/* Queues that begin with "vis" have an account of their own. */
static inline const char *fake_payer(const void *options, const char *queue,
                                     struct weir_arena *arena)
{
    (void)options;
    (void)arena;
    return queue != NULL && strncmp(queue, "vis", 3) == 0 ? "vis" : "all";
}

static inline weir_status fake_request(struct weir_driver_link *link,
                                       const struct weir_node_request *request,
                                       struct weir_error *err)
{
    const struct fake *fake = link->options;
    ck_assert_str_eq(json_string_value(json_array_get(fake->lines, 0)), "--licenses=x:1");
    if (cluster.is_silent) {
        return silence(err);
    }
    if (cluster.refuses != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s", cluster.refuses);
    }
    if (find_there(request->tag) == NULL) {
        ck_assert_uint_lt(cluster.n, THERE_MAX);
        struct there *there = &cluster.items[cluster.n++];
        *there = (struct there){.n_nodes = request->n_nodes,
                                .cpu_slots = request->cpu_slots,
                                .n_accelerators = request->n_accelerators,
                                .accelerator_milli = request->accelerator_milli,
                                .time_ms = request->time_ms,
                                .payer = fake_payer(fake, request->queue, NULL),
                                .phase = WEIR_ALLOCATION_PENDING};
        (void)snprintf(there->tag, sizeof there->tag, "%s", request->tag);
        (void)snprintf(
            there->image, sizeof there->image, "%s",
            request->pod != NULL ? json_string_value(json_object_get(request->pod, "image")) : "");
        (void)snprintf(there->secret, sizeof there->secret, "%s", request->agent.secret);
        cluster.n_requests++;
    }
    return cluster.loses_words ? silence(err) : WEIR_OK;
}

static inline weir_status fake_poll(struct weir_driver_link *link, const char *const *tags,
                                    size_t n, struct weir_arena *arena,
                                    struct weir_allocation_report *out, struct weir_error *err)
{
    if (link->kept == NULL) {
        link->kept = &cluster;
        cluster.n_kept++;
    }
    for (size_t i = 0; i < n; i++) {
        const struct there *there = find_there(tags[i]);
        out[i] = there == NULL
                     ? (struct weir_allocation_report){.phase = WEIR_ALLOCATION_UNKNOWN}
                     : (struct weir_allocation_report){.phase = there->phase,
                                                       .ending = there->ending,
                                                       .stuck_since_ms = there->stuck_since_ms,
                                                       .their_id = "4711",
                                                       .said = "Priority"};
        if (there != NULL && there->n_gone > 0) {
            out[i].n_nodes = (size_t)(there->n_nodes - there->n_gone);
            out[i].nodes = WEIR_ARENA_ARRAY(arena, out[i].n_nodes, const char *);
            for (size_t k = 0; k < out[i].n_nodes; k++) {
                out[i].nodes[k] = "n";
            }
        }
    }
    return cluster.is_silent ? silence(err) : WEIR_OK;
}

static inline weir_status fake_release(struct weir_driver_link *link, const char *tag,
                                       struct weir_error *err)
{
    (void)link;
    struct there *there = find_there(tag);
    if (cluster.is_silent) {
        return silence(err);
    }
    if (there != NULL && there->phase != WEIR_ALLOCATION_ENDED) {
        there->phase = WEIR_ALLOCATION_ENDED;
        there->ending = WEIR_ENDING_CANCELLED;
    }
    return WEIR_OK;
}

static inline weir_status fake_shown(struct weir_driver_link *link, struct weir_arena *arena,
                                     struct weir_shown *out, struct weir_error *err)
{
    (void)link;
    (void)arena;
    *out = (struct weir_shown){.is_wanted = cluster.has_place,
                               .ids = &cluster.seen,
                               .n_ids = cluster.seen != NULL,
                               .deleted = &cluster.deleted,
                               .n_deleted = cluster.deleted != NULL};
    return cluster.is_silent ? silence(err) : WEIR_OK;
}

static inline weir_status fake_show(struct weir_driver_link *link,
                                    const struct weir_showing *showing, struct weir_error *err)
{
    (void)link;
    (void)err;
    ck_assert_uint_le(showing->n, THERE_SHOWN_MAX);
    ck_assert_str_eq(showing->server, "http://h:1");
    cluster.n_shown = showing->n;
    for (size_t i = 0; i < showing->n; i++) {
        const struct weir_shown_job *job = &showing->jobs[i];
        (void)snprintf(cluster.shown[i], sizeof cluster.shown[i], "%s %s %s %s nodes=%d%s%s",
                       job->id, job->state != NULL ? job->state : "none",
                       job->project != NULL ? job->project : "-",
                       job->queue != NULL ? job->queue : "-", (int)job->n_nodes,
                       job->is_ending ? " ending" : "", job->ended_ms > 0 ? " over" : "");
    }
    return WEIR_OK;
}

static inline void fake_close(void *kept)
{
    ck_assert_ptr_eq(kept, &cluster);
    cluster.n_kept--;
}

static const struct weir_option fake_options[] = {
    WEIR_OPT_JSON(fake, lines, "lines", TEXTS, 0, NULL, 0, 0, "Lines"),
    WEIR_OPT_JSON(fake, partition, "partition", TEXT, 0, NULL, 0, 0, "Partition"),
};

static struct weir_driver_ops fake_ops = {.makes_pods = true,
                                          .payer = fake_payer,
                                          .check = fake_check,
                                          .list = fake_list,
                                          .request = fake_request,
                                          .poll = fake_poll,
                                          .release = fake_release,
                                          .shown = fake_shown,
                                          .show = fake_show,
                                          .close = fake_close};
static const struct weir_kind fake_kind = {
    .name = "fake", .doc = "Made up.", .ops = &fake_ops, WEIR_KIND_OPTIONS(fake, fake_options)};
static const struct weir_kind *const fake_kinds[] = {&fake_kind};
static const struct weir_registry fakes = {
    .noun = "driver", .plural = "drivers", .doc = "Made up.", .kinds = fake_kinds, .n_kinds = 1};

/* ---- the server ------------------------------------------------------------------------------ */

static struct scheduler_fixture fixture;
static struct supplier_config config;
static struct supply_line line;

static inline int64_t fixture_now(const struct weir_clock *clock)
{
    (void)clock;
    return fixture.now_ms;
}

static const struct weir_clock fixture_clock = {.now_ms = fixture_now};

static inline weir_status add_cluster_in(struct weir_txn *txn, void *context,
                                         struct weir_error *err)
{
    return weir_cluster_set(txn, context, err);
}

static inline void set_cluster(struct weir_cluster wanted)
{
    wanted.name = "slurm-a";
    wanted.driver = "fake";
    wanted.options = "{\"lines\": [\"--licenses=x:1\"]}";
    wanted.state = (char *)WEIR_CLUSTER_NEW;
    wanted.created_by = "ann";
    fixture_write(&fixture.store, add_cluster_in, &wanted);
}

static inline void set_up(void)
{
    memset(&cluster, 0, sizeof cluster);
    fake_ops.makes_pods = true;
    cluster.cpu_slots = 16;
    cluster.max_nodes = 4;
    scheduler_fixture_make(&fixture);
    fixture.drivers = &fakes;
    scheduler_restart(&fixture);
    config = (struct supplier_config){.store = fixture.store.store,
                                      .drivers = &fakes,
                                      .clock = &fixture_clock,
                                      .state_dir = "/s",
                                      .server_url = "http://h:1"};
    line = (struct supply_line){.config = &config, .cluster = "slurm-a"};
    set_cluster((struct weir_cluster){.idle_ms = 60000});
}

static inline void tear_down(void)
{
    supply_line_end(&line);
    ck_assert_int_eq(cluster.n_kept, 0);
    scheduler_fixture_fini(&fixture);
}

static inline void look(void)
{
    struct weir_error err;
    weir_status status = supply_line_look(&line, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
}

/* A round of the engine, a second later. */
static inline int32_t round_of_engine(void)
{
    struct weir_error err;
    int64_t next_ms;
    bool is_asked;
    fixture.now_ms += 1000;
    int32_t n = cycle(&fixture);
    weir_status status = scheduler_demand(fixture.scheduler, fixture.now_ms, fixture.since_ms,
                                          &next_ms, &is_asked, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    return n;
}

struct listing {
    struct weir_allocation *items;
    size_t n;
};

static inline weir_status list_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct listing *listing = context;
    return weir_allocation_list_open(txn, NULL, &fixture.store.arena, &listing->items, &listing->n,
                                     err);
}

static inline struct listing open_allocations(void)
{
    struct listing listing = {0};
    fixture_read(&fixture.store, list_in, &listing);
    return listing;
}

static inline int64_t n_alive(void)
{
    int64_t n = 0;
    for (size_t i = 0; i < cluster.n; i++) {
        n += cluster.items[i].phase != WEIR_ALLOCATION_ENDED;
    }
    return n;
}

static inline weir_status release_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_allocation_release(txn, context, "a person", fixture.now_ms, err);
}

struct told {
    const char *node;
    int64_t n;
};

static inline weir_status tell_devices_in(struct weir_txn *txn, void *context,
                                          struct weir_error *err)
{
    const struct told *told = context;
    struct weir_device_report reports[16];
    bool is_news;
    for (int64_t i = 0; i < told->n; i++) {
        reports[i] = (struct weir_device_report){
            .device = {.id = weir_arena_printf(&fixture.store.arena, "GPU-%" PRId64, i),
                       .kind = "gpu",
                       .model = "H200",
                       .memory_bytes = (int64_t)141 << 30,
                       .numa = -1,
                       .state = (char *)WEIR_DEVICE_OK,
                       .temperature_c = NAN,
                       .power_w = NAN,
                       .utilisation_pct = NAN}};
    }
    return weir_devices_report(txn, told->node, reports, (size_t)told->n, fixture.now_ms,
                               &fixture.store.arena, &is_news, err);
}

/* It starts over there; its agents join, as they do with a token, and tell of their devices. */
static inline void start(struct there *there)
{
    there->phase = WEIR_ALLOCATION_RUNNING;
    ck_assert_int_le(there->n_accelerators, 16);
    for (int64_t i = 0; i < there->n_nodes; i++) {
        char name[96], sql[256];
        (void)snprintf(name, sizeof name, "%s-n%" PRId64, there->tag, i);
        heartbeat(&fixture, name, there->cpu_slots);
        (void)snprintf(sql, sizeof sql,
                       "UPDATE nodes SET cluster = 'slurm-a', allocation = '%s', device_milli = "
                       "%" PRId64 " WHERE name = '%s'",
                       there->tag, there->accelerator_milli, name);
        execute(&fixture, sql);
        if (cluster.tells_devices) {
            fixture_write(&fixture.store, tell_devices_in,
                          &(struct told){name, there->n_accelerators});
        }
    }
    there->has_joined = true;
}

static inline void keep_alive(void)
{
    for (size_t i = 0; i < cluster.n; i++) {
        if (cluster.items[i].phase == WEIR_ALLOCATION_RUNNING) {
            start(&cluster.items[i]);
        }
    }
}

/* Each task of a job that no round has seen yet asks for so many devices, of each so many thousandths. */
static inline void want_devices(const char *job, int64_t n_devices, int64_t milli)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "UPDATE tasks SET n_accelerators = %" PRId64 ", accelerator_milli = %" PRId64
                   " WHERE job = '%s'",
                   n_devices, milli, job);
    execute(&fixture, sql);
}

/* It wants pods of an image; no round has seen it yet. */
static inline void want_image(const char *job, const char *image)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "UPDATE jobs SET placement = '{\"pod\": {\"image\": \"%s\"}}' WHERE id = '%s'",
                   image, job);
    execute(&fixture, sql);
}

static inline const char *reason(const char *job)
{
    const char *text = job_state(&fixture, job).job.reason;
    return text != NULL ? text : "";
}

static inline void await_asked(size_t n)
{
    for (int i = 0; i < 5 && cluster.n < n; i++) {
        look();
        (void)round_of_engine();
    }
    look();
    ck_assert_uint_eq(cluster.n, n);
}

#endif
