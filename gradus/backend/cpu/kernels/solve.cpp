/// Solutions of linear systems, and Cholesky's factor. A matrix is one thread's.
#include "gradus/ops/solve.h"
#include "gradus/ops/solve_ops.h"
#include <algorithm>
#include <cmath>
#include "gradus/backend/cpu/kernels/elimination.h"
#include "gradus/backend/cpu/kernels/kernels.h"
#include "gradus/backend/cpu/run/data_image.h"

namespace gradus::library {
namespace {

struct Systems {
  DType dtype;
  std::int64_t n, columns;  // of the matrix, and of the right side
  bool lower;               // of triangular ones
  int matrix, rhs, target;  // slots
};

BoundThunk bind_systems(const Graph& graph, int value, Symbols symbols, bool lower) {
  const Value& v = graph[value];
  const Shape shape = graph[v.in[0]].spec.shape.evaluated(symbols);
  const Shape result = v.spec.shape.evaluated(symbols);
  const std::int64_t n = shape.back(), columns = result.back(), size = size_of(v.spec.dtype);
  std::int64_t count = result.size() == 0 ? 0 : 1;
  for (int i = 0; i < shape.rank() - 2; ++i) count *= shape[i];
  BoundThunk bound{.extent = count};
  bound.bytes = (shape.size() + 2 * result.size()) * size;
  bound.flops = 2 * shape.size() * (n + columns);
  bound.worker_scratch = n * (n + columns) * size;
  const int rhs = storage_of(graph, v.in.back());
  bound.image = image_of<Systems>;
  bound.data =
      std::make_shared<Systems>(Systems{v.spec.dtype, n, columns, lower, storage_of(graph, v.in[0]), rhs, value});
  return bound;
}

/// Calls visit(matrix, right side, target, scratch) with pointers to elements for each system: f32 or f64.
template <class Visit>
void for_each_system(const KernelArguments* arguments, std::int64_t begin, std::int64_t end, Visit visit) {
  const auto& of = *static_cast<const Systems*>(arguments->data);
  const auto call = [&]<class T>(T) {
    for (std::int64_t i = begin; i < end; ++i)
      visit(of, static_cast<const T*>(arguments->slots[of.matrix]) + i * of.n * of.n,
            static_cast<const T*>(arguments->slots[of.rhs]) + i * of.n * of.columns,
            static_cast<T*>(arguments->slots[of.target]) + i * of.n * of.columns, static_cast<T*>(arguments->scratch));
  };
  if (of.dtype == f64) call(double{});
  else call(float{});
}

/// y, which holds the right side, of a matrix of which one triangle is read; rows of the matrix are `stride` apart.
template <class T>
void substitute(const T* a, T* y, std::int64_t n, std::int64_t columns, std::int64_t stride, std::int64_t y_stride,
                bool lower) {
  for (std::int64_t step = 0; step < n; ++step) {
    const std::int64_t i = lower ? step : n - 1 - step;
    for (std::int64_t k = lower ? 0 : i + 1; k < (lower ? i : n); ++k)
      for (std::int64_t j = 0; j < columns; ++j) y[i * y_stride + j] -= a[i * stride + k] * y[k * y_stride + j];
    for (std::int64_t j = 0; j < columns; ++j) y[i * y_stride + j] /= a[i * stride + i];
  }
}

}  // namespace

BoundThunk bind_solve(const Graph& graph, int value, Symbols symbols) {
  return bind_systems(graph, value, symbols, false);
}

void run_solve(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  for_each_system(arguments, begin, end, []<class T>(const Systems& of, const T* a, const T* b, T* y, T* both) {
    const std::int64_t n = of.n, k = of.columns, width = n + k;
    for (std::int64_t i = 0; i < n; ++i) {
      std::copy(a + i * n, a + (i + 1) * n, both + i * width);
      std::copy(b + i * k, b + (i + 1) * k, both + i * width + n);
    }
    for (std::int64_t at = 0; at < n; ++at) {
      exchange(both, width, pivot_of(both, n, width, at), at);
      for (std::int64_t i = at + 1; i < n; ++i) eliminate(both, width, i, at, at + 1);
    }
    substitute(both, both + n, n, k, width, width, false);
    for (std::int64_t i = 0; i < n; ++i) std::copy(both + i * width + n, both + (i + 1) * width, y + i * k);
  });
}

BoundThunk bind_triangular_solve(const Graph& graph, int value, Symbols symbols) {
  return bind_systems(graph, value, symbols, graph[value].op.as<TriangularSolve>()->lower);
}

void run_triangular_solve(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  for_each_system(arguments, begin, end, []<class T>(const Systems& of, const T* a, const T* b, T* y, T*) {
    if (y != b) std::copy(b, b + of.n * of.columns, y);
    substitute(a, y, of.n, of.columns, of.n, of.columns, of.lower);
  });
}

BoundThunk bind_cholesky(const Graph& graph, int value, Symbols symbols) {
  return bind_systems(graph, value, symbols, true);
}

void run_cholesky(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  for_each_system(arguments, begin, end, []<class T>(const Systems& of, const T* a, const T*, T* y, T*) {
    const std::int64_t n = of.n;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        if (j > i) {
          y[i * n + j] = 0;
          continue;
        }
        T rest = a[i * n + j];
        for (std::int64_t k = 0; k < j; ++k) rest -= y[i * n + k] * y[j * n + k];
        y[i * n + j] = i == j ? std::sqrt(rest) : rest / y[j * n + j];
      }
  });
}

}  // namespace gradus::library
