/** The page's files, embedded in the program; for who is logged in only. */
#include "api/dispatch.h"

#include <string.h>

extern const char web_index_html[], web_index_html_end[];
extern const char web_app_js[], web_app_js_end[];
extern const char web_plot_js[], web_plot_js_end[];
extern const char web_app_css[], web_app_css_end[];

struct page_file {
    const char *path, *content_type, *begin, *end;
};

/* Addresses of the console's screens: all of them are the one page, which reads its own address. */
static bool is_screen(const char *path)
{
    return strcmp(path, "/") == 0 || strncmp(path, "/p/", 3) == 0;
}

bool api_page(struct api_call *call)
{
    struct weir_http_request *request = call->request;
    const struct page_file files[] = {
        {"/", "text/html; charset=utf-8", web_index_html, web_index_html_end},
        {"/app.js", "text/javascript; charset=utf-8", web_app_js, web_app_js_end},
        {"/plot.js", "text/javascript; charset=utf-8", web_plot_js, web_plot_js_end},
        {"/app.css", "text/css; charset=utf-8", web_app_css, web_app_css_end},
    };
    if (strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0) {
        return false;
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(files); i++) {
        bool is_page = i == 0 && is_screen(request->path);
        if (is_page || strcmp(request->path, files[i].path) == 0) {
            struct weir_error err;
            if (api_identify(call, &err) != WEIR_OK) {
                weir_http_response_redirect(call->response, "/login");
                return true;
            }
            weir_http_response_static(call->response, 200, files[i].content_type, files[i].begin,
                                      (size_t)(files[i].end - files[i].begin));
            weir_http_response_header(call->response, "Cache-Control", "no-cache");
            return true;
        }
    }
    return false;
}
