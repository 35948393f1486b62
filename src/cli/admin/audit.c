/** weir audit: is the audit whole, and a copy of it for somebody else to keep. */
#include "cli/core/verb.h"

#include "base/file.h"
#include "store/chain.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORT_PER_CALL 1000

/* ---- verify ---------------------------------------------------------------------------------- */

struct verify_options {
    struct cli_common common;
    char *acts, *accesses;
};

static const struct weir_option verify_options[] = {
    CLI_COMMON_OPTIONS(verify_options),
    CLI_TEXT(verify_options, acts, "acts", 0, "N:HASH",
             "This was noted of the chain of acts: number N has HASH"),
    CLI_TEXT(verify_options, accesses, "accesses", 0, "N:HASH",
             "The same of the chain of accesses"),
};

/* A state folder, or a backup of one, which holds it as state/. */
static weir_status verify_folder(struct cli_call *call, const char *folder, json_t **out,
                                 struct weir_error *err)
{
    const struct verify_options *options = call->options;
    struct weir_chain_report reports[WEIR_N_TRAILS];
    struct weir_chain_pin acts, accesses;
    const struct weir_chain_pin *pins[WEIR_N_TRAILS] = {NULL};
    char *path = weir_arena_printf(call->arena, "%s/state/weir.db", folder);
    if (!weir_path_exists(path)) {
        path = weir_arena_printf(call->arena, "%s/weir.db", folder);
    }
    if (options->acts != NULL) {
        WEIR_TRY(weir_chain_pin_parse("--acts", options->acts, &acts, err));
        pins[WEIR_TRAIL_ACTS] = &acts;
    }
    if (options->accesses != NULL) {
        WEIR_TRY(weir_chain_pin_parse("--accesses", options->accesses, &accesses, err));
        pins[WEIR_TRAIL_ACCESSES] = &accesses;
    }
    WEIR_TRY(weir_chain_verify_file(path, pins, reports, err));
    *out = weir_chain_reports_json(reports);
    return WEIR_OK;
}

static int64_t number(const json_t *object, const char *member)
{
    return json_integer_value(json_object_get(object, member));
}

static void print_chain(const json_t *chain)
{
    const char *name = json_string_value(json_object_get(chain, "chain"));
    const json_t *cut = json_object_get(chain, "cut");
    const json_t *finding = json_object_get(chain, "finding");
    if (json_is_object(finding)) {
        printf("%s: NOT WHOLE: %s\n", name, json_string_value(json_object_get(finding, "message")));
        return;
    }
    printf("%s: whole, %lld rows", name, (long long)number(chain, "n_rows"));
    if (json_is_object(cut)) {
        printf("; retention cut %lld (events %lld to %lld)", (long long)number(cut, "n"),
               (long long)number(cut, "first_seq"), (long long)number(cut, "last_seq"));
    }
    if (number(chain, "n_before") > 0) {
        printf("; %lld of before the chain are not verified", (long long)number(chain, "n_before"));
    }
    printf("\n");
    if (number(chain, "number") > 0) {
        printf("  note its end: --%s %lld:%s\n", name, (long long)number(chain, "number"),
               json_string_value(json_object_get(chain, "hash")));
    }
}

static weir_status run_verify(struct cli_call *call, struct weir_error *err)
{
    json_t *answer, *chain;
    size_t i;
    static const struct cli_verb ask = {.call = "GET /api/v1/audit/verify",
                                        .query = "-acts -accesses"};
    WEIR_TRY(call->n_words == 1
                 ? verify_folder(call, call->words[0], &answer, err)
                 : cli_rest(call, "GET", cli_verb_path(call, &ask, NULL), NULL, &answer, err));
    if (cli_is_json(call)) {
        cli_print_json(answer);
    } else {
        json_array_foreach(json_object_get(answer, "chains"), i, chain)
        {
            print_chain(chain);
        }
    }
    bool is_whole = json_is_true(json_object_get(answer, "is_whole"));
    json_decref(answer);
    return is_whole ? WEIR_OK
                    : weir_error_set(err, WEIR_ERR_CORRUPT,
                                     "the audit is not whole: somebody changed it beside Weir");
}

const struct cli_command cli_audit_verify = {
    .name = "audit verify",
    .usage = "[FOLDER] [--acts N:HASH] [--accesses N:HASH]",
    .summary = "Is the audit as it was written?",
    .help = "Recomputes the chains of hashes over the audit's rows, and names the first that was "
            "altered,\n"
            "taken out or put in; then it ends with status 3. Without FOLDER the server does it; "
            "with a state\n"
            "folder or a backup it is done here, whether a server runs there or not.\n\n"
            "Who can write the database can write a chain anew. Note its end where they cannot, "
            "and give it\n"
            "with --acts and --accesses.",
    CLI_WORDS(0, 1),
    CLI_OPTIONS(verify_options, verify_options),
    .run = run_verify,
};

/* ---- export ---------------------------------------------------------------------------------- */

static weir_status write_page(FILE *file, const json_t *items, const char *path,
                              struct weir_error *err)
{
    json_t *item;
    size_t i;
    json_array_foreach(items, i, item)
    {
        if (json_dumpf(item, file, JSON_COMPACT) != 0 || fputc('\n', file) == EOF) {
            return weir_error_set_errno(err, errno, "cannot write %s", path);
        }
    }
    return WEIR_OK;
}

static weir_status write_pages(struct cli_call *call, FILE *file, const char *path, int64_t *out_n,
                               struct weir_error *err)
{
    int64_t after = 0;
    size_t n;
    *out_n = 0;
    do {
        json_t *page;
        WEIR_TRY(cli_rest(call, "GET",
                          weir_arena_printf(call->arena, "/api/v1/audit?after=%lld&limit=%d",
                                            (long long)after, EXPORT_PER_CALL),
                          NULL, &page, err));
        const json_t *items = json_object_get(page, "items");
        n = json_array_size(items);
        weir_status status = write_page(file, items, path, err);
        after = n > 0 ? number(json_array_get(items, n - 1), "seq") : after;
        *out_n += (int64_t)n;
        json_decref(page);
        WEIR_TRY(status);
    } while (n > 0);
    return WEIR_OK;
}

static weir_status run_export(struct cli_call *call, struct weir_error *err)
{
    const char *path = call->words[0];
    char *partial = weir_arena_printf(call->arena, "%s.partial", path);
    int64_t n;
    if (weir_path_exists(path)) {
        return weir_error_set(err, WEIR_ERR_EXISTS, "%s exists already", path);
    }
    mode_t mask = umask(077); /* addresses and names */
    FILE *file = fopen(partial, "we");
    (void)umask(mask);
    if (file == NULL) {
        return weir_error_set_errno(err, errno, "cannot write %s", partial);
    }
    weir_status status = write_pages(call, file, path, &n, err);
    if (fclose(file) != 0 && status == WEIR_OK) {
        status = weir_error_set_errno(err, errno, "cannot write %s", path);
    }
    if (status == WEIR_OK && rename(partial, path) != 0) {
        status = weir_error_set_errno(err, errno, "cannot write %s", path);
    }
    if (status != WEIR_OK) {
        (void)unlink(partial);
        return status;
    }
    if (cli_is_json(call)) {
        cli_print_change(json_pack("{s:s,s:I}", "file", path, "events", (json_int_t)n));
    } else {
        printf("%s: %lld events, a line each, with number and hash in their chain\n", path,
               (long long)n);
    }
    return WEIR_OK;
}

const struct cli_command cli_audit_export = {
    .name = "audit export",
    .usage = "FILE",
    .summary = "Write the whole audit to a file, a line of JSON each event",
    CLI_WORDS(1, 1),
    CLI_PLAIN,
    .run = run_export,
};
