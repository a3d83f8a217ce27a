// Tensor, and the operators and methods that it shares with Variable and Loss, which stand for their values.
#include "python/src/binding.h"

namespace gradus::python {
namespace {

/// Adds a method that takes its object as it is.
template <class F, class... Extra> void method(nb::handle type, const char* name, F f, const Extra&... extra) {
  nb::setattr(type, name, nb::cpp_function(f, nb::scope(type), nb::name(name), nb::is_method(), extra...));
}

template <class F> void property(nb::handle type, const char* name, F f, const char* doc) {
  const nb::object get = nb::cpp_function(f, nb::scope(type), nb::name(name), nb::is_method());
  const nb::handle python_property(reinterpret_cast<PyObject*>(&PyProperty_Type));
  nb::setattr(type, name, python_property(get, nb::none(), nb::none(), doc));
}

// ---- operators

/// f(a, b) unless `b`, the operand beside this one, is nothing that ops take.
template <class F> nb::object applied(nb::handle a, nb::handle b, nb::handle other, const F& f) {
  if (!may_be_tensor(other)) return nb::borrow(Py_NotImplemented);
  return nb::cast(with_numbers({a}, {b}, f));
}

template <class F> void binary(nb::handle type, const char* name, const F& f) {
  method(type, name, [f](nb::handle a, nb::handle b) { return applied(a, b, b, f); }, nb::arg().none());
}

template <class F> void binary(nb::handle type, const char* name, const char* reflected, const F& f) {
  binary(type, name, f);
  method(type, reflected, [f](nb::handle a, nb::handle b) { return applied(b, a, b, f); }, nb::arg().none());
}

/// Python's division gives floating numbers: of integers float64, or float32 where they have 8 or 16 bits.
Tensor divisible(const Tensor& x) {
  if (is_floating(x.dtype())) return x;
  return cast(x, size_of(x.dtype()) <= 2 ? f32 : f64);
}
Scalar divisible(const Scalar& x) { return x; }

void add_arithmetic(nb::handle type) {
  binary(type, "__add__", "__radd__", [](const auto& a, const auto& b) -> Tensor { return a + b; });
  binary(type, "__sub__", "__rsub__", [](const auto& a, const auto& b) -> Tensor { return a - b; });
  binary(type, "__mul__", "__rmul__", [](const auto& a, const auto& b) -> Tensor { return a * b; });
  binary(type, "__truediv__", "__rtruediv__",
         [](const auto& a, const auto& b) -> Tensor { return divisible(a) / divisible(b); });
  binary(type, "__floordiv__", "__rfloordiv__",
         [](const auto& a, const auto& b) -> Tensor { return floor_divide(a, b); });
  binary(type, "__mod__", "__rmod__", [](const auto& a, const auto& b) -> Tensor { return mod(a, b); });
  binary(type, "__pow__", "__rpow__", [](const auto& a, const auto& b) -> Tensor { return pow(a, b); });
  const auto product = [](nb::handle a, nb::handle b) { return nb::cast(matmul(tensor_of(a), tensor_of(b))); };
  method(type, "__matmul__", product);
  method(type, "__rmatmul__", [product](nb::handle a, nb::handle b) { return product(b, a); });
  method(type, "__neg__", [](nb::handle x) { return -tensor_of(x); });
  method(type, "__pos__", [](nb::handle x) { return tensor_of(x); });
  method(type, "__abs__", [](nb::handle x) { return abs(tensor_of(x)); });
  method(type, "__invert__", [](nb::handle x) { return ~tensor_of(x); });
}

/// An operand of & | ^ beside a tensor: numbers in its type.
Tensor beside(nb::handle object, nb::handle tensor) {
  return is_number(object) ? scalar_like(tensor_of(tensor), scalar_of(object), "bitwise") : tensor_of(object);
}

template <class F> void bitwise(nb::handle type, const char* name, const char* reflected, const F& f) {
  const auto applied_to = [f](nb::handle x, nb::handle other) -> nb::object {
    if (!may_be_tensor(other)) return nb::borrow(Py_NotImplemented);
    return nb::cast(f(tensor_of(x), beside(other, x)));
  };
  method(type, name, applied_to, nb::arg().none());
  method(type, reflected, applied_to, nb::arg().none());  // in any order the same
}

template <class F> void equality(nb::handle type, const char* name, bool of_others, const F& f) {
  method(
      type, name,
      [f, of_others](nb::handle a, nb::handle b) -> nb::object {
        if (!may_be_tensor(b)) return nb::bool_(of_others);
        return nb::cast(with_numbers({a}, {b}, f));
      },
      nb::arg().none());
}

void add_comparisons(nb::handle type) {
  binary(type, "__lt__", [](const auto& a, const auto& b) -> Tensor { return a < b; });
  binary(type, "__le__", [](const auto& a, const auto& b) -> Tensor { return a <= b; });
  binary(type, "__gt__", [](const auto& a, const auto& b) -> Tensor { return a > b; });
  binary(type, "__ge__", [](const auto& a, const auto& b) -> Tensor { return a >= b; });
  equality(type, "__eq__", false, [](const auto& a, const auto& b) -> Tensor { return equal(a, b); });
  equality(type, "__ne__", true, [](const auto& a, const auto& b) -> Tensor { return not_equal(a, b); });
  nb::setattr(type, "__hash__", nb::none());  // == is elementwise; ref() is a key
  bitwise(type, "__and__", "__rand__", [](const Tensor& a, const Tensor& b) { return a & b; });
  bitwise(type, "__or__", "__ror__", [](const Tensor& a, const Tensor& b) { return a | b; });
  bitwise(type, "__xor__", "__rxor__", [](const Tensor& a, const Tensor& b) { return a ^ b; });
}

// ---- values

double item_of_one(nb::handle object) {
  const Tensor x = tensor_of(object);
  return without_gil([&] { return x.item(); });
}

bool truth_of(nb::handle object) {
  const Tensor x = tensor_of(object);
  const Tensor truth = x.dtype() == boolean ? x : not_equal(x, 0);
  return without_gil([&] { return static_cast<bool>(truth); });
}

nb::object int_of_one(nb::handle object) {
  const Tensor x = tensor_of(object);
  require(x.shape().size() == 1, "int: a tensor of one element is an int, not one of shape ", x.shape());
  return nb::steal(PyNumber_Long(nb::object(array_of(x).attr("item")()).ptr()));
}

nb::object index_of_one(nb::handle object) {
  const Tensor x = tensor_of(object);
  if (!is_integer(x.dtype()) || x.shape().rank() != 0)
    throw nb::type_error(text("an index is an integer: a scalar tensor of integers, not ", x.spec()).c_str());
  return int_of_one(object);
}

void add_values(nb::handle type) {
  method(
      type, "numpy", [](nb::handle x) { return numpy_of(tensor_of(x)); },
      "The elements as an array of NumPy, without a copy: it reads the memory of the tensor, and cannot be written. Of "
      "a "
      "scalar a scalar of NumPy; bfloat16 is that of ml_dtypes.");
  method(
      type, "__array__",
      [](nb::handle x, nb::handle dtype, nb::handle copy) { return array_in_dtype(tensor_of(x), dtype, copy); },
      "dtype"_a.none() = nb::none(), "copy"_a.none() = nb::none());
  method(
      type, "__dlpack__",
      [](nb::handle x, nb::handle, nb::handle max_version, nb::handle, nb::handle copy) {
        return to_capsule(tensor_of(x), max_version, copy);
      },
      "stream"_a.none() = nb::none(), "max_version"_a.none() = nb::none(), "dl_device"_a.none() = nb::none(),
      "copy"_a.none() = nb::none());
  method(type, "__dlpack_device__", [](nb::handle) { return nb::make_tuple(dlpack::processor, 0); });
  method(
      type, "item", [](nb::handle x) { return array_of(tensor_of(x)).attr("item")(); },
      "The one element, as a number.");
  method(
      type, "tolist", [](nb::handle x) { return array_of(tensor_of(x)).attr("tolist")(); }, "The elements as lists.");
  method(type, "__bool__", truth_of);
  method(type, "__float__", item_of_one);
  method(type, "__int__", int_of_one);
  method(type, "__index__", index_of_one);
  method(type, "__format__", [](nb::handle x, nb::handle form) {
    return nb::module_::import_("builtins").attr("format")(numpy_of(tensor_of(x)), form);
  });
  method(type, "__str__", [](nb::handle x) {
    const Tensor value = tensor_of(x);
    return value.is_symbolic() ? repr_of("Tensor", value) : text_of(numpy_of(value));
  });
}

// ---- shape

std::int64_t length_of(nb::handle object) {
  const Tensor x = tensor_of(object);
  if (x.shape().rank() == 0) throw nb::type_error("len() of a scalar tensor");
  return known_extent(x.shape()[0]);
}

/// Rows of a tensor, one after another.
struct Rows {
  Tensor x;
  std::int64_t size, at = 0;
  Tensor next() {
    if (at == size) throw nb::stop_iteration();
    return x[at++];
  }
};

void add_shape(nb::handle type) {
  property(
      type, "shape", [](nb::handle x) { return tensor_of(x).shape(); },
      "The sizes, as a tuple. A size that is open while a function is traced is an Extent.");
  property(type, "dtype", [](nb::handle x) { return tensor_of(x).dtype(); }, "The type of the elements.");
  property(type, "ndim", [](nb::handle x) { return tensor_of(x).shape().rank(); }, "The number of dimensions.");
  property(
      type, "size", [](nb::handle x) { return object_of_extent(tensor_of(x).shape().size()); },
      "The number of elements.");
  property(
      type, "device", [](nb::handle x) { return tensor_of(x).device(); },
      "The device that has it, or will compute it.");
  property(type, "T", [](nb::handle x) { return transpose(tensor_of(x)); }, "The dimensions in reverse order.");
  method(
      type, "__getitem__", [](nb::handle x, nb::handle key) { return item_of(tensor_of(x), key); }, nb::arg().none());
  method(type, "__len__", length_of);
  method(type, "__iter__", [](nb::handle x) { return Rows{tensor_of(x), length_of(x)}; });
  method(
      type, "reshape", [](nb::handle x, const ShapeArg& shape) { return reshape(tensor_of(x), shape); }, "shape"_a,
      "The elements in another shape; -1 stands for what is left.");
  method(
      type, "astype", [](nb::handle x, DType dtype) { return cast(tensor_of(x), dtype); }, "dtype"_a,
      "In another dtype.");
  method(
      type, "to", [](nb::handle x, const DeviceArg& device) { return tensor_of(x).to(device.device()); }, "device"_a,
      "On another device: a copy, or the tensor itself.");
}

using Reduction = Tensor (*)(const Tensor&, ReduceOptions);
/// A reduction as a method of tensors.
struct ReductionMethod {
  const char* name;
  Reduction reduce;
  const char* doc;
  bool takes_truths = false;     // any, all
  bool gives_fractions = false;  // mean
  bool widens_integers = false;  // sum, prod
};

/// The operand of a reduction that NumPy calls: np.sum(x) and the like give a method of this name `axis`, `dtype` and
/// `out`, and expect the result to have NumPy's dtype.
Tensor as_numpy_reduces(const ReductionMethod& method, const Tensor& x) {
  const bool is_whole = is_integer(x.dtype()) || x.dtype() == boolean;
  if (method.gives_fractions && is_whole) return cast(x, f64);
  if (method.widens_integers && is_whole) return cast(x, is_integer(x.dtype()) && !is_signed(x.dtype()) ? u64 : i64);
  return x;
}

Tensor reduced(const ReductionMethod& method, nb::handle object, ReduceOptions options, const nb::kwargs& numpys) {
  Tensor x = tensor_of(object);
  if (numpys.size() > 0) {
    bool has_dtype = false;
    for (const auto& [key, value] : numpys) {
      const std::string name = nb::cast<std::string>(key);
      if (name != "dtype" && name != "out")
        throw nb::type_error(text(method.name, ": a tensor has `axis`, `keepdims` and `dtype`, no `", name, "`: np.",
                                  method.name, "(x.numpy(), ", name, "=...) takes it")
                                 .c_str());
      if (value.is_none()) continue;
      if (name == "out")
        throw nb::type_error(text(method.name,
                                  ": a result is a tensor of its own: leave `out` out, or give x.numpy() to "
                                  "NumPy")
                                 .c_str());
      const std::optional<DType> dtype = dtype_of_object(value);
      if (!dtype) throw nb::type_error(text(method.name, ": `dtype`: ", text_of(value), " is no dtype").c_str());
      x = cast(x, *dtype);
      has_dtype = true;
    }
    if (!has_dtype) x = as_numpy_reduces(method, x);
  }
  if (method.takes_truths && x.dtype() != boolean) x = not_equal(x, 0);
  if (x.dtype() == boolean && (method.reduce == reduce_max || method.reduce == reduce_min))
    return method.reduce == reduce_max ? reduce_any(x, options) : reduce_all(x, options);
  return method.reduce(x, options);
}

void add_reduction(nb::handle type, const ReductionMethod& method_of) {
  method(
      type, method_of.name,
      [method_of](nb::handle x, const std::optional<IntsArg>& axis, bool keepdims, const nb::kwargs& numpys) {
        return reduced(method_of, x, {.axis = axis ? axis->axes() : std::vector<int>(), .keepdims = keepdims}, numpys);
      },
      "axis"_a = nb::none(), "keepdims"_a = false, "numpys"_a, method_of.doc);
}

/// A tensor as a key of dictionaries: one and the same tensor.
struct TensorKey {
  Tensor x;
};

void bind_key(nb::module_& module) {
  nb::class_<TensorKey>(module, "_TensorKey")
      .def("deref", [](const TensorKey& key) { return key.x; })
      .def(
          "__eq__",
          [](const TensorKey& a, nb::handle b) {
            return nb::isinstance<TensorKey>(b) && nb::cast<TensorKey&>(b).x.node().get() == a.x.node().get();
          },
          nb::arg().none())
      .def("__hash__", [](const TensorKey& key) { return std::hash<const void*>()(key.x.node().get()); });
}

}  // namespace

std::string repr_of(std::string_view name, const Tensor& x) {
  nb::object sizes = nb::cast(x.shape());
  const std::string head = text("<gradus.", name, ": shape=", text_of(sizes), ", dtype=", numpy_name(x.dtype()));
  if (x.is_symbolic()) return head + ", a value of the function that is traced>";
  const nb::object shown = nb::steal(PyObject_Repr(array_of(x).ptr()));
  if (!shown.is_valid()) throw nb::python_error();
  return text(head, ", numpy=", text_of(shown), ">");
}

void add_reductions(nb::handle type) {
  for (const ReductionMethod& each : {
           ReductionMethod{"sum", reduce_sum, "The sum over the axes, or of all elements.", false, false, true},
           ReductionMethod{"mean", reduce_mean, "The mean over the axes, or of all elements.", false, true},
           ReductionMethod{"max", reduce_max, "The largest element over the axes, or of all."},
           ReductionMethod{"min", reduce_min, "The smallest element over the axes, or of all."},
           ReductionMethod{"prod", reduce_prod, "The product over the axes, or of all elements.", false, false, true},
           ReductionMethod{"any", reduce_any, "True where any element over the axes is not 0.", true},
           ReductionMethod{"all", reduce_all, "True where all elements over the axes are not 0.", true},
       })
    add_reduction(type, each);
}

void add_tensor_methods(nb::handle type) {
  add_arithmetic(type);
  add_comparisons(type);
  add_values(type);
  add_shape(type);
  nb::setattr(type, "__array_priority__", nb::int_(100));  // array + tensor is a tensor
}

void bind_tensor(nb::module_& module) {
  bind_key(module);
  nb::class_<Rows>(module, "_Rows")
      .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__next__", &Rows::next);
  nb::class_<Tensor> type(
      module, "Tensor", nb::is_weak_referenceable(), nb::dynamic_attr(), nb::type_slots(tensor_slots()),
      "An immutable array, made by gradus.constant and by every op. It is computed when its elements are "
      "looked at; while a function is traced, it stands for a value of each call.");
  add_tensor_methods(type);
  add_reductions(type);
  type.def("__repr__", [](const Tensor& x) { return repr_of("Tensor", x); })
      .def(
          "ref", [](const Tensor& x) { return TensorKey{x}; },
          "A key of dictionaries: equal for one and the same tensor.")
      .def_prop_ro("is_symbolic", &Tensor::is_symbolic, "True for a value of a function that is traced.")
      .def_prop_ro(
          "_varies", [](const Tensor& x) { return x.node() && x.node()->varies; },
          "True for a value of a step on shards that may differ from shard to shard.")
      .def("__reduce__",
           [](const Tensor& x) {
             return nb::make_tuple(nb::module_::import_("gradus._pickles").attr("tensor"), nb::make_tuple(array_of(x)));
           })
      .def("__copy__", [](nb::handle self) { return nb::borrow(self); })
      .def("__deepcopy__", [](nb::handle self, nb::handle) { return nb::borrow(self); });
}

}  // namespace gradus::python
