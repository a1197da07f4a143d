func.func @matmul(%a: tensor<64x128xf16>, %b: tensor<128x96xf16>) -> tensor<64x96xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x96xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<64x96xf32>) -> tensor<64x96xf32>
  %r = linalg.matmul ins(%a, %b : tensor<64x128xf16>, tensor<128x96xf16>) outs(%z : tensor<64x96xf32>) -> tensor<64x96xf32>
  return %r : tensor<64x96xf32>
}
func.func @softmax(%x: tensor<4x1200xf32>) -> tensor<4x1200xf32> {
  %e = tensor.empty() : tensor<4x1200xf32>
  %r = linalg.softmax dimension(1) ins(%x : tensor<4x1200xf32>) outs(%e : tensor<4x1200xf32>) -> tensor<4x1200xf32>
  return %r : tensor<4x1200xf32>
}
func.func @attention(%q: tensor<1x64x64xf16>, %k: tensor<1x64x64xf16>, %v: tensor<1x64x64xf16>) -> tensor<1x64x64xf16> {
  %s = arith.constant 0.125 : f16
  %e = tensor.empty() : tensor<1x64x64xf16>
  %r = iree_linalg_ext.attention <{indexing_maps = [affine_map<(b,m,n,k1,k2) -> (b,m,k1)>, affine_map<(b,m,n,k1,k2) -> (b,k2,k1)>, affine_map<(b,m,n,k1,k2) -> (b,k2,n)>, affine_map<(b,m,n,k1,k2) -> ()>, affine_map<(b,m,n,k1,k2) -> (b,m,n)>]}>
    ins(%q, %k, %v, %s : tensor<1x64x64xf16>, tensor<1x64x64xf16>, tensor<1x64x64xf16>, f16) outs(%e : tensor<1x64x64xf16>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
    } -> tensor<1x64x64xf16>
  return %r : tensor<1x64x64xf16>
}
func.func @conv(%x: tensor<1x10x18x16xf16>, %w: tensor<3x3x16x32xf16>) -> tensor<1x8x16x32xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x8x16x32xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<1x8x16x32xf32>) -> tensor<1x8x16x32xf32>
  %r = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
         ins(%x, %w : tensor<1x10x18x16xf16>, tensor<3x3x16x32xf16>) outs(%z : tensor<1x8x16x32xf32>) -> tensor<1x8x16x32xf32>
  return %r : tensor<1x8x16x32xf32>
}
