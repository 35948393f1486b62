#include "control/engine/aside.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

struct aside_entry {
    struct aside_entry *next;
    char *subject;
    int64_t again_mono_ms;
};

static struct aside_entry **find(struct aside *aside, const char *subject)
{
    struct aside_entry **at = &aside->head;
    while (*at != NULL && strcmp((*at)->subject, subject) != 0) {
        at = &(*at)->next;
    }
    return at;
}

static void drop(struct aside *aside, struct aside_entry **at)
{
    struct aside_entry *entry = *at;
    *at = entry->next;
    free(entry->subject);
    free(entry);
    aside->n--;
}

bool aside_has(const struct aside *aside, const char *subject, int64_t mono_ms)
{
    const struct aside_entry *entry = *find((struct aside *)aside, subject);
    return entry != NULL && mono_ms < entry->again_mono_ms;
}

bool aside_put(struct aside *aside, const char *subject, int64_t mono_ms)
{
    struct aside_entry **at = find(aside, subject);
    bool is_new = *at == NULL;
    if (is_new && aside->n == ASIDE_MAX) {
        return false;
    }
    if (is_new) {
        *at = weir_xalloc(sizeof **at);
        (*at)->subject = weir_xstrdup(subject);
        aside->n++;
    }
    (*at)->again_mono_ms = mono_ms + ASIDE_AGAIN_MS;
    return is_new;
}

bool aside_take(struct aside *aside, const char *subject)
{
    struct aside_entry **at = find(aside, subject);
    if (*at == NULL) {
        return false;
    }
    drop(aside, at);
    return true;
}

void aside_sweep(struct aside *aside, int64_t mono_ms)
{
    for (struct aside_entry **at = &aside->head; *at != NULL;) {
        if (mono_ms > (*at)->again_mono_ms + ASIDE_AGAIN_MS) {
            drop(aside, at);
        } else {
            at = &(*at)->next;
        }
    }
}

void aside_fini(struct aside *aside)
{
    while (aside->head != NULL) {
        drop(aside, &aside->head);
    }
}
