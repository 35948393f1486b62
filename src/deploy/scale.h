/** How many replicas a deployment needs. Pure. */
#ifndef WEIR_DEPLOY_SCALE_H
#define WEIR_DEPLOY_SCALE_H

#include "deploy/step.h"

/** Set deployment.n_wanted, more_ms and less_ms by the load (NULL: not known, then only by the
 *  bounds). `is_pending`: shares wait to come into effect. */
void scale_follow(struct weir_deployment *deployment, const struct weir_deploy_load *load,
                  bool is_pending, int64_t now_ms);

#endif
