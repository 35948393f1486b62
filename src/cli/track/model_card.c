/** weir model card: what is known of a version, as a file of Markdown. */
#include "cli/track/model_name.h"

#include "base/buf.h"
#include "base/file.h"

#define CARD_MAX_BYTES ((size_t)16 << 20)

struct card_options {
    struct cli_common common;
    char *file;
    bool is_forced;
};

static const struct weir_option card_options[] = {
    CLI_COMMON_OPTIONS(card_options),
    CLI_TEXT(card_options, file, "file", 'f', "FILE", "Write the card there (else it is printed)"),
    CLI_FLAG(card_options, is_forced, "force", 0, "Overwrite a file that is there"),
};

/* What others wrote must not steer the terminal: the server leaves out C0; these are the C1 of UTF-8. */
static void disarm(struct weir_buf *text)
{
    for (size_t i = 0; i + 1 < text->len; i++) {
        unsigned char *at = (unsigned char *)&text->data[i];
        if (at[0] == 0xc2 && (at[1] & 0xe0) == 0x80) {
            at[0] = at[1] = '?';
        }
    }
}

static weir_status put(struct cli_call *call, struct weir_buf *text, struct weir_error *err)
{
    const struct card_options *options = call->options;
    if (options->file == NULL) {
        disarm(text);
        (void)fwrite(text->data, 1, text->len, stdout);
        return WEIR_OK;
    }
    WEIR_TRY(cli_may_write(options->file, options->is_forced, err));
    WEIR_TRY(weir_file_write_atomic(options->file, text->data, text->len, 0644, err));
    if (!cli_is_json(call)) {
        printf("%s: card of %s\n", options->file, call->words[0]);
    }
    return WEIR_OK;
}

static weir_status run_model_card(struct cli_call *call, struct weir_error *err)
{
    const struct card_options *options = call->options;
    char *name, *word;
    int64_t version;
    json_t *card;
    WEIR_TRY(cli_model_split(call, call->words[0], &name, &word, err));
    WEIR_TRY(cli_model_version(call, name, word, &version, err));
    const char *path = cli_path2(call, "/api/v1/models/{}/versions/{}/card", name,
                                 weir_arena_printf(call->arena, "%lld", (long long)version));
    if (cli_is_json(call)) {
        WEIR_TRY(cli_rest(call, "GET", path, NULL, &card, err));
        cli_print_json(card);
        json_decref(card);
    }
    if (cli_is_json(call) && options->file == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(cli_connect(call, err));
    WEIR_AUTO(weir_buf_fini) struct weir_buf text;
    weir_buf_init(&text, CARD_MAX_BYTES);
    WEIR_TRY(weir_client_get_bytes(call->client,
                                   weir_arena_printf(call->arena, "%s?format=markdown", path),
                                   &text, NULL, err));
    return put(call, &text, err);
}

const struct cli_command cli_model_card = {
    .name = "model card",
    .usage = "NAME[@v3|@ALIAS] [--file FILE] [-o json]",
    .summary = "Show what is known of a model version on one page, or write it as Markdown",
    .help = "Data, training, code, measurements, policies, where it serves, how it does there, and "
            "what "
            "is\nnot known.",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(card_options, card_options),
    .run = run_model_card,
};
