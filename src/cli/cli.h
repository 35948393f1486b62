/**
 * The command line: `weir COMMAND …`. One table lists the commands; each lives in a file of its own
 * and is a client of the REST API, but for those that start something on this machine (server,
 * agent, train, evaluate, doctor).
 *
 * Exit status: that of the status list (src/base/status.def): 0 done, 2 wrong usage or input, 4 not
 * found, 5 conflict, 6 not allowed, 7 not supported, 8 input/output, 9 server or peer away.
 */
#ifndef WEIR_CLI_CLI_H
#define WEIR_CLI_CLI_H

/** Run one command; returns the exit status. Errors go to standard error, one sentence. */
int weir_cli_main(int argc, char **argv);

#endif
