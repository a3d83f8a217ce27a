// Shows: REINFORCE (Williams 1992) on a cart that balances a pole: a policy that acts step by step, and its gradient.
// Prints: how long the pole stands, every 50 episodes: at most 200 steps, at the end 195 on average.
#include <gradus/gradus.h>
#include <random>
using namespace gradus;

/// The cart of Barto, Sutton and Anderson (1983), as in Gym's CartPole-v0.
class CartPole {
 public:
  Tensor reset() {
    std::uniform_real_distribution<float> small(-0.05f, 0.05f);
    x_ = small(engine_), speed_ = small(engine_), angle_ = small(engine_), turn_ = small(engine_);
    return state();
  }
  /// The state after 0.02 s, and whether the pole still stands.
  std::pair<Tensor, bool> step(bool right) {
    const float sine = std::sin(angle_), cosine = std::cos(angle_);
    const float push = ((right ? 10 : -10) + 0.05f * turn_ * turn_ * sine) / 1.1f;
    const float turning = (9.8f * sine - cosine * push) / (0.5f * (4.0f / 3 - 0.1f * cosine * cosine / 1.1f));
    x_ += 0.02f * speed_, speed_ += 0.02f * (push - 0.05f * turning * cosine / 1.1f);
    angle_ += 0.02f * turn_, turn_ += 0.02f * turning;
    return {state(), std::abs(x_) < 2.4f && std::abs(angle_) < 0.2095f};
  }

 private:
  Tensor state() const { return constant({x_, speed_, angle_, turn_}); }
  std::mt19937 engine_{1};
  float x_ = 0, speed_ = 0, angle_ = 0, turn_ = 0;
};

int main() {
  set_seed(1);
  Sequential policy{Dense(64, relu), Dense(2)};
  policy.build({f32, {any_size, 4}});
  Adam optimizer({.learning_rate = 1e-2});
  auto act = function([&](Tensor state) { return random::categorical(policy(expand_dims(state, 0)), 1); });
  auto learn = function([&](Tensor states, Tensor actions, Tensor returns) {
    const Tensor advantage = (returns - reduce_mean(returns)) / (reduce_std(returns) + 1e-6);
    GradientTape tape;
    const Tensor minus_log = sparse_categorical_crossentropy(actions, policy(states), from_logits);
    const Loss loss = Loss::mean(minus_log * advantage);
    optimizer.apply_gradients(tape.gradient(loss, policy.trainable_variables()));
    return loss;
  });

  CartPole cart;
  double average = 0;
  for (int episode = 1; episode <= 400; ++episode) {
    std::vector<Tensor> states{cart.reset()};
    std::vector<int> actions;
    for (bool stands = true; stands && actions.size() < 200;) {
      actions.push_back(static_cast<int>(act(states.back()).item()));
      Tensor next;
      std::tie(next, stands) = cart.step(actions.back() == 1);
      states.push_back(next);
    }
    states.pop_back();
    std::vector<float> returns(actions.size(), 1);
    for (auto i = std::ssize(returns) - 2; i >= 0; --i) returns[i] += 0.99f * returns[i + 1];
    learn(stack(states), from_values(actions, {std::ssize(actions)}), from_values(returns, {std::ssize(returns)}));
    average += (static_cast<double>(actions.size()) - average) * std::max(0.05, 1.0 / episode);
    if (episode % 50 == 0) print("episode", episode, "stands", average);
  }
  check(average > 190, "the pole stands");
}
