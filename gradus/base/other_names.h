/// Names that other libraries have for options, or whose options are elsewhere here. They are fields, so that using one
/// is a compile error that names the right option.
#pragma once
#include <concepts>
#include <type_traits>
#include "gradus/base/reflect.h"

namespace gradus::detail {

/// Anything except the type that counts the fields of a struct.
template <class... T>
concept GivenValues = sizeof...(T) > 0 && (!std::same_as<T, reflect::detail::Anything> && ...);

struct NoBatchSize {
  NoBatchSize() = default;
  template <class... T>
    requires GivenValues<T...>
  NoBatchSize(const T&...) {
    static_assert((std::is_void_v<T> && ...),
                  "there is no option batch_size: the data set makes batches, dataset.batch(32)");
  }
};
struct NoValidationData {
  NoValidationData() = default;
  template <class... T>
    requires GivenValues<T...>
  NoValidationData(const T&...) {
    static_assert((std::is_void_v<T> && ...), "there is no option validation_data: it is called .validation");
  }
};
struct NoShuffle {
  NoShuffle() = default;
  template <class... T>
    requires GivenValues<T...>
  NoShuffle(const T&...) {
    static_assert((std::is_void_v<T> && ...),
                  "there is no option shuffle: the data set shuffles, dataset.shuffle().batch(32)");
  }
};
struct NoInputShape {
  NoInputShape() = default;
  template <class... T>
    requires GivenValues<T...>
  NoInputShape(const T&...) {
    static_assert((std::is_void_v<T> && ...),
                  "there is no option input_shape: the first call builds, or model.build({f32, {any_size, 8}})");
  }
};
struct NoLr {
  NoLr() = default;
  template <class... T>
    requires GivenValues<T...>
  NoLr(const T&...) {
    static_assert((std::is_void_v<T> && ...), "there is no option lr: it is called .learning_rate");
  }
};
struct NoLearningRate {
  NoLearningRate() = default;
  template <class... T>
    requires GivenValues<T...>
  NoLearningRate(const T&...) {
    static_assert((std::is_void_v<T> && ...),
                  "there is no option learning_rate here: it is the optimizer's, Adam({.learning_rate = 1e-3})");
  }
};

}  // namespace gradus::detail
