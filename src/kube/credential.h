/** The credential that a client shows: got when it is needed, and again when it may have been changed. For the domain's own
 *  files. */
#ifndef WEIR_KUBE_CREDENTIAL_H
#define WEIR_KUBE_CREDENTIAL_H

#include "kube/config.h"

struct kube_credential {
    const struct weir_kube_config *config; /**< Borrowed. */
    char *token, *cert_pem, *key_pem;      /**< NULL: none. */
    int64_t got_ms;                        /**< Monotonic; 0: it has to be got. */
    int64_t expires_ms;                    /**< Since 1970; 0: nobody says. */
};

/**
 * Have one that is good by what is known: a file's is read again after a minute, a program's shortly before it expires.
 * @param out_is_other  Is the certificate another than before?
 * @return The file's error; NOT_FOUND: the program is not there; INVALID: it failed, or prints no credential.
 */
weir_status kube_credential_get(struct kube_credential *credential, bool *out_is_other,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** It was refused. @return Can another be got? */
bool kube_credential_refused(struct kube_credential *credential);

void kube_credential_fini(struct kube_credential *credential);

/** Take what a program of `exec` printed. For kube_credential_get, and tests. */
weir_status kube_credential_take(struct kube_credential *credential, const json_t *printed,
                                 bool *out_is_other, struct weir_error *err) WEIR_MUST_CHECK;

#endif
