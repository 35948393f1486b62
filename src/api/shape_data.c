/** What answers have about data that is kept: blobs, datasets, usage of the disk, retention. */
#include "api/shape_private.h"

#include "retain/retain.h"
#include "track/forgotten.h"
#include "track/track.h"

static const struct api_member missing_blobs_members[] = {
    ALWAYS("missing", "list of text", "Of those that were asked about, in their order"),
};
static const struct api_member step_members[] = {
    ALWAYS("n", "integer", "Steps of deletion since the start"),
    ALWAYS("n_over_10_ms", "integer", "Those that took longer than 10 ms"),
    ALWAYS("longest_ms", "number", "The longest (ms)"),
};
static const struct api_member store_usage_members[] = {
    ALWAYS("items", "list of usage", "By kind"),
    OR_NULL("next", "text", "Always null: all kinds are there"),
    ALWAYS("total_bytes", "integer", "What the state folder takes (bytes)"),
    ALWAYS("disk_bytes", "integer", "Size of its disk (bytes)"),
    ALWAYS("disk_free_bytes", "integer", "Free on its disk (bytes)"),
    ALWAYS("steps", "deletion steps", "How long deleting held others up"),
};
static const struct api_member limit_members[] = {
    ALWAYS("kind", "text", "What grows"),
    ALWAYS("what", "text", "What it is"),
    ALWAYS("rule", "text", "What of it goes, and in which order"),
    ALWAYS("limit", "text", "Age and size it may reach"),
    ALWAYS("default", "text", "The limit unless it is changed"),
};
static const struct api_member retention_members[] = {
    ALWAYS("items", "list of retention limit", "By kind"),
    OR_NULL("next", "text", "Always null: all kinds are there"),
};
static const struct api_member project_time_members[] = {
    ALWAYS("kind", "text", "What grows"),
    ALWAYS("what", "text", "What it is"),
    ALWAYS("rule", "text", "What of it goes, and in which order"),
    ALWAYS("keep", "text", "Age that holds for the project"),
    OR_NULL("own", "text", "Age that the project has set; null: none"),
    ALWAYS("platform", "text", "Age that holds where nothing is set"),
    ALWAYS("bounds", "text", "Shortest and longest age that the project may set"),
};
static const struct api_member project_retention_members[] = {
    ALWAYS("items", "list of project time", "By kind"),
    OR_NULL("next", "text", "Always null: all kinds are there"),
};
static const struct api_member kept_preview_members[] = {
    ALWAYS("kind", "text", "What grows"),
    ALWAYS("keep", "text", "Age that is looked at"),
    ALWAYS("keep_now", "text", "Age that holds"),
    ALWAYS("unit", "text", "What is counted: rows or files"),
    ALWAYS("n_going", "integer", "How many would go; of jobs, sweeps and pictures these"),
    ALWAYS("bytes_going", "integer", "Size; of rows reckoned"),
};
static const struct api_member retention_preview_members[] = {
    ALWAYS("items", "list of kept preview", "By kind"),
    OR_NULL("next", "text", "Always null: all kinds are there"),
};
static const struct api_member set_time_members[] = {
    ALWAYS("project", "text", "Project"),
    ALWAYS("own", "text", "Age that it has set"),
};
static const struct api_member kind_bounds_members[] = {
    ALWAYS("kind", "text", "What grows"),
    ALWAYS("bounds", "text", "Shortest and longest age that a project may set"),
    ALWAYS("is_set", "bool", "An admin has set them; else: no longer than the platform"),
    ALWAYS("platform", "text", "Age that holds where a project has set nothing"),
    ALWAYS("projects", "list of set time", "Projects that have set an age"),
};
static const struct api_member retention_bounds_members[] = {
    ALWAYS("items", "list of kind bounds", "By kind"),
    OR_NULL("next", "text", "Always null: all kinds are there"),
};
static const struct api_member dataset_version_members[] = {
    MAY_MISS("tombstones", "list of tombstone", "People who were deleted from it; in the list"),
    MAY_MISS("n_forgotten", "integer", "Files that went with them; in the list"),
};

static const struct api_shape shapes[] = {
    SHAPE("missing blobs", NULL, "POST /api/v1/blobs/missing", missing_blobs_members),
    SHAPE("deletion steps", NULL, NULL, step_members),
    SHAPE("store usage", NULL, "GET /api/v1/store/usage", store_usage_members),
    SHAPE("retention limit", NULL, NULL, limit_members),
    SHAPE("retention", NULL, "GET /api/v1/retention", retention_members),
    SHAPE("project time", NULL, NULL, project_time_members),
    SHAPE("project retention", NULL, "GET /api/v1/projects/{name}/retention",
          project_retention_members),
    SHAPE("kept preview", NULL, NULL, kept_preview_members),
    SHAPE("retention preview", NULL, "GET /api/v1/projects/{name}/retention/preview",
          retention_preview_members),
    SHAPE("set time", NULL, NULL, set_time_members),
    SHAPE("kind bounds", NULL, NULL, kind_bounds_members),
    SHAPE("retention bounds", NULL, "GET /api/v1/retention/bounds", retention_bounds_members),
    PLAIN_RECORD("dataset", weir_dataset_resource, "project kind path created_ms"),
    PLAIN_RECORD("tombstone", weir_tombstone_resource, "dataset time_ms"),
    RECORD("dataset version", weir_dataset_version_resource, "dataset digest blob created_ms",
           dataset_version_members),
    PLAIN_RECORD("usage", weir_retain_usage_resource, "what rule unit"),
};

const struct api_shape_list api_shapes_of_data = API_SHAPE_LIST(shapes);
