#include "ion/policy.h"

#include "base/record.h"
#include "store/rights.h"

#include <inttypes.h>
#include <string.h>

#define APPROVALS_MAX 16

struct weir_policy_manual {
    int64_t approvals;
    const json_t *roles_json; /**< NULL once `roles` is made of it. */
    char *roles;              /**< "approver, admin"; NULL: any. */
    bool four_eyes;
    int64_t timeout_s;
    char *on_timeout;
};

/** Is a word among those of a list with ", " between them? */
static bool is_listed(const char *list, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = list; at != NULL && *at != '\0';) {
        size_t n = strcspn(at, ",");
        if (n == len && strncmp(at, word, len) == 0) {
            return true;
        }
        at += n;
        at += strspn(at, ", ");
    }
    return false;
}

static weir_status check(void *options, const char *where, struct weir_arena *arena,
                         struct weir_error *err)
{
    struct weir_policy_manual *manual = options;
    size_t i;
    json_t *role;
    json_array_foreach((json_t *)manual->roles_json, i, role)
    {
        enum weir_role known;
        struct weir_error cause = {0};
        const char *name = json_string_value(role);
        weir_status status = weir_role_from_text(name != NULL ? name : "", &known, &cause);
        if (status != WEIR_OK && (name == NULL || !weir_name_is_valid(name))) {
            return weir_error_set(err, status, "%s.roles[%zu]: %s", where, i, cause.message);
        }
        /* Another name is a custom role's: whether there is one, the server says on applying. */
        name = status == WEIR_OK ? weir_role_text(known) : name;
        manual->roles = manual->roles == NULL
                            ? weir_arena_strdup(arena, name)
                            : weir_arena_printf(arena, "%s, %s", manual->roles, name);
    }
    manual->roles_json = NULL; /* It lives no longer than the document's JSON. */
    if (manual->on_timeout != NULL && strcmp(manual->on_timeout, "approve") != 0 &&
        strcmp(manual->on_timeout, "reject") != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s.on_timeout: \"%.40s\" is not approve or reject", where,
                              manual->on_timeout);
    }
    if (manual->on_timeout != NULL && manual->timeout_s == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s.on_timeout: says nothing without timeout_s", where);
    }
    return WEIR_OK;
}

static const char *name_of(const struct weir_policy_approval *approval)
{
    return approval->by != NULL ? approval->by : "";
}

/** Who approved: "ann and bob". Inputs from outside may name very many: one text, not one for each. */
static const char *names_of(const struct weir_policy_inputs *inputs, struct weir_arena *arena)
{
    size_t size = 1;
    for (size_t i = 0; i < inputs->n_approvals; i++) {
        size += strlen(" and ") + strlen(name_of(&inputs->approvals[i]));
    }
    char *names = weir_arena_alloc(arena, size), *end = names;
    *end = '\0';
    for (size_t i = 0; i < inputs->n_approvals; i++) {
        end = stpcpy(end, i == 0 ? "" : i + 1 == inputs->n_approvals ? " and " : ", ");
        end = stpcpy(end, name_of(&inputs->approvals[i]));
    }
    return names;
}

static struct weir_policy_verdict timed_out(const struct weir_policy_manual *manual,
                                            struct weir_arena *arena)
{
    bool approves = manual->on_timeout != NULL && strcmp(manual->on_timeout, "approve") == 0;
    return (struct weir_policy_verdict){
        .verdict = approves ? WEIR_VERDICT_PASS : WEIR_VERDICT_REJECT,
        .rule =
            weir_arena_printf(arena, "manual: no answer within %" PRId64 " s, and on_timeout is %s",
                              manual->timeout_s, approves ? "approve" : "reject")};
}

static struct weir_policy_verdict decide(const struct weir_policy_inputs *inputs,
                                         const void *options, struct weir_arena *arena)
{
    const struct weir_policy_manual *manual = options;
    const char *names = names_of(inputs, arena), *rule;
    int64_t n = (int64_t)inputs->n_approvals;
    int64_t until_ms = manual->timeout_s > 0 ? inputs->since_ms + manual->timeout_s * 1000 : 0;
    if (n >= manual->approvals) {
        return weir_policy_answer(WEIR_VERDICT_PASS,
                                  weir_arena_printf(arena, "manual: approved by %s", names));
    }
    if (until_ms > 0 && until_ms <= inputs->now_ms) {
        /* Nobody wants it: then it does not take the place of a newer one. */
        return inputs->serving_version > inputs->candidate_version
                   ? weir_policy_newer_serves("manual", inputs, arena)
                   : timed_out(manual, arena);
    }
    if (n > 0) {
        rule = weir_arena_printf(arena, "manual: %" PRId64 " of %" PRId64 " approvals, by %s", n,
                                 manual->approvals, names);
    } else if (manual->approvals == 1) {
        rule = "manual: a person must approve it";
    } else {
        rule = weir_arena_printf(arena, "manual: %" PRId64 " people must approve it",
                                 manual->approvals);
    }
    return (struct weir_policy_verdict){
        .verdict = WEIR_VERDICT_WAIT, .rule = rule, .until_ms = until_ms};
}

static bool has_approved(const struct weir_policy_inputs *inputs, const char *name)
{
    for (size_t i = 0; i < inputs->n_approvals; i++) {
        if (inputs->approvals[i].by != NULL && strcmp(inputs->approvals[i].by, name) == 0) {
            return true;
        }
    }
    return false;
}

static weir_status admit(const struct weir_policy_inputs *inputs, const void *options,
                         const struct weir_policy_person *person, struct weir_error *err)
{
    const struct weir_policy_manual *manual = options;
    bool has_role = manual->roles == NULL;
    for (const char *const *role = person->roles; role != NULL && *role != NULL; role++) {
        has_role = has_role || is_listed(manual->roles, *role);
    }
    if (manual->four_eyes && is_listed(inputs->made_by, person->name)) {
        return weir_error_set(err, WEIR_ERR_DENIED,
                              "%s made version %" PRId64
                              " (triggered its training, or registered it), and four eyes must "
                              "see it: somebody else must approve it",
                              person->name, inputs->candidate_version);
    }
    if (!has_role) {
        return weir_error_set(
            err, WEIR_ERR_DENIED,
            "approvals of version %" PRId64 " count from these roles only: %s; %s has %s here",
            inputs->candidate_version, manual->roles, person->name,
            person->roles != NULL && person->roles[0] != NULL ? person->roles[0] : "no role");
    }
    if (has_approved(inputs, person->name)) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "%s has approved version %" PRId64 " already: %" PRId64
                              " different people must",
                              person->name, inputs->candidate_version, manual->approvals);
    }
    return WEIR_OK;
}

// clang-format off
static const struct weir_option options_of[] = {
    WEIR_OPT_JSON(weir_policy_manual, approvals, "approvals", INT, 0, "1", 1, APPROVALS_MAX, "How many different people must approve"),
    WEIR_OPT_JSON(weir_policy_manual, roles_json, "roles", TEXTS, 0, NULL, 0, 0, "Whose approval counts, by their roles on the platform or in the ION's project; left out: each role that may review"),
    WEIR_OPT_JSON(weir_policy_manual, four_eyes, "four-eyes", BOOL, 0, NULL, 0, 0, "Who triggered the training or registered the version cannot approve it"),
    WEIR_OPT_JSON(weir_policy_manual, timeout_s, "timeout-s", INT, 0, NULL, 0, 315360000, "How long it waits for people; 0: for ever"),
    WEIR_OPT_JSON(weir_policy_manual, on_timeout, "on-timeout", TEXT, 0, NULL, 0, 0, "What becomes of it then: approve or reject; left out: reject"),
};
// clang-format on

static const struct weir_policy_ops ops = {.check = check, .decide = decide, .admit = admit};

const struct weir_kind weir_policy_manual = {
    .name = "manual",
    .doc = "A version waits for people: `weir approve` or `weir reject`.",
    WEIR_KIND_OPTIONS(weir_policy_manual, options_of),
    .ops = &ops,
};
