// GradientTape, Loss, Gradients.
#include "python/src/binding.h"
#include "python/src/gradient_list.h"
#include "python/src/nest.h"

namespace gradus::python {
namespace {

/// A tape as Python has it: it records within `with`. Each asks the engine's tape once or, for several targets, several
/// times; so that one is persistent, and goes with the first gradient unless Python's is persistent, too.
struct PythonTape {
  TapeOptions options;
  std::unique_ptr<GradientTape> tape = {};
  bool is_used_up = false, is_within = false;

  GradientTape& recording() {
    require(!is_used_up,
            "GradientTape: this tape is used up: one gradient can be taken unless it is made with persistent=True");
    require(static_cast<bool>(tape),
            "GradientTape: this tape has recorded nothing: write `with gradus.GradientTape() as tape:`");
    return *tape;
  }
  void enter() {
    if (is_within)
      throw nb::value_error("GradientTape: the tape is recording already: a `with` of it within its own `with`");
    is_within = true;
    if (tape) return tape->reset();
    tape = std::make_unique<GradientTape>(
        TapeOptions{.persistent = true, .watch_accessed_variables = options.watch_accessed_variables});
    is_used_up = false;
  }
  void end_use() {
    if (options.persistent) return;
    is_used_up = true;
    tape.reset();
  }
};

Unconnected unconnected_of(nb::handle said) {
  const std::string name = text_of(said);
  if (name == "none") return Unconnected::none;
  if (name == "zero") return Unconnected::zero;
  if (name == "error") return Unconnected::error;
  throw InvalidArgument(text("gradient: unconnected_gradients is none, zero or error, not '", name, "'"));
}

nb::object or_none(const Tensor& x) { return x.defined() ? nb::cast(x) : nb::none(); }

/// A target of gradients, with its cotangent.
struct Target {
  nb::object object;  // a Loss or what stands for a tensor
  Tensor cotangent;   // empty: ones
};

std::vector<Target> targets_of(nb::handle target, nb::handle cotangents) {
  std::vector<Target> all;
  for_each_leaf(target, nullptr, [&](nb::handle each) {
    if (!is_tensor(each))
      throw nb::type_error(text("gradient: a target is a Tensor or a Loss, not ", class_of(each)).c_str());
    all.push_back({nb::borrow(each), {}});
  });
  if (cotangents.is_none()) return all;
  if (is_tensor(target)) {  // a list beside one tensor is a tensor, too
    all[0].cotangent = tensor_of(cotangents, tensor_of(target).dtype());
    return all;
  }
  std::size_t next = 0;
  for_each_leaf(cotangents, nullptr, [&](nb::handle each) {
    if (next < all.size() && !each.is_none()) all[next].cotangent = tensor_of(each);
    ++next;
  });
  require(next == all.size(), "gradient: ", all.size(), " targets, and ", next, " output_gradients");
  return all;
}

GradientOptions options_for(const Target& target, Unconnected unconnected) {
  GradientOptions options{.output_gradients = target.cotangent, .unconnected = unconnected};
  if (options.output_gradients.defined()) return options;
  const bool is_loss = nb::isinstance<Loss>(target.object);
  if (is_loss && !nb::cast<const Loss&>(target.object).is_sum()) return options;
  const Tensor y = is_loss ? nb::cast<const Loss&>(target.object).own_value() : Tensor(tensor_of(target.object));
  if (y.shape().size() != 1 || y.shape().rank() != 0) options.output_gradients = ones_like(y);  // the sum's gradient
  return options;
}

/// Calls use(target) with the Loss or the Tensor.
template <class Use> decltype(auto) with_target(const Target& target, const Use& use) {
  if (nb::isinstance<Loss>(target.object) && !target.cotangent.defined()) return use(nb::cast<Loss>(target.object));
  return use(Tensor(tensor_of(target.object)));
}

GradientList gradients_by_variables(GradientTape& tape, const Target& target, const Variables& variables,
                                    const std::vector<Variable*>& order, Unconnected unconnected) {
  const GradientOptions options = options_for(target, unconnected);
  Gradients found = with_target(
      target, [&](const auto& y) { return without_gil([&] { return tape.gradient(y, variables, options); }); });
  std::vector<std::ptrdiff_t> places;
  for (const Variable* variable : order) places.push_back(found.variables().find(*variable->cell()));
  return {std::move(found), std::move(places)};
}

void add_to(Tensors& sums, Tensors found) {
  if (sums.empty()) sums.resize(found.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i].defined()) sums[i] = sums[i].defined() ? sums[i] + found[i] : found[i];
}

/// The leaves of the nest of sources.
struct SourceList {
  std::vector<Sources::Source> all;
  std::vector<Variable*> variables;  // all of them, if there is no tensor
  std::vector<nb::object> held;      // those that others, such as keras.Variable, stand for
  bool are_variables = true;
};

SourceList sources_of(nb::handle sources) {
  SourceList list;
  for_each_leaf(sources, nullptr, [&](nb::handle each) {
    if (!nb::isinstance<Variable>(each) && nb::hasattr(each, "__gradus_variable__")) {
      list.held.push_back(each.attr("__gradus_variable__")());
      each = list.held.back();
    }
    if (nb::isinstance<Variable>(each)) {
      list.all.emplace_back(nb::cast<Variable&>(each));
      list.variables.push_back(&nb::cast<Variable&>(each));
    } else if (nb::isinstance<Tensor>(each)) {
      list.all.emplace_back(nb::cast<const Tensor&>(each));
      list.are_variables = false;
    } else {
      throw nb::type_error(text("gradient: a source is a Variable or a watched Tensor, not ", class_of(each)).c_str());
    }
  });
  return list;
}

Tensors gradients_by_sources(GradientTape& tape, const std::vector<Target>& targets, const SourceList& sources,
                             Unconnected unconnected) {
  Tensors sums;
  for (const Target& target : targets) {
    const GradientOptions options = options_for(target, unconnected);
    add_to(sums, with_target(target, [&](const auto& y) {
             return without_gil([&] { return tape.gradient(y, Sources(sources.all), options); });
           }));
  }
  return sums;
}

nb::object gradient(PythonTape& self, nb::handle target, nb::handle sources, nb::handle cotangents, nb::handle said) {
  GradientTape& tape = self.recording();
  const Unconnected unconnected = unconnected_of(said);
  const std::vector<Target> targets = targets_of(target, cotangents);
  require(!targets.empty(), "gradient: no target");
  const SourceList list = sources_of(sources);
  nb::object result;
  if (list.are_variables && targets.size() == 1 && is_sequence(sources)) {
    Variables variables;
    for (const Variable* each : list.variables) variables.add(*each);
    result = nb::cast(gradients_by_variables(tape, targets[0], variables, list.variables, unconnected));
  } else {
    const Tensors found = gradients_by_sources(tape, targets, list, unconnected);
    std::size_t next = 0;
    result = map_leaves(sources, [&](nb::handle) { return or_none(found[next++]); });
  }
  self.end_use();
  return result;
}

void watch(PythonTape& self, nb::handle watched) {
  GradientTape& tape = self.recording();
  for_each_leaf(watched, nullptr, [&](nb::handle each) {
    if (!is_tensor(each) && !nb::hasattr(each, "__gradus_tensor__"))
      throw nb::type_error(text("watch: a Tensor or Variable is watched, not ", class_of(each)).c_str());
    tape.watch(tensor_of(each));
  });
}

/// more: another matrix follows, before the tape is used up. may_be_none: None, and not zeros or an error, for a target
/// that does not depend on the source.
template <class Matrix>
nb::object matrix(PythonTape& self, const TensorArg& target, const TensorArg& source, bool more, bool may_be_none,
                  const Matrix& of) {
  GradientTape& tape = self.recording();
  const Tensor y = target.tensor(), x = source.tensor();
  const GradientOptions connection{.output_gradients = ones_like(y), .unconnected = Unconnected::none};
  if (may_be_none && !tape.gradient(y, x, connection).defined()) {
    if (!more) self.end_use();
    return nb::none();
  }
  Tensor found = without_gil([&] { return of(tape, y, x); });
  if (!more) self.end_use();
  return nb::cast(found);
}

/// `with tape.stop_recording():`
struct Pause {
  PythonTape* tape;
  std::vector<std::shared_ptr<PausedTape>> held = {};
};

void bind_pause(nb::module_& module) {
  nb::class_<Pause>(module, "_PausedTape")
      .def("__enter__",
           [](Pause& self) {
             self.held.push_back(std::make_shared<PausedTape>(self.tape->recording().stop_recording()));
           })
      .def("__exit__", [](Pause& self, const nb::args&) { self.held.pop_back(); });
}

void bind_tape_class(nb::module_& module) {
  nb::class_<PythonTape>(
      module, "GradientTape", nb::is_weak_referenceable(),
      "Records what this thread computes within `with`, for gradients, which may be asked afterwards.")
      .def(
          "__init__",
          [](PythonTape* self, bool persistent, bool watch_accessed_variables) {
            new (self) PythonTape{{.persistent = persistent, .watch_accessed_variables = watch_accessed_variables}};
          },
          "persistent"_a = false, "watch_accessed_variables"_a = true)
      .def("__enter__",
           [](nb::handle self) {
             nb::cast<PythonTape&>(self).enter();
             return nb::borrow(self);
           })
      .def("__exit__",
           [](PythonTape& self, const nb::args&) {
             self.is_within = false;
             if (self.tape) self.tape->stop();
           })
      .def("watch", watch, "tensor"_a,
           "Watches tensors, or Variables of a tape that does not watch those that are read.")
      .def(
          "gradient", gradient, "target"_a, "sources"_a, "output_gradients"_a.none() = nb::none(),
          "unconnected_gradients"_a = "none",
          "The gradients of the target, a Tensor, a Loss or a nest of them, by the sources, in their nest.\n\nTargets "
          "that are "
          "no scalars, and several ones, are summed; output_gradients weigh them. A source that the target does not "
          "depend on "
          "has None; zeros or an error if unconnected_gradients is \"zero\" or \"error\". Of a list of Variables alone "
          "these are Gradients: a sequence that an optimizer takes as a whole.")
      .def(
          "jacobian",
          [](PythonTape& self, const TensorArg& target, const TensorArg& source, bool more, bool may_be_none) {
            return matrix(self, target, source, more, may_be_none,
                          [](GradientTape& tape, const Tensor& y, const Tensor& x) { return tape.jacobian(y, x); });
          },
          "target"_a, "source"_a, "_more"_a = false, "_may_be_none"_a = false,
          "The Jacobian, as [target..., source...].")
      .def(
          "batch_jacobian",
          [](PythonTape& self, const TensorArg& target, const TensorArg& source, bool more, bool may_be_none) {
            return matrix(
                self, target, source, more, may_be_none,
                [](GradientTape& tape, const Tensor& y, const Tensor& x) { return tape.batch_jacobian(y, x); });
          },
          "target"_a, "source"_a, "_more"_a = false, "_may_be_none"_a = false,
          "The Jacobian example by example: [n, target..., source...].")
      .def(
          "stop_recording", [](PythonTape& self) { return Pause{&self}; }, nb::keep_alive<0, 1>(),
          "In a `with` statement: nothing is recorded.")
      .def("reset", [](PythonTape& self) { self.recording().reset(); }, "Forgets what was recorded, and begins again.");
}

Loss plus(const Loss& loss, nb::handle other) {
  return nb::isinstance<Loss>(other) ? loss + nb::cast<const Loss&>(other)
                                     : loss + tensor_of(other, loss.value().dtype());
}

void bind_loss(nb::module_& module) {
  nb::class_<Loss> type(
      module, "Loss",
      "A mean over examples that knows its weight, or a sum, whose gradients know it, too, so that those of "
      "parts of a batch add up exactly by +=. It stands for its value.");
  type.def_static(
          "mean",
          [](const TensorArg& per_example, const std::optional<TensorArg>& weight) {
            return weight ? Loss::mean(per_example.tensor(), weight->tensor()) : Loss::mean(per_example.tensor());
          },
          "per_example"_a, "sample_weight"_a = nb::none(), "The mean of all elements, weighted if weights are given.")
      .def_static(
          "of", [](const TensorArg& scalar) { return Loss::of(scalar.tensor()); }, "scalar"_a, "A number, of weight 1.")
      .def_static(
          "total", [](const TensorArg& scalar) { return Loss::sum(scalar.tensor()); }, "scalar"_a,
          "A sum over examples, such as reduce_sum(x) / global_batch; sums of parts add up.")
      .def_prop_ro("value", &Loss::value, "The mean, a scalar tensor.")
      .def_prop_ro("weight", &Loss::weight, "The number of examples, or the sum of their weights.")
      .def("__add__", plus)
      .def("__radd__", plus)
      .def_static(
          "_of_replica", [](const TensorArg& target) { return Loss::of_total(target.tensor()); }, "target"_a)
      .def(
          "__mul__", [](const Loss& loss, Scalar factor) { return loss * factor; }, nb::is_operator())
      .def(
          "__rmul__", [](const Loss& loss, Scalar factor) { return loss * factor; }, nb::is_operator())
      .def("__repr__", [](const Loss& loss) { return repr_of("Loss", loss.value()); });
  add_tensor_methods(type);  // operators that a Loss has of its own come first
}

nb::object gradient_at(const GradientList& self, std::ptrdiff_t place) {
  const std::ptrdiff_t size = static_cast<std::ptrdiff_t>(self.length());
  if (place < -size || place >= size) throw nb::index_error("there are no more gradients");
  return or_none(self.at(static_cast<std::size_t>(place < 0 ? place + size : place)));
}

std::vector<std::ptrdiff_t> all_places(std::size_t size) {
  std::vector<std::ptrdiff_t> places(size);
  for (std::size_t i = 0; i < size; ++i) places[i] = static_cast<std::ptrdiff_t>(i);
  return places;
}

void bind_gradients(nb::module_& module) {
  nb::class_<ClippedGradients>(module, "ClippedGradients", "Gradients after clipping.")
      .def("__len__", [](const ClippedGradients& self) { return self.size(); })
      .def("__getitem__", [](const ClippedGradients& self, std::size_t place) {
        if (place >= self.size()) throw nb::index_error("there are no more gradients");
        return self[place];
      });
  nb::class_<Gradients>(module, "_Gradients");
  nb::class_<GradientList, Gradients>(module, "Gradients",
                                      "A sequence of gradients, in the order of their sources, and their weight.")
      .def("__len__", &GradientList::length)
      .def("__getitem__", gradient_at)
      .def(
          "__iadd__",
          [](nb::handle self, const GradientList& other) {
            nb::cast<GradientList&>(self) += other;
            return nb::borrow(self);
          },
          "Adds the gradients of other examples, as parts of a batch.")
      .def_prop_ro(
          "weight", [](const GradientList& self) { return self.weight(); }, "The number of examples.")
      .def_prop_ro("variables",
                   [](const GradientList& self) {
                     nb::list all;
                     for (const Variable& each : self.variables()) all.append(nb::cast(shared_variable(each)));
                     return all;
                   })
      .def("__repr__", [](const GradientList& self) { return printed<Gradients>(self); });
  module.def(
      "clip_by_global_norm", [](const Gradients& all, double norm) { return clip_by_global_norm(all, norm); },
      "gradients"_a, "norm"_a, "All gradients by one factor, so that their joint norm is at most `norm`.");
}

}  // namespace

nb::object list_of_gradients(nb::handle gradients) {
  nb::list all;
  const GradientList& given = nb::cast<const GradientList&>(gradients);
  for (std::size_t i = 0; i < given.length(); ++i) all.append(or_none(given.at(i)));
  return all;
}

bool is_gradients(nb::handle object) { return nb::isinstance<GradientList>(object); }

nb::object object_of_gradients(Gradients gradients) {
  const std::size_t size = gradients.size();
  return nb::cast(GradientList(std::move(gradients), all_places(size)));
}

void bind_tape(nb::module_& module) {
  bind_pause(module);
  bind_tape_class(module);
  bind_loss(module);
  bind_gradients(module);
}

}  // namespace gradus::python
