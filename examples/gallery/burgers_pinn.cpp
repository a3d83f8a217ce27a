// Shows: a network that solves Burgers' equation u_t + u u_x = nu u_xx, known by its residual alone (Raissi et al.
// 2019):
//        second derivatives within a training step.
// Prints: the loss, and the relative error against the exact solution at t = 1 (below 0.03).
#include <gradus/gradus.h>
using namespace gradus;

const double nu = 0.1 / std::numbers::pi;

// u(x, 1) at x = -0.9, -0.8 ... 0.9, by the transform of Cole and Hopf with 200 nodes of Gauss and Hermite, in NumPy.
const std::vector<float> exact_at_1 = {0.074244,  0.148330,  0.222089,  0.295324,  0.367777,  0.438973,  0.507104,
                                       0.559686,  0.501820,  -0.000000, -0.501820, -0.559686, -0.507104, -0.438973,
                                       -0.367777, -0.295324, -0.222089, -0.148330, -0.074244};

struct Solution {
  Dense first{32, tanh}, second{32, tanh}, third{32, tanh}, value{1};
  Tensor operator()(const Tensor& x, const Tensor& t) const {  // [n, 1] each
    return value(third(second(first(concat({x, t}, 1)))));
  }
};

int main() {
  set_seed(1);
  Model<Solution> u;
  const int steps = 3000;
  Adam optimizer({.learning_rate = CosineDecay({.initial_learning_rate = 5e-3, .decay_steps = steps})});

  const auto residual = [&](const Tensor& x, const Tensor& t) {
    GradientTape outer;
    outer.watch(x);
    GradientTape inner;
    inner.watch(x);
    inner.watch(t);
    const Tensor value = u(x, t);
    const auto [u_x, u_t] = inner.gradient(reduce_sum(value), {x, t});
    const Tensor u_xx = outer.gradient(reduce_sum(u_x), x);
    return u_t + value * u_x - nu * u_xx;
  };
  auto train_step = function([&] {
    const Tensor x = random::uniform({512, 1}, {.low = -1}), t = random::uniform({512, 1});
    const Tensor start_x = random::uniform({64, 1}, {.low = -1}), wall_t = random::uniform({64, 1});
    GradientTape tape;
    const Tensor inside = reduce_mean(square(residual(x, t)));
    const Tensor start = reduce_mean(square(u(start_x, zeros({64, 1})) + sin(std::numbers::pi * start_x)));
    const Tensor walls = reduce_mean(square(u(-ones({64, 1}), wall_t)) + square(u(ones({64, 1}), wall_t)));
    const Tensor loss = inside + start + walls;
    optimizer.apply_gradients(tape.gradient(loss, u.trainable_variables()));
    return loss;
  });
  for (int step = 0; step <= steps; ++step) {
    const Tensor loss = train_step();
    if (step % 500 == 0) print("step", step, "loss", loss);
  }

  const Tensor x = reshape(linspace(-0.9, 0.9, 19), {19, 1}), exact = from_values(exact_at_1, {19, 1});
  const double error = (norm(u(x, ones({19, 1})) - exact, 2) / norm(exact, 2)).item();
  print("relative error", error);
  check(error < 0.03, "the network solves the equation");
}
