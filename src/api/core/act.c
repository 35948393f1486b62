#include "api/core/act.h"

#include "api/auth/audit.h"
#include "api/core/call.h"
#include "job/attempt.h"

#include <ctype.h>
#include <string.h>

#define PREFIX "/api/v1/"

bool act_is_look(const struct api_call *call)
{
    return (call->route->flags & ROUTE_SHOWS) != 0 &&
           (strcmp(call->request->method, "GET") == 0 || (call->route->flags & ROUTE_ASKS) != 0);
}

bool act_is_one(const struct api_call *call)
{
    enum weir_role role = call->identity.role;
    bool is_change = strcmp(call->request->method, "GET") != 0 &&
                     strcmp(call->request->method, "HEAD") != 0 &&
                     (call->route->flags & ROUTE_ASKS) == 0 && !call->is_trial;
    bool is_beyond = (call->route->flags & ROUTE_BEYOND) != 0 && !act_is_look(call);
    return (is_change || act_is_look(call)) && role != WEIR_ROLE_AGENT &&
           (role != WEIR_ROLE_WORKER || is_beyond);
}

bool act_is_wanted(const struct api_call *call)
{
    return act_is_one(call) && ((call->route->flags & ROUTE_FLOW) == 0 ||
                                !audit_has_flow(call->api->audit, call, act_subject(call)));
}

void act_is_kept(const struct api_call *call)
{
    if (call->is_audited && (call->route->flags & ROUTE_FLOW) != 0) {
        audit_keep_flow(call->api->audit, call, act_subject(call));
    }
}

/* "jobs" is about a job. Others are as they are: "retention", "session". */
static const char *singular(struct weir_arena *arena, const char *word, size_t len)
{
    bool is_plural = len > 1 && word[len - 1] == 's' && word[len - 2] != 's';
    return weir_arena_printf(arena, "%.*s", (int)(is_plural ? len - 1 : len), word);
}

/* The files of a folder are one flow of their project. */
static const char *project_of_flow(const struct api_call *call)
{
    if (strcmp(call->route->pattern, PREFIX "blobs/{sha256}") != 0) {
        return NULL;
    }
    return call->attempt != NULL ? call->attempt->project
                                 : weir_http_request_query(call->request, "project");
}

const char *act_subject(const struct api_call *call)
{
    const char *project = project_of_flow(call);
    if (project != NULL) {
        return weir_arena_printf(call->arena, "project/%.200s", project);
    }
    const char *word = call->route->pattern + 1;
    if (call->route->noun != NULL) {
        word = call->route->noun;
    } else if (strncmp(call->route->pattern, PREFIX, sizeof PREFIX - 1) == 0) {
        word = call->route->pattern + sizeof PREFIX - 1;
    }
    size_t len = strcspn(word, "/");
    const char *noun = singular(call->arena, word, len);
    const char *name = call->params[0];
    for (size_t i = 0; name == NULL && i < 2; i++) {
        name = json_string_value(json_object_get(call->body, i == 0 ? "name" : "id"));
    }
    return name != NULL ? weir_arena_printf(call->arena, "%s/%.200s", noun, name) : noun;
}

/* "ions_review": what the caller had the right to. Looks are many: they are of the other trail (store/chain.h), where they push
 * out no change. */
static char *kind_of(const struct api_call *call)
{
    enum weir_right right = call->route->right;
    if (act_is_look(call)) {
        return weir_arena_strdup(call->arena, "people_shown");
    }
    char *kind =
        weir_arena_printf(call->arena, "%s_%s", weir_right_noun(right), weir_right_verb(right));
    for (char *p = kind; *p != '\0'; p++) {
        *p = isalnum((unsigned char)*p) ? *p : '_';
    }
    return kind;
}

weir_status act_write(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    if (call->is_audited) {
        return WEIR_OK;
    }
    /* What the route does, as far as its first clause says it: "Put somebody on a list". */
    const char *summary =
        call->route->summary != NULL ? call->route->summary : call->route->pattern + 1;
    const char *message =
        weir_arena_printf(call->arena, "%.*s (%s %.300s)", (int)strcspn(summary, ":;,("), summary,
                          call->request->method, call->request->path);
    return audit_act(call, txn, kind_of(call), act_subject(call), message, err);
}
