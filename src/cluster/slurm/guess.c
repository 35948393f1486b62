#include "cluster/slurm/check.h"
#include "cluster/slurm/command.h"
#include "cluster/slurm/text.h"

#include <pwd.h>
#include <string.h>
#include <unistd.h>

#define PASSWD_BYTES 16384

enum { DEFAULT_ACCOUNT, ACCOUNT, DEFAULT_QOS, N_FIELDS };

void slurm_association_read(const char *text, const char *account, struct weir_arena *arena,
                            const char **out_account, const char **out_qos)
{
    const char *fields[N_FIELDS];
    *out_account = "";
    *out_qos = "";
    while (slurm_next_fields(&text, N_FIELDS, arena, fields)) {
        const char *wanted = account != NULL ? account : fields[DEFAULT_ACCOUNT];
        if (fields[ACCOUNT][0] != '\0' && strcmp(wanted, fields[ACCOUNT]) == 0) {
            *out_account = fields[ACCOUNT];
            *out_qos = fields[DEFAULT_QOS];
            return;
        }
    }
}

/* The one with the mark "*". */
static const char *default_partition(const char *text, struct weir_arena *arena)
{
    while (*text != '\0') {
        size_t len = strcspn(text, "\n");
        if (len > 1 && text[len - 1] == '*') {
            return weir_arena_memdup(arena, text, len - 1);
        }
        text += len + (text[len] == '\n');
    }
    return NULL;
}

static void fill_in(json_t *document, const char *name, const char *value)
{
    if (value != NULL && value[0] != '\0' && json_object_get(document, name) == NULL) {
        (void)json_object_set_new(document, name, json_string(value));
    }
}

/* An option that is given already, which a command needs. */
static char *text_of(const json_t *document, const char *name, struct weir_arena *arena)
{
    return weir_arena_strdup(arena, json_string_value(json_object_get(document, name)));
}

weir_status slurm_guess(json_t *document, struct weir_arena *arena, struct weir_error *err)
{
    const struct slurm_options options = {.bin = text_of(document, "bin", arena),
                                          .conf = text_of(document, "conf", arena)};
    const char *text, *account = "", *qos = "";
    struct weir_error no_accounts;
    WEIR_TRY(slurm_ask(&options, SLURM_WORDS("sinfo", "-h", "-o", "%P"), arena, &text, err));
    fill_in(document, "partition", default_partition(text, arena));
    struct passwd entry, *own = NULL;
    char *room = weir_arena_alloc(arena, PASSWD_BYTES);
    (void)getpwuid_r(getuid(), &entry, room, PASSWD_BYTES, &own);
    const char *user = weir_arena_printf(arena, "name=%s", own != NULL ? own->pw_name : "");
    if (own != NULL &&
        slurm_ask(&options,
                  SLURM_WORDS("sacctmgr", "-n", "-P", "show", "user", user, "withassoc",
                              "format=defaultaccount,account,defaultqos"),
                  arena, &text, &no_accounts) == WEIR_OK) {
        slurm_association_read(text, text_of(document, "account", arena), arena, &account, &qos);
        fill_in(document, "account", account);
        fill_in(document, "qos", qos);
    }
    return WEIR_OK;
}
