// A project of somebody else, which has the library from the wheel: a compiled function and its gradient.
#include <gradus/gradus.h>

#include <iostream>

int main() {
  auto cube = gradus::function([](gradus::Tensor x) { return x * x * x; });
  const gradus::Tensor x = gradus::constant(2.0f);
  gradus::GradientTape tape;
  tape.watch(x);
  const gradus::Tensor y = cube(x);
  std::cout << tape.gradient(y, x).item() << "\n";
}
