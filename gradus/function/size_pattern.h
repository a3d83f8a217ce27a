/// SizePattern: the pattern that lists of numbers of equal length have in common. Numbers that vary among them are
/// symbols. Numbers that follow from one or two symbols are polynomials of them. All others are fixed.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace gradus {

class SizePattern {
 public:
  /// Past them there is no pattern: each is looked for among the ones before.
  static constexpr std::size_t most_symbols = 64;

  /// The pattern of at least two lists; nothing if too many numbers vary.
  static std::optional<SizePattern> fit(std::span<const std::vector<std::int64_t>> lists);

  /// The values of the symbols in a list of this pattern; nothing if it is none.
  std::optional<std::vector<std::int64_t>> match(std::span<const std::int64_t> list) const;
  /// Per number: a dimension, symbolic where it varies.
  std::vector<std::int64_t> dimensions() const;

 private:
  using Lists = std::span<const std::vector<std::int64_t>>;
  /// offset + factor * symbol u * symbol w, for the symbols that it has.
  struct Rule {
    std::int64_t offset = 0, factor = 0;
    int u = -1, w = -1;
    bool operator==(const Rule&) const = default;
  };
  bool add(Lists lists, std::size_t place);
  bool add_line(Lists lists, std::size_t place, int u);
  bool add_product(Lists lists, std::size_t place, int u, int w);
  bool holds(const Rule& rule, Lists lists, std::size_t place) const;
  std::int64_t value_of(const Rule& rule, std::span<const std::int64_t> list) const;

  std::vector<Rule> rules_;           // per number
  std::vector<std::size_t> symbols_;  // where the value of each symbol stands
};

}  // namespace gradus
