/// What the text of a step says of Variables: each that the step assigns hands its memory to its next value.
#pragma once
#include <gtest/gtest.h>
#include <regex>
#include <string>

namespace gradus::testing_plugin {

/// How many Variables the step assigns.
inline int expect_all_donated(const std::string& text) {
  const std::regex comment(R"(// %arg(\d+): Variable [^\n]*; result (\d+) is its next value\n)");
  int assigned = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), comment), end; it != end; ++it, ++assigned) {
    const std::string of = "%arg" + (*it)[1].str();
    const std::regex taken(of + R"(: tensor<[^>]*> \{tf\.aliasing_output = )" + (*it)[2].str() + " : i32\\}");
    EXPECT_TRUE(std::regex_search(text, taken)) << of << " is not donated to result " << (*it)[2] << "\n" << text;
  }
  const std::regex any(R"(tf\.aliasing_output = )");
  EXPECT_EQ(std::distance(std::sregex_iterator(text.begin(), text.end(), any), std::sregex_iterator()), assigned);
  return assigned;
}

}  // namespace gradus::testing_plugin
