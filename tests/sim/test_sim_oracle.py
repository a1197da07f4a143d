"""The outside kernels run right and clean under all checks; every planted fault is reported by the right check."""

from __future__ import annotations

import pytest
import simlib

sim = pytest.importorskip("tilelang.sim")
native = pytest.importorskip("tilelang.sim._native")

ARCHS = [a for a in simlib.MACH if sim.library_path().exists() and native.library().tlsim_arch_available(a.encode())]


def cases(what: str) -> list[tuple[str, str]]:
    """(architecture, name) of what there is for the architectures that are implemented."""
    found = []
    for arch in ARCHS:
        paths = simlib.SHARED.glob(f"oracle/kernels/*.{arch}.json" if what == "kernels" else f"oracle/faults/*.{arch}")
        found += sorted((arch, p.name.split(".")[0]) for p in paths)
    return found


KERNELS, FAULTS = cases("kernels"), cases("faults")
if not KERNELS:
    pytest.skip("the outside test data is not there", allow_module_level=True)


@pytest.fixture(scope="module")
def device():
    return {(a, c): sim.Device(a, checks=c, threads=1) for a in ARCHS for c in ("none", "all")}


@pytest.mark.parametrize("checks", ["none", "all"])
@pytest.mark.parametrize("arch, name", KERNELS)
def test_kernel(device, arch, name, checks):
    folder = simlib.SHARED / "oracle/kernels"
    desc = simlib.load_json(folder / f"{name}.{arch}.json")
    run = simlib.run_oracle(device[arch, checks], desc, folder / desc["hsaco"])
    assert run.fault is None, str(run.fault)
    assert not run.wrong, run.wrong


@pytest.mark.parametrize("arch, name", FAULTS)
def test_clean_twin(device, arch, name):
    folder = simlib.SHARED / f"oracle/faults/{name}.{arch}"
    desc = simlib.load_json(folder / "clean.json")
    run = simlib.run_oracle(device[arch, "all"], desc, folder / desc["hsaco"])
    assert run.fault is None, str(run.fault)
    assert not run.wrong, run.wrong


@pytest.mark.parametrize("arch, name", FAULTS)
def test_mutants(device, arch, name):
    folder = simlib.SHARED / f"oracle/faults/{name}.{arch}"
    there = set(device[arch, "all"].checks)
    missed, skipped, seen = [], [], 0
    for path in sorted(folder.glob("*.json")):
        if path.name == "clean.json":
            continue
        mutant = simlib.load_json(path)
        base = simlib.load_json(folder / mutant["base"])
        want = simlib.CHECKS_OF[mutant["fault"]["class"]]
        if not want & there:
            skipped.append(path.stem)
            continue
        seen += 1
        run = simlib.run_oracle(device[arch, "all"], base, folder / mutant["hsaco"], mutant.get("buffer_overrides"))
        mine = [r for r in run.fault.reports if r.check in want] if run.fault else []
        if not mine:
            found = sorted({r.check for r in run.fault.reports}) if run.fault else "nothing"
            missed.append(f"{path.stem}: {found} reported, expected {sorted(want)}")
        # an undefined value is reported where it takes effect, the victims are the loads that bring it
        victims = {v["offset"] for v in mutant["fault"].get("victims", ())}
        if victims and "init" not in want and not any(r.pc in victims for r in mine):
            missed.append(f"{path.stem}: no report at the victims {sorted(victims)}: {[r.pc for r in mine]}")
    print(f"{name}: {seen - len(missed)} of {seen} reported, {len(skipped)} need a check that is not there")
    assert not missed, "\n".join(missed)
    if not seen:
        pytest.skip(f"needs checks that are not there: {', '.join(skipped)}")
