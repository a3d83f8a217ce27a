/// Random programs within regions: computed again for their gradient, in a branch, and as the body of a loop, against
/// the same program without.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include "gradus/autodiff/vjp.h"
#include "gradus/graph/context.h"
#include "gradus/ops/call.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "tests/properties/computation.h"

namespace gradus::properties::regions_test {
namespace {

using Made = std::function<Tensors(In arguments)>;

/// The results, and the gradients of their weighted sum by all float arguments; zeros where there are none.
Tensors with_gradients(const Made& f, const Weighted& weighted, In arguments) {
  const RecordingScope keep;
  Tensors results = f(arguments);
  const Tensor sum = weighted(results);
  const Tensors sources = floats_of(arguments);
  const Tensors gradients = sum.defined() ? vjp(sum, sources) : Tensors(sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i)
    results.push_back(gradients[i].defined() ? gradients[i] : zeros_like(sources[i]));
  return results;
}

/// Says which result is farther from the wanted one than rounding may take it.
std::string distance(In got, In want) {
  if (got.size() != want.size()) return text(got.size(), " results, not ", want.size());
  for (std::size_t k = 0; k < got.size(); ++k) {
    const Array a = rows::to_array(got[k]), b = rows::to_array(want[k]);
    if (a.shape != b.shape) return text("result ", k, " has shape ", a.shape, ", not ", b.shape);
    double size = 1e-6;
    for (double x : b.values) size = std::max(size, std::abs(x));
    for (std::size_t i = 0; i < a.values.size(); ++i)
      if (!(std::abs(a.values[i] - b.values[i]) <= 1e-10 * size))
        return text("result ", k, " element ", i, " is ", a.values[i], ", not ", b.values[i]);
  }
  return {};
}

/// `within` a region gives what `plain` gives: lazily and compiled alike in every bit, and in every bit or but for
/// rounding as without the region.
Outcome compare(const Program& program, const Made& within, const Made& plain, bool every_bit) {
  const Weighted weighted(program);
  const Tensors at = program.arguments();
  const Tensors want = with_gradients(plain, weighted, at), lazy = with_gradients(within, weighted, at);
  const std::string off = every_bit ? difference(lazy, want) : distance(lazy, want);
  if (!off.empty()) return fails("within a region: " + off);
  TracedFunction function({}, nullptr, 0);
  const auto traced = [&](In in) { return Called{with_gradients(within, weighted, in), {}}; };
  const Outcome once = same_bits("traced", function.call(at, {}, traced).tensors, lazy);
  if (once.verdict == Outcome::Verdict::fails) return once;
  return same_bits("compiled", function.call(at, {}, traced).tensors, lazy);
}

/// A region is on one device.
std::vector<rows::Row> rows_of_one_device() {
  std::vector<rows::Row> rows = rows::all_rows();
  std::erase_if(rows, [](const rows::Row& row) { return row.name == "to"; });
  return rows;
}

/// Of one output, as recompute_grad is for: with several, what their gradients share may be added up in another order.
Outcome recomputed_region(const Program& given) {
  Program program = given;
  program.outputs = {*std::ranges::find_if(given.outputs, [&](int i) { return is_floating(given.step(i).dtype); })};
  program = pruned(program);
  const Made within = [&](In in) { return recomputed("recompute_grad", in, program); };
  return compare(program, within, program, true);
}

TEST(Regions, RecomputedGiveTheSameBits) {
  expect_clean(survey(recomputed_region, {.smooth = false, .most_steps = 15}, wanted_programs(10, 5), 12'000'000,
                      rows_of_one_device()));
}

/// The arguments with every float moved a little.
Tensors moved(In in, double by) {
  Tensors result(in.begin(), in.end());
  for (Tensor& x : result)
    if (is_floating(x.dtype())) x = x + by * sin(x);
  return result;
}

Outcome branch(const Program& program) {
  const bool first = program.seed % 2;
  const Made within = [&](In in) {
    const Tensor predicate = reduce_sum(square(floats_of(in)[0])) >= (first ? 0.0 : 1e9);
    return detail::cond(predicate, [&](In) { return program(in); }, [&](In) { return program(moved(in, 1e-5)); });
  };
  const Made plain = [&](In in) { return program(first ? Tensors(in.begin(), in.end()) : moved(in, 1e-5)); };
  return compare(program, within, plain, false);
}

TEST(Regions, ABranchIsTheProgramInIt) {
  expect_clean(
      survey(branch, {.smooth = true, .most_steps = 12}, wanted_programs(8, 20), 13'000'000, rows_of_one_device()));
}

/// One step of a loop: all float arguments move along with what the program gives.
Tensors iterate(const Program& program, const Weighted& weighted, In in, const Tensor& rate) {
  const Tensor sum = tanh(weighted(program(in)));
  Tensors next(in.begin(), in.end());
  for (Tensor& x : next)
    if (is_floating(x.dtype())) x = x + cast(rate * sum, x.dtype()) * cos(x);
  return next;
}

/// The program after three steps of the loop.
Outcome loops(const Program& program) {
  if (floats_of(program.arguments()).empty()) return unclear();
  const Weighted weighted(program);
  const Tensor rates = constant({1e-5, -2e-5, 3e-5}, f64);
  const std::size_t n = program.arguments().size();
  const Made plain = [&](In in) {
    Tensors state(in.begin(), in.end());
    for (int k = 0; k < 3; ++k) state = iterate(program, weighted, state, rates[k]);
    return program(state);
  };
  const Made scanned = [&](In in) {
    Tensors state = detail::scan(
        [&](In x) {
          Tensors next = iterate(program, weighted, x.first(n), x[n]);
          next.push_back(x[n]);
          return next;
        },
        in, rates);
    state.pop_back();
    return program(state);
  };
  const Made repeated = [&](In in) {
    Tensors state(in.begin(), in.end());
    state.push_back(constant(0));
    state = detail::while_loop([n](In x) { return Tensors{x[n] < 3}; },
                               [&](In x) {
                                 const Tensor rate =
                                     where(equal(x[n], 1), full({}, -2e-5, f64),
                                           where(equal(x[n], 0), full({}, 1e-5, f64), full({}, 3e-5, f64)));
                                 Tensors next = iterate(program, weighted, x.first(n), rate);
                                 next.push_back(x[n] + 1);
                                 return next;
                               },
                               state, 5);
    state.pop_back();
    return program(state);
  };
  const Outcome outcome = compare(program, scanned, plain, false);
  return outcome.verdict == Outcome::Verdict::fails ? outcome : compare(program, repeated, plain, false);
}

TEST(Regions, LoopsAreTheProgramRepeated) {
  expect_clean(
      survey(loops, {.smooth = true, .most_steps = 8}, wanted_programs(5, 20), 14'000'000, rows_of_one_device()));
}

}  // namespace
}  // namespace gradus::properties::regions_test
