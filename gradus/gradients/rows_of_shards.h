/// Gradients of tables, held as rows, added up over the shards of a batch: the rows travel, not the table.
#pragma once
#include <optional>
#include "gradus/base/rooms.h"
#include "gradus/gradients/gradient_part.h"

namespace gradus {

/// The sum over all shards of what each holds as rows: row by row the bits of the sum of the whole tables. Empty where
/// the rows of all shards would be more than those of the table, or some shards have no rows. Within a step that a
/// strategy runs.
std::optional<GradientPart> rows_over_shards(const GradientPart& own);

}  // namespace gradus
