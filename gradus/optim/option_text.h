/// Options as text: exact, and equal for equal options, so that a checkpoint can keep a program's statement.
#pragma once
#include <charconv>
#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>
#include "gradus/base/error.h"
#include "gradus/base/reflect.h"

namespace gradus {

template <class T>
concept PlainOption = std::same_as<T, double> || std::same_as<T, std::int64_t> || std::same_as<T, bool>;
/// A class that stands for a number, as Steps.
template <class T>
concept NumberOption = std::is_class_v<T> && std::convertible_to<T, double>;

/// Names and values of options.
using NamedOptions = std::vector<std::pair<std::string, std::string>>;

/// The shortest text that is read back as the same number, without an exponent for numbers of usual size.
inline std::string option_text(double value) {
  const double size = value < 0 ? -value : value;
  const bool is_plain = size == 0 || (size >= 1e-6 && size < 1e15);
  char digits[40];
  const auto [end, problem] = std::to_chars(digits, digits + sizeof digits, value,
                                            is_plain ? std::chars_format::fixed : std::chars_format::scientific);
  return {digits, end};
}
inline std::string option_text(std::int64_t value) { return std::to_string(value); }
inline std::string option_text(bool value) { return value ? "true" : "false"; }

/// The number and boolean fields, in their order, without an optimizer's rate, which is a schedule.
template <class Options> NamedOptions named_options(const Options& options) {
  NamedOptions all;
  reflect::for_each_field(options, [&](std::string_view name, const auto& value) {
    using Field = std::remove_cvref_t<decltype(value)>;
    if constexpr (PlainOption<Field>) all.emplace_back(name, option_text(value));
    else if constexpr (NumberOption<Field>) all.emplace_back(name, option_text(static_cast<double>(value)));
  });
  return all;
}
/// "decay_steps 100, alpha 0"
template <class Options> std::string options_text(const Options& options) {
  std::string all;
  for (const auto& [name, value] : named_options(options)) all += text(all.empty() ? "" : ", ", name, ' ', value);
  return all;
}

}  // namespace gradus
