#include "predict/replica.h"

#include "base/file.h"
#include "base/log.h"
#include "base/options.h"
#include "nn/nn.h"
#include "predict/deployment.h"
#include "predict/engine.h"
#include "predict/heartbeat.h"
#include "predict/kinds.h"
#include "predict/left.h"
#include "predict/predict.h"
#include "predict/shipper.h"
#include "predict/source.h"

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
    struct heartbeat *heartbeat; /**< NULL: there is no server. */
    struct deployer *deployer;
    struct left *left; /**< NULL: there is no server. */
    struct consumer *consumers[1 + WEIR_ENDPOINT_SINKS_MAX];
    size_t n_consumers;
    const struct source_ops *source_ops;
    struct source *source;
};

/* Nothing that was acknowledged is lost, and what was not is its source's: as after any kill. The agent
 * starts the replica anew, and with it the GPU. */
static void end_process(const char *reason)
{
    weir_log(WEIR_LOG_ERROR, "replica_broken", WEIR_KV_STR("reason", reason));
    (void)fprintf(stderr, "weir-worker predict: %s\n", reason);
    _exit(weir_status_exit(WEIR_ERR_INTERNAL));
}

static void on_durable(void *context, void *const *tickets, size_t n)
{
    struct replica *replica = context;
    for (size_t i = 0; i < n; i++) {
        intake_done(replica->intake, tickets[i]);
    }
}

static weir_status open_outbox(struct replica *replica, struct weir_error *err)
{
    char dir[PATH_BYTES], images[PATH_BYTES];
    (void)snprintf(dir, sizeof dir, "%s/outbox", replica->spec->dir);
    (void)snprintf(images, sizeof images, "%s/images", replica->spec->dir);
    /* Pictures are for the server's page: without a server none are kept. */
    if (replica->spec->server != NULL) {
        WEIR_TRY(pictures_open(images, PICTURES_MAX, &replica->pictures, err));
    }
    const struct outbox_config config = {
        .dir = dir, .on_durable = on_durable, .context = replica, .pictures = replica->pictures};
    return outbox_open(&config, &replica->outbox, err);
}

static weir_status start_consumers(struct replica *replica, struct weir_error *err)
{
    const struct predict_spec *spec = replica->spec;
    replica->refused = refused_open(spec->dir);
    if (spec->server != NULL) {
        WEIR_TRY(shipper_start(spec, replica->outbox, replica->pictures, replica->refused,
                               &replica->consumers[replica->n_consumers++], err));
        replica->left = left_start(spec);
    }
    for (size_t i = 0; i < spec->n_sinks; i++) {
        const struct consumer_config config = {.name = spec->sinks[i].kind->name,
                                               .ops = predict_ops_of(spec->sinks[i].kind),
                                               .options = spec->sinks[i].options,
                                               .spec = spec,
                                               .outbox = replica->outbox,
                                               .pictures = replica->pictures,
                                               .refused = replica->refused};
        WEIR_TRY(consumer_start(&config, &replica->consumers[replica->n_consumers++], err));
    }
    return WEIR_OK;
}

static weir_status start_stages(struct replica *replica, struct weir_error *err)
{
    const struct predict_spec *spec = replica->spec;
    const struct engine_config engine = {.spec = spec,
                                         .intake = replica->intake,
                                         .slot = &replica->slot,
                                         .outbox = replica->outbox,
                                         .health = replica->health,
                                         .on_broken = end_process};
    const struct deployer_config deployer = {.spec = spec,
                                             .slot = &replica->slot,
                                             .intake = replica->intake,
                                             .heartbeat = replica->heartbeat};
    const struct source_config source = {
        .spec = spec, .intake = replica->intake, .outbox = replica->outbox, .slot = &replica->slot};
    WEIR_TRY(engine_start(&engine, &replica->engine, err));
    WEIR_TRY(deployer_start(&deployer, &replica->deployer, err));
    WEIR_TRY(replica->source_ops->start(&source, &replica->source, err));
    heartbeat_set_source(replica->heartbeat, replica->source_ops, replica->source);
    return WEIR_OK;
}

weir_status replica_start(const struct predict_spec *spec, struct replica **out,
                          struct weir_error *err)
{
    struct replica *replica = weir_xalloc(sizeof *replica);
    memset(replica, 0, sizeof *replica);
    replica->spec = spec;
    serving_slot_init(&replica->slot);
    replica->source_ops = predict_ops_of(spec->source.kind);
    replica->intake = intake_create(&replica->source_ops->limits);
    weir_status status = weir_dir_make(spec->dir, 0700, err);
    if (status == WEIR_OK && spec->sandbox_dir != NULL) {
        status = weir_dir_make(spec->sandbox_dir, 0700, err);
    }
    if (status == WEIR_OK) {
        status = open_outbox(replica, err);
    }
    if (status == WEIR_OK) {
        status = start_consumers(replica, err);
    }
    if (status == WEIR_OK) {
        status = health_start(spec, &replica->health, err);
    }
    if (status == WEIR_OK && spec->server != NULL) {
        const struct heartbeat_config heartbeat = {.spec = spec,
                                                   .intake = replica->intake,
                                                   .outbox = replica->outbox,
                                                   .refused = replica->refused,
                                                   .consumers = replica->consumers,
                                                   .n_consumers = replica->n_consumers};
        status = heartbeat_start(&heartbeat, &replica->heartbeat, err);
    }
    if (status == WEIR_OK) {
        status = start_stages(replica, err);
    }
    if (status != WEIR_OK) {
        replica_stop(replica);
        return status;
    }
    weir_log(WEIR_LOG_INFO, "replica_started", WEIR_KV_STR("ion", spec->ion),
             WEIR_KV_STR("pipeline", spec->pipeline), WEIR_KV_STR("replica", spec->replica),
             WEIR_KV_STR("dir", spec->dir));
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
    deployer_stop(replica->deployer);
    heartbeat_stop(replica->heartbeat); /* Before the source and the outbox that it looks at. */
    engine_stop(replica->engine);
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
    intake_destroy(replica->intake);
    free(replica);
}

/* ---- the program ----------------------------------------------------------------------------- */

struct options {
    char *spec, *server, *ca_file, *onnxruntime, *device, *precision;
    bool help;
};

static const struct weir_option options[] = {
    WEIR_OPT(options, spec, "spec", 's', TEXT, NULL, 0, 0, "FILE", "What to serve (spec.json)"),
    WEIR_OPT(options, server, "server", 0, TEXT, NULL, 0, 0, "URL",
             "Server to ask and to report to, instead of the spec's"),
    WEIR_OPT(options, ca_file, "ca-file", 0, TEXT, NULL, 0, 0, "FILE",
             "Authorities to trust if the server's address is https"),
    WEIR_OPT(options, onnxruntime, "onnxruntime", 0, TEXT, NULL, 0, 0, "PATH",
             "The library onnxruntime, or its folder; default: the system's"),
    WEIR_OPT(options, device, "device", 0, TEXT, "auto", 0, 0, "WORD",
             "Where models are computed: processor, gpu, or auto: on the GPU that the process was "
             "given, if any"),
    WEIR_OPT(options, precision, "precision", 0, TEXT, "f32", 0, 0, "WORD",
             "What models that Weir trained are computed in: f32, bf16, or on a GPU tf32"),
    WEIR_OPT(options, help, "help", 'h', BOOL, NULL, 0, 0, NULL, "Show this"),
};

static int fail(const struct weir_error *err)
{
    /* Its last words: what the job's reason says. */
    (void)fprintf(stderr, "weir-worker predict: %s\n", err->message);
    return weir_status_exit(err->status);
}

/* What the file says, under what flags and environment say. */
static weir_status load_spec(const struct options *chosen, struct weir_arena *arena,
                             struct predict_spec *out, struct weir_error *err)
{
    WEIR_TRY(predict_spec_load(chosen->spec, arena, out, err));
    out->server = chosen->server != NULL ? chosen->server : out->server;
    out->ca_file = chosen->ca_file != NULL ? chosen->ca_file : out->ca_file;
    enum weir_precision checked;
    out->executor = (struct executor_options){.onnxruntime_path = chosen->onnxruntime,
                                              .precision = chosen->precision};
    WEIR_TRY(weir_precision_parse(chosen->precision, &checked, err));
    return executor_device_parse(chosen->device, &out->executor.device, err);
}

static int run(const struct options *chosen, struct weir_arena *arena)
{
    struct predict_spec spec;
    struct replica *replica;
    struct weir_error err = {0};
    sigset_t signals;
    int signal_number;
    /* Blocked before any thread is made, so that only sigwait sees them. */
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    if (load_spec(chosen, arena, &spec, &err) != WEIR_OK ||
        replica_start(&spec, &replica, &err) != WEIR_OK) {
        return fail(&err);
    }
    while (sigwait(&signals, &signal_number) != 0) {
    }
    weir_log(WEIR_LOG_INFO, "replica_stopping", WEIR_KV_INT("signal", signal_number));
    replica_stop(replica);
    weir_log_event(WEIR_LOG_INFO, "replica_stopped");
    return EXIT_SUCCESS;
}

int weir_predict_main(int argc, char **argv)
{
    struct weir_arena arena;
    struct options chosen = {0};
    char **words;
    size_t n_words;
    struct weir_error err = {0};
    int status = EXIT_SUCCESS;
    weir_arena_init(&arena, 0);
    if (weir_options_parse(options, WEIR_ARRAY_LEN(options), argc - 1, argv + 1, &arena, &chosen,
                           &words, &n_words, &err) != WEIR_OK) {
        status = fail(&err);
    } else if (chosen.help) {
        (void)printf("usage: weir-worker predict --spec FILE\n\n");
        weir_options_print(options, WEIR_ARRAY_LEN(options), stdout);
    } else if (chosen.spec == NULL || n_words > 0) {
        weir_error_set(&err, WEIR_ERR_INVALID, "usage: weir-worker predict --spec FILE");
        status = fail(&err);
    } else {
        status = run(&chosen, &arena);
    }
    weir_arena_fini(&arena);
    return status;
}
