"""The committed coverage page: its rows are the decoder's, the tests that it names exist."""

from __future__ import annotations

import importlib.util
import re
import sys

import isalib
import pytest


def load():
    spec = importlib.util.spec_from_file_location("isa_coverage", isalib.ROOT / "tools/isa/coverage.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["isa_coverage"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("arch", isalib.ARCHS)
def test_page_is_current(arch, isadump_exe):
    coverage = load()
    page = coverage.read_report(arch)
    rows = coverage.rows(isadump_exe, arch)
    assert set(page) == set(rows), f"run tools/isa/coverage.py: {sorted(set(page) ^ set(rows))[:10]}"
    for (name, enc), (state, test) in page.items():
        assert state in ("done", "not for compute", "missing"), (name, enc)
        assert (state == "done") == bool(test), (name, enc)
        assert state != "not for compute" or coverage.NOT_COMPUTE.match(name), (name, enc)
    for test in {t for _, t in page.values() if t}:
        file, function = test.split("::")
        text = (isalib.ROOT / "tests" / file).read_text()
        assert re.search(rf"^def {function}\b", text, re.M), f"{test} does not exist"


def test_keys_of_texts():
    keys = load().keys
    assert keys("gfx942", "v_add_f32_e32 v0, v1, v2") == [("v_add_f32", "e32")]
    assert keys("gfx942", "v_add_f32_dpp v0, v1, v2 quad_perm:[0,1,2,3]") == [("v_add_f32", "dpp")]
    assert keys("gfx1100", "v_add_f32_dpp v0, v1, v2 dpp8:[0,1,2,3,4,5,6,7]") == [("v_add_f32", "dpp8")]
    assert keys("gfx942", "buffer_load_dword off, s[4:7], 0 lds") == [("buffer_load_dword", "mubuf lds")]
    assert keys("gfx1100", "v_dual_mov_b32 v0, v1 :: v_dual_add_f32 v2, v3, v4") == [
        ("v_dual_mov_b32", "vopd x"),
        ("v_dual_add_f32", "vopd y"),
    ]
