/// ParameterServerStrategy: asynchronous training. Variables live at parameter servers; workers take the steps that are
/// scheduled, compute gradients with values that may be some updates old, and push them.
///
///   ParameterServerStrategy strategy(Cluster::from_environment(), {.max_staleness = 2});
///   for (int epoch = 0; epoch < 5; ++epoch) {
///     for (auto [x, y] : batches) strategy.schedule(step, x, y);
///     print("loss", strategy.join().item());
///   }
///
/// Every process runs the same program and schedules the same steps with the same batches; a free worker computes a
/// step, once. A process that is a parameter server serves in the constructor, until the training ends, and then ends
/// itself with status 0; where the training fails, the constructor throws.
///
/// Updates are applied in the order in which steps were scheduled. Step k computes with the values after the first
/// k - lag steps, where lag is `max_staleness`, but at most the number of workers less one, and never reaches back over
/// join(), run() or an assignment between steps. So results are the same bits, whichever workers are slow, stopped or
/// lost. With max_staleness = 0 they are those of one process.
///
/// The servers hold the optimizer's slots and compute its update; the workers clip. Other assignments of a step give
/// the values of a single process if they depend on no batch. Values computed from the batch are assigned in the order
/// of steps. If they also depend on the old value, the changes add up, and the Variable needs an Aggregation (of either
/// kind), unless max_staleness is 0. Between two calls of join(), the Variables of the program keep the values of the
/// first.
#pragma once
#include <filesystem>
#include "gradus/distribute/strategy.h"

namespace gradus {

/// Options of ParameterServerStrategy.
struct ParameterServerOptions {
  int max_staleness = 0;  // number of updates that a worker's values may lack; 0: none, and workers take turns
  /// A directory in which each server records its input, so that a restarted server loses nothing. Empty: a lost server
  /// ends the training.
  std::filesystem::path checkpoints = {};
  int checkpoint_steps = 100;  // steps between two full snapshots of a server; pushes are recorded between them
  static constexpr auto ranges() {
    return std::array{Allowed::within(0, 1024, "max_staleness"), Allowed::positive("checkpoint_steps")};
  }
};

namespace detail {

class ParameterServerGroup;

/// The loss that a step gives: a Loss, or the mean of the elements of a Tensor; of several the first.
template <class R> Loss loss_in(const R& result) {
  if constexpr (std::same_as<R, Loss>) {
    return result;
  } else if constexpr (std::same_as<R, Tensor>) {
    return result.defined() && is_floating(result.dtype()) ? Loss::mean(result) : Loss();
  } else if constexpr (std::same_as<R, Gradients>) {
    return {};
  } else {
    Loss found;
    parts::for_each(result, [&](const auto& part) { found = found.defined() ? found : loss_in(part); });
    return found;
  }
}

}  // namespace detail

/// Asynchronous training with parameter servers, as the first comment of this header describes it.
struct ParameterServerStrategy : Strategy {
  /// Returns when all workers and servers have joined. InvalidArgument for a cluster without parameter servers;
  /// Unavailable, which names the missing ones, after the cluster's timeout.
  explicit ParameterServerStrategy(const Cluster& cluster, ParameterServerOptions options = {});

  /// Serves until the training ends, as the constructor does, but then returns: for programs that end their process
  /// themselves. InvalidArgument in a process that is no parameter server; Unavailable where the training fails.
  static void serve(const Cluster& cluster, const ParameterServerOptions& options = {});

  /// Schedules `step` with this batch, which is not divided: a free worker will run it. Returns at once, unless many
  /// steps wait. The step is traced here if it is new. Unavailable if an earlier step has failed. InvalidArgument if
  /// C++ in the step branches on a tensor, and inside of a function or a tape.
  template <class F, class... T>
    requires(detail::FunctionArgument<T> && ...) && std::invocable<F&, detail::traced_t<T>...> &&
            detail::FunctionResult<std::invoke_result_t<F&, detail::traced_t<T>...>>
  void schedule(F&& step, const T&... batch) const {
    Tensors flat;
    detail::StaticArguments statics{.values = {}, .types = &detail::types_tag<detail::traced_t<T>...>};
    (detail::flatten_argument(batch, flat, statics.values), ...);
    const detail::MaskedArguments masked(flat, statics);
    schedule_step(detail::identity_of(step), flat, statics, [&](In in) {
      Loss loss;
      detail::called_with(step, masked.take(in), [&](const auto& result) { loss = detail::loss_in(result); }, batch...);
      return loss.defined() ? detail::Called{{loss.sum(), loss.weight()}, nullptr} : detail::Called{};
    });
  }

  /// Waits for all scheduled steps. Then the Variables of the program have the servers' values, on every rank. Gives
  /// the loss of all examples since the last join; an empty Loss if no step gave one. Rethrows the error of a step.
  Loss join() const;

  /// The rank of this process; 0 in a simulated cluster.
  int rank() const;

  // For the rooms of the library.
  /// As schedule(), of a step whose body gives the sum and the weight of its loss, or nothing.
  void schedule_step(const detail::StepIdentity& identity, In batch, const detail::StaticArguments& statics,
                     const detail::Body& body) const;

 private:
  explicit ParameterServerStrategy(std::shared_ptr<detail::ParameterServerGroup> group);
  std::shared_ptr<detail::ParameterServerGroup> servers_;
};

}  // namespace gradus
