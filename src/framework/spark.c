#include "framework/program.h"

#include "base/quantity.h"

#include <string.h>

#define CORES_MAX 4096

struct job_spark {
    struct program program;
    int64_t nodes, cores;
    const char *executor_memory;
};

static const struct weir_option options[] = {
    PROGRAM_OPTIONS(job_spark),
    WEIR_OPT_JSON(job_spark, nodes, "nodes", INT, 0, "1", 1, WEIR_FRAMEWORK_TASKS_MAX,
                  "Tasks of the gang: a worker of Spark each; the first has the master and the "
                  "driver too"),
    WEIR_OPT_JSON(job_spark, cores, "cores", INT, 0, "0", 0, CORES_MAX,
                  "Cores of each worker; 0: the task's CPUs"),
    WEIR_OPT_JSON(job_spark, executor_memory, "executor-memory", TEXT, 0, "1g", 0, 0,
                  "Memory of each worker, and of the executor on it, as Spark writes it: 512m, 4g"),
};

/* A standalone cluster in a few lines (spark.apache.org/docs/latest/spark-standalone.html). What is
 * started in the background ends with the task. bash is there: Spark's own scripts need it. The
 * programs are found as Spark's own are: in
 * SPARK_HOME, else in PATH. */
static const char script[] =
    "#!/bin/bash\n"
    "# weir-spark RANK OWN-ADDRESS MASTER-ADDRESS MASTER-PORT CORES MEMORY [spark-submit's words]\n"
    "rank=$1 own=$2 master=$3 port=$4 cores=$5 memory=$6\n"
    "shift 6\n"
    "bin=${SPARK_HOME:+$SPARK_HOME/bin/}\n"
    "if ! command -v \"${bin}spark-class\" >/dev/null; then\n"
    "    echo 'this node has no Spark: spark-class is neither in $SPARK_HOME/bin nor in PATH' >&2\n"
    "    exit 127\n"
    "fi\n"
    "export SPARK_LOCAL_IP=$own SPARK_LOCAL_DIRS=$PWD/spark\n"
    "deploy=org.apache.spark.deploy\n"
    "worker() {\n"
    "    exec \"${bin}spark-class\" $deploy.worker.Worker --host $own --webui-port 0 "
    "--cores $cores \\\n"
    "        --memory $memory --work-dir \"$PWD/spark\" spark://$master:$port\n"
    "}\n"
    "if [ $rank != 0 ]; then\n"
    "    worker\n"
    "fi\n"
    "\"${bin}spark-class\" $deploy.master.Master --host $master --port $port --webui-port 0 "
    ">spark-master.log 2>&1 &\n"
    "until (: <\"/dev/tcp/$master/$port\") 2>/dev/null; do\n"
    "    if ! kill -0 $! 2>/dev/null; then\n"
    "        cat spark-master.log >&2\n"
    "        echo \"Spark's master did not start\" >&2\n"
    "        exit 1\n"
    "    fi\n"
    "    sleep 0.2\n"
    "done\n"
    "(worker) >spark-worker.log 2>&1 &\n"
    "exec \"${bin}spark-submit\" --master spark://$master:$port --conf spark.driver.host=$own \\\n"
    "    --conf spark.executor.memory=$memory \"$@\"\n";

static weir_status read(const json_t *spec, struct weir_arena *arena, const struct job_spark **out,
                        struct weir_error *err)
{
    struct weir_configured read;
    WEIR_TRY(weir_kind_read(&weir_job_spark, spec, "$.spec", arena, &read, err));
    *out = read.options;
    const char *memory = (*out)->executor_memory;
    size_t n_digits = strspn(memory, "0123456789");
    if (n_digits == 0 || n_digits > 7 || strlen(memory) != n_digits + 1 ||
        strchr("kmgt", memory[n_digits]) == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec.executor_memory: expected a number and k, m, g or t, as 4g, "
                              "not \"%.40s\"",
                              memory);
    }
    return program_check(&(*out)->program, spec, err);
}

static weir_status check_spark(const json_t *spec, struct weir_arena *arena, struct weir_error *err)
{
    const struct job_spark *spark;
    return read(spec, arena, &spark, err);
}

static json_t *definition_of(const struct job_plan *plan, const struct job_spark *spark,
                             int64_t rank, int64_t n_cores)
{
    json_t *definition = program_definition(plan, rank, spark->nodes);
    program_meet(definition, spark->nodes, spark->nodes);
    program_meet_file(definition, "weir-spark", script);
    program_meet_launcher(definition, "./weir-spark");
    program_meet_launcher(definition, "%lld", (long long)rank);
    program_meet_launcher(definition, "{{%lld|@address}}", (long long)rank);
    program_meet_launcher(definition, "{{0|@address}}");
    program_meet_launcher(definition, "{{0|@port}}");
    program_meet_launcher(definition, "%lld", (long long)n_cores);
    program_meet_launcher(definition, "%s", spark->executor_memory);
    return definition;
}

static weir_status plan_spark(struct job_plan *plan, struct weir_error *err)
{
    const struct job_spark *spark;
    WEIR_TRY(read(plan->job->spec, plan->arena, &spark, err));
    WEIR_TRY(job_plan_room(plan, spark->nodes, err));
    int64_t own = program_cpu_millis(plan, &spark->program);
    int64_t millis = plan->request.cpu_millis > 0 ? plan->request.cpu_millis : own;
    int64_t n_cores =
        spark->cores > 0 ? spark->cores : WEIR_MAX(weir_cpus_whole(millis), (int64_t)1);
    for (int64_t rank = 0; rank < spark->nodes; rank++) {
        job_plan_add(plan, rank == 0 ? "worker" : "server", rank, own, WEIGHT_WORKER,
                     definition_of(plan, spark, rank, n_cores));
    }
    return WEIR_OK;
}

static const struct weir_kind_words words[] = {
    {WEIR_WORDS("tasks", "replicas", "workers", "processes", "executors"), "nodes",
     "weir job run --nodes N"},
};

static const struct weir_job_ops ops = {
    .names_datasets = true,
    .is_tracked = true,
    .check = check_spark,
    .plan = plan_spark,
};

const struct weir_kind weir_job_spark = {
    .name = "spark",
    .doc =
        "An application of Spark on a standalone cluster of the job's own: master and workers are "
        "started, then spark-submit with the words of argv. The nodes must have Spark.",
    WEIR_KIND_OPTIONS(job_spark, options),
    WEIR_KIND_WORDS(words),
    .ops = &ops,
};
