/// Recurrent layers, and wrappers of layers along time.
#include "gradus/ops/recurrent.h"
#include "gradus/function/trace.h"
#include "gradus/graph/scope.h"
#include "gradus/nn/cloned.h"
#include "gradus/nn/gates.h"
#include "gradus/nn/recurrent.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

struct RecurrentLayer final : Cloned<RecurrentLayer>, Described {
  RecurrentLayer(CellKind k, std::int64_t n, RecurrentOptions o) : cell(k), units(n), options(std::move(o)) {
    require(units > 0, kind(), ": units must be positive, got ", units);
    check_options(kind(), options);
    set_activity_regularizer(options.activity_regularizer);
  }
  std::string_view kind() const override {
    return cell == CellKind::lstm ? "lstm" : cell == CellKind::gru ? "gru" : "simple_rnn";
  }
  LayerConfig config() const override {
    return with_gates({std::string(keras_name(cell)),
                       {{"units", units},
                        {"return_sequences", options.return_sequences},
                        {"dropout", options.dropout},
                        {"go_backwards", options.go_backwards},
                        {"zero_output_for_mask", options.zero_output_for_mask},
                        {"activity_regularizer", options.activity_regularizer}}},
                      cell, options);
  }

  void build(const Spec& input) override {
    require(is_floating(input.dtype) && input.shape.rank() == 3 && input.shape[2] >= 0, kind(), ": the input is ",
            input, ", expected floats [batch, time, inputs] with known inputs");
    const std::int64_t columns = gates_of(cell) * units;
    add_variable("kernel", cast(options.kernel_initializer({input.shape[2], columns}), input.dtype),
                 options.kernel_regularizer);
    add_variable("recurrent_kernel", cast(options.recurrent_initializer({units, columns}), input.dtype),
                 options.recurrent_regularizer);
    if (options.use_bias) add_variable("bias", first_bias(cell, units, options, input.dtype), options.bias_regularizer);
  }

  Tensor call(const Tensor& x) const override { return run_from(x, {}).output; }
  Tensor call_masked(const Tensor& x, const Tensor& mask) const override {
    return run_from(x, {.mask = mask_of_places(x, mask)}).output;
  }
  Tensor compute_mask(const Tensor&, const Tensor& mask) const override {
    return options.return_sequences ? in_order_of_steps(mask, options.go_backwards) : Tensor();
  }
  bool looks_at_places() const override { return !is_part; }
  RecurrentOutput run_from(const Tensor& x, const RecurrentInput& input) const {
    require(x.shape().rank() == 3, kind(), " ", name(), ": the input is ", x.spec(),
            ", expected [batch, time, inputs]");
    if (options.dropout > 0) warn_if_mode_unsaid("the dropout of a recurrent layer");
    const RecurrentResult result = over_time(transpose(with_dropout(x), {1, 0, 2}), input);
    std::vector<Tensor> state{result.state};
    if (result.cell.defined()) state.push_back(result.cell);
    if (!options.return_sequences) return {result.state, std::move(state)};
    Tensor sequence = result.sequence;
    if (options.zero_output_for_mask && input.mask.defined())
      sequence = where(expand_dims(transpose(input.mask), -1), sequence, fill_like(sequence, 0));
    if (options.go_backwards) sequence = reverse(sequence, {0});
    return {transpose(sequence, {1, 0, 2}), std::move(state)};
  }

  CellKind cell;
  std::int64_t units;
  RecurrentOptions options;
  bool is_part = false;  // part of a layer that prints its notices
  using Layer::note_lost_mask;
  using Layer::note_result;

 private:
  Tensor with_dropout(const Tensor& x) const {
    if (!is_training() || options.dropout == 0) return x;
    const Tensor drawn = random::uniform({x.shape()[0], 1, x.shape()[2]}, {.dtype = computed_in(x.dtype())});
    return where(drawn < options.dropout, fill_like(x, 0), x * (1 / (1 - options.dropout)));
  }
  RecurrentResult over_time(const Tensor& x, const RecurrentInput& input) const {
    RecurrentWeights weights{.kernel = parameter(0), .recurrent_kernel = parameter(1)};
    if (has_two_biases(cell, options) && options.use_bias) {
      const Tensor both = parameter(2);
      weights.bias = both[0];
      weights.recurrent_bias = both[1];
    } else if (options.use_bias) {
      weights.bias = parameter(2);
    }
    RecurrentRun how{.reverse = options.go_backwards, .reset_after = options.reset_after};
    const std::size_t states = cell == CellKind::lstm ? 2 : 1;
    require(input.initial_state.empty() || input.initial_state.size() == states, kind(), " ", name(), ": ",
            input.initial_state.size(), " initial states, expected ", states);
    require(!input.mask.defined() || input.mask.spec() == Spec{boolean, {x.shape()[1], x.shape()[0]}}, kind(), " ",
            name(), ": the mask is ", input.mask.defined() ? text(input.mask.spec()) : "", ", expected ",
            Spec{boolean, {x.shape()[1], x.shape()[0]}});
    if (input.mask.defined()) how.mask = transpose(input.mask);
    if (!input.initial_state.empty()) how.initial_state = input.initial_state[0];
    if (input.initial_state.size() > 1) how.initial_cell = input.initial_state[1];
    how.activation = how.cell_activation = options.activation;  // of the cell too, as in Keras
    how.recurrent_activation = options.recurrent_activation;
    return cell == CellKind::lstm  ? lstm(x, weights, how)
           : cell == CellKind::gru ? gru(x, weights, how)
                                   : simple_rnn(x, weights, how);
  }
};

std::shared_ptr<Layer> recurrent(CellKind kind, std::int64_t units, RecurrentOptions options) {
  const std::string name = options.name;
  return named(std::make_shared<RecurrentLayer>(kind, units, std::move(options)), name);
}

RecurrentOutput entered(const RecurrentLayer& layer, const Tensor& given, RecurrentInput input) {
  const NameScope scope(layer.name().empty() ? layer.kind() : std::string_view(layer.name()));
  const CallScope call(layer);
  const Tensor x = layer.computed(given);
  if (!input.mask.defined()) input.mask = mask_of_places(x, SequenceMask::of(x));
  if (!input.mask.defined()) layer.note_lost_mask(x);
  RecurrentOutput result = layer.run_from(x, input);
  layer.note_result(x, input.mask, result.output);
  return result;
}

/// The layer behind `module`, built, its use noted.
template <class L> const L& used(const Module& module, const Tensor& x, std::string_view type) {
  auto& layer = layer_as<L>(module, type);
  layer.ensure_built(x.spec());
  if (Trace* trace = Trace::current()) trace->note_use(&module, layer.variables());
  return layer;
}

struct BidirectionalLayer final : Cloned<BidirectionalLayer>, Described {
  BidirectionalLayer(const Module& layer, BidirectionalOptions o) : options(std::move(o)) {
    const auto* given = dynamic_cast<const RecurrentLayer*>(&layer.layer_behind());
    require(given != nullptr, "Bidirectional: expected a SimpleRNN, GRU or LSTM, got a ", layer.layer_behind().kind());
    require(!layer.is_shared(), "Bidirectional: it makes two layers like the one that it is given, and shares none");
    require(!given->is_built(), "Bidirectional: the layer is built; give it one that is not");
    forward = std::make_shared<RecurrentLayer>(*given);
    backward = std::make_shared<RecurrentLayer>(*given);
    backward->options.go_backwards = !forward->options.go_backwards;
    forward->is_part = backward->is_part = true;
    forward->options.zero_output_for_mask = backward->options.zero_output_for_mask = true;
    const std::string name = given->has_own_name() ? given->name() : std::string(given->kind());
    forward->rename("forward_" + name, true);
    backward->rename("backward_" + name, true);
  }
  BidirectionalLayer(const BidirectionalLayer& other)
      : Cloned<BidirectionalLayer>(other),
        Described(other),
        options(other.options),
        forward(std::make_shared<RecurrentLayer>(*other.forward)),
        backward(std::make_shared<RecurrentLayer>(*other.backward)) {}
  std::string_view kind() const override { return "bidirectional"; }
  LayerConfig config() const override {
    constexpr const char* modes[] = {"concat", "sum", "mul", "ave"};
    return {"Bidirectional", {{"merge_mode", std::string(modes[static_cast<int>(options.merge_mode)])}}};
  }
  void build(const Spec& input) override {
    forward->ensure_built(input);
    backward->ensure_built(input);
  }
  std::vector<std::shared_ptr<Layer>> children() const override { return {forward, backward}; }
  Tensor call(const Tensor& x) const override { return both(x, {}).output; }
  Tensor call_masked(const Tensor& x, const Tensor& mask) const override {
    return both(x, {.mask = mask_of_places(x, mask)}).output;
  }
  Tensor compute_mask(const Tensor& x, const Tensor& mask) const override { return forward->compute_mask(x, mask); }
  bool looks_at_places() const override { return true; }
  /// Initial states, and the last ones, are those of the forward layer, then of the backward one, as in Keras.
  RecurrentOutput both(const Tensor& x, const RecurrentInput& input) const {
    const std::vector<Tensor>& initial = input.initial_state;
    const std::ptrdiff_t states = forward->cell == CellKind::lstm ? 2 : 1;
    require(initial.empty() || std::ssize(initial) == 2 * states, "Bidirectional ", name(), ": ", initial.size(),
            " initial states, expected ", 2 * states, ": those of the forward layer, then those of the backward one");
    const auto middle = initial.begin() + (initial.empty() ? 0 : states);
    RecurrentOutput a = entered(*forward, x, {input.mask, {initial.begin(), middle}});
    RecurrentOutput b = entered(*backward, x, {input.mask, {middle, initial.end()}});
    if (forward->options.return_sequences) b.output = reverse(b.output, {1});
    a.state.insert(a.state.end(), b.state.begin(), b.state.end());
    return {merged(a.output, b.output), std::move(a.state)};
  }
  Tensor merged(const Tensor& a, const Tensor& b) const {
    switch (options.merge_mode) {
      case Merge::concat: return concat({a, b}, -1);
      case Merge::sum: return a + b;
      case Merge::mul: return a * b;
      case Merge::ave: return (a + b) * 0.5;
    }
    throw InternalError("a merge mode that does not exist");
  }
  BidirectionalOptions options;
  using Layer::note_lost_mask;
  using Layer::note_result;
  std::shared_ptr<RecurrentLayer> forward, backward;
};

struct TimeDistributedLayer final : ClonedMasked<TimeDistributedLayer>, Described {
  explicit TimeDistributedLayer(Module given) : layer(std::move(given)) { name_by_kind(layer.layer_behind()); }
  std::string_view kind() const override { return "time_distributed"; }
  LayerConfig config() const override { return {"TimeDistributed"}; }
  void build(const Spec& input) override {
    require(input.shape.rank() >= 3, "TimeDistributed: the input is ", input, ", expected [batch, time, ...]");
    Spec one = input;
    one.shape.erase(1);
    one.shape.set(0, any_size);
    layer.layer_behind().ensure_built(one);
  }
  std::vector<std::shared_ptr<Layer>> children() const override { return {child_of(layer)}; }
  Tensor call(const Tensor& x) const override { return call_masked(x, {}); }
  Tensor call_masked(const Tensor& x, const Tensor& mask) const override {
    require(x.shape().rank() >= 3, "TimeDistributed: the input is ", x.spec(), ", expected [batch, time, ...]");
    const std::int64_t batch = x.shape()[0], time = x.shape()[1];
    Shape all = x.shape();
    all.erase(1);
    all.set(0, dimension::multiply(batch, time));
    const Tensor places = reshape(x, all);
    if (mask.defined() && mask.shape().rank() >= 2) {
      Shape of_places = mask.shape();
      of_places.erase(1);
      of_places.set(0, all[0]);
      SequenceMask::set(places, reshape(mask, of_places));
    }
    const Tensor y = layer.layer_behind().run(places);
    Shape divided = y.shape();
    divided.set(0, time);
    divided.insert(0, batch);
    return reshape(y, divided);
  }
  Module layer;
};

}  // namespace

SimpleRNN::SimpleRNN(std::int64_t units, RecurrentOptions options)
    : RecurrentModule(recurrent(CellKind::simple_rnn, units, std::move(options))) {}
GRU::GRU(std::int64_t units, RecurrentOptions options)
    : RecurrentModule(recurrent(CellKind::gru, units, std::move(options))) {}
LSTM::LSTM(std::int64_t units, RecurrentOptions options)
    : RecurrentModule(recurrent(CellKind::lstm, units, std::move(options))) {}

Tensor RecurrentModule::operator()(const Tensor& x, const RecurrentInput& input) const {
  return with_state(x, input).output;
}
RecurrentOutput RecurrentModule::with_state(const Tensor& x, const RecurrentInput& input) const {
  return entered(used<RecurrentLayer>(*this, x, "recurrent layer"), x, input);
}
Tensor Bidirectional::operator()(const Tensor& x, const RecurrentInput& input) const {
  return with_state(x, input).output;
}
RecurrentOutput Bidirectional::with_state(const Tensor& x, const RecurrentInput& input) const {
  const auto& layer = used<BidirectionalLayer>(*this, x, "Bidirectional");
  const NameScope scope(layer.name().empty() ? layer.kind() : std::string_view(layer.name()));
  const CallScope call(layer);
  const Tensor given = layer.computed(x);
  const Tensor mask = input.mask.defined() ? input.mask : mask_of_places(given, SequenceMask::of(given));
  if (!mask.defined()) layer.note_lost_mask(given);
  RecurrentOutput result = layer.both(given, {.mask = mask, .initial_state = input.initial_state});
  layer.note_result(given, mask, result.output);
  return result;
}

Bidirectional::Bidirectional(Module layer, BidirectionalOptions options)
    : Module(named(std::make_shared<BidirectionalLayer>(layer, options), options.name)) {}
TimeDistributed::TimeDistributed(Module layer) : Module(std::make_shared<TimeDistributedLayer>(std::move(layer))) {}

}  // namespace gradus
