/// Eigen's matrices as tensors and back, where Eigen is installed.
#if __has_include(<Eigen/Core>)
#include "gradus/interop/eigen.h"
#include <gtest/gtest.h>
#include "gradus/ops/elementwise.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/shape.h"
#include "tests/errors.h"

namespace gradus::eigen_test {
namespace {

using RowMajorMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class M> M counted(Eigen::Index rows, Eigen::Index columns) {
  M made(rows, columns);
  for (Eigen::Index i = 0; i < rows; ++i)
    for (Eigen::Index j = 0; j < columns; ++j) made(i, j) = static_cast<typename M::Scalar>(10 * i + j);
  return made;
}

template <class D> void expect_elements(const Tensor& x, const Eigen::DenseBase<D>& expected) {
  const auto found = eigen_matrix<typename D::Scalar>(x);
  ASSERT_EQ(found.rows(), expected.rows());
  for (Eigen::Index i = 0; i < found.rows(); ++i)
    for (Eigen::Index j = 0; j < found.cols(); ++j) EXPECT_EQ(found(i, j), expected(i, j)) << i << ' ' << j;
}

TEST(Eigen, MatricesOfBothOrders) {
  const auto by_columns = counted<Eigen::MatrixXd>(30, 40);
  const auto by_rows = counted<RowMajorMatrix>(30, 40);
  const Tensor x = borrow(by_columns, {.padded = true}), y = borrow(by_rows, {.padded = true});
  expect_elements(x, by_columns);
  expect_elements(y, by_rows);
  EXPECT_EQ(y.span<float>().data(), by_rows.data());
  expect_elements(x.rows(3, 5) * 2, by_columns.middleRows(3, 2) * 2.0);
  const Eigen::MatrixXd product = by_columns * by_columns.transpose();
  expect_elements(matmul(x, transpose(x)), product);
}

TEST(Eigen, VectorsBlocksAndMaps) {
  const Eigen::VectorXf vector = Eigen::VectorXf::LinSpaced(100, 0, 99);
  const Tensor x = borrow(vector, {.padded = true});
  EXPECT_EQ(x.shape(), (Shape{100}));
  EXPECT_EQ(eigen_vector<float>(x), vector);
  EXPECT_EQ(borrow(vector.reverse().eval()).to_vector<float>()[0], 99);
  const auto matrix = counted<Eigen::MatrixXf>(20, 30);
  expect_elements(borrow(matrix.leftCols(7), {.padded = true}), matrix.leftCols(7));  // without gaps
  expect_error<InvalidArgument>([&] { borrow(matrix.topRows(7), {.padded = true}); }, {"gaps", "copy_if_needed"});
  expect_elements(borrow(matrix.topRows(7), {.copy_if_needed = true}), matrix.topRows(7));
  const Eigen::Map<const Eigen::MatrixXf> map(matrix.data(), 30, 20);
  expect_elements(borrow(map, {.padded = true}), map);
  expect_elements(borrow(Eigen::MatrixXf(matrix)), matrix);  // moved
}

TEST(Eigen, Mistakes) {
  const Tensor x = borrow(std::vector<float>(6), {6});
  expect_error<InvalidArgument>([&] { eigen_matrix<float>(x); }, {"[rows, columns]"});
  const Tensor matrix = borrow(std::vector<float>(6), {2, 3});
  expect_error<InvalidArgument>([&] { eigen_vector<float>(matrix); }, {"[size]"});
  expect_error<InvalidArgument>([&] { eigen_matrix<double>(matrix); }, {"f32"});
}

}  // namespace
}  // namespace gradus::eigen_test
#endif
