// The modules of generated names, and those parts of them that no header describes as Python needs them: functions as
// values (initializers, regularizers, callbacks), layers and metrics made of functions of Python, and protocols.
#include "python/src/generated.h"

namespace gradus::python {
namespace {

/// The module of this name, a part of `of`. Python imports it by its name, too.
nb::module_ part(nb::module_& of, const char* name, const char* docs) {
  const std::string full = "gradus." + std::string(name);
  PyObject* made = PyImport_AddModule(full.c_str());
  if (!made) throw nb::python_error();
  nb::module_ module = nb::borrow<nb::module_>(made);
  module.attr("__doc__") = docs;
  of.attr(full.substr(full.rfind('.') + 1).c_str()) = module;
  return module;
}

}  // namespace

Modules::Modules(nb::module_& module)
    : ops(part(module, "ops", "The functions of tensors.")),
      random(part(module, "random", "Random numbers, by the global seed or by seeds of one's own.")),
      nn(part(module, "nn", "Layers, losses, optimizers, metrics, schedules and callbacks.")),
      nn_initializers(part(nn, "nn.initializers", "First values of variables.")),
      nn_regularizers(part(nn, "nn.regularizers", "Penalties on weights and results.")),
      nn_constraints(part(nn, "nn.constraints", "Values to be assigned after an update.")),
      nn_merging(part(nn, "nn.merging", "Functions that merge several tensors into one.")) {}

void bind_function_values(nb::module_& nn) {
  nb::class_<Initializer>(nn, "Initializer", "A function from a shape to first values of a variable.")
      .def(
          "__call__",
          [](const Initializer& initializer, const Shape& shape) {
            return without_gil([&] { return initializer(shape); });
          },
          "shape"_a, "The first values.");
  nb::class_<Regularizer>(nn, "Regularizer", "A penalty: a function from the penalized tensor to a scalar.")
      .def(
          "__call__",
          [](const Regularizer& regularizer, const TensorArg& x) {
            const Tensor given = x.tensor();
            return without_gil([&] { return regularizer(given); });
          },
          "x"_a, "The penalty.");
  nb::class_<Callback>(
      nn, "Callback", nb::dynamic_attr(), nb::is_weak_referenceable(),
      "Functions that are called before, during and after a training.\n\nOne of your own derives from it, and has "
      "methods of these names: on_train_begin(logs), on_train_end(logs), on_epoch_begin(epoch, logs), "
      "on_epoch_end(epoch, logs), on_train_batch_end(batch, logs), on_test_begin(logs), on_test_end(logs). "
      "`self.model` "
      "and `self.optimizer` are those of the training, which ends if a method sets `self.stop_training` or the model's "
      "to True. on_train_batch_end waits for a step only if it looks at logs[\"loss\"]. Variables in a list "
      "`variables` "
      "are saved with checkpoints.")
      .def(nb::init<>())
      .def_rw("name", &Callback::name, "Its name in checkpoints.");
}

void extend_bases(nb::module_& nn) {
  nb::class_<Module> module = nb::borrow<nb::class_<Module>>(nn.attr("Module"));
  module.def("__repr__", [](const Module& layer) { return "<" + layer.name() + ">"; });
  nb::class_<Sequential> sequential = nb::borrow<nb::class_<Sequential>>(nn.attr("Sequential"));
  sequential.def("__len__", [](const Sequential& model) { return model.size(); });
  sequential.def(
      "__getitem__",
      [](const Sequential& model, std::int64_t i) {
        const auto size = static_cast<std::int64_t>(model.size());
        return given_object(model.layer(static_cast<std::size_t>(i < 0 && i >= -size ? i + size : i)));
      },
      "i"_a, "A handle on layer i; negative ones count from the end.");
}

}  // namespace gradus::python
