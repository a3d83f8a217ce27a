/// The optimizers and their options. t counts from 1, g is the gradient after clipping. What the options have in
/// common:
///   learning_rate            a number or a Schedule
///   weight_decay             decoupled: w -= w * weight_decay * learning_rate comes first (Loshchilov and Hutter 2019)
///   clipnorm                 clips each variable by its norm,
///   global_clipnorm          all together,
///   clipvalue                each element to within -clipvalue and clipvalue; at most one of the three
///   use_ema                  keeps e = ema_momentum * e + (1 - ema_momentum) * w; the first step copies w
///   ema_overwrite_frequency  writes e into w after every so many steps; 0: only finalize_variable_values() does
/// Defaults are Keras's. Options out of range are an InvalidArgument that names them.
#pragma once
#include "gradus/base/other_names.h"
#include "gradus/base/ranges.h"
#include "gradus/optim/optimizer.h"

namespace gradus {

struct SGDOptions {
  Schedule learning_rate = 0.01;
  detail::NoLr lr = {};
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0, clipnorm = 0, global_clipnorm = 0, clipvalue = 0;
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::int64_t ema_overwrite_frequency = 0;
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("learning_rate"), Allowed::share("momentum"),
                      Allowed::not_negative("weight_decay clipnorm global_clipnorm clipvalue"),
                      Allowed::share("ema_momentum"), Allowed::not_negative("ema_overwrite_frequency")};
  }
};
/// m = momentum * m - learning_rate * g; w += m, nesterov: w += momentum * m - learning_rate * g (Sutskever et al.
/// 2013).
struct SGD : Optimizer {
  SGD();
  explicit SGD(SGDOptions options);
  template <std::floating_point T> explicit SGD(T) = delete;  // SGD({.learning_rate = 1e-3})
};

struct AdamOptions {
  Schedule learning_rate = 1e-3;
  detail::NoLr lr = {};
  double beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-7;
  bool amsgrad = false;
  double weight_decay = 0, clipnorm = 0, global_clipnorm = 0, clipvalue = 0;
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::int64_t ema_overwrite_frequency = 0;
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("learning_rate epsilon"), Allowed::share_below_one("beta_1 beta_2"),
                      Allowed::not_negative("weight_decay clipnorm global_clipnorm clipvalue"),
                      Allowed::share("ema_momentum"), Allowed::not_negative("ema_overwrite_frequency")};
  }
};
/// m = beta_1 * m + (1 - beta_1) * g, v = beta_2 * v + (1 - beta_2) * g^2,
/// w -= learning_rate * sqrt(1 - beta_2^t) / (1 - beta_1^t) * m / (sqrt(v) + epsilon) (Kingma and Ba 2015);
/// amsgrad: the largest v so far in place of v (Reddi et al. 2018).
struct Adam : Optimizer {
  Adam();
  explicit Adam(AdamOptions options);
  template <std::floating_point T> explicit Adam(T) = delete;  // Adam({.learning_rate = 1e-3})
};

struct AdamWOptions {
  Schedule learning_rate = 1e-3;
  detail::NoLr lr = {};
  double weight_decay = 4e-3, beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-7;
  double clipnorm = 0, global_clipnorm = 0, clipvalue = 0;
  bool amsgrad = false, use_ema = false;
  double ema_momentum = 0.99;
  std::int64_t ema_overwrite_frequency = 0;
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("learning_rate epsilon"), Allowed::share_below_one("beta_1 beta_2"),
                      Allowed::not_negative("weight_decay clipnorm global_clipnorm clipvalue"),
                      Allowed::share("ema_momentum"), Allowed::not_negative("ema_overwrite_frequency")};
  }
};
/// Adam after the decay.
struct AdamW : Optimizer {
  AdamW();
  explicit AdamW(AdamWOptions options);
  template <std::floating_point T> explicit AdamW(T) = delete;  // AdamW({.learning_rate = 1e-3})
};

/// Adam with Nesterov momentum (Dozat 2016): u_t = beta_1 * (1 - 0.96^t / 2), P_t the product of u_1 ... u_t,
/// w -= learning_rate * (u_{t+1} * m / (1 - P_{t+1}) + (1 - u_t) * g / (1 - P_t)) / (sqrt(v / (1 - beta_2^t)) +
/// epsilon). It has no amsgrad.
struct Nadam : Optimizer {
  Nadam();
  explicit Nadam(AdamOptions options);
  template <std::floating_point T> explicit Nadam(T) = delete;  // Nadam({.learning_rate = 1e-3})
};

/// u = max(beta_2 * u, |g|); w -= learning_rate * m / ((1 - beta_1^t) * (u + epsilon)), m as Adam's (Kingma and Ba
/// 2015, section 7). It has no amsgrad.
struct Adamax : Optimizer {
  Adamax();
  explicit Adamax(AdamOptions options);
  template <std::floating_point T> explicit Adamax(T) = delete;  // Adamax({.learning_rate = 1e-3})
};

/// Adam's step s with both corrections, epsilon after them, times |w| / |s| of the whole variable (1 if either is 0):
/// w -= learning_rate * |w| / |s| * s (You et al. 2020). It has no amsgrad.
struct Lamb : Optimizer {
  Lamb();
  explicit Lamb(AdamOptions options);
  template <std::floating_point T> explicit Lamb(T) = delete;  // Lamb({.learning_rate = 1e-3})
};

struct RMSpropOptions {
  Schedule learning_rate = 1e-3;
  detail::NoLr lr = {};
  double rho = 0.9, momentum = 0, epsilon = 1e-7;
  bool centered = false;
  double weight_decay = 0, clipnorm = 0, global_clipnorm = 0, clipvalue = 0;
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::int64_t ema_overwrite_frequency = 0;
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("learning_rate epsilon"),
                      Allowed::share_below_one("rho"),
                      Allowed::share("momentum"),
                      Allowed::not_negative("weight_decay clipnorm global_clipnorm clipvalue"),
                      Allowed::share("ema_momentum"),
                      Allowed::not_negative("ema_overwrite_frequency")};
  }
};
/// v = rho * v + (1 - rho) * g^2; w -= learning_rate * g / sqrt(v + epsilon). Centered: v less the square of the mean
/// gradient. Momentum: m = momentum * m + what w would lose; w -= m.
struct RMSprop : Optimizer {
  RMSprop();
  explicit RMSprop(RMSpropOptions options);
  template <std::floating_point T> explicit RMSprop(T) = delete;  // RMSprop({.learning_rate = 1e-3})
};

struct AdagradOptions {
  Schedule learning_rate = 1e-3;
  detail::NoLr lr = {};
  double initial_accumulator_value = 0.1, epsilon = 1e-7;
  double weight_decay = 0, clipnorm = 0, global_clipnorm = 0, clipvalue = 0;
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::int64_t ema_overwrite_frequency = 0;
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("learning_rate epsilon initial_accumulator_value"),
                      Allowed::not_negative("weight_decay clipnorm global_clipnorm clipvalue"),
                      Allowed::share("ema_momentum"), Allowed::not_negative("ema_overwrite_frequency")};
  }
};
/// a += g^2, from initial_accumulator_value on; w -= learning_rate * g / sqrt(a + epsilon) (Duchi et al. 2011).
struct Adagrad : Optimizer {
  Adagrad();
  explicit Adagrad(AdagradOptions options);
  template <std::floating_point T> explicit Adagrad(T) = delete;  // Adagrad({.learning_rate = 1e-3})
};

struct AdadeltaOptions {
  Schedule learning_rate = 1e-3;
  detail::NoLr lr = {};
  double rho = 0.95, epsilon = 1e-7;
  double weight_decay = 0, clipnorm = 0, global_clipnorm = 0, clipvalue = 0;
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::int64_t ema_overwrite_frequency = 0;
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("learning_rate epsilon"), Allowed::share_below_one("rho"),
                      Allowed::not_negative("weight_decay clipnorm global_clipnorm clipvalue"),
                      Allowed::share("ema_momentum"), Allowed::not_negative("ema_overwrite_frequency")};
  }
};
/// v = rho * v + (1 - rho) * g^2; s = -sqrt(a + epsilon) * g / sqrt(v + epsilon); a = rho * a + (1 - rho) * s^2;
/// w += learning_rate * s (Zeiler 2012).
struct Adadelta : Optimizer {
  Adadelta();
  explicit Adadelta(AdadeltaOptions options);
  template <std::floating_point T> explicit Adadelta(T) = delete;  // Adadelta({.learning_rate = 1e-3})
};

struct FtrlOptions {
  Schedule learning_rate = 1e-3;
  detail::NoLr lr = {};
  double learning_rate_power = -0.5, initial_accumulator_value = 0.1;
  double l1_regularization_strength = 0, l2_regularization_strength = 0, l2_shrinkage_regularization_strength = 0;
  double beta = 0;
  double weight_decay = 0, clipnorm = 0, global_clipnorm = 0, clipvalue = 0;
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::int64_t ema_overwrite_frequency = 0;
  static constexpr auto ranges() {
    return std::array{Allowed::positive("learning_rate"),
                      Allowed{"learning_rate_power", -Allowed::infinity, 0, true},
                      Allowed::not_negative("initial_accumulator_value l1_regularization_strength"),
                      Allowed::not_negative("l2_regularization_strength l2_shrinkage_regularization_strength beta"),
                      Allowed::not_negative("weight_decay clipnorm global_clipnorm clipvalue"),
                      Allowed::share("ema_momentum"),
                      Allowed::not_negative("ema_overwrite_frequency")};
  }
};
/// Follow the regularized leader (McMahan et al. 2013), with p = -learning_rate_power, l1, l2 and shrinkage the
/// strengths: n' = n + g^2; z += g + 2 * shrinkage * w - (n'^p - n^p) / learning_rate * w;
/// w = (clip(z, -l1, l1) - z) / (n'^p / learning_rate + 2 * (l2 + beta / (2 * learning_rate))); n = n'.
/// w follows from z alone, so its first value is soon forgotten; where the divisor is 0, since there was no gradient
/// yet, it stays. A learning rate of 0 gives NaN.
struct Ftrl : Optimizer {
  Ftrl();
  explicit Ftrl(FtrlOptions options);
  template <std::floating_point T> explicit Ftrl(T) = delete;  // Ftrl({.learning_rate = 1e-3})
};

struct LionOptions {
  Schedule learning_rate = 1e-3;
  detail::NoLr lr = {};
  double beta_1 = 0.9, beta_2 = 0.99;
  double weight_decay = 0, clipnorm = 0, global_clipnorm = 0, clipvalue = 0;
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::int64_t ema_overwrite_frequency = 0;
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("learning_rate"), Allowed::share_below_one("beta_1 beta_2"),
                      Allowed::not_negative("weight_decay clipnorm global_clipnorm clipvalue"),
                      Allowed::share("ema_momentum"), Allowed::not_negative("ema_overwrite_frequency")};
  }
};
/// w -= learning_rate * sign(beta_1 * m + (1 - beta_1) * g); m = beta_2 * m + (1 - beta_2) * g (Chen et al. 2023).
struct Lion : Optimizer {
  Lion();
  explicit Lion(LionOptions options);
  template <std::floating_point T> explicit Lion(T) = delete;  // Lion({.learning_rate = 1e-3})
};

}  // namespace gradus
