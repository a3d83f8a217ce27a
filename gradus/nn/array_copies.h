/// Copying of structs with arrays of Variables. Variable's copy constructor is explicit, and GCC (up to 12 at least)
/// copies arrays as if they were initialised by `=`, which then does not compile. So they are copied here element by
/// element.
#pragma once
#include <optional>
#include <utility>
#include "gradus/nn/field_kinds.h"

namespace gradus::detail {

[[noreturn]] void fail_copy(const char* type);

#if defined(__GNUC__) && !defined(__clang__)
inline constexpr bool arrays_need_copying = true;
#else
inline constexpr bool arrays_need_copying = false;
#endif

template <class T> constexpr bool is_std_array = false;
template <class T, std::size_t n> constexpr bool is_std_array<std::array<T, n>> = true;

template <class T, class... Outer> constexpr bool has_variable_arrays();
template <class Parts, class... Outer> struct any_variable_arrays;
template <class... A, template <class...> class Parts, class... Outer>
struct any_variable_arrays<Parts<A...>, Outer...>
    : std::bool_constant<(has_variable_arrays<std::remove_cvref_t<A>, Outer...>() || ...)> {};

/// True if a value of T contains an array of Variables, not behind pointers.
template <class T, class... Outer> constexpr bool has_variable_arrays() {
  if constexpr (!arrays_need_copying || (std::same_as<T, Outer> || ...)) return false;
  else if constexpr (std::is_array_v<T>) {
    using Each = std::remove_cv_t<std::remove_all_extents_t<T>>;
    return std::same_as<Each, Variable> || has_variable_arrays<Each, Outer...>();
  } else if constexpr (std::is_pointer_v<T> || !Complete<T> || is_layer<T> || is_opaque_data<T>) return false;
  else if constexpr (is_std_array<T>)
    return std::same_as<typename T::value_type, Variable> || has_variable_arrays<typename T::value_type, Outer...>();
  else if constexpr (is_a<T, std::optional> || is_a<T, std::variant> || is_pair<T> || is_a<T, std::tuple>)
    return any_variable_arrays<T, T, Outer...>::value;
  else if constexpr (Keyed<T>) return has_variable_arrays<typename T::mapped_type, T, Outer...>();
  else if constexpr (Range<T>) return has_variable_arrays<std::ranges::range_value_t<const T>, T, Outer...>();
  else if constexpr (reflect::is_reflected<T>)
    return any_variable_arrays<decltype(reflect::tie(std::declval<T&>())), T, Outer...>::value;
  else return false;
}

/// Constructs a value in its final place.
template <class Make> struct MadeInPlace {
  Make make;
  operator decltype(std::declval<Make>()())() const { return make(); }
};

/// References to the fields; for C arrays, to their elements.
template <class T> auto pieces_of(const T& field) {
  if constexpr (std::is_array_v<T>)
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return std::tuple_cat(pieces_of(field[i])...);
    }(std::make_index_sequence<std::extent_v<T>>());
  else return std::tie(field);
}

template <class T> T copied(const T& value);
/// The argument that makes a T a copy of `value`.
template <class T> decltype(auto) made_of(const T& value) {
  if constexpr (has_variable_arrays<T>()) return MadeInPlace{[&value] { return copied(value); }};
  else return (value);
}

/// A copy of `value`.
template <class T> T copied(const T& value) {
  if constexpr (!has_variable_arrays<T>()) {
    return T(value);
  } else if constexpr (is_std_array<T>) {
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return T{{copied(value[i])...}};
    }(std::make_index_sequence<std::tuple_size_v<T>>());
  } else if constexpr (is_a<T, std::optional>) {
    T made;
    if (value) made.emplace(made_of(*value));
    return made;
  } else if constexpr (is_a<T, std::variant>) {
    if (value.valueless_by_exception()) fail_copy(typeid(T).name());
    std::optional<T> made;
    const auto try_place = [&]<std::size_t i>(std::integral_constant<std::size_t, i>) {
      if (value.index() == i) made.emplace(std::in_place_index<i>, made_of(std::get<i>(value)));
    };
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      (try_place(std::integral_constant<std::size_t, i>()), ...);
    }(std::make_index_sequence<std::variant_size_v<T>>());
    return std::move(*made);
  } else if constexpr (is_pair<T> || is_a<T, std::tuple>) {
    return std::apply([&](const auto&... each) { return T(made_of(each)...); }, value);
  } else if constexpr (Keyed<T>) {
    T made;
    for (const auto& [key, each] : value) made.emplace(key, made_of(each));
    return made;
  } else if constexpr (Range<T>) {
    T made;
    if constexpr (requires { made.reserve(value.size()); }) made.reserve(value.size());
    for (const auto& each : value) {
      if constexpr (requires { made.emplace_back(made_of(each)); }) made.emplace_back(made_of(each));
      else made.emplace(made_of(each));
    }
    return made;
  } else {
    const auto pieces =
        std::apply([](const auto&... each) { return std::tuple_cat(pieces_of(each)...); }, reflect::tie(value));
    return std::apply([](const auto&... each) { return T{copied(each)...}; }, pieces);
  }
}

}  // namespace gradus::detail
