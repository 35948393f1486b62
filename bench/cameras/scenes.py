"""Clips of people who pass a camera, with the truth about every frame: faces of a data set pasted onto walking figures before photographs.

scenes.py --faces DIR --photos DIR --out DIR [--seed N] [--width 1280] [--seconds 20] [--rate 10]

OUT/clip.mp4      H.264, 4 Mbit/s, a key frame every 2 s, no B-frames
OUT/truth.jsonl   one line a frame: {"frame", "people": [{"passage", "person", "box", "visible"}]}
OUT/passages.json [{"passage", "person", "role", "first", "last", "kind"}]; role: enrolled, barred or unknown
OUT/gallery/      photos of the enrolled and the barred, a folder each; none of them is in the clip

The number of each frame is in the picture, as 16 blocks of 16 x 16 pixels at the top and again at the bottom: whoever decodes it reads which
frame it is, and whether it is whole.
"""

import argparse
import json
import math
import random
import subprocess
from pathlib import Path

import cv2
import numpy

BLOCK = 16
FACE = (7.2, 15.7, 83.8, 108.3)  # where the face lies in a picture of 92 x 112 of the data set: left, top, right, bottom
FACE_WIDTH = FACE[2] - FACE[0]
N_GALLERY = 5  # of the ten pictures of a person
ROLES = ("enrolled",) * 7 + ("barred",) * 1 + ("unknown",) * 3


def burn(picture, number):
    """Write the frame's number into the picture, twice."""
    height = picture.shape[0]
    for bit in range(16):
        value = 235 if number >> bit & 1 else 16
        for top in (0, height - BLOCK):
            picture[top:top + BLOCK, bit * BLOCK:(bit + 1) * BLOCK] = value


def read_number(grey):
    """The number in a picture's top, or None if its bottom has another: the picture is not whole."""
    half, height = BLOCK // 2, grey.shape[0]
    numbers = [sum(1 << bit for bit in range(16) if grey[row, bit * BLOCK + half] > 125) for row in (half, height - half)]
    return numbers[0] if numbers[0] == numbers[1] else None


def head_mask():
    """How much of a picture of the data set is head: an ellipse with a soft edge, and a neck."""
    y, x = numpy.mgrid[0:112, 0:92].astype(numpy.float32)
    distance = numpy.sqrt(((x - 46) / 44) ** 2 + ((y - 58) / 57) ** 2)
    return numpy.clip((1 - distance) / 0.22, 0, 1)


class Person:
    """One passage: who, how they move, and what they look like frame by frame."""

    def __init__(self, draw, number, name, role, pictures, shirt, size, begin_s, length_s):
        self.number, self.name, self.role, self.pictures, self.shirt = number, name, role, pictures, shirt
        self.begin_s, self.length_s = begin_s, length_s
        self.kind = draw.choice(("cross", "cross", "approach"))
        width, height = size
        scale = width / 1920
        if self.kind == "cross":
            self.width = draw.uniform(50, 170) * scale
            self.from_left = draw.random() < 0.5
            self.y = draw.uniform(0.3, 0.5) * height
        else:
            self.near, self.far = 180 * scale, 30 * scale
            self.x = draw.uniform(0.2, 0.8) * width
            self.y = draw.uniform(0.3, 0.45) * height
        self.tint = (draw.uniform(.62, .82), draw.uniform(.78, .92), 1.0)
        self.gain = draw.uniform(.7, 1.15)
        self.phase = draw.uniform(0, 6.28)
        self.squeeze = draw.uniform(0, .15)
        self.size = size
        self.every = draw.randint(4, 8)
        self.order = [draw.choice(pictures) for _ in range(64)]

    def at(self, time_s):
        """Centre and width of the face, or None: not there."""
        part = (time_s - self.begin_s) / self.length_s
        if not 0 <= part <= 1:
            return None
        width, _ = self.size
        if self.kind == "cross":
            reach = width + 2 * self.width
            x = -self.width + part * reach
            x = x if self.from_left else width - x
            face = self.width
            y = self.y + .05 * face * math.sin(time_s * 11 + self.phase)
        else:
            face = self.far * (self.near / self.far) ** part
            x = self.x + .05 * face * math.sin(time_s * 5.5 + self.phase)
            y = self.y + .05 * face * math.sin(time_s * 11 + self.phase)
        return x, y, face

    def paint(self, picture, time_s, number, mask):
        x, y, face = self.at(time_s)
        grey = self.order[number // self.every % len(self.order)]
        scale = face / FACE_WIDTH
        turn = math.radians(6 * math.sin(time_s * 3 + self.phase))
        narrow = 1 - self.squeeze * abs(math.sin(time_s * 1.3 + self.phase))
        middle = ((FACE[0] + FACE[2]) / 2, (FACE[1] + FACE[3]) / 2)
        cos, sin = math.cos(turn) * scale, math.sin(turn) * scale
        matrix = numpy.array([[cos * narrow, -sin, 0], [sin * narrow, cos, 0]], numpy.float32)
        matrix[:, 2] = (x - matrix[0, 0] * middle[0] - matrix[0, 1] * middle[1], y - matrix[1, 0] * middle[0] - matrix[1, 1] * middle[1])
        self.paint_torso(picture, x, y, face)
        left, right = int(max(0, x - face)), int(min(picture.shape[1], x + face))
        top, bottom = int(max(0, y - face)), int(min(picture.shape[0], y + face * 1.2))
        if right - left < 2 or bottom - top < 2:
            return
        local = matrix.copy()
        local[:, 2] -= (left, top)
        size = (right - left, bottom - top)
        warped = cv2.warpAffine(grey, local, size, flags=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR).astype(numpy.float32)
        alpha = cv2.warpAffine(mask, local, size)[..., None]
        colour = numpy.stack([warped * tint * self.gain for tint in self.tint], -1)
        part = picture[top:bottom, left:right]
        part[:] = numpy.clip(colour * alpha + part * (1 - alpha), 0, 255).astype(numpy.uint8)

    def paint_torso(self, picture, x, y, face):
        shoulder, low = y + .62 * face, min(picture.shape[0], y + 4 * face)
        outline = numpy.array([[x - .5 * face, shoulder], [x + .5 * face, shoulder], [x + 1.3 * face, shoulder + .8 * face], [x + 1.3 * face, low],
                               [x - 1.3 * face, low], [x - 1.3 * face, shoulder + .8 * face]], numpy.int32)
        left, top = int(max(0, x - 1.3 * face)), int(max(0, shoulder))
        right, bottom = int(min(picture.shape[1], x + 1.3 * face)), int(low)
        if right - left < 2 or bottom - top < 2:
            return
        mask = numpy.zeros((bottom - top, right - left), numpy.uint8)
        cv2.fillPoly(mask, [outline - [left, top]], 255)
        cloth = cv2.resize(self.shirt, (right - left, bottom - top))
        part = picture[top:bottom, left:right]
        part[mask > 0] = cloth[mask > 0]

    def box(self, time_s):
        x, y, face = self.at(time_s)
        height = face * (FACE[3] - FACE[1]) / FACE_WIDTH
        return [x - face / 2, y - height / 2, face, height]


def visible_part(box, others, pole, size):
    """How much of a face is in the picture and not behind others, who are boxes, or the pole."""
    x, y, width, height = box
    grid_x, grid_y = numpy.meshgrid(numpy.linspace(x, x + width, 24), numpy.linspace(y, y + height, 24))
    seen = (grid_x >= 0) & (grid_x < size[0]) & (grid_y >= BLOCK) & (grid_y < size[1] - BLOCK)
    seen &= ~((grid_x >= pole[0]) & (grid_x < pole[1]))
    for other in others:
        face = other[2]
        middle = other[0] + face / 2
        is_face = (abs(grid_x - middle) < face * .6) & (grid_y >= other[1]) & (grid_y < other[1] + other[3])
        is_torso = (abs(grid_x - middle) < 1.3 * face) & (grid_y >= other[1] + other[3])
        seen &= ~(is_face | is_torso)
    return float(seen.mean())


def cast_of(draw, faces):
    """Who passes, and as what: (person, role), in the order of their coming."""
    return list(zip(draw.sample(sorted(faces), len(ROLES)), ROLES))


def cut(picture, box):
    """What lies in and around a face's box, as the data set shows a face: 92 x 112."""
    scale_x, scale_y = box[2] / FACE_WIDTH, box[3] / (FACE[3] - FACE[1])
    left, top = box[0] - FACE[0] * scale_x, box[1] - FACE[1] * scale_y
    matrix = numpy.array([[1 / scale_x, 0, -left / scale_x], [0, 1 / scale_y, -top / scale_y]], numpy.float32)
    return cv2.warpAffine(picture, matrix, (92, 112), flags=cv2.INTER_LINEAR)


def seen(draw, pictures, photos, mask):
    """A photo as a camera would see the person, cut out again a little beside: small or large, turned, darker, blurred, with noise, packed."""
    size = (640, 360)
    one = Person(draw, 0, "", "", pictures, draw.choice(photos), (1920, 1080), 0, 5)
    width, time_s, number = draw.uniform(30, 170), draw.uniform(0, 5), draw.randrange(1000)
    one.at, one.size = lambda _time: (size[0] / 2, size[1] * .42, width), size
    picture = background_of(draw.choice(photos), size)
    one.paint(picture, time_s, number, mask)
    if draw.random() < .16:
        picture = cv2.blur(picture, (7, 1))
    noise = numpy.random.default_rng(draw.randrange(1 << 30)).normal(0, 2.5, picture.shape).astype(numpy.int8)
    picture = cv2.add(picture, noise, dtype=cv2.CV_8U)
    picture = cv2.imdecode(cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, draw.randint(40, 95)])[1], cv2.IMREAD_GRAYSCALE)
    x, y, w, h = one.box(time_s)
    size_by, tall_by = 1 + draw.gauss(0, .06), 1 + draw.gauss(0, .04)
    middle_x, middle_y = x + w / 2 + draw.gauss(0, .04) * w, y + h / 2 + draw.gauss(0, .04) * h
    w, h = w * size_by, h * size_by * tall_by
    return cut(picture, (middle_x - w / 2, middle_y - h / 2, w, h))


def people_of(draw, cast, faces, photos, size, seconds):
    people = []
    for number, (name, role) in enumerate(cast):
        pictures = faces[name] if role == "unknown" else faces[name][N_GALLERY:]
        length_s = draw.uniform(3.5, 6)
        begin_s = number * (seconds - 6) / (len(cast) - 1)
        people.append(Person(draw, number, name, role, pictures, draw.choice(photos), size, begin_s, length_s))
    return people


def background_of(photo, size):
    scale = max(size[0] / photo.shape[1], size[1] / photo.shape[0])
    large = cv2.resize(photo, None, fx=scale, fy=scale)[:size[1], :size[0]]
    return cv2.GaussianBlur(cv2.resize(large, size), (0, 0), 2 * size[0] / 1920)


def frame_of(background, people, pole, time_s, number, noise):
    """The picture, and who is in it."""
    picture, mask = background.copy(), head_mask()
    there = sorted((one for one in people if one.at(time_s)), key=lambda one: one.at(time_s)[2])
    for one in there:
        one.paint(picture, time_s, number, mask)
    picture[:, pole[0]:pole[1]] = 60
    if number % 37 < 6:
        picture = cv2.blur(picture, (7, 1))
    picture = cv2.add(picture, noise[number % len(noise)], dtype=cv2.CV_8U)
    burn(picture, number)
    boxes = [one.box(time_s) for one in there]
    size = (picture.shape[1], picture.shape[0])
    truth = [{"passage": one.number, "person": one.name, "box": [round(value, 1) for value in box], "visible": round(visible_part(box, boxes[i + 1:], pole, size), 2)}
             for i, (one, box) in enumerate(zip(there, boxes))]
    return picture, truth


def encoder(path, size, rate):
    return subprocess.Popen(["ffmpeg", "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "bgr24", "-s", f"{size[0]}x{size[1]}", "-r", str(rate), "-i", "-", "-c:v",
                             "libx264", "-preset", "veryfast", "-b:v", "4M", "-bf", "0", "-g", str(2 * rate), "-pix_fmt", "yuv420p", path], stdin=subprocess.PIPE)


def write(out, faces, photos, seed, width=1280, seconds=20, rate=10, cast=None):
    """Make a clip; its folder's files are as the text at the top says. cast: as of cast_of, which draws it else. Returns the passages."""
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    draw = random.Random(seed)
    size = (width, width * 9 // 16)
    people = people_of(draw, cast or cast_of(draw, faces), faces, photos, size, seconds)
    background = background_of(draw.choice(photos), size)
    pole = (int(size[0] * .62), int(size[0] * .62 + 50 * width / 1920))
    noise = numpy.random.default_rng(seed).normal(0, 2.5, (5, size[1], size[0], 3)).astype(numpy.int8)
    ffmpeg = encoder(str(out / "clip.mp4"), size, rate)
    with open(out / "truth.jsonl", "w") as truth:
        for number in range(seconds * rate):
            picture, there = frame_of(background, people, pole, number / rate, number, noise)
            truth.write(json.dumps({"frame": number, "people": there}) + "\n")
            ffmpeg.stdin.write(picture.tobytes())
    ffmpeg.stdin.close()
    if ffmpeg.wait() != 0:
        raise RuntimeError("ffmpeg failed")
    passages = [{"passage": one.number, "person": one.name, "role": one.role, "first": math.ceil(one.begin_s * rate),
                 "last": math.floor((one.begin_s + one.length_s) * rate), "kind": one.kind} for one in people]
    (out / "passages.json").write_text(json.dumps(passages))
    for one in people:
        if one.role != "unknown":
            folder = out / "gallery" / one.name
            folder.mkdir(parents=True, exist_ok=True)
            for i, picture in enumerate(faces[one.name][:N_GALLERY]):
                cv2.imwrite(str(folder / f"{i}.png"), picture)
    return passages


def faces_in(folder):
    """A folder of pictures for each person."""
    found = {}
    for person in sorted(one for one in Path(folder).iterdir() if one.is_dir()):
        found[person.name] = [cv2.imread(str(path), cv2.IMREAD_GRAYSCALE) for path in sorted(person.iterdir())]
    return found


def photos_in(folder, most=200):
    paths = sorted(path for path in Path(folder).rglob("*") if path.suffix.lower() in (".jpg", ".jpeg", ".png"))[:most]
    return [picture for picture in (cv2.imread(str(path)) for path in paths) if picture is not None]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("--faces", None), ("--photos", None), ("--out", None), ("--seed", 1), ("--width", 1280), ("--seconds", 20), ("--rate", 10)):
        parser.add_argument(name, required=default is None, default=default, type=str if default is None else int)
    given = parser.parse_args()
    write(given.out, faces_in(given.faces), photos_in(given.photos), given.seed, given.width, given.seconds, given.rate)


if __name__ == "__main__":
    main()
