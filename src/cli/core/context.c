#include "cli/core/context.h"

#include "base/file.h"
#include "base/names.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_MAX_BYTES ((size_t)1 << 20)

/* ---- the file --------------------------------------------------------------------------------- */

static weir_status find_dir(struct cli_call *call, char **out, struct weir_error *err)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (config != NULL && config[0] == '/') {
        *out = weir_arena_printf(call->arena, "%s/weir", config);
        return WEIR_OK;
    }
    if (home == NULL || home[0] != '/') {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "contexts lie in your home folder, and $HOME names none");
    }
    *out = weir_arena_printf(call->arena, "%s/.config/weir", home);
    return WEIR_OK;
}

/* {"current", "contexts": {NAME: {server, token, …}}}; an empty one if there is no file. A new reference. */
static weir_status load(struct cli_call *call, json_t **out, struct weir_error *err)
{
    char *dir;
    struct stat info;
    WEIR_TRY(find_dir(call, &dir, err));
    const char *path = weir_arena_printf(call->arena, "%s/contexts.json", dir);
    if (stat(path, &info) != 0) {
        *out = json_pack("{s:{}}", "contexts");
        return WEIR_OK;
    }
    if ((info.st_mode & 077) != 0) {
        return weir_error_set(err, WEIR_ERR_DENIED,
                              "%s holds tokens, and others may read it: chmod 600 it", path);
    }
    WEIR_TRY(weir_json_load(path, FILE_MAX_BYTES, out, err));
    if (!json_is_object(json_object_get(*out, "contexts"))) {
        json_decref(*out);
        return weir_error_set(err, WEIR_ERR_CORRUPT,
                              "%s has no \"contexts\": move it away, and log in again", path);
    }
    return WEIR_OK;
}

static weir_status save(struct cli_call *call, const json_t *file, struct weir_error *err)
{
    char *dir;
    WEIR_TRY(find_dir(call, &dir, err));
    char *parent = weir_arena_strdup(call->arena, dir);
    *strrchr(parent, '/') = '\0';
    WEIR_TRY(weir_dir_make(parent, 0700, err));
    WEIR_TRY(weir_dir_make(dir, 0700, err));
    char *text = json_dumps(file, JSON_INDENT(2) | JSON_SORT_KEYS);
    weir_status status = weir_file_write_atomic(
        weir_arena_printf(call->arena, "%s/contexts.json", dir), text, strlen(text), 0600, err);
    explicit_bzero(text, strlen(text));
    free(text);
    return status;
}

static weir_status no_context(const json_t *file, const char *name, struct weir_error *err)
{
    struct weir_names names = {0};
    const char *key;
    json_t *ignored;
    json_object_foreach(json_object_get(file, "contexts"), key, ignored)
    {
        weir_names_add(&names, key, strlen(key));
    }
    return weir_error_set(err, WEIR_ERR_NOT_FOUND, "there is no context \"%.60s\"%s%s", name,
                          names.text[0] != '\0' ? "; there are "
                                                : ": `weir login URL` makes the first one",
                          names.text);
}

/* ---- finding ----------------------------------------------------------------------------------- */

static const char *member(struct cli_call *call, const json_t *context, const char *name)
{
    return weir_arena_strdup(call->arena, json_string_value(json_object_get(context, name)));
}

static void read_context(struct cli_call *call, const char *name, const json_t *context,
                         struct cli_context *out)
{
    *out = (struct cli_context){.name = weir_arena_strdup(call->arena, name),
                                .server = member(call, context, "server"),
                                .token = member(call, context, "token"),
                                .ca_file = member(call, context, "ca_file"),
                                .token_id = member(call, context, "token_id")};
}

/* The context whose server this is, so that --server finds its token too. */
static void find_server(struct cli_call *call, const json_t *file, const char *server,
                        struct cli_context *out)
{
    const char *name;
    json_t *context;
    json_object_foreach(json_object_get(file, "contexts"), name, context)
    {
        const char *own = json_string_value(json_object_get(context, "server"));
        if (out->name == NULL && own != NULL && strcmp(own, server) == 0) {
            read_context(call, name, context, out);
        }
    }
}

weir_status cli_context_find(struct cli_call *call, struct cli_context *out, struct weir_error *err)
{
    const struct cli_common *common = call->common;
    const char *wanted =
        common->context != NULL && common->context[0] != '\0' ? common->context : NULL;
    bool has_state = common->state != NULL && common->state[0] != '\0';
    json_t *file;
    *out = (struct cli_context){0};
    bool is_needed = common->server != NULL ? common->token == NULL : wanted != NULL || !has_state;
    if (!is_needed) {
        return WEIR_OK;
    }
    weir_status status = load(call, &file, err);
    if (status != WEIR_OK) {
        return wanted == NULL && status == WEIR_ERR_INVALID ? WEIR_OK : status; /* no home */
    }
    if (common->server != NULL) {
        find_server(call, file, common->server, out);
        json_decref(file);
        return WEIR_OK;
    }
    const char *name =
        wanted != NULL ? wanted : json_string_value(json_object_get(file, "current"));
    const json_t *found =
        name != NULL ? json_object_get(json_object_get(file, "contexts"), name) : NULL;
    if (found != NULL) {
        read_context(call, name, found, out);
    }
    status = wanted != NULL && found == NULL ? no_context(file, wanted, err) : WEIR_OK;
    json_decref(file);
    return status;
}

/* ---- changing ---------------------------------------------------------------------------------- */

weir_status cli_context_keep(struct cli_call *call, const struct cli_context *context,
                             struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *file = NULL;
    WEIR_TRY(load(call, &file, err));
    json_object_set_new(json_object_get(file, "contexts"), context->name,
                        json_pack("{s:s,s:s*,s:s*,s:s*}", "server", context->server, "token",
                                  context->token, "token_id", context->token_id, "ca_file",
                                  context->ca_file));
    json_object_set_new(file, "current", json_string(context->name));
    return save(call, file, err);
}

weir_status cli_context_forget(struct cli_call *call, const char *name, struct weir_error *err)
{
    json_t *file;
    WEIR_TRY(load(call, &file, err));
    weir_status status = json_object_del(json_object_get(file, "contexts"), name) == 0
                             ? WEIR_OK
                             : no_context(file, name, err);
    const char *current = json_string_value(json_object_get(file, "current"));
    if (current != NULL && strcmp(current, name) == 0) {
        json_object_del(file, "current");
    }
    status = status == WEIR_OK ? save(call, file, err) : status;
    json_decref(file);
    return status;
}

/* ---- weir context -------------------------------------------------------------------------------- */

static weir_status list(struct cli_call *call, struct weir_error *err)
{
    static const struct cli_column columns[] = {
        {"current", "CURRENT"}, {"name", "NAME"}, {"server", "SERVER"}};
    json_t *file, *context, *items = json_array();
    const char *name;
    weir_status status = load(call, &file, err);
    if (status != WEIR_OK) {
        json_decref(items);
        return status;
    }
    const char *current = json_string_value(json_object_get(file, "current"));
    json_object_foreach(json_object_get(file, "contexts"), name, context)
    {
        bool is_current = current != NULL && strcmp(current, name) == 0;
        json_array_append_new(items,
                              json_pack("{s:s,s:s,s:O?}", "current", is_current ? "*" : "", "name",
                                        name, "server", json_object_get(context, "server")));
    }
    json_t *answer = json_pack("{s:o}", "items", items);
    cli_print_table(call, answer, columns, WEIR_ARRAY_LEN(columns));
    json_decref(answer);
    json_decref(file);
    return WEIR_OK;
}

static weir_status use(struct cli_call *call, struct weir_error *err)
{
    json_t *file;
    const char *name = call->words[1];
    WEIR_TRY(load(call, &file, err));
    weir_status status = WEIR_OK;
    if (json_object_get(json_object_get(file, "contexts"), name) == NULL) {
        status = no_context(file, name, err);
    } else {
        json_object_set_new(file, "current", json_string(name));
        status = save(call, file, err);
    }
    json_decref(file);
    WEIR_TRY(status);
    cli_print_done(call, name, "used");
    return WEIR_OK;
}

static weir_status forget(struct cli_call *call, struct weir_error *err)
{
    WEIR_TRY(cli_context_forget(call, call->words[1], err));
    cli_print_done(call, call->words[1], "forgotten");
    return WEIR_OK;
}

static weir_status run_context(struct cli_call *call, struct weir_error *err)
{
    const char *verb = call->n_words > 0 ? call->words[0] : "list";
    if (strcmp(verb, "list") == 0 && call->n_words <= 1) {
        return list(call, err);
    }
    if (strcmp(verb, "use") == 0 && call->n_words == 2) {
        return use(call, err);
    }
    if (strcmp(verb, "delete") == 0 && call->n_words == 2) {
        return forget(call, err);
    }
    return weir_error_set(err, WEIR_ERR_INVALID, "usage: weir context %s", call->command->usage);
}

const struct cli_command cli_context = {
    .name = "context",
    .usage = "[list] | use NAME | delete NAME",
    .summary = "List the servers that you are logged in to, choose one, forget one",
    .help =
        "`weir login URL` keeps one, with its token. A command talks to --server, else to "
        "--context,\nelse to the server of --state, else to the context in use, else to this "
        "machine's server.\ndelete forgets a context, and leaves its token as it is; `weir logout` "
        "revokes it too.",
    CLI_WORDS(0, 2),
    CLI_PLAIN,
    .run = run_context,
};
