/// The optimizers and their options. t counts from 1, g is the gradient after clipping. Options that all share:
///   learning_rate            a number or a Schedule
///   lr                       refuses Keras's old name of learning_rate
///   weight_decay             decoupled: w -= w * weight_decay * learning_rate comes first (Loshchilov and Hutter 2019)
///   clipnorm                 clips the gradient of each variable by its norm,
///   global_clipnorm          all gradients by their joint norm,
///   clipvalue                each element to [-clipvalue, clipvalue]; at most one of the three; 0: off
///   use_ema                  keeps e = ema_momentum * e + (1 - ema_momentum) * w; the first step copies w
///   ema_overwrite_frequency  steps between writes of e into w; 0: only finalize_variable_values() writes it
///   lazy                     changes only the rows of a table that have a gradient in this step (see Optimizer); other
///                            rows keep w, slots and e. Not for Lamb, whose norms are over the whole variable
/// Defaults are Keras's. Options out of range are an InvalidArgument that names them.
#pragma once
#include "gradus/base/other_names.h"
#include "gradus/base/ranges.h"
#include "gradus/optim/optimizer.h"

namespace gradus {

/// Options of SGD; the shared ones are described at the top of this file.
struct SGDOptions {
  Schedule learning_rate = 0.01;                                              // a number or a Schedule
  detail::NoLr lr = {};                                                       // never given: the name is learning_rate
  double momentum = 0;                                                        // share of the previous step that is kept
  bool nesterov = false;                                                      // Nesterov momentum
  double weight_decay = 0, clipnorm = 0, global_clipnorm = 0, clipvalue = 0;  // decay, clipping
  bool use_ema = false;                                                       // keep moving averages of the variables
  double ema_momentum = 0.99;                                                 // decay rate of the averages
  std::int64_t ema_overwrite_frequency = 0;                                   // in steps; 0: never
  bool lazy = false;                                                          // tables: only rows with a gradient
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("learning_rate"), Allowed::share("momentum"),
                      Allowed::not_negative("weight_decay clipnorm global_clipnorm clipvalue"),
                      Allowed::share("ema_momentum"), Allowed::not_negative("ema_overwrite_frequency")};
  }
};
/// Stochastic gradient descent: w -= learning_rate * g. With momentum: m = momentum * m - learning_rate * g; w += m.
/// With nesterov: w += momentum * m - learning_rate * g (Sutskever et al. 2013).
struct SGD : Optimizer {
  SGD();
  explicit SGD(SGDOptions options);
  template <std::floating_point T> explicit SGD(T) = delete;  // SGD({.learning_rate = 1e-3})
};

/// Options of Adam, Nadam, Adamax and Lamb; the shared ones are described at the top of this file.
struct AdamOptions {
  Schedule learning_rate = 1e-3;                        // a number or a Schedule
  detail::NoLr lr = {};                                 // never given: the name is learning_rate
  double beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-7;  // decay rates of m and v; added to the divisor
  bool amsgrad = false;                                 // only for Adam
  double weight_decay = 0, clipnorm = 0, global_clipnorm = 0, clipvalue = 0;  // decay, clipping
  bool use_ema = false;                                                       // keep moving averages of the variables
  double ema_momentum = 0.99;                                                 // decay rate of the averages
  std::int64_t ema_overwrite_frequency = 0;                                   // in steps; 0: never
  bool lazy = false;                                                          // tables: only rows with a gradient
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("learning_rate epsilon"), Allowed::share_below_one("beta_1 beta_2"),
                      Allowed::not_negative("weight_decay clipnorm global_clipnorm clipvalue"),
                      Allowed::share("ema_momentum"), Allowed::not_negative("ema_overwrite_frequency")};
  }
};
/// Adam: m = beta_1 * m + (1 - beta_1) * g, v = beta_2 * v + (1 - beta_2) * g^2,
/// w -= learning_rate * sqrt(1 - beta_2^t) / (1 - beta_1^t) * m / (sqrt(v) + epsilon) (Kingma and Ba 2015).
/// amsgrad: the largest v so far in place of v (Reddi et al. 2018).
struct Adam : Optimizer {
  Adam();
  explicit Adam(AdamOptions options);
  template <std::floating_point T> explicit Adam(T) = delete;  // Adam({.learning_rate = 1e-3})
};

/// Options of AdamW, as those of Adam.
struct AdamWOptions {
  Schedule learning_rate = 1e-3;                                             // a number or a Schedule
  detail::NoLr lr = {};                                                      // never given: the name is learning_rate
  double weight_decay = 4e-3, beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-7;  // decoupled decay, then as for Adam
  double clipnorm = 0, global_clipnorm = 0, clipvalue = 0;                   // at most one of the three
  bool amsgrad = false, use_ema = false;                                     // as for Adam; keep moving averages
  double ema_momentum = 0.99;                                                // decay rate of the averages
  std::int64_t ema_overwrite_frequency = 0;                                  // in steps; 0: never
  bool lazy = false;                                                         // tables: only rows with a gradient
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("learning_rate epsilon"), Allowed::share_below_one("beta_1 beta_2"),
                      Allowed::not_negative("weight_decay clipnorm global_clipnorm clipvalue"),
                      Allowed::share("ema_momentum"), Allowed::not_negative("ema_overwrite_frequency")};
  }
};
/// Adam with decoupled weight decay, which comes first.
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

/// Adam with the infinity norm: u = max(beta_2 * u, |g|); w -= learning_rate * m / ((1 - beta_1^t) * (u + epsilon)),
/// with m as Adam's (Kingma and Ba 2015, section 7). It has no amsgrad.
struct Adamax : Optimizer {
  Adamax();
  explicit Adamax(AdamOptions options);
  template <std::floating_point T> explicit Adamax(T) = delete;  // Adamax({.learning_rate = 1e-3})
};

/// Adam with layer-wise rates: w -= learning_rate * |w| / |s| * s, with s Adam's step with both corrections and epsilon
/// after them. Norms are over the whole variable; the factor is 1 if either is 0 (You et al. 2020). It has no amsgrad.
struct Lamb : Optimizer {
  Lamb();
  explicit Lamb(AdamOptions options);
  template <std::floating_point T> explicit Lamb(T) = delete;  // Lamb({.learning_rate = 1e-3})
};

/// Options of RMSprop; the shared ones are described at the top of this file.
struct RMSpropOptions {
  Schedule learning_rate = 1e-3;                   // a number or a Schedule
  detail::NoLr lr = {};                            // never given: the name is learning_rate
  double rho = 0.9, momentum = 0, epsilon = 1e-7;  // decay rate of v; of m; added to v
  bool centered = false;                           // subtract the square of the mean gradient from v
  double weight_decay = 0, clipnorm = 0, global_clipnorm = 0, clipvalue = 0;  // decay, clipping
  bool use_ema = false;                                                       // keep moving averages of the variables
  double ema_momentum = 0.99;                                                 // decay rate of the averages
  std::int64_t ema_overwrite_frequency = 0;                                   // in steps; 0: never
  bool lazy = false;                                                          // tables: only rows with a gradient
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("learning_rate epsilon"),
                      Allowed::share_below_one("rho"),
                      Allowed::share("momentum"),
                      Allowed::not_negative("weight_decay clipnorm global_clipnorm clipvalue"),
                      Allowed::share("ema_momentum"),
                      Allowed::not_negative("ema_overwrite_frequency")};
  }
};
/// RMSprop: v = rho * v + (1 - rho) * g^2; w -= learning_rate * g / sqrt(v + epsilon). Centered: v minus the square of
/// the mean gradient. Momentum: m = momentum * m + (the step without momentum); w -= m.
struct RMSprop : Optimizer {
  RMSprop();
  explicit RMSprop(RMSpropOptions options);
  template <std::floating_point T> explicit RMSprop(T) = delete;  // RMSprop({.learning_rate = 1e-3})
};

/// Options of Adagrad; the shared ones are described at the top of this file.
struct AdagradOptions {
  Schedule learning_rate = 1e-3;                                              // a number or a Schedule
  detail::NoLr lr = {};                                                       // never given: the name is learning_rate
  double initial_accumulator_value = 0.1, epsilon = 1e-7;                     // first value of a; added to a
  double weight_decay = 0, clipnorm = 0, global_clipnorm = 0, clipvalue = 0;  // decay, clipping
  bool use_ema = false;                                                       // keep moving averages of the variables
  double ema_momentum = 0.99;                                                 // decay rate of the averages
  std::int64_t ema_overwrite_frequency = 0;                                   // in steps; 0: never
  bool lazy = false;                                                          // tables: only rows with a gradient
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("learning_rate epsilon initial_accumulator_value"),
                      Allowed::not_negative("weight_decay clipnorm global_clipnorm clipvalue"),
                      Allowed::share("ema_momentum"), Allowed::not_negative("ema_overwrite_frequency")};
  }
};
/// Adagrad: a += g^2, from initial_accumulator_value on; w -= learning_rate * g / sqrt(a + epsilon) (Duchi et al.
/// 2011).
struct Adagrad : Optimizer {
  Adagrad();
  explicit Adagrad(AdagradOptions options);
  template <std::floating_point T> explicit Adagrad(T) = delete;  // Adagrad({.learning_rate = 1e-3})
};

/// Options of Adadelta; the shared ones are described at the top of this file.
struct AdadeltaOptions {
  Schedule learning_rate = 1e-3;                                              // a number or a Schedule
  detail::NoLr lr = {};                                                       // never given: the name is learning_rate
  double rho = 0.95, epsilon = 1e-7;                                          // decay rate of v and a; added to both
  double weight_decay = 0, clipnorm = 0, global_clipnorm = 0, clipvalue = 0;  // decay, clipping
  bool use_ema = false;                                                       // keep moving averages of the variables
  double ema_momentum = 0.99;                                                 // decay rate of the averages
  std::int64_t ema_overwrite_frequency = 0;                                   // in steps; 0: never
  bool lazy = false;                                                          // tables: only rows with a gradient
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("learning_rate epsilon"), Allowed::share_below_one("rho"),
                      Allowed::not_negative("weight_decay clipnorm global_clipnorm clipvalue"),
                      Allowed::share("ema_momentum"), Allowed::not_negative("ema_overwrite_frequency")};
  }
};
/// Adadelta: v = rho * v + (1 - rho) * g^2; s = -sqrt(a + epsilon) * g / sqrt(v + epsilon); a = rho * a + (1 - rho) *
/// s^2; w += learning_rate * s (Zeiler 2012).
struct Adadelta : Optimizer {
  Adadelta();
  explicit Adadelta(AdadeltaOptions options);
  template <std::floating_point T> explicit Adadelta(T) = delete;  // Adadelta({.learning_rate = 1e-3})
};

/// Options of Ftrl; the shared ones are described at the top of this file.
struct FtrlOptions {
  Schedule learning_rate = 1e-3;                                       // a number or a Schedule
  detail::NoLr lr = {};                                                // never given: the name is learning_rate
  double learning_rate_power = -0.5, initial_accumulator_value = 0.1;  // -p of the formula; first value of n
  /// l1, l2 and shrinkage of the formula.
  double l1_regularization_strength = 0, l2_regularization_strength = 0, l2_shrinkage_regularization_strength = 0;
  double beta = 0;                                                            // beta of the formula
  double weight_decay = 0, clipnorm = 0, global_clipnorm = 0, clipvalue = 0;  // decay, clipping
  bool use_ema = false;                                                       // keep moving averages of the variables
  double ema_momentum = 0.99;                                                 // decay rate of the averages
  std::int64_t ema_overwrite_frequency = 0;                                   // in steps; 0: never
  bool lazy = false;                                                          // tables: only rows with a gradient
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
/// Follow the regularized leader (McMahan et al. 2013), with p = -learning_rate_power, and l1, l2 and shrinkage the
/// strengths: n' = n + g^2; z += g + 2 * shrinkage * w - (n'^p - n^p) / learning_rate * w;
/// w = (clip(z, -l1, l1) - z) / (n'^p / learning_rate + 2 * (l2 + beta / (2 * learning_rate))); n = n'.
/// w follows from z alone, so its first value is soon forgotten. Where the divisor is 0, since there was no gradient
/// yet, w stays. A learning rate of 0 gives NaN.
struct Ftrl : Optimizer {
  Ftrl();
  explicit Ftrl(FtrlOptions options);
  template <std::floating_point T> explicit Ftrl(T) = delete;  // Ftrl({.learning_rate = 1e-3})
};

/// Options of Lion; the shared ones are described at the top of this file.
struct LionOptions {
  Schedule learning_rate = 1e-3;       // a number or a Schedule
  detail::NoLr lr = {};                // never given: the name is learning_rate
  double beta_1 = 0.9, beta_2 = 0.99;  // weights of m in the step, and in the new m
  double weight_decay = 0, clipnorm = 0, global_clipnorm = 0, clipvalue = 0;  // decay, clipping
  bool use_ema = false;                                                       // keep moving averages of the variables
  double ema_momentum = 0.99;                                                 // decay rate of the averages
  std::int64_t ema_overwrite_frequency = 0;                                   // in steps; 0: never
  bool lazy = false;                                                          // tables: only rows with a gradient
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("learning_rate"), Allowed::share_below_one("beta_1 beta_2"),
                      Allowed::not_negative("weight_decay clipnorm global_clipnorm clipvalue"),
                      Allowed::share("ema_momentum"), Allowed::not_negative("ema_overwrite_frequency")};
  }
};
/// Lion: w -= learning_rate * sign(beta_1 * m + (1 - beta_1) * g); m = beta_2 * m + (1 - beta_2) * g (Chen et al.
/// 2023).
struct Lion : Optimizer {
  Lion();
  explicit Lion(LionOptions options);
  template <std::floating_point T> explicit Lion(T) = delete;  // Lion({.learning_rate = 1e-3})
};

}  // namespace gradus
