/// Adjugates of small matrices, by elimination with exchanges. A matrix is one thread's.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include "gradus/backend/cpu/kernels/householder.h"
#include "gradus/backend/cpu/kernels/kernels.h"
#include "gradus/backend/cpu/run/data_image.h"

namespace gradus::library {
namespace {

struct Matrices {
  DType dtype;
  std::int64_t n;
  int source, target;  // slots
};

/// y: [n, n] becomes the adjugate of a: [n, n], which is overwritten. `order`: 2n numbers.
///
/// With the largest remaining element as pivot, a = P' L U Q' with exchanges P and Q, U = (V u; 0 d), and adj(a) = |P|
/// |Q| Q adj(U) L^-1 P, adj(U) = |V| (d V^-1, -V^-1 u; 0, 1). Neither divides by d, which is 0 if the rank is n - 1; if
/// it is less, a pivot of V is 0, and so is the adjugate.
template <class T> void adjugate(T* a, std::int64_t n, T* y, std::int64_t* order) {
  std::int64_t *const rows = order, *const columns = order + n;
  std::iota(rows, rows + n, 0), std::iota(columns, columns + n, 0);
  T product = 1;
  for (std::int64_t k = 0; k + 1 < n; ++k) {
    std::int64_t row = k, column = k;
    for (std::int64_t i = k; i < n; ++i)
      for (std::int64_t j = k; j < n; ++j)
        if (const T best = a[row * n + column]; best == best && !(std::abs(a[i * n + j]) <= std::abs(best)))
          row = i, column = j;  // the first NaN, if there is one: the result is NaN then
    const T pivot = a[row * n + column];
    if (pivot == 0) return static_cast<void>(std::fill(y, y + n * n, T(0)));
    product *= (row == k) == (column == k) ? pivot : -pivot;
    std::swap_ranges(a + k * n, a + (k + 1) * n, a + row * n);
    for (std::int64_t i = 0; i < n; ++i) std::swap(a[i * n + k], a[i * n + column]);
    std::swap(rows[k], rows[row]), std::swap(columns[k], columns[column]);
    for (std::int64_t i = k + 1; i < n; ++i) {
      const T factor = a[i * n + k] /= pivot;  // L
      for (std::int64_t j = k + 1; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
    }
  }
  // Row i of y, for now, is that of L^-1.
  std::fill(y, y + n * n, T(0));
  for (std::int64_t i = 0; i < n; ++i) {
    y[i * n + i] = 1;
    for (std::int64_t k = 0; k < i; ++k)
      for (std::int64_t j = 0; j <= k; ++j) y[i * n + j] -= a[i * n + k] * y[k * n + j];
  }
  const std::int64_t last = n - 1;
  const T d = a[n * n - 1];
  for (std::int64_t i = last; i-- > 0;)
    for (std::int64_t j = 0; j < n; ++j) {
      T value = d * y[i * n + j] - a[i * n + last] * y[last * n + j];
      for (std::int64_t k = i + 1; k < last; ++k) value -= a[i * n + k] * y[k * n + j];
      y[i * n + j] = value / a[i * n + i];
    }
  std::copy(y, y + n * n, a);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) y[columns[i] * n + rows[j]] = product * a[i * n + j];
}

/// The largest sum of sizes of a row.
template <class T> double row_norm(const T* a, std::int64_t n) {
  double largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (std::int64_t j = 0; j < n; ++j) sum += std::abs(static_cast<double>(a[i * n + j]));
    if (!(sum <= largest)) largest = sum;  // NaN, too
  }
  return largest;
}

using Blocks = factors::Sizes;
bool has_blocks(std::int64_t n) { return !Blocks{n, 0}.is_block(); }
template <class T> std::int64_t bytes_of_blocks(std::int64_t n) {
  const auto of_inverse = factors::Ways<T>::room_for_inverse({n, 0});
  const auto of_determinant = factors::Ways<T>::room_for_determinant({n, 0});
  return std::max(of_inverse.shared + of_inverse.own, of_determinant.shared + of_determinant.own);
}
/// det(a) a^-1 by blocks, if a is well enough conditioned for it.
template <class T> bool adjugate_of_regular(const T* a, std::int64_t n, T* y, std::byte* scratch) {
  using Ways = factors::Ways<T>;
  const Blocks sizes{n, 0};
  Ways::inverse(sizes, a, y, factors::Room(scratch), factors::Room(scratch + Ways::room_for_inverse(sizes).shared), {});
  const double lost = row_norm(a, n) * row_norm(y, n) * static_cast<double>(n) * std::numeric_limits<T>::epsilon();
  if (!(lost < 0.01)) return false;
  T factor[2];
  Ways::determinant(sizes, true, a, factor, factors::Room(scratch),
                    factors::Room(scratch + Ways::room_for_determinant(sizes).shared), {});
  // In two steps, since the power alone may be past the range.
  const int exponent = static_cast<int>(factor[1]), half = exponent / 2;
  const double first = static_cast<double>(factor[0]) * factors::power_of_two(half),
               second = factors::power_of_two(exponent - half);
  for (std::int64_t i = 0; i < n * n; ++i) y[i] = static_cast<T>(static_cast<double>(y[i]) * first * second);
  return true;
}

}  // namespace

/// Beside the matrix 2n places, or the memory of an inverse by blocks.
BoundThunk bind_adjugate(const Graph& graph, int value, Symbols symbols) {
  const Value& v = graph[value];
  const Shape shape = v.spec.shape.evaluated(symbols);
  const std::int64_t n = shape.back(), size = size_of(v.spec.dtype);
  std::int64_t count = shape.size() == 0 ? 0 : 1;
  for (int i = 0; i < shape.rank() - 2; ++i) count *= shape[i];
  BoundThunk bound{.extent = count};
  bound.bytes = 2 * shape.size() * size;
  bound.flops = 8 * shape.size() * n;
  bound.worker_scratch = n * n * size + 2 * n * static_cast<std::int64_t>(sizeof(std::int64_t)) + 8;
  if (has_blocks(n)) {
    bound.flops /= 3;
    bound.worker_scratch =
        std::max(bound.worker_scratch, v.spec.dtype == f64 ? bytes_of_blocks<double>(n) : bytes_of_blocks<float>(n));
  }
  bound.data = std::make_shared<Matrices>(Matrices{v.spec.dtype, n, storage_of(graph, v.in[0]), value});
  bound.image = image_of<Matrices>;
  return bound;
}

void run_adjugate(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& of = *static_cast<const Matrices*>(arguments->data);
  const std::int64_t n = of.n;
  const auto run = [&]<class T>(T) {
    const auto* x = static_cast<const T*>(arguments->slots[of.source]);
    auto* const y = static_cast<T*>(arguments->slots[of.target]);
    auto* const scratch = static_cast<T*>(arguments->scratch);
    const std::int64_t numbers = (n * n + 1) / 2 * 2;  // places are aligned to 8 bytes
    for (std::int64_t matrix = begin; matrix < end; ++matrix) {
      auto* const bytes = static_cast<std::byte*>(arguments->scratch);
      if (has_blocks(n) && adjugate_of_regular(x + matrix * n * n, n, y + matrix * n * n, bytes)) continue;
      std::copy(x + matrix * n * n, x + (matrix + 1) * n * n, scratch);
      adjugate(scratch, n, y + matrix * n * n, reinterpret_cast<std::int64_t*>(scratch + numbers));
    }
  };
  if (of.dtype == f64) run(double{});
  else run(float{});
}

}  // namespace gradus::library
