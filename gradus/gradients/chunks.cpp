/// The search for the number of rows. Memory plans are linear in it, apart from a part that is the same for any number.
/// So one guess between a single row and all of them is seldom far off.
#include "gradus/gradients/chunks.h"
#include <algorithm>
#include "gradus/backend/backend.h"
#include "gradus/graph/graph.h"

namespace gradus {
namespace {

/// With the bytes that the plan of the making takes.
struct Built : InChunks {
  std::int64_t bytes;
};

/// Budgets are about bytes, which sizes that are not known do not tell.
void require_known(std::string_view op, bool known) {
  require(known, op,
          ": max_bytes needs sizes that are known, and within this function some are not; leave any_size out of its "
          "input_signature");
}

Built measured(std::string_view op, std::uint64_t began, InChunks built) {
  const auto is_given = [&](const Node& node) { return node.sequence <= began || node.value; };
  std::vector<Ref<Node>> roots;
  for (const Tensor& result : built.results)
    if (result.defined()) roots.push_back(result.node());
  Graph graph = flatten(roots, is_given).graph;
  require_known(op, graph.symbols() == 0);
  const std::int64_t bytes = backend_of(default_device()).planned_bytes(std::move(graph));
  return {std::move(built), bytes};
}

/// At most `rows`, in chunks of nearly the same size.
std::int64_t even(std::int64_t rows, std::int64_t total) {
  const std::int64_t chunks = (total + rows - 1) / rows;
  return (total + chunks - 1) / chunks;
}

}  // namespace

InChunks chunks_within_budget(std::string_view op, std::size_t max_bytes, std::uint64_t began, std::int64_t total,
                              const std::function<Tensors(std::int64_t)>& build) {
  if (max_bytes == 0) return {build(total), total};
  require_known(op, total >= 0);
  const auto limit = static_cast<std::int64_t>(max_bytes);
  const auto built = [&](std::int64_t rows) { return measured(op, began, {build(rows), rows}); };
  const Built whole = built(total);
  if (whole.bytes <= limit) return whole;
  const Built least = total > 1 ? built(1) : whole;
  if (least.bytes > limit)
    throw ResourceExhausted(text(op, ": max_bytes is ", limit, ", but one row at a time takes ", least.bytes,
                                 " bytes above what it reads and gives; that is the smallest budget that works"));
  const double share = static_cast<double>(limit - least.bytes) /
                       static_cast<double>(std::max<std::int64_t>(1, whole.bytes - least.bytes));
  std::int64_t rows = 1 + static_cast<std::int64_t>(share * static_cast<double>(total - 1));
  for (; rows > 1; rows -= std::max<std::int64_t>(1, rows / 8)) {
    rows = even(std::min(rows, total - 1), total);
    Built guess = built(rows);
    if (guess.bytes <= limit) return guess;
  }
  return least;
}

Tensors within_budget(std::string_view op, std::size_t max_bytes, std::uint64_t began, std::int64_t total,
                      const std::function<Tensors(std::int64_t)>& build) {
  return chunks_within_budget(op, max_bytes, began, total, build).results;
}

Tensor within_budget(std::string_view op, std::size_t max_bytes, std::uint64_t began, std::int64_t total,
                     const std::function<Tensor(std::int64_t)>& build) {
  const auto build_list = [&](std::int64_t rows) { return Tensors{build(rows)}; };
  return within_budget(op, max_bytes, began, total, build_list)[0];
}

}  // namespace gradus
