/// Models that call themselves: an error that says so, in eager calls, in functions and while they are built.
#include <gtest/gtest.h>
#include "gradus/function/function.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/model.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "tests/errors.h"

namespace gradus::recursion_test {
namespace {

struct Endless {
  std::function<Tensor(const Tensor&)> again;
  Dense d{4};
  Tensor operator()(const Tensor& x) const { return again(d(x)); }
};

TEST(ModelsThatCallThemselves, AreAnError) {
  Model<Endless> model;
  model->again = [&](const Tensor& x) { return model(x); };
  expect_error<InvalidArgument>([&] { model(ones({2, 4})); }, {"deep"});
  auto f = function([&](Tensor x) { return model(x); });
  expect_error<InvalidArgument>([&] { f(ones({2, 4})); }, {"deep"});
}

struct Counted {
  std::function<Tensor(const Tensor&)> again;
  mutable int left = 3;
  Dense d{4};
  Tensor operator()(const Tensor& x) const { return left-- > 0 ? again(d(x)) : x; }
};

TEST(ModelsThatCallThemselves, MayEnd) {
  Model<Counted> model;
  model->again = [&](const Tensor& x) { return model(x); };
  EXPECT_EQ(model(ones({2, 4})).shape(), (Shape{2, 4}));
  EXPECT_EQ(model.variables().size(), 2u);
}

}  // namespace
}  // namespace gradus::recursion_test
