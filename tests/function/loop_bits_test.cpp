/// Loops with their gradients, computed in every way: each gives the same bits. And what is left out of them.
#include <gtest/gtest.h>
#include <cstring>
#include "gradus/backend/cpu/isa.h"
#include "gradus/base/rooms.h"
#include "gradus/function/function.h"
#include "gradus/gradients/functional.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/recurrent.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "tests/instruction_sets.h"
#include "tests/threads.h"

namespace gradus::loop_bits_test {
namespace {

using Loss = std::function<Tensor(const Tensor& x, const Tensor& w, const Tensor& u)>;

struct Case {
  const char* name;
  Loss loss;
  Shape x, w, u;  // x: [time, batch, inputs] or what the loop goes through; u: what multiplies the state
  DType dtype = f32;
};

Tensor weighted(const Tensor& y) {
  const Tensor wide = cast(y, computed_in(y.dtype()));
  return reduce_sum(wide * (0.1F + sin(wide)));
}

Tensor seen(const RecurrentResult& r) {
  Tensor sum = weighted(r.sequence) + 2 * weighted(r.state);
  return r.cell.defined() ? sum + weighted(r.cell) : sum;
}

Loss lstm_with(RecurrentRun how) {
  return [how](const Tensor& x, const Tensor& w, const Tensor& u) {
    return seen(lstm(x, {.kernel = w, .recurrent_kernel = u}, how));
  };
}
Tensor last_state(const Tensor& x, const Tensor& w, const Tensor& u) {
  return weighted(lstm(x, {.kernel = w, .recurrent_kernel = u}).state);
}
Tensor gru_after(const Tensor& x, const Tensor& w, const Tensor& u) {
  return seen(gru(x, {.kernel = w, .recurrent_kernel = u}));
}
Tensor gru_before(const Tensor& x, const Tensor& w, const Tensor& u) {
  return seen(gru(x, {.kernel = w, .recurrent_kernel = u}, {.reset_after = false}));
}
Tensor simple(const Tensor& x, const Tensor& w, const Tensor& u) {
  return seen(simple_rnn(x, {.kernel = w, .recurrent_kernel = u}));
}
Tensor two_layers(const Tensor& x, const Tensor& w, const Tensor& u) {
  const RecurrentResult first = simple_rnn(x, {.kernel = w, .recurrent_kernel = u});
  return seen(simple_rnn(first.sequence, {.kernel = u, .recurrent_kernel = u}, {.reverse = true}));
}
Tensor lengths(const Tensor& x, const Tensor& w, const Tensor& u) {
  const Tensor of_batch = mod(iota({x.shape()[1]}, i64), x.shape()[0] + 1);
  return seen(lstm(x, {.kernel = w, .recurrent_kernel = u}, {.sequence_lengths = of_batch}));
}
/// The square of a gradient: three loops, of which each computes again what those before it did.
Tensor second_order(const Tensor& x, const Tensor& w, const Tensor& u) {
  return reduce_sum(square(gradient([&](Tensor t) { return simple(t, w, u); }, x)));
}
/// Rows of the state meet: in a product from the left, in a sum over them, or turned about.
Tensor rows_meet(const Tensor& x, const Tensor& w, const Tensor& u) {
  const auto body = [&](Tensor h, Tensor row) {
    const Tensor next = tanh(matmul(w, matmul(h, u)) + row - reduce_mean(h, {.axis = {0}, .keepdims = true}));
    return std::pair{next, reduce_sum(next)};
  };
  const auto [last, sums] = scan(body, x[0], x);
  return weighted(last) + reduce_sum(sums);
}
Tensor rows_turn(const Tensor& x, const Tensor& w, const Tensor& u) {
  const auto body = [&](Tensor h, Tensor row) {
    const Tensor next = tanh(matmul(reverse(h, {0}), u) + matmul(row, w));
    return std::pair{next, next};
  };
  const auto [last, all] = scan(body, x[0], x);
  return weighted(last) + weighted(all);
}
/// Carries of different heights, that change places, and one that nothing changes.
Tensor several_carries(const Tensor& x, const Tensor& w, const Tensor& u) {
  using State = std::tuple<Tensor, Tensor, Tensor, Tensor>;
  const auto body = [&](Tensor a, Tensor b, Tensor c, Tensor d, Tensor row) {
    const Tensor next = tanh(matmul(b, u) + matmul(row, w) * c);
    return std::pair{State{b, next, c, tanh(d + 1)}, concat({next, a}, 1)};
  };
  const Tensor taller = concat({x[0], x[0]}, 0);
  const auto [last, all] = scan(body, State{x[0], x[0] * 2, x[0] * 3, taller}, x);
  return weighted(all) + weighted(std::get<0>(last)) + weighted(std::get<1>(last)) + weighted(std::get<3>(last));
}
Tensor nested(const Tensor& x, const Tensor& w, const Tensor& u) {
  const auto outer = [&](Tensor h, Tensor row) {
    const auto inner = [&](Tensor g, Tensor each) {
      const Tensor next = tanh(matmul(g, u) + matmul(row, w) * each);
      return std::pair{next, next};
    };
    const auto [last, all] = scan(inner, h, x[0]);
    return std::pair{last, reduce_sum(all, {.axis = {0}})};
  };
  const auto [last, all] = scan(outer, x[0] * 0.5F, x);
  return weighted(last) + weighted(all);
}
Tensor unbounded_while(const Tensor& x, const Tensor& w, const Tensor& u) {
  const auto [last, count] =
      while_loop([](Tensor, Tensor i) { return i < 5; },
                 [&](Tensor h, Tensor i) { return std::tuple{tanh(matmul(h, u) + matmul(x[0], w)), i + 1}; },
                 std::tuple{x[0], fill({}, 0, i64)});
  return weighted(last);
}
Tensor bounded_while(const Tensor& x, const Tensor& w, const Tensor& u) {
  const auto [last, count] =
      while_loop([](Tensor, Tensor i) { return i < 4; },
                 [&](Tensor h, Tensor i) { return std::tuple{tanh(matmul(h, u) + matmul(x[0], w)), i + 1}; },
                 std::tuple{x[0], fill({}, 0, i64)}, {.max_iterations = 6});
  return weighted(last);
}
/// Softmax along rows, columns in halves, and a whole matrix of elements that no row owns.
Tensor attends(const Tensor& x, const Tensor& w, const Tensor& u) {
  const auto body = [&](Tensor h, Tensor row) {
    const Tensor scores = matmul(h, transpose(row)),
                 p = exp(scores - reduce_max(scores, {.axis = {1}, .keepdims = true}));
    const Tensor read = matmul(p / reduce_sum(p, {.axis = {1}, .keepdims = true}), matmul(row, w));
    const std::int64_t half = h.shape()[1] / 2;
    const Tensor next =
        tanh(matmul(read, u) + concat({slice_within(h, -1, half, half), slice_within(h, -1, 0, half)}, 1));
    return std::pair{next, reduce_sum(next, {.axis = {1}})};
  };
  const auto [last, sums] = scan(body, x[0], x);
  return weighted(last) + weighted(sums);
}

const Case cases[] = {
    {"lstm", lstm_with({}), {9, 37, 5}, {5, 64}, {16, 64}},
    {"lstm_of_one_example", lstm_with({}), {3, 1, 5}, {5, 20}, {5, 20}},
    {"lstm_of_no_example", lstm_with({}), {3, 0, 5}, {5, 20}, {5, 20}},
    {"lstm_of_no_place", lstm_with({}), {0, 4, 5}, {5, 20}, {5, 20}},
    {"lstm_of_one_place", lstm_with({}), {1, 32, 5}, {5, 64}, {16, 64}},
    {"lstm_of_odd_units", lstm_with({}), {4, 40, 3}, {3, 52}, {13, 52}},
    {"lstm_backwards", lstm_with({.reverse = true, .clip = 0.5}), {5, 33, 4}, {4, 68}, {17, 68}},
    {"lstm_with_lengths", lengths, {5, 33, 4}, {4, 68}, {17, 68}},
    {"lstm_of_its_last_state", last_state, {6, 64, 8}, {8, 128}, {32, 128}},
    {"lstm_of_bf16", lstm_with({}), {4, 32, 8}, {8, 64}, {16, 64}, bf16},
    {"lstm_of_f16", lstm_with({}), {3, 32, 6}, {6, 28}, {7, 28}, f16},
    {"lstm_of_f64", lstm_with({}), {3, 24, 6}, {6, 64}, {16, 64}, f64},
    {"lstm_of_wide_rows", lstm_with({}), {3, 48, 4}, {4, 1024}, {256, 1024}},
    {"gru", gru_after, {7, 34, 6}, {6, 48}, {16, 48}},
    {"gru_reset_before", gru_before, {7, 34, 6}, {6, 48}, {16, 48}},
    {"simple_rnn", simple, {8, 50, 6}, {6, 19}, {19, 19}},
    {"two_layers", two_layers, {6, 32, 16}, {16, 16}, {16, 16}},
    {"second_order", second_order, {4, 32, 6}, {6, 16}, {16, 16}},
    {"second_order_of_f64", second_order, {3, 5, 2}, {2, 3}, {3, 3}, f64},
    {"rows_meet", rows_meet, {5, 32, 16}, {32, 32}, {16, 16}},
    {"rows_meet_for_long", rows_meet, {3, 320, 320}, {320, 320}, {320, 320}},
    {"rows_turn", rows_turn, {5, 32, 16}, {16, 16}, {16, 16}},
    {"several_carries", several_carries, {5, 33, 16}, {16, 16}, {16, 16}},
    {"nested", nested, {4, 16, 16}, {16, 16}, {16, 16}},
    {"bounded_while", bounded_while, {2, 32, 16}, {16, 16}, {16, 16}},
    {"unbounded_while", unbounded_while, {1, 9, 8}, {8, 8}, {8, 8}},
    {"attends", attends, {4, 24, 16}, {16, 16}, {16, 16}},
};

struct Run {
  int threads = 2;
  FunctionOptions options = {};
};

/// The loss and its gradients, one after the other.
std::vector<float> values_of(const Case& c, const Run& run) {
  const Threads scope(run.threads);
  const auto draw = [&](const Shape& shape, std::uint64_t seed) {
    return cast(random::normal(shape, {.mean = 0, .stddev = 0.4, .seed = seed}), c.dtype);
  };
  const auto f = function(
      [&](Tensor x, Tensor w, Tensor u) {
        const auto gradients = gradient(c.loss, {x, w, u});
        Tensors all{reshape(c.loss(x, w, u), {1})};
        for (const Tensor& each : gradients) all.push_back(reshape(cast(each, all[0].dtype()), {-1}));
        return concat(all, 0);
      },
      run.options);
  const Tensor x = draw(c.x, 1), w = draw(c.w, 2), u = draw(c.u, 3);
  f(x, w, u).observed();  // may be interpreted
  return cast(f(x, w, u), f32).to_vector<float>();
}

class LoopBits : public testing::TestWithParam<Case> {
 protected:
  static void expect_equal(const std::vector<float>& a, const std::vector<float>& b, const std::string& way) {
    ASSERT_EQ(a.size(), b.size()) << way;
    for (std::size_t i = 0; i < a.size(); ++i)
      ASSERT_EQ(std::memcmp(&a[i], &b[i], sizeof(float)), 0)
          << way << ": element " << i << " is " << a[i] << ", not " << b[i];
  }
};

TEST_P(LoopBits, InEveryWay) {
  const std::vector<float> want = values_of(GetParam(), {.options = {.run_eagerly = true}});
  for (int threads : {1, 2, 3})
    expect_equal(values_of(GetParam(), {.threads = threads}), want, text(threads, " threads"));
  for (const char* off : {"residuals", "rows"})
    expect_equal(values_of(GetParam(), {.options = {.disable = {off}}}), want, text("without ", off));
}
TEST_P(LoopBits, OnAvx2) {
  using namespace cpu_backend;
  if (widest_isa() != Isa::avx512) GTEST_SKIP() << "this processor has one of them";
  const std::vector<float> want = values_of(GetParam(), {});
  const IsaScope narrow(narrowest_isa());
  expect_equal(values_of(GetParam(), {}), want, "AVX2");
}
TEST_P(LoopBits, OfOpenSizes) {
  const Case& c = GetParam();
  Shape open = c.x;
  open.set(0, any_size);
  open.set(1, any_size);
  const std::string name = c.name;
  if (name == "nested" || name.starts_with("rows_meet") || name == "lstm_with_lengths" || name == "attends")
    GTEST_SKIP() << "it reads sizes, or they have to agree";
  expect_equal(values_of(c, {.options = {.input_signature = {{c.dtype, open}, {c.dtype, c.w}, {c.dtype, c.u}}}}),
               values_of(c, {.threads = 1}), "open sizes");
}
INSTANTIATE_TEST_SUITE_P(Cases, LoopBits, testing::ValuesIn(cases), [](const auto& row) { return row.param.name; });

/// How often kernels with this op run in a call.
double runs_of(std::string_view op, const Loss& loss, const Tensors& in, std::vector<std::string> disable) {
  const auto f = function([&](Tensor x, Tensor w, Tensor u) { return gradient(loss, {x, w, u})[2]; },
                          {.disable = std::move(disable), .profile = true});
  for (int call = 0; call < 4; ++call) f(in[0], in[1], in[2]).observed();
  double runs = 0;
  for (const Kernel& kernel : f.explain().kernels)
    if (std::ranges::find(kernel.ops, op) != kernel.ops.end()) runs += kernel.runs;
  return runs;
}

TEST(Residuals, ProductsAreNotComputedAgain) {
  const Tensors in{random::normal({7, 32, 8}), random::normal({8, 64}), random::normal({16, 64})};
  EXPECT_EQ(runs_of("matmul", last_state, in, {"residuals"}) - runs_of("matmul", last_state, in, {}), 7);
  EXPECT_EQ(runs_of("tanh", last_state, in, {"residuals"}) - runs_of("tanh", last_state, in, {}), 7);
}

}  // namespace
}  // namespace gradus::loop_bits_test
