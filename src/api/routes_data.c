/** Routes of datasets and the bytes that others name by their SHA-256. */
#include "api/blob.h"
#include "api/functions.h"
#include "api/rows.h"

#include "ion/decision.h"
#include "track/track.h"

// clang-format off
static const struct weir_route rows[] = {
    {GET(API "/datasets"), .summary = "List datasets", .right = R(DATASETS_READ), .access = ROUTE_READ,
     .flags = ROUTE_LIST, .out = &weir_dataset_resource, .query = QUERY(Q_LIMIT, Q_CURSOR), .fn = api_list},
    {POST(API "/datasets"), .summary = "Create a dataset: a folder of the server, or empty for uploads",
     .right = R(DATASETS_CHANGE), .access = ROUTE_WRITE, .flags = ROUTE_IN_PROJECT, .in = &weir_dataset_resource,
     .out = &weir_dataset_resource, .fn = api_dataset_create},
    {GET(API "/datasets/{name}"), .summary = "Look at a dataset", .right = R(DATASETS_READ), .access = ROUTE_READ,
     .out = &weir_dataset_resource, .fn = api_get},
    {DELETE(API "/datasets/{name}"),
     .summary = "Delete a dataset with its versions, unless something needs it; somebody else's only with the right "
                "to delete models; force=1: also if versions of models were trained on it",
     .right = R(DATASETS_CHANGE), .access = ROUTE_ALONE, .query = QUERY(Q_FORCE), .fn = api_dataset_delete},
    {PUT(API "/datasets/{name}/files/{class}/{file}"), .summary = "Put a file into an uploaded dataset",
     .right = R(DATASETS_CHANGE), .access = ROUTE_ALONE, .flags = ROUTE_UPLOAD | ROUTE_FLOW,
     .max_body_bytes = 64 * MIB, .fn = api_dataset_file_put},
    {DELETE(API "/datasets/{name}/files/{class}/{file}"), .summary = "Delete a file of a dataset",
     .right = R(DATASETS_CHANGE), .access = ROUTE_ALONE, .flags = ROUTE_ACT_FIRST, .fn = api_dataset_file_delete},
    {DELETE(API "/datasets/{name}/files/{class}"), .summary = "Delete a class with all its files",
     .right = R(DATASETS_CHANGE), .access = ROUTE_ALONE, .flags = ROUTE_ACT_FIRST, .fn = api_dataset_class_delete},
    {GET(API "/datasets/{name}/versions"), .summary = "List versions, newest first", .right = R(DATASETS_READ),
     .access = ROUTE_READ, .flags = ROUTE_LIST, .out = &weir_dataset_version_resource, .fn = api_dataset_versions},
    {POST(API "/datasets/{name}/versions"), .summary = "Freeze the files as they are as a new version",
     .right = R(DATASETS_CHANGE), .access = ROUTE_ALONE, .out = &weir_dataset_version_resource,
     .query = QUERY(Q_INT("wait_s", 0, 600, 600, "Wait so many seconds for the end of the freeze")),
     .fn = api_dataset_version_create},
    {GET(API "/datasets/{name}/versions/{version}/lineage"),
     .summary = "Where a version came from, and what it reached: runs, model versions, links, decisions",
     .right = R(DATASETS_READ), .access = ROUTE_ALONE, .fn = api_dataset_lineage},
    {GET(API "/datasets/{name}/versions/{version}/decisions"),
     .summary = "Decisions that a version touched, newest first: by models that came of it, or as the gallery",
     .right = R(DECISIONS_READ), .access = ROUTE_ALONE, .flags = ROUTE_LIST, .out = &weir_decision_resource,
     .query = QUERY(Q_LIMIT, Q_CURSOR), .fn = api_dataset_decisions},
    {GET(API "/datasets/{name}/freeze"), .summary = "How far the last freeze is, or how it ended",
     .right = R(DATASETS_CHANGE), .access = ROUTE_ALONE, .query = QUERY(Q_WAIT_S(60)), .fn = api_dataset_freeze_get},
    {POST(API "/blobs/missing"),
     .summary = "Which of these files a project has not sent yet: {\"project\", \"blobs\"}", .right = R(JOBS_SUBMIT),
     .access = ROUTE_ALONE, .flags = ROUTE_ASKS, .fn = api_blobs_missing},
    {PUT(API "/blobs/{sha256}"),
     .summary = "Store bytes under their SHA-256; project: for its jobs; as=model refuses by the first bytes what "
                "is no model file, as=code is the list of a folder's files, which the project has sent",
     .right = R(BLOBS_WRITE), .access = ROUTE_ALONE, .owns = ROUTE_OWNS_ANY,
     .flags = ROUTE_UPLOAD | ROUTE_FORMER | ROUTE_BEYOND | ROUTE_FLOW,
     .query = QUERY(Q_WORD("as", API_BLOB_AS_MODEL " " API_BLOB_AS_CODE, "What the bytes are"),
                    Q_NAME("project", "For jobs of this project")), .fn = api_blob_put},
    {GET(API "/blobs/{sha256}"), .summary = "Fetch bytes by their SHA-256", .right = R(BLOBS_READ),
     .access = ROUTE_ALONE, .owns = ROUTE_OWNS_ANY, .flags = ROUTE_BYTES_OUT, .fn = api_blob_get},
};
// clang-format on

const struct weir_route_table api_routes_data = {rows, WEIR_ARRAY_LEN(rows)};
