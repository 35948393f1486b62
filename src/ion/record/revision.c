#include "ion/revision.h"

#include "ion/ion.h"
#include "store/noun.h"
#include "store/stmt.h"

#include <inttypes.h>
#include <string.h>

// clang-format off: a table
static const struct weir_field fields[] = {
    WEIR_FIELD(weir_ion_revision, id, TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "",
               "ION:NUMBER"),
    WEIR_FIELD(weir_ion_revision, ion, TEXT, WEIR_FIELD_READ_ONLY, "", "ION"),
    WEIR_FIELD(weir_ion_revision, revision, INT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "",
               "Its number"),
    WEIR_FIELD_HIDING(weir_ion_revision, document, WEIR_FIELD_READ_ONLY, WEIR_ION_SECRETS, "",
                      "What was applied; secrets are shown as ***"),
    WEIR_FIELD(weir_ion_revision, actor, TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "",
               "Who applied it"),
    WEIR_FIELD(weir_ion_revision, limited_to, TEXT, WEIR_FIELD_READ_ONLY, "",
               "Role of the token that it was applied with: what it starts may no more"),
    WEIR_FIELD(weir_ion_revision, time_ms, TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms",
               "When"),
};
// clang-format on

const struct weir_resource weir_ion_revision_resource =
    WEIR_RESOURCE("revision", "ion_revisions", weir_ion_revision, fields);

const struct weir_noun weir_noun_ion_revision = {
    "ion_revisions", WEIR_OF(ion, ions, name),
    .stays = "one of each apply, until the ION is deleted",
    .captured = WEIR_CAPTURED("revisions", 20, .resource = &weir_ion_revision_resource, .by = "ion",
                              .time = "time_ms", .since_always = true)};

static const char sql_keep[] =
    "INSERT INTO ion_revisions (id, ion, revision, document, actor, time_ms)"
    " VALUES (:id, :ion, :revision, :document, :actor, :time) ON CONFLICT (id) DO NOTHING";

weir_status weir_ion_revision_keep(struct weir_txn *txn, const struct weir_ion_state *state,
                                   const struct weir_ion_actions *actions, int64_t now_ms,
                                   struct weir_error *err)
{
    const struct weir_ion *ion = &state->ion;
    const char *actor = NULL;
    char id[WEIR_FIELD_NAME_MAX_BYTES + 24];
    for (size_t i = 0; i < actions->n; i++) {
        const struct weir_ion_action *action = &actions->items[i];
        if (action->type == WEIR_ION_ACTION_EVENT && strcmp(action->kind, "ion_applied") == 0) {
            actor = action->actor;
        }
    }
    if (actor == NULL) {
        return WEIR_OK; /* no document was applied */
    }
    (void)snprintf(id, sizeof id, "%s:%" PRId64, ion->name, ion->revision);
    return weir_txn_exec(txn, sql_keep,
                         WEIR_BINDS(WEIR_BIND_TEXT("id", id), WEIR_BIND_TEXT("ion", ion->name),
                                    WEIR_BIND_INT("revision", ion->revision),
                                    WEIR_BIND_TEXT("document", ion->document),
                                    WEIR_BIND_TEXT("actor", actor), WEIR_BIND_INT("time", now_ms)),
                         NULL, err);
}

static const char sql_limit[] =
    "UPDATE ion_revisions SET limited_to = :limit WHERE ion = :ion AND revision = :revision";

weir_status weir_ion_revision_limit(struct weir_txn *txn, const char *ion, int64_t revision,
                                    const char *limited_to, struct weir_error *err)
{
    return weir_txn_exec(txn, sql_limit,
                         WEIR_BINDS(WEIR_BIND_TEXT("ion", ion), WEIR_BIND_INT("revision", revision),
                                    WEIR_BIND_TEXT("limit", limited_to)),
                         NULL, err);
}
