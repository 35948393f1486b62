/** Image: what people give as one, and what a job's specification calls it. */
#ifndef WEIR_CLI_JOB_IMAGE_H
#define WEIR_CLI_JOB_IMAGE_H

#include "cli/command.h"

/**
 * An archive that is here is sent, if the server does not have it, and is "sha256:…"; any other word is the name of an image
 * on the nodes, or in a registry.
 * @param out  In the arena, or `given`.
 * @return NOT_FOUND: it is called as an archive is, and is not here.
 */
weir_status job_image_find(struct cli_call *call, const char *given, const char **out,
                           struct weir_error *err) WEIR_MUST_CHECK;

#endif
