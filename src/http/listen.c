#include "http/server_private.h"

#include "base/log.h"

#include <sys/resource.h>

#define FILES_FOR_THE_REST 256 /* database, blobs, uploads, children */

int listen_allowed_connections(int wanted)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return wanted;
    }
    rlim_t need = (rlim_t)wanted + FILES_FOR_THE_REST;
    if (limit.rlim_cur < need) {
        limit.rlim_cur = limit.rlim_max < need ? limit.rlim_max : need;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
        (void)getrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur >= need) {
        return wanted;
    }
    int allowed = limit.rlim_cur > 2 * FILES_FOR_THE_REST ? (int)limit.rlim_cur - FILES_FOR_THE_REST
                                                          : (int)limit.rlim_cur / 2;
    weir_log(WEIR_LOG_WARN, "http_connections_lowered", WEIR_KV_INT("wanted", wanted),
             WEIR_KV_INT("allowed", allowed), WEIR_KV_STR("because", "limit of open files"));
    return allowed;
}
