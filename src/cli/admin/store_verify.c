#include "cli/admin/store_verify.h"

static const char *state_of(const struct verify_finding *finding)
{
    return finding->mended == VERIFY_MENDED      ? "mended"
           : finding->mended == VERIFY_SET_ASIDE ? "damaged, moved to blobs/damaged"
           : finding->is_missing                 ? "missing"
                                                 : "damaged";
}

void cli_print_blobs(const struct cli_call *call, const struct verify *verify)
{
    for (size_t i = 0; i < verify->n_findings && !cli_is_json(call); i++) {
        const struct verify_finding *finding = &verify->findings[i];
        printf("%s  %s: %s\n", finding->sha256, state_of(finding),
               finding->what != NULL ? finding->what : "no record names it");
    }
}

json_t *cli_blobs_json(const struct verify *verify)
{
    json_t *items = json_array();
    for (size_t i = 0; i < verify->n_findings; i++) {
        const struct verify_finding *finding = &verify->findings[i];
        json_array_append_new(items, json_pack("{s:s,s:s?,s:s,s:b}", "blob", finding->sha256,
                                               "what", finding->what, "is",
                                               finding->is_missing ? "missing" : "damaged",
                                               "mended", finding->mended == VERIFY_MENDED));
    }
    return json_pack("{s:I,s:I,s:I,s:I,s:I,s:o}", "checked", (json_int_t)verify->n_blobs, "damaged",
                     (json_int_t)verify->n_damaged, "missing", (json_int_t)verify->n_missing,
                     "mended", (json_int_t)verify->n_mended, "set_aside",
                     (json_int_t)verify->n_aside, "items", items);
}

static weir_status verify_state(struct verify *verify, const char *state, bool mend,
                                const char *from, struct weir_error *err)
{
    WEIR_TRY(verify_read_blobs(verify, state, err));
    WEIR_TRY(verify_compare(verify, state, err));
    return mend ? verify_mend(verify, state, from, err) : WEIR_OK;
}

weir_status cli_store_verify(struct cli_call *call, bool mend, const char *from,
                             struct weir_error *err)
{
    struct verify verify;
    if (from != NULL && !mend) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--from is where --mend takes good bytes from");
    }
    verify_init(&verify, call->arena);
    weir_status status =
        verify_state(&verify, cli_state_dir(call->arena, call->common->state), mend, from, err);
    if (status == WEIR_OK && cli_is_json(call)) {
        json_t *answer = cli_blobs_json(&verify);
        cli_print_json(answer);
        json_decref(answer);
    } else if (status == WEIR_OK) {
        cli_print_blobs(call, &verify);
        printf("%zu blobs, %.1f MB: %lld damaged, %lld missing, %lld mended\n", verify.n_blobs,
               (double)verify.bytes / 1e6, (long long)verify.n_damaged, (long long)verify.n_missing,
               (long long)verify.n_mended);
    }
    status = status == WEIR_OK ? verify_status(&verify, err) : status;
    verify_fini(&verify);
    return status;
}
