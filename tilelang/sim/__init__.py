"""Runs AMD GPU code objects on the bundled instruction-level simulator.

    dev = Device("gfx942", checks="all")
    module = dev.load("kernel.hsaco")
    stats = module.kernels["add"].launch(grid=(4, 1, 1), block=(256, 1, 1), args=[a, b, out, np.int32(1024)])

A program that does what it must not raises :class:`SimulatorFault`; its ``reports`` say what, where and by whom.
"""

from __future__ import annotations

from tilelang.errors import SimulatorFault
from tilelang.sim._bundle import unbundle
from tilelang.sim._device import Device, DeviceMemory, Kernel, KernelArg, Module, Report, mfma_rule
from tilelang.sim._execute import execute
from tilelang.sim._native import library_path
from tilelang.sim._trace import Trace, TraceOptions, WaveTrace, read_trace
from tilelang.sim._verify import Finding, verify

__all__ = [
    "Device",
    "DeviceMemory",
    "Finding",
    "Kernel",
    "KernelArg",
    "Module",
    "Report",
    "SimulatorFault",
    "Trace",
    "TraceOptions",
    "WaveTrace",
    "execute",
    "libdir",
    "library_path",
    "mfma_rule",
    "read_trace",
    "unbundle",
    "verify",
]


def libdir() -> str:
    """Folder with the forwarding libraries ``libamdhip64.so``, ``.so.6`` and ``.so.7``."""
    folder = library_path().parent / "lib"
    if not (folder / "libamdhip64.so").exists():
        raise FileNotFoundError(
            f"there is no {folder}/libamdhip64.so (is TILELANG_SIM_LIB set, or tilelang not built?)"
        )
    return str(folder)
