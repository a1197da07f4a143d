/* isa_print_const.c - text of constants, literals and immediates. */
#include "isa/isa_print.h"

/* ---- constants ------------------------------------------------------------ */

static const char *const float_names[9] = {"0.5",  "-0.5", "1.0",  "-1.0",      "2.0",
                                           "-2.0", "4.0",  "-4.0", "0.15915494"};

static bool
is_inline_int(int64_t v)
{
    return v >= -16 && v <= 64;
}

/* Index of an inline float of this bit pattern, or -1; bits wide: 16 (half), 32, 64. */
static int
inline_float_index(uint64_t v, uint32_t width)
{
    static const uint64_t f16[9] = {0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118};
    static const uint64_t bf16[9] = {0x3f00, 0xbf00, 0x3f80, 0xbf80, 0x4000, 0xc000, 0x4080, 0xc080, 0x3e22};
    static const uint64_t f32[9] = {0x3f000000, 0xbf000000, 0x3f800000, 0xbf800000, 0x40000000,
                                    0xc0000000, 0x40800000, 0xc0800000, 0x3e22f983};
    static const uint64_t f64[9] = {0x3fe0000000000000, 0xbfe0000000000000, 0x3ff0000000000000,
                                    0xbff0000000000000, 0x4000000000000000, 0xc000000000000000,
                                    0x4010000000000000, 0xc010000000000000, 0x3fc45f306dc9c882};
    const uint64_t *t = width == 15 ? bf16 : width == 16 ? f16 : width == 32 ? f32 : f64;
    for (int i = 0; i < 9; i++)
        if (t[i] == v)
            return i;
    return -1;
}

static void
print_float_name(const IsaPrinter *p, int i, bool wide)
{
    tl_text_puts(p->out, i == 8 && wide ? "0.15915494309189532" : float_names[i]);
}

/* How a constant of a type is looked at: 16 (half), 15 (bfloat), 17 (16-bit integer), 32, 64. */
static uint32_t
const_width(IsaType t)
{
    switch (t) {
    case ISA_T_F16:
    case ISA_T_V2F16:
        return 16;
    case ISA_T_BF16:
    case ISA_T_V2BF16:
        return 15;
    case ISA_T_B16:
    case ISA_T_U16:
    case ISA_T_I16:
        return 17;
    case ISA_T_F64:
    case ISA_T_B64:
    case ISA_T_U64:
    case ISA_T_I64:
        return 64;
    case ISA_T_B32:
    case ISA_T_U32:
    case ISA_T_I32:
    case ISA_T_F32:
    case ISA_T_V2I16:
    case ISA_T_V2F32:
    case ISA_T_V2B32:
    case ISA_T_ANY:
        break;
    }
    return 32;
}

static void
print_inline(const IsaPrinter *p, const IsaOpnd *o)
{
    uint32_t w = const_width((IsaType)o->type);
    if (is_inline_int((int32_t)o->bits) &&
        !(w == 64 && o->bits64 >> 32 != 0 && o->bits64 >> 32 != 0xffffffff)) {
        tl_text_printf(p->out, "%d", (int32_t)o->bits);
        return;
    }
    if (w == 17) { /* 16-bit integer operands show the half's bits */
        tl_text_printf(p->out, "0x%x", o->bits);
        return;
    }
    int i = inline_float_index(w == 64 ? o->bits64 : o->bits, w);
    if (i >= 0)
        print_float_name(p, i, w == 64);
}

/* A literal that an inline constant could have held is marked lit(). */
static void
print_literal(const IsaPrinter *p, const IsaOpnd *o)
{
    uint32_t w = const_width((IsaType)o->type), v = o->bits;
    bool lit = false;
    if (o->type == ISA_T_F64) {
        int i = inline_float_index(o->bits64, 64);
        if (v == 0) {
            tl_text_puts(p->out, "0");
            return;
        }
        if (i >= 0) {
            print_float_name(p, i, true);
            return;
        }
    } else if (w == 64) {
        lit = v <= 64;
    } else if (o->type == ISA_T_V2F16 || o->type == ISA_T_V2BF16) {
        bool twice = p->in->op == ISA_OP_v_pk_fmac_f16 && p->arch >= ISA_GFX1100; /* constants twice */
        uint32_t h = v & 0xffff;
        lit = is_inline_int((int32_t)v) || (!twice && inline_float_index(v, w) >= 0) ||
              (twice && v == h * 0x10001u && (is_inline_int((int16_t)h) || inline_float_index(h, w) >= 0));
        w = 32;
    } else if (w == 16 || w == 15) {
        lit = is_inline_int((int16_t)v) || inline_float_index(v & 0xffff, w) >= 0;
    } else {
        lit = is_inline_int((int32_t)v) || inline_float_index(v, 32) >= 0;
    }
    if (w == 15)
        w = 32; /* bfloat literals show all bits */
    if (lit)
        tl_text_printf(p->out, "lit(0x%x)", v);
    else
        tl_text_printf(p->out, "0x%x", w <= 17 ? v & 0xffff : v);
}

/* s_setreg_imm32's value prints as an inline constant where it can. */
static void
print_imm32(const IsaPrinter *p, uint32_t v)
{
    int i = inline_float_index(v, 32);
    if (is_inline_int((int32_t)v))
        tl_text_printf(p->out, "%d", (int32_t)v);
    else if (i >= 0)
        print_float_name(p, i, false);
    else
        tl_text_printf(p->out, "0x%x", v);
}

/* ---- immediates with a form of their own ------------------------------------------------------------ */

static void
print_waitcnt(const IsaPrinter *p, uint32_t v)
{
    bool gfx9 = is_gfx9(p);
    uint32_t vm = gfx9 ? (v & 15) | (v >> 14 & 3) << 4 : v >> 10 & 63;
    uint32_t exp = gfx9 ? v >> 4 & 7 : v & 7;
    uint32_t lgkm = gfx9 ? v >> 8 & 15 : v >> 4 & 63, lgkm_max = gfx9 ? 15 : 63;
    bool all = vm == 63 && exp == 7 && lgkm == lgkm_max;
    const char *sep = "";
    if (vm != 63 || all) {
        tl_text_printf(p->out, "vmcnt(%u)", vm);
        sep = " ";
    }
    if (exp != 7 || all) {
        tl_text_printf(p->out, "%sexpcnt(%u)", sep, exp);
        sep = " ";
    }
    if (lgkm != lgkm_max || all)
        tl_text_printf(p->out, "%slgkmcnt(%u)", sep, lgkm);
}

static void
print_hwreg(const IsaPrinter *p, uint32_t v)
{
    uint32_t id = v & 63, off = v >> 6 & 31, width = (v >> 11 & 31) + 1;
    const char *name = isa_hwreg_name(p->arch, id);
    if (name)
        tl_text_printf(p->out, "hwreg(%s", name);
    else
        tl_text_printf(p->out, "hwreg(%u", id);
    if (off != 0 || width != 32)
        tl_text_printf(p->out, ", %u, %u", off, width);
    tl_text_puts(p->out, ")");
}

/* Message, operation, stream; anything odd prints as three numbers, with stray bits as one. */
static void
print_sendmsg_gfx9(const IsaPrinter *p, uint32_t v)
{
    static const char *const gs_ops[4] = {"GS_OP_NOP", "GS_OP_CUT", "GS_OP_EMIT", "GS_OP_EMIT_CUT"};
    static const char *const sys_ops[5] = {NULL, "SYSMSG_OP_ECC_ERR_INTERRUPT", "SYSMSG_OP_REG_RD", NULL,
                                           "SYSMSG_OP_TTRACE_PC"};
    uint32_t id = v & 15, op = v >> 4 & 7, stream = v >> 8 & 3;
    const char *name = isa_message_name(p->arch, id);
    if ((id == 2 || id == 3) && op < 4) {
        bool nop = op == 0;
        if (nop ? id == 3 && stream == 0 : true) {
            tl_text_printf(p->out, "sendmsg(%s, %s", name, gs_ops[op]);
            if (!nop)
                tl_text_printf(p->out, ", %u", stream);
            tl_text_puts(p->out, ")");
            return;
        }
    } else if (id == 15 && op >= 1 && op <= 4 && op != 3 && stream == 0) {
        tl_text_printf(p->out, "sendmsg(%s, %s)", name, sys_ops[op]);
        return;
    } else if (name && id != 2 && id != 3 && id != 15 && op == 0 && stream == 0) {
        tl_text_printf(p->out, "sendmsg(%s)", name);
        return;
    }
    if (v & ~0x37fu)
        tl_text_printf(p->out, "%u", v);
    else
        tl_text_printf(p->out, "sendmsg(%u, %u, %u)", id, op, stream);
}

static void
print_sendmsg(const IsaPrinter *p, uint32_t v)
{
    if (is_gfx9(p)) {
        print_sendmsg_gfx9(p, v);
        return;
    }
    const char *name = isa_message_name(p->arch, v & 255);
    if (name)
        tl_text_printf(p->out, "sendmsg(%s)", name);
    else if (v > 255)
        tl_text_printf(p->out, "%u", v);
    else
        tl_text_printf(p->out, "sendmsg(%u, 0, 0)", v);
}

static void
print_delay(const IsaPrinter *p, uint32_t v)
{
    static const char *const ids[16] = {
        NULL,
        "VALU_DEP_1",
        "VALU_DEP_2",
        "VALU_DEP_3",
        "VALU_DEP_4",
        "TRANS32_DEP_1",
        "TRANS32_DEP_2",
        "TRANS32_DEP_3",
        "FMA_ACCUM_CYCLE_1",
        "SALU_CYCLE_1",
        "SALU_CYCLE_2",
        "SALU_CYCLE_3",
    };
    static const char *const skips[8] = {NULL, "NEXT", "SKIP_1", "SKIP_2", "SKIP_3", "SKIP_4"};
    uint32_t id0 = v & 15, skip = v >> 4 & 7, id1 = v >> 7 & 15;
    const char *sep = "";
    if (!(id0 | skip | id1)) {
        tl_text_puts(p->out, "0");
        return;
    }
    if (id0) {
        tl_text_printf(p->out, "instid0(%s)", ids[id0] ? ids[id0] : "?");
        sep = " | ";
    }
    if (skip) {
        tl_text_printf(p->out, "%sinstskip(%s)", sep, skips[skip] ? skips[skip] : "?");
        sep = " | ";
    }
    if (id1)
        tl_text_printf(p->out, "%sinstid1(%s)", sep, ids[id1] ? ids[id1] : "?");
}

static void
print_depctr(const IsaPrinter *p, uint32_t v)
{
    static const struct {
        const char *name;
        uint8_t lo, n;
    } parts[7] = {{"hold_cnt", 7, 1}, {"sa_sdst", 0, 1}, {"va_vdst", 12, 4}, {"va_sdst", 9, 3},
                  {"va_ssrc", 8, 1},  {"va_vcc", 1, 1},  {"vm_vsrc", 2, 3}};
    const char *sep = "";
    if (v & 0x60) { /* bits of no counter */
        tl_text_printf(p->out, "0x%x", v);
        return;
    }
    for (uint32_t i = 0; i < 7; i++) {
        uint32_t max = (1u << parts[i].n) - 1, x = v >> parts[i].lo & max;
        if (x == max && v != 0xff9f)
            continue;
        tl_text_printf(p->out, "%sdepctr_%s(%u)", sep, parts[i].name, x);
        sep = " ";
    }
}

static void
print_gpr_idx(const IsaPrinter *p, uint32_t v)
{
    static const char *const names[4] = {"SRC0", "SRC1", "SRC2", "DST"};
    const char *sep = "";
    if (v > 15) {
        tl_text_printf(p->out, "0x%x", v);
        return;
    }
    tl_text_puts(p->out, "gpr_idx(");
    for (uint32_t i = 0; i < 4; i++)
        if (v >> i & 1) {
            tl_text_printf(p->out, "%s%s", sep, names[i]);
            sep = ",";
        }
    tl_text_puts(p->out, ")");
}

void
isa_print_imm(const IsaPrinter *p, const IsaOpnd *o)
{
    uint32_t v = o->bits;
    switch ((IsaImm)p->row->imm) {
    case ISA_IMM_NONE:
        tl_text_printf(p->out, v <= 64 ? "%u" : "0x%x", v);
        return;
    case ISA_IMM_HEX:
        tl_text_printf(p->out, "0x%x", v);
        return;
    case ISA_IMM_DEC:
        if (p->in->op == ISA_OP_s_endpgm) {
            tl_text_printf(p->out, "%u", v);
            return;
        }
        tl_text_printf(p->out, v <= 64 ? "%u" : "0x%x", v);
        return;
    case ISA_IMM_BRANCH:
        tl_text_printf(p->out, "%u", v);
        return;
    case ISA_IMM_WAITCNT:
        print_waitcnt(p, v);
        return;
    case ISA_IMM_HWREG:
        print_hwreg(p, v);
        return;
    case ISA_IMM_SENDMSG:
        print_sendmsg(p, v);
        return;
    case ISA_IMM_GPRIDX:
        print_gpr_idx(p, v);
        return;
    case ISA_IMM_DELAY:
        print_delay(p, v);
        return;
    case ISA_IMM_DEPCTR:
        print_depctr(p, v);
        return;
    }
}

void
isa_print_const(const IsaPrinter *p, const IsaOpnd *o)
{
    if (!(o->flags & ISA_LITERAL)) {
        print_inline(p, o);
    } else if ((p->row->flags & ISA_R_LIT) &&
               isa_pattern(p->row->pattern)->spec[o - p->first].field == ISA_F_LIT) {
        if (p->row->fam == ISA_FAM_SOPK)
            print_imm32(p, o->bits);
        else
            tl_text_printf(p->out, "0x%x", o->bits);
    } else {
        print_literal(p, o);
    }
}
