// The modules of generated names, and those parts of them that no header describes as Python needs them: functions as
// values (initializers, regularizers, callbacks), layers and metrics made of functions of Python, and protocols.
#include "python/src/generated.h"

namespace gradus::python {
namespace {

/// A function of Python that gives a number per example.
std::function<Tensor(const Tensor&, const Tensor&)> per_example(const FunctionArg& function) {
  return [function](const Tensor& y, const Tensor& prediction) { return function(y, prediction); };
}

template <class T, class... A> void make(T* at, A&&... arguments) {
  without_gil([&] { new (at) T(std::forward<A>(arguments)...); });
}

}  // namespace

Modules::Modules(nb::module_& module)
    : ops(module.def_submodule("ops", "The functions of tensors.")),
      random(module.def_submodule("random", "Random numbers, by the global seed or by seeds of one's own.")),
      nn(module.def_submodule("nn", "Layers, losses, optimizers, metrics, schedules and callbacks.")),
      nn_initializers(nn.def_submodule("initializers", "First values of variables.")),
      nn_regularizers(nn.def_submodule("regularizers", "Penalties on weights and results.")),
      nn_constraints(nn.def_submodule("constraints", "Values to be assigned after an update.")),
      nn_merging(nn.def_submodule("merging", "Functions that merge several tensors into one.")) {}

void bind_function_values(nb::module_& nn) {
  nb::class_<Initializer>(nn, "Initializer", "A function from a shape to first values of a variable.")
      .def("__call__", [](const Initializer& initializer, const Shape& shape) {
        return without_gil([&] { return initializer(shape); });
      }, "shape"_a, "The first values.");
  nb::class_<Regularizer>(nn, "Regularizer", "A penalty: a function from the penalized tensor to a scalar.")
      .def("__call__", [](const Regularizer& regularizer, const TensorArg& x) {
        const Tensor given = x.tensor();
        return without_gil([&] { return regularizer(given); });
      }, "x"_a, "The penalty.");
  nb::class_<Callback>(nn, "Callback", "Functions that are called before, during and after a training.")
      .def_rw("name", &Callback::name, "Its name in checkpoints.");
}

void extend_bases(nb::module_& nn) {
  nn.attr("Lambda").attr("__init__") = nb::cpp_function(
      [](nb::pointer_and_handle<Lambda> self, const FunctionArg& function, const std::string& name) {
        make(self.p, [function](const Tensor& x) { return function(x); }, name);
      },
      nb::is_method(), nb::scope(nn.attr("Lambda")), nb::name("__init__"), "function"_a, "name"_a = "");
}

}  // namespace gradus::python
