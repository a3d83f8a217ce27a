/// Pruning while a model trains (Zhu and Gupta 2017), as in TensorFlow's model optimization toolkit.
#pragma once
#include "gradus/base/ranges.h"
#include "gradus/nn/sparsity.h"
#include "gradus/train/callback.h"

namespace gradus {

/// Options of prune_low_magnitude. The sparsity rises from initial_sparsity at step begin_step to final_sparsity at
/// end_step:
///   final + (initial - final) * (1 - (step - begin) / (end - begin))^power.
/// Steps are updates of the optimizer. If initial and final sparsity are equal, it is constant from begin_step on, and
/// end_step may be left out.
struct PruningOptions {
  double initial_sparsity = 0, final_sparsity;  // shares of zeros
  std::int64_t begin_step = 0, end_step;        // steps between which the sparsity rises
  std::int64_t frequency = 100;  // steps between changes of the masks, from begin_step; they also change at end_step
  double power = 3;              // exponent of the formula
  BlockSize block_size = {};     // rows and columns that are pruned together
  static constexpr auto ranges() {
    return std::array{Allowed::share_below_one("initial_sparsity"), Allowed::between_zero_and_one("final_sparsity"),
                      Allowed::not_negative("begin_step end_step"), Allowed::positive("frequency power")};
  }
};

/// Masks the weights of least magnitude in each of prunable_variables(model), more and more of them. Pruned weights
/// stay pruned: they are masked (Variable::set_mask), so they are 0 and without gradient under any optimizer, in later
/// trainings without the callback, in checkpoints and in copies of the model. strip_pruning(model) ends that. The model
/// must outlive the callback. A training that begins with more updates than begin_step prunes at its first epoch. If
/// early_stopping restores best weights, set its start_from_epoch to the end of the pruning: weights of an earlier
/// epoch would get the last masks. InvalidArgument unless 0 <= initial_sparsity <= final_sparsity and 0 <
/// final_sparsity < 1, and for an end_step that is not after begin_step unless both sparsities are equal.
Callback prune_low_magnitude(Module& model, PruningOptions options);
/// prune_low_magnitude for variables that the caller lists, such as weights of a struct that no layer holds.
Callback prune_low_magnitude(const Variables& variables, PruningOptions options);

/// The sparsity of the options at a step; 0 before begin_step.
double sparsity_at(const PruningOptions& options, std::int64_t step);

}  // namespace gradus
