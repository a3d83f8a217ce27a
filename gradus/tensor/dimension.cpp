/// The table of polynomials and of derived factors. It stays small: every trace numbers its symbols from 0, so traces
/// share entries.
#include "gradus/tensor/derived_dimension.h"
#include <algorithm>
#include <bit>
#include <deque>
#include <limits>
#include <mutex>
#include <numeric>
#include <shared_mutex>
#include "gradus/base/error.h"
#include "gradus/tensor/polynomial.h"

namespace gradus::dimension {
namespace {

struct Table {
  std::shared_mutex guard;
  std::deque<Polynomial> polynomials;
  std::map<Polynomial, std::int64_t> numbers;
  std::deque<Derived> derived;
  std::map<Derived, int> factors;
};
Table& table() {
  static auto* only = new Table;  // shapes may outlive static destructors
  return *only;
}

}  // namespace

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

std::optional<std::int64_t> constant_of(const Polynomial& p) {
  if (p.empty()) return 0;
  return p.size() == 1 && p.begin()->first.empty() ? std::optional(p.begin()->second) : std::nullopt;
}

Derived derived(int factor) {
  std::shared_lock lock(table().guard);
  return table().derived[static_cast<std::size_t>(factor - first_derived)];
}

std::int64_t derived_dimension(const Derived& what) {
  int factor = 0;
  {
    std::unique_lock lock(table().guard);
    const int next = first_derived + static_cast<int>(table().derived.size());
    const auto [it, fresh] = table().factors.try_emplace(what, next);
    if (fresh) table().derived.push_back(what);
    factor = it->second;
  }
  return number_of({{{factor}, 1}});
}

std::int64_t multiply_extents(std::int64_t a, std::int64_t b) {
  std::int64_t product;
  require(!__builtin_mul_overflow(a, b, &product), "a shape with dimensions ", a, " and ", b,
          " has more than 2^63 - 1 elements");
  return product;
}

namespace {

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

/// a * b; nothing past 2^63 - 1.
std::optional<Polynomial> product_of(const Polynomial& a, const Polynomial& b) {
  Polynomial p;
  for (const auto& [ma, ca] : a)
    for (const auto& [mb, cb] : b) {
      Monomial m;
      std::merge(ma.begin(), ma.end(), mb.begin(), mb.end(), std::back_inserter(m));
      std::int64_t &sum = p[m], more = 0;
      if (__builtin_mul_overflow(ca, cb, &more) || __builtin_add_overflow(sum, more, &sum)) return {};
    }
  std::erase_if(p, [](const auto& term) { return term.second == 0; });
  return p;
}

bool is_proven_positive(const Polynomial& p);

/// True if no factor of a term can be negative.
bool are_never_negative(const Monomial& m) {
  return std::ranges::all_of(m, [](int factor) {
    if (factor < first_derived) return true;
    const Derived d = derived(factor);
    return d.kind != Derived::Kind::quotient || (is_never_negative(d.a) && is_never_negative(d.b));
  });
}

/// The bound that a term has by one of its derived factors: `by` times the term is at least `least`.
struct TermBound {
  std::int64_t by;
  Polynomial least;
};
std::optional<TermBound> bound_of(const Monomial& m, std::int64_t c) {
  for (std::size_t i = 0; i < m.size(); ++i) {
    if (m[i] < first_derived) continue;
    const Derived d = derived(m[i]);
    Monomial others = m;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    if (!are_never_negative(others)) continue;
    Polynomial least = polynomial_of(d.a);
    std::int64_t by = 1;
    if (d.kind == Derived::Kind::quotient) {  // a/b - (b - 1)/b <= it <= a/b
      if (d.b < 0) continue;
      by = d.b;
      if (c > 0) least = polynomial_of(subtract(d.a, d.b - 1));
    } else if (c < 0 || d.kind == Derived::Kind::doublings) {
      continue;
    }
    auto whole = product_of(least, {{others, c}});
    if (whole) return TermBound{by, std::move(*whole)};
  }
  return {};
}

/// One derived factor after the other gives way to its bound, those of negative terms first, until no term is negative.
bool is_proven_positive(const Polynomial& given) {
  Polynomial p = given;
  for (int step = 0; step < 16; ++step) {
    if (std::ranges::all_of(p, [](const auto& term) { return term.second > 0 && are_never_negative(term.first); }))
      return true;
    std::optional<TermBound> bound;
    auto at = p.end();
    for (const bool negative : {true, false})
      for (auto term = p.begin(); term != p.end() && !bound; ++term)
        if ((term->second < 0) == negative && (bound = bound_of(term->first, term->second))) at = term;
    if (!bound) return false;
    p.erase(at);
    auto scaled = product_of(p, {{{}, bound->by}});
    if (!scaled) return false;
    p = std::move(*scaled);
    for (const auto& [m, c] : bound->least)
      if (__builtin_add_overflow(p[m], c, &p[m])) return false;
    std::erase_if(p, [](const auto& term) { return term.second == 0; });
  }
  return false;
}

/// a divided by b > 0: the divisible part, and the rest, whose coefficients are in [0, b).
struct Split {
  Polynomial whole, rest;
};
Split split_by(const Polynomial& a, std::int64_t b) {
  Split s;
  for (const auto& [m, c] : a) {
    const std::int64_t rest = (c % b + b) % b, whole = (c - rest) / b;
    if (whole) s.whole[m] = whole;
    if (rest) s.rest[m] = rest;
  }
  return s;
}

/// floor(rest / b), where the coefficients of the rest are in [0, b): equal ones become equal numbers.
std::int64_t quotient_of_rest(Polynomial rest, std::int64_t b) {
  if (constant_of(rest)) return 0;
  std::int64_t common = b;
  for (const auto& [m, c] : rest)
    if (!m.empty()) common = std::gcd(common, c);
  if (common > 1) {
    Polynomial smaller;
    for (const auto& [m, c] : rest)
      if (c / common) smaller[m] = c / common;
    return floor_divide(number_of(std::move(smaller)), b / common);
  }
  // floor((floor(a / m) + c) / b) = floor((a + c m) / (m b))
  const auto constant = rest.find({});
  const std::int64_t c = constant == rest.end() ? 0 : constant->second;
  const auto term = std::ranges::find_if(rest, [](const auto& t) { return !t.first.empty(); });
  if (rest.size() == (constant == rest.end() ? 1U : 2U) && term->second == 1 && term->first.size() == 1 &&
      term->first[0] >= first_derived) {
    const Derived inner = derived(term->first[0]);
    std::int64_t both = 0;
    if (inner.kind == Derived::Kind::quotient && inner.b > 0 && !__builtin_mul_overflow(inner.b, b, &both))
      return floor_divide(add(inner.a, multiply(c, inner.b)), both);
  }
  return derived_dimension({Derived::Kind::quotient, number_of(std::move(rest)), b});
}

/// The larger of d and 0.
std::int64_t positive_part(std::int64_t d) {
  if (d >= 0) return d;
  if (const auto constant = constant_of(polynomial_of(d))) return std::max<std::int64_t>(*constant, 0);
  if (is_never_negative(d)) return d;
  if (is_never_negative(subtract(0, d))) return 0;
  return derived_dimension({Derived::Kind::positive_part, d, 0});
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

std::int64_t of_number(std::int64_t n) { return n >= 0 ? n : number_of({{{}, n}}); }

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  if (const auto exact = divide(a, b)) return *exact;
  if (b < 0) return derived_dimension({Derived::Kind::quotient, a, b});
  Split parts = split_by(polynomial_of(a), b);
  return add(number_of(std::move(parts.whole)), quotient_of_rest(std::move(parts.rest), b));
}

std::int64_t ceil_divide(std::int64_t a, std::int64_t b) {
  return b == 0 ? 0 : floor_divide(add(a, subtract(b, 1)), b);
}

std::int64_t modulo(std::int64_t a, std::int64_t b) { return subtract(a, multiply(b, floor_divide(a, b))); }

std::int64_t doublings(std::int64_t d) {
  if (const std::int64_t least = positive_part(d); least < 0)
    return derived_dimension({Derived::Kind::doublings, least, 0});
  else d = least;
  return d < 2 ? 0 : static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(d - 1)));
}

std::int64_t maximum(std::int64_t a, std::int64_t b) { return add(b, positive_part(subtract(a, b))); }
std::int64_t minimum(std::int64_t a, std::int64_t b) { return subtract(a, positive_part(subtract(a, b))); }

bool is_never_negative(std::int64_t d) { return d >= 0 || is_proven_positive(polynomial_of(d)); }

namespace {

std::int64_t value_of(int factor, std::span<const std::int64_t> symbols) {
  if (factor < first_derived) {
    internal_check(static_cast<std::size_t>(factor) < symbols.size(), "symbol s", factor, " has no value");
    return symbols[static_cast<std::size_t>(factor)];
  }
  const Derived d = derived(factor);
  const std::int64_t a = evaluate(d.a, symbols);
  if (d.kind == Derived::Kind::positive_part) return std::max<std::int64_t>(a, 0);
  if (d.kind == Derived::Kind::doublings) return doublings(a);
  const std::int64_t b = evaluate(d.b, symbols);
  return b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0));
}

}  // namespace

std::int64_t evaluate(std::int64_t d, std::span<const std::int64_t> symbols) {
  if (d >= 0) return d;
  std::int64_t sum = 0;
  for (const auto& [m, c] : polynomial_of(d)) {
    std::int64_t product = c;
    for (int factor : m) product = multiply_extents(product, value_of(factor, symbols));
    sum += product;
  }
  return sum;
}

int symbols_in(std::int64_t d) {
  if (d >= any_size) return 0;
  int count = 0;
  for (const auto& [m, c] : polynomial_of(d))
    for (const int factor : m) {
      if (factor < first_derived) {
        count = std::max(count, factor + 1);
        continue;
      }
      const Derived of = derived(factor);
      count = std::max({count, symbols_in(of.a), symbols_in(of.b)});
    }
  return count;
}

}  // namespace gradus::dimension
