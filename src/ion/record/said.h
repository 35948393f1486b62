/** What a replica says in JSON of its own: nothing of it is believed to be there, or of its type. */
#ifndef WEIR_ION_RECORD_SAID_H
#define WEIR_ION_RECORD_SAID_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/json.h"

/** In the arena; NULL: there is no such text, or it is empty. */
static inline char *said_text(const json_t *object, const char *member, struct weir_arena *arena)
{
    const char *text = json_string_value(json_object_get(object, member));
    return text != NULL && text[0] != '\0' ? weir_arena_strdup(arena, text) : NULL;
}

/** 0: there is no such time. */
static inline int64_t said_time(const json_t *object, const char *member)
{
    int64_t time_ms = 0;
    const char *text = json_string_value(json_object_get(object, member));
    return text != NULL && weir_time_parse(text, &time_ms) == WEIR_OK ? time_ms : 0;
}

#endif
