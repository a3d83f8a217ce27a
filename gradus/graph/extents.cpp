/// The types of op that have extents. Decisions 191 and 261 have the reasons.
#include "gradus/graph/extents.h"
#include <algorithm>

namespace gradus {

std::vector<std::pair<const OpType*, Extents::Access>>& Extents::all() {
  static auto* only = new std::vector<std::pair<const OpType*, Access>>;
  return *only;
}

void Extents::enroll(const OpType& type, const Access& access) { all().emplace_back(&type, access); }

const Extents::Access* Extents::find(const OpType& type) {
  const auto found = std::ranges::find(all(), &type, [](const auto& known) { return known.first; });
  return found == all().end() ? nullptr : &found->second;
}

bool Extents::add(const AnyOp& op, std::vector<std::int64_t>& numbers) {
  const std::size_t before = numbers.size();
  if (const Access* access = find(*op.operator->())) access->get(op.attributes(), numbers);
  return numbers.size() > before;
}

AnyOp Extents::replaced(const AnyOp& op, std::span<const std::int64_t> numbers) {
  return find(*op.operator->())->with(op.attributes(), numbers);
}

}  // namespace gradus
