/* ops.c - the rows of ops.def as data, look-up by name, and result types by rule. */
#include "ir/ir.h"

static const TlOpRow rows[TL_OP__COUNT] = {
    [TL_OP_NONE] = {"none", 0, 0, 0, 0, "given", TL_RULE_given, 0, "", "", ""},
#define TL_OP(name, nmin, nmax, nres, nreg, rule, traits, attrs, fold, llvm, doc)                            \
    [TL_OP_##name] = {#name, nmin, nmax, nres, nreg, #rule, TL_RULE_##rule, traits, attrs, llvm, doc},
#include "ir/ops.def"
#undef TL_OP
};

static const uint8_t name_len[TL_OP__COUNT] = {
#define TL_OP(name, ...) [TL_OP_##name] = sizeof(#name) - 1,
#include "ir/ops.def"
#undef TL_OP
};

const TlOpRow *
tl_op_row(TlOpcode c)
{
    return &rows[(uint32_t)c < TL_OP__COUNT ? c : TL_OP_NONE];
}

TlOpcode
tl_op_by_name(const char *name, size_t n)
{
    for (uint32_t i = 1; i < TL_OP__COUNT; i++)
        if (name_len[i] == n && rows[i].name[0] == name[0] && memcmp(rows[i].name, name, n) == 0)
            return (TlOpcode)i;
    return TL_OP_NONE;
}

bool
tl_op_is_pure(const TlIr *ir, TlOp o)
{
    const TlOpNode *n = tl_opn(ir, o);
    if (!(rows[n->code].traits & TL_T_PURE) || n->nregion)
        return false;
    if (n->code == TL_OP_dim || n->code == TL_OP_stride || n->code == TL_OP_trans)
        return true; /* of a shared tile: says something of it, or is a view, but reads nothing */
    for (uint32_t i = 0; i < n->nin; i++) {
        TlTypeKind k = tl_vtype(ir, n->in[i])->kind;
        if (k == TL_TY_SHARED || k == TL_TY_LOCAL || k == TL_TY_BUF)
            return false;
    }
    return true;
}

/* ---- type rules ---- */

static TlType
infer_fail(TlIr *ir, TlOpcode c, TlLoc loc, const char *want, TlType got)
{
    TlText t;
    tl_text_init(&t, ir->arena);
    tl_type_print(ir, got, &t);
    tl_error(ir->diag, loc, TL_E_TYPE,
             tl_arena_printf(ir->arena, "%s: %s, not %s", rows[c].name, want, t.failed ? "?" : t.data));
    return 0;
}

static bool
arithmetic(const TlTypeInfo *i)
{
    return i->kind == TL_TY_SCALAR || i->kind == TL_TY_INDEX || i->kind == TL_TY_TILE || i->kind == TL_TY_VEC;
}

TlType
tl_infer(TlIr *ir, TlOpcode c, const TlVal *in, uint32_t nin, TlLoc loc)
{
    const TlOpRow *row = tl_op_row(c);
    if (row->rule_id == TL_RULE_given || row->rule_id == TL_RULE_cast)
        return 0;
    if ((int)nin < row->nin_min || (row->nin_max >= 0 && (int)nin > row->nin_max)) {
        tl_error(
            ir->diag, loc, TL_E_TYPE,
            tl_arena_printf(ir->arena, "%s: %d operands wanted, %u given", row->name, row->nin_min, nin));
        return 0;
    }
    uint32_t first = row->rule_id == TL_RULE_sel ? 1 : 0;
    TlType t = tl_valn(ir, in[first])->type;
    const TlTypeInfo *ti = tl_tinfo(ir, t);
    if (!arithmetic(ti))
        return infer_fail(ir, c, loc, "operands must be numbers, tiles or vectors", t);
    for (uint32_t i = first + 1; i < nin; i++)
        if (tl_valn(ir, in[i])->type != t) {
            TlText x;
            tl_text_init(&x, ir->arena);
            tl_type_print(ir, t, &x);
            return infer_fail(ir, c, loc,
                              tl_arena_printf(ir->arena,
                                              "operands must be of one type; operand %u must be %s", i,
                                              x.failed ? "?" : x.data),
                              tl_valn(ir, in[i])->type);
        }
    TlElem e = tl_type_elem(ti);
    switch (row->rule_id) {
    case TL_RULE_same:
        return t;
    case TL_RULE_cmp:
        return tl_type_with_elem(ir, t, TL_ELEM_I1);
    case TL_RULE_float:
        return tl_elem_is_float(e) ? t : infer_fail(ir, c, loc, "operands must be floats", t);
    case TL_RULE_int:
        return tl_elem_is_float(e) ? infer_fail(ir, c, loc, "operands must be integers", t) : t;
    case TL_RULE_sel: {
        TlType ct = tl_valn(ir, in[0])->type, want = tl_type_with_elem(ir, t, TL_ELEM_I1);
        if (ct == want || ct == tl_type_scalar(ir, TL_ELEM_I1))
            return t;
        return infer_fail(ir, c, loc, "the condition must be i1 or i1 of the values' shape", ct);
    }
    case TL_RULE_cast:
    case TL_RULE_given:
        break;
    }
    return 0;
}
