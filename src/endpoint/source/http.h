/** Options of the source "http". */
#ifndef WEIR_ENDPOINT_SOURCE_HTTP_H
#define WEIR_ENDPOINT_SOURCE_HTTP_H

struct weir_source_http {
    char *listen; /**< ADDRESS:PORT; port 0: any that is free. */
    char *token;  /**< NULL: whoever reaches the address may send. */
};

#endif
