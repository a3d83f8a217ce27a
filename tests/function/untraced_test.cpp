/// Untraced: what is built in the midst of a trace is no part of it, whatever that is.
#include <gtest/gtest.h>
#include "gradus/function/function.h"
#include "gradus/graph/context.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/random_key.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/size_choice.h"
#include "gradus/ops/solve.h"

namespace gradus::untraced_test {
namespace {

using Program = std::function<Tensor(Tensor)>;
const FunctionOptions open_rows{.input_signature = {{f32, {any_size, 3}}}};

/// The first run builds, as layers do. Runs that are compared with it do not, and repeat its choices.
template <class Build> Program that_builds_once(Build build, Program then) {
  return [build, then, is_built = std::make_shared<bool>(false)](const Tensor& x) {
    if (!std::exchange(*is_built, true)) {
      const Untraced outside;
      build();
    }
    return then(x);
  };
}

const Program twice_if_chosen = [](const Tensor& x) { return SizeChoice::choose(true) ? x * 2 : x * 3; };

TEST(Untraced, ChoicesBySizeWithinAreNoneOfTheTrace) {
  for (const bool is_of_sizes : {false, true}) {
    const auto build = [=] { (is_of_sizes ? SizeChoice::decide : SizeChoice::choose)(false); };
    const Function<Program> f = function(that_builds_once(build, twice_if_chosen), open_rows);
    for (const std::int64_t n : {8, 9}) EXPECT_EQ(reduce_sum(f(ones({n, 3}))).item(), 6.0 * static_cast<double>(n));
    EXPECT_EQ(f.explain().variants, 1) << text(f.explain());
    EXPECT_TRUE(f.explain().retraces.empty()) << text(f.explain());
  }
}

/// The same with an op that chooses: least squares of a wide system.
TEST(Untraced, OpsThatChooseWithinAreNoneOfTheTrace) {
  const Tensor wide = random::normal({2, 4}, {.seed = 1}), sides = random::normal({2, 1}, {.seed = 2});
  Tensor built;
  const Function<Program> f =
      function(that_builds_once([&] { built = lstsq(wide, sides); }, twice_if_chosen), open_rows);
  for (const std::int64_t n : {8, 9}) EXPECT_EQ(reduce_sum(f(ones({n, 3}))).item(), 6.0 * static_cast<double>(n));
  EXPECT_EQ(built.shape(), (Shape{4, 1}));
}

TEST(Untraced, RegionsWithinDrawFromTheSeedOfAll) {
  const auto drawn = [] {
    return cond(fill({}, true, boolean), [] { return random::normal({3}); }, [] { return zeros({3}); });
  };
  set_seed(7);
  const Tensor wanted = drawn();
  set_seed(7);
  Tensor built;
  const Function<Program> f =
      function(that_builds_once([&] { built = drawn(); }, [&](const Tensor& x) { return x + built; }), open_rows);
  const Tensor sum = f(zeros({1, 3}));
  EXPECT_TRUE(bitwise_equal(built, wanted));
  EXPECT_TRUE(bitwise_equal(reshape(sum, {3}), wanted));
}

/// A call within Untraced has the keys of that call, whatever it is within.
TEST(Untraced, AFunctionWithinHasItsOwnKeysOpByOp) {
  const auto drawn_by = [](bool run_eagerly) {
    const Function<Program> inner =
        function(Program([](const Tensor& x) { return x + random::normal({3}) + random::normal({3}); }),
                 {.run_eagerly = run_eagerly});
    set_seed(7);
    const Untraced outside;
    return inner(zeros({3}));
  };
  EXPECT_TRUE(bitwise_equal(drawn_by(true), drawn_by(false)));
}

}  // namespace
}  // namespace gradus::untraced_test
