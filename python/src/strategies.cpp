// Strategies: a step of Python on several devices. A compiled function is traced once for the shapes of its shards, any
// other step each time, as Python runs it.
#include "python/src/binding.h"
#include "python/src/calls.h"
#include "python/src/nest.h"
#include "python/src/pipeline.h"

namespace gradus::python {
namespace {

const char step_types = 0;

/// The identity of a compiled step, as long as Python keeps it.
struct StepHandle {
  std::shared_ptr<const void> step = std::make_shared<int>();
};

/// The results of the replicas: a list of tensors for each tensor that differs from one to another.
nb::object results_of(const Strategy& strategy, const erased::StepResults& found, const nb::object& per_replica) {
  const std::size_t replicas = static_cast<std::size_t>(strategy.num_replicas_in_sync());
  return nest_of_results(found.structure, [&](std::size_t i) -> nb::object {
    const erased::StepResult& result = found.tensors[i];
    if (replicas == 1 || !result.per_replica) return nb::cast(result.common);
    nb::list values;
    for (std::size_t k = 0; k < result.per_replica->size(); ++k) values.append((*result.per_replica)[k]);
    return per_replica(values);
  });
}

/// A step without a handle is traced anew.
erased::StepIdentity identity_of(const StepHandle* known, const nb::object& step) {
  erased::StepIdentity identity{.options = {.name = nb::cast<std::string>(step.attr("__name__"))}};
  if (known) identity.step = known->step;
  return identity;
}

nb::object run(const Strategy& strategy, const StepHandle* known, const nb::object& step, const nb::object& per_replica,
               const nb::tuple& args, const nb::dict& kwargs) {
  Call call = call_of(args, kwargs);
  const erased::StepIdentity identity = identity_of(known, step);
  StaticArguments statics{.values = call.key, .types = &step_types};
  const gradus::detail::MaskedArguments masked(call.tensors, statics);
  const Body body = [&](In all) {
    return in_python([&] {
      Called called = called_with(call.apply(step, masked.take(all)));
      SequenceMask::append_all(called.tensors);
      return called;
    });
  };
  const erased::StepResults found =
      without_gil([&] { return strategy.run_step(identity, call.tensors, std::move(statics), body); });
  return results_of(strategy, found, per_replica);
}

std::vector<Device> devices_of(const std::vector<std::string>& names) {
  std::vector<Device> all;
  for (const std::string& name : names) all.push_back(DeviceArg{nb::str(name.c_str())}.device());
  return all;
}

Strategy mirrored(const std::vector<std::string>& devices, int micro_shards, bool shard_optimizer, bool bf16_sums) {
  return MirroredStrategy({.devices = devices_of(devices),
                           .micro_shards = micro_shards,
                           .shard_optimizer = shard_optimizer,
                           .bf16_sums = bf16_sums});
}

Strategy multi_worker(int micro_shards, bool shard_optimizer, bool bf16_sums) {
  return without_gil([&]() -> Strategy {
    return MultiWorkerMirroredStrategy(
        Cluster::from_environment(),
        {.micro_shards = micro_shards, .shard_optimizer = shard_optimizer, .bf16_sums = bf16_sums});
  });
}

// ---- parameter servers

/// The loss that a step gives: a Loss, or the mean of the elements of a tensor; of several the first.
Loss first_loss(nb::handle result) {
  Loss found;
  for_each_leaf(result, nullptr, [&](nb::handle leaf) {
    if (found.defined()) return;
    if (nb::isinstance<Loss>(leaf)) found = nb::cast<const Loss&>(leaf);
    else if (nb::isinstance<Tensor>(leaf) && is_floating(nb::cast<const Tensor&>(leaf).dtype()))
      found = Loss::mean(nb::cast<const Tensor&>(leaf));
  });
  return found;
}

void schedule(const ParameterServerStrategy& strategy, const StepHandle* known, const nb::object& step,
              const nb::tuple& args, const nb::dict& kwargs) {
  Call call = call_of(args, kwargs);
  const erased::StepIdentity identity = identity_of(known, step);
  StaticArguments statics{.values = call.key, .types = &step_types};
  const gradus::detail::MaskedArguments masked(call.tensors, statics);
  const Body body = [&](In all) {
    return in_python([&] {
      const Loss loss = first_loss(call.apply(step, masked.take(all)));
      return loss.defined() ? Called{{loss.sum(), loss.weight()}, nullptr} : Called{};
    });
  };
  without_gil([&] { strategy.schedule_step(identity, call.tensors, statics, body); });
}

nb::object join(const ParameterServerStrategy& strategy) {
  const Loss loss = without_gil([&] { return strategy.join(); });
  return loss.defined() ? nb::cast(loss) : nb::none();
}

/// None in a process that is a parameter server, once it has served.
std::optional<ParameterServerStrategy> parameter_servers(int max_staleness, const std::string& checkpoints,
                                                         int checkpoint_steps) {
  return without_gil([&]() -> std::optional<ParameterServerStrategy> {
    const ParameterServerOptions options{
        .max_staleness = max_staleness, .checkpoints = checkpoints, .checkpoint_steps = checkpoint_steps};
    const Cluster cluster = Cluster::from_environment();
    if (cluster.task != TaskType::parameter_server) return ParameterServerStrategy(cluster, options);
    ParameterServerStrategy::serve(cluster, options);
    return {};
  });
}

}  // namespace

void bind_strategies(nb::module_& module) {
  nb::class_<StepHandle>(module, "_StepHandle").def(nb::init<>());
  nb::class_<Strategy>(module, "_Strategy", nb::is_weak_referenceable())
      .def_static("mirrored", mirrored, "devices"_a, "micro_shards"_a, "shard_optimizer"_a, "bf16_sums"_a)
      .def_static("multi_worker", multi_worker, "micro_shards"_a, "shard_optimizer"_a, "bf16_sums"_a)
      .def_static("default", []() -> Strategy { return DefaultStrategy(); })
      .def_prop_ro("num_replicas_in_sync", &Strategy::num_replicas_in_sync)
      .def_prop_ro("rank", &Strategy::own_rank)
      .def("run", run, "known"_a.none(), "step"_a, "per_replica"_a, "args"_a, "kwargs"_a,
           "The step on the shards of its tensors. per_replica(list) is given for each tensor that it gives.")
      .def(
          "distribute",
          [](const Strategy& self, const PythonPipeline& data) {
            return PythonPipeline(without_gil([&] { return self.distributed(*data.stages, true); }), data.keepers);
          },
          "data"_a, "The rows of each element that this process computes with.");
  module.def(
      "_cluster",
      [] {
        const Cluster cluster = without_gil([] { return Cluster::from_environment(); });
        return nb::make_tuple(cluster.rank, cluster.ranks());
      },
      "The rank of this process, and the number of ranks, as the environment says.");
  nb::class_<ParameterServerStrategy, Strategy>(module, "_ParameterServers")
      .def_static("make", parameter_servers, "max_staleness"_a, "checkpoints"_a, "checkpoint_steps"_a)
      .def("schedule", schedule, "known"_a.none(), "step"_a, "args"_a, "kwargs"_a,
           "Some worker runs the step with these tensors.")
      .def("join", join, "Waits for all scheduled steps. The loss of their examples, or None.");
}

}  // namespace gradus::python
