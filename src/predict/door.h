/**
 * Doors: what is done when somebody is let in. Each is a consumer of the outbox (consumer.h) with a thread and an
 * order of its own: one command at a time.
 *
 * A decision becomes a *command* by the plan (door/plan.h), or none. The command is sent until it is
 * answered or valid_ms have passed since the decision; with each try it has the same identifier. What came
 * of it, and that nothing answered, is kept for people: a door never holds decisions up, and none is opened
 * late. A decision that comes again after a kill has the identifier that it had, and a controller that keeps
 * the newest ones answers "repeated".
 *
 * The command, as JSON:
 *     {"id", "door", "verb": open | hold | lock, "decision", "key", "camera", "person", "verdict", "replica",
 *      "issued_ms", "valid_ms", "pulse_ms", "seq"}
 * "key" names the passage or the frame; "seq" counts up within a replica, also over its restarts; the clock of
 * issued_ms is that of the replica's node. An answer is {"id", "answer": done | repeated | late | refused |
 * jammed, "at"}.
 *
 * What a door was told is noted as an order (door/orders.h), for the server, and so is what was not sent for a rule, an interlock, a
 * lock-down or being late. "hold" and "lock" are noted when they begin, and when something else comes of them.
 *
 * Hours in which a door stands open are a lease: "hold" every 10 s, for 25 s, which ends by itself. Lock-down
 * comes with what the server wants served (deployment.h), ends a hold by "lock", and is told to doors that can
 * show it.
 *
 * What reaches a door is a kind (endpoint/doors.def); its code is predict/door/NAME.c, which defines door_NAME.
 */
#ifndef WEIR_PREDICT_DOOR_H
#define WEIR_PREDICT_DOOR_H

#include "predict/consumer.h"
#include "predict/door/board.h"
#include "predict/door/orders.h"
#include "predict/serving.h"

#define DOOR_ANSWER_MS                                                                             \
    2000 /**< A door that has not answered by then is tried again, or is silent. */
#define DOOR_SAID_BYTES 200

struct door;

/** What a door is told at its start; all borrowed, and there until after close. */
struct door_config {
    const void *options; /**< Those of the kind. */
    const struct predict_spec *spec;
    struct door_board *board;
    size_t i_door; /**< In spec and board. */
};

struct door_command {
    const char *id;
    const char *text; /**< All of it, as JSON. */
    bool is_lock;     /**< "lock"; else "open" or "hold". */
    int64_t pulse_ms; /**< How long it is to be open. */
    int64_t now_ms;   /**< Wall clock. */
};

enum door_word { DOOR_DONE, DOOR_REPEATED, DOOR_LATE, DOOR_REFUSED, DOOR_JAMMED };

struct door_answer {
    enum door_word word;
    int64_t at_ms;              /**< By the controller, wall clock; 0: it does not say. */
    char said[DOOR_SAID_BYTES]; /**< Why, for people; "": nothing. */
};

/** On the door's thread, but for cancel. */
struct door_ops {
    /** Must not wait for the door: one that is not there now may be later. */
    weir_status (*open)(const struct door_config *config, struct door **out,
                        struct weir_error *err);
    /**
     * Send a command and wait for the answer, at most timeout_ms.
     * @return OK: *answer is what it said. Any other: it may, or may not, have been carried out; the same command
     *         may be sent again.
     */
    weir_status (*send)(struct door *door, const struct door_command *command, int64_t timeout_ms,
                        struct door_answer *answer, struct weir_error *err);
    /** Show whether it is locked down; called until it is OK, and after each change. NULL: it shows nothing. */
    weir_status (*show)(struct door *door, bool is_locked_down, struct weir_error *err);
    /** Every 100 ms: what has to be done in time. OK: it is in reach, as far as is known. NULL: nothing has. */
    weir_status (*tick)(struct door *door, struct weir_error *err);
    void (*cancel)(
        struct door *door); /**< What waits ends soon. Any thread. NULL: nothing waits. */
    void (*close)(struct door *door);
};

#define WEIR_KIND(name) extern const struct door_ops door_##name;
#include "endpoint/doors.def"
#undef WEIR_KIND

/** What the consumer of a door is given as its options. */
struct door_setup {
    const struct weir_door *door;
    struct door_board *board;
    struct serving_slot *slot;  /**< The allow list, and doors that are locked down. */
    struct door_orders *orders; /**< What it is told is noted there; NULL: nowhere. */
};

/** The consumer's side of all doors. */
extern const struct sink_ops door_sink;

/** An answer from its text. @return false: it is none. */
bool door_word_read(const char *text, enum door_word *out);

/** {"id", "answer", "at", "said"} of a controller. @return INVALID if it is none. */
weir_status door_answer_read(const char *text, size_t len, struct door_answer *out, char id[64],
                             struct weir_error *err) WEIR_MUST_CHECK;

/** The zone of the doors' hours becomes that of the process: call it before there are threads.
 *  @return NOT_FOUND: the node does not know the zone. */
weir_status doors_set_zone(const struct predict_spec *spec, struct weir_error *err) WEIR_MUST_CHECK;

#endif
