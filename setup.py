"""Build of tilelang's native parts; setup.py writes a ninja file and lets ninja do the work.

What comes out (in place, or copied into the wheel):

- ``tilelang/_core.<abi>.so``: tracing, IR, passes, runtime and launch (no LLVM);
- ``tilelang/_llvm.<abi>.so``: code generation (LLVM >= 22 and lld);
- ``tilelang/libtilelang_sim.so``: the simulator behind the HIP API, and its forwarding libraries
  ``tilelang/lib/libamdhip64.so{,.6,.7}``;
- ``build/tlc`` and the other developer tools of csrc/tools, ``build/libtilelang_test.so`` for tests of C functions.

Use: ``pip install .``, ``pip install -e .[test]``, or for some parts
``python setup.py build_ninja --only core,llvm,sim,tools,testlib``.
Environment: ``LLVM_CONFIG`` (another LLVM), ``CC``, ``CXX``, ``TILELANG_SANITIZE=address,undefined`` (into
build-asan/), ``TILELANG_JOBS`` (default: the cores), ``TILELANG_CFLAGS`` (appended).
"""

from __future__ import annotations

import fcntl
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Command, Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import SetupError

ROOT = Path(__file__).resolve().parent
CSRC = ROOT / "csrc"
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX") or ".so"
LLVM_LEAST = 22
PARTS = ("core", "llvm", "sim", "tools", "testlib")
FORWARD_NAMES = ("libamdhip64.so", "libamdhip64.so.6", "libamdhip64.so.7")

# Folders of csrc in their order, and what each one uses.
FOLDERS = ("base", "target", "layout", "ir", "pass", "codegen", "isa", "sim", "runtime")
BELOW = {
    "target": ("base",),
    "layout": ("base", "target"),
    "ir": ("base", "target", "layout"),
    "pass": ("base", "target", "layout", "ir"),
    "codegen": ("base", "target", "layout", "ir"),
    "isa": ("base", "target"),
    "sim": ("base", "target", "isa"),
    "runtime": ("base",),
}

# Flags of sources whose name ends so: one source a host level; the choice is made at run time.
HOST_LEVELS = {
    "_avx2": ["-mavx2", "-mfma", "-mf16c", "-mbmi", "-mbmi2", "-mlzcnt", "-mpopcnt"],
    "_avx512": ["-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx512cd", "-mavx2", "-mfma", "-mf16c"]
    + ["-mbmi", "-mbmi2", "-mlzcnt", "-mpopcnt", "-mprefer-vector-width=512"],
}

NO_LLVM = """tilelang needs LLVM {least} or newer with its development files and lld's libraries, and {what}.
  On Debian: apt-get install llvm-22-dev liblld-22-dev zlib1g-dev libzstd-dev
  An LLVM elsewhere: set LLVM_CONFIG=/path/to/llvm-config"""


class BuildError(SetupError):
    """Ends the build with a message and no traceback."""


def run_text(*cmd: str) -> str:
    """Standard output of a command, stripped; OSError or CalledProcessError when it fails."""
    return subprocess.run(cmd, check=True, capture_output=True, text=True).stdout.strip()


class Llvm:
    """Where LLVM is and how to compile and link with it. Raises BuildError when none is good enough."""

    def __init__(self) -> None:
        self.config = self.find()
        self.libdir = run_text(self.config, "--libdir")
        self.cflags = ["-isystem", run_text(self.config, "--includedir")]
        self.defines = [f for f in run_text(self.config, "--cppflags").split() if f.startswith("-D")]
        try:
            libs = run_text(self.config, "--link-shared", "--libs").split()
        except subprocess.CalledProcessError:
            libs = run_text(self.config, "--link-static", "--libs").split()
            libs += run_text(self.config, "--link-static", "--system-libs").split()
        if not list(Path(self.libdir).glob("liblldELF.*")):
            raise BuildError(NO_LLVM.format(least=LLVM_LEAST, what=f"{self.libdir} has no liblldELF"))
        self.libs = [f"-L{self.libdir}", f"-Wl,-rpath,{self.libdir}", "-llldELF", "-llldCommon", *libs, "-lz", "-lzstd"]

    @staticmethod
    def find() -> str:
        """Path of a good llvm-config: $LLVM_CONFIG alone if set, else the newest found."""
        named = os.environ.get("LLVM_CONFIG")
        if named:
            try:
                version = run_text(named, "--version")
            except (OSError, subprocess.CalledProcessError) as err:
                raise BuildError(NO_LLVM.format(least=LLVM_LEAST, what=f"LLVM_CONFIG={named} does not run")) from err
            if int(version.split(".")[0]) < LLVM_LEAST:
                raise BuildError(NO_LLVM.format(least=LLVM_LEAST, what=f"LLVM_CONFIG={named} is version {version}"))
            return named
        tried = []
        for name in [f"llvm-config-{v}" for v in range(LLVM_LEAST, LLVM_LEAST + 8)] + ["llvm-config"]:
            path = shutil.which(name)
            if not path:
                continue
            try:
                version = run_text(path, "--version")
            except (OSError, subprocess.CalledProcessError):
                continue
            if int(version.split(".")[0]) >= LLVM_LEAST:
                return path
            tried.append(f"{path} is version {version}")
        what = "only found: " + ", ".join(tried) if tried else "no llvm-config was found"
        raise BuildError(NO_LLVM.format(least=LLVM_LEAST, what=what))


def ninja_path() -> str:
    """The ninja program: of the PyPI package, else on PATH."""
    try:
        import ninja

        path = Path(ninja.BIN_DIR) / "ninja"
        if path.exists():
            return str(path)
    except ImportError:
        pass
    path = shutil.which("ninja")
    if not path:
        raise BuildError("tilelang's build needs ninja: pip install ninja")
    return path


def esc(s: str | Path) -> str:
    """A path as ninja wants it."""
    return str(s).replace("$", "$$").replace(" ", "$ ").replace(":", "$:")


class NinjaFile:
    """The text of build.ninja for one configuration and the files that each part makes."""

    def __init__(self, parts: tuple[str, ...], sanitize: str) -> None:
        self.parts = parts
        self.sanitize = sanitize
        self.build = ROOT / ("build-tsan" if sanitize == "thread" else "build-asan" if sanitize else "build")
        self.package = self.build / "tilelang" if sanitize else ROOT / "tilelang"
        self.llvm: Llvm | None = None
        self.lines: list[str] = []
        self.objects: dict[tuple[str, ...], list[Path]] = {}
        self.products: dict[str, list[Path]] = {p: [] for p in PARTS}
        self.write()

    def flags(self) -> list[str]:
        out = ["-O2", "-g1", "-fPIC", "-pthread", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off"]
        out += ["-fno-semantic-interposition", "-fno-math-errno", "-Icsrc"]
        if self.sanitize:
            out += [f"-fsanitize={self.sanitize}", "-fno-omit-frame-pointer", "-fno-sanitize-recover=undefined"]
            out += ["-DTL_SANITIZE"]
        return out + shlex.split(os.environ.get("TILELANG_CFLAGS", ""))

    def write(self) -> None:
        cc = os.environ.get("CC") or ("gcc" if shutil.which("gcc") else "cc")
        cxx = os.environ.get("CXX") or ("g++" if shutil.which("g++") else "c++")
        flags = " ".join(self.flags())
        san = f"-fsanitize={self.sanitize}" if self.sanitize else ""
        self.lines += [
            "# made by setup.py",
            "ninja_required_version = 1.5",
            f"builddir = {esc(self.build)}",
            f"cc = {cc}",
            f"cxx = {cxx}",
            f"flags = {flags}",
            "rule cc",
            "  command = $cc -std=c11 $flags $extra -MD -MF $out.d -c $in -o $out",
            "  depfile = $out.d",
            "  deps = gcc",
            "  description = CC $out",
            "rule cxx",
            "  command = $cxx -std=c++17 $flags $extra -MD -MF $out.d -c $in -o $out",
            "  depfile = $out.d",
            "  deps = gcc",
            "  description = CXX $out",
            "rule link",  # through a second name: somebody may have the old file mapped, or be opening it
            f"  command = $linker {san} -pthread $in $libs -o $out.tmp && mv -f $out.tmp $out",
            "  description = LINK $out",
        ]
        if "llvm" in self.parts or (
            "tools" in self.parts and any('#include "codegen/' in p.read_text() for p in self.sources("tools"))
        ):
            self.llvm = Llvm()
        for part in self.parts:
            getattr(self, "part_" + part)()
        for part in self.parts:
            self.edge(f"build {part}: phony {' '.join(esc(p) for p in self.products[part])}")
        self.edge("default " + " ".join(self.parts))

    def edge(self, first: str, **variables: str) -> None:
        self.lines.append(first)
        self.lines += [f"  {k} = {v}" for k, v in variables.items() if v]

    @staticmethod
    def sources(folder: str) -> list[Path]:
        return sorted(CSRC.glob(f"{folder}/*.c"))

    def compile(self, source: Path, extra: list[str]) -> list[Path]:
        """Adds the compile edge of one file; nothing where the host cannot have that level."""
        rel = source.relative_to(ROOT)
        for end, level in HOST_LEVELS.items():
            if source.stem.endswith(end):
                if platform.machine() not in ("x86_64", "AMD64"):
                    return []
                extra = [*extra, *level]
        out = self.build / "obj" / rel.with_name(rel.name + ".o")
        rule = "cxx" if source.suffix == ".cc" else "cc"
        self.edge(f"build {esc(out)}: {rule} {esc(rel)}", extra=" ".join(extra))
        return [out]

    def folder(self, *names: str) -> list[Path]:
        """Objects of whole folders, compiled once however many products want them."""
        out: list[Path] = []
        for name in names:
            key = (name,)
            if key not in self.objects:
                extra = ["-O3"] if name == "sim" else []
                if name == "codegen":
                    assert self.llvm
                    extra = [*self.llvm.cflags, *self.llvm.defines]
                objs: list[Path] = []
                if name not in ("py", "tools"):
                    for src in self.sources(name):
                        objs += self.compile(src, extra)
                    for src in sorted(CSRC.glob(f"{name}/*.cc")):
                        objs += self.compile(src, [*extra, "-fno-rtti"])
                self.objects[key] = objs
            out += self.objects[key]
        return out

    def python_objects(self, names: list[str]) -> list[Path]:
        import numpy

        extra = ["-isystem", sysconfig.get_path("include"), "-isystem", numpy.get_include()]
        extra += ["-DNPY_NO_DEPRECATED_API=NPY_1_7_API_VERSION"]
        out: list[Path] = []
        for name in names:
            out += self.compile(CSRC / "py" / name, extra)
        return out

    def script(self, name: str, text: str) -> Path:
        """A linker script in the build folder, rewritten only on change."""
        path = self.build / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
        return path

    def link(
        self, part: str, out: Path, objs: list[Path], libs: list[str], linker: str = "$cc", script: Path | None = None
    ) -> None:
        out.parent.mkdir(parents=True, exist_ok=True)
        deps = ""
        if script:
            libs = [*libs, f"-Wl,--version-script={script}"]
            deps = f" | {esc(script)}"
        self.edge(f"build {esc(out)}: link {' '.join(esc(o) for o in objs)}{deps}", linker=linker, libs=" ".join(libs))
        self.products[part].append(out)

    def part_core(self) -> None:
        if not (CSRC / "py" / "module.c").exists():
            raise BuildError("csrc/py/module.c is not there")
        names = [p.name for p in self.sources("py") if p.name != "llvm_module.c"]
        objs = self.folder("base", "target", "layout", "ir", "pass", "runtime") + self.python_objects(names)
        script = self.script("core.map", "{ global: PyInit__core; local: *; };\n")
        self.link("core", self.package / f"_core{SUFFIX}", objs, ["-shared", "-ldl", "-lm"], script=script)

    def part_llvm(self) -> None:
        assert self.llvm
        if not (CSRC / "py" / "llvm_module.c").exists():
            raise BuildError("csrc/py/llvm_module.c is not there")
        objs = self.folder("base", "target", "layout", "ir", "codegen") + self.python_objects(["llvm_module.c"])
        script = self.script("llvm.map", "{ global: PyInit__llvm; local: *; };\n")
        libs = ["-shared", "-Wl,--gc-sections", *self.llvm.libs, "-lm"]
        self.link("llvm", self.package / f"_llvm{SUFFIX}", objs, libs, linker="$cxx", script=script)

    def part_sim(self) -> None:
        objs = self.folder("base", "target", "isa", "sim")
        script = CSRC / "sim" / "exports.map"
        if not script.exists():
            script = self.script("sim.map", "{ global: hip*; __hip*; __gnu_*; _Z24hip*; tlsim_*; local: *; };\n")
        sim = self.package / "libtilelang_sim.so"
        libs = ["-shared", "-Wl,-soname,libtilelang_sim.so", "-ldl", "-lm"]
        self.link("sim", sim, objs, libs, script=script)
        forward = sorted(CSRC.glob("sim/forward/*.c"))
        fobjs = [o for src in forward for o in self.compile(src, [])]
        for name in FORWARD_NAMES if forward else ():
            out = self.package / "lib" / name
            libs = ["-shared", f"-Wl,-soname,{name}", "'-Wl,-rpath,$$ORIGIN/..'"]
            fscript = CSRC / "sim" / "forward" / "exports.map"
            self.link("sim", out, [*fobjs, sim], libs, script=fscript if fscript.exists() else None)

    def part_tools(self) -> None:
        for src in self.sources("tools"):
            used = {f.split("/")[0] for f in re.findall(r'#include "(\w+/)', src.read_text())}
            used |= {low for f in used for low in BELOW.get(f, ())}
            objs = self.compile(src, []) + self.folder(*(f for f in FOLDERS if f in used))
            libs, linker = ["-ldl", "-lm"], "$cc"
            if "codegen" in used:
                assert self.llvm
                libs, linker = [*self.llvm.libs, *libs], "$cxx"
            self.link("tools", self.build / src.stem, objs, libs, linker=linker)

    def part_testlib(self) -> None:
        """All of the core and the simulator in one library with every function exported, for tests by ctypes."""
        objs = self.folder("base", "target", "layout", "ir", "pass", "runtime", "isa", "sim")
        for src in sorted(ROOT.glob("tests/clib/*.c")):
            objs = objs + self.compile(src, [])
        self.link("testlib", self.build / "libtilelang_test.so", objs, ["-shared", "-ldl", "-lm"])

    def run(self, verbose: bool) -> None:
        """Writes build.ninja and runs ninja; one build at a time in a build folder."""
        self.build.mkdir(parents=True, exist_ok=True)
        name = "build.ninja" if set(self.parts) == set(PARTS) else f"build.{'-'.join(self.parts)}.ninja"
        with open(self.build / ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            path = self.build / name
            text = "\n".join(self.lines) + "\n"
            if not path.exists() or path.read_text() != text:
                path.write_text(text)
            jobs = os.environ.get("TILELANG_JOBS") or str(len(os.sched_getaffinity(0)))
            cmd = [ninja_path(), "-C", str(ROOT), "-f", str(path), "-j", jobs, "-k", "0"]
            if verbose:
                cmd.append("-v")
            if subprocess.run(cmd).returncode:
                raise BuildError("the build of tilelang's native parts failed (see above)")
        if self.sanitize:
            self.mirror()

    def mirror(self) -> None:
        """Beside the sanitized binaries: links to the package's Python files, so that build-asan/ is importable."""
        for path in sorted((ROOT / "tilelang").rglob("*")):
            rel = path.relative_to(ROOT / "tilelang")
            if path.is_dir() or re.search(r"\.so(\.|$)", path.name) or "__pycache__" in rel.parts:
                continue
            target = self.package / rel
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.is_symlink():
                target.symlink_to(path)


class BuildNinja(Command):
    """In-place build of some or all parts: the developer's command."""

    description = "build the native parts in place with ninja"
    user_options = [
        ("only=", None, f"comma-separated parts: {', '.join(PARTS)}"),
        ("commands", None, "show the commands"),
    ]

    def initialize_options(self) -> None:
        self.only = None
        self.commands = False

    def finalize_options(self) -> None:
        self.selected = tuple(self.only.split(",")) if self.only else PARTS
        for part in self.selected:
            if part not in PARTS:
                raise BuildError(f"--only={part}: the parts are {', '.join(PARTS)}")

    def run(self) -> None:
        NinjaFile(self.selected, os.environ.get("TILELANG_SANITIZE", "")).run(self.commands)


class BuildExt(build_ext):
    """What pip calls: builds in place with ninja, then copies into the wheel's tree unless editable."""

    products = ("core", "llvm", "sim")

    def build_package(self) -> list[Path]:
        build = NinjaFile(self.products, "")
        build.run(bool(self.verbose and self.verbose > 1))
        return [p for part in self.products for p in build.products[part]]

    def run(self) -> None:
        made = self.build_package()
        if not self.inplace:
            for path in made:
                target = Path(self.build_lib) / path.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, target)

    def relative_outputs(self) -> list[str]:
        names = [f"_core{SUFFIX}", f"_llvm{SUFFIX}", "libtilelang_sim.so"]
        if list(CSRC.glob("sim/forward/*.c")):
            names += [f"lib/{n}" for n in FORWARD_NAMES]
        return [f"tilelang/{n}" for n in names]

    def get_outputs(self) -> list[str]:
        return [str(Path(self.build_lib) / n) for n in self.relative_outputs()]

    def get_output_mapping(self) -> dict[str, str]:
        if not self.inplace:
            return {}
        return {str(Path(self.build_lib) / n): n for n in self.relative_outputs()}

    def get_source_files(self) -> list[str]:
        return [str(p.relative_to(ROOT)) for p in sorted(CSRC.rglob("*")) if p.is_file()]


def packages() -> list[str]:
    """tilelang and its sub-packages."""
    found = [p.parent for p in (ROOT / "tilelang").rglob("__init__.py")]
    return sorted(".".join(p.relative_to(ROOT).parts) for p in found) or ["tilelang"]


if __name__ == "__main__":
    if sys.platform != "linux":
        raise SystemExit("tilelang builds on Linux only")
    setup(
        packages=packages(),
        package_data={"tilelang": ["*.pyi", "py.typed"]},
        ext_modules=[Extension("tilelang._core", []), Extension("tilelang._llvm", [])],
        cmdclass={"build_ext": BuildExt, "build_ninja": BuildNinja},
        zip_safe=False,
    )
