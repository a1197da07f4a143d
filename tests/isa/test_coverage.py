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


@pytest.mark.parametrize("arch", isalib.ARCHS)
def test_no_row_is_missing(arch):
    missing = [k for k, (state, _) in load().read_report(arch).items() if state == "missing"]
    assert not missing, f"{len(missing)} rows: {missing[:20]}"


@pytest.mark.parametrize("arch", isalib.ARCHS)
def test_what_compilers_emit_is_done(arch, shared):
    """Every mnemonic that was seen in prebuilt kernels, images apart, is executed and compared in its encoding."""
    coverage = load()
    page = coverage.read_report(arch)
    lines = (shared / f"facts/mnemonics-in-the-wild.{arch}.tsv").read_text().splitlines()
    names = [line.split("\t")[0] for line in lines if line and not line.startswith(("#", "mnemonic"))]
    assert len(names) > 300
    open_rows = []
    for name in names:
        if name.startswith("image_") or name == "v_illegal":
            continue
        ((stem, enc),) = coverage.keys(arch, name)
        encodings = ("vopd x", "vopd y") if name.startswith("v_dual_") else (enc,)
        states = {page.get((stem, e), ("absent", ""))[0] for e in encodings}
        if "done" not in states:
            open_rows.append((name, enc, states))
    assert not open_rows, open_rows


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
