// Tensors from Python's numbers, lists and arrays, which are copied, and tensors as arrays, which are not.
#include <nanobind/ndarray.h>
#include <cstring>
#include "python/src/arrays.h"
#include "python/src/binding.h"

namespace gradus::python {
namespace {

/// Copies of more bytes let other threads run.
constexpr std::int64_t large_copy = 1 << 20;

/// NumPy and the bfloat16 that it lacks, imported with this module and kept for ever.
PyObject* numpy_module = nullptr;
PyObject* array_type = nullptr;
PyObject* scalar_type = nullptr;  // the base of its scalars
PyObject* bfloat16_of_ml_dtypes = nullptr;
nb::handle numpy() { return numpy_module; }

[[noreturn]] void refuse(nb::handle object, const std::string& why) {
  throw nb::type_error(text("no tensor: an object of the class ", class_of(object), why).c_str());
}

/// Refuses objects that are more than the array that they have: a constant would lose the rest without a word.
void refuse_more_than_array(nb::handle object) {
  if (nb::hasattr(object, "assign_add"))
    refuse(object,
           ", a variable of another library: neither gradients nor assignments would reach a constant. Make a "
           "gradus.Variable of its value, or pass the value, such as x.numpy()");
  const std::string name = class_of(object);
  if (name == "MaskedArray") refuse(object, ", whose mask a tensor would lose: pass array.filled(value)");
  if (name == "StringTensor")
    refuse(object, ": strings are values of the host, in no traced function and in no op on numbers");
}

/// Visits the leaves of nested lists in order.
template <class Visit> void for_each_item(nb::handle object, const Visit& visit) {
  if (!is_sequence(object)) return visit(object);
  for (const nb::handle item : nb::borrow<nb::sequence>(object)) for_each_item(item, visit);
}

/// The dtype of the first tensor among the leaves.
std::optional<DType> dtype_of_tensors(nb::handle list) {
  std::optional<DType> found;
  for_each_item(list, [&](nb::handle leaf) {
    if (!found && is_tensor(leaf)) found = tensor_of(leaf).dtype();
  });
  return found;
}

// ---- memory

Tensor copy_of_bytes(const void* data, const Spec& spec) {
  const std::int64_t bytes = bytes_of(spec);
  Ref<Buffer> buffer = Buffer::allocate(bytes);
  const auto copy = [&] { std::memcpy(buffer->data<void>(), data, static_cast<std::size_t>(bytes)); };
  if (bytes >= large_copy) without_gil(copy);
  else if (bytes > 0) copy();
  return Tensor::of_buffer(spec, std::move(buffer));
}

/// The memory of an object, row-major, while it is looked at.
class Memory {
 public:
  /// Without memory of this kind it is empty.
  Memory(nb::handle object, int flags) : is_there_(PyObject_GetBuffer(object.ptr(), &view_, flags) == 0) {
    if (!is_there_) PyErr_Clear();
  }
  Memory(const Memory&) = delete;
  ~Memory() {
    if (is_there_) PyBuffer_Release(&view_);
  }
  explicit operator bool() const { return is_there_; }
  const Py_buffer& view() const { return view_; }

 private:
  Py_buffer view_{};
  const bool is_there_;
};

// ---- arrays of NumPy

/// The dtype of a buffer's elements in the processor's own order of bytes; empty for others.
std::optional<DType> dtype_of_format(const char* format) {
  if (!format || !format[0] || format[1]) return {};
  switch (format[0]) {
    case 'f': return f32;
    case 'd': return f64;
    case 'e': return f16;
    case 'l': return i64;
    case 'q': return i64;
    case 'i': return i32;
    case 'h': return i16;
    case 'b': return i8;
    case 'B': return u8;
    case 'H': return u16;
    case 'I': return u32;
    case 'L': return u64;
    case 'Q': return u64;
    case '?': return boolean;
    default: return {};
  }
}

/// True for an array of NumPy of no class of its own.
bool is_plain_array(nb::handle object) { return reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())) == array_type; }

/// A copy of a contiguous array of numbers, of no class of its own: nothing of it has to be asked by name, which takes
/// five times as long. Empty for any other object.
std::optional<Tensor> copy_of_plain_array(nb::handle object) {
  if (!is_plain_array(object)) return {};
  const Memory memory(object, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT);
  if (!memory) return {};
  const std::optional<DType> dtype = dtype_of_format(memory.view().format);
  if (!dtype) return {};
  Shape shape;
  for (int i = 0; i < memory.view().ndim; ++i) shape.push_back(memory.view().shape[i]);
  return copy_of_bytes(memory.view().buf, {*dtype, shape});
}

/// The dtype of an array; TypeError for elements that no tensor has.
DType dtype_of_array(nb::handle array) {
  const nb::object dtype = array.attr("dtype");
  if (const std::optional<DType> found = dtype_of_object(dtype)) return *found;
  if (nb::cast<std::string>(dtype.attr("kind")) == "O")
    throw nb::type_error("no tensor: an array of objects; numbers of one type are needed, as array.astype makes them");
  throw nb::type_error(
      text("no tensor: an array of ", text_of(dtype), ", a type of element that no tensor has").c_str());
}

Shape shape_of_array(nb::handle array) {
  Shape shape;
  const nb::object sizes = array.attr("shape");
  for (const nb::handle size : nb::borrow<nb::tuple>(sizes)) shape.push_back(nb::cast<std::int64_t>(size));
  return shape;
}

/// A copy of an array of any strides and order of bytes.
Tensor copy_of_array(nb::object array) {
  if (std::optional<Tensor> copy = copy_of_plain_array(array)) return *std::move(copy);
  const DType dtype = dtype_of_array(array);
  const nb::object layout = array.attr("dtype");
  if (!nb::cast<bool>(layout.attr("isnative"))) array = array.attr("astype")(layout.attr("newbyteorder")("="));
  const Shape shape = shape_of_array(array);
  array = numpy().attr("asarray")(array, "order"_a = "C");
  if (dtype == bf16) array = array.attr("view")("uint16");  // buffers know no bfloat16
  const Memory memory(array, PyBUF_SIMPLE);
  if (!memory) throw nb::type_error(text("no tensor: the memory of a ", class_of(array), " cannot be read").c_str());
  return copy_of_bytes(memory.view().buf, {dtype, shape});
}

/// numpy.asarray(list); of a ragged one a ValueError that says so.
nb::object array_of_list(nb::handle list) {
  try {
    return numpy().attr("asarray")(list);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_ValueError)) throw;
    throw nb::value_error(text("no tensor: these lists are ragged, but lists of one depth have to have one length: ",
                               text_of(error.value()))
                              .c_str());
  }
}

bool fits_int32(nb::handle array) {
  return nb::cast<std::int64_t>(array.attr("size")) == 0 || (nb::cast<std::int64_t>(array.attr("min")()) >= INT32_MIN &&
                                                             nb::cast<std::int64_t>(array.attr("max")()) <= INT32_MAX);
}

/// The array in another dtype. OutOfRange if a whole number does not fit.
nb::object array_in(nb::object array, DType found, DType dtype) {
  nb::object made = array.attr("astype")(object_of_dtype(dtype).attr("numpy"));
  if (is_integer(found) && is_integer(dtype) && !nb::cast<bool>(nb::bool_(made.attr("__eq__")(array).attr("all")())))
    throw OutOfRange(text("a list of whole numbers as ", numpy_name(dtype), ": some are outside of its range, from ",
                          text_of(array.attr("min")()), " to ", text_of(array.attr("max")()), "; give a wider dtype"));
  return made;
}

/// Lists of numbers: float32 and int32 where NumPy takes twice the width, unless an array among them has a type.
Tensor tensor_of_numbers(nb::handle list, std::optional<DType> dtype) {
  bool has_array = false;
  for_each_item(list, [&](nb::handle leaf) {
    if (PyFloat_CheckExact(leaf.ptr()) || PyLong_Check(leaf.ptr())) return;
    if (!may_be_tensor(leaf)) refuse(leaf, " in a list of numbers");
    refuse_more_than_array(leaf);
    has_array = true;
  });
  nb::object array = array_of_list(list);
  const DType found = dtype_of_array(array);
  if (dtype && is_floating(found) && !is_floating(*dtype))
    throw nb::type_error(text("a list of floating numbers as ", numpy_name(*dtype), ": cast the tensor").c_str());
  if (dtype) array = array_in(std::move(array), found, *dtype);
  else if (!has_array && found == f64) array = array.attr("astype")("float32");
  else if (!has_array && found == i64 && fits_int32(array)) array = array.attr("astype")("int32");
  return copy_of_array(std::move(array));
}

/// Lists with tensors in them: a stack. Numbers take the dtype of the tensors.
Tensor stack_of_list(nb::handle list, DType of_tensors, std::optional<DType> dtype) {
  Tensors parts;
  for (const nb::handle item : nb::borrow<nb::sequence>(list))
    parts.push_back(tensor_of(item, dtype_of_tensors(item) ? dtype : dtype.value_or(of_tensors)));
  return stack(parts, 0);
}

Tensor tensor_of_list(nb::handle list, std::optional<DType> dtype) {
  const std::optional<DType> of_tensors = dtype_of_tensors(list);
  return of_tensors ? stack_of_list(list, *of_tensors, dtype) : tensor_of_numbers(list, dtype);
}

/// The dtype of a number by itself: int32 where it fits. NumPy's float64, which is a float of Python, too, says its
/// own.
DType dtype_of_number(nb::handle number) {
  if (PyBool_Check(number.ptr())) return boolean;
  if (PyFloat_Check(number.ptr())) return PyFloat_CheckExact(number.ptr()) || !may_be_tensor(number) ? f32 : f64;
  int overflows = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflows);
  if (overflows != 0) return u64;
  return value >= INT32_MIN && value <= INT32_MAX ? i32 : i64;
}

Tensor tensor_of_number(nb::handle number, std::optional<DType> dtype) {
  if (dtype && PyFloat_Check(number.ptr()) && !is_floating(*dtype))
    throw nb::type_error(
        text("a floating number as ", numpy_name(*dtype), ": cast the tensor, or give an int").c_str());
  const scalar::Literal literal = scalar_of(number).literal();
  return gradus::detail::from_literals({&literal, 1}, {}, dtype.value_or(dtype_of_number(number)));
}

// ---- DLPack

/// Takes over what a capsule holds.
template <class Managed> Tensor take_capsule(nb::handle capsule, const char* name, const char* used, bool copy) {
  auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (!managed || PyCapsule_SetName(capsule.ptr(), used) != 0) throw nb::python_error();
  // Its deleter may want the GIL, and the last tensor may go where a thread must not wait for it: Python drops it.
  nb::object owner = nb::steal(PyCapsule_New(managed, "gradus_taken", [](PyObject* taken) {
    auto* const given = static_cast<Managed*>(PyCapsule_GetPointer(taken, "gradus_taken"));
    if (given && given->deleter) given->deleter(given);
  }));
  if (!owner.is_valid()) throw nb::python_error();
  auto* const lent = new Managed(*managed);
  lent->manager_ctx = new Held(std::move(owner));
  lent->deleter = [](Managed* self) {
    delete static_cast<Held*>(self->manager_ctx);
    delete self;
  };
  return from_dlpack(lent, {.copy_if_needed = copy});
}

nb::object capsule_of(nb::handle object) {
  const nb::object give = object.attr("__dlpack__");
  try {
    return give("max_version"_a = nb::make_tuple(dlpack::major_version, dlpack::minor_version));
  } catch (nb::python_error& error) {  // before DLPack 1.0
    if (!error.matches(PyExc_TypeError)) throw;
    return give();
  }
}

Tensor of_dlpack(nb::handle object, bool copy_if_needed) {
  const nb::object capsule = PyCapsule_CheckExact(object.ptr()) ? nb::borrow(object) : capsule_of(object);
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned"))
    return take_capsule<dlpack::ManagedVersioned>(capsule, "dltensor_versioned", "used_dltensor_versioned",
                                                  copy_if_needed);
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor"))
    return take_capsule<dlpack::Managed>(capsule, "dltensor", "used_dltensor", copy_if_needed);
  throw nb::type_error("from_dlpack: this is no capsule of DLPack, or its tensor has been taken before");
}

template <class Managed> nb::object capsule_with(const Tensor& x, const char* name) {
  Managed* const managed = without_gil([&] { return to_dlpack<Managed>(x); });
  nb::object capsule = nb::steal(PyCapsule_New(managed, name, [](PyObject* given) {
    const char* const now = PyCapsule_GetName(given);
    if (!now || std::strncmp(now, "dltensor", 8) != 0) return PyErr_Clear();  // it was taken over
    auto* const left = static_cast<Managed*>(PyCapsule_GetPointer(given, now));
    if (left) left->deleter(left);
  }));
  if (!capsule.is_valid()) managed->deleter(managed), throw nb::python_error();
  return capsule;
}

// ---- objects with an array

Tensor copy_of(const Tensor& x) {
  const void* const data = without_gil([&] { return x.host(); });
  return copy_of_bytes(data, x.spec());
}

Tensor tensor_of_array_like(nb::handle object) {
  if (is_plain_array(object)) return copy_of_array(nb::borrow(object));
  refuse_more_than_array(object);
  try {
    return copy_of_array(numpy().attr("asarray")(nb::borrow(object)));
  } catch (const nb::python_error&) {  // NumPy has not all types of elements
    if (!nb::hasattr(object, "__dlpack__")) throw;
  }
  return copy_of(of_dlpack(object, true));
}

nb::dlpack::dtype element_of(DType dtype) {
  using Code = nb::dlpack::dtype_code;
  if (dtype == bf16) dtype = u16;  // and viewed as what it is
  const Code code = is_floating(dtype) ? Code::Float
                    : dtype == boolean ? Code::Bool
                    : is_signed(dtype) ? Code::Int
                                       : Code::UInt;
  return {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(size_of(dtype) * 8), 1};
}

/// For Python's buffer protocol: memoryview(tensor), bytes(tensor).
struct SharedView {
  Tensor x;
  std::vector<Py_ssize_t> shape, strides;
};

const char* format_of(DType dtype) {
  constexpr const char* formats[] = {"d", "f", "e", nullptr, "q", "i", "h", "b", "B", "H", "I", "Q", "?"};
  return formats[static_cast<int>(dtype)];
}

void fill_view(Py_buffer& view, PyObject* object, const Tensor& x, int flags) {
  auto shared = std::make_unique<SharedView>(SharedView{.x = x, .shape = {x.shape().begin(), x.shape().end()}});
  const void* const data = without_gil([&] { return x.host(); });
  const Shape strides = dense_strides(x.shape());
  for (const std::int64_t stride : strides) shared->strides.push_back(stride * size_of(x.dtype()));
  view = {.buf = const_cast<void*>(data),
          .obj = Py_NewRef(object),
          .len = static_cast<Py_ssize_t>(x.bytes()),
          .itemsize = size_of(x.dtype()),
          .readonly = 1,
          .ndim = x.shape().rank(),
          .format = flags & PyBUF_FORMAT ? const_cast<char*>(format_of(x.dtype())) : nullptr,
          .shape = flags & PyBUF_ND ? shared->shape.data() : nullptr,
          .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? shared->strides.data() : nullptr,
          .suboffsets = nullptr,
          .internal = shared.get()};
  shared.release();
}

int get_buffer(PyObject* object, Py_buffer* view, int flags) {
  view->obj = nullptr;
  try {
    const Tensor& x = nb::cast<const Tensor&>(nb::handle(object));
    if (flags & PyBUF_WRITABLE) throw nb::buffer_error("tensors cannot be written: copy the array, x.numpy().copy()");
    if (!format_of(x.dtype())) throw nb::buffer_error("buffers know no bfloat16: x.numpy() has that of ml_dtypes");
    fill_view(*view, object, x, flags);
    return 0;
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_BufferError, error.what());
    return -1;
  }
}

void release_buffer(PyObject*, Py_buffer* view) { delete static_cast<SharedView*>(view->internal); }

const PyType_Slot buffer_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                                    {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
                                    {0, nullptr}};

Tensor python_from_dlpack(nb::handle object, std::optional<bool> copy) {
  const Tensor x = of_dlpack(object, copy.value_or(true));
  return copy.value_or(false) ? copy_of(x) : x;
}

Tensor constant_of(nb::handle value, std::optional<DType> dtype, std::optional<Shape> shape) {
  const Tensor x = tensor_of(value, dtype);
  if (!shape || x.shape() == *shape) return x;
  return x.shape().size() == 1 ? broadcast_to(reshape(x, {}), *shape) : reshape(x, *shape);
}

}  // namespace

bool write_array(nb::handle object, const Spec& spec, std::byte* out) {
  if (!is_plain_array(object) && !PyType_IsSubtype(Py_TYPE(object.ptr()), reinterpret_cast<PyTypeObject*>(scalar_type)))
    return false;
  const Memory memory(object, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT);
  if (!memory || dtype_of_format(memory.view().format) != spec.dtype) return false;
  if (!std::equal(spec.shape.begin(), spec.shape.end(), memory.view().shape, memory.view().shape + memory.view().ndim))
    return false;
  if (memory.view().len > 0) std::memcpy(out, memory.view().buf, static_cast<std::size_t>(memory.view().len));
  return true;
}

bool write_number(nb::handle object, const Spec& spec, std::byte* out) {
  const auto write = [&](auto value) {
    std::memcpy(out, &value, sizeof value);
    return true;
  };
  if (spec.shape.rank() > 0) return false;
  if (PyFloat_CheckExact(object.ptr())) {
    const double value = PyFloat_AsDouble(object.ptr());
    if (spec.dtype == f64) return write(value);
    return spec.dtype == f32 && write(static_cast<float>(value));
  }
  if (!PyLong_CheckExact(object.ptr()) || (spec.dtype != i32 && spec.dtype != i64)) return false;
  int overflows = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object.ptr(), &overflows);
  if (overflows != 0) return false;
  if (spec.dtype == i64) return write(static_cast<std::int64_t>(value));
  return std::in_range<std::int32_t>(value) && write(static_cast<std::int32_t>(value));
}

const PyType_Slot* tensor_slots() { return buffer_slots; }

bool is_tensor(nb::handle object) {
  return nb::isinstance<Tensor>(object) || nb::isinstance<Variable>(object) || nb::isinstance<Loss>(object);
}

bool may_be_tensor(nb::handle object) {
  PyObject* const o = object.ptr();
  if (is_tensor(object) || is_number(object) || is_sequence(object) || PyRange_Check(o)) return true;
  if (object.is_none() || PyUnicode_Check(o) || PyBytes_Check(o) || PyType_Check(o)) return false;
  return PyObject_CheckBuffer(o) || nb::hasattr(object, "__array__") || nb::hasattr(object, "__dlpack__") ||
         nb::hasattr(object, "__array_interface__");
}

Tensor tensor_of(nb::handle object, std::optional<DType> dtype) {
  const auto in_dtype = [&](const Tensor& x) { return dtype && x.dtype() != *dtype ? cast(x, *dtype) : x; };
  if (nb::isinstance<Tensor>(object)) return in_dtype(nb::cast<const Tensor&>(object));
  if (nb::isinstance<Variable>(object)) return in_dtype(nb::cast<const Variable&>(object).value());
  if (nb::isinstance<Loss>(object)) return in_dtype(nb::cast<const Loss&>(object).value());
  if (is_number(object)) return tensor_of_number(object, dtype);
  if (is_sequence(object)) return tensor_of_list(object, dtype);
  if (PyRange_Check(object.ptr())) return tensor_of_list(nb::list(nb::borrow(object)), dtype);
  if (nb::hasattr(object, "__gradus_tensor__")) return tensor_of(object.attr("__gradus_tensor__")(), dtype);
  if (!may_be_tensor(object)) refuse(object, "; a Tensor, Variable, number, list of numbers or an array is one");
  return in_dtype(tensor_of_array_like(object));
}

nb::object array_of(const Tensor& x) {
  const void* const data = without_gil([&] { return x.host(); });
  std::size_t sizes[Shape::max_rank];
  std::size_t rank = 0;
  for (const std::int64_t size : x.shape()) sizes[rank++] = static_cast<std::size_t>(size);
  static const char nothing = 0;  // where there are no elements
  const nb::capsule owner(new Tensor(x), [](void* kept) noexcept { delete static_cast<Tensor*>(kept); });
  const nb::ndarray<nb::numpy, nb::ro> view(data ? data : &nothing, rank, sizes, owner, nullptr, element_of(x.dtype()));
  const nb::object array = nb::cast(view);
  return x.dtype() == bf16 ? nb::object(array.attr("view")(nb::handle(bfloat16_of_ml_dtypes))) : array;
}

nb::object numpy_of(const Tensor& x) {
  const nb::object array = array_of(x);
  return x.shape().rank() == 0 ? nb::object(array[nb::make_tuple()]) : array;
}

nb::object array_in_dtype(const Tensor& x, nb::handle dtype, nb::handle copy) {
  nb::object array = array_of(x);
  if (!dtype.is_none()) array = array.attr("astype")(nb::borrow(dtype), "copy"_a = false);
  return copy.ptr() == Py_True ? nb::object(array.attr("copy")()) : array;
}

nb::object to_capsule(const Tensor& x, nb::handle max_version, nb::handle copy) {
  if (copy.ptr() == Py_True)
    return array_of(x).attr("copy")().attr("__dlpack__")("max_version"_a = nb::borrow(max_version));
  const bool versioned = !max_version.is_none() && nb::cast<int>(nb::borrow<nb::tuple>(max_version)[0]) >= 1;
  return versioned ? capsule_with<dlpack::ManagedVersioned>(x, "dltensor_versioned")
                   : capsule_with<dlpack::Managed>(x, "dltensor");
}

void bind_arrays(nb::module_& module) {
  numpy_module = nb::module_::import_("numpy").release().ptr();
  array_type = nb::object(numpy().attr("ndarray")).release().ptr();
  scalar_type = nb::object(numpy().attr("generic")).release().ptr();
  bfloat16_of_ml_dtypes = nb::object(nb::module_::import_("ml_dtypes").attr("bfloat16")).release().ptr();
  module.def(
      "constant", constant_of, "value"_a.none(), "dtype"_a = nb::none(), "shape"_a = nb::none(),
      "A tensor with a copy of numbers, lists of them or an array.\n\nNumbers and lists are float32, int32 or bool "
      "unless `dtype` says otherwise; arrays keep their type. With `shape` one number fills it.");
  module.def(
      "from_dlpack", python_from_dlpack, "x"_a, "copy"_a.none() = nb::none(),
      "A tensor on the memory of another library's array, by DLPack. It must not be written meanwhile.\n\n"
      "Memory that cannot be read in place is copied: with gaps between rows, or so near to the end of a page that "
      "kernels would read past it. With copy=False that is an InvalidArgumentError; copy=True copies always.");
}

}  // namespace gradus::python
