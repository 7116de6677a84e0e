# SPDX-License-Identifier: MIT
"""mha.mpi on some ranks of Open MPI, with mpi4py: mpi_ranks.py does the work, and an example runs."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "build" / "libmha_mpi-openmpi.so"
MPI = Path("/usr/lib/x86_64-linux-gnu/libmpi.so.40")


def run(ranks: int, *command: str | Path) -> str:
    """What a program of so many ranks prints."""
    pytest.importorskip("mpi4py")
    if not LIBRARY.exists() or not MPI.exists() or shutil.which("mpirun.openmpi") is None:
        pytest.skip("libmha_mpi for Debian's Open MPI is not here")
    environment = {
        **os.environ,
        "MHA_MPI_LIBRARY": str(LIBRARY),
        "MPI4PY_MPIABI": "openmpi",
        "MPI4PY_LIBMPI": str(MPI),
    }
    done = subprocess.run(
        [ROOT / "tests/mpi/mpi_job.sh", "openmpi", str(ranks), "120", sys.executable, *command],
        env=environment, capture_output=True, text=True, check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("ranks", [1, 3])
def test_bits_of_one_machine(ranks: int) -> None:
    module = Path(pytest.importorskip("mha").__file__).parent
    said = run(ranks, Path(__file__).with_name("mpi_ranks.py"), module)
    assert f"checks on {ranks} ranks" in said


def test_example() -> None:
    """Attention with autograd over three ranks learns, as its page says."""
    pytest.importorskip("torch")
    pytest.importorskip("mha")
    said = run(3, ROOT / "python/examples/mpi_torch.py")
    assert "3 ranks, 32 of 96 tokens on rank 0" in said
    assert "the bits of one machine" in said
    losses = re.search(r"loss (\S+), after 40 steps (\S+)", said)
    assert losses is not None and float(losses[2]) < float(losses[1]) / 4
