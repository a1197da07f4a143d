"""Every wait and every barrier of compiled kernels, replaced by s_nop in turn, is reported; the originals are clean."""

from __future__ import annotations

import struct

import numpy as np
import pytest

import tilelang as tl
from tilelang import sim

S_NOP = 0xBF800000

# Waits and barriers that may go without harm: (kernel, text, text before) -> reason. None is known.
REDUNDANT: dict[tuple[str, str, str], str] = {}


def text_offset(elf: bytes) -> int:
    """File offset of the kernel's first instruction (one kernel a code object, at the start of .text)."""
    (shoff,) = struct.unpack_from("<Q", elf, 40)
    n, names = struct.unpack_from("<HH", elf, 60)
    sections = [struct.unpack_from("<IIQQQQIIQQ", elf, shoff + 64 * i) for i in range(n)]
    base = sections[names][4]
    for s in sections:
        end = elf.index(b"\0", base + s[0])
        if elf[base + s[0] : end] == b".text":
            return s[4]
    raise AssertionError("no .text")


def matmul(M: int, N: int, K: int, block_size: int):
    @tl.kernel
    def matmul_kernel(A: tl.Buffer[M, K], B: tl.Buffer[K, N], C: tl.Buffer[M, N]):
        pid_m = tl.program_id(0)
        pid_n = tl.program_id(1)
        local_a = tl.alloc_shared([block_size, block_size])
        local_b = tl.alloc_shared([block_size, block_size])
        acc = tl.zeros([block_size, block_size], dtype=tl.float32)
        for k in range(0, K, block_size):
            local_a[:, :] = A[pid_m * block_size : (pid_m + 1) * block_size, k : k + block_size]
            local_b[:, :] = B[k : k + block_size, pid_n * block_size : (pid_n + 1) * block_size]
            tl.sync_threads()
            acc += tl.dot(local_a, local_b)
        C[pid_m * block_size : (pid_m + 1) * block_size, pid_n * block_size : (pid_n + 1) * block_size] = acc

    return matmul_kernel


CASES = {
    "listing1": (1024, 1024, 1024, 64, np.float16),
    "listing1-128": (256, 256, 512, 128, np.float16),
    "ragged": (100, 72, 136, 64, np.float16),
    "odd": (65, 67, 129, 64, np.float16),
    "f32": (128, 128, 128, 64, np.float32),
}


@pytest.mark.parametrize("name", CASES)
def test_each_wait_and_barrier_is_needed_and_missed(name):
    m, n, k, block, dtype = CASES[name]
    rng = np.random.default_rng(11)
    a = rng.integers(-3, 4, (m, k)).astype(dtype)
    b = rng.integers(-3, 4, (k, n)).astype(dtype)
    compiled = tl.compile(matmul(m, n, k, block))
    compiled.prepare(a, b, np.zeros((m, n), dtype))
    code = compiled.asm["hsaco"]
    start = text_offset(code)
    ref = (a.astype(np.float64) @ b.astype(np.float64)).astype(dtype)[:block, :block]

    def run(elf: bytes):
        dev = sim.Device("gfx942", checks="all")
        kern = next(iter(dev.load(bytes(elf)).kernels.values()))
        out = dev.array(np.full((m, n), np.nan, dtype))
        kern.launch((1, 1, 1), (64 * compiled.resources["waves"], 1, 1), [dev.array(a), dev.array(b), out])
        return kern, out.numpy(dtype, (m, n))[:block, :block]

    kern, out = run(code)  # the original: clean and right
    np.testing.assert_array_equal(out, ref)
    dis = kern.disassembly()
    silent, tried, used = [], 0, set()
    for i, (pc, text, _) in enumerate(dis):
        if not text.startswith(("s_waitcnt", "s_barrier")):
            continue
        tried += 1
        mutant = bytearray(code)
        struct.pack_into("<I", mutant, start + pc, S_NOP)
        try:
            run(mutant)
        except tl.SimulatorFault as e:
            assert {r.check for r in e.reports} & {"wait", "race", "barrier"}, (text, e.reports)
            continue
        key = (name, text, dis[i - 1][1])
        used.add(key)
        if key not in REDUNDANT:
            silent.append((hex(pc), text, dis[i - 1][1], dis[i + 1][1]))
    print(f"{name}: {tried} waits and barriers replaced, {tried - len(silent) - len(used & set(REDUNDANT))} reported")
    assert tried >= 10
    assert not silent
    assert {k for k in REDUNDANT if k[0] == name} <= used, "a listed exception is no exception any more"
