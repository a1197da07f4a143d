"""C programs built against the real HIP headers and linked with libamdhip64.so run on the simulated GPU."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from pathlib import Path

import pytest
from simlib import ADD, BUF, Arg, client_env, code_object, missing, tool_env

sim = pytest.importorskip("tilelang.sim")

SPEC = importlib.util.find_spec("triton")
if not SPEC:
    missing("triton (its HIP headers)")
INCLUDE = Path(SPEC.submodule_search_locations[0]) / "backends/amd/include"


@pytest.mark.parametrize(
    "program, launches, waves, faults",
    [("hip_client", 7, 28, 0), ("hip_graphs", 14, 56, 0), ("hip_devices", 3, 13, 2), ("hip_threads", 72, 288, 2)],
)
def test_c_host(tmp_path, program, launches, waves, faults):
    source, exe, code = Path(__file__).with_name(f"{program}.c"), tmp_path / "client", tmp_path / "add.hsaco"
    code.write_bytes(code_object(ADD, (BUF, BUF, Arg(4))))
    lib = sim.libdir()
    cmd = [
        os.environ.get("CC", "gcc"),
        "-std=c11",
        "-O1",
        "-w",
        "-pthread",
        *(["-fsanitize=thread"] if os.environ.get("TILELANG_SANITIZED") == "thread" else []),
        f"-I{INCLUDE}",
        str(source),
        "-o",
        str(exe),
    ]
    link = [f"-L{lib}", f"-L{lib}/..", "-lamdhip64", "-ltilelang_sim", f"-Wl,-rpath,{lib}", f"-Wl,-rpath,{lib}/.."]
    subprocess.run([*cmd, *link], check=True, env=tool_env())
    env = client_env(TILELANG_SIM_DEVICES="gfx942,gfx942", TILELANG_SIM_CUS="8") if faults else client_env()
    r = subprocess.run([str(exe), str(code)], capture_output=True, text=True, env=env)
    assert r.returncode == 0, r.stderr
    assert r.stdout == f"{launches} launches, {waves * 11} instructions\n"
    assert (f"{faults} faults\n" in r.stderr) if faults else r.stderr == ""
