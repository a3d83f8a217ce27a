/// Fields of aggregates are found, named and visited in order.
#include <gtest/gtest.h>
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
}  // namespace reflect_test

TEST(Reflect, CountsFields) {
  EXPECT_EQ(gradus::reflect::field_count<reflect_test::Empty>, 0);
  EXPECT_EQ(gradus::reflect::field_count<reflect_test::Seven>, 7);
}

TEST(Reflect, VisitsNamesInOrder) {
  reflect_test::Seven seven;
  std::string names;
  gradus::reflect::for_each_field(seven, [&](std::string_view name, auto&) { names += std::string(name) + " "; });
  EXPECT_EQ(names, "first second third fourth fifth sixth seventh ");
}
