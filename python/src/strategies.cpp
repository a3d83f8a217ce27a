// Strategies: a step of Python on several devices. The step is traced once for the shapes of its shards; a function
// that is defined anew for each batch is known by its code and by what it encloses.
#include <unordered_map>
#include "python/src/binding.h"
#include "python/src/calls.h"
#include "python/src/pipeline.h"

namespace gradus::python {
namespace {

const char step_types = 0;

/// The identity of a step of this key. Steps of one key are one step.
std::shared_ptr<const void> identity_of(const std::string& key) {
  static auto* const known = new std::unordered_map<std::string, std::shared_ptr<const void>>;  // under the GIL
  std::shared_ptr<const void>& identity = (*known)[key];
  if (!identity) identity = std::make_shared<int>();
  return identity;
}

/// Spells what a function of Python encloses: its code, its defaults and the values of its cells. Empty if one of them
/// is a tensor or an array, whose values a program would keep. Lists and dicts count by identity.
std::optional<std::string> key_of_step(nb::handle step) {
  Call call;
  const auto spell = [&](nb::handle value) {
    if (is_traced(value) && !is_sequence(value)) return false;
    call.spell(value);
    call.key += ',';
    return true;
  };
  if (PyMethod_Check(step.ptr())) {
    if (!spell(step.attr("__self__"))) return {};
    const nb::object function = nb::borrow(step.attr("__func__"));
    const std::optional<std::string> rest = key_of_step(function);
    return rest ? std::optional(call.key + *rest) : std::nullopt;
  }
  if (!nb::hasattr(step, "__code__")) return spell(step) ? std::optional(call.key) : std::nullopt;
  if (!spell(step.attr("__code__"))) return {};
  for (const char* const values : {"__defaults__", "__closure__"}) {
    const nb::object all = nb::getattr(step, values, nb::none());
    if (all.is_none()) continue;
    for (const nb::handle each : all) {
      const bool is_cell = std::string_view(values) == "__closure__";
      if (!spell(is_cell ? nb::object(each.attr("cell_contents")) : nb::borrow(each))) return {};
    }
  }
  return call.key;
}

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

/// The step is known by `of`, the user's function, which `step` calls.
nb::object run(const Strategy& strategy, const nb::object& of, const nb::object& step, const nb::object& per_replica,
               const nb::tuple& args, const nb::dict& kwargs) {
  Call call = call_of(args, kwargs);
  erased::StepIdentity identity{
      .options = {.name = nb::hasattr(of, "__name__") ? nb::cast<std::string>(of.attr("__name__")) : class_of(of)}};
  if (const std::optional<std::string> key = key_of_step(of)) identity.step = identity_of(*key);
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

}  // namespace

void bind_strategies(nb::module_& module) {
  nb::class_<Strategy>(module, "_Strategy", nb::is_weak_referenceable())
      .def_static("mirrored", mirrored, "devices"_a, "micro_shards"_a, "shard_optimizer"_a, "bf16_sums"_a)
      .def_static("multi_worker", multi_worker, "micro_shards"_a, "shard_optimizer"_a, "bf16_sums"_a)
      .def_static("default", []() -> Strategy { return DefaultStrategy(); })
      .def_prop_ro("num_replicas_in_sync", &Strategy::num_replicas_in_sync)
      .def_prop_ro("rank", &Strategy::own_rank)
      .def("run", run, "of"_a, "step"_a, "per_replica"_a, "args"_a, "kwargs"_a,
           "The step on the shards of its tensors. per_replica(list) is given for each tensor that it gives.")
      .def(
          "distribute",
          [](const Strategy& self, const PythonPipeline& data) {
            return PythonPipeline(without_gil([&] { return self.distributed(*data.stages, true); }));
          },
          "data"_a, "The rows of each element that this process computes with.");
}

}  // namespace gradus::python
