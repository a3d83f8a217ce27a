/// The table of polynomials. It stays small: every trace numbers its symbols from 0, so traces share entries.
#include "gradus/tensor/dimension.h"
#include <algorithm>
#include <charconv>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <vector>
#include "gradus/base/error.h"

namespace gradus::dimension {
namespace {

using Monomial = std::vector<int>;                    // symbols, ascending, with repetition; empty: the constant term
using Polynomial = std::map<Monomial, std::int64_t>;  // no zero coefficients

struct Table {
  std::shared_mutex guard;
  std::deque<Polynomial> polynomials;
  std::map<Polynomial, std::int64_t> numbers;
};
Table& table() {
  static auto* only = new Table;  // shapes may outlive static destructors
  return *only;
}

Polynomial polynomial_of(std::int64_t d) {
  internal_check(d != any_size, "any_size is no dimension of a tensor");
  if (d >= 0) return d == 0 ? Polynomial{} : Polynomial{{{}, d}};
  std::shared_lock lock(table().guard);
  require(-2 - d < static_cast<std::int64_t>(table().polynomials.size()), "a dimension must not be negative, got ", d);
  return table().polynomials[static_cast<std::size_t>(-2 - d)];
}

std::int64_t number_of(Polynomial p) {
  std::erase_if(p, [](const auto& term) { return term.second == 0; });
  if (p.empty()) return 0;
  if (p.size() == 1 && p.begin()->first.empty() && p.begin()->second >= 0) return p.begin()->second;
  std::unique_lock lock(table().guard);
  const auto [it, fresh] = table().numbers.try_emplace(p, -2 - static_cast<std::int64_t>(table().numbers.size()));
  if (fresh) table().polynomials.push_back(std::move(p));
  return it->second;
}

std::int64_t multiply_extents(std::int64_t a, std::int64_t b) {
  std::int64_t product;
  require(!__builtin_mul_overflow(a, b, &product), "a shape with dimensions ", a, " and ", b,
          " has more than 2^63 - 1 elements");
  return product;
}

/// The symbols of `a` without those of `b`; nothing if `b` has one more often than `a`.
std::optional<Monomial> quotient(const Monomial& a, const Monomial& b) {
  if (!std::includes(a.begin(), a.end(), b.begin(), b.end())) return {};
  Monomial rest;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(rest));
  return rest;
}

/// An order of monomials that multiplying keeps: by degree, then by how often the first symbols are in them.
bool is_lower(const Monomial& a, const Monomial& b) { return a.size() != b.size() ? a.size() < b.size() : a > b; }

/// a / b if that leaves no rest: by long division, the leading terms first. No program has a size of more terms than
/// are looked for.
std::optional<Polynomial> quotient(Polynomial a, const Polynomial& b) {
  const auto leading = [](const Polynomial& p) {
    return *std::ranges::max_element(p, is_lower, [](const auto& term) { return term.first; });
  };
  const auto [divisor, coefficient] = leading(b);
  constexpr std::size_t most_terms = 64;
  Polynomial result;
  while (!a.empty()) {
    const auto [term, c] = leading(a);
    const auto factor = quotient(term, divisor);
    if (!factor || result.size() == most_terms || c == std::numeric_limits<std::int64_t>::min() || c % coefficient)
      return {};
    const std::int64_t times = result[*factor] = c / coefficient;
    for (const auto& [m, of_b] : b) {
      Monomial product;
      std::merge(m.begin(), m.end(), factor->begin(), factor->end(), std::back_inserter(product));
      std::int64_t &sum = a[product], taken = 0;
      if (__builtin_mul_overflow(times, of_b, &taken) || __builtin_sub_overflow(sum, taken, &sum)) return {};
      if (sum == 0) a.erase(product);
    }
  }
  return result;
}

std::int64_t parse_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(problem == std::errc() && end == text.data() + text.size(), "dimension `", text, "` is not a number");
  return value;
}

}  // namespace

std::int64_t symbol(int k) { return number_of({{{k}, 1}}); }

std::int64_t add(std::int64_t a, std::int64_t b) {
  if (a >= 0 && b >= 0) {
    std::int64_t sum;
    require(!__builtin_add_overflow(a, b, &sum), "dimensions ", a, " and ", b, " add up to more than 2^63 - 1");
    return sum;
  }
  Polynomial p = polynomial_of(a);
  for (const auto& [m, c] : polynomial_of(b)) p[m] += c;
  return number_of(std::move(p));
}

std::int64_t subtract(std::int64_t a, std::int64_t b) {
  if (a >= 0 && b >= 0 && a >= b) return a - b;
  Polynomial p = polynomial_of(a);
  for (const auto& [m, c] : polynomial_of(b)) p[m] -= c;
  return number_of(std::move(p));
}

std::int64_t multiply(std::int64_t a, std::int64_t b) {
  if (a >= 0 && b >= 0) return multiply_extents(a, b);
  Polynomial p;
  for (const auto& [ma, ca] : polynomial_of(a))
    for (const auto& [mb, cb] : polynomial_of(b)) {
      Monomial m;
      std::merge(ma.begin(), ma.end(), mb.begin(), mb.end(), std::back_inserter(m));
      p[m] += multiply_extents(ca, cb);
    }
  return number_of(std::move(p));
}

std::optional<std::int64_t> divide(std::int64_t a, std::int64_t b) {
  if (b == 0) return {};
  if (a >= 0 && b >= 0) return a % b ? std::nullopt : std::optional(a / b);
  if (a == b) return 1;
  auto p = quotient(polynomial_of(a), polynomial_of(b));
  if (!p) return {};
  return number_of(std::move(*p));
}

std::int64_t evaluate(std::int64_t d, std::span<const std::int64_t> symbols) {
  if (d >= 0) return d;
  std::int64_t sum = 0;
  for (const auto& [m, c] : polynomial_of(d)) {
    std::int64_t product = c;
    for (int k : m) {
      internal_check(static_cast<std::size_t>(k) < symbols.size(), "symbol s", k, " has no value");
      product = multiply_extents(product, symbols[static_cast<std::size_t>(k)]);
    }
    sum += product;
  }
  return sum;
}

int symbols_in(std::int64_t d) {
  if (d >= any_size) return 0;
  int count = 0;
  for (const auto& [m, c] : polynomial_of(d))
    if (!m.empty()) count = std::max(count, m.back() + 1);
  return count;
}

std::string to_text(std::int64_t d) {
  if (d == any_size) return "?";
  if (d >= 0) return std::to_string(d);
  std::string out;
  const Polynomial p = polynomial_of(d);
  for (auto term = p.rbegin(); term != p.rend(); ++term) {
    const auto& [m, c] = *term;
    if (!out.empty() && c > 0) out += '+';
    if (m.empty() || (c != 1 && c != -1)) out += std::to_string(c) + (m.empty() ? "" : "*");
    else if (c == -1) out += '-';
    for (std::size_t i = 0; i < m.size(); ++i) out += (i ? "*s" : "s") + std::to_string(m[i]);
  }
  return out;
}

std::int64_t from_text(std::string_view text) {
  if (text == "?") return any_size;
  Polynomial p;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("+-", 1), text.size());
    std::string_view term = text.substr(0, end);
    text.remove_prefix(end);
    std::int64_t sign = 1, coefficient = 1;
    if (term.starts_with('+')) term.remove_prefix(1);
    if (term.starts_with('-')) {
      sign = -1;
      term.remove_prefix(1);
    }
    Monomial m;
    require(!term.empty(), "a dimension has an empty term");
    while (!term.empty()) {
      const std::size_t star = std::min(term.find('*'), term.size());
      const std::string_view factor = term.substr(0, star);
      term.remove_prefix(std::min(star + 1, term.size()));
      if (!factor.starts_with('s')) {
        coefficient = multiply_extents(coefficient, parse_number(factor));
        continue;
      }
      const std::int64_t k = parse_number(factor.substr(1));
      require(k >= 0 && k < 64 && m.size() < 16, "dimension symbol `", factor, "`: symbols are s0 to s63");
      m.push_back(static_cast<int>(k));
    }
    std::sort(m.begin(), m.end());
    std::int64_t& sum = p[m];
    require(!__builtin_add_overflow(sum, sign * coefficient, &sum), "a dimension is larger than 2^63 - 1");
  }
  const std::int64_t d = number_of(std::move(p));
  return d;
}

}  // namespace gradus::dimension
