/// Printing for programs and notebooks.
#pragma once
#include <iostream>

namespace gradus {

/// Values separated by blanks, then a new line, to standard output. At once: what was printed is there, in a pipe or
/// file too, when an error ends the program.
template <class... T> void print(const T&... values) {
  [[maybe_unused]] const char* separator = "";
  ((std::cout << separator << values, separator = " "), ...);
  std::cout << std::endl;
}

}  // namespace gradus
