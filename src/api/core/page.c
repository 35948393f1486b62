/** The page's files, embedded in the program; for who is logged in only. */
#include "api/core/dispatch.h"

#include "http/stream.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

extern const char web_index_html[], web_index_html_end[];
extern const char web_app_js[], web_app_js_end[];
extern const char web_plot_js[], web_plot_js_end[];
extern const char web_dagre_js[], web_dagre_js_end[];
extern const char web_alerts_js[], web_alerts_js_end[];
extern const char web_cameras_js[], web_cameras_js_end[];
extern const char web_clusters_js[], web_clusters_js_end[];
extern const char web_enrol_js[], web_enrol_js_end[];
extern const char web_passage_js[], web_passage_js_end[];
extern const char web_snapshots_js[], web_snapshots_js_end[];
extern const char web_app_css[], web_app_css_end[];

#define NEXT_MAX_BYTES 1000 /* three times as many are in one more address */

/* What addresses of screens begin with below /p/PROJECT (web/src/screens). */
static const char *const screens[] = {
    "alerts",      "audit",  "cameras", "clusters", "datasets", "deployments", "events",
    "experiments", "home",   "ions",    "jobs",     "models",   "nodes",       "notebooks",
    "people",      "queues", "runs",    "storage",  "sweeps",   "usage",
};

static bool begins_with_screen(const char *target)
{
    const char *first = target + 1;
    size_t len = strcspn(first, "/?");
    for (size_t i = 0; target[0] == '/' && i < WEIR_ARRAY_LEN(screens); i++) {
        if (strlen(screens[i]) == len && memcmp(screens[i], first, len) == 0) {
            return true;
        }
    }
    return false;
}

bool api_page_is_console(const char *target)
{
    return strncmp(target, "/p/", 3) == 0 || begins_with_screen(target);
}

/* The weight of a media type that the header names; 0: it does not. A range with "*" names none. */
static double weight_of(const char *accept, const char *type)
{
    size_t len = strlen(type);
    while (*accept != '\0') {
        accept += strspn(accept, " \t,");
        size_t item = strcspn(accept, ",");
        size_t name = strcspn(accept, " \t;,");
        if (name == len && strncasecmp(accept, type, len) == 0) {
            const char *q = memmem(accept, item, "q=", 2);
            return q != NULL ? strtod(q + 2, NULL) : 1;
        }
        accept += item;
    }
    return 0;
}

/* A browser that opens an address names HTML. Programs name JSON, or take anything. */
static bool wants_page(const struct weir_http_request *request)
{
    const char *accept = weir_http_request_header(request, "Accept");
    double html = accept != NULL ? weight_of(accept, "text/html") : 0;
    return html > 0 && html >= weight_of(accept, "application/json");
}

/* All addresses of the console are the one page, which reads its own address. One that a person
 * typed without its project is for browsers alone: programs are told that there is no such thing. */
static bool is_page(const struct weir_http_request *request)
{
    const char *path = request->path;
    return strcmp(path, "/") == 0 || strncmp(path, "/p/", 3) == 0 ||
           ((strcmp(path, "/p") == 0 || begins_with_screen(path)) && wants_page(request));
}

/* The login page leads back to where its visitor wanted to go. */
static void lead_to_login(struct api_call *call)
{
    const char *target = weir_http_request_target(call->request), *login = "/login";
    if (api_page_is_console(target) && strlen(target) <= NEXT_MAX_BYTES) {
        login = weir_arena_printf(call->arena, "/login?next=%s",
                                  weir_http_percent_encode(call->arena, target));
    }
    weir_http_response_redirect(call->response, login);
}

#define HTML       "text/html; charset=utf-8"
#define JAVASCRIPT "text/javascript; charset=utf-8"
#define CSS        "text/css; charset=utf-8"

static struct page_file {
    const char *path;
    struct weir_http_asset asset;
} files[] = {
    {"/", {.content_type = HTML, .bytes = web_index_html, .end = web_index_html_end}},
    {"/app.js", {.content_type = JAVASCRIPT, .bytes = web_app_js, .end = web_app_js_end}},
    {"/plot.js", {.content_type = JAVASCRIPT, .bytes = web_plot_js, .end = web_plot_js_end}},
    {"/dagre.js", {.content_type = JAVASCRIPT, .bytes = web_dagre_js, .end = web_dagre_js_end}},
    {"/alerts.js", {.content_type = JAVASCRIPT, .bytes = web_alerts_js, .end = web_alerts_js_end}},
    {"/cameras.js",
     {.content_type = JAVASCRIPT, .bytes = web_cameras_js, .end = web_cameras_js_end}},
    {"/clusters.js",
     {.content_type = JAVASCRIPT, .bytes = web_clusters_js, .end = web_clusters_js_end}},
    {"/enrol.js", {.content_type = JAVASCRIPT, .bytes = web_enrol_js, .end = web_enrol_js_end}},
    {"/passage.js",
     {.content_type = JAVASCRIPT, .bytes = web_passage_js, .end = web_passage_js_end}},
    {"/snapshots.js",
     {.content_type = JAVASCRIPT, .bytes = web_snapshots_js, .end = web_snapshots_js_end}},
    {"/app.css", {.content_type = CSS, .bytes = web_app_css, .end = web_app_css_end}},
};

static struct page_file *find_file(const struct weir_http_request *request)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(files); i++) {
        if (strcmp(request->path, files[i].path) == 0 || (i == 0 && is_page(request))) {
            return &files[i];
        }
    }
    return NULL;
}

bool api_page(struct api_call *call)
{
    struct weir_http_request *request = call->request;
    struct weir_error err;
    if (strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0) {
        return false;
    }
    struct page_file *file = find_file(request);
    if (file == NULL) {
        return false;
    }
    if (api_identify(call, WEIR_IDENTITY_ANYWHERE, &err) != WEIR_OK) {
        lead_to_login(call);
        return true;
    }
    weir_http_response_asset(call->response, request, &file->asset);
    weir_http_response_header(call->response, "Vary", "Accept, Accept-Encoding");
    return true;
}
