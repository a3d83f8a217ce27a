/// Sums in four chains, which compilers make vectors of; a QR decomposition by rows, and one-sided rotations of its
/// triangle (Jacobi's method on R', which R makes fast; Drmac and Veselic 2008).
#include "gradus/fitting/dense.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include "gradus/fitting/long_vectors.h"

namespace gradus::detail::fitting {
namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();

/// Reflects the rows from `k` on so that column k is 0 below row k.
void reflect(Matrix& a, Vector& f, std::size_t k, Vector& sums) {
  double square = 0;
  for (std::size_t i = k; i < a.rows; ++i) square += a(i, k) * a(i, k);
  if (square == 0) return;
  const double alpha = a(k, k) > 0 ? -std::sqrt(square) : std::sqrt(square);
  const double head = a(k, k) - alpha;  // v is column k with this head; v'v = -2 alpha head
  const double factor = -1 / (alpha * head);
  const std::size_t first = k + 1, n = a.columns - first;
  a(k, k) = head;
  std::fill(sums.begin(), sums.end(), 0.0);
  double of_f = 0;
  for (std::size_t i = k; i < a.rows; ++i) {
    add(sums.data(), a(i, k), a.row(i) + first, n);
    of_f += a(i, k) * f[i];
  }
  for (std::size_t i = k; i < a.rows; ++i) {
    const double v = -a(i, k) * factor;
    add(a.row(i) + first, v, sums.data(), n);
    f[i] += v * of_f;
    a(i, k) = 0;
  }
  a(k, k) = alpha;
}

/// Rotates rows i and j of r, and the elements of f, until the rows are orthogonal. False if they already were.
bool rotate(Matrix& r, Vector& f, std::size_t i, std::size_t j) {
  const std::size_t n = r.columns;
  double* const a = r.row(i);
  double* const b = r.row(j);
  const double aa = dot(a, a, n), bb = dot(b, b, n), ab = dot(a, b, n);
  if (!(std::abs(ab) > 2 * epsilon * std::sqrt(aa) * std::sqrt(bb))) return false;
  const double ratio = (bb - aa) / (2 * ab);
  const double t = (ratio >= 0 ? 1 : -1) / (std::abs(ratio) + std::sqrt(1 + ratio * ratio));
  const double c = 1 / std::sqrt(1 + t * t), s = c * t;
  for (std::size_t k = 0; k < n; ++k) {
    const double x = a[k];
    a[k] = c * x - s * b[k];
    b[k] = s * x + c * b[k];
  }
  const double x = f[i];
  f[i] = c * x - s * f[j];
  f[j] = s * x + c * f[j];
  return true;
}

void make_orthogonal(Matrix& r, Vector& f) {
  constexpr int most_sweeps = 60;  // 4 to 8 are usual
  bool changed = true;
  for (int sweep = 0; changed && sweep < most_sweeps; ++sweep) {
    changed = false;
    for (std::size_t i = 0; i + 1 < r.rows; ++i)
      for (std::size_t j = i + 1; j < r.rows; ++j) changed |= rotate(r, f, i, j);
  }
}

std::size_t row_of_largest(const Matrix& a, std::size_t k) {
  std::size_t best = k;
  for (std::size_t i = k + 1; i < a.rows; ++i)
    if (std::abs(a(i, k)) > std::abs(a(best, k))) best = i;
  return best;
}

}  // namespace

double dot(const double* a, const double* b, std::size_t n) {
  double sums[4] = {};
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (std::size_t lane = 0; lane < 4; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  for (; i < n; ++i) sums[0] += a[i] * b[i];
  return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}
double dot(const Vector& a, const Vector& b) {
  if (a.size() <= block_elements) return dot(a.data(), b.data(), a.size());
  return sum_of_blocks(a.size(), [&](std::size_t begin, std::size_t end) {
    return dot(a.data() + begin, b.data() + begin, end - begin);
  });
}
double norm(const Vector& a) { return std::sqrt(dot(a, a)); }

double largest(const Vector& a) {
  double most = 0;
  for (const double each : a)
    if (!(std::abs(each) <= most)) {
      most = std::abs(each);
      if (std::isnan(most)) break;
    }
  return most;
}
double total(const Vector& a) {
  double sum = 0;
  for (const double each : a) sum += std::abs(each);
  return sum;
}
bool all_finite(const Vector& a) {
  return std::all_of(a.begin(), a.end(), [](double each) { return std::isfinite(each); });
}

void add(double* y, double factor, const double* x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] += factor * x[i];
}
void add(Vector& y, double factor, const Vector& x) {
  in_blocks(y.size(),
            [&](std::size_t begin, std::size_t end) { add(y.data() + begin, factor, x.data() + begin, end - begin); });
}
double add_and_dot(Vector& y, double factor, const Vector& x, const Vector& other) {
  const auto part = [&](std::size_t begin, std::size_t end) {
    add(y.data() + begin, factor, x.data() + begin, end - begin);
    return dot(y.data() + begin, other.data() + begin, end - begin);
  };
  return y.size() <= block_elements ? part(0, y.size()) : sum_of_blocks(y.size(), part);
}

Vector scaled(Vector a, double factor) {
  in_blocks(a.size(), [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) a[i] *= factor;
  });
  return a;
}
Vector difference(const Vector& a, const Vector& b) {
  Vector result = a;
  add(result, -1, b);
  return result;
}
Vector product(Vector a, const Vector& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] *= b[i];
  return a;
}

Vector times(const Matrix& a, const Vector& x) {
  Vector result(a.rows);
  for (std::size_t i = 0; i < a.rows; ++i) result[i] = dot(a.row(i), x.data(), a.columns);
  return result;
}
Vector transposed_times(const Matrix& a, const Vector& x) {
  Vector result(a.columns);
  for (std::size_t i = 0; i < a.rows; ++i) add(result.data(), x[i], a.row(i), a.columns);
  return result;
}

Vector column_squares(const Matrix& a) {
  Vector squares(a.columns);
  for (std::size_t i = 0; i < a.rows; ++i)
    for (std::size_t j = 0; j < a.columns; ++j) squares[j] += a(i, j) * a(i, j);
  return squares;
}

Factors factored(Matrix a) {
  const std::size_t n = a.rows;
  Factors result{{}, std::vector<std::size_t>(n)};
  for (std::size_t k = 0; k < n && !result.is_singular; ++k) {
    const std::size_t pivot = result.pivots[k] = row_of_largest(a, k);
    result.is_singular = !(std::abs(a(pivot, k)) > 0);
    if (pivot != k) std::swap_ranges(a.row(k), a.row(k) + n, a.row(pivot));
    for (std::size_t i = k + 1; i < n; ++i) {
      a(i, k) = -a(i, k) / a(k, k);
      add(a.row(i) + k + 1, a(i, k), a.row(k) + k + 1, n - k - 1);
    }
  }
  result.triangles = std::move(a);
  return result;
}

Vector solved(const Factors& factors, Vector b) {
  if (factors.is_singular) return {};
  const Matrix& a = factors.triangles;
  const std::size_t n = a.rows;
  for (std::size_t k = 0; k < n; ++k) std::swap(b[k], b[factors.pivots[k]]);
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t i = k + 1; i < n; ++i) b[i] += a(i, k) * b[k];
  for (std::size_t k = n; k-- > 0;) b[k] = (b[k] - dot(a.row(k) + k + 1, b.data() + k + 1, n - k - 1)) / a(k, k);
  return b;
}

SingularValues singular_values(Matrix a, Vector f) {
  Vector sums(a.columns);
  const std::size_t rank = std::min(a.rows, a.columns);
  for (std::size_t k = 0; k < rank; ++k) reflect(a, f, k, sums);
  a.rows = rank;
  a.values.resize(rank * a.columns);
  f.resize(rank);
  make_orthogonal(a, f);

  Vector sizes(rank);
  for (std::size_t i = 0; i < rank; ++i) sizes[i] = std::sqrt(dot(a.row(i), a.row(i), a.columns));
  std::vector<std::size_t> order(rank);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return sizes[i] > sizes[j]; });
  SingularValues result{Vector(rank), Matrix(rank, a.columns), Vector(rank)};
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t from = order[i];
    result.values[i] = sizes[from];
    result.along[i] = f[from];
    if (sizes[from] > 0) add(result.right.row(i), 1 / sizes[from], a.row(from), a.columns);
  }
  return result;
}

}  // namespace gradus::detail::fitting
