/// Transforms of random programs: vmap is the loop over rows, jvp the transpose of vjp, a Jacobian the sum of both;
/// gradients are linear in the cotangent in every bit; C++ branches take the path of the lazy run.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include "gradus/autodiff/jvp.h"
#include "gradus/autodiff/vmap.h"
#include "gradus/gradients/functional.h"
#include "gradus/graph/context.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "tests/properties/computation.h"

namespace gradus::properties::transforms_test {
namespace {

/// Whether argument i is another one in each row.
std::vector<bool> varying(const Program& program, std::size_t arguments) {
  std::vector<bool> varies;
  for (std::size_t i = 0; i < arguments; ++i) varies.push_back(i == 0 || (program.seed >> i) % 3 != 0);
  return varies;
}

/// The program has an argument to map over.
bool is_mappable(const Program& program) { return !program.arguments().empty(); }

/// The arguments of one row: floats a little off, so that they stay in their domains.
Tensors arguments_of_row(const Computation& computation, const Program& program, const std::vector<bool>& varies,
                         std::int64_t row) {
  Tensors result = computation.arguments();
  const Tensors moves = noise(result, program.seed + static_cast<std::uint64_t>(row));
  for (std::size_t i = 0; i < result.size(); ++i)
    if (varies[i] && moves[i].defined()) result[i] = result[i] + moves[i] * 1e-5;
  return result;
}

struct Rows {
  std::vector<Tensors> each;  // the arguments of each row
  Tensors xs;                 // of all rows
};
Rows make_rows(const Computation& computation, const Program& program, const std::vector<bool>& varies,
               std::int64_t n) {
  Rows rows;
  for (std::int64_t r = 0; r < n; ++r) rows.each.push_back(arguments_of_row(computation, program, varies, r));
  for (std::size_t i = 0; i < varies.size(); ++i) {
    Tensors parts;
    for (const Tensors& row : rows.each) parts.push_back(row[i]);
    rows.xs.push_back(varies[i] ? stack(parts) : parts[0]);
  }
  return rows;
}

Tensors mapped(const Computation& computation, In xs, const std::vector<bool>& varies) {
  const std::int64_t n = xs[0].shape()[0];
  const Vectorized all = vmap([&](In in) { return computation(in); }, xs, varies, n);
  Tensors results;
  for (std::size_t k = 0; k < all.results.size(); ++k)
    results.push_back(all.varies[k] ? all.results[k] : repeat_rows(all.results[k], n));
  return results;
}

Tensors looped(const Computation& computation, const Rows& rows) {
  std::vector<Tensors> parts;
  for (const Tensors& row : rows.each) {
    const Tensors results = computation(row);
    parts.resize(results.size());
    for (std::size_t k = 0; k < results.size(); ++k) parts[k].push_back(results[k]);
  }
  Tensors results;
  for (const Tensors& part : parts) results.push_back(stack(part));
  return results;
}

Outcome vmap_is_the_loop(const Program& program) {
  if (!is_mappable(program)) return unclear();
  const Computation computation(program);
  const std::vector<bool> varies = varying(program, computation.arguments().size());
  const Rows rows = make_rows(computation, program, varies, 3);
  return same_bits("vmap against the loop", mapped(computation, rows.xs, varies), looped(computation, rows));
}

/// Random ops draw other numbers for each row.
std::vector<rows::Row> rows_without_chance() {
  std::vector<rows::Row> rows = rows::all_rows();
  std::erase_if(rows, [](const rows::Row& row) { return row.name.starts_with("random"); });
  return rows;
}

TEST(Transforms, VmapIsTheLoop) {
  expect_clean(survey(vmap_is_the_loop, {.smooth = false}, wanted_programs(150), 7'000'000, rows_without_chance()));
}

/// One function, called with 2, 3, 4 and 1 rows: from the second call on their number is a symbol.
Outcome any_number_of_rows(const Program& program) {
  if (!is_mappable(program)) return unclear();
  const Computation computation(program);
  const std::vector<bool> varies = varying(program, computation.arguments().size());
  TracedFunction function({}, nullptr, 0);
  for (std::int64_t n : {2, 3, 4, 1}) {
    const Tensors xs = make_rows(computation, program, varies, n).xs;
    const Tensors want = mapped(computation, xs, varies);
    for (const char* way : {"traced", "compiled"}) {  // the first call may be interpreted
      const Tensors got =
          function.call(xs, {}, [&](In in) { return Called{mapped(computation, in, varies), {}}; }).tensors;
      const Outcome outcome = same_bits(text(way, " with ", n, " rows"), got, want);
      if (outcome.verdict == Outcome::Verdict::fails) return outcome;
    }
  }
  return holds();
}

TEST(Transforms, CompiledForAnyNumberOfRows) {
  expect_clean(survey(any_number_of_rows, {.smooth = false, .most_steps = 15}, wanted_programs(20, 5), 8'000'000,
                      rows_without_chance()));
}

struct Pairing {
  double value = 0, size = 0;  // and the sum of what was added up
};
Pairing pairing(const Tensor& a, const Tensor& b) {
  Pairing result;
  const Array x = rows::to_array(a), y = rows::to_array(b);
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    result.value += x.values[i] * y.values[i];
    result.size += std::abs(x.values[i] * y.values[i]);
  }
  return result;
}
bool agree(const Pairing& a, const Pairing& b) {
  return std::abs(a.value - b.value) <= 1e-9 * (1e-3 + a.size + b.size);
}

/// What a rounding of u changes in <J' u, v>, the most of a few: much where large terms cancel.
double rounding_of(const Tensor& y, const Tensor& x, const Tensor& u, const Tensor& v) {
  const double value = pairing(vjp(y, {&x, 1}, u)[0], v).value;
  double most = 0;
  for (std::uint64_t seed : {1, 2, 3}) {
    const Tensor rounded = u + u * noise({&u, 1}, seed)[0] * 0x1p-50;
    most = std::max(most, std::abs(pairing(vjp(y, {&x, 1}, rounded)[0], v).value - value));
  }
  return most;
}

/// <u, J v> = <J' u, v>, and the Jacobian gives both.
Outcome transposed(const Program& program) {
  const RecordingScope keep;
  const Tensors at = program.arguments();
  const Tensor y = floats_of(program(at))[0], u = noise({&y, 1}, program.seed)[0];
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (!is_floating(at[i].dtype())) continue;
    const Tensor &x = at[i], v = noise({&x, 1}, program.seed + 7)[0];
    const Tensor pulled = vjp(y, {&x, 1}, u)[0], pushed = Pushforward(y, x)(v);
    if (!pulled.defined() || !pushed.defined()) continue;  // constant, perhaps piece by piece
    const auto differ = [&](const Pairing& a, const Pairing& b) {
      return !agree(a, b) && !(std::abs(a.value - b.value) <= 30 * rounding_of(y, x, u, v));
    };
    if (differ(pairing(u, pushed), pairing(pulled, v)))
      return fails(text("<u, J v> is ", pairing(u, pushed).value, ", <J' u, v> ", pairing(pulled, v).value));
    const auto f = [&](const Tensor& t) {
      Tensors arguments = at;
      arguments[i] = t;
      return reshape(floats_of(program(arguments))[0], {-1});  // whose Jacobian has no more than 8 dimensions
    };
    const Tensor matrix = reshape(jacobian(f, x), {y.shape().size(), x.shape().size()});
    const Tensor row = reshape(u, {-1, 1}), column = reshape(v, {1, -1});
    if (differ(pairing(broadcast_to(row, matrix.shape()), matrix * column), pairing(pulled, v)))
      return fails("the Jacobian gives another <u, J v>");
  }
  return holds();
}

TEST(Transforms, JvpIsTheTransposeOfVjp) {
  expect_clean(survey(transposed, {.smooth = true, .most_steps = 15}, wanted_programs(150), 9'000'000));
}

/// The smallest budget of a Jacobian, as the error for one byte names it; 0: a byte is enough.
std::size_t smallest_budget(const std::function<Tensor(JacobianOptions)>& matrix) {
  try {
    matrix({.max_bytes = 1}).observed();
  } catch (const ResourceExhausted& error) {
    const std::string message = error.what();
    const std::size_t end = message.rfind(" bytes above");
    return std::strtoull(message.data() + message.rfind(' ', end - 1) + 1, nullptr, 10);
  }
  return 0;
}

/// A Jacobian in chunks is the whole one, lazily and compiled, each within the smallest budget that it names.
Outcome chunked(const Program& program) {
  const Tensors at = program.arguments();
  const auto argument = std::ranges::find_if(at, [](const Tensor& x) { return is_floating(x.dtype()); });
  if (argument == at.end()) return holds();
  const auto f = [&](const Tensor& x) {
    Tensors arguments = at;
    arguments[static_cast<std::size_t>(argument - at.begin())] = x;
    return reshape(floats_of(program(arguments))[0], {-1});  // whose Jacobian has no more than 8 dimensions
  };
  const auto lazily = [&](JacobianOptions options) { return jacobian(f, *argument, options); };
  const auto compiled = [&](JacobianOptions options) {
    TracedFunction function({}, nullptr, 0);
    const auto traced = [&](In in) { return Called{{jacobian(f, in[0], options)}, {}}; };
    function.call({&*argument, 1}, {}, traced);  // which may be interpreted
    return function.call({&*argument, 1}, {}, traced).tensors[0];
  };
  const Tensor whole = lazily({});
  double size = 1;
  for (double x : rows::to_array(whole).values) size = std::max(size, std::abs(x));
  for (const std::function<Tensor(JacobianOptions)>& matrix : {std::function(lazily), std::function(compiled)}) {
    const std::size_t smallest = smallest_budget(matrix);
    for (std::size_t budget : {smallest, smallest * 2}) {
      if (budget == 0) continue;
      const double off = max_abs_difference(matrix({.max_bytes = budget}), whole);
      if (!(off <= 1e-12 * size)) return fails(text("in chunks of ", budget, " bytes, off by ", off));
    }
  }
  return holds();
}

TEST(Transforms, AJacobianInChunksIsTheWholeOne) {
  expect_clean(survey(chunked, {.smooth = true, .most_steps = 10}, wanted_programs(20, 10), 15'000'000));
}

/// Without what lies so near to 0 that terms of it may have fallen out of the range of numbers, which scaling moves.
Tensor within_range(const Tensor& x) {
  return where(abs(x) < std::numeric_limits<double>::min() * 0x1p60, zeros_like(x), x);
}

/// vjp(2^k u) = 2^k vjp(u), in every bit.
Outcome linear(const Program& program) {
  const Tensors at = program.arguments(), sources = floats_of(at);
  const Tensor y = floats_of(program(at))[0], u = noise({&y, 1}, program.seed)[0];
  const RecordingScope keep;
  const Tensors once = vjp(y, sources, u);
  for (double factor : {0x1p-40, 0x1p40}) {
    const Tensors scaled = vjp(y, sources, u * factor);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (!once[i].defined()) continue;
      const Outcome outcome = same_bits(text("scaled by ", factor), Tensors{within_range(scaled[i])},
                                        Tensors{within_range(once[i] * factor)});
      if (outcome.verdict == Outcome::Verdict::fails) return outcome;
    }
  }
  return holds();
}

TEST(Transforms, GradientsAreLinearInTheCotangent) {
  expect_clean(survey(linear, {.smooth = true}, wanted_programs(300), 10'000'000));
}

/// The program, then a branch on its weighted sum, and another one on what that gives.
Tensors branching(const Program& program, const Weighted& weighted, In in) {
  Tensors results = program(in);
  const Tensor sum = weighted(results);
  if (!sum.defined()) return results;
  Tensor y = sum;
  if (bool(sum > 0)) y = sin(sum) * sum;
  else y = square(sum) - 1;
  if (bool(y > 0.5)) y = y * 3;
  results.push_back(y);
  return results;
}

Outcome branches(const Program& program) {
  const Weighted weighted(program);
  const auto run = [&](In in) {
    const RecordingScope keep;
    Tensors results = branching(program, weighted, in);
    for (const Tensor& gradient : vjp(results.back(), floats_of(in)))
      if (gradient.defined()) results.push_back(gradient);
    return results;
  };
  TracedFunction function({}, nullptr, 0);
  const Tensors at = program.arguments(), moves = noise(at, program.seed);
  for (double step : {0.0, 1e-5, 0.0, 0.05, -0.05, 1e-5, 0.05, -0.05}) {
    Tensors arguments = at;
    for (std::size_t i = 0; i < at.size(); ++i)
      if (moves[i].defined()) arguments[i] = at[i] + moves[i] * step;
    const Tensors got = function.call(arguments, {}, [&](In in) { return Called{run(in), {}}; }).tensors;
    const Outcome outcome = same_bits(text("a branch, at step ", step), got, run(arguments));
    if (outcome.verdict == Outcome::Verdict::fails) return outcome;
  }
  return holds();
}

TEST(Transforms, BranchesTakeThePathOfTheLazyRun) {
  expect_clean(survey(branches, {.smooth = true, .most_steps = 10}, wanted_programs(20, 5), 11'000'000));
}

}  // namespace
}  // namespace gradus::properties::transforms_test
