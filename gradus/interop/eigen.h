/// Eigen's matrices as tensors, and tensors as Eigen's maps, without a copy. The library itself does not need Eigen: a
/// program that includes this header brings it.
///
///   Eigen::MatrixXf m = ...;                       // column-major, as Eigen's matrices are
///   const Tensor x = borrow(m);                    // [rows, columns], read where it is
///   const Tensor y = matmul(x, transpose(x));
///   const auto result = eigen_matrix<float>(y);    // an Eigen::Map on the values of y
#pragma once
#include <Eigen/Core>
#include <memory>
#include <utility>
#include "gradus/interop/borrow.h"

namespace gradus {

namespace detail {

template <class D>
concept EigenWithMemory = Element<typename D::Scalar> && (D::Flags & Eigen::DirectAccessBit) != 0;

template <class D> Tensor borrow_eigen(const D& x, BorrowOptions options) {
  const std::int64_t inner = x.innerStride(), outer = x.outerStride();
  Shape shape{x.rows(), x.cols()};
  options.strides = D::IsRowMajor ? std::vector{outer, inner} : std::vector{inner, outer};
  if constexpr (D::IsVectorAtCompileTime) {
    shape = {x.size()};
    options.strides = {inner};
  }
  return gradus::borrow(x.data(), shape, options);
}

}  // namespace detail

/// A tensor on the memory of a matrix, map, block or reference: [rows, columns], of vectors [size]. Its strides are
/// Eigen's; .owner keeps the memory, or else the caller. A block whose columns (of a row-major matrix: rows) leave gaps
/// is copied with .copy_if_needed, or refused, as in borrow. An expression that has no memory does not compile.
template <class D>
  requires detail::EigenWithMemory<D>
Tensor borrow(const Eigen::DenseBase<D>& x, const BorrowOptions& options = {}) {
  return detail::borrow_eigen(x.derived(), options);
}
/// A tensor that owns a matrix: it is moved.
template <class D>
  requires detail::EigenWithMemory<D>
Tensor borrow(Eigen::PlainObjectBase<D>&& x) {
  const auto kept = std::make_shared<const D>(std::move(x.derived()));
  return detail::borrow_eigen(*kept, {.owner = kept, .copy_if_needed = true});
}

/// A map on a row-major matrix.
template <Element T>
using EigenMatrixMap = Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;
/// A map on a vector.
template <Element T> using EigenVectorMap = Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, 1>>;

/// The values of x [rows, columns] as a matrix; valid while a handle of x lives, so not of a temporary. InvalidArgument
/// for another rank, or if T is not the C++ type of the dtype.
template <Element T> EigenMatrixMap<T> eigen_matrix(const Tensor& x) {
  require(x.shape().rank() == 2, "eigen_matrix: expected [rows, columns], got ", x.spec());
  return {x.span<T>().data(), x.shape()[0], x.shape()[1]};
}
template <Element T> EigenMatrixMap<T> eigen_matrix(const Tensor&&) = delete;  // keep the tensor in a variable
/// The values of x [size] as a vector, as eigen_matrix.
template <Element T> EigenVectorMap<T> eigen_vector(const Tensor& x) {
  require(x.shape().rank() == 1, "eigen_vector: expected [size], got ", x.spec());
  return {x.span<T>().data(), x.shape()[0]};
}
template <Element T> EigenVectorMap<T> eigen_vector(const Tensor&&) = delete;  // keep the tensor in a variable

}  // namespace gradus
