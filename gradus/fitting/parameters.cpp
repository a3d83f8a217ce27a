/// Tensors in one vector, and back.
#include "gradus/fitting/parameters.h"
#include <algorithm>
#include "gradus/base/rooms.h"
#include "gradus/graph/call_context.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/shape.h"

namespace gradus::detail::fitting {
namespace {

std::size_t elements_of(const Tensor& x) { return static_cast<std::size_t>(x.shape().size()); }

Vector doubles_of(const Tensor& x) { return (x.dtype() == f64 ? x : cast(x, f64)).to_vector<double>(); }

/// In a type that can be fitted.
Tensor as_parameter(const std::string& op, const Tensor& x) {
  require(x.defined(), op, ": a tensor of x0 is empty");
  require(x.dtype() != boolean, op, ": x0 is ", x.spec(), "; expected numbers");
  return is_floating(x.dtype()) ? x : cast(x, f64);
}

}  // namespace

Parameters::Parameters(std::string_view op, Tensors x0) : op_(op), dtype_(f32) {
  require(CallContext::here().context == nullptr, op_,
          ": it looks at values, so it cannot run within `function`, vectorized_map or another trace; call it outside");
  for (const Tensor& x : x0) {
    parts_.push_back(as_parameter(op_, x));
    size_ += elements_of(x);
    if (parts_.back().dtype() == f64) dtype_ = f64;
  }
  require(size_ > 0, op_, ": x0 has no elements, so there is nothing to change");
}

std::string Parameters::layout() const {
  TextStream all;
  for (const Tensor& part : parts_) all << part.spec() << ' ';
  return std::move(all).str();
}

Vector Parameters::start() const {
  Vector all;
  all.reserve(size_);
  for (const Tensor& part : parts_) {
    const Vector values = doubles_of(part);
    all.insert(all.end(), values.begin(), values.end());
  }
  require(all_finite(all), op_, ": x0 has a number that is not finite");
  return all;
}

Tensor Parameters::flat(const Vector& x) const {
  const Shape shape{static_cast<std::int64_t>(size_)};
  if (dtype_ == f64) return from_values(std::span<const double>(x), shape);
  std::vector<float> narrow(x.size());
  std::transform(x.begin(), x.end(), narrow.begin(), [](double each) { return static_cast<float>(each); });
  return from_values(std::span<const float>(narrow), shape);
}

Tensors Parameters::split(const Tensor& flat) const {
  Tensors tensors;
  std::int64_t begin = 0;
  for (const Tensor& part : parts_) {
    const std::int64_t size = part.shape().size();
    const Tensor own = parts_.size() == 1 ? flat : slice(flat, {begin}, {size});
    tensors.push_back(cast(reshape(own, part.shape()), part.dtype()));
    begin += size;
  }
  return tensors;
}

Tensors Parameters::tensors(const Vector& x) const {
  Tensors tensors;
  std::size_t begin = 0;
  for (const Tensor& part : parts_) {
    const std::span<const double> own(x.data() + begin, elements_of(part));
    tensors.push_back(cast(from_values(own, part.shape()), part.dtype()));
    begin += own.size();
  }
  return tensors;
}

Tensors Parameters::integers(const std::vector<int>& values) const {
  Tensors tensors;
  std::size_t begin = 0;
  for (const Tensor& part : parts_) {
    const std::span<const std::int32_t> own(values.data() + begin, elements_of(part));
    tensors.push_back(from_values(own, part.shape()));
    begin += own.size();
  }
  return tensors;
}

Vector Parameters::numbers(const Tensors& given, std::string_view what, double otherwise) const {
  if (given.empty()) return Vector(size_, otherwise);
  require(given.size() == parts_.size(), op_, ": ", what, " has ", given.size(), " tensors, x0 has ", parts_.size());
  Vector all;
  all.reserve(size_);
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!given[i].defined()) {
      all.insert(all.end(), elements_of(parts_[i]), otherwise);
      continue;
    }
    const Shape &from = given[i].shape(), &to = parts_[i].shape();
    require(from == to || from.rank() == 0, op_, ": ", what, " is ", given[i].spec(), " for parameters ",
            parts_[i].spec(), "; expected their shape, or a scalar");
    const Vector values = doubles_of(given[i]);
    if (from == to) all.insert(all.end(), values.begin(), values.end());
    else all.insert(all.end(), elements_of(parts_[i]), values[0]);
  }
  return all;
}

void assign_all(const Variables& variables, const Parameters& parameters, const Tensor& flat) {
  const Tensors values = parameters.split(flat);
  for (std::size_t i = 0; i < values.size(); ++i) variables[i].assign(values[i]);
}

Tensors values_of(std::string_view op, const Variables& variables) {
  require(variables.size() > 0, op, ": there are no variables; a model has them once it is built or called");
  Tensors values;
  for (const Variable& variable : variables) {
    require(is_floating(variable.dtype()), op, ": the variable ", variable.name(), " is ", variable.dtype(),
            "; only floating types have derivatives");
    values.push_back(variable.value());
  }
  return values;
}

RestoredVariables::~RestoredVariables() {
  try {
    for (std::size_t i = 0; i < values_.size(); ++i) variables_[i].assign(values_[i]);
  } catch (const Error&) {  // memory that is used up: the first error is the one to tell
  }
}

}  // namespace gradus::detail::fitting
