#include "sdp.h"

#include "base/base64.h"
#include "codec.h"

#include <stdio.h>
#include <string.h>

enum { JPEG_PAYLOAD_TYPE = 26, NAMES_BYTES = 128, SET_MAX_BYTES = 1024 };

/** A description that begins with "m=", up to the next. */
struct media {
    struct rtsp_text kind, formats, lines;
};

static bool next_media(struct rtsp_text *rest, struct media *out)
{
    struct rtsp_text line;
    while (rest->n > 0 && !rtsp_text_begins(*rest, "m=")) {
        (void)rtsp_text_line(rest, &line);
    }
    if (!rtsp_text_line(rest, &line)) {
        return false;
    }
    line.at += 2;
    line.n -= 2;
    out->kind = rtsp_text_cut(&line, ' ');
    (void)rtsp_text_cut(&line, ' '); /* the port, and the profile */
    (void)rtsp_text_cut(&line, ' ');
    out->formats = rtsp_text_trim(line);
    out->lines = *rest;
    while (rest->n > 0 && !rtsp_text_begins(*rest, "m=")) {
        (void)rtsp_text_line(rest, &line);
    }
    out->lines.n = (size_t)(rest->at - out->lines.at);
    return true;
}

/* What follows "a=NAME:"; with a payload type that is told, behind it. Only up to the first "m=". */
static bool find_attribute(struct rtsp_text lines, const char *name, int payload_type,
                           struct rtsp_text *out)
{
    struct rtsp_text line;
    while (rtsp_text_line(&lines, &line) && !rtsp_text_begins(line, "m=")) {
        struct rtsp_text rest = line, at = rtsp_text_cut(&rest, ':');
        if (!rtsp_text_begins(at, "a=") || strlen(name) + 2 != at.n ||
            strncmp(at.at + 2, name, at.n - 2) != 0) {
            continue;
        }
        if (payload_type >= 0 && rtsp_text_number(rtsp_text_cut(&rest, ' '), 127) != payload_type) {
            continue;
        }
        *out = rtsp_text_trim(rest);
        return true;
    }
    return false;
}

/* The name of a payload type's codec: "H264". */
static struct rtsp_text codec_name(const struct media *media, int payload_type)
{
    struct rtsp_text map;
    if (find_attribute(media->lines, "rtpmap", payload_type, &map)) {
        return rtsp_text_cut(&map, '/');
    }
    return rtsp_text_of(payload_type == JPEG_PAYLOAD_TYPE ? "JPEG" : "");
}

/* The first format of a video that is known. */
static bool find_codec(const struct media *media, struct rtsp_sdp *out)
{
    struct rtsp_text formats = media->formats;
    while (formats.n > 0) {
        out->payload_type = (int)rtsp_text_number(rtsp_text_cut(&formats, ' '), 127);
        struct rtsp_text name = codec_name(media, out->payload_type);
        for (size_t i = 0; i < WEIR_ARRAY_LEN(rtsp_codecs) && out->payload_type >= 0; i++) {
            if (rtsp_text_is(name, rtsp_codecs[i]->name)) {
                out->codec = (enum weir_rtsp_codec)i;
                return true;
            }
        }
    }
    return false;
}

/* One parameter set in base64; many leave the padding out. One that is damaged is left: the stream has it too. */
static void add_set(struct rtsp_sdp *out, struct rtsp_text text)
{
    static const uint8_t start[] = {0, 0, 0, 1};
    char padded[SET_MAX_BYTES + 4];
    uint8_t bytes[SET_MAX_BYTES];
    size_t n = 0;
    while (text.n > 0 && text.at[text.n - 1] == '=') {
        text.n--;
    }
    if (text.n == 0 || rtsp_text_copy(text, padded, SET_MAX_BYTES) != WEIR_OK) {
        return;
    }
    memcpy(padded + text.n, "===", 4);
    padded[(text.n + 3) / 4 * 4] = '\0';
    if (weir_base64_decode(padded, bytes, sizeof bytes, &n) != WEIR_OK ||
        out->n_parameter_bytes + sizeof start + n > sizeof out->parameter_sets) {
        return;
    }
    memcpy(out->parameter_sets + out->n_parameter_bytes, start, sizeof start);
    memcpy(out->parameter_sets + out->n_parameter_bytes + sizeof start, bytes, n);
    out->n_parameter_bytes += sizeof start + n;
}

static void add_sets(struct rtsp_sdp *out, struct rtsp_text format, const char *name)
{
    struct rtsp_text sets = {"", 0};
    if (rtsp_text_find(format, ';', name, &sets)) {
        while (sets.n > 0) {
            add_set(out, rtsp_text_trim(rtsp_text_cut(&sets, ',')));
        }
    }
}

static int64_t format_number(struct rtsp_text format, const char *name)
{
    struct rtsp_text value = {"", 0};
    return rtsp_text_find(format, ';', name, &value) ? rtsp_text_number(value, INT32_MAX) : 0;
}

/* "a=fmtp" of the codec. */
static weir_status parse_format(struct rtsp_text format, struct rtsp_sdp *out,
                                struct weir_error *err)
{
    static const char *const names[] = {"sprop-parameter-sets", "sprop-vps", "sprop-sps",
                                        "sprop-pps"};
    if (out->codec == WEIR_RTSP_H264 && format_number(format, "packetization-mode") > 1) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "the camera sends H.264 in the interleaved mode "
                              "(packetization-mode=2), which is not supported: set it to mode 1");
    }
    if (out->codec == WEIR_RTSP_H265 && format_number(format, "sprop-max-don-diff") > 0) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "the camera sends H.265 out of order (sprop-max-don-diff above 0), "
                              "which is not supported: set it to send in order");
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(names); i++) {
        bool is_own = (i == 0) == (out->codec == WEIR_RTSP_H264);
        if (is_own && out->codec != WEIR_RTSP_JPEG) {
            add_sets(out, format, names[i]);
        }
    }
    return WEIR_OK;
}

/* "a=framesize:96 1920-1080", or "a=x-dimensions:1920,1080". */
static void parse_size(const struct media *media, struct rtsp_sdp *out)
{
    struct rtsp_text size;
    char between = '-';
    if (!find_attribute(media->lines, "framesize", out->payload_type, &size)) {
        if (!find_attribute(media->lines, "x-dimensions", -1, &size)) {
            return;
        }
        between = ',';
    }
    int64_t width = rtsp_text_number(rtsp_text_trim(rtsp_text_cut(&size, between)), UINT16_MAX);
    int64_t height = rtsp_text_number(rtsp_text_trim(size), UINT16_MAX);
    if (width > 0 && height > 0) {
        out->width = (int)width;
        out->height = (int)height;
    }
}

/* The names of codecs that the camera has instead; a name that is not known here is not repeated. */
static void say_what_is_there(struct rtsp_text text, char out[NAMES_BYTES])
{
    static const char *const known[] = {"MP4V-ES", "JPEG2000", "MP2T", "VP8",  "VP9",
                                        "AV1",     "H263",     "MPV",  "H266", "raw"};
    struct media media;
    size_t n = 0;
    bool has_video = false;
    out[0] = '\0';
    while (next_media(&text, &media)) {
        struct rtsp_text formats = media.formats;
        has_video = has_video || rtsp_text_is(media.kind, "video");
        struct rtsp_text name =
            codec_name(&media, (int)rtsp_text_number(rtsp_text_cut(&formats, ' '), 127));
        for (size_t i = 0; i < WEIR_ARRAY_LEN(known) && n < NAMES_BYTES - 16; i++) {
            if (rtsp_text_is(media.kind, "video") && rtsp_text_is(name, known[i])) {
                n +=
                    (size_t)snprintf(out + n, NAMES_BYTES - n, "%s%s", n > 0 ? ", " : "", known[i]);
            }
        }
    }
    if (n == 0) {
        (void)snprintf(out, NAMES_BYTES, "%s", has_video ? "another codec" : "no video");
    }
}

weir_status rtsp_sdp_parse(struct rtsp_text text, struct rtsp_sdp *out, struct weir_error *err)
{
    const struct rtsp_sdp none = {.control = {"", 0}, .session_control = {"", 0}};
    struct rtsp_sdp best = none;
    struct media media, best_media = {0};
    struct rtsp_text rest = text, unused;
    bool has_one = false;
    while (next_media(&rest, &media)) {
        struct rtsp_sdp one = none;
        bool is_other_way = find_attribute(media.lines, "sendonly", -1, &unused);
        if (!rtsp_text_is(media.kind, "video") || !find_codec(&media, &one) ||
            find_attribute(media.lines, "inactive", -1, &unused) || (has_one && is_other_way)) {
            continue;
        }
        best = one;
        best_media = media;
        has_one = true;
        if (!is_other_way) {
            break;
        }
    }
    if (!has_one) {
        char names[NAMES_BYTES];
        say_what_is_there(text, names);
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "the camera sends %s: set its stream to H.264, H.265 or JPEG", names);
    }
    struct rtsp_text format = {"", 0};
    (void)find_attribute(best_media.lines, "fmtp", best.payload_type, &format);
    WEIR_TRY(parse_format(format, &best, err));
    parse_size(&best_media, &best);
    (void)find_attribute(best_media.lines, "control", -1, &best.control);
    (void)find_attribute(text, "control", -1, &best.session_control);
    *out = best;
    return WEIR_OK;
}
