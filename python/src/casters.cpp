// Numbers, axes, shapes and devices as arguments, and shapes as results.
#include "python/src/casters.h"
#include <climits>
#include "python/src/binding.h"

namespace gradus::python {
namespace {

/// The int of an object, as operator.index() gives it. An Extent gives its symbol.
std::int64_t int_of(nb::handle object) {
  if (nb::isinstance<Extent>(object)) return extent_of(object);
  const nb::object index = nb::steal(PyNumber_Index(object.ptr()));
  if (!index.is_valid()) throw nb::python_error();
  const long long value = PyLong_AsLongLong(index.ptr());
  if (value == -1 && PyErr_Occurred()) throw nb::python_error();
  return value;
}

bool is_int_like_object(nb::handle object) noexcept {
  return !PyBool_Check(object.ptr()) && (PyIndex_Check(object.ptr()) || nb::isinstance<Extent>(object));
}

}  // namespace

/// The list of a vector of whole numbers, a tensor or an array; empty for anything else.
nb::object list_of_sizes(nb::handle given) {
  if (PyTuple_Check(given.ptr()) || PyList_Check(given.ptr()) || PyLong_Check(given.ptr())) return {};
  if (!nb::hasattr(given, "tolist") || !nb::hasattr(given, "ndim") || !nb::hasattr(given, "dtype")) return {};
  if (nb::cast<int>(nb::object(given.attr("ndim"))) != 1) return {};
  if (text_of(given.attr("dtype")).find("int") == std::string::npos) return {};
  return given.attr("tolist")();
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

std::int64_t extent_of(nb::handle object) {
  if (nb::isinstance<Extent>(object)) return static_cast<std::int64_t>(nb::cast<Extent>(object));
  return int_of(object);
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
  if (is_int_like_object(object)) return {int_of(object)};
  std::vector<std::int64_t> all;
  for (const nb::handle item : nb::borrow<nb::sequence>(object)) all.push_back(int_of(item));
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
  namespace python = gradus::python;
  try {
    value = {};
    const object listed = python::list_of_sizes(given);  // lives as long as `given` is it
    if (listed.is_valid()) given = listed;
    if (python::is_int_like_object(given)) {
      value.push_back(python::extent_of(given));
      return true;
    }
    if (PyUnicode_Check(given.ptr()) || !PySequence_Check(given.ptr())) return false;
    for (const handle item : borrow<sequence>(given)) {
      if (item.is_none()) value.push_back(gradus::any_size);
      else if (python::is_int_like_object(item)) value.push_back(python::extent_of(item));
      else return false;
    }
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
