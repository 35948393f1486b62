/**
 * What the engine has set aside: jobs and IONs whose state cannot be loaded (too large, damaged).
 * Each is tried again after ASIDE_AGAIN_MS, so that one that was mended goes on by itself; the
 * others are not held up. Owned by the engine's thread.
 */
#ifndef WEIR_CONTROL_ASIDE_H
#define WEIR_CONTROL_ASIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ASIDE_MAX      1024 /* more are tried in every round */
#define ASIDE_AGAIN_MS 60000

struct aside_entry;

struct aside {
    struct aside_entry *head;
    size_t n;
};

/** Is this subject ("job/ID", "ion/NAME") set aside, and not due for another try? */
bool aside_has(const struct aside *aside, const char *subject, int64_t mono_ms);

/** Set it aside until ASIDE_AGAIN_MS later. @return It was not set aside before: tell people. */
bool aside_put(struct aside *aside, const char *subject, int64_t mono_ms);

/** It could be loaded. @return It was set aside before. */
bool aside_take(struct aside *aside, const char *subject);

/** Forget those whose next try is long overdue: nobody asks for them any more. */
void aside_sweep(struct aside *aside, int64_t mono_ms);

void aside_fini(struct aside *aside);

#endif
