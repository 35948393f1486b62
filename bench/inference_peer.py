#!/usr/bin/env python3
"""What bench/inference.py compares with: onnxruntime behind a Python server, as one would write it for speed.

    inference_peer.py {uvicorn|aiohttp} MODEL PORT WORKERS

POST /infer: JSON of the Open Inference Protocol, or the input's bytes (application/octet-stream), answered alike. Each worker
is a process with a session of its own and one computing thread; uvloop moves the bytes, orjson reads and writes, and a thread
of the worker computes, so that reading goes on meanwhile.
"""
import asyncio
import concurrent.futures
import os
import socket
import sys

import numpy as np
import onnxruntime
import orjson

KIND, MODEL, PORT, WORKERS = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])


class Model:
    def __init__(self):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(MODEL, options, providers=["CPUExecutionProvider"])
        port = self.session.get_inputs()[0]
        self.name, self.shape = port.name, [d if isinstance(d, int) and i > 0 else 1 for i, d in enumerate(port.shape)]
        self.is_small = np.prod(self.shape) < 1000
        self.pool = concurrent.futures.ThreadPoolExecutor(1)

    async def compute(self, x):
        if self.is_small:  # to hand it to a thread takes longer than to compute it
            return self.session.run(None, {self.name: x})[0]
        return (await asyncio.get_running_loop().run_in_executor(self.pool, self.session.run, None, {self.name: x}))[0]

    async def answer(self, content_type, body):
        if content_type == "application/octet-stream":
            y = await self.compute(np.frombuffer(body, np.float32).reshape(self.shape))
            return content_type, y.tobytes()
        given = orjson.loads(body)["inputs"][0]
        y = await self.compute(np.array(given["data"], np.float32).reshape(given["shape"]))
        return "application/json", orjson.dumps({"model_name": "m", "outputs": [
            {"name": "y", "datatype": "FP32", "shape": y.shape, "data": y.ravel()}]}, option=orjson.OPT_SERIALIZE_NUMPY)


def run_uvicorn(listening):
    import fastapi
    import uvicorn
    model, app = Model(), fastapi.FastAPI()

    @app.post("/infer")
    async def infer(request: fastapi.Request):
        content_type, body = await model.answer(request.headers.get("content-type"), await request.body())
        return fastapi.Response(body, media_type=content_type)

    config = uvicorn.Config(app, loop="uvloop", http="httptools", log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[listening])


def run_aiohttp(listening):
    import uvloop
    from aiohttp import web
    model, app = Model(), web.Application(client_max_size=64 << 20)

    async def infer(request):
        content_type, body = await model.answer(request.content_type, await request.read())
        return web.Response(body=body, content_type=content_type)

    app.router.add_post("/infer", infer)
    web.run_app(app, sock=listening, loop=uvloop.new_event_loop(), access_log=None, print=None)


def main():
    # Each worker listens by itself: the kernel deals the connections.
    for _ in range(WORKERS - 1):
        if os.fork() == 0:
            break
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listening.bind(("127.0.0.1", PORT))
    listening.listen(1024)
    {"uvicorn": run_uvicorn, "aiohttp": run_aiohttp}[KIND](listening)


if __name__ == "__main__":
    main()
