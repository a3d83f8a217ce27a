/// Rows of products: matrices, convolutions, attention, recurrent networks, factorizations.
#include "bench/ops/row.h"
#include "gradus/ops/attention.h"
#include "gradus/ops/conv.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/decompositions.h"
#include "gradus/ops/diagonals.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/linear_algebra.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/recurrent.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/solve.h"

namespace gradus::bench {
namespace {

using C = const Case&;

void add_matrices(Rows& rows) {
  const Rows added = {
      {"matmul", {"f32[n,n]", "f32[n,n]"}, {16, 256, 1024}, [](C x) { return matmul(x[0], x[1]); }, "a @ b", "a @ b"},
      {"matmul of one row",
       {"f32[1,n]", "f32[n,n]"},
       {32, 512, 4096},
       [](C x) { return matmul(x[0], x[1]); },
       "a @ b",
       "a @ b"},
      {"matmul of few rows",
       {"f32[8,n]", "f32[n,n]"},
       {32, 512, 4096},
       [](C x) { return matmul(x[0], x[1]); },
       "a @ b",
       "a @ b"},
      {"matmul narrow",
       {"f32[n,n]", "f32[n,8]"},
       {32, 512, 4096},
       [](C x) { return matmul(x[0], x[1]); },
       "a @ b",
       "a @ b"},
      {"matmul batched",
       {"f32[n,64,64]", "f32[n,64,64]"},
       {1, 16, 256},
       [](C x) { return matmul(x[0], x[1]); },
       "a @ b",
       "a @ b"},
      {"matmul batched small",
       {"f32[n,8,8]", "f32[n,8,8]"},
       {8, 512, 16384},
       [](C x) { return matmul(x[0], x[1]); },
       "a @ b",
       "a @ b"},
      {"matmul transposed",
       {"f32[n,n]", "f32[n,n]"},
       {16, 256, 1024},
       [](C x) { return matmul(x[0], x[1], {.transpose_b = true}); },
       "a @ b.t()",
       "a @ b.T"},
      {"matvec", {"f32[n,n]", "f32[n]"}, {32, 512, 4096}, [](C x) { return matvec(x[0], x[1]); }, "a @ b", "a @ b"},
      {"tensordot",
       {"f32[n,16,16]", "f32[16,16,64]"},
       {4, 64, 4096},
       [](C x) { return tensordot(x[0], x[1], 2); },
       "torch.tensordot(a, b, 2)",
       "jnp.tensordot(a, b, 2)"},
      {"einsum",
       {"f32[n,16,32]", "f32[n,24,32]"},
       {4, 64, 4096},
       [](C x) { return einsum("bik,bjk->bij", {x[0], x[1]}); },
       "torch.einsum('bik,bjk->bij', a, b)",
       "jnp.einsum('bik,bjk->bij', a, b)"},
      {"gemm",
       {"f32[n,n]", "f32[n,n]", "f32[n]"},
       {16, 256, 1024},
       [](C x) { return gemm(x[0], x[1], x[2]); },
       "torch.addmm(c, a, b)",
       "a @ b + c"},
  };
  rows.insert(rows.end(), added.begin(), added.end());
}

void add_convolutions(Rows& rows) {
  constexpr Extents batches{1, 4, 32};
  const Rows added = {
      {"conv1d",
       {"f32[n,256,32]", "f32[5,32,64]"},
       batches,
       [](C x) { return conv1d(x[0], x[1], {.padding = Padding::same}); },
       "F.conv1d(a.permute(0, 2, 1), b.permute(2, 1, 0), padding=2).permute(0, 2, 1)",
       "lax.conv_general_dilated(a, b, (1,), 'SAME', dimension_numbers=('NWC', 'WIO', 'NWC'))"},
      {"conv2d",
       {"f32[n,32,32,32]", "f32[3,3,32,64]"},
       batches,
       [](C x) { return conv2d(x[0], x[1], {.padding = Padding::same}); },
       "F.conv2d(a.permute(0, 3, 1, 2), b.permute(3, 2, 0, 1), padding=1).permute(0, 2, 3, 1)",
       "lax.conv_general_dilated(a, b, (1, 1), 'SAME', dimension_numbers=('NHWC', 'HWIO', 'NHWC'))"},
      {"conv2d of images",
       {"f32[n,64,64,3]", "f32[3,3,3,32]"},
       batches,
       [](C x) { return conv2d(x[0], x[1], {.strides = {2}, .padding = Padding::valid}); },
       "F.conv2d(a.permute(0, 3, 1, 2), b.permute(3, 2, 0, 1), stride=2).permute(0, 2, 3, 1)",
       "lax.conv_general_dilated(a, b, (2, 2), 'VALID', dimension_numbers=('NHWC', 'HWIO', 'NHWC'))"},
      {"conv2d 1x1",
       {"f32[n,16,16,128]", "f32[1,1,128,128]"},
       batches,
       [](C x) { return conv2d(x[0], x[1]); },
       "F.conv2d(a.permute(0, 3, 1, 2), b.permute(3, 2, 0, 1)).permute(0, 2, 3, 1)",
       "lax.conv_general_dilated(a, b, (1, 1), 'VALID', dimension_numbers=('NHWC', 'HWIO', 'NHWC'))"},
      {"conv2d grouped",
       {"f32[n,16,16,128]", "f32[3,3,16,128]"},
       batches,
       [](C x) { return conv2d(x[0], x[1], {.padding = Padding::same}); },
       "F.conv2d(a.permute(0, 3, 1, 2), b.permute(3, 2, 0, 1), padding=1, groups=8).permute(0, 2, 3, 1)",
       "lax.conv_general_dilated(a, b, (1, 1), 'SAME', dimension_numbers=('NHWC', 'HWIO', 'NHWC'), "
       "feature_group_count=8)"},
      {"conv2d dilated",
       {"f32[n,32,32,32]", "f32[3,3,32,32]"},
       batches,
       [](C x) { return conv2d(x[0], x[1], {.padding = Padding::same, .dilations = {2}}); },
       "F.conv2d(a.permute(0, 3, 1, 2), b.permute(3, 2, 0, 1), padding=2, dilation=2).permute(0, 2, 3, 1)",
       "lax.conv_general_dilated(a, b, (1, 1), 'SAME', dimension_numbers=('NHWC', 'HWIO', 'NHWC'), "
       "rhs_dilation=(2, 2))"},
      {"conv3d",
       {"f32[n,8,16,16,16]", "f32[3,3,3,16,32]"},
       batches,
       [](C x) { return conv3d(x[0], x[1], {.padding = Padding::same}); },
       "F.conv3d(a.permute(0, 4, 1, 2, 3), b.permute(4, 3, 0, 1, 2), padding=1).permute(0, 2, 3, 4, 1)",
       "lax.conv_general_dilated(a, b, (1, 1, 1), 'SAME', dimension_numbers=('NDHWC', 'DHWIO', 'NDHWC'))"},
      {"depthwise_conv2d",
       {"f32[n,32,32,64]", "f32[3,3,64,1]"},
       batches,
       [](C x) { return depthwise_conv2d(x[0], x[1], {.padding = Padding::same}); },
       "F.conv2d(a.permute(0, 3, 1, 2), b.permute(2, 3, 0, 1), padding=1, groups=64).permute(0, 2, 3, 1)",
       "lax.conv_general_dilated(a, b.reshape(3, 3, 1, 64), (1, 1), 'SAME', dimension_numbers=('NHWC', 'HWIO', "
       "'NHWC'), feature_group_count=64)"},
      {"depthwise_conv1d",
       {"f32[n,256,64]", "f32[5,64,1]"},
       batches,
       [](C x) { return depthwise_conv1d(x[0], x[1], {.padding = Padding::same}); },
       "F.conv1d(a.permute(0, 2, 1), b.permute(1, 2, 0), padding=2, groups=64).permute(0, 2, 1)",
       "lax.conv_general_dilated(a, b.reshape(5, 1, 64), (1,), 'SAME', dimension_numbers=('NWC', 'WIO', 'NWC'), "
       "feature_group_count=64)"},
      {"separable_conv2d",
       {"f32[n,32,32,32]", "f32[3,3,32,1]", "f32[1,1,32,64]"},
       batches,
       [](C x) { return separable_conv2d(x[0], x[1], x[2], {.padding = Padding::same}); },
       "F.conv2d(F.conv2d(a.permute(0, 3, 1, 2), b.permute(2, 3, 0, 1), padding=1, groups=32), c.permute(3, 2, 0, "
       "1)).permute(0, 2, 3, 1)",
       "lax.conv_general_dilated(lax.conv_general_dilated(a, b.reshape(3, 3, 1, 32), (1, 1), 'SAME', "
       "dimension_numbers=('NHWC', 'HWIO', 'NHWC'), feature_group_count=32), c, (1, 1), 'SAME', "
       "dimension_numbers=('NHWC', 'HWIO', 'NHWC'))"},
      {"conv2d_transpose",
       {"f32[n,16,16,64]", "f32[2,2,32,64]"},
       batches,
       [](C x) { return conv2d_transpose(x[0], x[1], {.strides = {2}, .padding = Padding::valid}); },
       "F.conv_transpose2d(a.permute(0, 3, 1, 2), b.permute(3, 2, 0, 1), stride=2).permute(0, 2, 3, 1)",
       "lax.conv_transpose(a, b, (2, 2), 'VALID', dimension_numbers=('NHWC', 'HWIO', 'NHWC'), "
       "transpose_kernel=True)"},
  };
  rows.insert(rows.end(), added.begin(), added.end());
}

void add_sequences(Rows& rows) {
  const std::vector<std::string> heads{"f32[n,8,128,64]", "f32[n,8,128,64]", "f32[n,8,128,64]"};
  const std::vector<std::string> one_query{"f32[n,8,1,64]", "f32[n,8,512,64]", "f32[n,8,512,64]"};
  const std::vector<std::string> gates{"f32[32,n,32]", "f32[32,256]", "f32[64,256]", "f32[256]"};
  const std::vector<std::string> three_gates{"f32[32,n,32]", "f32[32,192] -0.1 0.1", "f32[64,192] -0.1 0.1",
                                             "f32[192]"};
  const std::vector<std::string> one_gate{"f32[32,n,32]", "f32[32,64] -0.1 0.1", "f32[64,64] -0.1 0.1", "f32[64]"};
  const Rows added = {
      {"scaled_dot_product_attention",
       heads,
       {1, 2, 16},
       [](C x) { return scaled_dot_product_attention(x[0], x[1], x[2]); },
       "F.scaled_dot_product_attention(a, b, c)",
       "jnp.moveaxis(nn.dot_product_attention(jnp.moveaxis(a, 1, 2), jnp.moveaxis(b, 1, 2), jnp.moveaxis(c, 1, 2)), "
       "1, 2)"},
      {"scaled_dot_product_attention causal",
       heads,
       {1, 2, 16},
       [](C x) { return scaled_dot_product_attention(x[0], x[1], x[2], {.causal = true}); },
       "F.scaled_dot_product_attention(a, b, c, is_causal=True)",
       "jnp.moveaxis(nn.dot_product_attention(jnp.moveaxis(a, 1, 2), jnp.moveaxis(b, 1, 2), jnp.moveaxis(c, 1, 2), "
       "is_causal=True), 1, 2)"},
      {"scaled_dot_product_attention of one query",
       one_query,
       {1, 1, 16},
       [](C x) { return scaled_dot_product_attention(x[0], x[1], x[2]); },
       "F.scaled_dot_product_attention(a, b, c)",
       "jnp.moveaxis(nn.dot_product_attention(jnp.moveaxis(a, 1, 2), jnp.moveaxis(b, 1, 2), jnp.moveaxis(c, 1, 2)), "
       "1, 2)",
       no_gradient},
      {"rotary_embedding",
       {"f32[n,8,128,64]", "f32[128,32]", "f32[128,32]"},
       {1, 2, 16},
       [](C x) { return rotary_embedding(x[0], x[1], x[2]); },
       "torch.cat([a[..., :32] * b - a[..., 32:] * c, a[..., 32:] * b + a[..., :32] * c], -1)",
       "jnp.concatenate([a[..., :32] * b - a[..., 32:] * c, a[..., 32:] * b + a[..., :32] * c], -1)",
       1},
      {"lstm",
       gates,
       {4, 32, 128},
       [](C x) {
         return lstm(transpose(x[0], {1, 0, 2}), {.kernel = x[1], .recurrent_kernel = x[2], .bias = x[3]}).state;
       },
       "torch.lstm(a, (torch.zeros(1, 32, 64), torch.zeros(1, 32, 64)), [b.t().contiguous(), c.t().contiguous(), d, "
       "torch.zeros_like(d)], True, 1, 0.0, False, False, True)[1][0]",
       "lstm_of(a, b, c, d)"},
      {"gru",
       three_gates,
       {4, 32, 128},
       [](C x) {
         return gru(transpose(x[0], {1, 0, 2}), {.kernel = x[1], .recurrent_kernel = x[2], .bias = x[3]}).state;
       },
       "",
       "gru_of(a, b, c, d)"},
      {"simple_rnn",
       one_gate,
       {4, 32, 128},
       [](C x) {
         return simple_rnn(transpose(x[0], {1, 0, 2}), {.kernel = x[1], .recurrent_kernel = x[2], .bias = x[3]}).state;
       },
       "torch.rnn_tanh(a, torch.zeros(1, 32, 64), [b.t().contiguous(), c.t().contiguous(), d, torch.zeros_like(d)], "
       "True, 1, 0.0, False, False, True)[1]",
       "simple_rnn_of(a, b, c, d)"},
  };
  rows.insert(rows.end(), added.begin(), added.end());
}

void add_factorizations(Rows& rows) {
  constexpr Extents sizes{8, 128, 512};
  const Rows added = {
      {"cholesky",
       {"spd[n,n]"},
       sizes,
       [](C x) { return cholesky(x[0]); },
       "torch.linalg.cholesky(a)",
       "jnp.linalg.cholesky(a)",
       1},
      {"inverse",
       {"spd[n,n]"},
       sizes,
       [](C x) { return inverse(x[0]); },
       "torch.linalg.inv(a)",
       "jnp.linalg.inv(a)",
       1},
      {"solve",
       {"spd[n,n]", "f32[n,8]"},
       sizes,
       [](C x) { return solve(x[0], x[1]); },
       "torch.linalg.solve(a, b)",
       "jnp.linalg.solve(a, b)",
       2},
      {"solve batched",
       {"spd[n,8,8]", "f32[n,8,1]"},
       {4, 256, 8192},
       [](C x) { return solve(x[0], x[1]); },
       "torch.linalg.solve(a, b)",
       "jnp.linalg.solve(a, b)",
       2},
      {"triangular_solve",
       {"spd[n,n]", "f32[n,8]"},
       sizes,
       [](C x) { return triangular_solve(x[0], x[1]); },
       "torch.linalg.solve_triangular(torch.tril(a), b, upper=False)",
       "jax.scipy.linalg.solve_triangular(jnp.tril(a), b, lower=True)",
       2},
      {"cholesky_solve",
       {"spd[n,n]", "f32[n,8]"},
       sizes,
       [](C x) { return cholesky_solve(x[0], x[1]); },
       "torch.cholesky_solve(b, torch.tril(a))",
       "jax.scipy.linalg.cho_solve((jnp.tril(a), True), b)",
       2},
      {"det batched",
       {"spd[n,3,3]"},
       {16, 4096, 262144},
       [](C x) { return det(x[0]); },
       "torch.linalg.det(a)",
       "jnp.linalg.det(a)",
       1},
      {"logdet",
       {"spd[n,n]"},
       sizes,
       [](C x) { return logdet(x[0]); },
       "torch.logdet(a)",
       "jnp.linalg.slogdet(a)[1]",
       1},
      {"slogdet",
       {"spd[n,n]"},
       sizes,
       [](C x) { return slogdet(x[0]).log_abs_determinant; },
       "torch.linalg.slogdet(a)[1]",
       "jnp.linalg.slogdet(a)[1]",
       1},
      {"qr", {"f32[n,n]"}, sizes, [](C x) { return qr(x[0]).r; }, "torch.linalg.qr(a)[1]", "jnp.linalg.qr(a)[1]", 1},
      {"lu",
       {"spd[n,n]"},
       sizes,
       [](C x) { return lu(x[0]).lu; },
       "torch.linalg.lu_factor(a)[0]",
       "jax.scipy.linalg.lu_factor(a)[0]",
       1},
      {"eigh",
       {"spd[n,n]"},
       sizes,
       [](C x) { return eigh(x[0]).e; },
       "torch.linalg.eigh(a)[0]",
       "jnp.linalg.eigh(a)[0]",
       no_gradient},
      {"eigvalsh",
       {"spd[n,n]"},
       sizes,
       [](C x) { return eigvalsh(x[0]); },
       "torch.linalg.eigvalsh(a)",
       "jnp.linalg.eigvalsh(a)",
       1},
      {"eigh batched",
       {"spd[n,8,8]"},
       {4, 256, 8192},
       [](C x) { return eigh(x[0]).e; },
       "torch.linalg.eigh(a)[0]",
       "jnp.linalg.eigh(a)[0]",
       no_gradient},
      {"svd",
       {"f32[n,n]"},
       sizes,
       [](C x) { return svd(x[0]).s; },
       "torch.linalg.svd(a, full_matrices=False)[1]",
       "jnp.linalg.svd(a, full_matrices=False)[1]",
       no_gradient},
      {"svd tall",
       {"f32[n,32]"},
       {64, 1024, 32768},
       [](C x) { return svd(x[0]).s; },
       "torch.linalg.svd(a, full_matrices=False)[1]",
       "jnp.linalg.svd(a, full_matrices=False)[1]",
       no_gradient},
      {"svdvals",
       {"f32[n,n]"},
       sizes,
       [](C x) { return svdvals(x[0]); },
       "torch.linalg.svdvals(a)",
       "jnp.linalg.svd(a, compute_uv=False)",
       1},
      {"pinv", {"spd[n,n]"}, sizes, [](C x) { return pinv(x[0]); }, "torch.linalg.pinv(a)", "jnp.linalg.pinv(a)", 1},
      {"matrix_exp",
       {"f32[n,n] -0.1 0.1"},
       sizes,
       [](C x) { return matrix_exp(x[0]); },
       "torch.linalg.matrix_exp(a)",
       "jax.scipy.linalg.expm(a)",
       1},
      {"lstsq",
       {"f32[n,16]", "f32[n,4]"},
       {32, 256, 8192},
       [](C x) { return lstsq(x[0], x[1]); },
       "torch.linalg.lstsq(a, b)[0]",
       "jnp.linalg.lstsq(a, b)[0]",
       no_gradient},
  };
  rows.insert(rows.end(), added.begin(), added.end());
}

}  // namespace

void add_products(Rows& rows) {
  add_matrices(rows);
  add_convolutions(rows);
  add_sequences(rows);
  add_factorizations(rows);
}

}  // namespace gradus::bench
