/** A batch script from outside: any bytes give a job whose numbers go together, or an error that says why. */
#include "cli/job/sbatch.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What the kind of job asks of what is read (framework/sbatch.c). */
static bool goes_together(const struct sbatch *head)
{
    return head->n_argv >= 1 && head->nodes >= 1 && head->nodes <= 1024 &&
           head->tasks >= head->nodes && head->tasks_per_node >= 1 &&
           head->tasks <= head->nodes * head->tasks_per_node && head->cpus >= 1 &&
           head->memory_bytes >= 0 && head->parallel >= 0 &&
           (head->array == NULL || head->nodes == 1) && head->n_remarks <= SBATCH_REMARKS_MAX;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_arena arena;
    struct weir_error err = {0};
    struct sbatch head;
    weir_arena_init(&arena, 0);
    char *text = weir_arena_memdup(&arena, data, size);
    weir_status status = sbatch_read(text, size, &arena, &head, &err);
    if (status == WEIR_OK ? head.has_options && !goes_together(&head) : err.message[0] == '\0') {
        abort();
    }
    weir_arena_fini(&arena);
    return 0;
}
