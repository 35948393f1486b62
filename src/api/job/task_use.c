/** What the tasks of a node use, as its agent says it. */
#include "control/task_use.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/core/uses.h"

#include "base/clock.h"

#define TASKS_MAX 4096

static weir_status read_use(const struct api_call *call, const json_t *item, size_t i,
                            struct task_use *out, struct weir_error *err)
{
    const json_t *attempt = json_object_get(item, "attempt"),
                 *cores = json_object_get(item, "cpu_cores"),
                 *memory = json_object_get(item, "memory_bytes");
    *out = (struct task_use){
        .task = weir_arena_strdup(call->arena, json_string_value(json_object_get(item, "task"))),
        .attempt = json_integer_value(attempt),
        .cpu_cores = json_number_value(cores),
        .memory_bytes = json_integer_value(memory)};
    return out->task != NULL && json_is_integer(attempt) && json_is_number(cores) &&
                   json_is_integer(memory) && out->cpu_cores >= 0 && out->memory_bytes >= 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "$.tasks[%zu]: expected {task, attempt, cpu_cores, memory_bytes}, "
                                "numbers from 0",
                                i);
}

weir_status api_node_use(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const json_t *list = json_object_get(call->body, "tasks");
    struct control control = api_control(call);
    size_t n = json_array_size(list), i;
    json_t *item;
    WEIR_TRY(api_body_only(call, (const char *const[]){"tasks", NULL}, err));
    if (!json_is_array(list) || n > TASKS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.tasks: expected an array of at most %d",
                              TASKS_MAX);
    }
    struct task_use *uses = WEIR_ARENA_ARRAY(call->arena, n + 1, struct task_use);
    json_array_foreach(list, i, item)
    {
        WEIR_TRY(read_use(call, item, i, &uses[i], err));
    }
    WEIR_TRY(control_task_use(&control, txn, call->params[0], uses, n, err));
    for (i = 0; i < n; i++) { /* once more if this is run again: the same */
        const struct use_of_task use = {uses[i].cpu_cores, uses[i].memory_bytes};
        uses_put(call->api->uses, call->params[0], uses[i].task, use, weir_mono_ms());
    }
    weir_http_response_empty(call->response);
    return WEIR_OK;
}
