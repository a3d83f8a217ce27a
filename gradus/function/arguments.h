/// Arguments and results of traced functions: their types, and how they are taken apart into tensors and put together
/// again.
#pragma once
#include <array>
#include <concepts>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include "gradus/function/variable.h"
#include "gradus/graph/mask.h"
#include "gradus/graph/tensor.h"

namespace gradus {

class Loss;
class Gradients;
struct StaticArguments;

/// Holds for a type that `Leaf` accepts, and for arrays, pairs and tuples of such types.
template <template <class> class Leaf, class T> struct made_of : Leaf<T> {};
template <template <class> class Leaf, class T, std::size_t N>
struct made_of<Leaf, std::array<T, N>> : made_of<Leaf, T> {};
template <template <class> class Leaf, class A, class B>
struct made_of<Leaf, std::pair<A, B>> : std::conjunction<made_of<Leaf, A>, made_of<Leaf, B>> {};
template <template <class> class Leaf, class... T>
struct made_of<Leaf, std::tuple<T...>> : std::conjunction<made_of<Leaf, T>...> {};

template <class T>
struct argument_leaf : std::bool_constant<OneOf<T, Tensor, Variable> || std::is_arithmetic_v<T> || std::is_enum_v<T>> {
};
template <class T> struct result_leaf : std::bool_constant<OneOf<T, Tensor, Loss, Gradients>> {};

template <class A>
concept FunctionArgument = made_of<argument_leaf, A>::value;
template <class R>
concept FunctionResult = std::is_void_v<R> || made_of<result_leaf, R>::value;

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
template <class A> using traced_t = typename traced<A>::type;

namespace detail {

/// A scalar f32 with this value: data, not structure.
Tensor number_argument(double value);

/// A variable whose address stands for a list of types.
template <class... T> inline constexpr char types_tag = 0;

template <class T> constexpr bool is_sequence = requires { std::tuple_size<T>::value; };

template <class A> void flatten_argument(const A& argument, Tensors& tensors, std::string& statics) {
  if constexpr (std::same_as<A, Tensor>) tensors.push_back(argument);
  else if constexpr (std::same_as<A, Variable>) tensors.push_back(argument.value());
  else if constexpr (std::is_floating_point_v<A>) tensors.push_back(number_argument(argument));
  else if constexpr (std::is_enum_v<A>) statics += std::to_string(static_cast<std::int64_t>(argument)) + ' ';
  else if constexpr (std::is_arithmetic_v<A>) statics += std::to_string(argument) + ' ';
  else std::apply([&](const auto&... part) { (flatten_argument(part, tensors, statics), ...); }, argument);
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

/// The argument with tensors taken from `in`, in order.
template <class A> traced_t<A> rebuild_argument(const A& argument, In in, std::size_t& next) {
  if constexpr (std::same_as<traced_t<A>, Tensor>) return in[next++];
  else if constexpr (!is_sequence<A>) return argument;
  else
    return std::apply([&](const auto&... part) { return traced_t<A>{rebuild_argument(part, in, next)...}; }, argument);
}

template <class A>
concept Text = std::convertible_to<const A&, std::string_view>;

/// The kind of a call: a right one, or one with a certain mistake.
enum class CallKind { right, text, kind, number, mutable_closure, reference, arguments, result };
template <class F, class... A> consteval CallKind kind_of_call() {
  if constexpr ((Text<A> || ...)) return CallKind::text;
  else if constexpr (!(FunctionArgument<A> && ...)) return CallKind::kind;
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
  else if constexpr (is_sequence<R>) std::apply([&](auto&... part) { (add_exported(part, tensors), ...); }, result);
  else if constexpr (requires { result.value(); }) tensors.push_back(result.value());
  else result.for_each_tensor([&](Tensor& part) { tensors.push_back(part); });
}

/// Calls visit(tensor&) for each tensor of a result, in a fixed order.
template <class R> void visit_result(R& result, const auto& visit) {
  if constexpr (std::same_as<R, Tensor>) visit(result);
  else if constexpr (is_sequence<R>) std::apply([&](auto&... part) { (visit_result(part, visit), ...); }, result);
  else result.for_each_tensor(visit);
}

}  // namespace detail
}  // namespace gradus
