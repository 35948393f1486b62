#include "cli/core/hint.h"

#include "base/names.h"
#include "cli/core/noun.h"

#include <string.h>

bool cli_is_of_group(const char *command, const char *group)
{
    size_t len = strlen(group);
    return strncmp(command, group, len) == 0 && command[len] == ' ';
}

/* Is there a command "first second"? With second NULL: any whose first word is that. */
static bool has_command(const char *first, const char *second)
{
    size_t len = strlen(first);
    for (size_t i = 0; i < cli_n_commands; i++) {
        const char *name = cli_commands[i]->name;
        if (cli_is_of_group(name, first) &&
            (second == NULL || strcmp(name + len + 1, second) == 0)) {
            return true;
        }
    }
    return false;
}

bool cli_is_group(const char *group)
{
    return has_command(group, NULL);
}

static const struct cli_command *find_command(const char *word)
{
    for (size_t i = 0; i < cli_n_commands; i++) {
        if (strcmp(cli_commands[i]->name, word) == 0) {
            return cli_commands[i];
        }
    }
    return NULL;
}

/* Does a command of several verbs ("user create NAME | delete NAME") have this one? */
static bool has_verb(const struct cli_command *command, const char *verb)
{
    size_t len = strlen(verb);
    const char *at = command != NULL ? command->usage : NULL;
    while (at != NULL && (at = strstr(at, verb)) != NULL) {
        bool begins = at == command->usage || at[-1] == '|' || at[-1] == ' ';
        if (begins && (at[len] == ' ' || at[len] == '|' || at[len] == '\0')) {
            return true;
        }
        at += len;
    }
    return false;
}

/* What a verb behind a noun is in front of it: "job delete train" is "delete job train". `logs` takes no noun. */
static const struct {
    const char *words, *verb;
    bool drops_noun;
} verbs[] = {
    {"list ls get", "get", false},
    {"show describe info inspect status", "describe", false},
    {"delete remove rm", "delete", false},
    {"wait", "wait", false},
    {"edit", "edit", false},
    {"explain why", "explain", false},
    {"logs log", "logs", true},
};

void cli_reword(int argc, char **argv, struct weir_arena *arena, int *out_argc, char ***out_argv)
{
    *out_argc = argc;
    *out_argv = argv;
    const struct cli_noun *noun = argc > 0 ? cli_noun_find(argv[0]) : NULL;
    if (noun == NULL || (argc > 1 && has_command(argv[0], argv[1]))) {
        return;
    }
    const char *verb = NULL;
    bool drops_noun = false;
    const struct cli_command *own = find_command(argv[0]);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(verbs) && argc > 1; i++) {
        if (weir_words_have(verbs[i].words, argv[1], strlen(argv[1])) && !has_verb(own, argv[1])) {
            verb = verbs[i].verb;
            drops_noun = verbs[i].drops_noun;
        }
    }
    bool is_listed = strcmp(argv[0], noun->plural) == 0 && own == NULL &&
                     (argc == 1 || argv[1][0] == '-' || strchr(argv[1], '=') != NULL);
    if (verb == NULL && !is_listed) {
        return;
    }
    int n_skipped = verb != NULL ? 2 : 1, n = 0;
    char **words = WEIR_ARENA_ARRAY(arena, (size_t)argc + 3, char *);
    words[n++] = weir_arena_strdup(arena, verb != NULL ? verb : "get");
    if (!drops_noun) {
        words[n++] = argv[0];
    }
    memcpy(words + n, argv + n_skipped, (size_t)(argc - n_skipped) * sizeof *words);
    *out_argc = argc - n_skipped + n;
    *out_argv = words;
}

/* What others call it: Slurm, docker, kubectl, mlflow, det. Each command is in backquotes; a test reads them all. */
static const struct {
    const char *words, *say;
} synonyms[] = {
    /* Slurm and its kin */
    {"sbatch", "`weir job run SCRIPT`"},
    {"srun", "`weir job run --follow -- COMMAND`"}, /* within a script of sbatch there is srun */
    {"salloc", "`weir notebook start`, or `weir job run --follow -- COMMAND`"},
    {"squeue qstat", "`weir get jobs`"},
    {"sinfo", "`weir get nodes`"},
    {"scancel qdel", "`weir job cancel JOB`"},
    {"sacct", "`weir usage`, or `weir get jobs`"},
    {"sreport", "`weir usage`"},
    {"sstat", "`weir describe job JOB`"},
    {"scontrol", "`weir describe job JOB`, `weir job hold JOB`, `weir node drain NODE`"},
    {"sacctmgr", "`weir queue set QUEUE`"},
    {"sprio", "`weir explain job JOB`"},
    {"sattach", "`weir logs -f JOB`"},
    {"qsub", "`weir job submit -f FILE`"},
    {"hold", "`weir job hold JOB`"},
    {"release", "`weir job resume JOB`"},
    {"requeue", "`weir job requeue JOB`"},
    /* docker, podman */
    {"run", "`weir job run -- COMMAND`"},
    {"ps", "`weir get jobs`"},
    {"exec", "`weir job exec JOB -- COMMAND`"},
    {"attach", "`weir logs -f JOB`, or `weir job shell JOB`"},
    {"shell", "`weir job shell JOB`, or `weir notebook start`"},
    {"ssh", "`weir job shell JOB`, or `weir job forward JOB 2222:22`"},
    {"cp", "`weir job cp JOB:PATH FILE`, or `weir artifact get RUN`"},
    {"images", "`weir get models`"},
    {"build", "`weir job run --image IMAGE -- COMMAND`"},
    {"pull", "`weir model get NAME`"},
    {"push", "`weir model push NAME FILE`"},
    {"inspect", "`weir describe NOUN NAME`"},
    {"stats", "`weir top jobs`, or `weir usage`"},
    {"kill", "`weir job cancel JOB`"},
    {"stop", "`weir job cancel JOB`, or `weir server stop`"},
    {"start", "`weir server`"},
    {"restart", "`weir job restart JOB`"},
    {"rm", "`weir delete NOUN NAME`"},
    {"rmi", "`weir delete model NAME`"},
    {"prune", "`weir project retention PROJECT`"},
    {"tag", "`weir model alias NAME ALIAS VERSION`"},
    {"save", "`weir model export NAME`"},
    {"search", "`weir get runs`"},
    {"volume", "`weir dataset create NAME`"},
    {"compose", "`weir apply -f FILE`"},
    {"swarm", "`weir node token`"},
    {"join", "`weir node join SERVER TOKEN`"},
    /* kubectl */
    {"create", "`weir apply -f FILE`, or `weir dataset create NAME`"},
    {"replace", "`weir apply -f FILE`"},
    {"patch", "`weir edit ION`"},
    {"set", "`weir model set NAME`, `weir queue set QUEUE`, `weir project set PROJECT`"},
    {"label", "`weir node label NODE KEY=VALUE`, or `weir model set NAME --tag NAME=VALUE`"},
    {"annotate", "`weir model set NAME --tag NAME=VALUE`"},
    {"taint", "`weir node taint NODE KEY=VALUE:NoSchedule`"},
    {"drain cordon", "`weir node drain NODE`"},
    {"uncordon", "`weir node resume NODE`"},
    {"expose", "`weir deploy NAME`, or `weir service run -- PROGRAM`"},
    {"autoscale", "`weir scale DEPLOYMENT 1..4`"},
    {"port-forward",
     "`weir job forward JOB 8080:80`, or `weir service run --port 8000 -- PROGRAM`"},
    {"forward", "`weir service run --port 8000 -- PROGRAM`"},
    {"proxy", "`weir service open SERVICE`"},
    {"debug", "`weir explain job JOB`, or `weir job shell JOB`"},
    {"auth", "`weir whoami`"},
    {"config", "`weir context`"},
    {"api-resources", "`weir help get`"},
    {"cluster-info", "`weir doctor`, or `weir get nodes`"},
    {"rollout", "`weir rollout status DEPLOYMENT`, or `weir rollback ION`"},
    {"undo", "`weir rollback ION`"},
    {"pods pod", "`weir get jobs`"},
    {"namespaces namespace", "`weir get projects`"},
    {"events", "`weir get events`"},
    /* mlflow, det, wandb */
    {"ui console dashboard web browser url", "`weir login`"},
    {"open", "`weir login`, or `weir service open SERVICE`"},
    {"artifacts checkpoint", "`weir artifact list RUN`"},
    {"registry", "`weir get models`"},
    {"register", "`weir model push NAME FILE`"},
    {"serve", "`weir deploy NAME`, or `weir server`"},
    {"serving", "`weir get deployments`"},
    {"infer", "`weir predict DEPLOYMENT FILE`"},
    {"trial", "`weir get trials SWEEP`"},
    {"hpo", "`weir sweep run FILE`"},
    {"agent-list", "`weir get nodes`"},
    {"master", "`weir server`"},
    {"workspace", "`weir get projects`"},
    {"template", "`weir help apply`"},
    {"log", "`weir logs JOB`"},
    {"monitor", "`weir health ION`, or `weir get alerts`"},
    {"metrics", "`weir get metrics RUN`"},
    /* anybody */
    {"list ls", "`weir get NOUN`"},
    {"show", "`weir describe NOUN NAME`"},
    {"info", "`weir describe NOUN NAME`, or `weir doctor`"},
    {"status", "`weir get jobs,ions,nodes`, or `weir doctor`"},
    {"health-check upgrade check sdiag summary", "`weir doctor`"},
    {"submit", "`weir job submit -f FILE`"},
    {"cancel bkill", "`weir job cancel JOB`"},
    {"resume qrls", "`weir job resume JOB`"},
    {"pause", "`weir job hold JOB`, or `weir ion pause ION`"},
    {"remove", "`weir delete NOUN NAME`"},
    {"compare", "`weir runs compare RUN RUN`"},
    {"download", "`weir model get NAME`, `weir artifact get RUN`, `weir dataset get NAME DIR`"},
    {"upload", "`weir dataset put NAME DIR`"},
    {"import", "`weir dataset put NAME DIR`, or `weir model push NAME FILE`"},
    {"export", "`weir model export NAME`"},
    {"watch", "`weir get jobs --watch`"},
    {"signin", "`weir login`"},
    {"signout off", "`weir logout`"},
    {"init up", "`weir server`"},
    {"down shutdown", "`weir server stop`"},
    {"fit", "`weir train`, or `weir job submit -f FILE`"},
    {"test", "`weir evaluate`"},
    {"tune", "`weir sweep run FILE`"},
    {"quota", "`weir get queues`, or `weir queue set QUEUE`"},
    {"cost", "`weir usage`"},
    {"invite", "`weir user create NAME`, then `weir project grant PROJECT NAME`"},
    {"launch", "`weir job submit -f FILE`, or `weir job run -- COMMAND`"},
    {"autostop", "`weir job run --time-limit 12h -- COMMAND`; of a deployment `weir deploy NAME "
                 "--idle-after 10m`"},
    {"storage", "`weir dataset put NAME DIR`, or `weir store usage`"},
    {"fleet bhosts pbsnodes", "`weir get nodes`"},
    {"offer", "`weir get nodes`, or `weir get devices`"},
    {"gateway", "`weir get deployments`"},
    {"sync", "`weir artifact put RUN FILE`"},
    {"sshare", "`weir get queues`"},
    {"scrontab", "`weir explain triggers`: an ION's training has a schedule"},
    {"sbcast", "`weir job cp FILE JOB:PATH`"},
    {"qhold", "`weir job hold JOB`"},
    {"bsub cmd", "`weir job run -- COMMAND`"},
    {"bjobs container", "`weir get jobs`"},
    {"api-versions", "`weir help`"},
    {"image", "`weir job run --image IMAGE -- COMMAND`"},
    {"system", "`weir doctor`, or `weir store usage`"},
    {"network", "`weir job run --network none -- COMMAND`"},
    {"history", "`weir get events`, or `weir get audit`"},
    {"rename", "`weir job run --name NAME -- COMMAND`: names stay"},
    {"update", "`weir edit ION`, `weir model set NAME`, or `weir queue set QUEUE`"},
    {"load commit", "`weir model push NAME FILE`"},
    {"unpause", "`weir job resume JOB`, or `weir ion resume ION`"},
    {"stack", "`weir apply -f FILE`"},
    {"run-batch", "`weir batch MODEL DATASET`"},
    {"gc", "`weir store usage`: what goes is in `weir project retention PROJECT`"},
    {"db", "`weir store verify`"},
    {"recipes", "`weir help apply`"},
    {"memory", "`weir top nodes`"},
    {"kubectl docker det sky mlflow", "`weir help`: leave that word out"},
};

/* The same behind a word that begins commands: "job stop". */
static const struct {
    const char *group, *words, *say;
} second_synonyms[] = {
    {"job", "stop kill", "`weir job cancel JOB`"},
    {"job", "create start", "`weir job run -- COMMAND`, or `weir job submit -f FILE`"},
    {"job", "release", "`weir job resume JOB`"},
    {"job", "pause", "`weir job hold JOB`"},
    {"job", "watch", "`weir get jobs --watch`"},
    {"job", "tail", "`weir logs -f JOB`"},
    {"model", "serve deploy", "`weir deploy NAME`"},
    {"model", "download pull", "`weir model get NAME`"},
    {"model", "upload register create", "`weir model push NAME FILE`"},
    {"model", "tag", "`weir model set NAME --tag NAME=VALUE`"},
    {"model", "versions", "`weir get versions MODEL`"},
    {"artifact", "download", "`weir artifact get RUN`"},
    {"artifact", "upload", "`weir artifact put RUN FILE`"},
    {"artifact", "delete", "`weir help artifact`"},
    {"experiment", "create", "`weir job run -- COMMAND` (the first run that names one makes it)"},
    {"experiment", "compare", "`weir runs compare RUN RUN`"},
    {"experiment", "search", "`weir get experiments`"},
    {"runs", "search", "`weir get runs`"},
    {"dataset", "download pull", "`weir dataset get NAME DIR`"},
    {"dataset", "upload push add", "`weir dataset put NAME DIR`"},
    {"dataset", "version", "`weir dataset freeze NAME`"},
    {"dataset", "versions", "`weir get dataset-versions DATASET`"},
    {"user", "add", "`weir user create NAME`"},
    {"user", "passwd", "`weir user password NAME`"},
    {"project", "add", "`weir project create NAME`"},
    {"project", "invite", "`weir project grant PROJECT NAME`"},
    {"project", "members", "`weir get project-members PROJECT`"},
    {"token", "add", "`weir token create NAME`"},
    {"role", "grant", "`weir project grant PROJECT NAME --role ROLE`"},
    {"secret", "create put", "`weir secret set NAME`"},
    {"sweep", "create start", "`weir sweep run FILE`"},
    {"sweep", "cancel", "`weir sweep stop SWEEP`"},
    {"queue", "update", "`weir queue set QUEUE`"},
    {"queue", "add", "`weir queue create QUEUE`"},
    {"node", "cordon", "`weir node drain NODE`"},
    {"node", "uncordon", "`weir node resume NODE`"},
    {"node", "add", "`weir node token`"},
    {"node", "remove", "`weir node leave`"},
    {"service", "create", "`weir service run -- PROGRAM`"},
    {"notebook", "create run", "`weir notebook start`"},
    {"notebook", "delete", "`weir service delete SERVICE`"},
    {"server", "start", "`weir server`"},
    {"server", "status", "`weir doctor`"},
    {"server", "restart", "`weir server stop`, then `weir server`"},
    {"alert", "mute", "`weir alert silence ALERT`"},
    {"alert", "close", "`weir alert resolve ALERT`"},
    {"ion", "apply create", "`weir apply -f FILE`"},
    {"ion", "trigger", "`weir trigger ION PIPELINE`"},
    {"ion", "rollback", "`weir rollback ION`"},
    {"snapshot", "restore", "`weir snapshot import FILE`"},
    {"snapshot", "take", "`weir snapshot create ION`"},
    {"sweep", "agent", "`weir sweep run FILE`: its trials are jobs, and need no agent"},
    {"experiment", "kill", "`weir job cancel JOB`"},
    {"experiment", "pause", "`weir job hold JOB`"},
    {"rollout", "undo", "`weir get versions MODEL`, and `weir deploy NAME --traffic v1=100`"},
    {"rollout", "restart", "`weir deploy NAME`"},
    {"rollout", "history", "`weir get versions MODEL`"},
    {"rollout", "pause", "`weir deploy NAME --traffic v1=90,v2=10`"},
    {"job", "attach", "`weir job shell JOB`, or `weir logs -f JOB`"},
    {"job", "queue", "`weir get jobs`"},
    {"job", "launch", "`weir job submit -f FILE`"},
    {"job", "ssh", "`weir job shell JOB`"},
};

/* The second words of commands whose first word this is, and the one near to `word`. */
static void see_seconds(const char *first, const char *word, struct weir_names *names,
                        struct weir_nearest *nearest)
{
    size_t len = strlen(first);
    for (size_t i = 0; i < cli_n_commands; i++) {
        const char *name = cli_commands[i]->name;
        if (cli_is_of_group(name, first)) {
            weir_names_add(names, name + len + 1, strlen(name + len + 1));
            if (word != NULL) {
                weir_nearest_see(nearest, word, strlen(word), name + len + 1);
            }
        }
    }
}

const char *cli_hint_second(const char *first, const char *second)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(second_synonyms); i++) {
        if (strcmp(second_synonyms[i].group, first) == 0 &&
            weir_words_have(second_synonyms[i].words, second, strlen(second))) {
            return second_synonyms[i].say;
        }
    }
    return NULL;
}

static weir_status unknown_second(const char *first, const char *second, struct weir_error *err)
{
    struct weir_names names = {0};
    struct weir_nearest nearest = {0};
    const char *say = second != NULL ? cli_hint_second(first, second) : NULL;
    if (say != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "there is no command \"%s %s\": say %s", first,
                              second, say);
    }
    see_seconds(first, second, &names, &nearest);
    const char *space = second != NULL ? " " : "", *given = second != NULL ? second : "";
    if (nearest.name != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "weir %s%s%.40s: expected %s; did you mean %s?", first, space, given,
                              names.text, nearest.name);
    }
    const struct cli_noun *noun = cli_noun_find(first);
    bool is_shown = noun != NULL && noun->key != NULL && noun->of == NULL;
    return weir_error_set(err, WEIR_ERR_INVALID, "weir %s%s%.40s: expected %s%s%s%s", first, space,
                          given, names.text, is_shown ? "; `weir describe " : "",
                          is_shown ? noun->singular : "", is_shown ? " NAME` shows one" : "");
}

/* A noun that is no command: how it is listed, and how one is shown. */
static weir_status unknown_noun(const char *word, const struct cli_noun *noun,
                                struct weir_arena *arena, struct weir_error *err)
{
    const char *name = cli_noun_placeholder(arena, noun);
    if (noun->of != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "there is no command \"%s\": say `weir get %s %s`", word,
                              noun->plural, name);
    }
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "there is no command \"%s\": `weir get %s` lists them%s%s%s%s%s", word,
                          noun->plural, noun->key != NULL ? ", `weir describe " : "",
                          noun->key != NULL ? noun->singular : "", noun->key != NULL ? " " : "",
                          noun->key != NULL ? name : "", noun->key != NULL ? "` shows one" : "");
}

weir_status cli_unknown_command(int argc, char **argv, struct weir_error *err)
{
    struct weir_nearest nearest = {0};
    const char *word = argv[0];
    if (cli_is_group(word)) {
        return unknown_second(word, argc > 1 ? argv[1] : NULL, err);
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(synonyms); i++) {
        if (weir_words_have(synonyms[i].words, word, strlen(word))) {
            return weir_error_set(err, WEIR_ERR_INVALID, "there is no command \"%s\": say %s", word,
                                  synonyms[i].say);
        }
    }
    const struct cli_noun *noun = cli_noun_find(word);
    if (noun != NULL) {
        struct weir_arena arena;
        weir_arena_init(&arena, 0);
        weir_status status = unknown_noun(word, noun, &arena, err);
        weir_arena_fini(&arena);
        return status;
    }
    for (size_t i = 0; i < cli_n_commands; i++) {
        const char *name = cli_commands[i]->name;
        if (strchr(name, ' ') == NULL && (cli_commands[i]->flags & CLI_HIDDEN) == 0) {
            weir_nearest_see(&nearest, word, strlen(word), name);
        }
    }
    return nearest.name != NULL
               ? weir_error_set(err, WEIR_ERR_INVALID,
                                "there is no command \"%.40s\"; did you mean weir %s?", word,
                                nearest.name)
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "there is no command \"%.40s\"; `weir help` lists them", word);
}

/* ---- options ------------------------------------------------------------------------------------ */

/* What other programs call an option; "" for the command: any. */
static const struct {
    const char *command, *options, *say;
} option_synonyms[] = {
    {"job run", "--num-gpus --gpu", "--gpus N"},
    {"job run", "--accelerators", "--gpus N:MODEL"},
    {"job run", "--nproc_per_node --nproc-per-node --num-nodes --ntasks --np", "--tasks N"},
    {"job run", "--mem-per-cpu", "--memory 4G, of each task"},
    {"job run", "--mount -v --volume", "--dir DIR, or a dataset: weir dataset put NAME DIR"},
    {"job run", "--env-file", "--env NAME=VALUE, once for each"},
    {"job run", "--spot", "--preemptible, which is so unless --no-preemptible"},
    {"job run", "--exclusive", "--cpus N, as many as a node has"},
    {"job run", "--mail-type", "nothing: weir explain alert-receivers tells who gets mail"},
    {"job run", "--image-pull-policy", "nothing: a node pulls what it has not"},
    {"job run", "-it", "nothing: weir job shell JOB is for terminals"},
    {"job exec", "-it", "nothing: it has a terminal where you have one"},
    {"job exec", "-i", "nothing: input goes there"},
    {"job exec", "-c", "JOB/TASK, a word without dashes"},
    {"logs", "-c --all-containers --container",
     "nothing: all tasks are printed, each with its name"},
    {"get", "--sort-by", "nothing: the newest come first; runs and experiments take order=NAME"},
    {"get", "-l", "NAME=VALUE, a word without dashes"},
    {"get", "--show-labels", "-o wide"},
    {"get", "--watch-only", "--watch"},
    {"delete", "--all", "its names, one after the other"},
    {"delete", "-f", "NOUN NAME"},
    {"describe", "-f", "NOUN NAME"},
    {"apply", "-k", "-f FILE"},
    {"apply", "--prune", "nothing: weir delete ion NAME"},
    {"job run", "--mem", "--memory 4G"},
    {"job run", "--cpu --cpus-per-task", "--cpus N"},
    {"job run", "--gres", "--gpus N, or --gpus N:MODEL"},
    {"job run", "--time", "--time-limit 12h"},
    {"job run", "--job-name", "--name NAME"},
    {"job run", "--chdir --workdir", "--dir DIR"},
    {"job run", "--partition",
     "--project NAME: each project has a queue; or --node-selector KEY=VALUE"},
    {"job run", "--queue", "--project NAME: each project has a queue"},
    {"job run", "--account", "--project NAME"},
    {"job run", "--constraint --nodelist", "--node-selector KEY=VALUE"},
    {"job run", "--dependency", "nothing yet: `weir wait JOB`, and submit then"},
    {"job run", "--wait", "--follow"},
    {"job run", "--requeue --retries", "--restarts N"},
    {"job run", "--rm", "nothing: jobs go as their project keeps them"},
    {"logs", "--since-time", "--since TIME"},
    {"logs", "--lines", "-n N"},
    {"", "--namespace", "--project NAME"},
    {"", "--filename", "-f FILE"},
    {"", "--selector --field-selector", "NAME=VALUE, a word without dashes"},
    {"", "--all-namespaces", "nothing: every project that you may see is listed"},
    {"", "--format --json", "-o json"},
    {"", "--yaml", "-o yaml"},
    {"", "--tracking-uri --host", "--server URL"},
    {"", "--profile --kubeconfig", "--context NAME"},
};

const char *cli_hint_option(const char *command, int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        size_t len = strcspn(argv[i], "=");
        for (size_t k = 0; k < WEIR_ARRAY_LEN(option_synonyms); k++) {
            const char *of = option_synonyms[k].command;
            if (weir_words_have(option_synonyms[k].options, argv[i], len) &&
                (of[0] == '\0' || strcmp(of, command) == 0)) {
                return option_synonyms[k].say;
            }
        }
    }
    return NULL;
}
