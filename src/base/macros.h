/**
 * The few macros the whole project shares. Nothing here hides control flow except WEIR_TRY and
 * WEIR_TRY_GOTO, and those say so in their names.
 */
#ifndef WEIR_BASE_MACROS_H
#define WEIR_BASE_MACROS_H

#include <stddef.h>
#include <stdlib.h>

#define WEIR_MUST_CHECK        __attribute__((warn_unused_result))
#define WEIR_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define WEIR_UNUSED            __attribute__((unused))
#define WEIR_AUTO(fn)          __attribute__((cleanup(fn)))

#define WEIR_ARRAY_LEN(a)                    (sizeof(a) / sizeof((a)[0]))
#define WEIR_MIN(a, b)                       ((a) < (b) ? (a) : (b))
#define WEIR_MAX(a, b)                       ((a) > (b) ? (a) : (b))
#define WEIR_CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/** Return the status of `call` from the enclosing function unless it is WEIR_OK. */
#define WEIR_TRY(call)                                                                             \
    do {                                                                                           \
        weir_status weir_try_status_ = (call);                                                     \
        if (weir_try_status_ != WEIR_OK) {                                                         \
            return weir_try_status_;                                                               \
        }                                                                                          \
    } while (0)

/** Store the status of `call` in `status` and jump to `label` unless it is WEIR_OK. */
#define WEIR_TRY_GOTO(call, status, label)                                                         \
    do {                                                                                           \
        (status) = (call);                                                                         \
        if ((status) != WEIR_OK) {                                                                 \
            goto label;                                                                            \
        }                                                                                          \
    } while (0)

/** For WEIR_AUTO, of any pointer: free what it points to. */
static inline void weir_auto_free(void *pointer)
{
    free(*(void **)pointer);
}

#endif
