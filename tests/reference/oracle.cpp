/// Slow and obvious: no blocks, no order of sums that matters, no shared code with what it checks.
#include "tests/reference/oracle.h"
#include <cstring>
#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <map>
#include <numbers>
#include "gradus/graph/region.h"
#include "gradus/ops/attention_ops.h"
#include "gradus/ops/concat.h"
#include "gradus/ops/cumulative_ops.h"
#include "gradus/ops/cumulative.h"
#include "gradus/ops/gather_ops.h"
#include "gradus/ops/incomplete.h"
#include "gradus/ops/incomplete_ops.h"
#include "gradus/ops/linear_algebra.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/matmul_ops.h"
#include "gradus/ops/scatter.h"
#include "gradus/ops/sample_ops.h"
#include "gradus/ops/scatter_ops.h"
#include "gradus/ops/signal_parts.h"
#include "gradus/ops/solve.h"
#include "gradus/ops/solve_ops.h"
#include "gradus/ops/sort.h"
#include "gradus/ops/sort_ops.h"
#include "tests/reference/oracle_control.h"
#include "tests/reference/oracle_decompositions.h"
#include "tests/reference/oracle_incomplete.h"
#include "tests/reference/oracle_windows.h"

namespace gradus::reference {
namespace {

using Numbers = std::vector<double>;
using scalar::Real;

struct Array {
  Spec spec;
  Numbers values;
  std::size_t size() const { return values.size(); }
};

std::size_t count(const Shape& shape) { return static_cast<std::size_t>(shape.size()); }

double number_of(std::uint64_t bits, DType t) {
  return with_type(t, [&]<class T>(T value) {
    std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
    return static_cast<double>(value);
  });
}

// ---------------------------------------------------------------- by the rules of ops

Numbers elementwise(const Value& v, const std::vector<const Array*>& in) {
  Numbers result;
  for (std::size_t i = 0; i < count(v.spec.shape); ++i) {
    std::vector<Real> x;
    for (const Array* operand : in) x.emplace_back(operand->values[i], operand->spec.dtype);
    result.push_back(v.op->emit_real(v.op.attributes(), x).v);
  }
  return result;
}

/// [outer, n, inner] around an axis that counts from the end.
struct Around {
  Around(const Shape& shape, int axis) : n(static_cast<std::size_t>(shape[axis])) {
    for (int i = 0; i < shape.rank(); ++i)
      (i < shape.normalized(axis)   ? outer
       : i > shape.normalized(axis) ? inner
                                    : ignored) *= static_cast<std::size_t>(shape[i]);
  }
  std::size_t outer = 1, n, inner = 1, ignored = 1;
  std::size_t at(std::size_t o, std::size_t j, std::size_t i) const { return (o * n + j) * inner + i; }
};

Numbers reduction(const Value& v, const Array& x) {
  const Around around(x.spec.shape, v.op.axis());
  const DType t = x.spec.dtype;
  Numbers result;
  for (std::size_t o = 0; o < around.outer; ++o)
    for (std::size_t i = 0; i < around.inner; ++i) {
      Real sum(v.op->identity(t).real(), t);
      for (std::size_t j = 0; j < around.n; ++j)
        sum = v.op->combine_real(v.op.attributes(), sum, Real(x.values[around.at(o, j, i)], t));
      result.push_back(sum.v);
    }
  return result;
}

Numbers index_formula(const Value& v) {
  Numbers result;
  for (std::int64_t i = 0; i < v.spec.shape.size(); ++i)
    result.push_back(v.op->emit_index_real(v.op.attributes(), Real(static_cast<double>(i), i64)).v);
  return result;
}

Numbers view(const Value& v, const std::vector<const Array*>& in) {
  const Shape& shape = v.spec.shape;
  const Array& x = *in[0];
  const bool by_table = in.size() == 2;  // row r is row in[1][r]
  const View view = v.op->view(v.op.attributes(), x.spec.shape, shape);
  Numbers result;
  for (std::int64_t i = 0; i < shape.size(); ++i) {
    std::int64_t rest = i, position = view.offset;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const std::int64_t steps = rest % shape[axis] * view.strides[axis];
      position += (view.backwards >> axis & 1) != 0 ? -steps : steps;
      rest /= shape[axis];
    }
    if (by_table) {
      const std::int64_t row = x.spec.shape.size() / x.spec.shape[0];
      const double index = in[1]->values.at(static_cast<std::size_t>(position / row));
      position = static_cast<std::int64_t>(index) * row + position % row;
    }
    result.push_back(x.values.at(static_cast<std::size_t>(position)));
  }
  return result;
}

// ---------------------------------------------------------------- library kernels

Numbers matmul(const Value& v, const std::vector<const Array*>& in) {
  const auto [transpose_a, transpose_b] = *v.op.as<Matmul>();
  const Shape &a = in[0]->spec.shape, &b = in[1]->spec.shape, &c = v.spec.shape;
  const std::int64_t m = c[-2], n = c[-1], k = transpose_a ? a[-2] : a[-1];
  const std::int64_t batches = m * n == 0 ? 0 : c.size() / (m * n);
  Numbers result;
  for (std::int64_t batch = 0; batch < batches; ++batch)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        Real sum(0.0, v.spec.dtype);
        for (std::int64_t l = 0; l < k; ++l) {
          const std::int64_t from_a = (a.rank() == 2 ? 0 : batch * m * k) + (transpose_a ? l * m + i : i * k + l);
          const std::int64_t from_b = (b.rank() == 2 ? 0 : batch * n * k) + (transpose_b ? j * k + l : l * n + j);
          sum = sum + Real(in[0]->values[static_cast<std::size_t>(from_a)], v.spec.dtype) *
                          Real(in[1]->values[static_cast<std::size_t>(from_b)], v.spec.dtype);
        }
        result.push_back(sum.v);
      }
  return result;
}

std::size_t checked(double index, std::size_t n) {
  require<OutOfRange>(index >= 0 && index < static_cast<double>(n), "index ", index, " is outside [0, ", n, ")");
  return static_cast<std::size_t>(index);
}

Numbers gather(const Value& v, const std::vector<const Array*>& in) {
  const Around around(in[0]->spec.shape, v.op.as<Gather>()->axis);
  Numbers result;
  for (std::size_t o = 0; o < around.outer; ++o)
    for (double index : in[1]->values)
      for (std::size_t i = 0; i < around.inner; ++i)
        result.push_back(in[0]->values[around.at(o, checked(index, around.n), i)]);
  return result;
}

Numbers scatter_add(const Value& v, const std::vector<const Array*>& in) {
  const Around around(v.spec.shape, v.op.as<ScatterAdd>()->axis);
  Numbers result(count(v.spec.shape));
  std::size_t next = 0;
  for (std::size_t o = 0; o < around.outer; ++o)
    for (double index : in[0]->values)
      for (std::size_t i = 0; i < around.inner; ++i) {
        double& sum = result[around.at(o, checked(index, around.n), i)];
        sum = scalar::wrapped(sum + in[1]->values[next++], v.spec.dtype).v;
      }
  return result;
}

Numbers check_range(const Value& v, const std::vector<const Array*>& in) {
  for (double index : in[0]->values) checked(index, static_cast<std::size_t>(v.op.as<CheckRange>()->limit));
  return in[0]->values;
}

Numbers check_indices(const Value& v, const std::vector<const Array*>& in) {
  for (double index : in[0]->values) checked(index, static_cast<std::size_t>(v.op.as<CheckIndices>()->limit));
  return in[0]->values;
}

Numbers concat(const Value& v, const std::vector<const Array*>& in) {
  const Around whole(v.spec.shape, v.op.as<Concat>()->axis);
  Numbers result;
  for (std::size_t o = 0; o < whole.outer; ++o)
    for (const Array* part : in) {
      const std::size_t row = part->size() / whole.outer;
      for (std::size_t i = 0; i < row; ++i) result.push_back(part->values[o * row + i]);
    }
  return result;
}

Numbers cumsum(const Value& v, const std::vector<const Array*>& in) {
  const Cumsum& op = *v.op.as<Cumsum>();
  const Around around(v.spec.shape, op.axis);
  Numbers result(count(v.spec.shape));
  for (std::size_t o = 0; o < around.outer; ++o)
    for (std::size_t i = 0; i < around.inner; ++i) {
      double sum = 0;
      for (std::size_t step = 0; step < around.n; ++step) {
        const std::size_t at = around.at(o, op.reverse ? around.n - 1 - step : step, i);
        const double with = scalar::wrapped(sum + in[0]->values[at], v.spec.dtype).v;
        result[at] = op.exclusive ? sum : with;
        sum = with;
      }
    }
  return result;
}

Numbers scatter(const Value& v, const std::vector<const Array*>& in) {
  const Scatter& op = *v.op.as<Scatter>();
  const Around around(v.spec.shape, op.axis);
  Numbers result = in[0]->values;
  std::size_t next = 0;
  for (std::size_t o = 0; o < around.outer; ++o)
    for (double index : in[1]->values)
      for (std::size_t i = 0; i < around.inner; ++i) {
        double& now = result[around.at(o, checked(index, around.n), i)];
        const double update = in[2]->values[next++];
        const bool nan = std::isnan(now) || std::isnan(update);
        switch (static_cast<Reduction>(op.kind)) {
          case Reduction::none: now = update; break;
          case Reduction::add: now = scalar::wrapped(now + update, v.spec.dtype).v; break;
          case Reduction::mul: now = scalar::wrapped(now * update, v.spec.dtype).v; break;
          case Reduction::min: now = nan ? now + update : std::min(now, update); break;
          case Reduction::max: now = nan ? now + update : std::max(now, update); break;
        }
      }
  return result;
}

Numbers update_rows(const Value& v, const std::vector<const Array*>& in) {
  const Around around(v.spec.shape, -v.spec.shape.rank());
  Numbers result = in[0]->values;
  for (std::size_t p = 0; p < in[1]->size(); ++p)
    if (const double index = in[1]->values[p]; index >= 0 && index < static_cast<double>(around.n))
      for (std::size_t i = 0; i < around.inner; ++i)
        result[around.at(0, static_cast<std::size_t>(index), i)] = in[2]->values[p * around.inner + i];
  return result;
}

Numbers argsort(const Value& v, const std::vector<const Array*>& in) {
  const ArgSort& op = *v.op.as<ArgSort>();
  const auto n = static_cast<std::size_t>(in[0]->spec.shape.back()), kept = static_cast<std::size_t>(op.count);
  Numbers result;
  for (std::size_t row = 0; row < (n ? in[0]->size() / n : 0); ++row) {
    const double* x = &in[0]->values[row * n];
    std::vector<std::size_t> order(n);
    for (std::size_t i = 0; i < n; ++i) order[i] = i;
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      if (std::isnan(x[a]) || std::isnan(x[b])) return !std::isnan(x[a]);
      return op.descending ? x[a] > x[b] : x[a] < x[b];
    });
    result.insert(result.end(), order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept));
  }
  return result;
}

/// Up to this size matrices are taken by their minors, which are n! many.
constexpr std::size_t most_rows_of_minors = 4;

/// Brings [a | b], n rows of `width`, to [1 | a^-1 b]; returns the determinant of a.
long double eliminate(std::vector<long double>& both, std::size_t n, std::size_t width) {
  long double determinant = 1;
  for (std::size_t at = 0; at < n; ++at) {
    std::size_t best = at;
    for (std::size_t i = at + 1; i < n; ++i)
      if (std::abs(both[i * width + at]) > std::abs(both[best * width + at])) best = i;
    if (best != at) determinant = -determinant;
    const long double pivot = both[best * width + at];
    determinant *= pivot;
    for (std::size_t j = 0; j < width; ++j) {
      std::swap(both[at * width + j], both[best * width + j]);
      both[at * width + j] /= pivot;
    }
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = width; i != at && j-- > at;)
        both[i * width + j] -= both[i * width + at] * both[at * width + j];
    if (pivot == 0) return 0;
  }
  return determinant;
}

/// a^-1 b of a [n, n] and b [n, columns].
Numbers solution(const Numbers& a, const Numbers& b, std::size_t n) {
  const std::size_t columns = b.size() / n, width = n + columns;
  std::vector<long double> both(n * width);
  for (std::size_t i = 0; i < n; ++i) {
    std::copy_n(a.data() + i * n, n, both.data() + i * width);
    std::copy_n(b.data() + i * columns, columns, both.data() + i * width + n);
  }
  eliminate(both, n, width);
  Numbers result;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < columns; ++j) result.push_back(static_cast<double>(both[i * width + n + j]));
  return result;
}

/// By the first row and the minors below it, or by elimination.
double determinant(const Numbers& a, std::size_t n) {
  if (n > most_rows_of_minors) {
    std::vector<long double> copy(a.begin(), a.end());
    return static_cast<double>(eliminate(copy, n, n));
  }
  double sum = n == 0;
  for (std::size_t j = 0; j < n; ++j) {
    Numbers minor;
    for (std::size_t i = 1; i < n; ++i)
      for (std::size_t k = 0; k < n; ++k)
        if (k != j) minor.push_back(a[i * n + k]);
    sum += (j % 2 ? -1 : 1) * a[j] * determinant(minor, n - 1);
  }
  return sum;
}

/// The matrices of x, one after the other.
std::vector<Numbers> matrices(const Array& x) {
  const auto n = static_cast<std::ptrdiff_t>(x.spec.shape.back());
  std::int64_t many = 1;
  for (int i = 0; i + 2 < x.spec.shape.rank(); ++i) many *= x.spec.shape[i];
  std::vector<Numbers> result;
  for (auto at = x.values.begin(); many-- > 0; at += n * n) result.emplace_back(at, at + n * n);
  return result;
}

Numbers det(const Value&, const std::vector<const Array*>& in) {
  Numbers result;
  for (const Numbers& a : matrices(*in[0]))
    result.push_back(determinant(a, static_cast<std::size_t>(in[0]->spec.shape.back())));
  return result;
}

/// Factor and power of two.
Numbers scaled_det(const Value&, const std::vector<const Array*>& in) {
  Numbers result;
  for (const Numbers& a : matrices(*in[0])) {
    int exponent = 0;
    double factor = std::frexp(determinant(a, static_cast<std::size_t>(in[0]->spec.shape.back())), &exponent);
    if (std::abs(factor) < 0.75) factor *= 2, --exponent;
    result.insert(result.end(), {factor, factor == 0 ? 0.0 : exponent});
  }
  return result;
}

void append(Numbers& all, const Numbers& more) { all.insert(all.end(), more.begin(), more.end()); }

/// Determinants without one row and one column, with their signs.
Numbers adjugate_of(const Numbers& a, std::size_t n) {
  Numbers result;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      Numbers minor;
      for (std::size_t k = 0; k < n * n; ++k)
        if (k / n != j && k % n != i) minor.push_back(a[k]);
      result.push_back(((i + j) % 2 ? -1 : 1) * determinant(minor, n - 1));
    }
  return result;
}

Numbers adjugate(const Value&, const std::vector<const Array*>& in) {
  Numbers result;
  for (const Numbers& a : matrices(*in[0]))
    append(result, adjugate_of(a, static_cast<std::size_t>(in[0]->spec.shape.back())));
  return result;
}

/// Cofactors over the determinant, or by elimination.
Numbers inverse(const Value&, const std::vector<const Array*>& in) {
  const auto n = static_cast<std::size_t>(in[0]->spec.shape.back());
  Numbers result, unit(n * n);
  for (std::size_t i = 0; i < n; ++i) unit[i * n + i] = 1;
  for (const Numbers& a : matrices(*in[0])) {
    if (n > most_rows_of_minors) {
      append(result, solution(a, unit, n));
      continue;
    }
    for (const double minor : adjugate_of(a, n)) result.push_back(minor / determinant(a, n));
  }
  return result;
}

/// The right side of system `i`: [n, columns].
Numbers right_side(const std::vector<const Array*>& in, std::size_t i) {
  const auto n = static_cast<std::size_t>(in[0]->spec.shape.back());
  const std::size_t size = n * static_cast<std::size_t>(in[1]->spec.shape.back());
  const auto first = in[1]->values.begin() + static_cast<std::ptrdiff_t>(i * size);
  return {first, first + static_cast<std::ptrdiff_t>(size)};
}

/// By Cramer's rule or elimination, of the matrix that `a` makes of each one.
Numbers solutions(const std::vector<const Array*>& in, const std::function<void(Numbers&)>& a) {
  const auto n = static_cast<std::size_t>(in[0]->spec.shape.back());
  const auto columns = static_cast<std::size_t>(in[1]->spec.shape.back());
  Numbers result;
  std::size_t system = 0;
  for (Numbers matrix : matrices(*in[0])) {
    a(matrix);
    const Numbers b = right_side(in, system++);
    if (n > most_rows_of_minors) {
      append(result, solution(matrix, b, n));
      continue;
    }
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < columns; ++j) {
        Numbers replaced = matrix;
        for (std::size_t k = 0; k < n; ++k) replaced[k * n + i] = b[k * columns + j];
        result.push_back(determinant(replaced, n) / determinant(matrix, n));
      }
  }
  return result;
}

Numbers solve(const Value&, const std::vector<const Array*>& in) {
  return solutions(in, [](Numbers&) {});
}
Numbers triangular_solve(const Value& v, const std::vector<const Array*>& in) {
  const auto n = static_cast<std::size_t>(in[0]->spec.shape.back());
  const bool lower = v.op.as<TriangularSolve>()->lower;
  return solutions(in, [&](Numbers& a) {
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j)
        if (lower ? j > i : j < i) a[i * n + j] = 0;
  });
}

Numbers linear_recurrence(const Value& v, const std::vector<const Array*>& in) {
  const LinearRecurrence& op = *v.op.as<LinearRecurrence>();
  const Around around(v.spec.shape, op.axis);
  Numbers result(count(v.spec.shape));
  for (std::size_t o = 0; o < around.outer; ++o)
    for (std::size_t i = 0; i < around.inner; ++i)
      for (std::size_t step = 0; step < around.n; ++step) {
        const auto place = [&](std::size_t k) { return around.at(o, op.reverse ? around.n - 1 - k : k, i); };
        const std::size_t at = place(step);
        const double product = step == 0 ? 0 : in[0]->values[at] * result[place(step - 1)];
        result[at] =
            step == 0 ? in[1]->values[at]
                      : scalar::wrapped(scalar::wrapped(product, v.spec.dtype).v + in[1]->values[at], v.spec.dtype).v;
      }
  return result;
}

/// Of operands of one shape, element by element.
template <class Function> Numbers each(const std::vector<const Array*>& in, Function f) {
  Numbers result;
  for (std::size_t i = 0; i < in[0]->values.size(); ++i) result.push_back(f(i));
  return result;
}
Numbers igamma(const Value& v, const std::vector<const Array*>& in) {
  const Igamma& op = *v.op.as<Igamma>();
  return each(in,
              [&](std::size_t i) { return incomplete_gamma(in[0]->values[i], in[1]->values[i], op.order, op.upper); });
}
Numbers betainc(const Value& v, const std::vector<const Array*>& in) {
  const Betainc& op = *v.op.as<Betainc>();
  return each(in, [&](std::size_t i) {
    return incomplete_beta(in[0]->values[i], in[1]->values[i], in[2]->values[i], op.order_a, op.order_b);
  });
}
Numbers zeta(const Value& v, const std::vector<const Array*>& in) {
  const Zeta& op = *v.op.as<Zeta>();
  return each(in, [&](std::size_t i) { return hurwitz_zeta(in[0]->values[i], in[1]->values[i], op.order); });
}
/// By the ops that a value stands for.
Numbers defined(const std::vector<const Array*>& in, const std::function<Region(Specs)>& definition) {
  std::vector<Spec> specs;
  std::vector<Numbers> inputs;
  for (const Array* operand : in) {
    specs.push_back(operand->spec);
    inputs.push_back(operand->values);
  }
  return evaluate(definition(specs).graph(), inputs)[0];
}
Numbers attention(const Value& v, const std::vector<const Array*>& in) {
  return defined(in, [&](Specs specs) { return attention_definition(v.op, specs); });
}
Numbers linear_sample(const Value& v, const std::vector<const Array*>& in) {
  return defined(in, [&](Specs specs) { return linear_sample_definition(v.op, specs); });
}

/// Sums over all points, each number rounded to the dtype at the end.
Numbers fourier(const Value& v, const std::vector<const Array*>& in) {
  const Fourier& op = *v.op.as<Fourier>();
  const Shape& shape = in[0]->spec.shape;
  const auto n = static_cast<std::size_t>(shape[-2]), parts = static_cast<std::size_t>(shape.back());
  const auto made = static_cast<std::size_t>(v.spec.shape[-2]);
  Numbers result;
  for (std::size_t row = 0; row < count(shape) / (n * parts); ++row)
    for (std::size_t k = 0; k < made; ++k) {
      std::complex<double> sum = 0;
      for (std::size_t t = 0; t < n; ++t) {
        const double* at = in[0]->values.data() + (row * n + t) * parts;
        const double angle = 2 * std::numbers::pi * static_cast<double>(k * t % n) / static_cast<double>(n);
        sum += std::complex<double>(at[0], parts == 2 ? at[1] : 0) * std::polar(1.0, op.inverse ? angle : -angle);
      }
      result.push_back(scalar::wrapped(sum.real(), v.spec.dtype).v);
      result.push_back(scalar::wrapped(sum.imag(), v.spec.dtype).v);
    }
  return result;
}

Numbers library_call(const Value& v, const std::vector<const Array*>& in) {
  static const std::map<std::string_view, Numbers (*)(const Value&, const std::vector<const Array*>&)> kernels{
      {"matmul", matmul},
      {"gather", gather},
      {"scatter_add", scatter_add},
      {"check_range", check_range},
      {"check_indices", check_indices},
      {"concat", concat},
      {"cumsum", cumsum},
      {"scatter", scatter},
      {"update_rows", update_rows},
      {"argsort", argsort},
      {"det", det},
      {"scaled_det", scaled_det},
      {"adjugate", adjugate},
      {"inverse", inverse},
      {"solve", solve},
      {"triangular_solve", triangular_solve},
      {"linear_recurrence", linear_recurrence},
      {"fourier", fourier},
      {"igamma", igamma},
      {"betainc", betainc},
      {"zeta", zeta},
      {"linear_sample", linear_sample},
      {"attention", attention},
      {"attention_gradient", attention}};
  const auto found = kernels.find(v.op->library_kernel);
  if (found != kernels.end()) return found->second(v, in);
  if (auto made = decomposition(v, in[0]->spec, in[0]->values)) return *made;
  std::vector<Spec> specs;
  std::vector<const Numbers*> values;
  for (const Array* operand : in) {
    specs.push_back(operand->spec);
    values.push_back(&operand->values);
  }
  return over_windows(v, specs, values);
}

Numbers inlined(const Value& v, const std::vector<const Array*>& in) {
  std::vector<Numbers> inputs;
  for (const Array* operand : in) inputs.push_back(operand->values);
  const auto output = static_cast<std::size_t>(v.op.has_siblings() ? v.op.output() : 0);
  return evaluate(v.op->inlined(v.op.attributes()).graph(), inputs)[output];
}

Numbers compute(const Value& v, const std::vector<const Array*>& in) {
  if (v.is_constant) return Numbers(count(v.spec.shape), number_of(v.constant, v.spec.dtype));
  if (v.op.is_elementwise()) return elementwise(v, in);
  if (v.op.is_reduction()) return reduction(v, *in[0]);
  if (v.op.is_index()) return index_formula(v);
  if (v.op.is_view()) return view(v, in);
  if (v.op.is_alias()) return in[0]->values;
  if (v.op->inlined) return inlined(v, in);
  if (v.op.is_control()) {
    std::vector<Numbers> operands;
    for (const Array* operand : in) operands.push_back(operand->values);
    return control(v, operands);
  }
  return library_call(v, in);
}

}  // namespace

std::vector<Numbers> evaluate(const Graph& graph, const std::vector<Numbers>& inputs) {
  internal_check(inputs.size() == graph.inputs.size(), "the oracle is given other inputs than the graph has");
  std::vector<Array> arrays;
  for (int i = 0; i < graph.size(); ++i) {
    const Value& v = graph[i];
    std::vector<const Array*> in;
    for (int operand : v.in) in.push_back(&arrays[static_cast<std::size_t>(operand)]);
    const auto position = std::ranges::find(graph.inputs, i) - graph.inputs.begin();
    arrays.push_back({v.spec, v.is_input() ? inputs.at(static_cast<std::size_t>(position)) : compute(v, in)});
    internal_check(arrays.back().size() == count(v.spec.shape), "value %", i, ", ", v.op,
                   ", has another size than its shape says");
  }
  std::vector<Numbers> outputs;
  for (int o : graph.outputs) outputs.push_back(arrays[static_cast<std::size_t>(o)].values);
  return outputs;
}

}  // namespace gradus::reference
