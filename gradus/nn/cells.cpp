/// Cells, and the loop that carries their states.
#include "gradus/nn/cells.h"
#include "gradus/function/trace.h"
#include "gradus/graph/scope.h"
#include "gradus/nn/cell_layer.h"
#include "gradus/nn/cloned.h"
#include "gradus/nn/gates.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control.h"
#include "gradus/ops/conv.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/numeric.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

/// Part k of the last axis, which has parts of `size`.
Tensor part(const Tensor& x, std::int64_t k, std::int64_t size) { return slice_within(x, -1, k * size, size); }

struct GatedCell final : CellLayer, Described {
  GatedCell(CellKind k, std::int64_t n, CellOptions o) : cell(k), units(n), options(std::move(o)) {
    require(units > 0, kind(), ": units must be positive, got ", units);
  }
  std::shared_ptr<Layer> clone() const override { return std::make_shared<GatedCell>(*this); }
  std::string_view kind() const override {
    return cell == CellKind::lstm ? "lstm_cell" : cell == CellKind::gru ? "gru_cell" : "simple_rnn_cell";
  }
  LayerConfig config() const override {
    return with_gates({std::string(keras_name(cell)) + "Cell", {{"units", units}}}, cell, options);
  }
  void build(const Spec& input) override {
    require(is_floating(input.dtype) && input.shape.rank() == 2 && input.shape[1] >= 0, kind(), ": the input is ",
            input, ", expected floats [batch, inputs] with known inputs");
    const DType t = input.dtype;
    const std::int64_t columns = gates_of(cell) * units;
    add_variable("kernel", cast(options.kernel_initializer({input.shape[1], columns}), t), options.kernel_regularizer);
    add_variable("recurrent_kernel", cast(options.recurrent_initializer({units, columns}), t),
                 options.recurrent_regularizer);
    if (options.use_bias) add_variable("bias", first_bias(cell, units, options, t), options.bias_regularizer);
  }
  std::vector<std::int64_t> state_sizes() const override {
    return std::vector<std::int64_t>(cell == CellKind::lstm ? 2 : 1, units);
  }
  RecurrentOutput step(const Tensor& x, In state) const override {
    const Tensor kernel = parameter(0);
    require(x.shape().rank() == 2 && x.shape()[1] == kernel.shape()[0], kind(), " ", name(), ": the input is ",
            x.spec(), ", expected [batch, ", kernel.shape()[0], "]");
    check_state(x, state);
    const Tensor from_input = biased(matmul(x, kernel), 0);
    return cell == CellKind::lstm  ? lstm(from_input, state)
           : cell == CellKind::gru ? gru(from_input, state[0])
                                   : simple(from_input, state[0]);
  }

  CellKind cell;
  std::int64_t units;
  CellOptions options;

 private:
  /// `which`: 0 of the input, 1 of the state, which only a GRU may have.
  Tensor biased(const Tensor& y, std::int64_t which) const {
    const bool two = has_two_biases(cell, options);
    if (!options.use_bias || (which == 1 && !two)) return y;
    return two ? y + parameter(2)[which] : y + parameter(2);
  }
  Tensor activated(const Tensor& x) const { return options.activation(x); }
  Tensor gated(const Tensor& x) const { return options.recurrent_activation(x); }

  RecurrentOutput simple(const Tensor& from_input, const Tensor& h) const {
    const Tensor next = activated(from_input + matmul(h, parameter(1)));
    return {next, {next}};
  }
  RecurrentOutput gru(const Tensor& from_input, const Tensor& h) const {
    const Tensor kernel = parameter(1);
    const Tensor inner = biased(matmul(h, options.reset_after ? kernel : slice_within(kernel, -1, 0, 2 * units)), 1);
    const Tensor z = gated(part(from_input, 0, units) + part(inner, 0, units));
    const Tensor r = gated(part(from_input, 1, units) + part(inner, 1, units));
    const Tensor of_state = options.reset_after ? r * part(inner, 2, units) : matmul(r * h, part(kernel, 2, units));
    const Tensor next = z * h + (1 - z) * activated(part(from_input, 2, units) + of_state);
    return {next, {next}};
  }
  RecurrentOutput lstm(const Tensor& from_input, In state) const {
    const Tensor all = from_input + matmul(state[0], parameter(1));
    const Tensor c =
        gated(part(all, 1, units)) * state[1] + gated(part(all, 0, units)) * activated(part(all, 2, units));
    const Tensor next = gated(part(all, 3, units)) * activated(c);
    return {next, {next, c}};
  }
};

std::shared_ptr<Layer> gated(CellKind kind, std::int64_t units, CellOptions options) {
  const std::string name = options.name;
  return named(std::make_shared<GatedCell>(kind, units, std::move(options)), name);
}

CellLayer& cell_behind(const Module& module) { return layer_as<CellLayer>(module, "RecurrentCell"); }
RecurrentOutput entered(const CellLayer& cell, const Tensor& x, In state) {
  const NameScope scope(cell.name().empty() ? cell.kind() : std::string_view(cell.name()));
  const OutermostCall call(cell);
  cell.note_looked_at();
  return cell.step(x, state);
}

struct StackedCells final : CellLayer, Described {
  explicit StackedCells(std::vector<RecurrentCell> given) {
    require(!given.empty(), "StackedRNNCells: expected at least one cell");
    for (std::size_t i = 0; i < given.size(); ++i) {
      cells.push_back(std::move(given[i]));
      name_by_kind(cells.back().layer_behind(), i ? "_" + std::to_string(i) : "");
    }
  }
  std::shared_ptr<Layer> clone() const override { return std::make_shared<StackedCells>(*this); }
  std::string_view kind() const override { return "stacked_rnn_cells"; }
  LayerConfig config() const override { return {"StackedRNNCells"}; }
  std::vector<std::shared_ptr<Layer>> children() const override {
    std::vector<std::shared_ptr<Layer>> all;
    for (const Module& cell : cells) all.push_back(child_of(cell));
    return all;
  }
  void build(const Spec& input) override {
    Spec spec = input;
    for (const Module& each : cells) {
      CellLayer& cell = cell_behind(each);
      cell.ensure_built(spec);
      spec.shape.set(1, cell.state_sizes()[cell.state_like_result()]);
    }
  }
  std::vector<std::int64_t> state_sizes() const override {
    std::vector<std::int64_t> all;
    for (const Module& cell : cells)
      for (const std::int64_t size : cell_behind(cell).state_sizes()) all.push_back(size);
    return all;
  }
  std::size_t state_like_result() const override {
    const CellLayer& last = cell_behind(cells.back());
    return state_sizes().size() - last.state_sizes().size() + last.state_like_result();
  }
  bool gives_its_state() const override { return cell_behind(cells.back()).gives_its_state(); }
  RecurrentOutput step(const Tensor& x, In state) const override {
    check_state(x, state);
    RecurrentOutput all{.output = x};
    for (const Module& each : cells) {
      const CellLayer& cell = cell_behind(each);
      RecurrentOutput one = entered(cell, all.output, state.subspan(all.state.size(), cell.state_sizes().size()));
      all.output = std::move(one.output);
      for (Tensor& part : one.state) all.state.push_back(std::move(part));
    }
    return all;
  }
  std::vector<Module> cells;
};

struct CustomCellLayer final : CellLayer {
  using Step = std::function<RecurrentOutput(const NetLayer& net, const Tensor& x, In state)>;
  CustomCellLayer(std::shared_ptr<NetLayer> n, std::vector<std::int64_t> s, Step f)
      : net(std::move(n)), sizes(std::move(s)), one_step(std::move(f)) {
    require(!sizes.empty(), "CustomCell: expected at least one state");
    for (const std::int64_t size : sizes) require(size > 0, "CustomCell: a state of ", size, " elements");
  }
  std::shared_ptr<Layer> clone() const override {
    auto copy = std::make_shared<CustomCellLayer>(*this);
    copy->net = std::static_pointer_cast<NetLayer>(net->clone());  // within the copying of this one
    return copy;
  }
  std::string_view kind() const override { return "custom_cell"; }
  std::vector<std::shared_ptr<Layer>> children() const override { return {net}; }
  std::vector<std::int64_t> state_sizes() const override { return sizes; }
  bool gives_its_state() const override { return false; }
  void build(const Spec& input) override {
    require(is_floating(input.dtype) && input.shape.rank() == 2 && input.shape[1] >= 0, "CustomCell: the input is ",
            input, ", expected floats [batch, inputs] with known inputs");
    std::vector<Spec> inputs{{input.dtype, {any_size, input.shape[1]}}};
    for (const std::int64_t size : sizes) inputs.push_back({input.dtype, {any_size, size}});
    net->ensure_built(inputs);
  }
  RecurrentOutput step(const Tensor& x, In state) const override {
    check_state(x, state);
    RecurrentOutput next = one_step(*net, x, state);
    require(next.output.defined() && next.output.spec() == state[0].spec(), "CustomCell ", name(), ": the result is ",
            next.output.defined() ? text(next.output.spec()) : "empty", ", expected that of the first state, ",
            state[0].spec());
    check_state(x, next.state);
    return next;
  }
  std::shared_ptr<NetLayer> net;
  std::vector<std::int64_t> sizes;
  Step one_step;
};

/// How a loop over places reads and returns, beside its steps.
struct Places {
  bool return_sequences, go_backwards, zero_output_for_mask;
  bool gives_state;  // the result is a state
  Tensor mask;       // bool [batch, time]; empty: all count
};

/// `x`: [batch, time, ...]. The result of places that do not count is `repeated` at first.
RecurrentOutput over_places(const Tensor& x, const Tensors& first, std::size_t state_like_result, const Places& places,
                            const std::function<RecurrentOutput(const Tensor& x, In state)>& step) {
  const auto in_order = [&](Tensor by_place) { return places.go_backwards ? reverse(by_place, {0}) : by_place; };
  const Tensor xs = in_order(moveaxis(x, 1, 0));
  const std::size_t n = first.size();
  Tensors carries = first;
  Tensor mask;
  const bool carries_result = places.mask.defined() || !places.gives_state;
  if (carries_result) carries.push_back(fill_like(first[state_like_result], 0));
  if (places.mask.defined()) {
    mask = in_order(transpose(places.mask));
    carries.push_back(fill({}, 0, i32));
  }
  const auto body = [&](In in) {
    const RecurrentOutput made = step(in.back(), in.first(n));
    Tensors next = made.state;
    Tensor result = made.output;
    if (mask.defined()) {
      Tensor counts = gather(mask, in[n + 1]);  // [batch]
      while (counts.shape().rank() < result.shape().rank()) counts = expand_dims(counts, -1);
      for (std::size_t i = 0; i < n; ++i) next[i] = where(counts, next[i], in[i]);
      const Tensor repeated = where(counts, result, in[n]);
      next.push_back(repeated);
      next.push_back(in[n + 1] + 1);
      result = places.zero_output_for_mask ? where(counts, result, fill_like(result, 0)) : repeated;
    } else if (carries_result) {
      next.push_back(result);
    }
    next.push_back(result);
    return next;
  };
  Tensors results = detail::scan(body, carries, xs);
  RecurrentOutput all{.output = moveaxis(results.back(), 0, 1),
                      .state = Tensors(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(n))};
  if (!places.return_sequences) all.output = results[carries_result ? n : state_like_result];
  return all;
}

struct RNNLayer final : Cloned<RNNLayer>, Described {
  RNNLayer(RecurrentCell given, RNNOptions o) : cell(std::move(given)), options(std::move(o)) {
    name_by_kind(cell.layer_behind());
    set_activity_regularizer(options.activity_regularizer);
  }
  std::string_view kind() const override { return "rnn"; }
  LayerConfig config() const override {
    return {"RNN",
            {{"return_sequences", options.return_sequences},
             {"go_backwards", options.go_backwards},
             {"zero_output_for_mask", options.zero_output_for_mask},
             {"activity_regularizer", options.activity_regularizer}}};
  }
  std::vector<std::shared_ptr<Layer>> children() const override { return {child_of(cell)}; }
  void build(const Spec& input) override {
    require(is_floating(input.dtype) && input.shape.rank() == 3 && input.shape[2] >= 0, "RNN: the input is ", input,
            ", expected floats [batch, time, inputs] with known inputs");
    cell.layer_behind().ensure_built(Spec{input.dtype, {any_size, input.shape[2]}});
  }
  Tensor call(const Tensor& x) const override { return run_from(x, {}).output; }
  Tensor call_masked(const Tensor& x, const Tensor& mask) const override {
    return run_from(x, {.mask = mask_of_places(x, mask)}).output;
  }
  Tensor compute_mask(const Tensor&, const Tensor& mask) const override {
    return options.return_sequences ? in_order_of_steps(mask, options.go_backwards) : Tensor();
  }
  bool looks_at_places() const override { return true; }
  RecurrentOutput run_from(const Tensor& x, const RecurrentInput& input) const {
    const CellLayer& steps = cell_behind(cell);
    require(x.shape().rank() == 3, "RNN ", name(), ": the input is ", x.spec(), ", expected [batch, time, inputs]");
    require(!input.mask.defined() || input.mask.spec() == Spec{boolean, {x.shape()[0], x.shape()[1]}}, "RNN ", name(),
            ": the mask is ", input.mask.defined() ? text(input.mask.spec()) : "", ", expected ",
            Spec{boolean, {x.shape()[0], x.shape()[1]}});
    const Tensors first = input.initial_state.empty() ? steps.zero_state(x.shape()[0], x.dtype()) : input.initial_state;
    steps.check_state(x, first);
    return over_places(x, first, steps.state_like_result(),
                       {options.return_sequences, options.go_backwards, options.zero_output_for_mask,
                        steps.gives_its_state(), input.mask},
                       [&](const Tensor& place, In state) { return entered(steps, place, state); });
  }
  using Layer::note_lost_mask;
  using Layer::note_result;
  RecurrentCell cell;
  RNNOptions options;
};

struct ConvLSTMSettings {
  std::string_view layer, kind;
  std::int64_t filters;
  Sizes kernel, strides, dilation;
};

template <class Options> struct ConvLSTMLayer final : Cloned<ConvLSTMLayer<Options>>, Described {
  ConvLSTMLayer(ConvLSTMSettings s, Options o) : settings(std::move(s)), options(std::move(o)) {
    require(settings.filters > 0, settings.layer, ": the number of filters must be positive, got ", settings.filters);
    for (const Sizes& sizes : {settings.kernel, settings.strides, settings.dilation})
      for (const std::int64_t size : sizes)
        require(size > 0, settings.layer, ": kernel, strides and dilation must be positive, got ", size);
    this->set_activity_regularizer(options.activity_regularizer);
  }
  std::string_view kind() const override { return settings.kind; }
  LayerConfig config() const override {
    return with_gates({std::string(settings.layer),
                       {{"filters", settings.filters},
                        {"kernel_size", listed(settings.kernel)},
                        {"strides", listed(settings.strides)},
                        {"padding", std::string(options.padding == Padding::same ? "same" : "valid")},
                        {"dilation_rate", listed(settings.dilation)},
                        {"return_sequences", options.return_sequences},
                        {"go_backwards", options.go_backwards},
                        {"activity_regularizer", options.activity_regularizer}}},
                      CellKind::lstm, options);
  }
  void build(const Spec& input) override {
    check(input);
    for (int i = 2; i < input.shape.rank(); ++i)
      require(input.shape[i] > 0, settings.layer, ": the input is ", input, ", its dimension ", i, " must be known");
    const std::int64_t columns = 4 * settings.filters;
    const DType t = input.dtype;
    this->add_variable("kernel", cast(options.kernel_initializer(kernel_shape(input.shape.back(), columns)), t),
                       options.kernel_regularizer);
    this->add_variable("recurrent_kernel",
                       cast(options.recurrent_initializer(kernel_shape(settings.filters, columns)), t),
                       options.recurrent_regularizer);
    if (options.use_bias)
      this->add_variable("bias", lstm_bias(settings.filters, options.unit_forget_bias, t), options.bias_regularizer);
  }
  Tensor call(const Tensor& x) const override { return call_masked(x, {}); }
  Tensor compute_mask(const Tensor&, const Tensor& mask) const override {
    return options.return_sequences ? in_order_of_steps(mask, options.go_backwards) : Tensor();
  }
  bool looks_at_places() const override { return true; }
  /// The input's part of the gates is one convolution for all places.
  Tensor call_masked(const Tensor& x, const Tensor& mask) const override {
    check(x.spec());
    Shape places = x.shape();
    places.erase(1);
    places.set(0, dimension::multiply(x.shape()[0], x.shape()[1]));
    Tensor gates =
        convolution(reshape(x, places), this->parameter(0),
                    {.strides = settings.strides, .padding = options.padding, .dilations = settings.dilation});
    if (options.use_bias) gates = gates + this->parameter(2);
    Shape divided = gates.shape();
    divided.set(0, x.shape()[1]);
    divided.insert(0, x.shape()[0]);
    Shape state = gates.shape();
    state.set(0, x.shape()[0]);
    state.set(-1, settings.filters);
    const Tensor zero = fill(state, 0, x.dtype());
    return over_places(reshape(gates, divided), {zero, zero}, 0,
                       {options.return_sequences, options.go_backwards, false, true, mask_of_places(x, mask)},
                       [&](const Tensor& from_input, In now) { return step(from_input, now); })
        .output;
  }
  ConvLSTMSettings settings;
  Options options;

 private:
  void check(const Spec& input) const {
    const int rank = static_cast<int>(settings.kernel.size()) + 3;
    require(is_floating(input.dtype) && input.shape.rank() == rank, settings.layer, ": the input is ", input,
            ", expected floats of ", rank, " dimensions: [batch, time, spatial..., channels]");
  }
  Shape kernel_shape(std::int64_t inputs, std::int64_t outputs) const {
    Shape shape{std::span(settings.kernel)};
    shape.push_back(inputs);
    shape.push_back(outputs);
    return shape;
  }
  RecurrentOutput step(const Tensor& from_input, In state) const {
    const Activation &activated = options.activation, &gate = options.recurrent_activation;
    const std::int64_t n = settings.filters;
    const Tensor all = from_input + convolution(state[0], this->parameter(1), {.padding = Padding::same});
    const Tensor c = gate(part(all, 1, n)) * state[1] + gate(part(all, 0, n)) * activated(part(all, 2, n));
    const Tensor next = gate(part(all, 3, n)) * activated(c);
    return {next, {next, c}};
  }
};

template <class Size>
std::shared_ptr<Layer> conv_lstm(std::string_view layer, std::string_view kind, std::int64_t filters, Size kernel,
                                 ConvLSTMOptionsOf<Size> options) {
  const std::string name = options.name;
  ConvLSTMSettings settings{layer, kind, filters, kernel, options.strides, options.dilation};
  using Made = ConvLSTMLayer<ConvLSTMOptionsOf<Size>>;
  return named(std::make_shared<Made>(std::move(settings), std::move(options)), name);
}

}  // namespace

Tensors CellLayer::zero_state(std::int64_t batch, DType t) const {
  Tensors state;
  for (const std::int64_t size : state_sizes()) state.push_back(fill({batch, size}, 0, t));
  return state;
}

void CellLayer::check_state(const Tensor& x, In state) const {
  const std::vector<std::int64_t> sizes = state_sizes();
  require(state.size() == sizes.size(), kind(), " ", name(), ": ", state.size(), " tensors of state, expected ",
          sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i)
    require(state[i].spec() == Spec{x.dtype(), {x.shape()[0], sizes[i]}}, kind(), " ", name(), ": state ", i, " is ",
            state[i].spec(), ", expected ", Spec{x.dtype(), {x.shape()[0], sizes[i]}});
}

std::shared_ptr<Layer> custom_cell(std::shared_ptr<NetLayer> net, std::vector<std::int64_t> state_sizes,
                                   std::function<RecurrentOutput(const NetLayer& net, const Tensor& x, In state)> step,
                                   const std::string& name) {
  return named(std::make_shared<CustomCellLayer>(std::move(net), std::move(state_sizes), std::move(step)), name);
}

RecurrentOutput RecurrentCell::operator()(const Tensor& x, const std::vector<Tensor>& state) const {
  CellLayer& cell = cell_behind(*this);
  cell.ensure_built(x.spec());
  if (Trace* trace = Trace::current()) trace->note_use(this, cell.variables());
  return entered(cell, cell.computed(x), state);
}

SimpleRNNCell::SimpleRNNCell(std::int64_t units, CellOptions options)
    : RecurrentCell(gated(CellKind::simple_rnn, units, std::move(options))) {}
GRUCell::GRUCell(std::int64_t units, CellOptions options)
    : RecurrentCell(gated(CellKind::gru, units, std::move(options))) {}
LSTMCell::LSTMCell(std::int64_t units, CellOptions options)
    : RecurrentCell(gated(CellKind::lstm, units, std::move(options))) {}
StackedRNNCells::StackedRNNCells(std::vector<RecurrentCell> cells)
    : RecurrentCell(std::make_shared<StackedCells>(std::move(cells))) {}

RNN::RNN(RecurrentCell cell, RNNOptions options)
    : Module(named(std::make_shared<RNNLayer>(std::move(cell), options), options.name)) {}
RNN::RNN(std::vector<RecurrentCell> cells, RNNOptions options)
    : RNN(StackedRNNCells(std::move(cells)), std::move(options)) {}
Tensor RNN::operator()(const Tensor& x, const RecurrentInput& input) const { return with_state(x, input).output; }
RecurrentOutput RNN::with_state(const Tensor& given, const RecurrentInput& input) const {
  auto& layer = layer_as<RNNLayer>(*this, "RNN");
  layer.ensure_built(given.spec());
  if (Trace* trace = Trace::current()) trace->note_use(this, layer.variables());
  const NameScope scope(layer.name().empty() ? layer.kind() : std::string_view(layer.name()));
  const CallScope call(layer);
  const Tensor x = layer.computed(given);
  RecurrentInput whole = input;
  if (!whole.mask.defined()) whole.mask = mask_of_places(x, SequenceMask::of(x));
  if (!whole.mask.defined()) layer.note_lost_mask(x);
  RecurrentOutput result = layer.run_from(x, whole);
  layer.note_result(x, whole.mask, result.output);
  return result;
}

ConvLSTM1D::ConvLSTM1D(std::int64_t filters, Single kernel, ConvLSTM1DOptions options)
    : Module(conv_lstm("ConvLSTM1D", "conv_lstm1d", filters, kernel, std::move(options))) {}
ConvLSTM2D::ConvLSTM2D(std::int64_t filters, Pair kernel, ConvLSTM2DOptions options)
    : Module(conv_lstm("ConvLSTM2D", "conv_lstm2d", filters, kernel, std::move(options))) {}
ConvLSTM3D::ConvLSTM3D(std::int64_t filters, Triple kernel, ConvLSTM3DOptions options)
    : Module(conv_lstm("ConvLSTM3D", "conv_lstm3d", filters, kernel, std::move(options))) {}

}  // namespace gradus
