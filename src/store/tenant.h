/**
 * Tenants: groups of users, and who may do what in which project.
 *
 * A member of a project is a user or a group, with a role there. What a user may in a project is
 * what all of their roles there allow together. A role is one of Weir's own or a custom one
 * (store/role.h); one that is gone gives nothing.
 */
#ifndef WEIR_STORE_TENANT_H
#define WEIR_STORE_TENANT_H

#include "store/identity.h"

struct weir_group {
    char *name;
    char *description;
    int64_t created_ms;
};

struct weir_group_member {
    char *name; /**< GROUP/USER */
    char *group, *user;
    char *issuer; /**< Who says so with each login; NULL: an admin put the user in. */
    int64_t created_ms;
};

struct weir_project_member {
    char *name; /**< PROJECT/user/NAME or PROJECT/group/NAME */
    char *project;
    char *user, *group; /**< One of the two. */
    char *role;
    char *created_by;
    int64_t created_ms;
};

extern const struct weir_resource weir_group_resource;
extern const struct weir_resource weir_group_member_resource;
extern const struct weir_resource weir_project_member_resource;

/**
 * Take an issuer's word for the groups a user is in: those that it put the user in before and does not name now are
 * left, those that it names and that are there are joined. Groups that an admin put the user in stay.
 */
weir_status weir_groups_take(struct weir_txn *txn, const char *user, const char *issuer,
                             const char *const *groups, size_t n_groups, int64_t now_ms,
                             struct weir_arena *arena, struct weir_error *err) WEIR_MUST_CHECK;

/** What the user may in single projects, by name, each project once; in the arena. */
weir_status weir_grants_load(struct weir_txn *txn, const char *user, struct weir_arena *arena,
                             struct weir_grant **out, size_t *out_n,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** The names of the roles that a user has in a project, alone or by groups, each once. */
weir_status weir_project_roles_of(struct weir_txn *txn, const char *project, const char *user,
                                  struct weir_arena *arena, char ***out, size_t *out_n,
                                  struct weir_error *err) WEIR_MUST_CHECK;

#endif
