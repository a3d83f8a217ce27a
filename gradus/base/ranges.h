/// Allowed values of the numbers in an option struct: a table beside the fields, and one function that checks the
/// options. A struct declares
///   static constexpr auto ranges() { return std::array{Allowed::positive("epsilon"), Allowed::share("rate alpha")}; }
/// and the function that takes it calls check_options. A number without a row does not compile, nor does a row without
/// its field.
#pragma once
#include <array>
#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "gradus/base/error.h"
#include "gradus/base/reflect.h"

namespace gradus {

/// The allowed values of some fields.
struct Allowed {
  static constexpr double infinity = std::numeric_limits<double>::infinity();  // no bound
  std::string_view fields;                                                     // names separated by spaces
  double least = -infinity, most = infinity;                                   // bounds
  bool above = false, below = false;                                           // the bound itself is not allowed
  bool anything = false;                                                       // NaN and infinities are allowed, too

  /// Any finite number.
  static constexpr Allowed finite(std::string_view fields) { return {fields, -infinity, infinity, true, true}; }
  /// Above 0, finite.
  static constexpr Allowed positive(std::string_view fields) { return {fields, 0, infinity, true, true}; }
  /// At least 0, finite.
  static constexpr Allowed not_negative(std::string_view fields) { return {fields, 0, infinity, false, true}; }
  /// At least `least`, finite.
  static constexpr Allowed at_least(double least, std::string_view fields) {
    return {fields, least, infinity, false, true};
  }
  /// Above `least`, finite.
  static constexpr Allowed more_than(double least, std::string_view fields) {
    return {fields, least, infinity, true, true};
  }
  /// From `least` to `most`, both included.
  static constexpr Allowed within(double least, double most, std::string_view fields) { return {fields, least, most}; }
  /// From 0 to 1, both included.
  static constexpr Allowed share(std::string_view fields) { return {fields, 0, 1}; }
  /// From 0, included, to 1, excluded.
  static constexpr Allowed share_below_one(std::string_view fields) { return {fields, 0, 1, false, true}; }
  /// Between 0 and 1, both excluded.
  static constexpr Allowed between_zero_and_one(std::string_view fields) { return {fields, 0, 1, true, true}; }
  /// Every number is meaningful: a seed, a limit that may be infinite, a number that is checked against the data.
  static constexpr Allowed any(std::string_view fields) { return {.fields = fields, .anything = true}; }

  /// True if `value` is allowed.
  constexpr bool holds(double value) const {
    if (anything) return true;
    return (above ? value > least : value >= least) && (below ? value < most : value <= most);
  }
  /// True if `field` is one of the names.
  constexpr bool names(std::string_view field) const {
    for (std::string_view rest = fields; !rest.empty();) {
      const std::size_t end = rest.find(' ');
      if (rest.substr(0, end) == field) return true;
      rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
    }
    return false;
  }
  /// The number of names.
  constexpr int count() const {
    int n = fields.empty() ? 0 : 1;
    for (const char c : fields) n += c == ' ';
    return n;
  }
};

namespace detail::inline rooms {

/// Throws InvalidArgument: `owner`: `field` must be in the range, got `value`.
[[noreturn]] void fail_range(std::string_view owner, std::string_view field, const Allowed& range, double value);
[[noreturn]] void fail_range(std::string_view owner, std::string_view field, const Allowed& range, std::int64_t value);

/// Checks one number that is no field, such as an argument of a constructor. The range's own names are ignored.
template <class T>
  requires std::integral<T> || std::floating_point<T>
void check_number(std::string_view owner, std::string_view field, const Allowed& range, T value) {
  if (range.holds(static_cast<double>(value))) [[likely]]
    return;
  if constexpr (std::integral<T>) fail_range(owner, field, range, static_cast<std::int64_t>(value));
  else fail_range(owner, field, range, static_cast<double>(value));
}

template <class T> void check_options(std::string_view owner, const T& options);

}  // namespace detail::inline rooms

namespace detail {

template <class T> constexpr bool is_option_number = std::integral<T> || std::floating_point<T>;
template <> inline constexpr bool is_option_number<bool> = false;
template <> inline constexpr bool is_option_number<char> = false;

template <class T>
concept HasRanges = requires { T::ranges(); };
/// Numbers in a wrapper that may hold something else, such as a learning rate.
template <class T>
concept MaybeConstant = requires(const T& x) {
  { x.is_constant() } -> std::same_as<bool>;
  { x.constant() } -> std::same_as<double>;
};

/// True if a field of this type is or contains numbers that need a row.
template <class T> constexpr bool holds_numbers = is_option_number<T> || MaybeConstant<T>;
template <class T> constexpr bool holds_numbers<std::optional<T>> = holds_numbers<T>;
template <class T> constexpr bool holds_numbers<std::vector<T>> = holds_numbers<T>;
template <class T, std::size_t n> constexpr bool holds_numbers<std::array<T, n>> = holds_numbers<T>;

template <class T> constexpr auto ranges_of = T::ranges();

/// The row of field i; -1: none.
template <class T, int i> consteval int row_of() {
  for (std::size_t row = 0; row < ranges_of<T>.size(); ++row)
    if (ranges_of<T>[row].names(reflect::name_of_field<T, i>)) return static_cast<int>(row);
  return -1;
}

template <class T>
void check_field(std::string_view owner, std::string_view field, const Allowed& range, const T& value);

template <class T>
void check_elements(std::string_view owner, std::string_view field, const Allowed& range, const T& values) {
  for (std::size_t i = 0; i < values.size(); ++i) check_field(owner, text(field, '[', i, ']'), range, values[i]);
}
template <class T> constexpr bool is_option_list = false;
template <class T> constexpr bool is_option_list<std::vector<T>> = true;
template <class T, std::size_t n> constexpr bool is_option_list<std::array<T, n>> = true;

template <class T>
void check_field(std::string_view owner, std::string_view field, const Allowed& range, const T& value) {
  if constexpr (is_option_number<T>) {
    check_number(owner, field, range, value);
  } else if constexpr (MaybeConstant<T>) {
    if (value.is_constant()) check_number(owner, field, range, value.constant());
  } else if constexpr (is_option_list<T>) {
    check_elements(owner, field, range, value);
  } else {
    if (value) check_field(owner, field, range, *value);
  }
}

/// Checks a struct of options within another one.
template <class T> void check_nested(std::string_view owner, std::string_view field, const T& value) {
  if constexpr (HasRanges<T>) {
    check_options(text(owner, ": ", field), value);
  } else if constexpr (requires {
                         typename T::value_type;
                         *value;
                         static_cast<bool>(value);
                       }) {
    if constexpr (HasRanges<typename T::value_type>)
      if (value) check_options(text(owner, ": ", field), *value);
  }
}

template <class T, int i> int check_option(std::string_view owner, const T& options) {
  const auto& value = std::get<static_cast<std::size_t>(i)>(reflect::tie(options));
  using Field = std::remove_cvref_t<decltype(value)>;
  constexpr int row = row_of<T, i>();
  static_assert(row >= 0 || !holds_numbers<Field>, "a number of these options has no row in their ranges()");
  static_assert(row < 0 || holds_numbers<Field>, "ranges() names a field that holds no number");
  if constexpr (row >= 0)
    check_field(owner, reflect::name_of_field<T, i>, ranges_of<T>[static_cast<std::size_t>(row)], value);
  else check_nested(owner, reflect::name_of_field<T, i>, value);
  return 0;
}

template <class T, int... i> consteval int named_fields(std::integer_sequence<int, i...>) {
  return ((row_of<T, i>() >= 0) + ... + 0);
}
template <class T> consteval int names_in_rows() {
  int n = 0;
  for (const Allowed& range : ranges_of<T>) n += range.count();
  return n;
}

}  // namespace detail

namespace detail::inline rooms {

/// InvalidArgument, opened by `owner`, unless each number of `options` is in its range.
template <class T> void check_options(std::string_view owner, const T& options) {
  constexpr auto fields = std::make_integer_sequence<int, reflect::field_count<T>>();
  static_assert(detail::named_fields<T>(fields) == detail::names_in_rows<T>(), "ranges() names what is no field");
  [&]<int... i>(std::integer_sequence<int, i...>) { (detail::check_option<T, i>(owner, options), ...); }(fields);
}

/// Checks and returns options: for the initializer list of a constructor.
template <class T> T checked_options(std::string_view owner, T options) {
  check_options(owner, options);
  return options;
}

}  // namespace detail::inline rooms

}  // namespace gradus
