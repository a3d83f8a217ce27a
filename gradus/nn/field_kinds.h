/// Kinds of fields that the walk over a struct of layers distinguishes, and the way in which a class names its layers.
#pragma once
#include <array>
#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>
#include "gradus/base/reflect.h"
#include "gradus/nn/module.h"

namespace gradus {

/// A layer, Variable or an object that holds some, with its name.
template <class T> struct NamedLayer {
  std::string_view name;  // in saved files
  T* layer;               // what it names
};

/// For classes whose fields cannot be visited, because they have private fields or constructors and hold layers
/// indirectly. One line lists their layers, by fields or with names for saved files. Results may also be containers of
/// pointers, or come from a virtual function:
///
///   auto layers() const { return std::tie(first_, blocks_); }
///   auto layers() const { return named_layers("first", first_, "blocks", blocks_); }
inline std::tuple<> named_layers() { return {}; }
template <class T, class... Rest> auto named_layers(std::string_view name, T& layer, Rest&&... rest) {
  return std::tuple_cat(std::tuple(NamedLayer<T>{name, &layer}), named_layers(std::forward<Rest>(rest)...));
}

namespace detail {

template <class T, template <class...> class Template> constexpr bool is_a = false;
template <class... A, template <class...> class Template> constexpr bool is_a<Template<A...>, Template> = true;

template <class T> constexpr bool is_layer = std::derived_from<T, Module> || std::same_as<T, Variable>;
template <class T> constexpr bool is_pair = is_a<T, std::pair>;
template <class T> constexpr bool is_plain = std::is_arithmetic_v<T> || std::is_enum_v<T>;
/// Vectors and arrays: plain elements in them are watched one by one.
template <class T> constexpr bool is_list = is_a<T, std::vector>;
template <class T, std::size_t n> constexpr bool is_list<std::array<T, n>> = true;
template <class T, std::size_t n> constexpr bool is_list<T[n]> = true;

/// Types that hold no layers, or none that could be found.
template <class T>
constexpr bool is_opaque_data =
    is_plain<T> || std::is_void_v<T> || std::is_function_v<T> || std::same_as<T, Tensor> || std::same_as<T, Shape> ||
    std::same_as<T, Spec> || is_a<T, std::basic_string> || is_a<T, std::basic_string_view> || is_a<T, std::function>;

template <class T>
concept Complete = requires { sizeof(T); };
template <class T>
concept SmartPointer =
    (is_a<T, std::shared_ptr> || is_a<T, std::unique_ptr>) && !std::is_array_v<typename T::element_type>;
template <class T>
concept Range = std::ranges::input_range<const T> && !is_layer<T> &&
                !std::same_as<std::remove_cvref_t<std::ranges::range_reference_t<const T>>, T>;
template <class T>
concept Keyed = Range<T> && requires { typename T::mapped_type; };

template <class T> constexpr bool may_hold_layers();
template <class T> struct any_may_hold : std::false_type {};
template <class... A, template <class...> class Template>
struct any_may_hold<Template<A...>> : std::bool_constant<(may_hold_layers<std::remove_cvref_t<A>>() || ...)> {};

/// True if a T may contain layers.
template <class T> constexpr bool may_hold_layers() {
  if constexpr (is_opaque_data<T>) return false;
  else if constexpr (std::is_pointer_v<T>) return may_hold_layers<std::remove_cv_t<std::remove_pointer_t<T>>>();
  else if constexpr (!Complete<T>) return false;
  else if constexpr (is_layer<T>) return true;
  else if constexpr (SmartPointer<T>) return may_hold_layers<std::remove_cv_t<typename T::element_type>>();
  else if constexpr (is_a<T, std::optional> || is_a<T, std::variant> || is_pair<T> || is_a<T, std::tuple> ||
                     is_a<T, std::reference_wrapper>)
    return any_may_hold<T>::value;
  else if constexpr (Keyed<T>) return may_hold_layers<typename T::mapped_type>();
  else if constexpr (Range<T>) return may_hold_layers<std::remove_cvref_t<std::ranges::range_reference_t<const T>>>();
  else return true;
}

/// True if a value of T is, or directly contains, a layer that would be a copy.
template <class T> struct holds_copies : std::bool_constant<is_layer<T>> {};
template <class... A, template <class...> class Template>
struct holds_copies<Template<A...>> : std::bool_constant<is_layer<Template<A...>> || (holds_copies<A>::value || ...)> {
};
template <class T, std::size_t n> struct holds_copies<std::array<T, n>> : holds_copies<T> {};
template <class T, std::size_t n> struct holds_copies<T[n]> : holds_copies<T> {};
template <class T> struct holds_copies<std::reference_wrapper<T>> : std::false_type {};
template <class T> struct holds_copies<std::shared_ptr<T>> : std::false_type {};
template <class T> struct holds_copies<NamedLayer<T>> : std::false_type {};

/// A class that lists its layers.
template <class T>
concept Declared = requires(const T& object) { object.layers(); } &&
                   may_hold_layers<std::remove_cvref_t<decltype(std::declval<const T&>().layers())>>() &&
                   !std::same_as<std::remove_cvref_t<decltype(std::declval<const T&>().layers())>, T>;

/// The layers that it lists, as references to the layers themselves.
template <Declared T> decltype(auto) declared_layers(const T& object) {
  using Result = decltype(object.layers());
  static_assert(std::is_reference_v<Result> || !holds_copies<Result>::value,
                "layers() gives copies of layers: give references, as std::tie(first_, second_) does, or pointers");
  return object.layers();
}

/// True if a T can be copied. std::vector claims to be copyable even if its elements are not.
template <class T, class... Outer> constexpr bool is_copyable();
template <class Tuple, class... Outer> struct all_copyable;
template <class... A, class... Outer>
struct all_copyable<std::tuple<A...>, Outer...>
    : std::bool_constant<(is_copyable<std::remove_cvref_t<A>, Outer...>() && ...)> {};

template <class T, class... Outer> constexpr bool is_copyable() {
  if constexpr ((std::same_as<T, Outer> || ...) || !Complete<T>) return true;
  else if constexpr (std::is_array_v<T>) return is_copyable<std::remove_cv_t<std::remove_all_extents_t<T>>, Outer...>();
  else if constexpr (!std::is_copy_constructible_v<T>) return false;
  else if constexpr (is_layer<T> || is_opaque_data<T>) return true;
  else if constexpr (Keyed<T>) return is_copyable<typename T::mapped_type, T, Outer...>();
  else if constexpr (Range<T>) return is_copyable<std::ranges::range_value_t<const T>, T, Outer...>();
  else if constexpr (Declared<T>) {
    using Named = std::remove_cvref_t<decltype(std::declval<const T&>().layers())>;
    if constexpr (is_a<Named, std::tuple>) return all_copyable<Named, T, Outer...>::value;
    else return true;
  } else if constexpr (reflect::is_reflected<T>)
    return all_copyable<decltype(reflect::tie(std::declval<T&>())), T, Outer...>::value;
  else return true;
}

}  // namespace detail
}  // namespace gradus
