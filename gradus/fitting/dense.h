/// Dense linear algebra of the minimizers' own state: vectors and small matrices of double on the host. Products of the
/// size of the user's problem are ops; these are the O(n) and O(n m) sums between two evaluations, which take less time
/// than a call of a program.
#pragma once
#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace gradus::detail::fitting {

using Vector = std::vector<double>;

/// The default bound on iterations or evaluations for n parameters: each * n, at most what an int holds.
inline int times_as_int(int each, std::size_t n) {
  constexpr auto most = static_cast<std::size_t>(std::numeric_limits<int>::max());
  return each * static_cast<int>(std::min(n, most / static_cast<std::size_t>(each)));
}

/// Of vectors with more than a block of elements the sums of the blocks are added.
double dot(const Vector& a, const Vector& b);
double dot(const double* a, const double* b, std::size_t n);
/// The root of the sum of squares.
double norm(const Vector& a);
/// The largest magnitude; NaN if an element is NaN.
double largest(const Vector& a);
/// The sum of magnitudes.
double total(const Vector& a);
bool all_finite(const Vector& a);
/// y += factor * x.
void add(Vector& y, double factor, const Vector& x);
void add(double* y, double factor, const double* x, std::size_t n);
/// add(), then dot(y, other), in one pass.
double add_and_dot(Vector& y, double factor, const Vector& x, const Vector& other);
Vector scaled(Vector a, double factor);
Vector difference(const Vector& a, const Vector& b);
/// Elementwise product.
Vector product(Vector a, const Vector& b);

/// Row-major.
struct Matrix {
  std::size_t rows = 0, columns = 0;
  Vector values = {};

  Matrix() = default;
  Matrix(std::size_t r, std::size_t c) : rows(r), columns(c), values(r * c) {}
  double* row(std::size_t i) { return values.data() + i * columns; }
  const double* row(std::size_t i) const { return values.data() + i * columns; }
  double& operator()(std::size_t i, std::size_t j) { return values[i * columns + j]; }
  double operator()(std::size_t i, std::size_t j) const { return values[i * columns + j]; }
};

/// a x.
Vector times(const Matrix& a, const Vector& x);
/// a' x.
Vector transposed_times(const Matrix& a, const Vector& x);
/// The sum of squares of each column.
Vector column_squares(const Matrix& a);
/// A square matrix by elimination with row exchanges: the triangles, and the row that came to each place.
struct Factors {
  Matrix triangles;
  std::vector<std::size_t> pivots;
  bool is_singular = false;
};
Factors factored(Matrix a);
/// The solution of a x = b; empty if a is singular.
Vector solved(const Factors& a, Vector b);

/// The part of a singular value decomposition a = U S V' that least squares need.
struct SingularValues {
  Vector values;  // S, descending: as many as the smaller side of a
  Matrix right;   // V', a row for each value
  Vector along;   // U' f
};
/// The singular values of a [m, n], with f [m]: Householder's reflections make it a triangle, Jacobi's rotations
/// make its rows orthogonal.
SingularValues singular_values(Matrix a, Vector f);

}  // namespace gradus::detail::fitting
