#include "store/alert_kind.h"

#include "base/macros.h"

#include <string.h>

#define NONE     WEIR_ALERT_NO_EFFECT
#define DEGRADES WEIR_ALERT_DEGRADES
#define BREAKS   WEIR_ALERT_BREAKS

// clang-format off
static const struct weir_alert_kind kinds[] = {
    {"deployment_failed", NULL, BREAKS, "ion", false, "a replica cannot apply the deployment that is wanted: critical if nothing is served, a warning if the one before serves on", "a deployment works; its replicas or its pipeline end"},
    {"not_serving", "critical", BREAKS, "ion", true, "there is a model to serve, and for 60 s no replica has served any, or the replicas have ended", "a replica serves"},
    {"replica_silent", NULL, BREAKS, "ion", true, "a replica that served has not reported for 15 s: critical if none has, a warning if others do", "it reports"},
    {"deployment_not_serving", "critical", BREAKS, "deployment", true, "no replica of a deployment has had a version ready for 60 s, or its replicas end one after the other, or none can load what is asked for", "a replica serves; the deployment goes to no replica; it is deleted"},
    {"deployment_gone", "critical", BREAKS, "ion", true, "a link of an ION leads to a deployment that is not there, or is of another model: nobody is answered by what the link serves", "the deployment is there again (`weir deploy`), or the link is gone"},
    {"requests_fail", "warning", DEGRADES, "deployment", true, "of the requests of the last one to two minutes a version surely fails more than a tenth, or refuses (4xx) more than the version with the other share takes, or, alone, refuses most", "it does not any more; no requests come; it has no share"},
    {"version_failed", "warning", DEGRADES, "deployment", true, "a replica could not load a version that its deployment names: the traffic stays as it was", "the version is loaded, or asked for no more"},
    {"deployed_replica_silent", "warning", DEGRADES, "deployment", true, "a replica of a deployment has not reported for 15 s: it gets no requests", "it reports, or is replaced"},
    {"no_frames", "warning", DEGRADES, "ion", true, "a source that had frames has had none for no_frames_after_s (default 300 s)", "a frame comes"},
    {"outbox_stuck", "warning", DEGRADES, "ion", true, "a decision has waited for 60 s to reach the server or a sink", "it has reached it"},
    {"decisions_refused", "warning", DEGRADES, "ion", true, "the server or a sink has refused decisions of a replica; they are set aside in refused.jsonl of its folder", "the files are taken away there"},
    {"frames_ignored", "warning", DEGRADES, "ion", true, "files lie in a source's folder that are no frames by their names or places, or requests with pictures have been refused in the last minutes: nobody decides about them", "the files are renamed or taken away; no such request comes for one to two minutes"},
    {"threshold_price", "warning", DEGRADES, "ion", true, "the threshold refuses more than 10 % of the gallery's own photos", "a threshold that does not is set"},
    {"member_not_enrolled", "warning", DEGRADES, "ion", true, "a person on a list is in no gallery of the ION", "the person is enrolled, or off the lists"},
    {"rollout_blocked", "warning", DEGRADES, "ion", true, "the policy that tries a version among the requests of a deployment cannot judge it, as far as can be seen: a guard sees nothing, requests or outcomes do not come or come too slowly, no replica has it", "it can be judged; its trial is over"},
    {"drift", "warning", DEGRADES, "ion", false, "a health report with drifted", "the next report of that signal without"},
    {"door_silent", "critical", DEGRADES, "ion", true, "a door does not answer its replica, or is not in reach: nobody is let in there", "it answers, or is in reach again; the document has it no more"},
    {"door_jammed", "critical", DEGRADES, "ion", true, "a door says that it is jammed, or does not do what it is told", "it does, or says something else"},
    {"camera_lost", NULL, DEGRADES, "ion", true, "a camera has given no picture for lost_after_s of its source (default 30 s), since it was lost or since it was tried first: critical if its pipeline is", "a picture comes; the document has it no more"},
    {"camera_unwell", "warning", DEGRADES, "ion", true, "a camera's pictures are dark, dazzled, frozen, covered, blurred or moved, or its clock is off by more than 5 s, for unwell_after_s of its source (default 60 s)", "they are well again; it is lost; the document has it no more"},
    {"barred_at_door", "critical", NONE, "ion", false, "a replica has denied a person who is on the deny list: one alert for each person and camera, with the decision whose picture shows them", "a person ends it; no such decision has come for 10 minutes"},
    {"place_condition", "warning", NONE, "ion", true, "a place in a camera's picture has too many or too few things in it, or one that stays too long, as the stage count says", "it is within limits again, the thing has left, or the place is not counted any more"},
    {"told", "warning", DEGRADES, "ion", false, "a program of an ION, or a person, has told that something is not well (`POST /ions/{name}/told`, weir_mlops_alert)", "they tell that it is again"},
    {"training_failed", "critical", DEGRADES, "ion", false, "a training of an ION failed for good", "the next training of the pipeline that succeeds; the pipeline is removed"},
    {"pipeline_failed", NULL, BREAKS, "ion", false, "a run of a pipeline of an ION that is critical, or no training, failed for good: critical if the document says that it is, else a warning", "the next run of the pipeline that succeeds; the pipeline is removed"},
    {"job_failed", "warning", NONE, "job", false, "a job of no ION failed and is not tried again", "a job of the same name succeeds; after 7 days without another failure"},
    {"job_failing", "critical", NONE, "job or ion", true, "3 jobs of one name, or 3 trainings of one pipeline, failed in a row", "the next that succeeds; after 7 days without another failure if it is of no ION"},
    {"job_restarting", "warning", DEGRADES, "job", true, "a job has been started again 3 times and is not over", "it is over; of a replica: it has run for 5 s"},
    {"task_kept", "warning", NONE, "job", true, "a task's program failed, and its place, with all that it was given, is kept for a look (`--hold-on-failure`)", "the time is over; `weir job cancel`"},
    {"unreadable", "critical", DEGRADES, "job, ion or deployment", false, "the stored state of a job, ION or deployment cannot be loaded (too large, damaged): the engine leaves it alone and goes on with the others", "it can be loaded again, or is given up with `weir job cancel ID`, `weir delete NAME`, `weir undeploy NAME`"},
    {"node_lost", "critical", DEGRADES, "node", true, "a node has not been heard of for the node time-out (15 s unless the server has another)", "it is heard of"},
    {"server_cut_off", "critical", DEGRADES, "server", true, "more than half of the nodes, of two or more, fell silent at once: no node is lost by that", "half of them or more are heard of; after 5 minutes if others are: the silent ones are lost then"},
    {"server_away", "warning", NONE, "server", true, "the server did not run for more than 4 s: its process or machine was stopped, suspended or starved. Every node has the full time since", "after 10 minutes"},
    {"node_unhealthy", "warning", DEGRADES, "node", true, "a node's agent, or its clock, says that it is not fit for tasks", "it is again"},
    {"cluster_wrong", "warning", DEGRADES, "cluster", true, "something lacks in what is written of a cluster, as its own answer says: nothing is asked of it", "it is right again; the cluster is removed"},
    {"cluster_silent", "warning", DEGRADES, "cluster", true, "a cluster has not answered for 60 s: what runs there goes on, and nothing new is asked of it", "it answers; it is removed"},
    {"cluster_node_closed", "warning", DEGRADES, "cluster", true, "a node of a cluster on which something of Weir's runs takes nothing new over there: its operators drained it, or it is down", "it takes work again; what ran there has ended"},
    {"device_bad", "warning", DEGRADES, "node", true, "an accelerator is too hot, has errors, or its driver does not answer", "it is well again, or gone"},
    {"device_gone", "warning", DEGRADES, "node", true, "an accelerator that was there is not seen any more", "it is back; after a day"},
    {"decisions_left", "warning", DEGRADES, "server", false, "a replica whose job is over has left decisions on the server's disk that were never shipped", "the folder is taken away, or goes with the age or the size of decisions"},
    {"receiver_failing", "warning", DEGRADES, "server", false, "a receiver of alerts refused a message, or did not take one for so long that it is given up, or so many wait for it that a new one is left out", "it takes a message; it is deleted"},
    {"node_disk_filling", NULL, DEGRADES, "node", true, "less than 10 % or 2 GiB of the disk of a node's agent is free: a warning; less than 3 %: critical. The server's own disk is told as disk_filling", "more is free"},
    {"store_not_writing", "critical", BREAKS, "server", true, "the server can store nothing: a commit of the database or a file failed, or the disk has become read-only", "something is stored again"},
    {"store_damaged", "critical", BREAKS, "server", true, "the database is damaged, or could not be read from its disk: seen by whatever met it, or by the check of all of it that follows each start", "the server is started again and meets no damage: restore a backup"},
    {"blobs_damaged", "warning", DEGRADES, "server", true, "a blob (a model, a file of a run or of a dataset) was wanted and is damaged, or is not there though something names it", "it is stored again or set aside (`weir store verify`); one that is missing: nobody has wanted it for 10 minutes; the server is started again and nobody meets it"},
    {"engine_stalled", "critical", BREAKS, "server", true, "the server's engine cannot plan for 10 s, has made no round for 60 s, or cannot look at nodes, IONs and jobs", "it does again"},
    {"inodes_filling", NULL, BREAKS, "server", true, "less than 10 % of the inodes of the state folder's disk are free: a warning; less than 3 % or 64: critical", "more are free"},
    {"password_guessing", "warning", NONE, "user", false, "20 wrong passwords were given for a user within an hour, from wherever; brought up to date as their number doubles", "none is given for an hour"},
    {"disk_filling", NULL, BREAKS, "server", true, "less than 10 % or 2 GiB of the state folder's disk is free: a warning; less than 3 %: critical", "more is free"},
};

// clang-format on

const struct weir_alert_kind *weir_alert_kinds(size_t *out_n)
{
    *out_n = WEIR_ARRAY_LEN(kinds);
    return kinds;
}

const struct weir_alert_kind *weir_alert_kind_find(const char *kind)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(kinds); i++) {
        if (strcmp(kinds[i].kind, kind) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}
