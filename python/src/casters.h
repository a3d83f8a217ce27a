/// Arguments and results between Python and C++, for the hand-written and the generated binding.
///
/// Casters of nanobind may not throw, and an argument that a caster refuses ends as "incompatible function arguments".
/// So a caster here refuses what is of another kind altogether, which lets overloads be told apart, and the value is
/// made when the body of the function asks for it: an error then is raised as it is, with its own text.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <optional>
#include <string>
#include <vector>
#include "gradus/base/rooms.h"
#include "gradus/erased/erased.h"
#include "gradus/gradus.h"
#include "gradus/graph/unknown_value.h"
#include "python/src/interpreter.h"

namespace gradus::python {

using namespace nanobind::literals;

// ---- values

/// The tensor that an object stands for: a Tensor, the value of a Variable or of a Loss; a constant of a number, a
/// list, an array. Numbers and lists of them are float32, int32 or bool unless `dtype` says otherwise; arrays keep
/// their type. TypeError for an object that is no tensor, ValueError for a ragged list, InvalidArgument for a type of
/// element that the library does not have.
Tensor tensor_of(nb::handle object, std::optional<DType> dtype = {});
/// True for what tensor_of() takes without making a constant.
bool is_tensor(nb::handle object);
/// True for objects that tensor_of() may take: all but None, texts, dicts, functions and classes.
bool may_be_tensor(nb::handle object);
/// True for a list or a tuple.
bool is_sequence(nb::handle object) noexcept;
/// True for Python's numbers and bools, which take the dtype of a tensor beside them.
bool is_number(nb::handle object);
/// Such a number; OverflowError past 64 bits.
Scalar scalar_of(nb::handle object);
/// The dtype that an object names: a DType, a name as NumPy has it ("float32") or as the library has it ("f32"), a
/// dtype or scalar type of NumPy, float, int or bool. Empty for others.
std::optional<DType> dtype_of_object(nb::handle object);
/// Its only object in Python.
nb::object object_of_dtype(DType dtype);
/// The name as NumPy has it: "float32".
const char* numpy_name(DType dtype);
/// A number that may be the symbol of an open size: of an int, an Extent, or a tensor of one whole number. The value of
/// a traced tensor follows from constants and from sizes, as tf.shape(x)[0] * 2 does; UnknownValue if it does not.
std::int64_t extent_of(nb::handle object);
/// The same, with true for a symbol.
struct Size {
  std::int64_t value = 0;
  bool is_open = false;
};
Size size_of(nb::handle object);
/// The sizes of a shape: of a sequence, a vector of whole numbers or an int. None stands for any_size.
Shape shape_of(nb::handle object);
/// True for what shape_of() may take.
bool may_be_shape(nb::handle object) noexcept;
/// True for a tensor of one whole number without dimensions.
bool is_whole_scalar(nb::handle object) noexcept;
/// An extent of a tensor as Python sees it: an int, or an Extent while its size is open.
nb::object object_of_extent(std::int64_t extent);
/// The object of a Variable, which is one and the same as long as Python keeps it.
std::shared_ptr<Variable> shared_variable(const Variable& variable);
/// str(object) and the name of its class, for messages.
std::string text_of(nb::handle object);
std::string class_of(nb::handle object);

// ---- arguments

/// An argument that stands for a tensor. Without conversion (the first round of overloads) a Tensor, Variable or Loss.
class TensorArg {
 public:
  /// The tensor; errors as tensor_of().
  Tensor tensor(std::optional<DType> dtype = {}) const { return tensor_of(object, dtype); }
  operator Tensor() const { return tensor(); }
  nb::handle object;
};

/// An operand that may be a bare number, which takes the dtype of the tensor beside it.
class NumberArg {
 public:
  bool is_number() const { return python::is_number(object); }
  Scalar number() const { return scalar_of(object); }
  Tensor tensor() const { return tensor_of(object); }
  nb::handle object;
};

/// f(a, b) where f takes (Tensor, Tensor), (Tensor, Scalar) and (Scalar, Tensor). Two numbers become tensors, and a
/// list takes the dtype of the tensor beside it.
template <class F> Tensor with_numbers(const NumberArg& a, const NumberArg& b, const F& f) {
  if (a.is_number() && !b.is_number()) return f(a.number(), b.tensor());
  if (b.is_number() && !a.is_number()) return f(a.tensor(), b.number());
  const bool a_is_list = is_sequence(a.object), b_is_list = is_sequence(b.object);
  const Tensor x = a_is_list && !b_is_list ? tensor_of(a.object, b.tensor().dtype()) : a.tensor();
  return f(x, b_is_list && !a_is_list ? tensor_of(b.object, x.dtype()) : b.tensor());
}

/// A list or tuple of tensors; one tensor is none.
class TensorsArg {
 public:
  /// The tensors; TypeError with the place of what is none.
  Tensors tensors() const;
  operator Tensors() const { return tensors(); }
  nb::handle object;
};

/// An int or a sequence of them: axes, sizes, strides, paddings. Extents of tensors are among them.
class IntsArg {
 public:
  std::vector<std::int64_t> values() const;
  std::vector<int> axes() const;
  operator std::vector<std::int64_t>() const { return values(); }
  operator std::vector<int>() const { return axes(); }
  nb::handle object;
};

/// A shape whose sizes are read when the body asks for them.
class ShapeArg {
 public:
  operator Shape() const { return shape_of(object); }
  nb::handle object;
};

/// A Device or its name, "cpu:1".
class DeviceArg {
 public:
  Device device() const;
  operator Device() const { return device(); }
  nb::handle object;
};

/// A function of Python as one of C++, from any thread: tensors in, a tensor out.
class FunctionArg {
 public:
  bool is_none() const { return !held; }
  /// Calls it with the objects of `arguments`. What it gives is a tensor.
  template <class... A> Tensor operator()(const A&... arguments) const {
    return in_python([&] { return tensor_of(held.get()(arguments...)); });
  }
  Held held;
};

// Questions of casters, which must not throw.
bool is_int_or_ints(nb::handle object) noexcept;
bool is_device(nb::handle object) noexcept;

}  // namespace gradus::python

namespace nanobind::detail {

#define GRADUS_PYTHON_CASTER(Argument, name, condition)                      \
  template <> struct type_caster<gradus::python::Argument> {                 \
    NB_TYPE_CASTER(gradus::python::Argument, const_name(name))               \
    bool from_python(handle given, uint32_t flags, cleanup_list*) noexcept { \
      [[maybe_unused]] const bool converts = (flags & cast_flags::convert);  \
      value.object = given;                                                  \
      return condition;                                                      \
    }                                                                        \
  };
GRADUS_PYTHON_CASTER(TensorArg, "TensorLike",
                     converts ? gradus::python::may_be_tensor(given) : gradus::python::is_tensor(given))
GRADUS_PYTHON_CASTER(NumberArg, "TensorLike",
                     gradus::python::is_number(given) ||
                         (converts ? gradus::python::may_be_tensor(given) : gradus::python::is_tensor(given)))
GRADUS_PYTHON_CASTER(TensorsArg, "Sequence[TensorLike]", gradus::python::is_sequence(given))
GRADUS_PYTHON_CASTER(IntsArg, "int | Sequence[int]", gradus::python::is_int_or_ints(given))
GRADUS_PYTHON_CASTER(ShapeArg, "Sequence[int]", gradus::python::may_be_shape(given))
GRADUS_PYTHON_CASTER(DeviceArg, "Device | str", gradus::python::is_device(given))
#undef GRADUS_PYTHON_CASTER

template <> struct type_caster<gradus::python::FunctionArg> {
  NB_TYPE_CASTER(gradus::python::FunctionArg, const_name("Callable[..., TensorLike]"))
  bool from_python(handle given, uint32_t, cleanup_list*) noexcept {
    if (!PyCallable_Check(given.ptr())) return false;
    value.held = gradus::python::Held(borrow(given));
    return true;
  }
};

template <> struct type_caster<gradus::DType> {
  NB_TYPE_CASTER(gradus::DType, const_name("DTypeLike"))
  bool from_python(handle given, uint32_t, cleanup_list*) noexcept {
    const std::optional<gradus::DType> found = gradus::python::dtype_of_object(given);
    if (found) value = *found;
    return found.has_value();
  }
  static handle from_cpp(gradus::DType dtype, rv_policy, cleanup_list*) noexcept {
    return gradus::python::object_of_dtype(dtype).release();
  }
};

/// A shape: a tuple whose elements are ints, or Extents while sizes are open. As an argument None stands for any_size,
/// and an int for one dimension.
template <> struct type_caster<gradus::Shape> {
  NB_TYPE_CASTER(gradus::Shape, const_name("Sequence[int]"))
  bool from_python(handle given, uint32_t, cleanup_list*) noexcept;
  static handle from_cpp(const gradus::Shape& shape, rv_policy, cleanup_list*) noexcept;
};

/// A number where nothing else says its type. A bool is one, too.
template <> struct type_caster<gradus::Scalar> {
  static constexpr auto Name = const_name("float");
  using Value = gradus::Scalar;
  template <class T> using Cast = movable_cast_t<T>;
  template <class T> static constexpr bool can_cast() { return true; }
  bool from_python(handle given, uint32_t, cleanup_list*) noexcept {
    if (!gradus::python::is_number(given)) return false;
    try {
      value = gradus::python::scalar_of(given);
      return true;
    } catch (...) { return false; }
  }
  explicit operator gradus::Scalar*() { return &value; }
  explicit operator gradus::Scalar&() { return value; }
  explicit operator gradus::Scalar&&() { return std::move(value); }
  gradus::Scalar value{0};
};

}  // namespace nanobind::detail
