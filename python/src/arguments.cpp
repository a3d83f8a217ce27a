// Arguments of generated functions that are made out of line: numbers, texts, sequences, tensors, functions.
#include <algorithm>
#include <string_view>
#include <utility>
#include "gradus/graph/context.h"
#include "python/src/binding.h"
#include "python/src/generated.h"

namespace gradus::python {
namespace {

bool is_bool(PyObject* object) noexcept { return PyBool_Check(object); }

/// True for numpy.bool and the like: a number that is no sequence and whose class is called bool or bool_.
bool is_numpy_bool(PyObject* object) noexcept {
  PyObject* name = PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__name__");
  if (!name) {
    PyErr_Clear();
    return false;
  }
  const bool is =
      PyUnicode_CompareWithASCIIString(name, "bool") == 0 || PyUnicode_CompareWithASCIIString(name, "bool_") == 0;
  Py_DECREF(name);
  return is;
}

bool has_attribute(PyObject* object, const char* name) noexcept {
  PyObject* found = PyObject_GetAttrString(object, name);
  if (!found) PyErr_Clear();
  Py_XDECREF(found);
  return found != nullptr;
}

/// A function of Python as a function of C++.
template <class... Given> std::function<Tensor(const Given&...)> function_of(PyObject* object) {
  const Held held{nb::borrow(nb::handle(object))};
  return [held](const Given&... given) { return in_python([&] { return tensor_of(held.get()(nb::cast(given)...)); }); };
}

/// The part of this name, or a ValueError with the nearest.
template <class Part>
Part named(PyObject* object, const Place& place, std::optional<Part> (*find)(const std::string&),
           std::vector<std::string> (*names)(), const char* what) {
  const std::string name = Argument<std::string>::get(object, place);
  std::optional<Part> found = find(name);
  if (found) return *found;
  refuse_value(place, std::string("there is no ") + what + " '" + name + "'" + did_you_mean(name, names()));
}

/// True for an argument that is the size of something, which may be open while a function is traced. Of other ints,
/// such as an axis or a shift, the function has to know the value.
bool takes_open_size(const Place& place) noexcept {
  static constexpr std::pair<std::string_view, std::string_view> all[] = {
      {"eye", "n"},        {"eye", "rows"},   {"eye", "columns"},    {"one_hot", "classes"},
      {"pad", "paddings"}, {"range", "n"},    {"repeat", "repeats"}, {"sequence_mask", "maxlen"},
      {"slice", "begin"},  {"slice", "size"}, {"tile", "multiples"}};
  const std::string_view function = place.function, argument = place.argument;
  return argument == "num_segments" || std::ranges::find(all, std::pair(function, argument)) != std::end(all);
}

template <class Part> int fit_part(PyObject* object) noexcept {
  if (nb::isinstance<Part>(nb::handle(object))) return 0;
  if (PyUnicode_Check(object)) return 0;
  return PyCallable_Check(object) ? 1 : -1;
}

}  // namespace

int fit_int(PyObject* object) noexcept {
  if (is_bool(object)) return -1;
  if (PyLong_Check(object)) return 0;
  if (is_whole_scalar(object)) return 2;  // where no form takes a tensor
  return PyIndex_Check(object) && !PySequence_Check(object) && !is_numpy_bool(object) ? 1 : -1;
}

int fit_float(PyObject* object) noexcept {
  if (is_bool(object)) return -1;
  if (PyFloat_Check(object)) return 0;
  if (PyLong_Check(object)) return 1;
  return PyNumber_Check(object) && !PySequence_Check(object) && !PyComplex_Check(object) && !is_numpy_bool(object) ? 2
                                                                                                                   : -1;
}

int fit_bool(PyObject* object) noexcept {
  if (is_bool(object)) return 0;
  return PyNumber_Check(object) && !PyLong_Check(object) && !PyFloat_Check(object) && is_numpy_bool(object) ? 1 : -1;
}

std::int64_t int_of(PyObject* object, const Place& place, std::int64_t least, std::int64_t most) {
  if (nb::isinstance<Extent>(nb::handle(object)) || is_whole_scalar(object)) {
    const Size size = size_of(object);
    if (size.is_open) return takes_open_size(place) ? size.value : known_extent(size.value);
    if (size.value >= least && size.value <= most) return size.value;
  }
  const nb::object index = nb::steal(PyNumber_Index(object));
  if (!index.is_valid()) throw nb::python_error();
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow || value < least || value > most)
    refuse_value(place, "expected an int from " + std::to_string(least) + " to " + std::to_string(most) + ", got " +
                            text_of(object));
  if (value < any_size && Context::current() && takes_open_size(place))  // it would be read as a symbol
    refuse_value(place, "a size must not be negative, got " + std::to_string(value));
  return value;
}

double float_of(PyObject* object, const Place&) {
  const nb::object number = nb::steal(PyNumber_Float(object));
  if (!number.is_valid()) throw nb::python_error();
  return PyFloat_AsDouble(number.ptr());
}

std::string Argument<std::string>::get(PyObject* object, const Place& place) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(object, &size);
  if (text) return {text, static_cast<std::size_t>(size)};
  PyErr_Clear();
  refuse_value(place, "this str has letters that are none (unpaired surrogates)");
}

char Argument<char>::get(PyObject* object, const Place& place) {
  const std::string text = Argument<std::string>::get(object, place);
  if (text.size() != 1) refuse_value(place, "expected one letter, got '" + text + "'");
  return text[0];
}

int Argument<std::filesystem::path>::fit(PyObject* object) noexcept {
  if (PyUnicode_Check(object)) return 0;
  return has_attribute(object, "__fspath__") ? 1 : -1;
}

std::filesystem::path Argument<std::filesystem::path>::get(PyObject* object, const Place& place) {
  const nb::object path = nb::steal(PyOS_FSPath(object));
  if (!path.is_valid()) throw nb::python_error();
  if (!PyUnicode_Check(path.ptr())) refuse_type(place, "expected a path of letters, got one of bytes");
  return Argument<std::string>::get(path.ptr(), place);
}

int fit_elements(PyObject* object, int (*fit)(PyObject*) noexcept) noexcept {
  if (!PySequence_Check(object) || PyUnicode_Check(object) || PyBytes_Check(object) || PyDict_Check(object)) return -1;
  const bool is_list = PyList_Check(object) || PyTuple_Check(object);
  PyObject* all = PySequence_Fast(object, "");
  if (!all) {
    PyErr_Clear();
    return -1;
  }
  int worst = 0;
  for (Py_ssize_t i = 0; worst >= 0 && i < PySequence_Size(all); ++i) {
    PyObject* each = PySequence_GetItem(all, i);
    const int one = each ? fit(each) : -1;
    Py_XDECREF(each);
    worst = one < 0 ? -1 : std::max(worst, one);
  }
  Py_DECREF(all);
  return worst < 0 ? -1 : worst + (is_list ? 0 : 1);
}

nb::list elements_of(PyObject* object) {
  nb::object all = nb::steal(PySequence_List(object));
  if (!all.is_valid()) throw nb::python_error();
  return nb::borrow<nb::list>(all);
}

int Argument<Tensor>::fit(PyObject* object) noexcept {
  if (is_tensor(object)) return 0;
  if (is_number(object)) return 3;
  if (!may_be_tensor(object)) return -1;
  return PyList_Check(object) || PyTuple_Check(object) ? 2 : 1;
}

Tensor Argument<Tensor>::get(PyObject* object, const Place&) { return tensor_of(object); }

int Argument<Tensors>::fit(PyObject* object) noexcept {
  if (!PyList_Check(object) && !PyTuple_Check(object)) return -1;
  return fit_elements(object, &Argument<Tensor>::fit);
}

int Argument<Shape>::fit(PyObject* object) noexcept {
  if (!may_be_shape(object)) return -1;
  return is_tensor(object) ? 1 : 0;  // a tensor of sizes, where no form takes a tensor
}

Shape Argument<Shape>::get(PyObject* object, const Place&) { return shape_of(object); }

int Argument<Spec>::fit(PyObject* object) noexcept {
  const int shape = Argument<Shape>::fit(object);
  if (shape >= 0) return shape;
  return has_attribute(object, "shape") && has_attribute(object, "dtype") ? 1 : -1;
}

Spec Argument<Spec>::get(PyObject* object, const Place& place) {
  if (Argument<Shape>::fit(object) >= 0) return {f32, Argument<Shape>::get(object, place)};
  const nb::handle given(object);
  const nb::object shape = given.attr("shape"), dtype = given.attr("dtype");
  return {Argument<DType>::get(dtype.ptr(), place), Argument<Shape>::get(shape.ptr(), place)};
}

Factor Argument<Factor>::get(PyObject* object, const Place& place) {
  const std::vector<double> all = Argument<std::vector<double>>::get(object, place);
  if (all.size() == 1) return all[0];
  if (all.size() != 2) refuse_value(place, "expected one number or two, got " + std::to_string(all.size()));
  return {all[0], all[1]};
}

int Argument<Activation>::fit(PyObject* object) noexcept {
  if (PyUnicode_Check(object)) return 0;
  return PyCallable_Check(object) ? 1 : -1;
}

Activation Argument<Activation>::get(PyObject* object, const Place& place) {
  if (PyUnicode_Check(object))
    return named<Activation>(object, place, &activation_named, &activation_names, "activation");
  if (const std::optional<Activation> found = activation_named(generated_name(object))) return *found;
  return function_of<Tensor>(object);
}

int Argument<Initializer>::fit(PyObject* object) noexcept { return fit_part<Initializer>(object); }

Initializer Argument<Initializer>::get(PyObject* object, const Place& place) {
  if (nb::isinstance<Initializer>(nb::handle(object))) return nb::cast<Initializer&>(nb::handle(object));
  if (PyUnicode_Check(object))
    return named<Initializer>(object, place, &initializer_named, &initializer_names, "initializer");
  if (const std::optional<Initializer> found = initializer_named(generated_name(object))) return *found;
  return function_of<Shape>(object);
}

int Argument<Regularizer>::fit(PyObject* object) noexcept { return fit_part<Regularizer>(object); }

Regularizer Argument<Regularizer>::get(PyObject* object, const Place& place) {
  if (nb::isinstance<Regularizer>(nb::handle(object))) return nb::cast<Regularizer&>(nb::handle(object));
  if (PyUnicode_Check(object))
    return named<Regularizer>(object, place, &regularizer_named, &regularizer_names, "regularizer");
  return function_of<Tensor>(object);
}

int Argument<Schedule>::fit(PyObject* object) noexcept {
  if (nb::isinstance<Schedule>(nb::handle(object))) return 0;
  const int number = fit_float(object);
  return number >= 0 || !PyCallable_Check(object) ? number : 3;
}

Schedule Argument<Schedule>::get(PyObject* object, const Place& place) {
  if (nb::isinstance<Schedule>(nb::handle(object))) return nb::cast<Schedule&>(nb::handle(object));
  if (fit_float(object) >= 0) return float_of(object, place);
  return function_of<Tensor>(object);
}

Function1 Argument<Function1>::get(PyObject* object, const Place&) { return Function1(function_of<Tensor>(object)); }

Function2 Argument<Function2>::get(PyObject* object, const Place&) {
  return Function2(function_of<Tensor, Tensor>(object));
}

int Argument<Variables>::fit(PyObject* object) noexcept {
  return fit_elements(object,
                      [](PyObject* each) noexcept { return nb::isinstance<Variable>(nb::handle(each)) ? 0 : -1; });
}

Variables Argument<Variables>::get(PyObject* object, const Place&) {
  Variables all;
  for (const nb::handle each : elements_of(object)) all.add(nb::cast<Variable&>(each));
  return all;
}

nb::object Result<Variables>::give(const Variables& variables) {
  nb::list all;
  for (const Variable& each : variables) all.append(given_object(each));
  return all;
}

}  // namespace gradus::python
