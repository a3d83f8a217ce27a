/// Calls of generated functions from Python: arguments by place and by name, several forms of one name, and errors that
/// name the argument. A form is a C++ overload. Among the forms that fit, the one with the fewest conversions is
/// called.
#pragma once
#include <nanobind/nanobind.h>
#include <cstddef>
#include <span>
#include <string>

namespace gradus::python {
namespace nb = nanobind;

/// The function and the argument that an error names.
struct Place {
  const char* function;
  const char* argument;
};

/// Throws Python's TypeError: "conv2d: argument `strides`: <text>".
[[noreturn]] void refuse_type(const Place& place, const std::string& text);
/// Throws Python's ValueError in the same form.
[[noreturn]] void refuse_value(const Place& place, const std::string& text);

/// The C++ type T as an argument. A specialization has
///   static constexpr const char* name    its name in messages, such as "a sequence of ints"
///   static int fit(PyObject*) noexcept   0: fits as it is; more: after a conversion; -1: does not fit
///   static T get(PyObject*, const Place&)
template <class T> struct Argument;

/// A type of arguments, without the type.
struct Kind {
  const char* name;
  int (*fit)(PyObject*) noexcept;
};
template <class T> inline constexpr Kind kind_of{Argument<T>::name, &Argument<T>::fit};

/// One argument of a form.
struct Slot {
  const char* name;
  const Kind* kind;
  bool is_required = true;
};

/// The arguments of one call: an object for each slot, null or None where it was left out.
class Values {
 public:
  Values(const char* function, std::span<const Slot> slots, PyObject* const* given, PyObject* self)
      : function_(function), slots_(slots), given_(given), self_(self) {}
  bool has(std::size_t i) const { return given_[i] && given_[i] != Py_None; }
  template <class T> T get(std::size_t i) const { return Argument<T>::get(given_[i], {function_, slots_[i].name}); }
  /// Assigns the argument to a field, which keeps its value where the argument was left out.
  template <class T, class Field> void set(std::size_t i, Field& field) const {
    if (has(i)) field = get<T>(i);
  }
  /// The object whose method or constructor is called; null for a function.
  PyObject* self() const { return self_; }

 private:
  const char* function_;
  std::span<const Slot> slots_;
  PyObject* const* given_;
  PyObject* self_;
};

/// One overload. Slots before `positional` may be given by place, all by name.
struct Form {
  std::span<const Slot> slots;
  std::size_t positional;
  /// The result as a new reference. It may throw.
  PyObject* (*call)(const Values& values);
  const char* signature;  // "conv2d(x, filters, *, strides=None)"
};

/// The most arguments of a form.
inline constexpr std::size_t most_slots = 48;

/// All forms of one name.
struct Callable {
  const char* name;
  std::span<const Form> forms;
};

/// Calls the form that fits. Null with Python's error set if none does or if it throws.
PyObject* call(const Callable& callable, PyObject* self, PyObject* const* arguments, std::size_t count,
               PyObject* names) noexcept;
/// Calls a constructor, with arguments as Python's tp_init has them: -1 with the error set, or 0.
int construct(const Callable& callable, PyObject* self, PyObject* arguments, PyObject* named) noexcept;

/// The entry of a function of a module.
template <const Callable& callable>
PyObject* function_entry(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return call(callable, nullptr, arguments, static_cast<std::size_t>(count), names);
}
/// The entry of a method.
template <const Callable& callable>
PyObject* method_entry(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return call(callable, self, arguments, static_cast<std::size_t>(count), names);
}
/// The entry of a constructor.
template <const Callable& callable> int constructor_entry(PyObject* self, PyObject* arguments, PyObject* named) {
  return construct(callable, self, arguments, named);
}

/// A row of a table of functions.
struct FunctionRow {
  const char* name;
  PyObject* (*entry)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
  const char* docs;  // with Python's text signature
};
/// Adds functions to a module. The rows stay.
void add_functions(nb::module_& module, std::span<const FunctionRow> rows);
/// Adds methods to a type. The rows stay.
void add_methods(nb::handle type, std::span<const FunctionRow> rows);

/// Adds attributes that are computed by methods without arguments. The rows stay.
void add_attributes(nb::handle type, std::span<const FunctionRow> rows);

/// Makes a type of named tuples in a module.
nb::object named_tuple(nb::module_& module, const char* name, const char* fields, const char* docs);

/// The name of a function that add_functions() made; empty for any other object.
std::string generated_name(PyObject* function);

}  // namespace gradus::python
