/// The optimizers and their options. t counts from 1, g is the gradient after clipping. weight_decay is decoupled:
/// w -= w * weight_decay * learning_rate comes first (Loshchilov and Hutter 2019). clipnorm clips each variable,
/// global_clipnorm all together; at most one of them.
#pragma once
#include "gradus/optim/optimizer.h"

namespace gradus {

struct SGDOptions {
  Schedule learning_rate = 0.01;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0, clipnorm = 0, global_clipnorm = 0;
};
/// m = momentum * m - learning_rate * g; w += m, nesterov: w += momentum * m - learning_rate * g (Sutskever et al.
/// 2013).
struct SGD : Optimizer {
  SGD();
  explicit SGD(SGDOptions options);
};

struct AdamOptions {
  Schedule learning_rate = 1e-3;
  double beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-7;
  bool amsgrad = false;
  double weight_decay = 0, clipnorm = 0, global_clipnorm = 0;
};
/// m = beta_1 * m + (1 - beta_1) * g, v = beta_2 * v + (1 - beta_2) * g^2,
/// w -= learning_rate * sqrt(1 - beta_2^t) / (1 - beta_1^t) * m / (sqrt(v) + epsilon) (Kingma and Ba 2015);
/// amsgrad: the largest v so far in place of v (Reddi et al. 2018).
struct Adam : Optimizer {
  Adam();
  explicit Adam(AdamOptions options);
};

struct AdamWOptions {
  Schedule learning_rate = 1e-3;
  double weight_decay = 4e-3, beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-7, clipnorm = 0, global_clipnorm = 0;
};
/// Adam after the decay.
struct AdamW : Optimizer {
  AdamW();
  explicit AdamW(AdamWOptions options);
};

/// Adam with Nesterov momentum (Dozat 2016): u_t = beta_1 * (1 - 0.96^t / 2), P_t the product of u_1 ... u_t,
/// w -= learning_rate * (u_{t+1} * m / (1 - P_{t+1}) + (1 - u_t) * g / (1 - P_t)) / (sqrt(v / (1 - beta_2^t)) +
/// epsilon). It has no amsgrad.
struct Nadam : Optimizer {
  Nadam();
  explicit Nadam(AdamOptions options);
};

struct RMSpropOptions {
  Schedule learning_rate = 1e-3;
  double rho = 0.9, momentum = 0, epsilon = 1e-7;
  bool centered = false;
  double weight_decay = 0, clipnorm = 0, global_clipnorm = 0;
};
/// v = rho * v + (1 - rho) * g^2; w -= learning_rate * g / sqrt(v + epsilon). Centered: v less the square of the mean
/// gradient. Momentum: m = momentum * m + what w would lose; w -= m.
struct RMSprop : Optimizer {
  RMSprop();
  explicit RMSprop(RMSpropOptions options);
};

}  // namespace gradus
