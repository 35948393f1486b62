/** How much memory this program has needed. */
#ifndef WEIR_BASE_RSS_H
#define WEIR_BASE_RSS_H

#include <stdint.h>

/**
 * The most memory that this process had resident since its program began, in bytes: VmHWM of
 * proc(5). getrusage's maximum is that of the process that started the program, if it was larger.
 * 0 where the kernel does not tell. Any thread. Cost: reads a file of the
 * kernel's, for which it takes a buffer.
 */
int64_t weir_peak_rss_bytes(void);

#endif
