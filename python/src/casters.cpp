// Numbers, axes, shapes and devices as arguments, and shapes as results.
#include "python/src/casters.h"
#include <climits>
#include "gradus/onnx/symbolic_values.h"
#include "python/src/binding.h"

namespace gradus::python {
namespace {

/// The int of an object, as operator.index() gives it.
std::int64_t int_of(nb::handle object) {
  const nb::object index = nb::steal(PyNumber_Index(object.ptr()));
  if (!index.is_valid()) throw nb::python_error();
  const long long value = PyLong_AsLongLong(index.ptr());
  if (value == -1 && PyErr_Occurred()) throw nb::python_error();
  return value;
}

bool is_int_like_object(nb::handle object) noexcept {
  return !PyBool_Check(object.ptr()) && (PyIndex_Check(object.ptr()) || nb::isinstance<Extent>(object));
}

/// The tensor of whole numbers that an object is; null for others.
const Tensor* whole_numbers(nb::handle object) noexcept {
  if (!nb::isinstance<Tensor>(object)) return nullptr;
  const Tensor& x = *nb::inst_ptr<Tensor>(object);
  return is_integer(x.dtype()) ? &x : nullptr;
}

/// The elements of a traced tensor.
std::vector<Size> traced_sizes(const Tensor& x) {
  return without_gil([&] {
    std::vector<Size> all;
    if (const auto found = onnx::symbolic_values(x)) {
      for (const onnx::Extent& each : *found) {
        const Extent extent(each.value);
        all.push_back(each.symbolic ? Size{extent, extent.is_symbolic()} : Size{each.value});
      }
      return all;
    }
    try {
      const Tensor wide = cast(x, i64);
      for (const std::int64_t each : wide.span<std::int64_t>()) all.push_back({each, false});
      return all;
    } catch (const detail::UnknownValue&) {
      throw detail::UnknownValue(
          text("a size is an int, x.shape[i], tf.shape(x)[i] or a number computed from these by + - * // and %: this "
               "one, ",
               x.spec(),
               ", follows from the elements of a tensor, which are not known while the function is traced. Compute the "
               "number outside and give it as an int, or take the size from the shape of a tensor"));
    }
  });
}

/// A size in a shape. Numbers below any_size would be read as symbols.
std::int64_t size_in_shape(nb::handle item) {
  if (item.is_none()) return any_size;
  const Size size = size_of(item);
  require(size.is_open || size.value >= any_size, "a size must not be negative, got ", size.value);
  return size.value;
}

/// The list of a vector of whole numbers, a tensor or an array; empty for anything else.
nb::object list_of_sizes(nb::handle given) {
  if (PyTuple_Check(given.ptr()) || PyList_Check(given.ptr()) || PyLong_Check(given.ptr())) return {};
  if (!nb::hasattr(given, "tolist") || !nb::hasattr(given, "ndim") || !nb::hasattr(given, "dtype")) return {};
  if (nb::cast<int>(nb::object(given.attr("ndim"))) != 1) return {};
  if (text_of(given.attr("dtype")).find("int") == std::string::npos) return {};
  if (whole_numbers(given)) return nb::borrow(given);  // whose elements need not be known
  return given.attr("tolist")();
}

}  // namespace

bool is_whole_scalar(nb::handle object) noexcept {
  const Tensor* x = whole_numbers(object);
  return x && x->shape().rank() == 0;
}

Size size_of(nb::handle object) {
  if (nb::isinstance<Extent>(object)) {
    const Extent extent = nb::cast<Extent>(object);
    return {static_cast<std::int64_t>(extent), extent.is_symbolic()};
  }
  if (is_whole_scalar(object) && whole_numbers(object)->is_symbolic()) return traced_sizes(*whole_numbers(object))[0];
  return {int_of(object), false};
}

std::int64_t extent_of(nb::handle object) { return size_of(object).value; }

Shape shape_of(nb::handle object) {
  Shape shape;
  const Tensor* x = whole_numbers(object);
  if (x && x->is_symbolic() && x->shape().rank() == 1) {
    for (const Size& size : traced_sizes(*x)) {
      require(size.is_open || size.value >= any_size, "a size must not be negative, got ", size.value);
      shape.push_back(size.value);
    }
    return shape;
  }
  const nb::object listed = list_of_sizes(object);  // lives as long as `object` is it
  if (listed.is_valid()) object = listed;
  if (!listed.is_valid() && is_int_like_object(object)) {
    shape.push_back(size_in_shape(object));
    return shape;
  }
  for (const nb::handle item : nb::borrow<nb::sequence>(object)) shape.push_back(size_in_shape(item));
  return shape;
}

bool may_be_shape(nb::handle object) noexcept {
  try {
    if (const Tensor* x = whole_numbers(object)) return x->shape().rank() <= 1;
    const nb::object listed = list_of_sizes(object);
    if (listed.is_valid()) return true;
    if (is_int_like_object(object)) return true;
    if (PyUnicode_Check(object.ptr()) || PyBytes_Check(object.ptr()) || !PySequence_Check(object.ptr())) return false;
    for (const nb::handle item : nb::borrow<nb::sequence>(object))
      if (!item.is_none() && !is_int_like_object(item)) return false;
    return true;
  } catch (const nb::python_error&) { return false; } catch (const std::exception&) {
    return false;
  }
}

std::string text_of(nb::handle object) {
  const nb::object text = nb::steal(PyObject_Str(object.ptr()));
  if (!text.is_valid()) throw nb::python_error();
  return nb::cast<std::string>(text);
}

std::string class_of(nb::handle object) {
  const nb::handle type(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())));
  return nb::cast<std::string>(nb::object(type.attr("__qualname__")));
}

bool is_number(nb::handle object) { return PyFloat_Check(object.ptr()) || PyLong_Check(object.ptr()); }

Scalar scalar_of(nb::handle object) {
  if (PyBool_Check(object.ptr())) return object.ptr() == Py_True;
  if (PyFloat_Check(object.ptr())) return PyFloat_AsDouble(object.ptr());
  int overflows = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object.ptr(), &overflows);
  if (overflows == 0) return static_cast<std::int64_t>(value);
  const unsigned long long large = PyLong_AsUnsignedLongLong(object.ptr());
  if (PyErr_Occurred()) throw nb::python_error();
  return static_cast<std::uint64_t>(large);
}

nb::object object_of_extent(std::int64_t extent) {
  if (extent >= 0) return nb::int_(extent);
  return extent == any_size ? nb::object(nb::none()) : nb::cast(Extent(extent));
}

bool is_sequence(nb::handle object) noexcept { return PyList_Check(object.ptr()) || PyTuple_Check(object.ptr()); }

bool is_int_or_ints(nb::handle object) noexcept {
  if (is_int_like_object(object)) return true;
  if (PyUnicode_Check(object.ptr()) || PyBytes_Check(object.ptr()) || !PySequence_Check(object.ptr())) return false;
  const Py_ssize_t size = PySequence_Size(object.ptr());
  if (size < 0) PyErr_Clear();
  for (Py_ssize_t i = 0; i < size; ++i) {
    const nb::object item = nb::steal(PySequence_GetItem(object.ptr(), i));
    if (!item.is_valid()) PyErr_Clear();
    if (!item.is_valid() || !is_int_like_object(item)) return false;
  }
  return size >= 0;
}

bool is_device(nb::handle object) noexcept { return PyUnicode_Check(object.ptr()) || nb::isinstance<Device>(object); }

Tensors TensorsArg::tensors() const {
  Tensors all;
  for (const nb::handle item : nb::borrow<nb::sequence>(object)) all.push_back(tensor_of(item));
  return all;
}

std::vector<std::int64_t> IntsArg::values() const {
  if (is_int_like_object(object)) return {extent_of(object)};
  std::vector<std::int64_t> all;
  for (const nb::handle item : nb::borrow<nb::sequence>(object)) all.push_back(extent_of(item));
  return all;
}

std::vector<int> IntsArg::axes() const {
  std::vector<int> all;
  for (const std::int64_t value : values()) {
    require<OutOfRange>(value >= INT_MIN && value <= INT_MAX, "axis ", value, " is outside of any tensor");
    all.push_back(static_cast<int>(value));
  }
  return all;
}

Device DeviceArg::device() const {
  if (nb::isinstance<Device>(object)) return nb::cast<Device>(object);
  return device_from_text(nb::cast<std::string>(object));
}

}  // namespace gradus::python

namespace nanobind::detail {

bool type_caster<gradus::Shape>::from_python(handle given, uint32_t, cleanup_list*) noexcept {
  if (!gradus::python::may_be_shape(given)) return false;
  try {
    value = gradus::python::shape_of(given);
    return true;
  } catch (const python_error&) { return false; } catch (const std::exception&) {
    return false;
  }
}

handle type_caster<gradus::Shape>::from_cpp(const gradus::Shape& shape, rv_policy, cleanup_list*) noexcept {
  object all = steal(PyTuple_New(shape.rank()));
  if (!all.is_valid()) return {};
  Py_ssize_t place = 0;
  for (const std::int64_t extent : shape)
    PyTuple_SetItem(all.ptr(), place++, gradus::python::object_of_extent(extent).release().ptr());
  return all.release();
}

}  // namespace nanobind::detail
