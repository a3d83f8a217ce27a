/// Rows of the recurrent networks, against plain loops over time, examples and units.
#include <cmath>
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/recurrent.h"
#include "tests/ops/rows.h"

namespace gradus::rows::rows_recurrent {
namespace {

const Tensor& given(const Tensor& x) {
  (void)x.spec();
  return x;
}

double squash(double x) { return 1 / (1 + std::exp(-x)); }

using Vector = std::vector<double>;
std::size_t number(std::int64_t i) { return static_cast<std::size_t>(i); }

/// v' m, for m: [rows, columns].
Vector times(const Vector& v, const Array& m) {
  Vector out(number(m.shape[1]));
  for (std::size_t i = 0; i < v.size(); ++i)
    for (std::size_t j = 0; j < out.size(); ++j) out[j] += v[i] * m.values[i * out.size() + j];
  return out;
}
Vector plus(Vector a, const Vector& b) {
  for (std::size_t i = 0; i < b.size(); ++i) a[i] += b[i];
  return a;
}
Vector row_of(const Array& x, std::int64_t row) {
  const auto n = number(x.shape[-1]);
  const auto begin = x.values.begin() + static_cast<std::ptrdiff_t>(number(row) * n);
  return {begin, begin + static_cast<std::ptrdiff_t>(n)};
}

struct State {
  Vector h, c;
};
using Cell = std::function<State(const Vector& x, const State& before)>;

/// What rows look at: the sequence + 2 * the last state + 3 * the last cell.
Tensor seen(const RecurrentResult& r) {
  const Tensor y = r.sequence + 2 * r.state;
  return r.cell.defined() ? y + 3 * r.cell : y;
}

struct Loop {
  std::int64_t units;
  const Array *state = nullptr, *cell = nullptr, *lengths = nullptr;
  bool reverse = false;
  bool has_cell = false;

  Array operator()(const Array& x, const Cell& step) const {
    const std::int64_t time = x.shape[0], batch = x.shape[1];
    Array out{{time, batch, units}, Vector(number(time * batch * units))};
    for (std::int64_t b = 0; b < batch; ++b) {
      State s{state ? row_of(*state, b) : Vector(number(units)), cell ? row_of(*cell, b) : Vector(number(units))};
      const auto length = lengths ? static_cast<std::int64_t>(lengths->values[number(b)]) : time;
      for (std::int64_t k = 0; k < length; ++k) {
        const std::int64_t t = reverse ? length - 1 - k : k;
        s = step(row_of(x, t * batch + b), s);
        for (std::int64_t u = 0; u < units; ++u) out.values[number((t * batch + b) * units + u)] = s.h[number(u)];
      }
      for (std::int64_t t = 0; t < time; ++t)
        for (std::int64_t u = 0; u < units; ++u)
          out.values[number((t * batch + b) * units + u)] += 2 * s.h[number(u)] + (has_cell ? 3 * s.c[number(u)] : 0);
    }
    return out;
  }
};

Row recurrent(std::string name, std::vector<Operand> operands, std::vector<std::vector<Shape>> shapes,
              std::function<Tensor(In)> apply, std::function<Array(Arrays)> reference) {
  Row row{.name = std::move(name), .covers = {"scan"}, .apply = std::move(apply), .operands = std::move(operands)};
  row.shapes = std::move(shapes);
  row.reference = std::move(reference);
  row.tolerance = 64;
  row.magnitude = 4;
  row.slack = 4;
  row.takes_narrow = row.name == "lstm" || row.name == "gru" || row.name == "simple_rnn";  // loops take time
  return row;
}

const Operand lengths_of_three{.low = 0, .high = 3, .dtype = i32, .has_gradient = false};

std::vector<Row> simple() {
  const Row plain = recurrent(
      "simple_rnn", {{}, {}, {}, {}}, {{{3, 2, 2}, {2, 3}, {3, 3}, {3}}, {{5, 3, 4}, {4, 8}, {8, 8}, {8}}},
      [](In in) { return seen(simple_rnn(in[0], {.kernel = in[1], .recurrent_kernel = in[2], .bias = given(in[3])})); },
      [](Arrays in) {
        return Loop{.units = in[2].shape[0]}(in[0], [&](const Vector& x, const State& s) {
          Vector h = plus(plus(times(x, in[1]), times(s.h, in[2])), in[3].values);
          for (double& e : h) e = std::tanh(e);
          return State{h, {}};
        });
      });
  const Row backwards = recurrent(
      "simple_rnn backwards, clipped, within lengths", {{}, {}, {}, {}, lengths_of_three},
      {{{3, 2, 2}, {2, 3}, {3, 3}, {2, 3}, {2}}},
      [](In in) {
        return seen(simple_rnn(in[0], {.kernel = in[1], .recurrent_kernel = in[2]},
                               {.initial_state = given(in[3]),
                                .sequence_lengths = given(in[4]),
                                .reverse = true,
                                .clip = 1.5,
                                .activation = [](const Tensor& x) { return x * 0.5 + 0.25; }}));
      },
      [](Arrays in) {
        const Loop loop{.units = 3, .state = &in[3], .lengths = &in[4], .reverse = true};
        return loop(in[0], [&](const Vector& x, const State& s) {
          Vector h = plus(times(x, in[1]), times(s.h, in[2]));
          for (double& e : h) e = std::min(1.5, std::max(-1.5, e)) * 0.5 + 0.25;
          return State{h, {}};
        });
      });
  return {plain, backwards};
}

State gru_step(const Vector& x, const State& s, Arrays in, bool reset_after) {
  const std::size_t n = s.h.size();
  const Vector bias = row_of(in[3], 0), recurrent_bias = row_of(in[3], 1);
  const Vector a = plus(times(x, in[1]), bias), r = plus(times(s.h, in[2]), recurrent_bias);
  Vector reset(n), kept(n), h(n);
  for (std::size_t u = 0; u < n; ++u) {
    reset[u] = squash(a[n + u] + r[n + u]);
    kept[u] = reset[u] * s.h[u];
  }
  const Vector before = plus(times(kept, in[2]), recurrent_bias);
  for (std::size_t u = 0; u < n; ++u) {
    const double z = squash(a[u] + r[u]);
    const double inner = reset_after ? reset[u] * r[2 * n + u] : before[2 * n + u];
    h[u] = z * s.h[u] + (1 - z) * std::tanh(a[2 * n + u] + inner);
  }
  return {h, {}};
}

std::vector<Row> gated() {
  const auto row_of_kind = [](std::string name, bool reset_after, bool reverse) {
    return recurrent(
        std::move(name), {{}, {}, {}, {}}, {{{3, 2, 2}, {2, 6}, {2, 6}, {2, 6}}},
        [=](In in) {
          const RecurrentWeights weights{
              .kernel = in[1], .recurrent_kernel = in[2], .bias = in[3][0], .recurrent_bias = in[3][1]};
          return seen(gru(in[0], weights, {.reverse = reverse, .reset_after = reset_after}));
        },
        [=](Arrays in) {
          const Loop loop{.units = in[2].shape[0], .reverse = reverse};
          return loop(in[0], [&](const Vector& x, const State& s) { return gru_step(x, s, in, reset_after); });
        });
  };
  return {row_of_kind("gru", true, false), row_of_kind("gru that resets before, backwards", false, true)};
}

/// Without peepholes these are zeros.
State lstm_step(const Vector& x, const State& s, const Array& kernel, const Array& recurrent_kernel, const Vector& bias,
                const Vector& peephole, bool coupled) {
  const std::size_t n = s.h.size();
  const Vector a = plus(plus(times(x, kernel), times(s.h, recurrent_kernel)), bias);
  State next{Vector(n), Vector(n)};
  for (std::size_t u = 0; u < n; ++u) {
    const double i = squash(a[u] + peephole[u] * s.c[u]);
    const double f = coupled ? 1 - i : squash(a[n + u] + peephole[n + u] * s.c[u]);
    next.c[u] = f * s.c[u] + i * std::tanh(a[2 * n + u]);
    next.h[u] = squash(a[3 * n + u] + peephole[2 * n + u] * next.c[u]) * std::tanh(next.c[u]);
  }
  return next;
}

std::vector<Row> with_cell() {
  Row plain = recurrent(
      "lstm", {{}, {}, {}, {}}, {{{3, 2, 2}, {2, 8}, {2, 8}, {8}}},
      [](In in) { return seen(lstm(in[0], {.kernel = in[1], .recurrent_kernel = in[2], .bias = given(in[3])})); },
      [](Arrays in) {
        const Vector none(number(3 * in[2].shape[0]));
        return Loop{.units = in[2].shape[0], .has_cell = true}(in[0], [&](const Vector& x, const State& s) {
          return lstm_step(x, s, in[1], in[2], in[3].values, none, false);
        });
      });
  // The states of state and cell are one operand, and the lengths are constant: many operands take many tests.
  const Row full = recurrent(
      "lstm with peepholes, states and lengths", {{}, {}, {}, {}}, {{{3, 2, 2}, {2, 2, 8}, {6}, {2, 2, 2}}},
      [](In in) {
        return seen(lstm(
            in[0], {.kernel = in[1][0], .recurrent_kernel = in[1][1], .peephole = given(in[2])},
            {.initial_state = in[3][0], .initial_cell = in[3][1], .sequence_lengths = to_tensor({{2}, {2, 3}}, i32)}));
      },
      [](Arrays in) {
        const Vector none(8);
        const auto half = [](const Array& x, bool second) {
          const auto begin = x.values.begin() + (second ? static_cast<std::ptrdiff_t>(x.values.size() / 2) : 0);
          return Array{{x.shape[1], x.shape[2]},
                       Vector(begin, begin + static_cast<std::ptrdiff_t>(x.values.size() / 2))};
        };
        const Array kernel = half(in[1], false), recurrent_kernel = half(in[1], true);
        const Array state = half(in[3], false), cell = half(in[3], true), lengths{{2}, {2, 3}};
        const Loop loop{.units = 2, .state = &state, .cell = &cell, .lengths = &lengths, .has_cell = true};
        return loop(in[0], [&](const Vector& x, const State& s) {
          return lstm_step(x, s, kernel, recurrent_kernel, none, in[2].values, false);
        });
      });
  const Row coupled = recurrent(
      "lstm that couples its gates, backwards", {{}, {}, {}}, {{{3, 2, 2}, {2, 8}, {2, 8}}},
      [](In in) {
        return seen(
            lstm(in[0], {.kernel = in[1], .recurrent_kernel = in[2]}, {.reverse = true, .couple_input_forget = true}));
      },
      [](Arrays in) {
        const Vector none(8);
        return Loop{.units = 2, .reverse = true, .has_cell = true}(
            in[0], [&](const Vector& x, const State& s) { return lstm_step(x, s, in[1], in[2], none, none, true); });
      });
  const Tensor x = zeros({3, 2, 2}), kernel = zeros({2, 8}), narrow = zeros({2, 7});
  plain.mistakes = {
      {[=] { lstm(x, {.kernel = narrow, .recurrent_kernel = kernel}); }, "kernel"},
      {[=] { lstm(x, {.kernel = kernel, .recurrent_kernel = narrow}); }, "recurrent kernel"},
      {[=] { lstm(x, {.kernel = kernel, .recurrent_kernel = kernel, .bias = zeros({7})}); }, "bias"},
      {[=] { lstm(kernel, {.kernel = kernel, .recurrent_kernel = kernel}); }, "[time, batch, inputs]"},
      {[=] { lstm(x, {.kernel = kernel, .recurrent_kernel = kernel}, {.initial_state = zeros({2, 3})}); }, "state"},
      {[=] { lstm(x, {.kernel = kernel, .recurrent_kernel = kernel}, {.sequence_lengths = zeros({2})}); },
       "sequence_lengths"}};
  return {plain, full, coupled};
}

const bool registered = add_rows(simple()) && add_rows(gated()) && add_rows(with_cell());

}  // namespace
}  // namespace gradus::rows::rows_recurrent
