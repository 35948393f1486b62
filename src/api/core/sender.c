#include "api/core/sender.h"

#include "control/sender.h"
#include "framework/framework.h"
#include "job/attempt.h"

#include <string.h>

struct finding {
    struct api_call *call;
    struct api_sender *sender;
};

static weir_rights rights_in(const struct weir_identity *identity, const char *project)
{
    weir_rights rights = identity->rights;
    for (size_t i = 0; project != NULL && i < identity->n_grants; i++) {
        const struct weir_grant *grant = &identity->grants[i];
        rights |= strcmp(grant->project, project) == 0 ? grant->rights : 0;
    }
    return weir_rights_close(rights);
}

static weir_status find_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct finding *finding = context;
    const struct weir_attempt *attempt = finding->call->attempt;
    const struct control_sender_of of = {.job = attempt->job,
                                         .kind = attempt->kind,
                                         .ion = attempt->ion,
                                         .created_by = attempt->created_by,
                                         .limited_to = attempt->limited_to};
    struct weir_identity identity;
    WEIR_TRY(control_sender_find(txn, &of, finding->call->arena, &finding->sender->name, &identity,
                                 err));
    finding->sender->rights = rights_in(&identity, attempt->project);
    return WEIR_OK;
}

/** Find the sender of the call's task, once: call->sender. */
static weir_status find_sender(struct api_call *call, struct weir_error *err)
{
    if (call->sender != NULL) {
        return WEIR_OK;
    }
    struct finding finding = {call, WEIR_ARENA_NEW(call->arena, struct api_sender)};
    *finding.sender = (struct api_sender){0};
    WEIR_TRY(weir_store_read(call->api->store, find_in, &finding, err));
    call->sender = finding.sender;
    return WEIR_OK;
}

/** May the sender do this? find_sender was called. */
static bool sender_may(const struct api_call *call, enum weir_right right)
{
    return (call->sender->rights & WEIR_RIGHTS_OF(right)) != 0;
}

weir_status api_sender_check(struct api_call *call, enum weir_right right, struct weir_error *err)
{
    WEIR_TRY(find_sender(call, err));
    const struct api_sender *sender = call->sender;
    return sender_may(call, right)
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_DENIED,
                                "%s %s: a task may do no more than who it works for, and \"%s\" "
                                "has no right to %s %s in project %s now",
                                call->request->method, call->route->pattern,
                                sender->name != NULL ? sender->name : "nobody",
                                weir_right_verb(right), weir_right_noun(right),
                                call->attempt->project);
}

bool api_task_is_weirs(const struct api_call *call)
{
    const struct weir_job_ops *ops = weir_job_ops_of(call->attempt->kind);
    return ops != NULL && ops->has_known_exits;
}
