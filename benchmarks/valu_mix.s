; Sixteen vector operations for sim_speed.py, eight times in a loop: SGPR, literal and negated operands, three
; transcendental ones, a compare with a select, a carry pair. %LOOP%: turns; %EXEC%: what sets EXEC for the loop.
; v0 is the work-item id, s2 the workgroup (256 work-items); the argument is `out`, one dword a work-item.
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_cvt_f32_u32 v1, v0
  s_mov_b32 s6, 0x3f9d70a4
  s_mov_b32 s7, 0x3e99999a
  s_mov_b32 s8, 0x9e3779b1
  s_mov_b32 s9, %LOOP%
  v_mov_b32 v2, 1.0
  v_mov_b32 v3, v1
  v_mov_b32 v5, 0.5
  v_mov_b32 v10, v0
  v_mov_b32 v12, 0
  v_mov_b32 v13, 0
  %EXEC%
loop:
  .rept 8
  v_mul_f32 v4, s7, v3                      ; SGPR
  v_fma_f32 v5, -v4, v5, v2                 ; negated
  v_exp_f32 v6, v4                          ; transcendental
  v_add_f32 v7, 0x3f9d70a4, v5              ; literal
  v_mul_lo_u32 v10, v10, s8                 ; SGPR
  v_fma_f32 v5, v6, s7, -v7                 ; SGPR, negated
  v_rcp_f32 v8, v7                          ; transcendental
  v_xor_b32 v10, 0x85ebca6b, v10            ; literal
  v_cmp_gt_f32 vcc, s6, v5                  ; SGPR
  v_max_f32 v5, -|v5|, -v4                  ; negated
  v_add_co_u32 v12, s[10:11], v10, v12      ; carry out
  v_cndmask_b32 v3, v8, v5, vcc
  v_sqrt_f32 v9, |v7|                       ; transcendental
  v_addc_co_u32 v13, s[10:11], v13, v0, s[10:11]
  v_and_b32 v3, 0xbfffffff, v3              ; literal
  v_fmac_f32 v3, 0x3d000000, v9             ; literal
  .endr
  s_sub_u32 s9, s9, 1
  s_cmp_lg_u32 s9, 0
  s_cbranch_scc1 loop
  s_mov_b64 exec, -1
  v_xor_b32 v3, v3, v10
  v_xor_b32 v3, v3, v13
  v_lshlrev_b32 v0, 2, v0
  s_lshl_b32 s2, s2, 8
  v_add_u32 v0, s2, v0
  s_waitcnt lgkmcnt(0)
  global_store_dword v0, v3, s[4:5]
