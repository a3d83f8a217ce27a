/// The facts of a run's data as declarations in C, for the header of its object.
#pragma once
#include <string>
#include "apps/gradus/config.h"
#include "apps/gradus/data.h"

namespace gradus::command {

/// The columns of a table in the order of x, the words of each and their numbers, the names of the classes, and what a
/// step does to its numbers itself. `name` begins what is declared, as it does in the header.
std::string facts_in_c(const std::string& name, const DataConfig& config, const DataFacts& facts);

/// A comment on the weights of examples that a training step takes; empty if all examples count the same.
std::string weights_in_c(const TrainConfig& config);

}  // namespace gradus::command
