/// The walk over the fields of a user's struct that finds its layers and variables, with their names.
#pragma once
#include <array>
#include <concepts>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>
#include "gradus/base/reflect.h"
#include "gradus/nn/module.h"

namespace gradus {

/// What a walk meets, in the order of the fields. A name is that of the field: "first", "layers_0" within an array or a
/// vector, "block/first" within a struct.
struct FieldVisitor {
  std::function<void(const std::string& name, const Module& layer)> layer = [](const std::string&, const Module&) {};
  std::function<void(const std::string& name, const Variable& variable)> variable = [](const std::string&,
                                                                                       const Variable&) {};
  /// Of a field that is neither: bool, integer, floating number or enum, spelt.
  std::function<void(const std::string& name, std::string value)> plain = [](const std::string&, std::string) {};
  /// Of a field that is not walked: tensors, texts, functions.
  std::function<void(const std::string& name)> other = [](const std::string&) {};
};

namespace detail {

template <class T> constexpr bool is_optional = false;
template <class T> constexpr bool is_optional<std::optional<T>> = true;
template <class T> constexpr bool is_array = false;
template <class T, std::size_t N> constexpr bool is_array<std::array<T, N>> = true;
template <class T> constexpr bool is_array<std::vector<T>> = true;

/// Fields of other types (tensors, texts, functions) are passed over.
template <class T> void visit_field(const std::string& name, const T& field, const FieldVisitor& visitor) {
  if constexpr (std::derived_from<T, Module>) {
    visitor.layer(name, field);
  } else if constexpr (std::same_as<T, Variable>) {
    visitor.variable(name, field);
  } else if constexpr (std::same_as<T, bool>) {
    visitor.plain(name, field ? "true" : "false");
  } else if constexpr (std::is_enum_v<T>) {
    visitor.plain(name, std::to_string(static_cast<std::int64_t>(field)));
  } else if constexpr (std::is_arithmetic_v<T>) {
    std::ostringstream spelt;
    spelt.precision(17);
    spelt << +field;
    visitor.plain(name, std::move(spelt).str());
  } else if constexpr (is_optional<T>) {
    if (field) visit_field(name, *field, visitor);
    else visitor.plain(name, "none");
  } else if constexpr (is_array<T>) {
    for (std::size_t i = 0; i < field.size(); ++i)
      visit_field<typename T::value_type>(name + "_" + std::to_string(i), field[i], visitor);
  } else if constexpr (std::is_aggregate_v<T> && !std::is_array_v<T>) {
    reflect::for_each_field(field, [&](std::string_view inner, const auto& each) {
      visit_field(name.empty() ? std::string(inner) : name + "/" + std::string(inner), each, visitor);
    });
  } else {
    visitor.other(name);
  }
}

}  // namespace detail

/// Visits the fields of `object`, a struct without bases and constructors.
template <class T> void visit_fields(const T& object, const FieldVisitor& visitor) {
  static_assert(std::is_aggregate_v<T>, "a model's struct has public fields, no base and no constructor");
  detail::visit_field(std::string(), object, visitor);
}

}  // namespace gradus
