#!/usr/bin/python3
"""Scrolling of many runs: how long Chromium takes for a frame while the list of 100,000 runs is scrolled by a script.

    bench/scroll.py [--runs 100000] [--rounds 3] [-o json]

A server with so many runs (10 metrics, 5 parameters and 2 tags each, filled in as bench/tracking.py does), Chromium without a
window or a GPU on the same machine, the console's list of one experiment at 1280x900. In each frame the script scrolls so many
rows further; rows come from the server by pages meanwhile. A frame is what lies between two calls of requestAnimationFrame; a
long task is one that holds the page's thread for more than 50 ms. Both grow with what else the machine does; processor is the
time that the page's thread computed in a frame, by the thread's own clock.

still      nothing is scrolled: what the machine gives
slow       3 rows a frame, as a wheel does
steady     10 rows a frame
fast       40 rows a frame
grouped    10 rows a frame in the list in groups, one of which is unfolded
"""
import argparse
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests/browser")]
import page as browser  # noqa: E402
import tracking  # noqa: E402

FRAMES = 300
ROW_PX = 28
LIST = "experiments/Default"
PHASES = {"still": (LIST, 0), "slow": (LIST, 3), "steady": (LIST, 10), "fast": (LIST, 40), "grouped": (f"{LIST}?group=params.p0&open=%253D0", 10)}
SCROLL_JS = """
const [px, n, done] = arguments
const frames = [], tasks = []
const seen = new PerformanceObserver((list) => tasks.push(...list.getEntries().map((one) => one.duration)))
seen.observe({entryTypes: ['longtask']})
let last = 0
const step = (now) => {
    last && frames.push(now - last)
    last = now
    if (frames.length < n) {
        window.scrollBy(0, px)
        requestAnimationFrame(step)
    } else {
        setTimeout(() => { seen.disconnect(); done([frames, tasks, scrollY]) }, 200)
    }
}
requestAnimationFrame(step)
"""


def processor_ms(page):
    metrics = page.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return 1000 * next(one["value"] for one in metrics if one["name"] == "TaskDuration")


def measure(page, phase):
    """Milliseconds of each frame, of each long task, and of the processor in all; how many rows went by."""
    address, rows = PHASES[phase]
    page.go("home")
    page.go(address)
    page.one("table.rows [data-row]")
    page.js("window.scrollTo(0, 0)")
    began = processor_ms(page)
    frames, tasks, top = page.driver.execute_async_script(SCROLL_JS, rows * ROW_PX, FRAMES)
    return frames, tasks, processor_ms(page) - began, top / ROW_PX


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("-o", dest="output", choices=("text", "json"), default="text")
    arguments = parser.parse_args()
    server = tracking.Weir("weir")
    page = None
    try:
        server.start().stop()
        server.fill(arguments.runs)
        server.start()
        connection = server.connect()
        connection.request("POST", "/api/v1/session/link", "{}", server.headers)
        link = json.loads(connection.getresponse().read())
        page = browser.Page()
        page.driver.set_script_timeout(120)
        page.driver.get(link.get("url") or link["link"])
        page.one("button").click()
        page.one(".topbar")
        page.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        rounds = {phase: [] for phase in PHASES}
        for _ in range(arguments.rounds):
            for phase in PHASES:
                rounds[phase].append(measure(page, phase))
    finally:
        if page:
            page.close()
        server.remove()
    result = {}
    for phase, measured in rounds.items():
        frames = [frame for one, *_ in measured for frame in one]
        tasks = [task for _, one, *_ in measured for task in one]
        result[phase] = {**{f"p{round(100 * q)}_ms": round(tracking.quantile(frames, q), 1) for q in (0.5, 0.95, 0.99)}, "largest_ms": round(max(frames), 1),
                         "processor_ms": round(sum(one for *_, one, _ in measured) / len(frames), 1), "frames": len(frames), "long_tasks": len(tasks), "longest_task_ms": round(max(tasks, default=0)), "rows": round(sum(rows for *_, rows in measured))}
    if arguments.output == "json":
        print(json.dumps({"runs": arguments.runs, **result}))
        return
    print(f"{arguments.runs} runs\n{'':10}{'p50':>8}{'p95':>8}{'p99':>8}{'largest':>9}{'processor':>11} ms  {'frames':>6}{'long tasks':>12}{'longest':>9} ms{'rows':>9}")
    for phase, one in result.items():
        print(f"{phase:10}{one['p50_ms']:8}{one['p95_ms']:8}{one['p99_ms']:8}{one['largest_ms']:9}{one['processor_ms']:11}     {one['frames']:6}{one['long_tasks']:12}{one['longest_task_ms']:9}   {one['rows']:9}")


if __name__ == "__main__":
    main()
