/// Factorizations by blocks: every element is the chain that plain loops make, on any number of threads and with either
/// instruction set; errors are those of LAPACK's tests; singular matrices give what elimination of one row after the
/// other gives.
#include "tests/backend_cpu/compiled.h"
#include "tests/instruction_sets.h"

namespace gradus::testing_loops::factorization_test {
namespace {

template <class T> using Matrix = std::vector<T>;  // row by row

/// L and U in place of a: [n, n], the same exchanges in `beside`: [n, columns], to which L^-1 is applied; the rows that
/// they end up with.
template <class T>
std::vector<std::size_t> eliminate(Matrix<T>& a, std::size_t n, Matrix<T>& beside, std::size_t columns, T& det) {
  std::vector<std::size_t> order(n);
  for (std::size_t i = 0; i < n; ++i) order[i] = i;
  det = 1;
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k + 1; i < n; ++i)
      if (std::abs(a[i * n + k]) > std::abs(a[pivot * n + k])) pivot = i;
    std::swap(order[k], order[pivot]);
    for (std::size_t j = 0; pivot != k && j < n; ++j) std::swap(a[k * n + j], a[pivot * n + j]);
    for (std::size_t j = 0; pivot != k && j < columns; ++j)
      std::swap(beside[k * columns + j], beside[pivot * columns + j]);
    det *= pivot == k ? a[k * n + k] : -a[k * n + k];
    for (std::size_t i = k + 1; i < n; ++i) {
      const T factor = a[i * n + k] /= a[k * n + k];
      for (std::size_t j = k + 1; j < n; ++j) a[i * n + j] = std::fma(-factor, a[k * n + j], a[i * n + j]);
      for (std::size_t j = 0; j < columns; ++j)
        beside[i * columns + j] = std::fma(-factor, beside[k * columns + j], beside[i * columns + j]);
    }
  }
  return order;
}

template <class T>
void solve_lower(const Matrix<T>& a, std::size_t n, Matrix<T>& x, std::size_t columns, bool unit = false) {
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < columns; ++j) {
      T rest = x[i * columns + j];
      for (std::size_t k = 0; k < i; ++k) rest = std::fma(-a[i * n + k], x[k * columns + j], rest);
      x[i * columns + j] = unit ? rest : rest / a[i * n + i];
    }
}

/// By blocks of 64 rows: the k behind the block ascending, those of the block from its end on.
template <class T> void solve_upper(const Matrix<T>& a, std::size_t n, Matrix<T>& x, std::size_t columns) {
  for (std::size_t i = n; i-- > 0;)
    for (std::size_t j = 0; j < columns; ++j) {
      const std::size_t end = std::min(n, (i / 64 + 1) * 64);
      T rest = x[i * columns + j];
      for (std::size_t k = end; k < n; ++k) rest = std::fma(-a[i * n + k], x[k * columns + j], rest);
      for (std::size_t k = end; --k > i;) rest = std::fma(-a[i * n + k], x[k * columns + j], rest);
      x[i * columns + j] = rest / a[i * n + i];
    }
}

template <class T> Matrix<T> cholesky_of(const Matrix<T>& a, std::size_t n) {
  Matrix<T> l(n * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      T rest = a[i * n + j];
      for (std::size_t k = 0; k < j; ++k) rest = std::fma(-l[i * n + k], l[j * n + k], rest);
      l[i * n + j] = i == j ? std::sqrt(rest) : rest / l[j * n + j];
    }
  return l;
}

template <class T> Matrix<T> random_matrix(std::size_t elements, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Matrix<T> x(elements);
  for (T& each : x) each = static_cast<T>(normal(random));
  return x;
}
template <class T> Matrix<T> identity(std::size_t n) {
  Matrix<T> x(n * n);
  for (std::size_t i = 0; i < n; ++i) x[i * n + i] = 1;
  return x;
}
/// x x' / n + 1, of which the upper triangle is NaN.
template <class T> Matrix<T> definite(const Matrix<T>& x, std::size_t n) {
  Matrix<T> a(n * n, std::numeric_limits<T>::quiet_NaN());
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      T sum = 0;
      for (std::size_t k = 0; k < n; ++k) sum += x[i * n + k] * x[j * n + k];
      a[i * n + j] = sum / static_cast<T>(n) + static_cast<T>(i == j);
    }
  return a;
}
/// 1 + x / n, so that its triangles are not ill-conditioned.
template <class T> Matrix<T> near_identity(Matrix<T> x, std::size_t n) {
  for (T& each : x) each /= static_cast<T>(n);
  for (std::size_t i = 0; i < n; ++i) x[i * n + i] += 1;
  return x;
}

/// The results of all ops for one size, as plain loops compute them.
template <class T> struct Problem {
  Problem(std::size_t size, std::size_t right)
      : n(size), columns(right), a(random_matrix<T>(n * n, 1)), b(random_matrix<T>(n * columns, 2)) {
    triangles = near_identity(a, n), symmetric = definite(a, n);
    lu = a, x = b;
    const std::vector<std::size_t> order = eliminate(lu, n, x, columns, det);
    solve_upper(lu, n, x, columns);
    Matrix<T> permuted = identity<T>(n);
    solve_lower(lu, n, permuted, n, true);
    solve_upper(lu, n, permuted, n);
    inverse.resize(n * n);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) inverse[i * n + order[j]] = permuted[i * n + j];
    by_lower = b, by_upper = b;
    solve_lower(triangles, n, by_lower, columns);
    solve_upper(triangles, n, by_upper, columns);
    factor = cholesky_of(symmetric, n);
  }
  std::size_t n, columns;
  Matrix<T> a, b, triangles, symmetric, lu, x, inverse, by_lower, by_upper, factor;
  T det = 1;
};

/// All ops of this size in one graph: a batch of two problems, of which the second one has twice the numbers.
template <class T> class Program {
 public:
  explicit Program(const Problem<T>& problem) : problem_(problem) {
    const std::string n = std::to_string(problem.n), type = sizeof(T) == 8 ? "f64" : "f32";
    const std::string matrix = text(" : ", type, "[2,", n, ",", n, "]\n"),
                      right = text(" : ", type, "[2,", n, ",", problem.columns, "]\n");
    graph_ = parse_graph(text(
        "%0 = input", matrix, "%1 = input", right, "%2 = input", matrix, "%3 = input", matrix, "%4 = solve %0 %1",
        right, "%5 = inverse %0", matrix, "%6 = det %0 : ", type, "[2]\n%7 = triangular_solve{lower=true} %2 %1", right,
        "%8 = triangular_solve{lower=false} %2 %1", right, "%9 = cholesky %3", matrix, "return %4 %5 %6 %7 %8 %9\n"));
    inputs_ = {twice(problem.a, 2), twice(problem.b, 2), twice(problem.triangles, 2), twice(problem.symmetric, 4)};
    const T power = std::ldexp(T(1), static_cast<int>(problem.n));
    expected_ = {twice(problem.x, 1),        twice(problem.inverse, 0.5), twice(Matrix<T>{problem.det}, power),
                 twice(problem.by_lower, 1), twice(problem.by_upper, 1),  twice(problem.factor, 2)};
  }
  void expect_bits(const std::string& where) const {
    const auto program = cpu_backend::compile(graph_);
    expect_same(*program, run(*program, inputs_), expected_, {}, where);
  }

 private:
  /// Powers of two change no bits but those of exponents.
  static Ref<Buffer> twice(const Matrix<T>& x, double factor) {
    Ref<Buffer> buffer = Buffer::allocate(static_cast<std::int64_t>(2 * x.size() * sizeof(T)));
    for (std::size_t i = 0; i < x.size(); ++i) {
      buffer->data<T>()[i] = x[i];
      buffer->data<T>()[x.size() + i] = x[i] * static_cast<T>(factor);
    }
    return buffer;
  }
  const Problem<T>& problem_;
  Graph graph_;
  std::vector<Ref<Buffer>> inputs_, expected_;
};

struct Size {
  std::size_t n, columns;
};
std::ostream& operator<<(std::ostream& out, const Size& size) { return out << size.n << " and " << size.columns; }

class Factorizations : public testing::TestWithParam<Size> {};

template <class T> void expect_chains(const Size& size) {
  const Problem<T> problem(size.n, size.columns);
  const Program<T> program(problem);
  for (const auto isa : {narrowest_isa(), *cpu_backend::widest_isa()})
    for (const int threads : {1, 2, 7}) {
      const cpu_backend::IsaScope scope(isa);
      const Threads team(threads);
      program.expect_bits(text(cpu_backend::name(isa), ", ", threads, " threads"));
    }
}

TEST_P(Factorizations, AreChainsInTheOrderOfK) {
  expect_chains<float>(GetParam());
  expect_chains<double>(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Sizes, Factorizations,
                         testing::Values(Size{1, 1}, Size{2, 3}, Size{5, 5}, Size{8, 1}, Size{9, 2}, Size{16, 16},
                                         Size{17, 1}, Size{33, 7}, Size{63, 64}, Size{64, 1}, Size{65, 3}, Size{127, 1},
                                         Size{128, 40}, Size{129, 5}, Size{193, 17}, Size{255, 33}),
                         [](const auto& size) { return text(size.param.n, "x", size.param.columns); });

}  // namespace
}  // namespace gradus::testing_loops::factorization_test
