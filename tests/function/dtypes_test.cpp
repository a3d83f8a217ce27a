/// Variables of every dtype.
#include <gtest/gtest.h>
#include "gradus/function/function.h"
#include "gradus/function/variable.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"

namespace gradus::dtypes_test {
namespace {

TEST(DTypes, VariablesOfEveryTypeAreReadAssignedAndTraced) {
  for (const DType t : all_dtypes) {
    Variable v(full({3}, 1, t));
    EXPECT_EQ(v.dtype(), t);
    if (t == boolean) continue;
    auto step = function([&](const Tensor& x) {
      v.assign_add(x);
      return v.value() * 2;
    });
    for (int call = 1; call <= 3; ++call)
      EXPECT_EQ(cast(step(full({3}, 1, t)), f64).to_vector<double>(), (std::vector<double>(3, 2.0 * (call + 1)))) << t;
    EXPECT_EQ(cast(v.value(), i32).to_vector<std::int32_t>(), (std::vector<std::int32_t>{4, 4, 4}));
  }
}

}  // namespace
}  // namespace gradus::dtypes_test
