#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""serve_load.py MHA [--clients N] [--seconds S]: many clients at once ask "mha serve" to translate.

Every client asks, reads the whole answer, compares it with the one that the same sentence got when
the server was alone with it, and asks again. No request may be lost or answered otherwise, and the
server's memory may not grow. Prints requests per second, latencies and memory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import time
from urllib.parse import urlsplit

SENTENCES = [
    "the cat sleeps", "the black dog sees a cat", "the girl gives a book to the boy", "she sings",
    "the old man does not sleep", "they love the small house", "the children eat an apple", "he sees her",
]  # fmt: skip
GROWTH = 32 << 10  # KB of memory that a server may gain after its first tenth


class Load:
    def __init__(self, address: str, process: int) -> None:
        parts = urlsplit(address)
        self.port, self.path, self.process = parts.port, parts.path, process
        self.expected: dict[str, bytes] = {}
        self.latencies: list[float] = []
        self.lost = self.wrong = 0

    async def ask(self, sentence: str) -> bytes:
        """The body of the answer; empty if there is none."""
        body = json.dumps({"text": sentence}).encode()
        head = (f"POST {self.path}api/view HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n")  # fmt: skip
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(head.encode() + body)
            await writer.drain()
            answer = await reader.read()
        finally:
            writer.close()
        status, _, rest = answer.partition(b"\r\n")
        return rest.partition(b"\r\n\r\n")[2] if b" 200 " in status else b""

    async def client(self, seed: int, until: float) -> None:
        draw = random.Random(seed)
        while time.monotonic() < until:
            sentence = draw.choice(SENTENCES)
            began = time.monotonic()
            try:
                body = await self.ask(sentence)
            except OSError:
                body = b""
            self.latencies.append(time.monotonic() - began)
            self.lost += not body
            self.wrong += bool(body) and body != self.expected[sentence]

    async def crowd(self, clients: int, seconds: float) -> None:
        for sentence in SENTENCES:
            self.expected[sentence] = await self.ask(sentence)
            assert self.expected[sentence], "no answer to the first request"
        until = time.monotonic() + seconds
        await asyncio.gather(*(self.client(n, until) for n in range(clients)))

    def memory(self) -> int:
        """KB that the server has in memory."""
        with open(f"/proc/{self.process}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def print_latencies(latencies: list[float]) -> None:
    latencies.sort()
    marks = [(f"{p}%", latencies[min(len(latencies) - 1, len(latencies) * p // 100)]) for p in (50, 90, 99)]
    text = ", ".join(f"{name} {1000 * value:.0f} ms" for name, value in [*marks, ("longest", latencies[-1])])
    print(f"latency: {text}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="serve_load.py", description=__doc__.splitlines()[0])
    parser.add_argument("mha", help="the program")
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=3600)
    options = parser.parse_args()
    with subprocess.Popen([options.mha, "serve", "--port", "0", "--model", "lab"], stdout=subprocess.PIPE, text=True) as server:
        try:
            load = Load(server.stdout.readline().strip(), server.pid)
            asyncio.run(load.crowd(options.clients, options.seconds / 10))
            before, count = load.memory(), len(load.latencies)
            asyncio.run(load.crowd(options.clients, options.seconds * 9 / 10))
            after = load.memory()
        finally:
            server.terminate()
    total = len(load.latencies)
    print(f"{total} requests of {options.clients} clients, {load.lost} lost, {load.wrong} wrong")
    print(f"{(total - count) / (options.seconds * 9 / 10):.0f} requests/s")
    print_latencies(load.latencies)
    print(f"memory: {before} KB after a tenth, {after} KB at the end")
    fine = load.lost == 0 and load.wrong == 0 and after < before + GROWTH and server.returncode == 0
    print(f"serve_load: {int(fine)} passed, {int(not fine)} failed, 0 skipped")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
