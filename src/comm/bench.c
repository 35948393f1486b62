#include "comm/bench_private.h"

#include "base/options.h"
#include "comm/sum.h"

#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPT(member, name, short_name, type, fallback, low, high, arg, doc)                         \
    WEIR_OPT(bench_options, member, name, short_name, type, fallback, low, high, arg, doc)

// clang-format off
static const struct weir_option options[] = {
    OPT(ranks, "ranks", 'n', INT, "2", 1, WEIR_COMM_MAX_RANKS, "N", "Ranks."),
    OPT(bytes, "bytes", 0, TEXT, NULL, 0, 0, "LIST", "Sizes, as 1K,25M; instead of a range."),
    OPT(begin, "begin", 'b', TEXT, "8", 0, 0, "SIZE", "First size of the range."),
    OPT(end, "end", 'e', TEXT, "128M", 0, 0, "SIZE", "Last size of the range."),
    OPT(factor, "factor", 'f', INT, "2", 2, 1024, "N", "From one size to the next."),
    OPT(type, "type", 'd', TEXT, "float", 0, 0, "TYPE", "float, double or int64."),
    OPT(transport, "transport", 't', TEXT, "auto", 0, 0, "NAME",
        "auto, shm (all ranks on one host), ucx, or of UCX only tcp, rc or dc."),
    OPT(algorithm, "algorithm", 'a', TEXT, "auto", 0, 0, "NAME",
        "Between hosts: auto, flat, direct, ring, halving, tree, or by size: flat:8K:ring#1M."),
    OPT(wire, "wire", 0, TEXT, "f32", 0, 0, "TYPE",
        "What floats are sent as between hosts: f32, bf16 or fp16."),
    OPT(tuning, "tuning", 0, TEXT, NULL, 0, 0, "FILE", "What auto chooses by."),
    OPT(tune, "tune", 0, TEXT, NULL, 0, 0, "FILE",
        "Find out what is fastest for each size, and write it to FILE."),
    OPT(hosts, "hosts", 0, INT, "1", 1, WEIR_COMM_MAX_RANKS, "N",
        "Divide the ranks of this host into N groups that take each other for other hosts."),
    OPT(is_private, "private", 0, BOOL, NULL, 0, 0, NULL,
        "Memory that is not the communicator's: with a copy."),
    OPT(iterations, "iterations", 'i', INT, "20", 1, BENCH_MAX_SAMPLES, "N",
        "Samples of a size; fewer if they would take more than 2 s."),
    OPT(warmup, "warmup", 'w', INT, "5", 0, 1000, "N", "All-reduces before them."),
    OPT(rank, "rank", 0, INT, "-1", -1, WEIR_COMM_MAX_RANKS - 1, "N",
        "Be this rank of a group started by someone else."),
    OPT(rendezvous, "rendezvous", 0, TEXT, NULL, 0, 0, "URL",
        "With --rank: where the ranks meet, file:///DIR or tcp://HOST:PORT."),
    OPT(secret, "secret", 0, TEXT, NULL, 0, 0, "TEXT",
        "With --rank: what the ranks prove to each other that they know."),
    OPT(timeout_s, "timeout-s", 0, INT, "60", 1, 86400, "S", "Longest wait for another rank."),
    OPT(format, "format", 'o', TEXT, "text", 0, 0, "FORMAT", "text or json."),
    OPT(is_help, "help", 'h', BOOL, NULL, 0, 0, NULL, "Show this list."),
};

// clang-format on

/* ---- sizes -------------------------------------------------------------------------------------
 */

weir_status bench_size_parse(const char *text, size_t *out_bytes, struct weir_error *err)
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

static weir_status add_size(struct bench_plan *plan, size_t bytes, struct weir_error *err)
{
    if (plan->n_sizes == BENCH_MAX_SIZES) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "more than %d sizes", BENCH_MAX_SIZES);
    }
    plan->sizes[plan->n_sizes++] = WEIR_MAX(bytes, comm_type_size(plan->type));
    return WEIR_OK;
}

static weir_status sizes_of_list(const char *list, struct bench_plan *plan, struct weir_error *err)
{
    for (const char *at = list; *at != '\0';) {
        char word[48];
        size_t len = strcspn(at, ","), bytes = 0;
        (void)snprintf(word, sizeof word, "%.*s", (int)WEIR_MIN(len, sizeof word - 1), at);
        WEIR_TRY(bench_size_parse(word, &bytes, err));
        WEIR_TRY(add_size(plan, bytes, err));
        at += len + (at[len] == ',');
    }
    return WEIR_OK;
}

weir_status bench_sizes(const struct bench_options *given, struct bench_plan *out,
                        struct weir_error *err)
{
    size_t begin = 0, end = 0;
    if (given->bytes != NULL && given->bytes[0] != '\0') {
        return sizes_of_list(given->bytes, out, err);
    }
    WEIR_TRY(bench_size_parse(given->begin, &begin, err));
    WEIR_TRY(bench_size_parse(given->end, &end, err));
    for (size_t bytes = begin; bytes <= end; bytes *= (size_t)given->factor) {
        WEIR_TRY(add_size(out, bytes, err));
    }
    return out->n_sizes > 0 ? WEIR_OK
                            : weir_error_set(err, WEIR_ERR_INVALID, "--begin is larger than --end");
}

static weir_status understand(const struct bench_options *given, struct bench_plan *out,
                              struct weir_error *err)
{
    *out = (struct bench_plan){.options = given, .type = WEIR_COMM_I64};
    for (int t = WEIR_COMM_F32; t <= WEIR_COMM_I64; t++) {
        if (strcmp(given->type, bench_type_name((enum weir_comm_type)t)) == 0) {
            out->type = (enum weir_comm_type)t;
        }
    }
    if (strcmp(given->type, bench_type_name(out->type)) != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--type %.40s: expected float, double or int64", given->type);
    }
    out->is_json = strcmp(given->format, "json") == 0;
    if (!out->is_json && strcmp(given->format, "text") != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "--format %.40s: expected text or json",
                              given->format);
    }
    if (given->rank >= given->ranks) {
        return weir_error_set(err, WEIR_ERR_INVALID, "--rank %lld: there are %lld ranks",
                              (long long)given->rank, (long long)given->ranks);
    }
    if (given->rank >= 0 && given->ranks > 1 &&
        (given->rendezvous == NULL || given->secret == NULL)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "--rank wants --rendezvous and --secret");
    }
    return bench_sizes(given, out, err);
}

/* ---- one rank ----------------------------------------------------------------------------------
 */

static weir_status measure_all(struct weir_comm *comm, const struct bench_plan *plan, void *buf,
                               int64_t *out_n_wrong, struct weir_error *err)
{
    static struct bench_row rows[BENCH_MAX_SIZES];
    bool is_printing = weir_comm_rank(comm) == 0, is_tuning = plan->options->tune != NULL;
    if (is_printing && !plan->is_json) {
        bench_print_head(comm, plan, stdout);
    }
    if (is_tuning) {
        WEIR_TRY(bench_tune(comm, plan, buf, rows, err));
    }
    *out_n_wrong = 0;
    for (size_t i = 0; i < plan->n_sizes; i++) {
        if (!is_tuning) {
            WEIR_TRY(bench_measure(comm, plan, plan->sizes[i], buf, &rows[i]));
        }
        *out_n_wrong += rows[i].n_wrong;
        if (is_printing && !plan->is_json) {
            bench_print_row(comm, plan, &rows[i], stdout);
        }
    }
    if (!is_printing) {
        return WEIR_OK;
    }
    if (plan->is_json) {
        return bench_print_json(comm, plan, rows, plan->n_sizes, stdout);
    }
    bench_print_foot(comm, rows, plan->n_sizes, stdout);
    return WEIR_OK;
}

static weir_status be_rank(const struct bench_plan *plan, const struct weir_comm_config *config,
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

static struct weir_comm_config config_of(const struct bench_plan *plan, int rank)
{
    const struct bench_options *given = plan->options;
    static char host[24];
    (void)snprintf(host, sizeof host, "%d", (int)(rank * given->hosts / given->ranks));
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
                                     .host = given->hosts > 1 ? host : NULL};
}

static int finish(weir_status status, int64_t n_wrong, const struct weir_error *err, int rank)
{
    if (status != WEIR_OK) {
        (void)fprintf(stderr, "weir-worker bench-allreduce: rank %d: %s\n", rank, err->message);
        return weir_status_exit(status);
    }
    return n_wrong == 0 ? 0 : 1;
}

/* ---- all ranks on this host --------------------------------------------------------------------
 */

static int run_rank(const struct bench_plan *plan, int rank, const char *url)
{
    struct weir_comm_config config = config_of(plan, rank);
    struct weir_error err = {0};
    int64_t n_wrong = 0;
    if (url != NULL) {
        config.rendezvous = url;
        config.secret = url; /* its folder is readable for this user alone */
    }
    weir_status status = be_rank(plan, &config, &n_wrong, &err);
    return finish(status, n_wrong, &err, rank);
}

static int wait_for(const pid_t *pids, int n)
{
    int first = 0;
    for (int r = 0; r < n; r++) {
        int status = 0;
        if (pids[r] < 0 || waitpid(pids[r], &status, 0) != pids[r]) {
            status = 1 << 8;
        }
        int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        first = first != 0 ? first : code;
    }
    return first;
}

static int launch(const struct bench_plan *plan)
{
    char dir[] = "/tmp/weir-bench-XXXXXX", url[sizeof dir + 8];
    pid_t pids[WEIR_COMM_MAX_RANKS], parent = getpid();
    int n = (int)plan->options->ranks;
    if (mkdtemp(dir) == NULL) {
        (void)fprintf(stderr, "weir-worker bench-allreduce: no folder in /tmp\n");
        return weir_status_exit(WEIR_ERR_IO);
    }
    (void)snprintf(url, sizeof url, "file://%s", dir);
    (void)fflush(NULL);
    for (int r = 0; r < n; r++) {
        pids[r] = fork();
        if (pids[r] == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent) {
                _exit(1);
            }
            exit(run_rank(plan, r, url));
        }
    }
    int code = wait_for(pids, n);
    (void)rmdir(dir);
    return code;
}

int weir_comm_bench_main(int argc, char **argv)
{
    struct bench_options given = {0};
    static struct bench_plan plan;
    struct weir_arena arena;
    struct weir_error err = {0};
    char **words = NULL;
    size_t n_words = 0;
    int code = 0;
    weir_arena_init(&arena, 0);
    weir_status status = weir_options_parse(options, WEIR_ARRAY_LEN(options), argc - 1, argv + 1,
                                            &arena, &given, &words, &n_words, &err);
    if (status == WEIR_OK && n_words > 0) {
        status = weir_error_set(&err, WEIR_ERR_INVALID, "\"%.60s\": expected a flag", words[0]);
    }
    if (status == WEIR_OK && given.is_help) {
        (void)printf("usage: weir-worker bench-allreduce [option …]\n\n");
        weir_options_print(options, WEIR_ARRAY_LEN(options), stdout);
    } else if (status == WEIR_OK) {
        status = understand(&given, &plan, &err);
        if (status == WEIR_OK) {
            code = given.rank >= 0 ? run_rank(&plan, (int)given.rank, NULL) : launch(&plan);
        }
    }
    if (status != WEIR_OK) {
        (void)fprintf(stderr, "weir-worker bench-allreduce: %s\n", err.message);
        code = weir_status_exit(status);
    }
    weir_arena_fini(&arena);
    return code;
}
