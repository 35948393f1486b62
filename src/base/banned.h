/**
 * Functions Weir does not use, each with the one to use instead. The build includes this header
 * before every source file, so a use does not compile.
 */
#ifndef WEIR_BASE_BANNED_H
#define WEIR_BASE_BANNED_H

/* Library headers that declare them come first: poisoning must not break their declarations. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WEIR_BANNED(name, instead) _Static_assert(0, #name " is banned: use " instead)

#undef strcpy
#undef strcat
#undef strtok
#undef sprintf
#undef vsprintf
#undef gmtime
#undef localtime
#undef atoi
#undef system
#pragma GCC poison strcpy strcat strtok sprintf vsprintf gmtime localtime atoi system
#pragma GCC poison pthread_cond_timedwait /* weir_cond_wait_until (base/deadline.h) */

#endif
