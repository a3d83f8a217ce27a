/// Finding symbols, and the numbers that follow from them. Decision 191 has the reasons.
#include "gradus/function/size_pattern.h"
#include <algorithm>
#include "gradus/base/rooms.h"
#include "gradus/tensor/dimension.h"

namespace gradus {
namespace {

/// How many symbols are tried in pairs.
constexpr int most_factors = 8;

/// For a number that may be negative.
std::int64_t added(std::int64_t d, std::int64_t number) {
  return number < 0 ? dimension::subtract(d, -number) : dimension::add(d, number);
}

}  // namespace

/// Lists wrap around as integers do: the result must be the number itself.
std::int64_t SizePattern::value_of(const Rule& rule, std::span<const std::int64_t> list) const {
  auto value = static_cast<std::uint64_t>(rule.factor);
  for (const int symbol : {rule.u, rule.w})
    if (symbol >= 0) value *= static_cast<std::uint64_t>(list[symbols_[static_cast<std::size_t>(symbol)]]);
  return static_cast<std::int64_t>(value + static_cast<std::uint64_t>(rule.offset));
}

bool SizePattern::holds(const Rule& rule, Lists lists, std::size_t place) const {
  return std::ranges::all_of(lists, [&](const auto& list) { return value_of(rule, list) == list[place]; });
}

/// As a line through symbol `u`.
bool SizePattern::add_line(Lists lists, std::size_t place, int u) {
  const std::size_t of_u = symbols_[static_cast<std::size_t>(u)];
  const auto &first = lists[0],
             &other = *std::ranges::find_if(lists, [&](const auto& list) { return list[of_u] != first[of_u]; });
  const std::int64_t rise = other[place] - first[place], run = other[of_u] - first[of_u];
  if (rise % run != 0) return false;
  Rule rule{.factor = rise / run, .u = u};
  rule.offset = first[place] - value_of(rule, first);
  if (rule.factor == 0 || !holds(rule, lists, place)) return false;
  rules_.push_back(rule);
  return true;
}

/// As a multiple of the product of two symbols.
bool SizePattern::add_product(Lists lists, std::size_t place, int u, int w) {
  Rule rule{.factor = 1, .u = u, .w = w};
  const std::int64_t product = value_of(rule, lists[0]);
  if (product == 0 || lists[0][place] % product != 0) return false;
  rule.factor = lists[0][place] / product;
  if (rule.factor == 0 || !holds(rule, lists, place)) return false;
  rules_.push_back(rule);
  return true;
}

bool SizePattern::add(Lists lists, std::size_t place) {
  const Rule constant{.offset = lists[0][place]};
  if (holds(constant, lists, place)) {
    rules_.push_back(constant);
    return true;
  }
  const auto symbols = static_cast<int>(symbols_.size()), factors = std::min(symbols, most_factors);
  for (int u = 0; u < symbols; ++u)
    if (add_line(lists, place, u)) return true;
  for (int u = 0; u < factors; ++u)
    for (int w = u; w < factors; ++w)
      if (add_product(lists, place, u, w)) return true;
  if (symbols_.size() == most_symbols) return false;
  symbols_.push_back(place);
  rules_.push_back({.factor = 1, .u = symbols});
  return true;
}

std::optional<SizePattern> SizePattern::fit(Lists lists) {
  SizePattern pattern;
  for (std::size_t place = 0; place < lists[0].size(); ++place)
    if (!pattern.add(lists, place)) return {};
  return pattern;
}

std::optional<std::vector<std::int64_t>> SizePattern::match(std::span<const std::int64_t> list) const {
  if (list.size() != rules_.size()) return {};
  for (std::size_t place = 0; place < rules_.size(); ++place)
    if (value_of(rules_[place], list) != list[place]) return {};
  std::vector<std::int64_t> values;
  for (const std::size_t place : symbols_) values.push_back(list[place]);
  return values;
}

std::vector<std::int64_t> SizePattern::dimensions() const {
  std::vector<std::int64_t> all;
  for (const Rule& rule : rules_) {
    std::int64_t term = std::abs(rule.factor);
    for (const int symbol : {rule.u, rule.w})
      if (symbol >= 0) term = dimension::multiply(term, dimension::symbol(symbol));
    const bool falls = rule.factor < 0;
    all.push_back(falls ? dimension::subtract(rule.offset, term) : added(term, rule.offset));
  }
  return all;
}

}  // namespace gradus
