# SPDX-License-Identifier: MIT
"""One attention call over several ranks: libmha_mpi beside PyTorch over gloo, on this machine.

    python -m peers.many_ranks --build build --ranks 2

PyTorch runs twice: context_parallel, where it runs, and a ring written by hand: every rank has a block of
tokens, keys and values go round, and partial results are merged by their log-sum-exp. What counts is the CPU
time of all ranks together, since ranks of one machine share its cores.
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable

SHAPE = {"tokens": 4096, "heads": 8, "width": 64}


# ---- PyTorch, in a process for each rank ------------------------------------------------------------------


def merge(o: Any, lse: Any, o2: Any, lse2: Any) -> tuple[Any, Any]:
    """Two partial results of the same rows over different keys."""
    import torch

    both = torch.logaddexp(lse, lse2)
    return o * (lse - both).exp()[..., None] + o2 * (lse2 - both).exp()[..., None], both


def ring(q: Any, k: Any, v: Any, causal: bool) -> Any:
    """Attention of this rank's queries; keys and values of all ranks come by."""
    import torch
    import torch.distributed as dist

    rank, ranks = dist.get_rank(), dist.get_world_size()
    flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    total = None
    for step in range(ranks):
        source = (rank - step) % ranks
        waits: list[Any] = []
        if step + 1 < ranks:
            arriving = [torch.empty_like(k), torch.empty_like(v)]
            waits = [dist.isend(x, (rank + 1) % ranks) for x in (k, v)]
            waits += [dist.irecv(x, (rank - 1) % ranks) for x in arriving]
        if not causal or source <= rank:
            part = flash(q, k, v, 0.0, causal and source == rank)
            total = part if total is None else merge(*total, *part)
        for wait in waits:
            wait.wait()
        if step + 1 < ranks:
            k, v = arriving
    assert total is not None
    return total[0]


def context_parallel(q: Any, k: Any, v: Any, causal: bool) -> Any:
    """PyTorch's own; q, k and v are of all tokens, and it takes this rank's rows of them."""
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.experimental import context_parallel as parallel
    from torch.nn.functional import scaled_dot_product_attention

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    with torch.no_grad(), parallel(mesh, buffers=[q, k, v], buffer_seq_dims=[2, 2, 2]):
        return scaled_dot_product_attention(q, k, v, is_causal=causal)


def rows_of(whole: Any, rank: int, ranks: int) -> list[Any]:
    """The rows of this rank, as a block of tokens, and as context_parallel balances causal masks: the
    n-th piece from the beginning and from the end."""
    import torch

    pieces = whole.chunk(2 * ranks, dim=2)
    balanced = torch.cat([pieces[rank], pieces[2 * ranks - 1 - rank]], dim=2)
    return [whole.chunk(ranks, dim=2)[rank], balanced]


def check(result: Any, want: Any, rank: int, ranks: int) -> None:
    """Raises an error unless the result is that of attention to the tokens of all ranks."""
    apart = min(float((result - rows).abs().max()) for rows in rows_of(want, rank, ranks))
    if not apart < 1e-3:
        raise ValueError(f"gives other numbers than one process, by {apart:.2g}: not timed")


def measured(run: Callable[[], Any], count: int) -> float:
    """CPU seconds of the best run, all threads of this process."""
    best = float("inf")
    for _ in range(count):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


def rank_main(arguments: argparse.Namespace) -> None:
    """Prints "NAME SECONDS" or "NAME fails: REASON", on rank 0; seconds are the sum over ranks."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    whole = [torch.randn(1, arguments.heads, arguments.tokens, arguments.width) for _ in range(3)]
    own = [x.chunk(ranks, dim=2)[rank].contiguous() for x in whole]
    want = torch.nn.functional.scaled_dot_product_attention(*whole, is_causal=arguments.causal)
    ways: dict[str, Callable[[], Any]] = {
        "ring": lambda: ring(*own, arguments.causal),
        "context_parallel": lambda: context_parallel(*(x.clone() for x in whole), arguments.causal),
    }
    for name, run in ways.items():
        try:
            check(run(), want, rank, ranks)
            seconds = torch.tensor(measured(run, arguments.count))
            dist.all_reduce(seconds)
            said = f"{float(seconds):.6f}"
        except Exception as error:  # what fails is a result too
            said = f"fails: {str(error).splitlines()[0][:90]}"
        if rank == 0:
            print(name, said, flush=True)
    os._exit(0)  # a way that failed on some ranks may have left others waiting


# ---- all of them ------------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def torch_lines(arguments: argparse.Namespace, mask: str) -> list[str]:
    """What rank 0 of PyTorch's processes printed."""
    port = str(free_port())
    shape = [f"--{name}={getattr(arguments, name)}" for name in (*SHAPE, "count")]
    command = [sys.executable, "-m", "peers.many_ranks", "--rank-main", *shape]
    jobs = []
    for rank in range(arguments.ranks):
        environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(arguments.ranks),
                       "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        jobs.append(subprocess.Popen([*command, *(["--causal"] if mask == "causal" else [])],
                                     env=environment, stdout=subprocess.PIPE,
                                     stderr=subprocess.DEVNULL, text=True))
    try:
        return jobs[0].communicate(timeout=arguments.timeout)[0].splitlines()
    except subprocess.TimeoutExpired:
        return [f"torch fails: no end after {arguments.timeout} seconds"]
    finally:
        for job in jobs:
            job.kill()
            job.wait()


def our_lines(arguments: argparse.Namespace, mask: str) -> list[str]:
    """"SCHEME SECONDS" of every scheme, by the first program that is there."""
    for mpi in ("openmpi", "mpich"):
        program = Path(arguments.build) / f"mha-mpi-{mpi}"
        if program.exists():
            break
    else:
        return ["libmha fails: there is no mha-mpi in " + arguments.build]
    lines = []
    for scheme in ("gather", "all-to-all", "ring"):
        done = subprocess.run(
            ["tests/mpi/mpi_job.sh", mpi, str(arguments.ranks), str(arguments.timeout), str(program),
             "bench", "--scheme", scheme, "--mask", mask, "--count", str(arguments.count),
             *(word for name in SHAPE for word in (f"--{name}", str(getattr(arguments, name))))],
            capture_output=True, text=True, check=False)
        found = re.search(r"all ranks +([0-9.]+) ms", done.stdout)
        lines.append(f"{scheme} {float(found[1]) / 1e3:.6f}" if found else f"{scheme} fails")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(prog="peers.many_ranks", description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="where mha-mpi is")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--count", type=int, default=3, help="runs, of which the best counts")
    parser.add_argument("--timeout", type=int, default=300, help="seconds of one library")
    parser.add_argument("--rank-main", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--causal", action="store_true", help=argparse.SUPPRESS)
    for name, value in SHAPE.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    arguments = parser.parse_args()
    if arguments.rank_main:
        rank_main(arguments)
        return
    print(f"CPU time of {arguments.ranks} ranks together, {arguments.tokens} tokens, {arguments.heads} "
          f"heads of {arguments.width}, f32")
    for mask in ("full", "causal"):
        lines = [("libmha", x) for x in our_lines(arguments, mask)]
        lines += [("torch over gloo", x) for x in torch_lines(arguments, mask)]
        for library, line in lines:
            name, said = line.split(" ", 1)
            text = f"{1e3 * float(said):9.1f} ms" if said[0].isdigit() else said
            print(f"{mask:7} {library:16} {name:17} {text}")


if __name__ == "__main__":
    main()
