#include "control/vitals.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/macros.h"
#include "blob/damage.h"
#include "store/pulse.h"

#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define PROBE_EVERY_MS  20000
#define PROBE_AGAIN_MS  1000 /* While it fails. */
#define INODES_LOW_PCT  10
#define INODES_LAST_PCT 3
#define INODES_LAST     64 /* On any disk. */
#define PATH_BYTES      4096

/* Folders of the state that may be mounts of their own. */
static const char *const folders[] = {"", "/blobs", "/pictures", "/datasets"};

void vitals_init(struct vitals *vitals, struct weir_store *store, struct weir_blobs *blobs,
                 const char *state_dir)
{
    *vitals = (struct vitals){
        .store = store, .blobs = blobs, .state_dir = state_dir, .round_mono_ms = weir_mono_ms()};
    pthread_mutex_init(&vitals->lock, NULL);
}

/* ---- what the engine notes ------------------------------------------------------------------- */

/* 0, or why no file could be written there. A folder that is not there yet is fine. */
static int write_probe(const char *folder)
{
    int reason = weir_dir_probe(folder);
    return reason == ENOENT && access(folder, F_OK) != 0 ? 0 : reason;
}

static bool probe(struct vitals *vitals)
{
    char folder[PATH_BYTES], text[WEIR_ERROR_MESSAGE_BYTES] = "";
    struct weir_error failed;
    bool is_written = weir_store_probe(vitals->store, &failed) == WEIR_OK;
    if (!is_written) {
        weir_log(WEIR_LOG_DEBUG, "store_probe_failed", WEIR_KV_STR("error", failed.message));
    } /* the store has noted it */
    for (size_t i = 0; i < WEIR_ARRAY_LEN(folders) && text[0] == '\0'; i++) {
        (void)snprintf(folder, sizeof folder, "%s%s", vitals->state_dir, folders[i]);
        int reason = write_probe(folder);
        if (reason != 0) {
            (void)snprintf(text, sizeof text, "%.300s: %s", folder, strerror(reason));
        }
    }
    pthread_mutex_lock(&vitals->lock);
    memcpy(vitals->unwritten, text, sizeof text);
    pthread_mutex_unlock(&vitals->lock);
    return is_written && text[0] == '\0';
}

void vitals_round(struct vitals *vitals)
{
    if (vitals == NULL) {
        return;
    }
    int64_t now = weir_mono_ms();
    pthread_mutex_lock(&vitals->lock);
    vitals->round_mono_ms = now;
    bool is_due = now >= vitals->next_probe_mono_ms;
    vitals->next_probe_mono_ms = is_due ? now + PROBE_EVERY_MS : vitals->next_probe_mono_ms;
    pthread_mutex_unlock(&vitals->lock);
    if (is_due && !probe(vitals)) {
        pthread_mutex_lock(&vitals->lock);
        vitals->next_probe_mono_ms = now + PROBE_AGAIN_MS;
        pthread_mutex_unlock(&vitals->lock);
    }
}

void vitals_doubt(struct vitals *vitals)
{
    if (vitals != NULL) {
        pthread_mutex_lock(&vitals->lock);
        vitals->next_probe_mono_ms = 0;
        pthread_mutex_unlock(&vitals->lock);
    }
}

void vitals_note(struct vitals *vitals, enum vitals_act act, weir_status status,
                 const struct weir_error *err)
{
    if (vitals == NULL) {
        return;
    }
    pthread_mutex_lock(&vitals->lock);
    if (status == WEIR_OK) {
        vitals->failing_mono_ms[act] = 0;
    } else {
        vitals->failing_mono_ms[act] =
            vitals->failing_mono_ms[act] != 0 ? vitals->failing_mono_ms[act] : weir_mono_ms();
        (void)snprintf(vitals->failed[act], sizeof vitals->failed[act], "%s", err->message);
    }
    pthread_mutex_unlock(&vitals->lock);
}

void vitals_spent(struct vitals *vitals, const char *part, int64_t us)
{
    size_t i = 0;
    if (vitals == NULL) {
        return;
    }
    pthread_mutex_lock(&vitals->lock);
    while (i < vitals->n_parts && strcmp(vitals->parts[i].name, part) != 0) {
        i++;
    }
    if (i < VITALS_PARTS_MAX) {
        vitals->n_parts = WEIR_MAX(vitals->n_parts, i + 1);
        vitals->parts[i].name = part;
        vitals->parts[i].n++;
        vitals->parts[i].spent_us += us;
    }
    pthread_mutex_unlock(&vitals->lock);
}

size_t vitals_parts(struct vitals *vitals, struct vitals_part *out)
{
    if (vitals == NULL) {
        return 0;
    }
    pthread_mutex_lock(&vitals->lock);
    size_t n = vitals->n_parts;
    memcpy(out, vitals->parts, n * sizeof *out);
    pthread_mutex_unlock(&vitals->lock);
    return n;
}

/* ---- what is found --------------------------------------------------------------------------- */

struct finding_of {
    struct weir_arena *arena;
    struct weir_watch_findings *out;
};

static void add(const struct finding_of *to, const char *kind, const char *key,
                const char *severity, const char *message)
{
    weir_watch_add(to->out, to->arena,
                   (struct weir_watch_finding){.key = key,
                                               .kind = kind,
                                               .severity = severity,
                                               .subject = "server/state",
                                               .message = message});
}

static void find_in_store(struct vitals *vitals, const struct finding_of *to)
{
    struct weir_store_pulse pulse;
    weir_store_pulse(vitals->store, &pulse);
    if (pulse.damaged_mono_ms != 0) {
        add(to, "store_damaged", "store_damaged", "critical",
            weir_arena_printf(
                to->arena,
                "The database is damaged: what lies in the damaged part is lost, and whatever "
                "needs it fails. Stop the server and restore the last backup (weir "
                "restore). Found: %s.",
                pulse.damage));
    }
    if (pulse.unread_mono_ms != 0) {
        add(to, "store_damaged", "store_unread", "critical",
            weir_arena_printf(
                to->arena,
                "The database could not be read: %s. Mend the disk, start the server again, "
                "and restore the last backup (weir restore) if it is damaged.",
                pulse.unread));
    }
    if (pulse.failing_mono_ms != 0) {
        add(to, "store_not_writing", "store_not_writing", "critical",
            weir_arena_printf(to->arena, "Nothing can be stored: %s.", pulse.failed));
    }
}

static void find_in_blobs(struct vitals *vitals, const struct finding_of *to)
{
    struct weir_blobs_damage damage = {0};
    if (vitals->blobs != NULL) {
        weir_blobs_damage(vitals->blobs, &damage);
    }
    if (damage.n > 0) {
        add(to, "blobs_damaged", "blobs_damaged", NULL,
            weir_arena_printf(to->arena,
                              "%zu of the blobs that were wanted are damaged or missing, as blob "
                              "%.16s… is %s: whatever needs them fails. `weir store verify` names "
                              "what they belong to, and mends them.",
                              damage.n, damage.sha256, damage.is_missing ? "missing" : "damaged"));
    }
}

static void find_on_disk(const char *folder, const struct finding_of *to)
{
    struct statvfs fs;
    if (statvfs(folder, &fs) != 0) {
        return; /* not there yet, or the probe says it */
    }
    if ((fs.f_flag & ST_RDONLY) != 0) {
        add(to, "store_not_writing", weir_arena_printf(to->arena, "disk_read_only:%s", folder),
            "critical",
            weir_arena_printf(
                to->arena,
                "The disk of %s has become read-only, as a disk with errors does: nothing can be "
                "stored. Mend it (dmesg says what happened), mount it for writing, and start "
                "the server again.",
                folder));
    }
    bool counts = fs.f_files > 0;
    uint64_t pct = counts ? (uint64_t)fs.f_favail * 100 / fs.f_files : 100;
    bool is_last = counts && (pct < INODES_LAST_PCT || fs.f_favail < INODES_LAST);
    if (counts && (is_last || pct < INODES_LOW_PCT)) {
        add(to, "inodes_filling",
            weir_arena_printf(to->arena, "inodes_filling:%s", is_last ? "last" : "low"),
            is_last ? "critical" : "warning",
            is_last
                ? "The disk of the server's state folder can hold hardly any more files (its "
                  "inodes "
                  "are used up): when none is free nothing new is stored. Remove files, or make "
                  "the file system anew with more inodes (df -i)."
                : "The disk of the server's state folder runs out of inodes: less than 10 % are "
                  "free (df -i).");
    }
}

/* n_before: findings of before these. A disk that fails in one way is not told in another. */
static void find_on_disks(struct vitals *vitals, const struct finding_of *to, size_t n_before)
{
    char unwritten[WEIR_ERROR_MESSAGE_BYTES], folder[PATH_BYTES];
    /* The folders are mostly of one disk: each disk is told once. */
    unsigned long seen[WEIR_ARRAY_LEN(folders)];
    size_t n_seen = 0;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(folders); i++) {
        struct statvfs fs;
        (void)snprintf(folder, sizeof folder, "%s%s", vitals->state_dir, folders[i]);
        bool is_known = statvfs(folder, &fs) != 0;
        for (size_t j = 0; j < n_seen; j++) {
            is_known = is_known || seen[j] == fs.f_fsid;
        }
        if (!is_known) {
            seen[n_seen++] = fs.f_fsid;
            find_on_disk(weir_arena_strdup(to->arena, folder), to);
        }
    }
    bool has_told = to->out->n > n_before;
    pthread_mutex_lock(&vitals->lock);
    memcpy(unwritten, vitals->unwritten, sizeof unwritten);
    pthread_mutex_unlock(&vitals->lock);
    if (unwritten[0] != '\0' && !has_told) {
        add(to, "store_not_writing", "files_not_written", "critical",
            weir_arena_printf(
                to->arena,
                "No file can be written in the server's state folder (%s): models, pictures and "
                "logs are refused. Mend its disk, or make room on it.",
                unwritten));
    }
}

static void find_in_engine(struct vitals *vitals, const struct finding_of *to)
{
    pthread_mutex_lock(&vitals->lock);
    int64_t now = weir_mono_ms(), round = vitals->round_mono_ms;
    int64_t since = vitals->failing_mono_ms[VITALS_PLAN];
    bool looks = vitals->failing_mono_ms[VITALS_LOOK] == 0;
    char *plan = weir_arena_strdup(to->arena, vitals->failed[VITALS_PLAN]);
    char *look = weir_arena_strdup(to->arena, vitals->failed[VITALS_LOOK]);
    pthread_mutex_unlock(&vitals->lock);
    if (now - round > VITALS_ROUND_MS) {
        add(to, "engine_stalled", "engine_stalled:round", "critical",
            "The server's engine stands still: no job is started, no ION goes on and no alert is "
            "raised. "
            "See whether its disk or machine hangs; then start the server again.");
    } else if (since != 0 && now - since > VITALS_PLAN_MS) {
        add(to, "engine_stalled", "engine_stalled:plan", "critical",
            weir_arena_printf(to->arena, "No job can be started: %s.", plan));
    }
    if (!looks) {
        add(to, "engine_stalled", "engine_stalled:look", "critical",
            weir_arena_printf(
                to->arena,
                "The server cannot see how nodes, IONs and jobs are, and raises no alerts "
                "about them: %s.",
                look));
    }
}

void vitals_find(struct vitals *vitals, struct weir_arena *arena, struct weir_watch_findings *out)
{
    const struct finding_of to = {arena, out};
    if (vitals != NULL) {
        size_t n_before = out->n;
        find_in_store(vitals, &to);
        find_on_disks(vitals, &to, n_before);
        find_in_blobs(vitals, &to);
        find_in_engine(vitals, &to);
    }
}

const char *vitals_worst(struct vitals *vitals, struct weir_arena *arena)
{
    struct weir_watch_findings findings = {0};
    vitals_find(vitals, arena, &findings);
    for (size_t i = 0; i < findings.n; i++) {
        if (strcmp(findings.items[i].severity, "critical") == 0) {
            return findings.items[i].message;
        }
    }
    return NULL;
}
