#include "base/uuid.h"

#include "base/clock.h"
#include "base/rng.h"

#include <pthread.h>
#include <stdio.h>

#define UUID_COUNTER_BITS 12

/* One process-wide sequence: milliseconds and a 12-bit counter in one number that only grows. */
static pthread_mutex_t sequence_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t sequence_last;

static uint64_t sequence_next(void)
{
    uint64_t now = (uint64_t)weir_time_ms() << UUID_COUNTER_BITS;
    pthread_mutex_lock(&sequence_lock);
    sequence_last = now > sequence_last ? now : sequence_last + 1;
    uint64_t value = sequence_last;
    pthread_mutex_unlock(&sequence_lock);
    return value;
}

void weir_uuid_make(char out[WEIR_UUID_BYTES])
{
    uint64_t sequence = sequence_next();
    uint64_t ms = sequence >> UUID_COUNTER_BITS;
    unsigned counter = (unsigned)(sequence & ((1u << UUID_COUNTER_BITS) - 1));
    uint64_t random;
    weir_random_bytes(&random, sizeof random);
    (void)snprintf(out, WEIR_UUID_BYTES, "%08x-%04x-7%03x-%04x-%012llx", (unsigned)(ms >> 16),
                   (unsigned)(ms & 0xffff), counter, 0x8000u | (unsigned)(random >> 50),
                   (unsigned long long)(random & 0xffffffffffffULL));
}

bool weir_uuid_is_valid(const char *text)
{
    for (int i = 0; i < WEIR_UUID_BYTES - 1; i++) {
        bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
        bool is_hex = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
        if (is_dash ? text[i] != '-' : !is_hex) {
            return false;
        }
    }
    return text[WEIR_UUID_BYTES - 1] == '\0';
}
