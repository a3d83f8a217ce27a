// Functions under other names: with the names and the order of parameters that another library has. They cost a call
// no more than the function itself, since no Python runs in between.
#include <algorithm>
#include <memory>
#include "python/src/generated.h"

namespace gradus::python {
namespace {

/// A parameter, and that of the function which it stands for; empty: it is taken and ignored.
using Parameter = std::pair<std::string, std::string>;

class Renamed {
 public:
  Renamed(std::string name, nb::object function, std::vector<Parameter> parameters, std::size_t by_place,
          std::string docs)
      : name_(std::move(name)),
        function_(std::move(function)),
        parameters_(std::move(parameters)),
        by_place_(by_place),
        docs_(std::move(docs)),
        definition_{name_.c_str(), reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&entry)),
                    METH_FASTCALL | METH_KEYWORDS, docs_.c_str()} {
    for (const auto& [mine, its] : parameters_) names_.push_back(nb::str(its.c_str()));
    reduces_ = name_.starts_with("reduce_") && parameters_.size() > 2 && parameters_[axis].first == "axis";
  }

  static nb::object make(std::unique_ptr<Renamed> renamed, const nb::object& module) {
    Renamed* kept = renamed.release();  // as long as the process, as every definition of a function
    const nb::object self = nb::steal(PyCapsule_New(kept, nullptr, nullptr));
    return nb::steal(PyCFunction_NewEx(&kept->definition_, self.ptr(), module.ptr()));
  }

  /// Gives a function that make() made another one, which is called with the same arguments after an error.
  static void set_otherwise(const nb::object& function, nb::object otherwise) {
    PyObject* self = PyCFunction_Check(function.ptr()) ? PyCFunction_GetSelf(function.ptr()) : nullptr;
    if (!self || !PyCapsule_CheckExact(self)) throw nb::type_error("_otherwise: the function is not of _renamed");
    static_cast<Renamed*>(PyCapsule_GetPointer(self, nullptr))->otherwise_ = std::move(otherwise);
  }

 private:
  /// The place of a reduction's axes.
  static constexpr std::size_t axis = 1;
  static bool is_empty(PyObject* axes) {
    return (PyList_Check(axes) && PyList_Size(axes) == 0) || (PyTuple_Check(axes) && PyTuple_Size(axes) == 0);
  }

  static PyObject* entry(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
    const auto& renamed = *static_cast<const Renamed*>(PyCapsule_GetPointer(self, nullptr));
    const auto given = static_cast<std::size_t>(count);
    PyObject* made = nullptr;
    if (!names && given <= renamed.by_place_ && !(renamed.reduces_ && given > axis && is_empty(arguments[axis])))
      made = PyObject_Vectorcall(renamed.function_.ptr(), arguments, given, nullptr);
    else made = renamed.call(arguments, given, names);
    return made || !renamed.otherwise_.is_valid() ? made : renamed.after_error(arguments, given, names);
  }

  /// The result of the other function, or the error of this one where that result is NotImplemented.
  PyObject* after_error(PyObject* const* arguments, std::size_t count, PyObject* names) const {
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    PyObject* made = PyObject_Vectorcall(otherwise_.ptr(), arguments, count, names);
    if (made != Py_NotImplemented) {
      Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
      return made;
    }
    Py_DECREF(made);
    PyErr_Restore(type, value, trace);
    return nullptr;
  }

  PyObject* call(PyObject* const* arguments, std::size_t count, PyObject* names) const {
    if (count > parameters_.size()) {
      PyErr_Format(PyExc_TypeError, "%s takes %zu arguments, %zu were given", name_.c_str(), parameters_.size(), count);
      return nullptr;
    }
    std::vector<PyObject*> given(parameters_.size(), nullptr);
    std::copy_n(arguments, count, given.begin());
    const Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    for (Py_ssize_t k = 0; k < named; ++k)
      if (!take(given, PyTuple_GetItem(names, k), arguments[count + static_cast<std::size_t>(k)])) return nullptr;
    try {
      return pass(std::move(given));
    } catch (nb::python_error& error) {
      error.restore();
      return nullptr;
    }
  }

  bool take(std::vector<PyObject*>& given, PyObject* name, PyObject* value) const {
    std::size_t i = 0;
    while (i < parameters_.size() && PyUnicode_CompareWithASCIIString(name, parameters_[i].first.c_str()) != 0) ++i;
    if (i == parameters_.size()) {
      std::vector<std::string> known;
      for (const auto& [mine, its] : parameters_) known.push_back(mine);
      const std::string text = text_of(name);
      const std::string near = did_you_mean(text, known);
      PyErr_Format(PyExc_TypeError, "%s has no argument `%s`%s", name_.c_str(), text.c_str(), near.c_str());
      return false;
    }
    if (given[i]) {
      PyErr_Format(PyExc_TypeError, "%s: argument `%s` was given twice", name_.c_str(), parameters_[i].first.c_str());
      return false;
    }
    given[i] = value;
    return true;
  }

  /// A reduction over no axes, axis=[], is one over an axis of 1: for the engine an empty list means all.
  PyObject* pass(std::vector<PyObject*> given) const {
    nb::object widened, last;
    if (reduces_ && given[0] && given[axis] && is_empty(given[axis])) {
      last = nb::int_(-1);
      widened = nb::module_::import_("gradus.ops").attr("expand_dims")(nb::handle(given[0]), last);
      given[0] = widened.ptr(), given[axis] = last.ptr(), given[axis + 1] = nullptr;
    }
    std::vector<PyObject*> values;
    std::size_t by_place = 0;
    while (by_place < by_place_ && given[by_place]) values.push_back(given[by_place++]);
    std::vector<PyObject*> names;
    for (std::size_t i = by_place; i < given.size(); ++i) {
      if (!given[i] || given[i] == Py_None || parameters_[i].second.empty()) continue;
      values.push_back(given[i]);
      names.push_back(names_[i].ptr());
    }
    if (names.empty()) return PyObject_Vectorcall(function_.ptr(), values.data(), by_place, nullptr);
    const nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(names.size())));
    for (std::size_t i = 0; i < names.size(); ++i) {
      Py_INCREF(names[i]);
      PyTuple_SetItem(tuple.ptr(), static_cast<Py_ssize_t>(i), names[i]);
    }
    return PyObject_Vectorcall(function_.ptr(), values.data(), by_place, tuple.ptr());
  }

  std::string name_;
  nb::object function_;
  std::vector<Parameter> parameters_;
  std::size_t by_place_;  // the first ones, which are the function's own first ones
  std::string docs_;
  bool reduces_ = false;
  PyMethodDef definition_;
  std::vector<nb::str> names_;
  nb::object otherwise_;  // invalid: there is none
};

}  // namespace

void bind_renaming(nb::module_& module) {
  module.def(
      "_renamed",
      [](std::string name, nb::object function, std::vector<Parameter> parameters, std::size_t by_place,
         std::string docs, const nb::object& of) {
        return Renamed::make(std::make_unique<Renamed>(std::move(name), std::move(function), std::move(parameters),
                                                       by_place, std::move(docs)),
                             of);
      },
      "name"_a, "function"_a, "parameters"_a, "by_place"_a, "docs"_a, "module"_a,
      "A function with other names of its parameters: pairs of a name and the function's own, which is empty where the "
      "argument is ignored. The first `by_place` of both are the same.");
  module.def(
      "_otherwise", &Renamed::set_otherwise, "function"_a, "otherwise"_a,
      "Has `otherwise` called with the same arguments where such a function fails; where it gives NotImplemented "
      "the error stays.");
}

}  // namespace gradus::python
