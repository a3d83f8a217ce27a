/// Types of arguments and results of generated functions, as calling.h asks for them. Values that several parts of the
/// package need, such as tensors and dtypes, are made by casters.h.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <type_traits>
#include <vector>
#include "gradus/base/nearest.h"
#include "python/src/calling.h"
#include "python/src/casters.h"

namespace gradus::python {

// ---- numbers and texts

/// True for ints, and for what stands for one and is no sequence, such as numpy.int64. A bool is none.
int fit_int(PyObject* object) noexcept;
/// True for numbers that are no sequences.
int fit_float(PyObject* object) noexcept;
int fit_bool(PyObject* object) noexcept;
std::int64_t int_of(PyObject* object, const Place& place, std::int64_t least, std::int64_t most);
double float_of(PyObject* object, const Place& place);

template <class T>
  requires(std::is_integral_v<T> && !std::same_as<T, bool> && !std::same_as<T, char>)
struct Argument<T> {
  static constexpr const char* name = "an int";
  static int fit(PyObject* object) noexcept { return fit_int(object); }
  static T get(PyObject* object, const Place& place) {
    using Limits = std::numeric_limits<T>;
    if constexpr (sizeof(T) == 8 && std::is_unsigned_v<T>) {
      const unsigned long long value = PyLong_AsUnsignedLongLong(nb::steal(PyNumber_Index(object)).ptr());
      if (PyErr_Occurred()) {
        PyErr_Clear();
        refuse_value(place, "expected an int from 0 to 2^64 - 1, got " + text_of(object));
      }
      return static_cast<T>(value);
    } else {
      return static_cast<T>(
          int_of(object, place, static_cast<std::int64_t>(Limits::min()), static_cast<std::int64_t>(Limits::max())));
    }
  }
};
template <std::floating_point T> struct Argument<T> {
  static constexpr const char* name = "a number";
  static int fit(PyObject* object) noexcept { return fit_float(object); }
  static T get(PyObject* object, const Place& place) { return static_cast<T>(float_of(object, place)); }
};
template <> struct Argument<bool> {
  static constexpr const char* name = "True or False";
  static int fit(PyObject* object) noexcept { return fit_bool(object); }
  static bool get(PyObject* object, const Place&) { return PyObject_IsTrue(object) == 1; }
};
template <> struct Argument<std::string> {
  static constexpr const char* name = "a str";
  static int fit(PyObject* object) noexcept { return PyUnicode_Check(object) ? 0 : -1; }
  static std::string get(PyObject* object, const Place& place);
};
template <> struct Argument<char> {
  static constexpr const char* name = "a str of one letter";
  static int fit(PyObject* object) noexcept { return Argument<std::string>::fit(object); }
  static char get(PyObject* object, const Place& place);
};
template <> struct Argument<std::filesystem::path> {
  static constexpr const char* name = "a path";
  static int fit(PyObject* object) noexcept;
  static std::filesystem::path get(PyObject* object, const Place& place);
};
template <> struct Argument<std::chrono::duration<double>> {
  static constexpr const char* name = "a number of seconds";
  static int fit(PyObject* object) noexcept { return fit_float(object); }
  static std::chrono::duration<double> get(PyObject* object, const Place& place) {
    return std::chrono::duration<double>(float_of(object, place));
  }
};
template <> struct Argument<Steps> {
  static constexpr const char* name = "a number of steps";
  static int fit(PyObject* object) noexcept { return fit_float(object); }
  static Steps get(PyObject* object, const Place& place) { return float_of(object, place); }
};

/// An enum: texts, in any case. A specialization has `values`, pairs of name and value.
template <class E> struct EnumValues;
template <class E>
  requires std::is_enum_v<E>
struct Argument<E> {
  static constexpr const char* name = EnumValues<E>::name;
  static int fit(PyObject* object) noexcept { return PyUnicode_Check(object) ? 0 : -1; }
  static E get(PyObject* object, const Place& place) {
    std::string text = Argument<std::string>::get(object, place);
    for (char& letter : text)
      if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    std::vector<std::string> known;
    for (const auto& [each, value] : EnumValues<E>::values) {
      if (text == each) return value;
      known.push_back(each);
    }
    refuse_value(place, "expected " + std::string(name) + ", got '" + text + "'" + did_you_mean(text, known));
  }
};

// ---- sequences

/// The largest fit of the elements of a list, a tuple or another sequence; -1 for texts and for what is none.
int fit_elements(PyObject* object, int (*fit)(PyObject*) noexcept) noexcept;
/// The elements. The objects stay as long as the list.
nb::list elements_of(PyObject* object);

template <class T> struct SequenceArgument {
  static int fit(PyObject* object) noexcept { return fit_elements(object, &Argument<T>::fit); }
  static std::vector<T> get(PyObject* object, const Place& place) {
    std::vector<T> all;
    for (const nb::handle each : elements_of(object)) all.push_back(Argument<T>::get(each.ptr(), place));
    return all;
  }
};
template <> struct Argument<std::vector<std::string>> : SequenceArgument<std::string> {
  static constexpr const char* name = "a sequence of strs";
};
/// Numbers; one number stands for a list of one.
template <class T>
  requires std::is_arithmetic_v<T>
struct Argument<std::vector<T>> {
  static constexpr const char* name = std::is_integral_v<T> ? "an int or a sequence of ints" : "a sequence of numbers";
  static int fit(PyObject* object) noexcept {
    const int one = Argument<T>::fit(object);
    return one >= 0 ? one + 1 : SequenceArgument<T>::fit(object);
  }
  static std::vector<T> get(PyObject* object, const Place& place) {
    if (Argument<T>::fit(object) >= 0) return {Argument<T>::get(object, place)};
    return SequenceArgument<T>::get(object, place);
  }
};
template <class T, std::size_t n> struct Argument<std::array<T, n>> {
  static constexpr const char* name = "a sequence of a fixed number of numbers, or one for all";
  static int fit(PyObject* object) noexcept { return Argument<std::vector<T>>::fit(object); }
  static std::array<T, n> get(PyObject* object, const Place& place) {
    std::vector<T> all = Argument<std::vector<T>>::get(object, place);
    if (all.size() == 1 && Argument<T>::fit(object) >= 0) all.resize(n, all[0]);
    if (all.size() != n)
      refuse_value(place, "expected " + std::to_string(n) + " numbers, got " + std::to_string(all.size()));
    std::array<T, n> made;
    for (std::size_t i = 0; i < n; ++i) made[i] = all[i];
    return made;
  }
};
template <class T> struct Argument<std::vector<std::array<T, 2>>> : SequenceArgument<std::array<T, 2>> {
  static constexpr const char* name = "a sequence of pairs (before, after)";
};
template <class T> struct Argument<std::optional<T>> {
  static constexpr const char* name = Argument<T>::name;
  static int fit(PyObject* object) noexcept { return object == Py_None ? 0 : Argument<T>::fit(object); }
  static std::optional<T> get(PyObject* object, const Place& place) {
    if (object == Py_None) return {};
    return Argument<T>::get(object, place);
  }
};

// ---- tensors

template <> struct Argument<Tensor> {
  static constexpr const char* name = "a tensor";
  static int fit(PyObject* object) noexcept;
  static Tensor get(PyObject* object, const Place& place);
};
template <> struct Argument<Scalar> {
  static constexpr const char* name = "a number";
  static int fit(PyObject* object) noexcept { return is_number(object) ? 0 : -1; }
  static Scalar get(PyObject* object, const Place&) { return scalar_of(object); }
};
/// A NumberOrTensor that owns its tensor.
class Operand {
 public:
  explicit Operand(Tensor tensor) : tensor_(std::move(tensor)) {}
  explicit Operand(Scalar number) : number_(number) {}
  operator NumberOrTensor() const {
    return number_ ? NumberOrTensor(*number_) : NumberOrTensor(tensor_);  // made in place: it has no copies
  }

 private:
  Tensor tensor_;
  std::optional<Scalar> number_;
};
template <> struct Argument<Operand> {
  static constexpr const char* name = "a tensor or a number";
  static int fit(PyObject* object) noexcept { return is_number(object) ? 0 : Argument<Tensor>::fit(object); }
  static Operand get(PyObject* object, const Place& place) {
    return is_number(object) ? Operand(scalar_of(object)) : Operand(Argument<Tensor>::get(object, place));
  }
};
template <> struct Argument<Tensors> {
  static constexpr const char* name = "a list or tuple of tensors";
  static int fit(PyObject* object) noexcept;
  static Tensors get(PyObject* object, const Place& place) { return SequenceArgument<Tensor>::get(object, place); }
};
template <> struct Argument<Shape> {
  static constexpr const char* name = "a shape";
  static int fit(PyObject* object) noexcept;
  static Shape get(PyObject* object, const Place& place);
};
template <> struct Argument<DType> {
  static constexpr const char* name = "a dtype";
  static int fit(PyObject* object) noexcept { return dtype_of_object(object) ? 0 : -1; }
  static DType get(PyObject* object, const Place&) { return *dtype_of_object(object); }
};
/// The spec of an input: a shape, with float32, or a pair of shape and dtype.
template <> struct Argument<Spec> {
  static constexpr const char* name = "a shape, or an object with shape and dtype";
  static int fit(PyObject* object) noexcept;
  static Spec get(PyObject* object, const Place& place);
};

// ---- sizes of windows

template <class Size, std::size_t n> struct SizeArgument {
  static constexpr const char* name = "an int or a sequence of ints";
  static int fit(PyObject* object) noexcept { return Argument<std::vector<std::int64_t>>::fit(object); }
  static std::vector<std::int64_t> numbers(PyObject* object, const Place& place) {
    std::vector<std::int64_t> all = Argument<std::vector<std::int64_t>>::get(object, place);
    if (all.size() != 1 && all.size() != n)
      refuse_value(place, "expected one int or " + std::to_string(n) + ", got " + std::to_string(all.size()));
    all.resize(n, all[0]);
    return all;
  }
};
template <> struct Argument<Single> : SizeArgument<Single, 1> {
  static Single get(PyObject* object, const Place& place) { return numbers(object, place)[0]; }
};
template <> struct Argument<Pair> : SizeArgument<Pair, 2> {
  static Pair get(PyObject* object, const Place& place) {
    const std::vector<std::int64_t> all = numbers(object, place);
    return {all[0], all[1]};
  }
};
template <> struct Argument<Triple> : SizeArgument<Triple, 3> {
  static Triple get(PyObject* object, const Place& place) {
    const std::vector<std::int64_t> all = numbers(object, place);
    return {all[0], all[1], all[2]};
  }
};
template <class Size> struct Argument<OptionalSize<Size>> : Argument<Size> {
  static OptionalSize<Size> get(PyObject* object, const Place& place) { return Argument<Size>::get(object, place); }
};
template <> struct Argument<Factor> {
  static constexpr const char* name = "a number or a pair of numbers";
  static int fit(PyObject* object) noexcept { return Argument<std::vector<double>>::fit(object); }
  static Factor get(PyObject* object, const Place& place);
};

// ---- functions and parts of models

/// The activation, initializer or regularizer of this name; generated. Empty: there is none.
std::optional<Activation> activation_named(const std::string& name);
std::optional<Initializer> initializer_named(const std::string& name);
std::optional<Regularizer> regularizer_named(const std::string& name);
std::vector<std::string> activation_names();
std::vector<std::string> initializer_names();
std::vector<std::string> regularizer_names();

template <> struct Argument<Activation> {
  static constexpr const char* name = "a function of a tensor, or the name of one";
  static int fit(PyObject* object) noexcept;
  static Activation get(PyObject* object, const Place& place);
};
template <> struct Argument<Initializer> {
  static constexpr const char* name = "an initializer, its name, or a function of a shape";
  static int fit(PyObject* object) noexcept;
  static Initializer get(PyObject* object, const Place& place);
};
template <> struct Argument<Regularizer> {
  static constexpr const char* name = "a regularizer, its name, or a function of a tensor";
  static int fit(PyObject* object) noexcept;
  static Regularizer get(PyObject* object, const Place& place);
};
template <> struct Argument<Schedule> {
  static constexpr const char* name = "a number, a schedule, or a function of the step";
  static int fit(PyObject* object) noexcept;
  static Schedule get(PyObject* object, const Place& place);
};
template <> struct Argument<PolicyOption> {
  static constexpr const char* name = "the name of a policy";
  static int fit(PyObject* object) noexcept { return Argument<std::string>::fit(object); }
  static PolicyOption get(PyObject* object, const Place& place) { return Argument<std::string>::get(object, place); }
};

template <> struct Argument<Policy> {
  static constexpr const char* name = Argument<PolicyOption>::name;
  static int fit(PyObject* object) noexcept { return Argument<std::string>::fit(object); }
  static Policy get(PyObject* object, const Place& place) {
    return policy_named(Argument<std::string>::get(object, place));
  }
};

/// Functions of Python, called from any thread. Types of their own: to a constructor they are any callable.
struct Function1 : std::function<Tensor(const Tensor&)> {
  explicit Function1(function f) : function(std::move(f)) {}
  Function1() = default;
};
struct Function2 : std::function<Tensor(const Tensor&, const Tensor&)> {
  explicit Function2(function f) : function(std::move(f)) {}
  Function2() = default;
};
template <> struct Argument<Function1> {
  static constexpr const char* name = "a function of a tensor";
  static int fit(PyObject* object) noexcept { return PyCallable_Check(object) ? 0 : -1; }
  static Function1 get(PyObject* object, const Place& place);
};
template <> struct Argument<Function2> {
  static constexpr const char* name = "a function of two tensors";
  static int fit(PyObject* object) noexcept { return PyCallable_Check(object) ? 0 : -1; }
  static Function2 get(PyObject* object, const Place& place);
};

/// A class that is bound, and is passed by a reference to the object in Python.
template <class T> struct BoundArgument {
  static int fit(PyObject* object) noexcept { return nb::isinstance<T>(nb::handle(object)) ? 0 : -1; }
  static T& get(PyObject* object, const Place&) { return nb::cast<T&>(nb::handle(object)); }
};
template <class T> struct Bound {
  operator T&() const { return *object; }
  T* object;
};
template <class T> struct Argument<Bound<T>> {
  static constexpr const char* name = "an object of the library's class";
  static int fit(PyObject* object) noexcept { return BoundArgument<T>::fit(object); }
  static Bound<T> get(PyObject* object, const Place& place) { return {&BoundArgument<T>::get(object, place)}; }
};
/// A handle on the layer: a layer in two models is one layer, as in Keras.
template <> struct Argument<Module> {
  static constexpr const char* name = "a layer or model";
  static int fit(PyObject* object) noexcept { return BoundArgument<Module>::fit(object); }
  static Module get(PyObject* object, const Place& place) { return shared(BoundArgument<Module>::get(object, place)); }
};
/// A copy of a layer, for what makes layers like it.
struct Copied {
  operator Module() && { return std::move(layer); }
  Module layer;
};
template <> struct Argument<Copied> {
  static constexpr const char* name = "a layer";
  static int fit(PyObject* object) noexcept { return BoundArgument<Module>::fit(object); }
  static Copied get(PyObject* object, const Place& place) { return {BoundArgument<Module>::get(object, place)}; }
};
template <> struct Argument<std::vector<Module>> : SequenceArgument<Module> {
  static constexpr const char* name = "a list of layers";
};
template <> struct Argument<RecurrentCell> {
  static constexpr const char* name = "a cell of a recurrent layer";
  static int fit(PyObject* object) noexcept { return BoundArgument<RecurrentCell>::fit(object); }
  static RecurrentCell get(PyObject* object, const Place& place) {
    return shared(BoundArgument<RecurrentCell>::get(object, place));
  }
};
template <> struct Argument<std::vector<RecurrentCell>> : SequenceArgument<RecurrentCell> {
  static constexpr const char* name = "a list of cells";
};
template <> struct Argument<Variables> {
  static constexpr const char* name = "a list of Variables";
  static int fit(PyObject* object) noexcept;
  static Variables get(PyObject* object, const Place& place);
};

// ---- results

/// A result as an object of Python. Structs are named tuples, which generated code adds.
template <class T> struct Result {
  static nb::object give(T value) { return nb::cast(std::move(value)); }
};
/// The object of the Variable, not of a copy.
template <> struct Result<Variable> {
  static nb::object give(const Variable& variable) { return nb::cast(shared_variable(variable)); }
};
/// A handle on the layer.
template <> struct Result<Module> {
  static nb::object give(const Module& module) { return nb::cast(shared(module)); }
};
template <> struct Result<Variables> {
  static nb::object give(const Variables& variables);
};
template <class T> nb::object given_object(T&& value) {
  return Result<std::remove_cvref_t<T>>::give(std::forward<T>(value));
}
template <class T> struct Result<std::vector<T>> {
  static nb::object give(std::vector<T> values) {
    nb::list all;
    for (T& each : values) all.append(given_object(std::move(each)));
    return all;
  }
};
/// The same as a new reference.
template <class T> PyObject* given(T&& value) { return given_object(std::forward<T>(value)).release().ptr(); }

/// Makes the object of a constructor hold `value`.
template <class T> PyObject* emplace(PyObject* self, T value) {
  if (nb::inst_ready(self)) nb::inst_destruct(self);  // __init__ was called again
  new (nb::inst_ptr<T>(self)) T(std::move(value));
  nb::inst_mark_ready(self);
  return nb::none().release().ptr();
}

/// The mode that a call says by `training`; without it that of the call around it.
class CalledMode {
 public:
  CalledMode(const Values& values, std::size_t i) {
    if (values.has(i)) mode_.emplace(values.get<bool>(i) ? CallMode::training : CallMode::inference);
  }

 private:
  std::optional<ModeScope> mode_;
};

/// The modules of generated names, gradus.ops and so on.
struct Modules {
  /// Makes them, as attributes of gradus._native, too.
  explicit Modules(nb::module_& module);
  nb::module_ ops, random, nn, nn_initializers, nn_regularizers, nn_constraints, nn_merging;
};

/// Adds the classes of functions as values: initializers, regularizers, callbacks.
void bind_function_values(nb::module_& nn);
/// Adds `_renamed`, which tables of other libraries' names are made of.
void bind_renaming(nb::module_& module);
/// Adds methods by name to these classes that no header offers as they are needed in Python: calls, iteration, repr.
void extend_bases(nb::module_& nn);

}  // namespace gradus::python
