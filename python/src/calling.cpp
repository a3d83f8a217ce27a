/// Calls of generated functions: arguments find their slots, forms are compared, and a failure names its cause.
#include "python/src/calling.h"
#include <algorithm>
#include <array>
#include <deque>
#include <exception>
#include <string_view>
#include <vector>
#include "gradus/base/nearest.h"
#include "python/src/casters.h"
#include "python/src/held_functions.h"

namespace gradus::python {
namespace {

/// How far the arguments of a call got with a form; the farther, the better a message about it.
enum class Reached { unknown_name, too_many, given_twice, missing, unfit, fits };

/// The result of laying the arguments of a call into the slots of a form.
struct Layout {
  Reached reached = Reached::fits;
  std::size_t slot = 0;  // of a missing, unfit or doubled argument
  int conversions = 0;
  std::string name = {};  // an unknown one
  std::array<PyObject*, most_slots> given;
};

/// The text of a name, which Python keeps.
std::string_view name_in(PyObject* text) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text, &size);
  if (data) return {data, static_cast<std::size_t>(size)};
  PyErr_Clear();
  return "?";
}

/// The arguments of one call, as vectorcall has them.
struct Arguments {
  PyObject* const* all;
  std::size_t positional;
  PyObject* names;  // a tuple, or null
  std::size_t named() const { return names ? static_cast<std::size_t>(PyTuple_Size(names)) : 0; }
};

std::size_t slot_named(const Form& form, std::string_view name) {
  std::size_t i = 0;
  while (i < form.slots.size() && name != form.slots[i].name) ++i;
  return i;
}

/// Lays the named arguments into their slots.
void lay_named(const Form& form, const Arguments& arguments, Layout& layout) {
  for (std::size_t k = 0; k < arguments.named(); ++k) {
    const std::string_view name = name_in(PyTuple_GetItem(arguments.names, static_cast<Py_ssize_t>(k)));
    const std::size_t i = slot_named(form, name);
    if (i == form.slots.size()) {
      layout.reached = Reached::unknown_name;
      layout.name = name;
      return;
    }
    if (layout.given[i]) {
      layout.reached = Reached::given_twice;
      layout.slot = i;
      return;
    }
    layout.given[i] = arguments.all[arguments.positional + k];
  }
}

/// Compares the laid arguments with what the slots take.
void compare(const Form& form, Layout& layout) {
  for (std::size_t i = 0; i < form.slots.size(); ++i) {
    const Slot& slot = form.slots[i];
    PyObject* given = layout.given[i];
    if (!given && slot.is_required) {
      layout.reached = Reached::missing;
      layout.slot = i;
      return;
    }
    if (!given || (given == Py_None && !slot.is_required)) continue;
    const int fit = slot.kind->fit(given);
    if (fit < 0) {
      layout.reached = Reached::unfit;
      layout.slot = i;
      return;
    }
    layout.conversions += fit;
  }
}

void lay(const Form& form, const Arguments& arguments, Layout& layout) {
  std::fill_n(layout.given.begin(), form.slots.size(), nullptr);
  if (arguments.positional > form.positional) {
    layout.reached = Reached::too_many;
    return;
  }
  std::copy_n(arguments.all, arguments.positional, layout.given.begin());
  if (arguments.named()) lay_named(form, arguments, layout);
  if (layout.reached == Reached::fits) compare(form, layout);
}

std::vector<std::string> all_names(const Callable& callable) {
  std::vector<std::string> all;
  for (const Form& form : callable.forms)
    for (const Slot& slot : form.slots)
      if (std::find(all.begin(), all.end(), slot.name) == all.end()) all.push_back(slot.name);
  return all;
}

std::string forms_of(const Callable& callable) {
  if (callable.forms.size() == 1) return {};
  std::string all = "\nIts forms:";
  for (const Form& form : callable.forms) all += std::string("\n  ") + form.signature;
  return all;
}

std::string of_unknown_name(const Callable& callable, const std::string& name) {
  const std::vector<std::string> all = all_names(callable);
  const std::string of = std::string(callable.name);
  if (std::find(all.begin(), all.end(), name) != all.end())
    return of + ": the argument `" + name + "` does not go with the others." + forms_of(callable);
  return of + " has no argument `" + name + "`" + did_you_mean(name, all) + forms_of(callable);
}

/// The text of a TypeError about the form that got farthest.
std::string message_of(const Callable& callable, const Form& form, const Layout& layout, const Arguments& arguments) {
  const std::string of = std::string(callable.name);
  const std::string name = form.slots.empty() ? "" : form.slots[layout.slot].name;
  switch (layout.reached) {
    case Reached::unknown_name: return of_unknown_name(callable, layout.name);
    case Reached::too_many:
      return of + " takes " + std::to_string(form.positional) + " arguments by place, " +
             std::to_string(arguments.positional) + " were given: " + form.signature + forms_of(callable);
    case Reached::given_twice: return of + ": argument `" + name + "` was given twice";
    case Reached::missing:
      return of + ": argument `" + name + "` (" + form.slots[layout.slot].kind->name +
             ") is missing: " + form.signature + forms_of(callable);
    case Reached::unfit:
    case Reached::fits: break;
  }
  return of + ": argument `" + name + "`: expected " + form.slots[layout.slot].kind->name + ", got " +
         class_of(layout.given[layout.slot]) + forms_of(callable);
}

/// Farther, or as far with fewer conversions.
bool is_better(const Layout& one, const Layout& than) {
  if (one.reached != than.reached) return one.reached > than.reached;
  if (one.reached == Reached::unfit) return one.slot > than.slot;
  return one.reached == Reached::fits && one.conversions < than.conversions;
}

PyObject* run(const Callable& callable, const Form& form, const Layout& layout, PyObject* self,
              const Arguments& arguments) {
  if (layout.reached == Reached::fits) return form.call(Values(callable.name, form.slots, layout.given.data(), self));
  throw nb::type_error(message_of(callable, form, layout, arguments).c_str());
}

PyObject* call_best(const Callable& callable, PyObject* self, const Arguments& arguments) {
  Layout best;
  const Form* form = &callable.forms[0];
  lay(*form, arguments, best);
  for (std::size_t k = 1; k < callable.forms.size(); ++k) {
    if (best.reached == Reached::fits && best.conversions == 0) break;
    Layout other;
    lay(callable.forms[k], arguments, other);
    if (!is_better(other, best)) continue;
    best = other;
    form = &callable.forms[k];
  }
  return run(callable, *form, best, self, arguments);
}

/// Raises the exception that is being handled as nanobind's functions do, with the translators of all parts.
void set_python_error() noexcept {
  static nb::handle raise = nb::cpp_function([](std::uintptr_t thrown) {
                              std::rethrow_exception(*reinterpret_cast<const std::exception_ptr*>(thrown));
                            }).release();
  const std::exception_ptr thrown = std::current_exception();
  PyObject* result = PyObject_CallFunction(raise.ptr(), "n", reinterpret_cast<Py_ssize_t>(&thrown));
  Py_XDECREF(result);  // there is none
}

/// Method definitions stay as long as the process: types and modules refer to them.
PyMethodDef& kept(const FunctionRow& row) {
  static std::deque<PyMethodDef> all;
  return all.emplace_back(PyMethodDef{row.name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(row.entry)),
                                      METH_FASTCALL | METH_KEYWORDS, row.docs});
}

}  // namespace

void refuse_type(const Place& place, const std::string& text) {
  throw nb::type_error((std::string(place.function) + ": argument `" + place.argument + "`: " + text).c_str());
}

void refuse_value(const Place& place, const std::string& text) {
  throw nb::value_error((std::string(place.function) + ": argument `" + place.argument + "`: " + text).c_str());
}

PyObject* call(const Callable& callable, PyObject* self, PyObject* const* arguments, std::size_t count,
               PyObject* names) noexcept {
  try {
    return call_best(callable, self, {arguments, count, names});
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

namespace {

/// Pickles make an object again by the arguments that it was made with.
void note_arguments(PyObject* self, PyObject* arguments, PyObject* named) {
  const nb::object options = named ? nb::steal(PyDict_Copy(named)) : nb::object(nb::dict());
  nb::setattr(self, "_made_with", nb::make_tuple(nb::borrow(arguments), options));
}

}  // namespace

int construct(const Callable& callable, PyObject* self, PyObject* arguments, PyObject* named) noexcept {
  try {
    std::vector<PyObject*> all;
    const Py_ssize_t count = PyTuple_Size(arguments);
    for (Py_ssize_t i = 0; i < count; ++i) all.push_back(PyTuple_GetItem(arguments, i));
    nb::object names;
    if (named && PyDict_Size(named)) {
      names = nb::steal(PyTuple_New(PyDict_Size(named)));
      PyObject *key = nullptr, *value = nullptr;
      for (Py_ssize_t at = 0, i = 0; PyDict_Next(named, &at, &key, &value); ++i) {
        Py_INCREF(key);
        PyTuple_SetItem(names.ptr(), i, key);
        all.push_back(value);
      }
    }
    const HeldObjects held;
    nb::steal(call_best(callable, self, {all.data(), static_cast<std::size_t>(count), names.ptr()}));
    note_arguments(self, arguments, named);
    show_functions(self, held);
    return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

void add_functions(nb::module_& module, std::span<const FunctionRow> rows) {
  const nb::object name = module.attr("__name__");
  for (const FunctionRow& row : rows)
    module.attr(row.name) = nb::steal(PyCFunction_NewEx(&kept(row), nullptr, name.ptr()));
}

void add_methods(nb::handle type, std::span<const FunctionRow> rows) {
  for (const FunctionRow& row : rows)
    nb::setattr(type, row.name, nb::steal(PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(type.ptr()), &kept(row))));
}

void add_attributes(nb::handle type, std::span<const FunctionRow> rows) {
  const nb::object property = nb::module_::import_("builtins").attr("property");
  for (const FunctionRow& row : rows) {
    const nb::object get = nb::steal(PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(type.ptr()), &kept(row)));
    nb::setattr(type, row.name, property(get, nb::none(), nb::none(), row.docs));
  }
}

nb::object named_tuple(nb::module_& module, const char* name, const char* fields, const char* docs) {
  nb::object type = nb::module_::import_("collections").attr("namedtuple")(name, fields);
  type.attr("__module__") = module.attr("__name__");
  type.attr("__doc__") = docs;
  module.attr(name) = type;
  return type;
}

std::string generated_name(PyObject* function) {
  if (!PyCFunction_Check(function)) return {};
  const nb::handle object(function);
  const nb::object module = nb::getattr(object, "__module__", nb::none());
  if (!nb::isinstance<nb::str>(module) || !text_of(module).starts_with("gradus.")) return {};
  return text_of(nb::object(object.attr("__name__")));
}

}  // namespace gradus::python
