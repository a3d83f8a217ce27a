/// Branches and loops as ops: their bodies are regions, compiled with the program around them. The callables are traced
/// once, on symbols. Tensors and Variables of the surrounding code that they use are captured. Inside they may neither
/// assign Variables nor branch in C++ on computed values (InvalidArgument). Random ops in the body of a loop draw new
/// numbers in every iteration.
#pragma once
#include <array>
#include <concepts>
#include <tuple>
#include <utility>
#include "gradus/base/ranges.h"
#include "gradus/graph/region.h"

namespace gradus {

namespace detail {

template <class R> Tensors flattened(const R& result) {
  if constexpr (std::convertible_to<R, Tensor>) return {Tensor(result)};
  else
    return std::apply(
        [](const auto&... part) {
          Tensors all;
          (
              [&] {
                for (Tensor& t : flattened(part)) all.push_back(std::move(t));
              }(),
              ...);
          return all;
        },
        result);
}

/// A result of type R with tensors taken from `in`, in order.
template <class R> R rebuilt(In in, std::size_t& next) {
  if constexpr (std::same_as<R, Tensor>) return in[next++];
  else
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return R{rebuilt<std::tuple_element_t<i, R>>(in, next)...};
    }(std::make_index_sequence<std::tuple_size_v<R>>());
}
template <class R> R rebuilt(In in) {
  std::size_t next = 0;
  return rebuilt<R>(in, next);
}

/// f(in[0], in[1], ...), with as many tensors as the state has.
template <class F, class S, std::size_t... i>
decltype(auto) call_on_state(F& f, In in, std::index_sequence<i...>, auto&&... more) {
  return f(in[i]..., more...);
}

template <class S> struct loop_state : std::false_type {};
template <> struct loop_state<Tensor> : std::true_type {
  static constexpr std::size_t size = 1;
};
template <std::same_as<Tensor>... T>
  requires(sizeof...(T) > 0)
struct loop_state<std::tuple<T...>> : std::true_type {
  static constexpr std::size_t size = sizeof...(T);
};

using Traced = std::function<Tensors(In)>;
Tensors cond(const Tensor& predicate, const Traced& if_true, const Traced& if_false);
Tensors while_loop(const Traced& condition, const Traced& body, In state, std::int64_t max_iterations);
/// The final state, then the stacked result.
Tensors scan(const Traced& body, In state, const Tensor& xs);

}  // namespace detail

/// The state of a loop: a Tensor, or a std::tuple of Tensors. Callables take its tensors one by one and return it
/// whole.
template <class S>
concept LoopState = detail::loop_state<S>::value;

namespace detail {

/// True for tensors, and for arrays, pairs and tuples of them.
template <class R>
struct tensors_of : std::bool_constant<std::convertible_to<R, Tensor> && !std::is_arithmetic_v<R>> {};
template <class R, std::size_t n> struct tensors_of<std::array<R, n>> : tensors_of<R> {};
template <class A, class B> struct tensors_of<std::pair<A, B>> : std::conjunction<tensors_of<A>, tensors_of<B>> {};
template <class... R> struct tensors_of<std::tuple<R...>> : std::conjunction<tensors_of<R>...> {};

/// True if f takes the tensors of a state, followed by `more`.
template <class F, std::size_t size, class... More>
constexpr bool takes_state = []<std::size_t... i>(std::index_sequence<i...>) {
  return std::invocable<F&, decltype((static_cast<void>(i), std::declval<const Tensor&>()))..., More...>;
}(std::make_index_sequence<size>());
template <class S> constexpr std::size_t size_of_state = 1;
template <LoopState S> constexpr std::size_t size_of_state<S> = loop_state<S>::size;
template <class F, class S, class... More> auto result_on_state(F& f, const More&... more) {
  return call_on_state<F, S>(f, In(), std::make_index_sequence<size_of_state<S>>(), more...);
}
template <class F, class S, class... More>
using result_of_state_t = decltype(result_on_state<F, S>(std::declval<F&>(), std::declval<const More&>()...));
template <class R, class S>
concept StateAndResult = requires(const R& r) {
  { std::get<0>(r) } -> std::convertible_to<S>;
  { std::get<1>(r) } -> std::convertible_to<Tensor>;
  requires std::tuple_size<R>::value == 2;
} || (std::is_aggregate_v<R> && !requires { std::tuple_size<R>::value; });

}  // namespace detail

/// if_true() if `predicate`, one boolean, holds, else if_false(). Branches give a Tensor, or an array, pair or tuple of
/// them. Only one of them is computed. InvalidArgument if the predicate is not one boolean, or if the results differ in
/// number, dtype or shape.
template <class T, class F> auto cond(const Tensor& predicate, T&& if_true, F&& if_false) {
  if constexpr (!std::invocable<T&> || !std::invocable<F&>) {
    static_assert(std::is_void_v<T>, "cond: both branches are functions without arguments, as [&] { return x; }");
    return Tensor();
  } else if constexpr (!std::same_as<std::invoke_result_t<T&>, std::invoke_result_t<F&>>) {
    static_assert(std::is_void_v<T>, "cond: both branches must give the same type, such as Tensor");
    return Tensor();
  } else if constexpr (!detail::tensors_of<std::invoke_result_t<T&>>::value) {
    static_assert(
        std::is_void_v<T>,
        "cond: branches give a Tensor, or an array, pair or tuple of them; constant(1.0) makes one of a number");
    return Tensor();
  } else {
    using Result = std::remove_cvref_t<std::invoke_result_t<T&>>;
    return detail::rebuilt<Result>(detail::cond(
        predicate, [&](In) { return detail::flattened(if_true()); },
        [&](In) { return detail::flattened(if_false()); }));
  }
}

/// Options of while_loop.
struct WhileOptions {
  std::int64_t max_iterations = 0;  // 0: no bound; a bound ends the loop, and fixes the memory of the gradient
  static constexpr auto ranges() { return std::array{Allowed::not_negative("max_iterations")}; }
};

/// Repeats state = body(state...) while condition(state...), one boolean, holds. The tensors of the state keep their
/// dtypes and shapes (else InvalidArgument). Differentiable: with max_iterations the gradient keeps the state of every
/// iteration; without, it runs the loop again. A traced gradient without a known number of iterations then takes loops
/// of up to 262,144 iterations (OutOfRange beyond; max_iterations lifts that).
template <class C, class B, class S>
  requires(!LoopState<S>)
Tensor while_loop(C&&, B&&, const S&, WhileOptions = {}) = delete;  // a state is Tensors: constant(0), std::tuple{a, b}
template <class C, class B, LoopState S>
S while_loop(C&& condition, B&& body, const S& state, WhileOptions options = {}) {
  constexpr std::size_t size = detail::size_of_state<S>;
  if constexpr (!detail::takes_state<C, size> || !detail::takes_state<B, size>) {
    static_assert(std::is_void_v<S>, "while_loop: condition and body take the tensors of the state, one by one");
    return state;
  } else if constexpr (!std::constructible_from<S, detail::result_of_state_t<B, S>>) {
    static_assert(std::is_void_v<S>, "while_loop: the body gives the next state, of the type of the first one");
    return state;
  } else if constexpr (!std::convertible_to<detail::result_of_state_t<C, S>, Tensor>) {
    static_assert(std::is_void_v<S>, "while_loop: the condition gives one boolean as a Tensor, such as i < 3");
    return state;
  } else {
    constexpr auto parts = std::make_index_sequence<size>();
    return detail::rebuilt<S>(detail::while_loop(
        [&](In in) { return detail::flattened(Tensor(detail::call_on_state<C, S>(condition, in, parts))); },
        [&](In in) { return detail::flattened(S(detail::call_on_state<B, S>(body, in, parts))); },
        detail::flattened(state), options.max_iterations));
  }
}

/// Folds over the rows x of `xs` along axis 0: pair{state, y} = body(state..., x). Returns the last state, and all y
/// stacked along a new axis 0. The tensors of the state keep their dtypes and shapes (else InvalidArgument).
template <class B, class S>
  requires(!LoopState<S>)
std::pair<Tensor, Tensor> scan(B&&, const S&, const Tensor&) = delete;  // a state is Tensors: constant(0), a std::tuple
template <class B, LoopState S> std::pair<S, Tensor> scan(B&& body, const S& state, const Tensor& xs) {
  constexpr std::size_t size = detail::size_of_state<S>;
  if constexpr (!detail::takes_state<B, size, Tensor>) {
    static_assert(std::is_void_v<S>, "scan: the body takes the tensors of the state, one by one, and a row of xs");
    return {state, xs};
  } else if constexpr (!detail::StateAndResult<detail::result_of_state_t<B, S, Tensor>, S>) {
    static_assert(std::is_void_v<S>, "scan: the body gives a pair of the next state and a Tensor: std::pair{h, h}");
    return {state, xs};
  } else {
    Tensors results = detail::scan(
        [&](In in) {
          const auto& [next, y] = detail::call_on_state<B, S>(body, in, std::make_index_sequence<size>(), in[size]);
          Tensors all = detail::flattened(S(next));
          all.push_back(Tensor(y));
          return all;
        },
        detail::flattened(state), xs);
    const Tensor stacked = std::move(results.back());
    results.pop_back();
    return {detail::rebuilt<S>(results), stacked};
  }
}

}  // namespace gradus
