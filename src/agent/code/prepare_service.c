/* The step of a task that has a port: choose it, and open the tunnel to it (tunnel.h). */
#include "agent/code/prepare.h"
#include "agent/rendezvous/rendezvous.h"

#include "base/file.h"
#include "base/secret.h"

#include <stdio.h>
#include <string.h>

/* "{{port}}" and "{{path}}" in an argument, for programs that read no variables. */
static char *fill(struct prepare *prepare, const char *text, const char *name, const char *value)
{
    const char *at = strstr(text, name);
    while (at != NULL) {
        size_t before = (size_t)(at - text);
        char *filled = weir_arena_printf(prepare->arena, "%.*s%s%s", (int)before, text, value,
                                         at + strlen(name));
        text = filled;
        at = strstr(text + before + strlen(value), name);
    }
    return (char *)text;
}

static void fill_arguments(struct prepare *prepare, const char *port, const char *path)
{
    for (size_t i = 0; prepare->task->argv[i] != NULL; i++) {
        char **argument = &prepare->task->argv[i];
        *argument = fill(prepare, *argument, "{{port}}", port);
        *argument = fill(prepare, *argument, "{{path}}", path);
    }
}

/* Where there are sandboxes, it is made with them (sandbox_enter.h). */
static weir_status make_folder(const struct prepare *prepare, struct weir_error *err)
{
    const struct sandbox *sandbox = &prepare->task->sandbox;
    return sandbox->user == 0 && sandbox->state_dir != NULL && sandbox->service != NULL
               ? weir_dir_make(weir_arena_printf(prepare->arena, "%s/services/%s",
                                                 sandbox->state_dir, sandbox->service),
                               0700, err)
               : WEIR_OK;
}

weir_status prepare_service(struct prepare *prepare, struct weir_error *err)
{
    const json_t *service = json_object_get(prepare->document, "service");
    const char *secret = json_string_value(json_object_get(service, "secret"));
    const char *path = json_string_value(json_object_get(service, "path"));
    int64_t port = json_integer_value(json_object_get(service, "port"));
    struct tunnel *tunnel = &prepare->task->tunnel;
    char host[RENDEZVOUS_ADDRESS_BYTES], text[TASK_PATH_BYTES], visits[65];
    if (service == NULL) {
        return WEIR_OK;
    }
    if (secret == NULL || secret[0] == '\0' || path == NULL || port < 0 || port > 65535) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "task $.service: expected a secret, a path and a port");
    }
    const char *address = prepare_node_fact(prepare, "address");
    const char *server = prepare_node_fact(prepare, "server");
    if (address != NULL) {
        WEIR_TRY(rendezvous_address_by(address, host, err));
    } else {
        WEIR_TRY(rendezvous_address_to(server != NULL ? server : "", host, err));
    }
    tunnel->port = port > 0 ? (int)port : rendezvous_free_port();
    if (tunnel->port == 0) {
        return weir_error_set(err, WEIR_ERR_IO, "no free port was found on this node");
    }
    bool has_user = prepare->task->sandbox.user != 0 && prepare->task->image == NULL;
    tunnel->user = has_user ? prepare->task->sandbox.user : 0;
    WEIR_TRY(tunnel_listen(tunnel, host, err));
    tunnel->secret = weir_arena_strdup(prepare->arena, secret);
    WEIR_TRY(make_folder(prepare, err));
    weir_secret_of_visits(secret, visits);
    prepare_env(prepare, "WEIR_SERVICE_SECRET", weir_arena_strdup(prepare->arena, visits));
    prepare_env(prepare, "WEIR_PORT", weir_arena_printf(prepare->arena, "%d", tunnel->port));
    fill_arguments(prepare, prepare_get_env(prepare, "WEIR_PORT"), path);
    return weir_file_replace(task_path(text, prepare->dir, "door"), tunnel->address,
                             strlen(tunnel->address), 0600, err);
}
