"""A process that forks while other threads launch: the child finds no lock held and goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from simlib import ADD, BUF, Arg, client_env, code_object

sim = pytest.importorskip("tilelang.sim")
if os.environ.get("TILELANG_SANITIZED"):
    pytest.skip("the sanitizers' allocator has locks that no fork looks after", allow_module_level=True)

HEAD = """
import ctypes as C, os, sys, threading, time
import numpy as np
code = open(sys.argv[1], "rb").read()
stop = threading.Event()
"""
OWN = """
from tilelang.sim import Device
dev = Device("gfx942", checks="all", threads=2)
k = dev.load(code).kernels["k"]
def work():
    a, out = np.arange(6400, dtype=np.int32), np.zeros(6400, np.int32)
    k.launch(100, 64, [a, out, np.int32(5)])
    m = dev.load(code); m.unload()
    assert (out == a + 5).all()
"""
HIP = """
hip = C.CDLL(sys.argv[2]); P = C.c_void_p
def ok(e): assert e == 0, e
fs = []
for d in (0, 1):
    m, f = P(), P(); ok(hip.hipSetDevice(d)); ok(hip.hipModuleLoadData(C.byref(m), code))
    ok(hip.hipModuleGetFunction(C.byref(f), m, b"k")); fs.append(f)
def work():
    d = os.urandom(1)[0] % 2; f = fs[d]; ok(hip.hipSetDevice(d))
    p, q, s, g = P(), P(), P(), P()
    ok(hip.hipMalloc(C.byref(p), C.c_size_t(25600))); ok(hip.hipMalloc(C.byref(q), C.c_size_t(25600)))
    ok(hip.hipMemset(p, 0, C.c_size_t(25600)))
    c = C.c_int32(5); args = (P * 3)(*[C.cast(C.byref(x), P) for x in (p, q, c)])
    ok(hip.hipModuleLaunchKernel(f, 100, 1, 1, 64, 1, 1, 0, None, args, None))
    ok(hip.hipStreamCreateWithFlags(C.byref(s), 1)); ok(hip.hipStreamBeginCapture(s, 2))
    ok(hip.hipMemsetAsync(q, 1, C.c_size_t(4), s)); ok(hip.hipStreamEndCapture(s, C.byref(g)))
    ok(hip.hipGraphDestroy(g)); ok(hip.hipStreamDestroy(s))
    got = np.zeros(6400, np.int32); ok(hip.hipMemcpy(P(got.ctypes.data), q, C.c_size_t(25600), 2))
    assert (got == 5).all(); ok(hip.hipFree(p)); ok(hip.hipFree(q))
"""
TILELANG = """
import tilelang as tl
sys.path.insert(0, sys.argv[3])
import fork_kernel
def work():
    fork_kernel.run(int.from_bytes(os.urandom(1), "little") % 4)
"""
KERNEL = """
import numpy as np
import tilelang as tl
N = tl.dims("N")
def make():
    @tl.kernel
    def double(X: tl.Buffer[N], Y: tl.Buffer[N], B: tl.constexpr = 64):
        i = tl.program_id(0)
        Y[i * B : (i + 1) * B] = X[i * B : (i + 1) * B] * 2
    return double
shared = make()
def run(n):
    x, y = np.ones(640, np.float32), np.zeros(640, np.float32)
    shared[10](x, y, B=64)
    assert (y == 2).all()
    make()[10](x, y, B=64)
"""
TAIL = """
def loop():
    while not stop.is_set(): work()
threads = [threading.Thread(target=loop) for _ in range(3)]
for t in threads: t.start()
bad = 0
for i in range(20):
    time.sleep(0.01)
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    end = time.monotonic() + 120
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done: break
        if time.monotonic() > end:
            os.kill(pid, 9); os.waitpid(pid, 0); status = -1
            break
        time.sleep(0.005)
    bad += status != 0
    if status: break
stop.set()
for t in threads: t.join()
print("bad", bad)
"""


@pytest.mark.slow
@pytest.mark.parametrize("body", [OWN, HIP, TILELANG], ids=["own", "hip", "kernels"])
def test_fork_while_others_launch(tmp_path, body):
    path = tmp_path / "add.hsaco"
    path.write_bytes(code_object(ADD, (BUF, BUF, Arg(4))))
    (tmp_path / "fork_kernel.py").write_text(KERNEL)
    if body is TILELANG:
        pytest.importorskip("tilelang._llvm")
    cmd = [
        sys.executable,
        "-W",
        "ignore",
        "-c",
        HEAD + body + TAIL,
        str(path),
        f"{sim.libdir()}/libamdhip64.so",
        str(tmp_path),
    ]
    env = client_env(TILELANG_SIM_DEVICES="gfx942,gfx942")
    root = Path(__file__).resolve().parents[2]
    r = subprocess.run(cmd, capture_output=True, text=True, env=env, cwd=root, timeout=600)
    assert r.returncode == 0 and r.stdout.strip() == "bad 0", (r.stdout, r.stderr[-3000:])


FIRST = """
import importlib.abc, os, signal, sys, threading, time
sys.path.insert(0, sys.argv[1])
import fork_kernel
begun = threading.Event()
class Slow(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == sys.argv[2]:
            begun.set()
            time.sleep(0.5)
sys.meta_path.insert(0, Slow())
t = threading.Thread(target=fork_kernel.run, args=(0,))
t.start()
assert begun.wait(60)
pid = os.fork()
if pid == 0:
    signal.alarm(60)
    fork_kernel.run(1)
    os._exit(0)
_, status = os.waitpid(pid, 0)
t.join()
print("status", status)
"""


@pytest.mark.parametrize("module", ["tilelang._llvm", "tilelang.sim._trace"])
def test_fork_while_a_part_is_loaded(tmp_path, module):
    """A part that is loaded at first use is being imported by another thread when the process forks."""
    pytest.importorskip("tilelang._llvm")
    (tmp_path / "fork_kernel.py").write_text(KERNEL)
    cmd = [sys.executable, "-W", "ignore", "-c", FIRST, str(tmp_path), module]
    root = Path(__file__).resolve().parents[2]
    r = subprocess.run(cmd, capture_output=True, text=True, env=client_env(), cwd=root, timeout=200)
    assert (r.returncode, r.stdout) == (0, "status 0\n"), r.stderr[-3000:]
