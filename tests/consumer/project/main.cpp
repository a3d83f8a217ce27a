/// What a program outside the tree sees: the headers as installed, and a library in which nothing that registers
/// itself has been dropped.
#include <gradus/base/error.h>
#include <iostream>

int main() try {
  gradus::check(true, "the library is linked");
  std::cout << "gradus works\n";
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
