/**
 * Program: the process of a replica: flags, start, waiting for signals, end.
 *
 *     static const struct weir_host_program program = {.name = "serve", .usage = "--spec FILE", …};
 *     return weir_host_main(&program, argc, argv);
 *
 * SIGTERM and SIGINT end it in order: `stop` is called, and the exit status is 0. What goes wrong before that
 * is said in one line on standard error, its last words, which become the reason of its job; the exit status is that
 * of the error (weir_status_exit).
 */
#ifndef WEIR_HOST_PROGRAM_H
#define WEIR_HOST_PROGRAM_H

#include "base/options.h"
#include "host/spec.h"

/** The member `host` of a program's options. */
struct weir_host_options {
    char *spec, *server, *ca_file;
    bool help;
};

/** Their rows, for a table of options. */
#define WEIR_HOST_OPTIONS(strct, spec_doc)                                                         \
    WEIR_OPT(strct, host.spec, "spec", 's', TEXT, NULL, 0, 0, "FILE", spec_doc),                   \
        WEIR_OPT(strct, host.server, "server", 0, TEXT, NULL, 0, 0, "URL",                         \
                 "Server to ask and to report to, instead of the spec's"),                         \
        WEIR_OPT(strct, host.ca_file, "ca-file", 0, TEXT, NULL, 0, 0, "FILE",                      \
                 "Authorities to trust if the server's address is https")
#define WEIR_HOST_OPTION_HELP(strct)                                                               \
    WEIR_OPT(strct, host.help, "help", 'h', BOOL, NULL, 0, 0, NULL, "Show this")

/** What the options say, over what the file says. */
void weir_host_options_apply(const struct weir_host_options *options, struct weir_host_spec *spec);

/** A process that runs. */
struct weir_host_run;

/** A replica's role of weir-worker. `options` is the program's own struct of them, which begins with the member `host`. */
struct weir_host_program {
    const char *name;  /**< "serve" */
    const char *usage; /**< Behind it: "--spec FILE | --model NAME=FILE …" */
    const struct weir_option *options;
    size_t n_options, options_bytes;
    bool (*fits)(const void *options); /**< Do they go together? Else the usage is the answer. */
    /**
     * Start everything; signals are blocked.
     * @param arena  Options and what is put there live until after `stop`.
     * @param out    What `stop` gets.
     */
    weir_status (*start)(struct weir_host_run *run, const void *options, struct weir_arena *arena,
                         void **out, struct weir_error *err);
    void (*stop)(void *hosted);
    const char *stopping_event, *stopped_event; /**< Logged. */
};

/** @param argv  argv[0] is the role. @return Exit status. */
int weir_host_main(const struct weir_host_program *program, int argc, char **argv);

/** End as SIGTERM does, but with INTERNAL and this reason. Once; any thread. */
void weir_host_run_break(struct weir_host_run *run, const char *reason);

/** Say an error as the last words of the program of this name. @return Its exit status. */
int weir_host_fail(const char *name, const struct weir_error *err);

#endif
