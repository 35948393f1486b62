/** Services: who may open one. */
#ifndef WEIR_API_SERVICE_H
#define WEIR_API_SERVICE_H

#include "store/identity.h"

#include <stdbool.h>

struct weir_service;
/** May this caller open it? Whoever opens a notebook runs programs. */
bool service_is_open_to(const struct weir_service *service, const struct weir_identity *who);

#endif
