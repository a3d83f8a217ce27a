/// The pass `lookups`: a Gather of whole rows that one kernel of loops alone reads becomes a check of its indices and a
/// view by a table, so that the loops read the rows where they lie and no copy of them is made. No bit changes.
#pragma once
#include "gradus/compiler/target_model.h"
#include "gradus/graph/graph.h"

namespace gradus {

void look_up_in_place(Graph& graph, const TargetModel& target = {});

}  // namespace gradus
