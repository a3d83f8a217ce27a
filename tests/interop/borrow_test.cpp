/// Tensors on memory of others: read where it is, never written, kept as long as it is needed and released once; memory
/// that cannot be read in place is refused with the reason, or copied if that is asked for.
#include "gradus/interop/borrow.h"
#include <gtest/gtest.h>
#include <thread>
#include "gradus/function/function.h"
#include "gradus/function/variable.h"
#include "gradus/gradients/tape.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/softmax.h"
#include "gradus/optim/optimizers.h"
#include "tests/errors.h"
#include "tests/interop/foreign_memory.h"

namespace gradus::borrow_test {
namespace {

constexpr std::size_t enough = 4096;  // numbers of which the first ones do not reach the end of a page

/// The meaning of strides, element by element.
std::vector<float> elements_by_hand(const float* first, const Shape& shape, const std::vector<std::int64_t>& strides) {
  std::vector<float> all;
  for (std::int64_t i = 0; i < shape.size(); ++i) {
    std::int64_t rest = i, place = 0;
    for (int axis = shape.rank(); axis-- > 0; rest /= shape[axis])
      place += rest % shape[axis] * strides[static_cast<std::size_t>(axis)];
    all.push_back(first[place]);
  }
  return all;
}

TEST(Borrow, ReadsInPlace) {
  const std::vector<float> values(enough, 2);
  const std::span<const float> part(values.data() + 1, 12);  // beside every boundary but that of an element
  const Tensor x = borrow(part, {3, 4});
  EXPECT_EQ(x.span<float>().data(), part.data());
  EXPECT_EQ(x.spec(), (Spec{f32, {3, 4}}));
  EXPECT_EQ(reduce_sum(x).item(), 24);
  EXPECT_EQ(borrow(values.data(), {}).item(), 2);
  std::vector<double> own{1, 2, 3};
  const double* const address = own.data();
  const Tensor moved = borrow(std::move(own), {3});
  EXPECT_EQ(moved.dtype(), f64);
  EXPECT_EQ(reduce_sum(moved).item(), 6);
  if (moved.span<double>().data() != address) SUCCEED() << "at the end of a page it is copied";
  EXPECT_EQ(borrow(std::span<const float>(), {0, 3}).shape(), (Shape{0, 3}));
}

struct StridedCase {
  Shape shape;
  std::vector<std::int64_t> strides;
  std::int64_t offset;
  const char* refused;  // null: read in place
};

TEST(Borrow, Strides) {
  std::vector<float> values(enough);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const StridedCase cases[] = {
      {{3, 4}, {4, 1}, 0, nullptr},
      {{3, 4}, {1, 3}, 5, nullptr},          // by columns
      {{2, 3, 4}, {4, 8, 1}, 0, nullptr},    // axes in another order
      {{2, 3, 4}, {1, 8, 2}, 0, nullptr},    // and another one
      {{3, 4}, {-4, 1}, 8, nullptr},         // rows from the last
      {{3, 4}, {1, -3}, 9, nullptr},         // columns from the last
      {{6}, {-1}, 5, nullptr},               // backwards
      {{3, 4}, {0, 1}, 2, nullptr},          // one row, repeated
      {{2, 3, 4}, {3, 1, 0}, 2, nullptr},    // one column, repeated
      {{5, 5}, {0, 0}, 7, nullptr},          // one number
      {{1, 4, 1}, {77, 1, -9}, 0, nullptr},  // strides of axes of one element do not matter
      {{3, 4}, {5, 1}, 0, "gaps"},
      {{3, 4}, {8, 2}, 0, "gaps"},
      {{3, 4}, {2, 1}, 0, "overlap"},  // windows
      {{3, 4}, {-9, 2}, 30, "gaps"},
  };
  for (const auto& [shape, strides, offset, refused] : cases) {
    const auto text_of_case = text(shape, ' ', strides[0]);
    const std::vector<float> expected = elements_by_hand(values.data() + offset, shape, strides);
    const std::span<const float> span(values);
    if (refused) {
      expect_error<InvalidArgument>([&] { borrow(span, shape, {.strides = strides, .offset = offset}); },
                                    {refused, "copy_if_needed"});
    } else {
      const Tensor x = borrow(span, shape, {.strides = strides, .offset = offset});
      EXPECT_EQ(x.to_vector<float>(), expected) << text_of_case;
      EXPECT_EQ((2 * x + 1).to_vector<float>(), (2 * from_values(expected, shape) + 1).to_vector<float>())
          << text_of_case;
      const auto doubled = function([](Tensor y) { return 2 * y; });
      EXPECT_EQ(doubled(x).to_vector<float>(), (2 * from_values(expected, shape)).to_vector<float>()) << text_of_case;
    }
    const Tensor copied = borrow(span, shape, {.strides = strides, .offset = offset, .copy_if_needed = true});
    EXPECT_EQ(copied.to_vector<float>(), expected) << text_of_case;
  }
}

TEST(Borrow, KernelsDoNotReachThePageBehind) {
  for (const std::size_t before_end : {64u, 68u, 256u})
    for (const std::size_t rows : {1u, 3u, 33u}) {
      const std::size_t columns = 37;
      const GuardedMemory memory(rows * columns, before_end);
      const auto shape = [&](std::size_t n) { return static_cast<std::int64_t>(n); };
      const Tensor x = borrow(memory.values(), {shape(rows), shape(columns)});
      EXPECT_EQ(x.span<float>().data(), memory.values().data());
      const Tensor expected = from_values(memory.values(), {shape(rows), shape(columns)});
      const auto all = [](const Tensor& y) {
        return std::vector<Tensor>{sqrt(y),           reduce_sum(y, {.axis = {1}}), reduce_max(y),   transpose(y) + 1,
                                   softmax(y * 1e-3), matmul(y, transpose(y)),      cast(y, f64) * 2};
      };
      const std::vector<Tensor> given = all(x), wanted = all(expected);
      for (std::size_t i = 0; i < given.size(); ++i) EXPECT_TRUE(bitwise_equal(given[i], wanted[i])) << i;
      const auto traced = function([&](Tensor y) { return softmax(y * 1e-3) + reduce_sum(y, {.axis = {0}}); });
      EXPECT_TRUE(bitwise_equal(traced(x), traced(expected)));
    }
  for (const std::size_t before_end : {0u, 4u, 60u}) {
    const GuardedMemory memory(37, before_end);
    expect_error<InvalidArgument>([&] { borrow(memory.values(), {37}); },
                                  {"before the end of a page", ".padded", "copy_if_needed"});
    const Tensor x = borrow(memory.values(), {37}, {.copy_if_needed = true});
    EXPECT_EQ(reduce_sum(sqrt(x)).item(), reduce_sum(sqrt(from_values(memory.values(), {37}))).item());
  }
}

TEST(Borrow, IsNeverWritten) {
  const GuardedMemory memory(600, 64);  // a write is the end of this process
  const auto borrowed = [&] { return borrow(memory.values(), {20, 30}); };
  Variable v(borrowed(), "v");
  for (int i = 0; i < 3; ++i) v.assign_add(ones({20, 30}));
  EXPECT_EQ(v.value().to_vector<float>()[599], 602);
  Variable trained(borrowed(), "trained");
  SGD optimizer({.learning_rate = 0.1, .momentum = 0.9});
  auto step = function([&] {
    GradientTape tape;
    const Tensor loss = reduce_sum(square(trained.value()));
    optimizer.apply_gradients(tape.gradient(loss, Variables{trained}));
    return loss;
  });
  for (int i = 0; i < 3; ++i) step();
  auto counter = function([&] { trained.assign(trained.value() + 1); });
  Variable fresh(borrowed(), "fresh");
  auto update = function([&] { fresh.assign(2 * fresh.value()); });
  for (int i = 0; i < 2; ++i) update();
  EXPECT_EQ(fresh.value().to_vector<float>()[599], 4 * 599);
  for (int i = 0; i < 3; ++i) EXPECT_EQ((borrowed() * 2 + 1).to_vector<float>()[599], 1199);  // dies as it is read
  const auto looped =
      while_loop([](Tensor i, Tensor) { return i < 3; }, [](Tensor i, Tensor x) { return std::tuple{i + 1, x + 1}; },
                 std::tuple{constant(0), borrowed()});
  EXPECT_EQ(std::get<1>(looped).to_vector<float>()[599], 602);
  for (std::size_t i = 0; i < 600; ++i) ASSERT_EQ(memory.values()[i], static_cast<float>(i));
}

TEST(Borrow, TheOwnerIsReleasedOnceWhenNothingNeedsTheMemory) {
  WatchedMemory memory(enough);
  const auto borrowed = [&](std::vector<std::int64_t> strides = {}) {
    return borrow(memory.values.data(), {20, 30}, {.owner = memory.owner(), .strides = std::move(strides)});
  };
  { const Tensor x = borrowed(), same = x; }
  EXPECT_EQ(memory.released, 1);

  const auto fill = [&] {
    for (std::size_t i = 0; i < enough; ++i) memory.values[i] = static_cast<float>(i);
    memory.released = 0;
  };
  fill();
  Tensor lazy = borrowed({1, 20}) + 1;  // waits, with a view before it
  EXPECT_EQ(memory.released, 0);
  EXPECT_EQ(lazy.to_vector<float>()[0], 1);
  EXPECT_EQ(lazy.to_vector<float>()[599], 600);
  lazy = {};
  EXPECT_EQ(memory.released, 1);

  fill();
  {
    Variable v(borrowed(), "v");
    EXPECT_EQ(reduce_max(v).item(), 599);
    EXPECT_EQ(memory.released, 0);
    v.assign(zeros({20, 30}));
    EXPECT_EQ(reduce_max(v).item(), 0);
  }
  EXPECT_EQ(memory.released, 1);

  fill();
  std::thread([x = borrowed()]() mutable {
    const double largest = reduce_max(x).item();
    EXPECT_EQ(largest, 599);
    x = {};
  }).join();
  EXPECT_EQ(memory.released, 1);

  fill();
  const Tensor copied =
      borrow(memory.values.data(), {20, 30}, {.owner = memory.owner(), .strides = {31, 1}, .copy_if_needed = true});
  EXPECT_EQ(memory.released, 1);
  EXPECT_EQ(copied.to_vector<float>()[599], 19 * 31 + 29);

  fill();
  EXPECT_THROW(borrow(memory.values.data(), {20, 30}, {.owner = memory.owner(), .strides = {31, 1}}), InvalidArgument);
  EXPECT_EQ(memory.released, 1);

  fill();
  {
    const auto f = function([x = borrowed()](Tensor y) { return x + y; });  // captured by a program
    EXPECT_EQ(f(ones({20, 30})).to_vector<float>()[599], 600);
    EXPECT_EQ(memory.released, 0);
  }
  EXPECT_EQ(memory.released, 1);
}

TEST(Borrow, HasGradients) {
  const std::vector<float> values(enough, 3);
  const Tensor x = borrow(values.data(), {2, 3}, {.strides = {1, 2}});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = reduce_sum(x * x * x);
  EXPECT_EQ(tape.gradient(y, x).to_vector<float>(), std::vector<float>(6, 27));
}

TEST(Borrow, Mistakes) {
  std::vector<float> values(enough);
  const std::span<const float> six(values.data(), 6);
  const auto refuses = [](auto f, std::initializer_list<const char*> parts) {
    expect_error<InvalidArgument>(f, parts);
  };
  refuses([&] { borrow(six, {2, 4}); }, {"8 elements", "the span 6"});
  refuses([&] { borrow(six, {2, 3}, {.strides = {3}}); }, {"2 axes", "1 strides"});
  refuses([&] { borrow(six, {2, 3}, {.strides = {4, 1}, .copy_if_needed = true}); }, {"0 to 6", "span of 6"});
  refuses([&] { borrow(six, {6}, {.strides = {-1}}); }, {"-5 to 0"});
  refuses([&] { borrow(six, {6}, {.offset = -1}); }, {"offset"});
  refuses([&] { borrow(static_cast<const float*>(nullptr), {2}); }, {"null"});
  refuses([&] { borrow(six, {any_size}); }, {"not known"});
  refuses([&] { borrow(six, {2, 3}, {.strides = {std::int64_t{1} << 62, 1}}); }, {"beyond all memory"});
  const auto* const beside = reinterpret_cast<const float*>(reinterpret_cast<const std::byte*>(values.data()) + 1);
  refuses([&] { borrow(beside, {4}); }, {"1 bytes beside a multiple of 4", "copy_if_needed"});
  EXPECT_EQ(borrow(beside, {4}, {.copy_if_needed = true}).to_vector<float>(), std::vector<float>(4));
}

}  // namespace
}  // namespace gradus::borrow_test
