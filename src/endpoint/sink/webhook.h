/** Options of the sink "webhook". */
#ifndef WEIR_ENDPOINT_SINK_WEBHOOK_H
#define WEIR_ENDPOINT_SINK_WEBHOOK_H

struct weir_sink_webhook {
    char *url, *secret, *token, *ca_file; /**< NULL: none, but for url. */
};

#endif
