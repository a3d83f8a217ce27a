/// Fields of aggregates are found, named and visited in order.
#include <gtest/gtest.h>
#include <array>
#include <memory>
#include <string>
#include <vector>
#include "gradus/base/reflect.h"

namespace reflect_test {
struct Empty {};
struct Seven {
  int first = 1;
  bool second = true;
  std::string third = "three";
  double fourth = 4;
  std::vector<int> fifth = {5};
  long sixth = 6;
  char seventh = '7';
};
struct NoDefault {
  explicit NoDefault(int) {}
};
struct WithoutDefaults {
  int first = 1;
  NoDefault second;
  NoDefault third;
  std::array<int, 3> fourth = {};
};
struct Explicit {
  explicit Explicit(bool = false) {}
  int value = 2;
};
struct WithExplicit {  // which {} does not make
  int first = 1;
  Explicit second;
  Explicit third;
};
struct Base {
  int base;
};
struct NoFields {};
struct OfBase : Base {
  int own;
};
struct OfEmptyBase : NoFields {
  int own;
};
struct OfReference {
  int& other;
};
struct WithConstructor {
  WithConstructor() {}
  int own = 1;
};
struct Many {
  int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae, last = 32;
};
}  // namespace reflect_test

TEST(Reflect, CountsFields) {
  EXPECT_EQ(gradus::reflect::field_count<reflect_test::Empty>, 0);
  EXPECT_EQ(gradus::reflect::field_count<reflect_test::Seven>, 7);
}

TEST(Reflect, CountsFieldsWithoutDefaultsAndMany) {
  EXPECT_EQ(gradus::reflect::field_count<reflect_test::WithoutDefaults>, 4);
  EXPECT_EQ(gradus::reflect::field_count<reflect_test::Many>, 32);
  EXPECT_EQ(std::get<31>(gradus::reflect::tie(*std::make_unique<reflect_test::Many>())), 32);
}

TEST(Reflect, TellsWhatCannotBeTakenApart) {
  using namespace reflect_test;
  EXPECT_EQ(gradus::reflect::field_count<WithExplicit>, 3);
  EXPECT_TRUE(gradus::reflect::is_reflected<WithExplicit> && gradus::reflect::is_reflected<Seven>);
  EXPECT_TRUE(gradus::reflect::is_reflected<Empty> && gradus::reflect::is_reflected<Base>);
  EXPECT_FALSE(gradus::reflect::is_reflected<OfBase> || gradus::reflect::is_reflected<OfEmptyBase>);
  EXPECT_FALSE(gradus::reflect::is_reflected<OfReference> || gradus::reflect::is_reflected<WithConstructor>);
  std::string names;
  WithExplicit object{1, Explicit(), Explicit()};
  gradus::reflect::for_each_field(object, [&](std::string_view name, auto&) { names += std::string(name) + " "; });
  EXPECT_EQ(names, "first second third ");
}

TEST(Reflect, VisitsNamesInOrder) {
  reflect_test::Seven seven;
  std::string names;
  gradus::reflect::for_each_field(seven, [&](std::string_view name, auto&) { names += std::string(name) + " "; });
  EXPECT_EQ(names, "first second third fourth fifth sixth seventh ");
}
