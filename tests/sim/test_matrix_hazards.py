"""Wait states between a matrix instruction and the next one: what LLVM 22's hazard recognizer inserts."""

from __future__ import annotations

import pytest

from tilelang.errors import SimulatorFault

sim = pytest.importorskip("tilelang.sim")

from isa_ref import encode  # noqa: E402
from llvm_mir import nops  # noqa: E402

F32_16 = "v_mfma_f32_16x16x4_f32 v[64:67], v0, v8, v[128:131]"
F64_4 = "v_mfma_f64_4x4x4_4b_f64 v[64:65], v[0:1], v[8:9], v[128:129]"
F64_16 = "v_mfma_f64_16x16x4_f64 v[64:71], v[0:1], v[8:9], v[128:135]"
F16_4 = "v_mfma_f32_4x4x4_16b_f16 v[64:67], v[0:1], v[8:9], v[128:131]"
F16_16 = "v_mfma_f32_16x16x16_f16 v[64:67], v[0:1], v[8:9], v[128:131]"
SPARSE = "v_smfmac_f32_16x16x32_f16 v[64:67], v[0:1], v[8:11], v250"
READS_F16 = "v_mfma_f32_16x16x16_f16 v[160:163], v[16:17], v[24:25], v[66:69]"
READS_F32 = "v_mfma_f32_16x16x4_f32 v[160:163], v16, v24, v[66:69]"
READS_F64 = "v_mfma_f64_16x16x4_f64 v[160:167], v[16:17], v[24:25], v[64:71]"
SPARSE_OVER = "v_smfmac_f32_16x16x32_f16 v[66:69], v[16:17], v[24:27], v251"
OLD = {  # gfx90a's spelling
    "_4x4x4_16b_f16": "_4x4x4f16",
    "_16x16x16_f16": "_16x16x16f16",
    "_16x16x4_f32": "_16x16x4f32",
    "_4x4x4_4b_f64": "_4x4x4f64",
    "_16x16x4_f64": "_16x16x4f64",
}
ROWS = [
    # C that is not the very tuple, by the kinds of both: an XDL instruction waits by itself for what is no XDL
    (F32_16, READS_F16, 0, {"gfx90a": 8}),
    (F32_16, READS_F32, 8, {}),
    (F32_16, SPARSE_OVER, 0, {"gfx90a": None}),
    (F32_16, READS_F64, 8, {"gfx90a": 9}),
    (F16_16, READS_F16, 5, {"gfx90a": 8, "gfx950": 6}),
    (F16_16, READS_F64, 5, {"gfx90a": 9, "gfx950": 6}),
    (F16_4, READS_F16, 3, {"gfx90a": 2, "gfx950": 4}),
    (F16_4, READS_F32, 3, {"gfx90a": 2}),
    (F16_4, READS_F64, 3, {}),
    (F64_4, READS_F16.replace("66:69", "64:67"), 0, {}),
    (F64_4, READS_F32.replace("66:69", "64:67"), 4, {"gfx90a": 0}),
    (F64_4, READS_F64, 4, {}),
    (F64_16, READS_F16, 0, {}),
    (F64_16, READS_F32, 9, {"gfx90a": 0, "gfx950": 17}),
    (F64_16, READS_F64.replace("64:71", "66:73"), 9, {"gfx950": 17}),
    # overwriting what is still read: C, but neither A nor the index of a sparse one
    (F16_16, "v_mov_b32_e32 v128, v240", 3, {"gfx90a": 7}),
    (F16_16, "v_mov_b32_e32 v0, v240", 0, {}),
    (SPARSE, "v_mov_b32_e32 v250, v240", 0, {"gfx90a": None}),
    (SPARSE, "v_mov_b32_e32 v0, v240", 0, {"gfx90a": None}),
    (SPARSE, "v_mov_b32_e32 v64, v240", 7, {"gfx90a": None, "gfx950": 8}),
]


def reported(arch: str, first: str, second: str, states: int) -> bool:
    state = {"v": {str(i): "0" * 512 for i in range(256)}, "exec": "f" * 16}
    texts = [first, *nops(states), second]
    code = [c for c in encode(arch, texts) if c]
    assert len(code) == len(texts), f"{arch} lacks {first} or {second}"
    try:
        sim.execute(arch, b"".join(code), state, checks="hazard")
    except SimulatorFault as fault:
        assert fault.reports[0].check == "hazard"
        return True
    return False


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize(("first", "second", "states", "other"), ROWS)
def test_states_are_llvms(arch, first, second, states, other):
    """The states that LLVM inserts are quiet, one less is reported."""
    states = other.get(arch, states)
    if states is None:
        pytest.skip("no sparse instructions on gfx90a")
    if arch == "gfx90a":
        for new, old in OLD.items():
            first, second = first.replace(new, old), second.replace(new, old)
    assert not reported(arch, first, second, states)
    assert not states or reported(arch, first, second, states - 1)
