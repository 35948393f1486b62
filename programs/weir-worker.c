/** weir-worker: what does the numerical work. The first word chooses the role. */
#include "base/library.h"
#include "batch/batch.h"
#include "batch/measure.h"
#include "bench/bench.h"
#include "gang/mpi.h"
#include "gang/slurm.h"
#include "predict/predict.h"
#include "serve/export.h"
#include "serve/inspect.h"
#include "serve/serve.h"
#include "train/train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct role {
    const char *name;
    int (*run)(int argc, char **argv); /**< argv[0] is the role. */
    const char *doc;
};

static const struct role roles[] = {
    {"train", weir_train_main, "Train a network, or be one rank of a training"},
    {"evaluate", weir_evaluate_main, "Measure a trained network on labelled pictures"},
    {"predict", weir_predict_main, "Be a prediction replica"},
    {"inspect", weir_inspect_main, "Say what a model file takes and gives, and what runs it"},
    {"serve", weir_serve_main, "Answer requests for models"},
    {"batch-predict", weir_batch_main, "Be a task of a batch prediction"},
    {"measure", weir_measure_main, "Measure a model of a dataset version, or compare two"},
    {"export", weir_export_main, "Write a model that Weir trained as ONNX"},
    {"mpi-run", weir_mpi_run_main, "Start a program by the node's mpirun, over a job's tasks"},
    {"mpi-agent", weir_mpi_agent_main, "Start a command on another task of a job, as ssh would"},
    {"mpi-serve", weir_mpi_serve_main, "Run the commands that a job's mpi-agents ask for here"},
    {"sbatch-run", weir_sbatch_run_main, "Run a batch script of Slurm on the nodes of a job"},
    {"srun", weir_srun_main, "Start a program in the tasks of a batch script"},
    {"srun-step", weir_srun_step_main, "Start those of them that are on this node"},
    {"scontrol", weir_scontrol_main, "Print the nodes of a batch script, one a line"},
    {"bench-train", weir_bench_training_main, "Measure training, as tf_cnn_benchmarks does"},
    {"bench-allreduce", weir_bench_allreduce_main, "Measure all-reduces, as nccl-tests does"},
};

static void print_roles(FILE *file)
{
    (void)fprintf(file, "usage: weir-worker ROLE [option …]\n\n");
    for (size_t i = 0; i < WEIR_ARRAY_LEN(roles); i++) {
        (void)fprintf(file, "  %-15s %s\n", roles[i].name, roles[i].doc);
    }
    (void)fprintf(file, "\nweir-worker ROLE --help lists a role's options.\n");
}

/* libgomp's threads that wait shall sleep, and not burn what others compute with. It reads the
 * environment before main is called, so the program begins anew where nobody has said how they wait. */
static void begin_passively(char **argv)
{
    char path[4096];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);
    if (len <= 0 || getenv("OMP_WAIT_POLICY") != NULL || getenv("GOMP_SPINCOUNT") != NULL) {
        return;
    }
    path[len] = '\0';
    if (setenv("OMP_WAIT_POLICY", "passive", 1) == 0 && setenv("GOMP_SPINCOUNT", "1000", 1) == 0) {
        (void)execv(path, argv); /* else they wait as they do */
    }
}

int main(int argc, char **argv)
{
    begin_passively(argv);
    const char *name = argc > 1 ? argv[1] : "";
    weir_onnxruntime_silence(); /* while there is one thread: it changes the environment */
    for (size_t i = 0; i < WEIR_ARRAY_LEN(roles); i++) {
        if (strcmp(roles[i].name, name) == 0) {
            return roles[i].run(argc - 1, argv + 1);
        }
    }
    bool is_help = strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0;
    if (strcmp(name, "--version") == 0) {
        weir_version_print("weir-worker");
        return 0;
    }
    print_roles(is_help ? stdout : stderr);
    return is_help ? 0 : weir_status_exit(WEIR_ERR_INVALID);
}
