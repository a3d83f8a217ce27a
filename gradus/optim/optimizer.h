/// Optimizer: one step for a list of variables. Order of a step: gradients are means, unscaled, checked for finiteness
/// under loss scaling, clipped; then weight decay, update, moving averages, iterations += 1.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/gradients/gradients.h"
#include "gradus/optim/schedule.h"

namespace gradus {

struct UpdateRule;

/// Options that all optimizers share; optimizers.h describes them.
struct OptimizerSettings {
  Schedule learning_rate;                                                     // a number or a Schedule
  double weight_decay = 0, clipnorm = 0, global_clipnorm = 0, clipvalue = 0;  // decay, clipping
  bool use_ema = false;                                                       // keep moving averages of the variables
  double ema_momentum = 0.99;                                                 // decay rate of the averages
  std::int64_t ema_overwrite_frequency = 0;                                   // in steps; 0: never
  bool lazy = false;                                                          // tables: only rows with a gradient
  std::vector<std::pair<std::string, std::string>> said = {};                 // the class, and all options as text
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("learning_rate weight_decay clipnorm global_clipnorm clipvalue"),
                      Allowed::share("ema_momentum"), Allowed::not_negative("ema_overwrite_frequency")};
  }
};

/// Options of a group of variables; by default those of the optimizer.
struct ParameterGroupOptions {
  std::optional<Schedule> learning_rate = {};  // a number or a Schedule
  std::optional<double> weight_decay = {};     // decoupled weight decay
  static constexpr auto ranges() { return std::array{Allowed::not_negative("learning_rate weight_decay")}; }
};

/// An optimizer owns state for the variables that it first sees. Variables of another model are an InvalidArgument. It
/// is a value: a copy has slots of its own with the same values, for the same variables (see rebind); moving keeps
/// them. Variables of narrow floats have slots in f32, and their step is computed in f32.
///
/// The gradient of a table that was gathered from and has many rows is kept as rows. Rows that were not read have a
/// gradient of 0. The step is that of the whole gradient, as in Keras. Where a gradient of 0 changes nothing, only the
/// rows that were read are touched. That holds for the variable under SGD without momentum, RMSprop without momentum,
/// Adagrad and Adadelta, and for Adagrad's slot, unless weights decay or averages are written back. Everything else
/// (other slots, averages, the variable under the other optimizers) is updated in full, though a gradient in full is
/// never made. Outside of a `function` such a step is computed at once.
///
/// With `.lazy = true` a step changes only the rows that have a gradient, of every variable that the step reads by
/// lookups (gather, Embedding) and by nothing else, whatever its size. Such a row has an element other than 0 (or NaN)
/// in its gradient after all sums: over lookups, shards and parts of a batch, and after clipping. It is updated by the
/// ordinary formulas, decay and average included, with the joint step count t. All other rows keep variable, slots and
/// average bit for bit: moments do not fade, weights do not decay. So the cost of a step is that of its rows. This is
/// TensorFlow Addons' LazyAdam and PyTorch's SparseAdam for every optimizer except Lamb. Averages are written back
/// (ema_overwrite_frequency) to all rows. Other variables take the ordinary step: those of dense layers, tables that
/// are also factors of a product or read within a branch or a loop, and variables on which the loss does not depend.
class Optimizer {
 public:
  Optimizer(const Optimizer& other);
  Optimizer(Optimizer&& other) noexcept;
  /// Takes the values of another optimizer. If both are of one kind and have equal state, the values are written into
  /// this optimizer's slots, and options, exclusions and groups are taken over, matched by the order of variables. An
  /// optimizer without state adopts the other's. Else it is an InvalidArgument; also if a compiled step was made with
  /// other options. Learning rates that are numbers are values.
  Optimizer& operator=(const Optimizer& other);
  Optimizer& operator=(Optimizer&& other);
  ~Optimizer();

  /// Updates the variables with their gradients: one step.
  void apply_gradients(const Gradients& gradients);
  /// One step with clipped gradients. InvalidArgument if the optimizer clips, too.
  void apply_gradients(const ClippedGradients& gradients);
  void apply_gradients(const Tensor&) = delete;                           // ask for tape.gradient(loss, Variables{v})
  void apply_gradients(const GradientsView&, const Variables&) = delete;  // gradients know their variables
  /// Makes state for more variables, as when layers are unfrozen.
  void build(const Variables& variables);
  /// Passes the state to the variables of a copied model. Count and specs must agree.
  void rebind(const Variables& variables);

  /// Excludes variables from weight decay: these, or those whose name contains one of the texts, such as "bias" (Keras
  /// searches them as regular expressions). InvalidArgument after a compiled step was made with the decay.
  void exclude_from_weight_decay(const Variables& variables);
  void exclude_from_weight_decay(std::vector<std::string> parts_of_names);
  /// Gives these variables a learning rate or a decay of their own from now on. Clipping and everything else is joint.
  /// Returns the number of the group, from 1 on; group 0 has the remaining variables. InvalidArgument for a variable
  /// that is in another group, and after a compiled step was made with the groups.
  std::size_t add_parameter_group(const Variables& variables, ParameterGroupOptions options);

  /// Number of updates so far.
  std::int64_t iterations() const;
  /// Number of steps under loss scaling that were skipped, since their gradients were not finite.
  std::int64_t skipped_steps() const;
  /// The learning rate at the present iteration. OutOfRange for a group that does not exist.
  double learning_rate(std::size_t group = 0) const;
  /// Sets the learning rate. A number takes effect at the next step, compiled or not. A function is an InvalidArgument
  /// after a compiled step was made with the previous one. Groups without a rate of their own follow group 0.
  void set_learning_rate(Schedule schedule, std::size_t group = 0);
  /// Writes the moving averages into the variables, as at the end of training. Without use_ema nothing happens.
  void finalize_variable_values(const Variables& variables);
  /// The state for checkpoints: iterations, skipped steps, learning rates, slots, averages, and the loss scales of the
  /// variables.
  Variables variables() const;

  // For the rooms of the library.
  /// The variables() that do not exist before the first step or build(): slots, averages, the count of skipped steps.
  Variables made_by_steps() const;
  /// The moving averages of its variables; none without use_ema.
  Variables averages() const;
  /// Resets the state as before the first step: slots, averages of the present variables, and skipped steps.
  void start_anew();
  /// True if it has state for variables. A copy for a copied model must then be given the copied variables (rebind).
  bool is_built() const;
  /// Makes state for these variables if there is none yet; InvalidArgument if it is for others.
  void prepare(const Variables& variables);
  /// Runs `work`. Steps that are traced in it are dropped after it.
  void with_steps_that_end(const std::function<void()>& work);
  /// Within with_steps_that_end: rates set from here on are state of the training, as callbacks set them, not the
  /// program's statement.
  void begin_training();
  /// The program's statement, as names and texts: the class, its options, slots, groups and exclusions, without rates.
  std::vector<std::pair<std::string, std::string>> said() const;
  /// The rate of a group with its own rate.
  struct SaidRate {
    std::string name;         // "learning_rate", "learning_rate of group 1"
    const Variable* value;    // of the optimizer; NaN: a function gives the rate
    std::string first, last;  // the program's rate before the first step, and its last one outside of trainings
    bool has_function;        // NaN is a valid rate
  };
  std::vector<SaidRate> said_rates() const;

 protected:
  Optimizer(std::shared_ptr<const UpdateRule> rule, OptimizerSettings settings);

 private:
  struct State;
  void apply(const GradientsView& gradients, const Tensor& finite);
  State& state() const;
  std::unique_ptr<State> state_;
};

}  // namespace gradus
