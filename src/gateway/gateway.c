#include "gateway/gateway.h"

#include "base/arena.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct weir_gateway {
    struct weir_gateway_config config;
    pthread_mutex_t lock;             /* for as long as it takes to count one reference */
    struct weir_gateway_table *table; /* in effect */
};

weir_status weir_gateway_create(const struct weir_gateway_config *config, struct weir_gateway **out,
                                struct weir_error *err)
{
    (void)err;
    struct weir_gateway *gateway = weir_xalloc(sizeof *gateway);
    *gateway = (struct weir_gateway){.config = *config, .table = weir_gateway_table_create()};
    pthread_mutex_init(&gateway->lock, NULL);
    *out = gateway;
    return WEIR_OK;
}

void weir_gateway_destroy(struct weir_gateway *gateway)
{
    if (gateway != NULL) {
        weir_gateway_table_unref(gateway->table);
        pthread_mutex_destroy(&gateway->lock);
        free(gateway);
    }
}

void weir_gateway_publish(struct weir_gateway *gateway, struct weir_gateway_table *table)
{
    pthread_mutex_lock(&gateway->lock);
    struct weir_gateway_table *before = gateway->table;
    gateway->table = table;
    pthread_mutex_unlock(&gateway->lock);
    weir_gateway_table_unref(before);
}

struct weir_gateway_table *weir_gateway_acquire(struct weir_gateway *gateway)
{
    pthread_mutex_lock(&gateway->lock);
    struct weir_gateway_table *table = weir_gateway_table_ref(gateway->table);
    pthread_mutex_unlock(&gateway->lock);
    return table;
}
