/// Jacobi's rotations for eigenvalues and singular values, Gram and Schmidt for QR, series for exponentials.
#include "tests/reference/oracle_decompositions.h"
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include "gradus/ops/decomposition_ops.h"

namespace gradus::reference {
namespace {

using Numbers = std::vector<double>;

/// m rows of n numbers.
struct Grid {
  Grid(std::size_t rows, std::size_t columns) : m(rows), n(columns), values(rows * columns) {}
  Grid(std::size_t rows, std::size_t columns, Numbers numbers) : m(rows), n(columns), values(std::move(numbers)) {}
  double& operator()(std::size_t i, std::size_t j) { return values[i * n + j]; }
  double operator()(std::size_t i, std::size_t j) const { return values[i * n + j]; }
  std::size_t m, n;
  Numbers values;
};
Grid unit(std::size_t n) {
  Grid one(n, n);
  for (std::size_t i = 0; i < n; ++i) one(i, i) = 1;
  return one;
}
Grid transposed(const Grid& a) {
  Grid result(a.n, a.m);
  for (std::size_t i = 0; i < a.m; ++i)
    for (std::size_t j = 0; j < a.n; ++j) result(j, i) = a(i, j);
  return result;
}
Grid operator*(const Grid& a, const Grid& b) {
  Grid c(a.m, b.n);
  for (std::size_t i = 0; i < a.m; ++i)
    for (std::size_t j = 0; j < b.n; ++j)
      for (std::size_t k = 0; k < a.n; ++k) c(i, j) += a(i, k) * b(k, j);
  return c;
}
double product_of_columns(const Grid& a, std::size_t i, std::size_t j) {
  double sum = 0;
  for (std::size_t k = 0; k < a.m; ++k) sum += a(k, i) * a(k, j);
  return sum;
}
void rotate(Grid& a, std::size_t i, std::size_t j, double c, double s) {
  for (std::size_t k = 0; k < a.m; ++k) {
    const double x = a(k, i), y = a(k, j);
    a(k, i) = c * x - s * y, a(k, j) = s * x + c * y;
  }
}
/// The rotation that makes (a b; b d) diagonal.
std::pair<double, double> rotation_of(double a, double b, double d) {
  const double zeta = (d - a) / (2 * b);
  const double t = (zeta >= 0 ? 1 : -1) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta)), c = 1 / std::sqrt(1 + t * t);
  return {c, c * t};
}
void append_numbers(Numbers& all, const Numbers& more) { all.insert(all.end(), more.begin(), more.end()); }

/// Makes k columns orthogonal by rotations, which `beside` takes along.
void make_orthogonal(Grid& a, Grid& beside) {
  for (int sweep = 0; sweep < 60; ++sweep)
    for (std::size_t i = 0; i < a.n; ++i)
      for (std::size_t j = i + 1; j < a.n; ++j) {
        const double b = product_of_columns(a, i, j);
        if (b == 0) continue;
        const auto [c, s] = rotation_of(product_of_columns(a, i, i), b, product_of_columns(a, j, j));
        rotate(a, i, j, c, s), rotate(beside, i, j, c, s);
      }
}

/// Columns that are 0, or the last ones, become unit vectors orthogonal to the others.
void complete(Grid& q, const std::function<bool(std::size_t)>& is_missing) {
  for (std::size_t j = 0; j < q.n; ++j) {
    if (!is_missing(j)) continue;
    double best = -1;
    Numbers chosen(q.m);
    for (std::size_t e = 0; e < q.m; ++e) {
      Numbers x(q.m);
      x[e] = 1;
      for (int again = 0; again < 3; ++again)
        for (std::size_t k = 0; k < q.n; ++k) {
          if (k >= j && is_missing(k)) continue;
          double along = 0;
          for (std::size_t i = 0; i < q.m; ++i) along += q(i, k) * x[i];
          for (std::size_t i = 0; i < q.m; ++i) x[i] -= along * q(i, k);
        }
      const double length = std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
      if (length <= best) continue;
      best = length, chosen = x;
    }
    for (std::size_t i = 0; i < q.m; ++i) q(i, j) = chosen[i] / best;
  }
}

struct Svd3 {
  Grid u, v;
  Numbers s;
};
Svd3 singular(const Grid& a) {
  if (a.m < a.n) {
    Svd3 other = singular(transposed(a));
    std::swap(other.u, other.v);
    return other;
  }
  Grid w = a, v = unit(a.n);
  make_orthogonal(w, v);
  Numbers sizes;
  for (std::size_t j = 0; j < a.n; ++j) sizes.push_back(std::sqrt(product_of_columns(w, j, j)));
  std::vector<std::size_t> order(a.n);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](std::size_t i, std::size_t j) { return sizes[i] > sizes[j]; });
  Svd3 result{Grid(a.m, a.n), Grid(a.n, a.n), Numbers(a.n)};
  for (std::size_t j = 0; j < a.n; ++j) {
    result.s[j] = sizes[order[j]];
    for (std::size_t i = 0; i < a.n; ++i) result.v(i, j) = v(i, order[j]);
    for (std::size_t i = 0; i < a.m; ++i) result.u(i, j) = result.s[j] > 0 ? w(i, order[j]) / result.s[j] : 0;
  }
  complete(result.u, [&](std::size_t j) { return result.s[j] == 0; });
  return result;
}

Numbers svd(const Value& v, const Grid& a) {
  const Svd3 all = singular(a);
  if (!v.op.as<Svd>()->vectors) return all.s;
  Numbers result = all.u.values;
  append_numbers(result, all.s);
  append_numbers(result, all.v.values);
  return result;
}

/// Both triangles from the lower one.
Grid symmetric(const Grid& a) {
  Grid result = a;
  for (std::size_t i = 0; i < a.n; ++i)
    for (std::size_t j = i + 1; j < a.n; ++j) result(i, j) = a(j, i);
  return result;
}
struct Eigen2 {
  Grid v;
  Numbers e;
};
Eigen2 eigen(const Grid& lower) {
  Grid a = symmetric(lower), v = unit(a.n);
  for (int sweep = 0; sweep < 60; ++sweep)
    for (std::size_t i = 0; i < a.n; ++i)
      for (std::size_t j = i + 1; j < a.n; ++j) {
        if (a(i, j) == 0) continue;
        const auto [c, s] = rotation_of(a(i, i), a(i, j), a(j, j));
        rotate(a, i, j, c, s);
        a = transposed(a);
        rotate(a, i, j, c, s);
        a(i, j) = a(j, i) = 0;
        rotate(v, i, j, c, s);
      }
  std::vector<std::size_t> order(a.n);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](std::size_t i, std::size_t j) { return a(i, i) < a(j, j); });
  Eigen2 result{Grid(a.n, a.n), {}};
  for (std::size_t j = 0; j < a.n; ++j) {
    result.e.push_back(a(order[j], order[j]));
    for (std::size_t i = 0; i < a.n; ++i) result.v(i, j) = v(i, order[j]);
  }
  return result;
}
Numbers eigh(const Value& v, const Grid& a) {
  const Eigen2 all = eigen(a);
  if (!v.op.as<Eigh>()->vectors) return all.e;
  Numbers result = all.v.values;
  append_numbers(result, all.e);
  return result;
}

/// Gram and Schmidt, twice.
Numbers qr(const Value& v, const Grid& a) {
  const Qr& op = *v.op.as<Qr>();
  const std::size_t k = op.full ? a.m : std::min(a.m, a.n);
  Grid q(a.m, k);
  const std::size_t given = std::min(a.n, k);
  for (std::size_t j = 0; j < given; ++j) {
    for (std::size_t i = 0; i < a.m; ++i) q(i, j) = a(i, j);
    for (int again = 0; again < 2; ++again)
      for (std::size_t p = 0; p < j; ++p) {
        const double along = product_of_columns(q, p, j);
        for (std::size_t i = 0; i < a.m; ++i) q(i, j) -= along * q(i, p);
      }
    const double length = std::sqrt(product_of_columns(q, j, j));
    for (std::size_t i = 0; i < a.m; ++i) q(i, j) /= length;
  }
  complete(q, [&](std::size_t j) { return j >= given; });
  Grid r = transposed(q) * a;
  for (std::size_t i = 0; i < r.m; ++i)
    for (std::size_t j = 0; j < std::min(i, r.n); ++j) r(i, j) = 0;
  Numbers result = q.values;
  append_numbers(result, r.values);
  return result;
}

Numbers pinv(const Value& v, const Grid& a) {
  const Pinv& op = *v.op.as<Pinv>();
  const double epsilon = v.spec.dtype == f64 ? std::numeric_limits<double>::epsilon()
                                             : static_cast<double>(std::numeric_limits<float>::epsilon());
  const double rcond = op.rcond == Pinv::by_sizes ? 10 * epsilon * static_cast<double>(std::max(a.m, a.n)) : op.rcond;
  const Svd3 all = singular(op.hermitian ? symmetric(a) : a);
  Grid scaled = all.v;
  for (std::size_t i = 0; i < scaled.m; ++i)
    for (std::size_t j = 0; j < scaled.n; ++j) scaled(i, j) = all.s[j] > rcond * all.s[0] ? scaled(i, j) / all.s[j] : 0;
  return (scaled * transposed(all.u)).values;
}

Numbers lu(const Value&, const Grid& given) {
  Grid a = given;
  Numbers order(a.n);
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t k = 0; k < a.n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k + 1; i < a.n; ++i)
      if (std::abs(a(i, k)) > std::abs(a(pivot, k))) pivot = i;
    for (std::size_t j = 0; j < a.n; ++j) std::swap(a(k, j), a(pivot, j));
    std::swap(order[k], order[pivot]);
    for (std::size_t i = k + 1; i < a.n; ++i) {
      a(i, k) /= a(k, k);
      for (std::size_t j = k + 1; j < a.n; ++j) a(i, j) -= a(i, k) * a(k, j);
    }
  }
  Numbers result = a.values;
  append_numbers(result, order);
  return result;
}

Numbers matrix_exp(const Value&, const Grid& a) {
  double largest = 0;
  for (const double x : a.values) largest = std::max(largest, std::abs(x));
  const int halvings = 4 + std::max(0, static_cast<int>(std::ceil(std::log2(largest * static_cast<double>(a.n) + 1))));
  Grid scaled = a, term = unit(a.n), sum = term;
  for (double& x : scaled.values) x = std::ldexp(x, -halvings);
  for (int k = 1; k < 20; ++k) {
    term = term * scaled;
    for (double& x : term.values) x /= k;
    for (std::size_t i = 0; i < sum.values.size(); ++i) sum.values[i] += term.values[i];
  }
  for (int k = 0; k < halvings; ++k) sum = sum * sum;
  return sum.values;
}

/// Row by row (Banachiewicz).
Numbers cholesky(const Value&, const Grid& a) {
  Grid l(a.n, a.n);
  for (std::size_t i = 0; i < a.n; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double rest = a(i, j);
      for (std::size_t k = 0; k < j; ++k) rest -= l(i, k) * l(j, k);
      l(i, j) = i == j ? std::sqrt(rest) : rest / l(j, j);
    }
  return l.values;
}

}  // namespace

std::optional<std::vector<double>> decomposition(const Value& v, const Spec& spec, const std::vector<double>& in) {
  static const std::map<std::string_view, Numbers (*)(const Value&, const Grid&)> ways{{"qr", qr},
                                                                                       {"eigh", eigh},
                                                                                       {"svd", svd},
                                                                                       {"pinv", pinv},
                                                                                       {"lu", lu},
                                                                                       {"matrix_exp", matrix_exp},
                                                                                       {"cholesky", cholesky}};
  const auto found = ways.find(v.op->library_kernel);
  if (found == ways.end()) return {};
  const auto m = static_cast<std::size_t>(spec.shape[-2]), n = static_cast<std::size_t>(spec.shape[-1]);
  std::size_t count = 1;
  for (int i = 0; i + 2 < spec.shape.rank(); ++i) count *= static_cast<std::size_t>(spec.shape[i]);
  Numbers all;
  for (std::size_t matrix = 0; matrix < count; ++matrix) {
    const auto first = in.begin() + static_cast<std::ptrdiff_t>(matrix * m * n);
    append_numbers(all, found->second(v, Grid(m, n, Numbers(first, first + static_cast<std::ptrdiff_t>(m * n)))));
  }
  return all;
}

}  // namespace gradus::reference
