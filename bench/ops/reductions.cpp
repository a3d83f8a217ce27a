/// Rows of reductions, cumulative ops, sorting, selection, and reading and writing by index.
#include "bench/ops/row.h"
#include "gradus/ops/cumulative.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/numeric.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/scatter.h"
#include "gradus/ops/segment.h"
#include "gradus/ops/select.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/sort.h"

namespace gradus::bench {
namespace {

using C = const Case&;

/// An op of [n, 256].
Row of_rows(const char* name, std::function<Results(C)> ours, const char* torch, const char* jax,
            int gradients = by_all, const char* bounds = "-1 1") {
  return {name, {std::string("f32[n,256] ") + bounds}, rows_of_256, std::move(ours), torch, jax, gradients};
}

void add_sums(Rows& rows) {
  const Rows added = {
      of_rows(
          "reduce_sum", [](C x) { return reduce_sum(x[0]); }, "torch.sum(a)", "jnp.sum(a)"),
      of_rows(
          "reduce_sum rows", [](C x) { return reduce_sum(x[0], {.axis = {1}}); }, "torch.sum(a, 1)", "jnp.sum(a, 1)"),
      of_rows(
          "reduce_sum columns", [](C x) { return reduce_sum(x[0], {.axis = {0}}); }, "torch.sum(a, 0)",
          "jnp.sum(a, 0)"),
      of_rows(
          "reduce_mean rows", [](C x) { return reduce_mean(x[0], {.axis = {1}}); }, "torch.mean(a, 1)",
          "jnp.mean(a, 1)"),
      of_rows(
          "reduce_max", [](C x) { return reduce_max(x[0]); }, "torch.amax(a)", "jnp.max(a)"),
      of_rows(
          "reduce_max rows", [](C x) { return reduce_max(x[0], {.axis = {1}}); }, "torch.amax(a, 1)", "jnp.max(a, 1)"),
      of_rows(
          "reduce_max columns", [](C x) { return reduce_max(x[0], {.axis = {0}}); }, "torch.amax(a, 0)",
          "jnp.max(a, 0)"),
      of_rows(
          "reduce_min rows", [](C x) { return reduce_min(x[0], {.axis = {1}}); }, "torch.amin(a, 1)", "jnp.min(a, 1)"),
      of_rows(
          "reduce_prod rows", [](C x) { return reduce_prod(x[0], {.axis = {1}}); }, "torch.prod(a, 1)",
          "jnp.prod(a, 1)", by_all, "0.95 1.05"),
      of_rows(
          "reduce_logsumexp rows", [](C x) { return reduce_logsumexp(x[0], {.axis = {1}}); }, "torch.logsumexp(a, 1)",
          "jax.scipy.special.logsumexp(a, 1)"),
      of_rows(
          "reduce_std rows", [](C x) { return reduce_std(x[0], {.axis = {1}}); }, "torch.std(a, 1, correction=0)",
          "jnp.std(a, 1)"),
      of_rows(
          "reduce_variance columns", [](C x) { return reduce_variance(x[0], {.axis = {0}}); },
          "torch.var(a, 0, correction=0)", "jnp.var(a, 0)"),
      of_rows(
          "norm rows", [](C x) { return norm(x[0], {.axis = {1}}); }, "torch.linalg.vector_norm(a, 2, 1)",
          "jnp.linalg.norm(a, axis=1)"),
      of_rows(
          "norm of order 1", [](C x) { return norm(x[0], 1, {.axis = {1}}); }, "torch.linalg.vector_norm(a, 1, 1)",
          "jnp.linalg.norm(a, 1, axis=1)"),
      of_rows(
          "count_nonzero rows", [](C x) { return count_nonzero(x[0], {.axis = {1}}); }, "torch.count_nonzero(a, 1)",
          "jnp.count_nonzero(a, 1)", no_gradient),
      {"reduce_any rows",
       {"bool[n,256] 0 1.01"},
       rows_of_256,
       [](C x) { return reduce_any(x[0], {.axis = {1}}); },
       "torch.any(a, 1)",
       "jnp.any(a, 1)",
       no_gradient},
      {"reduce_all rows",
       {"bool[n,256] 0.99 2"},
       rows_of_256,
       [](C x) { return reduce_all(x[0], {.axis = {1}}); },
       "torch.all(a, 1)",
       "jnp.all(a, 1)",
       no_gradient},
      of_rows(
          "argmax", [](C x) { return argmax(x[0]); }, "torch.argmax(a, -1)", "jnp.argmax(a, -1)", no_gradient),
      of_rows(
          "argmin columns", [](C x) { return argmin(x[0], 0); }, "torch.argmin(a, 0)", "jnp.argmin(a, 0)", no_gradient),
      of_rows(
          "average", [](C x) { return average(x[0], x[0] + 2.0, 1); },
          "torch.sum(a * (a + 2), 1) / torch.sum(a + 2, 1)", "jnp.average(a, 1, a + 2)"),
      of_rows(
          "median", [](C x) { return median(x[0], {.axis = {1}}); }, "torch.quantile(a, 0.5, 1)", "jnp.median(a, 1)",
          no_gradient),
      of_rows(
          "quantile", [](C x) { return quantile(x[0], 0.3, {.axis = {1}}); }, "torch.quantile(a, 0.3, 1)",
          "jnp.quantile(a, 0.3, 1)", no_gradient),
      of_rows(
          "diff", [](C x) { return diff(x[0]); }, "torch.diff(a)", "jnp.diff(a)"),
      of_rows(
          "trapezoid", [](C x) { return trapezoid(x[0]); }, "torch.trapezoid(a)", "jnp.trapezoid(a)"),
  };
  rows.insert(rows.end(), added.begin(), added.end());
}

void add_cumulative(Rows& rows) {
  const Rows added = {
      of_rows(
          "cumsum", [](C x) { return cumsum(x[0], 1); }, "torch.cumsum(a, 1)", "jnp.cumsum(a, 1)"),
      of_rows(
          "cumsum columns", [](C x) { return cumsum(x[0], 0); }, "torch.cumsum(a, 0)", "jnp.cumsum(a, 0)"),
      {"cumsum vector", {"f32[n]"}, elements, [](C x) { return cumsum(x[0]); }, "torch.cumsum(a, 0)", "jnp.cumsum(a)"},
      of_rows(
          "cumprod", [](C x) { return cumprod(x[0], 1); }, "torch.cumprod(a, 1)", "jnp.cumprod(a, 1)", by_all,
          "0.95 1.05"),
      of_rows(
          "cumulative_logsumexp", [](C x) { return cumulative_logsumexp(x[0], 1); }, "torch.logcumsumexp(a, 1)",
          "lax.cumlogsumexp(a, 1)"),
      of_rows(
          "cummax", [](C x) { return cummax(x[0], 1); }, "torch.cummax(a, 1)[0]", "lax.cummax(a, 1)"),
      of_rows(
          "cummin", [](C x) { return cummin(x[0], 1); }, "torch.cummin(a, 1)[0]", "lax.cummin(a, 1)"),
  };
  rows.insert(rows.end(), added.begin(), added.end());
}

void add_sorting(Rows& rows) {
  const Rows added = {
      of_rows(
          "sort", [](C x) { return sort(x[0]); }, "torch.sort(a)[0]", "jnp.sort(a)"),
      {"sort vector", {"f32[n]"}, elements, [](C x) { return sort(x[0]); }, "torch.sort(a)[0]", "jnp.sort(a)"},
      of_rows(
          "argsort", [](C x) { return argsort(x[0]); }, "torch.argsort(a, stable=True)", "jnp.argsort(a)", no_gradient),
      of_rows(
          "top_k", [](C x) { return top_k(x[0], 8).values; }, "torch.topk(a, 8)[0]", "lax.top_k(a, 8)[0]"),
      {"top_k vector",
       {"f32[n]"},
       elements,
       [](C x) { return top_k(x[0], 10).values; },
       "torch.topk(a, 10)[0]",
       "lax.top_k(a, 10)[0]"},
      {"searchsorted",
       {"sorted[n]", "f32[n]"},
       elements,
       [](C x) { return searchsorted(x[0], x[1]); },
       "torch.searchsorted(a, b)",
       "jnp.searchsorted(a, b)",
       no_gradient},
      {"unique",
       {"i32[n] 0 5000"},
       elements,
       [](C x) { return unique(x[0], {.sorted = true}).values; },
       "torch.unique(a)",
       "",
       no_gradient,
       false,
       true},
      {"nonzero",
       {"i32[n] 0 2"},
       elements,
       [](C x) { return nonzero(x[0]); },
       "torch.nonzero(a)",
       "",
       no_gradient,
       false,
       true},
      {"boolean_mask",
       {"f32[n]", "bool[n] 0 2"},
       elements,
       [](C x) { return boolean_mask(x[0], x[1]); },
       "a[b]",
       "",
       no_gradient,
       false,
       true},
      {"bincount",
       {"i32[n] 0 1000"},
       elements,
       [](C x) { return bincount(x[0]); },
       "torch.bincount(a)",
       "jnp.bincount(a, length=1000)",
       no_gradient,
       false,
       true},
      {"histogram_fixed_width",
       {"f32[n]"},
       elements,
       [](C x) { return histogram_fixed_width(x[0], -1, 1, 100); },
       "torch.histc(a, 100, -1, 1)",
       "jnp.histogram(a, 100, (-1, 1))[0]",
       no_gradient},
  };
  rows.insert(rows.end(), added.begin(), added.end());
}

void add_indexing(Rows& rows) {
  constexpr Extents count{64, 4096, 400'000};
  const Rows added = {
      {"gather", {"f32[65536]", "index[n] 0 65536"}, elements, [](C x) { return gather(x[0], x[1]); }, "a[b]", "a[b]"},
      {"gather rows",
       {"f32[5000,64]", "index[n] 0 5000"},
       count,
       [](C x) { return gather(x[0], x[1]); },
       "torch.index_select(a, 0, b)",
       "jnp.take(a, b, 0)"},
      {"gather columns",
       {"f32[n,256]", "index[64] 0 256"},
       rows_of_256,
       [](C x) { return gather(x[0], x[1], 1); },
       "torch.index_select(a, 1, b)",
       "jnp.take(a, b, 1)"},
      {"gather_nd",
       {"f32[256,256]", "index[n,2] 0 256"},
       elements,
       [](C x) { return gather_nd(x[0], x[1]); },
       "a[b[:, 0], b[:, 1]]",
       "a[b[:, 0], b[:, 1]]"},
      {"take_along_axis",
       {"f32[n,256]", "index[n,256] 0 256"},
       rows_of_256,
       [](C x) { return take_along_axis(x[0], x[1]); },
       "torch.gather(a, 1, b)",
       "jnp.take_along_axis(a, b, 1)"},
      {"tensor_scatter_nd_add",
       {"f32[65536]", "f32[n]", "index[n,1] 0 65536"},
       elements,
       [](C x) { return tensor_scatter_nd_add(x[0], x[2], x[1]); },
       "torch.index_add(a, 0, c[:, 0], b)",
       "a.at[c[:, 0]].add(b)"},
      {"tensor_scatter_nd_update",
       {"f32[65536]", "f32[n]", "index[n,1] 0 65536"},
       elements,
       [](C x) { return tensor_scatter_nd_update(x[0], x[2], x[1] * 0.0 + 2.0); },
       "torch.index_put(a, (c[:, 0],), b * 0.0 + 2.0)",
       "a.at[c[:, 0]].set(b * 0.0 + 2.0)",
       no_gradient},
      {"tensor_scatter_nd_max",
       {"f32[65536]", "f32[n]", "index[n,1] 0 65536"},
       elements,
       [](C x) { return tensor_scatter_nd_max(x[0], x[2], x[1]); },
       "torch.scatter_reduce(a, 0, c[:, 0], b, 'amax')",
       "a.at[c[:, 0]].max(b)",
       no_gradient},
      {"tensor_scatter_nd_min",
       {"f32[65536]", "f32[n]", "index[n,1] 0 65536"},
       elements,
       [](C x) { return tensor_scatter_nd_min(x[0], x[2], x[1]); },
       "torch.scatter_reduce(a, 0, c[:, 0], b, 'amin')",
       "a.at[c[:, 0]].min(b)",
       no_gradient},
      {"scatter_nd",
       {"f32[n]", "index[n,1] 0 65536"},
       elements,
       [](C x) { return scatter_nd(x[1], x[0], {65536}); },
       "torch.index_add(torch.zeros(65536), 0, b[:, 0], a)",
       "jnp.zeros(65536).at[b[:, 0]].add(a)"},
      {"put_along_axis",
       {"f32[n,256]", "index[n,4] 0 256"},
       rows_of_256,
       [](C x) { return put_along_axis(x[0], x[1], cast(x[1], f32) * 0.0 + 2.0); },
       "torch.scatter(a, 1, b, 2.0)",
       "jnp.put_along_axis(a, b, 2.0, 1, inplace=False)",
       no_gradient},
      {"unsorted_segment_sum",
       {"f32[n,64]", "index[n] 0 100"},
       count,
       [](C x) { return unsorted_segment_sum(x[0], x[1], 100); },
       "torch.index_add(torch.zeros(100, 64), 0, b, a)",
       "jax.ops.segment_sum(a, b, 100)"},
      {"unsorted_segment_max",
       {"f32[n,64]", "index[n] 0 100"},
       count,
       [](C x) { return maximum(unsorted_segment_max(x[0], x[1], 100), -2.0); },
       "torch.index_reduce(torch.full((100, 64), -2.0), 0, b, a, 'amax')",
       "jnp.maximum(jax.ops.segment_max(a, b, 100), -2.0)",
       no_gradient},
      {"unsorted_segment_min",
       {"f32[n,64]", "index[n] 0 100"},
       count,
       [](C x) { return minimum(unsorted_segment_min(x[0], x[1], 100), 2.0); },
       "torch.index_reduce(torch.full((100, 64), 2.0), 0, b, a, 'amin')",
       "jnp.minimum(jax.ops.segment_min(a, b, 100), 2.0)",
       no_gradient},
      {"unsorted_segment_prod",
       {"f32[n,64] 0.9 1.1", "index[n] 0 100"},
       count,
       [](C x) { return unsorted_segment_prod(x[0], x[1], 100); },
       "torch.index_reduce(torch.ones(100, 64), 0, b, a, 'prod')",
       "jax.ops.segment_prod(a, b, 100)",
       no_gradient},
  };
  rows.insert(rows.end(), added.begin(), added.end());
}

}  // namespace

void add_reductions(Rows& rows) {
  add_sums(rows);
  add_cumulative(rows);
  add_sorting(rows);
  add_indexing(rows);
}

}  // namespace gradus::bench
