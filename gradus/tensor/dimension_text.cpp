/// Dimensions as text: sums of products of numbers, symbols and derived factors.
#include <algorithm>
#include <charconv>
#include "gradus/base/error.h"
#include "gradus/tensor/derived_dimension.h"
#include "gradus/tensor/polynomial.h"

namespace gradus::dimension {
namespace {

std::string text_of_factor(int factor) {
  if (factor < first_derived) return 's' + std::to_string(factor);
  const Derived d = derived(factor);
  const std::string a = "((" + to_text(d.a) + ')';
  if (d.kind == Derived::Kind::positive_part) return a + "^0)";
  if (d.kind == Derived::Kind::doublings) return a + "^^)";
  return a + '/' + (d.b >= 0 ? to_text(d.b) : '(' + to_text(d.b) + ')') + ')';
}

/// sum: [sign] product {sign product}; product: factor {* factor}; factor: a number, s0, ((sum)/number), ((sum)/(sum)),
/// ((sum)^0), ((sum)^^).
class Parser {
 public:
  explicit Parser(std::string_view written) : written_(written), rest_(written) {}

  std::int64_t run() {
    const std::int64_t d = sum();
    require(rest_.empty(), "dimension `", written_, "` does not end with a term");
    return d;
  }

 private:
  static constexpr int most_depth = 16;

  bool takes(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) { require(takes(c), "dimension `", written_, "`: expected a `", c, "` before `", rest_, "`"); }

  std::int64_t sum() {
    std::int64_t total = 0;
    bool is_first = true;
    do {
      const bool negative = takes('-');
      if (!negative && !takes('+'))
        require(is_first, "dimension `", written_, "`: expected a sign before `", rest_, '`');
      is_first = false;
      const std::int64_t term = product();
      total = negative ? subtract(total, term) : add(total, term);
    } while (rest_.starts_with('-') || rest_.starts_with('+'));
    return total;
  }

  std::int64_t product() {
    std::int64_t total = factor();
    int factors = 1;
    for (; takes('*'); ++factors) {
      require(factors < 16, "dimension `", written_, "` has more than 16 factors in a term");
      total = multiply(total, factor());
    }
    return total;
  }

  std::int64_t factor() {
    if (takes('(')) return derived_factor();
    const bool is_symbol = takes('s');
    const std::int64_t n = number();
    if (!is_symbol) return n;
    require(n < 64, "dimension symbol `s", n, "`: symbols are s0 to s63");
    return symbol(static_cast<int>(n));
  }

  std::int64_t derived_factor() {
    require(++depth_ <= most_depth, "dimension `", written_, "` is nested too deeply");
    expect('(');
    const std::int64_t a = sum();
    expect(')');
    std::int64_t d = 0;
    if (takes('^')) {
      const bool doubles = takes('^');
      require(doubles || takes('0'), "dimension `", written_, "`: expected ^0 or ^^");
      d = doubles ? doublings(a) : maximum(a, 0);
    } else {
      expect('/');
      const bool is_sum = takes('(');
      const std::int64_t b = is_sum ? sum() : number();
      if (is_sum) expect(')');
      require(b > 0 || symbols_in(b) > 0, "dimension `", written_, "` is divided by ", to_text(b));
      d = floor_divide(a, b);
    }
    expect(')');
    --depth_;
    return d;
  }

  std::int64_t number() {
    std::int64_t value = 0;
    const auto [end, problem] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    require(problem == std::errc() && value >= 0, "dimension `", written_, "`: `", rest_, "` is not a number");
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }

  const std::string_view written_;
  std::string_view rest_;
  int depth_ = 0;
};

}  // namespace

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
    for (std::size_t i = 0; i < m.size(); ++i) out += (i ? "*" : "") + text_of_factor(m[i]);
  }
  return out;
}

std::int64_t from_text(std::string_view text) {
  if (text == "?") return any_size;
  return Parser(text).run();
}

}  // namespace gradus::dimension
