/// Strategies: one step, run on several devices. `strategy.run(step, x, y)` splits the rows of global tensors into
/// shards, runs the step on each, and gives the loss and the gradients of the whole batch.
///
///   MirroredStrategy strategy({.devices = {cpu(0), cpu(1)}, .micro_shards = 8});
///   const auto step = function([&](Tensor x, Tensor y) {
///     GradientTape tape;
///     const Loss loss = loss_function(y, model(x, training));
///     optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
///     return loss;
///   });
///   for (auto [x, y] : batches) strategy.run(step, x, y);
/// Shard i of m has the rows from ceil(i * n / m) to below ceil((i + 1) * n / m) of n; a shard without rows is left
/// out. The step is traced once (twice where shards have two lengths). Code that depends on the rows of a shard runs
/// once for each. Code that reads a gradient or a loss, as clipping and applying do, sees the one of all shards, and
/// runs once, as do assignments and the side effects of the C++. Shards are added by a fixed tree over their numbers:
/// with equally many shards, results have the same bits for any number of replicas.
///
/// Within a step: a Variable that is assigned a value that differs from shard to shard needs an Aggregation; random
/// numbers follow from the number of the shard; C++ cannot branch on such values; gradients and losses are not read
/// inside of cond, while_loop, scan and vectorized_map; the mean of a batch, as in batch normalization, is a shard's
/// own; all_reduce_sum, all_reduce_mean, all_gather, reduce_scatter and broadcast (ops/shards.h) take all shards.
#pragma once
#include <functional>
#include <initializer_list>
#include "gradus/base/other_names.h"
#include "gradus/data/dataset.h"
#include "gradus/distribute/cluster.h"
#include "gradus/distribute/per_replica.h"
#include "gradus/function/function.h"
#include "gradus/gradients/gradients.h"
#include "gradus/gradients/loss.h"

namespace gradus {

/// A result that is of the global batch.
template <class R> struct joint_leaf : std::bool_constant<OneOf<R, Loss, Gradients>> {};

namespace detail::inline rooms {

/// The type of a result of the replicas, part by part: a Loss and Gradients stay so and are of the global batch, a
/// Tensor becomes a PerReplica. A struct with a Tensor has none, since its field would have to be another.
template <class R> struct replica_result;
template <> struct replica_result<Tensor> {
  using type = PerReplica<Tensor>;
};
template <OneOf<Loss, Gradients> R> struct replica_result<R> {
  using type = R;
};
template <> struct replica_result<void> {
  using type = void;
};
template <class R, std::size_t N> struct replica_result<std::array<R, N>> {
  using type = std::array<typename replica_result<R>::type, N>;
};
template <class A, class B> struct replica_result<std::pair<A, B>> {
  using type = std::pair<typename replica_result<A>::type, typename replica_result<B>::type>;
};
template <class... R> struct replica_result<std::tuple<R...>> {
  using type = std::tuple<typename replica_result<R>::type...>;
};
template <class R> struct replica_result<std::vector<R>> {
  using type = std::vector<typename replica_result<R>::type>;
};
template <class R, class C> struct replica_result<std::map<std::string, R, C>> {
  using type = std::map<std::string, typename replica_result<R>::type, C>;
};
template <class R>
  requires(parts::is_struct<R> && parts::made_of<joint_leaf, R>())
struct replica_result<R> {
  using type = R;
};

}  // namespace detail::inline rooms

/// The result of a strategy for a step that gives R.
template <class R> using replica_result_t = typename detail::replica_result<R>::type;

/// A number with its name, for the rooms of the library.
struct NamedNumber {
  std::string name;    // its name in errors
  std::int64_t value;  // its value in this process
};

/// The description of a sum over the replicas of a step, which a Reducer receives.
struct ReplicaSum {
  /// "gradient of dense/kernel" for the gradient of a Variable; else the name scope in which the step asks for it, or
  /// "sum". Later sums of one name in a program are "sum #2" and so on, so a name stands for one sum of a step.
  std::string name;
  Shape shape;            // of each part
  DType dtype;            // of each part; gradients of narrow types arrive as f32
  std::int64_t step = 0;  // calls of run() before this one
};

/// The addition of a strategy that a user defines: takes one part a replica, in their order, and gives the sum once for
/// each replica. A gradient arrives as the sum over a shard's examples; it is divided by the sum of weights later. A
/// step whose C++ branches on a sum may ask for it again.
using Reducer = std::function<std::vector<Tensor>(const ReplicaSum& sum, const std::vector<Tensor>& parts)>;
/// A Reducer that adds all sums alike.
using ReducerOfParts = std::function<std::vector<Tensor>(const std::vector<Tensor>& parts)>;

namespace detail {

class ReplicaGroup;

/// One tensor of a step's results.
struct StepResult {
  Tensor common;                                          // the value of all shards; if they differ, that of the first
  std::shared_ptr<const PerReplica<Tensor>> per_replica;  // of a defined one
};
struct StepResults {
  std::vector<StepResult> tensors;
  std::shared_ptr<const void> structure;
  /// Gives the first `count` tensors the masks that follow them, if any do.
  void give_masks(std::size_t count) const;
};

/// The identity of a step, so that it is traced once: empty if no caller can call it again.
struct StepIdentity {
  std::shared_ptr<const void> step = nullptr;
  FunctionOptions options = {};
  const void* closure = nullptr;
  std::size_t closure_bytes = 0;
};
template <class F> StepIdentity identity_of(const F& step) { return {.closure = &step, .closure_bytes = sizeof step}; }
template <class F> StepIdentity identity_of(const Function<F>& step) {
  FunctionOptions options = step.options();
  options.input_signature.clear();  // of the step, not of its shards
  return {.step = step.identity(), .options = std::move(options)};
}

/// Losses and gradients become those of all shards.
template <class R> void join_shards(R& result) {
  if constexpr (OneOf<R, Loss, Gradients>) result = R(result.over_shards());
  else if constexpr (!std::same_as<R, Tensor>) parts::for_each(result, [](auto& part) { join_shards(part); });
}

template <class R> replica_result_t<R> of_replicas(const R& shape, const StepResults& found, std::size_t& next) {
  if constexpr (std::same_as<R, Tensor>) {
    const StepResult& result = found.tensors[next++];
    require(result.per_replica != nullptr, "strategy.run: the step returns an empty tensor");
    return *result.per_replica;
  } else if constexpr (parts::made_of<joint_leaf, R>()) {
    R result = shape;
    visit_result(result, [&](Tensor& part) { part = found.tensors[next++].common; });
    return result;
  } else if constexpr (parts::is_vector<R>) {
    replica_result_t<R> results;
    for (const auto& part : shape) results.push_back(of_replicas(part, found, next));
    return results;
  } else if constexpr (parts::is_map<R>) {
    replica_result_t<R> results;
    for (const auto& [key, part] : shape) results.emplace(key, of_replicas(part, found, next));
    return results;
  } else {
    return std::apply([&](const auto&... part) { return replica_result_t<R>{of_replicas(part, found, next)...}; },
                      shape);
  }
}

}  // namespace detail

/// The devices of a step, and the addition of the replicas' results. A shared handle: copies are the same strategy.
class Strategy {
 public:
  /// A strategy that a user defines: one shard a replica, and sums by `all_reduce`, which decides on bits.
  /// InvalidArgument without devices, or for a device twice; Unavailable for a device that does not exist.
  Strategy(std::vector<Device> devices, Reducer all_reduce);
  Strategy(std::vector<Device> devices, ReducerOfParts all_reduce);

  /// The number of replicas that compute a step together, on all machines.
  int num_replicas_in_sync() const;
  /// The number of shards of a batch.
  int micro_shards() const;

  // Mistakes: compilers quote the line.
  void scope() const = delete;  // no scope is needed: make the model anywhere, and call strategy.run(step, x, y)
  template <class F>
  void run(F&&, std::initializer_list<Tensor>) const = delete;  // tensors one by one: strategy.run(step, x, y)
  template <class... T>
  void schedule(T&&...) const = delete;  // a ParameterServerStrategy schedules; here strategy.run(step, x, y)
  template <class... T>
  void join(T&&...) const = delete;  // a ParameterServerStrategy joins; strategy.run returns when the step is done

  template <class F, class... T>
    requires(detail::FunctionArgument<T> && ...) &&
                detail::FunctionResult<std::invoke_result_t<F&, detail::traced_t<T>...>> &&
                (!requires { typename replica_result_t<std::invoke_result_t<F&, detail::traced_t<T>...>>; })
  void run(F&&, const T&...) const = delete;  // a field cannot become a PerReplica: give Tensors in a tuple or vector

  /// Runs `step` on the shards of these tensors, which are split along axis 0; scalars, and floating numbers, go to
  /// every shard as they are. `step` takes and gives the types that function() allows. If it is a Function, it is
  /// traced once for the shapes of shards; else each time. Loss and Gradients come back as those of the global batch, a
  /// Tensor as PerReplica, with its mask. InvalidArgument unless all tensors have equally many rows, at least one; also
  /// inside of a traced function, of a tape, or of another run.
  template <class F, class... T>
    requires(detail::FunctionArgument<T> && ...) && std::invocable<F&, detail::traced_t<T>...> &&
            detail::FunctionResult<std::invoke_result_t<F&, detail::traced_t<T>...>>
  replica_result_t<std::invoke_result_t<F&, detail::traced_t<T>...>> run(F&& step, const T&... global) const {
    using Result = std::invoke_result_t<F&, detail::traced_t<T>...>;
    Tensors flat;
    detail::StaticArguments statics{.values = {}, .types = &detail::types_tag<detail::traced_t<T>...>};
    (detail::flatten_argument(global, flat, statics.values), ...);
    const detail::MaskedArguments masked(flat, statics);
    const auto body = [&](In in) {
      detail::Called made =
          detail::called_with(step, masked.take(in), [](auto& result) { detail::join_shards(result); }, global...);
      detail::SequenceMask::append_all(made.tensors);
      return made;
    };
    const detail::StepResults found = run_step(detail::identity_of(step), flat, std::move(statics), body);
    if constexpr (!std::is_void_v<Result>) {
      std::size_t next = 0;
      auto results = detail::of_replicas(*static_cast<const Result*>(found.structure.get()), found, next);
      found.give_masks(next);
      return results;
    }
  }

  /// `global_batches` as this process reads them for run(). The elements are the same, but if the data set can be read
  /// by its rows, their tensors hold only the rows of this process's shards; a single process reads whole batches. Give
  /// the tensors to run() as they are, since it knows the batch that they belong to; values computed from them have
  /// lost it. All processes call this with the same data set: InvalidArgument on each if known lengths differ. If a
  /// length is not known, each process's pass has as many elements as the longest; a process that has no more gives
  /// elements without rows.
  template <std::size_t N> Dataset<N> distribute(const Dataset<N>& global_batches) const {
    return Dataset<N>(distributed(global_batches.pipeline(), true));
  }

  /// Makes the values of these variables whole on every rank. All ranks call it. With .shard_optimizer, a rank holds
  /// only its own part of the optimizer's state of each variable; reading that without gather() is an InvalidArgument.
  void gather(const Variables& variables) const;

  /// The report on all that this strategy compiled for `step`, a function, as explain() of the function gives it.
  template <class F> Explanation explain(const Function<F>& step) const {
    return explain_step(detail::identity_of(step));
  }

  // For the rooms of the library.
  detail::StepResults run_step(const detail::StepIdentity& identity, In global, detail::StaticArguments statics,
                               const detail::Body& body) const;
  Explanation explain_step(const detail::StepIdentity& identity) const;
  /// True if each rank keeps a part of the state of optimizers.
  bool divides_state() const;
  /// The rank of this process among those that train together, and their number.
  int own_rank() const;
  int ranks() const;
  /// True if `mine` is true in any process. All ranks call it.
  bool any(bool mine) const;
  /// The value of a variable, whole, on rank 0; on others it is empty. All ranks call it.
  Tensor value_on_first_rank(const Variable& variable) const;
  /// InvalidArgument, on all processes, which begins with `what`, unless `value` is the same in all.
  void check_same(std::uint64_t value, const std::string& what) const;
  /// InvalidArgument, on all processes, which begins with `when`, names the first of these numbers that differs, with
  /// its values, and ends with `remedy`.
  void check_same(std::span<const NamedNumber> numbers, std::string_view when,
                  std::string_view remedy = "it has to be the same on every rank") const;
  /// InvalidArgument, on all processes, which begins with `when` and names the first of these Variables whose value is
  /// not the same in all. State that is divided among them has to be so in all.
  void check_variables(const Variables& variables, const std::string& when) const;
  /// True if a caller has set the number of shards of a batch; else it follows from the replicas.
  bool has_micro_shards() const;
  /// InvalidArgument, on all processes, unless this data set has the same known length and the same stages in each.
  void check_data(const Pipeline& batches) const;
  /// distribute(), also for steps of a room, which use tensors as they come.
  Pipeline distributed(const Pipeline& batches, bool by_hand = false) const;
  /// This process cannot go on, and tells the others why.
  void report_failure(const std::string& why) const noexcept;

 protected:
  explicit Strategy(std::shared_ptr<detail::ReplicaGroup> group) : group_(std::move(group)) {}

 private:
  std::shared_ptr<detail::ReplicaGroup> group_;
};

/// One replica on the default device.
struct DefaultStrategy : Strategy {
  DefaultStrategy();
};

namespace detail {
struct NoReplicas {
  NoReplicas() = default;
  template <class... T>
    requires GivenValues<T...>
  NoReplicas(const T&...) {
    static_assert((std::is_void_v<T> && ...), "there is no option replicas: one a device, .devices = {cpu(0), cpu(1)}");
  }
};
}  // namespace detail

/// Options of MirroredStrategy.
struct MirroredOptions {
  std::vector<Device> devices = {};  // one replica each; none: all GPUs, or without any the processor
  int micro_shards = 0;              // in how many shards a batch is divided; 0: one a replica
  bool shard_optimizer = false;      // as of MultiWorkerOptions; replicas of one process share one state anyway
  bool bf16_sums = false;            // as of MultiWorkerOptions, with the same bits
  detail::NoReplicas replicas = {};  // never set: the number of devices decides
  static constexpr auto ranges() { return std::array{Allowed::within(0, 16'384, "micro_shards")}; }
};

/// Replicas on devices of this process. InvalidArgument for a device twice, and for fewer shards than replicas.
struct MirroredStrategy : Strategy {
  MirroredStrategy() : MirroredStrategy(MirroredOptions()) {}
  explicit MirroredStrategy(MirroredOptions options);
  template <std::size_t n>
    requires(n > 1)                                         // GCC takes {.devices = {d}} for a list of one
  explicit MirroredStrategy(const Device (&)[n]) = delete;  // MirroredStrategy({.devices = {cpu(0), cpu(1)}})
};

/// Options of MultiWorkerMirroredStrategy.
struct MultiWorkerOptions {
  int micro_shards = 0;              // in how many shards a batch is divided; 0: one a replica
  std::vector<Device> devices = {};  // of this process, one replica each; none: all GPUs, or without any the processor
  bool shard_optimizer = false;      // each process keeps, and updates, a part of the state of optimizers; same bits
  bool bf16_sums = false;            // f32 gradients are rounded to bf16 to be added up: half the bytes; other bits
  static constexpr auto ranges() { return std::array{Allowed::within(0, 16'384, "micro_shards")}; }
};

/// Replicas in several processes, on one machine or many. Every process runs the same program: it makes the same calls
/// of run with the same global batches, computes its own shards, and gets the same results. The constructor returns
/// when all have joined. A process that is lost, or fails, ends the step of all by an Unavailable that names it; then
/// the group has to form again. In a cluster that is simulated all replicas are in this process.
struct MultiWorkerMirroredStrategy : Strategy {
  explicit MultiWorkerMirroredStrategy(const Cluster& cluster, MultiWorkerOptions options = {});
  /// The rank of this process; 0 in a simulated cluster.
  int rank() const;
};

}  // namespace gradus
