/**
 * JSON scan: reads a request's JSON in one pass over its bytes, without a tree. A tensor of 150,000
 * numbers, or a batch of 1,000 metrics, would be as many allocations in one.
 *
 *     weir_json_scan_init(&scan, body, len, err);
 *     WEIR_TRY(weir_json_scan_enter(&scan, '{'));
 *     while (weir_json_scan_member(&scan, arena, &key)) { … weir_json_scan_number, _string, _skip, _enter … }
 *     WEIR_TRY(weir_json_scan_end(&scan));
 *
 * The first error stays: later calls return it again, and loops end. Errors say the byte at which
 * the text is wrong. Depth over WEIR_JSON_SCAN_DEPTH_MAX is refused. Beside JSON, the tokens NaN,
 * Infinity and -Infinity are numbers, as TensorFlow Serving and Python write them.
 *
 * Memory: none but texts, in the caller's arena. The bytes are borrowed.
 */
#ifndef WEIR_BASE_JSON_SCAN_H
#define WEIR_BASE_JSON_SCAN_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_JSON_SCAN_DEPTH_MAX 64

struct weir_json_scan {
    const char *begin, *at, *end;
    int depth;
    bool is_first;      /**< No comma comes before the next member or element. */
    weir_status status; /**< The first error. */
    struct weir_error *err;
};

/** A number. */
struct weir_json_number {
    double value;
    uint64_t magnitude; /**< Of an integer. */
    bool is_integer;    /**< Written without fraction and exponent, and below 2^64. */
    bool is_negative;
};

/** A text, in an arena: len bytes and a NUL; it may hold NULs. */
struct weir_json_text {
    const char *bytes;
    size_t len;
};

void weir_json_scan_init(struct weir_json_scan *scan, const char *text, size_t len,
                         struct weir_error *err);

/** Sets the error (INVALID) with the place. Returns it. */
weir_status weir_json_scan_fail(struct weir_json_scan *scan, const char *expected);

/** The first byte of the next value; '\0' at the end or after an error. */
char weir_json_scan_peek(struct weir_json_scan *scan);

/** Goes into an object or array: bracket is '{' or '['. */
weir_status weir_json_scan_enter(struct weir_json_scan *scan, char bracket);

/** The next member's name: its value comes next. False: the object is over, or there is an error. */
bool weir_json_scan_member(struct weir_json_scan *scan, struct weir_arena *arena,
                           const char **out_key);

/** The same, in place and without a copy: a name with an escape, or one that is not ASCII, is an error. */
bool weir_json_scan_member_raw(struct weir_json_scan *scan, struct weir_json_text *out_key);

/** Is there another element? False: the array is over, or there is an error. */
bool weir_json_scan_element(struct weir_json_scan *scan);

/** Exact: the double nearest to what is written. Not exact: to 18 digits, and faster. */
weir_status weir_json_scan_number(struct weir_json_scan *scan, bool is_exact,
                                  struct weir_json_number *out);
weir_status weir_json_scan_text(struct weir_json_scan *scan, struct weir_arena *arena,
                                struct weir_json_text *out);
/** The same, in place, without a copy and a NUL: an escape, or what is not ASCII, is an error. */
weir_status weir_json_scan_text_raw(struct weir_json_scan *scan, struct weir_json_text *out);
/** true or false. */
weir_status weir_json_scan_bool(struct weir_json_scan *scan, bool *out);
/** A null, if there is one. */
bool weir_json_scan_null(struct weir_json_scan *scan);

/** Goes over a value, and says which bytes it was. Out may be NULL. */
weir_status weir_json_scan_skip(struct weir_json_scan *scan, struct weir_json_text *out);

/** Nothing comes behind the value. */
weir_status weir_json_scan_end(struct weir_json_scan *scan);

#endif
