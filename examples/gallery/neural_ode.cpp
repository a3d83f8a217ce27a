// Shows: a neural differential equation (Chen et al. 2018): Runge and Kutta's method as a scan, and gradients through
// it. Prints: the loss, and the mean distance, over ten seconds, between a pendulum and the solution of the equation
// that was
//         learnt from pieces of a second of its way (below 0.1 of an amplitude of 2).
#include <gradus/gradus.h>
using namespace gradus;

/// The slope dy/dt at y, [n, 2].
struct Slope {
  Dense hidden{50, tanh}, out{2};
  Tensor operator()(const Tensor& y) const { return out(hidden(y)); }
};

/// y at all times [steps + 1] from y0 [n, 2]: [steps + 1, n, 2].
template <class F> Tensor odeint(const F& f, const Tensor& y0, const Tensor& times) {
  const auto n = times.shape()[0];
  const auto [last, later] = scan(
      [&](const Tensor& y, const Tensor& h) {
        const Tensor k1 = f(y), k2 = f(y + h / 2 * k1), k3 = f(y + h / 2 * k2), k4 = f(y + h * k3);
        const Tensor next = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
        return std::pair{next, next};
      },
      y0, times.rows(1, n) - times.rows(0, n - 1));
  return concat({expand_dims(y0, 0), later});
}

int main() {
  set_seed(1);
  const int points = 200, length = 20, batch = 32, steps = 1500;
  const Tensor times = linspace(0.0, 10.0, points), start = constant({{2.0, 0.0}});
  const auto pendulum = [](const Tensor& y) {  // of angle and speed, with friction
    const std::vector<Tensor> parts = split(y, 2, 1);
    return concat({parts[1], -4 * sin(parts[0]) - 0.2 * parts[1]}, 1);
  };
  const Tensor truth = squeeze(odeint(pendulum, start, times), {1});  // [points, 2]

  Model<Slope> slope;
  slope.build({f32, {any_size, 2}});
  Adam optimizer({.learning_rate = CosineDecay({.initial_learning_rate = 1e-2, .decay_steps = steps})});
  auto train_step = function([&](Tensor begin) {                                 // [batch]: where a piece begins
    const Tensor pieces = gather(truth, range(length) + expand_dims(begin, 1));  // [batch, length, 2]
    GradientTape tape;
    const Tensor found = odeint(slope, gather(truth, begin), times.rows(0, length));  // [length, batch, 2]
    const Tensor loss = reduce_mean(abs(transpose(found, {1, 0, 2}) - pieces));
    optimizer.apply_gradients(tape.gradient(loss, slope.trainable_variables()));
    return loss;
  });
  for (int step = 0; step <= steps; ++step) {
    const Tensor loss = train_step(random::integers({batch}, {.high = points - length}));
    if (step % 500 == 0) print("step", step, "loss", loss);
  }
  const Tensor learnt = squeeze(odeint(slope, start, times), {1});
  const double distance = reduce_mean(norm(learnt - truth, 2, {.axis = {1}})).item();
  print("mean distance", distance);
  check(distance < 0.1, "the equation swings as the pendulum does");
}
