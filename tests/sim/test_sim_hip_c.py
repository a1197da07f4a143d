"""A C program built against the real HIP headers and linked with libamdhip64.so runs on the simulated GPU."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from pathlib import Path

import pytest
from simlib import BUF, Arg, code_object

sim = pytest.importorskip("tilelang.sim")

SPEC = importlib.util.find_spec("triton")
if not SPEC:
    pytest.skip("the HIP headers (of triton) are not installed", allow_module_level=True)
INCLUDE = Path(SPEC.submodule_search_locations[0]) / "backends/amd/include"

ADD = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  s_load_dword s8, s[0:1], 0x10
  s_lshl_b32 s3, s2, 6
  v_add_u32 v1, s3, v0
  v_lshlrev_b32 v1, 2, v1
  s_waitcnt lgkmcnt(0)
  global_load_dword v2, v1, s[4:5]
  s_waitcnt vmcnt(0)
  v_add_u32 v2, s8, v2
  global_store_dword v1, v2, s[6:7]
"""


def test_c_host(tmp_path):
    source, exe, code = Path(__file__).with_name("hip_client.c"), tmp_path / "client", tmp_path / "add.hsaco"
    code.write_bytes(code_object(ADD, (BUF, BUF, Arg(4))))
    lib = sim.libdir()
    cmd = [os.environ.get("CC", "gcc"), "-std=c11", "-O1", "-w", f"-I{INCLUDE}", str(source), "-o", str(exe)]
    subprocess.run([*cmd, f"-L{lib}", "-lamdhip64", f"-Wl,-rpath,{lib}", f"-Wl,-rpath-link,{lib}/.."], check=True)
    env = {k: v for k, v in os.environ.items() if not k.startswith("TILELANG_SIM_")}
    r = subprocess.run([str(exe), str(code)], capture_output=True, text=True, env=env)
    assert r.returncode == 0 and r.stdout == "all right\n", r.stderr
