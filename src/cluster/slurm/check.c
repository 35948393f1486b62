#include "cluster/slurm/check.h"

#include "cluster/slurm/command.h"
#include "cluster/slurm/pool.h"
#include "cluster/slurm/refusal.h"
#include "cluster/slurm/submission.h"
#include "cluster/slurm/text.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/macros.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MUNGE_SOCKET   "/run/munge/munge.socket.2"
#define CONF           "/etc/slurm/slurm.conf"
#define CONF_MAX_BYTES ((size_t)4 << 20)
#define SKEW_MAX_MS    60000

/* What a check goes through: each step says what lacks, or NULL. */
struct checking {
    const struct slurm_options *options;
    struct weir_arena *arena;
    struct slurm_pool *pools;
    size_t n_pools;
    bool is_silent; /* What lacks is an answer of Slurm's. */
};

typedef const char *(*step_fn)(struct checking *checking);

/* What lacks where Slurm was asked: what it, or nobody, said. */
static const char *no_answer(struct checking *checking, weir_status status,
                             const struct weir_error *err)
{
    checking->is_silent =
        status == WEIR_ERR_UNAVAILABLE && !slurm_blames_this_machine(err->message);
    return weir_arena_strdup(checking->arena, err->message);
}

/* ---- this machine ---------------------------------------------------------------------------- */

static const char *wrong_options(struct checking *checking)
{
    return slurm_options_wrong(checking->options, checking->arena);
}

/* What is wrong with a command, found by its version. */
static const char *wrong_command(struct checking *checking, const char *name)
{
    struct weir_arena *arena = checking->arena;
    struct weir_error err;
    struct slurm_answer answer;
    const char *bin = checking->options->bin != NULL ? checking->options->bin : "PATH";
    const struct slurm_command command = {.words = SLURM_WORDS(name, "--version"),
                                          .timeout_ms = SLURM_ASK_MS};
    weir_status status = slurm_run(checking->options, &command, arena, &answer, &err);
    if (status == WEIR_ERR_UNAVAILABLE) {
        return weir_arena_strdup(arena, err.message);
    }
    if (status != WEIR_OK) {
        return weir_arena_printf(arena,
                                 "bin: there is no %s in %s (%s): install Slurm's commands "
                                 "(Debian: slurm-client), or name the "
                                 "folder that has them",
                                 name, bin, err.message);
    }
    if (answer.exit_status != 0) {
        (void)slurm_refusal(name, answer.said, &err);
        return weir_arena_strdup(arena, err.message);
    }
    int version = slurm_version_read(answer.out);
    if (version == 0) {
        return weir_arena_printf(arena, "bin: %s in %s is none of Slurm's: it says \"%.80s\"", name,
                                 bin, slurm_said_line(answer.out, arena));
    }
    return version >= SLURM_VERSION_MIN
               ? NULL
               : weir_arena_printf(
                     arena,
                     "bin: %s in %s is of Slurm %d.%02d: the oldest that is supported is "
                     "%d.%02d, since when an agent gets all that its job has of a node",
                     name, bin, version / 100, version % 100, SLURM_VERSION_MIN / 100,
                     SLURM_VERSION_MIN % 100);
}

static const char *missing_commands(struct checking *checking)
{
    static const char *const commands[] = {"sbatch", "squeue", "scancel", "sinfo", "scontrol"};
    const char *wrong = NULL;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(commands) && wrong == NULL; i++) {
        wrong = wrong_command(checking, commands[i]);
    }
    return wrong;
}

static const char *conf_path(const struct slurm_options *options)
{
    const char *own = getenv("SLURM_CONF");
    return options->conf != NULL ? options->conf : own != NULL ? own : CONF;
}

static const char *missing_conf(struct checking *checking)
{
    const char *conf = checking->options->conf;
    return conf == NULL || access(conf, R_OK) == 0
               ? NULL
               : weir_arena_printf(
                     checking->arena,
                     "conf: %s cannot be read (%s): name the cluster's slurm.conf, as the "
                     "nodes have it",
                     conf, strerror(errno));
}

const char *slurm_munge_socket(const char *conf, struct weir_arena *arena)
{
    static const char key[] = "socket=";
    for (const char *line = conf; *line != '\0';) {
        size_t len = strcspn(line, "\n");
        const char *at =
            strncasecmp(line, "AuthInfo=", 9) == 0 ? memmem(line, len, key, strlen(key)) : NULL;
        if (at != NULL) {
            at += strlen(key);
            return weir_arena_memdup(arena, at, strcspn(at, ", \t\r\n#"));
        }
        line += len + (line[len] == '\n');
    }
    return MUNGE_SOCKET;
}

/* Slurm's commands wait 50 s for an authentication service that is down: it is looked at before. A site may have another
 * service: what has no socket at the default place is left to Slurm. */
static const char *missing_munge(struct checking *checking)
{
    char *conf = "";
    size_t len;
    struct weir_error ignored;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (weir_file_read(conf_path(checking->options), CONF_MAX_BYTES, checking->arena, &conf, &len,
                       &ignored) != WEIR_OK) {
        return NULL;
    }
    const char *path = slurm_munge_socket(conf, checking->arena);
    bool is_other =
        strcasestr(conf, "AuthType=") != NULL && strcasestr(conf, "AuthType=auth/munge") == NULL;
    if (is_other || strlen(path) >= sizeof address.sun_path) {
        return NULL;
    }
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int rc = fd >= 0 ? connect(fd, (struct sockaddr *)&address, sizeof address) : 0;
    int number = errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    return rc == 0 ? NULL
                   : weir_arena_printf(
                         checking->arena,
                         "the service munge, by which Slurm knows users, does not answer at "
                         "%s (%s): start it on this machine, with the cluster's munge.key",
                         path, strerror(number));
}

/* ---- the cluster ----------------------------------------------------------------------------- */

int64_t slurm_config_time_ms(const char *text)
{
    static const char words[] = "Configuration data as of ";
    const char *at = strstr(text, words);
    return at != NULL ? slurm_number(at + strlen(words)) * 1000 : 0;
}

static const char *missing_controller(struct checking *checking)
{
    const char *text;
    struct weir_error err;
    weir_status status = slurm_ask(checking->options, SLURM_WORDS("scontrol", "show", "config"),
                                   checking->arena, &text, &err);
    if (status != WEIR_OK) {
        return no_answer(checking, status, &err);
    }
    int64_t skew_ms = weir_time_ms() - slurm_config_time_ms(text);
    return slurm_config_time_ms(text) == 0 || (skew_ms < SKEW_MAX_MS && skew_ms > -SKEW_MAX_MS)
               ? NULL
               : weir_arena_printf(
                     checking->arena,
                     "this machine's clock is %lld s %s that of slurmctld: set both right, or "
                     "Slurm will refuse what this machine asks",
                     (long long)llabs(skew_ms) / 1000, skew_ms > 0 ? "before" : "behind");
}

static const char *missing_pools(struct checking *checking)
{
    struct weir_error err;
    int64_t time_ms = slurm_options_time_ms(checking->options);
    weir_status status = slurm_pools_list(checking->options, checking->arena, &checking->pools,
                                          &checking->n_pools, &err);
    if (status != WEIR_OK) {
        return no_answer(checking, status, &err);
    }
    for (size_t i = 0; i < checking->n_pools; i++) {
        const struct weir_pool_offer *offer = &checking->pools[i].offer;
        if (offer->why != NULL) {
            return weir_arena_printf(checking->arena, "partition: %s", offer->why);
        }
        if (offer->time_max_ms > 0 && time_ms > offer->time_max_ms) {
            return weir_arena_printf(
                checking->arena,
                "time: %s is more than the %lld minutes that the partition %s allows",
                checking->options->time, (long long)(offer->time_max_ms / 60000),
                checking->pools[i].partition);
        }
    }
    return NULL;
}

/* A rule of partitions: a list of those it takes, or does not take. */
static const struct rule {
    const char *key, *option;
    bool allows, is_account;
} rules[] = {{" AllowAccounts=", "account", true, true},
             {" DenyAccounts=", "account", false, true},
             {" AllowQos=", "qos", true, false},
             {" DenyQos=", "qos", false, false}};

const char *slurm_partition_refuses(const char *text, const struct slurm_payer *payer,
                                    struct weir_arena *arena)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(rules); i++) {
        const char *name = rules[i].is_account ? payer->account : payer->qos;
        const char *at = strstr(text, rules[i].key);
        if (name == NULL || at == NULL) {
            continue;
        }
        char *list = weir_arena_strdup(arena, at + strlen(rules[i].key));
        list[strcspn(list, " \n")] = '\0';
        bool is_open = strcasecmp(list, "ALL") == 0 || list[0] == '(' || list[0] == '\0';
        char *padded = weir_arena_printf(arena, ",%s,", list);
        bool has_it = strcasestr(padded, weir_arena_printf(arena, ",%s,", name)) != NULL;
        if (!is_open && has_it != rules[i].allows) {
            return weir_arena_printf(arena,
                                     "%s: Slurm has%s%s for the partition, and so takes nothing of "
                                     "\"%s\" there: name another "
                                     "one, or another partition",
                                     rules[i].option, rules[i].key, list, name);
        }
    }
    return NULL;
}

/* Where limits are not enforced at once, Slurm takes what its partition refuses, and lets it wait for ever. */
static const char *kept_waiting(struct checking *checking, const struct slurm_pool *pool,
                                const char *queue)
{
    const struct slurm_payer payer = slurm_options_payer(checking->options, queue);
    const char *text;
    struct weir_error err;
    weir_status status = slurm_ask(
        checking->options, SLURM_WORDS("scontrol", "-o", "show", "partition", pool->partition),
        checking->arena, &text, &err);
    return status != WEIR_OK ? no_answer(checking, status, &err)
                             : slurm_partition_refuses(text, &payer, checking->arena);
}

/* Would Slurm take a node of the pool for that queue? */
static const char *refused(struct checking *checking, const struct slurm_pool *pool,
                           const char *queue)
{
    const struct weir_node_request request = {.tag = "weir-check",
                                              .pool = pool->offer.name,
                                              .n_nodes = 1,
                                              .cpu_slots = 1,
                                              .queue = queue,
                                              .text = "a check",
                                              .agent = {.server = "http://localhost"}};
    struct weir_error err;
    weir_status status =
        slurm_submit(checking->options, pool, &request, true, checking->arena, &err);
    const char *why =
        status == WEIR_OK ? kept_waiting(checking, pool, queue) : no_answer(checking, status, &err);
    if (why == NULL) {
        return NULL;
    }
    return queue != NULL
               ? weir_arena_printf(checking->arena, "queues.%s: %s", queue, why)
               : weir_arena_printf(checking->arena, "%s (partition %s)", why, pool->partition);
}

static const char *refused_requests(struct checking *checking)
{
    const char *queue, *missing = NULL;
    json_t *value;
    for (size_t i = 0; i < checking->n_pools && missing == NULL; i++) {
        missing = refused(checking, &checking->pools[i], NULL);
        if (missing == NULL) {
            json_object_foreach((json_t *)checking->options->queues, queue, value)
            {
                missing = missing != NULL ? missing : refused(checking, &checking->pools[i], queue);
            }
        }
    }
    return missing;
}

weir_status slurm_check(const struct slurm_options *options, struct weir_arena *arena,
                        const char **out_missing, struct weir_error *err)
{
    static const step_fn steps[] = {wrong_options,    missing_conf,       missing_munge,
                                    missing_commands, missing_controller, missing_pools,
                                    refused_requests};
    struct checking checking = {.options = options, .arena = arena};
    const char *missing = NULL;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(steps) && missing == NULL; i++) {
        missing = steps[i](&checking);
    }
    *out_missing = missing;
    return checking.is_silent ? weir_error_set(err, WEIR_ERR_UNAVAILABLE, "%s", missing) : WEIR_OK;
}
