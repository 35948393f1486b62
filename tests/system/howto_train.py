"""What plays a reader's train.py: prints and reports a loss, and saves something."""
import json
import os
import pathlib
import urllib.request

for step in range(1, 4):
    print("step", step, "loss", 1 / step)
    if "WEIR_RUN" in os.environ:
        body = json.dumps({"metrics": [{"key": "loss", "step": step, "value": 1 / step}]}).encode()
        request = urllib.request.Request(f"{os.environ['WEIR_SERVER']}/api/v1/runs/{os.environ['WEIR_RUN']}/metrics", data=body)
        request.add_header("Authorization", "Bearer " + pathlib.Path("token").read_text().strip())
        urllib.request.urlopen(request, timeout=20).close()
pathlib.Path(os.environ.get("WEIR_OUTPUT", "."), "weights").write_text("w\n")
