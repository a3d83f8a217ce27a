/// Rows of ops that move elements: shapes, parts, joins, diagonals, blocks, and tensors that are made.
#include "bench/ops/row.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/diagonals.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/layout.h"
#include "gradus/ops/numeric.h"
#include "gradus/ops/random.h"
#include "gradus/ops/select.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/solve.h"
#include "gradus/ops/strided.h"

namespace gradus::bench {
namespace {

using C = const Case&;

constexpr Extents squares{32, 256, 2048};

Row of_moved_rows(const char* name, std::function<Results(C)> ours, const char* torch, const char* jax,
                  int gradients = by_all) {
  return {name, {"f32[n,256]"}, rows_of_256, std::move(ours), torch, jax, gradients};
}
Row of_square(const char* name, std::function<Results(C)> ours, const char* torch, const char* jax,
              int gradients = by_all) {
  return {name, {"f32[n,n]"}, squares, std::move(ours), torch, jax, gradients};
}

void add_moves(Rows& rows) {
  const Rows added = {
      of_moved_rows(
          "reshape", [](C x) { return reshape(x[0], {-1}) + 1.0; }, "a.reshape(-1) + 1", "a.reshape(-1) + 1"),
      of_square(
          "transpose", [](C x) { return transpose(x[0]); }, "a.t().contiguous()", "jnp.transpose(a)"),
      {"transpose heads",
       {"f32[n,64,8,32]"},
       {1, 2, 64},
       [](C x) { return transpose(x[0], {0, 2, 1, 3}); },
       "a.permute(0, 2, 1, 3).contiguous()",
       "jnp.transpose(a, (0, 2, 1, 3))"},
      {"transpose channels",
       {"f32[n,32,32,16]"},
       {1, 4, 256},
       [](C x) { return transpose(x[0], {0, 3, 1, 2}); },
       "a.permute(0, 3, 1, 2).contiguous()",
       "jnp.transpose(a, (0, 3, 1, 2))"},
      of_moved_rows(
          "broadcast_to", [](C x) { return broadcast_to(expand_dims(x[0], 1), {x.n, 4, 256}); },
          "a[:, None].expand(n, 4, 256).contiguous()", "jnp.broadcast_to(a[:, None], (n, 4, 256))"),
      of_moved_rows(
          "slice", [](C x) { return slice(x[0], {0, 64}, {x.n, 128}); }, "a[:, 64:192].contiguous()", "a[:, 64:192]"),
      of_moved_rows(
          "strided_slice", [](C x) { return strided_slice(x[0], {0, 0}, {x.n, 256}, {.strides = {1, 2}}); },
          "a[:, ::2].contiguous()", "a[:, ::2]"),
      of_moved_rows(
          "tile", [](C x) { return tile(x[0], {2, 2}); }, "torch.tile(a, (2, 2))", "jnp.tile(a, (2, 2))"),
      of_moved_rows(
          "repeat", [](C x) { return repeat(x[0], 3, 1); }, "torch.repeat_interleave(a, 3, 1)", "jnp.repeat(a, 3, 1)"),
      {"concat",
       {"f32[n,256]", "f32[n,256]"},
       rows_of_256,
       [](C x) { return concat({x[0], x[1]}, 1); },
       "torch.cat([a, b], 1)",
       "jnp.concatenate([a, b], 1)"},
      {"concat rows",
       {"f32[n,256]", "f32[n,256]"},
       rows_of_256,
       [](C x) { return concat({x[0], x[1]}, 0); },
       "torch.cat([a, b], 0)",
       "jnp.concatenate([a, b], 0)"},
      {"stack",
       {"f32[n,256]", "f32[n,256]"},
       rows_of_256,
       [](C x) { return stack({x[0], x[1]}, -1); },
       "torch.stack([a, b], -1)",
       "jnp.stack([a, b], -1)"},
      of_moved_rows(
          "split", [](C x) { return split(x[0], 4, 1); }, "[each.contiguous() for each in torch.split(a, 64, 1)]",
          "jnp.split(a, 4, 1)"),
      {"unstack",
       {"f32[8,n]"},
       {128, 8192, 1'000'000},
       [](C x) { return unstack(x[0], 0); },
       "[each.clone() for each in torch.unbind(a)]",
       "[a[i] for i in range(8)]"},
      of_moved_rows(
          "reverse", [](C x) { return reverse(x[0], {1}); }, "torch.flip(a, [1])", "jnp.flip(a, 1)"),
      of_moved_rows(
          "roll", [](C x) { return roll(x[0], 3, 1); }, "torch.roll(a, 3, 1)", "jnp.roll(a, 3, 1)"),
      of_moved_rows(
          "pad", [](C x) { return pad(x[0], {{1, 1}, {2, 2}}); }, "F.pad(a, (2, 2, 1, 1))",
          "jnp.pad(a, ((1, 1), (2, 2)))"),
      of_moved_rows(
          "pad reflect", [](C x) { return pad(x[0], {{0, 0}, {2, 2}}, PadMode::reflect); },
          "F.pad(a, (2, 2), mode='reflect')", "jnp.pad(a, ((0, 0), (2, 2)), mode='reflect')"),
      {"rot90",
       {"f32[n,n,3]"},
       {16, 128, 1024},
       [](C x) { return rot90(x[0]); },
       "torch.rot90(a).contiguous()",
       "jnp.rot90(a)"},
      {"flip_left_right",
       {"f32[n,32,32,3]"},
       images,
       [](C x) { return flip_left_right(x[0]); },
       "torch.flip(a, [2])",
       "jnp.flip(a, 2)"},
      {"space_to_depth",
       {"f32[n,32,32,8]"},
       images,
       [](C x) { return space_to_depth(x[0], 2); },
       "a.reshape(n, 16, 2, 16, 2, 8).permute(0, 1, 3, 2, 4, 5).reshape(n, 16, 16, 32)",
       "a.reshape(n, 16, 2, 16, 2, 8).transpose(0, 1, 3, 2, 4, 5).reshape(n, 16, 16, 32)"},
      {"depth_to_space",
       {"f32[n,16,16,32]"},
       images,
       [](C x) { return depth_to_space(x[0], 2); },
       "a.reshape(n, 16, 16, 2, 2, 8).permute(0, 1, 3, 2, 4, 5).reshape(n, 32, 32, 8)",
       "a.reshape(n, 16, 16, 2, 2, 8).transpose(0, 1, 3, 2, 4, 5).reshape(n, 32, 32, 8)"},
      {"meshgrid",
       {"f32[n]", "f32[n]"},
       squares,
       [](C x) { return meshgrid({x[0], x[1]}); },
       "[each.contiguous() for each in torch.meshgrid(a, b, indexing='xy')]",
       "jnp.meshgrid(a, b)",
       no_gradient},
      of_moved_rows(
          "moveaxis", [](C x) { return moveaxis(x[0], 0, 1); }, "torch.movedim(a, 0, 1).contiguous()",
          "jnp.moveaxis(a, 0, 1)"),
  };
  rows.insert(rows.end(), added.begin(), added.end());
}

void add_diagonals(Rows& rows) {
  const Rows added = {
      of_square(
          "triu", [](C x) { return triu(x[0]); }, "torch.triu(a)", "jnp.triu(a)"),
      of_square(
          "tril", [](C x) { return tril(x[0]); }, "torch.tril(a)", "jnp.tril(a)"),
      of_square(
          "band_part", [](C x) { return band_part(x[0], 2, 2); }, "torch.triu(torch.tril(a, 2), -2)",
          "jnp.triu(jnp.tril(a, 2), -2)"),
      of_square(
          "diag_part", [](C x) { return diag_part(x[0]); }, "torch.diagonal(a).contiguous()", "jnp.diagonal(a)"),
      of_square(
          "trace", [](C x) { return trace(x[0]); }, "torch.trace(a)", "jnp.trace(a)"),
      {"diag", {"f32[n]"}, squares, [](C x) { return diag(x[0]); }, "torch.diag(a)", "jnp.diag(a)"},
      {"kron",
       {"f32[n,n]", "f32[16,16]"},
       {2, 16, 128},
       [](C x) { return kron(x[0], x[1]); },
       "torch.kron(a, b)",
       "jnp.kron(a, b)"},
      {"outer",
       {"f32[n]", "f32[n]"},
       squares,
       [](C x) { return outer(x[0], x[1]); },
       "torch.outer(a, b)",
       "jnp.outer(a, b)"},
      {"cross",
       {"f32[n,3]", "f32[n,3]"},
       {256, 16384, 1'000'000},
       [](C x) { return cross(x[0], x[1]); },
       "torch.linalg.cross(a, b)",
       "jnp.cross(a, b)"},
      {"vander",
       {"f32[n]"},
       {64, 8192, 400'000},
       [](C x) { return vander(x[0], 8); },
       "torch.vander(a, 8)",
       "jnp.vander(a, 8)",
       no_gradient},
  };
  rows.insert(rows.end(), added.begin(), added.end());
}

void add_created(Rows& rows) {
  const Rows added = {
      {"zeros", {"f32[1]"}, elements, [](C x) { return zeros({x.n}); }, "torch.zeros(n)", "jnp.zeros(n)", no_gradient},
      {"full",
       {"f32[1]"},
       elements,
       [](C x) { return full({x.n}, 2.5); },
       "torch.full((n,), 2.5)",
       "jnp.full(n, 2.5)",
       no_gradient},
      {"range", {"f32[1]"}, elements, [](C x) { return range(x.n); }, "torch.arange(n)", "jnp.arange(n)", no_gradient},
      {"linspace",
       {"f32[1]"},
       elements,
       [](C x) { return linspace(0, 1, x.n); },
       "torch.linspace(0, 1, n)",
       "jnp.linspace(0, 1, n)",
       no_gradient},
      {"logspace",
       {"f32[1]"},
       elements,
       [](C x) { return logspace(0, 1, x.n); },
       "torch.logspace(0, 1, n)",
       "jnp.logspace(0, 1, n)",
       no_gradient},
      {"geomspace",
       {"f32[1]"},
       elements,
       [](C x) { return geomspace(1, 10, x.n); },
       "",
       "jnp.geomspace(1, 10, n)",
       no_gradient},
      {"eye", {"f32[1]"}, squares, [](C x) { return eye(x.n); }, "torch.eye(n)", "jnp.eye(n)", no_gradient},
      {"one_hot",
       {"index[n] 0 64"},
       {64, 4096, 100'000},
       [](C x) { return one_hot(x[0], 64); },
       "F.one_hot(a, 64).float()",
       "nn.one_hot(a, 64)",
       no_gradient},
      {"random::normal",
       {"f32[1]"},
       elements,
       [](C x) { return random::normal({x.n}); },
       "torch.randn(n)",
       "jax.random.normal(jax.random.key(0), (n,))",
       no_gradient,
       true},
      {"random::uniform",
       {"f32[1]"},
       elements,
       [](C x) { return random::uniform({x.n}); },
       "torch.rand(n)",
       "jax.random.uniform(jax.random.key(0), (n,))",
       no_gradient,
       true},
      {"random::truncated_normal",
       {"f32[1]"},
       elements,
       [](C x) { return random::truncated_normal({x.n}); },
       "torch.nn.init.trunc_normal_(torch.empty(n), 0, 1, -2, 2)",
       "jax.random.truncated_normal(jax.random.key(0), -2, 2, (n,))",
       no_gradient,
       true},
      {"random::integers",
       {"f32[1]"},
       elements,
       [](C x) { return random::integers({x.n}, {.high = 1000}); },
       "torch.randint(0, 1000, (n,))",
       "jax.random.randint(jax.random.key(0), (n,), 0, 1000)",
       no_gradient,
       true},
      {"random::categorical",
       {"f32[n,256]"},
       rows_of_256,
       [](C x) { return random::categorical(x[0], 4); },
       "torch.multinomial(F.softmax(a, -1), 4, True)",
       "jax.random.categorical(jax.random.key(0), a, shape=(4, n))",
       no_gradient,
       true},
      {"random::gamma",
       {"f32[1]"},
       elements,
       [](C x) { return random::gamma({x.n}, 1.5); },
       "torch._standard_gamma(torch.full((n,), 1.5))",
       "jax.random.gamma(jax.random.key(0), 1.5, (n,))",
       no_gradient,
       true},
      {"random::shuffle",
       {"f32[n]"},
       elements,
       [](C x) { return random::shuffle(x[0]); },
       "a[torch.randperm(n)]",
       "jax.random.permutation(jax.random.key(0), a)",
       no_gradient,
       true},
  };
  rows.insert(rows.end(), added.begin(), added.end());
}

}  // namespace

void add_shapes(Rows& rows) {
  add_moves(rows);
  add_diagonals(rows);
  add_created(rows);
}

}  // namespace gradus::bench
