/// Values with parts: arrays, pairs, tuples, std::vector, std::map with texts as keys, and plain structs, whose fields
/// are found without macros (base/reflect.h).
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#include "gradus/base/reflect.h"

namespace gradus::parts {

/// Arrays, pairs and tuples: the type says how many parts there are.
template <class T> constexpr bool is_sequence = requires { std::tuple_size<T>::value; };
template <class T> constexpr bool is_vector = false;
template <class T, class A> constexpr bool is_vector<std::vector<T, A>> = true;
template <class T> constexpr bool is_map = false;
template <class T, class C, class A> constexpr bool is_map<std::map<std::string, T, C, A>> = true;

/// True for an aggregate that is none of the others and has fields.
template <class T>
constexpr bool is_struct = [] {
  if constexpr (!std::is_class_v<T> || !std::is_aggregate_v<T> || is_sequence<T>) return false;
  else if constexpr (std::is_empty_v<T>) return false;
  else return reflect::is_reflected<T>;
}();

template <template <class> class Leaf, class T, class... Outer> consteval bool made_of();

/// A field keeps its type, and so do the parts of its own.
template <template <class> class Leaf, class Fields, class... Outer> struct all_made_of;
template <template <class> class Leaf, class... T, class... Outer>
struct all_made_of<Leaf, std::tuple<T...>, Outer...>
    : std::bool_constant<(made_of<Leaf, std::remove_reference_t<T>, Outer...>() && ...)> {};
template <template <class> class Leaf, class A, class B, class... Outer>
struct all_made_of<Leaf, std::pair<A, B>, Outer...>
    : std::bool_constant<made_of<Leaf, A, Outer...>() && made_of<Leaf, B, Outer...>()> {};
template <template <class> class Leaf, class T, std::size_t n, class... Outer>
struct all_made_of<Leaf, std::array<T, n>, Outer...> : std::bool_constant<made_of<Leaf, T, Outer...>()> {};

/// True if `Leaf` accepts T, or all parts of T, of their parts and so on. A struct may hold a vector or map of itself.
template <template <class> class Leaf, class T, class... Outer> consteval bool made_of() {
  if constexpr (Leaf<T>::value || (std::same_as<T, Outer> || ...)) return true;
  else if constexpr (std::is_array_v<T>) return made_of<Leaf, std::remove_extent_t<T>, Outer...>();
  else if constexpr (is_sequence<T>) return all_made_of<Leaf, T, Outer...>::value;
  else if constexpr (is_vector<T>) return made_of<Leaf, typename T::value_type, Outer...>();
  else if constexpr (is_map<T>) return made_of<Leaf, typename T::mapped_type, Outer...>();
  else if constexpr (is_struct<T>)
    return all_made_of<Leaf, decltype(reflect::tie(std::declval<T&>())), T, Outer...>::value;
  else return false;
}

/// Calls visit(part) for each part of `whole`, in order; those of a map by their keys.
template <class T> void for_each(T& whole, const auto& visit) {
  using Plain = std::remove_const_t<T>;
  if constexpr (is_sequence<Plain>) std::apply([&](auto&... part) { (visit(part), ...); }, whole);
  else if constexpr (is_vector<Plain> || std::is_array_v<Plain>)
    for (auto&& part : whole) visit(part);
  else if constexpr (is_map<Plain>)
    for (auto& [key, part] : whole) visit(part);
  else std::apply([&](auto&... part) { (visit(part), ...); }, reflect::tie(whole));
}

/// The structure that the type of `whole` leaves open, as text: the length of a vector, the keys of a map.
template <class T> std::string open_structure(const T& whole) {
  if constexpr (is_vector<T>) {
    return '[' + std::to_string(whole.size()) + "] ";
  } else if constexpr (is_map<T>) {
    std::string keys = "{ ";
    for (const auto& [key, part] : whole) keys += std::to_string(key.size()) + ':' + key + ' ';
    return keys + "} ";
  } else {
    return {};
  }
}

}  // namespace gradus::parts
