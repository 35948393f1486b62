/** Roles as records, and who may give them. */
#ifndef WEIR_API_ROLE_H
#define WEIR_API_ROLE_H

#include "base/json.h"
#include "base/record.h"
#include "store/role.h"

struct api_call;

/** A role and what it may: from the matrix (store/rights.def), or defined (store/role.h). */
extern const struct weir_resource weir_role_resource;

/** A new list of what a set of rights lets one do: ["read jobs", "submit jobs" …]. */
json_t *api_rights_list(weir_rights rights);

/** The answer is this role. */
void api_role_answer(struct api_call *call, const struct weir_custom_role *role);

/** Nobody gives or takes rights that they do not have themselves: the caller must have all that
 *  `rights` allow with nouns of projects, in this project (NULL: in all of them). `what` begins the
 *  refusal's sentence: "the role \"x\"". @return DENIED. */
weir_status api_check_giver(const struct api_call *call, const char *project, weir_rights rights,
                            const char *what, struct weir_error *err) WEIR_MUST_CHECK;

/** The role of this name, which can be given in projects. @return INVALID, which begins with
 *  "$.role: ". */
weir_status api_role_of_projects(struct api_call *call, struct weir_txn *txn, const char *name,
                                 struct weir_role_found *out,
                                 struct weir_error *err) WEIR_MUST_CHECK;

#endif
