/// The passes of the compiler, one free function in one file each; pipeline.h has their names and their order.
#pragma once
#include <optional>
#include <span>
#include <vector>
#include "gradus/compiler/loops.h"
#include "gradus/compiler/steps.h"
#include "gradus/compiler/target_model.h"

namespace gradus {

enum class SumOrder;  // ops/attention_ops.h

/// Calls of regions are replaced by their bodies (inline.cpp). Cannot be disabled: nothing else runs them.
void inline_calls(Graph& graph);
/// Moves loop-invariant values out of loops (hoist.cpp).
void hoist(Graph& graph);
/// Calls, and attention in blocks, are replaced by their definitions, the latter by products around a softmax
/// (inline.cpp): for backends that know nothing else, and where "attention" is disabled.
void compose_attention(Graph& graph);
/// The same for a device that adds up products in an order of its own.
void compose_attention(Graph& graph, SumOrder order);
/// Calls, and bilinear samples of images, are replaced by their definitions, the latter by gathers (inline.cpp): for
/// backends that know nothing else, and where "samples" is disabled.
void compose_samples(Graph& graph);
/// Evaluates values of constants alone (fold.cpp).
void fold_constants(Graph& graph);
/// Rewrites by rules that change no bit, such as x*1, a view of a view, a transpose that a product can read in place
/// (simplify.cpp), rows that repeat in a product (repeated_rows.cpp), sums of padded parts (padded_sums.cpp).
void simplify(Graph& graph);
/// The operand that an elementwise value equals, except for flushed numbers, such as x of x*1, if there is one.
std::optional<int> operand_passed_on(const Graph& graph, const Value& v);
void multiply_repeated_rows_once(Graph& graph);
void join_padded_sums(Graph& graph);
/// Keeps one of equal values and drops values that no output needs (eliminate.cpp).
void eliminate_common_subexpressions(Graph& graph);
/// Lets a loop keep values that its gradient would compute again, where that pays (residuals.cpp). This depends on
/// sizes, so it is no graph pass: programs of open and of known sizes are compared after the graph passes.
void keep_residuals(Graph& graph, const TargetModel& target);
/// Groups values into steps, in execution order (fuse.cpp). No float operation is reordered, so fusion never changes a
/// bit. Without `merge` every value that is computed is a step of its own. `copies` (may be empty): the group of copies
/// of each value, 0: none; a copy is computed with its own group and its late readers, never with earlier values.
std::vector<Step> fuse(const Graph& graph, bool merge, const PerValue<int>& copies = {},
                       const TargetModel& target = {});

/// Products that only formulas of the same elements read run with these, piece by piece, and need no memory for the
/// values between them: a bias and an activation, its derivative, a residual, updates of weights, sums of the gradients
/// of micro-batches (epilogues.cpp). No bit changes. The steps stay in order; a product joined with others runs in
/// their place. Products other than a^T b, which are not gradients of weights, are joined from
/// target.least_joined_bytes on.
std::vector<Step> join_epilogues(const Graph& graph, const std::vector<Step>& steps, const TargetModel& target = {});

}  // namespace gradus
