/// Optimizer: one step for a list of variables, in this order: gradients are means, unscaled, checked for finiteness
/// under loss scaling, clipped; weights decay, update, moving averages, iterations += 1.
#pragma once
#include <memory>
#include "gradus/base/ranges.h"
#include "gradus/gradients/gradients.h"
#include "gradus/optim/schedule.h"

namespace gradus {

struct UpdateRule;

/// What the options of all optimizers have in common; optimizers.h says what they mean.
struct OptimizerSettings {
  Schedule learning_rate;
  double weight_decay = 0, clipnorm = 0, global_clipnorm = 0, clipvalue = 0;
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::int64_t ema_overwrite_frequency = 0;
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("learning_rate weight_decay clipnorm global_clipnorm clipvalue"),
                      Allowed::share("ema_momentum"), Allowed::not_negative("ema_overwrite_frequency")};
  }
};

/// Where variables of a group differ from the optimizer's options; what is not given is the optimizer's.
struct ParameterGroupOptions {
  std::optional<Schedule> learning_rate = {};
  std::optional<double> weight_decay = {};
  static constexpr auto ranges() { return std::array{Allowed::not_negative("learning_rate weight_decay")}; }
};

/// Owns state for the variables that it first sees; variables of another model are an InvalidArgument. A value: a copy
/// has slots of its own with the same values, for the same variables (see rebind); moving keeps. Variables of narrow
/// floats have slots in f32, and their step is computed in f32.
///
/// Of a table that was gathered from and has many rows the gradient is kept as rows. Rows that were not read have a
/// gradient of 0, and the step is that of the whole gradient, in Keras, too; where this leaves them as they are, only
/// rows that were read are touched: the variable under SGD without momentum, RMSprop without momentum, Adagrad and
/// Adadelta, and Adagrad's slot, unless weights decay or averages are written back. All else (other slots, averages,
/// the variable under the other optimizers) is walked through, though a gradient in full is never made. Outside of a
/// `function` such a step is computed at once.
class Optimizer {
 public:
  Optimizer(const Optimizer& other);
  Optimizer(Optimizer&& other) noexcept;
  /// One of the same kind and state writes the values into its own slots and takes over options, exclusions and groups,
  /// by the places of variables; one without state yet adopts; else InvalidArgument, as once a compiled step has taken
  /// in other ones than these. Learning rates that are numbers are values.
  Optimizer& operator=(const Optimizer& other);
  Optimizer& operator=(Optimizer&& other);
  ~Optimizer();

  void apply_gradients(const Gradients& gradients);
  /// InvalidArgument if the optimizer clips, too.
  void apply_gradients(const ClippedGradients& gradients);
  void apply_gradients(const Tensor&) = delete;                           // ask for tape.gradient(loss, Variables{v})
  void apply_gradients(const GradientsView&, const Variables&) = delete;  // gradients know their variables
  /// Takes more variables in, as when layers are unfrozen.
  void build(const Variables& variables);
  /// The state passes to the variables of a copied model; count and specs must agree.
  void rebind(const Variables& variables);

  /// These variables do not decay, nor do those whose name contains one of the texts, such as "bias" (Keras searches
  /// them as regular expressions). InvalidArgument once a compiled step has taken the decay in.
  void exclude_from_weight_decay(const Variables& variables);
  void exclude_from_weight_decay(std::vector<std::string> parts_of_names);
  /// From now on these variables have a learning rate or a decay of their own; clipping and all else is joint. The
  /// number of the group, from 1 on: 0 are the variables in none. InvalidArgument for a variable that is in another
  /// group, and once a compiled step has taken the groups in.
  std::size_t add_parameter_group(const Variables& variables, ParameterGroupOptions options);

  /// Updates so far.
  std::int64_t iterations() const;
  /// Steps under loss scaling whose gradients were not finite, and which changed nothing.
  std::int64_t skipped_steps() const;
  /// At the present iteration. OutOfRange for a group that there is not.
  double learning_rate(std::size_t group = 0) const;
  /// A number takes effect at the next step, compiled or not. A function is an InvalidArgument once a compiled step has
  /// taken in the one before. Groups that have no rate of their own follow group 0.
  void set_learning_rate(Schedule schedule, std::size_t group = 0);
  /// Writes the moving averages into the variables, as at the end of training. Without use_ema nothing happens.
  void finalize_variable_values(const Variables& variables);
  /// Iterations, skipped steps, learning rates, slots, averages, and the loss scales of the variables: for checkpoints.
  Variables variables() const;

  // For the rooms of the library.
  /// Those of variables() that are not there before the first step or build(): slots, averages, the count of skipped
  /// steps.
  Variables made_by_steps() const;
  /// Slots, averages of what the variables are now, and skipped steps, as before the first step.
  void start_anew();
  /// Whether it has state for variables, of which a copy for a copied model has to be told (rebind).
  bool is_built() const;
  /// Makes state for these variables if there is none yet; InvalidArgument if it is for others.
  void prepare(const Variables& variables);
  /// Runs `work`; steps that are traced in it are gone after it.
  void with_steps_that_end(const std::function<void()>& work);

 protected:
  Optimizer(std::shared_ptr<const UpdateRule> rule, OptimizerSettings settings);

 private:
  struct State;
  void apply(const GradientsView& gradients, const Tensor& finite);
  State& state() const;
  std::unique_ptr<State> state_;
};

}  // namespace gradus
