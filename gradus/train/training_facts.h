/// What a program says about a training, name by name, and the rule by which a resumed training goes on where program
/// and checkpoint differ. docs/from-tensorflow.md has the table.
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

/// Name and value, in the order in which they are said.
using TrainingFacts = std::vector<std::pair<std::string, std::string>>;

/// Which of both holds.
enum class GoesBy {
  program,     // how to go on from here: rates, decays, sizes
  checkpoint,  // state, and where it came from: random numbers, first values of slots
  both,        // they have to agree
  pass,        // within a pass over the data they have to agree, at its begin the program's holds
  neither      // it follows from others
};
/// The rule of a fact.
GoesBy rule_of(std::string_view name);

/// The facts of an optimizer but for its rates, and of the precision of a model.
TrainingFacts facts_of(const Module& model, const Optimizer& optimizer);
/// The facts of a data set: rows and order of a pass, sizes of batches.
TrainingFacts facts_of(const Pipeline& dataset);

/// A fact that both have, with different values.
struct FactDifference {
  std::string name, program, checkpoint;
  GoesBy by;
};
std::vector<FactDifference> differences(const TrainingFacts& program, const TrainingFacts& checkpoint);
/// The value of a fact; empty: it is not known.
std::string value_of(const TrainingFacts& facts, std::string_view name);
/// A fact that is a number; `otherwise` if it is not known.
std::int64_t number_of(const TrainingFacts& facts, std::string_view name, std::int64_t otherwise);

/// InvalidArgument, opened by `where`, if facts differ that have to agree; `within`: in the midst of a pass, where.
void check_agreement(const std::vector<FactDifference>& differences, const std::string& where,
                     const std::string& within = {});
/// "batch_size 64 from the program (the checkpoint had 32); seed 0 from the checkpoint (the program has 1)"; empty:
/// both say the same.
std::string text_of(const std::vector<FactDifference>& differences);

}  // namespace gradus
