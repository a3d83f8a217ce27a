/// Texts by which others begin: all of them that stand at a place, found byte by byte in one sorted list.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gradus {

class PrefixTable {
 public:
  PrefixTable() = default;
  /// Texts, each once and none of them empty, with a number each.
  explicit PrefixTable(std::vector<std::pair<std::string, std::int32_t>> texts) : texts_(std::move(texts)) {
    std::ranges::sort(texts_);
  }
  bool is_empty() const { return texts_.empty(); }
  /// Calls f(bytes, number) for each text that `rest` begins with, from the shortest on.
  template <class F> void for_each_prefix(std::string_view rest, const F& f) const {
    auto begin = texts_.begin(), end = texts_.end();
    for (std::size_t depth = 0; depth < rest.size() && begin != end; ++depth) {
      const auto byte_at = [depth](const auto& entry) {
        return entry.first.size() > depth ? static_cast<int>(static_cast<unsigned char>(entry.first[depth])) : -1;
      };
      const int byte = static_cast<unsigned char>(rest[depth]);
      begin = std::partition_point(begin, end, [&](const auto& entry) { return byte_at(entry) < byte; });
      end = std::partition_point(begin, end, [&](const auto& entry) { return byte_at(entry) <= byte; });
      if (begin != end && begin->first.size() == depth + 1) f(depth + 1, begin->second);
    }
  }

 private:
  std::vector<std::pair<std::string, std::int32_t>> texts_;
};

}  // namespace gradus
