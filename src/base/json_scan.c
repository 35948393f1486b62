#include "base/json_scan.h"

#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX_BYTES 1024
#define EXACT_POWER_MAX  22 /* 10^22 is the largest power of ten that a double holds exactly */
#define NARROW_POWER_MAX 27 /* and of a long double */
#define MANTISSA_DIGITS  19 /* any 19 digits are below 2^64 */

static const double powers[EXACT_POWER_MAX + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static const long double wide_powers[NARROW_POWER_MAX + 1] = {
    1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L,  1e9L,
    1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L,
    1e20L, 1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};

void weir_json_scan_init(struct weir_json_scan *scan, const char *text, size_t len,
                         struct weir_error *err)
{
    *scan = (struct weir_json_scan){
        .begin = text, .at = text, .end = text + len, .is_first = true, .err = err};
}

weir_status weir_json_scan_fail(struct weir_json_scan *scan, const char *expected)
{
    if (scan->status == WEIR_OK) {
        scan->status =
            weir_error_set(scan->err, WEIR_ERR_INVALID, "the body's JSON, byte %zu: expected %s",
                           (size_t)(scan->at - scan->begin), expected);
    }
    return scan->status;
}

static void skip_blanks(struct weir_json_scan *scan)
{
    while (scan->at < scan->end &&
           (*scan->at == ' ' || *scan->at == '\n' || *scan->at == '\t' || *scan->at == '\r')) {
        scan->at++;
    }
}

char weir_json_scan_peek(struct weir_json_scan *scan)
{
    skip_blanks(scan);
    return scan->status == WEIR_OK && scan->at < scan->end ? *scan->at : '\0';
}

static bool take(struct weir_json_scan *scan, char wanted)
{
    if (weir_json_scan_peek(scan) != wanted) {
        return false;
    }
    scan->at++;
    return true;
}

weir_status weir_json_scan_enter(struct weir_json_scan *scan, char bracket)
{
    if (!take(scan, bracket)) {
        return weir_json_scan_fail(scan, bracket == '{' ? "an object" : "an array");
    }
    if (++scan->depth > WEIR_JSON_SCAN_DEPTH_MAX) {
        return weir_json_scan_fail(scan, "at most 64 levels of arrays and objects");
    }
    scan->is_first = true;
    return WEIR_OK;
}

/* Is there something before the closing bracket? */
static bool go_on(struct weir_json_scan *scan, char bracket)
{
    if (scan->status != WEIR_OK) {
        return false;
    }
    if (take(scan, bracket)) {
        scan->depth--;
        scan->is_first = false;
        return false;
    }
    if (!scan->is_first && !take(scan, ',')) {
        (void)weir_json_scan_fail(scan, bracket == '}' ? "',' or '}'" : "',' or ']'");
        return false;
    }
    scan->is_first = false;
    return true;
}

bool weir_json_scan_member(struct weir_json_scan *scan, struct weir_arena *arena,
                           const char **out_key)
{
    struct weir_json_text key;
    if (!go_on(scan, '}') || weir_json_scan_text(scan, arena, &key) != WEIR_OK) {
        return false;
    }
    if (!take(scan, ':')) {
        (void)weir_json_scan_fail(scan, "':'");
        return false;
    }
    *out_key = key.bytes;
    return true;
}

bool weir_json_scan_member_raw(struct weir_json_scan *scan, struct weir_json_text *out_key)
{
    if (!go_on(scan, '}') || weir_json_scan_text_raw(scan, out_key) != WEIR_OK) {
        return false;
    }
    if (!take(scan, ':')) {
        (void)weir_json_scan_fail(scan, "':'");
        return false;
    }
    return true;
}

bool weir_json_scan_element(struct weir_json_scan *scan)
{
    return go_on(scan, ']');
}

/* ---- numbers --------------------------------------------------------------------------------- */

static bool is_digit(const struct weir_json_scan *scan)
{
    return scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9';
}

static bool take_word(struct weir_json_scan *scan, const char *word)
{
    size_t len = strlen(word);
    if ((size_t)(scan->end - scan->at) < len || memcmp(scan->at, word, len) != 0) {
        return false;
    }
    scan->at += len;
    return true;
}

/** What was read of a number: mantissa · 10^exponent, if no digit was dropped. */
struct digits {
    uint64_t mantissa;
    int n_digits; /* without leading zeros */
    int64_t exponent;
    bool is_cut, has_point, has_exponent;
};

static bool take_digits(struct weir_json_scan *scan, struct digits *digits, bool is_fraction)
{
    const char *at = scan->at;
    struct digits d = *digits; /* in registers: a write through a pointer could be to the text */
    for (; at < scan->end && *at >= '0' && *at <= '9'; at++) {
        unsigned digit = (unsigned)(*at - '0');
        if (d.n_digits < MANTISSA_DIGITS || (d.n_digits == MANTISSA_DIGITS && !is_fraction &&
                                             d.mantissa <= (UINT64_MAX - digit) / 10)) {
            d.mantissa = d.mantissa * 10 + digit;
            d.n_digits += d.mantissa != 0;
            d.exponent -= is_fraction;
        } else {
            d.is_cut = d.is_cut || digit != 0;
            d.exponent += !is_fraction;
        }
    }
    bool has_any = at > scan->at;
    *digits = d;
    scan->at = at;
    return has_any;
}

static bool take_exponent(struct weir_json_scan *scan, struct digits *digits)
{
    bool is_negative = false;
    int64_t exponent = 0;
    if (scan->at >= scan->end || (*scan->at != 'e' && *scan->at != 'E')) {
        return true;
    }
    scan->at++;
    if (scan->at < scan->end && (*scan->at == '+' || *scan->at == '-')) {
        is_negative = *scan->at++ == '-';
    }
    if (!is_digit(scan)) {
        return false;
    }
    for (; is_digit(scan); scan->at++) {
        exponent = exponent < 100000 ? exponent * 10 + (*scan->at - '0') : exponent;
    }
    digits->has_exponent = true;
    digits->exponent += is_negative ? -exponent : exponent;
    return true;
}

static bool take_number(struct weir_json_scan *scan, struct digits *digits)
{
    bool has_zero = is_digit(scan) && *scan->at == '0';
    const char *start = scan->at;
    if (!take_digits(scan, digits, false) || (has_zero && scan->at - start > 1)) {
        return false;
    }
    if (scan->at < scan->end && *scan->at == '.') {
        scan->at++;
        digits->has_point = true;
        if (!take_digits(scan, digits, true)) {
            return false;
        }
    }
    return take_exponent(scan, digits);
}

/* By the C library: exact for any digits. */
static weir_status slow_value(struct weir_json_scan *scan, const char *start, double *out)
{
    char text[NUMBER_MAX_BYTES];
    size_t len = (size_t)(scan->at - start);
    if (len >= sizeof text) {
        return weir_json_scan_fail(scan, "a number of at most 1000 digits");
    }
    memcpy(text, start, len);
    text[len] = '\0';
    *out = strtod(text, NULL);
    return WEIR_OK;
}

static weir_status value_of(struct weir_json_scan *scan, const char *start,
                            const struct digits *digits, bool is_exact, double *out)
{
    int64_t exponent = digits->exponent;
    if (digits->mantissa == 0 && !digits->is_cut) {
        *out = 0;
    } else if (!digits->is_cut && digits->mantissa <= (uint64_t)1 << 53 &&
               exponent >= -EXACT_POWER_MAX && exponent <= EXACT_POWER_MAX) {
        /* Both are exact, so that the one rounding is the right one (Clinger 1990). */
        double mantissa = (double)digits->mantissa;
        *out = exponent < 0 ? mantissa / powers[-exponent] : mantissa * powers[exponent];
    } else if (!is_exact && exponent >= -NARROW_POWER_MAX && exponent <= NARROW_POWER_MAX) {
        long double mantissa = (long double)digits->mantissa;
        *out = (double)(exponent < 0 ? mantissa / wide_powers[-exponent]
                                     : mantissa * wide_powers[exponent]);
    } else {
        return slow_value(scan, start, out);
    }
    return WEIR_OK;
}

weir_status weir_json_scan_number(struct weir_json_scan *scan, bool is_exact,
                                  struct weir_json_number *out)
{
    struct digits digits = {0};
    double value;
    skip_blanks(scan);
    if (scan->status != WEIR_OK) {
        return scan->status;
    }
    bool is_negative = scan->at < scan->end && *scan->at == '-';
    scan->at += is_negative;
    const char *start = scan->at;
    if (take_word(scan, "Infinity")) {
        *out =
            (struct weir_json_number){.value = is_negative ? -(double)INFINITY : (double)INFINITY,
                                      .is_negative = is_negative};
        return WEIR_OK;
    }
    if (!is_negative && take_word(scan, "NaN")) {
        *out = (struct weir_json_number){.value = (double)NAN};
        return WEIR_OK;
    }
    if (!take_number(scan, &digits)) {
        return weir_json_scan_fail(scan, "a number");
    }
    WEIR_TRY(value_of(scan, start, &digits, is_exact, &value));
    *out = (struct weir_json_number){.value = is_negative ? -value : value,
                                     .magnitude = digits.mantissa,
                                     .is_integer = !digits.has_point && !digits.has_exponent &&
                                                   digits.exponent == 0,
                                     .is_negative = is_negative};
    return WEIR_OK;
}

/* ---- texts ----------------------------------------------------------------------------------- */

static int hex_of(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    digit |= 0x20;
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* Four hexadecimal digits; -1: there are none. */
static int32_t take_hex(struct weir_json_scan *scan)
{
    int32_t code = 0;
    if (scan->end - scan->at < 4) {
        return -1;
    }
    for (int i = 0; i < 4; i++) {
        int digit = hex_of(*scan->at++);
        if (digit < 0) {
            return -1;
        }
        code = code << 4 | digit;
    }
    return code;
}

static char *put_utf8(char *to, uint32_t code)
{
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    } else {
        *to++ = (char)(0xf0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 0x3f));
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    }
    return to;
}

/* Behind "\u". */
static char *take_unicode(struct weir_json_scan *scan, char *to)
{
    int32_t code = take_hex(scan);
    if (code >= 0xd800 && code < 0xdc00 && take_word(scan, "\\u")) {
        int32_t low = take_hex(scan);
        if (low < 0xdc00 || low > 0xdfff) {
            return NULL;
        }
        return put_utf8(to, 0x10000 + ((uint32_t)(code - 0xd800) << 10) + (uint32_t)(low - 0xdc00));
    }
    return code < 0 || (code >= 0xd800 && code <= 0xdfff) ? NULL : put_utf8(to, (uint32_t)code);
}

/* Behind a backslash; NULL: that is no escape. */
static char *take_escape(struct weir_json_scan *scan, char *to)
{
    static const char from[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    if (scan->at >= scan->end) {
        return NULL;
    }
    char letter = *scan->at++;
    if (letter == 'u') {
        return take_unicode(scan, to);
    }
    const char *found = letter != '\0' ? strchr(from, letter) : NULL;
    if (found == NULL) {
        return NULL;
    }
    *to++ = values[found - from];
    return to;
}

/* The bytes between the quotes; the scan stands behind them. */
static weir_status take_quoted(struct weir_json_scan *scan, struct weir_json_text *out,
                               bool *out_has_escape)
{
    if (!take(scan, '"')) {
        return weir_json_scan_fail(scan, "a string");
    }
    const char *start = scan->at;
    *out_has_escape = false;
    while (scan->at < scan->end && *scan->at != '"') {
        if ((unsigned char)*scan->at < 0x20) {
            return weir_json_scan_fail(scan, "no control character in a string");
        }
        if (*scan->at == '\\') {
            *out_has_escape = true;
            scan->at++;
        }
        scan->at += scan->at < scan->end;
    }
    if (scan->at >= scan->end) {
        return weir_json_scan_fail(scan, "the string's end");
    }
    *out = (struct weir_json_text){.bytes = start, .len = (size_t)(scan->at - start)};
    scan->at++;
    return WEIR_OK;
}

weir_status weir_json_scan_text(struct weir_json_scan *scan, struct weir_arena *arena,
                                struct weir_json_text *out)
{
    struct weir_json_text raw;
    bool has_escape;
    WEIR_TRY(take_quoted(scan, &raw, &has_escape));
    char *text = weir_arena_memdup(arena, raw.bytes, raw.len);
    size_t len = raw.len;
    if (has_escape) {
        struct weir_json_scan inner = *scan;
        char *to = text;
        inner.at = raw.bytes;
        inner.end = raw.bytes + raw.len;
        while (to != NULL && inner.at < inner.end) {
            if (*inner.at == '\\') {
                inner.at++;
                to = take_escape(&inner, to);
            } else {
                *to++ = *inner.at++;
            }
        }
        if (to == NULL) {
            return weir_json_scan_fail(scan, "only escapes of JSON in the string before it");
        }
        *to = '\0';
        len = (size_t)(to - text);
    }
    for (const char *part = text; part <= text + len; part += strlen(part) + 1) {
        if (!weir_text_is_utf8(part)) {
            return weir_json_scan_fail(scan, "UTF-8 in the string before it");
        }
    }
    *out = (struct weir_json_text){.bytes = text, .len = len};
    return WEIR_OK;
}

weir_status weir_json_scan_text_raw(struct weir_json_scan *scan, struct weir_json_text *out)
{
    bool is_plain = take(scan, '"');
    const char *start = scan->at;
    while (is_plain && scan->at < scan->end && *scan->at != '"') {
        is_plain = *scan->at >= 0x20 && *scan->at < 0x7f && *scan->at != '\\';
        scan->at++;
    }
    if (!is_plain || scan->at >= scan->end) {
        return weir_json_scan_fail(scan, "a string of ASCII without escapes");
    }
    *out = (struct weir_json_text){.bytes = start, .len = (size_t)(scan->at - start)};
    scan->at++;
    return WEIR_OK;
}

/* ---- the rest -------------------------------------------------------------------------------- */

weir_status weir_json_scan_bool(struct weir_json_scan *scan, bool *out)
{
    char next = weir_json_scan_peek(scan);
    if (next == 't' && take_word(scan, "true")) {
        *out = true;
        return WEIR_OK;
    }
    if (next == 'f' && take_word(scan, "false")) {
        *out = false;
        return WEIR_OK;
    }
    return weir_json_scan_fail(scan, "true or false");
}

bool weir_json_scan_null(struct weir_json_scan *scan)
{
    return weir_json_scan_peek(scan) == 'n' && take_word(scan, "null");
}

static weir_status skip_scalar(struct weir_json_scan *scan, char first)
{
    struct weir_json_text text;
    struct digits digits = {0};
    bool flag;
    if (first == '"') {
        return take_quoted(scan, &text, &flag);
    }
    if (first == 't' || first == 'f') {
        return weir_json_scan_bool(scan, &flag);
    }
    if (weir_json_scan_null(scan) || take_word(scan, "NaN")) {
        return WEIR_OK;
    }
    scan->at += first == '-' && scan->at < scan->end;
    return take_word(scan, "Infinity") || take_number(scan, &digits)
               ? WEIR_OK
               : weir_json_scan_fail(scan, "a value");
}

/* Arrays and objects are walked with a stack of bits: which of them is an object. */
weir_status weir_json_scan_skip(struct weir_json_scan *scan, struct weir_json_text *out)
{
    int base = scan->depth;
    uint64_t are_objects = 0;
    struct weir_json_text key;
    bool has_escape;
    char first = weir_json_scan_peek(scan);
    const char *start = scan->at;
    for (bool is_over = false; !is_over && scan->status == WEIR_OK;) {
        first = weir_json_scan_peek(scan);
        if (first == '{' || first == '[') {
            WEIR_TRY(weir_json_scan_enter(scan, first));
            are_objects = are_objects << 1 | (first == '{');
        } else {
            WEIR_TRY(skip_scalar(scan, first));
            is_over = scan->depth == base;
        }
        while (scan->depth > base && !go_on(scan, (are_objects & 1) != 0 ? '}' : ']')) {
            WEIR_TRY(scan->status);
            are_objects >>= 1;
            is_over = scan->depth == base;
        }
        if (scan->depth > base && (are_objects & 1) != 0) {
            WEIR_TRY(take_quoted(scan, &key, &has_escape));
            if (!take(scan, ':')) {
                return weir_json_scan_fail(scan, "':'");
            }
        }
    }
    if (out != NULL && scan->status == WEIR_OK) {
        *out = (struct weir_json_text){.bytes = start, .len = (size_t)(scan->at - start)};
    }
    return scan->status;
}

weir_status weir_json_scan_end(struct weir_json_scan *scan)
{
    if (scan->status == WEIR_OK) {
        skip_blanks(scan);
        if (scan->at != scan->end) {
            return weir_json_scan_fail(scan, "nothing more");
        }
    }
    return scan->status;
}
