/// Tensors of a trace that is over: each use is an InvalidArgument that names the function, and the layer if there is
/// one.
#include <gtest/gtest.h>
#include "gradus/gradus.h"
#include "gradus/graph/trace_names.h"
#include "tests/errors.h"

namespace gradus::finished_traces_test {
namespace {

/// A symbol of a function by this name, which was traced before, and of another one traced after it.
Tensor left_by(const std::string& name, const std::string& layer = {}) {
  Tensor left;
  const auto trace = [](const std::string& title, Tensor& kept, const std::string& scope) {
    const auto f = function(
        [&](const Tensor& x) {
          const std::optional<NameScope> within =
              scope.empty() ? std::optional<NameScope>() : std::optional<NameScope>(scope);
          kept = x * 2;
          return kept + 1;
        },
        {.name = title});
    f(ones({3}));
  };
  trace(name, left, layer);
  Tensor other;
  trace("another", other, {});
  return left;
}

TEST(FinishedTraces, EachUseNamesTheFunction) {
  const char* const origin = "it was made while function step was traced, and that call is over";
  const Tensor left = left_by("step");
  Variable v(zeros({3}));
  expect_error<InvalidArgument>([&] { left.to_vector<float>(); }, {origin});
  expect_error<InvalidArgument>([&] { (void)(left + 1); }, {origin});
  expect_error<InvalidArgument>([&] { v.assign(left); }, {origin});
  const auto f =
      function([&](const Tensor& x) { return cond(reduce_sum(x) > 0, [&] { return left; }, [&] { return x; }); });
  expect_error<InvalidArgument>([&] { f(ones({3})); }, {origin});
}

TEST(FinishedTraces, TheLayerIsNamed) {
  expect_error<InvalidArgument>([] { left_by("step", "tower/dense_1").to_vector<float>(); },
                                {"while function step was traced, in tower/dense_1, and that call is over"});
}

TEST(FinishedTraces, AFunctionWithoutANameIsAFunction) {
  expect_error<InvalidArgument>([] { left_by("").to_vector<float>(); }, {"while a function was traced"});
}

/// The names of the latest traces alone are kept.
TEST(FinishedTraces, NamesAreBounded) {
  const Tensor left = left_by("step");
  for (std::uint32_t id = 0; id < 300; ++id) name_trace(std::numeric_limits<std::uint32_t>::max() - id, "later");
  expect_error<InvalidArgument>([&] { left.to_vector<float>(); }, {"while a function was traced"});
}

}  // namespace
}  // namespace gradus::finished_traces_test
