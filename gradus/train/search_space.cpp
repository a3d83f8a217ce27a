/// Values of hyperparameters: looked up, listed and drawn.
#include "gradus/train/search_space.h"
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <set>
#include "gradus/base/error.h"
#include "gradus/base/floating_point_state.h"
#include "gradus/base/hash.h"
#include "gradus/base/nearest.h"
#include "gradus/base/rooms.h"

namespace gradus {
namespace {

constexpr std::int64_t most_counted = std::int64_t{1} << 62, most_of_grid = 1'000'000;

std::string_view type_of(const SearchValue& value) {
  constexpr std::string_view names[] = {"true or false", "an integer", "a number", "a text"};
  return names[value.index()];
}

template <class T> const T& get(const SearchTrial& trial, std::string_view name, std::string_view expected) {
  const SearchValue& value = trial[name];
  const T* found = std::get_if<T>(&value);
  require(found, "hyperparameter `", name, "` is ", type_of(value), ", ", to_text(value), "; asked for was ", expected);
  return *found;
}

}  // namespace

std::string to_text(const SearchValue& value, int digits) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const std::string* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  return gradus::text(std::setprecision(digits), std::get<double>(value));
}

const SearchValue& SearchTrial::operator[](std::string_view name) const {
  std::vector<std::string> known;
  for (const auto& [its_name, value] : values) {
    if (its_name == name) return value;
    known.push_back(its_name);
  }
  throw InvalidArgument(gradus::text("there is no hyperparameter `", name, "`",
                                     known.empty() ? "; the space is empty" : did_you_mean(name, known)));
}

double SearchTrial::number(std::string_view name) const {
  if (const auto* integer = std::get_if<std::int64_t>(&(*this)[name])) return static_cast<double>(*integer);
  return get<double>(*this, name, "a number");
}
std::int64_t SearchTrial::integer(std::string_view name) const { return get<std::int64_t>(*this, name, "an integer"); }
const std::string& SearchTrial::text(std::string_view name) const { return get<std::string>(*this, name, "a text"); }
bool SearchTrial::flag(std::string_view name) const { return get<bool>(*this, name, "true or false"); }

SearchSpace& SearchSpace::add(Parameter parameter) {
  require(!parameter.name.empty(), "SearchSpace: a hyperparameter needs a name");
  for (const Parameter& other : parameters_)
    require(other.name != parameter.name, "SearchSpace: two hyperparameters are called ", parameter.name);
  parameters_.push_back(std::move(parameter));
  return *this;
}

SearchSpace& SearchSpace::add_range(Kind kind, std::string name, double low, double high, int points) {
  const HostFloats floats;
  require(std::isfinite(low) && std::isfinite(high) && low < high && std::isfinite(high - low), "SearchSpace: `", name,
          "` goes from ", low, " to ", high, "; expected two finite numbers, the smaller one first");
  check_options(text("SearchSpace: `", name, '`'), RangeOptions{points});
  Parameter parameter{.name = std::move(name), .kind = kind};
  parameter.low = low;
  parameter.high = high;
  parameter.points = points;
  return add(std::move(parameter));
}

SearchSpace& SearchSpace::uniform(std::string name, double low, double high, RangeOptions options) {
  return add_range(Kind::uniform, std::move(name), low, high, options.points);
}

SearchSpace& SearchSpace::log_uniform(std::string name, double low, double high, RangeOptions options) {
  require(low > 0, "SearchSpace: `", name, "` is log_uniform from ", low, "; its logarithm needs a positive number");
  return add_range(Kind::log_uniform, std::move(name), low, high, options.points);
}

SearchSpace& SearchSpace::integers(std::string name, std::int64_t low, std::int64_t high, IntegerOptions options) {
  constexpr std::int64_t most = std::int64_t{1} << 53;
  require(low <= high && low >= -most && high <= most, "SearchSpace: `", name, "` goes from ", low, " to ", high,
          "; expected integers up to 2^53, the smaller one first");
  check_options(text("SearchSpace: `", name, '`'), options);
  Parameter parameter{.name = std::move(name), .kind = Kind::integers};
  parameter.first = low;
  parameter.step = options.step;
  parameter.count = (high - low) / options.step + 1;
  return add(std::move(parameter));
}

SearchSpace& SearchSpace::choice(std::string name, std::vector<SearchValue> values) {
  require(!values.empty(), "SearchSpace: `", name, "` has no values to choose from");
  for (const SearchValue& value : values) {
    const double* number = std::get_if<double>(&value);
    require(!number || std::isfinite(*number), "SearchSpace: `", name, "` may be ", to_text(value),
            "; expected finite numbers");
    require(std::ranges::count(values, value) == 1, "SearchSpace: `", name, "` has the value ", to_text(value),
            " twice");
  }
  Parameter parameter{.name = std::move(name), .kind = Kind::choice};
  parameter.count = static_cast<std::int64_t>(values.size());
  parameter.choices = std::move(values);
  return add(std::move(parameter));
}

SearchValue SearchSpace::Parameter::at(std::int64_t i) const {
  if (!is_counted()) return between(static_cast<double>(i) / (points - 1));
  if (kind == Kind::choice) return choices[static_cast<std::size_t>(i)];
  return first + i * step;
}

/// A share of 0 is the low end, 1 the high one, both exactly.
SearchValue SearchSpace::Parameter::between(double share) const {
  if (share <= 0 || share >= 1) return share <= 0 ? low : high;
  const double value = kind == Kind::log_uniform ? std::exp(std::log(low) + share * (std::log(high) - std::log(low)))
                                                 : low + share * (high - low);
  return std::clamp(value, low, high);
}

std::optional<std::int64_t> SearchSpace::count() const {
  std::int64_t all = 1;
  for (const Parameter& parameter : parameters_) {
    if (!parameter.is_counted() || all > most_counted / parameter.count) return {};
    all *= parameter.count;
  }
  return all;
}

std::vector<SearchSpace::Values> SearchSpace::grid() const {
  const HostFloats floats;
  std::int64_t all = 1;
  const auto size_of = [](const Parameter& p) { return p.is_counted() ? p.count : p.points; };
  for (const Parameter& parameter : parameters_) {
    require(size_of(parameter) <= most_of_grid / all, "grid_search: the grid has more than ", most_of_grid,
            " trials; take fewer values, or random_search");
    all *= size_of(parameter);
  }
  std::vector<Values> grid;
  for (std::int64_t i = 0; i < all; ++i) {
    Values values(parameters_.size());
    std::int64_t rest = i;
    for (std::size_t p = parameters_.size(); p-- > 0; rest /= size_of(parameters_[p]))
      values[p] = {parameters_[p].name, parameters_[p].at(rest % size_of(parameters_[p]))};
    grid.push_back(std::move(values));
  }
  return grid;
}

SearchSpace::Values SearchSpace::draw(std::uint64_t seed) const {
  const HostFloats floats;
  Values values;
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    const Parameter& parameter = parameters_[p];
    const double share = static_cast<double>(mix(mix(seed, p), 0) >> 11) * 0x1p-53;  // from 0 up to but not with 1
    const double count = static_cast<double>(parameter.count);
    const auto place = std::min(static_cast<std::int64_t>(share * count), parameter.count - 1);
    values.emplace_back(parameter.name, parameter.is_counted() ? parameter.at(place) : parameter.between(share));
  }
  return values;
}

std::vector<SearchSpace::Values> SearchSpace::drawn(std::int64_t trials, std::uint64_t seed) const {
  const HostFloats floats;
  const std::optional<std::int64_t> different = count();
  if (different) trials = std::min(trials, *different);
  if (different && *different <= most_of_grid && 2 * trials > *different) return shuffled_grid(trials, seed);
  std::vector<Values> drawn;
  std::set<Values> seen;
  for (std::uint64_t i = 0; static_cast<std::int64_t>(drawn.size()) < trials; ++i) {
    Values values = draw(mix(seed, i));
    if (!different || seen.insert(values).second) drawn.push_back(std::move(values));
  }
  return drawn;
}

/// Where most of all that there are is wanted, drawing until it is new would take long.
std::vector<SearchSpace::Values> SearchSpace::shuffled_grid(std::int64_t trials, std::uint64_t seed) const {
  const HostFloats floats;
  std::vector<Values> all = grid();
  for (std::size_t i = 0; i < static_cast<std::size_t>(trials); ++i)
    std::swap(all[i], all[i + mix(mix(seed, i), 0) % (all.size() - i)]);
  all.resize(static_cast<std::size_t>(trials));
  return all;
}

}  // namespace gradus
