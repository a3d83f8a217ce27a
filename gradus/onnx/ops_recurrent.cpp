/// ONNX's recurrent networks: weights and gates in our order, both directions.
#include <algorithm>
#include "gradus/base/rooms.h"
#include "gradus/onnx/row.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/recurrent.h"
#include "gradus/ops/shape.h"

namespace gradus::onnx {
namespace {

struct NamedActivation {
  std::string_view name;
  double alpha, beta;  // where they are not given
  Tensor (*f)(const Tensor& x, double alpha, double beta);
};

/// In the order and with the defaults of the specification.
const NamedActivation named_activations[] = {
    {"Relu", 0, 0, [](const Tensor& x, double, double) { return relu(x); }},
    {"Tanh", 0, 0, [](const Tensor& x, double, double) { return tanh(x); }},
    {"Sigmoid", 0, 0, [](const Tensor& x, double, double) { return sigmoid(x); }},
    {"Affine", 1, 0, [](const Tensor& x, double a, double b) { return x * a + b; }},
    {"LeakyRelu", 0.01, 0, [](const Tensor& x, double a, double) { return leaky_relu(x, a); }},
    {"ThresholdedRelu", 1, 0, [](const Tensor& x, double a, double) { return where(x > a, x, fill_like(x, 0)); }},
    {"ScaledTanh", 1, 1, [](const Tensor& x, double a, double b) { return tanh(x * b) * a; }},
    {"HardSigmoid", 0.2, 0.5, [](const Tensor& x, double a, double b) { return clip_by_value(x * a + b, 0, 1); }},
    {"Elu", 1, 0, [](const Tensor& x, double a, double) { return where(x > 0, x, a * expm1(minimum(x, 0))); }},
    {"Softsign", 0, 0, [](const Tensor& x, double, double) { return x / (abs(x) + 1); }},
    {"Softplus", 0, 0, [](const Tensor& x, double, double) { return softplus(x); }},
};

bool same_word(std::string_view a, std::string_view b) {
  const auto lower = [](char x) { return x >= 'A' && x <= 'Z' ? x - 'A' + 'a' : x; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

/// All activations of all directions. Lists of alpha and beta give their numbers to those that take one, in
/// order.
std::vector<Nonlinearity> activations_of(const Call& c, std::vector<std::string> usual, std::size_t directions) {
  std::vector<std::string> names;
  for (std::size_t d = 0; d < directions; ++d) names.insert(names.end(), usual.begin(), usual.end());
  const std::size_t count = names.size();
  names = c.words("activations", names);
  c.require(names.size() == count, "activations has ", names.size(), " names, it must have ", count);
  const std::vector<double> alphas = c.numbers("activation_alpha", {}), betas = c.numbers("activation_beta", {});
  std::size_t next_alpha = 0, next_beta = 0;
  std::vector<Nonlinearity> all;
  for (const std::string& name : names) {
    const auto* known =
        std::ranges::find_if(named_activations, [&](const auto& each) { return same_word(each.name, name); });
    c.require(known != std::end(named_activations), "the activation `", name, "` is not known");
    const bool takes_alpha = known->alpha != 0, takes_beta = known->beta != 0 || known->name == "Affine";
    const double a = takes_alpha && next_alpha < alphas.size() ? alphas[next_alpha++] : known->alpha;
    const double b = takes_beta && next_beta < betas.size() ? betas[next_beta++] : known->beta;
    all.push_back([f = known->f, a, b](const Tensor& x) { return f(x, a, b); });
  }
  return all;
}

/// The parts of a network, as its op names it.
struct Network {
  std::int64_t gates;
  std::vector<int> order;          // gate k here is gate order[k] of ONNX
  std::vector<std::string> usual;  // activations of one direction
  RecurrentResult (*run)(const Tensor&, const RecurrentWeights&, const RecurrentRun&);
};

/// Row `direction` of an input [directions, ...], if it is given.
Tensor of_direction(const Call& c, int input, std::size_t direction) {
  if (!c.has(input)) return {};
  const Tensor& x = c[input];
  c.require(x.shape().rank() >= 2 && x.shape()[0] > static_cast<std::int64_t>(direction), "input ", input, " is ",
            x.spec(), ", which has no row for direction ", direction);
  return x[static_cast<std::int64_t>(direction)];
}

/// Parts of `units` along axis 0, in another order.
Tensor reordered(const Tensor& x, const std::vector<int>& order, std::int64_t units) {
  std::vector<Tensor> parts;
  for (int gate : order) parts.push_back(slice_axis(x, 0, gate * units, units, "gates"));
  return parts.size() == 1 ? parts[0] : concat(parts);
}

RecurrentWeights weights_of(const Call& c, const Network& n, std::size_t direction, std::int64_t units) {
  const auto kernel = [&](int input) {
    const Tensor x = of_direction(c, input, direction);
    c.require(x.shape().rank() == 2 && x.shape()[0] == n.gates * units, "input ", input, " is ", c[input].spec(),
              ", it must be [directions, ", n.gates * units, ", ...] for a hidden_size of ", units);
    return transpose(reordered(x, n.order, units));
  };
  RecurrentWeights w{.kernel = kernel(1), .recurrent_kernel = kernel(2)};
  if (const Tensor both = of_direction(c, 3, direction); both.defined()) {
    c.require(both.shape() == Shape{2 * n.gates * units}, "B is ", c[3].spec(), ", it must be [directions, ",
              2 * n.gates * units, "]");
    w.bias = reordered(both, n.order, units);
    w.recurrent_bias = reordered(slice_axis(both, 0, n.gates * units, n.gates * units, "B"), n.order, units);
  }
  if (n.gates == 4) {  // i o f -> i f o
    if (const Tensor p = of_direction(c, 7, direction); p.defined()) {
      c.require(p.shape() == Shape{3 * units}, "P is ", c[7].spec(), ", it must be [directions, ", 3 * units, "]");
      w.peephole = reordered(p, {0, 2, 1}, units);
    }
  }
  return w;
}

/// x, or with layout = 1 x with its first two dimensions exchanged.
Tensor exchanged(const Tensor& x, bool exchange) {
  if (!exchange || !x.defined()) return x;
  std::vector<int> order{1, 0};
  for (int i = 2; i < x.shape().rank(); ++i) order.push_back(i);
  return transpose(x, order);
}

/// Y [time, directions, batch, units], Y_h and Y_c [directions, batch, units]; with layout = 1 the batch comes first.
Results recurrent(const Call& c, const Network& n) {
  const std::string direction = c.word("direction", "forward");
  c.require(direction == "forward" || direction == "reverse" || direction == "bidirectional", "direction is `",
            direction, "`, it must be forward, reverse or bidirectional");
  const std::size_t directions = direction == "bidirectional" ? 2 : 1;
  const bool batch_first = c.version() >= 14 && c.flag("layout");
  c.require(c[2].shape().rank() == 3, "R is ", c[2].spec(), ", it must have 3 dimensions");
  const std::int64_t units = c.integer("hidden_size", c[2].shape()[2]);
  c.require(units > 0 && units < std::int64_t{1} << 32 && units == c[2].shape()[2], "hidden_size is ", units, ", R is ",
            c[2].spec());
  const std::vector<Nonlinearity> f = activations_of(c, n.usual, directions);
  const Tensor x = exchanged(c[0], batch_first);
  std::vector<Tensor> sequences, states, cells;
  for (std::size_t d = 0; d < directions; ++d) {
    const Nonlinearity* own = &f[d * n.usual.size()];
    const auto initial = [&](int input) {
      const Tensor given = exchanged(c.optional(input), batch_first);
      if (!given.defined()) return given;
      c.require(given.shape().rank() == 3 && given.shape()[0] == static_cast<std::int64_t>(directions), "input ", input,
                " is ", c[input].spec(), ", it must be a state of ", directions, " directions");
      return given[static_cast<std::int64_t>(d)];
    };
    RecurrentRun run{.initial_state = initial(5),
                     .initial_cell = n.gates == 4 ? initial(6) : Tensor(),
                     .sequence_lengths = c.optional(4),
                     .reverse = direction == "reverse" || d == 1,
                     .clip = c.number("clip", 0),
                     .reset_after = c.flag("linear_before_reset"),
                     .couple_input_forget = c.flag("input_forget")};
    if (n.gates == 1) run.activation = own[0];
    else run.recurrent_activation = own[0], run.activation = own[1];
    if (n.gates == 4) run.cell_activation = own[2];
    const RecurrentResult result = n.run(x, weights_of(c, n, d, units), run);
    sequences.push_back(result.sequence);
    states.push_back(result.state);
    cells.push_back(result.cell);
  }
  Tensor y = stack(sequences, 1);
  if (batch_first) y = transpose(y, {2, 0, 1, 3});
  Results results{y, exchanged(stack(states), batch_first)};
  if (n.gates == 4) results.push_back(exchanged(stack(cells), batch_first));
  return results;
}

const Network rnn_network{1, {0}, {"Tanh"}, simple_rnn}, gru_network{3, {0, 1, 2}, {"Sigmoid", "Tanh"}, gru},
    lstm_network{4, {0, 2, 3, 1}, {"Sigmoid", "Tanh", "Tanh"}, lstm};  // i o f c -> i f c o

const Table networks_table{
    {"GRU", {7, 14, 22}, rounded_once([](const Call& c) { return recurrent(c, gru_network); })},
    {"LSTM", {7, 14, 22}, rounded_once([](const Call& c) { return recurrent(c, lstm_network); })},
    {"RNN", {7, 14, 22}, rounded_once([](const Call& c) { return recurrent(c, rnn_network); })},
};

}  // namespace
}  // namespace gradus::onnx
