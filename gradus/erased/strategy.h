/// Steps on several devices, without their types.
///
///   const erased::StepResults results = strategy.run_step({.step = step}, tensors, {.values = "..."}, body);
///
/// A step with an identity is traced once for the shapes of its shards; without one it is traced each time. `body`
/// gives its results as tensors; a Loss and Gradients are to be those over all shards before they are taken apart.
#pragma once
#include "gradus/distribute/parameter_server.h"
#include "gradus/distribute/strategy.h"

namespace gradus::erased {

/// The devices of a step: `run_step` runs one, `explain_step` reports on it.
using gradus::Strategy;
/// A Strategy whose `schedule_step` hands a step to some worker, and whose `join` waits for all of them.
using gradus::ParameterServerStrategy;
/// The identity of a step, so that it is traced once.
using detail::StepIdentity;
/// The results of a step for all replicas.
using detail::StepResult;
using detail::StepResults;

/// A loss, or gradients, of the examples of all shards, of those of this one.
template <class R>
  requires OneOf<R, Loss, Gradients>
R over_shards(const R& of_shard) {
  return of_shard.over_shards();
}

}  // namespace gradus::erased
