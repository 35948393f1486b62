/** What applying a document would come to: the engine's actions, in words. The same step as an apply takes, so that
 *  nothing is foretold by other rules than those that hold. */
#include "api/core/answer.h"
#include "api/core/views.h"
#include "api/ion/ion.h"

#include "ion/ion_step.h"

static const char *sentence(const struct weir_ion_action *action, struct weir_arena *arena)
{
    switch (action->type) {
    case WEIR_ION_ACTION_START_TRAINING:
        return weir_arena_printf(arena, "Run %lld of \"%s\" starts: %s.", (long long)action->number,
                                 action->pipeline,
                                 action->message != NULL ? action->message : "applied");
    case WEIR_ION_ACTION_STOP_TRAINING:
        return weir_arena_printf(arena, "The run of \"%s\" that is in progress is stopped.",
                                 action->pipeline);
    case WEIR_ION_ACTION_START_PREDICTION:
        return weir_arena_printf(arena, "The replicas of \"%s\" start.", action->pipeline);
    case WEIR_ION_ACTION_STOP_PREDICTION:
        return weir_arena_printf(arena, "The replicas of \"%s\" that run are stopped.",
                                 action->pipeline);
    case WEIR_ION_ACTION_DEPLOYED:
        return weir_arena_printf(arena, "\"%s\" is given deployment %lld.", action->pipeline,
                                 (long long)action->number);
    case WEIR_ION_ACTION_SHIFT:
        return weir_arena_printf(arena, "The deployment of link %s gets other versions.",
                                 action->pipeline);
    case WEIR_ION_ACTION_DECIDED:
        return weir_arena_printf(arena, "%s: version %lld: %s (%s).", action->decision.link,
                                 (long long)action->decision.version, action->decision.verdict,
                                 action->decision.rule);
    case WEIR_ION_ACTION_ALERT:
        return weir_arena_printf(arena, "An alert is raised: %s", action->message);
    default:
        return NULL; /* Said by the others, or of no matter to people. */
    }
}

static const char *kind_of(enum weir_ion_action_type type)
{
    switch (type) {
    case WEIR_ION_ACTION_START_TRAINING:
    case WEIR_ION_ACTION_START_PREDICTION:
        return "start";
    case WEIR_ION_ACTION_STOP_TRAINING:
    case WEIR_ION_ACTION_STOP_PREDICTION:
        return "stop";
    case WEIR_ION_ACTION_DEPLOYED:
    case WEIR_ION_ACTION_SHIFT:
        return "deploy";
    case WEIR_ION_ACTION_DECIDED:
        return "decide";
    default:
        return "alert";
    }
}

weir_status api_ion_plan(struct api_call *call, struct weir_txn *txn, const char *name,
                         const struct weir_ion_actions *actions, json_t *warnings,
                         struct weir_error *err)
{
    struct api_effect *effects = WEIR_ARENA_ARRAY(call->arena, actions->n + 1, struct api_effect);
    size_t n = 0;
    json_t *view;
    for (size_t i = 0; i < actions->n; i++) {
        const struct weir_ion_action *action = &actions->items[i];
        bool is_of_link = action->type == WEIR_ION_ACTION_DECIDED;
        effects[n] = (struct api_effect){.kind = kind_of(action->type),
                                         .pipeline = action->pipeline,
                                         .link = is_of_link ? action->decision.link : NULL,
                                         .text = sentence(action, call->arena)};
        n += effects[n].text != NULL;
    }
    WEIR_TRY(api_ion_look(call, txn, name, &view, err));
    weir_view_add_to_json(api_applied_view(),
                          &(struct api_applied){json_incref(warnings), effects, n}, view);
    api_answer(call, view);
    return WEIR_OK;
}
