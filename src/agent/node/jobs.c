/* The jobs that have tasks here: each with a user and a folder of its own (sandbox.h). */
#include "agent/node/agent_private.h"

#include "agent/sandbox/job_user.h"
#include "base/file.h"
#include "base/log.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *job_path(const struct agent *agent, const char *job, char out[TASK_PATH_BYTES])
{
    (void)snprintf(out, TASK_PATH_BYTES, "%s/%s", agent->jobs_dir, job);
    return out;
}

static void remove_folder(const char *dir)
{
    struct weir_error err;
    if (weir_path_exists(dir) && weir_dir_remove(dir, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "job_folder_not_removed", WEIR_KV_STR("dir", dir),
                 WEIR_KV_STR("error", err.message));
    }
}

/* What a job has as /dev/shm where all have the agent's user: named after its folder here. */
static bool own_shm_dir(const char *dir, char out[64])
{
    struct stat info;
    if (geteuid() == 0 || stat(dir, &info) != 0) {
        return false;
    }
    (void)snprintf(out, 64, "/dev/shm/weir-%u-%llx-%llx", (unsigned)geteuid(),
                   (unsigned long long)info.st_dev, (unsigned long long)info.st_ino);
    return true;
}

/* What the job has here goes, its user last. */
static void remove_job(const char *dir)
{
    char shm[64];
    uid_t user = job_user_of(dir);
    if (user != 0) {
        job_user_release(JOB_USER_REGISTRY, user);
    }
    if (own_shm_dir(dir, shm)) {
        remove_folder(shm);
    }
    remove_folder(dir);
}

/* Does an attempt of the job run here, or may it yet? */
static bool is_at_work(const struct agent *agent, const char *job)
{
    for (const struct attempt *a = agent->attempts; a != NULL; a = a->next) {
        if (!a->has_exit_record && strcmp(a->job, job) == 0) {
            return true;
        }
    }
    return false;
}

void jobs_release(struct agent *agent, const char *job)
{
    if (job[0] != '\0' && !is_at_work(agent, job)) {
        char dir[TASK_PATH_BYTES];
        remove_job(job_path(agent, job, dir));
    }
}

typedef void (*job_fn)(void *context, const char *job);

static void each_job(const char *jobs_dir, job_fn fn, void *context)
{
    DIR *dir = opendir(jobs_dir);
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL;
         entry = readdir(dir)) {
        if (entry->d_name[0] != '.') {
            fn(context, entry->d_name);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

static void release(void *context, const char *job)
{
    jobs_release(context, job);
}

void jobs_clean(struct agent *agent)
{
    each_job(agent->jobs_dir, release, agent);
}

static void remove_from(void *context, const char *job)
{
    char path[TASK_PATH_BYTES];
    remove_job(task_path(path, context, job));
}

void jobs_remove_all(const char *agent_dir)
{
    char jobs_dir[TASK_PATH_BYTES];
    (void)task_path(jobs_dir, agent_dir, "jobs");
    each_job(jobs_dir, remove_from, jobs_dir);
}

static bool have_sandboxes(const struct agent *agent)
{
    const struct sandbox_probe *sandbox = &agent->sandbox;
    return agent->is_isolating && sandbox->has_mounts &&
           (sandbox->is_root || sandbox->has_namespaces);
}

/* The job's user and what it has as /dev/shm. */
static weir_status claim_user(const struct agent *agent, const char *dir, uid_t *out_user,
                              char shm[64], struct weir_error *err)
{
    if (own_shm_dir(dir, shm)) {
        *out_user = geteuid();
        return WEIR_OK;
    }
    bool is_new = job_user_of(dir) == 0;
    WEIR_TRY(job_user_claim(JOB_USER_REGISTRY, agent->task_users, dir, out_user, err));
    job_user_shm_dir(*out_user, shm);
    if (is_new && weir_path_exists(shm)) {
        WEIR_TRY(weir_dir_remove(shm, err)); /* left by a job after its agent was gone for good */
    }
    return WEIR_OK;
}

weir_status jobs_sandbox(struct agent *agent, const char *job, json_t **out, struct weir_error *err)
{
    char dir[TASK_PATH_BYTES], shm[64];
    uid_t user;
    if (!have_sandboxes(agent)) {
        *out = NULL;
        return WEIR_OK;
    }
    WEIR_TRY(weir_dir_make(job_path(agent, job, dir), 0700, err));
    WEIR_TRY(claim_user(agent, dir, &user, shm, err));
    *out =
        json_pack("{s:I, s:I, s:b, s:s, s:s, s:s, s:s?, s:O}", "user", (json_int_t)user, "readers",
                  (json_int_t)(agent->sandbox.is_root ? agent->task_users : 0), "namespaces",
                  agent->sandbox.has_namespaces, "agent_dir", agent->dir, "job_dir", dir, "shm_dir",
                  shm, "ca_file", agent->ca_path, "shares", agent->shares);
    return WEIR_OK;
}

weir_status jobs_open(struct agent *agent, struct weir_error *err)
{
    const struct weir_agent_config *config = agent->config;
    agent->task_users = config->task_users > 0 ? (uid_t)config->task_users : JOB_USER_BASE;
    agent->is_isolating = config->isolation == NULL || strcmp(config->isolation, "none") != 0;
    WEIR_TRY(shares_parse(config->shares, &agent->shares, err));
    if (agent->onnxruntime_path != NULL) {
        shares_add_library(agent->shares, agent->onnxruntime_path);
    }
    agent->jobs_dir = weir_xalloc(strlen(agent->dir) + sizeof "/jobs");
    (void)snprintf(agent->jobs_dir, strlen(agent->dir) + sizeof "/jobs", "%s/jobs", agent->dir);
    WEIR_TRY(weir_dir_make(agent->jobs_dir, 0700, err));
    if (agent->is_isolating) {
        job_user_sweep(JOB_USER_REGISTRY);
        sandbox_probe(agent->dir, &agent->sandbox);
        weir_isolation_probe(&agent->groups);
    }
    agent->isolation = weir_isolation_record(agent->is_isolating, &agent->groups, &agent->sandbox);
    return WEIR_OK;
}
