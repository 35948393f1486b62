/** Who is on an ION's lists. A name that nobody has would change nothing and look as if it did:
 * only people whom a gallery of the ION knows are taken, unless the caller insists. */
#include "api/core/answer.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/core/views.h"
#include "api/ion/ion.h"
#include "base/names.h"
#include "control/control.h"
#include "control/enrolled.h"

#include <string.h>

/** A change of one person's list: looked at on a snapshot, checked, then made. */
struct change {
    struct api_call *call;
    const char *list; /**< NULL: off both. */
    struct weir_ion_state ion;
};

static weir_status look_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct change *change = context;
    return api_ion_load(change->call, txn, &change->ion, err);
}

static weir_status set_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct change *change = context;
    struct api_call *call = change->call;
    struct control control = api_control(call);
    struct weir_ion_state state;
    bool has_changed;
    json_array_clear(call->publish);
    WEIR_TRY(api_ion_load(call, txn, &state, err));
    WEIR_TRY(weir_ion_member_set(txn, call->params[0], call->params[1], change->list, call->actor,
                                 call->now_ms, &has_changed, err));
    if (!has_changed) {
        return WEIR_OK;
    }
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_LISTS, .actor = call->actor};
    WEIR_TRY(control_ion_event(&control, txn, call->params[0], &event, err));
    return control_log(
        &control, txn, "ions", "list_changed",
        weir_arena_printf(call->arena, "ion/%s", call->params[0]),
        change->list != NULL
            ? weir_arena_printf(call->arena, "%s is on the list: %s", call->params[1], change->list)
            : weir_arena_printf(call->arena, "%s is on no list any more", call->params[1]),
        err);
}

static bool is_member(const struct weir_ion_state *ion, const char *person)
{
    for (size_t i = 0; i < ion->n_members; i++) {
        if (strcmp(ion->members[i].person, person) == 0) {
            return true;
        }
    }
    return false;
}

/** "; did you mean "ann"?", or nothing. */
static const char *did_you_mean(struct api_call *call, const char *nearest)
{
    return nearest != NULL ? weir_arena_printf(call->arena, "; did you mean \"%s\"?", nearest) : "";
}

static weir_status check_enrolled(const struct change *change, struct weir_error *err)
{
    struct api_call *call = change->call;
    struct enrolled_answer found;
    WEIR_TRY(
        enrolled_find(call->api->blobs, &change->ion, call->params[1], call->arena, &found, err));
    if (found.is_enrolled) {
        return WEIR_OK;
    }
    if (!found.has_gallery) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "ION \"%s\" knows nobody yet: freeze its gallery's dataset first, or "
                              "insist (--not-enrolled, \"not_enrolled\": true) on listing \"%s\"",
                              call->params[0], call->params[1]);
    }
    return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                          "nobody in the gallery of ION \"%s\" is called \"%s\"%s To list somebody "
                          "who is not enrolled, insist: --not-enrolled, \"not_enrolled\": true",
                          call->params[0], call->params[1],
                          found.nearest != NULL ? did_you_mean(call, found.nearest) : ".");
}

weir_status api_member_put(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    static const char *const fields[] = {"list", "not_enrolled", NULL};
    struct change change = {.call = call};
    bool may_be_unknown;
    (void)txn;
    WEIR_TRY(api_body_only(call, fields, err));
    WEIR_TRY(api_body_text(call, "list", &change.list, err));
    WEIR_TRY(api_body_bool(call, "not_enrolled", false, &may_be_unknown, err));
    const char *list = change.list;
    if (list == NULL || (strcmp(list, "allow") != 0 && strcmp(list, "deny") != 0)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.list: expected \"allow\" or \"deny\"");
    }
    WEIR_TRY(api_read(call, look_in, &change, err));
    if (!may_be_unknown) {
        WEIR_TRY(check_enrolled(&change, err));
    }
    WEIR_TRY(api_write(call, set_in, &change, err));
    API_ANSWER(call, api_listed_person, .ion = call->params[0], .person = call->params[1],
               .list = list);
    return WEIR_OK;
}

/** Who is on no list is off it already, but a name that nobody has is not who was meant. */
static weir_status check_known(const struct change *change, struct weir_error *err)
{
    struct api_call *call = change->call;
    struct enrolled_answer found;
    struct weir_nearest nearest = {0};
    WEIR_TRY(
        enrolled_find(call->api->blobs, &change->ion, call->params[1], call->arena, &found, err));
    for (size_t i = 0; i < change->ion.n_members; i++) {
        weir_nearest_see(&nearest, call->params[1], strlen(call->params[1]),
                         change->ion.members[i].person);
    }
    if (found.is_enrolled || change->ion.n_members == 0) {
        return WEIR_OK;
    }
    return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                          "\"%s\" is on no list of ION \"%s\" and not in its gallery%s",
                          call->params[1], call->params[0], did_you_mean(call, nearest.name));
}

weir_status api_member_delete(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct change change = {.call = call};
    (void)txn;
    WEIR_TRY(api_read(call, look_in, &change, err));
    if (!is_member(&change.ion, call->params[1])) {
        WEIR_TRY(check_known(&change, err));
    }
    WEIR_TRY(api_write(call, set_in, &change, err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}
