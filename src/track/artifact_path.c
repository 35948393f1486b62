/** The rule of artifacts' paths. */
#include "track/artifact.h"

#include "base/json.h"

#include <string.h>

/** Whoever decodes does so a few times at most; what goes on longer is meant to deceive. */
#define DECODINGS_MAX 8

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static weir_status refuse(const char *why, struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_INVALID, "Invalid path: %s", why);
}

static weir_status check_segment(const char *segment, size_t len, struct weir_error *err)
{
    if (len == 0) {
        return refuse("it begins or ends with \"/\", or has an empty part", err);
    }
    if ((len == 1 && segment[0] == '.') || (len == 2 && memcmp(segment, "..", 2) == 0)) {
        return refuse("\".\" and \"..\" are no parts of it", err);
    }
    return len <= WEIR_ARTIFACT_SEGMENT_MAX_BYTES
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_LIMIT, "Invalid path: a part of over %d bytes",
                                WEIR_ARTIFACT_SEGMENT_MAX_BYTES);
}

/* The rule, of one stage of the decoding. */
static weir_status check_stage(const char *path, struct weir_error *err)
{
    for (const unsigned char *c = (const unsigned char *)path; *c != '\0'; c++) {
        if (*c < 0x20 || *c == 0x7f || *c == '\\' || *c == '#') {
            return refuse("control characters, \"\\\" and \"#\" are not allowed", err);
        }
    }
    if (!weir_text_is_utf8(path)) {
        return refuse("it is not UTF-8", err);
    }
    bool has_letter = (path[0] >= 'a' && path[0] <= 'z') || (path[0] >= 'A' && path[0] <= 'Z');
    if (has_letter && path[1] == ':') {
        return refuse("it begins with a drive", err);
    }
    for (const char *part = path;; part++) {
        size_t len = strcspn(part, "/");
        WEIR_TRY(check_segment(part, len, err));
        part += len;
        if (*part == '\0') {
            return WEIR_OK;
        }
    }
}

/* Decode in place, once; what is no escape stays. *out_is_same: there was none. */
static weir_status decode(char *text, bool *out_is_same, struct weir_error *err)
{
    size_t n = 0;
    *out_is_same = true;
    for (const char *c = text; *c != '\0'; c++) {
        int high = *c == '%' ? hex_value(c[1]) : -1;
        int low = high >= 0 ? hex_value(c[2]) : -1;
        if (low < 0) {
            text[n++] = *c;
            continue;
        }
        if (high == 0 && low == 0) {
            return refuse("%00 is not allowed", err);
        }
        text[n++] = (char)(high << 4 | low);
        *out_is_same = false;
        c += 2;
    }
    text[n] = '\0';
    return WEIR_OK;
}

weir_status weir_artifact_path_check(const char *path, struct weir_error *err)
{
    char text[WEIR_ARTIFACT_PATH_MAX_BYTES + 1];
    size_t len = strlen(path);
    if (len > WEIR_ARTIFACT_PATH_MAX_BYTES) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "Invalid path: over %d bytes",
                              WEIR_ARTIFACT_PATH_MAX_BYTES);
    }
    memcpy(text, path, len + 1);
    for (int i = 0; i < DECODINGS_MAX; i++) {
        bool is_same;
        WEIR_TRY(check_stage(text, err));
        WEIR_TRY(decode(text, &is_same, err));
        if (is_same) {
            return WEIR_OK;
        }
    }
    return refuse("it is percent-encoded over and over", err);
}
