/**
 * Identity: how people and programs prove who they are. Each manner of proof is a kind (base/kind.h), a file
 * kind/NAME.c; an operator chooses which are on (`weir server --proofs`).
 *
 * A kind makes of a request something proven (struct weir_identity_proven): a user of Weir, and what else the
 * proof says. Nothing else begins a session (weir_identity_begin_session) or answers a program. What is proven
 * says who somebody is and never what they may: that is read with every request from the user's present row, their
 * groups and roles (store/identity.h), so what is taken from a user is taken from their sessions.
 *
 *     shown      Is the proof in this request? Of programs, which show it with each one.
 *     look       Who does it say it is? In a transaction, at once.
 *     prove      Is that true? Outside of transactions; may take long.
 *     callback   What can be used once is used up, in the transaction that begins the session.
 *
 * A browser logs in on the page /login, on which each kind draws its piece:
 *
 *     GET /login/KIND         begin: a page of the kind's own, or the address that the browser is sent to
 *     POST /login/KIND        the form of our own page comes back: look, prove, callback, a session
 *     GET /login/KIND/back    the browser comes back from a provider elsewhere: the same
 *
 * A login by link takes two steps, so that a mail scanner that follows the link does not use it up: begin looks at
 * it and shows a button, whose POST uses it. A kind that sends browsers elsewhere owes more:
 *
 *  - begin makes a state of 256 random bits, and a nonce where its protocol has one, and keeps them with an expiry
 *    of minutes in a cookie (step.cookie: HttpOnly, SameSite=Lax, Path=/login/KIND). look refuses (UNAUTH) what comes
 *    back with another state than the cookie's, without one, or too late. A state is good once: callback sees to it.
 *  - An answer that must come from outside is not waited for in the handler's thread. prove puts the request off:
 *    weir_http_response_wait, or weir_http_response_later with the work given to a thread that sends, sets
 *    ask->is_put_off and returns WEIR_OK. The whole is called again, and finds the answer in request->state.
 *  - The session's cookie is SameSite=Strict, and a browser does not send it along a chain of redirects that began on
 *    another site. So what comes back from elsewhere is answered by a page of Weir that leads on, not by a redirect.
 *
 * Threads: all functions may run on many at once.
 */
#ifndef WEIR_IDENTITY_IDENTITY_H
#define WEIR_IDENTITY_IDENTITY_H

#include "base/kind.h"
#include "http/http.h"
#include "identity/guard.h"
#include "store/identity.h"

#define WEIR_IDENTITY_FIELDS 2

struct weir_identities;
struct weir_identity_ops;

extern const struct weir_registry weir_identity_kinds;

#define WEIR_KIND(name) extern const struct weir_kind weir_identity_##name;
#include "identity/identities.def"
#undef WEIR_KIND

/** Text is borrowed from the request or lies in its arena. */
struct weir_identity_proven {
    const char *user;   /**< Of Weir. NULL, before prove: nobody, or somebody who may not log in. */
    const char *by;     /**< Name of the kind. */
    const char *issuer; /**< Who vouches for the user elsewhere; NULL: nobody does. */
    const char *subject;       /**< Who the user is there. */
    const char *const *groups; /**< That the issuer says the user is in. Without an issuer: none. */
    size_t n_groups;
    const char *limited_to; /**< Role that the proof gives at most; NULL: all that the user may. */
    /** The proof may no more than this token, and ends with it. NULL: none was shown. */
    const char *token;
};

/** A kind as it is set up. */
struct weir_identity_way {
    const struct weir_kind *kind;
    const struct weir_identity_ops *ops;
    const void *options;
    void *state; /**< The kind's own, made by its open. */
    bool is_on;
};

/** A proof on its way. */
struct weir_identity_ask {
    struct weir_identities *identities;
    const struct weir_identity_way *way;
    struct weir_http_request *request;
    struct weir_http_response *response; /**< For what is put off; NULL where no browser logs in. */
    struct weir_arena *arena;
    int64_t now_ms;
    /** Values of the kind's fields, or what it found shown. */
    const char *given[WEIR_IDENTITY_FIELDS];
    bool has_more;                /**< Another kind's piece stands on the page above this one's. */
    struct weir_guard_note *note; /**< Out, whatever the end: for the audit. */
    bool is_put_off;              /**< Out, of prove. */
    const char *token;            /**< Out, of shown: a token of Weir, which proves it instead. */
    const char *password_hash;    /**< From look to prove; NULL: nobody, or without one. */
    /** Out, of look: what the caller may, where it had to be read anyway. */
    struct weir_identity *identity;
};

/** What a browser gets when a login begins. */
struct weir_identity_step {
    const char *html;     /**< What stands on the page. */
    const char *location; /**< Else where the browser is sent. */
    const char *cookie;   /**< Value of Set-Cookie; NULL: none. */
};

/** Whose programs may show the kind's proof with each request. */
enum weir_identity_reach {
    WEIR_IDENTITY_ANYWHERE, /**< On every path. */
    WEIR_IDENTITY_FOREIGN,  /**< On the paths of other programs' clients only. */
};

/** What may be NULL is said; the others must be there. Errors: UNAUTH where the proof is none. */
struct weir_identity_ops {
    const char *words;   /**< "a password": what the audit says that a session was begun with. */
    const char *refused; /**< What the audit says of a login in vain; no full stop. */
    const char *refusal; /**< What the page says of it: a sentence. */
    const char *lead;    /**< "with your name and password"; of kinds that draw. */
    bool is_default;     /**< It is on if the operator does not choose. */
    bool is_needed;      /**< It cannot be off. */
    /** From another site: GET /login/KIND/back is for it. Its form is none of ours. */
    bool comes_back;
    enum weir_identity_reach reach;
    const char *const *fields; /**< Of its form, NULL at the end; NULL: it has no form. */
    /** Does the request show it? Then `given` or `token` are filled. NULL: it comes with no request. No CSRF value is
     *  asked for: it must be nothing that a browser, or a proxy on its way, adds of itself. */
    bool (*shown)(struct weir_identity_ask *ask);
    /** Nobody (out->user NULL) is no error where prove must take as long for somebody who is not there. */
    weir_status (*look)(struct weir_txn *txn, struct weir_identity_ask *ask,
                        struct weir_identity_proven *out, struct weir_error *err);
    /** NULL: what was looked up is proven. May fill what look could not know. */
    weir_status (*prove)(struct weir_identity_ask *ask, struct weir_identity_proven *proven,
                         struct weir_error *err);
    /** NULL: nothing is used up. May run twice, as its transaction. */
    weir_status (*callback)(struct weir_txn *txn, struct weir_identity_ask *ask,
                            const struct weir_identity_proven *proven, struct weir_error *err);
    /** Its piece of the page, HTML of our own making; `more` are hidden fields for a form. NULL: it has none. */
    const char *(*draw)(const struct weir_identity_ask *ask, const char *more);
    /** NULL: its page has what it draws, no more. */
    weir_status (*begin)(struct weir_identity_ask *ask, struct weir_identity_step *out,
                         struct weir_error *err);
    void *(*open)(void); /**< NULL: it keeps nothing. */
    void (*close)(void *state);
};

struct weir_identities_config {
    struct weir_store *store; /**< Borrowed. */
    /** Kinds that are on, in the order of the page: "password,link", or with options
     *  "{kind: link, minutes: 5},token" (YAML). NULL: those that are so by default, as the registry lists them. */
    const char *proofs;
    const struct weir_registry *kinds; /**< NULL: weir_identity_kinds. */
};

/** @return INVALID, with "--proofs" as the place, if the text names none, one twice, or not those that must be on. */
weir_status weir_identities_create(const struct weir_identities_config *config,
                                   struct weir_identities **out,
                                   struct weir_error *err) WEIR_MUST_CHECK;
void weir_identities_destroy(struct weir_identities *identities); /**< NULL is accepted. */

struct weir_guard *weir_identities_guard(const struct weir_identities *identities);

/** All of them: those that are on in their order, then those that are off. */
const struct weir_identity_way *weir_identities_list(const struct weir_identities *identities,
                                                     size_t *out_n);

/** The way of a kind of the registry, on or off. */
const struct weir_identity_way *weir_identities_of(const struct weir_identities *identities,
                                                   const struct weir_kind *kind);

/** The way of that name. @return NOT_FOUND if there is none; UNSUPPORTED if it is off. */
weir_status weir_identities_find(const struct weir_identities *identities, const char *name,
                                 const struct weir_identity_way **out,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** UNSUPPORTED, and what to do, if the way is off. */
weir_status weir_identity_check_on(const struct weir_identity_way *way,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Look and prove, by a way that is on. Opens transactions of its own.
 * @param out_identity  What the caller may now, written on success; NULL: nobody asks.
 * @return UNAUTH; UNAVAILABLE, with note->retry_after_s, if passwords are being guessed; WEIR_OK with
 *         ask->is_put_off set and nothing proven if it goes on later.
 */
weir_status weir_identity_prove(struct weir_identity_ask *ask, struct weir_identity_proven *out,
                                struct weir_identity *out_identity,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** How long a session lasts. */
#define WEIR_SESSION_MS ((int64_t)12 * 3600 * 1000)

/**
 * Begin a browser's session of what is proven: in a write transaction, after the kind's callback. The groups that an
 * issuer names are the user's from now on (store/tenant.h).
 * @param secret  Out: of the cookie.
 * @return UNAUTH if the user is not there, or disabled.
 */
weir_status weir_identity_begin_session(struct weir_txn *txn,
                                        const struct weir_identity_proven *proven,
                                        const struct weir_identity_ask *ask,
                                        char secret[WEIR_SECRET_BYTES], struct weir_session *out,
                                        struct weir_error *err) WEIR_MUST_CHECK;

/* ---- of single kinds ------------------------------------------------------------------------ */

/**
 * Make a one-time link for who the identity is: it may as much, and ends with the same token. In a write transaction.
 * @param secret  Out. @param out_ms  How long it is good.
 * @return UNSUPPORTED if links are off.
 */
weir_status weir_identity_make_link(struct weir_txn *txn, const struct weir_identities *identities,
                                    const struct weir_identity *identity, int64_t now_ms,
                                    char secret[WEIR_SECRET_BYTES], int64_t *out_ms,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/* ---- for the kinds -------------------------------------------------------------------------- */

/** A person that logs in by a password: proven->user and ask->password_hash; neither is set for somebody who is not
 *  there or may not log in. */
weir_status identity_look_person(struct weir_txn *txn, struct weir_identity_ask *ask,
                                 struct weir_identity_proven *out,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** Is given[1] the password of given[0]? By the guard. */
weir_status identity_prove_password(struct weir_identity_ask *ask,
                                    struct weir_identity_proven *proven,
                                    struct weir_error *err) WEIR_MUST_CHECK;

#endif
