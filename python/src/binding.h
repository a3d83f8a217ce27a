/// The parts of the binding, one file each. A part adds its names to the module gradus._native.
#pragma once
#include "python/src/casters.h"

namespace gradus::python {

/// Gives a class whose objects stand for tensors the operators and methods of one.
void add_tensor_methods(nb::handle type);
/// sum, mean, max, min, prod, any and all as methods, which a Loss has not: Loss.mean makes one.
void add_reductions(nb::handle type);
/// The slots of the class Tensor: the buffer protocol.
const PyType_Slot* tensor_slots();

void bind_errors(nb::module_& module);
void bind_dtypes(nb::module_& module);
void bind_arrays(nb::module_& module);
void bind_devices(nb::module_& module);
void bind_tensor(nb::module_& module);
void bind_variable(nb::module_& module);
void bind_tape(nb::module_& module);
void bind_function(nb::module_& module);
void bind_transforms(nb::module_& module);
void bind_pipeline(nb::module_& module);
void bind_models(nb::module_& module);
void bind_training(nb::module_& module);
void bind_strategies(nb::module_& module);
void bind_summaries(nb::module_& module);
void bind_files(nb::module_& module);
void bind_profiles(nb::module_& module);
/// Adds every public op, layer, loss, optimizer and metric. Its sources are generated.
void bind_generated(nb::module_& module);

// ---- parts that several files share

/// A message of the library, with options as Python writes them: unbatched=True.
std::string in_words_of_python(std::string_view message);
/// Ends all passes over data sets, with their threads, which may run Python.
void close_readings();

/// The elements as an array of NumPy that reads the memory of `x` and cannot be written; of a scalar, NumPy's scalar.
nb::object numpy_of(const Tensor& x);
/// As numpy_of, of a scalar an array without dimensions.
nb::object array_of(const Tensor& x);
/// tensor.__array__(dtype, copy) and tensor.__dlpack__(max_version, copy).
nb::object array_in_dtype(const Tensor& x, nb::handle dtype, nb::handle copy);
nb::object to_capsule(const Tensor& x, nb::handle max_version, nb::handle copy);
/// The size of a dimension as a number; InvalidArgument while it is open.
std::int64_t known_extent(std::int64_t extent);
/// The key of Python's brackets as subscripts: at most ten.
std::vector<Subscript> subscripts_of(nb::handle key);
/// x[key] and variable[key] = value.
Tensor item_of(const Tensor& x, nb::handle key);
void assign_item(const Variable& variable, std::vector<Subscript> subscripts, const NumberOrTensor& value);
/// The repr of a tensor that is called `name`: shape, dtype and values.
std::string repr_of(std::string_view name, const Tensor& x);
/// Gradients of Python as a list of tensors and Nones, and those of C++ as an object.
bool is_gradients(nb::handle object);
nb::object list_of_gradients(nb::handle gradients);
nb::object object_of_gradients(Gradients gradients);
/// A text of the library's classes that print themselves.
template <class T> std::string printed(const T& value) { return text(value); }

}  // namespace gradus::python
