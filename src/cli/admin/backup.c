/** weir backup, weir restore: a state folder as a verified copy, and back. */
#include "cli/command.h"

#include "cli/admin/store_verify.h"
#include "server/backup.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct backup_options {
    struct cli_common common;
};

static const struct weir_option backup_options[] = {
    {.name = "state",
     .type = WEIR_OPTION_TEXT,
     .offset = offsetof(struct backup_options, common.state),
     .arg = "DIR",
     .doc = "State folder [/var/lib/weir as root, else ~/.local/share/weir]"},
    CLI_OUTPUT_OPTIONS(backup_options),
};

static void print_report(const struct cli_call *call, const char *what, const char *folder,
                         const struct weir_backup_report *report)
{
    if (cli_is_json(call)) {
        json_t *answer =
            json_pack("{s:s,s:s,s:I,s:I}", "folder", folder, "state", report->state, "files",
                      (json_int_t)report->n_files, "bytes", (json_int_t)report->n_bytes);
        json_object_set_new(answer, "blobs", cli_blobs_json(&report->verify));
        cli_print_json(answer);
        json_decref(answer);
        return;
    }
    printf("%s %s: %lld files, %.1f MB, every sum compared\n", what, folder,
           (long long)report->n_files, (double)report->n_bytes / 1e6);
    cli_print_blobs(call, &report->verify);
}

/* What is damaged or missing was so before; the rest is whole, and that is said by the exit status too. */
static weir_status blobs_status(const struct weir_backup_report *report, struct weir_error *err)
{
    return verify_status(&report->verify, err);
}

static weir_status run_backup(struct cli_call *call, struct weir_error *err)
{
    struct weir_backup_report report;
    const char *state = cli_state_dir(call->arena, call->common->state);
    WEIR_TRY(weir_backup_make(state, call->words[0], call->arena, &report, err));
    print_report(call, "backed up to", call->words[0], &report);
    if (!cli_is_json(call)) {
        printf("It holds tokens and faces: keep it as private as %s. `weir restore %s` brings it "
               "back.\n",
               report.state, call->words[0]);
    }
    return blobs_status(&report, err);
}

static weir_status run_restore(struct cli_call *call, struct weir_error *err)
{
    struct weir_backup_report report;
    struct weir_error reason;
    char absolute[PATH_MAX];
    const char *state = cli_state_dir(call->arena, call->common->state);
    weir_status status = weir_backup_restore(call->words[0], state, call->arena, &report, &reason);
    if (status == WEIR_ERR_EXISTS) {
        return weir_error_set(err, status,
                              "%s: a restore needs a new folder. Stop what runs there (`weir "
                              "server stop --tasks --state %s`) and move it away",
                              reason.message, state);
    }
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "%s", reason.message);
    }
    print_report(call, "restored to", state, &report);
    bool is_moved = realpath(state, absolute) != NULL && strcmp(absolute, report.state) != 0;
    if (!cli_is_json(call)) {
        if (is_moved) {
            printf("It was %s: datasets and jobs name files below that folder. Restore to the same "
                   "path, or link it.\n",
                   report.state);
        }
        printf("Start it: weir server --state %s\n"
               "Jobs that ran at the time of the backup start again; agents elsewhere go on with "
               "their tokens.\n",
               state);
    }
    return blobs_status(&report, err);
}

const struct cli_command cli_backup = {
    .name = "backup",
    .usage = "DIR [--state DIR]",
    .summary = "Copy a state folder, while its server runs or not",
    .help =
        "Makes the new folder DIR with a consistent, checked copy: database, blobs, datasets, "
        "logs,\n"
        "checkpoints, outboxes of replicas, tokens. It is there whole or not at all. Blobs that "
        "are damaged or\n"
        "missing in the state folder are named, and the exit status is 3: the backup has all but "
        "these.",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(backup_options, backup_options),
    .run = run_backup,
};

const struct cli_command cli_restore = {
    .name = "restore",
    .usage = "BACKUP [--state DIR]",
    .summary = "Make a state folder from a backup",
    .help = "The state folder must not exist or be empty. Every file is compared with the sums of "
            "the\n"
            "backup; the folder is there whole or not at all.",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(backup_options, backup_options),
    .run = run_restore,
};
