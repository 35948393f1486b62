/** A document of Kubeflow from outside: any bytes give a job with remarks, or an error that says where and why. */
#include "kubeflow/kubeflow.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_whole(const struct weir_kubeflow *job)
{
    for (size_t i = 0; i < job->n_remarks; i++) {
        if (job->remarks[i].path[0] != '$' || job->remarks[i].say[0] == '\0') {
            return false;
        }
    }
    return json_is_string(json_object_get(job->body, "name")) &&
           json_is_array(json_object_get(json_object_get(job->body, "spec"), "argv"));
}

static void read_one(const json_t *document, const json_t *all)
{
    struct weir_arena arena;
    struct weir_error err = {0};
    struct weir_kubeflow job;
    const struct weir_kubeflow_given given = {.config_maps = all};
    weir_arena_init(&arena, 0);
    weir_status status = weir_kubeflow_read(document, &given, &arena, &job, &err);
    if (status == WEIR_OK ? !is_whole(&job) : err.message[0] != '$' && status != WEIR_ERR_LIMIT) {
        abort();
    }
    weir_kubeflow_fini(&job);
    weir_arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *documents = NULL, *document;
    size_t i;
    struct weir_error ignored;
    char *text = malloc(size + 1);
    if (text == NULL) {
        return 0;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    if (weir_yaml_parse(text, size, "fuzz", true, &documents, &ignored) == WEIR_OK) {
        json_array_foreach(documents, i, document)
        {
            read_one(document, documents);
        }
    }
    json_decref(documents);
    free(text);
    return 0;
}
