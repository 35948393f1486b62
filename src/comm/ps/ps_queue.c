#include "comm/ps/ps_queue.h"

#include <stdlib.h>

/* ---- heaps ---------------------------------------------------------------------------------- */

static bool is_before(const struct ps_waiting *a, const struct ps_waiting *b, bool is_by_time)
{
    return is_by_time && a->since_ns != b->since_ns ? a->since_ns < b->since_ns
                                                    : a->place < b->place;
}

static void heap_push(struct ps_heap *heap, const struct ps_waiting *entry, bool is_by_time)
{
    size_t i = heap->n++;
    for (; i > 0 && is_before(entry, &heap->entries[(i - 1) / 2], is_by_time); i = (i - 1) / 2) {
        heap->entries[i] = heap->entries[(i - 1) / 2];
    }
    heap->entries[i] = *entry;
}

static struct ps_waiting heap_pop(struct ps_heap *heap, bool is_by_time)
{
    const struct ps_waiting top = heap->entries[0], last = heap->entries[--heap->n];
    size_t i = 0;
    for (size_t child = 1; child < heap->n; child = 2 * i + 1) {
        if (child + 1 < heap->n &&
            is_before(&heap->entries[child + 1], &heap->entries[child], is_by_time)) {
            child++;
        }
        if (!is_before(&heap->entries[child], &last, is_by_time)) {
            break;
        }
        heap->entries[i] = heap->entries[child];
        i = child;
    }
    heap->entries[i] = last;
    return top;
}

/* ---- the queue ------------------------------------------------------------------------------ */

bool ps_queue_init(struct ps_queue *queue, size_t n_pieces, int n_lines)
{
    const size_t lines = (size_t)n_lines, line_most = n_pieces / lines + 1;
    *queue = (struct ps_queue){.n_pieces = n_pieces,
                               .n_lines = n_lines,
                               .late = calloc(lines, sizeof *queue->late),
                               .due = calloc(lines, sizeof *queue->due),
                               .entries = calloc(2 * lines * line_most, sizeof *queue->entries)};
    if (queue->late == NULL || queue->due == NULL || queue->entries == NULL) {
        return false;
    }
    for (size_t i = 0; i < lines; i++) {
        queue->late[i].entries = queue->entries + 2 * i * line_most;
        queue->due[i].entries = queue->entries + (2 * i + 1) * line_most;
    }
    return true;
}

void ps_queue_fini(struct ps_queue *queue)
{
    free(queue->late);
    free(queue->due);
    free(queue->entries);
    *queue = (struct ps_queue){.n_pieces = 0};
}

void ps_queue_clear(struct ps_queue *queue)
{
    for (int i = 0; i < queue->n_lines; i++) {
        queue->late[i].n = queue->due[i].n = 0;
    }
}

void ps_queue_add(struct ps_queue *queue, size_t i_piece, uint64_t since_ns, size_t place)
{
    const struct ps_waiting entry = {.since_ns = since_ns, .place = place, .i_piece = i_piece};
    heap_push(&queue->late[i_piece % (size_t)queue->n_lines], &entry, true);
}

size_t ps_queue_take(struct ps_queue *queue, const int n_ahead[], int most, uint64_t free_ns)
{
    struct ps_heap *best = NULL;
    bool is_best_late = true;
    for (int i = 0; i < queue->n_lines; i++) {
        struct ps_heap *late = &queue->late[i], *due = &queue->due[i];
        if (n_ahead != NULL && n_ahead[i] >= most) {
            continue;
        }
        while (late->n > 0 && late->entries[0].since_ns <= free_ns) {
            const struct ps_waiting entry = heap_pop(late, true);
            heap_push(due, &entry, false);
        }
        struct ps_heap *next = due->n > 0 ? due : late;
        const bool is_late = next == late;
        if (next->n > 0 && (best == NULL || (is_best_late && !is_late) ||
                            (is_best_late == is_late &&
                             is_before(&next->entries[0], &best->entries[0], is_late)))) {
            best = next;
            is_best_late = is_late;
        }
    }
    return best == NULL ? SIZE_MAX : heap_pop(best, is_best_late).i_piece;
}
