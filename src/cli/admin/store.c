/** weir store: what the server's state folder takes, and what goes when. */
#include "cli/admin/project.h"
#include "cli/admin/store_verify.h"

struct store_options {
    struct cli_common common;
    bool mend;
    const char *from;
};

static const struct weir_option store_options[] = {
    CLI_FLAG(store_options, mend, "mend", 0,
             "verify: put good bytes in the place of damaged and missing ones"),
    CLI_TEXT(store_options, from, "from", 0, "DIR",
             "verify: a backup, or another state folder, that may have good bytes"),
    CLI_COMMON_OPTIONS(store_options)};

static const char *size_text(const struct cli_call *call, const json_t *object, const char *member)
{
    double gb = (double)json_integer_value(json_object_get(object, member)) / 1e9;
    return weir_arena_printf(call->arena, gb < 0.1 ? "%.3f GB" : "%.1f GB", gb);
}

static void print_disk(struct cli_call *call, const json_t *answer)
{
    printf("\nAll of it: %s. Free on its disk: %s of %s. Sizes of rows are reckoned.\n",
           size_text(call, answer, "total_bytes"), size_text(call, answer, "disk_free_bytes"),
           size_text(call, answer, "disk_bytes"));
}

static weir_status read_words(struct cli_call *call, const char *example, json_t *body,
                              struct weir_error *err)
{
    for (size_t i = 1; i < call->n_words; i++) {
        WEIR_TRY(cli_retention_word(call, call->words[i], example, body, err));
    }
    return WEIR_OK;
}

static weir_status read_limits(struct cli_call *call, json_t *body, struct weir_error *err)
{
    return read_words(call, "LIMIT, such as decisions=30d,10GB", body, err);
}

static weir_status read_bounds(struct cli_call *call, json_t *body, struct weir_error *err)
{
    return read_words(call, "MIN..MAX, such as decisions=1d..90d", body, err);
}

static weir_status check_sweep(struct cli_call *call, json_t *body, struct weir_error *err)
{
    const struct store_options *options = call->options;
    (void)body;
    return !options->mend && options->from == NULL
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "--mend and --from belong to weir store verify");
}

static weir_status verify(struct cli_call *call, struct weir_error *err)
{
    const struct store_options *options = call->options;
    return cli_store_verify(call, options->mend, options->from, err);
}

#define RULES                                                                                      \
    CLI_COLUMNS({"kind", "KIND"}, {"limit", "LIMIT"}, {"default", "DEFAULT"}, {"rule", "RULE"})
#define BOUNDS                                                                                     \
    CLI_COLUMNS({"kind", "KIND"}, {"bounds", "MAY BE"}, {"is_set", "SET"}, {"platform", "PLATFORM"})

const struct cli_command cli_store = {
    .name = "store",
    .usage = "usage | retain [KIND=LIMIT …] | bounds [KIND=MIN..MAX …] | sweep | verify [--mend "
             "[--from DIR]]",
    .summary = "Show what the state folder takes and what goes when; change how long things stay",
    .help =
        "A limit is an age, a size, or both: 30d, 10GB, 30d,10GB, forever, unbounded, default.\n"
        "retain alone lists the kinds with their limits and rules. bounds are what projects may "
        "set "
        "for\n"
        "themselves (weir project set --retention): 1d..90d, 0s..forever, default.\n"
        "verify reads every blob of the state folder on this machine (--state), whether its server "
        "runs "
        "or not,\n"
        "and names those that are damaged or missing and what they belong to; the exit status is "
        "then "
        "3. --mend\n"
        "takes good bytes from --from and from uploaded datasets, and moves what stays damaged to "
        "blobs/damaged.",
    CLI_WORDS(1, 40),
    CLI_OPTIONS(store_options, store_options),
    // clang-format off: a table
    CLI_VERBS(
        {"usage", 1, 1, .call = "GET /api/v1/store/usage", .print = print_disk,
         CLI_COLUMNS({"kind", "KIND"}, {"n", "N"}, {"used_bytes", "SIZE"}, {"limit", "LIMIT"},
                     {"next", "NEXT TO GO"})},
        {"retain", 1, 1, .call = "GET /api/v1/retention", RULES},
        {"retain", 2, 40, read_limits, .call = "PUT /api/v1/retention", .body = "", RULES},
        {"bounds", 1, 1, .call = "GET /api/v1/retention/bounds", BOUNDS},
        {"bounds", 2, 40, read_bounds, .call = "PUT /api/v1/retention/bounds", .body = "", BOUNDS},
        {"verify", 1, 1, .run = verify},
        {"sweep", 1, 1, check_sweep, .call = "POST /api/v1/store/sweep",
         .gives = "is_sweeping=true",
         .say = "The limits are being applied; weir store usage shows what is left."}),
    // clang-format on
};
