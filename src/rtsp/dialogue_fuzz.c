/*
 * What a camera says, as any bytes: a message is the same whole or cut, what is in it lies within it, and what follows
 * from it (a description, a challenge, an address) is refused, or keeps what it promises.
 */
#include "address.h"
#include "auth.h"
#include "message.h"
#include "sdp.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_within(struct rtsp_text part, const void *bytes, size_t n)
{
    const char *begin = bytes;
    if (part.n > 0 && (part.at < begin || part.at + part.n > begin + n)) {
        abort();
    }
}

static void check_address(struct rtsp_text control)
{
    char out[RTSP_URL_BYTES];
    if (rtsp_address_of_part("rtsp://camera:554/stream", control, out) == WEIR_OK &&
        (strlen(out) >= sizeof out || strpbrk(out, " \r\n") != NULL)) {
        abort();
    }
}

static void check_description(struct rtsp_text body)
{
    struct weir_error err = {0};
    struct rtsp_sdp *sdp = calloc(1, sizeof *sdp);
    if (sdp == NULL) {
        abort();
    }
    if (rtsp_sdp_parse(body, sdp, &err) == WEIR_OK) {
        check_within(sdp->control, body.at, body.n);
        check_within(sdp->session_control, body.at, body.n);
        check_address(sdp->control);
        if (sdp->payload_type < 0 || sdp->payload_type > 127 ||
            sdp->n_parameter_bytes > sizeof sdp->parameter_sets) {
            abort();
        }
    } else if (err.message[0] == '\0') {
        abort();
    }
    free(sdp);
}

/* What proves it is one header, and stays one, and says the password only if the camera's own words do. */
static void check_challenge(const struct rtsp_message *message, bool has_secret)
{
    struct rtsp_auth auth = {0};
    struct weir_buf out;
    weir_buf_init(&out, 1 << 16);
    if (rtsp_auth_challenge(&auth, message) == WEIR_OK) {
        rtsp_auth_put(&auth, "ada", "secret", "DESCRIBE", "rtsp://camera:554/", &out);
        const char *end = strstr(out.data, "\r\n");
        if (out.status != WEIR_OK || end == NULL || end[2] != '\0' ||
            (!has_secret && strstr(out.data, "secret") != NULL)) {
            abort();
        }
    }
    weir_buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rtsp_message message = {0}, cut = {0};
    struct rtsp_text value;
    const char *bytes = (const char *)data;
    size_t used = 0, used_cut = 0;
    check_description((struct rtsp_text){bytes, size});
    check_address((struct rtsp_text){bytes, size});
    if (rtsp_message_take(bytes, size, &message, &used) != WEIR_OK || used == 0) {
        return 0;
    }
    if (used > size || rtsp_message_take(bytes, used - 1, &cut, &used_cut) != WEIR_OK ||
        used_cut != 0) {
        abort();
    }
    check_within(message.body, data, used);
    for (unsigned i = 0; rtsp_message_header(&message, "WWW-Authenticate", i, &value); i++) {
        check_within(value, data, used);
    }
    check_description(message.body);
    check_challenge(&message, memmem(data, used, "secret", strlen("secret")) != NULL);
    return 0;
}
