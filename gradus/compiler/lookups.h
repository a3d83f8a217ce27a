/// The pass `lookups`: loops read chosen rows in place. A Gather of whole rows that only one kernel of loops reads
/// becomes a check of its indices and a view by a table, so no copy of the rows is made. No bit changes.
#pragma once
#include "gradus/compiler/target_model.h"
#include "gradus/graph/graph.h"

namespace gradus {

void look_up_in_place(Graph& graph, const TargetModel& target = {});

}  // namespace gradus
