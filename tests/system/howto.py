#!/usr/bin/env python3
"""howto.py [--in-order] [--times] [PAGE …]: plays the commands of how-to pages as a person would who reads them.

With --in-order all are played against one server, one after the other, and a page goes on behind what fails; --times
says what each command took.

A page is played from top to bottom in one bash session, in a fresh folder, against a server. What becomes of each
fenced block:

    sh, console   its commands are run; below "$ " in a console block stands what they print
    http          the request is sent
    any other     is written to a file, compared, or neither, as the comment above it says

Comments above a block, which readers do not see:

    <!-- file: NAME -->     it is written to this file
    <!-- part: FILE -->     its lines stand in this file (of the repository, or one that the page has written)
    <!-- shown -->          the command before it has printed this
    <!-- form -->           it shows a form or a picture of something
    <!-- needs: WORD -->    it needs what this machine may lack (NEEDS), and its commands are looked at, not run
    <!-- goes on: RE -->    its last command goes on until the page's end, or "<!-- stop -->"; it is up when it prints RE
    <!-- types: A=B; … -->  it runs at a terminal, where B is typed when it asks A
    <!-- fails: RE -->      its last command is refused, and says RE

Comments of their own:

    <!-- server: FLAGS -->  the page's server has these; "own": none but it is the page's alone; "none": the page starts it
    <!-- slurm -->          a Slurm cluster is there, which the server reaches
    <!-- kubernetes -->     a stand-in of a Kubernetes cluster is there (tests/kube), with its kubeconfig in KUBECONFIG
    <!-- given: COMMANDS -->what the reader has: made before they read on
    <!-- for: WORD = COMMAND -->  what COMMAND prints stands for WORD from here on
    <!-- until: COMMAND --> the reader waits until this succeeds
    <!-- all need: WORD --> as "needs", of all that follows

A block without such treatment is an error. Every command must succeed, and say something at least every QUIET_S
seconds. Output is compared in its form: heads of tables, names of members, first words.
"""
import contextlib
import dataclasses
import json
import os
import pathlib
import pty
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time

import kubernetes_cluster
import slurm_cluster
from harness import BIN, ROOT, WEIR, HttpError, Server

QUIET_S = 60
NEEDS = {  # a block that needs one is played where it is
    "gpu": ("a GPU", lambda: False),
    "machine": ("a second machine", lambda: False),
    "internet": ("the internet", lambda: False),
    "system": ("changes of the whole machine", lambda: False),
    "jupyter": ("Jupyter", lambda: shutil.which("jupyter-notebook")),
    "streamlit": ("Streamlit", lambda: shutil.which("streamlit")),
    "mpi": ("mpirun, and two nodes of many CPUs", lambda: False),
    "spark": ("Spark", lambda: False),
    "broker": ("an MQTT broker", lambda: False),
    "camera": ("weir-camera, and so libavformat", lambda: (BIN / "weir-camera").exists()),
    "sshd": ("an ssh server", lambda: False),
    "slurm": ("Slurm", lambda: not slurm_cluster.why_not()),
    "kubectl": ("kubectl, and a cluster of one's own", lambda: False),
}
CLUSTERS = {"slurm": slurm_cluster.Cluster, "kubernetes": kubernetes_cluster.Cluster}
NOTES = ("file", "part", "shown", "form", "needs", "goes on", "types", "fails")
ALONE = ("server", "slurm", "kubernetes", "given", "for", "until", "stop", "all need")
PLAYED_ELSEWHERE = "tour"  # by docs/tour.py, and in a bare Debian
MARK = re.compile(rb"\x01(\d+)\x01")
LOOP = """exec 9<&0 </dev/null
set -m
. "$ROOT/tests/system/howto_given.sh"
while IFS= read -r -d '' -u 9 command; do
    eval "$command" </dev/null 9<&-
    printf '\\001%d\\001' $?
done
"""


class Stale(Exception):
    """The page is not as it says."""


@dataclasses.dataclass
class Step:
    kind: str
    text: str
    line: int
    notes: dict = dataclasses.field(default_factory=dict)
    language: str = ""


@dataclasses.dataclass
class Result:
    """What a page came to."""
    page: str
    played: int = 0
    needs: list = dataclasses.field(default_factory=list)  # (need, command)
    wall_s: float = 0
    quiet_s: float = 0
    quiet_command: str = ""
    problems: list = dataclasses.field(default_factory=list)
    commands: list = dataclasses.field(default_factory=list)  # (seconds, command)


# ---- reading -------------------------------------------------------------------------------------

def steps_of(text, page):
    """The page's steps, in its order; Stale if there is one that nobody knows how to play."""
    found, notes, lines, i, lasting = [], {}, text.splitlines(), 0, {}
    while i < len(lines):
        line = lines[i].strip()
        if line.startswith("<!--"):
            begun = i
            while "-->" not in lines[i]:
                i += 1
            body = "\n".join(lines[begun:i + 1]).strip()[4:].rpartition("-->")[0].strip()
            word, _, rest = body.partition(":")
            if word == PLAYED_ELSEWHERE:
                while "tour: end" not in lines[i]:
                    i += 1
            elif word == "all need":
                lasting = {"needs": rest.strip()}
            elif word in ALONE:
                found += [] if is_absent(lasting) else [Step(word, rest.strip(), begun + 1)]
            elif word in NOTES:
                notes[word] = rest.strip()
            else:
                raise Stale(f"{page}:{begun + 1}: nobody knows the comment {body[:40]!r}")
        elif line.startswith("```"):
            begun, indent, body = i, len(lines[i]) - len(lines[i].lstrip()), []
            i += 1
            while lines[i].strip() != "```":
                body.append(lines[i][indent:])
                i += 1
            found += steps_of_block(line[3:].strip(), "\n".join(body) + "\n", begun + 1, lasting | notes, page)
            notes = {}
        elif lines[i].startswith("    ") and re.match(r"\s+(\$ )?weir ", lines[i]) and not lines[i - 1].strip():
            raise Stale(f"{page}:{i + 1}: an indented block is played by nobody: fence it")
        elif line and notes:
            raise Stale(f"{page}:{i + 1}: no block follows the comment {list(notes)}")
        i += 1
    return found


def is_absent(notes):
    return "needs" in notes and not NEEDS[notes["needs"]][1]()


def steps_of_block(language, body, line, notes, page):
    if "needs" in notes:
        if notes["needs"] not in NEEDS:
            raise Stale(f"{page}:{line}: there is no need {notes['needs']!r}")
        if is_absent(notes):
            return [Step("needs", body, line, notes, language)]
    for word in ("file", "part", "shown", "form"):
        if word in notes:
            return [Step(word, body, line, notes, language)]
    if language == "http":
        return [Step("request", body, line, notes)]
    if language == "sh":
        return [Step("run", command, line, notes) for command in commands_of(body)]
    if language == "console":
        found = []
        for piece in re.split(r"^\$ ", body, flags=re.M)[1:]:
            command, _, output = piece.partition("\n")
            found.append(Step("run", command, line, notes))
            if output.strip():
                found.append(Step("shown", output, line, notes))
        return found
    raise Stale(f"{page}:{line}: nobody says how this block is played: {body[:60]!r}")


def is_whole(text):
    if text.rstrip().endswith("\\"):
        return False
    if (here := re.search(r"<<-?'?(\w+)'?", text)) and not re.search(rf"^{here[1]}$", text, re.M):
        return False
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return False
    return True


def commands_of(body):
    """The commands of a block: a line each, and what goes on in the next."""
    found, text = [], ""
    for line in body.splitlines():
        if not text and (not line.strip() or line.startswith("#")):
            continue
        text += line + "\n"
        if is_whole(text):
            found.append(text.rstrip("\n"))
            text = ""
    if text:
        raise Stale(f"a command has no end: {text!r}")
    return found


# ---- comparing -----------------------------------------------------------------------------------

def form_of(line):
    """What of a printed line does not change from one time to the next."""
    if line.lstrip().startswith("{"):
        with contextlib.suppress(ValueError):
            return ("JSON", *sorted(json.loads(line)))
    columns = re.split(r"\s{2,}", line.strip())
    if len(columns) > 1 and line.strip() and line == line.upper() and re.match(r"[A-Z]", line.strip()):
        return ("HEAD", *columns)
    words = [re.sub(r"\d[\d.,:TZ-]*", "0", re.sub(r"\b[0-9a-f-]{8,}\b", "0", word)) for word in line.split()]
    return tuple(words[:2])


def check_shown(shown, printed):
    """Stale unless each line that is shown stands, in its form and in that order, in what was printed."""
    left, is_table = printed.splitlines(), False
    for line in shown.splitlines():
        if not line.strip() or line.strip() == "…":
            continue
        form = form_of(line)
        is_row, is_table = is_table and form[0] != "HEAD" and len(re.split(r"\s{2,}", line.strip())) > 1, form[0] == "HEAD" or is_table
        if is_row:
            if left:
                left.pop(0)  # rows are examples
            continue
        if "…" in line:  # any words from there on
            form = form_of(line.split("…")[0].rpartition(" ")[0])
        while left:
            has = form_of(left.pop(0))
            if has == form or ("…" in line and has[:len(form)] == form):
                break
        else:
            raise Stale(f"the page shows {line!r}, which was not printed:\n{printed}")


# ---- playing -------------------------------------------------------------------------------------

class Session:
    """One bash in a folder of its own, with the programs of this build in its path."""

    def __init__(self, folder, environment):
        self.folder = folder
        self.process = subprocess.Popen(["bash", "-c", LOOP], cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, start_new_session=True, bufsize=0)

    def run(self, command, limit_s=300):
        """(status, output, the longest time without output) of one command of the session."""
        try:
            self.process.stdin.write(command.encode() + b"\0")
        except BrokenPipeError:
            raise Stale(f"the session has ended before: {command}") from None
        got, begun, last, quiet = b"", time.monotonic(), time.monotonic(), 0
        while not (mark := MARK.search(got)):
            ready = select.select([self.process.stdout], [], [], 1)[0]
            now = time.monotonic()
            quiet = max(quiet, now - last)
            if quiet > QUIET_S or now - begun > limit_s:
                self.interrupt()
                raise Stale(f"silent for {quiet:.0f} s, begun {now - begun:.0f} s ago: {command}\n{got.decode(errors='replace')}")
            if ready:
                part = os.read(self.process.stdout.fileno(), 65536)
                if not part:
                    raise Stale(f"the session ended: {command}")
                got, last = got + part, now
        text = re.sub(r"^\[\d+\][+-]? .*\n", "", got[:mark.start()].decode(errors="replace"), flags=re.M)  # of the shell's jobs
        return int(mark[1]), text, quiet

    def interrupt(self):
        """Ends what runs, so that the next command can be given."""
        for pid in pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                (os.kill if os.getpgid(int(pid)) == self.process.pid else os.killpg)(int(pid), signal.SIGTERM)
        while not MARK.search(os.read(self.process.stdout.fileno(), 65536) or b"\x010\x01"):
            pass

    def close(self):
        self.process.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=5)
        self.process.stdout.close()


def at_terminal(command, exchanges):
    """Run at a terminal: type each answer when its question has been printed. Exits as the command does."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp("bash", ["bash", "-c", command])
    text, asked = b"", [pair.split("=", 1) for pair in exchanges.split("; ")]
    while True:
        while asked and re.search(asked[0][0].strip().encode(), text):
            text = b""
            os.write(fd, asked.pop(0)[1].encode() + b"\n")
        try:
            part = os.read(fd, 65536)
        except OSError:
            part = b""
        if not part:
            break
        text += part
        os.write(1, part)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if asked:
        print(f"it did not ask {asked[0][0]}")
        return 1
    return status


def is_running(pid):
    """One that nobody has waited for yet has ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Player:
    """Plays one page."""

    def __init__(self, path, server=None):
        self.path, self.page = path, path.name
        self.steps = steps_of(path.read_text(encoding="utf-8"), self.page)
        self.flags = next((step.text for step in self.steps if step.kind == "server"), "")
        self.server = server
        self.cluster = next((CLUSTERS[step.kind] for step in self.steps if step.kind in CLUSTERS), None)
        self.is_own = server is None or self.flags != "" or self.cluster is not None
        self.words = {}  # what stands for what
        self.goes_on, self.output, self.result = [], "", Result(self.page)

    def play(self, is_strict=True):
        begun, self.is_strict = time.monotonic(), is_strict
        with self.cluster() if self.cluster else contextlib.nullcontext() as cluster:
            return self.play_with(cluster, begun)

    def play_with(self, cluster, begun):
        if self.is_own:
            self.server = Server()
            if cluster:
                self.server.program = ["env", *(f"{name}={value}" for name, value in cluster.for_server.items()), WEIR]
            if self.flags != "none":
                self.server.start("--services-listen", "127.0.0.1:0", *shlex.split(self.flags.removeprefix("own")))
        folder = self.server.root / self.page.removesuffix(".md")
        folder.mkdir()
        self.folder = folder
        self.stand_ins()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")}
        environment |= {"PATH": f"{BIN}:{environment['PATH']}", "HOME": str(folder), "WEIR_STATE": str(self.server.state), "ROOT": str(ROOT),
                        "LC_ALL": "C.UTF-8", "WEIR_LIBRARIES": str(BIN.parent / "src/mlops")}
        self.session = Session(folder, environment)
        try:
            for step in self.steps:
                try:
                    getattr(self, "do_" + step.kind)(step)
                except Stale as error:
                    self.result.problems.append(f"{self.page}:{step.line}: {error}")
                    if self.is_strict:
                        break
        finally:
            self.do_stop(None)
            self.session.close()
            if self.is_own:
                self.server.stop()
        self.result.wall_s = time.monotonic() - begun
        return self.result

    def stand_ins(self):
        """Hosts and folders that pages name as examples, and what plays them here."""
        self.words = {"/srv/": f"{self.folder}/srv/", "/backup": f"{self.folder}/backup", "/var/lib/weir": str(self.server.state),
                      "/usr/local/bin/weir": str(WEIR)}
        if getattr(self.server, "url", None):
            host = self.server.url.split("//")[1]
            self.words |= {"https://weir.example:8470": self.server.url, "weir.example:8470": host, "weir.example": host.split(":")[0]}

    def here(self, text):
        for word in sorted(self.words, key=len, reverse=True):
            text = text.replace(word, self.words[word])
        return text

    def here_now(self):
        """The folder in which the session is."""
        return pathlib.Path(os.readlink(f"/proc/{self.session.process.pid}/cwd"))

    # ---- the kinds of steps

    def do_server(self, step):
        pass

    def do_slurm(self, step):
        pass

    def do_kubernetes(self, step):
        pass

    def do_form(self, step):
        pass

    def do_given(self, step):
        status, output, _ = self.session.run(self.here(" &&\n".join(step.text.splitlines())))
        if status != 0:
            raise Stale(f"what is given cannot be made: {step.text}: {status}\n{output}")

    def do_for(self, step):
        word, _, command = step.text.partition(" = ")
        status, output, _ = self.session.run(self.here(command))
        if status != 0 or not output.strip():
            raise Stale(f"nothing stands for {word}: {command}: {status}\n{output}")
        self.words[word.strip()] = output.strip()

    def do_until(self, step):
        deadline = time.monotonic() + QUIET_S
        while True:
            status, output, _ = self.session.run(self.here(step.text))
            if status == 0:
                return
            if time.monotonic() > deadline:
                raise Stale(f"not within {QUIET_S} s: {step.text}\n{output}")
            time.sleep(0.1)

    def do_run(self, step):
        command, status = self.here(step.text), None
        is_last = next((other for other in reversed(self.steps) if other.notes is step.notes), None) is step
        if "goes on" in step.notes and is_last:
            return self.begin(command, step)
        if "types" in step.notes:
            played = f"python3 {shlex.quote(__file__)} --at-terminal {shlex.quote(step.notes['types'])} {shlex.quote(command)}"
        else:
            played = command
        begun = time.monotonic()
        status, self.output, quiet = self.session.run(played)
        self.result.played += 1
        self.result.commands.append((time.monotonic() - begun, step.text))
        if quiet > self.result.quiet_s:
            self.result.quiet_s, self.result.quiet_command = quiet, step.text
        following = self.steps[self.steps.index(step) + 1:][:1]
        is_refused = "fails" in step.notes and is_last or bool(
            not step.text.startswith("cat ") and following and following[0].kind == "shown" and following[0].text.startswith("weir: "))
        if not self.is_strict and re.search("exists already|there is nothing to change", self.output):
            return  # of a page before
        if (status != 0) != is_refused:
            raise Stale(f"{step.text}: {status}\n{self.output}")
        if "fails" in step.notes and is_last and not re.search(step.notes["fails"], self.output):
            raise Stale(f"{step.text}: does not say {step.notes['fails']!r}\n{self.output}")

    def begin(self, command, step):
        log = self.folder / f".goes-on-{len(self.goes_on)}"
        log.touch()
        status, output, _ = self.session.run(f"{{ {command}\n}} >{shlex.quote(str(log))} 2>&1 & echo $! >{shlex.quote(str(log))}.pid")
        self.goes_on.append(log)
        self.result.played += 1
        deadline = time.monotonic() + QUIET_S
        while not re.search(step.notes["goes on"], log.read_text(errors="replace")):
            if time.monotonic() > deadline:
                raise Stale(f"{step.text}: does not say {step.notes['goes on']!r}\n{log.read_text(errors='replace')}")
            time.sleep(0.05)
        self.output = log.read_text(errors="replace")

    def do_stop(self, _):
        while self.goes_on:
            pid = int(pathlib.Path(f"{self.goes_on.pop()}.pid").read_text())
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGINT)
            deadline = time.monotonic() + 10
            while is_running(pid) and time.monotonic() < deadline:
                time.sleep(0.02)

    def do_file(self, step):
        path = self.here_now() / self.here(step.notes["file"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.here(step.text))

    def do_part(self, step):
        name = step.notes["part"]
        path = self.here_now() / name if (self.here_now() / name).exists() else ROOT / name
        plain = [re.sub(r"\s+#.*", "", line).strip() for line in [*path.read_text().splitlines(), *step.text.splitlines()]]
        n = len(path.read_text().splitlines())
        left, wanted = plain[:n], [line for line in plain[n:] if line and "…" not in line]
        for line in wanted:
            if line not in left:
                raise Stale(f"{name} has no line {line!r} there")
            left = left[left.index(line) + 1:]

    def do_shown(self, step):
        check_shown(self.here(step.text), self.output)

    def do_request(self, step):
        head, _, body = step.text.partition("\n")
        method, path = self.here(head).split()
        try:
            self.output = json.dumps(self.server.request(method, path, json.loads(self.here(body)) if body.strip() else None))
        except (OSError, HttpError) as error:
            raise Stale(f"{head}: {error}") from None
        self.result.played += 1

    def do_needs(self, step):
        """Each command is one that there is, with options that it has."""
        body = step.text if step.language == "sh" else "".join(re.findall(r"^\$ (.*\n)", step.text, re.M)) or step.text
        for command in commands_of(body) if step.language in ("sh", "console") else []:
            self.result.needs.append((step.notes["needs"], command))
            for words in weir_calls(command):
                own = words[:words.index("--")] if "--" in words else words
                done = subprocess.run([WEIR, *own, "--help"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
                if done.returncode != 0:
                    raise Stale(f"{command}: {done.stderr}")


def weir_calls(command):
    """The words of each call of weir in a command."""
    found, words = [], None
    lexer = shlex.shlex(command.replace("\\\n", " "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    for word in lexer:
        if word == "weir" and words is None:
            words = []
            found.append(words)
        elif re.fullmatch(r"[|&;()<>]+", word):
            words = None
        elif words is not None:
            words.append(word)
    return found


def play(path, server=None, is_strict=True):
    """What a page came to, also if it cannot be played at all."""
    try:
        return Player(path, server).play(is_strict)
    except Stale as error:
        return Result(path.name, problems=[str(error)])


def table(results):
    lines = [f"{'page':34} {'played':>6} {'not':>4} {'wall s':>7} {'quiet s':>7}  the quietest command"]
    for result in results:
        lines.append(f"{result.page:34} {result.played:6} {len(result.needs):4} {result.wall_s:7.1f} {result.quiet_s:7.1f}  "
                     f"{' '.join(result.quiet_command.split())[:90]}")
    return "\n".join(lines)


def unplayed(results):
    lines = []
    for need, (meaning, _) in NEEDS.items():
        commands = [(result.page, command) for result in results for kind, command in result.needs if kind == need]
        lines += [f"not played, {meaning}: {len(commands)}"] if commands else []
        lines += [f"    {page}: {' '.join(command.split())}" for page, command in commands]
    return "\n".join(lines)


def main():
    words = sys.argv[1:]
    if words[:1] == ["--at-terminal"]:
        return at_terminal(words[2], words[1])
    is_in_order = "--in-order" in words
    names = [word for word in words if not word.startswith("--")]
    paths = [pathlib.Path(name) for name in names] or sorted((ROOT / "docs/howto").glob("*.md"))
    server = Server().start("--services-listen", "127.0.0.1:0") if is_in_order else None
    results = []
    try:
        for path in paths:
            results.append(play(path, server, is_strict=not is_in_order))
            if "--times" in words:
                print("\n".join(f"{seconds:7.2f} s  {' '.join(command.split())[:120]}" for seconds, command in results[-1].commands))
            print("\n".join(results[-1].problems) or f"{path.name}: {results[-1].played} played", flush=True)
    finally:
        if server is not None:
            server.stop()
    print(table(results))
    print(unplayed(results))
    return 1 if any(result.problems for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
