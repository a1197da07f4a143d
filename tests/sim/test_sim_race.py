"""The race shadow of global memory by itself: happens-before by program order, barriers, release and acquire; bytes."""

from __future__ import annotations

import ctypes as C
import random

import pytest

READ, WRITE, ATOMIC, ATOMIC_READ, MAYBE = range(5)
ALL, LOADS, GROUP, LATER, LATER_GROUP = range(5)  # what is handed on


class Wave(C.Structure):
    _fields_ = [
        ("workgroup", C.c_uint32),
        ("wave", C.c_uint32),
        ("interval", C.c_uint32),
        ("waited", C.c_uint32),
        ("releases", C.c_uint32),
        ("released", C.c_uint32),
        ("epoch", C.c_uint32),
        ("known", C.c_void_p),
        ("page_key", C.c_uint64 * 16),
        ("page", C.c_void_p * 16),
        ("region_key", C.c_uint64 * 4),
        ("region", C.c_void_p * 4),
        ("seen", C.c_void_p),
        ("nwaves", C.c_uint32),
        ("bound", C.c_uint32 * 2),
        ("scalar", C.c_void_p),
        ("nreplaced", C.c_uint32),
        ("replaced", C.c_uint64 * 16),
        ("later", C.c_void_p * 2),
    ]


class Hit(C.Structure):
    _fields_ = [
        ("addr", C.c_uint64),
        ("lane", C.c_uint32),
        ("workgroup", C.c_uint32),
        ("wave", C.c_uint32),
        ("pc_slot", C.c_uint32),
        ("other", C.c_uint32),
        ("behind_barrier", C.c_bool),
    ]


@pytest.fixture(scope="module")
def lib(build):
    path = build / "libtilelang_test.so"
    if not path.exists():
        pytest.skip(f"{path} is not built")
    lib = C.CDLL(str(path))
    if not hasattr(lib, "sim_race_new"):
        pytest.skip("the test library is from before the race shadow")
    lib.sim_race_new.restype, lib.sim_race_new.argtypes = C.c_void_p, [C.c_uint32]
    lib.sim_race_free.argtypes = [C.c_void_p]
    lib.sim_race_access.restype = C.c_bool
    lib.sim_race_access.argtypes = [
        C.c_void_p, C.POINTER(Wave), C.POINTER(C.c_uint64), C.c_uint64, C.c_uint32, C.c_int, C.c_uint32, C.POINTER(Hit),
    ]  # fmt: skip
    lib.sim_race_open_release.argtypes = [C.c_void_p, C.POINTER(Wave), C.c_int]
    lib.sim_race_last_store.argtypes = [C.c_void_p, C.POINTER(Wave), C.c_uint64]
    lib.sim_race_acquire_store.argtypes = [C.c_void_p, C.POINTER(Wave), C.c_uint32, C.c_int]
    lib.sim_race_release.argtypes = [C.c_void_p, C.POINTER(Wave), C.c_uint64]
    lib.sim_race_acquire.argtypes = [C.c_void_p, C.POINTER(Wave), C.c_uint64, C.c_int]
    lib.sim_race_release_loads.argtypes = [C.c_void_p, C.POINTER(Wave), C.POINTER(C.c_uint64), C.c_uint64]
    lib.sim_race_take_later.argtypes = [C.c_void_p, C.POINTER(Wave), C.c_int]
    lib.sim_race_release_lanes.argtypes = [C.c_void_p, C.POINTER(Wave), C.POINTER(C.c_uint64), C.c_uint64]
    lib.sim_race_release_group.argtypes = [C.c_void_p, C.POINTER(Wave), C.POINTER(C.c_uint64), C.c_uint64]
    lib.sim_race_acquire_group.argtypes = [C.c_void_p, C.POINTER(Wave), C.c_uint64]
    lib.sim_race_group_end.argtypes = [C.c_void_p, C.c_uint32]
    lib.sim_race_no_release.argtypes = [C.c_void_p, C.POINTER(Wave), C.c_uint64, C.c_uint32, C.c_uint32]
    lib.sim_race_barrier.argtypes = [C.POINTER(C.POINTER(Wave)), C.c_uint32]
    lib.sim_race_signal.argtypes = [C.POINTER(Wave), C.c_bool]
    lib.sim_race_wait.argtypes = [C.POINTER(Wave), C.POINTER(C.POINTER(Wave)), C.c_uint32]
    lib.sim_race_wave_end.argtypes = [C.POINTER(Wave)]
    return lib


class Program:
    """Waves that access memory; `hit` is the last race found or None."""

    def __init__(self, lib, waves: int = 4) -> None:
        self.lib, self.race, self.waves, self.hit = lib, lib.sim_race_new(waves), {}, None

    def wave(self, group: int, wave: int = 0) -> Wave:
        return self.waves.setdefault((group, wave), Wave(workgroup=group, wave=wave))

    def access(self, who, kind, addr, n=4, pc=1) -> bool:
        addrs = addr if isinstance(addr, list) else [addr]
        arr = (C.c_uint64 * 64)(*addrs)
        self.hit = Hit()
        mask = (1 << len(addrs)) - 1
        w = self.wave(*who)
        return self.lib.sim_race_access(self.race, C.byref(w), arr, mask, n, kind, pc, C.byref(self.hit))

    def release(self, who, addr, what=ALL) -> None:
        w = C.byref(self.wave(*who))
        if what == LOADS:
            self.lib.sim_race_release_loads(self.race, w, (C.c_uint64 * 64)(addr), 1)
        else:
            self.lib.sim_race_release(self.race, w, addr)

    def release_lanes(self, who, addrs) -> None:
        arr = (C.c_uint64 * 64)(*addrs)
        self.lib.sim_race_release_lanes(self.race, C.byref(self.wave(*who)), arr, (1 << len(addrs)) - 1)

    def store(self, who, addr, what=ALL) -> bool:
        """A store of which the encoding does not say that it is an atomic one, behind waits for all before it, or for
        the loads."""
        self.lib.sim_race_open_release(self.race, C.byref(self.wave(*who)), what)
        return self.access(who, MAYBE, addr)

    def saw(self, who, addr, what=ALL) -> None:
        """A coherent load or atomic at addr has completed, and (ALL) an invalidation."""
        w = C.byref(self.wave(*who))
        self.lib.sim_race_acquire_store(self.race, w, self.lib.sim_race_last_store(self.race, w, addr), what)

    def acquire(self, who, addr, what=ALL) -> None:
        self.lib.sim_race_acquire(self.race, C.byref(self.wave(*who)), addr, what)

    def release_group(self, who, addrs) -> None:
        arr = (C.c_uint64 * 64)(*addrs)
        self.lib.sim_race_release_group(self.race, C.byref(self.wave(*who)), arr, (1 << len(addrs)) - 1)

    def acquire_group(self, who, addr) -> None:
        self.lib.sim_race_acquire_group(self.race, C.byref(self.wave(*who)), addr)

    def barrier(self, group, n) -> None:
        ws = [self.wave(group, i) for i in range(n)]
        every = (C.POINTER(Wave) * n)(*[C.pointer(w) for w in ws])
        for w in ws:
            self.lib.sim_race_signal(w, True)
        self.lib.sim_race_barrier(every, n)
        for w in ws:
            self.lib.sim_race_wait(w, every, n)

    def close(self) -> None:
        for w in self.waves.values():
            self.lib.sim_race_wave_end(C.byref(w))
        self.lib.sim_race_free(self.race)


@pytest.fixture
def p(lib):
    prog = Program(lib)
    yield prog
    prog.close()


A = 0x7000_0000_1000


def test_far_workgroups_on_one_byte(p):
    assert not p.access((0,), WRITE, A, 1, pc=7)
    assert p.access((8191,), WRITE, A, 1, pc=9)
    assert (p.hit.workgroup, p.hit.wave, p.hit.pc_slot, p.hit.addr, p.hit.other) == (0, 0, 7, A, WRITE)


def test_halves_of_one_dword(p):
    assert not p.access((0,), WRITE, A, 2)
    assert not p.access((8191,), WRITE, A + 2, 2)
    assert not p.access((8191,), READ, A + 2, 2)
    assert not p.access((0,), WRITE, A, 2)
    assert p.access((3,), READ, A + 3, 1) and p.hit.workgroup == 8191
    assert p.access((3,), WRITE, A, 4)


def test_readers_do_not_race(p):
    for g in range(10):
        for w in range(4):
            assert not p.access((g, w), READ, [A + 4 * i for i in range(64)])
    assert p.access((10,), WRITE, A + 8)


def test_write_after_two_groups_read(p):
    assert not p.access((1,), READ, A)
    assert not p.access((2,), READ, A)
    assert p.access((2,), WRITE, A)  # group 1 read it too, though group 2 is the last reader


def test_waves_and_barriers(p):
    assert not p.access((0, 0), WRITE, A)
    assert p.access((0, 1), READ, A)
    p.barrier(0, 2)
    assert not p.access((0, 1), READ, A)
    assert p.access((0, 0), WRITE, A)
    p.barrier(0, 2)
    assert not p.access((0, 0), WRITE, A)


def test_two_waves_read_then_one_writes(p):
    assert not p.access((0, 0), READ, A)
    assert not p.access((0, 1), READ, A)
    assert p.access((0, 1), WRITE, A)


def test_atomics(p):
    for g in range(5):
        assert not p.access((g,), ATOMIC, A)
    assert not p.access((9,), ATOMIC_READ, A)
    assert p.access((6,), READ, A)
    assert p.access((7,), WRITE, A)


def test_release_acquire(p):
    flag = A + 4096
    assert not p.access((0,), WRITE, A)
    assert not p.access((0,), ATOMIC, flag)
    p.release((0,), flag)
    assert not p.access((5,), ATOMIC_READ, flag)
    assert p.access((5,), READ, A)  # no acquire yet
    p.acquire((5,), flag)
    assert not p.access((5,), READ, A)
    assert not p.access((5,), WRITE, A)
    assert p.access((6,), READ, A)  # another group has acquired nothing


def test_an_atomic_hands_the_store_under_it_on_at_once(p):
    """Where stores hide that they are atomic: 0 unlocks by a store, 1 finds the lock free, and before 1 can look whose
    store that was, the failing atomic of 2 lies over it."""
    lock = [A + 4096 + 4 * i for i in range(20)]
    p.access((0,), WRITE, A)
    assert not p.store((0,), lock)
    assert not p.access((2,), ATOMIC, lock)
    p.acquire((1,), lock[0])
    assert not p.access((1,), READ, A)
    p.acquire((3,), lock[19])
    assert not p.access((3,), READ, A)
    assert p.access((4,), READ, A)


def test_who_saw_a_store_may_store_over_it(p):
    """Where stores hide that they are atomic: 1 waits for a flag (or its atomic is noted before the store that it sees)
    and sets it back; what 0 does after its store is not ordered."""
    flag, other = A + 4096, A + 8192
    p.access((0,), WRITE, A)
    assert not p.access((1,), ATOMIC, flag)
    assert not p.store((0,), flag)
    p.access((0,), WRITE, A + 4)
    p.saw((1,), flag)
    assert not p.access((1,), READ, A)
    assert not p.store((1,), flag)
    assert p.access((1,), READ, A + 4)
    assert not p.access((0,), MAYBE, other)  # what came before it is under way
    p.saw((1,), other)
    assert p.access((1,), READ, A + 4)
    p.saw((0,), flag)
    assert not p.store((0,), flag)
    assert p.store((2,), flag)


@pytest.mark.parametrize(("released", "acquired"), [(ALL, LOADS), (LOADS, ALL), (LOADS, LOADS)])
@pytest.mark.parametrize("hidden", [False, True])
def test_who_knows_of_loads_alone_may_store_over_what_was_loaded(p, released, acquired, hidden):
    """A chain of three workgroups of which one part lacks the write-back or the invalidation."""
    flags = A + 4096, A + 8192
    wave = (0, 3)  # its loads come before a barrier, wave 0 raises the flag
    assert not p.access(wave, READ, A) and not p.access((0, 0), READ, A + 4)
    p.barrier(0, 4)
    p.access((0, 0), WRITE, A + 8)
    for who, flag in zip(((0, 0), (1, 0)), flags, strict=True):
        if hidden:
            assert not p.store(who, flag, released)
            p.saw((who[0] + 1, 0), flag, acquired)
        else:
            p.release(who, flag, released)
            p.acquire((who[0] + 1, 0), flag, acquired)
    assert not p.access((0, 0), READ, A + 12)  # after its flag
    for at in (A, A + 4):
        assert not p.access((2, 0), WRITE, at)
        assert p.access((3, 0), WRITE, at)  # who has seen no flag
    assert p.access((2, 0), WRITE, A + 12)
    assert p.access((2, 0), READ, A + 8)  # what was stored is another matter
    assert p.access((2, 0), WRITE, A + 8)


def test_what_is_put_off(p):
    """Known no sooner than it is taken, and then all of it; the workgroup's own apart from the device's."""
    flags = [A + 4096, A + 8192, A + 12288]
    for i, f in enumerate(flags):
        assert not p.access((i, 0), WRITE, A + 4 * i)
        p.release((i, 0), f)
    assert not p.access((9, 1), WRITE, A + 16)
    p.release_group((9, 1), flags)
    for f in flags:
        p.acquire((9, 0), f, LATER)
        p.acquire((9, 0), f, LATER_GROUP)
    assert all(p.access((7 + 3 * i, 0), READ, A + 4 * i) for i in range(3))
    w = C.byref(p.wave(9, 0))
    p.lib.sim_race_take_later(p.race, w, LATER_GROUP)
    assert not p.access((9, 0), READ, A + 16)
    assert p.access((9, 0), READ, A)
    p.lib.sim_race_take_later(p.race, w, LATER)
    assert not any(p.access((9, 0), READ, A + 4 * i) for i in range(3))
    p.lib.sim_race_take_later(p.race, w, LATER)  # nothing is left


def test_what_comes_after_the_release_is_not_covered(p):
    flag = A + 4096
    p.access((0,), ATOMIC, flag)
    p.release((0,), flag)
    assert not p.access((0,), WRITE, A)
    p.acquire((5,), flag)
    assert p.access((5,), READ, A)


def test_release_covers_the_group_up_to_its_barrier(p):
    flag = A + 4096
    p.access((0, 1), WRITE, A)
    p.access((0, 2), WRITE, A + 4)
    p.barrier(0, 4)
    p.access((0, 2), WRITE, A + 8)  # after the barrier: another wave's, not covered
    p.access((0, 0), ATOMIC, flag)
    p.release((0, 0), flag)
    p.acquire((1, 0), flag)
    assert not p.access((1, 0), READ, A) and not p.access((1, 0), READ, A + 4)
    assert p.access((1, 0), READ, A + 8)
    assert p.access((1, 1), READ, A)  # another wave, before a barrier of its group
    p.barrier(1, 2)
    assert not p.access((1, 1), READ, A + 4)


def test_chain(p):
    """0 -> 1 -> 2: what 1 acquired is released on."""
    f1, f2 = A + 4096, A + 8192
    p.access((0,), WRITE, A)
    p.release((0,), f1)
    p.acquire((1,), f1)
    p.release((1,), f2)
    p.acquire((2,), f2)
    assert not p.access((2,), WRITE, A)


PAGE = [[A + 1024 * k + 16 * i for i in range(64)] for k in range(4)]


def test_releases_within_a_workgroup(p):
    """Seen by its waves alone, through that address alone; workgroup numbers 2^17 apart are two; nothing of it is kept
    when the workgroup has ended."""
    groups = (3, 3 + 2**17)
    for group in groups:
        assert not p.access((group, 0), WRITE, A + 4 * (group > 3))
        p.release_group((group, 0), [A + 4096 + 8 * i for i in range(64)])
        p.acquire_group((group, 1), A + 4096 + 8 * 63)
        assert not p.access((group, 1), READ, A + 4 * (group > 3))
        p.acquire_group((group, 2), A + 4100)
        assert p.access((group, 2), READ, A + 4 * (group > 3))
    for other in ((3 + 2**17, 3), (4, 0)):
        p.acquire_group(other, A + 4096)
        p.acquire(other, A + 4096)
        assert p.access(other, READ, A) and p.hit.workgroup == 3
    for group in range(100, 500):
        p.wave(group, 0), p.wave(group, 1)  # what the test itself needs
    before = heap()
    for group in range(100, 500):
        p.acquire_group((group, 1), A)
        for i in range(200):
            p.release_group((group, 0), [A + 4 * i])
        p.acquire_group((group, 1), A)
        p.lib.sim_race_group_end(p.race, group)
        p.lib.sim_race_wave_end(C.byref(p.wave(group, 1)))
    assert heap() - before < 1 << 17  # of 80,000 releases
    for group in groups:
        p.lib.sim_race_group_end(p.race, group)
    p.acquire_group((3, 2), A + 4096)
    assert p.access((3, 2), READ, A)


@pytest.mark.parametrize("page", ["sparse", "dense", "either", "apart", "lone"])
@pytest.mark.parametrize("lanes", [1, 6, 64])
def test_random_programs_against_vector_clocks(lib, lanes, page):
    """No false report on small random programs, and next to no race missed (an earlier one of several readers may
    be, once the writer has acquired something: the header says so). On a page of which little is touched, on one that
    was read as a whole before, where that happens underway, where lanes lie apart, over several regions, and among
    many lone elements."""
    seed = 11
    print(f"seed {seed}")
    rng = random.Random(seed)
    races = clean = planted = 0
    for _ in range(1500 if lanes == 1 else 700 if page == "apart" else 400):
        p = Program(lib, rng.choice([0, 1, 4]))
        groups, nw = rng.choice([1, 2, 3]), rng.choice([1, 2])
        clock = {(g, w): {(g, w): 1} for g in range(groups) for w in range(nw)}
        sync: dict[int, dict] = {}
        loads = {who: {} for who in clock}  # the same of what is known of loads alone
        sync_loads: dict[int, dict] = {}
        last: dict[int, list] = {}  # byte -> [(who, time, kind)]
        apart = [rng.choice([3, 5, 9, 24, 30, 66, 132, 1000, 4096, 5001]) for _ in range(2)]

        def join(a, b):
            for k, v in b.items():
                a[k] = max(a.get(k, 0), v)

        if page == "dense":
            for part in PAGE:
                assert not p.access((0, 0), READ, part, 16)
            last = {A + i: [((0, 0), 1, READ)] for i in range(4096)}
        for _ in range(rng.choice([1, 2, 4, 20]) if page == "lone" else 0):
            n = rng.choice([1, 1, 2, 4])
            part = [A + n * x for x in rng.sample(range(rng.choice([4096, 2**15, 2**19]) // n), 64)]
            if not any(x + i in last for x in part for i in range(n)):
                who = rng.choice(list(clock))
                assert not p.access(who, WRITE, part, n)
                last |= {x + i: [(who, 1, WRITE)] for x in part for i in range(n)}
        for _ in range(rng.randrange(2, 14)):
            who = rng.choice(list(clock))
            act = rng.random()
            if act < 0.15:
                g = who[0]
                p.barrier(g, nw)
                merged: dict = {}
                for w in range(nw):
                    join(merged, clock[g, w])
                for w in range(nw):
                    clock[g, w] = dict(merged)
                    clock[g, w][g, w] = clock[g, w].get((g, w), 0) + 1
                merged = {}
                for w in range(nw):
                    join(merged, loads[g, w])
                for w in range(nw):
                    loads[g, w] = dict(merged)
            elif act < 0.3:
                f, what = A + 65536 + 4 * rng.randrange(2), rng.choice([ALL, LOADS])
                p.release(who, f, what)
                if what == ALL:
                    join(sync.setdefault(f, {}), clock[who])
                join(sync_loads.setdefault(f, {}), loads[who])
                join(sync_loads[f], clock[who])
                clock[who][who] += 1
            elif act < 0.45:
                f, what = A + 65536 + 4 * rng.randrange(2), rng.choice([ALL, LOADS])
                p.acquire(who, f, what)
                if what == ALL:
                    join(clock[who], sync.get(f, {}))
                join(loads[who], sync_loads.get(f, {}))
            else:
                kind = rng.choice([READ, READ, WRITE])
                n = rng.choice([1, 2, 4] if lanes == 1 else [1, 2, 4, 8, 16])
                at = [A + rng.randrange(0, max(8 // n, 1)) * n]
                step = rng.choice([0, n, n, n, 2 * n, rng.randrange(40)])
                for _ in range(rng.randrange(lanes)):  # lanes in a row, apart, overlapping, at one place
                    at.append(at[-1] + (step if rng.random() < 0.9 else rng.randrange(40)))
                if page == "apart" and rng.random() < 0.9:
                    step, n = rng.choice(apart) * rng.choice([1, 1, -1]), rng.choice([1, 1, 2, 4])
                    first = A + 0x40000 * (step < 0) + rng.choice([0, 0, 1, 4, *apart]) + apart[0] * rng.randrange(3)
                    at = [first + step * i for i in range(lanes) if i < 3 or lanes < 9 or rng.random() < 0.95]
                if page == "lone" and rng.random() < 0.9:
                    near = [x + rng.choice([0, 0, 0, 1, -1, 4]) for x in rng.sample(sorted(last), 64)]
                    at = [x // n * n if rng.random() < 0.8 else x for x in near[: rng.choice([1, 2, lanes])]]
                    if rng.random() < 0.5:
                        mine = [x for x, k in last.items() if all(clock[who].get(o, 0) >= t for o, t, _ in k)]
                        at = rng.sample(mine, min(len(mine), lanes)) or at
                        n = n if not mine else 1
                if page == "either" and rng.random() < 0.2:
                    kind, n, at = rng.choice([READ, WRITE]), 16, PAGE[rng.randrange(2)]
                bad = set()
                for b in {x + i for x in at for i in range(n)}:
                    for other, time, k in last.get(b, []):
                        known = max(clock[who].get(other, 0), loads[who].get(other, 0) if k == READ else 0)
                        if (k == WRITE or kind == WRITE) and known < time:
                            bad.add(b)
                want = bool(bad)
                for b in {x + i for x in at for i in range(n)}:
                    last.setdefault(b, []).append((who, clock[who][who], kind))
                got = p.access(who, kind, at, n)
                if got:
                    hit = p.hit
                    assert want, "a false report"
                    assert hit.addr in bad, "a race, but not there"
                    assert at[hit.lane] <= hit.addr < at[hit.lane] + n
                if want:
                    planted += 1
                    races += got
                    break  # after a race the shadow keeps only the newer access
                assert not got
                clean += 1
        p.close()
    print(f"{races} of {planted} races reported, {clean} ordered accesses clean")
    assert planted > 100 and clean > 500 and races >= 0.97 * planted


class Mallinfo(C.Structure):
    _fields_ = [
        (n, C.c_size_t) for n in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    ]


def heap() -> int:
    fn = C.CDLL(None).mallinfo2
    fn.restype = Mallinfo
    m = fn()
    return m.uordblks + m.hblkhd


SPARSE = {
    **{f"dword-in-{k}": (4, [4 * k * i for i in range(2**22 // (4 * k))]) for k in (1, 2, 3, 8, 16, 33, 100)},
    "half-in-2": (2, [4 * i for i in range(2**18)]),
    "byte-in-4": (1, [4 * i + 3 for i in range(2**18)]),
    "random": (4, [4 * x for x in random.Random(5).sample(range(2**22), 2**15)]),
    "random-halves": (2, [2 * x for x in random.Random(5).sample(range(2**22), 2**15)]),
    "random-bytes": (1, [x for x in random.Random(5).sample(range(2**24), 2**16)]),
    **{f"byte-in-{k}": (1, [k * i for i in range(2**16)]) for k in (3, 9, 30, 64, 1000)},
    **{f"half-in-{k}": (2, [2 * k * i for i in range(2**15)]) for k in (3, 5, 33)},
    "byte-columns": (1, [(i & 511) * 1024 + (i >> 9) for i in range(2**19)]),
    "upwards": (4, [132 * (64 * (i // 64) + 63 - i % 64) for i in range(2**15)]),
}
LANE = {"lane-dwords": 4, "lane-dword-in-33": 132}
SPARSE |= {name: (4, [k * i for i in range(2**16)]) for name, k in LANE.items()}


@pytest.mark.parametrize("pattern", SPARSE)
def test_shadow_of_patterns(p, pattern):
    """At most four bytes of shadow for each byte read and written (five and a half where the place of each byte is
    to be told), by waves of different workgroups, also where waves come back to what others touched; races are seen
    there."""
    n, at = SPARSE[pattern]
    lanes, groups = (1, len(at)) if pattern in LANE else (64, 500)
    waves = [(i // lanes % groups, at[i : i + lanes]) for i in range(0, len(at), lanes)]
    p.access((1000,), READ, A - 2**24)
    for group, _ in waves:
        p.wave(group)
    before = heap()
    for kind, pc in ((READ, 3), (WRITE, 4)):
        for group, part in waves:
            assert not p.access((group,), kind, [A + x for x in part], n, pc)
    grown = heap() - before
    print(f"{grown / (n * len(at)):.2f} bytes of shadow a byte")
    assert grown <= (5.5 if pattern == "random-bytes" else 4) * n * len(at)
    touched = set(at)
    for i in (0, 7, len(at) - 1):
        assert p.access((777,), READ, A + at[i], n)
        assert (p.hit.workgroup, p.hit.pc_slot, p.hit.addr) == (i // lanes % groups, 4, A + at[i])
    assert p.access((778,), WRITE, [A + x for x in waves[-1][1]], n) and p.hit.lane == 0
    if n < 4:
        free = [A + (x ^ n) for x in waves[5][1] if x ^ n not in touched]
        assert not free or not p.access((779,), WRITE, free, n)


@pytest.mark.parametrize("spread", [1, 5000])
def test_each_of_many_lone_elements(p, spread):
    """Bytes, halves and dwords at random places, each touched by a wave alone or by two after each other (release,
    acquire), of numbers near each other or not: an access by another wave races with each of them, is told which it
    is, who touched it last and where; one that lies beside them all races with nothing."""
    seed = 9
    print(f"seed {seed}, distance of workgroups {spread}")
    rng = random.Random(seed)
    last: dict[int, tuple[int, int, int]] = {}  # byte -> workgroup, instruction, width
    for i in range(400):
        n, group = rng.choice([1, 1, 2, 4]), spread * (i + 1)
        part = [A + n * x for x in rng.sample(range(2**19 // n), 64)]
        part = [x for x in part if not any(x + k in last for k in range(n))]
        kinds = rng.choice([[READ], [WRITE], [READ, WRITE], [WRITE, READ]])
        for kind in kinds:
            assert not p.access((group,), kind, part, n, 2 + kind)
        last |= {x + k: (group, 2 + max(kinds), n) for x in part for k in range(n)}
        if i % 3 == 0:
            p.release((group,), A - 4096)
            p.acquire((group + 1,), A - 4096)
            assert not p.access((group + 1,), WRITE, part[::2], n, 7)
            last |= {x + k: (group + 1, 7, n) for x in part[::2] for k in range(n)}
    beside = [x for x in rng.sample(range(A, A + 2**19), 4000) if x not in last]
    for i in range(0, len(beside), 64):
        assert not p.access((2**21 + i,), WRITE, beside[i : i + 64], 1)
    found = rest = 0
    for byte, (group, pc, n) in last.items():
        wide = rng.choice([1, n]) if byte % n == 0 else 1
        if byte % n and rest:
            rest -= 1
            continue
        rest = wide - 1
        assert p.access((2**22,), WRITE, byte, wide)
        assert (p.hit.workgroup, p.hit.pc_slot, p.hit.addr) == (group, pc, byte)
        found += 1
    print(f"{found} races")
    assert found > 10000


def lone_bytes(p, rng, seed_pc=3) -> list[int]:
    """Bytes of one region, each apart from the rest, written by workgroups 1 to 8."""
    at = [A + 64 * x + rng.randrange(64) for x in sorted(rng.sample(range(4096), 512))]
    rng.shuffle(at)
    for i in range(0, 512, 64):
        assert not p.access((1 + i // 64,), WRITE, at[i : i + 64], 1, seed_pc + i // 64)
    return at


def test_teeth_over_lone_bytes(p):
    """Elements at equal distances over bytes that other waves wrote alone, and the other way round: a race is told just
    where there is one, and the last writer of every byte is known in the end."""
    seed = 6
    print(f"seed {seed}")
    rng = random.Random(seed)
    at = lone_bytes(p, rng)
    owner = {x: 1 + i // 64 for i, x in enumerate(at)}
    seen = [0, 0]
    for group in range(100, 300):
        step, n = rng.choice([33, 66, 1000, 1028, 3000, 4096]), rng.choice([1, 2, 4])
        first = (rng.choice(at) & -n) - step * rng.choice([0, 3, -3, -1]) + rng.choice([0, 0, 8])
        part = [x for x in range(first, first + 64 * step, step) if A <= x < A + 2**18 - 4]
        if group % 4 == 0:
            part = [A + n * x for x in rng.sample(range(2**18 // n), 64)]
        part = part[: rng.choice([3, 4, 8, 64])]
        bad = {x + k for x in part for k in range(n)} & set(owner)
        assert p.access((group,), WRITE, part, n, 20) == bool(bad)
        assert not bad or (p.hit.addr in bad and p.hit.workgroup == owner[p.hit.addr])
        owner |= {x + k: group for x in part for k in range(n)}
        seen[bool(bad)] += 1
    for byte, group in owner.items():
        assert p.access((2**20,), READ, byte, 1) and (p.hit.workgroup, p.hit.addr) == (group, byte)
    print(f"{seen[0]} clean, {seen[1]} races, {len(owner)} bytes")
    assert min(seen) > 20


@pytest.mark.parametrize("how", [READ, WRITE])
def test_whole_pages_over_lone_bytes(p, how):
    """One who knows of them all reads or writes all of their pages; then each of them is known still, or hidden."""
    at = lone_bytes(p, random.Random(7))
    for group in range(1, 9):
        p.release((group,), A - 4096 + 4 * group)
        p.acquire((50,), A - 4096 + 4 * group)
    for part in range(A, A + 2**18, 1024):
        assert not p.access((50,), how, list(range(part, part + 1024, 16)), 16, 11)
    for i, byte in enumerate(at):
        assert p.access((70 + i,), READ, byte, 1)
        assert (p.hit.workgroup, p.hit.pc_slot) == ((50, 11) if how == WRITE else (1 + i // 64, 3 + i // 64))


def test_stores_of_lone_dwords_are_seen(p):
    """Stores that may be atomic, many and far apart: who sees one knows what its wave did before, no other's."""
    rng = random.Random(8)
    flags = [A + 4 * x for x in rng.sample(range(2**16), 600)]
    for i, flag in enumerate(flags):
        assert not p.access((1 + i,), WRITE, A + 2**24 + 4 * i) and not p.store((1 + i,), flag)
    for i, flag in enumerate(flags):
        p.saw((5000 + i,), flag)
        assert not p.access((5000 + i,), READ, A + 2**24 + 4 * i)
        assert p.access((5000 + i,), READ, A + 2**24 + 4 * ((i + 1) % 600))


def test_each_byte_of_blocks_by_a_wave_of_its_own(p):
    """Among lone bytes, all 64 bytes of some blocks, in any order."""
    rng = random.Random(9)
    lone_bytes(p, rng)
    start = A + 2**18
    p.access((0,), WRITE, [start + 4096 + 64 * i + i for i in range(0, 128, 2)], 1)
    bytes_ = rng.sample(range(start, start + 4096), 4096)
    for i, byte in enumerate(bytes_):
        assert not p.access((10 + i,), WRITE, byte, 1, 5)
    for i, byte in enumerate(bytes_):
        assert p.access((10**5,), READ, byte, 1) and (p.hit.workgroup, p.hit.addr) == (10 + i, byte)


def test_bytes_of_one_dword_by_four_waves(p):
    """Each byte column is another wave's: no race; the next wave over races with each."""
    for w in range(4):
        assert not p.access((w,), WRITE, [A + 4 * i + w for i in range(64)], 1, pc=w + 1)
    for w in range(4):
        assert p.access((9 + w,), READ, [A + 4 * i + w for i in range(64)], 1)
        assert (p.hit.workgroup, p.hit.pc_slot, p.hit.addr, p.hit.lane) == (w, w + 1, A + w, 0)
    assert p.access((20,), WRITE, A + 128, 4) and p.hit.addr == A + 128


def test_random_releases_of_many_lanes(lib):
    """A reader knows just what was released through the address that it acquires, whichever lanes of whose atomics went
    there before."""
    seed = 3
    print(f"seed {seed}")
    rng = random.Random(seed)
    seen = [0, 0]
    for _ in range(60):
        p, n = Program(lib, rng.choice([0, 1, 4])), rng.choice([2, 5, 9])
        clock = [{g: 0 for g in range(n)} for _ in range(n)]
        flags: dict[int, dict[int, int]] = {}
        data = A + 2**24
        for k in range(rng.choice([0, 1, 3])):  # lone ones, by waves that know nothing
            at = [A + 4 * x + rng.choice([0, 0, 0, 1]) for x in rng.sample(range(rng.choice([100, 2**14])), 64)]
            k %= n
            assert clock[k][k] or not p.access((k,), WRITE, data + 4096 * k + 4)
            p.release_lanes((k,), at)
            clock[k][k] = 1
            for a in at:
                flags[a] = {i: max(clock[k][i], flags.get(a, {}).get(i, 0)) for i in range(n)}
        for _ in range(60):
            g = rng.randrange(n)
            if rng.random() < 0.5:
                clock[g][g] += 1
                assert not p.access((g,), WRITE, data + 4096 * g + 4 * clock[g][g])
                first, step, odd = (
                    rng.randrange(rng.choice([40, 2**14])),
                    rng.choice([0, 1, 2, 17, 17, -17, 34]),
                    rng.choice([0, 0, 1]),
                )
                first += 4000 * (step < 0)
                at = [A + 4 * (first + step * i) + rng.choice([0, 0, 0, odd]) for i in range(rng.choice([1, 2, 7, 64]))]
                p.release_lanes((g,), at)
                for a in set(at):
                    old = flags.get(a, {})
                    flags[a] = {k: max(clock[g][k], old.get(k, 0)) for k in range(n)}
            else:
                a = rng.choice(list(flags) or [A])
                p.acquire((g,), a)
                clock[g] = {k: max(v, flags.get(a, {}).get(k, 0)) for k, v in clock[g].items()}
                k = rng.randrange(n)
                for t in {clock[g][k], clock[k][k]} - {0}:
                    late = t > clock[g][k]
                    assert p.access((g,), READ, data + 4096 * k + 4 * t) == late
                    seen[late] += 1
        p.close()
    print(f"{seen[0]} ordered, {seen[1]} races")
    assert min(seen) > 200


@pytest.mark.parametrize(("apart", "lanes", "most"), [(4, 64, 4), (132, 64, 4), (4, 1, 3), (132, 1, 3)])
def test_shadow_of_atomics(p, apart, lanes, most):
    """Dwords under atomics each of which is a release, where they are of whole waves by two waves each: at most four
    bytes a byte; where each is of a wave of its own, three."""
    p.access((2**17,), READ, A - 2**24)
    p.lib.sim_race_no_release(p.race, C.byref(p.wave(2**17)), A, 1, 3)
    n = 2**18 if lanes > 1 else 2**16
    parts = [[A + apart * (i + k) for k in range(lanes)] for i in range(0, n, lanes)]
    groups = [(i % 400, 500 + i % 7) if lanes > 1 else (i,) for i in range(len(parts))]
    for who in groups:
        for group in who:
            p.wave(group)
    before = heap()
    for who, at in zip(groups, parts, strict=True):
        for group in who:
            assert not p.access((group,), ATOMIC, at)
            p.release_lanes((group,), at)
            p.lib.sim_race_no_release(p.race, C.byref(p.wave(group)), at[-1], 1, 3)
    grown = heap() - before
    print(f"{grown / (4 * n):.2f} bytes of shadow a byte")
    assert grown <= most * 4 * n


@pytest.mark.parametrize("first", ["columns", "rows"])
def test_shadow_of_bytes_by_rows_and_by_columns(p, first):
    """A matrix of bytes, read by rows and written by columns of sixteen waves, a barrier between: of every dword bytes
    belong to four waves. Four bytes a byte at most; a race names the byte, its wave and its lane."""
    rows, row, waves = 256, 1024, 16
    by_rows = [(i % waves, [A + 256 * i + 4 * k for k in range(64)]) for i in range(rows * row // 256)]
    by_columns = [
        (c % waves, [A + (r + k) * row + c for k in range(64)]) for c in range(row) for r in range(0, rows, 64)
    ]
    for wave, kind in enumerate((READ, READ, WRITE)):  # what is there once
        p.barrier(0, waves)
        p.access((0, wave), kind, A - 2**24)
    start = heap()
    for phase in (["rows", "columns"] if first == "rows" else ["columns", "rows"]) * 2:
        for wave, at in by_rows if phase == "rows" else by_columns:
            how = (READ, at, 4, 5) if phase == "rows" else (WRITE, at, 1, 6)
            assert not p.access((0, wave), *how)
        p.barrier(0, waves)
    grown = heap() - start
    print(f"{grown / (rows * row):.2f} bytes of shadow a byte")
    assert grown <= 4 * rows * row
    for x in (7, 77, 5 * row + 258):
        assert p.access((2,), READ, [A + x - 3, A + x - 2, A + x - 1, A + x], 1)
        assert (p.hit.workgroup, p.hit.wave, p.hit.pc_slot) == (0, (x - 3) % row % waves, 6)
        assert (p.hit.addr, p.hit.lane) == (A + x - 3, 0)
