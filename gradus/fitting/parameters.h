/// Parameters: how the tensors of x lie one after the other in one vector, which is what the methods change.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include "gradus/fitting/dense.h"
#include "gradus/function/arguments.h"
#include "gradus/function/variable.h"
#include "gradus/gradients/loss.h"

namespace gradus::detail::fitting {

/// A function of the vector of all parameters.
using FlatFunction = std::function<Tensor(const Tensor&)>;

/// The places of tensors in one vector of f64, or of f32 if none of them has more.
class Parameters {
 public:
  /// InvalidArgument, opened by `op`: within a trace; an empty tensor; booleans; no element at all. Integers become
  /// f64, as in SciPy.
  Parameters(std::string_view op, Tensors x0);

  std::string_view op() const { return op_; }
  std::size_t size() const { return size_; }
  /// The dtypes and shapes, as text.
  std::string layout() const;
  /// The values of x0.
  Vector start() const;
  /// The vector as a tensor.
  Tensor flat(const Vector& x) const;
  /// The tensors in the vector, in the dtypes and shapes of x0.
  Tensors split(const Tensor& flat) const;
  Tensors tensors(const Vector& x) const;
  /// Tensors of integers in the shapes of x0.
  Tensors integers(const std::vector<int>& values) const;
  /// One number for each parameter from tensors that broadcast to those of x0; of an empty tensor `otherwise`.
  /// InvalidArgument names `what`.
  Vector numbers(const Tensors& given, std::string_view what, double otherwise) const;

 private:
  std::string op_;
  Tensors parts_;
  DType dtype_;
  std::size_t size_ = 0;
};

/// Gives Variables the values in `flat`, within a trace or outside.
void assign_all(const Variables& variables, const Parameters& parameters, const Tensor& flat);
/// The values of Variables; InvalidArgument, opened by `op`, if there is none.
Tensors values_of(std::string_view op, const Variables& variables);

/// Puts the first values back into Variables, unless it is told to keep those of now.
class RestoredVariables {
 public:
  RestoredVariables(const Variables& variables, Tensors values) : variables_(variables), values_(std::move(values)) {}
  ~RestoredVariables();
  RestoredVariables(const RestoredVariables&) = delete;
  void keep() { values_.clear(); }

 private:
  const Variables& variables_;
  Tensors values_;
};

template <class X> Tensors tensors_of(const X& x) {
  Tensors tensors;
  std::string statics;
  gradus::detail::flatten_argument(x, tensors, statics);
  return tensors;
}
/// The parts of x's structure that its type leaves open, as text.
template <class X> std::string structure_of(const X& x) {
  Tensors tensors;
  std::string statics;
  gradus::detail::flatten_argument(x, tensors, statics);
  return statics;
}
/// A value of x's structure with these tensors.
template <class X> X with_tensors(const X& x, const Tensors& tensors) {
  std::size_t next = 0;
  return gradus::detail::rebuild_argument(x, In(tensors), next);
}

inline Tensor number_of(const Loss& loss) { return loss.value(); }
inline Tensor number_of(const Tensor& value) { return value; }

}  // namespace gradus::detail::fitting
