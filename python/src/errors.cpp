// The library's errors in Python: classes by the names of tf.errors, which are also Python's own for the same mistake,
// so that `except ValueError`, `IndexError` and `OSError` catch them. The text is the whole one of C++, in Python's
// words.
#include <array>
#include <typeinfo>
#include <utility>
#include "gradus/onnx/unsupported.h"
#include "python/src/binding.h"

namespace gradus::python {
namespace {

/// An error of the library that passed through Python.
template <class E> class Passed final : public E, public PassedThroughPython {
 public:
  Passed(const std::string& message, Held exception) : E(message), PassedThroughPython(std::move(exception)) {}
};

/// A class of errors in both languages.
struct ErrorClass {
  const char* name;
  const char* doc;
  PyObject** also;                                        // Python's class for the same mistake
  bool (*is_of)(const std::exception& error);             // in C++
  void (*pass)(const std::string& message, Held raised);  // throws it in C++
  PyObject* type = nullptr;                               // in Python; kept for ever
};

template <class E> ErrorClass error_class(const char* name, PyObject** also, const char* doc) {
  return {name, doc, also, [](const std::exception& error) { return dynamic_cast<const E*>(&error) != nullptr; },
          [](const std::string& message, Held raised) { throw Passed<E>(message, std::move(raised)); }};
}

/// The base first.
std::array<ErrorClass, 10>& error_classes() {
  static std::array<ErrorClass, 10> all{
      error_class<Error>("OpError", &PyExc_RuntimeError, "A mistake that the program can mend."),
      error_class<InvalidArgument>("InvalidArgumentError", &PyExc_ValueError,
                                   "An argument that does not fit: shape, dtype, option."),
      error_class<detail::UnknownValue>("UnknownValueError", &PyExc_ValueError,
                                        "A value was asked for while its function is traced, when it is not known."),
      error_class<OutOfRange>("OutOfRangeError", &PyExc_IndexError, "An index, axis or number outside its range."),
      error_class<DataError>("DataLossError", &PyExc_ValueError, "A file or data set whose contents are wrong."),
      error_class<ResourceExhausted>("ResourceExhaustedError", &PyExc_MemoryError,
                                     "Memory, disk or another bounded resource is used up."),
      error_class<Unavailable>("UnavailableError", &PyExc_OSError,
                               "A file, directory or device that does not exist or may not be used."),
      error_class<onnx::Unsupported>("UnimplementedError", &PyExc_NotImplementedError,
                                     "Something that Gradus does not have, such as an op of an ONNX file."),
      error_class<Diverged>("DivergedError", &PyExc_ArithmeticError, "Training left the finite numbers."),
      error_class<InternalError>("InternalError", &PyExc_RuntimeError, "A fault of the library itself.")};
  return all;
}

PyObject* class_of_error(const std::exception& error) {
  std::array<ErrorClass, 10>& all = error_classes();
  for (std::size_t i = all.size(); i-- > 1;)
    if (all[i].is_of(error)) return all[i].type;
  return all[0].type;
}

void set_raised(const std::exception& error) {
  PyErr_SetString(class_of_error(error), in_words_of_python(error.what()).c_str());
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const PassedThroughPython& passed) { passed.restore(); } catch (const Error& error) {
    set_raised(error);
  } catch (const InternalError& error) { set_raised(error); } catch (const std::bad_cast&) {
    PyErr_SetString(PyExc_TypeError, "an argument, or a part of one, is of another class than the function takes");
  }
}

void add_class(nb::module_& module, ErrorClass& kind, PyObject* base) {
  nb::object bases = base ? nb::object(nb::make_tuple(nb::handle(base), nb::handle(*kind.also)))
                          : nb::object(nb::make_tuple(nb::handle(*kind.also)));
  const std::string name = std::string("gradus.errors.") + kind.name;
  kind.type = PyErr_NewExceptionWithDoc(name.c_str(), kind.doc, bases.ptr(), nullptr);
  if (!kind.type) throw nb::python_error();
  module.attr(kind.name) = nb::handle(kind.type);
}

}  // namespace

void throw_raised(nb::python_error& raised) {
  std::array<ErrorClass, 10>& all = error_classes();
  for (std::size_t i = all.size(); i-- > 0;)
    if (raised.matches(all[i].type)) {
      Held exception{nb::borrow(raised.value())};
      all[i].pass(text_of(exception.get()), exception);
    }
  throw nb::python_error(std::move(raised));
}

void bind_errors(nb::module_& module) {
  std::array<ErrorClass, 10>& all = error_classes();
  for (ErrorClass& kind : all) {
    const bool is_base = &kind == &all.front() || &kind == &all.back();  // a fault of the library is no OpError
    const bool is_of_argument = &kind == &all[2];
    add_class(module, kind, is_base ? nullptr : is_of_argument ? all[1].type : all.front().type);
  }
  nb::register_exception_translator(translate);
}

}  // namespace gradus::python
