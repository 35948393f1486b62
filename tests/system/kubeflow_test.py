"""Documents of Kubeflow and Kubernetes on Weir's own node: what their programs find is what they would find there."""
import json
import os
import re
import subprocess
import unittest

from harness import Server, WEIR, wait_until

PYTORCH = """apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: pytorch-dist-mnist
  namespace: kubeflow
spec:
  nprocPerNode: "2"
  runPolicy: {cleanPodPolicy: None, backoffLimit: 1}
  pytorchReplicaSpecs:
    Master: &ROLE
      replicas: 1
      restartPolicy: OnFailure
      template:
        spec:
          containers:
            - name: pytorch
              image: docker.io/kubeflowkatib/pytorch-mnist:latest
              command: [python3, -c]
              args:
                - |
                  import os, sys, socket
                  rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
                  assert sys.argv[1] == "--at=" + os.environ["MASTER_ADDR"], sys.argv
                  meet = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
                  server = socket.create_server(meet) if rank == 0 else None
                  for other in range(1, int(os.environ["PET_NNODES"])):
                      if rank == 0:
                          server.accept()[0].sendall(b"met")
                      elif rank == other:
                          for _ in range(100):
                              try:
                                  print(socket.create_connection(meet).recv(3).decode())
                                  break
                              except OSError:
                                  import time; time.sleep(0.1)
                  print("rank", rank, "of", size, *(os.environ["PET_" + name] for name in ("NNODES", "NPROC_PER_NODE", "NODE_RANK")),
                        os.environ["PET_MASTER_PORT"] == str(meet[1]))
                - --at=$(MASTER_ADDR)
              resources: {requests: {cpu: 100m}, limits: {memory: 128Mi}}
    Worker:
      replicas: 1
      restartPolicy: OnFailure
"""

TENSORFLOW = """apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: dist-mnist}
spec:
  tfReplicaSpecs:
    Worker: {replicas: 2, restartPolicy: Never, template: TEMPLATE}
    PS: {replicas: 1, restartPolicy: Never, template: TEMPLATE}
    Chief: {replicas: 1, restartPolicy: Never, template: TEMPLATE}
"""
TEMPLATE = json.dumps({"spec": {"containers": [{
    "name": "tensorflow", "image": "none", "resources": {"requests": {"cpu": "100m"}},
    "command": ["python3", "-c", "import json, os, time\n"
                "told = json.loads(os.environ['TF_CONFIG'])\n"
                "task = told['task']\n"
                "print(task['type'], task['index'], {name: len(told['cluster'][name]) for name in sorted(told['cluster'])}, flush=True)\n"
                "time.sleep(60 if task['type'] == 'ps' else 0.5)"]}]}})

MPI = """apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: pi}
spec:
  slotsPerWorker: 2
  runPolicy: {cleanPodPolicy: Running}
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          containers:
            - {name: mpi-launcher, image: mpioperator/mpi-pi:openmpi, command: [sh, LAUNCHER, /etc/mpi/hostfile]}
    Worker:
      replicas: 2
      template:
        spec:
          containers:
            - name: mpi-worker
              image: mpioperator/mpi-pi:openmpi
              command: [/usr/sbin/sshd, -De]
              resources: {limits: {cpu: 100m, memory: 64Mi}}
"""
# mpirun where it is installed, else what it would do: its daemon on each host, by the agent that stands in for ssh.
LAUNCHER = """cat "$1"
if command -v mpirun >/dev/null; then
    exec mpirun --hostfile "$1" -np 4 --oversubscribe sh -c 'echo pi from $OMPI_COMM_WORLD_RANK'
fi
i=0
for host in $(sed 's/ .*//' "$1"); do
    weir-worker mpi-agent "$host" "echo pi from $i; echo pi from $((i + 1))" || exit 1
    i=$((i + 2))
done
"""

INDEXED = """apiVersion: v1
kind: ConfigMap
metadata: {name: words}
data: {greeting: hello}
---
apiVersion: batch/v1
kind: Job
metadata: {name: indexed}
spec:
  completions: 3
  parallelism: 2
  completionMode: Indexed
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: worker
          image: busybox:1.36
          command: [sh, -c, "echo part $(JOB_COMPLETION_INDEX) and $JOB_COMPLETION_INDEX of $NAME: $GREETING in $(pwd)"]
          workingDir: /tmp
          env:
            - {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
            - {name: GREETING, valueFrom: {configMapKeyRef: {name: words, key: greeting}}}
            - {name: TOKEN, valueFrom: {secretKeyRef: {name: hub, key: token}}}
          resources: {requests: {cpu: 100m}}
"""


def whole(text):
    """The worker's template is the master's: anchors are not for documents."""
    master = re.search(r"      template:.*?(?=    Worker:)", text, re.S)[0]
    return text.replace(" &ROLE", "") + master


class Documents(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()
        cls.addClassCleanup(cls.server.stop)
        cls.folder = cls.server.root / "work"
        cls.folder.mkdir()
        wait_until(lambda: cls.server.get("/nodes")["items"], 20, "the agent to register")

    def weir(self, *words, text=None):
        return subprocess.run([WEIR, *words], cwd=self.folder, capture_output=True, text=True, timeout=60, check=False, input=text,
                              env=os.environ | {"WEIR_STATE": str(self.server.state)})

    def write(self, name, text):
        (self.folder / name).parent.mkdir(exist_ok=True)
        (self.folder / name).write_text(text)
        return name

    def done(self, *words, text=None):
        done = self.weir(*words, text=text)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        return done

    def log_of(self, name):
        """What all tasks of a job wrote, once it has ended well."""
        self.done("wait", "job/" + name)
        return re.sub(r"^\S+ \| ", "", self.done("logs", name).stdout, flags=re.M)

    def test_a_folder_of_all_kinds_is_applied_and_runs(self):
        self.done("secret", "set", "hub.token", text="t0p\n")
        self.write("all/a.yaml", whole(PYTORCH))
        self.write("all/b.yml", TENSORFLOW.replace("TEMPLATE", TEMPLATE))
        command = json.dumps(["sh", "-c", LAUNCHER, "sh"])[1:-1]
        self.write("all/c.yaml", MPI.replace("sh, LAUNCHER", command))
        self.write("all/d.yaml", INDEXED)
        self.write("all/notes.txt", "not a document")
        applied = self.done("apply", "-f", "all", "--project", "default", "--image", "none")
        self.assertEqual(re.findall(r"^job (\S+) \(\w+\) is submitted$", applied.stdout, re.M),
                         ["pytorch-dist-mnist", "dist-mnist", "pi", "indexed"])
        self.assertIn("not all of PyTorchJob in all/a.yaml is taken as it stands:\n", applied.stderr)
        self.assertIn("  $.metadata.namespace: the project is default, as --project says\n", applied.stderr)
        self.assertIn("  $.spec.template.spec.containers[0].env[2].valueFrom.secretKeyRef: is the secret hub.token of the project",
                      applied.stderr)

        log = self.log_of("pytorch-dist-mnist")
        self.assertEqual(sorted(log.splitlines()), ["met", "rank 0 of 4 2 2 0 True", "rank 1 of 4 2 2 1 True"])
        log = self.log_of("dist-mnist")
        cluster = "{'chief': 1, 'ps': 1, 'worker': 2}"
        self.assertEqual(sorted(log.splitlines()), [f"{task} {cluster}" for task in ("chief 0", "ps 0", "worker 0", "worker 1")])
        log = self.log_of("pi")
        self.assertIn("rank-0 slots=2\nrank-1 slots=2\n", log)
        self.assertEqual(sorted(re.findall(r"pi from (\d)", log)), ["0", "1", "2", "3"])
        log = self.log_of("indexed")
        self.assertEqual(sorted(log.splitlines()), [f"part {i} and {i} of indexed: hello in /tmp" for i in range(3)])

    def test_where_one_is_refused_none_is_sent(self):
        self.write("some/a.yaml", INDEXED.replace("name: indexed", "name: never"))
        self.write("some/b.yaml", INDEXED.replace("parallelism", "paralelism"))
        done = self.weir("apply", "-f", "some", "--image", "none")
        self.assertEqual((done.returncode, done.stderr, done.stdout),
                         (2, "weir: some/b.yaml: $.spec.paralelism: there is no such field; did you mean parallelism?\n", ""))
        self.assertNotIn("never", [job["name"] for job in self.server.get("/jobs")["items"]])
        done = self.weir("apply", "-f", self.write("image.yaml", INDEXED))
        self.assertEqual(done.returncode, 2)
        self.assertIn("pods of Kubernetes alone have an image of a registry, or volumes, and no such cluster is here", done.stderr)
        self.assertRegex(done.stderr, r"containers\[0\].image: pods of Kubernetes have it; .*--image none")

    def test_a_list_is_its_documents_and_an_empty_document_is_none(self):
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "listed"}, "spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "command": ["echo", "hello"]}]}}}}
        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": [job]})
        applied = self.done("apply", "-f", self.write("list.yaml", listed + "\n---\n---\n"))
        self.assertRegex(applied.stdout, r"^job listed \(\w+\) is submitted\n$")
        done = self.weir("apply", "-f", self.write("list.yaml", listed + "\n---\nkind: other\n"))
        self.assertEqual((done.returncode, done.stdout), (2, ""))

    def test_a_suspended_job_waits_until_it_is_resumed(self):
        text = INDEXED.replace("  completions: 3", "  suspend: true\n  completions: 3").replace("name: indexed", "name: asleep")
        text = re.sub(r".*secretKeyRef.*\n", "", text)
        applied = self.done("apply", "-f", self.write("asleep.yaml", text), "--image", "none", "-o", "json")
        job = json.loads(applied.stdout)
        self.assertEqual((job["is_held"], job["reason"], applied.stderr), (True, "held by admin", ""))
        self.assertIn({"path": "$.spec.template.spec.containers[0].env[0].valueFrom.fieldRef",
                       "instead": "is the job's name in all tasks: WEIR_RANK tells them apart"}, job["not_taken"])
        self.done("job", "resume", "asleep")
        self.assertIn("part 2 and 2 of asleep", self.log_of("asleep"))

    def test_a_trial_says_what_would_come_of_it(self):
        text = re.sub(r".*secretKeyRef.*\n", "", INDEXED).replace("name: indexed", "name: trial")
        tried = self.done("apply", "-f", "-", "--image", "none", "--dry-run", text=text)
        self.assertIn("job trial would be submitted to project default:\n", tried.stdout)
        self.assertIn("array: 3", tried.stdout)
        self.assertEqual(self.weir("diff", "-f", self.write("trial.yaml", text), "--image", "none").returncode, 1)
        self.assertEqual([job for job in self.server.get("/jobs")["items"] if job["name"] == "trial"], [])
        other = self.weir("job", "submit", "-f", self.write("tf.yaml", TENSORFLOW.replace("TEMPLATE", "{}")))
        self.assertEqual((other.returncode, other.stderr),
                         (2, "weir: tf.yaml is a document of Kubernetes: `weir apply -f tf.yaml` makes a job of it\n"))

    def test_a_queue_says_whose_job_it_is(self):
        self.server.post("/projects", {"name": "vision"})
        self.done("queue", "create", "cameras", "--project", "vision")
        text = re.sub(r".*secretKeyRef.*\n", "", INDEXED).replace(
            "{name: indexed}", "{name: queued, labels: {kueue.x-k8s.io/queue-name: cameras}, annotations: {weir.dev/priority: '70'}}")
        job = json.loads(self.done("apply", "-f", self.write("queued.yaml", text), "--image", "none", "-o", "json").stdout)
        self.assertEqual((job["project"], job["priority"]), ("vision", 70))
        done = self.weir("apply", "-f", self.write("queued.yaml", text.replace("cameras", "camera")), "--image", "none")
        self.assertIn("['kueue.x-k8s.io/queue-name']: there is no queue \"camera\": --project NAME", done.stderr)


if __name__ == "__main__":
    unittest.main()
