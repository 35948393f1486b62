#include "api/routes.h"

/* In the order in which requests are the most: agents, trackers and replicas ask all the time. */
const struct weir_route_table *const api_routes[] = {&api_routes_cluster, &api_routes_track,
                                                     &api_routes_ion,     &api_routes_job,
                                                     &api_routes_model,   &api_routes_platform,
                                                     &api_routes_people,  &api_routes_data,
                                                     &api_routes_alert,   NULL};
