/* How much of what is under way is whose, and when somebody used it. */
#include "proxy/private.h"

#include <stdlib.h>
#include <string.h>

#define IDS_AT_ONCE 64

static struct use *find(struct weir_proxy *proxy, const char *id)
{
    struct use *use = proxy->uses;
    while (use != NULL && strcmp(use->id, id) != 0) {
        use = use->next;
    }
    return use;
}

static int count_project(const struct weir_proxy *proxy, const char *project)
{
    int n = 0;
    for (const struct use *use = proxy->uses; use != NULL; use = use->next) {
        n += strcmp(use->project, project) == 0 ? use->n : 0;
    }
    return n;
}

weir_status use_begin(struct weir_proxy *proxy, const char *id, const char *project,
                      struct use **out, struct weir_error *err)
{
    weir_status status = WEIR_OK;
    pthread_mutex_lock(&proxy->lock);
    struct use *use = find(proxy, id);
    if (use != NULL && use->n >= PROXY_OF_SERVICE_MAX) {
        status = weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                                "%d requests and WebSockets of this service are under way: no more "
                                "at once",
                                PROXY_OF_SERVICE_MAX);
    } else if (proxy->n_uses >= PROXY_MAX) {
        status = weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                                "the server forwards as many requests as it may (%d)", PROXY_MAX);
    } else if (count_project(proxy, project) >= PROXY_OF_PROJECT_MAX) {
        status = weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                                "%d requests and WebSockets of this project's services are under "
                                "way: no more at once",
                                PROXY_OF_PROJECT_MAX);
    } else {
        if (use == NULL) {
            use = weir_xalloc(sizeof *use);
            *use = (struct use){
                .id = weir_xstrdup(id), .project = weir_xstrdup(project), .next = proxy->uses};
            proxy->uses = use;
        }
        use->n++;
        use->is_used = true;
        proxy->n_uses++;
        *out = use;
    }
    pthread_mutex_unlock(&proxy->lock);
    return status;
}

void use_end(struct weir_proxy *proxy, struct use *use)
{
    pthread_mutex_lock(&proxy->lock);
    use->n--;
    proxy->n_uses--;
    pthread_mutex_unlock(&proxy->lock);
}

void use_touch(struct weir_proxy *proxy, struct use *use)
{
    pthread_mutex_lock(&proxy->lock);
    use->is_used = true;
    pthread_mutex_unlock(&proxy->lock);
}

/* Some that the owner has not heard of for a while; those that nothing is under way of are forgotten once
 * it has. */
static size_t collect(struct weir_proxy *proxy, int64_t now_ms, char *ids[IDS_AT_ONCE])
{
    size_t n = 0;
    pthread_mutex_lock(&proxy->lock);
    struct use **at = &proxy->uses;
    while (*at != NULL) {
        struct use *use = *at;
        bool is_due = now_ms - use->noted_ms >= PROXY_USE_NOTED_MS;
        if (is_due && use->is_used && n < IDS_AT_ONCE) {
            use->is_used = false;
            use->noted_ms = now_ms;
            ids[n++] = weir_xstrdup(use->id);
        } else if (is_due && !use->is_used && use->n == 0) {
            *at = use->next;
            free(use->id);
            free(use->project);
            free(use);
            continue;
        }
        at = &use->next;
    }
    pthread_mutex_unlock(&proxy->lock);
    return n;
}

void use_tell(struct weir_proxy *proxy, int64_t now_ms)
{
    char *ids[IDS_AT_ONCE];
    size_t n = collect(proxy, now_ms, ids);
    for (size_t i = 0; i < n; i++) {
        proxy->config.ops->used(proxy->config.context, ids[i]);
        free(ids[i]);
    }
}
