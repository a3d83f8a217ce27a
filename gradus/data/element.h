/// Elements of datasets: N tensors, as an array if there are several. Stages pass them on as vectors, without a static
/// number.
#pragma once
#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

namespace detail::inline rooms {

/// The type of an element with N fields: a Tensor, or an array of them.
template <std::size_t N> struct element_of {
  using type = std::array<Tensor, N>;  // the element
};
template <> struct element_of<1> {
  using type = Tensor;
};

/// The number of fields of a function's result: one Tensor, or a pair, tuple or array of them.
template <class R> struct arity_of : std::tuple_size<R> {};
template <> struct arity_of<Tensor> : std::integral_constant<std::size_t, 1> {};

/// Tensor, for every index.
template <std::size_t> using tensor_at = Tensor;
/// The result of F called with as many tensors as I has indices.
template <class F, class I> struct with_tensors {};
template <class F, std::size_t... I>
  requires std::invocable<F&, tensor_at<I>...>
struct with_tensors<F, std::index_sequence<I...>> {
  using type = std::invoke_result_t<F&, tensor_at<I>...>;  // the result
};
/// The result of F called with N tensors.
template <class F, std::size_t N> using with_tensors_t = typename with_tensors<F, std::make_index_sequence<N>>::type;

/// The result of F called with a state and then as many tensors as I has indices.
template <class F, class State, class I> struct with_state {};
template <class F, class State, std::size_t... I>
  requires std::invocable<F&, State, tensor_at<I>...>
struct with_state<F, State, std::index_sequence<I...>> {
  using type = std::invoke_result_t<F&, State, tensor_at<I>...>;  // the result
};
/// The result of F called with a state and N tensors.
template <class F, class State, std::size_t N>
using with_state_t = typename with_state<F, State, std::make_index_sequence<N>>::type;

/// A state that goes from element to element: a Tensor, or a pair, tuple or array of them.
template <class State>
concept StateOfTensors = requires { arity_of<State>::value; };

/// The result of a function as a vector of fields.
inline Tensors to_fields(Tensor result) { return {std::move(result)}; }
template <class Result> Tensors to_fields(Result&& result) {
  return std::apply([](auto&&... field) { return Tensors{Tensor(field)...}; }, std::forward<Result>(result));
}

/// The fields as the element of a Dataset<N>.
template <std::size_t N> typename element_of<N>::type to_element(const Tensors& fields) {
  if constexpr (N == 1) {
    return fields[0];
  } else {
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return std::array<Tensor, N>{fields[i]...};
    }(std::make_index_sequence<N>());
  }
}

/// The first fields as a state.
template <StateOfTensors State> State to_state(In fields) {
  if constexpr (std::same_as<State, Tensor>) {
    return fields[0];
  } else {
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return State{fields[i]...};
    }(std::make_index_sequence<arity_of<State>::value>());
  }
}

/// The call f(state, fields[0], fields[1], ...), where `all` holds the tensors of the state and then N fields.
template <class State, std::size_t N, class F> decltype(auto) call_with_state(F& f, In all) {
  const In fields = all.subspan(arity_of<State>::value);
  return [&]<std::size_t... i>(std::index_sequence<i...>) -> decltype(auto) {
    return f(to_state<State>(all), fields[i]...);
  }(std::make_index_sequence<N>());
}

/// The call f(fields[0], fields[1], ...).
template <std::size_t N, class F> decltype(auto) call_with(F& f, In fields) {
  return [&]<std::size_t... i>(std::index_sequence<i...>) -> decltype(auto) {
    return f(fields[i]...);
  }(std::make_index_sequence<N>());
}

}  // namespace detail::inline rooms

}  // namespace gradus
