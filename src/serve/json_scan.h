/**
 * JSON scan: reads a request's JSON in one pass over its bytes, without a tree. A tensor of 150,000
 * numbers would be as many allocations in one.
 *
 *     json_scan_init(&scan, body, len, err);
 *     WEIR_TRY(json_scan_enter(&scan, '{'));
 *     while (json_scan_member(&scan, arena, &key)) { … json_scan_number, _string, _skip, _enter … }
 *     WEIR_TRY(json_scan_end(&scan));
 *
 * The first error stays: later calls return it again, and loops end. Errors say the byte at which
 * the text is wrong. Depth over JSON_SCAN_DEPTH_MAX is refused. Beside JSON, the tokens NaN,
 * Infinity and -Infinity are numbers, as TensorFlow Serving and Python write them.
 *
 * Memory: none but texts, in the caller's arena. The bytes are borrowed.
 */
#ifndef WEIR_SERVE_JSON_SCAN_H
#define WEIR_SERVE_JSON_SCAN_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_SCAN_DEPTH_MAX 64

struct json_scan {
    const char *begin, *at, *end;
    int depth;
    bool is_first;      /**< No comma comes before the next member or element. */
    weir_status status; /**< The first error. */
    struct weir_error *err;
};

/** A number. */
struct json_number {
    double value;
    uint64_t magnitude; /**< Of an integer. */
    bool is_integer;    /**< Written without fraction and exponent, and below 2^64. */
    bool is_negative;
};

/** A text, in an arena: len bytes and a NUL; it may hold NULs. */
struct json_text {
    const char *bytes;
    size_t len;
};

void json_scan_init(struct json_scan *scan, const char *text, size_t len, struct weir_error *err);

/** Sets the error (INVALID) with the place. Returns it. */
weir_status json_scan_fail(struct json_scan *scan, const char *expected);

/** The first byte of the next value; '\0' at the end or after an error. */
char json_scan_peek(struct json_scan *scan);

/** Goes into an object or array: bracket is '{' or '['. */
weir_status json_scan_enter(struct json_scan *scan, char bracket);

/** The next member's name: its value comes next. False: the object is over, or there is an error. */
bool json_scan_member(struct json_scan *scan, struct weir_arena *arena, const char **out_key);

/** Is there another element? False: the array is over, or there is an error. */
bool json_scan_element(struct json_scan *scan);

/** Exact: the double nearest to what is written. Not exact: to 18 digits, and faster. */
weir_status json_scan_number(struct json_scan *scan, bool is_exact, struct json_number *out);
weir_status json_scan_text(struct json_scan *scan, struct weir_arena *arena, struct json_text *out);
/** true or false. */
weir_status json_scan_bool(struct json_scan *scan, bool *out);
/** A null, if there is one. */
bool json_scan_null(struct json_scan *scan);

/** Goes over a value, and says which bytes it was. Out may be NULL. */
weir_status json_scan_skip(struct json_scan *scan, struct json_text *out);

/** Nothing comes behind the value. */
weir_status json_scan_end(struct json_scan *scan);

#endif
