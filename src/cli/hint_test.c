/* A hundred habits from other tools: each is done, or refused with the command that does it here. That these commands
 * exist and take those words, tests/lint/docs.py reads in all sources. */
#include "cli/cli_fixture.h"

#include "base/test_main.h"

#define IT_IS_DONE NULL /* exit 0 */

static const struct {
    const char *words, *part;
} habits[] = {
    /* Slurm, PBS */
    {"sbatch train.sh", "`weir job submit -f FILE`"},
    {"srun python3 train.py", "`weir job run --follow -- COMMAND`"},
    {"salloc", "`weir notebook start`"},
    {"squeue", "`weir get jobs`"},
    {"sinfo", "`weir get nodes`"},
    {"scancel 17", "`weir job cancel JOB`"},
    {"sacct", "`weir usage`"},
    {"sreport", "`weir usage`"},
    {"sstat 17", "`weir describe job JOB`"},
    {"scontrol show job 17", "`weir describe job JOB`"},
    {"sacctmgr list", "`weir queue set QUEUE`"},
    {"sprio", "`weir explain job JOB`"},
    {"sattach 17", "`weir logs -f JOB`"},
    {"qsub x.sh", "`weir job submit -f FILE`"},
    {"qstat", "`weir get jobs`"},
    {"qdel 17", "`weir job cancel JOB`"},
    {"hold 17", "`weir job hold JOB`"},
    {"requeue 17", "`weir job requeue JOB`"},
    {"job run --partition=gpu -- true", "--node-selector KEY=VALUE"},
    {"job run --gres=gpu:1 -- true", "here it is --gpus N"},
    {"job run --mem=4G -- true", "here it is --memory 4G"},
    {"job run --ntasks=2 -- true", "here it is --tasks N"},
    {"job run --time=1h -- true", "here it is --time-limit 12h"},
    {"job run --dependency=1 -- true", "`weir wait JOB`"},
    /* docker */
    {"run busybox", "`weir job run -- COMMAND`"},
    {"ps", "`weir get jobs`"},
    {"exec 17 ls", "`weir job exec JOB -- COMMAND`"},
    {"attach 17", "`weir logs -f JOB`"},
    {"cp 17:/a .", "`weir artifact get RUN`"},
    {"images", "`weir get models`"},
    {"build .", "`weir job run --image IMAGE -- COMMAND`"},
    {"pull x", "`weir model get NAME`"},
    {"push x", "`weir model push NAME FILE`"},
    {"inspect x", "`weir describe NOUN NAME`"},
    {"stats", "`weir usage`"},
    {"kill 17", "`weir job cancel JOB`"},
    {"stop 17", "`weir job cancel JOB`"},
    {"start", "`weir server`"},
    {"restart 17", "`weir job restart JOB`"},
    {"rm 17", "`weir delete NOUN NAME`"},
    {"rmi x", "`weir delete model NAME`"},
    {"prune", "`weir project retention PROJECT`"},
    {"tag x y", "`weir model alias NAME ALIAS VERSION`"},
    {"volume create x", "`weir dataset create NAME`"},
    {"compose up", "`weir apply -f FILE`"},
    {"logs --since-time x y", "here it is --since TIME"},
    /* kubectl */
    {"get jobs", IT_IS_DONE},
    {"get jobs,projects", IT_IS_DONE},
    {"get jobs -o name", IT_IS_DONE},
    {"get jobs -o yaml", IT_IS_DONE},
    {"get all", "`weir get ions,jobs,services,deployments`"},
    {"get pods", "there is no noun \"pods\""},
    {"pods", "`weir get jobs`"},
    {"create -f x.yaml", "`weir apply -f FILE`"},
    {"replace -f x.yaml", "`weir apply -f FILE`"},
    {"patch ion x", "`weir edit ION`"},
    {"label node n a=b", "`weir node label NODE KEY=VALUE`"},
    {"taint node n a=b", "`weir node taint NODE KEY=VALUE:NoSchedule`"},
    {"drain n", "`weir node drain NODE`"},
    {"cordon n", "`weir node drain NODE`"},
    {"uncordon n", "`weir node resume NODE`"},
    {"expose x", "`weir deploy NAME`"},
    {"autoscale x", "`weir scale DEPLOYMENT 1..4`"},
    {"port-forward x 80", "`weir job forward JOB 8080:80`"},
    {"config use-context x", "`weir context`"},
    {"auth can-i", "`weir whoami`"},
    {"cluster-info", "`weir doctor`"},
    {"rollout undo x", "expected status"},
    {"namespaces", "`weir get projects`"},
    {"get jobs --namespace x", "here it is --project NAME"},
    {"get jobs --all-namespaces", "every project that you may see"},
    {"get jobs -A", "unknown option -A"},
    {"describe job", "which job?"},
    {"delete job", "which job?"},
    {"delete pod x", "there is no noun \"pod\""},
    {"api-resources", "`weir help get`"},
    /* mlflow, wandb, det */
    {"ui", "`weir login`"},
    {"dashboard", "`weir login`"},
    {"open", "`weir login`"},
    {"models", IT_IS_DONE},
    {"model serve x", "`weir deploy NAME`"},
    {"model register x", "`weir model push NAME FILE`"},
    {"model versions x", "`weir get versions MODEL`"},
    {"experiments", IT_IS_DONE},
    {"experiments search", "`weir get experiments`"},
    {"experiment search", "`weir get experiments`"},
    {"experiment create x", "`weir job run -- COMMAND`"},
    {"runs list", IT_IS_DONE},
    {"runs search", "`weir get runs`"},
    {"artifacts download", "`weir artifact list RUN`"},
    {"artifact download x", "`weir artifact get RUN`"},
    {"registry", "`weir get models`"},
    {"serve x", "`weir deploy NAME`"},
    {"infer x", "`weir predict DEPLOYMENT FILE`"},
    {"checkpoint list", "`weir artifact list RUN`"},
    {"trial list", "of which sweep?"},
    {"hpo", "`weir sweep run FILE`"},
    {"master", "`weir server`"},
    {"workspace list", "`weir get projects`"},
    {"metrics x", "`weir get metrics RUN`"},
    {"dataset download x", "`weir dataset get NAME DIR`"},
    {"dataset list", IT_IS_DONE},
    {"sweep create x", "`weir sweep run FILE`"},
    {"notebook create", "`weir notebook start`"},
    {"job logs x", "there is no job \"x\""},
    {"job stop x", "`weir job cancel JOB`"},
    {"job list", IT_IS_DONE},
    {"job describe x", "there is no job \"x\""},
    {"job delete x", "there is no job \"x\""},
    {"user add x", "`weir user create NAME`"},
    {"node cordon n", "`weir node drain NODE`"},
    {"server status", "`weir doctor`"},
    {"upload x", "`weir dataset put NAME DIR`"},
    {"download x", "`weir dataset get NAME DIR`"},
    {"invite x", "`weir project grant PROJECT NAME`"},
    {"watch", "`weir get jobs --watch`"},
    {"status", "`weir doctor`"},
    {"help nosuch", "`weir help` lists them"},
};

START_TEST(a_hundred_habits_each_find_their_command)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(habits); i++) {
        char line[128];
        const char *words[CLI_WORDS_MAX] = {NULL};
        size_t n = 0;
        (void)snprintf(line, sizeof line, "%s", habits[i].words);
        for (char *rest = line, *word; (word = strsep(&rest, " ")) != NULL;) {
            words[n++] = word;
        }
        int status = cli_run(words);
        const char *part = habits[i].part;
        ck_assert_msg((status == 0) == (part == IT_IS_DONE), "weir %s: %d: %s%s", habits[i].words,
                      status, cli.out, cli.err);
        ck_assert_msg(part == IT_IS_DONE || strstr(cli.err, part) != NULL, "weir %s: %s",
                      habits[i].words, cli.err);
    }
    ck_assert_uint_ge(WEIR_ARRAY_LEN(habits), 100);
}

END_TEST

WEIR_TEST_MAIN_WITH("hint", cli_open, cli_close, a_hundred_habits_each_find_their_command)
