/// What holds of every op row under transforms: vmap is the loop over rows, bit for bit, whichever operands vary, and
/// nested; jvp is the transpose of vjp; second derivatives are symmetric.
#include "gradus/autodiff/jvp.h"
#include "gradus/autodiff/vmap.h"
#include "gradus/graph/context.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "tests/ops/row_fixture.h"

namespace gradus::rows::row_transforms_test {
namespace {

class RowTransforms : public RowTest {
 protected:
  /// A row's op as one function of tensors with one result.
  TensorsFunction function() const {
    return [apply = row().apply](In in) { return Tensors{apply(in)}; };
  }
  /// Case c again, but with other numbers.
  Case another(const Case& c) { return make_case(c.shapes, c.dtype); }
  /// One case of each dtype and one of each shape that is small; a scalar operand of a reduction is no special one.
  std::vector<Case> small_cases() {
    std::vector<Case> cases;
    for (DType t : row().dtypes)
      for (const auto& shapes : row().shapes) {
        std::int64_t most = 0;
        for (const Shape& shape : shapes) most = std::max(most, shape.size());
        if (most <= 64 && (t == row().dtypes.front() || &shapes == &row().shapes.back()))
          cases.push_back(make_case(shapes, t));
      }
    return cases;
  }
};

struct Comparison {
  std::string what;
  Tensor got, want;
};

void expect_same_bits(const std::vector<Comparison>& all) {
  for (const Comparison& c : all) EXPECT_TRUE(bitwise_equal(c.got, c.want)) << c.what << c.got << " and " << c.want;
}

/// All comparisons are recorded before any is observed.
TEST_P(RowTransforms, VmapIsTheLoop) {
  constexpr std::int64_t n = 3;
  std::vector<Comparison> all;
  for (const Case& c : small_cases()) {
    const std::vector<Case> rows{c, another(c), another(c)};
    const std::size_t operands = c.inputs.size();
    for (std::uint32_t mask = 1; mask < 1u << operands; ++mask) {
      Tensors xs;
      std::vector<bool> varies;
      std::vector<Tensors> of_row(n);
      for (std::size_t i = 0; i < operands; ++i) {
        varies.push_back(mask >> i & 1);
        std::vector<Tensor> parts;
        for (std::size_t r = 0; r < n; ++r) {
          parts.push_back(rows[varies[i] ? r : 0].inputs[i]);
          of_row[r].push_back(parts.back());
        }
        xs.push_back(varies[i] ? stack(parts) : c.inputs[i]);
      }
      const Vectorized got = vmap(function(), xs, varies, n);
      std::vector<Tensor> want;
      for (const Tensors& in : of_row) want.push_back(row().apply(in));
      all.push_back({text(row().name, " of ", c.dtype, " ", listed(c.shapes), "varying operands ", mask, ": "),
                     got.varies[0] ? got.results[0] : repeat_rows(got.results[0], n), stack(want)});
    }
  }
  expect_same_bits(all);
}

/// Operands alternate: the outer map runs over all of them, the inner one over the first, then over the others.
TEST_P(RowTransforms, NestedVmapIsTheLoop) {
  if (row().operands.empty()) GTEST_SKIP() << "no operands";
  constexpr std::size_t outer = 2, inner = 3;
  std::vector<Comparison> all;
  for (const Case& c : small_cases()) {
    if (c.dtype != row().dtypes.front()) continue;
    for (const bool first : {true, false}) {
      if (!first && c.inputs.size() == 1) continue;
      std::vector<bool> everything(c.inputs.size(), true), some(c.inputs.size());
      for (std::size_t i = 0; i < some.size(); ++i) some[i] = (i == 0) == first;
      std::vector<std::vector<Case>> cases(outer);
      for (auto& of_row : cases)
        for (std::size_t k = 0; k < inner; ++k) of_row.push_back(another(c));
      Tensors xs;
      std::vector<Tensor> want;
      for (std::size_t i = 0; i < some.size(); ++i) {
        std::vector<Tensor> parts;
        for (const auto& of_row : cases) {
          std::vector<Tensor> within;
          for (const Case& each : of_row) within.push_back(each.inputs[i]);
          parts.push_back(some[i] ? stack(within) : within[0]);
        }
        xs.push_back(stack(parts));
      }
      for (const auto& of_row : cases)
        for (const Case& each : of_row) {
          Tensors in;
          for (std::size_t i = 0; i < some.size(); ++i) in.push_back((some[i] ? each : of_row[0]).inputs[i]);
          want.push_back(row().apply(in));
        }
      const Vectorized got = vmap(
          [&](In rows) {
            Vectorized each = vmap(function(), rows, some, inner);
            return each.varies[0] ? each.results : Tensors{repeat_rows(each.results[0], inner)};
          },
          xs, everything, outer);
      Shape shape = want[0].shape();
      shape.insert(0, inner);
      shape.insert(0, outer);
      all.push_back(
          {text(row().name, " ", listed(c.shapes), first ? "inner map over the first: " : "over the others: "),
           got.varies[0] ? got.results[0] : repeat_rows(got.results[0], outer), reshape(stack(want), shape)});
    }
  }
  expect_same_bits(all);
}

struct Numbers {
  std::string what;
  Tensor got, want, size;  // scalars
};

/// |got - want| <= tolerance * size
void expect_close(const std::vector<Numbers>& all, double tolerance) {
  for (const Numbers& n : all) EXPECT_NEAR(n.got.item(), n.want.item(), tolerance * (1 + n.size.item())) << n.what;
}

/// <a, b>, and the sum of what it adds up.
Tensor dot(const Tensor& a, const Tensor& b) { return reduce_sum(a * b); }
Tensor size_of(const Tensor& a, const Tensor& b) { return reduce_sum(abs(a * b)); }

/// <u, J v> = <J' u, v>
TEST_P(RowTransforms, JvpIsTheTransposeOfVjp) {
  if (!has_gradients() || !row().smooth) GTEST_SKIP() << "no gradient";
  const RecordingScope keep;
  std::vector<Numbers> all;
  for (const auto& shapes : row().shapes) {
    if (!worth_differences(shapes)) continue;
    const Case c = make_case(shapes, f64);
    const Tensor y = row().apply(c.inputs), u = noise(y);
    for (const Tensor& x : sources(c.inputs, f64)) {
      const Tensor v = noise(x), pulled = vjp(y, {&x, 1}, u)[0], pushed = Pushforward(y, x)(v);
      if (!pushed.defined()) {  // of a function that is constant, piece by piece
        EXPECT_EQ(max_abs_difference(pulled, zeros_like(x)), 0) << row().name;
        continue;
      }
      ASSERT_EQ(pushed.spec(), y.spec());
      const Tensor again = Pullback(y, x)(u);
      all.push_back({text(row().name, " ", listed(shapes)), dot(u, pushed), dot(pulled, v), size_of(u, pushed)});
      all.push_back(
          {text(row().name, " recorded ", listed(shapes)), dot(again, v), dot(pulled, v), size_of(pulled, v)});
    }
  }
  expect_close(all, 1e-13);
}

/// v' H w = w' H v for the scalar function <weights, f(x)>.
TEST_P(RowTransforms, SecondOrderIsSymmetric) {
  if (!has_gradients()) GTEST_SKIP() << "no gradient";
  const RecordingScope keep;
  std::vector<Numbers> all;
  for (const auto& shapes : row().shapes) {
    if (!worth_differences(shapes)) continue;
    const Case c = make_case(shapes, f64);
    const Tensor y = row().apply(c.inputs), weights = noise(y);
    for (const Tensor& x : sources(c.inputs, f64)) {
      const Tensor v = noise(x), w = noise(x);
      const Pushforward second(vjp(y, {&x, 1}, weights)[0], x);
      const Tensor hv = second(v), hw = second(w);
      if (!hv.defined()) continue;  // f is linear in x
      all.push_back({text(row().name, " ", listed(shapes)), dot(w, hv), dot(v, hw), size_of(w, hv) + size_of(v, hw)});
    }
  }
  expect_close(all, 1e-12);
}

/// vmap of the pullback is the loop over cotangents, bit for bit: the rules of what gradients are made of.
TEST_P(RowTransforms, VmapOfGradientsIsTheLoop) {
  if (!has_gradients()) GTEST_SKIP() << "no gradient";
  const RecordingScope keep;
  constexpr std::int64_t n = 2;
  std::vector<Comparison> all;
  for (const auto& shapes : row().shapes) {
    if (!worth_differences(shapes)) continue;
    const Case c = make_case(shapes, f32);
    const Tensor y = row().apply(c.inputs);
    const std::vector<Tensor> seeds{noise(y), noise(y)};
    for (const Tensor& x : sources(c.inputs, f32)) {
      const Tensor stacked = stack(seeds);
      const auto pull = [&](In u) { return vjp(y, {&x, 1}, u[0]); };
      std::vector<Tensor> want;
      for (const Tensor& u : seeds) want.push_back(vjp(y, {&x, 1}, u)[0]);
      all.push_back({text(row().name, " ", listed(shapes)), vmap(pull, {&stacked, 1}, n)[0], stack(want)});
    }
  }
  expect_same_bits(all);
}

INSTANTIATE_TEST_SUITE_P(Ops, RowTransforms, ::testing::ValuesIn(all_rows()), test_name);

}  // namespace
}  // namespace gradus::rows::row_transforms_test
