/// The state of a tape: its beginning, the watched values, and the nodes that stood for each Variable when it was read.
#include "gradus/gradients/tape.h"
#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>
#include "gradus/autodiff/vjp.h"
#include "gradus/function/loss_scale.h"
#include "gradus/function/pending.h"
#include "gradus/function/trace.h"
#include "gradus/function/variable_cell.h"
#include "gradus/gradients/jacobian.h"
#include "gradus/gradients/shard_target.h"
#include "gradus/gradients/weighed.h"
#include "gradus/graph/shard_context.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/views.h"

namespace gradus {

struct GradientTape::State final : ReadListener {
  explicit State(TapeOptions o) : options(o) {}
  ~State() override { end_recording(); }

  void check_thread(std::string_view what) const {
    require<MistakeOfCpp>(Pending::is_mine(home), "GradientTape::", what,
                          ": another thread made this tape; call it on that thread");
  }
  /// Between pause() and resume() it hears of no reading, and is paused for the queue.
  void pause() {
    if (is_paused) return;
    pauses.push_back({new_sequence(), never});
    leave();
    LazyEvaluation::pause_recording();
    is_paused = true;
  }
  void resume() {
    if (!is_paused) return;
    pauses.back().end = new_sequence();
    join();
    LazyEvaluation::resume_recording();
    is_paused = false;
  }
  /// make() as a part of the recording, also after stop(): gradient() makes its target of what was recorded.
  template <class Make> auto recorded(const Make& make) {
    struct Stopped {
      State* tape;
      ~Stopped() {
        if (tape) tape->pause();
      }
    };
    const bool is_over = is_stopped && is_recording && is_paused && Pending::is_mine(home);
    const Stopped stopped{is_over ? this : nullptr};
    if (is_over) resume();
    return make();
  }
  void reset() {
    if (is_recording) {
      resume();
    } else {
      LazyEvaluation::start_recording();
      join();
    }
    is_recording = listening = true;
    is_used_up = is_stopped = false;
    forget();
    pauses.clear();
    began = new_sequence();
  }
  /// Lets go of values whose memory the step may want to overwrite.
  void forget() {
    watched.clear();
    reads.clear();
    read_nodes.clear();
    cells.clear();
  }

  /// The recording belongs to the thread that made the tape, which ends it even if another thread destroys the tape.
  void end_recording() {
    if (!is_recording || !Pending::is_mine(home)) return;
    resume();
    leave();
    LazyEvaluation::stop_recording();
    is_recording = false;
  }

  void on_read(VariableCell& cell, const Tensor& value) override {
    if (!listening) return;
    std::vector<Tensor>& nodes = reads[&cell];
    for (const Tensor& known : nodes)
      if (known.node() == value.node()) return;
    nodes.push_back(value);
    cells.push_back(cell.shared_from_this());
    read_nodes.emplace(value.node().get(), &cell);
  }

  /// True if this tape recorded while the node was made.
  bool is_of_recording(const Node& node) const {
    return node.sequence >= began && std::ranges::none_of(pauses, [&](const Pause& pause) {
             return pause.begin <= node.sequence && node.sequence < pause.end;
           });
  }

  /// True for values computed or watched under this tape: the walk ends at values that a Variable held, and may not end
  /// there.
  bool knows(const Tensor& value) const override {
    const Node& node = *value.node();
    if (!listening || read_nodes.contains(&node)) return false;
    const bool is_own = node.trace || node.recorder == thread;  // else its thread may end its history meanwhile
    return watched.contains(&node) || (is_own && node.op && is_of_recording(node));
  }

  bool is_watched(const Tensor& x) const {
    if (watched.contains(x.node().get())) return true;
    return options.watch_accessed_variables && read_nodes.contains(x.node().get());
  }

  /// Nothing that was made while it did not record, nothing of other threads, nothing through what a Variable held.
  Stops stops() const {
    return [this](const Node& node) {
      return !is_of_recording(node) || (!node.trace && node.recorder != thread) || read_nodes.contains(&node);
    };
  }

  void begin_gradient() {
    require(!is_used_up, "gradient: this tape is used up; construct it with {.persistent = true}");
  }
  void end_gradient() {
    if (options.persistent) return;
    listening = false;
    is_used_up = true;
    end_recording();
    forget();
  }

  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();
  struct Pause {  // numbers of nodes that were made while it did not record
    std::uint64_t begin, end;
  };

  TapeOptions options;
  std::uint64_t began = new_sequence();
  std::uint32_t thread = Pending::mine().number();
  const Pending::Thread home;
  bool listening = true;
  bool is_used_up = false;
  bool is_stopped = false, is_paused = false;
  bool is_recording = (LazyEvaluation::start_recording(), true);
  std::unordered_map<const Node*, Tensor> watched;
  std::unordered_map<const VariableCell*, std::vector<Tensor>> reads;  // the nodes that a Variable's value was
  std::unordered_map<const Node*, const VariableCell*> read_nodes;
  std::vector<std::shared_ptr<VariableCell>> cells;
  std::vector<Pause> pauses;  // the last one may go on
};

namespace {

void check_target(const Tensor& target, const GradientOptions& options) {
  require(is_floating(target.dtype()), "gradient: the target is ", target.spec(), ", expected a floating type");
  if (!options.output_gradients.defined()) {
    require(target.shape().size() == 1, "gradient: the target is ", target.spec(),
            ", not a scalar; reduce it with reduce_sum or reduce_mean, or give {.output_gradients = ...}");
    return;
  }
  require(options.output_gradients.spec() == target.spec(), "gradient: output_gradients is ",
          options.output_gradients.spec(), ", expected that of the target, ", target.spec());
}

/// As a node of its own, which no rule looks through: it may be a source of another tape.
Tensor seed_of(const GradientOptions& options) {
  const Tensor& given = options.output_gradients;
  return given.defined() ? apply(ReshapeOp{given.shape()}, given) : Tensor();
}

void check_source(const Spec& spec, const std::string& what) {
  require(is_floating(spec.dtype), "gradient: ", what, " is ", spec, "; only floating types have gradients");
}

/// The gradient by a source on which the target does not depend: empty for Unconnected::none.
Tensor unconnected(const Spec& spec, const std::string& what, const GradientOptions& options, bool is_recorded) {
  if (options.unconnected == Unconnected::zero) return fill(spec.shape, 0, spec.dtype);
  require<MistakeOfCpp>(options.unconnected == Unconnected::none, "gradient: the target does not depend on ", what,
                        is_recorded ? "" : " as far as this tape knows, which did not record when the target was made",
                        "; leave it out, ask for zeros with {.unconnected = Unconnected::zero}, or for an empty tensor "
                        "with Unconnected::none");
  return {};
}

}  // namespace

GradientTape::GradientTape(TapeOptions options) : state_(std::make_unique<State>(options)) {}
GradientTape::~GradientTape() {
  const Pending::Thread home = state_->home;
  Pending::destroy(std::move(state_), home);
}

void GradientTape::stop() {
  state_->check_thread("stop");
  state_->is_stopped = true;
  if (state_->is_recording) state_->pause();
}

PausedTape GradientTape::stop_recording() {
  State& state = *state_;
  state.check_thread("stop_recording");
  require<MistakeOfCpp>(!state.is_stopped && !state.is_used_up,
                        "GradientTape::stop_recording: this tape records no more");
  if (state.is_paused) return PausedTape({nullptr, [](void*) {}});  // within another one
  state.pause();
  return PausedTape({&state, [](void* paused) {
                       if (auto& tape = *static_cast<State*>(paused); !tape.is_stopped) tape.resume();
                     }});
}

void GradientTape::reset() {
  State& state = *state_;
  state.check_thread("reset");
  require<MistakeOfCpp>(state.is_stopped || !state.is_paused, "GradientTape::reset while stop_recording() holds");
  state.reset();
}

void GradientTape::watch(const Tensor& x) {
  check_source(x.spec(), "watched tensor");
  state_->watched.emplace(x.node().get(), x);
}

Tensors GradientTape::of_tensors(const Tensor& target, std::span<const Tensor> sources,
                                 const GradientOptions& options) {
  State& state = *state_;
  state.begin_gradient();
  check_target(target, options);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::string what = sources.size() == 1 ? "argument `source`" : text("source ", i);
    check_source(sources[i].spec(), what);
    require(options.unconnected == Unconnected::none || state.is_watched(sources[i]), "gradient: ", what, ", ",
            sources[i].spec(), ", was not watched; call tape.watch(source) before using it");
  }
  const bool is_recorded = state.is_of_recording(*target.node());
  Tensors found = vjp(target, sources, seed_of(options), state.stops());
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!state.is_watched(sources[i])) found[i] = {};
    if (!found[i].defined())
      found[i] = unconnected(sources[i].spec(), sources.size() == 1 ? "argument `source`" : text("source ", i), options,
                             is_recorded);
  }
  state.end_gradient();
  return found;
}

/// A Variable that was read as several nodes, because it was assigned in between, gets the sum over them. For
/// Unconnected::none, `sources` become those on which the target depends.
std::vector<GradientPart> GradientTape::of_variables(const Tensor& target, Variables& sources,
                                                     const GradientOptions& options) {
  State& state = *state_;
  state.begin_gradient();
  std::vector<Tensor> nodes;
  std::vector<std::size_t> owners;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    check_source(sources.cells()[i]->spec, "variable " + sources[i].name());
    const auto reads = state.reads.find(sources.cells()[i].get());
    if (reads == state.reads.end()) continue;
    for (const Tensor& node : reads->second) {
      if (!state.is_watched(node)) continue;
      nodes.push_back(node);
      owners.push_back(i);
    }
  }
  check_target(target, options);
  const std::vector<Tensors> found = vjp_terms(target, nodes, seed_of(options), state.stops());
  std::vector<std::optional<GradientPart>> sums(sources.size());
  for (std::size_t k = 0; k < found.size(); ++k) {
    if (found[k].empty()) continue;
    std::optional<GradientPart>& sum = sums[owners[k]];
    GradientPart of_node = GradientPart::sum_of(found[k]);
    sum = sum ? *sum + of_node : std::move(of_node);
  }
  std::vector<GradientPart> gradients;
  Variables connected;
  const bool is_recorded = state.is_of_recording(*target.node());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    VariableCell& cell = *sources.cells()[i];
    GradientPart part;
    if (sums[i]) part = std::move(*sums[i]);
    else if (const Tensor none = unconnected(cell.spec, "variable " + cell.name, options, is_recorded); none.defined())
      part = GradientPart(none);
    else continue;
    if (options.unconnected == Unconnected::none) connected.add(sources[i]);
    gradients.push_back(cell.mask_cell() ? GradientPart(cell.masked(part.whole()), part.is_of_lookups())
                                         : std::move(part));
  }
  if (options.unconnected == Unconnected::none) sources = std::move(connected);
  state.end_gradient();
  return gradients;
}

/// The scale is a power of two: the result is exact, except for numbers too large or small for the types on the way.
std::vector<GradientPart> GradientTape::of_scaled(const Tensor& target, Variables& sources, GradientOptions options) {
  const std::shared_ptr<LossScale> loss_scale = loss_scale_of(sources);
  if (!loss_scale) return of_variables(target, sources, options);
  check_target(target, options);
  const Tensor scale = loss_scale->now();
  const Tensor seed = options.output_gradients.defined() ? options.output_gradients : ones_like(target);
  options.output_gradients = seed * cast(scale, seed.dtype());
  std::vector<GradientPart> found = of_variables(target, sources, options);
  for (GradientPart& part : found)
    part = part.map_linear([&](const Tensor& gradient) { return gradient * cast(1 / scale, gradient.dtype()); });
  return found;
}

namespace {

/// This shard's term of the target. The gradient is the sum of the terms' gradients over the shards, divided by the
/// weight of all.
Tensor target_of_sums(const Loss& loss, const ShardTarget& shards) {
  if (loss.is_sum()) return shards.share(loss.own_value());
  return shards.is_joint() ? weighed(loss.own_value(), shards.share(loss.own_weight())) : loss.own_sum();
}

Loss loss_of(const Tensor& target) { return Loss::of_mean(target, fill({}, 1, target.dtype())); }

bool vary(std::vector<GradientPart>& parts) {
  bool any = false;
  for (GradientPart& part : parts)
    part.for_each_tensor([&](const Tensor& x) { any = any || (x.defined() && x.node()->varies); });
  return any;
}

/// Shares that are the same on all shards, multiplied to their sum.
std::vector<GradientPart> whole_of_shares(std::vector<GradientPart> parts, const ShardTarget& shards) {
  if (!shards.is_joint() || vary(parts)) return parts;
  for (GradientPart& part : parts) part = part.map_linear([](const Tensor& x) { return x * number_of_shards(); });
  return parts;
}

}  // namespace

/// In a step on shards: this shard's term of the gradient of the sum of their targets. If all shards computed the
/// target together, each adds its share.
Gradients GradientTape::of_loss(const Loss& loss, Variables sources, GradientOptions options) {
  const Tensor target = state_->recorded([&] { return loss.own_value(); }), weight = loss.own_weight();
  const Stops stops = state_->stops();
  const ShardTarget shards(target, stops);
  if (!loss.is_sum() && (number_of_shards() == 0 || !reads_all_shards(target, stops))) {
    std::vector<GradientPart> means = of_scaled(target, sources, std::move(options));
    return {std::move(sources), std::move(means), weight};
  }
  std::vector<GradientPart> sums = whole_of_shares(
      of_scaled(state_->recorded([&] { return target_of_sums(loss, shards); }), sources, std::move(options)), shards);
  if (loss.is_sum()) return Gradients::of_total(sources, std::move(sums), weight);
  const Tensor share = vary(sums) ? shards.share(weight) : weight;
  return Gradients::of_sums(sources, std::move(sums), share);
}

/// For a source that belongs to the shard, the gradient of the whole batch; for a source that all shards share, the sum
/// over the shards.
Tensors GradientTape::of_loss(const Loss& loss, std::span<const Tensor> sources, const GradientOptions& options) {
  const Tensor target = state_->recorded([&] { return loss.own_value(); });
  const ShardTarget shards(target, state_->stops());
  if (number_of_shards() == 0 || (!target.node()->varies && !shards.is_joint()))
    return of_tensors(target, sources, options);
  const Tensor weight = loss.weight();
  Tensors found = of_tensors(state_->recorded([&] { return target_of_sums(loss, shards); }), sources, options);
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i].defined()) continue;
    const DType type = found[i].dtype();
    Tensor sum = cast(found[i], computed_in(type));
    if (!sources[i].node()->varies) sum = sum_over_shards(sum);
    if (!loss.is_sum()) sum = sum / cast(where(equal(weight, 0), ones_like(weight), weight), sum.dtype());
    found[i] = cast(sum, type);
  }
  return found;
}

Tensors GradientTape::of_tensor(const Tensor& target, std::span<const Tensor> sources, const GradientOptions& options) {
  const ShardTarget shards(target, state_->stops());
  for (const Tensor& source : sources) shards.require_whole("gradient", target, source);
  Tensors found = of_tensors(state_->recorded([&] { return shards.share(target); }), sources, options);
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i].defined()) found[i] = shards.joined(found[i], sources[i].node()->varies);
  return found;
}

Gradients GradientTape::gradient(const Loss& loss, const Variables& sources, GradientOptions options) {
  return of_loss(loss, sources, std::move(options));
}
Gradients GradientTape::gradient(const Tensor& target, const Variables& sources, GradientOptions options) {
  require(!differs_by_shard(target), "gradient: the target, ", target.spec(), ",", loss_for_shards);
  return of_loss(loss_of(target), sources, std::move(options));
}
Tensor GradientTape::gradient(const Loss& loss, const Tensor& source, GradientOptions options) {
  return of_loss(loss, {&source, 1}, options)[0];
}
Tensor GradientTape::gradient(const Tensor& target, const Tensor& source, GradientOptions options) {
  return of_tensor(target, {&source, 1}, options)[0];
}
Tensor GradientTape::gradient(const Loss& loss, const Variable& source, GradientOptions options) {
  Variables list;
  list.add(source);
  if (number_of_shards() == 0) {
    const std::vector<GradientPart> parts =
        of_scaled(state_->recorded([&] { return loss.own_value(); }), list, std::move(options));
    return parts.empty() ? Tensor() : parts[0].whole();
  }
  const Gradients found = gradient(loss, list, std::move(options));
  return found.size() == 0 ? Tensor() : found[0];
}
Tensor GradientTape::gradient(const Tensor& target, const Variable& source, GradientOptions options) {
  require(!differs_by_shard(target), "gradient: the target, ", target.spec(), ",", loss_for_shards);
  return gradient(loss_of(target), source, std::move(options));
}

/// Tensors and Variables apart; the tape ends behind both.
template <class Target>
Tensors GradientTape::by_sources(const Target& target, const Sources& sources, GradientOptions options) {
  Tensors tensors;
  Variables variables;
  for (const Sources::Source& source : sources.list_)
    if (source.tensor_.defined()) tensors.push_back(source.tensor_);
    else if (source.variable_.size() == 0) throw InvalidArgument("gradient: a source is an empty tensor");
    else if (variables.find(*source.variable_.cells()[0]) < 0) variables.add(source.variable_[0]);
  TapeOptions& own = state_->options;
  struct Restore {
    bool& value;
    const bool kept;
    ~Restore() { value = kept; }
  };
  Tensors of_tensors;
  Gradients of_variables;
  {
    const Restore restore{own.persistent, std::exchange(own.persistent, true)};
    if (!tensors.empty()) of_tensors = by_tensors(target, tensors, options);
    if (variables.size() > 0) of_variables = gradient(target, variables, options);
  }
  state_->end_gradient();
  Tensors found;
  auto next = of_tensors.begin();
  for (const Sources::Source& source : sources.list_) {
    if (source.tensor_.defined()) {
      found.push_back(std::move(*next++));
      continue;
    }
    const std::ptrdiff_t place = of_variables.variables().find(*source.variable_.cells()[0]);
    found.push_back(place < 0 ? Tensor() : of_variables[static_cast<std::size_t>(place)]);
  }
  return found;
}
Tensors GradientTape::of_sources(const Loss& loss, const Sources& sources, GradientOptions options) {
  return by_sources(loss, sources, std::move(options));
}
Tensors GradientTape::of_sources(const Tensor& target, const Sources& sources, GradientOptions options) {
  return by_sources(target, sources, std::move(options));
}

template <class Matrix>
Tensor GradientTape::matrix(std::string_view op, const Tensor& target, const Tensor& source, Matrix&& of) {
  State& state = *state_;
  state.begin_gradient();
  require(is_floating(target.dtype()), op, ": the target is ", target.spec(), ", expected a floating type");
  check_source(source.spec(), "argument `source`");
  require(state.is_watched(source), op, ": argument `source`, ", source.spec(),
          ", was not watched; call tape.watch(source) before using it");
  const ShardTarget shards(target, state.stops());
  shards.require_rows(op, target, source);
  shards.require_own(op, target);
  const Tensor found = of(target, source, state.stops());
  state.end_gradient();
  return found;
}

Tensor GradientTape::jacobian(const Tensor& target, const Tensor& source, JacobianOptions options) {
  return matrix("jacobian", target, source,
                [&](const auto&... arguments) { return jacobian_of("jacobian", arguments..., options.max_bytes); });
}
Tensor GradientTape::batch_jacobian(const Tensor& target, const Tensor& source, JacobianOptions options) {
  return matrix("batch_jacobian", target, source, [&](const auto&... arguments) {
    return batch_jacobian_of("batch_jacobian", arguments..., options.max_bytes);
  });
}

}  // namespace gradus
