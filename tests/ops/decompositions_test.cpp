/// Decompositions: errors by the measures of LAPACK's tests for sizes around blocks, hard matrices, those that are not
/// finite or empty, gradients, and values of NumPy, SciPy and JAX (decompositions/make_values.py).
#include <gtest/gtest.h>
#include <fstream>
#include <map>
#include <sstream>
#include "gradus/base/rooms.h"
#include "gradus/gradus.h"
#include "tests/threads.h"

namespace gradus::decomposition_tests::decompositions_test {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double threshold = 30;  // LAPACK's of its test ratios

double frobenius(const Tensor& x) {
  return x.shape().size() == 0 ? 0 : std::sqrt(reduce_sum(square(cast(x, f64))).item());
}
double rounding_of(DType t) { return t == f64 ? 0x1p-53 : 0x1p-24; }
Tensor wide(const Tensor& x) { return cast(x, f64); }
Tensor normal_matrix(const Shape& shape, DType t, std::uint64_t seed) {
  return cast(random::normal(shape, {.seed = seed}), t);
}
bool all_nan(const Tensor& x) { return reduce_all(is_nan(x)).item() != 0; }

/// Sizes of rows from 10^-(digits / 2) to 10^(digits / 2).
Tensor graded_rows(std::int64_t n, double digits) {
  const Tensor power = wide(range(n)) * (digits / static_cast<double>(n)) - digits / 2;
  return expand_dims(pow(constant(10.0, f64), power), 1);
}
Tensor hilbert_matrix(std::int64_t m, std::int64_t n) {
  return 1 / (1 + expand_dims(wide(range(m)), 1) + expand_dims(wide(range(n)), 0));
}
/// Random, ill-conditioned, graded, of deficient rank, with repeated values, of zeros, near both ends of the range.
std::vector<Tensor> matrices_of(std::int64_t m, std::int64_t n, DType t) {
  const Tensor x = normal_matrix({m, n}, f64, 1);
  const double huge = t == f64 ? 1e300 : 1e36, tiny = t == f64 ? 1e-290 : 1e-30;
  std::vector<Tensor> all{x,
                          hilbert_matrix(m, n),
                          x * graded_rows(m, 12),
                          x * transpose(graded_rows(n, 12)),
                          matmul(normal_matrix({m, 2}, f64, 2), normal_matrix({2, n}, f64, 3)),
                          eye(m, n, f64),
                          ones({m, n}, f64),
                          zeros({m, n}, f64),
                          x * huge,
                          x * tiny};
  for (Tensor& each : all) each = cast(each, t);
  return all;
}

class Decompositions : public testing::TestWithParam<std::tuple<DType, std::int64_t, std::int64_t>> {
 protected:
  const DType t = std::get<0>(GetParam());
  const std::int64_t m = std::get<1>(GetParam()), n = std::get<2>(GetParam()), k = std::min(m, n);
  const double bound = threshold * static_cast<double>(std::max(m, n)) * rounding_of(t);

  void expect_orthonormal(const Tensor& q) const {
    const std::int64_t columns = q.shape()[-1];
    EXPECT_LE(frobenius(matmul(transpose(wide(q)), wide(q)) - eye(columns, columns, f64)), bound);
  }
  /// Scaled, so that squares of huge numbers are finite.
  void expect_product(const Tensor& x, const Tensor& a, const Tensor& b) const {
    const double largest = reduce_max(abs(wide(x))).item(), scale = largest > 0 ? 1 / largest : 1;
    EXPECT_LE(frobenius(wide(x) * scale - matmul(wide(a), wide(b) * scale)), bound * frobenius(wide(x) * scale));
  }
};

TEST_P(Decompositions, FactorsOfQrMultiplyToTheMatrix) {
  for (const Tensor& x : matrices_of(m, n, t))
    for (const bool full : {false, true}) {
      const auto [q, r] = qr(x, {.full_matrices = full});
      const std::int64_t columns = full ? m : k;
      ASSERT_EQ(q.shape(), (Shape{m, columns}));
      ASSERT_EQ(r.shape(), (Shape{columns, n}));
      expect_orthonormal(q);
      expect_product(x, q, r);
      EXPECT_TRUE(bitwise_equal(r, triu(r)));
    }
}

TEST_P(Decompositions, SingularVectorsMultiplyToTheMatrix) {
  for (const Tensor& x : matrices_of(m, n, t)) {
    const auto [s, u, v] = svd(x);
    ASSERT_EQ(s.shape(), (Shape{k}));
    ASSERT_EQ(u.shape(), (Shape{m, k}));
    ASSERT_EQ(v.shape(), (Shape{n, k}));
    expect_orthonormal(u), expect_orthonormal(v);
    expect_product(x, u, transpose(v) * expand_dims(s, 1));
    EXPECT_TRUE(reduce_all(s >= 0).item() != 0);
    EXPECT_TRUE(bitwise_equal(s, sort(s, -1, Direction::descending)));
    EXPECT_TRUE(bitwise_equal(svdvals(x), s));
  }
  const auto [s, u, v] = svd(normal_matrix({m, n}, t, 4), {.full_matrices = true});
  ASSERT_EQ(u.shape(), (Shape{m, m}));
  ASSERT_EQ(v.shape(), (Shape{n, n}));
  expect_orthonormal(u), expect_orthonormal(v);
}

TEST_P(Decompositions, EigenvectorsMultiplyToTheMatrix) {
  if (m != n) return;
  for (const Tensor& given : matrices_of(n, n, t)) {
    const Tensor x = given * 0.5 + transpose(given) * 0.5;
    const auto [e, v] = eigh(x + triu(fill({n, n}, std::numeric_limits<double>::quiet_NaN(), t), 1));
    expect_orthonormal(v);
    expect_product(x, wide(v) * expand_dims(wide(e), 0), transpose(v));
    EXPECT_TRUE(bitwise_equal(e, sort(e)));
    EXPECT_TRUE(bitwise_equal(eigvalsh(x), e));
  }
}

TEST_P(Decompositions, FactorsOfLuMultiplyToTheMatrix) {
  if (m != n) return;
  const Tensor x = normal_matrix({2, n, n}, t, 5), b = normal_matrix({2, n, 3}, t, 6);
  const auto [factors, p] = lu(x);
  for (const std::int64_t i : {0, 1}) {
    const Tensor lower = tril(factors[i], -1) + eye(n, n, t);
    EXPECT_LE(reduce_max(abs(lower)).item(), 1);
    expect_product(gather(x[i], p[i], 0), lower, triu(factors[i]));
  }
  const Tensor rest = wide(x) - wide(lu_reconstruct(factors, p));
  EXPECT_LE(frobenius(rest), bound * static_cast<double>(n) * frobenius(x));
  EXPECT_TRUE(bitwise_equal(lu_solve(factors, p, b), solve(x, b)));
}

/// Penrose's equations.
TEST_P(Decompositions, PseudoinversesHavePenrosesProperties) {
  for (const Tensor& x : {normal_matrix({m, n}, t, 7), matrices_of(m, n, t)[4], ones({m, n}, t)}) {
    const Tensor p = pinv(x), a = wide(x), b = wide(p), ab = matmul(a, b), ba = matmul(b, a);
    const double scale = frobenius(a) * frobenius(b), most = bound * scale;
    EXPECT_LE(frobenius(matmul(ab, a) - a), most * scale * frobenius(a));
    EXPECT_LE(frobenius(matmul(ba, b) - b), most * scale * frobenius(b));
    EXPECT_LE(frobenius(ab - transpose(ab)), most * scale);
    EXPECT_LE(frobenius(ba - transpose(ba)), most * scale);
  }
  EXPECT_EQ(matrix_rank(normal_matrix({m, n}, t, 8)).item(), static_cast<double>(k));
  EXPECT_EQ(matrix_rank(matrices_of(m, n, t)[4]).item(), static_cast<double>(std::min<std::int64_t>(k, 2)));
  EXPECT_EQ(matrix_rank(zeros({m, n}, t)).item(), 0);
}

TEST_P(Decompositions, OfMatricesThatAreNotFiniteAreNan) {
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), infinite}) {
    const Tensor x = normal_matrix({m, n}, t, 9);
    const Tensor is_last = equal(reshape(range(m * n), {m, n}), m * n - 1);
    const Tensor with = where(is_last, fill({m, n}, bad, t), x);
    const auto [q, r] = qr(with);
    const auto [s, u, v] = svd(with);
    for (const Tensor& each : {q, r, s, u, v, svdvals(with), pinv(with)}) EXPECT_TRUE(all_nan(each));
    if (m != n) continue;
    const auto [e, vectors] = eigh(with);
    for (const Tensor& each : {e, vectors, eigvalsh(with), lu(with).lu, matrix_exp(with)}) EXPECT_TRUE(all_nan(each));
  }
}

/// Each matrix of a batch, of any number of threads and under vmap, has the bits that it has alone.
TEST_P(Decompositions, OfBatchesHaveTheBitsOfEachMatrix) {
  const auto all = [](const Tensor& x) {
    const auto [q, r] = qr(x);
    const auto [s, u, v] = svd(x);
    std::vector<Tensor> results{q, r, s, u, v, pinv(x)};
    if (x.shape()[-1] != x.shape()[-2]) return results;
    const auto [e, vectors] = eigh(x);
    results.insert(results.end(), {e, vectors, lu(x).lu, matrix_exp(x)});
    return results;
  };
  const Tensor x = normal_matrix({3, m, n}, t, 10);
  std::vector<std::vector<Tensor>> alone;
  for (const std::int64_t i : {0, 1, 2}) alone.push_back(all(x[i]));
  for (const int threads : {1, 2, 7}) {
    const Threads scope(threads);
    const std::vector<Tensor> together = all(x + 0);
    for (std::size_t k = 0; k < together.size(); ++k)
      for (const std::int64_t i : {0, 1, 2})
        EXPECT_TRUE(bitwise_equal(together[k][i], alone[static_cast<std::size_t>(i)][k])) << threads << ' ' << k;
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Decompositions, testing::ValuesIn([] {
                           std::vector<std::tuple<DType, std::int64_t, std::int64_t>> all;
                           for (const DType t : {f32, f64})
                             for (const auto& [m, n] : std::initializer_list<std::pair<int, int>>{{1, 1},
                                                                                                  {2, 2},
                                                                                                  {3, 3},
                                                                                                  {16, 16},
                                                                                                  {17, 17},
                                                                                                  {33, 33},
                                                                                                  {64, 64},
                                                                                                  {65, 65},
                                                                                                  {97, 97},
                                                                                                  {130, 130},
                                                                                                  {5, 1},
                                                                                                  {1, 5},
                                                                                                  {40, 3},
                                                                                                  {3, 40},
                                                                                                  {70, 35},
                                                                                                  {35, 70},
                                                                                                  {100, 99}})
                               all.emplace_back(t, m, n);
                           return all;
                         }()),
                         [](const auto& of) {
                           return text(std::get<0>(of.param), "x", std::get<1>(of.param), "x", std::get<2>(of.param));
                         });

TEST(EmptyMatrices, HaveEmptyDecompositions) {
  EXPECT_EQ(qr(zeros({3, 0})).q.shape(), (Shape{3, 0}));
  EXPECT_TRUE(bitwise_equal(qr(zeros({3, 0}), {.full_matrices = true}).q, eye(3, 3)));
  EXPECT_EQ(svd(zeros({0, 4})).v.shape(), (Shape{4, 0}));
  EXPECT_TRUE(bitwise_equal(svd(zeros({0, 4}), {.full_matrices = true}).v, eye(4, 4)));
  EXPECT_EQ(eigh(zeros({0, 0})).e.shape(), (Shape{0}));
  EXPECT_EQ(eigh(zeros({0, 3, 3})).v.shape(), (Shape{0, 3, 3}));
  EXPECT_EQ(lu(zeros({0, 0})).p.shape(), (Shape{0}));
  EXPECT_EQ(pinv(zeros({0, 4})).shape(), (Shape{4, 0}));
  EXPECT_EQ(matrix_exp(zeros({0, 0})).shape(), (Shape{0, 0}));
  EXPECT_EQ(matrix_rank(zeros({2, 3, 0})).to_vector<std::int32_t>(), (std::vector<std::int32_t>{0, 0}));
}

TEST(Lu, OrdersHaveTheTypeThatIsAskedFor) {
  EXPECT_EQ(lu(eye(3, 3)).p.dtype(), i32);
  EXPECT_EQ(lu(eye(3, 3), i64).p.dtype(), i64);
  EXPECT_THROW(lu(eye(3, 3), f32), InvalidArgument);
  EXPECT_THROW(lu(zeros({2, 3})), InvalidArgument);
  EXPECT_THROW(lu_solve(eye(3, 3), zeros({3}), zeros({3, 1})), InvalidArgument);
}

TEST(MatrixRank, TakesAnAbsoluteTolerance) {
  const Tensor x = diag(constant({1.0, 1e-2, 1e-4}, f64));
  EXPECT_EQ(matrix_rank(x).item(), 3);
  EXPECT_EQ(matrix_rank(x, {.tol = 1e-3}).item(), 2);
  EXPECT_EQ(pinv(x, {.rcond = 1e-3})[2][2].item(), 0);
  EXPECT_THROW(matrix_rank(x, {.tol = -1}), InvalidArgument);
}

/// Where values repeat, a loss of the values alone has a gradient, one of free vectors has none.
TEST(RepeatedValues, HaveGradientsWhereVectorsDoNotMatter) {
  const Tensor one = eye(3, 3, f64), weights = constant({1.0, 1.0, 1.0}, f64);
  const auto sum_of_values = [&](const Tensor& x) { return reduce_sum(eigh(x).e * weights); };
  EXPECT_LE(frobenius(gradient(sum_of_values, one) - one), 1e-14);
  const auto sum_of_singular = [&](const Tensor& x) { return reduce_sum(svd(x).s * weights); };
  EXPECT_LE(frobenius(gradient(sum_of_singular, one) - one), 1e-14);
  const auto of_vectors = [&](const Tensor& x) {
    const auto [e, v] = eigh(x);
    return reduce_sum(matmul(v * expand_dims(exp(e), 0), transpose(v)) * hilbert_matrix(3, 3));
  };
  EXPECT_FALSE(reduce_all(is_finite(gradient(of_vectors, one))).item() != 0);
  const auto of_inverse = [&](const Tensor& x) { return reduce_sum(pinv(x) * hilbert_matrix(3, 3)); };
  EXPECT_LE(frobenius(gradient(of_inverse, one) + hilbert_matrix(3, 3)), 1e-13);
  // Two values repeat, and the loss depends on the vector of the third one.
  const auto of_last = [&](const Tensor& x) { return reduce_sum(square(eigh(x).v[0][2] + 0)); };
  EXPECT_TRUE(reduce_all(is_finite(gradient(of_last, diag(constant({1.0, 1.0, 3.0}, f64))))).item() != 0);
}

/// Gradients of order 2, past one block, against differences of the first gradient.
TEST(DecompositionGradients, OfOrderTwo) {
  constexpr std::int64_t n = 36;
  const Tensor x = normal_matrix({n, n}, f64, 1) * 0.05, direction = normal_matrix({n, n}, f64, 2);
  const Tensor sizes = diag(wide(range(n)) * 0.3 + 1), weights = normal_matrix({n, n}, f64, 3);
  const auto weighted = [&](const Tensor& y) { return reduce_sum(y * weights); };
  const std::vector<std::pair<const char*, std::function<Tensor(const Tensor&)>>> functions{
      {"qr", [&](const Tensor& a) { return weighted(qr(a + sizes).q) + weighted(square(qr(a + sizes).r)); }},
      {"tall qr", [&](const Tensor& a) { return weighted(concat({qr(concat({a + sizes, a}, 0)).q.rows(0, n)}, 0)); }},
      {"wide qr", [&](const Tensor& a) { return weighted(square(qr(concat({a + sizes, a}, 1)).q)); }},
      {"lu", [&](const Tensor& a) { return weighted(square(lu(a + sizes).lu)); }},
      {"eigh", [&](const Tensor& a) { return weighted(square(eigh(a + transpose(a) + sizes * 6.0).v)); }},
      {"svd",
       [&](const Tensor& a) {
         const auto [s, u, v] = svd(concat({a + sizes, a}, 0));
         return weighted(matmul(u.rows(0, n) * expand_dims(sin(s), 0), transpose(v)));
       }},
      {"pinv", [&](const Tensor& a) { return weighted(pinv(concat({a + sizes, a}, 1)).rows(0, n)); }},
      {"matrix_exp", [&](const Tensor& a) { return weighted(square(matrix_exp(a))); }}};
  for (const auto& [name, f] : functions) {
    const auto slope = [&f = f, &direction](const Tensor& a) { return reduce_sum(gradient(f, a) * direction); };
    const auto differences = [&](const auto& of, double step) {
      return (of(x + direction * step).item() - of(x - direction * step).item()) / (2 * step);
    };
    const double first = differences(f, 1e-5), second = differences(slope, 1e-5);
    EXPECT_NEAR(slope(x).item(), first, 1e-6 * (1 + std::abs(first))) << name;
    EXPECT_NEAR(reduce_sum(gradient(slope, x) * direction).item(), second, 1e-5 * (1 + std::abs(second))) << name;
  }
}

TEST(MatrixExp, OfOppositesAreInverses) {
  for (const DType t : {f32, f64})
    for (const double norm : {1e-4, 0.1, 1.0, 3.0, 20.0}) {
      const Tensor x = normal_matrix({2, 40, 40}, t, 3) * (norm / 40);
      const Tensor both = matmul(wide(matrix_exp(x)), wide(matrix_exp(-x)));
      const double size = frobenius(matrix_exp(x)) * frobenius(matrix_exp(-x));
      EXPECT_LE(frobenius(both - eye(40, 40, f64)), 40 * rounding_of(t) * size * (1 + norm)) << norm;
    }
}

// Stored values.

struct StoredCase {
  std::string name;
  Tensor in, out, gradient;
};
Tensor read_matrix(std::istream& from) {
  std::int64_t m = 0, n = 0;
  from >> m >> n;
  std::vector<double> numbers(static_cast<std::size_t>(m * n));
  for (double& each : numbers) from >> each;
  return reshape(constant(numbers, f64), {m, n});
}
std::vector<StoredCase> stored_cases() {
  std::ifstream file(GRADUS_DECOMPOSITIONS);
  std::vector<StoredCase> cases;
  for (std::string kind; file >> kind;) {
    if (kind == "case") std::getline(file >> std::ws, cases.emplace_back().name);
    else
      (kind == "in" ? cases.back().in : kind == "out" ? cases.back().out : cases.back().gradient) = read_matrix(file);
  }
  return cases;
}

/// As in make_values.py.
Tensor wave(std::int64_t m, std::int64_t n, double phase) {
  return sin(pow(wide(reshape(range(m * n), {m, n})), 1.5) + phase) + eye(m, n, f64);
}
std::map<std::string, std::function<Tensor(const Tensor&)>> functions_by_name() {
  return {{"svdvals", svdvals},
          {"svd",
           [](const Tensor& x) {
             const auto [s, u, v] = svd(x);
             return matmul(u * expand_dims(cos(s), 0), transpose(v));
           }},
          {"qr",
           [](const Tensor& x) {
             const auto [q, r] = qr(x);
             return concat({transpose(q), r}, 1);
           }},
          {"matrix_rank", [](const Tensor& x) { return cast(matrix_rank(x), f64); }},
          {"pinv", [](const Tensor& x) { return pinv(x); }},
          {"lu",
           [](const Tensor& x) {
             const auto [factors, p] = lu(x);
             return concat({factors, cast(expand_dims(p, 0), f64)}, 0);
           }},
          {"matrix_exp", matrix_exp},
          {"lstsq", [](const Tensor& x) { return lstsq(x, wave(x.shape()[0], 3, 2), {.fast = false}); }},
          {"eigvalsh", eigvalsh},
          {"eigh", [](const Tensor& x) {
             const auto [e, v] = eigh(x);
             return matmul(v * expand_dims(cos(e), 0), transpose(v));
           }}};
}

TEST(StoredDecompositions, AreThoseOfNumPyAndJax) {
  const auto functions = functions_by_name();
  const std::vector<StoredCase> cases = stored_cases();
  ASSERT_GT(cases.size(), 35u);
  for (const StoredCase& each : cases) {
    const auto& f = functions.at(each.name.substr(0, each.name.find(' ')));
    const Tensor got = reshape(f(each.in), each.out.shape());
    const double size = 1 + frobenius(each.out);
    EXPECT_LE(frobenius(got - each.out), 1e-12 * size) << each.name << got << each.out;
    if (!each.gradient.defined()) continue;
    const Tensor weights = reshape(cos(wide(range(each.out.shape().size())) + 1), each.out.shape());
    const auto loss = [&](const Tensor& x) { return reduce_sum(reshape(f(x), each.out.shape()) * weights); };
    EXPECT_LE(frobenius(gradient(loss, each.in) - each.gradient), 1e-10 * (1 + frobenius(each.gradient))) << each.name;
  }
}

/// Errors relative to each value, where the largest and the least differ by 10^12.
TEST(GradedMatrices, KeepSmallSingularValues) {
  for (const std::int64_t n : {6, 24, 80}) {
    const Tensor q = qr(normal_matrix({n, n}, f64, 1)).q, sizes = graded_rows(n, 12);
    const Tensor x = q * sizes, s = svdvals(x);  // rows are orthogonal: values are their lengths
    const Tensor wanted = sort(reshape(sizes, {n}), -1, Direction::descending);
    EXPECT_LE(reduce_max(abs(s / wanted - 1)).item(), 1e-9) << n;
  }
}

}  // namespace
}  // namespace gradus::decomposition_tests::decompositions_test
