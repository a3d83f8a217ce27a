// A trainer for curves y = f(x). Who includes it needs no header of Gradus, nor C++20.
#pragma once
#include <memory>
#include <vector>

class Trainer {
 public:
  Trainer(const std::vector<float>& x, const std::vector<float>& y, unsigned seed);
  ~Trainer();
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;

  /// Returns the loss of the last epoch.
  double train(int epochs);
  std::vector<float> predict(const std::vector<float>& x) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};
