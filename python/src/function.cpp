// gradus.function: a function of Python that is traced once for each kind of call, compiled, and run without Python.
//
// A call walks its arguments once: tensors and arrays are the arguments of the program, all else is spelt into its key.
// Numbers, texts and None count by value, Variables and other objects by identity. The nest that the function gives
// stays with the program, its tensors taken out.
#include <filesystem>
#include <nanobind/stl/filesystem.h>
#include <set>
#include "gradus/function/export_object.h"
#include "gradus/function/trace.h"
#include "gradus/graph/trace_names.h"
#include "python/src/asked.h"
#include "python/src/binding.h"
#include "python/src/calls.h"

namespace gradus::python {
namespace {

/// Programs for one function; the least recently used one goes.
constexpr int most_variants = 64;
/// Values of Python's numbers for which a function is traced before it is said that each has a program.
constexpr std::size_t most_numbers = 8;

// ---- the function

const char static_types = 0;

/// The class StepsWithin, as long as the interpreter.
PyObject* steps_within = nullptr;
/// The functions of this thread that run in Python, one within the other.
thread_local int functions_in_python = 0;

struct Counted {
  explicit Counted(int& n) : number(n) { ++number; }
  Counted(const Counted&) = delete;
  ~Counted() { --number; }
  int& number;
};

struct PythonFunction {
  nb::object function;
  FunctionOptions options;
  std::unique_ptr<TracedFunction> traced;
  std::set<std::string> numbers = {};  // with which it was traced
  bool has_warned = false;
  bool runs_in_python = false;  // it runs steps of a strategy, which are compiled one by one

  PythonFunction(nb::object f, FunctionOptions o)
      : function(std::move(f)), options(std::move(o)), traced(std::make_unique<TracedFunction>(options, nullptr, 0)) {}
  PythonFunction(PythonFunction&&) = default;
  ~PythonFunction() {
    if (traced) without_gil([this] { traced.reset(); });
  }
  nb::object operator()(const nb::args& args, const nb::kwargs& kwargs);
  nb::object run_compiled(const nb::args& args, const nb::kwargs& kwargs);
  void note_trace(const Call& call);
};

/// A number of Python is structure: each value has a program of its own.
void PythonFunction::note_trace(const Call& call) {
  if (call.numbers.empty() || has_warned) return;
  numbers.insert(call.numbers);
  if (numbers.size() <= most_numbers) return;
  has_warned = true;
  const std::string message = text("the function ", options.name, " has been traced for ", numbers.size(),
                                   " values of Python's numbers, each of which "
                                   "has a program: pass numbers that change as tensors, gradus.constant(x)");
  if (PyErr_WarnEx(PyExc_RuntimeWarning, message.c_str(), 1) != 0) throw nb::python_error();
}

nb::object result_of(const Called& called) {
  Tensors tensors = called.tensors;
  std::size_t count = 0;
  nb::object result = nest_of_results(called.structure, [&](std::size_t) { return nb::cast(tensors[count++]); });
  for (std::size_t i = 0, next = count; next < tensors.size(); ++i) SequenceMask::give(tensors[i], tensors[next++]);
  return result;
}

/// " (train.py, line 12)", where a function of Python begins; empty for any other object.
std::string place_of(nb::object function) {
  while (nb::hasattr(function, "__wrapped__")) function = function.attr("__wrapped__");
  if (!nb::hasattr(function, "__code__")) return {};
  const nb::object code = function.attr("__code__");
  const std::filesystem::path file = nb::cast<std::string>(code.attr("co_filename"));
  return text(" (", file.filename().string(), ", line ", nb::cast<int>(code.attr("co_firstlineno")), ")");
}

nb::object PythonFunction::run_compiled(const nb::args& args, const nb::kwargs& kwargs) {
  Call call = call_of(args, kwargs);
  StaticArguments statics{.values = call.key, .types = &static_types};
  const gradus::detail::MaskedArguments masked(call.tensors, statics);
  const bool is_traced_along = CallContext::here().trace != nullptr;
  const Body body = [&](In all) {
    return in_python([&] {
      const In in = masked.take(all);
      if (const auto* trace = CallContext::here().trace; trace && !is_traced_along)
        name_trace(trace->id(), text("function ", options.name, place_of(function)));
      note_trace(call);
      const nb::object result = call.apply(function, in);
      Called called = called_with(result);
      SequenceMask::append_all(called.tensors);
      return called;
    });
  };
  const Called called = without_gil([&] { return traced->call(call.tensors, statics, body); });
  return result_of(called);
}

/// A function that raises StepsWithin while it is traced runs in Python from then on, as do functions that call it.
nb::object PythonFunction::operator()(const nb::args& args, const nb::kwargs& kwargs) {
  const bool is_traced = CallContext::here().trace != nullptr;
  if (!runs_in_python) {
    try {
      return run_compiled(args, kwargs);
    } catch (const nb::python_error& error) {
      if (!error.matches(steps_within)) throw;
      runs_in_python = true;
      if (is_traced) throw;
    }
  }
  const Counted within(functions_in_python);
  return function(*args, **kwargs);
}

// ---- for programs without Python

/// The function on tensors alone, as it is exported.
Body on_tensors(const PythonFunction& self) {
  return [f = Held(self.function)](In in) {
    return in_python([&] {
      nb::list given;
      for (const Tensor& x : in) given.append(x);
      return called_with(f.get()(*given));
    });
  };
}

ObjectOptions object_options(const std::string& instruction_set, const std::string& target,
                             const std::optional<std::filesystem::path>& weights) {
  require(!weights || !weights->empty(),
          "export_object: weights: expected the path of a file, given nothing: name one, such as net.weights, or leave "
          "it out");
  return {.instruction_set = instruction_set, .target = target, .weights = weights.value_or("")};
}
nb::tuple paths_of(const ObjectFiles& files) {
  return nb::make_tuple(files.object, files.header, files.weights.empty() ? nb::none() : nb::cast(files.weights));
}
std::vector<Spec> signature_of(const PythonFunction& self, std::vector<Spec> given) {
  return given.empty() ? self.options.input_signature : std::move(given);
}

nb::tuple export_object(const PythonFunction& self, const std::filesystem::path& stem, std::vector<Spec> signature,
                        const std::string& instruction_set, const std::string& target,
                        const std::optional<std::filesystem::path>& weights) {
  signature = signature_of(self, std::move(signature));
  const Body body = on_tensors(self);
  return paths_of(without_gil([&] {
    return self.traced->export_object(stem, std::move(signature), object_options(instruction_set, target, weights), {},
                                      body);
  }));
}

using NamedStep = std::tuple<std::string, const PythonFunction*, std::vector<Spec>>;

nb::tuple export_objects(const std::filesystem::path& stem, const std::vector<NamedStep>& named,
                         const std::string& instruction_set, const std::string& target,
                         const std::optional<std::filesystem::path>& weights) {
  std::vector<StepToTrace> steps;
  for (const auto& [name, function, given] : named)
    steps.push_back({name, [body = on_tensors(*function), specs = signature_of(*function, given), f = function] {
                       return f->traced->trace_step(specs, {}, body);
                     }});
  return paths_of(
      without_gil([&] { return export_steps(stem, steps, object_options(instruction_set, target, weights)); }));
}

void load_object_state(const std::filesystem::path& file, const std::filesystem::path& header,
                       const nb::object& variables) {
  const Variables all = asked<Variables>(variables, {"load_object_state", "variables"});
  without_gil([&] { gradus::load_object_state(file, header, all); });
}

std::string stablehlo(const PythonFunction& self, std::vector<Spec> signature) {
  signature = signature_of(self, std::move(signature));
  const Body body = on_tensors(self);
  return without_gil([&] { return self.traced->stablehlo(std::move(signature), {}, body); });
}

void export_stablehlo(const PythonFunction& self, const std::filesystem::path& file, std::vector<Spec> signature) {
  const std::string made = stablehlo(self, std::move(signature));
  without_gil([&] { gradus::detail::write_stablehlo(file, made); });
}

nb::object make_function(nb::object f, std::optional<std::string> name, std::vector<Spec> signature, int max_variants,
                         bool open_sizes, bool run_eagerly, bool profile, std::size_t max_bytes,
                         std::vector<std::string> disable) {
  if (!PyCallable_Check(f.ptr())) throw nb::type_error(text("function: ", class_of(f), " cannot be called").c_str());
  FunctionOptions options{.name = name                         ? *name
                                  : nb::hasattr(f, "__name__") ? nb::cast<std::string>(f.attr("__name__"))
                                                               : class_of(f),
                          .input_signature = std::move(signature),
                          .max_bytes = max_bytes,
                          .max_variants = max_variants,
                          .evict_variants = true,
                          .open_sizes = open_sizes,
                          .disable = std::move(disable),
                          .profile = profile,
                          .run_eagerly = run_eagerly};
  return nb::cast(PythonFunction(std::move(f), std::move(options)));
}

/// Python's collector sees the function within, which may hold this object.
int visit_function(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  Py_VISIT(nb::inst_ptr<PythonFunction>(self)->function.ptr());
  return 0;
}
int clear_function(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<PythonFunction>(self)->function.reset();
  return 0;
}
const PyType_Slot function_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(visit_function)},
                                      {Py_tp_clear, reinterpret_cast<void*>(clear_function)},
                                      {0, nullptr}};

void bind_spec(nb::module_& module) {
  nb::class_<Spec>(module, "TensorSpec", "The dtype and shape of tensors; None is a size that varies.")
      .def(
          "__init__", [](Spec* self, const Shape& shape, DType dtype) { new (self) Spec{dtype, shape}; }, "shape"_a,
          "dtype"_a = f32)
      .def_prop_ro("shape", [](const Spec& self) { return self.shape; })
      .def_prop_ro("dtype", [](const Spec& self) { return self.dtype; })
      .def(
          "__eq__",
          [](const Spec& a, nb::handle b) { return nb::isinstance<Spec>(b) && a == nb::cast<const Spec&>(b); },
          nb::arg().none())
      .def("__hash__", [](const Spec& self) { return hash_of(self); })
      .def("__reduce__",
           [module](const Spec& self) {
             return nb::make_tuple(module.attr("TensorSpec"), nb::make_tuple(self.shape, self.dtype));
           })
      .def("__repr__", [](const Spec& self) {
        return text("TensorSpec(shape=", text_of(nb::cast(self.shape)), ", dtype=gradus.", numpy_name(self.dtype), ")");
      });
}

}  // namespace

void bind_function(nb::module_& module) {
  method_class();  // found while one thread is here
  bind_spec(module);
  nb::class_<PythonFunction>(module, "Function", nb::is_weak_referenceable(), nb::type_slots(function_slots))
      // It is called as the function within is, and has its text.
      .def_prop_ro("__wrapped__", [](const PythonFunction& self) { return self.function; })
      .def_prop_ro("__doc__", [](const PythonFunction& self) { return nb::object(self.function.attr("__doc__")); })
      .def_prop_ro("__module__",
                   [](const PythonFunction& self) { return nb::object(self.function.attr("__module__")); })
      .def("__getattr__", [](const PythonFunction& self, nb::handle name) { return nb::getattr(self.function, name); })
      .def("__call__", &PythonFunction::operator())
      .def(
          "__get__",
          [](nb::handle self, nb::handle instance, nb::handle) -> nb::object {
            if (instance.is_none()) return nb::borrow(self);
            return method_class()(self, instance);
          },
          nb::arg().none(), nb::arg().none() = nb::none())
      .def(
          "explain", [](const PythonFunction& self) { return printed(self.traced->explain()); },
          "A report: kernels, memory, variants, and the reasons of retraces.")
      .def("export_object", export_object, "stem"_a, "input_signature"_a = std::vector<Spec>(),
           "instruction_set"_a = "", "target"_a = "", "weights"_a = nb::none(),
           "Writes the step for tensors of these TensorSpecs, whose sizes are known, as an object file, stem.o, and a "
           "header in C, stem.h. Gives the paths of both, and that of the file of weights, if one is asked for. "
           "`target` names another kind of machine, such as aarch64-linux-gnu.")
      .def("stablehlo", stablehlo, "input_signature"_a = std::vector<Spec>(),
           "The step for tensors of these TensorSpecs, whose sizes are known, as text for compilers of XLA.")
      .def("export_stablehlo", export_stablehlo, "file"_a, "input_signature"_a = std::vector<Spec>(),
           "Writes stablehlo(input_signature) into a file.")
      .def_prop_ro("python_function", [](const PythonFunction& self) { return self.function; })
      .def("__repr__", [](const PythonFunction& self) { return text("<gradus.Function ", self.options.name, ">"); });
  module.def("_function", make_function, "f"_a, "name"_a.none(), "input_signature"_a, "max_variants"_a, "open_sizes"_a,
             "run_eagerly"_a, "profile"_a, "max_bytes"_a, "disable"_a);
  module.def("_export_objects", export_objects, "stem"_a, "steps"_a, "instruction_set"_a, "target"_a,
             "weights"_a.none());
  module.def("_load_object_state", load_object_state, "file"_a, "header"_a, "variables"_a);
  module.attr("most_variants") = most_variants;
  steps_within =
      PyErr_NewExceptionWithDoc("gradus.StepsWithin", "A traced function runs a step of a strategy.", nullptr, nullptr);
  if (!steps_within) throw nb::python_error();
  module.attr("_StepsWithin") = nb::handle(steps_within);
  module.def(
      "_runs_function_in_python", [] { return functions_in_python > 0; },
      "True within a compiled function that runs in Python, since it runs steps of a strategy.");
}

}  // namespace gradus::python
