/// What the library prints reads the same on a stream of any locale: sizes are no decimal numbers, however a caller
/// groups digits.
#include <gtest/gtest.h>
#include <locale>
#include <sstream>
#include "gradus/gradus.h"
#include "tests/grouped_numbers.h"

namespace gradus::printed_test {
namespace {

void expect_the_same(const auto& value, const std::string& part) {
  std::ostringstream plain, grouped;
  plain.imbue(std::locale::classic());
  grouped.imbue(std::locale(std::locale::classic(), new GroupedNumbers));
  plain << value;
  grouped << value;
  EXPECT_EQ(grouped.str(), plain.str());
  EXPECT_NE(plain.str().find(part), std::string::npos) << plain.str();
}

TEST(Printed, OnStreamsOfAnyLocale) {
  const Tensor x = constant({12345.5, 0.25});
  expect_the_same(Shape{12345, 2}, "(12345, 2)");
  expect_the_same(Spec{f32, {12345, 2}}, "f32[12345,2]");
  expect_the_same(Device{DeviceKind::cpu, 12345}, "cpu:12345");
  expect_the_same(x, "12345.5");
  expect_the_same(constant(12345), "12345");

  Sequential model{Dense(2000, relu), Dense(3)};
  const Tensor batch = random::normal({8, 4}), labels = zeros({8}, i32);
  const SparseCategoricalCrossentropy loss_of(from_logits);
  auto step = function([&](Tensor a, Tensor b) {
    GradientTape tape;
    Loss loss = loss_of(b, model(a, training)) * 12345.5;
    return std::pair{loss, tape.gradient(loss, model.trainable_variables())};
  });
  const auto [loss, gradients] = step(batch, labels);
  expect_the_same(gradients, "dense/kernel");
  expect_the_same(step.explain(), "function ");
  expect_the_same(sparsity_report(model), "2000");
  expect_the_same(model.summary(), "2000");

  const auto dataset = data::from_tensor_slices(range(12345, i64)).batch(1);
  for ([[maybe_unused]] const auto& each : dataset) {}
  expect_the_same(dataset.explain(), "12345");
  expect_the_same(precision_report(model, loss_of, data::from_tensor_slices(batch, labels).batch(8)), "loss scale");
  ResultTable table{.columns = {"n", "x"}};
  table.rows.push_back({std::int64_t{12345}, 12345.5});
  expect_the_same(table, "12345");
}

/// Names of layers, metrics, functions and scopes are the user's: a terminal must not obey them.
TEST(Printed, ControlCharactersOfNamesAreShown) {
  const std::string odd = "na\x1b[31m\nme\r";
  Sequential model{Dense(3, linear, {.name = odd})};
  const Tensor batch = random::normal({8, 4}), labels = zeros({8}, i32);
  const SparseCategoricalCrossentropy loss_of(from_logits);
  const auto data = data::from_tensor_slices(batch, labels).batch(8);
  auto step = function(
      [&](Tensor a, Tensor b) {
        GradientTape tape;
        Loss loss = loss_of(b, model(a, training));
        return std::pair{loss, tape.gradient(loss, model.trainable_variables())};
      },
      {.name = odd});
  testing::internal::CaptureStderr();
  SGD optimizer;
  fit(model, optimizer, loss_of, data, {.metrics = {Metric(odd, [](Tensor y, Tensor) { return cast(y, f32); })}});
  const auto [loss, gradients] = step(batch, labels);
  const ProfileReport profiled = profile([&] {
    const ProfileScope scope(odd);
    step(batch, labels);
  });
  const std::string fitted = testing::internal::GetCapturedStderr();
  ResultTable table{.columns = {"n", odd}};
  table.rows.push_back({std::int64_t{1}, odd});
  const std::vector<std::pair<std::string, std::string>> all{
      {"fit", fitted},
      {"gradients", text(gradients)},
      {"explain", text(step.explain())},
      {"summary", text(model.summary())},
      {"sparsity", text(sparsity_report(model))},
      {"precision", text(precision_report(model, loss_of, data))},
      {"profile", text(profiled)},
      {"table", text(table)},
      {"variable", text(model.variables()[0])}};
  for (const auto& [what, written] : all) {
    EXPECT_EQ(written.find('\x1b'), std::string::npos) << what;
    EXPECT_EQ(written.find('\r'), std::string::npos) << what;
    EXPECT_EQ(written.find("31m\n"), std::string::npos) << what;
  }
  EXPECT_NE(text(model.summary()).find("na\\x1b[31m\\x0ame\\x0d"), std::string::npos) << model.summary();
}

/// The same words where the streams of a program group digits, too.
TEST(Printed, WithAnyGlobalLocale) {
  const std::string plain = text(Spec{f32, {12345}}, ' ', 12345, ' ', 0.5);
  const auto before = std::locale::global(std::locale(std::locale::classic(), new GroupedNumbers));
  EXPECT_EQ(text(Spec{f32, {12345}}, ' ', 12345, ' ', 0.5), plain);
  const auto doubled = function([](Tensor x) { return x * 12345.5 + reduce_sum(ones({54321}, f32)); });
  EXPECT_EQ(doubled(constant(2.0)).item(), 2 * 12345.5F + 54321);
  EXPECT_EQ(doubled.explain().graph().find("12.345"), std::string::npos);
  const std::string written = doubled.explain().graph();
  std::locale::global(before);
  EXPECT_EQ(doubled.explain().graph(), written);
}

}  // namespace
}  // namespace gradus::printed_test
