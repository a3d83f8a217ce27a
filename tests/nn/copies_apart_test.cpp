/// A copy of a model has layers of its own: where it would go on with those of the original, copying is an error.
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include "gradus/gradus.h"
#include "tests/errors.h"

namespace gradus::copies_apart_test {
namespace {

struct Part {
  Dense a{3};
  Tensor operator()(const Tensor& x) const { return a(x); }
};

struct PointsIntoVector {
  std::vector<Part> parts = std::vector<Part>(2);
  Part* last = &parts.back();
  Tensor operator()(const Tensor& x) const { return (*last)(parts[0](x)); }
};
struct RefersIntoVector {
  std::vector<Part> parts = std::vector<Part>(2);
  std::reference_wrapper<Part> last = parts.back();
  Tensor operator()(const Tensor& x) const { return last.get()(parts[0](x)); }
};
struct FindsByName {
  std::vector<Part> parts = std::vector<Part>(2);
  std::map<std::string, Part*> by_name{{"first", &parts[0]}, {"second", &parts[1]}};
  Tensor operator()(const Tensor& x) const { return (*by_name.at("second"))((*by_name.at("first"))(x)); }
};
struct ConstOwners {
  const std::vector<std::shared_ptr<Dense>> layers_{std::make_shared<Dense>(3)};
  Tensor operator()(const Tensor& x) const { return (*layers_[0])(x); }
};
class NamesPointee {
 public:
  auto layers() const { return std::tie(*a_); }
  Tensor operator()(const Tensor& x) const { return (*a_)(x); }

 private:
  std::shared_ptr<Dense> a_ = std::make_shared<Dense>(3);
};
class NamesPointers {
 public:
  std::vector<const Dense*> layers() const { return {a_.get()}; }
  Tensor operator()(const Tensor& x) const { return (*a_)(x); }

 private:
  std::shared_ptr<Dense> a_ = std::make_shared<Dense>(3);
};

template <class Net> class CopiesApart : public testing::Test {};
using Nets = testing::Types<PointsIntoVector, RefersIntoVector, FindsByName, ConstOwners, NamesPointee, NamesPointers>;
TYPED_TEST_SUITE(CopiesApart, Nets);

TYPED_TEST(CopiesApart, OrNotAtAll) {
  const Model<TypeParam> model;
  const Tensor x = ones({2, 3});
  model(x);
  EXPECT_GT(model.trainable_variables().size(), 0u);
  const std::string message = error_of<InvalidArgument>([&] { const Model<TypeParam> copy = model; });
  EXPECT_NE(message.find("of the copy would be"), std::string::npos) << message;
  EXPECT_THROW(Sequential{model}, InvalidArgument);
}

/// A layer that belongs to somebody else is not copied, and stays the same for both.
TEST(CopiesApart, WhatIsBorrowedStaysShared) {
  const Dense outside(3);
  struct Borrows {
    const Dense* outside;
    Dense own{3};
    Tensor operator()(const Tensor& x) const { return own((*outside)(x)); }
  };
  const Model<Borrows> model(Borrows{&outside});
  const Tensor x = ones({2, 3});
  model(x);
  const Model<Borrows> copy = model;
  EXPECT_EQ(copy->outside, &outside);
  copy->own.kernel().assign(zeros({3, 3}));
  EXPECT_NE(reduce_sum(abs(model->own.kernel())).item(), 0);
}

/// What a traced function copies and somebody keeps would hold the value of the first call for ever.
TEST(CopiesApart, InATraceTheyAreRefused) {
  const Sequential model{Dense(2)};
  const Tensor x = ones({1, 2});
  model(x);
  const auto returned = function([&](Tensor in) {
    const Sequential copy = model;
    GradientTape tape;
    const Tensor loss = reduce_sum(square(copy(in)));
    return tape.gradient(loss, copy.trainable_variables());
  });
  EXPECT_NE(error_of<InvalidArgument>([&] { returned(x); }).find("dense/kernel"), std::string::npos);
  Sequential kept;
  const auto assigned = function([&](Tensor in) {
    kept = model;
    return kept(in);
  });
  EXPECT_NE(error_of<InvalidArgument>([&] { assigned(x); }).find("was copied while"), std::string::npos);
  std::vector<Sequential> list;
  const auto appended = function([&](Tensor in) {
    list.push_back(model);
    return list.back()(in);
  });
  EXPECT_THROW(appended(x), InvalidArgument);
}

}  // namespace
}  // namespace gradus::copies_apart_test
