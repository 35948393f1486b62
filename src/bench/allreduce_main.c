#include "bench/allreduce.h"

#include "base/options.h"
#include "bench/spawn.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define OPT(member, name, short_name, type, fallback, low, high, arg, doc)                         \
    WEIR_OPT(allreduce_options, member, name, short_name, type, fallback, low, high, arg, doc)

// clang-format off
static const struct weir_option options[] = {
    OPT(ranks, "ranks", 'n', INT, "0", 0, WEIR_COMM_MAX_RANKS, "N",
        "Ranks; 0: as many as --hosts have room for, or 2."),
    OPT(bytes, "bytes", 0, TEXT, NULL, 0, 0, "LIST", "Sizes, as 1K,25M; instead of a range."),
    OPT(begin, "begin", 'b', TEXT, "8", 0, 0, "SIZE", "First size of the range."),
    OPT(end, "end", 'e', TEXT, "128M", 0, 0, "SIZE", "Last size of the range."),
    OPT(factor, "factor", 'f', INT, "2", 2, 1024, "N", "From one size to the next."),
    OPT(type, "type", 'd', TEXT, "float", 0, 0, "TYPE", "float, double or int64."),
    OPT(transport, "transport", 't', TEXT, "auto", 0, 0, "NAME",
        "auto, shm (all ranks on one host), tcp, ucx, or of UCX only rc or dc."),
    OPT(algorithm, "algorithm", 'a', TEXT, "auto", 0, 0, "NAME",
        "Between hosts: auto, flat, direct, ring, halving, tree, or by size: flat:8K:ring#1M."),
    OPT(wire, "wire", 0, TEXT, "f32", 0, 0, "TYPE",
        "What floats are sent as between hosts: f32, bf16 or fp16."),
    OPT(tuning, "tuning", 0, TEXT, NULL, 0, 0, "FILE", "What auto chooses by."),
    OPT(tune, "tune", 0, TEXT, NULL, 0, 0, "FILE",
        "Find out what is fastest for each size, and write it to FILE."),
    OPT(split, "split", 0, INT, "1", 1, WEIR_COMM_MAX_RANKS, "N",
        "Divide the ranks into N groups that take each other for other hosts."),
    OPT(is_private, "private", 0, BOOL, NULL, 0, 0, NULL,
        "Memory that is not the communicator's: with a copy."),
    OPT(iterations, "iterations", 'i', INT, "20", 1, ALLREDUCE_MAX_SAMPLES, "N",
        "Samples of a size; fewer if they would take more than 2 s."),
    OPT(warmup, "warmup", 'w', INT, "5", 0, 1000, "N", "All-reduces before them."),
    OPT(hosts, "hosts", 0, TEXT, NULL, 0, 0, "LIST", "Start the ranks there: a,b or a:2,b:2."),
    OPT(launcher, "launcher", 0, TEXT, "auto", 0, 0, "NAME",
        "local, ssh, srun, or auto: ssh with --hosts, srun inside a Slurm allocation."),
    OPT(rank, "rank", 0, INT, "-1", -1, WEIR_COMM_MAX_RANKS - 1, "N",
        "Be this rank of a group started by someone else."),
    OPT(rendezvous, "rendezvous", 0, TEXT, NULL, 0, 0, "URL",
        "Where the ranks meet: tcp://HOST:PORT of the first host, or file:///DIR."),
    OPT(secret, "secret", 0, TEXT, NULL, 0, 0, "TEXT",
        "With --rank: what the ranks prove to each other that they know."),
    OPT(timeout_s, "timeout-s", 0, INT, "60", 1, 86400, "S", "Longest wait for another rank."),
    OPT(format, "format", 'o', TEXT, "text", 0, 0, "FORMAT", "text or json."),
    OPT(is_help, "help", 'h', BOOL, NULL, 0, 0, NULL, "Show this list."),
};

// clang-format on

/* ---- sizes ---------------------------------------------------------------------------------- */

weir_status allreduce_size_parse(const char *text, size_t *out_bytes, struct weir_error *err)
{
    char *end = NULL;
    unsigned long long number = isdigit((unsigned char)text[0]) ? strtoull(text, &end, 10) : 0;
    static const char units[] = "KMG";
    const char *unit =
        end != NULL && *end != '\0' ? strchr(units, toupper((unsigned char)*end)) : NULL;
    unsigned shift = unit != NULL ? 10 * ((unsigned)(unit - units) + 1) : 0;
    end += unit != NULL;
    if (end == NULL || *end != '\0' || number == 0 || number > (UINT64_C(1) << 40) >> shift) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "size \"%.40s\": expected 1 byte to 1024G, as 8, 64K or 25M", text);
    }
    *out_bytes = (size_t)number << shift;
    return WEIR_OK;
}

static weir_status add_size(struct allreduce_plan *plan, size_t bytes, struct weir_error *err)
{
    if (plan->n_sizes == ALLREDUCE_MAX_SIZES) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "more than %d sizes", ALLREDUCE_MAX_SIZES);
    }
    plan->sizes[plan->n_sizes++] = WEIR_MAX(bytes, weir_comm_type_size(plan->type));
    return WEIR_OK;
}

static weir_status sizes_of_list(const char *list, struct allreduce_plan *plan,
                                 struct weir_error *err)
{
    for (const char *at = list; *at != '\0';) {
        char arg[48];
        size_t len = strcspn(at, ","), bytes = 0;
        (void)snprintf(arg, sizeof arg, "%.*s", (int)WEIR_MIN(len, sizeof arg - 1), at);
        WEIR_TRY(allreduce_size_parse(arg, &bytes, err));
        WEIR_TRY(add_size(plan, bytes, err));
        at += len + (at[len] == ',');
    }
    return WEIR_OK;
}

weir_status allreduce_sizes(const struct allreduce_options *given, struct allreduce_plan *out,
                            struct weir_error *err)
{
    size_t begin = 0, end = 0;
    if (given->bytes != NULL && given->bytes[0] != '\0') {
        return sizes_of_list(given->bytes, out, err);
    }
    WEIR_TRY(allreduce_size_parse(given->begin, &begin, err));
    WEIR_TRY(allreduce_size_parse(given->end, &end, err));
    for (size_t bytes = begin; bytes <= end; bytes *= (size_t)given->factor) {
        WEIR_TRY(add_size(out, bytes, err));
    }
    return out->n_sizes > 0 ? WEIR_OK
                            : weir_error_set(err, WEIR_ERR_INVALID, "--begin is larger than --end");
}

static weir_status understand(const struct allreduce_options *given, struct allreduce_plan *out,
                              struct weir_error *err)
{
    *out = (struct allreduce_plan){.options = given, .type = WEIR_COMM_I64};
    for (int t = WEIR_COMM_F32; t <= WEIR_COMM_I64; t++) {
        if (strcmp(given->type, allreduce_type_name((enum weir_comm_type)t)) == 0) {
            out->type = (enum weir_comm_type)t;
        }
    }
    if (strcmp(given->type, allreduce_type_name(out->type)) != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--type %.40s: expected float, double or int64", given->type);
    }
    out->is_json = strcmp(given->format, "json") == 0;
    if (!out->is_json && strcmp(given->format, "text") != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "--format %.40s: expected text or json",
                              given->format);
    }
    if (given->rank >= 0 && given->rank >= given->ranks) {
        return weir_error_set(err, WEIR_ERR_INVALID, "--rank %lld: there are %lld ranks",
                              (long long)given->rank, (long long)given->ranks);
    }
    if (given->rank >= 0 && given->ranks > 1 &&
        (given->rendezvous == NULL || given->secret == NULL)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "--rank wants --rendezvous and --secret");
    }
    return allreduce_sizes(given, out, err);
}

/* ---- one rank ------------------------------------------------------------------------------- */

static weir_status measure_all(struct weir_comm *comm, const struct allreduce_plan *plan, void *buf,
                               int64_t *out_n_wrong, struct weir_error *err)
{
    static struct allreduce_row rows[ALLREDUCE_MAX_SIZES];
    bool is_printing = weir_comm_rank(comm) == 0, is_tuning = plan->options->tune != NULL;
    if (is_printing && !plan->is_json) {
        allreduce_print_head(comm, plan, stdout);
    }
    if (is_tuning) {
        WEIR_TRY(allreduce_tune(comm, plan, buf, rows, err));
    }
    *out_n_wrong = 0;
    for (size_t i = 0; i < plan->n_sizes; i++) {
        if (!is_tuning) {
            WEIR_TRY(allreduce_measure(comm, plan, plan->sizes[i], buf, &rows[i]));
        }
        *out_n_wrong += rows[i].n_wrong;
        if (is_printing && !plan->is_json) {
            allreduce_print_row(comm, plan, &rows[i], stdout);
        }
    }
    if (!is_printing) {
        return WEIR_OK;
    }
    if (plan->is_json) {
        return allreduce_print_json(comm, plan, rows, plan->n_sizes, stdout);
    }
    allreduce_print_foot(comm, rows, plan->n_sizes, stdout);
    return WEIR_OK;
}

static weir_status be_rank(const struct allreduce_plan *plan, const struct weir_comm_config *config,
                           int64_t *out_n_wrong, struct weir_error *err)
{
    struct weir_comm *comm = NULL;
    void *buf = NULL, *private_memory = NULL;
    size_t largest = 0;
    for (size_t i = 0; i < plan->n_sizes; i++) {
        largest = WEIR_MAX(largest, plan->sizes[i]);
    }
    WEIR_TRY(weir_comm_create(config, &comm, err));
    weir_status status = WEIR_OK;
    if (plan->options->is_private) {
        buf = private_memory = malloc(largest);
        status = buf == NULL ? WEIR_ERR_NOMEM : WEIR_OK;
    } else {
        status = weir_comm_alloc(comm, largest, &buf);
    }
    if (status == WEIR_ERR_NOMEM) {
        (void)weir_error_set(err, status, "no memory for %zu bytes on each rank", largest);
    }
    if (status == WEIR_OK) {
        status = measure_all(comm, plan, buf, out_n_wrong, err);
        if (weir_comm_failure(comm, NULL, NULL) != WEIR_OK) {
            (void)weir_comm_failure(comm, NULL, err);
        }
    }
    free(private_memory);
    weir_comm_destroy(comm);
    return status;
}

static struct weir_comm_config config_of(const struct allreduce_plan *plan, int rank)
{
    const struct allreduce_options *given = plan->options;
    static char host[24];
    (void)snprintf(host, sizeof host, "%d", (int)(rank * given->split / given->ranks));
    return (struct weir_comm_config){.rendezvous = given->rendezvous,
                                     .secret = given->secret,
                                     .job_id = "bench-allreduce",
                                     .rank = rank,
                                     .size = (int)given->ranks,
                                     .timeout_ms = (int)given->timeout_s * 1000,
                                     .transport = given->transport,
                                     .algorithm = given->algorithm,
                                     .tuning = given->tuning,
                                     .wire = given->wire,
                                     .host = given->split > 1 ? host : NULL};
}

static weir_status run_rank(const struct allreduce_plan *plan, int rank, struct weir_error *err)
{
    struct weir_comm_config config = config_of(plan, rank);
    int64_t n_wrong = 0;
    WEIR_TRY(be_rank(plan, &config, &n_wrong, err));
    return n_wrong == 0 ? WEIR_OK
                        : weir_error_set(err, WEIR_ERR_CORRUPT, "%lld sums are not the serial ones",
                                         (long long)n_wrong);
}

/* ---- all ranks ------------------------------------------------------------------------------ */

static weir_status launch(const struct allreduce_options *given, int argc, char *const *argv,
                          struct weir_arena *arena, struct weir_error *err)
{
    char **args = WEIR_ARENA_ARRAY(arena, (size_t)argc + 2, char *);
    args[0] = weir_arena_strdup(arena, "weir-worker");
    memcpy(args + 1, argv, (size_t)argc * sizeof *argv);
    const struct weir_spawn_config config = {.n_ranks = (int)given->ranks,
                                             .hosts = given->hosts,
                                             .by = given->launcher,
                                             .argv = args,
                                             .rendezvous = given->rendezvous};
    return weir_spawn_run(&config, err);
}

static weir_status parse(int argc, char **argv, struct weir_arena *arena,
                         struct allreduce_options *given, struct weir_error *err)
{
    char **args = NULL;
    size_t n_args = 0;
    WEIR_TRY(weir_options_parse(options, WEIR_ARRAY_LEN(options), argc - 1, argv + 1, arena, given,
                                &args, &n_args, err));
    return n_args == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "\"%.60s\": expected a flag", args[0]);
}

static weir_status run(int argc, char **argv, struct weir_arena *arena, struct weir_error *err)
{
    static struct allreduce_plan plan;
    struct allreduce_options given = {0};
    struct weir_spawn_rank me;
    bool is_rank = weir_spawn_is_rank();
    if (is_rank) {
        WEIR_TRY(weir_spawn_join(&me, err));
    }
    WEIR_TRY(parse(argc, argv, arena, &given, err));
    if (given.is_help) {
        (void)printf("usage: weir bench allreduce [option …]\n\n");
        weir_options_print(options, WEIR_ARRAY_LEN(options), stdout);
        return WEIR_OK;
    }
    if (is_rank) {
        given.rank = me.rank;
        given.ranks = me.size;
        given.rendezvous = weir_arena_strdup(arena, me.rendezvous);
        given.secret = me.secret;
    }
    if (given.ranks == 0 && given.hosts == NULL) {
        given.ranks = 2;
    }
    WEIR_TRY(understand(&given, &plan, err));
    return given.rank >= 0 ? run_rank(&plan, (int)given.rank, err)
                           : launch(&given, argc, argv, arena, err);
}

int weir_bench_allreduce_main(int argc, char **argv)
{
    struct weir_arena arena;
    struct weir_error err = {0};
    weir_arena_init(&arena, 0);
    weir_status status = run(argc, argv, &arena, &err);
    if (status != WEIR_OK) {
        (void)fprintf(stderr, "weir-worker bench-allreduce: %s\n",
                      err.message[0] != '\0' ? err.message : weir_status_text(status));
    }
    weir_arena_fini(&arena);
    return weir_status_exit(status);
}
