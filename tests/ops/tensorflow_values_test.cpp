/// Popular ops against TensorFlow, at ties, kinks, poles, NaN and on empty tensors: values and gradients stored in
/// tensorflow/values.txt, which tensorflow/make_values.py makes.
#include <gtest/gtest.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include "gradus/autodiff/vjp.h"
#include "gradus/graph/context.h"
#include "gradus/gradus.h"
#include "tests/ops/rows.h"

namespace gradus::rows::tensorflow_values_test {
namespace {

using Function = std::function<Tensor(In)>;

template <class F> Function one(F f) {
  return [f](In in) { return f(in[0]); };
}
template <class F> Function two(F f) {
  return [f](In in) { return f(in[0], in[1]); };
}
Function of(Tensor (*f)(const Tensor&)) { return one(f); }
Function of(Tensor (*f)(const Tensor&, const Tensor&)) { return two(f); }
Function of(Tensor (*f)(const NumberOrTensor&, const NumberOrTensor&)) { return two(f); }
Function along_1(Tensor (*f)(const Tensor&, ReduceOptions)) {
  return [f](In in) { return f(in[0], {.axis = {1}}); };
}
Function resized(ResizeMethod method, bool antialias, std::array<std::int64_t, 2> size) {
  return [=](In in) { return resize(in[0], size, {.method = method, .antialias = antialias}); };
}

std::map<std::string, Function> unary() {
  return {{"abs", of(abs)},
          {"relu", of(relu)},
          {"relu6", of(relu6)},
          {"elu", of(elu)},
          {"selu", of(selu)},
          {"softplus", of(softplus)},
          {"sigmoid", of(sigmoid)},
          {"tanh", of(tanh)},
          {"exp", of(exp)},
          {"expm1", of(expm1)},
          {"square", of(square)},
          {"floor", of(floor)},
          {"ceil", of(ceil)},
          {"round", of(round)},
          {"is_nan", of(is_nan)},
          {"is_inf", one([](const Tensor& x) { return is_inf(x); })},
          {"is_finite", of(is_finite)},
          {"silu", of(silu)},
          {"erf", of(erf)},
          {"leaky_relu", one([](const Tensor& x) { return leaky_relu(x); })},
          {"gelu", of(gelu)},
          {"sqrt", of(sqrt)},
          {"rsqrt", of(rsqrt)},
          {"log", of(log)},
          {"log1p", of(log1p)},
          {"sqrt of negative numbers", of(sqrt)},
          {"rsqrt of negative numbers", of(rsqrt)},
          {"log of negative numbers", of(log)},
          {"log1p of negative numbers", of(log1p)},
          {"lgamma", of(lgamma)},
          {"digamma", of(digamma)},
          {"bessel_i0", of(bessel_i0)},
          {"bessel_i0e", of(bessel_i0e)},
          {"bessel_i1", of(bessel_i1)},
          {"bessel_i1e", of(bessel_i1e)},
          {"bessel_j0", of(bessel_j0)},
          {"bessel_j1", of(bessel_j1)},
          {"fresnel_cos", of(fresnel_cos)},
          {"fresnel_sin", of(fresnel_sin)},
          {"dawsn", of(dawsn)},
          {"bessel_y0", of(bessel_y0)},
          {"bessel_y0 at 0 and beyond", of(bessel_y0)},
          {"bessel_y1", of(bessel_y1)},
          {"bessel_y1 at 0 and beyond", of(bessel_y1)},
          {"bessel_k0", of(bessel_k0)},
          {"bessel_k0 at 0 and beyond", of(bessel_k0)},
          {"bessel_k0e", of(bessel_k0e)},
          {"bessel_k0e at 0 and beyond", of(bessel_k0e)},
          {"bessel_k1", of(bessel_k1)},
          {"bessel_k1 at 0 and beyond", of(bessel_k1)},
          {"bessel_k1e", of(bessel_k1e)},
          {"bessel_k1e at 0 and beyond", of(bessel_k1e)},
          {"expint", of(expint)},
          {"expint at 0 and beyond", of(expint)},
          {"spence", of(spence)},
          {"spence at 0 and beyond", of(spence)},
          {"sinc", of(sinc)},
          {"softsign", of(softsign)}};
}

std::map<std::string, Function> binary() {
  return {{"add", of(add)},
          {"multiply", of(multiply)},
          {"maximum", of(maximum)},
          {"minimum", of(minimum)},
          {"less", of(less)},
          {"less_equal", of(less_equal)},
          {"equal", of(equal)},
          {"not_equal", of(not_equal)},
          {"squared_difference", of(squared_difference)},
          {"maximum at ties", of(maximum)},
          {"minimum at ties", of(minimum)},
          {"divide_no_nan", of(divide_no_nan)},
          {"multiply_no_nan", of(multiply_no_nan)},
          {"xlogy", of(xlogy)},
          {"mod", of(mod)},
          {"mod of integers", of(mod)},
          {"floor_divide of integers", of(floor_divide)},
          {"truncatediv", of(truncatediv)},
          {"truediv", of(truediv)},
          {"atan2", of(atan2)},
          {"pow", of(pow)},
          {"cross", of(cross)}};
}

std::map<std::string, Function> along_axes() {
  std::map<std::string, Function> all;
  const std::map<std::string, Tensor (*)(const Tensor&, ReduceOptions)> reductions{
      {"reduce_sum", reduce_sum},          {"reduce_mean", reduce_mean}, {"reduce_max", reduce_max},
      {"reduce_min", reduce_min},          {"reduce_prod", reduce_prod}, {"reduce_logsumexp", reduce_logsumexp},
      {"reduce_variance", reduce_variance}};
  for (const auto& [name, f] : reductions)
    for (const char* which : {"", " with nan", " of nothing"}) all[name + which] = along_1(f);
  all.merge(std::map<std::string, Function>{
      {"argmax", one([](const Tensor& x) { return argmax(x, 1); })},
      {"argmin", one([](const Tensor& x) { return argmin(x, 1); })},
      {"cumsum", one([](const Tensor& x) { return cumsum(x, 1); })},
      {"cumsum, exclusive and reverse",
       one([](const Tensor& x) { return cumsum(x, {.axis = 1, .exclusive = true, .reverse = true}); })},
      {"cumprod", one([](const Tensor& x) { return cumprod(x, 1); })},
      {"cumulative_logsumexp", one([](const Tensor& x) { return cumulative_logsumexp(x, 1); })},
      {"softmax", one([](const Tensor& x) { return softmax(x); })},
      {"softmax with infinities", one([](const Tensor& x) { return softmax(x); })},
      {"log_softmax", one([](const Tensor& x) { return log_softmax(x); })},
      {"l2_normalize", one([](const Tensor& x) { return l2_normalize(x, {1}); })},
      {"top_k", one([](const Tensor& x) { return top_k(x, 2).values; })},
      {"top_k indices", one([](const Tensor& x) { return top_k(x, 2).indices; })},
      {"sort", one([](const Tensor& x) { return sort(x); })},
      {"argsort", one([](const Tensor& x) { return argsort(x); })},
      {"searchsorted", two([](const Tensor& a, const Tensor& b) { return searchsorted(a, b); })}});
  return all;
}

std::map<std::string, Function> moves() {
  return {
      {"gather", two([](const Tensor& x, const Tensor& i) { return gather(x, i); })},
      {"where", [](In in) { return where(in[0], in[1], in[2]); }},
      {"one_hot", one([](const Tensor& i) { return one_hot(i, 3); })},
      {"pad reflect", one([](const Tensor& x) { return pad(x, {{1, 1}, {2, 0}}, PadMode::reflect); })},
      {"pad symmetric", one([](const Tensor& x) { return pad(x, {{1, 1}, {2, 0}}, PadMode::symmetric); })},
      {"roll", one([](const Tensor& x) { return roll(x, 2, 1); })},
      {"unravel_index", one([](const Tensor& i) { return unravel_index(i, {3, 4, 2}); })},
      {"invert_permutation", of(invert_permutation)},
      {"confusion_matrix", two([](const Tensor& a, const Tensor& b) { return confusion_matrix(a, b, 3); })},
      {"saturate_cast", one([](const Tensor& x) { return saturate_cast(x, u8); })},
  };
}

std::map<std::string, Function> losses() {
  return {
      {"sigmoid_cross_entropy_with_logits", of(sigmoid_cross_entropy_with_logits)},
      {"weighted_cross_entropy_with_logits",
       [](In in) { return weighted_cross_entropy_with_logits(in[0], in[1], in[2]); }},
      {"softmax_cross_entropy_with_logits",
       two([](const Tensor& z, const Tensor& x) { return softmax_cross_entropy_with_logits(z, x); })},
      {"sparse_softmax_cross_entropy_with_logits", of(sparse_softmax_cross_entropy_with_logits)},
      {"log_poisson_loss", two([](const Tensor& z, const Tensor& x) { return log_poisson_loss(z, x); })},
      {"log_poisson_loss in full", two([](const Tensor& z, const Tensor& x) { return log_poisson_loss(z, x, true); })},
      {"l2_loss", of(l2_loss)},
      {"crelu", one([](const Tensor& x) { return crelu(x); })},
      {"embedding_lookup", two([](const Tensor& t, const Tensor& i) { return embedding_lookup(t, i, 1); })}};
}

std::map<std::string, Function> algebra() {
  return {{"solve", two([](const Tensor& a, const Tensor& b) { return solve(a, b); })},
          {"solve, adjoint", two([](const Tensor& a, const Tensor& b) { return solve(a, b, {.adjoint = true}); })},
          {"triangular_solve", two([](const Tensor& a, const Tensor& b) { return triangular_solve(a, b); })},
          {"triangular_solve, upper adjoint", two([](const Tensor& a, const Tensor& b) {
             return triangular_solve(a, b, {.lower = false, .adjoint = true});
           })},
          {"cholesky", of(cholesky)},
          {"cholesky_solve", of(cholesky_solve)},
          {"logdet", of(logdet)},
          {"slogdet", one([](const Tensor& a) { return slogdet(a).log_abs_determinant; })},
          {"lstsq", two([](const Tensor& a, const Tensor& b) { return lstsq(a, b, 0.1); })},
          {"inverse", of(inverse)},
          {"det", of(det)},
          {"band_part", one([](const Tensor& x) { return band_part(x, 1, 0); })},
          {"tensor_diag", of(tensor_diag)},
          {"tensor_diag_part", of(tensor_diag_part)}};
}

std::map<std::string, Function> colours() {
  std::map<std::string, Function> all{
      {"rgb_to_grayscale", of(rgb_to_grayscale)},
      {"rgb_to_hsv", of(rgb_to_hsv)},
      {"hsv_to_rgb", of(hsv_to_rgb)},
      {"rgb_to_yiq", of(rgb_to_yiq)},
      {"yiq_to_rgb", of(yiq_to_rgb)},
      {"rgb_to_yuv", of(rgb_to_yuv)},
      {"yuv_to_rgb", of(yuv_to_rgb)},
      {"adjust_contrast", one([](const Tensor& x) { return adjust_contrast(x, 1.5); })},
      {"adjust_brightness", one([](const Tensor& x) { return adjust_brightness(x, 0.25); })},
      {"adjust_gamma", one([](const Tensor& x) { return adjust_gamma(x, 0.5, 2); })},
      {"adjust_hue", one([](const Tensor& x) { return adjust_hue(x, 0.3); })},
      {"adjust_saturation", one([](const Tensor& x) { return adjust_saturation(x, 1.7); })}};
  std::map<std::string, Function> others;
  for (const auto& [name, f] : all)
    for (const char* which : {" of grays", " of bytes"}) others[name + which] = f;
  all.merge(others);
  return all;
}

std::map<std::string, Function> images() {
  std::map<std::string, Function> all{
      {"convert_image_dtype u8 f32", one([](const Tensor& x) { return convert_image_dtype(x, f32); })},
      {"convert_image_dtype u8 i16", one([](const Tensor& x) { return convert_image_dtype(x, i16); })},
      {"convert_image_dtype f32 u8", one([](const Tensor& x) { return convert_image_dtype(x, u8, true); })},
      {"per_image_standardization", of(per_image_standardization)},
      {"central_crop", one([](const Tensor& x) { return central_crop(x, 0.6); })},
      {"resize_with_crop_or_pad", one([](const Tensor& x) { return resize_with_crop_or_pad(x, 4, 4); })},
      {"resize_with_pad", one([](const Tensor& x) { return resize_with_pad(x, 4, 7); })},
      {"sobel_edges", of(sobel_edges)},
      {"total_variation", of(total_variation)},
      {"image_gradients", one([](const Tensor& x) {
         const auto [dy, dx] = image_gradients(x);
         return stack({dy, dx});
       })},
      {"psnr", two([](const Tensor& a, const Tensor& b) { return psnr(a, b, 1); })},
      {"ssim", two([](const Tensor& a, const Tensor& b) { return ssim(a, b, 1, {.filter_size = 5}); })},
      {"crop_and_resize",
       [](In in) { return crop_and_resize(in[0], in[1], in[2], {3, 4}, {.extrapolation_value = 0.5}); }},
      {"crop_and_resize, one pixel", [](In in) { return crop_and_resize(in[0], in[1], in[2], {1, 1}); }},
      {"crop_and_resize, nearest",
       [](In in) { return crop_and_resize(in[0], in[1], in[2], {3, 4}, {.method = CropMethod::nearest}); }}};
  const std::map<std::string, ResizeMethod> methods{
      {"bilinear", ResizeMethod::bilinear}, {"nearest", ResizeMethod::nearest},
      {"bicubic", ResizeMethod::bicubic},   {"area", ResizeMethod::area},
      {"lanczos3", ResizeMethod::lanczos3}, {"lanczos5", ResizeMethod::lanczos5},
      {"gaussian", ResizeMethod::gaussian}, {"mitchellcubic", ResizeMethod::mitchellcubic}};
  for (const auto& [name, method] : methods)
    for (const bool antialias : {false, true}) {
      const std::string how = "resize " + name + (antialias ? " antialias" : "");
      all[how + " 3"] = resized(method, antialias, {3, 7});
      all[how + " 9"] = resized(method, antialias, {9, 2});
    }
  return all;
}

const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> all = [] {
    std::map<std::string, Function> merged;
    for (auto each : {unary(), binary(), along_axes(), moves(), losses(), algebra(), colours(), images()})
      merged.merge(each);
    return merged;
  }();
  return all;
}

struct Stored {
  DType dtype;
  Array array;
};
struct StoredCase {
  std::string name;
  std::vector<Stored> in, out, grad;
};

DType dtype_named(const std::string& name) {
  for (const DType t : {f64, f32, i32, i64, u8, i16, boolean})
    if (text(t) == name) return t;
  ADD_FAILURE() << "unknown dtype " << name;
  return f64;
}

Stored parsed(std::istringstream& line) {
  std::string dtype;
  int rank = 0;
  line >> dtype >> rank;
  Stored stored{dtype_named(dtype), {}};
  for (int i = 0; i < rank; ++i) {
    std::int64_t n = 0;
    line >> n;
    stored.array.shape.push_back(n);
  }
  for (std::string number; line >> number;) stored.array.values.push_back(std::strtod(number.c_str(), nullptr));
  return stored;
}

std::vector<StoredCase> stored_cases() {
  std::vector<StoredCase> cases;
  std::ifstream file(std::filesystem::path(GRADUS_TENSORFLOW_FOLDER) / "values.txt");
  for (std::string each; std::getline(file, each);) {
    std::istringstream line(each);
    std::string kind;
    line >> kind >> std::ws;
    if (kind == "case") {
      cases.emplace_back();
      std::getline(line, cases.back().name);
      continue;
    }
    auto& list = kind == "in" ? cases.back().in : kind == "out" ? cases.back().out : cases.back().grad;
    list.push_back(parsed(line));
  }
  return cases;
}

void expect_close(const Tensor& got, const Stored& want, const std::string& what) {
  ASSERT_EQ(got.shape(), want.array.shape) << what;
  ASSERT_EQ(got.dtype(), want.dtype) << what;
  const double tolerance = want.dtype == f64 ? 1e-11 : want.dtype == f32 ? 2e-5 : 0;
  const Array values = to_array(got);
  for (std::size_t i = 0; i < values.values.size(); ++i) {
    const double a = values.values[i], b = want.array.values[i];
    if (std::isnan(b)) EXPECT_TRUE(std::isnan(a)) << what << " element " << i << ": " << a << " instead of nan";
    else if (std::isinf(b)) EXPECT_EQ(a, b) << what << " element " << i;
    else EXPECT_NEAR(a, b, tolerance * std::max(1.0, std::abs(b))) << what << " element " << i;
  }
}

TEST(AgainstTensorFlow, ValuesAndGradientsAgree) {
  const std::vector<StoredCase> cases = stored_cases();
  ASSERT_GT(cases.size(), 150u);
  for (const StoredCase& each : cases) {
    SCOPED_TRACE(each.name);
    const auto found = functions().find(each.name);
    ASSERT_NE(found, functions().end());
    const RecordingScope keep;
    Tensors inputs, floats;
    for (const Stored& operand : each.in) {
      inputs.push_back(to_tensor(operand.array, operand.dtype));
      if (is_floating(operand.dtype)) floats.push_back(inputs.back());
    }
    const Tensor y = found->second(inputs);
    ASSERT_EQ(each.out.size(), 1u);
    expect_close(y, each.out[0], "value");
    if (each.grad.empty()) continue;
    ASSERT_EQ(each.grad.size(), floats.size());
    const Tensor weights = cast(cos(iota(y.shape(), y.dtype())), y.dtype());
    const Tensors gradients = vjp(y, floats, weights);
    for (std::size_t i = 0; i < floats.size(); ++i)
      expect_close(gradients[i].defined() ? gradients[i] : zeros_like(floats[i]), each.grad[i], text("gradient ", i));
  }
}

}  // namespace
}  // namespace gradus::rows::tensorflow_values_test
