/** What tasks leave in the state folder: checkpoints, rendezvous, results, replicas, services, logs. */
#include "retain/retain_private.h"

#include "base/file.h"
#include "base/log.h"
#include "store/stmt.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOUR_MS           ((int64_t)3600000)
#define SUCCEEDED_KEEP_MS HOUR_MS           /* checkpoints of a training that made its model */
#define UNKNOWN_KEEP_MS   HOUR_MS           /* what no record speaks of: it may be being made */
#define LOG_QUIET_MS      ((int64_t)600000) /* the agent may still be sending */
#define DEPTH_MAX         64
#define PLACE_MAX_BYTES   64

/** A folder on its way out has this behind its name, so that nobody finds half of it. */
static const char going[] = ".removed";

static const char sql_job[] = "SELECT state, finished_ms, project FROM jobs WHERE id = :id";
static const char sql_log[] =
    "SELECT j.project, t.attempt = :attempt AND j.state NOT IN ('SUCCEEDED', 'FAILED', 'CANCELLED')"
    " FROM tasks t JOIN jobs j ON j.id = t.job WHERE t.id = :id";

static const char sql_service[] = "SELECT count(*) FROM services WHERE id = :id";

static bool is_going(const char *name)
{
    size_t len = strlen(name);
    return len >= sizeof going && strcmp(name + len - (sizeof going - 1), going) == 0;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static int64_t bytes_at(int dir_fd, const char *name, int depth)
{
    struct stat info;
    if (fstatat(dir_fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
        return 0;
    }
    int64_t bytes = (int64_t)info.st_blocks * 512;
    if (!S_ISDIR(info.st_mode) || depth == DEPTH_MAX) {
        return bytes;
    }
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return bytes;
    }
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            bytes += bytes_at(dirfd(dir), entry->d_name, depth + 1);
        }
    }
    (void)closedir(dir);
    return bytes;
}

int64_t retain_tree_bytes(const char *path)
{
    return bytes_at(AT_FDCWD, path, 0);
}

/* ---- what an entry is worth ------------------------------------------------------------------ */

struct retain_entry {
    struct retain_item *item;
    const char *path;
    int64_t mtime_ms;
};

/* How long it is kept: as its project says. */
static void set_keep(const struct retain_look *look, struct retain_item *item, const char *project)
{
    item->project = weir_arena_strdup(look->arena, project);
    item->keep_ms = retain_keep(look, project, look->kind);
    item->has_keep = true;
}

static int64_t keep_of(const struct retain_look *look, const struct retain_item *item)
{
    return item->has_keep ? item->keep_ms : look->limit.keep_ms;
}

/* The job behind `job_len` characters of the entry's name. *out_is_over: it is over, since
 * item->time_ms. A job that no record speaks of is over since the entry was last written. */
static weir_status find_job(struct weir_txn *txn, const struct retain_look *look,
                            const struct retain_entry *entry, int job_len, bool *out_is_over,
                            bool *out_has_succeeded, struct weir_error *err)
{
    struct weir_stmt *stmt WEIR_AUTO(weir_stmt_auto_close) = NULL;
    bool has_row;
    const char *id = weir_arena_printf(look->arena, "%.*s", job_len, entry->item->name);
    WEIR_TRY(weir_stmt_open(txn, sql_job, WEIR_BINDS(WEIR_BIND_TEXT("id", id)), &stmt, err));
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    entry->item->time_ms = entry->mtime_ms;
    *out_has_succeeded = false;
    if (!has_row) {
        *out_is_over = look->now_ms - entry->mtime_ms >= UNKNOWN_KEEP_MS;
        return WEIR_OK;
    }
    const char *state = weir_stmt_text(stmt, 0, look->arena);
    set_keep(look, entry->item, weir_stmt_text(stmt, 2, look->arena));
    *out_has_succeeded = strcmp(state, "SUCCEEDED") == 0;
    *out_is_over =
        *out_has_succeeded || strcmp(state, "FAILED") == 0 || strcmp(state, "CANCELLED") == 0;
    if (*out_is_over) {
        entry->item->time_ms = weir_stmt_int(stmt, 1);
    }
    return WEIR_OK;
}

static weir_status judge_checkpoints(struct weir_txn *txn, const struct retain_look *look,
                                     const struct retain_entry *entry, struct weir_error *err)
{
    bool is_over, has_succeeded;
    WEIR_TRY(
        find_job(txn, look, entry, (int)strlen(entry->item->name), &is_over, &has_succeeded, err));
    entry->item->is_needed = !is_over;
    int64_t keep_ms = keep_of(look, entry->item);
    if (has_succeeded && keep_ms > SUCCEEDED_KEEP_MS) {
        entry->item->time_ms -= keep_ms - SUCCEEDED_KEEP_MS;
    }
    return WEIR_OK;
}

/* Needed as long as the job is not over, and by nobody after that. */
static weir_status judge_by_job(struct weir_txn *txn, const struct retain_look *look,
                                const struct retain_entry *entry, struct weir_error *err)
{
    bool is_over, has_succeeded;
    WEIR_TRY(
        find_job(txn, look, entry, (int)strlen(entry->item->name), &is_over, &has_succeeded, err));
    entry->item->is_needed = !is_over;
    return WEIR_OK;
}

/* Where a reader of an outbox is, by its file; 0 if it has none. */
static uint64_t read_place(const char *path)
{
    char text[PLACE_MAX_BYTES + 1] = {0};
    size_t len = 0;
    if (weir_file_read_into(path, text, PLACE_MAX_BYTES, &len, NULL) != WEIR_OK) {
        return 0;
    }
    return strtoull(text, NULL, 10);
}

/* Has every reader of the outbox passed its end? docs/architecture.md, "Outbox of a replica": a
 * segment's name is the position of its first byte, NAME.position holds a reader's. */
static bool is_drained(struct weir_arena *arena, const char *dir)
{
    DIR *stream = opendir(dir);
    uint64_t end = 0, slowest = UINT64_MAX;
    bool has_server = false;
    if (stream == NULL) {
        return errno == ENOENT;
    }
    for (struct dirent *file = readdir(stream); file != NULL; file = readdir(stream)) {
        char *dot = strrchr(file->d_name, '.'), *behind;
        const char *path = weir_arena_printf(arena, "%s/%s", dir, file->d_name);
        struct stat info;
        if (dot != NULL && strcmp(dot, ".log") == 0 && stat(path, &info) == 0) {
            uint64_t start = strtoull(file->d_name, &behind, 16);
            end = behind == dot ? WEIR_MAX(end, start + (uint64_t)info.st_size) : UINT64_MAX;
        } else if (dot != NULL && strcmp(dot, ".position") == 0) {
            uint64_t place = read_place(path);
            slowest = WEIR_MIN(slowest, place);
            has_server = has_server || strcmp(file->d_name, "server.position") == 0;
        }
    }
    (void)closedir(stream);
    return end == 0 || (has_server && slowest >= end);
}

bool weir_retain_job_has_left(const char *state_dir, const char *job)
{
    struct weir_arena arena;
    bool has_left = false;
    weir_arena_init(&arena, 0);
    const char *replicas = weir_arena_printf(&arena, "%s/replicas", state_dir);
    const char *own = weir_arena_printf(&arena, "%s-", job); /* JOB-RANK */
    DIR *dir = opendir(replicas);
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL && !has_left;
         entry = readdir(dir)) {
        has_left =
            strncmp(entry->d_name, own, strlen(own)) == 0 && !is_going(entry->d_name) &&
            !is_drained(&arena, weir_arena_printf(&arena, "%s/%s/outbox", replicas, entry->d_name));
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    weir_arena_fini(&arena);
    return has_left;
}

static weir_status judge_replica(struct weir_txn *txn, const struct retain_look *look,
                                 const struct retain_entry *entry, struct weir_error *err)
{
    bool is_over, has_succeeded;
    const char *dash = strrchr(entry->item->name, '-'); /* JOB-RANK */
    int job_len = dash != NULL ? (int)(dash - entry->item->name) : (int)strlen(entry->item->name);
    WEIR_TRY(find_job(txn, look, entry, job_len, &is_over, &has_succeeded, err));
    /* A decision that was never shipped is kept as long as one that was. */
    const struct retain_item *item = entry->item;
    int decisions = weir_retain_kind_from_text(RETAIN_DECISIONS);
    int64_t keep_ms = item->project != NULL ? retain_keep(look, item->project, decisions)
                                            : look->policy->limits[decisions].keep_ms;
    entry->item->is_left =
        is_over &&
        !is_drained(look->arena, weir_arena_printf(look->arena, "%s/outbox", entry->path));
    bool is_young = keep_ms < 0 || look->now_ms - entry->item->time_ms < keep_ms;
    entry->item->is_needed = !is_over || (entry->item->is_left && is_young);
    return WEIR_OK;
}

/* TASK.ATTEMPT.log */
static weir_status judge_log(struct weir_txn *txn, const struct retain_look *look,
                             const struct retain_entry *entry, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    bool has_row = false;
    const char *name = entry->item->name, *dot = strchr(name, '.');
    entry->item->time_ms = entry->mtime_ms;
    entry->item->is_needed = look->now_ms - entry->mtime_ms < LOG_QUIET_MS;
    if (dot == NULL) {
        return WEIR_OK;
    }
    const char *task = weir_arena_printf(look->arena, "%.*s", (int)(dot - name), name);
    WEIR_TRY(weir_stmt_open(txn, sql_log,
                            WEIR_BINDS(WEIR_BIND_TEXT("id", task),
                                       WEIR_BIND_INT("attempt", strtoll(dot + 1, NULL, 10))),
                            &stmt, err));
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    if (has_row) {
        set_keep(look, entry->item, weir_stmt_text(stmt, 0, look->arena));
        entry->item->is_needed = entry->item->is_needed || weir_stmt_int(stmt, 1) != 0;
    }
    return WEIR_OK;
}

/* The folder of a service that runs or may be started again stays. */
static weir_status judge_service(struct weir_txn *txn, const struct retain_look *look,
                                 const struct retain_entry *entry, struct weir_error *err)
{
    int64_t n;
    WEIR_TRY(weir_txn_query_int(txn, sql_service,
                                WEIR_BINDS(WEIR_BIND_TEXT("id", entry->item->name)), 0, &n, err));
    entry->item->time_ms = entry->mtime_ms;
    entry->item->is_needed = n > 0 || look->now_ms - entry->mtime_ms < UNKNOWN_KEEP_MS;
    return WEIR_OK;
}

/* Whoever sends may be between two parts. */
static weir_status judge_parts(struct weir_txn *txn, const struct retain_look *look,
                               const struct retain_entry *entry, struct weir_error *err)
{
    (void)txn;
    (void)err;
    entry->item->time_ms = entry->mtime_ms;
    entry->item->is_needed = look->now_ms - entry->mtime_ms < UNKNOWN_KEEP_MS;
    return WEIR_OK;
}

/* A pack goes whatever refers to it: a picture helps people, and may be missed. */
static weir_status judge_pack(struct weir_txn *txn, const struct retain_look *look,
                              const struct retain_entry *entry, struct weir_error *err)
{
    (void)txn;
    (void)err;
    entry->item->time_ms = entry->mtime_ms;
    entry->item->keep_ms = retain_pictures_longest(look);
    entry->item->has_keep = true;
    return WEIR_OK;
}

/* Of datasets that an earlier server was deleting: nobody else takes them. */
static weir_status remove_gone(const struct retain_look *look, struct weir_error *err)
{
    const struct weir_retainer *retainer = look->retainer;
    const char *datasets =
        weir_arena_printf(look->arena, "%s/datasets", retainer->config.state_dir);
    DIR *dir = opendir(datasets);
    weir_status status = WEIR_OK;
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL;
         entry != NULL && status == WEIR_OK && !retain_is_stopping(look->retainer);
         entry = readdir(dir)) {
        struct stat info;
        if (strncmp(entry->d_name, WEIR_RETAIN_GONE, sizeof WEIR_RETAIN_GONE - 1) == 0 &&
            fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            (int64_t)info.st_ctim.tv_sec * 1000 + info.st_ctim.tv_nsec / 1000000 <=
                retainer->since_ms) {
            status = weir_dir_remove(
                weir_arena_printf(look->arena, "%s/%s", datasets, entry->d_name), err);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return status;
}

// clang-format off
const struct retain_folder retain_folders[] = {
    {{"checkpoints", "Checkpoints of trainings that are over",
      "An hour after a training succeeded; else those that ended longest ago first; the last by its age alone.",
      240, .limit = {WEIR_DAYS(7), WEIR_MB(600)}, .is_of_project = true},
     "checkpoints", .judge = judge_checkpoints, .spares_last = true},
    {{"rendezvous", "Where the workers of a job met",
      "When the job is over.",
      250, .limit = {HOUR_MS, WEIR_MB(10)}},
     "rendezvous", .judge = judge_by_job},
    {{"parts", "Parts of artifacts that did not become whole",
      "Those whose last part came longest ago go first; within an hour of it they stay.",
      260, .limit = {WEIR_DAYS(7), WEIR_RETAIN_ANY}},
     "parts", .judge = judge_parts, .before = remove_gone},
    {{"results", "Files of batch predictions that the server keeps",
      "Those of jobs that ended longest ago go first; of a job that runs all stay.",
      270, .limit = {WEIR_DAYS(90), WEIR_RETAIN_ANY}, .is_of_project = true},
     "results", .judge = judge_by_job},
    {{"replicas", "Folders of replicas: cache and outbox",
      "When the job is over and every decision was shipped; what was not is kept as long as decisions are.",
      280, .limit = {WEIR_DAYS(1), WEIR_MB(250)}},
     "replicas", .judge = judge_replica, .tell = retain_left_tell},
    {{"sandboxes", "Decisions of IONs that were tried, in files",
      "Those of jobs that ended longest ago go first; of a job that runs all stay.",
      290, .limit = {WEIR_DAYS(7), WEIR_RETAIN_ANY}, .is_of_project = true},
     "sandbox", .judge = judge_by_job},
    {{"services", "Folders of services and notebooks",
      "When the service was deleted; of one that is there it stays.",
      300, .limit = {HOUR_MS, WEIR_RETAIN_ANY}},
     "services", .judge = judge_service},
    {{"logs", "What tasks wrote",
      "Those written longest ago go first; the log of a task that runs stays.",
      310, .limit = {WEIR_DAYS(30), WEIR_MB(250)}, .is_of_project = true},
     "logs", .judge = judge_log},
    {{"pictures", "Pictures of decisions, in packs of 4 MiB or an hour",
      "The pack that was written longest ago goes first, whole; one whose decisions have gone, too.",
      320, .limit = {WEIR_DAYS(7), WEIR_MB(630)}, .is_of_project = true},
     "pictures", .judge = judge_pack, .is_packs = true, .before = retain_pictures_sweep,
     .preview = retain_pictures_preview},
};

// clang-format on
const size_t retain_n_folders = WEIR_ARRAY_LEN(retain_folders);

/* ---- all entries ----------------------------------------------------------------------------- */

struct listing {
    const struct retain_look *look;
    const struct retain_folder *folder;
    const char *dir;
    struct retain_item *items;
    int64_t *mtimes_ms;
    size_t n;
};

static weir_status list_names(struct listing *listing, struct weir_error *err)
{
    struct dirent **entries;
    int n = scandir(listing->dir, &entries, NULL, alphasort);
    if (n < 0) {
        return errno == ENOENT ? WEIR_OK
                               : weir_error_set_errno(err, errno, "listing %s", listing->dir);
    }
    struct weir_arena *arena = listing->look->arena;
    listing->items = WEIR_ARENA_ARRAY(arena, (size_t)n + 1, struct retain_item);
    listing->mtimes_ms = WEIR_ARENA_ARRAY(arena, (size_t)n + 1, int64_t);
    for (int i = 0; i < n; i++) {
        struct stat info;
        const char *path = weir_arena_printf(arena, "%s/%s", listing->dir, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && lstat(path, &info) == 0) {
            listing->mtimes_ms[listing->n] =
                (int64_t)info.st_mtim.tv_sec * 1000 + info.st_mtim.tv_nsec / 1000000;
            listing->items[listing->n++] =
                (struct retain_item){.name = weir_arena_strdup(arena, entries[i]->d_name),
                                     .bytes = retain_tree_bytes(path)};
        }
        free(entries[i]);
    }
    free(entries);
    return WEIR_OK;
}

static weir_status judge_all(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct listing *listing = context;
    for (size_t i = 0; i < listing->n; i++) {
        struct retain_item *item = &listing->items[i];
        struct retain_entry entry = {
            item, weir_arena_printf(listing->look->arena, "%s/%s", listing->dir, item->name),
            listing->mtimes_ms[i]};
        if (!is_going(item->name)) {
            WEIR_TRY(listing->folder->judge(txn, listing->look, &entry, err));
        }
    }
    return WEIR_OK;
}

/* The training that ended last may be tried again: it keeps its checkpoints, however large. */
static void spare_last(struct listing *listing)
{
    struct retain_item *last = NULL;
    for (size_t i = 0; i < listing->n; i++) {
        struct retain_item *item = &listing->items[i];
        if (!item->is_needed && !is_going(item->name) &&
            (last == NULL || item->time_ms > last->time_ms)) {
            last = item;
        }
    }
    if (last != NULL) {
        last->has_no_size = true;
    }
}

static weir_status list_entries(const struct retain_look *look, struct listing *out,
                                size_t *out_n_going, struct weir_error *err)
{
    struct listing listing = {.look = look, .folder = retain_kind(look->kind)->folder};
    listing.dir = weir_arena_printf(look->arena, "%s/%s", look->retainer->config.state_dir,
                                    listing.folder->dir);
    WEIR_TRY(list_names(&listing, err));
    WEIR_TRY(weir_store_read(look->retainer->config.store, judge_all, &listing, err));
    if (listing.folder->spares_last) {
        spare_last(&listing);
    }
    (void)retain_choose(listing.items, listing.n, &look->limit, look->now_ms);
    retain_left_choose(look, listing.items, listing.n);
    *out_n_going = 0;
    for (size_t i = 0; i < listing.n; i++) {
        *out_n_going += listing.items[i].goes;
    }
    for (size_t i = 0; i < listing.n; i++) { /* what was begun is ended, whatever the limits say */
        *out_n_going += is_going(listing.items[i].name) && !listing.items[i].goes;
        listing.items[i].goes = listing.items[i].goes || is_going(listing.items[i].name);
    }
    *out = listing;
    return WEIR_OK;
}

static weir_status remove_entry(const struct listing *listing, const struct retain_item *item,
                                struct weir_error *err)
{
    if (listing->folder->is_packs) {
        return weir_packs_remove(listing->look->retainer->config.pictures, item->name, err);
    }
    char *path = weir_arena_printf(listing->look->arena, "%s/%s", listing->dir, item->name);
    char *away =
        is_going(item->name) ? path : weir_arena_printf(listing->look->arena, "%s%s", path, going);
    if (away != path && rename(path, away) != 0) {
        return errno == ENOENT ? WEIR_OK : weir_error_set_errno(err, errno, "renaming %s", path);
    }
    return weir_dir_remove(away, err);
}

static weir_status sweep_folders(const struct retain_look *look, struct weir_error *err)
{
    struct listing listing;
    size_t n_going;
    int64_t bytes = 0;
    const struct retain_folder *folder = retain_kind(look->kind)->folder;
    if (folder->before != NULL) {
        WEIR_TRY(folder->before(look, err));
    }
    WEIR_TRY(list_entries(look, &listing, &n_going, err));
    if (folder->tell != NULL) {
        WEIR_TRY(folder->tell(look, listing.items, listing.n, err));
    }
    for (size_t i = 0; i < listing.n && !retain_is_stopping(look->retainer); i++) {
        if (listing.items[i].goes) {
            WEIR_TRY(remove_entry(&listing, &listing.items[i], err));
            bytes += listing.items[i].bytes;
        }
    }
    if (n_going > 0) {
        weir_log(WEIR_LOG_INFO, "retention_removed",
                 WEIR_KV_STR("kind", weir_retain_rule(look->kind)->name),
                 WEIR_KV_INT("n", (int64_t)n_going), WEIR_KV_INT("bytes", bytes));
    }
    return WEIR_OK;
}

static weir_status measure_folders(const struct retain_look *look, struct retain_size *out,
                                   struct weir_error *err)
{
    struct listing listing;
    struct retain_size size = {0};
    size_t n_going;
    WEIR_TRY(list_entries(look, &listing, &n_going, err));
    for (size_t i = 0; i < listing.n; i++) {
        size.bytes += listing.items[i].bytes;
        size.n_needed += listing.items[i].is_needed;
        if (!listing.items[i].is_needed && size.oldest_ms == 0) {
            size.oldest_ms = listing.items[i].time_ms; /* they are sorted */
        }
    }
    size.n = (int64_t)listing.n;
    size.n_going = (int64_t)n_going;
    *out = size;
    return WEIR_OK;
}

static weir_status preview_folders(const struct retain_look *look, struct weir_retain_preview *out,
                                   struct weir_error *err)
{
    struct listing listing;
    struct weir_retain_preview preview = {0};
    size_t n_going;
    if (retain_kind(look->kind)->folder->preview != NULL) {
        return retain_kind(look->kind)->folder->preview(look, out, err);
    }
    WEIR_TRY(list_entries(look, &listing, &n_going, err));
    for (size_t i = 0; i < listing.n; i++) {
        const struct retain_item *item = &listing.items[i];
        bool is_old =
            look->preview_keep_ms >= 0 && look->now_ms - item->time_ms >= look->preview_keep_ms;
        if (item->project != NULL && strcmp(item->project, look->preview_project) == 0 && is_old &&
            !item->is_needed) {
            preview.n_going++;
            preview.bytes_going += item->bytes;
        }
    }
    *out = preview;
    return WEIR_OK;
}

const struct retain_ops retain_folders_ops = {sweep_folders, measure_folders, preview_folders,
                                              5 * RETAIN_MINUTE_MS};
