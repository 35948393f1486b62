/* Any bytes as what a program or a browser sends: what comes out is one line, names the service's own
 * cookies and paths alone, and is the same for what it has already made. */
#include "proxy/rules.h"

#include "proxy/proxy.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ID   "abcdefghijklmnopqrstuvwxyz"
#define PATH "/services/" ID "/"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static bool is_line(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if ((*c < 0x20 && *c != '\t') || *c == 0x7f) {
            return false;
        }
    }
    return true;
}

static void try_place(const struct proxy_place *place, const char *text, struct weir_arena *arena)
{
    char *cookie = rules_cookie_outward(place, text, arena);
    if (cookie != NULL) {
        static const char prefix[] = "weir-svc-" ID "-";
        const char *path = strstr(cookie, "; Path=");
        must(is_line(cookie) && strncmp(cookie, prefix, sizeof prefix - 1) == 0);
        must(path != NULL && strncmp(path + 7, place->path, strlen(place->path)) == 0);
        must(strcasestr(cookie, "; domain=") == NULL);
        /* A browser sends it back, and the program gets what it gave. */
        char *back = weir_arena_memdup(arena, cookie, strcspn(cookie, ";"));
        char *inward = rules_cookies_inward(place, back, arena);
        must(inward != NULL && strcmp(inward, back + sizeof prefix - 1) == 0);
    }
    char *inward = rules_cookies_inward(place, text, arena);
    must(inward == NULL || (is_line(inward) && strlen(inward) <= strlen(text)));
    char *location = rules_location_outward(place, text, arena);
    must(location == NULL || (is_line(location) && strchr(location, '\\') == NULL));
    char *target = rules_target(place, text, arena);
    must(target == NULL || (target[0] == '/' && is_line(target)));
    if (rules_is_next(place, text)) {
        must(text[0] == '/' && text[1] != '/');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct proxy_place places[] = {
        {ID, "weir.example:8441", PATH, PATH, true},
        {ID, "weir.example:8441", PATH, "/", false},
        {ID, ID ".services.example", "/", "/", true},
    };
    struct weir_arena arena;
    struct rules_head head;
    size_t len = 0;
    weir_arena_init(&arena, 0);
    char *text = weir_arena_memdup(&arena, data, size);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        try_place(&places[i], text, &arena);
    }
    if (rules_read_head((const char *)data, size, &arena, &head, &len) == WEIR_OK) {
        must(len <= size && head.http_status >= 100 && head.http_status <= 599);
        for (size_t i = 0; i < head.n_headers; i++) {
            must(is_line(head.headers[i].name) && is_line(head.headers[i].value));
        }
    }
    (void)weir_proxy_is_host(text);
    (void)rules_has_token(text, "upgrade");
    weir_arena_fini(&arena);
    return 0;
}
