/// Columns of words of a table, whose numbers become one-hot rows or rows of a table that is trained, beside the
/// columns of numbers.
#pragma once
#include "apps/gradus/config.h"
#include "apps/gradus/data.h"
#include "gradus/gradus.h"

namespace gradus::command {

/// True if a feature is a column of words that data.category_encoding encodes.
bool encodes_categories(const DataConfig& config, const DataFacts& facts);
/// True if there are features beside those.
bool has_numbers(const DataConfig& config, const DataFacts& facts);
/// f32 [batch, columns] -> f32 [batch, width]: columns of numbers, normalized where `normalizes` says so, then the
/// encoded columns of words. A missing word has zeros, or a row of its own.
Module category_columns(const DataConfig& config, const DataFacts& facts, bool normalizes);
/// The columns of numbers alone, as the module's Normalization sees them.
Dataset<2> numbers_of_columns(const Dataset<2>& training, const DataConfig& config, const DataFacts& facts);

}  // namespace gradus::command
