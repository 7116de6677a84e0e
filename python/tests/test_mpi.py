# SPDX-License-Identifier: MIT
"""mha.mpi on three ranks of Open MPI, with mpi4py: mpi_ranks.py does the work."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "build" / "libmha_mpi-openmpi.so"
MPI = Path("/usr/lib/x86_64-linux-gnu/libmpi.so.40")


@pytest.mark.parametrize("ranks", [1, 3])
def test_bits_of_one_machine(ranks: int) -> None:
    pytest.importorskip("mpi4py")
    if not LIBRARY.exists() or not MPI.exists() or shutil.which("mpirun.openmpi") is None:
        pytest.skip("libmha_mpi for Debian's Open MPI is not here")
    module = Path(pytest.importorskip("mha").__file__).parent
    environment = {
        **os.environ,
        "MHA_MPI_LIBRARY": str(LIBRARY),
        "MPI4PY_MPIABI": "openmpi",
        "MPI4PY_LIBMPI": str(MPI),
    }
    done = subprocess.run(
        [ROOT / "tests/mpi/mpi_job.sh", "openmpi", str(ranks), "120", sys.executable,
         Path(__file__).with_name("mpi_ranks.py"), module],
        env=environment, capture_output=True, text=True, check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"checks on {ranks} ranks" in done.stdout
