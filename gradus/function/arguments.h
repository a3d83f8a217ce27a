/// Arguments and results of traced functions: their types, and how they are taken apart into tensors and put together
/// again.
#pragma once
#include <array>
#include <concepts>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>
#include "gradus/base/parts.h"
#include "gradus/function/variable.h"
#include "gradus/graph/mask.h"
#include "gradus/graph/tensor.h"

namespace gradus {

class Loss;
class Gradients;
namespace detail::inline rooms {

struct StaticArguments;

template <class T>
struct argument_leaf : std::bool_constant<OneOf<T, Tensor, Variable> || std::is_arithmetic_v<T> || std::is_enum_v<T>> {
};
template <class T> struct result_leaf : std::bool_constant<OneOf<T, Tensor, Loss, Gradients>> {};

/// The type of an argument as a traced function sees it: floating numbers and Variables have become tensors.
template <class A> struct traced {
  using type = std::conditional_t<std::is_floating_point_v<A> || std::same_as<A, Variable>, Tensor, A>;
};
template <class A, std::size_t N> struct traced<std::array<A, N>> {
  using type = std::array<typename traced<A>::type, N>;
};
template <class A, class B> struct traced<std::pair<A, B>> {
  using type = std::pair<typename traced<A>::type, typename traced<B>::type>;
};
template <class... A> struct traced<std::tuple<A...>> {
  using type = std::tuple<typename traced<A>::type...>;
};
template <class A> struct traced<std::vector<A>> {
  using type = std::vector<typename traced<A>::type>;
};
template <class A, class C> struct traced<std::map<std::string, A, C>> {
  using type = std::map<std::string, typename traced<A>::type, C>;
};
template <class A> using traced_t = typename traced<A>::type;

}  // namespace detail::inline rooms

namespace detail {

/// An argument that is traced as its own type, as the fields of a struct have to be.
template <class T> struct kept_leaf : std::bool_constant<argument_leaf<T>::value && std::same_as<traced_t<T>, T>> {};

/// False for a struct with a floating number or a Variable in it, and for a value that holds one.
template <class A> struct keeps_fields : std::true_type {};
template <class A>
  requires parts::is_struct<A>
struct keeps_fields<A> : std::bool_constant<parts::made_of<kept_leaf, A>()> {};
template <class A, std::size_t N> struct keeps_fields<std::array<A, N>> : keeps_fields<A> {};
template <class A> struct keeps_fields<std::vector<A>> : keeps_fields<A> {};
template <class A, class C> struct keeps_fields<std::map<std::string, A, C>> : keeps_fields<A> {};
template <class A, class B>
struct keeps_fields<std::pair<A, B>> : std::conjunction<keeps_fields<A>, keeps_fields<B>> {};
template <class... A> struct keeps_fields<std::tuple<A...>> : std::conjunction<keeps_fields<A>...> {};

}  // namespace detail

namespace detail::inline rooms {

/// Tensors, Variables, numbers, bools, enums; arrays, pairs, tuples, vectors, maps by std::string and plain structs of
/// them. A struct whose fields would have to become Tensors, floating numbers and Variables, is none.
template <class A>
concept FunctionArgument = parts::made_of<argument_leaf, A>() && detail::keeps_fields<A>::value;
/// Tensors, Loss, Gradients; arrays, pairs, tuples, vectors, maps by std::string and plain structs of them.
template <class R>
concept FunctionResult = std::is_void_v<R> || parts::made_of<result_leaf, R>();

}  // namespace detail::inline rooms

namespace detail {

/// A scalar f32 with this value: data, not structure.
Tensor number_argument(double value);

/// A variable whose address stands for a list of types.
template <class... T> inline constexpr char types_tag = 0;

template <class A> void flatten_argument(const A& argument, Tensors& tensors, std::string& statics) {
  if constexpr (std::same_as<A, Tensor>) tensors.push_back(argument);
  else if constexpr (std::same_as<A, Variable>) tensors.push_back(argument.value());
  else if constexpr (std::is_floating_point_v<A>) tensors.push_back(number_argument(argument));
  else if constexpr (std::is_enum_v<A>) statics += std::to_string(static_cast<std::int64_t>(argument)) + ' ';
  else if constexpr (std::is_arithmetic_v<A>) statics += std::to_string(argument) + ' ';
  else {
    statics += parts::open_structure(argument);
    parts::for_each(argument, [&](const auto& part) { flatten_argument(part, tensors, statics); });
  }
}

/// The masks of arguments are further arguments, after all others. The positions of masked arguments are part of the
/// key.
class MaskedArguments {
 public:
  MaskedArguments(Tensors& tensors, StaticArguments& statics);
  /// Gives the tensors that stand for arguments their masks, and returns the arguments without the masks.
  In take(In in) const;

 private:
  const std::vector<std::size_t> places_;
};

template <class A> traced_t<A> rebuild_argument(const A& argument, In in, std::size_t& next);

/// Gives the tensors in `part`, which is traced as its own type, their values from `in`.
template <class A> void replace_tensors(A& part, In in, std::size_t& next) {
  if constexpr (std::is_array_v<A>) parts::for_each(part, [&](auto& each) { replace_tensors(each, in, next); });
  else part = rebuild_argument(part, in, next);
}

/// The argument with tensors taken from `in`, in order.
template <class A> traced_t<A> rebuild_argument(const A& argument, In in, std::size_t& next) {
  if constexpr (std::same_as<traced_t<A>, Tensor>) {
    return in[next++];
  } else if constexpr (argument_leaf<A>::value) {
    return argument;
  } else if constexpr (parts::is_sequence<A>) {
    return std::apply([&](const auto&... part) { return traced_t<A>{rebuild_argument(part, in, next)...}; }, argument);
  } else if constexpr (parts::is_vector<A>) {
    traced_t<A> made;
    made.reserve(argument.size());
    for (const typename A::value_type& part : argument) made.push_back(rebuild_argument(part, in, next));
    return made;
  } else if constexpr (parts::is_map<A>) {
    traced_t<A> made;
    for (const auto& [key, part] : argument) made.emplace_hint(made.end(), key, rebuild_argument(part, in, next));
    return made;
  } else {
    A made(argument);
    parts::for_each(made, [&](auto& part) { replace_tensors(part, in, next); });
    return made;
  }
}

template <class A>
concept Text = std::convertible_to<const A&, std::string_view>;

/// The kind of a call: a right one, or one with a certain mistake.
enum class CallKind { right, text, kind, field, number, mutable_closure, reference, arguments, result };
template <class F, class... A> consteval CallKind kind_of_call() {
  if constexpr ((Text<A> || ...)) return CallKind::text;
  else if constexpr (!(parts::made_of<argument_leaf, A>() && ...)) return CallKind::kind;
  else if constexpr (!(FunctionArgument<A> && ...)) return CallKind::field;
  else if constexpr (std::invocable<const F&, traced_t<A>...>)
    return FunctionResult<std::invoke_result_t<const F&, traced_t<A>...>> ? CallKind::right : CallKind::result;
  else if constexpr (std::invocable<F&, traced_t<A>...>) return CallKind::mutable_closure;
  else if constexpr (std::invocable<const F&, A...>) return CallKind::number;
  else if constexpr (std::invocable<const F&, A&...>) return CallKind::reference;
  else return CallKind::arguments;
}

/// The tensors of a result as an exported step gives them: of a Loss its value.
template <class R> void add_exported(R& result, Tensors& tensors) {
  if constexpr (std::same_as<R, Tensor>) tensors.push_back(result);
  else if constexpr (std::same_as<R, Loss>) tensors.push_back(result.value());
  else if constexpr (std::same_as<R, Gradients>) result.for_each_tensor([&](Tensor& part) { tensors.push_back(part); });
  else parts::for_each(result, [&](auto& part) { add_exported(part, tensors); });
}

/// Calls visit(tensor&) for each tensor of a result, in a fixed order.
template <class R> void visit_result(R& result, const auto& visit) {
  if constexpr (std::same_as<R, Tensor>) visit(result);
  else if constexpr (OneOf<R, Loss, Gradients>) result.for_each_tensor(visit);
  else parts::for_each(result, [&](auto& part) { visit_result(part, visit); });
}

/// The structure of a result that its type leaves open, as text.
template <class R> void add_open_structure(const R& result, std::string& structure) {
  if constexpr (!OneOf<R, Tensor, Loss, Gradients>) {
    structure += parts::open_structure(result);
    parts::for_each(result, [&](const auto& part) { add_open_structure(part, structure); });
  }
}

}  // namespace detail
}  // namespace gradus
