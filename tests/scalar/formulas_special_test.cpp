/// The inverse circular, hyperbolic, gamma and error functions: against the long double functions of the C library,
/// and, where that has none, the oracle's own definitions, which are checked against values computed to 30 digits.
#include "gradus/scalar/formulas_special.h"
#include "tests/scalar/formula_checks.h"

namespace gradus::scalar::formulas_special_test {
namespace {

using Unary = Value (*)(const Value&);

const Function functions[] = {
    {"exp2", exp2, std::exp2, -1022, 1024, 0.75, 0.75},  {"log2", log2, std::log2, 0, 1e300, 1.5, 1.5},
    {"log10", log10, std::log10, 0, 1e300, 1.6, 1.6},    {"sinh", sinh, std::sinh, -711, 711, 2.2, 2.2},
    {"cosh", cosh, std::cosh, -711, 711, 1.5, 1.5},      {"asinh", asinh, std::asinh, -1e300, 1e300, 2.5, 2.5},
    {"acosh", acosh, std::acosh, 1, 1e300, 2.5, 2.5},    {"atanh", atanh, std::atanh, -1, 1, 2.5, 2.5},
    {"atan", atan, std::atan, -1e300, 1e300, 2.1, 1.5},  {"asin", asin, std::asin, -1, 1, 2.8, 2.5},
    {"acos", acos, std::acos, -1, 1, 2.8, 2.5},          {"erfc", erfc, std::erfc, -7, 26.5, 1.5, 3.5},
    {"lgamma", lgamma, std::lgamma, 0, 1e300, 0.6, 3.5},
};

TEST(SpecialFormulas, AreAccurate) {
  for (const Function& function : functions) {
    check_accuracy<float>(function, function.ulps_f32);
    check_accuracy<double>(function, function.ulps_f64);
  }
}

template <class T> void check_edges(const Function& function) {
  const Recorded<T> formula(function.formula);
  constexpr auto limits = std::numeric_limits<T>();
  for (T x : {T(0), T(-0.0), T(1), T(-1), T(2), T(0.5), limits.infinity(), -limits.infinity(), limits.quiet_NaN(),
              limits.max(), -limits.max(), limits.min(), -limits.min()}) {
    const T got = formula.at(x);
    const long double want = function.reference(x);
    EXPECT_LE(ulps(got, want), 2.5) << function.name << " of " << name_of(dtype_of<T>()) << " at " << x << ": " << got;
    if (want == 0) { EXPECT_EQ(std::signbit(got), std::signbit(want)) << function.name << " at " << x; }
  }
}

TEST(SpecialFormulas, HoldAtTheEdges) {
  for (const Function& function : functions) {
    check_edges<float>(function);
    check_edges<double>(function);
  }
}

TEST(SpecialFormulas, PowersAreExact) {
  const Recorded<double> power(exp2), two(log2), ten(log10);
  for (int k = -1000; k <= 1000; k += 7) {
    EXPECT_EQ(power.at(k), std::ldexp(1, k));
    EXPECT_EQ(two.at(std::ldexp(1, k)), k);
  }
  for (int k = 0; k <= 22; ++k) EXPECT_EQ(ten.at(std::pow(10.0, k)), k);
}

template <class T> void check_angles() {
  const Recorded<T> angle(atan2), remainder(fmod);
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const double edges[] = {0.0, -0.0, 1, -1, 0.5, -2.5, 1e-30, -1e30, 3e38, inf, -inf, nan};
  std::vector<T> ys, xs;
  for (double y : edges)
    for (double x : edges) ys.push_back(static_cast<T>(y)), xs.push_back(static_cast<T>(x));
  std::mt19937_64 random(5);
  for (int i = 0; i < 50000; ++i) {
    const auto unit = [&] { return std::uniform_real_distribution<double>(-1, 1)(random); };
    const double scale = i % 3 ? 1 : std::exp2(30 * unit());
    ys.push_back(static_cast<T>(unit() * scale)), xs.push_back(static_cast<T>(unit()));
  }
  const std::vector<T> angles = angle(ys, xs), remainders = remainder(ys, xs);
  double worst = 0;
  for (std::size_t i = 0; i < ys.size(); ++i) {
    const long double want = std::atan2(static_cast<long double>(ys[i]), static_cast<long double>(xs[i]));
    const double error = ulps(angles[i], want);
    worst = std::max(worst, error);
    EXPECT_LE(error, 2.1) << "atan2 " << ys[i] << ", " << xs[i] << ": " << angles[i];
    if (want == 0) { EXPECT_EQ(std::signbit(angles[i]), std::signbit(want)) << ys[i] << ", " << xs[i]; }
    if (std::abs(ys[i] / xs[i]) > 1e15 && std::isfinite(ys[i])) continue;
    const T rest = std::fmod(ys[i], xs[i]);
    EXPECT_TRUE(std::isnan(rest) ? std::isnan(remainders[i])
                                 : std::abs(rest) < std::numeric_limits<T>::min() || rest == remainders[i])
        << "fmod " << ys[i] << ", " << xs[i] << ": " << remainders[i] << ", expected " << rest;
    if (rest == 0) { EXPECT_EQ(std::signbit(remainders[i]), std::signbit(rest)) << ys[i] << ", " << xs[i]; }
  }
  ::testing::Test::RecordProperty("atan2_" + std::string(name_of(dtype_of<T>())), std::to_string(worst));
}

TEST(SpecialFormulas, AnglesAndRemainders) {
  check_angles<float>();
  check_angles<double>();
}

using Points = std::vector<std::pair<double, double>>;

void expect_oracle(const char* name, Real (*oracle)(Real), const Points& points) {
  for (const auto& [x, want] : points)
    EXPECT_NEAR(oracle(Real(x, f64)).v, want, 4e-15 * std::max(std::abs(want), 1.0)) << name << " at " << x;
}

/// Errors relative to the larger of the value and `magnitude`.
template <class T>
void expect_formula(const char* name, Unary formula, Real (*oracle)(Real), double low, double high, double epsilons,
                    double magnitude) {
  const Recorded<T> recorded(formula);
  std::vector<T> x = arguments<T>(low, high);
  std::shuffle(x.begin(), x.end(), std::mt19937_64(3));
  x.resize(std::min<std::size_t>(x.size(), 3000));
  const std::vector<T> y = recorded(x);
  double worst = 0;
  T where = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double want = oracle(Real(static_cast<double>(x[i]), dtype_of<T>())).v;
    if (std::isnan(want) || std::isinf(static_cast<T>(want))) {
      EXPECT_TRUE(std::isnan(want) ? std::isnan(y[i]) : y[i] == static_cast<T>(want)) << name << " at " << x[i];
      continue;
    }
    const double smallest = std::numeric_limits<T>::min();
    if (std::abs(want) < smallest) {  // subnormals are flushed
      EXPECT_LE(std::abs(y[i]), smallest) << name << " at " << x[i];
      continue;
    }
    const double size = std::max(std::abs(want), magnitude);
    const double error = std::abs(static_cast<double>(y[i]) - want) / size / std::numeric_limits<T>::epsilon();
    if (!(error <= worst)) worst = error, where = x[i];
  }
  EXPECT_LE(worst, epsilons) << name << " of " << name_of(dtype_of<T>()) << " at " << where;
  ::testing::Test::RecordProperty(std::string(name) + "_" + std::string(name_of(dtype_of<T>())), std::to_string(worst));
}

TEST(SpecialFormulas, DigammaAndItsDerivatives) {
  expect_oracle("digamma", digamma,
                {{1e-05, -100000.57719921567289},
                 {0.1, -10.423754940411076232},
                 {0.5, -1.9635100260214234794},
                 {1, -0.57721566490153286061},
                 {1.5, 0.036489973978576520559},
                 {2.5, 0.70315664064524318723},
                 {7.25, 1.9104535268837360284},
                 {1e10, 23.02585092989045684},
                 {-0.1, 9.2450730500529480423},
                 {-1.3, 2.8825405488661673038},
                 {-10.5, 2.3982391295357816134},
                 {-0.001, 999.42113819789133376}});
  expect_oracle("trigamma", [](Real x) { return polygamma(1, x); },
                {{0.001, 1.0000016425331958273e+6},
                 {1, 1.6449340668482264365},
                 {2.5, 0.49035775610023486497},
                 {1000.0, 0.0010005001666666333334},
                 {-0.3, 13.945160267805722489},
                 {-4.75, 19.54930139023946447}});
  expect_oracle("polygamma 2", [](Real x) { return polygamma(2, x); },
                {{0.25, -129.32773993753692033},
                 {1, -2.4041138063191885708},
                 {11.5, -0.0082474690506522171203},
                 {-0.3, 67.63908119988316004},
                 {-4.75, -124.0610655213093007}});
  expect_oracle("polygamma 7", [](Real x) { return polygamma(7, x); },
                {{0.25, 3.3030229370901344778e+8},
                 {1, 5060.5498752376394705},
                 {2.5, 3.5652363525231313518},
                 {-0.3, 7.690505963376132303e+7},
                 {-4.75, 3.303526958494708619e+8}});
  expect_formula<float>("digamma", digamma, digamma, -20, 1e30, 1, 1);
  expect_formula<double>("digamma", digamma, digamma, -20, 1e300, 8, 1);
  const auto check = [](const char* name, Unary formula, Real (*oracle)(Real)) {
    expect_formula<float>(name, formula, oracle, 1e-3, 1e6, 1, 0);
    expect_formula<double>(name, formula, oracle, 1e-3, 1e6, 16, 0);
    expect_formula<double>(name, formula, oracle, -9.75, 0, 200, 1);
  };
  check("trigamma", [](const Value& x) { return polygamma(1, x); }, [](Real x) { return polygamma(1, x); });
  check("polygamma 2", [](const Value& x) { return polygamma(2, x); }, [](Real x) { return polygamma(2, x); });
  check("polygamma 5", [](const Value& x) { return polygamma(5, x); }, [](Real x) { return polygamma(5, x); });
}

TEST(SpecialFormulas, LgammaOfNegativeNumbers) {
  const auto reference = [](Real x) { return Real{std::lgamma(x.v), x.type}; };
  expect_formula<float>("lgamma", lgamma, reference, -30, 0, 2, 1);
  expect_formula<double>("lgamma", lgamma, reference, -30, 0, 10, 1);
}

TEST(SpecialFormulas, BesselFunctions) {
  expect_oracle("bessel_k 0", [](Real x) { return bessel_k(0, false, x); },
                {{0.001, 7.0236888005623813228},
                 {0.7, 0.66051985991510159538},
                 {2.25, 0.084043111974658112066},
                 {11.5, 3.7050381659564215186e-6}});
  expect_oracle("bessel_k 1, scaled", [](Real x) { return bessel_k(1, true, x); },
                {{0.01, 100.97864845824004908},
                 {1.5, 1.2431658735525529948},
                 {3.0, 0.80656348012878690333},
                 {600.0, 0.051198297725472442624}});
  const auto check = [](const char* name, Unary formula, Real (*oracle)(Real), double low, double high,
                        double magnitude) {
    expect_formula<float>(name, formula, oracle, low, high, 1, magnitude);
    expect_formula<double>(name, formula, oracle, low, high, 24, magnitude);
  };
  check(
      "bessel_j 0", [](const Value& x) { return bessel_j(0, x); }, [](Real x) { return bessel_j(0, x); }, -1e9, 1e9, 1);
  check(
      "bessel_j 1", [](const Value& x) { return bessel_j(1, x); }, [](Real x) { return bessel_j(1, x); }, -1e9, 1e9, 1);
  check(
      "bessel_j 3", [](const Value& x) { return bessel_j(3, x); }, [](Real x) { return bessel_j(3, x); }, -1e9, 1e9, 1);
  check("bessel_y 0", [](const Value& x) { return bessel_y(0, x); }, [](Real x) { return bessel_y(0, x); }, 0, 1e9, 1);
  check("bessel_y 1", [](const Value& x) { return bessel_y(1, x); }, [](Real x) { return bessel_y(1, x); }, 0, 1e9, 1);
  check(
      "bessel_k 0", [](const Value& x) { return bessel_k(0, false, x); }, [](Real x) { return bessel_k(0, false, x); },
      0, 80, 0);
  check(
      "bessel_k 1, scaled", [](const Value& x) { return bessel_k(1, true, x); },
      [](Real x) { return bessel_k(1, true, x); }, 0, 1e9, 0);
}

TEST(SpecialFormulas, Integrals) {
  expect_oracle("dawsn", dawsn,
                {{1e-05, 9.9999999993333341514e-6},
                 {0.5, 0.42443638350202229593},
                 {-2.5, -0.22308372216743548113},
                 {6.75, 0.074915313826215613868},
                 {12.0, 0.041812876453988260318}});
  expect_oracle("expint", expint,
                {{1e-10, -22.448635264938923943},
                 {0.25, -0.54254326466191372953},
                 {1.5, 3.301285449129797838},
                 {15.5, 373840.25323579391186}});
  expect_oracle("fresnel_cos", fresnel_cos,
                {{0.25, 0.24975915035654318346},
                 {-1.5, -0.44526117603982153506},
                 {2.75, 0.42326379628366276347},
                 {20.0, 0.49998733497234438819},
                 {1000.125, 0.4999921893619371713}});
  expect_oracle("fresnel_sin", fresnel_sin,
                {{0.25, 0.0081756002357777557781},
                 {-1.5, -0.69750496008209301308},
                 {2.75, 0.41399090147578201683},
                 {20.0, 0.48408453592595389271},
                 {1000.125, 0.50031817424790209911}});
  expect_oracle("spence", [](Real x) { return spence(0, x); },
                {{1e-10, 1.6449340644456413434},
                 {0.25, 0.97846939293030610374},
                 {0.75, 0.26765263908273260692},
                 {1.25, -0.23590029768626345382},
                 {1.75, -0.64276126883997887911},
                 {50.0, -9.1977617095309978531}});
  expect_oracle("the third derivative of spence", [](Real x) { return spence(3, x); },
                {{0.125, -58.45291002530656557},
                 {0.75, -1.2677497182724031567},
                 {1.25, -0.40237456821884873809},
                 {3.5, -0.036272027314345878958}});
  const auto check = [](const char* name, Unary formula, Real (*oracle)(Real), double low, double high) {
    expect_formula<float>(name, formula, oracle, low, std::min(high, 1e30), 1, 0);
    expect_formula<double>(name, formula, oracle, low, high, 6, 0);
  };
  check("dawsn", dawsn, dawsn, -1e150, 1e150);
  check("expint", expint, expint, 0.45, 800);
  check("fresnel_cos", fresnel_cos, fresnel_cos, -1e300, 1e300);
  check("fresnel_sin", fresnel_sin, fresnel_sin, -1e300, 1e300);
  check("spence", [](const Value& x) { return spence(0, x); }, [](Real x) { return spence(0, x); }, 0, 1e300);
  check(
      "the derivative of spence", [](const Value& x) { return spence(1, x); }, [](Real x) { return spence(1, x); }, 0,
      1e300);
}

TEST(SpecialFormulas, Quantiles) {
  expect_oracle("erfinv", erfinv,
                {{1e-10, 8.8622692545275804594e-11},
                 {0.3, 0.27246271472675434502},
                 {0.84, 0.99353562834730418718},
                 {0.86, 1.0435418436397588376},
                 {0.9999999, 3.7665625816384708887},
                 {-0.999, -2.3267537655135244939}});
  expect_oracle("ndtri", ndtri,
                {{1e-300, -37.047096299361199237},
                 {1e-12, -7.0344838253011319326},
                 {0.02, -2.0537489106318230443},
                 {0.3, -0.52440051270804081597},
                 {0.5, 0.0},
                 {0.95, 1.6448536269514722843},
                 {0.9999, 3.7190164854557083867}});
  expect_formula<float>("erfinv", erfinv, erfinv, -1, 1, 1, 1e-30);
  expect_formula<double>("erfinv", erfinv, erfinv, -1, 1, 6, 1e-290);
  expect_formula<float>("ndtri", ndtri, ndtri, 0, 1, 1, 1e-7);
  expect_formula<double>("ndtri", ndtri, ndtri, 0, 1, 6, 1e-17);
}

}  // namespace
}  // namespace gradus::scalar::formulas_special_test
