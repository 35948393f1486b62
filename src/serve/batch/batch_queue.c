#include "serve/batch/batch_queue.h"

static void link_by_deadline(struct batch_queue *queue, struct batch_entry *entry)
{
    struct batch_entry *before = queue->last;
    while (before != NULL && before->deadline_ns > entry->deadline_ns) {
        before = before->previous;
    }
    entry->previous = before;
    entry->next = before != NULL ? before->next : queue->first;
    if (entry->next != NULL) {
        entry->next->previous = entry;
    } else {
        queue->last = entry;
    }
    if (before != NULL) {
        before->next = entry;
    } else {
        queue->first = entry;
    }
}

bool batch_queue_push(struct batch_queue *queue, struct batch_entry *entry)
{
    if (queue->n >= queue->rules.queue_max) {
        return false;
    }
    link_by_deadline(queue, entry);
    entry->newer = NULL;
    entry->older = queue->newest;
    if (queue->newest != NULL) {
        queue->newest->newer = entry;
    } else {
        queue->oldest = entry;
    }
    queue->newest = entry;
    queue->n++;
    return true;
}

static void take_out(struct batch_queue *queue, struct batch_entry *entry)
{
    if (entry->previous != NULL) {
        entry->previous->next = entry->next;
    } else {
        queue->first = entry->next;
    }
    if (entry->next != NULL) {
        entry->next->previous = entry->previous;
    } else {
        queue->last = entry->previous;
    }
    if (entry->older != NULL) {
        entry->older->newer = entry->newer;
    } else {
        queue->oldest = entry->newer;
    }
    if (entry->newer != NULL) {
        entry->newer->older = entry->older;
    } else {
        queue->newest = entry->older;
    }
    queue->n--;
    entry->next = entry->previous = entry->newer = entry->older = NULL;
}

struct batch_entry *batch_queue_take_expired(struct batch_queue *queue, uint64_t now_ns)
{
    struct batch_entry *list = NULL, **end = &list;
    while (queue->first != NULL && queue->first->deadline_ns <= now_ns) {
        struct batch_entry *entry = queue->first;
        take_out(queue, entry);
        *end = entry;
        end = &entry->next;
    }
    return list;
}

/* Does this one go into a batch that begins with `first` and has n_rows? */
static bool joins(const struct batch_queue *queue, const struct batch_entry *first,
                  const struct batch_entry *entry, int64_t n_rows)
{
    return n_rows + entry->n_rows <= queue->rules.batch_max && queue->rules.mixes(first, entry);
}

/* Could one more request still join the batch that begins with the first? What mixes with it and is
 * too large for the rest ends it: later ones do not overtake. */
static bool is_full(const struct batch_queue *queue)
{
    int64_t n_rows = queue->first->n_rows;
    for (const struct batch_entry *entry = queue->first->next; entry != NULL; entry = entry->next) {
        if (!queue->rules.mixes(queue->first, entry)) {
            continue;
        }
        if (n_rows + entry->n_rows > queue->rules.batch_max) {
            return true;
        }
        n_rows += entry->n_rows;
    }
    return n_rows >= queue->rules.batch_max;
}

/* When the batch must be taken, whoever may come yet. */
static uint64_t take_time(const struct batch_queue *queue)
{
    uint64_t delay_ns = queue->rules.delay_ns;
    uint64_t by_delay = queue->oldest->arrived_ns + delay_ns;
    uint64_t deadline_ns = queue->first->deadline_ns;
    uint64_t by_deadline = deadline_ns > delay_ns ? deadline_ns - delay_ns : 0;
    return WEIR_MIN(by_delay < delay_ns ? UINT64_MAX : by_delay, by_deadline);
}

static struct batch_entry *take_batch(struct batch_queue *queue)
{
    struct batch_entry *first = queue->first, *entry = first->next, **end = &first->next;
    int64_t n_rows = first->n_rows;
    take_out(queue, first);
    while (entry != NULL && n_rows < queue->rules.batch_max) {
        struct batch_entry *next = entry->next;
        if (joins(queue, first, entry, n_rows)) {
            take_out(queue, entry);
            n_rows += entry->n_rows;
            *end = entry;
            end = &entry->next;
        } else if (queue->rules.mixes(first, entry)) {
            break;
        }
        entry = next;
    }
    return first;
}

struct batch_entry *batch_queue_take(struct batch_queue *queue, uint64_t now_ns, bool is_urgent,
                                     uint64_t *out_wait_ns)
{
    if (queue->first == NULL) {
        *out_wait_ns = UINT64_MAX;
        return NULL;
    }
    if (!is_urgent && queue->rules.delay_ns > 0 && now_ns < take_time(queue) && !is_full(queue)) {
        *out_wait_ns = take_time(queue);
        return NULL;
    }
    return take_batch(queue);
}
