/// Random programs, with their gradients, computed in every way: each gives the same bits.
#include <gtest/gtest.h>
#include <cstring>
#include "gradus/autodiff/vjp.h"
#include "gradus/base/threads.h"
#include "gradus/compiler/passes.h"
#include "gradus/function/traced_function.h"
#include "gradus/graph/context.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "tests/properties/check.h"

namespace gradus::properties {
namespace {

/// The outputs and the gradients of their weighted sum by all float arguments.
class Computation {
 public:
  explicit Computation(const Program& program) : program_(program), weighted_(program), at_(program.arguments()) {}

  const Tensors& arguments() const { return at_; }
  Tensors operator()(In arguments) const {
    const RecordingScope keep;  // op by op everything is computed at once
    Tensors results = program_(arguments), sources;
    for (const Tensor& x : arguments)
      if (is_floating(x.dtype())) sources.push_back(x);
    for (const Tensor& gradient : vjp(weighted_(results), sources))
      if (gradient.defined()) results.push_back(gradient);
    return results;
  }
  Tensors lazily() const {
    const Tensors results = (*this)(at_);
    for (const Tensor& x : results) x.observed();
    return results;
  }
  Tensors compiled(FunctionOptions options) const {
    TracedFunction function(std::move(options), nullptr, 0);
    return call(function);
  }
  Tensors call(TracedFunction& function) const {
    return function.call(at_, {}, [&](In in) { return Called{(*this)(in), {}}; }).tensors;
  }

 private:
  const Program& program_;
  Weighted weighted_;
  Tensors at_;
};

/// The first result that differs; nothing if none does.
std::string difference(const Tensors& got, const Tensors& want) {
  if (got.size() != want.size()) return text(got.size(), " results, not ", want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!bitwise_equal(got[i], want[i]))
      return text("result ", i, ", ", got[i].spec(), ", is off by ",
                  got[i].spec() == want[i].spec() ? max_abs_difference(got[i], want[i]) : NAN);
  return {};
}

struct Threads {
  explicit Threads(int n) { set_num_threads(n); }
  ~Threads() { set_num_threads(before); }
  const int before = num_threads();
};

/// Everything that must give the bits of the first lazy run, which is interpreted; the second one is compiled.
Outcome same_bits(const Program& program) {
  const Computation computation(program);
  const Tensors want = computation.lazily();
  const auto differs = [&](const std::string& way, const Tensors& got) {
    const std::string found = difference(got, want);
    return found.empty() ? holds() : fails(way + ": " + found);
  };
  std::vector<std::pair<std::string, std::function<Tensors()>>> ways{
      {"lazily again", [&] { return computation.lazily(); }},
      {"compiled", [&] { return computation.compiled({}); }},
      {"op by op", [&] { return computation.compiled({.run_eagerly = true}); }},
  };
  // All passes off, and one, since compiling takes most of the time.
  std::vector<std::string> passes;
  for (std::string_view pass : pass_names()) passes.emplace_back(pass);
  const std::string& one = passes[program.seed % passes.size()];
  ways.emplace_back("without " + one, [&] { return computation.compiled({.disable = {one}}); });
  ways.emplace_back("without any pass", [&] { return computation.compiled({.disable = passes}); });
  const int threads = std::array{1, 2, 3, 8}[program.seed / passes.size() % 4];
  ways.emplace_back(text("on ", threads, " threads"), [&] {
    const Threads scope(threads);
    return computation.compiled({});
  });
  for (const auto& [way, run] : ways)
    if (Outcome outcome = differs(way, run()); outcome.verdict == Outcome::Verdict::fails) return outcome;
  return holds();
}

TEST(Programs, GiveTheSameBitsInEveryWay) {
  expect_clean(survey(same_bits, {.smooth = false}, wanted_programs(100), 2'000'000));
}
TEST(Programs, OfLargeArraysGiveTheSameBitsInEveryWay) {
  expect_clean(
      survey(same_bits, {.smooth = false, .most_steps = 12, .largest = 40'000}, wanted_programs(100) / 10, 3'000'000));
}

/// Twice the operand, but one ulp more within a trace.
Tensor unlike_in_a_trace(In in) { return in[0] * (Context::current() ? std::nextafter(2.0, 3.0) : 2.0); }

TEST(Programs, AnOpWhoseTraceComputesSomethingElseIsFound) {
  std::vector<rows::Row> rows = rows::all_rows();
  for (int k = 0; k < 3; ++k) {
    rows.push_back(rows::elementwise("unlike", unlike_in_a_trace, {{-2, 2}}, {}));
    rows.back().dtypes = {f64};
  }
  const Census census = survey(same_bits, {.smooth = false, .most_steps = 6}, 300, 1, rows);
  ASSERT_EQ(census.findings.size(), 3);
  for (const std::string& finding : census.findings)
    EXPECT_NE(finding.find("= unlike", finding.find("shrunk: ")), std::string::npos) << finding;
}

/// The oracle computes in double, element by element, without any of what runs programs.
Outcome like_the_oracle(const Program& program) {
  const Tensors outputs = program(program.arguments());
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const Array got = rows::to_array(outputs[k]), &want = program.step(program.outputs[k]).value;
    if (got.shape != want.shape) return fails(text("output ", k, " has shape ", got.shape, ", not ", want.shape));
    for (std::size_t i = 0; i < want.values.size(); ++i)
      if (!(std::abs(got.values[i] - want.values[i]) <= 1e-7 * (1 + std::abs(want.values[i]))))
        return fails(text("output ", k, " element ", i, " is ", got.values[i], ", the oracle's ", want.values[i]));
  }
  return holds();
}

TEST(Programs, HaveTheValuesOfTheOracle) {
  expect_clean(survey(like_the_oracle, {.smooth = true}, wanted_programs(150), 4'000'000));
}

/// Tracing twice gives one text.
Outcome traced_twice(const Program& program) {
  const Computation computation(program);
  TracedFunction one({}, nullptr, 0), other({}, nullptr, 0);
  const std::string found = difference(computation.call(one), computation.call(other));
  if (!found.empty()) return fails("traced twice: " + found);
  if (one.explain().graph() != other.explain().graph()) return fails("traced twice, the graphs differ");
  return holds();
}

TEST(Programs, TracedTwiceAreOne) {
  expect_clean(survey(traced_twice, {.smooth = false}, wanted_programs(40), 5'000'000));
}

}  // namespace
}  // namespace gradus::properties
