"""What people mistype: each is refused with the right exit status and a sentence that names the place and
the cure, and changes nothing."""
import subprocess
import unittest

import harness
from harness import Server

TRAIN = "name: t\nkind: train\nspec:\n  model: lenet\n  dataset: faces\n"
COMMAND = "name: t\nkind: command\nspec:\n  argv: [\"true\"]\n"
ION = "kind: ion\nname: door\npipelines:\n  - name: training\n    type: training\n    dataset: faces\n" \
      "    model: face-embed\n"
DOOR = "  - name: door\n    type: prediction\n    gallery: {dataset: faces}\n    source: {kind: http}\n"

# Words of the command line; exit status; what the sentence must have.
WORDS = [
    # commands and nouns
    ("gte jobs", 2, "did you mean weir get?"),
    ("applyy -f x", 2, "did you mean weir apply?"),
    ("submit x", 2, "weir job submit"),
    ("run x", 2, "weir job run"),
    ("ps", 2, "weir get jobs"),
    ("status", 2, "weir doctor"),
    ("stop", 2, "weir server stop"),
    ("frobnicate", 2, "weir help"),
    ("job", 2, "submit, run, results, shell, exec, cp, forward, top, cancel, restart"),
    ("job resubmit x", 2, "did you mean submit?"),
    ("job resart x", 2, "did you mean restart?"),
    ("model fetch x", 2, "expected push, get, card, export, alias"),
    ("get", 2, "usage: weir get"),
    ("get jbos", 2, "did you mean jobs?"),
    ("get gallimaufry", 2, "there are ions, jobs"),
    ("get jobs --outptu json", 2, "did you mean --output?"),
    ("get jobs -o xml", 2, "wide, yaml or json"),
    ("login -o yaml", 2, "text or json"),
    ("get jobs stat=running", 2, "state kind ion"),
    ("get jobs state", 4, 'no job "state"'),
    ("get ions name=x", 2, "cannot be filtered"),
    ("get jobs --limit 0", 2, "outside 1"),
    ("get jobs --limit many", 2, "expected an integer"),
    ("get tasks", 2, "weir get tasks JOB"),
    ("get metrics", 2, "of which run?"),
    ("get versions", 2, "of which model?"),
    # names
    ("get ions nosuch", 4, "nosuch"),
    ("get jobs nosuch", 4, "weir get jobs"),
    ("get runs nosuch", 4, "weir get runs"),
    ("get nodes nosuch", 4, "weir get nodes"),
    ("get decisions nosuch", 7, "list them with"),
    ("get models nosuch", 4, "nosuch"),
    ("get datasets nosuch", 4, "nosuch"),
    ("get candidates nosuch", 4, "nosuch"),
    ("describe nosuch", 4, "nosuch"),
    ("describe job nosuch", 4, 'no job "nosuch"'),
    ("describe event 1", 7, "weir get events"),
    ("describe gallimaufry x", 2, "there are ions"),
    ("explain gallimaufry", 2, "there are ions"),
    ("explain run nosuch", 7, "weir describe run nosuch"),
    ("logs nosuch", 4, 'no job "nosuch"'),
    ("logs --attempt first nosuch", 2, "expected an integer"),
    ("logs", 2, "usage: weir logs"),
    ("trigger nosuch training", 4, "nosuch"),
    ("approve nosuch", 4, "nosuch"),
    ("approve nosuch --version abc", 2, "expected an integer"),
    ("rollback nosuch", 4, "nosuch"),
    ("member allow nosuch ada", 4, "nosuch"),
    ("member permit nosuch ada", 2, "allow|deny|remove"),
    ("delete job x", 4, "weir get jobs"),
    ("delete nosuch", 4, "nosuch"),
    ("runs compare a", 2, "usage: weir runs compare"),
    ("runs compare nosuch other", 4, "weir get runs"),
    ("model get nosuch", 4, "nosuch"),
    ("model get nosuch --version -1", 2, "outside 0"),
    # jobs
    ("job submit", 2, "weir job submit -f FILE"),
    ("job submit -f /nowhere/job.yaml", 4, "/nowhere/job.yaml"),
    ("job submit -f /tmp", 2, "/tmp"),
    ("job cancel nosuch", 4, "weir get jobs"),
    ("job restart nosuch", 4, "weir get jobs"),
    ("job resume nosuch", 4, "weir get jobs"),
    ("job run", 2, "put -- in front"),
    ("job run python3 train.py", 2, "put -- in front"),
    ("job run --env NOVALUE -- true", 2, "NAME=VALUE"),
    ("job run --memory much -- true", 2, "512M or 2G"),
    ("job run --cpus 99999999 -- true", 2, "outside 0"),
    ("job run --tasks 0 -- true", 2, "outside 1"),
    ("job run --tasks 2000 -- true", 2, "outside 1"),
    ("job run --restarts -1 -- true", 2, "outside 0"),
    ("job run a --name b -- true", 2, "one name"),
    ("job run --follow --detach -- true", 2, "one of the two"),
    ("job run Bad/Name -- true", 2, "expected a name"),
    ("job run --dir /nowhere -- true", 4, "/nowhere"),
    ("job run --project nosuch -- true", 4, "nosuch"),
    # users and tokens
    ("user create ann --role king", 2, "king"),
    ("token create t --role king", 2, "king"),
    ("dataset create Bad/Name", 2, "name"),
    ("dataset create d --path /nowhere/at-all", 2, "/nowhere/at-all"),
    ("dataset freeze nosuch", 4, "nosuch"),
    ("dataset frob x", 2, "expected create, put"),
    ("dataset download x", 2, "weir dataset get NAME DIR"),
    ("dataset get faces", 2, "usage: weir dataset get"),
    ("dataset get nosuch x", 4, "nosuch"),
    ("dataset get faces@v9 x", 4, "weir get dataset-versions faces"),
    ("dataset put faces /nowhere", 4, "/nowhere"),
    ("delete run x", 7, "it goes with its job"),
    ("delete project default", 7, "weir project revoke"),
    ("delete decision x", 7, "weir project retention"),
    ("delete model", 2, "which model?"),
    ("delete dataset nosuch", 4, "nosuch"),
    ("wait nosuch --for condition=never", 2, "expected one of over"),
    ("wait dataset-version/faces@x", 2, "expected DATASET@N"),
    ("wait dataset-version/faces@0", 2, "expected DATASET@N"),
    ("wait notebook/none", 4, "service"),
    ("wait ion/none", 4, 'no ION "none"'),
    ("wait token/x --for deleted", 7, "cannot be looked at by itself"),
    ("wait things/x", 2, "there is no noun"),
    ("logs nosuch --since soon", 2, "10m or 2h"),
    ("logs nosuch --since -5m", 2, "10m or 2h"),
    ("logs nosuch --since 2026-13-01T00:00:00Z", 2, "a time like 2026-01-31T12:00:00Z"),
    ("logs nosuch --since 1h", 4, "nosuch"),
    ("logs nosuch --tail -2", 2, "--tail"),
    ("logs nosuch --previous --attempt 2", 4, "nosuch"),
    ("job cp a b", 2, "JOB[/TASK]:PATH"),
    ("job cp a:x b:y", 2, "JOB[/TASK]:PATH"),
    ("job cp nosuch: here", 2, "which file or folder?"),
    ("job cp nosuch:file here", 4, "no job \"nosuch\""),
    ("job cp /no/such/file nosuch:", 4, "cannot read /no/such/file"),
    ("job submit -f /no/such/file --cpus 2", 4, "/no/such/file"),
    ("job submit -f x --cpus many", 2, "--cpus"),
    ("job submit -f x --cpus 0.0001", 2, "--cpus"),
    ("train --model lenet --cpus 2", 2, "weir job submit -f FILE"),
    ("train --model lenet --memory=2G", 2, "weir job submit -f FILE"),
    ("get po", 2, "weir get jobs"),
    ("get notebooks", 2, "weir get services kind=notebook"),
    ("get jobs --sort-by name", 2, "order=NAME"),
    ("delete jobs --all", 2, "one after the other"),
    ("job run --spot -- true", 2, "--preemptible"),
    ("job run -v a:b -- true", 2, "weir dataset put NAME DIR"),
    ("job exec -it x -- bash", 2, "a terminal where you have one"),
    ("kubectl get pods", 2, "leave that word out"),
    ("wait nosuch", 4, "weir get jobs"),
    ("wait user/x", 7, "can be waited for of a user"),
    ("wait job x --for dunno", 2, "expected one of over PENDING"),
    ("wait nosuch --timeout soon", 2, "90s or 5m"),
    ("rollout status nosuch", 4, "nosuch"),
    ("scale nosuch 2", 4, "nosuch"),
    ("scale nosuch", 2, "how many?"),
    ("edit nosuch", 4, "weir get ions"),
    ("edit job x", 7, "weir job priority"),
    ("diff", 2, "weir diff -f FILE"),
    ("context use nosuch", 4, "there is no context"),
    ("get jobs --context nosuch", 4, "there is no context"),
    ("login http://127.0.0.1:1", 2, "as whom?"),
    ("help nosuch", 2, "weir help"),
    ("describe job", 2, "which job? weir describe job JOB"),
    ("describe metric x", 7, "weir get metrics RUN"),
    ("metrics x", 2, "weir get metrics RUN"),
    ("get jobs,tasks", 2, "of which job?"),
    ("get all", 2, "weir get ions,jobs,services,deployments"),
    ("get job/nosuch", 4, "nosuch"),
    ("logs --timestamps nosuch", 4, "nosuch"),
    ("job run -- python3 trian.py", 2, "there is no trian.py in this folder"),
    ("job run -- ./nosuch.sh", 2, "there is no ./nosuch.sh in this folder"),
    ("job run --mem 4G -- true", 2, "here it is --memory 4G"),
    ("job run --partition gpu -- true", 2, "--node-selector"),
    ("job submit -f -", 2, "found 0"),
    ("project grant default nobody", 4, 'there is no user "nobody"'),
    ("project grant default nobody --group", 4, 'there is no group "nobody"'),
    ("queue create q --guarantee gpus=1", 2, "here it is accelerators"),
    ("queue create q --guarantee cpus", 2, "expected WHAT=N"),
    ("user add x", 2, "weir user create NAME"),
    ("drain x", 2, "weir node drain NODE"),
    # servers
    ("get jobs --server http://127.0.0.1:1", 9, "127.0.0.1:1"),
    ("get jobs --server ftp://host", 2, "ftp"),
    ("get jobs --token weir_wrong", 6, "token"),
    ("apply", 2, "weir apply -f FILE"),
    ("apply -f /nowhere/ion.yaml", 4, "/nowhere/ion.yaml"),
]

# Files for `weir job submit -f` and `weir apply -f`: command, text, exit status, sentence.
FILES = [
    ("job submit", "", 2, ""),
    ("job submit", "\0\1\2", 2, ""),
    ("job submit", "name: t\n kind: train\n", 2, "line 2"),
    ("job submit", "kind: train\nspec: {}\n", 2, "$.name"),
    ("job submit", "name: t\nspec: {}\n", 2, "$.kind"),
    ("job submit", TRAIN.replace("train", "slurm"), 2, "none of train, predict"),
    ("job submit", TRAIN.replace("kind: train", "kind: ray"), 7, 'use a "command" job'),
    ("job submit", TRAIN + "prioritee: 3\n", 2, "prioritee"),
    ("job submit", TRAIN.replace("lenet", "lenett"), 2, 'did you mean "lenet"?'),
    ("job submit", TRAIN.replace("faces", "fases"), 4, 'did you mean "faces"?'),
    ("job submit", TRAIN + "  learning_rate: fast\n", 2, "$.spec.learning_rate: expected a number"),
    ("job submit", TRAIN + "  epochs: 1e99\n", 2, "$.spec.epochs: expected an integer"),
    ("job submit", TRAIN + "  workers: -3\n", 2, "$.spec.workers: -3"),
    ("job submit", TRAIN + "  workers: 1000\n", 2, "$.spec.workers"),
    ("job submit", TRAIN + "  batch_size: 1000000000000\n", 2, "$.spec.batch_size"),
    ("job submit", TRAIN + "  learning_rate: .nan\n", 2, "$.spec.learning_rate"),
    ("job submit", TRAIN + "  learning_rate: 1e30\n", 2, "$.spec.learning_rate"),
    ("job submit", TRAIN + "  validation: fashion-val\n", 4, '$.spec.validation: there is no dataset "fashion-val"'),
    ("job submit", TRAIN + "  data: photos\n", 2, "absolute path"),
    ("job submit", TRAIN + "  server: http://evil\n", 2, "leave it out"),
    ("job submit", COMMAND + "  env: {PORT: 80}\n", 2, "$.spec.env.PORT: expected a string"),
    ("job submit", COMMAND + "  cpu_slots: 99999999\n", 2, "0 … 4096"),
    ("job submit", COMMAND + "  image: 7\n", 2, "$.spec.image: expected a string"),
    ("job submit", COMMAND + "  image: ../x\n", 2, "name of an image on the nodes"),
    ("job submit", COMMAND.replace('["true"]', "true"), 2, "$.spec.argv: expected an array"),
    ("job submit", COMMAND + "  cpu: 2\n", 2, "did you mean cpus?"),
    ("job submit", COMMAND + "restart: 2\n", 2, "did you mean max_restarts?"),
    ("job submit", "- name: t\n", 2, "not a list"),
    ("job submit", "name: t\n\tkind: train\n", 2, "tab character"),
    ("job submit", COMMAND.replace("name: t", "name: " + "t" * 300), 2, "1 to 63 of a-z"),
    ("job submit", COMMAND.replace("name: t", "name: Bilder für Ada"), 2, "1 to 63 of a-z"),
    ("apply", COMMAND, 2, "weir job submit -f FILE"),
    ("apply", ION.replace("kind: ion", "kind: iron"), 2, "$.kind"),
    ("apply", ION.replace("name: door", "name: Door 1"), 2, "$.name"),
    ("apply", ION.replace("face-embed", "face-embedd"), 2, 'did you mean "face-embed"?'),
    ("apply", ION.replace("faces", "nobody"), 2, "weir dataset create nobody"),
    ("apply", ION + "    workres: 2\n", 2, "$.pipelines[0].workres"),
    ("apply", ION + "    parameters: {epochs: many}\n", 2, "$.pipelines[0].parameters.epochs"),
    ("apply", ION + "    parameters: {epoch: 3}\n", 2, "did you mean epochs?"),
    ("apply", ION + "    triggers: {schedule: \"61 * * * * *\"}\n", 2, "$.pipelines[0].triggers.schedule"),
    ("apply", ION + DOOR.replace("http", "kafka"), 7, "kafka"),
    ("apply", ION.replace("face-embed", "lenet") + DOOR + "links:\n  - {from: training, to: door}\n", 7, "face-embed"),
]


class WrongInputs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().start("--no-agent")
        cls.server.post("/datasets", {"name": "faces"})
        cls.server.request("PUT", "/api/v1/datasets/faces/files/a/1.pgm", b"P5\n1 1\n255\n\0")
        cls.server.post("/datasets/faces/versions")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def check(self, words, status, sentence):
        at = words.index("--") if "--" in words else len(words)
        done = subprocess.run([harness.WEIR, *words[:at], "--state", str(self.server.state), *words[at:]],
                              capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        said = done.stderr.strip()
        self.assertEqual(done.returncode, status, said + done.stdout)
        self.assertIn(sentence, said)
        self.assertTrue(said.startswith("weir: ") and len(said) > 20, said)
        self.assertEqual(done.stdout, "")

    def test_words_that_are_wrong_are_refused_with_the_place_and_the_cure(self):
        for line, status, sentence in WORDS:
            with self.subTest(line=line):
                self.check(line.split(), status, sentence)

    def test_files_that_are_wrong_are_refused_with_the_place_and_the_cure(self):
        path = self.server.root / "wrong.yaml"
        for command, text, status, sentence in FILES:
            with self.subTest(text=text):
                path.write_text(text)
                self.check([*command.split(), "-f", str(path)], status, sentence)

    def test_nothing_was_changed(self):
        self.assertEqual(self.server.get("/jobs")["items"], [])
        self.assertEqual(self.server.get("/ions")["items"], [])
        self.assertGreaterEqual(len(WORDS) + len(FILES), 151)


if __name__ == "__main__":
    harness.main()
