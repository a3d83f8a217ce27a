// Shows: a Gaussian process in double precision: the likelihood of its parameters, their gradients through a Cholesky
//        factorization, and predictions with their deviations; all of it against JAX.
// Prints: the negative log likelihood before and after, and the largest differences to JAX's values.
#include <gradus/gradus.h>
using namespace gradus;

class GaussianProcess {
 public:
  GaussianProcess(Tensor x, Tensor y) : x_(std::move(x)), y_(std::move(y)) {}

  Tensor negative_log_likelihood() const {
    const Tensor factor = cholesky(covariance()), column = expand_dims(y_, 1);
    return 0.5 * reduce_sum(column * cholesky_solve(factor, column)) + reduce_sum(log(diag_part(factor))) +
           0.5 * std::log(2 * std::numbers::pi) * y_.shape()[0];
  }
  std::pair<Tensor, Tensor> predict(const Tensor& at) const {  // means and variances
    const Tensor factor = cholesky(covariance()), across = kernel(at, x_);
    const Tensor mean = matvec(across, squeeze(cholesky_solve(factor, expand_dims(y_, 1)), {1}));
    const Tensor known = reduce_sum(transpose(across) * cholesky_solve(factor, transpose(across)), {.axis = {0}});
    return {mean, exp(2 * log_scale_) - known};
  }
  const Variables& parameters() const { return parameters_; }

 private:
  Tensor kernel(const Tensor& a, const Tensor& b) const {  // [n], [m] -> [n, m]
    return exp(2 * log_scale_) * exp(-0.5 * square((expand_dims(a, 1) - b) / exp(log_length_)));
  }
  Tensor covariance() const { return kernel(x_, x_) + exp(2 * log_noise_) * eye(x_.shape()[0], f64); }

  Tensor x_, y_;
  Variable log_scale_{constant(0.0, f64), "log_scale"}, log_length_{constant(0.0, f64), "log_length"};
  Variable log_noise_{constant(-1.0, f64), "log_noise"};
  Variables parameters_{log_scale_, log_length_, log_noise_};
};

double largest_difference(const Tensor& found, const std::vector<double>& expected) {
  return max_abs_difference(found, from_values(expected, {std::ssize(expected)}));
}

int main() {
  const int n = 60;
  const Tensor x = linspace(0.0, 10.0, n, f64), noise = sin(37 * square(cast(range(n), f64)));
  GaussianProcess process(x, sin(x) + 0.3 * cos(3 * x) + 0.1 * noise);

  Adam optimizer({.learning_rate = 0.05});
  auto step = function([&] {
    GradientTape tape;
    const Tensor loss = process.negative_log_likelihood();
    const Gradients gradients = tape.gradient(loss, process.parameters());
    optimizer.apply_gradients(gradients);
    return std::pair{loss, stack({gradients[0], gradients[1], gradients[2]})};
  });
  const auto [first, gradient] = step();
  Tensor last;
  for (int i = 0; i < 350; ++i) last = step().first;
  const auto [mean, variance] = process.predict(constant({0.25, 2.5, 5.0, 7.75, 11.0}, f64));
  print("negative log likelihood", first, "->", last);

  // Of JAX in float64; the minimum by SciPy's L-BFGS-B.
  const double of_first = std::abs(first.item() - 18.758127356804), of_last = std::abs(last.item() + 41.735833676813);
  const double of_gradient = largest_difference(gradient, {3.369621740083, 3.406711290090, 44.295669589498});
  const double of_mean =
      largest_difference(mean, {0.425783527477, 0.730839399213, -1.205676020218, 0.881103994337, -0.232541769140});
  const double of_variance =
      largest_difference(variance, {0.001130463062, 0.000928390848, 0.000926726683, 0.000929536990, 0.276786720993});
  print("differences", of_first, of_gradient, of_last, of_mean, of_variance);
  check(of_first < 1e-10 && of_gradient < 1e-10, "the likelihood and its gradient are JAX's");
  check(of_last < 1e-9 && of_mean < 1e-8 && of_variance < 1e-7, "and so is the minimum");
}
