/**
 * The steps of a request's way (dispatch.c): the call is made, its caller identified, the right checked, the route
 * performed, the audit told. What is answered in another form than the API's own takes the same steps (mlflow.c, page.c,
 * inference.c, service_visit.c).
 */
#ifndef WEIR_API_DISPATCH_H
#define WEIR_API_DISPATCH_H

#include "api/core/act.h"
#include "api/core/call.h"

/** Values in the JSON of one body, each of which takes memory however short it is written. */
#define API_BODY_MAX_VALUES ((size_t)256 << 10)

/** DENIED unless the caller has the route's right; sets the rows that the call sees. */
weir_status api_check_right(struct api_call *call, struct weir_error *err) WEIR_MUST_CHECK;

/** Run the route as its access says, write its act, and tell whoever waits. */
weir_status api_perform(struct api_call *call, struct weir_error *err) WEIR_MUST_CHECK;

/** The token of "Authorization: Bearer"; NULL: none is shown. */
const char *api_bearer(const struct weir_http_request *request);

/** Who calls? Identity from what programs show, of kinds that reach so far, or else from a session; checks the CSRF
 *  header of a session's changes. */
weir_status api_identify(struct api_call *call, enum weir_identity_reach reach,
                         struct weir_error *err) WEIR_MUST_CHECK;

/** The same by a token, or else a session's cookie; either may be NULL. */
weir_status api_identify_by(struct api_call *call, const char *token, const char *session,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** Let the audit know of a refusal, or that a token was used. Outside of any transaction. */
void api_note_for_audit(const struct api_call *call, weir_status status,
                        const struct weir_error *err);

/**
 * How the requests of one set of tables are taken and answered. All take the same steps, in this order; what differs is here.
 * Each step may refuse, which ends the way.
 */
struct api_form {
    /** The route of a request, what its path says, and the project before it. Pure. */
    const struct weir_route *(*find)(const struct weir_http_request *request,
                                     const char *out_params[ROUTE_MAX_PARAMS],
                                     const char **out_project);
    /** Set call->allow, and say that there is no such route. */
    weir_status (*not_found)(struct api_call *call, struct weir_error *err);
    enum weir_identity_reach reach; /**< Which proofs these requests may show. */
    /** What else must hold before the body is looked at: the caller has the right. */
    weir_status (*check)(struct api_call *call, struct weir_error *err);
    weir_status (*read_body)(struct api_call *call, struct weir_error *err);
    /** The route's function, in the transaction that its row asks for. */
    weir_status (*run)(struct api_call *call, struct weir_txn *txn, struct weir_error *err);
    /** Answer with an error, in the form that these clients read. */
    void (*refuse)(struct api_call *call, const struct weir_error *err);
};

extern const struct api_form api_mlflow_form;

/** Answer one of the page's files ("/", "/app.js" …), or the way to the login page for who has no
 *  session; false if the path is none of them. Addresses of screens without a project ("/runs") are
 *  the page for callers that name text/html in Accept. */
bool api_page(struct api_call *call);

/** Is this path, with or without a query, one of the console's screens: "/p/…", "/runs" …? */
bool api_page_is_console(const char *target);

#endif
