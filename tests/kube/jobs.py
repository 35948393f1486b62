"""The Job controller: it makes pods for Jobs, counts how they end, and says when a Job is over.

What it knows is ahead of what it writes: counters in a Job's status come `lag` seconds after the pods, as in a real
cluster, where they are no means to follow pods.
"""
import json
import time

from . import pods, values
from .loops import Loop
from .status import ApiError

TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
RETRY_SECONDS = 0.25  # after pods were refused


class Tally:
    """What the controller knows of a Job before its status says it."""

    def __init__(self, job):
        status = job.get("status") or {}
        self.counted = set()  # uids of pods
        self.succeeded, self.failed = status.get("succeeded", 0), status.get("failed", 0)
        self.indexes = set(read_indexes(status.get("completedIndexes", "")))
        self.failure = None  # (reason, message) for which the Job is to fail
        self.publish_at = None  # when the status is to be written
        self.publish_until = None  # and not later, however many pods end meanwhile
        self.create_after = 0.0  # no pods are made before


def read_indexes(text):
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def write_indexes(indexes):
    """Indexes as ranges: 0-2,5"""
    ranges = []
    for index in sorted(indexes):
        if ranges and ranges[-1][1] == index - 1:
            ranges[-1][1] = index
        else:
            ranges.append([index, index])
    return ",".join(f"{first}" if first == last else f"{first}{'-' if last > first + 1 else ','}{last}" for first, last in ranges)


def owner_of(obj, kind):
    return next((one for one in obj["metadata"].get("ownerReferences") or [] if one.get("controller") and one["kind"] == kind), None)


def finished(job):
    """The condition with which a Job has ended, or None."""
    return next((one for one in (job.get("status") or {}).get("conditions") or []
                 if one["type"] in ("Complete", "Failed") and one["status"] == "True"), None)


def index_of(pod):
    text = (pod["metadata"].get("annotations") or {}).get(INDEX, "")
    return int(text) if text.isdigit() else -1


class JobController(Loop):
    def __init__(self, api):
        super().__init__("job", api)
        self.lag = 0.3
        self.backoff = 0.02  # before a failed pod is replaced; the real one waits 10 s, then twice as long each time
        self.has_new_labels = True  # those of 1.27 and 1.28, beside the older ones
        self.pods = {}  # keys of pods by the uid of their Job
        self.owners = {}  # uids of the Jobs that had a name
        self.tallies = {}  # by the uid of the Job

    def follow(self, resource_key, event):
        item = event.new or event.old
        if resource_key == "jobs.batch":
            self.add(item.key)
            if event.new is None:
                self.tallies.pop(item.obj["metadata"]["uid"], None)
        elif resource_key == "pods":
            if event.old is not None:
                self.follow_pod(event.old, False)
            if event.new is not None:
                self.follow_pod(event.new, True)

    def follow_pod(self, item, is_there):
        owner = owner_of(item.obj, "Job")
        if owner is not None:
            keys = self.pods.setdefault(owner["uid"], set())
            (keys.add if is_there else keys.discard)(item.key)
            self.owners.setdefault((item.key[0], owner["name"]), set()).add(owner["uid"])
            self.add((item.key[0], owner["name"]))
        elif TRACKING in (item.obj["metadata"].get("finalizers") or []) and is_there:
            self.add(("orphan", *item.key), 0.0)

    def sync(self, key):
        if key[0] == "orphan" and len(key) == 3:
            self.forget_pod(*key[1:])
            return
        item = self.store.get("jobs.batch", *key)
        with self.store.lock:
            self.release_strays(key, item)
            if item is None:
                return
            self.sync_job(key, item.obj)

    # ---- pods ---------------------------------------------------------------------------------------

    def pods_of(self, job):
        items = [self.store.get("pods", *key) for key in sorted(self.pods.get(job["metadata"]["uid"], ()))]
        return [item.obj for item in items if item is not None]

    def forget_pod(self, namespace, name):
        """Take the Job's finalizer from a pod: it may go."""
        def change(obj):
            finalizers = obj["metadata"].get("finalizers") or []
            if TRACKING not in finalizers:
                return False
            finalizers.remove(TRACKING)
            if not finalizers:
                del obj["metadata"]["finalizers"]
            return True
        self.api.change("pods", namespace, name, change)

    def release_strays(self, key, item):
        """Pods of a Job that is gone keep no finalizer, also when there is another of its name."""
        uid = item.obj["metadata"]["uid"] if item else None
        for owner in self.owners.get(key, set()) - {uid}:
            for pod_key in list(self.pods.get(owner, ())):
                self.forget_pod(*pod_key)

    # ---- one Job ------------------------------------------------------------------------------------

    def sync_job(self, key, job):
        uid = job["metadata"]["uid"]
        found = self.pods_of(job)
        if job["metadata"].get("deletionTimestamp"):
            self.release_deleted(found)
            return
        if finished(job):
            self.after_the_end(key, job, found)
            return
        tally = self.tallies.setdefault(uid, Tally(job))
        if not job["spec"].get("suspend") and not job["status"].get("startTime"):
            self.api.change("jobs.batch", *key, self.begin)
            return  # the change comes back as an event
        n_counted = len(tally.counted)
        self.count(job, tally, found)
        self.judge(key, job, tally, found)
        active = [pod for pod in found if is_active(pod) and pod["metadata"]["uid"] not in tally.counted]
        if job["spec"].get("suspend") or tally.failure:
            self.delete_pods(job, active)
        else:
            self.manage(key, job, tally, active)
        self.publish_when_due(key, job, tally, len(tally.counted) > n_counted)

    def begin(self, job):
        job["status"]["startTime"] = values.time_text()
        job["status"].setdefault("uncountedTerminatedPods", {})
        suspended = pods.condition_of(job, "Suspended")
        if suspended and suspended["status"] == "True":
            pods.set_condition(job, "Suspended", "False", "JobResumed", "Job resumed")
            self.api.record(self.api.resource("jobs.batch"), job, "Normal", "Resumed", "Job resumed", "job-controller")

    def release_deleted(self, found):
        for pod in found:
            if pod["metadata"].get("deletionTimestamp"):
                self.forget_pod(pod["metadata"]["namespace"], pod["metadata"]["name"])

    def after_the_end(self, key, job, found):
        for pod in found:
            if not is_active(pod):
                self.forget_pod(pod["metadata"]["namespace"], pod["metadata"]["name"])
        seconds = job["spec"].get("ttlSecondsAfterFinished")
        if seconds is None:
            return
        left = values.seconds_of(finished(job)["lastTransitionTime"]) + seconds - time.time()
        if left > 0:
            self.add(key, left)
        else:
            self.api.delete(self.api.resource("jobs.batch"), *key, {"propagationPolicy": "Foreground"})

    # ---- counting -----------------------------------------------------------------------------------

    def count(self, job, tally, found):
        """Count the pods that have ended and were not counted before."""
        policy = job["spec"].get("podFailurePolicy")
        for pod in found:
            uid = pod["metadata"]["uid"]
            if uid in tally.counted or TRACKING not in (pod["metadata"].get("finalizers") or []):
                continue
            if pod["status"].get("phase") == "Succeeded":
                tally.counted.add(uid)
                self.count_success(job, tally, pod)
            elif pod["status"].get("phase") == "Failed" or pod["metadata"].get("deletionTimestamp") and not policy:
                tally.counted.add(uid)
                self.count_failure(job, tally, pod, policy)

    @staticmethod
    def count_success(job, tally, pod):
        if job["spec"]["completionMode"] != "Indexed":
            tally.succeeded += 1
        elif 0 <= index_of(pod) < job["spec"]["completions"]:
            tally.indexes.add(index_of(pod))
            tally.succeeded = len(tally.indexes)

    def count_failure(self, job, tally, pod, policy):
        action, message = match_policy(policy, pod) if policy else ("Count", None)
        if action == "FailJob":
            tally.failure = tally.failure or ("PodFailurePolicy", message)
        if action != "Ignore" and not job["spec"].get("suspend"):
            tally.failed += 1
            tally.create_after = max(tally.create_after, time.monotonic() + self.backoff)

    def judge(self, key, job, tally, found):
        """Is the Job to fail?"""
        spec = job["spec"]
        if tally.failure:
            return
        if tally.failed > spec["backoffLimit"] or self.restarts(job, found) > spec["backoffLimit"]:
            tally.failure = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
        elif spec.get("activeDeadlineSeconds") is not None and job["status"].get("startTime") and not spec.get("suspend"):
            left = values.seconds_of(job["status"]["startTime"]) + spec["activeDeadlineSeconds"] - time.time()
            if left <= 0:
                tally.failure = ("DeadlineExceeded", "Job was active longer than specified deadline")
            else:
                self.add(key, left)

    @staticmethod
    def restarts(job, found):
        """How often containers were started again; they count where the kubelet does so and not this controller."""
        if job["spec"]["template"]["spec"].get("restartPolicy") != "OnFailure":
            return 0
        return sum(one.get("restartCount", 0) for pod in found for one in pod["status"].get("containerStatuses") or [])

    # ---- making and deleting pods -------------------------------------------------------------------

    def manage(self, key, job, tally, active):
        """Make the pods that lack, or delete those that are too many."""
        spec = job["spec"]
        wanted = self.n_wanted(spec, tally)
        if len(active) > wanted:
            expendable = sorted(active, key=lambda pod: (pod["status"].get("phase") == "Running", -index_of(pod)))
            self.delete_pods(job, expendable[:len(active) - wanted])
            return
        if len(active) == wanted:
            return
        wait = tally.create_after - time.monotonic()
        if wait > 0:
            self.add(key, wait)
            return
        for index in self.free_indexes(spec, tally, active, wanted - len(active)):
            if not self.make_pod(job, index):
                tally.create_after = time.monotonic() + RETRY_SECONDS
                self.add(key, RETRY_SECONDS)
                return

    @staticmethod
    def n_wanted(spec, tally):
        if spec.get("completions") is None:
            return 0 if tally.succeeded else spec["parallelism"]
        return max(0, min(spec["parallelism"], spec["completions"] - tally.succeeded))

    @staticmethod
    def free_indexes(spec, tally, active, n):
        if spec["completionMode"] != "Indexed":
            return [None] * n
        taken = tally.indexes | {index_of(pod) for pod in active}
        return [index for index in range(spec["completions"]) if index not in taken][:n]

    def make_pod(self, job, index):
        """Make a pod of the Job; False: it was refused."""
        pod = self.pod_of(job, index)
        resource = self.api.resource("jobs.batch")
        try:
            made = self.api.create(self.api.resource("pods"), job["metadata"]["namespace"], pod)
        except ApiError as error:
            self.api.record(resource, job, "Warning", "FailedCreate", f"Error creating: {error.message}", "job-controller")
            return False
        self.api.record(resource, job, "Normal", "SuccessfulCreate", f"Created pod: {made.key[1]}", "job-controller")
        return True

    def pod_of(self, job, index):
        template = json.loads(json.dumps(job["spec"]["template"]))
        name = job["metadata"]["name"]
        metadata = template.get("metadata") or {}
        metadata.pop("creationTimestamp", None)
        middle = "-" if index is None else f"-{index}-"
        metadata["generateName"] = name[:58 - len(middle)] + middle
        metadata["finalizers"] = [TRACKING]
        metadata["ownerReferences"] = [{"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": job["metadata"]["uid"],
                                        "controller": True, "blockOwnerDeletion": True}]
        labels = metadata.setdefault("labels", {})
        if self.has_new_labels:
            labels.update({"batch.kubernetes.io/job-name": name, "batch.kubernetes.io/controller-uid": job["metadata"]["uid"]})
        if index is not None:
            self.give_index(template, metadata, labels, name, index)
        return {"metadata": metadata, "spec": template["spec"]}

    def give_index(self, template, metadata, labels, name, index):
        metadata.setdefault("annotations", {})[INDEX] = str(index)
        if self.has_new_labels:
            labels[INDEX] = str(index)
        template["spec"]["hostname"] = f"{name}-{index}"
        variable = {"name": "JOB_COMPLETION_INDEX",
                    "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.annotations['{INDEX}']"}}}
        for container in (template["spec"].get("initContainers") or []) + template["spec"]["containers"]:
            if not any(one["name"] == "JOB_COMPLETION_INDEX" for one in container.get("env") or []):
                container.setdefault("env", []).append(variable)

    def delete_pods(self, job, found):
        for pod in found:
            metadata = pod["metadata"]
            self.api.delete(self.api.resource("pods"), metadata["namespace"], metadata["name"])
            self.api.record(self.api.resource("jobs.batch"), job, "Normal", "SuccessfulDelete", f"Deleted pod: {metadata['name']}",
                            "job-controller")

    # ---- the status ---------------------------------------------------------------------------------

    def publish_when_due(self, key, job, tally, has_counted):
        """Write the status some time after it changed, and let the counted pods go."""
        if self.next_status(job, tally) == job["status"] and not self.uncounted(job, tally):
            tally.publish_at = tally.publish_until = None
            return
        now = time.monotonic()
        if tally.publish_at is None:
            tally.publish_at, tally.publish_until = now + self.lag, now + 4 * self.lag
        elif has_counted:
            tally.publish_at = min(now + self.lag, tally.publish_until)
        if now < tally.publish_at:
            self.add(key, tally.publish_at - now)
            return
        tally.publish_at = tally.publish_until = None
        self.publish(key, job, tally)

    def uncounted(self, job, tally):
        """Pods whose end the status does not say yet."""
        return [pod for pod in self.pods_of(job) if pod["metadata"]["uid"] in tally.counted
                and TRACKING in (pod["metadata"].get("finalizers") or [])]

    def publish(self, key, job, tally):
        status = self.next_status(job, tally)

        def change(obj):
            obj["status"] = status
        self.api.change("jobs.batch", *key, change)
        for pod in self.uncounted(job, tally):
            self.forget_pod(pod["metadata"]["namespace"], pod["metadata"]["name"])
        end = finished({"status": status})
        if end is not None:
            kind, reason = ("Normal", "Completed") if end["type"] == "Complete" else ("Warning", end["reason"])
            self.api.record(self.api.resource("jobs.batch"), job, kind, reason, end.get("message") or "Job completed", "job-controller")

    def next_status(self, job, tally):
        status = json.loads(json.dumps(job["status"]))
        found = self.pods_of(job)
        active = [pod for pod in found if is_active(pod) and pod["metadata"]["uid"] not in tally.counted]
        numbers = {"active": len(active), "succeeded": tally.succeeded, "failed": tally.failed}
        for name, number in numbers.items():
            status[name] = number
            if not number:
                del status[name]
        status["ready"] = sum(pods.is_ready(pod) for pod in active)
        if job["spec"]["completionMode"] == "Indexed" and tally.indexes:
            status["completedIndexes"] = write_indexes(tally.indexes)
        self.conclude(job, tally, status, active)
        return status

    def conclude(self, job, tally, status, active):
        """Add the conditions with which the Job ends, or is suspended."""
        whole = {"status": status}
        spec = job["spec"]
        if tally.failure:
            reason, message = tally.failure
            if reason == "PodFailurePolicy":
                pods.set_condition(whole, "FailureTarget", "True", reason, message)
            pods.set_condition(whole, "Failed", "True", reason, message)
        elif self.is_complete(spec, tally, active):
            pods.set_condition(whole, "Complete", "True")
            status.setdefault("completionTime", values.time_text())
        elif spec.get("suspend"):
            pods.set_condition(whole, "Suspended", "True", "JobSuspended", "Job suspended")
            status.pop("startTime", None)

    @staticmethod
    def is_complete(spec, tally, active):
        if spec.get("completions") is None:
            return tally.succeeded > 0 and not active
        return tally.succeeded >= spec["completions"] and (not active or spec["completionMode"] == "Indexed") and (
            spec["completions"] > 0 or not spec.get("suspend"))


def is_active(pod):
    return not pods.has_ended(pod) and not pod["metadata"].get("deletionTimestamp")


# ---- podFailurePolicy -------------------------------------------------------------------------------

def match_policy(policy, pod):
    """(action, message) of the first rule that a failed pod fits; the default is to count it."""
    whole_name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    for i, rule in enumerate(policy["rules"]):
        if rule.get("onExitCodes"):
            found = exit_code_match(rule["onExitCodes"], pod)
            if found is not None:
                name, code = found
                return rule["action"], (f"Container {name} for pod {whole_name} failed with exit code {code} matching {rule['action']} rule "
                                        f"at index {i}")
        for wanted in rule.get("onPodConditions") or []:
            found = pods.condition_of(pod, wanted["type"])
            if found is not None and found["status"] == wanted.get("status", "True"):
                return rule["action"], f"Pod {whole_name} has condition {wanted['type']} matching {rule['action']} rule at index {i}"
    return "Count", None


def exit_code_match(wanted, pod):
    status = pod["status"]
    for one in (status.get("initContainerStatuses") or []) + (status.get("containerStatuses") or []):
        code = (one.get("state", {}).get("terminated") or {}).get("exitCode", 0)
        if code and wanted.get("containerName") in (None, one["name"]) and (code in wanted["values"]) == (wanted["operator"] == "In"):
            return one["name"], code
    return None
