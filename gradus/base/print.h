/// Printing for programs and notebooks.
#pragma once
#include <iostream>

namespace gradus {

/// Values separated by blanks, then a new line, to standard output.
template <class... T> void print(const T&... values) {
  [[maybe_unused]] const char* separator = "";
  ((std::cout << separator << values, separator = " "), ...);
  std::cout << '\n';
}

}  // namespace gradus
