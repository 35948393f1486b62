/** All routes of the API, as tables (route/route.h): one for each family of nouns. */
#ifndef WEIR_API_ROUTES_H
#define WEIR_API_ROUTES_H

#include "route/route.h"

extern const struct weir_route_table api_routes_platform, api_routes_people, api_routes_data,
    api_routes_cluster, api_routes_job, api_routes_track, api_routes_model, api_routes_ion,
    api_routes_alert;

/** Ended by NULL; for weir_route_find and weir_route_at. */
extern const struct weir_route_table *const api_routes[];

#endif
