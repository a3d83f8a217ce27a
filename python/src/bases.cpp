// The modules of generated names, and those parts of them that no header describes as Python needs them: functions as
// values (initializers, regularizers, callbacks), layers and metrics made of functions of Python, and protocols.
#include "python/src/generated.h"

namespace gradus::python {
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
  nb::class_<Module> module = nb::borrow<nb::class_<Module>>(nn.attr("Module"));
  module.def("__repr__", [](const Module& layer) { return "<" + layer.name() + ">"; });
  nb::class_<Sequential> sequential = nb::borrow<nb::class_<Sequential>>(nn.attr("Sequential"));
  sequential.def("__len__", [](const Sequential& model) { return model.size(); });
  sequential.def("__getitem__", [](const Sequential& model, std::int64_t i) {
    const auto size = static_cast<std::int64_t>(model.size());
    return given_object(model.layer(static_cast<std::size_t>(i < 0 && i >= -size ? i + size : i)));
  }, "i"_a, "A handle on layer i; negative ones count from the end.");
}

}  // namespace gradus::python
