#include "identity/identity.h"

#include "base/json.h"
#include "base/names.h"
#include "store/table.h"

#include <stdlib.h>
#include <string.h>

#define PLACE "--proofs"

static const struct weir_kind *const kinds[] = {
#define WEIR_KIND(name) &weir_identity_##name,
#include "identity/identities.def"
#undef WEIR_KIND
};

const struct weir_registry weir_identity_kinds = {
    .noun = "proof",
    .plural = "proofs",
    .doc = "How people and programs prove who they are. The operator of the server chooses which "
           "are on.",
    .kinds = kinds,
    .n_kinds = WEIR_ARRAY_LEN(kinds),
};

struct weir_identities {
    struct weir_store *store;
    struct weir_guard *guard;
    struct weir_arena arena; /* of the options */
    struct weir_identity_way *ways;
    size_t n, n_on;
};

/* ---- which are on ------------------------------------------------------------------------------ */

static struct weir_identity_way *find_way(const struct weir_identities *identities,
                                          const char *name)
{
    for (size_t i = 0; i < identities->n; i++) {
        if (strcmp(identities->ways[i].kind->name, name) == 0) {
            return &identities->ways[i];
        }
    }
    return NULL;
}

static void add_way(struct weir_identities *identities, const struct weir_configured *configured,
                    bool is_on)
{
    const struct weir_identity_ops *ops = configured->kind->ops;
    identities->ways[identities->n++] =
        (struct weir_identity_way){.kind = configured->kind,
                                   .ops = ops,
                                   .options = configured->options,
                                   .state = ops->open != NULL ? ops->open() : NULL,
                                   .is_on = is_on};
    identities->n_on += is_on;
}

static weir_status read_list(struct weir_identities *identities,
                             const struct weir_registry *registry, const json_t *list,
                             struct weir_error *err)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct weir_configured configured;
        WEIR_TRY(weir_registry_read_named(registry, json_array_get(list, i), PLACE,
                                          &identities->arena, &configured, NULL, err));
        if (find_way(identities, configured.kind->name) != NULL) {
            return weir_error_set(err, WEIR_ERR_INVALID, PLACE ": \"%s\" is named twice",
                                  configured.kind->name);
        }
        add_way(identities, &configured, true);
    }
    return WEIR_OK;
}

static weir_status add_rest(struct weir_identities *identities,
                            const struct weir_registry *registry, struct weir_error *err)
{
    for (size_t i = 0; i < registry->n_kinds; i++) {
        const struct weir_kind *kind = registry->kinds[i];
        const struct weir_identity_ops *ops = kind->ops;
        if (find_way(identities, kind->name) != NULL) {
            continue;
        }
        if (ops->is_needed) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  PLACE
                                  ": \"%s\" must be among them: agents, tasks and the command line "
                                  "prove who they are by it",
                                  kind->name);
        }
        add_way(identities, &(struct weir_configured){.kind = kind}, false);
    }
    return WEIR_OK;
}

static json_t *names_by_default(const struct weir_registry *registry)
{
    json_t *names = json_array();
    for (size_t i = 0; i < registry->n_kinds; i++) {
        const struct weir_identity_ops *ops = registry->kinds[i]->ops;
        if (ops->is_default) {
            json_array_append_new(names, json_string(registry->kinds[i]->name));
        }
    }
    return names;
}

static weir_status read_proofs(struct weir_identities *identities,
                               const struct weir_identities_config *config, struct weir_error *err)
{
    const struct weir_registry *registry =
        config->kinds != NULL ? config->kinds : &weir_identity_kinds;
    WEIR_AUTO(weir_json_auto_free) json_t *list = NULL;
    identities->ways =
        WEIR_ARENA_ARRAY(&identities->arena, registry->n_kinds, struct weir_identity_way);
    if (config->proofs != NULL) {
        const char *text = weir_arena_printf(&identities->arena, "[%s]", config->proofs);
        WEIR_TRY(weir_yaml_parse(text, strlen(text), PLACE, false, &list, err));
    } else {
        list = names_by_default(registry);
    }
    WEIR_TRY(read_list(identities, registry, list, err));
    return add_rest(identities, registry, err);
}

weir_status weir_identities_create(const struct weir_identities_config *config,
                                   struct weir_identities **out, struct weir_error *err)
{
    struct weir_identities *identities = weir_xalloc(sizeof *identities);
    *identities = (struct weir_identities){.store = config->store};
    weir_arena_init(&identities->arena, 0);
    weir_status status = read_proofs(identities, config, err);
    if (status != WEIR_OK) {
        weir_identities_destroy(identities);
        return status;
    }
    identities->guard = weir_guard_create(config->store);
    *out = identities;
    return WEIR_OK;
}

void weir_identities_destroy(struct weir_identities *identities)
{
    if (identities == NULL) {
        return;
    }
    for (size_t i = 0; i < identities->n; i++) {
        if (identities->ways[i].ops->close != NULL) {
            identities->ways[i].ops->close(identities->ways[i].state);
        }
    }
    weir_guard_destroy(identities->guard);
    weir_arena_fini(&identities->arena);
    free(identities);
}

struct weir_guard *weir_identities_guard(const struct weir_identities *identities)
{
    return identities->guard;
}

const struct weir_identity_way *weir_identities_list(const struct weir_identities *identities,
                                                     size_t *out_n)
{
    *out_n = identities->n;
    return identities->ways;
}

const struct weir_identity_way *weir_identities_of(const struct weir_identities *identities,
                                                   const struct weir_kind *kind)
{
    return find_way(identities, kind->name);
}

static struct weir_names names_of(const struct weir_identities *identities)
{
    struct weir_names names = {0};
    for (size_t i = 0; i < identities->n_on; i++) {
        const char *name = identities->ways[i].kind->name;
        weir_names_add(&names, name, strlen(name));
    }
    return names;
}

weir_status weir_identity_check_on(const struct weir_identity_way *way, struct weir_error *err)
{
    return way->is_on ? WEIR_OK
                      : weir_error_set(
                            err, WEIR_ERR_UNSUPPORTED,
                            "this server takes no %s: its operator has not turned \"%s\" on (weir "
                            "server --proofs)",
                            way->ops->words + strcspn(way->ops->words, " ") + 1, way->kind->name);
}

weir_status weir_identities_find(const struct weir_identities *identities, const char *name,
                                 const struct weir_identity_way **out, struct weir_error *err)
{
    const struct weir_identity_way *way = find_way(identities, name);
    if (way == NULL) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "\"%.40s\" is no way to prove who one is: this server has %s", name,
                              names_of(identities).text);
    }
    *out = way;
    return weir_identity_check_on(way, err);
}

/* ---- proving ----------------------------------------------------------------------------------- */

struct looking {
    struct weir_identity_ask *ask;
    struct weir_identity_proven proven;
    struct weir_identity identity;
    bool wants_identity;
};

static weir_status look_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct looking *looking = context;
    struct weir_identity_ask *ask = looking->ask;
    looking->proven = (struct weir_identity_proven){.by = ask->way->kind->name};
    looking->identity = (struct weir_identity){0};
    ask->identity = &looking->identity;
    WEIR_TRY(ask->way->ops->look(txn, ask, &looking->proven, err));
    ask->identity = NULL;
    bool is_read = looking->identity.user.name != NULL;
    return looking->wants_identity && !is_read && looking->proven.user != NULL
               ? weir_user_identify_as(txn, looking->proven.user, looking->proven.limited_to,
                                       ask->arena, &looking->identity, err)
               : WEIR_OK;
}

weir_status weir_identity_prove(struct weir_identity_ask *ask, struct weir_identity_proven *out,
                                struct weir_identity *out_identity, struct weir_error *err)
{
    const struct weir_identity_ops *ops = ask->way->ops;
    struct looking looking = {.ask = ask, .wants_identity = out_identity != NULL};
    WEIR_TRY(weir_store_read(ask->identities->store, look_in, &looking, err));
    if (ops->prove != NULL) {
        WEIR_TRY(ops->prove(ask, &looking.proven, err));
    }
    if (ask->is_put_off) {
        return WEIR_OK;
    }
    if (looking.proven.user == NULL) {
        return weir_error_set(err, WEIR_ERR_UNAUTH, "%s", ops->refused);
    }
    *out = looking.proven;
    if (out_identity != NULL) {
        *out_identity = looking.identity;
    }
    return WEIR_OK;
}

/* ---- for the kinds ----------------------------------------------------------------------------- */

weir_status identity_look_person(struct weir_txn *txn, struct weir_identity_ask *ask,
                                 struct weir_identity_proven *out, struct weir_error *err)
{
    struct weir_user user;
    ask->password_hash = NULL;
    weir_status status =
        weir_txn_get(txn, &weir_user_resource, ask->given[0], ask->arena, &user, err);
    if (status == WEIR_OK && !user.is_disabled) {
        out->user = user.name;
        ask->password_hash = user.password_hash;
    }
    return status == WEIR_ERR_NOT_FOUND ? WEIR_OK : status;
}

weir_status identity_prove_password(struct weir_identity_ask *ask,
                                    struct weir_identity_proven *proven, struct weir_error *err)
{
    (void)proven;
    const struct weir_guard_try given = {.user = ask->given[0],
                                         .password = ask->given[1],
                                         .hash = ask->password_hash,
                                         .address = ask->request->remote,
                                         .now_ms = ask->now_ms,
                                         .arena = ask->arena};
    return weir_guard_check(ask->identities->guard, &given, ask->note, err);
}
