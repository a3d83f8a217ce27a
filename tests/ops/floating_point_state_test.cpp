/// The bits of every op row are those of any floating-point state of the caller: its rounding, its traps, its treatment
/// of subnormals; and the caller keeps its state.
#include "tests/floating_point_states.h"
#include "gradus/function/function.h"
#include "gradus/autodiff/vjp.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/random.h"
#include "gradus/ops/elementwise.h"
#include "tests/ops/row_fixture.h"

namespace gradus::rows::floating_point_state_test {
namespace {

class FloatingPointStates : public RowTest {
 protected:
  /// The result, and the gradients of what has any.
  Tensors results(In in, DType t) const {
    Tensors made{row().apply(in)};
    if (!has_gradients() || !is_floating(made[0].dtype()) || sources({in.begin(), in.end()}, t).empty()) return made;
    for (Tensor& slope : vjp(made[0], sources({in.begin(), in.end()}, t), ones_like(made[0])))
      made.push_back(std::move(slope));
    return made;
  }
};

TEST_P(FloatingPointStates, ChangeNoBit) {
  for (DType t : {row().dtypes.front(), row().dtypes.back()}) {
    const Case c = make_case(row().shapes.back(), t);
    const auto work = [&] {
      set_seed(3);
      Tensors made = results(c.inputs, t);
      auto compiled = gradus::function([&](Tensor scale) {
        Tensors in = c.inputs;
        for (Tensor& x : in)
          if (x.dtype() == f32) x = x * scale;
        return results(in, t).front();
      });
      made.push_back(compiled(constant(1.0F)));
      for (const Tensor& x : made)
        if (x.defined()) x.observed();
      return made;
    };
    expect_same_in_all_states(work);
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, FloatingPointStates, ::testing::ValuesIn(all_rows()), test_name);

}  // namespace
}  // namespace gradus::rows::floating_point_state_test
