/// A program's statement of a training, name by name, and the rule by which a resumed training goes on if program and
/// checkpoint differ. docs/from-tensorflow.md has the table.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "gradus/data/pipeline.h"
#include "gradus/nn/module.h"
#include "gradus/optim/optimizer.h"

namespace gradus {

namespace detail::inline rooms {

/// Names and values, in the order of the statement.
using TrainingFacts = std::vector<std::pair<std::string, std::string>>;

/// Decides between program and checkpoint.
enum class GoesBy {
  program,     // values for the steps to come: rates, decays, sizes
  checkpoint,  // state and its origin: random numbers, first values of slots
  both,        // they have to agree
  pass,        // they have to agree within a pass over the data; at its begin the program's value holds
  neither      // it follows from others
};
/// The rule of a fact.
GoesBy rule_of(std::string_view name);

/// The facts of an optimizer without its rates, and of a model's precision.
TrainingFacts facts_of(const Module& model, const Optimizer& optimizer);
/// The facts of a data set: rows and order of a pass, sizes of batches.
TrainingFacts facts_of(const Pipeline& dataset);

/// A fact with different values in program and checkpoint.
struct FactDifference {
  std::string name, program, checkpoint;
  GoesBy by;
};
std::vector<FactDifference> differences(const TrainingFacts& program, const TrainingFacts& checkpoint);
/// The value of a fact; empty: unknown.
std::string value_of(const TrainingFacts& facts, std::string_view name);
/// A fact that is a number; `otherwise` if it is unknown.
std::int64_t number_of(const TrainingFacts& facts, std::string_view name, std::int64_t otherwise);

/// InvalidArgument, opened by `where`, if facts differ that have to agree; `within`: the place in the midst of a pass.
void check_agreement(const std::vector<FactDifference>& differences, const std::string& where,
                     const std::string& within = {});

}  // namespace detail::inline rooms
/// "batch_size 64 from the program (the checkpoint had 32); seed 0 from the checkpoint (the program has 1)"; empty if
/// both agree.
std::string text_of(const std::vector<detail::FactDifference>& differences);

}  // namespace gradus
