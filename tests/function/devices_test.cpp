/// Devices: scopes, copies and their gradients, memory, programs on one device and on several, mistakes. Logical
/// devices of the processor stand for what a machine may have.
#include <gtest/gtest.h>
#include <random>
#include <thread>
#include "gradus/backend/parts/shared_executables.h"
#include "gradus/gradus.h"
#include "tests/errors.h"
#include "tests/fake_device.h"
#include "tests/halves_on_devices.h"

namespace gradus::devices_test {
namespace {

Tensor numbers(const Shape& shape, int seed = 1) { return random::normal(shape, {.seed = seed}); }

bool same(const Tensor& a, const Tensor& b) { return bitwise_equal(a.to(cpu(0)), b.to(cpu(0))); }

// ---------------------------------------------------------------- scopes and copies

TEST(Devices, ArePrintedAndListed) {
  EXPECT_EQ(text(cpu(1)), "cpu:1");
  EXPECT_EQ(devices(DeviceKind::cpu), std::vector{cpu(0)});
  EXPECT_TRUE(devices(DeviceKind::cuda).empty());
  EXPECT_EQ(DeviceKind::cuda, DeviceKind::gpu);
  EXPECT_EQ(default_device(), cpu(0));
  EXPECT_EQ(device_from_text("tpu:3"), (Device{DeviceKind::tpu, 3}));
  for (const char* wrong : {"", "cpu", "cpu:", "cpu:-1", "cpu:63", "cpu:1x", "xpu:1", "1"})
    EXPECT_THROW(device_from_text(wrong), InvalidArgument) << wrong;
}

TEST(Devices, ATensorIsWhereItWasPut) {
  const Tensor x = numbers({3});
  EXPECT_EQ(x.device(), cpu(0));
  const Tensor y = x.to(cpu(1));
  EXPECT_EQ(y.device(), cpu(1));
  EXPECT_EQ((y * 2 + 1).device(), cpu(1));
  EXPECT_TRUE(same(y, x));
  EXPECT_EQ(text(y.spec()), "f32[3]@cpu:1");
  EXPECT_EQ(y.spec(), (Spec{f32, {3}})) << "a spec without a device matches any";
}

/// Also where it has to be sent there first, and several threads want it at once.
TEST(Devices, ThreadsMayUseATensorOfTheHostSideBySide) {
  const auto twice = function([](Tensor x) { return x * 2; });
  for (int i = 0; i < 100; ++i) {
    const Tensor x = constant({1.0 + i, 2.0, 3.0});
    std::vector<std::thread> all;
    for (int t = 0; t < 4; ++t)
      all.emplace_back([&, t] {
        const Tensor y = t % 2 ? twice(x) : x + x;
        EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{2 + 2 * static_cast<float>(i), 4, 6}));
        EXPECT_EQ(x.to_vector<float>()[0], 1 + static_cast<float>(i));
      });
    for (std::thread& each : all) each.join();
  }
}

TEST(Devices, WhatIsMadeInAScopeIsThere) {
  const DeviceScope scope(cpu(2));
  EXPECT_EQ(default_device(), cpu(2));
  EXPECT_EQ(constant({1.0, 2.0}).device(), cpu(2));
  EXPECT_EQ(zeros({2}).device(), cpu(2));
  EXPECT_EQ(Variable(constant(1.0)).value().device(), cpu(2));
  {
    const DeviceScope inner(cpu(1));
    EXPECT_EQ(zeros({2}).device(), cpu(1));
  }
  EXPECT_EQ(zeros({2}).device(), cpu(2));
}

TEST(Devices, AScopeBringsOperandsOver) {
  const Tensor a = numbers({4}).to(cpu(1)), b = numbers({4}, 2).to(cpu(2));
  const DeviceScope scope(cpu(3));
  const Tensor sum = a + b;
  EXPECT_EQ(sum.device(), cpu(3));
  EXPECT_EQ(sum.to_vector<float>(), (a.to(cpu(0)) + b.to(cpu(0))).to_vector<float>());
}

TEST(Devices, UncommittedTensorsGoWhereTheOthersAre) {
  const Tensor a = numbers({4}).to(cpu(1)), b = numbers({4}, 2);
  EXPECT_EQ((a + b).device(), cpu(1));
  EXPECT_EQ((b * a).device(), cpu(1));
  EXPECT_EQ(b.device(), cpu(0));
  EXPECT_TRUE(same(a + b, a.to(cpu(0)) + b));
}

TEST(Devices, TwoDevicesDoNotMeetByThemselves) {
  const Tensor a = numbers({4}).to(cpu(1)), b = numbers({4}).to(cpu(2));
  expect_error<InvalidArgument>([&] { return a + b; }, {"cpu:1", "cpu:2", ".to("});
  expect_error<InvalidArgument>([&] { return matmul(reshape(a, {2, 2}), reshape(b, {2, 2})); }, {"cpu:1", "cpu:2"});
  auto f = function([](Tensor x, Tensor y) { return x * y; });
  expect_error<InvalidArgument>([&] { return f(a, b); }, {"cpu:1", "cpu:2"});
}

TEST(Devices, AnInputSignatureThatNamesADeviceIsOfItsTensors) {
  auto f = function([](Tensor x) { return x * 2; }, {.input_signature = {{f32, {3}, cpu(1)}}});
  EXPECT_EQ(f(numbers({3}).to(cpu(1))).device(), cpu(1));
  expect_error<InvalidArgument>([&] { return f(numbers({3}).to(cpu(2))); }, {"argument 0", "cpu:2", ".to(cpu:1)"});
  expect_error<InvalidArgument>([&] { return f(numbers({3})); }, {"argument 0", "cpu:0", ".to(cpu:1)"});
  {
    const DeviceScope scope(cpu(1));
    EXPECT_EQ(f(numbers({3})).device(), cpu(1));
  }
  EXPECT_NE(f.stablehlo({{f32, {3}}}).find("tensor<3xf32>"), std::string::npos) << "a text is of no device";
  auto of_any = function([](Tensor x) { return x * 2; }, {.input_signature = {{f32, {3}}}});
  for (const Device device : {cpu(0), cpu(1), cpu(2)}) EXPECT_EQ(of_any(numbers({3}).to(device)).device(), device);
}

TEST(Devices, ExplainSaysWhatPassesDecidedBy) {
  auto f = function([](Tensor x) { return exp(x) + 1; });
  f(numbers({64}));
  const std::string said = f.explain().target;
  EXPECT_EQ(said, to_text(backend_of(cpu(0)).target().value()));
  for (const char* part : {"cpu", "256 KiB", "8192 KiB", "1024", "256 formulas", "200 ns"})
    EXPECT_NE(said.find(part), std::string::npos) << part << ": " << said;
}

TEST(Devices, GradientsCross) {
  const Tensor x = numbers({5});
  const auto f = [](const Tensor& v) {
    const Tensor there = exp(v).to(cpu(1)) * 3;
    return reduce_sum(square(there).to(cpu(2)) + 1);
  };
  const auto plain = [](const Tensor& v) { return reduce_sum(square(exp(v) * 3) + 1); };
  EXPECT_TRUE(same(gradient(f, x), gradient(plain, x)));
  EXPECT_EQ(gradient(f, x).device(), cpu(0));
  EXPECT_TRUE(same(hessian(f, x), hessian(plain, x)));
  const Tensor on_one = x.to(cpu(1));
  EXPECT_EQ(gradient(plain, on_one).device(), cpu(1));
  EXPECT_EQ(gradient(f, on_one).device(), cpu(1));
  EXPECT_TRUE(same(vectorized_map([](const Tensor& v) { return v.to(cpu(1)) * 2; }, x), x * 2));
}

TEST(Devices, ATapeSeesWhatIsComputedElsewhere) {
  Variable w(numbers({3, 2}));
  GradientTape tape;
  Tensor y;
  {
    const DeviceScope scope(cpu(1));
    y = reduce_sum(tanh(matmul(numbers({4, 3}, 5), w)));
  }
  EXPECT_EQ(y.device(), cpu(1));
  y.item();
  const Tensor gradient = tape.gradient(y, w);
  EXPECT_EQ(gradient.device(), cpu(0)) << "where the Variable is";
  GradientTape plain_tape;
  const Tensor plain = reduce_sum(tanh(matmul(numbers({4, 3}, 5), w)));
  EXPECT_TRUE(same(gradient, plain_tape.gradient(plain, w)));
}

// ---------------------------------------------------------------- Variables

TEST(Devices, AVariableStaysWhereItIs) {
  const auto made = [] {
    const DeviceScope scope(cpu(1));
    return Variable(numbers({3}), "w");
  };
  Variable w = made(), u(numbers({3}), "u");
  expect_error<InvalidArgument>([&] { w.assign(numbers({3}, 2).to(cpu(2))); }, {"w", "cpu:1", "cpu:2", ".to(cpu:1)"});
  expect_error<InvalidArgument>([&] { u.assign(numbers({3}, 2).to(cpu(1))); }, {"u", "cpu:0", "cpu:1"});
  auto step = function([&](Tensor x) { w.assign(x); });
  expect_error<InvalidArgument>([&] { step(numbers({3}).to(cpu(2))); }, {"w", "cpu:1", "cpu:2"});
  EXPECT_TRUE(same(w, numbers({3})));
  EXPECT_TRUE(same(u, numbers({3})));
  w.assign(numbers({3}, 7));
  EXPECT_EQ(w.value().device(), cpu(1));
  w.assign_add(numbers({3}, 8));
  EXPECT_EQ(w.value().device(), cpu(1));
  EXPECT_TRUE(same(w, numbers({3}, 7) + numbers({3}, 8)));
  u.assign(numbers({3}, 9).to(cpu(0)));
  EXPECT_TRUE(same(u, numbers({3}, 9)));
}

std::vector<Tensor> trained(Device a, Device b) {
  std::vector<Tensor> all, losses = losses_of_halves(a, b, &all);
  all.insert(all.end(), losses.begin(), losses.end());
  return all;
}

TEST(Devices, PlacementChangesNoBitOfTraining) {
  const std::vector<Tensor> one = trained(cpu(0), cpu(0));
  for (const auto& [a, b] : {std::pair{cpu(0), cpu(1)}, {cpu(1), cpu(1)}, {cpu(2), cpu(1)}}) {
    const std::vector<Tensor> two = trained(a, b);
    ASSERT_EQ(one.size(), two.size());
    for (std::size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(same(one[i], two[i])) << a << ' ' << b << ' ' << i;
  }
}

TEST(Devices, SlotsLiveBesideTheirVariables) {
  const auto made = [] {
    const DeviceScope scope(cpu(1));
    return Variable(numbers({3}), "w");
  };
  Variable w = made();
  Adam optimizer;
  GradientTape tape;
  const Tensor loss = reduce_sum(square(w));
  optimizer.apply_gradients(tape.gradient(loss, Variables(w)));
  for (const Variable& slot : optimizer.variables())
    if (slot.shape() == w.shape()) { EXPECT_EQ(slot.value().device(), cpu(1)) << slot.name(); }
}

// ---------------------------------------------------------------- programs

TEST(Devices, AFunctionServesTheDeviceOfItsArguments) {
  auto f = function([](Tensor x) { return softmax(matmul(x, transpose(x))); });
  const Tensor x = numbers({6, 3});
  const Tensor plain = f(x), there = f(x.to(cpu(1)));
  EXPECT_EQ(there.device(), cpu(1));
  EXPECT_TRUE(same(plain, there));
  {
    const DeviceScope scope(cpu(2));
    EXPECT_EQ(f(x).device(), cpu(2));
    EXPECT_TRUE(same(f(x), plain));
  }
  EXPECT_EQ(f(x).device(), cpu(0));
}

/// Of four replicas one program is compiled.
TEST(Devices, EqualProgramsAreCompiledOnce) {
  auto f = function([](Tensor x) { return reduce_sum(tanh(x) * 3 + exp(x), {.axis = {1}}); });
  const Tensor x = numbers({512, 4096});  // compiled at once
  std::vector<Tensor> results{f(x)};
  const std::int64_t before = placed_compilations();
  for (int i = 1; i <= 4; ++i) results.push_back(f(x.to(cpu(i))));
  EXPECT_EQ(placed_compilations() - before, 1);
  for (const Tensor& result : results) EXPECT_TRUE(same(result, results[0]));
}

TEST(Devices, IndependentHalvesRunSideBySide) {
  auto f = function([](Tensor x) {
    Tensor a, b;
    {
      const DeviceScope scope(cpu(1));
      a = matmul(tanh(x), transpose(x));
    }
    {
      const DeviceScope scope(cpu(2));
      b = matmul(exp(x), transpose(x));
    }
    return a + b.to(cpu(1));
  });
  const Tensor x = numbers({64, 48});
  EXPECT_TRUE(same(f(x), matmul(tanh(x), transpose(x)) + matmul(exp(x), transpose(x))));
  const Explanation e = f.explain();
  int first[3] = {-1, -1, -1};
  for (const Kernel& kernel : e.kernels)
    if (first[kernel.device.index] < 0) first[kernel.device.index] = kernel.stage;
  EXPECT_EQ(first[1], 0);
  EXPECT_EQ(first[2], 0);
  const std::string printed = text(e);
  EXPECT_NE(printed.find("cpu:2"), std::string::npos) << printed;
  EXPECT_NE(e.graph().find("@cpu:2"), std::string::npos) << e.graph();
  EXPECT_EQ(to_text(parse_graph(e.graph())), to_text(parse_graph(to_text(parse_graph(e.graph())))));
}

TEST(Devices, ACallThatFailsOnOneDeviceChangesNothing) {
  Variable w(numbers({3}), "w");
  auto step = function([&](Tensor x, Tensor at) {
    const Tensor chosen = gather(x.to(cpu(1)), at.to(cpu(1)));
    w.assign(w.value() + 1);
    return chosen;
  });
  const Tensor before = w.value();
  EXPECT_THROW(step(numbers({4, 2}), constant({1, 9})).to_vector<float>(), OutOfRange);
  EXPECT_TRUE(same(w, before));
  step(numbers({4, 2}), constant({1, 3}));
  EXPECT_TRUE(same(w, before + 1));
}

TEST(Devices, BranchesAndLoopsRunWhereTheirOperandsAre) {
  const Tensor x = numbers({4}).to(cpu(1));
  const auto body = [](const Tensor& v) {
    return while_loop([](const Tensor& s) { return reduce_sum(s) < 100.0; }, [](const Tensor& s) { return s * s + 1; },
                      v);
  };
  auto f = function(body);
  EXPECT_EQ(f(x).device(), cpu(1));
  EXPECT_TRUE(same(f(x), body(x.to(cpu(0)))));
  const auto both = [](const Tensor& v) {
    return cond(reduce_sum(v) > 0, [&] { return v.to(cpu(2)) + 1; }, [&] { return v.to(cpu(2)) - 1; });
  };
  expect_error<InvalidArgument>([&] { return both(x); }, {"cpu:1", "cpu:2", "body"});
}

/// Random programs, cut at random: the bits of one device.
TEST(Devices, RandomCutsChangeNoBit) {
  std::mt19937 random(5);
  for (int round = 0; round < 40; ++round) {
    const unsigned seed = random();
    const auto build = [seed](const Tensor& x, bool cut) {
      std::mt19937 choice(seed);
      std::vector<Tensor> pool{x, exp(x * 0.1f)};
      for (int i = 0; i < 12; ++i) {
        const Tensor& a = pool[choice() % pool.size()];
        const Tensor& b = pool[choice() % pool.size()];
        const int device = static_cast<int>(choice() % 4), op = static_cast<int>(choice() % 5);
        std::optional<DeviceScope> scope;
        if (cut) scope.emplace(cpu(device));
        if (op == 0) pool.push_back(a + b);
        else if (op == 1) pool.push_back(tanh(a) * b);
        else if (op == 2) pool.push_back(a + reduce_sum(b, {.axis = {0}, .keepdims = true}));
        else if (op == 3) pool.push_back(matmul(matmul(a, transpose(b)), a) * 0.01f);
        else pool.push_back(a * ones({3, 5}) + zeros({3, 5}));
      }
      const DeviceScope home(cpu(0));
      return reduce_sum(pool[pool.size() - 1]) + reduce_sum(pool[pool.size() - 2]) * pool[choice() % pool.size()];
    };
    const Tensor x = numbers({3, 5}, round + 1);
    const Tensor plain = build(x, false);
    EXPECT_TRUE(same(build(x, true), plain)) << seed;
    auto f = function([&](Tensor v) { return build(v, true); });
    EXPECT_TRUE(same(f(x), plain)) << seed;
    const auto loss = [&](bool cut) { return [&build, cut](const Tensor& v) { return reduce_sum(build(v, cut)); }; };
    EXPECT_TRUE(same(gradient(loss(true), x), gradient(loss(false), x))) << seed;
    auto g = function([&](Tensor v) { return gradient(loss(true), v); });
    EXPECT_TRUE(same(g(x), gradient(loss(false), x))) << seed;
  }
}

// ---------------------------------------------------------------- memory

TEST(Devices, EachHasItsOwnAccountAndLimit) {
  const Tensor x = numbers({1 << 18});
  x.span<float>();
  const std::size_t zero = memory_use(cpu(0)).live_bytes, four = memory_use(cpu(4)).live_bytes;
  const Tensor there = x.to(cpu(4));
  EXPECT_EQ(memory_use(cpu(0)).live_bytes, zero);
  EXPECT_EQ(memory_use(cpu(4)).live_bytes, four + MiB);
  const std::size_t limit = memory_use(cpu(4)).limit_bytes;
  set_memory_limit(cpu(4), four + 2 * MiB);
  expect_error<ResourceExhausted>([&] { (concat({there, there}, 0) + 1).to_vector<float>(); },
                                  {"memory limit reached on cpu:4", "set_memory_limit", "holders"});
  EXPECT_EQ(memory_use(cpu(4)).live_bytes, four + MiB) << "nothing is left";
  const Tensor big = concat({x, x}, 0) + 1;
  big.span<float>();  // another device has room
  EXPECT_EQ(memory_use(cpu(5)).limit_bytes, limit);
  set_memory_limit(cpu(4), 0);
  reset_peak_memory(cpu(4));
  (there + 1).to_vector<float>();
  EXPECT_GE(memory_use(cpu(4)).peak_bytes, four + 2 * MiB);
}

/// The second device begins when the first has given it something.
TEST(Devices, VariablesAreWrittenInPlaceOnEach) {
  Dense first(512, relu);
  first.build({f32, {8, 512}});
  std::optional<DeviceScope> scope(cpu(4));
  Dense second(512);
  second.build({f32, {8, 512}});
  scope.reset();
  Adam optimizer;
  const Variables variables = first.trainable_variables() + second.trainable_variables();
  auto step = function([&](Tensor x) {
    GradientTape tape;
    const Tensor loss = reduce_sum(square(second(first(x).to(cpu(4)))));
    optimizer.apply_gradients(tape.gradient(loss, variables));
    return loss;
  });
  const Tensor x = numbers({8, 512});
  for (int i = 0; i < 2; ++i) step(x).item();
  synchronize();
  for (const Device device : {cpu(0), cpu(4)}) {
    reset_peak_memory(device);
    const std::size_t before = memory_use(device).live_bytes;
    step(x).item();
    EXPECT_LT(memory_use(device).peak_bytes - before, std::size_t{2} * 512 * 512 * sizeof(float)) << text(device);
  }
}

// ---------------------------------------------------------------- mistakes

TEST(Devices, ThatAreNotThereAreErrors) {
  EXPECT_THROW(cpu(-1), InvalidArgument);
  EXPECT_THROW(cpu(63), InvalidArgument);
  expect_error<Unavailable>([] { return gpu(0); }, {"gpu:0", "there are cpu:0"});
  EXPECT_THROW(cuda(1), Unavailable);
  EXPECT_THROW(tpu(), Unavailable);
  EXPECT_THROW(const DeviceScope scope(Device{DeviceKind::gpu, 0}), Unavailable);
  EXPECT_THROW(numbers({2}).to(Device{DeviceKind::plugin, 0}), Unavailable);
  EXPECT_THROW(numbers({2}).to(Device{DeviceKind::cpu, 99}), InvalidArgument);
  EXPECT_THROW(set_default_device(Device{DeviceKind::tpu, 0}), Unavailable);
  EXPECT_THROW(memory_use(Device{DeviceKind::gpu, 0}), Unavailable);
  EXPECT_THROW(set_memory_limit(Device{DeviceKind::cpu, -1}, 5), InvalidArgument);
  EXPECT_THROW(Tensor().to(cpu(1)), InvalidArgument);
}

// ---------------------------------------------------------------- a device that computes on its own

class FakeDevice : public testing::Test {
 protected:
  FakeDevice() { testing_device::add_fake_devices(); }
  const Device there{DeviceKind::plugin, 0}, elsewhere{DeviceKind::plugin, 1};
};

TEST_F(FakeDevice, ComputesWhatTheProcessorDoes) {
  const Tensor x = numbers({5, 4});
  const auto f = [](const Tensor& v) { return reduce_sum(softmax(matmul(v, transpose(v)))) + reduce_max(v); };
  EXPECT_EQ(devices(DeviceKind::plugin).size(), 2u);
  EXPECT_EQ(x.to(there).device(), there);
  EXPECT_TRUE(same(f(x.to(there)), f(x)));
  EXPECT_TRUE(same(gradient(f, x.to(there)), gradient(f, x)));
  EXPECT_TRUE(same(function(f)(x.to(elsewhere)), f(x)));
  EXPECT_TRUE(same(x.to(there).to(elsewhere).to(cpu(1)), x));
}

/// Its compiler decides by itself, and the processor's numbers would be untrue.
TEST_F(FakeDevice, IsExplainedWithoutNumbersOfTheProcessor) {
  auto f = function([](Tensor x) { return exp(x) + 1; });
  f(numbers({64}).to(there));
  EXPECT_EQ(f.explain().target, "plugin: a compiler of its own decides on kernels and memory");
  auto both = function([&](Tensor x) { return exp(x.to(cpu(0))) + 1; });
  both(numbers({64}).to(there));
  const std::string of_processor = to_text(backend_of(cpu(0)).target().value());
  EXPECT_EQ(both.explain().target, of_processor);
}

TEST_F(FakeDevice, SharesAModelWithTheProcessor) {
  const std::vector<Tensor> one = trained(cpu(0), cpu(0));
  for (const auto& [a, b] : {std::pair{cpu(0), there}, {there, elsewhere}, {there, there}}) {
    const std::vector<Tensor> two = trained(a, b);
    for (std::size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(same(one[i], two[i])) << a << ' ' << b << ' ' << i;
  }
}

TEST_F(FakeDevice, DoesNotWaitForWhatCannotFail) {
  Variable w(numbers({3}).to(there), "w");
  auto step = function([&](Tensor x) {
    w.assign(w.value() + x);
    return x * 2;
  });
  const Tensor x = numbers({3}, 2).to(there), host = x.to(cpu(0));
  Tensor sum = w.value().to(cpu(0));
  for (int i = 0; i < 3; ++i, sum = sum + host) EXPECT_TRUE(same(step(x), host * 2));
  Tensor y;
  {
    const testing_device::Held held(there.index);
    const testing_device::Counts before = testing_device::counts();
    for (int i = 0; i < 5; ++i, sum = sum + host) y = step(x);
    const testing_device::Counts after = testing_device::counts();
    EXPECT_GE(after.runs, before.runs + 5);
    EXPECT_EQ(after.done, before.done) << "five calls have returned, and nothing has run";
  }
  EXPECT_TRUE(same(y, host * 2));
  EXPECT_TRUE(same(w, sum));
}

/// A call returns before its device is done, unless data may make it fail.
TEST_F(FakeDevice, WaitsForWhatMayFailAlone) {
  Variable w(numbers({3}), "w");
  auto step = function([&](Tensor x, Tensor at) {
    const Tensor chosen = gather(x, at);
    w.assign(w.value() + 1);
    return chosen;
  });
  const Tensor before = w.value(), x = numbers({4, 2}).to(there);
  EXPECT_THROW(step(x, constant({1, 9})), OutOfRange);
  EXPECT_TRUE(same(w, before)) << "nothing was committed";
  EXPECT_TRUE(same(step(x, constant({1, 3})), gather(x.to(cpu(0)), constant({1, 3}))));
  EXPECT_TRUE(same(w, before + 1));
}

TEST_F(FakeDevice, BranchesOfCppReadItsValues) {
  auto f = function([](Tensor x) {
    if (reduce_sum(x) > 0) return x * 2;
    return x - 1;
  });
  for (int seed : {1, 2, 3, 4}) {
    const Tensor x = numbers({3}, seed);
    EXPECT_TRUE(same(f(x.to(there)), reduce_sum(x).item() > 0 ? x * 2 : x - 1)) << seed;
  }
}

TEST_F(FakeDevice, AValueIsBroughtBackOnce) {
  const Tensor y = numbers({64}).to(there) * 3;
  y.host();
  const std::int64_t before = testing_device::counts().to_host;
  const Tensor& same_value = y;
  same_value.span<float>();
  EXPECT_EQ(same_value.to_vector<float>().size(), 64u);
  EXPECT_EQ(testing_device::counts().to_host, before);
}

}  // namespace
}  // namespace gradus::devices_test
