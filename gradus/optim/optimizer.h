/// Optimizer: one step for a list of variables, in this order: gradients are means, clipped, weights decay, update,
/// iterations += 1.
#pragma once
#include <memory>
#include "gradus/gradients/gradients.h"
#include "gradus/optim/schedule.h"

namespace gradus {

struct UpdateRule;

/// Owns state for the variables that it first sees; variables of another model are an InvalidArgument. A value: a copy
/// has slots of its own with the same values, for the same variables (see rebind); moving keeps.
class Optimizer {
 public:
  Optimizer(const Optimizer& other);
  Optimizer(Optimizer&& other) noexcept;
  /// One of the same kind and state writes the values into its own slots; one without state yet adopts; else
  /// InvalidArgument.
  Optimizer& operator=(const Optimizer& other);
  Optimizer& operator=(Optimizer&& other);
  ~Optimizer();

  void apply_gradients(const Gradients& gradients);
  /// InvalidArgument if the optimizer clips, too.
  void apply_gradients(const ClippedGradients& gradients);
  /// Takes more variables in, as when layers are unfrozen.
  void build(const Variables& variables);
  /// The state passes to the variables of a copied model; count and specs must agree.
  void rebind(const Variables& variables);

  /// Updates so far.
  std::int64_t iterations() const;
  /// At the present iteration.
  double learning_rate() const;
  /// A number takes effect at the next step, compiled or not. A function is an InvalidArgument once a compiled step has
  /// taken in the one before.
  void set_learning_rate(Schedule schedule);
  /// Iterations, learning rate, slots: for checkpoints.
  Variables variables() const;

  // For the rooms of the library.
  /// Makes state for these variables if there is none yet; InvalidArgument if it is for others.
  void prepare(const Variables& variables);
  /// Runs `work`; steps that are traced in it are gone after it.
  void with_steps_that_end(const std::function<void()>& work);

 protected:
  struct Settings {
    Schedule learning_rate;
    double weight_decay = 0, clipnorm = 0, global_clipnorm = 0;
  };
  Optimizer(std::shared_ptr<const UpdateRule> rule, Settings settings);

 private:
  struct State;
  void apply(const GradientsView& gradients);
  State& state() const;
  std::unique_ptr<State> state_;
};

}  // namespace gradus
