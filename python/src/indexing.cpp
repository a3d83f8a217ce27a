// Keys of Python's brackets as subscripts, with NumPy's meaning: ints, slices, None, ..., lists, arrays, masks.
#include "python/src/binding.h"

namespace gradus::python {
namespace {

constexpr std::size_t most_subscripts = 10;

SliceBound bound_of(nb::handle bound) {
  if (bound.is_none()) return {};
  if (nb::isinstance<Extent>(bound)) return nb::cast<Extent>(bound);
  if (is_whole_scalar(bound))
    if (const Size size = size_of(bound); size.is_open) return Extent(size.value);
  if (!PyIndex_Check(bound.ptr()))
    throw nb::type_error(text("a bound of a slice is an int or None, not ", class_of(bound)).c_str());
  // NumPy's bounds are clamped to the dimension, so that any int is one.
  const nb::object index = nb::steal(PyNumber_Index(bound.ptr()));
  if (!index.is_valid()) throw nb::python_error();
  const Py_ssize_t at = PyNumber_AsSsize_t(index.ptr(), nullptr);
  return static_cast<std::int64_t>(at);
}

std::int64_t step_of(nb::handle step) { return step.is_none() ? 1 : extent_of(step); }

Subscript slice_of(nb::handle key) {
  return slice(bound_of(key.attr("start")), bound_of(key.attr("stop")), step_of(key.attr("step")));
}

Subscript places_of(nb::handle key) {
  const Tensor places = tensor_of(key);
  if (is_floating(places.dtype()))
    throw nb::index_error(text("subscripts are ints, slices, None, ... and tensors of integers or booleans, not ",
                               numpy_name(places.dtype()))
                              .c_str());
  return places;
}

Subscript subscript_of(nb::handle key) {
  if (key.is_none()) return newaxis;
  if (key.ptr() == Py_Ellipsis) return ellipsis;
  if (PySlice_Check(key.ptr())) return slice_of(key);
  if (PyLong_Check(key.ptr()) && !PyBool_Check(key.ptr())) return extent_of(key);
  if (nb::isinstance<Extent>(key)) return nb::cast<Extent>(key);
  if (PyFloat_Check(key.ptr()) || PyBool_Check(key.ptr()) || !may_be_tensor(key))
    throw nb::type_error(
        text("subscripts are ints, slices, None, ... and lists, arrays or tensors of integers or booleans, not ",
             class_of(key))
            .c_str());
  return places_of(key);
}

/// use(subscript, subscript, ...) with all that there may be.
template <class Use> decltype(auto) with_subscripts(std::vector<Subscript> given, const Use& use) {
  given.resize(most_subscripts);
  return [&]<std::size_t... i>(std::index_sequence<i...>) -> decltype(auto) {
    return use(given[i]...);
  }(std::make_index_sequence<most_subscripts>());
}

}  // namespace

std::vector<Subscript> subscripts_of(nb::handle key) {
  if (!PyTuple_Check(key.ptr())) return {subscript_of(key)};
  std::vector<Subscript> all;
  for (const nb::handle each : nb::borrow<nb::tuple>(key)) all.push_back(subscript_of(each));
  if (all.size() > most_subscripts)
    throw nb::index_error(text(all.size(), " subscripts, where a tensor has at most ", most_subscripts).c_str());
  return all;
}

Tensor item_of(const Tensor& x, nb::handle key) {
  if (PyTuple_Check(key.ptr()) && PyTuple_Size(key.ptr()) == 0) return x;
  return with_subscripts(subscripts_of(key), [&](const auto&... subscripts) { return x(subscripts...); });
}

void assign_item(const Variable& variable, std::vector<Subscript> subscripts, const NumberOrTensor& value) {
  with_subscripts(std::move(subscripts), [&](const auto&... each) { variable(each...).assign(value); });
}

}  // namespace gradus::python
