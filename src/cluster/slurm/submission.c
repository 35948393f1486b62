#include "cluster/slurm/submission.h"

#include "cluster/slurm/command.h"
#include "cluster/slurm/refusal.h"
#include "cluster/slurm/state.h"

#include "base/buf.h"

#include <string.h>

#define WORDS_MAX        128
#define SCRIPT_MAX_BYTES ((size_t)56 << 10)
#define COMMENT_BYTES    200
#define MB               ((int64_t)1 << 20)
#define MINUTE_MS        60000
#define WHOLE            1000 /* an accelerator, in thousandths */

struct words {
    struct weir_arena *arena;
    const char **list;
    size_t n;
};

static void add(struct words *words, const char *word)
{
    if (words->n < WORDS_MAX) {
        words->list[words->n++] = word;
    }
}

/* --name=value, if there is a value. */
static void add_named(struct words *words, const char *name, const char *value)
{
    if (value != NULL) {
        add(words, weir_arena_printf(words->arena, "--%s=%s", name, value));
    }
}

static void add_number(struct words *words, const char *name, int64_t value)
{
    add(words, weir_arena_printf(words->arena, "--%s=%lld", name, (long long)value));
}

/* One line without "|", which stands between fields of squeue. */
static const char *comment_of(const char *text, struct weir_arena *arena)
{
    size_t len = text != NULL ? strlen(text) : 0;
    len = WEIR_MIN(len, (size_t)COMMENT_BYTES);
    char *comment = weir_arena_memdup(arena, text != NULL ? text : "", len);
    for (size_t i = 0; i < len; i++) {
        bool is_plain = comment[i] >= ' ' && comment[i] != 127 && comment[i] != '|';
        comment[i] = is_plain ? comment[i] : ' ';
    }
    return weir_arena_printf(arena, "Weir: %s", len > 0 ? comment : "an allocation");
}

/* ---- how much -------------------------------------------------------------------------------- */

static weir_status check_size(const struct slurm_pool *pool,
                              const struct weir_node_request *request, int64_t time_ms,
                              struct weir_error *err)
{
    const struct weir_pool_offer *offer = &pool->offer;
    if (request->n_nodes < 1 || request->n_nodes > offer->max_nodes) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "the pool %s has at most %lld nodes, not %lld",
                              offer->name, (long long)offer->max_nodes,
                              (long long)request->n_nodes);
    }
    if (offer->time_max_ms > 0 && time_ms > offer->time_max_ms) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "time: the partition %s allows %lld minutes at the most, not %lld",
                              pool->partition, (long long)(offer->time_max_ms / MINUTE_MS),
                              (long long)(time_ms / MINUTE_MS));
    }
    if (request->cpu_slots > offer->cpu_slots || request->memory_bytes > offer->memory_bytes ||
        request->n_accelerators > offer->n_accelerators) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "a node of the pool %s has %lld processors, %lld MiB of memory and "
                              "%lld accelerators: less "
                              "than is asked for",
                              offer->name, (long long)offer->cpu_slots,
                              (long long)(offer->memory_bytes / MB),
                              (long long)offer->n_accelerators);
    }
    if (request->accelerator_milli > 0 &&
        (offer->accelerator_parts == 0 || request->n_accelerators != 1)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "a node of the pool %s gives no part of an accelerator: Slurm tells "
                              "of no shards there that are divided evenly",
                              offer->name);
    }
    bool is_model =
        request->accelerator == NULL || request->n_accelerators == 0 ||
        (offer->accelerator != NULL && strcmp(request->accelerator, offer->accelerator) == 0);
    return is_model ? WEIR_OK
                    : weir_error_set(err, WEIR_ERR_INVALID,
                                     "the pool %s has accelerators of the model %s, not %.60s",
                                     offer->name,
                                     offer->accelerator != NULL ? offer->accelerator : "none",
                                     request->accelerator);
}

static void add_size(struct words *words, const struct slurm_options *options,
                     const struct slurm_pool *pool, const struct weir_node_request *request)
{
    bool is_whole =
        request->cpu_slots == 0 && request->memory_bytes == 0 && request->n_accelerators == 0;
    int64_t n_gpus = is_whole ? pool->offer.n_accelerators : request->n_accelerators;
    add_number(words, "nodes", request->n_nodes);
    add_number(words, "ntasks-per-node", 1);
    if (is_whole || options->exclusive) {
        add(words, "--exclusive");
    }
    add_number(words, "cpus-per-task",
               is_whole ? pool->offer.cpu_slots : WEIR_MAX(request->cpu_slots, (int64_t)1));
    if (is_whole) {
        add(words, "--mem=0"); /* all */
    } else if (request->memory_bytes > 0) {
        add(words, weir_arena_printf(words->arena, "--mem=%lldM",
                                     (long long)((request->memory_bytes + MB - 1) / MB)));
    }
    int64_t parts = pool->offer.accelerator_parts, milli = request->accelerator_milli;
    if (n_gpus > 0 && milli > 0) {
        add(words, weir_arena_printf(words->arena, "--gres=shard:%lld",
                                     (long long)((milli * parts + WHOLE - 1) / WHOLE)));
    } else if (n_gpus > 0) {
        add(words, weir_arena_printf(words->arena, "--gres=gpu:%s%s%lld",
                                     pool->has_type ? pool->offer.accelerator : "",
                                     pool->has_type ? ":" : "", (long long)n_gpus));
    }
}

static void add_time(struct words *words, int64_t time_ms)
{
    int64_t minutes = (time_ms + MINUTE_MS - 1) / MINUTE_MS;
    if (minutes > 0) {
        add_number(words, "time", minutes);
    }
    if (minutes == 0 || minutes * 60 >= SLURM_WARNED_S) {
        add(words, "--signal=TERM@60");
    }
}

/* ---- the script ------------------------------------------------------------------------------ */

const char *slurm_shell_word(const char *text, struct weir_arena *arena)
{
    struct weir_buf word;
    weir_buf_init(&word, SCRIPT_MAX_BYTES);
    (void)weir_buf_puts(&word, "'");
    for (const char *at = text; *at != '\0'; at++) {
        (void)weir_buf_append(&word, *at == '\'' ? "'\\''" : at, *at == '\'' ? 4 : 1);
    }
    (void)weir_buf_puts(&word, "'");
    const char *out = weir_arena_memdup(arena, word.data, word.len);
    weir_buf_fini(&word);
    return out;
}

/*
 * What runs on each node. The shell outlives the TERM that all processes of the allocation get, so that it can remove the
 * agent's folder when the agent has ended.
 */
static const char on_node[] =
    "trap : TERM\n"
    "base=${1:-${TMPDIR:-/tmp}} tag=$2\n"
    "shift 2\n"
    "mkdir -p \"$base\" && dir=$(mktemp -d \"$base/weir-$tag.XXXXXX\") || exit 1\n"
    "\"$@\" --dir \"$dir\"\n"
    "status=$?\n"
    "rm -rf \"$dir\"\n"
    "exit $status";

/* What the agents print goes away if they end well, or are told to end. */
static void write_script(const struct slurm_options *options, const struct slurm_pool *pool,
                         const struct weir_node_request *request, struct weir_buf *script,
                         struct weir_arena *arena)
{
    size_t n_lines;
    const char **lines = slurm_options_lines(options, arena, &n_lines);
    const char *server = options->server != NULL ? options->server : request->agent.server;
    const char *ca_file = options->ca_file != NULL ? options->ca_file : request->agent.ca_file;

    const struct {
        const char *flag, *value;
    } flags[] = {{"--allocation", request->tag},
                 {"--server", server},
                 {"--ca-file", ca_file},
                 {"--address", options->network}};

    (void)weir_buf_puts(script, "#!/bin/sh\n");
    for (size_t i = 0; i < n_lines; i++) {
        (void)weir_buf_printf(script, "#SBATCH %s\n", lines[i]);
    }
    (void)weir_buf_puts(script, "umask 077\ntrap told=yes TERM\n");
    if (pool->offer.accelerator != NULL) {
        (void)weir_buf_printf(script, "export WEIR_ACCELERATOR_MODEL=%s\n",
                              slurm_shell_word(pool->offer.accelerator, arena));
    }
    if (request->accelerator_milli > 0) {
        (void)weir_buf_printf(script, "export WEIR_ACCELERATOR_MILLI=%lld\n",
                              (long long)request->accelerator_milli);
    }
    (void)weir_buf_printf(
        script,
        "srun --ntasks-per-node=1 --kill-on-bad-exit=0 --wait=0 --cpu-bind=none "
        "/bin/sh -c %s weir %s %s %s agent",
        slurm_shell_word(on_node, arena),
        slurm_shell_word(options->dir != NULL ? options->dir : "", arena),
        slurm_shell_word(request->tag, arena),
        slurm_shell_word(options->program != NULL ? options->program : "weir", arena));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(flags); i++) {
        if (flags[i].value != NULL) {
            (void)weir_buf_printf(script, " %s %s", flags[i].flag,
                                  slurm_shell_word(flags[i].value, arena));
        }
    }
    for (size_t i = 0; i < json_array_size(options->shares); i++) {
        const char *share = json_string_value(json_array_get(options->shares, i));
        (void)weir_buf_printf(script, " --share %s", slurm_shell_word(share, arena));
    }
    (void)weir_buf_printf(script,
                          "\nstatus=$?\n[ $status -ne 0 ] && [ -z \"$told\" ] || rm -f "
                          "/tmp/weir-%s.out\nexit $status\n",
                          slurm_shell_word(request->tag, arena));
}

static void add_words(struct words *words, const struct slurm_options *options,
                      const struct slurm_pool *pool, const struct weir_node_request *request,
                      bool is_test)
{
    const struct slurm_payer payer = slurm_options_payer(options, request->queue);
    add(words, "sbatch");
    add(words, is_test ? "--test-only" : "--parsable");
    add_named(words, "job-name", request->tag);
    add(words, "--no-requeue");
    if (!is_test) {
        add(words, "--dependency=singleton");
    }
    add_named(words, "partition", pool->partition);
    add_named(words, "exclude", pool->others);
    add_named(words, "account", payer.account);
    add_named(words, "qos", payer.qos);
    add_named(words, "constraint", options->constraint);
    add_named(words, "reservation", options->reservation);
    add_named(words, "comment", comment_of(request->text, words->arena));
    add(words, "--chdir=/");
    add(words, "--output=" SLURM_OUTPUT);
    add(words, "--open-mode=truncate");
    add(words, "--export=ALL"); /* the environment of slurm_run */
}

weir_status slurm_submission_make(const struct slurm_options *options,
                                  const struct slurm_pool *pool,
                                  const struct weir_node_request *request, bool is_test,
                                  struct weir_arena *arena, struct slurm_submission *out,
                                  struct weir_error *err)
{
    struct words words = {.arena = arena,
                          .list = WEIR_ARENA_ARRAY(arena, WORDS_MAX + 1, const char *)};
    const char **env = WEIR_ARENA_ARRAY(arena, 2, const char *);
    int64_t time_ms = request->time_ms > 0 ? request->time_ms : slurm_options_time_ms(options);
    struct weir_buf script;
    WEIR_TRY(check_size(pool, request, time_ms, err));
    weir_buf_init(&script, SCRIPT_MAX_BYTES);
    write_script(options, pool, request, &script, arena);
    weir_status status = script.status;
    out->script = weir_arena_memdup(arena, script.data, script.len);
    weir_buf_fini(&script);
    if (status != WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "the options make a script of more than %zu KiB",
                              SCRIPT_MAX_BYTES >> 10);
    }
    add_words(&words, options, pool, request, is_test);
    add_size(&words, options, pool, request);
    add_time(&words, time_ms);
    env[0] = weir_arena_printf(arena, "WEIR_JOIN_SECRET=%s",
                               request->agent.secret != NULL ? request->agent.secret : "");
    out->words = words.list;
    out->env = env;
    return WEIR_OK;
}

weir_status slurm_submit(const struct slurm_options *options, const struct slurm_pool *pool,
                         const struct weir_node_request *request, bool is_test,
                         struct weir_arena *arena, struct weir_error *err)
{
    struct slurm_submission submission;
    struct slurm_answer answer;
    WEIR_TRY(slurm_submission_make(options, pool, request, is_test, arena, &submission, err));
    const struct slurm_command command = {.words = submission.words,
                                          .input = submission.script,
                                          .env = submission.env,
                                          .timeout_ms = SLURM_CHANGE_MS};
    WEIR_TRY(slurm_run(options, &command, arena, &answer, err));
    return answer.exit_status == 0 ? WEIR_OK : slurm_refusal("sbatch", answer.said, err);
}
