#include "endpoint/source/http.h"

#include "endpoint/endpoint.h"

static const struct weir_option options[] = {
    WEIR_OPT_JSON(weir_source_http, listen, "listen", TEXT, 0, "127.0.0.1:0", 0, 0,
                  "Address and port that a replica listens on; port 0: one that is free, written "
                  "to endpoint.json in the replica's folder"),
    WEIR_OPT_JSON(weir_source_http, token, "token", TEXT, WEIR_OPTION_SECRET, NULL, 0, 0,
                  "What senders must show, as `Authorization: Bearer TOKEN`; without one, whoever "
                  "reaches the address may send"),
};

const struct weir_kind weir_source_http_kind = {
    .name = "http",
    .doc = "Frames are sent with POST /frames/CAMERA/NUMBER, the picture as body, or "
           "without numbers with /frames/CAMERA?key=KEY, where KEY names the frame for good; the "
           "answer is "
           "the decision, once it is durable. A busy replica answers 503 with Retry-After.",
    WEIR_KIND_OPTIONS(weir_source_http, options),
};
