/**
 * Rights: what a role may do with which noun, as a matrix (rights.def). A set of rights is a bit
 * mask. Roles are presets of rights; a person has one on the platform, and may have others in
 * projects. An admin may define further roles of projects (store/role.h), which are sets of rights
 * with nouns of projects. Pure.
 */
#ifndef WEIR_STORE_RIGHTS_H
#define WEIR_STORE_RIGHTS_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum weir_role {
    WEIR_ROLE_MEMBER,         /**< Nothing on the platform but to see it: what projects give. */
    WEIR_ROLE_VIEWER,         /**< Read. */
    WEIR_ROLE_APPROVER,       /**< And review models. */
    WEIR_ROLE_OPERATOR,       /**< And roll back, lists, alerts, cancel, trigger, drain. */
    WEIR_ROLE_DATA_SCIENTIST, /**< Read; datasets, jobs, runs, models, IONs. */
    WEIR_ROLE_ML_ENGINEER,    /**< What operators and data scientists may. */
    WEIR_ROLE_ADMIN,          /**< Everything. */
    WEIR_ROLE_AGENT,          /**< A node's agent: node, desired tasks, task status and logs. */
    WEIR_ROLE_WORKER, /**< A task's attempt: its own run, model, pipeline, decisions, health.
                                 No stored token has it. */
    WEIR_ROLE_COUNT
};

enum weir_right_scope {
    WEIR_RIGHT_IS_OF_PROJECT,  /**< With a noun of a project: a role there suffices. */
    WEIR_RIGHT_IS_OF_PLATFORM, /**< With a noun of the platform. */
    WEIR_RIGHT_IS_OF_SELF,     /**< With what is one's own. */
};

enum weir_right {

#define X(right, noun, verb, scope, who) WEIR_RIGHT_##right,
#include "store/rights.def"
#undef X
    WEIR_RIGHT_COUNT
};

typedef uint64_t weir_rights;
#define WEIR_RIGHTS_OF(right) ((weir_rights)1 << (right))
#define WEIR_RIGHTS_ALL       (WEIR_RIGHTS_OF(WEIR_RIGHT_COUNT) - 1)

/** "datasets", "change". Static. */
const char *weir_right_noun(enum weir_right right);
const char *weir_right_verb(enum weir_right right);
enum weir_right_scope weir_right_scope(enum weir_right right);

/** Those with nouns of projects: all that a role in a project can give there. */
weir_rights weir_rights_of_projects(void);

/** "read models"; "models read" is taken too. @return INVALID with what was probably meant. */
weir_status weir_right_from_text(const char *text, enum weir_right *out,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** "read models,review ions" in the matrix's order; `between` is "," or ", ". "" for none. */
char *weir_rights_text(weir_rights rights, const char *between, struct weir_arena *arena);

/** What weir_rights_text wrote with "," between. A right that this version does not know gives
 *  nothing. Cost: one walk over the matrix if the order is the matrix's. */
weir_rights weir_rights_read(const char *text);

/** With "look" at each noun that they "read", and who names models labels them, too. */
weir_rights weir_rights_close(weir_rights rights);

/** "data-scientist" … */
const char *weir_role_text(enum weir_role role);
/** The old word "scientist" is an ML engineer. @return INVALID with the names there are. */
weir_status weir_role_from_text(const char *text, enum weir_role *out,
                                struct weir_error *err) WEIR_MUST_CHECK;

weir_rights weir_role_rights(enum weir_role role);

/** May a role be given in a project? Neither member nor agent nor worker. */
bool weir_role_is_of_projects(enum weir_role role);

/** Is `role` one that may do all that `needed` may? */
bool weir_role_covers(enum weir_role role, enum weir_role needed);

#endif
