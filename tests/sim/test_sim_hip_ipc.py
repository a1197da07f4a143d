"""Memory of another process by hipIpcGetMemHandle and hipIpcOpenMemHandle."""

from __future__ import annotations

import pytest
from simlib import ADD, BUF, Arg, code_object
from simlib import hip_client as run

pytest.importorskip("tilelang.sim")

OTHER = """
class Handle(C.Structure): _fields_ = [("bytes", C.c_ubyte * 64)]
def opened(h, flags=1):
    p = P(); e = hip.hipIpcOpenMemHandle(C.byref(p), h, flags); return e or p.value
def get(p, n):
    b = (C.c_int * n)(); e = hip.hipMemcpy(b, P(getattr(p, "value", p)), C.c_size_t(4 * n), 2)
    return e or list(b)
"""

BODY = (
    OTHER
    + """
import subprocess
m, f = load(sys.argv[1]); r = {}
mem = malloc(1000); ok(hip.hipMemcpy(mem, (C.c_int * 128)(*range(128)), C.c_size_t(512), 1))
h, k = Handle(), Handle()
ok(hip.hipIpcGetMemHandle(C.byref(h), mem)); ok(hip.hipIpcGetMemHandle(C.byref(k), P(mem.value + 256)))
r["mine"] = [opened(h), get(mem, 3)]; hip.hipGetLastError()
out = malloc(256) # kernels find their values still
ok(launch(f, (1, 1, 1), (64, 1, 1), mem, out, C.c_int32(100))); ok(hip.hipDeviceSynchronize())
r["kernel"] = get(out, 2)
prelude = open("/proc/self/cmdline").read().split("\\0")[2].split("import subprocess")[0]
code = prelude + '''
h, k = [Handle.from_buffer_copy(bytes.fromhex(x)) for x in sys.argv[2:4]]; r = {}
p, q = opened(h), opened(k); r["seen"] = [get(p, 3), get(q, 3)]
m, f = load(sys.argv[1]); ok(launch(f, (1, 1, 1), (64, 1, 1), P(p), P(p + 512), C.c_int32(7)))
ok(hip.hipDeviceSynchronize())
size = C.c_size_t(); ok(hip.hipMemPtrGetInfo(P(q), C.byref(size))); r["size"] = size.value
r["free"] = hip.hipFree(P(p)); hip.hipGetLastError()
launch(f, (2, 1, 1), (64, 1, 1), P(p), P(p + 512), C.c_int32(7)); r["past"] = hip.hipDeviceSynchronize()
hip.hipDeviceReset()
hip.hipGetLastError()
r["close"] = [hip.hipIpcCloseMemHandle(P(q)), hip.hipIpcCloseMemHandle(P(q)), get(p, 1), hip.hipIpcCloseMemHandle(P(p))]
hip.hipGetLastError(); junk = Handle.from_buffer_copy(bytes(h)); junk.bytes[0] ^= 1
r["bad"] = [opened(junk), opened(h, 2), hip.hipIpcCloseMemHandle(malloc(64))]
print(json.dumps(r))
'''
def other():
    args = [bytes(h).hex(), bytes(k).hex()]
    said = subprocess.run([sys.executable, "-c", code, sys.argv[1], *args], capture_output=True, text=True)
    return json.loads(said.stdout) if said.returncode == 0 else said.stderr[-500:]
r["other"] = other(); r["after"] = get(mem.value + 512, 64)
r["kinds"] = []
pin = P(); ok(hip.hipHostMalloc(C.byref(pin), C.c_size_t(64), 0))
for p in (None, pin, P(4096)): r["kinds"].append(hip.hipIpcGetMemHandle(C.byref(k), p))
ok(hip.hipFree(mem)); r["gone"] = other()
print(json.dumps(r))
"""
)


def test_memory_of_another_process(tmp_path):
    path = tmp_path / "add.hsaco"
    path.write_bytes(code_object(ADD, (BUF, BUF, Arg(4))))
    out, err = run(BODY, path, TILELANG_SIM_CHECK="all")
    assert out["mine"] == [201, [0, 1, 2]] and out["kernel"] == [100, 101]
    other = out["other"]
    assert other["seen"] == [[0, 1, 2], [64, 65, 66]] and other["size"] == 1000 and other["free"] == 1
    assert other["past"] == 700 and other["close"] == [0, 1, [0], 0] and other["bad"] == [1, 1, 1]
    assert out["after"][:64] == [i + 7 for i in range(64)] and out["kinds"] == [1, 1, 1] and err == ""
    assert isinstance(out["gone"], str) or out["gone"]["seen"] == [1, 1]
