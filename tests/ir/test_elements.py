"""Pass elements: scalar accesses become loads and stores; text in, text out."""

from __future__ import annotations

import irlib
import numpy as np

HEAD = "kernel @k level tile (%C : buf<f32 [?, 4] strides [4, 1] align 4>, %i : i32, %v : f32) {\n"


def test_text():
    text = HEAD + "  %e = element %C, %i, %i : f32\n  set_element %C, %e, %i, %i\n  acc_element %C, %v, %i, %i "
    text += '{kind = "max"}\n}\n'
    assert irlib.good(text, "elements") == HEAD + (
        '  %e = load %C, %i, %i {dims = "ii"} : f32\n'
        '  store %C, %e, %i, %i {dims = "ii"}\n'
        '  %0 = load %C, %i, %i {dims = "ii"} : f32\n'
        "  %1 = max %0, %v : f32\n"
        '  store %C, %1, %i, %i {dims = "ii"}\n}\n'
    )


def test_rank_0():
    text = "kernel @k level tile (%C : buf<f32 [] strides [] align 4>, %v : f32) {\n  set_element %C, %v\n}\n"
    assert irlib.good(text, "elements") == text.replace("set_element %C, %v", 'store %C, %v {dims = ""}')


def test_same_results():
    for kind in ("sum", "prod", "max", "min"):
        text = (
            HEAD
            + "  %e = element %C, %i, %i : f32\n  %s = add %e, %v : f32\n"
            + f'  acc_element %C, %s, %i, %i {{kind = "{kind}"}}\n'
        )
        text += "  %1 = const {value = 1} : i32\n  %o = add %i, %1 : i32\n  set_element %C, %s, %i, %o\n}\n"
        for i in (-1, 0, 2, 3, 4):
            got = []
            for passes in ("", "elements"):
                c = np.arange(16, dtype=np.float32).reshape(4, 4)
                status, out = irlib.evaluate(text, [c, i, 2.0], passes=passes)
                assert status == irlib.OK, out
                got.append(c)
            assert (got[0] == got[1]).all(), (kind, i)


def test_every_allocation_may_fail():
    text = HEAD + '  acc_element %C, %v, %i, %i {kind = "sum"}\n}\n'
    assert irlib.alloc_sweep(text, "elements") > 20
