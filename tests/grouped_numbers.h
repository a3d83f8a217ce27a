/// Numbers as a user writes them who groups digits: 12.345,5.
#pragma once
#include <locale>
#include <string>

namespace gradus {

class GroupedNumbers : public std::numpunct<char> {
 protected:
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

}  // namespace gradus
