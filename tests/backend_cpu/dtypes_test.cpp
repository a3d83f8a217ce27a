/// Every dtype on its own and every cast between two, by generated code for both instruction sets against the
/// interpreter, and both against what the conversions of C++ and the rounding of tensor/half.h say.
#include "tests/backend_cpu/compiled.h"
#include "tests/instruction_sets.h"

namespace gradus::dtypes_test {
namespace {

using namespace testing_loops;

constexpr std::int64_t count = 3000;

Graph casts_from(DType from) {
  Graph graph;
  graph.inputs.push_back(graph.add({.spec = {from, {count}}}));
  for (const DType to : all_dtypes) {
    if (to == from) continue;
    graph.outputs.push_back(graph.add({.op = parse_op("cast", text("to=", to)), .in = {0}, .spec = {to, {count}}}));
  }
  return graph;
}

/// The numbers around which conversions change: limits of integers, ties, subnormals.
template <class T> std::vector<T> hard_numbers() {
  std::vector<T> numbers;
  std::mt19937_64 random(7);
  if constexpr (FloatingElement<T>) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    for (double x :
         {0.0, infinity, static_cast<double>(NAN), 0.5, 1.5, 2.5, 65504.0, 65519.9, 65520.0, 0x1p-14, 0x1p-24, 0x1p-25,
          0x1.0001p-25, 0x1p-126, 3.4e38, 3.3961e38, 1.0009765625, 1.00048828125, 1.00390625})
      for (double sign : {1.0, -1.0}) numbers.push_back(static_cast<T>(sign * x));
    for (int bits = 1; bits <= 64; ++bits)
      for (double near : {-1.0, -0.5, 0.0, 0.5, 1.0})
        for (double sign : {1.0, -1.0}) numbers.push_back(static_cast<T>(sign * (std::ldexp(1, bits) + near)));
    while (static_cast<std::int64_t>(numbers.size()) < count) {
      const int exponent = static_cast<int>(random() % 90) - 28;
      numbers.push_back(static_cast<T>(std::ldexp(std::uniform_real_distribution<double>(-2, 2)(random), exponent)));
    }
  } else if constexpr (std::is_same_v<T, bool>) {
    while (static_cast<std::int64_t>(numbers.size()) < count) numbers.push_back(random() % 2 == 0);
  } else {
    for (int bits = 0; bits < 64; ++bits)
      for (std::uint64_t near : {~std::uint64_t{1}, ~std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{1}}) {
        numbers.push_back(static_cast<T>((std::uint64_t{1} << bits) + near));
        numbers.push_back(static_cast<T>(-(std::uint64_t{1} << bits) - near));
      }
    // Ties of floats of 8, 11 and 24 bits, and their neighbours.
    while (static_cast<std::int64_t>(numbers.size()) < count) {
      const int shift = static_cast<int>(random() % 50);
      const std::uint64_t tie = (random() % (1 << 12) * 2 + 1) << shift;
      numbers.push_back(static_cast<T>(tie + random() % 3 - 1));
      numbers.push_back(static_cast<T>(random() >> random() % 64));
    }
    numbers.resize(static_cast<std::size_t>(count));
  }
  return numbers;
}

/// What a cast gives, element by element.
template <class To, class From> To converted(From x) {
  if constexpr (std::is_same_v<To, bool>) return x != From(0);
  else if constexpr (FloatingElement<From> && !FloatingElement<To>) {
    const auto exact = static_cast<double>(x);
    if (std::isnan(exact)) return To(0);
    const double cut = std::trunc(exact);
    if (cut < static_cast<double>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (cut >= std::ldexp(1, std::numeric_limits<To>::digits)) return std::numeric_limits<To>::max();
    return static_cast<To>(cut);
  } else if constexpr (FloatingElement<To> && std::is_integral_v<From> && NarrowElement<To>) {
    // By long double, which holds every integer: down to the neighbours in the narrow type.
    const auto exact = static_cast<long double>(x);
    To best(static_cast<float>(exact));
    for (int step : {-1, 1}) {
      const To other = To::from_bits(static_cast<std::uint16_t>(best.bits + step));
      const long double distance = std::abs(static_cast<long double>(static_cast<double>(other)) - exact);
      const long double so_far = std::abs(static_cast<long double>(static_cast<double>(best)) - exact);
      if (std::isfinite(static_cast<double>(other)) && std::isfinite(static_cast<double>(best)) &&
          (distance < so_far || (distance == so_far && other.bits % 2 == 0)))
        best = other;
    }
    return best;
  } else if constexpr (NarrowElement<From>) {
    return static_cast<To>(static_cast<float>(x));
  } else {
    return static_cast<To>(x);
  }
}

template <class From> void check_casts() {
  const Graph graph = casts_from(dtype_of<From>());
  const std::vector<From> numbers = hard_numbers<From>();
  Ref<Buffer> input = Buffer::allocate(count * static_cast<std::int64_t>(sizeof(From)));
  std::copy(numbers.begin(), numbers.end(), input->data<From>());
  std::vector<std::vector<Ref<Buffer>>> results{run(*interpreted(graph), {input})};
  for (const auto isa : {narrowest_isa(), *cpu_backend::widest_isa()})
    results.push_back(run(*compiled(graph, {.isa = isa}), {input}));
  for (std::size_t way = 0; way < results.size(); ++way)
    for (std::size_t k = 0; k < graph.outputs.size(); ++k) {
      const DType to = graph[graph.outputs[k]].spec.dtype;
      with_type(to, [&]<class To>(To) {
        const To* got = results[way][k]->data<To>();
        for (std::size_t i = 0; i < numbers.size(); ++i) {
          const To expected = converted<To, From>(numbers[i]);
          ASSERT_TRUE(same(got[i], expected))
              << dtype_of<From>() << " to " << to << ", way " << way << ": " << static_cast<double>(numbers[i])
              << " gives " << static_cast<double>(got[i]) << " instead of " << static_cast<double>(expected);
        }
      });
      if (testing::Test::HasFatalFailure()) return;
    }
}

TEST(DTypes, CastsOfAllPairs) {
  for (const DType from : all_dtypes) {
    with_type(from, []<class From>(From) { check_casts<From>(); });
    if (HasFatalFailure()) return;
  }
}

/// All numbers of 16 bits: widened and rounded back they are the same, but for what a NaN holds.
TEST(DTypes, EveryNarrowNumberRoundTrips) {
  for (const DType t : {f16, bf16}) {
    const Spec spec{t, {65536}}, wide{f32, {65536}};
    Graph graph;
    graph.inputs.push_back(graph.add({.spec = spec}));
    const int single = graph.add({.op = parse_op("cast", "to=f32"), .in = {0}, .spec = wide});
    const int back = graph.add({.op = parse_op("cast", text("to=", t)), .in = {single}, .spec = spec});
    graph.outputs = {single, back};
    Ref<Buffer> input = Buffer::allocate(bytes_of(spec));
    for (std::uint32_t i = 0; i < 65536; ++i) input->data<std::uint16_t>()[i] = static_cast<std::uint16_t>(i);
    std::vector<std::vector<Ref<Buffer>>> results{run(*interpreted(graph), {input})};
    for (const bool merge : {true, false})
      for (const auto isa : {narrowest_isa(), *cpu_backend::widest_isa()})
        results.push_back(run(*compiled(graph, {.merge = merge, .isa = isa}), {input}));
    for (const auto& outputs : results)
      with_type(t, [&]<class T>(T) {
        if constexpr (NarrowElement<T>)
          for (std::uint32_t i = 0; i < 65536; ++i) {
            const T x = T::from_bits(static_cast<std::uint16_t>(i));
            ASSERT_TRUE(same(outputs[0]->template data<float>()[i], static_cast<float>(x))) << t << ' ' << i;
            ASSERT_TRUE(same(outputs[1]->template data<T>()[i], x)) << t << ' ' << i;
          }
      });
  }
}

/// Sums of narrow floats accumulate in f32 and are rounded once, whatever is fused and however long they are.
TEST(DTypes, NarrowReductionsAccumulateInSingle) {
  for (const std::string t : {"f16", "bf16"})
    for (const auto& [shape, rows, columns] :
         std::vector<std::array<std::string, 3>>{{"[3,50]", "[3,1]", "[1,50]"},
                                                 {"[70,33]", "[70,1]", "[1,33]"},
                                                 {"[2,70000]", "[2,1]", "[1,70000]"},
                                                 {"[3000,5]", "[3000,1]", "[1,5]"},
                                                 {"[20,16]", "[20,1]", "[1,16]"}}) {
      const std::string one = t + rows, other = t + columns, full = t + shape;
      expect_all_ways_agree(parse_graph("%0 = input : " + full + "\n%1 = sum{axis=-1} %0 : " + one +
                                        "\n%2 = broadcast{shape=" + shape + "} %1 : " + full +
                                        "\n%3 = multiply %0 %2 : " + full + "\n%4 = sum{axis=-2} %3 : " + other +
                                        "\n%5 = prod{axis=-2} %0 : " + other + "\n%6 = max{axis=-1} %3 : " + one +
                                        "\n%7 = exp %1 : " + one + "\nreturn %1 %4 %5 %6 %7 %3\n"));
      if (HasFatalFailure()) return;
    }
  const Graph graph = parse_graph("%0 = input : f16[1,5000]\n%1 = sum{axis=-1} %0 : f16[1,1]\nreturn %1\n");
  Ref<Buffer> ones = Buffer::allocate(10000);
  std::fill_n(ones->data<half>(), 5000, half(1.001));
  EXPECT_EQ(static_cast<float>(*run(*compiled(graph), {ones})[0]->data<half>()),
            static_cast<float>(half(5000 * static_cast<float>(half(1.001)))));
}

// ---------------------------------------------------------------- subnormal numbers

double subnormal_of(DType t) { return t == f64 ? 0x1p-1025 : t == f16 ? 0x1p-20 : 0x1p-129; }

Ref<Buffer> numbers_near_zero(const Spec& spec) {
  const double infinity = std::numeric_limits<double>::infinity(), small = subnormal_of(spec.dtype);
  const double numbers[] = {small, -small, 0.0, -0.0, 1.0, -3.0, infinity, -infinity, static_cast<double>(NAN)};
  Ref<Buffer> buffer = Buffer::allocate(bytes_of(spec));
  with_type(spec.dtype, [&]<class T>(T) {
    if constexpr (FloatingElement<T>)
      for (std::size_t i = 0; i < static_cast<std::size_t>(spec.shape.size()); ++i)
        buffer->data<T>()[i] = static_cast<T>(numbers[i % std::size(numbers)]);
  });
  return buffer;
}

/// Whatever rounds: what arithmetic gives is no subnormal number any more, an input may be one.
TEST(DTypes, ResultsAndInputsAreRoundedAlike) {
  const Spec spec{f32, {700}};
  for (const std::string t : {"f16", "bf16"}) {
    const std::string narrow = t + "[700]", cast = "cast{to=" + t + "} ";
    const Graph graph =
        parse_graph("%0 = input : f32[700]\n%1 = multiply %0 %0 : f32[700]\n%2 = " + cast + "%1 : " + narrow +
                    "\n%3 = " + cast + "%0 : " + narrow + "\n%4 = maximum %0 %1 : f32[700]\n%5 = " + cast +
                    "%4 : " + narrow + "\n%6 = tanh %1 : f32[700]\n%7 = " + cast + "%6 : " + narrow +
                    "\n%8 = relu %1 : f32[700]\n%9 = " + cast + "%8 : " + narrow + "\nreturn %2 %3 %5 %7 %9\n");
    expect_all_ways_agree(graph);
    const Ref<Buffer> input = numbers_near_zero(spec);
    const auto expected = run(*interpreted(graph), {input});
    for (const auto isa : {narrowest_isa(), *cpu_backend::widest_isa()})
      expect_same(*compiled(graph, {.isa = isa}), run(*compiled(graph, {.isa = isa}), {input}), expected, {},
                  "near zero");
  }
}

/// What may be computed of an input and constants, or of constants alone, of which some have no effect but to flush.
Graph beside_constants(const Spec& spec) {
  Graph graph;
  graph.inputs.push_back(graph.add({.spec = spec}));
  const auto add = [&](const char* op, const std::string& attributes, const std::vector<int>& in) {
    const AnyOp any = parse_op(op, attributes);
    const std::vector<Spec> specs(in.size(), spec);
    graph.outputs.push_back(graph.add({.op = any, .in = in, .spec = any.infer(specs)}));
  };
  for (const double number : {1.0, 0.0, -0.0, -3.0, subnormal_of(spec.dtype), -subnormal_of(spec.dtype)}) {
    const std::uint64_t bits = scalar::Literal(number).bits_as(spec.dtype);
    const int c = graph.add({.spec = spec, .is_constant = true, .constant = bits});
    for (const char* op : {"add", "subtract", "multiply", "divide", "cotangent_times", "less", "less_equal", "equal"})
      for (const std::vector<int>& in : {std::vector<int>{0, c}, {c, 0}, {c, c}}) add(op, "", in);
    for (const char* op : {"sqrt", "ceil", "floor", "negative", "abs"}) add(op, "", {c});
    for (const DType to : {f64, f32, bf16, i32, boolean})
      if (to != spec.dtype) add("cast", text("to=", to), {c});
  }
  if (spec.dtype != f32) return graph;
  const int wide = graph.add({.op = parse_op("cast", "to=f64"), .in = {0}, .spec = {f64, spec.shape}});
  graph.outputs.push_back(graph.add({.op = parse_op("cast", "to=f32"), .in = {wide}, .spec = spec}));
  return graph;
}

TEST(DTypes, SubnormalNumbersAreFlushedBesideConstantsToo) {
  for (const DType t : {f64, f32, bf16, f16})
    for (const std::int64_t n : {1, 16, 19}) {
      const Spec spec{t, {n}};
      const Graph graph = beside_constants(spec);
      const std::vector<Ref<Buffer>> inputs{numbers_near_zero(spec)};
      const auto expected = run(*interpreted(graph), inputs);
      for (const auto isa : {narrowest_isa(), *cpu_backend::widest_isa()})
        for (const bool merge : {true, false}) {
          const auto program = compiled(graph, {.merge = merge, .isa = isa});
          expect_same(*program, run(*program, inputs), expected, {},
                      text(cpu_backend::name(isa), merge ? "" : " apart"));
          if (HasFatalFailure()) return;
        }
      for (const std::vector<std::string>& off : {std::vector<std::string>(), {"simplify"}, {"fold"}})
        for (const Tier tier : {Tier::compiled, Tier::interpreted}) {
          const auto program = cpu_backend::compile(graph, {.disable = off, .tier = tier});
          const std::string way = off.empty() ? "all passes" : text("without ", off[0]);
          expect_same(*program, run(*program, inputs), expected, {}, way);
          if (HasFatalFailure()) return;
        }
    }
}

}  // namespace
}  // namespace gradus::dtypes_test
