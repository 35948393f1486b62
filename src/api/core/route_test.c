/* Every route against a table written by hand: who may call it, what of it a task and an agent may
 * reach, and that reading changes nothing. */
#include "api/caller_fixture.h"

#include "api/routes.h"
#include "base/test_main.h"
#include "track/artifact.h"

enum least { ANYBODY, VIEWER, OPERATOR, ENGINEER, ADMIN, AGENT, WORKER, N_CALLERS };

/** Which token a task or an agent shows for it. NOBODY's: no such token may call the route. */
enum speaker { NOBODYS, TRAINING, REPLICA, DEPLOYED, BATCH, NODE };

#define RUN    "/runs/run-own"
#define UPLOAD RUN "/uploads/00000000-0000-4000-8000-0000000000f1"
#define SEE    "/ions/door/pipelines/see"
#define TASK   "/tasks/" TASK_T
#define TASK_T "00000000-0000-4000-8000-0000000000a1"
#define TASK_P "00000000-0000-4000-8000-0000000000a2"
#define TASK_D "00000000-0000-4000-8000-0000000000a4"
#define TASK_B "00000000-0000-4000-8000-0000000000a5"
#define TASK_M "00000000-0000-4000-8000-0000000000a3"
#define JOB_T  "00000000-0000-4000-8000-0000000000b1"
#define JOB_P  "00000000-0000-4000-8000-0000000000b2"
#define JOB_D  "00000000-0000-4000-8000-0000000000b4"
#define JOB_M  "00000000-0000-4000-8000-0000000000b3"
#define JOB_B  "00000000-0000-4000-8000-0000000000b5"
#define SHA_A  "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" /* of "a" */
#define SHA    "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"

/* clang-format off: a table, one row per route */
static const struct row {
    const char *method, *pattern;
    enum least least;
    enum speaker speaker;
    const char *own, *own_body;         /* what the speaker may call; NULL: the pattern, no body */
    const char *foreign, *foreign_body; /* what is another's; NULL: nothing is */
    bool is_in_use;                     /* what is its own is reached, and answers 409 */
} rows[] = {
    {.method = "GET", .pattern = "/health", .least = ANYBODY},
    {.method = "GET", .pattern = "/version", .least = ANYBODY},
    {.method = "GET", .pattern = "/metrics", .least = VIEWER},
    {.method = "GET", .pattern = "/login", .least = ANYBODY},
    {.method = "POST", .pattern = "/login", .least = ANYBODY},
    {.method = "GET", .pattern = "/login/{kind}", .least = ANYBODY},
    {.method = "POST", .pattern = "/login/{kind}", .least = ANYBODY},
    {.method = "GET", .pattern = "/login/{kind}/back", .least = ANYBODY},
    {.method = "GET", .pattern = API "/openapi.json", .least = VIEWER, .speaker = TRAINING},
    {.method = "GET", .pattern = API "/kinds", .least = VIEWER},
    {.method = "GET", .pattern = API "/roles", .least = VIEWER},
    {.method = "GET", .pattern = API "/roles/{name}", .least = VIEWER},
    {.method = "POST", .pattern = API "/roles", .least = ADMIN},
    {.method = "PUT", .pattern = API "/roles/{name}", .least = ADMIN},
    {.method = "DELETE", .pattern = API "/roles/{name}", .least = ADMIN},
    {.method = "GET", .pattern = API "/session", .least = VIEWER, .speaker = TRAINING},
    {.method = "DELETE", .pattern = API "/session", .least = VIEWER},
    {.method = "POST", .pattern = API "/session/link", .least = VIEWER},
    {.method = "GET", .pattern = API "/sessions", .least = VIEWER},
    {.method = "DELETE", .pattern = API "/sessions/{id}", .least = VIEWER},
    {.method = "GET", .pattern = API "/projects", .least = VIEWER},
    {.method = "POST", .pattern = API "/projects", .least = ADMIN},
    {.method = "GET", .pattern = API "/projects/{name}", .least = VIEWER},
    {.method = "GET", .pattern = API "/projects/{name}/members", .least = VIEWER},
    {.method = "PUT", .pattern = API "/projects/{name}/members/{kind}/{who}", .least = ADMIN},
    {.method = "DELETE", .pattern = API "/projects/{name}/members/{kind}/{who}", .least = ADMIN},
    {.method = "GET", .pattern = API "/projects/{name}/secrets", .least = ENGINEER},
    {.method = "PUT", .pattern = API "/projects/{name}/secrets/{secret}", .least = ENGINEER},
    {.method = "DELETE", .pattern = API "/projects/{name}/secrets/{secret}", .least = ENGINEER},
    {.method = "GET", .pattern = API "/projects/{name}/retention", .least = VIEWER},
    {.method = "PUT", .pattern = API "/projects/{name}/retention", .least = ADMIN},
    {.method = "GET", .pattern = API "/projects/{name}/retention/preview", .least = VIEWER},
    {.method = "GET", .pattern = "/services/enter", .least = ANYBODY},
    {.method = "GET", .pattern = API "/services", .least = VIEWER},
    {.method = "POST", .pattern = API "/services", .least = ENGINEER},
    {.method = "GET", .pattern = API "/services/{id}", .least = VIEWER},
    {.method = "DELETE", .pattern = API "/services/{id}", .least = ENGINEER},
    {.method = "POST", .pattern = API "/services/{id}/start", .least = ENGINEER},
    {.method = "POST", .pattern = API "/services/{id}/stop", .least = OPERATOR},
    {.method = "POST", .pattern = API "/services/{id}/ticket", .least = ENGINEER},
    {.method = "GET", .pattern = API "/groups", .least = VIEWER},
    {.method = "POST", .pattern = API "/groups", .least = ADMIN},
    {.method = "DELETE", .pattern = API "/groups/{name}", .least = ADMIN},
    {.method = "GET", .pattern = API "/groups/{name}/members", .least = VIEWER},
    {.method = "PUT", .pattern = API "/groups/{name}/members/{user}", .least = ADMIN},
    {.method = "DELETE", .pattern = API "/groups/{name}/members/{user}", .least = ADMIN},
    {.method = "PUT", .pattern = API "/users/{name}/password", .least = VIEWER},
    {.method = "POST", .pattern = API "/password-login", .least = ANYBODY},
    {.method = "GET", .pattern = API "/users", .least = VIEWER},
    {.method = "POST", .pattern = API "/users", .least = ADMIN},
    {.method = "PATCH", .pattern = API "/users/{name}", .least = ADMIN},
    {.method = "DELETE", .pattern = API "/users/{name}", .least = ADMIN},
    {.method = "GET", .pattern = API "/tokens", .least = VIEWER},
    {.method = "POST", .pattern = API "/tokens", .least = ADMIN},
    {.method = "DELETE", .pattern = API "/tokens/{id}", .least = VIEWER},
    {.method = "GET", .pattern = API "/datasets", .least = VIEWER},
    {.method = "POST", .pattern = API "/datasets", .least = ENGINEER},
    {.method = "GET", .pattern = API "/datasets/{name}", .least = VIEWER},
    {.method = "PUT", .pattern = API "/datasets/{name}/files/{class}/{file}", .least = ENGINEER},
    {.method = "DELETE", .pattern = API "/datasets/{name}", .least = ENGINEER},
    {.method = "DELETE", .pattern = API "/datasets/{name}/files/{class}/{file}", .least = ENGINEER},
    {.method = "DELETE", .pattern = API "/datasets/{name}/files/{class}", .least = ENGINEER},
    {.method = "GET", .pattern = API "/datasets/{name}/versions", .least = VIEWER},
    {.method = "POST", .pattern = API "/datasets/{name}/versions", .least = ENGINEER},
    {.method = "GET", .pattern = API "/datasets/{name}/freeze", .least = ENGINEER},
    {.method = "GET", .pattern = API "/nodes", .least = VIEWER},
    {.method = "GET", .pattern = API "/health/summary", .least = VIEWER},
    {.method = "PUT",
     .pattern = API "/nodes/{name}",
     .least = AGENT,
     .speaker = NODE,
     .own = "/nodes/n",
     .own_body = "{\"cpu_slots\":4}",
     .foreign = "/nodes/m",
     .foreign_body = "{\"cpu_slots\":4}"},
    {.method = "GET",
     .pattern = API "/nodes/{name}/desired",
     .least = AGENT,
     .speaker = NODE,
     .own = "/nodes/n/desired",
     .foreign = "/nodes/m/desired"},
    {.method = "POST",
     .pattern = API "/nodes/{name}/use",
     .least = AGENT,
     .speaker = NODE,
     .own = "/nodes/n/use",
     .own_body = "{\"tasks\":[]}",
     .foreign = "/nodes/m/use",
     .foreign_body = "{\"tasks\":[]}"},
    {.method = "GET", .pattern = API "/nodes/{name}", .least = VIEWER},
    {.method = "PATCH", .pattern = API "/nodes/{name}", .least = OPERATOR},
    {.method = "DELETE",
     .pattern = API "/nodes/{name}",
     .least = ADMIN,
     .speaker = NODE,
     .own = "/nodes/n",
     .foreign = "/nodes/m",
     .is_in_use = true},
    {.method = "GET", .pattern = API "/devices", .least = VIEWER},
    {.method = "GET", .pattern = API "/node-joins", .least = ADMIN},
    {.method = "POST", .pattern = API "/node-joins", .least = ADMIN},
    {.method = "POST", .pattern = API "/join", .least = ANYBODY},
    {.method = "GET", .pattern = API "/jobs", .least = VIEWER},
    {.method = "POST", .pattern = API "/jobs", .least = ENGINEER},
    {.method = "GET", .pattern = API "/jobs/{id}", .least = VIEWER},
    {.method = "POST", .pattern = API "/jobs/{id}/cancel", .least = OPERATOR},
    {.method = "POST", .pattern = API "/jobs/{id}/restart", .least = ENGINEER},
    {.method = "POST", .pattern = API "/jobs/{id}/resume", .least = OPERATOR},
    {.method = "PATCH", .pattern = API "/jobs/{id}", .least = OPERATOR},
    {.method = "DELETE", .pattern = API "/jobs/{id}", .least = ENGINEER},
    {.method = "POST", .pattern = API "/jobs/{id}/hold", .least = OPERATOR},
    {.method = "POST", .pattern = API "/jobs/{id}/requeue", .least = OPERATOR},
    {.method = "GET", .pattern = API "/jobs/{id}/explanation", .least = VIEWER},
    {.method = "GET", .pattern = API "/jobs/{id}/visits", .least = VIEWER},
    {.method = "POST", .pattern = API "/jobs/{id}/visits", .least = ENGINEER},
    {.method = "GET", .pattern = API "/visits/{id}/stream", .least = ENGINEER},
    {.method = "GET", .pattern = API "/visits/{id}/place", .least = ANYBODY},
    {.method = "GET", .pattern = API "/jobs/{id}/tasks", .least = VIEWER},
    {.method = "GET",
     .pattern = API "/jobs/{id}/board",
     .least = VIEWER,
     .speaker = TRAINING,
     .own = "/jobs/" JOB_T "/board",
     .foreign = "/jobs/" JOB_B "/board"},
    {.method = "PUT",
     .pattern = API "/jobs/{id}/board/{key}",
     .least = ENGINEER,
     .speaker = TRAINING,
     .own = "/jobs/" JOB_T "/board/a",
     .own_body = "{\"value\":\"b\"}",
     .foreign = "/jobs/" JOB_B "/board/a",
     .foreign_body = "{\"value\":\"b\"}"},
    {.method = "GET",
     .pattern = API "/jobs/{id}/results",
     .least = VIEWER,
     .speaker = BATCH,
     .own = "/jobs/" JOB_B "/results",
     .foreign = "/jobs/" JOB_T "/results"},
    {.method = "PUT",
     .pattern = API "/jobs/{id}/results/{file}",
     .least = ENGINEER,
     .speaker = BATCH,
     .own = "/jobs/" JOB_B "/results/a",
     .own_body = "a",
     .foreign = "/jobs/" JOB_T "/results/a",
     .foreign_body = "a"},
    {.method = "GET",
     .pattern = API "/jobs/{id}/results/{file}",
     .least = VIEWER,
     .speaker = BATCH,
     .own = "/jobs/" JOB_B "/results/a",
     .foreign = "/jobs/" JOB_T "/results/a"},
    {.method = "PUT",
     .pattern = API "/jobs/{id}/checkpoint/parts/{part}",
     .least = ENGINEER,
     .speaker = TRAINING,
     .own = "/jobs/" JOB_T "/checkpoint/parts/" SHA_A "-a",
     .own_body = "a",
     .foreign = "/jobs/" JOB_B "/checkpoint/parts/" SHA_A "-a",
     .foreign_body = "a"},
    {.method = "POST",
     .pattern = API "/jobs/{id}/checkpoint",
     .least = ENGINEER,
     .speaker = TRAINING,
     .own = "/jobs/" JOB_T "/checkpoint",
     .own_body = "{\"put\":[{\"path\":\"a\",\"part\":\"" SHA_A "-a\"}],\"remove\":[]}",
     .foreign = "/jobs/" JOB_B "/checkpoint",
     .foreign_body = "{\"put\":[],\"remove\":[]}"},
    {.method = "GET",
     .pattern = API "/jobs/{id}/checkpoint",
     .least = VIEWER,
     .speaker = TRAINING,
     .own = "/jobs/" JOB_T "/checkpoint",
     .foreign = "/jobs/" JOB_B "/checkpoint"},
    {.method = "GET",
     .pattern = API "/jobs/{id}/checkpoint/files/{path}",
     .least = VIEWER,
     .speaker = TRAINING,
     .own = "/jobs/" JOB_T "/checkpoint/files/a",
     .foreign = "/jobs/" JOB_B "/checkpoint/files/a"},
    {.method = "GET", .pattern = API "/sweeps", .least = VIEWER},
    {.method = "POST", .pattern = API "/sweeps", .least = ENGINEER},
    {.method = "GET", .pattern = API "/sweeps/{id}", .least = VIEWER},
    {.method = "GET", .pattern = API "/sweeps/{id}/trials", .least = VIEWER},
    {.method = "POST", .pattern = API "/sweeps/{id}/stop", .least = OPERATOR},
    {.method = "POST", .pattern = API "/sweeps/{id}/pause", .least = ENGINEER},
    {.method = "POST", .pattern = API "/sweeps/{id}/resume", .least = ENGINEER},
    {.method = "DELETE", .pattern = API "/sweeps/{id}", .least = ENGINEER},
    {.method = "GET", .pattern = API "/queues", .least = VIEWER},
    {.method = "GET", .pattern = API "/queues/{name}", .least = VIEWER},
    {.method = "PUT", .pattern = API "/queues/{name}", .least = ADMIN},
    {.method = "DELETE", .pattern = API "/queues/{name}", .least = ADMIN},
    {.method = "GET", .pattern = API "/past-use", .least = VIEWER},
    {.method = "PUT", .pattern = API "/past-use", .least = ADMIN},
    {.method = "GET", .pattern = API "/clusters", .least = VIEWER},
    {.method = "GET", .pattern = API "/clusters/{name}", .least = VIEWER},
    {.method = "POST", .pattern = API "/clusters", .least = ADMIN},
    {.method = "POST", .pattern = API "/clusters/check", .least = ADMIN},
    {.method = "POST", .pattern = API "/clusters/guess", .least = ADMIN},
    {.method = "PUT", .pattern = API "/clusters/{name}", .least = ADMIN},
    {.method = "PATCH", .pattern = API "/clusters/{name}", .least = OPERATOR},
    {.method = "DELETE", .pattern = API "/clusters/{name}", .least = ADMIN},
    {.method = "POST", .pattern = API "/clusters/{name}/check", .least = OPERATOR},
    {.method = "GET", .pattern = API "/pools", .least = VIEWER},
    {.method = "GET", .pattern = API "/allocations", .least = VIEWER},
    {.method = "GET", .pattern = API "/allocations/{id}", .least = VIEWER},
    {.method = "POST", .pattern = API "/allocations/{id}/release", .least = OPERATOR},
    {.method = "GET", .pattern = API "/reservations", .least = VIEWER},
    {.method = "GET", .pattern = API "/reservations/{name}", .least = VIEWER},
    {.method = "POST", .pattern = API "/reservations", .least = OPERATOR},
    {.method = "DELETE", .pattern = API "/reservations/{name}", .least = OPERATOR},
    {.method = "GET", .pattern = API "/usage", .least = VIEWER},
    {.method = "GET", .pattern = API "/usage/queues", .least = VIEWER},
    {.method = "GET", .pattern = API "/top/jobs", .least = VIEWER},
    {.method = "POST", .pattern = API "/what-if", .least = VIEWER},
    {.method = "GET", .pattern = API "/tasks/{id}/log", .least = VIEWER},
    {.method = "POST",
     .pattern = API "/tasks/{id}/log",
     .least = AGENT,
     .speaker = NODE,
     .own = TASK "/log?attempt=1",
     .own_body = "text",
     .foreign = "/tasks/" TASK_M "/log?attempt=1",
     .foreign_body = "text"},
    {.method = "PUT",
     .pattern = API "/tasks/{id}/status",
     .least = AGENT,
     .speaker = NODE,
     .own = TASK "/status",
     .own_body = "{\"attempt\":1,\"state\":\"running\",\"pid\":7}",
     .foreign = "/tasks/" TASK_M "/status",
     .foreign_body = "{\"attempt\":1,\"state\":\"running\",\"pid\":7}"},
    {.method = "GET", .pattern = API "/experiments", .least = VIEWER},
    {.method = "POST", .pattern = API "/experiments", .least = ENGINEER},
    {.method = "GET", .pattern = API "/experiments/{id}", .least = VIEWER},
    {.method = "PATCH", .pattern = API "/experiments/{id}", .least = ENGINEER},
    {.method = "DELETE", .pattern = API "/experiments/{id}", .least = ENGINEER},
    {.method = "POST", .pattern = API "/experiments/{id}/restore", .least = ENGINEER},
    {.method = "GET", .pattern = API "/runs", .least = VIEWER},
    {.method = "POST", .pattern = API "/runs", .least = ENGINEER},
    {.method = "GET", .pattern = API "/runs/summary", .least = VIEWER},
    {.method = "GET", .pattern = API "/runs/groups", .least = VIEWER},
    {.method = "GET", .pattern = API "/runs/{id}/lineage", .least = VIEWER},
    {.method = "GET", .pattern = API "/decisions/{id}/lineage", .least = VIEWER},
    {.method = "GET",
     .pattern = API "/datasets/{name}/versions/{version}/lineage",
     .least = VIEWER},
    {.method = "GET",
     .pattern = API "/datasets/{name}/versions/{version}/decisions",
     .least = VIEWER},
    {.method = "GET", .pattern = API "/models/{name}/versions/{version}/lineage", .least = VIEWER},
    {.method = "GET",
     .pattern = API "/models/{name}/versions/{version}/decisions",
     .least = VIEWER},
    {.method = "GET", .pattern = API "/models/{name}/versions/{version}/card", .least = VIEWER},
    {.method = "GET",
     .pattern = API "/runs/{id}",
     .least = VIEWER,
     .speaker = TRAINING,
     .own = RUN,
     .foreign = "/runs/run-other"},
    {.method = "PATCH",
     .pattern = API "/runs/{id}",
     .least = ENGINEER,
     .speaker = TRAINING,
     .own = RUN,
     .own_body = "{\"summary\":{}}",
     .foreign = "/runs/run-other",
     .foreign_body = "{\"summary\":{}}"},
    {.method = "GET",
     .pattern = API "/runs/{id}/metrics",
     .least = VIEWER,
     .speaker = TRAINING,
     .own = RUN "/metrics",
     .foreign = "/runs/run-other/metrics"},
    {.method = "POST",
     .pattern = API "/runs/{id}/metrics",
     .least = ENGINEER,
     .speaker = TRAINING,
     .own = RUN "/metrics",
     .own_body = "{\"metrics\":[]}",
     .foreign = "/runs/run-other/metrics",
     .foreign_body = "{\"metrics\":[]}"},
    {.method = "PUT",
     .pattern = API "/runs/{id}/comparison",
     .least = ENGINEER,
     .speaker = TRAINING,
     .own = RUN "/comparison",
     .own_body = "{\"confusions\":[],\"disagreements\":[]}",
     .foreign = "/runs/run-other/comparison",
     .foreign_body = "{\"confusions\":[],\"disagreements\":[]}",
     .is_in_use = true}, /* it trains, and compares nothing */
    {.method = "GET", .pattern = API "/runs/{id}/comparison", .least = VIEWER},
    {.method = "GET", .pattern = API "/runs/{id}/disagreements", .least = VIEWER},
    {.method = "GET",
     .pattern = API "/runs/{id}/artifacts",
     .least = VIEWER,
     .speaker = TRAINING,
     .own = RUN "/artifacts",
     .foreign = "/runs/run-other/artifacts"},
    {.method = "PUT",
     .pattern = API "/runs/{id}/artifacts/{path}",
     .least = ENGINEER,
     .speaker = TRAINING,
     .own = RUN "/artifacts/a/b",
     .own_body = "bytes",
     .foreign = "/runs/run-other/artifacts/a/b",
     .foreign_body = "bytes"},
    {.method = "GET",
     .pattern = API "/runs/{id}/artifacts/{path}",
     .least = VIEWER,
     .speaker = TRAINING,
     .own = RUN "/artifacts/a/b",
     .foreign = "/runs/run-other/artifacts/a/b"},
    {.method = "DELETE",
     .pattern = API "/runs/{id}/artifacts/{path}",
     .least = ENGINEER,
     .speaker = TRAINING,
     .own = RUN "/artifacts/left",
     .foreign = "/runs/run-other/artifacts/a/b"},
    {.method = "GET",
     .pattern = API "/runs/{id}/uploads",
     .least = VIEWER,
     .speaker = TRAINING,
     .own = RUN "/uploads",
     .foreign = "/runs/run-other/uploads"},
    {.method = "POST",
     .pattern = API "/runs/{id}/uploads",
     .least = ENGINEER,
     .speaker = TRAINING,
     .own = RUN "/uploads",
     .own_body = "{\"path\":\"big\",\"n_parts\":2}",
     .foreign = "/runs/run-other/uploads",
     .foreign_body = "{\"path\":\"big\",\"n_parts\":2}"},
    {.method = "PUT",
     .pattern = API "/runs/{id}/uploads/{upload}/parts/{number}",
     .least = ENGINEER,
     .speaker = TRAINING,
     .own = UPLOAD "/parts/1",
     .own_body = "bytes",
     .foreign = "/runs/run-other/uploads/u/parts/1",
     .foreign_body = "bytes"},
    {.method = "POST",
     .pattern = API "/runs/{id}/uploads/{upload}/complete",
     .least = ENGINEER,
     .speaker = TRAINING,
     .own = UPLOAD "/complete",
     .foreign = "/runs/run-other/uploads/u/complete",
     .is_in_use = true},
    {.method = "DELETE",
     .pattern = API "/runs/{id}/uploads/{upload}",
     .least = ENGINEER,
     .speaker = TRAINING,
     .own = UPLOAD,
     .foreign = "/runs/run-other/uploads/u"},
    {.method = "GET", .pattern = API "/models", .least = VIEWER},
    {.method = "GET", .pattern = API "/models/{name}", .least = VIEWER},
    {.method = "GET", .pattern = API "/models/{name}/versions", .least = VIEWER},
    {.method = "GET", .pattern = API "/models/{name}/versions/{version}", .least = VIEWER},
    {.method = "POST",
     .pattern = API "/models/{name}/versions",
     .least = ENGINEER,
     .speaker = TRAINING,
     .own = "/models/face/versions",
     .own_body =
         "{\"id\":\"00000000-0000-4000-8000-0000000000c1\",\"run\":\"run-own\",\"blob\":\"" SHA
         "\"}",
     .foreign = "/models/face/versions",
     .foreign_body =
         "{\"id\":\"00000000-0000-4000-8000-0000000000c2\",\"run\":\"run-other\",\"blob\":\"" SHA
         "\"}"},
    {.method = "GET", .pattern = API "/models/{name}/versions/{version}/baseline", .least = VIEWER},
    {.method = "PUT",
     .pattern = API "/models/{name}/versions/{version}/baseline",
     .least = ENGINEER,
     .speaker = TRAINING,
     .own = "/models/own/versions/1/baseline",
     .own_body = "{\"run\":\"run-own\",\"features\":{}}",
     .foreign = "/models/own/versions/1/baseline",
     .foreign_body = "{\"run\":\"run-other\",\"features\":{}}"},
    {.method = "GET", .pattern = API "/models/{name}/aliases", .least = VIEWER},
    {.method = "PUT", .pattern = API "/models/{name}/aliases/{alias}", .least = ENGINEER},
    {.method = "DELETE", .pattern = API "/models/{name}/aliases/{alias}", .least = ENGINEER},
    {.method = "PATCH", .pattern = API "/models/{name}", .least = ENGINEER},
    {.method = "PATCH", .pattern = API "/models/{name}/versions/{version}", .least = ENGINEER},
    {.method = "DELETE", .pattern = API "/models/{name}", .least = ENGINEER},
    {.method = "DELETE", .pattern = API "/models/{name}/versions/{version}", .least = ENGINEER},
    {.method = "GET", .pattern = API "/deployments", .least = VIEWER},
    {.method = "GET", .pattern = API "/deployments/{name}", .least = VIEWER},
    {.method = "PUT", .pattern = API "/deployments/{name}", .least = ENGINEER},
    {.method = "DELETE", .pattern = API "/deployments/{name}", .least = ENGINEER},
    {.method = "GET", .pattern = API "/deployments/{name}/figures", .least = VIEWER},
    {.method = "GET", .pattern = API "/deployments/{name}/disagreements", .least = VIEWER},
    {.method = "GET",
     .pattern = API "/deployments/{name}/desired",
     .least = WORKER,
     .speaker = DEPLOYED,
     .own = "/deployments/digits/desired",
     .foreign = "/deployments/letters/desired"},
    {.method = "PUT",
     .pattern = API "/deployments/{name}/replicas/{replica}",
     .least = WORKER,
     .speaker = DEPLOYED,
     .own = "/deployments/digits/replicas/digits-1",
     .own_body = "{\"url\":\"http://h:1\",\"versions\":[]}",
     .foreign = "/deployments/digits/replicas/digits-2",
     .foreign_body = "{\"url\":\"http://h:1\",\"versions\":[]}"},
    {.method = "POST", .pattern = API "/blobs/missing", .least = ENGINEER},
    {.method = "PUT", .pattern = API "/blobs/{sha256}", .least = ENGINEER, .speaker = TRAINING},
    {.method = "GET", .pattern = API "/blobs/{sha256}", .least = VIEWER, .speaker = TRAINING},
    {.method = "GET", .pattern = API "/ions", .least = VIEWER},
    {.method = "POST", .pattern = API "/ions", .least = ENGINEER},
    {.method = "GET", .pattern = API "/ions/{name}", .least = VIEWER},
    {.method = "DELETE", .pattern = API "/ions/{name}", .least = ENGINEER},
    {.method = "POST", .pattern = API "/ions/{name}/trigger", .least = OPERATOR},
    {.method = "POST", .pattern = API "/ions/{name}/run", .least = OPERATOR},
    {.method = "POST", .pattern = API "/ions/{name}/promote", .least = OPERATOR},
    {.method = "POST", .pattern = API "/ions/{name}/approve", .least = OPERATOR},
    {.method = "POST", .pattern = API "/ions/{name}/reject", .least = OPERATOR},
    {.method = "POST", .pattern = API "/ions/{name}/rollback", .least = OPERATOR},
    {.method = "POST", .pattern = API "/ions/{name}/set-model", .least = OPERATOR},
    {.method = "POST", .pattern = API "/ions/{name}/pause", .least = OPERATOR},
    {.method = "POST", .pattern = API "/ions/{name}/resume", .least = OPERATOR},
    {.method = "GET", .pattern = API "/ions/{name}/revisions", .least = VIEWER},
    {.method = "GET",
     .pattern = API "/ions/{name}/candidates",
     .least = VIEWER,
     .speaker = REPLICA,
     .own = "/ions/door/candidates",
     .foreign = "/ions/other/candidates"},
    {.method = "GET", .pattern = API "/ions/{name}/comparison", .least = VIEWER},
    {.method = "GET", .pattern = API "/ions/{name}/disagreements", .least = VIEWER},
    {.method = "GET", .pattern = API "/ions/{name}/policy-decisions", .least = VIEWER},
    {.method = "GET",
     .pattern = API "/ions/{name}/pipelines/{pipeline}/deployment",
     .least = VIEWER,
     .speaker = REPLICA,
     .own = SEE "/deployment",
     .foreign = "/ions/door/pipelines/other/deployment"},
    {.method = "PUT",
     .pattern = API "/ions/{name}/pipelines/{pipeline}/threshold",
     .least = WORKER,
     .speaker = REPLICA,
     .own = SEE "/threshold",
     .own_body = "{\"deployment_revision\":1,\"threshold\":0.5,\"rule\":\"gallery\"}",
     .foreign = SEE "/threshold",
     .foreign_body =
         "{\"deployment_revision\":1,\"threshold\":0.5,\"rule\":\"gallery\",\"replica\":\"" JOB_P
         "-1\"}"},
    {.method = "PUT",
     .pattern = API "/ions/{name}/pipelines/{pipeline}/replicas/{replica}",
     .least = WORKER,
     .speaker = REPLICA,
     .own = SEE "/replicas/" JOB_P "-0",
     .own_body = "{\"state\":\"STARTING\"}",
     .foreign = SEE "/replicas/" JOB_P "-1",
     .foreign_body = "{\"state\":\"STARTING\"}"},
    {.method = "GET",
     .pattern = API "/ions/{name}/pipelines/{pipeline}/replicas/{replica}/desk",
     .least = WORKER,
     .speaker = REPLICA,
     .own = SEE "/replicas/" JOB_P "-0/desk",
     .foreign = SEE "/replicas/" JOB_P "-1/desk"},
    {.method = "POST",
     .pattern = API "/ions/{name}/pipelines/{pipeline}/replicas/{replica}/desk",
     .least = WORKER,
     .speaker = REPLICA,
     .own = SEE "/replicas/" JOB_P "-0/desk",
     .own_body = "{\"live\":[]}",
     .foreign = SEE "/replicas/" JOB_P "-1/desk",
     .foreign_body = "{\"live\":[]}"},
    {.method = "GET", .pattern = API "/ions/{name}/cameras/{camera}/live", .least = VIEWER},
    {.method = "POST", .pattern = API "/ions/{name}/look", .least = VIEWER},
    {.method = "GET", .pattern = API "/ions/{name}/replicas", .least = VIEWER},
    {.method = "GET", .pattern = API "/ions/{name}/members", .least = VIEWER},
    {.method = "PUT", .pattern = API "/ions/{name}/members/{person}", .least = OPERATOR},
    {.method = "DELETE", .pattern = API "/ions/{name}/members/{person}", .least = OPERATOR},
    {.method = "GET", .pattern = API "/doors", .least = VIEWER},
    {.method = "GET", .pattern = API "/cameras", .least = VIEWER},
    {.method = "GET", .pattern = API "/cameras/{id}", .least = VIEWER},
    {.method = "GET", .pattern = API "/sources", .least = VIEWER},
    {.method = "PUT", .pattern = API "/ions/{name}/doors/{door}/lock-down", .least = OPERATOR},
    {.method = "DELETE", .pattern = API "/ions/{name}/doors/{door}/lock-down", .least = OPERATOR},
    {.method = "GET", .pattern = API "/snapshots", .least = VIEWER},
    {.method = "POST", .pattern = API "/snapshots", .least = OPERATOR},
    {.method = "POST", .pattern = API "/snapshots/import", .least = OPERATOR},
    {.method = "GET", .pattern = API "/snapshots/{name}", .least = VIEWER},
    {.method = "GET", .pattern = API "/snapshots/{name}/export", .least = VIEWER},
    {.method = "GET", .pattern = API "/snapshots/{name}/state", .least = VIEWER},
    {.method = "POST", .pattern = API "/snapshots/{name}/replay", .least = VIEWER},
    {.method = "DELETE", .pattern = API "/snapshots/{name}", .least = OPERATOR},
    {.method = "GET", .pattern = API "/decisions", .least = VIEWER},
    {.method = "POST",
     .pattern = API "/decisions",
     .least = WORKER,
     .speaker = REPLICA,
     .own = "/decisions",
     .own_body = "{\"decisions\":[{\"id\":\"00000000-0000-4000-8000-0000000000d1\",\"ion\":"
                 "\"door\",\"pipeline\":\"see\",\"replica\":\"" JOB_P
                 "-0\",\"camera\":\"c\",\"frame\":1,\"verdict\":\"deny\"}]}",
     .foreign = "/decisions",
     .foreign_body =
         "{\"decisions\":[{\"id\":\"00000000-0000-4000-8000-0000000000d2\",\"ion\":\"door\","
         "\"pipeline\":\"other\",\"camera\":\"c\",\"frame\":2,\"verdict\":\"deny\"}]}"},
    {.method = "GET", .pattern = API "/decisions/summary", .least = VIEWER},
    {.method = "GET", .pattern = API "/decisions/{id}", .least = VIEWER},
    {.method = "GET", .pattern = API "/decisions/{id}/image", .least = VIEWER},
    {.method = "GET", .pattern = API "/decisions/{id}/frames/{frame}", .least = VIEWER},
    {.method = "GET", .pattern = API "/decisions/{id}/orders", .least = VIEWER},
    {.method = "GET", .pattern = API "/orders", .least = VIEWER},
    {.method = "GET", .pattern = API "/passages", .least = VIEWER},
    {.method = "GET", .pattern = API "/ions/{name}/health", .least = VIEWER},
    {.method = "GET", .pattern = API "/ions/{name}/drift", .least = VIEWER},
    {.method = "POST",
     .pattern = API "/ions/{name}/pipelines/{pipeline}/windows",
     .least = OPERATOR,
     .speaker = REPLICA,
     .own = "/ions/door/pipelines/see/windows",
     .own_body = "{\"model\":\"digits\",\"version\":1,\"features\":{}}",
     .foreign = "/ions/other/pipelines/see/windows",
     .foreign_body = "{\"model\":\"digits\",\"version\":1,\"features\":{}}",
     .is_in_use = true},
    {.method = "GET", .pattern = API "/ions/{name}/kpis", .least = VIEWER},
    {.method = "POST",
     .pattern = API "/ions/{name}/kpis",
     .least = OPERATOR,
     .speaker = REPLICA,
     .own = "/ions/door/kpis",
     .own_body = "{\"name\":\"a\",\"value\":1}",
     .foreign = "/ions/other/kpis",
     .foreign_body = "{\"name\":\"a\",\"value\":1}"},
    {.method = "GET", .pattern = API "/ions/{name}/statistics", .least = VIEWER},
    {.method = "POST",
     .pattern = API "/ions/{name}/statistics",
     .least = OPERATOR,
     .speaker = REPLICA,
     .own = "/ions/door/statistics",
     .own_body = "{\"statistics\":[{\"name\":\"a\",\"kind\":\"number\",\"value\":1}]}",
     .foreign = "/ions/other/statistics",
     .foreign_body = "{\"statistics\":[{\"name\":\"a\",\"kind\":\"number\",\"value\":1}]}"},
    {.method = "POST",
     .pattern = API "/ions/{name}/told",
     .least = OPERATOR,
     .speaker = REPLICA,
     .own = "/ions/door/told",
     .own_body = "{\"about\":\"data\",\"title\":\"a\",\"is_healthy\":false}",
     .foreign = "/ions/other/told",
     .foreign_body = "{\"about\":\"data\",\"title\":\"a\",\"is_healthy\":false}"},
    {.method = "GET", .pattern = API "/feedback", .least = VIEWER},
    {.method = "GET", .pattern = API "/outcomes", .least = VIEWER},
    {.method = "POST", .pattern = API "/feedback", .least = OPERATOR},
    {.method = "POST",
     .pattern = API "/health-reports",
     .least = WORKER,
     .speaker = REPLICA,
     .own = "/health-reports",
     .own_body = "{\"ion\":\"door\",\"pipeline\":\"see\",\"signal\":\"brightness\",\"statistic\":"
                 "\"none\",\"drifted\":false}",
     .foreign = "/health-reports",
     .foreign_body = "{\"ion\":\"gate\",\"pipeline\":\"see\",\"signal\":\"brightness\"}"},
    {.method = "GET", .pattern = API "/events", .least = VIEWER},
    {.method = "POST", .pattern = API "/people/{person}/forget", .least = ADMIN},
    {.method = "GET", .pattern = API "/forgotten-people", .least = VIEWER},
    {.method = "GET", .pattern = API "/audit", .least = ADMIN},
    {.method = "GET", .pattern = API "/audit/verify", .least = ADMIN},
    {.method = "GET", .pattern = API "/alerts", .least = VIEWER},
    {.method = "POST", .pattern = API "/alerts/{id}/acknowledge", .least = OPERATOR},
    {.method = "GET", .pattern = API "/alerts/{id}", .least = VIEWER},
    {.method = "POST", .pattern = API "/alerts/{id}/resolve", .least = OPERATOR},
    {.method = "GET", .pattern = API "/alert-rules", .least = VIEWER},
    {.method = "GET", .pattern = API "/alert-rules/{name}", .least = VIEWER},
    {.method = "PUT", .pattern = API "/alert-rules/{name}", .least = OPERATOR},
    {.method = "DELETE", .pattern = API "/alert-rules/{name}", .least = OPERATOR},
    {.method = "GET", .pattern = API "/alert-silences", .least = VIEWER},
    {.method = "POST", .pattern = API "/alert-silences", .least = OPERATOR},
    {.method = "DELETE", .pattern = API "/alert-silences/{id}", .least = OPERATOR},
    {.method = "GET", .pattern = API "/alert-receivers", .least = VIEWER},
    {.method = "GET", .pattern = API "/alert-receivers/{name}", .least = VIEWER},
    {.method = "PUT", .pattern = API "/alert-receivers/{name}", .least = ADMIN},
    {.method = "DELETE", .pattern = API "/alert-receivers/{name}", .least = ADMIN},
    {.method = "POST", .pattern = API "/alert-receivers/{name}/test", .least = ADMIN},
    {.method = "GET", .pattern = API "/alert-deliveries", .least = VIEWER},
    {.method = "GET", .pattern = API "/alert-deliveries/{id}", .least = VIEWER},
    {.method = "GET", .pattern = API "/store/usage", .least = VIEWER},
    {.method = "POST", .pattern = API "/store/sweep", .least = ADMIN},
    {.method = "GET", .pattern = API "/retention", .least = VIEWER},
    {.method = "PUT", .pattern = API "/retention", .least = ADMIN},
    {.method = "GET", .pattern = API "/retention/bounds", .least = VIEWER},
    {.method = "PUT", .pattern = API "/retention/bounds", .least = ADMIN},
    {.method = "GET", .pattern = API "/stream", .least = VIEWER},
};

/* clang-format on */

static char bearers[N_CALLERS][BEARER_BYTES]; /* of people by role, and of agents of node m */
static char training[BEARER_BYTES], replica[BEARER_BYTES], deployed[BEARER_BYTES],
    batch[BEARER_BYTES], agent[BEARER_BYTES];

/* What a run left, and an upload of which a part is missing. */
static weir_status leave_files(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    const struct weir_artifact left = {
        .run = "run-own", .path = "left", .blob = SHA, .created_by = "a"};
    const struct weir_artifact_upload upload = {.id = "00000000-0000-4000-8000-0000000000f1",
                                                .run = "run-own",
                                                .path = "big",
                                                .n_parts = 2,
                                                .created_ms = weir_time_ms()};
    WEIR_TRY(weir_artifact_put(txn, &left, err));
    return weir_artifact_upload_begin(txn, &upload, weir_time_ms(), err);
}

/** A door that watches, a node each for its jobs and for another's, and who may call. */
static void set_up(void)
{
    callers_open();
    weir_api_attach_services(callers.fixture.api, NULL, 8471);
    make_caller("vic", "viewer", "", bearers[VIEWER]);
    make_caller("oli", "operator", "", bearers[OPERATOR]);
    make_caller("sam", "ml-engineer", "", bearers[ENGINEER]);
    make_caller("eve", "admin", "", bearers[ADMIN]);
    make_caller("agent-n", "agent", ",\"node\":\"n\"", agent);
    make_caller("agent-m", "agent", ",\"node\":\"m\"", bearers[AGENT]);
    EXPECT(204, "PUT " API "/nodes/n\n\n{\"cpu_slots\":4}");
    EXPECT(204, "PUT " API "/nodes/m\n\n{\"cpu_slots\":4}");
    EXPECT(200, "POST " API "/datasets\n\n{\"name\":\"staff\"}");
    EXPECT(200, "POST " API "/ions\n\n{\"name\":\"door\",\"pipelines\":["
                "{\"name\":\"learn\",\"type\":\"training\",\"dataset\":\"staff\","
                "\"model\":\"face-embed\"},{\"name\":\"see\",\"type\":\"prediction\","
                "\"source\":{\"kind\":\"http\"},\"gallery\":{\"dataset\":\"staff\"}}],"
                "\"links\":[{\"from\":\"learn\",\"to\":\"see\"}]}");
    EXPECT(200, "PUT " API "/blobs/" SHA "\n\nx");
    place_job(&(struct placed_job){.id = JOB_T,
                                   .task = TASK_T,
                                   .kind = "train",
                                   .node = "n",
                                   .run = "run-own",
                                   .spec = "{\"model_name\":\"face\"}"});
    place_job(&(struct placed_job){.id = JOB_P,
                                   .task = TASK_P,
                                   .kind = "predict",
                                   .node = "n",
                                   .ion = "door",
                                   .pipeline = "see"});
    EXPECT(200, "POST " API "/models/digits/versions\n\n{\"id\":"
                "\"00000000-0000-4000-8000-0000000000e1\",\"blob\":\"" SHA "\"}");
    EXPECT(200,
           "POST " API "/models/own/versions\n\n{\"id\":"
           "\"00000000-0000-4000-8000-0000000000e2\",\"run\":\"run-own\",\"blob\":\"" SHA "\"}");
    EXPECT(200, "PUT " API "/deployments/digits\n\n{\"model\":\"digits\",\"replicas\":2}");
    EXPECT(200, "PUT " API "/deployments/letters\n\n{\"model\":\"digits\"}");
    place_job(&(struct placed_job){
        .id = JOB_D, .task = TASK_D, .kind = "serve", .node = "n", .replica = "digits-1"});
    task_bearer(TASK_D, deployed);
    place_job(&(struct placed_job){.id = JOB_B, .task = TASK_B, .kind = "batch", .node = "n"});
    task_bearer(TASK_B, batch);
    place_job(&(struct placed_job){
        .id = JOB_M, .task = TASK_M, .kind = "train", .node = "m", .run = "run-other"});
    struct weir_error err;
    must(weir_store_write(callers.fixture.store, leave_files, NULL, &err), &err);
    task_bearer(TASK_T, training);
    task_bearer(TASK_P, replica);
}

static void tear_down(void)
{
    callers_close();
}

/** The pattern with "x" for each parameter. */
static const char *filled(const char *pattern)
{
    static char path[256];
    char *to = path;
    for (const char *p = pattern; *p != '\0'; p++) {
        if (*p == '{') {
            *to++ = 'x';
            p += strcspn(p, "}");
        } else {
            *to++ = *p;
        }
    }
    *to = '\0';
    return path;
}

static int call_row(const struct row *row, const char *authorization, const char *path,
                    const char *body)
{
    callers.may_wait = true;
    return path == NULL ? ask_as(authorization, "%s %s\n\n%s", row->method, filled(row->pattern),
                                 body != NULL ? body : "")
                        : ask_as(authorization, "%s " API "%s\n\n%s", row->method, path,
                                 body != NULL ? body : "");
}

static bool is_refused(int status)
{
    return status == 401 || status == 403;
}

START_TEST(the_table_names_every_route_and_no_other)
{
    const struct weir_route *route;
    ck_assert_ptr_nonnull(weir_route_at(api_routes, WEIR_ARRAY_LEN(rows) - 1));
    ck_assert_ptr_null(weir_route_at(api_routes, WEIR_ARRAY_LEN(rows)));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        bool is_there = false;
        for (size_t k = 0; (route = weir_route_at(api_routes, k)) != NULL; k++) {
            is_there = is_there || (strcmp(rows[i].method, route->method) == 0 &&
                                    strcmp(rows[i].pattern, route->pattern) == 0);
        }
        ck_assert_msg(is_there, "%s %s is not there", rows[i].method, rows[i].pattern);
    }
}

END_TEST

START_TEST(who_shows_nothing_good_gets_only_what_is_open)
{
    static const char *const shown[] = {"", "Basic YW5uOmFubg==", "Bearer weir_wrong", "Bearer ",
                                        "Bearer weir_task.x.1.00"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        for (size_t k = 0; k < WEIR_ARRAY_LEN(shown); k++) {
            int status = call_row(&rows[i], shown[k], NULL, NULL);
            if (rows[i].least != ANYBODY) {
                ck_assert_msg(status == 401, "%s %s with \"%s\": %d", rows[i].method,
                              rows[i].pattern, shown[k], status);
                ck_assert_str_eq(said_text("error.status"), "UNAUTH");
                ck_assert_ptr_nonnull(said_header("WWW-Authenticate"));
            } else {
                ck_assert_msg(status != 403 && status < 500, "%s %s: %d", rows[i].method,
                              rows[i].pattern, status);
            }
        }
    }
}

END_TEST

START_TEST(each_role_may_what_the_one_before_may_and_no_more)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        for (enum least who = VIEWER; who <= ADMIN; who++) {
            bool is_apart = rows[i].least == AGENT || rows[i].least == WORKER;
            bool may = is_apart ? who == ADMIN : who >= rows[i].least;
            int status = call_row(&rows[i], bearers[who], NULL, NULL);
            ck_assert_msg(may != (status == 403) || rows[i].least == ANYBODY, "%s %s by %d: %d %s",
                          rows[i].method, rows[i].pattern, (int)who, status,
                          said_text("error.message"));
            ck_assert_msg(status < 500 || !may, "%s %s: %d %s", rows[i].method, rows[i].pattern,
                          status, said_text("error.message"));
            if (!may) {
                ck_assert_str_eq(said_text("error.status"), "DENIED");
                ck_assert_ptr_nonnull(strstr(said_text("error.message"), "needs the right"));
            }
        }
    }
}

END_TEST

/** What its speaker shows for a row. */
static const char *shown_for(enum speaker speaker)
{
    return speaker == TRAINING   ? training
           : speaker == REPLICA  ? replica
           : speaker == DEPLOYED ? deployed
           : speaker == BATCH    ? batch
                                 : agent;
}

START_TEST(tasks_and_agents_reach_what_is_their_own)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        const struct row *row = &rows[i];
        if (row->speaker != NOBODYS) {
            int status = call_row(row, shown_for(row->speaker), row->own, row->own_body);
            ck_assert_msg(!is_refused(status) && status < 500, "%s %s: %d %s", row->method,
                          row->pattern, status, said_text("error.message"));
            bool is_right = row->is_in_use ? status == 409 : status < 300;
            ck_assert_msg(row->own == NULL || is_right, "%s %s: %d %s", row->method, row->pattern,
                          status, said_text("error.message"));
        }
        if (row->foreign != NULL) {
            int status = call_row(row, shown_for(row->speaker), row->foreign, row->foreign_body);
            /* to an agent the tasks of other nodes are not there */
            ck_assert_msg(status == 403 || (row->speaker == NODE && status == 404), "%s %s: %d",
                          row->method, row->pattern, status);
        }
    }
}

END_TEST

START_TEST(tasks_and_agents_reach_nothing_else)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        const struct row *row = &rows[i];
        bool is_open = row->least == ANYBODY, is_for_tasks = false;
        is_for_tasks = row->speaker == TRAINING || row->speaker == REPLICA;
        for (size_t k = 0; k < 2 && !is_open && !is_for_tasks; k++) {
            int status = call_row(row, k == 0 ? training : replica, row->own, row->own_body);
            ck_assert_msg(status == 403, "%s %s by a task: %d", row->method, row->pattern, status);
        }
        if (!is_open && row->speaker != NODE) {
            int status = call_row(row, agent, row->own, row->own_body);
            ck_assert_msg(status == 403, "%s %s by an agent: %d", row->method, row->pattern,
                          status);
        }
        if (row->speaker == NODE) { /* the agent of the other node */
            int status = call_row(row, bearers[AGENT], row->own, row->own_body);
            ck_assert_msg(status == 403 || status == 404, "%s %s by another agent: %d", row->method,
                          row->pattern, status);
        }
        if (row->speaker == REPLICA) { /* a task that is no replica */
            int status = call_row(row, training, row->own, row->own_body);
            ck_assert_msg(status == 403, "%s %s by a training: %d", row->method, row->pattern,
                          status);
        }
        if (row->speaker == TRAINING && row->foreign != NULL) { /* a task without a run */
            int status = call_row(row, replica, row->own, row->own_body);
            ck_assert_msg(status == 403, "%s %s by a replica: %d", row->method, row->pattern,
                          status);
        }
    }
}

END_TEST

START_TEST(an_admin_may_what_agents_and_replicas_may)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        if (rows[i].own != NULL) {
            int status = call_row(&rows[i], bearers[ADMIN], rows[i].own, rows[i].own_body);
            ck_assert_msg(!is_refused(status) && status != 404, "%s %s: %d", rows[i].method,
                          rows[i].pattern, status);
        }
    }
}

END_TEST

static const char *const methods[] = {"GET",   "HEAD",  "POST",    "PUT",     "DELETE",
                                      "PATCH", "TRACE", "OPTIONS", "CONNECT", "PROPFIND"};

static bool is_named(const char *list, const char *method)
{
    size_t len = strlen(method);
    for (const char *at = list; (at = strstr(at, method)) != NULL; at += len) {
        if ((at == list || at[-1] == ' ') && (at[len] == ',' || at[len] == '\0')) {
            return true;
        }
    }
    return false;
}

/* A method is answered with 405 just if Allow does not name it, and Allow is the same for all of them. */
static void check_methods(const char *path)
{
    char allow[128] = "";
    bool is_refused_with[WEIR_ARRAY_LEN(methods)];
    for (size_t i = 0; i < WEIR_ARRAY_LEN(methods); i++) {
        is_refused_with[i] = ask_as("", "%s %s", methods[i], path) == 405;
        if (is_refused_with[i]) {
            ck_assert_ptr_nonnull(said_header("Allow"));
            ck_assert(*allow == '\0' || strcmp(allow, said_header("Allow")) == 0);
            (void)snprintf(allow, sizeof allow, "%s", said_header("Allow"));
        } else {
            ck_assert_msg(callers.x->response.http_status != 501, "%s %s", methods[i], path);
        }
    }
    ck_assert_str_ne(allow, ""); /* nothing takes TRACE */
    for (size_t i = 0; i < WEIR_ARRAY_LEN(methods); i++) {
        ck_assert_msg(is_refused_with[i] == !is_named(allow, methods[i]), "%s %s, %s", methods[i],
                      path, allow);
    }
}

START_TEST(a_wrong_method_is_told_the_right_ones)
{
    static const char *const of_mlflow[] = {
        "/api/2.0/mlflow/experiments/create", "/api/2.0/mlflow/experiments/get",
        "/api/2.0/mlflow/runs/search", "/p/default/api/2.0/mlflow/registered-models/alias",
        "/api/2.0/mlflow-artifacts/artifacts/a/b"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i += 3) { /* some of all */
        if (strncmp(rows[i].pattern, API, strlen(API)) == 0) {
            check_methods(filled(rows[i].pattern));
        }
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(of_mlflow); i++) {
        check_methods(of_mlflow[i]);
    }
}

END_TEST

START_TEST(reading_changes_nothing)
{
    EXPECT_STATUS(200, ask_as(bearers[ADMIN], "GET " API "/session")); /* its use is noted once */
    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        const struct row *row = &rows[i];
        if (strcmp(row->method, "GET") == 0 && row->least != ANYBODY) {
            uint64_t before = weir_store_change(callers.fixture.store);
            int status = call_row(row, bearers[ADMIN], row->own, NULL);
            ck_assert_msg(!is_refused(status), "%s: %d", row->pattern, status);
            ck_assert_msg(weir_store_change(callers.fixture.store) == before, "GET %s wrote",
                          row->pattern);
            status = ask_as(bearers[ADMIN], "HEAD %s", filled(row->pattern));
            ck_assert_msg(status != 405 && status != 501, "HEAD %s: %d", row->pattern, status);
        }
    }
}

END_TEST

/* The same paths with other methods, and paths that are none. */
START_TEST(what_is_no_route_says_so)
{
    EXPECT_ERROR(405, "PATCH is not supported for", "PATCH " API "/jobs\n\n{}");
    EXPECT_ERROR(405, "POST is not supported for", "POST " API "/openapi.json\n\n{}");
    ck_assert_str_eq(said_header("Allow"), "GET, HEAD");
    EXPECT_ERROR(415, "send the body as it is",
                 "POST " API "/jobs\nContent-Encoding: gzip\n\n\x1f\x8b");
    ck_assert_str_eq(said_header("Accept-Encoding"), "identity");
    EXPECT_STATUS(415, ask("POST /api/2.0/mlflow/experiments/create\nContent-Encoding: br\n\nx"));
    EXPECT_ERROR(404, "openapi.json", "GET " API "/job");
    EXPECT_ERROR(404, "openapi.json", "GET " API "/jobs/a/b");
    EXPECT_ERROR(404, "openapi.json", "GET /api/v2/jobs");
    EXPECT_STATUS(404, ask_as("", "GET " API "/nothing")); /* no identity is needed to be told */
}

END_TEST

START_TEST(the_document_has_every_route)
{
    EXPECT(200, "GET " API "/openapi.json");
    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        char method[8] = {0};
        for (size_t k = 0; rows[i].method[k] != '\0'; k++) {
            method[k] = (char)(rows[i].method[k] + ('a' - 'A'));
        }
        const json_t *path =
            json_object_get(json_object_get(callers.body, "paths"), rows[i].pattern);
        ck_assert_msg(json_is_object(json_object_get(path, method)), "%s %s is missing", method,
                      rows[i].pattern);
    }
}

END_TEST

WEIR_TEST_MAIN_WITH("route", set_up, tear_down, the_table_names_every_route_and_no_other,
                    who_shows_nothing_good_gets_only_what_is_open,
                    each_role_may_what_the_one_before_may_and_no_more,
                    tasks_and_agents_reach_what_is_their_own, tasks_and_agents_reach_nothing_else,
                    an_admin_may_what_agents_and_replicas_may, reading_changes_nothing,
                    a_wrong_method_is_told_the_right_ones, what_is_no_route_says_so,
                    the_document_has_every_route)
