// Shows: a Wasserstein GAN whose critic has a gradient penalty (Gulrajani et al. 2017): a gradient within the gradient.
// Prints: the distance between real and made points that the critic sees, which falls; what share of 2000 made points
//         lies near one of the eight places of the real ones (above 0.7), and the fewest near one place (above 80).
#include <gradus/gradus.h>
using namespace gradus;

// Places on a circle, [n, 2] of numbers [n] from 0 to 7.
Tensor places(const Tensor& numbers) {
  const Tensor angle = cast(numbers, f32) * (2 * std::numbers::pi / 8);
  return 2 * stack({cos(angle), sin(angle)}, 1);
}
Tensor real_points(int n) {
  // Each draw has a statement: C++ leaves open which one of an expression is the first.
  const Tensor numbers = random::integers({n}, {.high = 8});
  return places(numbers) + random::normal({n, 2}, {.stddev = 0.1});
}

int main() {
  set_seed(1);
  const int batch = 256, noise_size = 4, steps = 1000, critic_steps = 5;
  Sequential generator({Dense(64, relu), Dense(64, relu), Dense(2)}, {.name = "generator"});
  Sequential critic({Dense(64, leaky_relu), Dense(64, leaky_relu), Dense(1)}, {.name = "critic"});
  Adam generator_optimizer({.learning_rate = 5e-4, .beta_1 = 0.5, .beta_2 = 0.9});
  Adam critic_optimizer({.learning_rate = 5e-4, .beta_1 = 0.5, .beta_2 = 0.9});

  const auto gradient_penalty = [&](const Tensor& real, const Tensor& fake) {
    const Tensor between = real + random::uniform({batch, 1}) * (fake - real);
    GradientTape tape;
    tape.watch(between);
    const Tensor gradients = tape.gradient(reduce_sum(critic(between)), between);
    return reduce_mean(square(norm(gradients, 2, {.axis = {1}}) - 1));
  };
  auto critic_step = function([&](Tensor real) {
    const Tensor fake = generator(random::normal({batch, noise_size}));
    GradientTape tape;
    const Tensor distance = reduce_mean(critic(real)) - reduce_mean(critic(fake));
    const Tensor loss = gradient_penalty(real, fake) - distance;
    critic_optimizer.apply_gradients(tape.gradient(loss, critic.trainable_variables()));
    return distance;
  });
  auto generator_step = function([&] {
    GradientTape tape;
    const Tensor loss = -reduce_mean(critic(generator(random::normal({batch, noise_size}))));
    generator_optimizer.apply_gradients(tape.gradient(loss, generator.trainable_variables()));
    return loss;
  });

  for (int step = 0; step <= steps; ++step) {
    Tensor distance;
    for (int i = 0; i < critic_steps; ++i) distance = critic_step(real_points(batch));
    generator_step();
    if (step % 100 == 0) print("step", step, "distance", distance);
  }

  const Tensor made = generator(random::normal({2000, noise_size}));
  const Tensor near = norm(expand_dims(made, 1) - places(range(8)), 2, {.axis = {2}}) < 0.5;  // [2000, 8]
  const Tensor of_each = reduce_sum(cast(near, f32), {.axis = {0}});
  const double share = reduce_sum(of_each).item() / 2000, fewest = reduce_min(of_each).item();
  print("near a place", share, "fewest near one", fewest);
  check(share > 0.7 && fewest > 80, "all eight places are made");
}
