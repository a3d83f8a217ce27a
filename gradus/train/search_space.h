/// The space of a search: named hyperparameters with their possible values, and the values of one trial.
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
/// A value as in tables: numbers to `digits` digits.
std::string to_text(const SearchValue& value, int digits = 6);

/// The values of one trial. Reading a name that does not exist, or as another type than it has, is an InvalidArgument.
struct SearchTrial {
  std::int64_t index = 0;  // from 0
  /// Seed of all random numbers that the trial draws without a seed of its own (weights, shuffles, dropout), as after
  /// set_seed. So they do not depend on other trials.
  std::uint64_t seed = 0;
  std::vector<std::pair<std::string, SearchValue>> values = {};  // by name

  double number(std::string_view name) const;            // also of an integer
  std::int64_t integer(std::string_view name) const;     // value of an integer hyperparameter
  const std::string& text(std::string_view name) const;  // value of a text hyperparameter
  bool flag(std::string_view name) const;                // value of a bool hyperparameter
  /// The value, of any type.
  const SearchValue& operator[](std::string_view name) const;
};

/// Options of ranges of numbers.
struct RangeOptions {
  int points = 5;  // points in a grid, both ends included
  static constexpr auto ranges() { return std::array{Allowed::at_least(2, "points")}; }
};
/// Options of ranges of integers.
struct IntegerOptions {
  std::int64_t step = 1;  // distance between values
  static constexpr auto ranges() { return std::array{Allowed::positive("step")}; }
};

/// Hyperparameters in order. Every function that adds one returns the space. InvalidArgument for a name that is taken,
/// or for impossible values.
///
///   const auto space = SearchSpace().log_uniform("learning_rate", 1e-4, 1e-1).choice("clip", {0.1, 1.0});
class SearchSpace {
 public:
  /// Adds a number from low to high, all equally likely.
  SearchSpace& uniform(std::string name, double low, double high, RangeOptions options = {});
  /// Adds a number from low to high, with all orders of magnitude equally likely; low is positive.
  SearchSpace& log_uniform(std::string name, double low, double high, RangeOptions options = {});
  /// Adds an integer: low, low + step, ... up to high, inclusive.
  SearchSpace& integers(std::string name, std::int64_t low, std::int64_t high, IntegerOptions options = {});
  /// Adds one of these values.
  SearchSpace& choice(std::string name, std::vector<SearchValue> values);
  /// Adds false or true.
  SearchSpace& boolean(std::string name) { return choice(std::move(name), {false, true}); }

  /// The number of hyperparameters.
  std::size_t size() const { return parameters_.size(); }
  /// The name of hyperparameter i.
  const std::string& name(std::size_t i) const { return parameters_[i].name; }
  /// True for log_uniform.
  bool is_logarithmic(std::size_t i) const { return parameters_[i].kind == Kind::log_uniform; }

  // For the rooms of the library.
  /// Values by name.
  using Values = std::vector<std::pair<std::string, SearchValue>>;
  /// The number of different trials; empty if a range of numbers is among them, or if it exceeds 2^62.
  std::optional<std::int64_t> count() const;
  /// All combinations of all values, or of the points of ranges; the last one varies fastest. InvalidArgument for more
  /// than a million.
  std::vector<Values> grid() const;
  /// Values of `trials` trials, which follow from the seed. If the values can be counted, none comes twice: then there
  /// are at most as many as there are values.
  std::vector<Values> drawn(std::int64_t trials, std::uint64_t seed) const;

 private:
  enum class Kind { uniform, log_uniform, integers, choice };
  struct Parameter {
    std::string name;
    Kind kind;
    double low = 0, high = 0;  // of a range of numbers
    int points = 0;
    std::int64_t first = 0, step = 1, count = 0;  // of integers; choices have a count, too
    std::vector<SearchValue> choices = {};

    SearchValue at(std::int64_t i) const;  // number i of values that can be counted
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
