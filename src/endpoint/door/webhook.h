/** Options of the door "webhook". */
#ifndef WEIR_ENDPOINT_DOOR_WEBHOOK_H
#define WEIR_ENDPOINT_DOOR_WEBHOOK_H

struct weir_door_webhook {
    char *url, *secret, *token, *ca_file; /**< NULL: none, but for url. */
};

#endif
