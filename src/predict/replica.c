#include "predict/replica.h"

#include "base/file.h"
#include "base/log.h"
#include "host/program.h"
#include "predict/count.h"
#include "predict/deployment.h"
#include "predict/desk.h"
#include "predict/door.h"
#include "predict/engine.h"
#include "predict/kinds.h"
#include "predict/left.h"
#include "predict/predict.h"
#include "predict/shipper.h"
#include "predict/source.h"
#include "serve/executor_flags.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FLUSH_PATIENCE_MS 1500
#define SHIP_GRACE_MS     2000
#define PATH_BYTES        4300

struct replica {
    const struct predict_spec *spec;
    struct intake *intake;
    struct serving_slot slot;
    struct pictures *pictures;
    struct refused *refused;
    struct outbox *outbox;
    struct health *health;
    struct engine *engine;
    struct desk *desk; /**< NULL: there is no server. */
    struct deployer *deployer;
    struct left *left; /**< NULL: there is no server. */
    struct counts *counts;
    struct door_board doors;
    struct door_orders *orders; /**< NULL: it has no doors. */
    struct door_setup door_setups[WEIR_DOORS_MAX];
    struct consumer *consumers[1 + WEIR_ENDPOINT_SINKS_MAX + WEIR_DOORS_MAX];
    size_t n_consumers;
    const struct source_ops *source_ops;
    struct source *source;
    size_t n_at_once; /**< Frames at work. */
};

/* Nothing that was acknowledged is lost, and what was not is its source's: as after any kill. The agent
 * starts the replica anew, and with it the GPU. */
static void end_process(const char *reason)
{
    struct weir_error err;
    (void)weir_error_set(&err, WEIR_ERR_INTERNAL, "%s", reason);
    weir_log(WEIR_LOG_ERROR, "replica_broken", WEIR_KV_STR("reason", reason));
    _exit(weir_host_fail("predict", &err));
}

static void on_durable(void *context, void *const *tickets, size_t n)
{
    struct replica *replica = context;
    engine_durable(replica->intake, tickets, n);
}

static weir_status open_outbox(struct replica *replica, struct weir_error *err)
{
    char dir[PATH_BYTES], images[PATH_BYTES];
    (void)snprintf(dir, sizeof dir, "%s/outbox", replica->spec->host.dir);
    (void)snprintf(images, sizeof images, "%s/images", replica->spec->host.dir);
    /* Pictures are for the server's page: without a server none are kept. */
    if (replica->spec->host.server != NULL) {
        WEIR_TRY(pictures_open(images, PICTURES_MAX, &replica->pictures, err));
    }
    const struct outbox_config config = {
        .dir = dir,
        .on_durable = on_durable,
        .context = replica,
        .pictures = replica->spec->keeps_no_pictures ? NULL : replica->pictures};
    return outbox_open(&config, &replica->outbox, err);
}

static weir_status start_consumer(struct replica *replica, const char *name,
                                  const struct sink_ops *ops, const void *options,
                                  struct weir_error *err)
{
    const struct consumer_config config = {.name = name,
                                           .ops = ops,
                                           .options = options,
                                           .spec = replica->spec,
                                           .outbox = replica->outbox,
                                           .pictures = replica->pictures,
                                           .refused = replica->refused};
    return consumer_start(&config, &replica->consumers[replica->n_consumers++], err);
}

static weir_status start_consumers(struct replica *replica, struct weir_error *err)
{
    const struct predict_spec *spec = replica->spec;
    replica->refused = refused_open(spec->host.dir);
    if (spec->host.server != NULL) {
        WEIR_TRY(shipper_start(spec, replica->outbox, replica->pictures, replica->refused,
                               &replica->consumers[replica->n_consumers++], err));
        replica->left = left_start(spec);
    }
    for (size_t i = 0; i < spec->n_sinks; i++) {
        const struct weir_configured *sink = &spec->sinks[i];
        WEIR_TRY(start_consumer(replica, sink->kind->name, predict_ops_of(sink->kind),
                                sink->options, err));
    }
    if (spec->n_doors > 0) {
        char path[PATH_BYTES];
        (void)snprintf(path, sizeof path, "%s/orders.jsonl", spec->host.dir);
        replica->orders = door_orders_open(path);
    }
    for (size_t i = 0; i < spec->n_doors; i++) {
        replica->door_setups[i] =
            (struct door_setup){&spec->doors[i], &replica->doors, &replica->slot, replica->orders};
        WEIR_TRY(start_consumer(replica, "door", &door_sink, &replica->door_setups[i], err));
    }
    return WEIR_OK;
}

static weir_status start_stages(struct replica *replica, struct weir_error *err)
{
    const struct predict_spec *spec = replica->spec;
    char present[PATH_BYTES];
    (void)snprintf(present, sizeof present, "%s/passages.json", spec->host.dir);
    const struct desk_config desk = {
        .spec = spec, .intake = replica->intake, .slot = &replica->slot};
    if (spec->host.server != NULL) {
        WEIR_TRY(desk_start(&desk, &replica->desk, err));
    }
    const struct engine_config engine = {.spec = spec,
                                         .present_path = present,
                                         .intake = replica->intake,
                                         .slot = &replica->slot,
                                         .outbox = replica->outbox,
                                         .health = replica->health,
                                         .desk = replica->desk,
                                         .counts = replica->counts,
                                         .n_at_once = replica->n_at_once,
                                         .on_broken = end_process};
    const struct source_config source = {
        .spec = spec, .intake = replica->intake, .outbox = replica->outbox, .slot = &replica->slot};
    WEIR_TRY(engine_start(&engine, &replica->engine, err));
    WEIR_TRY(replica->source_ops->start(&source, &replica->source, err));
    const struct deployer_config deployer = {.spec = spec,
                                             .slot = &replica->slot,
                                             .intake = replica->intake,
                                             .n_at_once = replica->n_at_once,
                                             .heartbeat = {.intake = replica->intake,
                                                           .outbox = replica->outbox,
                                                           .refused = replica->refused,
                                                           .consumers = replica->consumers,
                                                           .n_consumers = replica->n_consumers,
                                                           .orders = replica->orders,
                                                           .counts = replica->counts,
                                                           .source_ops = replica->source_ops,
                                                           .source = replica->source}};
    WEIR_TRY(deployer_start(&deployer, &replica->deployer, err));
    door_board_listen(&replica->doors, deployer_notify, replica->deployer);
    counts_listen(replica->counts, deployer_notify, replica->deployer);
    return WEIR_OK;
}

static weir_status start_parts(struct replica *replica, struct weir_error *err)
{
    const struct predict_spec *spec = replica->spec;
    WEIR_TRY(weir_dir_make(spec->host.dir, 0700, err));
    if (spec->sandbox_dir != NULL) {
        WEIR_TRY(weir_dir_make(spec->sandbox_dir, 0700, err));
    }
    WEIR_TRY(open_outbox(replica, err));
    WEIR_TRY(start_consumers(replica, err));
    WEIR_TRY(health_start(spec, &replica->health, err));
    return start_stages(replica, err);
}

/* One on each processor, as far as that many can be there; a GPU has all of its units at one. */
static size_t count_at_once(const struct predict_spec *spec, const struct source_ops *source)
{
    cpu_set_t set;
    int n_cpus = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    size_t n = WEIR_MIN((size_t)n_cpus, (size_t)SERVING_FINDERS_MAX);
    if (source->at_once != NULL) {
        n = WEIR_MIN(n, source->at_once(spec));
    }
    return executor_wants_gpu(&spec->executor) ? 1 : WEIR_MAX(n, (size_t)1);
}

weir_status replica_start(const struct predict_spec *spec, struct replica **out,
                          struct weir_error *err)
{
    struct replica *replica = weir_xalloc(sizeof *replica);
    *replica = (struct replica){.spec = spec, .source_ops = predict_ops_of(spec->source.kind)};
    serving_slot_init(&replica->slot);
    door_board_init(&replica->doors, spec->doors, spec->n_doors);
    replica->n_at_once = count_at_once(spec, replica->source_ops);
    replica->intake = intake_create(&replica->source_ops->limits);
    replica->counts = counts_create(replica->intake);
    weir_status status = start_parts(replica, err);
    if (status != WEIR_OK) {
        replica_stop(replica);
        return status;
    }
    weir_log(WEIR_LOG_INFO, "replica_started", WEIR_KV_STR("ion", spec->ion),
             WEIR_KV_STR("pipeline", spec->pipeline), WEIR_KV_STR("replica", spec->host.replica),
             WEIR_KV_INT("at_once", (int64_t)replica->n_at_once),
             WEIR_KV_STR("dir", spec->host.dir));
    *out = replica;
    return WEIR_OK;
}

void replica_stop(struct replica *replica)
{
    if (replica == NULL) {
        return;
    }
    /* Against the stream: first nothing new comes in, then everything goes out. */
    intake_close(replica->intake);
    if (replica->source != NULL) {
        replica->source_ops->close(replica->source);
    }
    door_board_listen(&replica->doors, NULL, NULL);
    counts_listen(replica->counts, NULL, NULL);
    deployer_stop(replica->deployer); /* Before the source and the outbox that it reports of. */
    engine_stop(replica->engine);
    desk_stop(replica->desk);
    bool is_flushed = replica->outbox == NULL || outbox_flush(replica->outbox, FLUSH_PATIENCE_MS);
    if (!is_flushed) {
        weir_log_event(WEIR_LOG_ERROR, "replica_stops_with_frames_not_durable");
    }
    consumers_stop(replica->consumers, replica->n_consumers, SHIP_GRACE_MS);
    left_stop(replica->left, 0);
    outbox_close(replica->outbox);
    if (replica->source != NULL) {
        replica->source_ops->stop(replica->source);
    }
    health_stop(replica->health);
    pictures_close(replica->pictures);
    refused_close(replica->refused);
    serving_slot_fini(&replica->slot);
    door_board_fini(&replica->doors);
    door_orders_close(replica->orders);
    counts_destroy(replica->counts);
    intake_destroy(replica->intake);
    free(replica);
}

/* ---- the program ----------------------------------------------------------------------------- */

struct options {
    struct weir_host_options host; /* First: program.h. */
    struct executor_flags executor;
    char *door_programs;
};

static const struct weir_option options[] = {
    WEIR_HOST_OPTIONS(options, "What to serve (spec.json)"),
    EXECUTOR_FLAGS(options),
    WEIR_OPT(options, door_programs, "door-programs", 0, TEXT, WEIR_DOOR_PROGRAMS, 0, 0, "DIR",
             "Folder of the programs that doors of kind command may start"),
    WEIR_HOST_OPTION_HELP(options),
};

/** What the program runs, in its arena. */
struct hosted {
    struct predict_spec spec;
    struct replica *replica;
};

static weir_status start_hosted(struct hosted *hosted, const struct options *chosen,
                                struct weir_error *err)
{
    struct predict_spec *spec = &hosted->spec;
    weir_host_options_apply(&chosen->host, &spec->host);
    WEIR_TRY(executor_flags_read(&chosen->executor, &spec->executor, err));
    spec->door_programs = chosen->door_programs;
    WEIR_TRY(doors_set_zone(spec, err));
    return replica_start(spec, &hosted->replica, err);
}

static void stop(void *context)
{
    struct hosted *hosted = context;
    replica_stop(hosted->replica);
    predict_spec_fini(&hosted->spec);
}

static weir_status start(struct weir_host_run *run, const void *given, struct weir_arena *arena,
                         void **out, struct weir_error *err)
{
    const struct options *chosen = given;
    struct hosted *hosted = WEIR_ARENA_NEW(arena, struct hosted);
    (void)run;                      /* a replica that breaks ends at once */
    (void)signal(SIGPIPE, SIG_IGN); /* programs of doors, and brokers, that are gone */
    WEIR_TRY(predict_spec_load(chosen->host.spec, arena, &hosted->spec, err));
    weir_status status = start_hosted(hosted, chosen, err);
    if (status != WEIR_OK) {
        stop(hosted);
        return status;
    }
    *out = hosted;
    return WEIR_OK;
}

static bool fits(const void *given)
{
    return ((const struct options *)given)->host.spec != NULL;
}

static const struct weir_host_program program = {.name = "predict",
                                                 .usage = "--spec FILE",
                                                 .options = options,
                                                 .n_options = WEIR_ARRAY_LEN(options),
                                                 .options_bytes = sizeof(struct options),
                                                 .fits = fits,
                                                 .start = start,
                                                 .stop = stop,
                                                 .stopping_event = "replica_stopping",
                                                 .stopped_event = "replica_stopped"};

int weir_predict_main(int argc, char **argv)
{
    return weir_host_main(&program, argc, argv);
}
