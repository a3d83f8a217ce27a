/// What a search varies: named hyperparameters with the values that they may have, and the values of one trial.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>
#include "gradus/base/ranges.h"

namespace gradus {

/// A value of a hyperparameter. {0.1, 1.0} are numbers, {16, 32} integers, {"adam", "sgd"} texts.
using SearchValue = std::variant<bool, std::int64_t, double, std::string>;
/// As it stands in tables: numbers to `digits` digits.
std::string to_text(const SearchValue& value, int digits = 6);

/// The values of one trial. Asking for a name that there is not, or for another type than it has, is an
/// InvalidArgument.
struct SearchTrial {
  std::int64_t index = 0;  // from 0
  /// What the trial draws without a seed of its own (weights, shuffles, dropout) follows from this, as after set_seed;
  /// so it does not depend on other trials.
  std::uint64_t seed = 0;
  std::vector<std::pair<std::string, SearchValue>> values = {};

  double number(std::string_view name) const;  // of integers, too
  std::int64_t integer(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  bool flag(std::string_view name) const;
  /// Whatever its type.
  const SearchValue& operator[](std::string_view name) const;
};

struct RangeOptions {
  int points = 5;  // of it in a grid, both ends included
  static constexpr auto ranges() { return std::array{Allowed::at_least(2, "points")}; }
};
struct IntegerOptions {
  std::int64_t step = 1;
  static constexpr auto ranges() { return std::array{Allowed::positive("step")}; }
};

/// Hyperparameters in order. Every function that adds one gives the space again, and is an InvalidArgument for a name
/// that is taken or for values that cannot be.
///
///   const auto space = SearchSpace().log_uniform("learning_rate", 1e-4, 1e-1).choice("clip", {0.1, 1.0});
class SearchSpace {
 public:
  /// Every number from low up to high is as likely.
  SearchSpace& uniform(std::string name, double low, double high, RangeOptions options = {});
  /// Every order of magnitude is as likely; low is positive.
  SearchSpace& log_uniform(std::string name, double low, double high, RangeOptions options = {});
  /// low, low + step, ... up to high, which may be among them.
  SearchSpace& integers(std::string name, std::int64_t low, std::int64_t high, IntegerOptions options = {});
  SearchSpace& choice(std::string name, std::vector<SearchValue> values);
  SearchSpace& boolean(std::string name) { return choice(std::move(name), {false, true}); }

  std::size_t size() const { return parameters_.size(); }
  const std::string& name(std::size_t i) const { return parameters_[i].name; }
  bool is_logarithmic(std::size_t i) const { return parameters_[i].kind == Kind::log_uniform; }

  // For the rooms of the library.
  using Values = std::vector<std::pair<std::string, SearchValue>>;
  /// How many different trials there are; nothing if a range of numbers is among them, or if they are past 2^62.
  std::optional<std::int64_t> count() const;
  /// All combinations of all values, or of the points of ranges; the last one varies fastest. InvalidArgument past a
  /// million.
  std::vector<Values> grid() const;
  /// Values of `trials` trials, which follow from the seed. Where values can be counted none comes twice: then there
  /// are at most as many as there are values.
  std::vector<Values> drawn(std::int64_t trials, std::uint64_t seed) const;

 private:
  enum class Kind { uniform, log_uniform, integers, choice };
  struct Parameter {
    std::string name;
    Kind kind;
    double low = 0, high = 0;  // of numbers
    int points = 0;
    std::int64_t first = 0, step = 1, count = 0;  // of integers; choices have a count, too
    std::vector<SearchValue> choices = {};

    SearchValue at(std::int64_t i) const;  // number i of those that can be counted
    SearchValue between(double share) const;
    bool is_counted() const { return count > 0; }
  };
  SearchSpace& add(Parameter parameter);
  SearchSpace& add_range(Kind kind, std::string name, double low, double high, int points);
  Values draw(std::uint64_t seed) const;
  std::vector<Values> shuffled_grid(std::int64_t trials, std::uint64_t seed) const;
  std::vector<Parameter> parameters_;
};

}  // namespace gradus
