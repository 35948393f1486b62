/**
 * Finder: a child process that looks at the devices again and again, and what is known from it.
 *
 * Drivers hang and crash. So the child (weir_device_serve) calls them, and tells over a pipe which
 * provider it begins and what it found; the parent never waits for it. A provider that does not
 * answer within deadline_ms, crashes, or fails, keeps the devices that were known of it, as bad ones
 * with the reason; its child is killed and another is started after retry_ms. A child that cannot
 * be killed (it sleeps in the driver) is left alone, and none is started beside it.
 *
 * Lines of the pipe: {"begin": PROVIDER}, then {"provider", "error", "devices"}.
 *
 * One thread owns a finder. Time is given by the caller: weir_mono_ms(), or a test's.
 */
#ifndef WEIR_DEVICE_FINDER_H
#define WEIR_DEVICE_FINDER_H

#include "device/device.h"

#define WEIR_FINDER_EVERY_MS    1000
#define WEIR_FINDER_DEADLINE_MS 10000
#define WEIR_FINDER_RETRY_MS    30000

/** A line that is longer ends the child as a crash does. */
#define WEIR_FINDER_LINE_MAX_BYTES ((size_t)1 << 20)

struct weir_finder;

struct weir_finder_config {
    char *const *argv;   /**< Program and arguments of the child; borrowed. */
    int64_t deadline_ms; /**< Of one provider; 0: WEIR_FINDER_DEADLINE_MS. */
    int64_t retry_ms;    /**< After a failure of the child; 0: WEIR_FINDER_RETRY_MS. */
};

/** No child runs before the first look. */
struct weir_finder *weir_finder_create(const struct weir_finder_config *config);

/** Kill the child. NULL is accepted. */
void weir_finder_destroy(struct weir_finder *finder);

/**
 * Take what the child has told, and start, kill or replace it where that is due. Does not wait.
 * @return True: since the last look a device came, went, or got bad or well, or the first round is
 *         complete.
 */
bool weir_finder_look(struct weir_finder *finder, int64_t now_ms);

/** Readable: there is something to look at. -1: no child. May change with every look. */
int weir_finder_fd(const struct weir_finder *finder);

/** Has every provider found its devices, or failed? Before, what is known is a part. */
bool weir_finder_is_complete(const struct weir_finder *finder);

/** What is known, as weir_found_json tells it: a new array. */
json_t *weir_finder_devices(const struct weir_finder *finder);

/** Why providers fail, {PROVIDER: SENTENCE}: a new object, empty if none does. */
json_t *weir_finder_errors(const struct weir_finder *finder);

/**
 * What the child does: look every every_ms (0: WEIR_FINDER_EVERY_MS) and tell on fd, until nobody
 * reads there any more, or its parent dies.
 */
void weir_device_serve(struct weir_device_context *context, int fd, int64_t every_ms);

#endif
