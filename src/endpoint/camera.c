#include "endpoint/source/camera.h"

#include "base/url.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- addresses ------------------------------------------------------------------------------- */

/* "HOST", "HOST:PORT", "[V6]:PORT" of `len` bytes. */
static weir_status read_host(const char *text, size_t len, struct weir_camera_host *out,
                             struct weir_error *err)
{
    const char *end = text + len, *host = text, *close = NULL, *port;
    if (len > 0 && text[0] == '[') {
        host++;
        close = memchr(text, ']', len);
        port = close != NULL ? close + 1 : NULL;
    } else {
        close = memchr(text, ':', len);
        close = close != NULL ? close : end;
        port = close;
    }
    size_t n = close != NULL ? (size_t)(close - host) : 0;
    bool is_good = n > 0 && n < sizeof out->host && (port == end || *port == ':');
    if (is_good && port < end) {
        char *rest;
        long number = strtol(port + 1, &rest, 10);
        is_good = rest == end && port[1] >= '0' && port[1] <= '9' && number >= 1 && number <= 65535;
        out->port = (int)number;
    }
    if (!is_good) {
        return weir_error_set(err, WEIR_ERR_INVALID, "expected HOST or HOST:PORT in the address");
    }
    memcpy(out->host, host, n);
    out->host[n] = '\0';
    return WEIR_OK;
}

static bool is_plain(const char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text <= 0x20 || *text == 0x7f) {
            return false;
        }
    }
    return true;
}

/* "USER:PASSWORD", or with the colon as "%3A". */
static bool has_password(const char *login, size_t len)
{
    bool has = memchr(login, ':', len) != NULL;
    for (size_t i = 0; i + 3 <= len; i++) {
        has = has || strncasecmp(login + i, "%3a", 3) == 0;
    }
    return has;
}

weir_status weir_camera_host_read(const char *address, const char *scheme, int port,
                                  struct weir_camera_host *out, struct weir_error *err)
{
    size_t n = strlen(scheme);
    *out = (struct weir_camera_host){.port = port};
    if (strncmp(address, scheme, n) == 0 && strncmp(address + n, "s://", 4) == 0) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "%ss is not supported: give the address as %s://, in a network of "
                              "the cameras' own",
                              scheme, scheme);
    }
    if (strncmp(address, scheme, n) != 0 || strncmp(address + n, "://", 3) != 0 ||
        !is_plain(address)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "expected %s://HOST[:PORT]/PATH", scheme);
    }
    const char *begin = address + n + 3, *end = begin + strcspn(begin, "/?#");
    const char *at = memchr(begin, '@', (size_t)(end - begin));
    out->path = end;
    if (at != NULL) {
        size_t len = (size_t)(at - begin);
        if (has_password(begin, len)) {
            return weir_error_set(
                err, WEIR_ERR_INVALID,
                "the address has a password, which everybody with the document would "
                "see: leave only the user in it, and name a secret of the project: "
                "secrets: [\"password=NAME\"]");
        }
        if (!weir_url_decode(begin, len, out->user, sizeof out->user)) {
            return weir_error_set(
                err, WEIR_ERR_INVALID,
                "the user in the address is too long, or has a control character");
        }
        begin = at + 1;
    }
    return read_host(begin, (size_t)(end - begin), out, err);
}

weir_status weir_camera_query_check(const char *address, struct weir_error *err)
{
    static const char *const names[] = {"password", "passwd", "passphrase", "pass",
                                        "pwd",      "psw",    "userpwd",    "loginpas"};
    const char *query = strchr(address, '?');
    while (query != NULL && *++query != '\0') {
        char name[16];
        size_t len = strcspn(query, "=&;?#");
        bool is_read = query[len] == '=' && weir_url_decode(query, len, name, sizeof name);
        for (size_t i = 0; is_read && i < WEIR_ARRAY_LEN(names); i++) {
            if (strcasecmp(name, names[i]) == 0) {
                return weir_error_set(
                    err, WEIR_ERR_INVALID,
                    "\"%s\" in the address is a password, which everybody with the document would "
                    "see: take it out, write the user before the host (USER@HOST), and name a "
                    "secret of the project: secrets: [\"password=NAME\"]",
                    name);
            }
        }
        query = strpbrk(query, "&;");
    }
    return WEIR_OK;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static bool read_shares(const json_t *list, size_t n, double *out)
{
    bool is_good = json_array_size(list) == n;
    for (size_t i = 0; is_good && i < n; i++) {
        const json_t *number = json_array_get(list, i);
        out[i] = json_number_value(number);
        is_good = json_is_number(number) && out[i] >= 0 && out[i] <= 1;
    }
    return is_good;
}

static weir_status read_region(const json_t *list, const char *where, double out[4],
                               struct weir_error *err)
{
    static const double whole[4] = {0, 0, 1, 1};
    memcpy(out, whole, sizeof whole);
    if (list == NULL || json_is_null(list)) {
        return WEIR_OK;
    }
    return read_shares(list, 4, out) && out[2] > 0 && out[3] > 0 && out[0] + out[2] <= 1.000001 &&
                   out[1] + out[3] <= 1.000001
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "%s.region: expected [x, y, width, height], shares of the frame "
                                "from 0 to 1 that lie inside it",
                                where);
}

static weir_status read_masks(const json_t *list, const char *where, struct weir_camera_shape *out,
                              struct weir_error *err)
{
    const json_t *mask, *point;
    size_t i, k;
    if (list == NULL || json_is_null(list)) {
        return WEIR_OK;
    }
    if (!json_is_array(list) || json_array_size(list) > WEIR_CAMERA_MASKS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s.masks: expected at most %d polygons",
                              where, WEIR_CAMERA_MASKS_MAX);
    }
    out->n_masks = json_array_size(list);
    json_array_foreach(list, i, mask)
    {
        size_t n = json_array_size(mask);
        bool is_good = n >= 3 && n <= WEIR_CAMERA_MASK_POINTS_MAX;
        out->masks[i].n = n;
        json_array_foreach(mask, k, point)
        {
            is_good = is_good && read_shares(point, 2, out->masks[i].points[k]);
        }
        if (!is_good) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "%s.masks[%zu]: expected 3 to %d points [x, y], shares of the "
                                  "frame from 0 to 1",
                                  where, i, WEIR_CAMERA_MASK_POINTS_MAX);
        }
    }
    return WEIR_OK;
}

weir_status weir_camera_shape_read(const struct weir_camera *camera, const char *where,
                                   struct weir_camera_shape *out, struct weir_error *err)
{
    *out = (struct weir_camera_shape){.rotate = (int)camera->rotate};
    if (camera->rotate % 90 != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s.rotate: expected 0, 90, 180 or 270",
                              where);
    }
    WEIR_TRY(read_region(camera->region, where, out->region, err));
    return read_masks(camera->masks, where, out, err);
}

/* ---- cameras --------------------------------------------------------------------------------- */

weir_status weir_camera_read(const struct weir_kind *item, const json_t *object, const char *where,
                             struct weir_arena *arena, const struct weir_camera **out,
                             struct weir_error *err)
{
    struct weir_configured read;
    WEIR_AUTO(weir_json_auto_free) json_t *own = json_copy((json_t *)object);
    (void)json_object_del(own, "secrets");
    WEIR_TRY(weir_kind_read(item, own, where, arena, &read, err));
    const struct weir_camera *camera = read.options;
    size_t len = strlen(camera->name);
    if (len >= WEIR_CAMERA_NAME_BYTES || camera->name[0] == '.' ||
        strchr(camera->name, '/') != NULL || !is_plain(camera->name)) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "%s.name: expected 1 to %d bytes without \"/\", blanks and a \".\" in "
            "front",
            where, WEIR_CAMERA_NAME_BYTES - 1);
    }
    *out = camera;
    return WEIR_OK;
}

static weir_status check_one(const struct weir_kind *item, const char *scheme,
                             const struct weir_camera *camera, const char *where,
                             struct weir_error *err)
{
    struct weir_camera_shape shape;
    struct weir_camera_host host;
    WEIR_TRY(weir_camera_shape_read(camera, where, &shape, err));
    if (scheme == NULL ||
        weir_camera_host_read(camera->address, scheme, 0, &host, err) == WEIR_OK) {
        return WEIR_OK;
    }
    return weir_error_prefix(err, "%s.%s: ", where, item->options[0].name);
}

static weir_status check_all(const json_t *list, const struct weir_kind *item, const char *scheme,
                             struct weir_arena *arena, struct weir_error *err)
{
    const struct weir_camera *cameras[WEIR_CAMERAS_MAX];
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *where = weir_arena_printf(arena, ".cameras[%zu]", i);
        WEIR_TRY(weir_camera_read(item, json_array_get(list, i), where, arena, &cameras[i], err));
        WEIR_TRY(check_one(item, scheme, cameras[i], where, err));
        for (size_t k = 0; k < i; k++) {
            if (strcmp(cameras[k]->name, cameras[i]->name) == 0) {
                return weir_error_set(err, WEIR_ERR_INVALID,
                                      "%s.name: \"%s\" is .cameras[%zu] already", where,
                                      cameras[i]->name, k);
            }
        }
    }
    return WEIR_OK;
}

weir_status weir_cameras_check(const struct weir_source_video *options,
                               const struct weir_kind *item, const char *scheme,
                               struct weir_error *err)
{
    struct weir_arena arena;
    size_t n = json_array_size(options->cameras);
    if (n < 1 || n > WEIR_CAMERAS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, ".cameras: expected a list of 1 to %d cameras",
                              WEIR_CAMERAS_MAX);
    }
    weir_arena_init(&arena, 0);
    weir_status status = check_all(options->cameras, item, scheme, &arena, err);
    weir_arena_fini(&arena);
    return status;
}
