// Shows: Gradus within a program that keeps it to itself: a header without it (trainer.h), and two trainers at once in
//        two threads.
// Prints: both losses (below 0.002). Each is, bit for bit, what the same trainer reaches alone.
#include <cmath>
#include <cstdio>
#include <thread>
#include "trainer.h"

int main() {
  std::vector<float> x, sine, bump;
  for (int i = 0; i < 512; ++i) {
    x.push_back(static_cast<float>(i) / 128 - 2);
    sine.push_back(std::sin(2 * x.back()));
    bump.push_back(std::exp(-4 * x.back() * x.back()));
  }
  const int epochs = 250;
  Trainer first(x, sine, 1), second(x, bump, 2);
  double first_loss = 0, second_loss = 0;
  std::thread one([&] { first_loss = first.train(epochs); });
  std::thread two([&] { second_loss = second.train(epochs); });
  one.join();
  two.join();
  std::printf("together: %g and %g\n", first_loss, second_loss);

  Trainer first_alone(x, sine, 1), second_alone(x, bump, 2);
  const double first_loss_alone = first_alone.train(epochs), second_loss_alone = second_alone.train(epochs);
  std::printf("alone:    %g and %g\n", first_loss_alone, second_loss_alone);

  const bool same = first_loss == first_loss_alone && second_loss == second_loss_alone &&
                    first.predict(x) == first_alone.predict(x) && second.predict(x) == second_alone.predict(x);
  if (!same) std::fprintf(stderr, "the two trainings have met\n");
  if (first_loss > 2e-3 || second_loss > 2e-3) std::fprintf(stderr, "the curves were not learnt\n");
  return same && first_loss < 2e-3 && second_loss < 2e-3 ? 0 : 1;
}
