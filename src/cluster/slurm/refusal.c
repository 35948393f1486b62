#include "cluster/slurm/refusal.h"

#include "base/macros.h"

#include <string.h>
#include <strings.h>

#define LINE_MAX_BYTES 200
#define SAME_MUNGE                                                                                 \
    "this machine's munge.key must be the cluster's, its clock right within 5 minutes"

enum kind {
    HERE,    /* This machine is not set up for it. */
    AWAY,    /* It cannot be asked. */
    REFUSED, /* It does not take what was asked. */
};

/* In this order: what stands first says more. `cure` is part of a sentence. */
static const struct refusal {
    const char *words; /* in what Slurm says */
    enum kind kind;
    const char *option; /* "" for none */
    const char *cure;
} refusals[] = {
    {"Could not establish a configuration source", HERE, "conf",
     "name the cluster's slurm.conf, as the nodes have it"},
    {"Unable to process configuration file", HERE, "conf",
     "name the cluster's slurm.conf, as the nodes have it"},
    {"munged", HERE, "",
     "its service munge does not run on this machine: start it, with the cluster's key"},
    {"Munge encode failed", HERE, "",
     "its service munge does not run on this machine: start it, with the cluster's key"},
    {"authentication", HERE, "", SAME_MUNGE},
    {"Unauthorized credential", HERE, "", SAME_MUNGE},
    {"Expired credential", HERE, "",
     "set this machine's clock right: it differs from the cluster's"},
    {"Rewound credential", HERE, "",
     "set this machine's clock right: it differs from the cluster's"},
    {"Unable to contact slurm controller", AWAY, "",
     "slurmctld does not run, or cannot be reached from this machine"},
    {"slurm_persist_conn_open", AWAY, "",
     "slurmdbd does not run, or cannot be reached from this machine"},
    {"Unable to connect to database", AWAY, "",
     "slurmdbd does not run, or cannot be reached from this machine"},
    {"timed out", AWAY, "", "slurmctld does not answer"},
    {"Connection refused", AWAY, "", "it does not run, or cannot be reached"},
    {"Connection reset", AWAY, "", "it ended meanwhile"},
    {"Zero Bytes were transmitted", HERE, "",
     SAME_MUNGE ", and its Slurm of a version that the cluster takes"},
    {"standby mode", AWAY, "", "its second slurmctld is about to take over"},
    {"Incompatible versions", HERE, "bin",
     "these commands are of another version than the cluster"},
    {"temporarily", AWAY, "", "it is asked again"},
    {"try again", AWAY, "", "it is asked again"},
    {"invalid partition", REFUSED, "partition", "`sinfo -o %R` lists them"},
    {"partition not available", REFUSED, "partition",
     "name another one, or have its operator set it up"},
    {"No default partition", REFUSED, "partition",
     "the cluster has no default one: name one of `sinfo -o %R`"},
    {"not permitted to use", REFUSED, "partition",
     "name another one, or have the server's user allowed in it"},
    {"Invalid account", REFUSED, "account",
     "name one that the server's user has and the partition allows: `sacctmgr show assoc user=…`"},
    {"Invalid qos", REFUSED, "qos",
     "name one that the account and the partition allow: `sacctmgr show assoc user=… "
     "format=account,qos`"},
    {"violates accounting", REFUSED, "qos",
     "less is to be asked for, or its limits raised: `sacctmgr show qos`"},
    {"Invalid feature", REFUSED, "constraint", "`sinfo -o %f` lists what nodes have"},
    {"reservation", REFUSED, "reservation",
     "`scontrol show reservation` lists them and who may use them"},
    {"time limit", REFUSED, "time", "`sinfo -o '%R %l'` says what partitions allow"},
    {"node configuration is not available", REFUSED, "",
     "no node of the partition has as much with that constraint"},
    {"generic resource", REFUSED, "", "`sinfo -o %G` lists what nodes have"},
    {"license", REFUSED, "lines", "`scontrol show licenses` lists them"},
    {"unrecognized option", REFUSED, "lines", "`sbatch --help` lists them"},
};

bool slurm_blames_this_machine(const char *said)
{
    bool blames = false;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(refusals); i++) {
        blames =
            blames || (refusals[i].kind == HERE && strcasestr(said, refusals[i].words) != NULL);
    }
    return blames;
}

bool slurm_has_no_accounting(const char *said)
{
    return strcasestr(said, "accounting storage is disabled") != NULL;
}

const char *slurm_said_line(const char *said, struct weir_arena *arena)
{
    const char *best = "";
    size_t best_len = 0;
    bool is_best_error = false;
    for (const char *line = said; *line != '\0';) {
        size_t len = strcspn(line, "\n");
        bool is_hint = strncmp(line, "Try \"", 5) == 0;
        bool is_error = memmem(line, len, "error", 5) != NULL ||
                        memmem(line, len, "fail", 4) != NULL ||
                        memmem(line, len, "fatal", 5) != NULL;
        if (len > 0 && !is_hint && (is_error || !is_best_error)) {
            best = line;
            best_len = len;
            is_best_error = is_error;
        }
        line += len + (line[len] == '\n');
    }
    static const char *const before[] = {"error: ", "fatal: ", "failure: "};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(before); i++) {
        const char *at = memmem(best, best_len, before[i], strlen(before[i]));
        if (at != NULL) {
            best_len -= (size_t)(at + strlen(before[i]) - best);
            best = at + strlen(before[i]);
        }
    }
    return weir_arena_memdup(arena, best, WEIR_MIN(best_len, (size_t)LINE_MAX_BYTES));
}

weir_status slurm_refusal(const char *command, const char *said, struct weir_error *err)
{
    struct weir_arena arena;
    weir_status status = WEIR_ERR_INVALID;
    weir_arena_init(&arena, 0);
    const char *line = slurm_said_line(said, &arena);
    const struct refusal *refusal = NULL;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(refusals) && refusal == NULL; i++) {
        refusal = strcasestr(said, refusals[i].words) != NULL ? &refusals[i] : NULL;
    }
    if (refusal != NULL) {
        status =
            weir_error_set(err, refusal->kind == REFUSED ? WEIR_ERR_INVALID : WEIR_ERR_UNAVAILABLE,
                           "%s%sSlurm's %s says \"%s\": %s", refusal->option,
                           refusal->option[0] != '\0' ? ": " : "", command, line, refusal->cure);
    } else {
        status = weir_error_set(err, WEIR_ERR_INVALID, "Slurm's %s says \"%s\"", command,
                                line[0] != '\0' ? line : "nothing");
    }
    weir_arena_fini(&arena);
    return status;
}
