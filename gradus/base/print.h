/// Printing for programs and notebooks.
#pragma once
#include <iostream>
#include <optional>
#include <ranges>
#include <tuple>
#include <type_traits>

namespace gradus {

namespace detail {

template <class T>
concept Streamable = requires(std::ostream& out, const T& value) { out << value; };
template <class T> constexpr bool is_text_array = false;
template <std::size_t n> constexpr bool is_text_array<char[n]> = true;
template <class T> constexpr bool is_optional = false;
template <class T> constexpr bool is_optional<std::optional<T>> = true;

/// Prints a value by its operator<< if it has one; else a list as [1, 2], a pair or tuple as (1, 2), an optional as its
/// value or none.
template <class T> void show(std::ostream& out, const T& value) {
  [[maybe_unused]] const char* separator = "";
  [[maybe_unused]] const auto show_next = [&](const auto& each) {
    out << separator;
    show(out, each);
    separator = ", ";
  };
  if constexpr (Streamable<T> && (!std::is_array_v<T> || is_text_array<T>)) {
    out << value;
  } else if constexpr (is_optional<T>) {
    if (value) show(out, *value);
    else out << "none";
  } else if constexpr (std::ranges::input_range<const T>) {
    out << '[';
    for (const auto& each : value) show_next(each);
    out << ']';
  } else if constexpr (requires { std::tuple_size<T>::value; }) {
    out << '(';
    std::apply([&](const auto&... each) { (show_next(each), ...); }, value);
    out << ')';
  } else {
    static_assert(std::is_void_v<T>, "print: this type has no operator<<: print what it holds, or give it one");
  }
}

}  // namespace detail

/// Prints values separated by blanks, then a new line, to standard output. It flushes at once, so the text is complete,
/// also in a pipe or file, when an error ends the program.
template <class... T> void print(const T&... values) {
  [[maybe_unused]] const char* separator = "";
  ((std::cout << separator, detail::show(std::cout, values), separator = " "), ...);
  std::cout << std::endl;
}

}  // namespace gradus
