/** The table of MLflow's routes (routes.def). */
#include "mlflow/call.h"
#include "route/rows.h"

#define ROUTE(fn, method, pattern, noun_, right, access, ...)                                      \
    {ROUTE_ROW(method, pattern, right, access), .noun = (noun_), .mlflow = fn, __VA_ARGS__},

static const struct weir_route rows[] = {
#include "mlflow/routes.def"
};

const struct weir_route_table *const weir_mlflow_routes[] = {
    &(const struct weir_route_table){rows, WEIR_ARRAY_LEN(rows)}, NULL};
