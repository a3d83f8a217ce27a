/// What tests of scalar formulas share: running one, errors in units of the last place, and arguments of every kind.
#pragma once
#include <gtest/gtest.h>
#include <cmath>
#include <random>
#include "gradus/base/floating_point_state.h"
#include "gradus/base/rooms.h"
#include "gradus/scalar/formulas.h"
#include "gradus/scalar/interpret.h"
#include "gradus/tensor/buffer.h"

namespace gradus::scalar {

/// A formula recorded for inputs of one type, and run by the interpreter.
template <class T> class Recorded {
 public:
  template <class... X> explicit Recorded(Value (*formula)(X...)) {
    std::vector<Value> in;
    for (int i = 0; i < static_cast<int>(sizeof...(X)); ++i)
      in.emplace_back(&code_, code_.add({.op = Opcode::input, .type = dtype_of<T>(), .a = i}));
    if constexpr (sizeof...(X) == 1) code_.result = formula(in[0]).id();
    else code_.result = formula(in[0], in[1]).id();
    interpreter_ = scalar::Interpreter(code_);
  }
  /// Element by element.
  std::vector<T> operator()(const std::vector<T>& x, const std::vector<T>& y = {}) const {
    constexpr std::int64_t block = scalar::Interpreter::block;
    std::vector<T> result(x.size());
    const Ref<Buffer> scratch = Buffer::allocate(interpreter_.scratch_bytes());
    const KernelFloats flush;
    for (std::int64_t at = 0; at < std::ssize(x); at += block) {
      const void* inputs[] = {x.data() + at, y.data() + (y.empty() ? 0 : at)};
      interpreter_.run(inputs, result.data() + at, std::min(block, std::ssize(x) - at), scratch->data());
    }
    return result;
  }
  T at(double x) const { return (*this)(std::vector<T>{static_cast<T>(x)}).front(); }

 private:
  Code code_;
  scalar::Interpreter interpreter_;
};

/// |y - exact| in units of the last place of `exact`.
template <class T> double ulps(T y, long double exact) {
  constexpr auto limits = std::numeric_limits<T>();
  if (std::isnan(y) || std::isnan(exact)) return std::isnan(y) == std::isnan(exact) ? 0 : 1e30;
  if (std::abs(exact) < limits.min()) return std::abs(y) <= limits.min() ? 0 : 1e30;  // may be zero
  const T rounded = static_cast<T>(exact);
  if (std::isinf(rounded) || std::isinf(y)) return rounded == y ? 0 : 1e30;
  int exponent = 0;
  std::frexp(exact, &exponent);
  return static_cast<double>(std::abs(y - exact) / std::ldexp(1.0L, exponent - limits.digits));
}

/// Numbers in [low, high]: evenly spaced, of every magnitude, and around small multiples of pi/2 and of log(2).
template <class T> std::vector<T> arguments(double low, double high) {
  std::mt19937_64 random(7);
  std::vector<T> out;
  const auto add = [&](double x) {
    if (x >= low && x <= high && std::abs(static_cast<T>(x)) >= std::numeric_limits<T>::min())
      out.push_back(static_cast<T>(x));
  };
  const auto unit = [&] { return std::uniform_real_distribution<double>()(random); };
  const double widest = std::is_same_v<T, float> ? 126 : 1020;
  for (int i = 0; i < 60000; ++i) {
    add(low + (high - low) * unit());
    add((unit() - 0.5) * 4);
    add((unit() - 0.5) * 40);
    add((unit() - 0.5) * 2000);
    const double magnitude = std::exp2((unit() * 2 - 1) * widest) * (1 + unit());
    add(magnitude);
    add(-magnitude);
  }
  for (int n = -400; n <= 400; ++n)
    for (double step : {std::acos(0.0), std::log(2.0)})
      for (double off : {-1e-3, -1e-7, -1e-15, 0.0, 1e-15, 1e-7, 1e-3}) {
        add(n * step * (1 + off));
        add(1 + n * off);
      }
  return out;
}

/// A formula of one number, what it is compared with, and the error in units of the last place that it may have.
struct Function {
  const char* name;
  Value (*formula)(const Value&);
  long double (*reference)(long double);
  double low, high;  // arguments are drawn from here, and from +-2^k with this bound
  double ulps_f32, ulps_f64;
};

template <class T> void check_accuracy(const Function& function, double allowed) {
  const Recorded<T> formula(function.formula);
  double worst = 0;
  T where = 0;
  const std::vector<T> x = arguments<T>(function.low, function.high), y = formula(x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double error = ulps(y[i], function.reference(x[i]));
    if (error > worst) worst = error, where = x[i];
  }
  EXPECT_LE(worst, allowed) << function.name << " of " << name_of(dtype_of<T>()) << " at " << where;
  ::testing::Test::RecordProperty(std::string(function.name) + "_" + std::string(name_of(dtype_of<T>())),
                                  std::to_string(worst));
}

}  // namespace gradus::scalar
