/** For tests: commands run in this process against the real API over HTTP, or against answers that
 *  the test writes. What they print is caught. */
#ifndef WEIR_CLI_CLI_FIXTURE_H
#define WEIR_CLI_CLI_FIXTURE_H

#include "api/caller_fixture.h"
#include "base/json.h"
#include "cli/cli.h"
#include "http/http.h"

#include <unistd.h>

#define CLI_WORDS_MAX 32

struct cli_fixture {
    struct weir_http_server *http;
    char url[64];
    char out[1 << 18], err[1 << 14]; /**< What the last command printed. */
    json_t *json;                    /**< `out`, where it is JSON; else NULL. */
    /** A path that begins so, asked with this method (NULL: any), is answered with this and not by
     *  the API; NULL: none is. */
    const char *script_path, *script_method, *script_body;
    int script_status;
    json_t *script_sent; /**< What the last of these sent, where it is JSON; else NULL. */
};

static struct cli_fixture cli;

static inline void cli_handle(void *context, struct weir_http_request *request,
                              struct weir_http_response *response)
{
    if (cli.script_path != NULL &&
        strncmp(request->path, cli.script_path, strlen(cli.script_path)) == 0 &&
        (cli.script_method == NULL || strcmp(request->method, cli.script_method) == 0)) {
        json_decref(cli.script_sent);
        cli.script_sent = json_loadb(request->body, request->body_len, 0, NULL);
        weir_http_response_text(response, cli.script_status, "application/json", cli.script_body);
    } else {
        weir_api_handle(context, request, response);
    }
}

static inline void cli_open(void)
{
    char uploads[128];
    struct weir_error err;
    callers_open();
    memset(&cli, 0, sizeof cli);
    (void)snprintf(uploads, sizeof uploads, "%s/uploads", callers.fixture.dir);
    must(weir_dir_make(uploads, 0700, &err), &err);
    const struct weir_http_config config = {.listen = "127.0.0.1:0",
                                            .n_handlers = 2,
                                            .n_io_threads = 1,
                                            .max_connections = 64,
                                            .body_rule = weir_api_body_rule,
                                            .admit = weir_api_admit,
                                            .upload_dir = uploads};
    must(weir_http_server_start(&config, cli_handle, callers.fixture.api, &cli.http, &err), &err);
    (void)snprintf(cli.url, sizeof cli.url, "http://127.0.0.1:%d", weir_http_server_port(cli.http));
    weir_api_attach(callers.fixture.api, cli.http, cli.url);
    (void)setenv("WEIR_SERVER", cli.url, 1);
    (void)setenv("WEIR_TOKEN", callers.fixture.bearer + strlen("Bearer "), 1);
    (void)setenv("WEIR_STATE", callers.fixture.dir, 1);
}

static inline void cli_close(void)
{
    json_decref(cli.json);
    json_decref(cli.script_sent);
    callers_forget();
    weir_api_stop(callers.fixture.api);
    weir_http_server_stop(cli.http, 1000);
    callers_close();
}

/** What `file` holds, ended with a NUL. */
static inline void cli_take(FILE *file, char *text, size_t size)
{
    rewind(file);
    size_t n = fread(text, 1, size - 1, file);
    text[n] = '\0';
    (void)fclose(file);
}

/** Run `weir` with these words, ended by NULL. @return Its exit status. */
static inline int cli_run(const char *const *words)
{
    char *argv[CLI_WORDS_MAX + 2] = {"weir"};
    int argc = 1;
    for (; words[argc - 1] != NULL; argc++) {
        ck_assert_int_lt(argc, CLI_WORDS_MAX);
        argv[argc] = (char *)words[argc - 1];
    }
    FILE *out = tmpfile(), *err = tmpfile();
    ck_assert(out != NULL && err != NULL);
    (void)fflush(NULL);
    int saved_out = dup(STDOUT_FILENO), saved_err = dup(STDERR_FILENO);
    ck_assert(dup2(fileno(out), STDOUT_FILENO) >= 0 && dup2(fileno(err), STDERR_FILENO) >= 0);
    int status = weir_cli_main(argc, argv);
    (void)fflush(NULL);
    (void)dup2(saved_out, STDOUT_FILENO);
    (void)dup2(saved_err, STDERR_FILENO);
    (void)close(saved_out);
    (void)close(saved_err);
    cli_take(out, cli.out, sizeof cli.out);
    cli_take(err, cli.err, sizeof cli.err);
    json_decref(cli.json);
    cli.json = json_loads(cli.out, JSON_DECODE_ANY, NULL);
    return status;
}

#define WEIR(...) cli_run((const char *const[]){__VA_ARGS__, NULL})

/** Run a command; its exit status must be this one. */
#define EXPECT_EXIT(code, ...)                                                                     \
    do {                                                                                           \
        int exit_ = WEIR(__VA_ARGS__);                                                             \
        ck_assert_msg(exit_ == (code), "exit %d instead of %d: %s%s", exit_, (code), cli.out,      \
                      cli.err);                                                                    \
    } while (0)

/** It must fail so, with one sentence that holds `part`, and print nothing else. */
#define EXPECT_REFUSED(code, part, ...)                                                            \
    do {                                                                                           \
        EXPECT_EXIT(code, __VA_ARGS__);                                                            \
        ck_assert_msg(strstr(cli.err, (part)) != NULL, "\"%s\" not in \"%s\"", (part), cli.err);   \
        ck_assert_msg(strncmp(cli.err, "weir: ", 6) == 0, "%s", cli.err);                          \
        ck_assert_msg(strchr(cli.err, '\n') == cli.err + strlen(cli.err) - 1, "%s", cli.err);      \
        ck_assert_str_eq(cli.out, "");                                                             \
    } while (0)

/** What the last command printed must hold this. */
#define EXPECT_OUT(part)                                                                           \
    ck_assert_msg(strstr(cli.out, (part)) != NULL, "\"%s\" not in:\n%s", (part), cli.out)

#endif
