/**
 * Roles by name: those of Weir itself (store/rights.h), and those that admins define.
 *
 * A custom role is a set of rights with nouns of projects. It is given to users and groups in
 * projects, and to tokens, by its name, as a role of Weir itself is; it is none of the platform.
 * Nothing of it is kept in memory from one request to the next: what a role gives is read with who
 * calls, so that a change counts from the next request on. A name that no role has (any more) gives
 * nothing.
 */
#ifndef WEIR_STORE_ROLE_H
#define WEIR_STORE_ROLE_H

#include "base/arena.h"
#include "base/record.h"
#include "store/rights.h"
#include "store/store.h"

#define WEIR_CUSTOM_ROLES_MAX 64

struct weir_custom_role {
    char *name;
    char *description;
    char *rights; /**< weir_rights_text with "," between. */
    char *created_by;
    int64_t created_ms;
    char *changed_by;
    int64_t changed_ms;
};

extern const struct weir_resource weir_custom_role_resource;

/** What a name of a role stands for. */
struct weir_role_found {
    const char *name; /**< The one of today, for a name of before. */
    enum weir_role
        role; /**< MEMBER for a custom one: on the platform it gives what a member has. */
    weir_rights rights;
    bool is_custom;
    bool is_of_projects; /**< It can be given in a project. */
};

/** One of Weir's own, or a custom one. Text lies in the arena or is static. Cost: none for Weir's
 *  own; a look-up by key for the others. @return INVALID with the names of Weir's own. */
weir_status weir_role_find(struct weir_txn *txn, const char *name, struct weir_arena *arena,
                           struct weir_role_found *out, struct weir_error *err) WEIR_MUST_CHECK;

/** The rights of a grant: of a role's name, and of the custom role of that name (its `rights`; NULL:
 *  there is none). @return false: no role has the name. */
bool weir_role_grants(const char *name, const char *custom_rights, weir_rights *out);

/** May a custom role have this name? @return INVALID: no name's form, or one of Weir's own. */
weir_status weir_custom_role_check_name(const char *name, struct weir_error *err) WEIR_MUST_CHECK;

/** Who has the role: "user ann in project p", "token t of bob", sorted; in the arena. */
weir_status weir_role_holders(struct weir_txn *txn, const char *name, struct weir_arena *arena,
                              char ***out, size_t *out_n, struct weir_error *err) WEIR_MUST_CHECK;

#endif
