/* The tasks of an MPI job beside rank 0: run what its mpi-agents ask for. */
#include "gang/mpi.h"
#include "gang/wire.h"

#include "base/options.h"
#include "base/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMMANDS_MAX 64 /* at once; more wait on the board */
#define PAUSE_MS     500

/** A command that runs, with the thread that waits for its end. */
struct command {
    const struct wire_place *place;
    char *key;  /**< "run.1.ID" */
    char *text; /**< For sh -c. */
    atomic_bool is_over;
    struct command *next;
};

static void destroy(struct command *command)
{
    free(command->key);
    free(command->text);
    free(command);
}

static int run(const char *text)
{
    char *const argv[] = {"sh", "-c", (char *)text, NULL};
    const struct weir_spawn spawn = {
        .argv = argv, .in = WEIR_SPAWN_OWN, .out = WEIR_SPAWN_OWN, .said = WEIR_SPAWN_OWN};
    pid_t pid;
    return weir_spawn_start(&spawn, &pid, NULL) == WEIR_OK ? weir_spawn_wait(pid)
                                                           : WEIR_EXIT_NOT_RUN;
}

/* ---- signals ------------------------------------------------------------------------------------- */

static atomic_int n_running;
static volatile sig_atomic_t is_ending, is_to_save;

/* Nothing runs here that could be asked: it has saved, or has ended. */
static void settle_idle(void)
{
    const char *mark = getenv("WEIR_SAVED");
    if (is_ending) {
        _exit(128 + SIGTERM);
    }
    int fd = is_to_save && mark != NULL ? open(mark, O_CREAT | O_WRONLY | O_CLOEXEC, 0600) : -1;
    if (fd >= 0) {
        close(fd);
    }
    is_to_save = 0;
}

/* Commands are in this process's group: they get what it gets. */
static void pass_on(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (info->si_pid == getpid()) {
        return; /* from the line below */
    }
    is_ending = is_ending || number == SIGTERM;
    is_to_save = is_to_save || number != SIGTERM;
    (void)kill(0, number);
    if (atomic_load(&n_running) == 0) {
        settle_idle();
    }
}

/* "steps": all signals are passed on; "script": SIGTERM, and those to save are none of ours. */
static void handle_signals(const char *mode)
{
    static const int numbers[] = {SIGTERM, SIGUSR1, SIGUSR2, SIGHUP, SIGINT};
    struct sigaction action = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(numbers); i++) {
        if (i == 0 || strcmp(mode, "steps") == 0) {
            (void)sigaction(numbers[i], &action, NULL);
        } else {
            (void)signal(numbers[i], SIG_IGN);
        }
    }
}

/* Off the board first, so that nobody takes it for new; then its end. */
static void *command_main(void *context)
{
    struct command *command = context;
    struct weir_client *client = NULL;
    struct weir_error err;
    char end[16], done[96];
    (void)atomic_fetch_add(&n_running, 1);
    (void)snprintf(end, sizeof end, "%d", run(command->text));
    (void)snprintf(done, sizeof done, "done.%s", command->key + strlen("run."));
    weir_status status = wire_open(command->place, &client, &err);
    if (status == WEIR_OK) {
        status = wire_put(client, command->place, command->key, NULL, &err);
    }
    if (status == WEIR_OK) {
        status = wire_put(client, command->place, done, end, &err);
    }
    if (status != WEIR_OK) {
        (void)fprintf(stderr, "weir-worker mpi-serve: %s\n", err.message);
    }
    weir_client_close(client);
    atomic_store(&command->is_over, true);
    if (atomic_fetch_sub(&n_running, 1) == 1) {
        settle_idle();
    }
    return NULL;
}

struct serve {
    struct wire_place place;
    struct command *commands; /* those that run, and those that are over but still on the board */
    size_t n;
};

static bool is_known(const struct serve *serve, const char *key)
{
    for (const struct command *at = serve->commands; at != NULL; at = at->next) {
        if (strcmp(at->key, key) == 0) {
            return true;
        }
    }
    return false;
}

static void begin(struct serve *serve, const char *key, const char *text)
{
    pthread_t thread;
    struct command *command = weir_xalloc(sizeof *command);
    *command = (struct command){
        .place = &serve->place, .key = weir_xstrdup(key), .text = weir_xstrdup(text)};
    if (pthread_create(&thread, NULL, command_main, command) != 0) {
        destroy(command);
        return; /* it is looked at again with the next answer */
    }
    (void)pthread_detach(thread);
    command->next = serve->commands;
    serve->commands = command;
    serve->n++;
}

/* What is over and off the board is forgotten. */
static void forget(struct serve *serve, const json_t *values)
{
    for (struct command **link = &serve->commands; *link != NULL;) {
        struct command *command = *link;
        if (atomic_load(&command->is_over) && json_object_get(values, command->key) == NULL) {
            *link = command->next;
            serve->n--;
            destroy(command);
        } else {
            link = &command->next;
        }
    }
}

static void take(struct serve *serve, json_t *values)
{
    const char *key;
    json_t *text;
    forget(serve, values);
    json_object_foreach(values, key, text)
    {
        if (serve->n < COMMANDS_MAX && json_is_string(text) && !is_known(serve, key)) {
            begin(serve, key, json_string_value(text));
        }
    }
}

struct serve_options {
    int64_t rank;
    char *pass_signals;
    bool is_help;
};

static const struct weir_option serve_options[] = {
    WEIR_OPT(serve_options, rank, "rank", 0, INT, "0", 0, 9999, "N",
             "Which task of the job this is"),
    WEIR_OPT(serve_options, pass_signals, "pass-signals", 0, TEXT, NULL, 0, 0, "steps|script",
             "Pass signals on to the commands that run: all (steps), or SIGTERM (script)"),
    WEIR_OPT(serve_options, is_help, "help", 'h', BOOL, NULL, 0, 0, NULL, "Show this help"),
};

/* Until it is killed: the job ends its helpers. */
static weir_status serve_all(struct serve *serve, int64_t rank, struct weir_error *err)
{
    struct weir_client *client;
    char prefix[32];
    int64_t revision = -1;
    (void)snprintf(prefix, sizeof prefix, "run.%lld.", (long long)rank);
    WEIR_TRY(wire_open(&serve->place, &client, err));
    for (;;) {
        json_t *values = NULL;
        weir_status status = wire_wait(client, &serve->place, prefix, &revision, &values, err);
        if (status == WEIR_OK) {
            take(serve, values);
            json_decref(values);
        } else if (weir_client_can_retry(status)) {
            (void)poll(NULL, 0, PAUSE_MS);
        } else {
            weir_client_close(client);
            return status;
        }
    }
}

int weir_mpi_serve_main(int argc, char **argv)
{
    struct weir_arena arena;
    struct weir_error err;
    struct serve_options options = {0};
    static struct serve serve; /* threads look at it as long as the process lives */
    char **words;
    size_t n_words;
    weir_arena_init(&arena, 0);
    weir_status status = weir_options_parse(serve_options, WEIR_ARRAY_LEN(serve_options), argc - 1,
                                            argv + 1, &arena, &options, &words, &n_words, &err);
    if (status == WEIR_OK && options.is_help) {
        (void)printf("usage: weir-worker mpi-serve --rank N\n\n");
        weir_options_print(serve_options, WEIR_ARRAY_LEN(serve_options), stdout);
        return 0;
    }
    if (status == WEIR_OK) {
        status = wire_find("token", &serve.place, &err);
    }
    if (status == WEIR_OK) {
        mpi_add_to_path(&arena);
        mpi_settle(options.rank);
        if (options.pass_signals != NULL) {
            handle_signals(options.pass_signals);
        }
        status = serve_all(&serve, options.rank, &err);
    }
    (void)fprintf(stderr, "weir-worker mpi-serve: %s\n", err.message);
    return weir_status_exit(status);
}
