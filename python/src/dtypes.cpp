// dtypes in Python: one object each, under NumPy's names.
#include <array>
#include "python/src/binding.h"

namespace gradus::python {
namespace {

/// A dtype as Python sees it.
struct ElementType {
  DType dtype;
};

constexpr std::array numpy_names{"float64", "float32", "float16", "bfloat16", "int64",  "int32", "int16",
                                 "int8",    "uint8",   "uint16",  "uint32",   "uint64", "bool"};

std::array<PyObject*, numpy_names.size()>& dtype_objects() {
  static std::array<PyObject*, numpy_names.size()> all{};  // kept for ever
  return all;
}

std::optional<DType> dtype_of_name(std::string_view name) {
  for (const DType dtype : all_dtypes)
    if (name == numpy_name(dtype) || name == name_of(dtype)) return dtype;
  return {};
}

std::optional<DType> dtype_of_class(nb::handle type) {
  if (type.ptr() == reinterpret_cast<PyObject*>(&PyFloat_Type)) return f32;
  if (type.ptr() == reinterpret_cast<PyObject*>(&PyLong_Type)) return i32;
  if (type.ptr() == reinterpret_cast<PyObject*>(&PyBool_Type)) return boolean;
  return {};
}

/// The text in an attribute of the object, if it is one.
std::optional<std::string> text_in(nb::handle object, const char* attribute) {
  const nb::object text = nb::steal(PyObject_GetAttrString(object.ptr(), attribute));
  if (!text.is_valid()) PyErr_Clear();
  if (!text.is_valid() || !PyUnicode_Check(text.ptr())) return {};
  return nb::cast<std::string>(text);
}

DType required_dtype(nb::handle object) {
  const std::optional<DType> found = dtype_of_object(object);
  if (!found)
    throw nb::type_error(text("no dtype: ", text_of(object), "; the library has float64, float32, float16, bfloat16, ",
                              "int64, int32, int16, int8, uint8, uint16, uint32, uint64 and bool")
                             .c_str());
  return *found;
}

}  // namespace

const char* numpy_name(DType dtype) { return numpy_names[static_cast<std::size_t>(dtype)]; }

nb::object object_of_dtype(DType dtype) { return nb::borrow(dtype_objects()[static_cast<std::size_t>(dtype)]); }

std::optional<DType> dtype_of_object(nb::handle object) {
  if (nb::isinstance<ElementType>(object)) return nb::cast<ElementType&>(object).dtype;
  if (PyUnicode_Check(object.ptr())) return dtype_of_name(nb::cast<std::string>(object));
  if (PyType_Check(object.ptr())) {
    if (const std::optional<DType> found = dtype_of_class(object)) return found;
    if (const std::optional<std::string> name = text_in(object, "__name__")) return dtype_of_name(*name);
  }
  if (const std::optional<std::string> name = text_in(object, "name")) return dtype_of_name(*name);  // numpy.dtype
  return {};
}

void bind_dtypes(nb::module_& module) {
  nb::class_<ElementType>(module, "DType", "The type of the elements of a tensor: gradus.float32, gradus.int64 ...")
      .def(
          "__init__", [](ElementType* self, nb::handle name) { new (self) ElementType{required_dtype(name)}; },
          "name"_a)
      .def_prop_ro(
          "name", [](const ElementType& self) { return numpy_name(self.dtype); }, "NumPy's name.")
      .def_prop_ro("is_floating", [](const ElementType& self) { return is_floating(self.dtype); })
      .def_prop_ro("is_integer", [](const ElementType& self) { return is_integer(self.dtype); })
      .def_prop_ro("is_signed", [](const ElementType& self) { return is_signed(self.dtype); })
      .def_prop_ro(
          "itemsize", [](const ElementType& self) { return size_of(self.dtype); }, "Bytes of one element.")
      .def_prop_ro(
          "numpy",
          [](const ElementType& self) -> nb::object {
            if (self.dtype != bf16) return nb::module_::import_("numpy").attr("dtype")(numpy_name(self.dtype));
            return nb::module_::import_("numpy").attr("dtype")(nb::module_::import_("ml_dtypes").attr("bfloat16"));
          },
          "The dtype of NumPy; bfloat16 is that of ml_dtypes.")
      .def(
          "__eq__",
          [](const ElementType& self, nb::handle other) {
            const std::optional<DType> found = dtype_of_object(other);
            return found && *found == self.dtype;
          },
          nb::arg().none())
      .def("__hash__", [](const ElementType& self) { return static_cast<int>(self.dtype) + 1; })
      .def("__reduce__",
           [module](const ElementType& self) {
             return nb::make_tuple(module.attr("DType"), nb::make_tuple(numpy_name(self.dtype)));
           })
      .def("__repr__", [](const ElementType& self) { return std::string("gradus.") + numpy_name(self.dtype); });
  for (const DType dtype : all_dtypes) {
    nb::object made = nb::cast(ElementType{dtype});
    module.attr(dtype == boolean ? "bool_" : numpy_name(dtype)) = made;
    dtype_objects()[static_cast<std::size_t>(dtype)] = made.release().ptr();
  }
}

}  // namespace gradus::python
