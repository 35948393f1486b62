/* What Slurm's commands print, read and written again; what is asked of them. Nothing here runs Slurm: slurm_driver_test.py
 * does. */
#include "cluster/slurm/check.h"
#include "cluster/slurm/job.h"
#include "cluster/slurm/pool.h"
#include "cluster/slurm/refusal.h"
#include "cluster/slurm/submission.h"
#include "cluster/slurm/text.h"

#include "base/macros.h"
#include "base/test_main.h"
#include "base/test_seed.h"

#include <stdio.h>
#include <string.h>

static struct weir_arena arena;
static struct weir_error err;

static void set_up(void)
{
    weir_arena_init(&arena, 0);
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
}

START_TEST(spans_times_and_versions_are_read)
{
    static const struct {
        const char *text;
        int64_t s;
    } spans[] = {{"0:07", 7},
                 {"10:00", 600},
                 {"1:02:03", 3723},
                 {"1-02:03:04", 93784},
                 {"2-00", 172800},
                 {"2-03:30", 185400},
                 {"30", 30},
                 {"infinite", 0},
                 {"UNLIMITED", 0},
                 {"NOT_SET", 0},
                 {"Partition_Limit", 0},
                 {"", 0},
                 {"-", 0},
                 {"99999999999999-00:00:00", 0},
                 {"1:99999999999999999999", 0}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(spans); i++) {
        ck_assert_msg(slurm_span_s(spans[i].text) == spans[i].s, "%s: %lld", spans[i].text,
                      (long long)slurm_span_s(spans[i].text));
    }
    ck_assert_int_eq(slurm_time_ms("1796003889"), 1796003889000);
    ck_assert_int_eq(slurm_time_ms("N/A"), 0);
    ck_assert_int_eq(slurm_time_ms("2026-11-30T01:40:46"), 0);
    ck_assert_int_eq(slurm_version_read("slurm-wlm 22.05.8"), 2205);
    ck_assert_int_eq(slurm_version_read("slurm 23.11.4-1"), 2311);
    ck_assert_int_eq(slurm_version_read("slurm 20.02.0"), 2002);
    ck_assert_int_eq(slurm_version_read("GNU coreutils 9.1"), 0);
    ck_assert_int_eq(slurm_version_read(""), 0);
}

END_TEST

START_TEST(generic_resources_are_read)
{
    static const struct {
        const char *text, *model;
        int64_t n;
        bool has_type;
        int64_t n_shards, n_others;
    } cases[] = {{"gpu:h200:4,shard:h200:40", "h200", 4, true, 40, 0},
                 {"gpu:h200:4(S:0-1),shard:h200:40(4/4,0/4)", "h200", 4, true, 40, 0},
                 {"gpu:8(S:0,1)", "gpu", 8, false, 0, 0},
                 {"gpu:a100:2,gpu:v100:6", "v100", 6, true, 0, 2},
                 {"gpu:v100:6,shard:8,gpu:a100:2", "v100", 6, true, 8, 2},
                 {"shard:40,gpu:l4:1", "l4", 1, true, 40, 0},
                 {"(null)", NULL, 0, false, 0, 0},
                 {"gpus:4,shards:4", NULL, 0, false, 0, 0},
                 {"gpu", NULL, 0, false, 0, 0},
                 {"", NULL, 0, false, 0, 0}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        struct slurm_gres gres = slurm_gres_read(cases[i].text, &arena);
        ck_assert_msg(gres.n_gpus == cases[i].n && gres.has_type == cases[i].has_type, "%s",
                      cases[i].text);
        ck_assert_msg(gres.n_shards == cases[i].n_shards && gres.n_others == cases[i].n_others,
                      "%s", cases[i].text);
        ck_assert_msg(cases[i].model == NULL ? gres.model == NULL
                                             : strcmp(gres.model, cases[i].model) == 0,
                      "%s", cases[i].text);
    }
}

END_TEST

/* ---- states ---------------------------------------------------------------------------------- */

static struct slurm_job job_in(const char *state)
{
    return (struct slurm_job){.id = 7,
                              .state = state,
                              .nodes = "",
                              .reason = "None",
                              .comment = "(null)",
                              .name = "t",
                              .exit_status = -1};
}

#define P WEIR_ALLOCATION_PENDING
#define R WEIR_ALLOCATION_RUNNING
#define E WEIR_ALLOCATION_ENDED

START_TEST(each_state_of_slurms_is_a_phase)
{
    /* The states of squeue's manual, all of them. */
    static const struct {
        const char *state;
        enum weir_allocation_phase phase;
        enum weir_allocation_ending ending;
    } states[] = {{"BOOT_FAIL", E, WEIR_ENDING_FAILED},
                  {"CANCELLED", E, WEIR_ENDING_CANCELLED},
                  {"COMPLETED", E, WEIR_ENDING_RELEASED},
                  {"CONFIGURING", R, 0},
                  {"COMPLETING", R, 0},
                  {"DEADLINE", E, WEIR_ENDING_REFUSED},
                  {"FAILED", E, WEIR_ENDING_FAILED},
                  {"NODE_FAIL", E, WEIR_ENDING_FAILED},
                  {"OUT_OF_MEMORY", E, WEIR_ENDING_FAILED},
                  {"PENDING", P, 0},
                  {"PREEMPTED", E, WEIR_ENDING_PREEMPTED},
                  {"RUNNING", R, 0},
                  {"RESV_DEL_HOLD", P, 0},
                  {"REQUEUE_FED", P, 0},
                  {"REQUEUE_HOLD", P, 0},
                  {"REQUEUED", P, 0},
                  {"RESIZING", R, 0},
                  {"REVOKED", E, WEIR_ENDING_REFUSED},
                  {"SIGNALING", R, 0},
                  {"SPECIAL_EXIT", P, 0},
                  {"STAGE_OUT", R, 0},
                  {"STOPPED", R, 0},
                  {"SUSPENDED", R, 0},
                  {"TIMEOUT", E, WEIR_ENDING_TIME}};

    ck_assert_uint_eq(WEIR_ARRAY_LEN(states), 24);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(states); i++) {
        struct weir_allocation_report report;
        struct slurm_job job = job_in(states[i].state);
        slurm_report(&job, 1000, &arena, &report);
        ck_assert_msg(report.phase == states[i].phase && report.ending == states[i].ending, "%s",
                      states[i].state);
        ck_assert_msg(report.phase != E || report.why != NULL, "%s", states[i].state);
        ck_assert_str_eq(report.said, states[i].state);
        ck_assert_str_eq(report.their_id, "7");
        ck_assert_int_eq(slurm_job_is_alive(&job), report.phase != E);
        job.nodes = "n[08-10],x"; /* one that is not known would run because of them */
        slurm_report(&job, 1000, &arena, &report);
        ck_assert_msg(report.phase == states[i].phase, "%s", states[i].state);
        ck_assert_uint_eq(report.n_nodes, report.phase == R ? 4 : 0);
        ck_assert(report.n_nodes == 0 || strcmp(report.nodes[2], "n10") == 0);
    }
    struct weir_allocation_report report;
    struct slurm_job newer = job_in("FROZEN");
    slurm_report(&newer, 1000, &arena, &report);
    ck_assert_int_eq(report.phase, P);
    newer.nodes = "n1";
    slurm_report(&newer, 1000, &arena, &report);
    ck_assert_int_eq(report.phase, R);
}

END_TEST

START_TEST(how_one_ended_follows_from_more_than_its_state)
{
    static const struct {
        const char *state, *comment;
        bool was_preempted;
        int64_t limit_s, used_s;
        enum weir_allocation_ending ending;
    } cases[] = {
        {"CANCELLED", SLURM_RELEASED, false, 0, 9, WEIR_ENDING_RELEASED},
        {"CANCELLED", "Weir: a job", false, 0, 9, WEIR_ENDING_CANCELLED},
        {"CANCELLED by 1000", "", false, 0, 9, WEIR_ENDING_RELEASED},
        {"CANCELLED by 10001", "", false, 0, 9, WEIR_ENDING_CANCELLED},
        {"CANCELLED by 0", "", false, 0, 9, WEIR_ENDING_CANCELLED},
        {"COMPLETED", "", true, 600, 9, WEIR_ENDING_PREEMPTED},
        {"FAILED", "", true, 600, 9, WEIR_ENDING_PREEMPTED},
        {"FAILED", "", false, 600, 9, WEIR_ENDING_FAILED},
        {"TIMEOUT", "", true, 600, 9, WEIR_ENDING_PREEMPTED},
        {"TIMEOUT", "", false, 600, 9, WEIR_ENDING_PREEMPTED}, /* the grace of one that was */
        {"TIMEOUT", "", false, 600, 601, WEIR_ENDING_TIME},
        {"COMPLETED", "", false, 600, 540, WEIR_ENDING_TIME}, /* agents end when they are told */
        {"FAILED", "", false, 600, 480, WEIR_ENDING_TIME},
        {"COMPLETED", "", false, 600, 300, WEIR_ENDING_RELEASED},
        {"COMPLETED", "", false, 60, 10, WEIR_ENDING_RELEASED},
        {"COMPLETED", "", false, 240, 230, WEIR_ENDING_RELEASED}, /* no agent is told so early */
        {"COMPLETED", "", false, 0, 9, WEIR_ENDING_RELEASED}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        struct weir_allocation_report report;
        struct slurm_job job = job_in(cases[i].state);
        job.comment = cases[i].comment;
        job.was_preempted = cases[i].was_preempted;
        job.limit_s = cases[i].limit_s;
        job.used_s = cases[i].used_s;
        slurm_report(&job, 1000, &arena, &report);
        ck_assert_msg(report.ending == cases[i].ending, "%zu: %s: %d", i, cases[i].state,
                      report.ending);
        ck_assert_ptr_nonnull(report.why);
    }
}

END_TEST

START_TEST(reasons_for_waiting_are_sentences)
{
    static const char *const reasons[][2] = {
        {"Resources", "it waits for nodes that others have"},
        {"QOSGrpGRES", "its QOS has reached what all of it together may use"},
        {"QOSMaxJobsPerUserLimit", "its QOS runs as many jobs as it may"},
        {"QOSMaxGRESPerUser", "it asks for more than its QOS allows for one"},
        {"AssocGrpCpuLimit", "its account has reached what all of it together may use"},
        {"ReqNodeNotAvail, UnavailableNodes:n1",
         "nodes that it needs are down, drained or reserved"},
        {"SomethingNew", "Slurm says \"SomethingNew\""}};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(reasons); i++) {
        struct weir_allocation_report report;
        struct slurm_job job = job_in("PENDING");
        job.reason = reasons[i][0];
        slurm_report(&job, 1000, &arena, &report);
        ck_assert_str_eq(report.why, reasons[i][1]);
        ck_assert_ptr_nonnull(strstr(report.said, reasons[i][0]));
    }
}

END_TEST

/* ---- lines of squeue and sacct --------------------------------------------------------------- */

static const char *one_of(struct weir_rng *rng, const char *const *words, size_t n)
{
    return words[weir_rng_below(rng, n)];
}

/* The end of a span as Slurm prints it. */
static const char *span_text(int64_t s)
{
    return s >= 86400 ? weir_arena_printf(&arena, "%lld-%02lld:%02lld:%02lld", (long long)s / 86400,
                                          (long long)s / 3600 % 24, (long long)s / 60 % 60,
                                          (long long)s % 60)
           : s >= 3600
               ? weir_arena_printf(&arena, "%lld:%02lld:%02lld", (long long)s / 3600,
                                   (long long)s / 60 % 60, (long long)s % 60)
               : weir_arena_printf(&arena, "%lld:%02lld", (long long)s / 60, (long long)s % 60);
}

START_TEST(jobs_are_read_as_they_were_written)
{
    static const char *const states[] = {"PENDING", "RUNNING", "COMPLETED"};
    static const char *const nodes[] = {"", "n1", "n[1-3],x7"};
    static const char *const reasons[] = {"None", "odd | reason||", "Resources"};
    static const char *const noise[] = {"", "slurm: a warning\n", "1|2|3\n", "||||||||||\n", "\n"};
    struct weir_rng rng;
    uint64_t seed = test_seed(&rng);
    for (int round = 0; round < WEIR_TEST_TIMES(300, 50); round++) {
        struct slurm_job jobs[8];
        size_t n = weir_rng_below(&rng, WEIR_ARRAY_LEN(jobs));
        char *queue = "", *history = "";
        for (size_t i = 0; i < n; i++) {
            struct slurm_job *job = &jobs[i];
            *job = (struct slurm_job){
                .id = (int64_t)weir_rng_below(&rng, 1 << 26) + 1,
                .state = one_of(&rng, states, 3),
                .limit_s = (int64_t)weir_rng_below(&rng, 200 * 86400),
                .used_s = (int64_t)weir_rng_below(&rng, 200 * 86400),
                .starts_ms = (int64_t)(weir_rng_below(&rng, 1u << 31) * 1000),
                .ends_ms = (int64_t)(weir_rng_below(&rng, 1u << 31) * 1000),
                .nodes = one_of(&rng, nodes, 3),
                .reason = one_of(&rng, reasons, 3),
                .name = weir_arena_printf(&arena, "tag-%d", (int)weir_rng_below(&rng, 99))};
            queue = weir_arena_printf(
                &arena, "%s%s%lld|%s|%s|%s|%lld|%lld|%s|%s|c|%s\n", queue, one_of(&rng, noise, 5),
                (long long)job->id, job->state, span_text(job->limit_s), span_text(job->used_s),
                (long long)job->starts_ms / 1000, (long long)job->ends_ms / 1000, job->nodes,
                job->name, job->reason);
            history = weir_arena_printf(
                &arena, "%s%s%lld|%s|%s|%s|%lld|%lld|%s|3:0|%s\n", history, one_of(&rng, noise, 5),
                (long long)job->id, job->state, span_text(job->limit_s), span_text(job->used_s),
                (long long)job->starts_ms / 1000, (long long)job->ends_ms / 1000,
                job->nodes[0] != '\0' ? job->nodes : "None assigned", job->name);
        }
        for (int is_past = 0; is_past < 2; is_past++) {
            struct slurm_jobs got = is_past ? slurm_jobs_read_history(history, &arena)
                                            : slurm_jobs_read_queue(queue, &arena);
            ck_assert_msg(got.n == n, "seed %llu: %zu of %zu", (unsigned long long)seed, got.n, n);
            for (size_t i = 0; i < n; i++) {
                const struct slurm_job *a = &jobs[i], *b = &got.list[i];
                ck_assert_msg(a->id == b->id && strcmp(a->state, b->state) == 0 &&
                                  a->limit_s == b->limit_s && a->used_s == b->used_s &&
                                  a->starts_ms == b->starts_ms && a->ends_ms == b->ends_ms &&
                                  strcmp(a->nodes, b->nodes) == 0 &&
                                  strcmp(a->name, b->name) == 0 &&
                                  strcmp(is_past ? "" : a->reason, b->reason) == 0 &&
                                  b->exit_status == (is_past ? 3 : -1),
                              "seed %llu: %s%s", (unsigned long long)seed, queue, history);
            }
        }
        weir_arena_fini(&arena);
    }
}

END_TEST

START_TEST(a_year_is_no_end)
{
    struct slurm_jobs jobs = slurm_jobs_read_queue(
        "2|RUNNING|365-00:00:00|0:01|1796003889|1827539889|n1|t|(null)|None\n"
        "3|RUNNING|365-00:00:00|0:01|1796003889|1796003999|n1|t|(null)|None\n",
        &arena);
    ck_assert_uint_eq(jobs.n, 2);
    ck_assert_int_eq(jobs.list[0].ends_ms, 0);
    ck_assert_int_eq(jobs.list[1].ends_ms, 1796003999000); /* preempted: it ends soon */
}

END_TEST

/* ---- pools ----------------------------------------------------------------------------------- */

static const char sinfo[] =
    "cpu|cpu*|up|infinite|1-infinite|64|257800|(null)|down*|2|0/0/128/128|c[11-12]\n"
    "cpu|cpu*|up|infinite|1-infinite|64|257000|(null)|idle|10|40/600/0/640|c[01-10]\n"
    "gpu|gpu|up|2-00:00:00|1-2|16|65536|gpu:h200:4(S:0),shard:h200:40|mixed|2|9/23/0/32|g[1-2]\n"
    "gpu|gpu|up|2-00:00:00|1-2|16|65536|gpu:h200:4(S:0),shard:h200:40|drained|1|3/0/13/16|g3\n"
    "gpu|gpu|up|2-00:00:00|1-2|32|131072|gpu:l4:1|draining|1|0/0/32/32|l1\n"
    "old|old|down|30:00|1-infinite|4|8000|(null)|idle|1|0/4/0/4|o1\n"
    "empty|empty|up|infinite|1-infinite|0|0|(null)|n/a|0|0/0/0/0|\n";

START_TEST(pools_are_partitions_and_shapes)
{
    struct slurm_pool *pools;
    size_t n;
    slurm_pools_read(sinfo, NULL, &arena, &pools, &n);
    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(pools[0].offer.name, "cpu");
    ck_assert_int_eq(pools[0].offer.max_nodes, 12);
    ck_assert_int_eq(pools[0].n_usable, 10);
    ck_assert_int_eq(pools[0].offer.memory_bytes, (int64_t)257000 << 20);
    ck_assert_ptr_null(pools[0].offer.accelerator);
    ck_assert_ptr_null(pools[0].others);
    ck_assert_ptr_null(pools[0].offer.why);
    slurm_pools_read(sinfo, "old,gpu,none", &arena, &pools, &n);
    ck_assert_uint_eq(n, 3);
    ck_assert_str_eq(pools[0].offer.name, "gpu-16c-64g-4xh200");
    ck_assert_int_eq(pools[0].offer.accelerator_parts, 10);
    ck_assert_int_eq(pools[0].offer.cpus_busy, 12);
    ck_assert_int_eq(pools[1].offer.accelerator_parts, 0);
    ck_assert_str_eq(pools[0].others, "l1");
    ck_assert_str_eq(pools[0].nodes, "g[1-2],g3");
    ck_assert_int_eq(pools[0].offer.max_nodes, 2); /* of one job */
    ck_assert_int_eq(pools[0].offer.time_max_ms, (int64_t)2 * 86400000);
    ck_assert_ptr_null(pools[0].offer.why);
    ck_assert_str_eq(pools[1].offer.name, "gpu-32c-128g-1xl4");
    ck_assert_str_eq(pools[1].others, "g[1-2],g3");
    ck_assert_str_eq(pools[1].offer.why,
                     "all nodes of the pool gpu-32c-128g-1xl4 are down or drained");
    ck_assert_str_eq(pools[2].offer.why, "the partition old is down");
}

END_TEST

/* ---- what is asked --------------------------------------------------------------------------- */

static bool has_word(const struct slurm_submission *submission, const char *word)
{
    for (size_t i = 0; submission->words[i] != NULL; i++) {
        if (strcmp(submission->words[i], word) == 0) {
            return true;
        }
    }
    return false;
}

START_TEST(a_request_says_what_is_wanted)
{
    struct slurm_pool *pools;
    struct slurm_submission made;
    size_t n;
    json_t *queues = json_pack("{s:{s:s}}", "vision", "qos", "guar");
    json_t *lines = json_pack("[s,s]", "--licenses=m:1", "#SBATCH  --mail-user=a@b");
    const struct slurm_options options = {.partition = "gpu",
                                          .account = "vis",
                                          .queues = queues,
                                          .lines = lines,
                                          .time = "90s",
                                          .program = "/opt/weir's/weir"};
    struct weir_node_request request = {.tag = "t-1",
                                        .n_nodes = 2,
                                        .cpu_slots = 3,
                                        .memory_bytes = 1000000,
                                        .n_accelerators = 2,
                                        .queue = "vision",
                                        .text = "a\njob | of ann",
                                        .agent = {.server = "http://w:1", .secret = "hidden"}};
    slurm_pools_read(sinfo, "gpu", &arena, &pools, &n);
    ck_assert_int_eq(
        slurm_submission_make(&options, &pools[0], &request, false, &arena, &made, &err), WEIR_OK);
    static const char *const words[] = {"--job-name=t-1",
                                        "--no-requeue",
                                        "--dependency=singleton",
                                        "--partition=gpu",
                                        "--exclude=l1",
                                        "--account=vis",
                                        "--qos=guar",
                                        "--nodes=2",
                                        "--cpus-per-task=3",
                                        "--mem=1M",
                                        "--gres=gpu:h200:2",
                                        "--time=2",
                                        "--open-mode=truncate",
                                        "--comment=Weir: a job   of ann"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(words); i++) {
        ck_assert_msg(has_word(&made, words[i]), "%s", words[i]);
    }
    ck_assert(!has_word(&made, "--exclusive") && !has_word(&made, "--signal=TERM@60"));
    for (size_t i = 0; made.words[i] != NULL; i++) {
        ck_assert_ptr_null(strstr(made.words[i], "hidden"));
    }
    ck_assert_ptr_null(strstr(made.script, "hidden"));
    ck_assert_str_eq(made.env[0], "WEIR_JOIN_SECRET=hidden");
    ck_assert_ptr_nonnull(
        strstr(made.script, "\n#SBATCH --licenses=m:1\n#SBATCH --mail-user=a@b\n"));
    ck_assert_ptr_nonnull(strstr(made.script, "'/opt/weir'\\''s/weir' agent --allocation 't-1'"));
    request = (struct weir_node_request){.tag = "t-2", .n_nodes = 1, .time_ms = 3600000};
    ck_assert_int_eq(
        slurm_submission_make(&options, &pools[0], &request, true, &arena, &made, &err), WEIR_OK);
    static const char *const whole[] = {"--exclusive",        "--mem=0",   "--gres=gpu:h200:4",
                                        "--cpus-per-task=16", "--time=60", "--signal=TERM@60",
                                        "--test-only"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(whole); i++) {
        ck_assert_msg(has_word(&made, whole[i]), "%s", whole[i]);
    }
    request = (struct weir_node_request){
        .tag = "t-3", .n_nodes = 1, .cpu_slots = 1, .n_accelerators = 1, .accelerator_milli = 300};
    ck_assert_int_eq(
        slurm_submission_make(&options, &pools[0], &request, false, &arena, &made, &err), WEIR_OK);
    ck_assert(has_word(&made, "--gres=shard:3"));
    ck_assert_ptr_nonnull(strstr(made.script, "export WEIR_ACCELERATOR_MILLI=300\n"));
    ck_assert_int_eq(
        slurm_submission_make(&options, &pools[1], &request, false, &arena, &made, &err),
        WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "no shards"));
    json_decref(queues);
    json_decref(lines);
}

END_TEST

START_TEST(a_shell_reads_back_each_word)
{
    struct weir_rng rng;
    uint64_t seed = test_seed(&rng);
    const char *words = "";
    char expected[4096] = "";
    for (int i = 0; i < 60; i++) {
        char word[33] = "";
        size_t len = weir_rng_below(&rng, 32);
        for (size_t k = 0; k < len; k++) {
            word[k] = "'\"\\$`; \n\t*?~!#&|<>(){}[]ab-"[weir_rng_below(&rng, 28)];
        }
        words = weir_arena_printf(&arena, "%s %s", words, slurm_shell_word(word, &arena));
        strncat(expected, word, sizeof expected - strlen(expected) - 1);
        strncat(expected, ".", sizeof expected - strlen(expected) - 1);
    }
    char got[4096] = "";
    FILE *pipe = popen(weir_arena_printf(&arena, "printf '%%s.'%s", words), "r");
    ck_assert_ptr_nonnull(pipe);
    got[fread(got, 1, sizeof got - 1, pipe)] = '\0';
    ck_assert_int_eq(pclose(pipe), 0);
    ck_assert_msg(strcmp(got, expected) == 0, "seed %llu", (unsigned long long)seed);
}

END_TEST

START_TEST(options_that_make_no_sense_are_named)
{
    static const struct {
        const char *json, *begins;
    } cases[] = {{"{}", NULL},
                 {"{\"partition\": \"a,b\", \"time\": \"8h\", \"server\": \"https://w\", "
                  "\"ca_file\": \"/c\"}",
                  NULL},
                 {"{\"partition\": \",a\"}", "partition: a name"},
                 {"{\"partition\": \"a,,b\"}", "partition: a name"},
                 {"{\"account\": \"-x\"}", "account: "},
                 {"{\"constraint\": \"a\\nb\"}", "constraint: "},
                 {"{\"bin\": \"usr/bin\"}", "bin: "},
                 {"{\"dir\": \"tmp\"}", "dir: "},
                 {"{\"time\": \"30s\"}", "time: "},
                 {"{\"time\": \"infinite\"}", "time: "},
                 {"{\"server\": \"ftp://w\"}", "server: "},
                 {"{\"server\": \"http://w\", \"ca_file\": \"/c\"}", "ca_file: "},
                 {"{\"queues\": []}", "queues: "},
                 {"{\"queues\": {\"q\": {}}}", "queues.q: "},
                 {"{\"queues\": {\"q\": {\"acount\": \"x\"}}}", "queues.q.acount: "},
                 {"{\"queues\": {\"q\": {\"qos\": 7}}}", "queues.q.qos: "},
                 {"{\"lines\": [\"rm -rf /\"]}", "lines: in place of"},
                 {"{\"lines\": [\"--a=b\\n--array=1\"]}", "lines: in place of"},
                 {"{\"lines\": [\"--array=1-9\"]}", "lines: --array"},
                 {"{\"lines\": [\"--arra=1-9\"]}", "lines: --arra is not taken"},
                 {"{\"lines\": [\"--uid=0\"]}", "lines: --uid"},
                 {"{\"lines\": [\"--\"]}", "lines: "}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        struct weir_configured configured;
        json_t *object = json_loads(cases[i].json, 0, NULL);
        ck_assert_msg(weir_kind_read(&weir_driver_slurm, object, "$", &arena, &configured, &err) ==
                          WEIR_OK,
                      "%s: %s", cases[i].json, err.message);
        const char *wrong = slurm_options_wrong(configured.options, &arena);
        ck_assert_msg(cases[i].begins == NULL
                          ? wrong == NULL
                          : wrong != NULL &&
                                strncmp(wrong, cases[i].begins, strlen(cases[i].begins)) == 0,
                      "%s: %s", cases[i].json, wrong != NULL ? wrong : "nothing");
        json_decref(object);
    }
}

END_TEST

/* ---- complaints ------------------------------------------------------------------------------ */

START_TEST(what_slurm_complains_of_says_the_option_and_the_cure)
{
    static const struct {
        const char *said;
        weir_status status;
        const char *sentence;
    } cases[] = {{"sbatch: error: invalid partition specified: nope\nallocation failure: Invalid "
                  "partition name specified\n",
                  WEIR_ERR_INVALID,
                  "partition: Slurm's sbatch says \"Invalid partition name specified\": `sinfo -o "
                  "%R` lists them"},
                 {"slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n",
                  WEIR_ERR_UNAVAILABLE,
                  "Slurm's sbatch says \"Unable to contact slurm controller (connect failure)\": "
                  "slurmctld does not run, or "
                  "cannot be reached from this machine"},
                 {"sbatch: error: something new\n", WEIR_ERR_INVALID,
                  "Slurm's sbatch says \"something new\""},
                 {"", WEIR_ERR_INVALID, "Slurm's sbatch says \"nothing\""}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        ck_assert_int_eq(slurm_refusal("sbatch", cases[i].said, &err), cases[i].status);
        ck_assert_str_eq(err.message, cases[i].sentence);
    }
    ck_assert(slurm_has_no_accounting("Slurm accounting storage is disabled\n"));
    ck_assert(!slurm_has_no_accounting("sacct: error: Connection refused\n"));
}

END_TEST

START_TEST(what_a_check_reads)
{
    const char *account, *qos;
    ck_assert_str_eq(slurm_munge_socket("ClusterName=x\nAuthInfo=socket=/a/b,ttl=60 # c\n", &arena),
                     "/a/b");
    ck_assert_str_eq(slurm_munge_socket("#AuthInfo=socket=/a/b\n", &arena),
                     "/run/munge/munge.socket.2");
    ck_assert_int_eq(slurm_config_time_ms("Configuration data as of 1796003889\nX = 1\n"),
                     1796003889000);
    ck_assert_int_eq(slurm_config_time_ms("X = 1\n"), 0);
    slurm_association_read("vis|other|\nvis|vis|over\n", NULL, &arena, &account, &qos);
    ck_assert_str_eq(account, "vis");
    ck_assert_str_eq(qos, "over");
    slurm_association_read("vis|other|low\nvis|vis|over\n", "other", &arena, &account, &qos);
    ck_assert_str_eq(qos, "low");
    slurm_association_read("", NULL, &arena, &account, &qos);
    ck_assert_str_eq(account, "");
    static const char partition[] =
        "PartitionName=p AllowGroups=ALL AllowAccounts=vis,nlp DenyQos=low,over Default=NO\n";
    static const struct slurm_payer taken[] = {{NULL, NULL}, {"vis", "guar"}, {"nlp", "lo"}};
    static const struct slurm_payer not_taken[] = {
        {"vi", NULL}, {"other", "guar"}, {"vis", "over"}};
    for (size_t i = 0; i < 3; i++) {
        ck_assert_ptr_null(slurm_partition_refuses(partition, &taken[i], &arena));
        ck_assert_ptr_nonnull(slurm_partition_refuses(partition, &not_taken[i], &arena));
        ck_assert_ptr_null(
            slurm_partition_refuses("PartitionName=p AllowAccounts=ALL", &not_taken[i], &arena));
    }
}

END_TEST

START_TEST(what_is_no_list_of_jobs_is_not_taken_for_an_empty_one)
{
    ck_assert(slurm_is_queue("JOBID|STATE|TIME_LIMIT\n"));
    ck_assert(slurm_is_queue("Welcome!\nJOBID|STATE|TIME_LIMIT\n1|RUNNING|1\n"));
    ck_assert(!slurm_is_queue(""));
    ck_assert(!slurm_is_queue("my JOBID|\nx|y\n"));
}

END_TEST

int main(void)
{
    const TTest *const tests[] = {spans_times_and_versions_are_read,
                                  what_is_no_list_of_jobs_is_not_taken_for_an_empty_one,
                                  generic_resources_are_read,
                                  each_state_of_slurms_is_a_phase,
                                  how_one_ended_follows_from_more_than_its_state,
                                  reasons_for_waiting_are_sentences,
                                  jobs_are_read_as_they_were_written,
                                  a_year_is_no_end,
                                  pools_are_partitions_and_shapes,
                                  a_request_says_what_is_wanted,
                                  a_shell_reads_back_each_word,
                                  options_that_make_no_sense_are_named,
                                  what_slurm_complains_of_says_the_option_and_the_cure,
                                  what_a_check_reads};
    Suite *suite = suite_create("slurm");
    TCase *tcase = tcase_create("slurm");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(tests); i++) {
        tcase_add_test(tcase, tests[i]);
    }
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
