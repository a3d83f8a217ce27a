/// Stages whose number of elements, or whose sizes, are found out by reading.
#include <gtest/gtest.h>
#include <atomic>
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "tests/data/readings.h"

namespace gradus::choosing_test {
namespace {

Tensor is_even(Tensor n) { return equal(mod(n, 2), 0); }
Tensor ones_of(std::int32_t value, std::int64_t n) { return full({n}, value, i32); }

/// 0, 1 1, 2 2 2 ... n - 1
Dataset<1> triangle(std::int32_t n) {
  return data::from_generator({i32, {any_size}}, [n, i = 0]() mutable -> std::optional<Tensor> {
    if (i == n) return std::nullopt;
    ++i;
    return ones_of(i - 1, i);
  });
}

TEST(Filter, KeepsWhatThePredicateTells) {
  const auto even = data::range(10).filter(is_even);
  EXPECT_EQ(values(even), (Numbers{0, 2, 4, 6, 8}));
  EXPECT_EQ(even.cardinality(), std::nullopt);
  EXPECT_EQ(values(even.batch(2)), (Numbers{0, 2, 4, 6, 8}));
  EXPECT_EQ(read_all(even.batch(2, {.drop_remainder = true})).size(), 2u);
  EXPECT_EQ(values(even.take(3)), (Numbers{0, 2, 4}));
  EXPECT_EQ(values(even.skip(3)), (Numbers{6, 8}));
  EXPECT_EQ(values(even.skip(9)), Numbers());
  EXPECT_EQ(values(even.repeat(2)), (Numbers{0, 2, 4, 6, 8, 0, 2, 4, 6, 8}));
  EXPECT_EQ(values(even.repeat().take(7)), (Numbers{0, 2, 4, 6, 8, 0, 2}));
  EXPECT_EQ(values(even.from({.epoch = 0, .index = 3}).repeat(2)), (Numbers{6, 8, 0, 2, 4, 6, 8}));
  EXPECT_EQ(values(even.from({.epoch = 0, .index = 5}).repeat(2)), (Numbers{0, 2, 4, 6, 8})) << "started at its end";
  EXPECT_EQ(values(even.shard(2, 1)), (Numbers{2, 6}));
  EXPECT_EQ(values(even.map([](Tensor n) { return n + 1; })), (Numbers{1, 3, 5, 7, 9}));
  EXPECT_EQ(values(data::range(10).filter([](Tensor n) { return n > 20; })), Numbers());
  EXPECT_EQ(values(data::range(10).filter([](Tensor n) { return n > 20; }).repeat()), Numbers());
  EXPECT_THROW(data::range(0).filter(is_even).first(), OutOfRange);
}

TEST(Filter, IsReadTheSameInTheBackgroundAndGoesOn) {
  const auto make = [] {
    return data::range(100).shuffle({.seed = 3}).filter(is_even).shuffle(7, {.seed = 4}).batch(8);
  };
  const auto plain = make();
  const Elements first = read_all(plain), second = read_all(plain);
  ASSERT_EQ(first.size(), 7u);
  for (const int buffers : {autotune, 1, 3}) {
    const auto ahead = make().prefetch(buffers);
    EXPECT_EQ(read_all(ahead), first);
    EXPECT_EQ(read_all(ahead), second);
  }
  for (std::int64_t n = 0; n <= 8; ++n) {
    const auto rest = make().from({.epoch = 1, .index = n});
    EXPECT_EQ(Dataset<1>(rest).begin().position(), (Position{1, n})) << "a copy counts its own passes";
    EXPECT_EQ(read_all(rest), tail(second, static_cast<std::size_t>(n)));
  }
}

TEST(Filter, ABufferOfElementsDrawsAsOneOfIndices) {
  const auto all = [](Tensor n) { return n >= 0; };
  const auto numbers = data::range(200);
  EXPECT_EQ(values(numbers.filter(all).shuffle(9, {.seed = 5})), values(numbers.shuffle(9, {.seed = 5})));
}

TEST(Filter, Mistakes) {
  const auto even = data::range(10).filter(is_even);
  EXPECT_EQ(
      message_of<InvalidArgument>([&] { even.shuffle(); }),
      "shuffle: how many elements this dataset has is not known without reading them; shuffle before filter() and "
      "the like, or give a buffer size");
  EXPECT_EQ(message_of<InvalidArgument>([&] { data::range(3).batch(2).filter([](Tensor n) { return equal(n, 1); }); }),
            "filter: the predicate gives bool[?], expected one boolean of an element, bool[]; compare, or reduce_all "
            "it");
}

TEST(Filter, WithoutAnotherElementMayBeLeft) {
  const auto none = data::range(10).repeat().filter([](Tensor n) { return n < 0; }).prefetch();
  for (int i = 0; i < 3; ++i) {
    const auto some = data::range(10).repeat().filter([](Tensor n) { return equal(n, 3); }).prefetch();
    auto next = some.begin();
    EXPECT_EQ((*next).item(), 3);
  }
  // The thread looks for a second element that does not come; leaving ends it.
  const auto once = data::zip(data::range(1000000000), data::range(1000000000))
                        .filter([](Tensor n, Tensor) { return equal(n, 5); })
                        .prefetch(2);
  EXPECT_EQ(once.first()[0].item(), 5);
  auto next = once.begin();
  EXPECT_EQ((*next)[0].item(), 5);
}

TEST(Unbatch, IsTheWayBack) {
  const auto rows = data::from_tensor_slices(numbered_rows(10, 3));
  for (const std::int64_t size : {1, 3, 5, 10, 12}) {
    const auto again = rows.batch(size).unbatch();
    EXPECT_EQ(again.cardinality(), 10);
    EXPECT_EQ(again.element_spec()[0], (Spec{i32, {3}}));
    EXPECT_EQ(read_all(again), read_all(rows));
    EXPECT_EQ(read_all(again.batch(4)), read_all(rows.batch(4)));
    EXPECT_EQ(read_all(again.shuffle({.seed = 1}).batch(4)), read_all(rows.shuffle({.seed = 1}).batch(4)));
  }
  EXPECT_EQ(read_all(rows.unbatch()).size(), 30u);
  EXPECT_EQ(rows.unbatch().cardinality(), 30);
  EXPECT_EQ(values(triangle(4).unbatch()), (Numbers{0, 1, 1, 2, 2, 2, 3, 3, 3, 3}));
  EXPECT_EQ(values(triangle(4).unbatch().skip(3)), (Numbers{2, 2, 2, 3, 3, 3, 3}));
  EXPECT_EQ(values(rows.batch(4).map([](Tensor x) { return x.rows(0, 1); }).unbatch()),
            (Numbers{0, 1000000, 2000000, 4, 1000004, 2000004, 8, 1000008, 2000008}));
  EXPECT_EQ(message_of<InvalidArgument>([] { data::range(3).unbatch(); }),
            "unbatch: a field is a scalar i32[]: it has no rows along axis 0");
}

TEST(Zip, SetsFieldsSideBySide) {
  const auto zipped = data::zip(data::range(5), data::range(9).skip(2), data::range(6).batch(2));
  EXPECT_EQ(zipped.cardinality(), 3);
  std::int32_t i = 0;
  for (auto [a, b, c] : zipped) {
    EXPECT_EQ(a.item(), i);
    EXPECT_EQ(b.item(), i + 2);
    EXPECT_EQ(c.to_vector<std::int32_t>(), (Numbers{2 * i, 2 * i + 1}));
    ++i;
  }
  const auto pairs = data::zip(data::range(20).shuffle({.seed = 1}), data::range(20).shuffle({.seed = 1}));
  for (auto [a, b] : pairs.batch(6)) EXPECT_TRUE(bitwise_equal(a, b));
  EXPECT_EQ(data::zip(data::range(5), data::range(5).filter(is_even)).cardinality(), std::nullopt);
  Numbers seen;
  for (auto [a, b] : data::zip(data::range(5).repeat(), data::range(9).filter(is_even)).prefetch())
    seen.push_back(static_cast<std::int32_t>(a.item() * 100 + b.item()));
  EXPECT_EQ(seen, (Numbers{0, 102, 204, 306, 408}));
  EXPECT_EQ(data::zip(data::range(5).repeat(), data::range(9)).cardinality(), 9);
}

TEST(Shard, HoldsEachElementInOnePlace) {
  const auto numbers = data::range(11);
  Numbers all;
  for (const int index : {0, 1, 2}) {
    const auto shard = numbers.shard(3, index);
    const Numbers part = values(shard.batch(2));
    EXPECT_EQ(static_cast<std::int64_t>(part.size()), shard.cardinality());
    all.insert(all.end(), part.begin(), part.end());
  }
  EXPECT_EQ(all, (Numbers{0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8}));
  EXPECT_EQ(data::range(2).shard(5, 4).cardinality(), 0);
  EXPECT_EQ(message_of<InvalidArgument>([&] { numbers.shard(3, 3); }), "shard: index must be within 0 and 2, got 3");
  EXPECT_EQ(message_of<InvalidArgument>([&] { numbers.shard(0, 0); }),
            "shard: expected a positive number of shards, got 0");
}

TEST(Interleave, ReadsByTurnsInTensorFlowsOrder) {
  // tf.data.Dataset.range(1, 6).interleave(lambda x: Dataset.from_tensors(x).repeat(6), cycle_length=2, block_length=4)
  const auto from_documentation = data::range(6).skip(1).interleave(
      [](Tensor x) { return data::range(6).map([x](Tensor) { return x; }); }, {.cycle_length = 2, .block_length = 4});
  EXPECT_EQ(values(from_documentation),
            (Numbers{1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 3, 3, 4, 4, 5, 5, 5, 5, 5, 5}));
  EXPECT_EQ(values(from_documentation.prefetch()), values(from_documentation.epoch(0)));
  EXPECT_EQ(values(from_documentation.skip(9).take(3)), (Numbers{1, 2, 2}));
  EXPECT_EQ(values(data::range(4).flat_map([](Tensor n) { return data::range(static_cast<std::int64_t>(n.item())); })),
            (Numbers{0, 0, 1, 0, 1, 2}));
  EXPECT_THROW(data::range(0).flat_map([](Tensor) { return data::range(2); }), InvalidArgument);
}

TEST(PaddedBatch, FillsUpToTheLargest) {
  const auto batches = triangle(5).padded_batch(2);
  EXPECT_EQ(batches.element_spec()[0], (Spec{i32, {any_size, any_size}}));
  EXPECT_EQ(read_all(batches),
            (Elements{{2, 2, 2, 0, 0, 1, 1}, {2, 2, 4, 2, 2, 2, 0, 3, 3, 3, 3}, {2, 1, 5, 4, 4, 4, 4, 4}}));
  const auto wide = triangle(3).padded_batch(3, {.padded_shapes = {{4}}, .padding_values = {-1}});
  EXPECT_EQ(wide.element_spec()[0], (Spec{i32, {any_size, 4}}));
  EXPECT_EQ(read_all(wide), (Elements{{2, 3, 4, 0, -1, -1, -1, 1, 1, -1, -1, 2, 2, 2, -1}}));
  EXPECT_EQ(read_all(triangle(5).padded_batch(2, {.drop_remainder = true})).size(), 2u);
  EXPECT_EQ(message_of<InvalidArgument>([] { triangle(3).padded_batch(3, {.padded_shapes = {{2}}}).first(); }),
            "padded_batch: field 0 of element 2 is i32[3], more than the [2] that it is padded to");
  EXPECT_EQ(message_of<OutOfRange>([] { triangle(3).padded_batch(3, {.padding_values = {0.5}}); }),
            "padded_batch: the padding value 0.5 is no i32, of which field 0 is made");
  const auto counted = data::from_tensor_slices(numbered_rows(5, 2)).padded_batch(2, {.padded_shapes = {{3}}});
  EXPECT_EQ(counted.cardinality(), 3);
  EXPECT_EQ(read_all(counted.skip(2)), (Elements{{2, 1, 3, 4, 1000004, 0}}));
}

TEST(PaddedBatch, OfSeveralDimensions) {
  const auto pictures = data::from_generator({i32, {any_size, any_size}}, [i = 0]() mutable -> std::optional<Tensor> {
    if (++i == 3) return std::nullopt;
    return full({i, 3 - i}, i, i32);
  });
  EXPECT_EQ(read_all(pictures.padded_batch(2)), (Elements{{3, 2, 2, 2, 1, 1, 0, 0, 2, 0, 2, 0}}));
}

TEST(Buckets, HoldElementsOfSimilarLength) {
  const auto lengths = [](Tensor x) { return reduce_sum(ones_like(x)); };
  const auto batches =
      triangle(7).bucket_by_sequence_length(lengths, {.bucket_boundaries = {3, 5}, .bucket_batch_sizes = {2, 2, 2}});
  EXPECT_EQ(read_all(batches), (Elements{{2, 2, 2, 0, 0, 1, 1},
                                         {2, 2, 4, 2, 2, 2, 0, 3, 3, 3, 3},
                                         {2, 2, 6, 4, 4, 4, 4, 4, 0, 5, 5, 5, 5, 5, 5},
                                         {2, 1, 7, 6, 6, 6, 6, 6, 6, 6}}));
  EXPECT_EQ(read_all(batches.prefetch()), read_all(batches.epoch(0)));
  EXPECT_THROW(triangle(3).bucket_by_sequence_length(lengths, {{3, 2}, {1, 1, 1}}), InvalidArgument);
  EXPECT_THROW(triangle(3).bucket_by_sequence_length(lengths, {{3}, {1}}), InvalidArgument);
}

TEST(Generator, IsCopiedByEachPass) {
  const auto dataset = triangle(3);
  EXPECT_EQ(values(dataset), (Numbers{0, 1, 1, 2, 2, 2}));
  EXPECT_EQ(values(dataset), (Numbers{0, 1, 1, 2, 2, 2}));
  EXPECT_EQ(dataset.cardinality(), std::nullopt);
  const auto pairs = data::from_generator(std::array{Spec{i32, {}}, Spec{f32, {2}}}, [i = 0]() mutable {
    return i++ < 3 ? std::optional(std::pair{full({}, i, i32), full({2}, i)}) : std::nullopt;
  });
  double sum = 0;
  for (auto [n, x] : pairs.batch(2)) sum += reduce_sum(n).item() + reduce_sum(x).item();
  EXPECT_EQ(sum, 18);
}

TEST(Generator, FailuresAreToldOnceWithTheElement) {
  const auto wrong = data::from_generator({i32, {2}}, [i = 0]() mutable -> std::optional<Tensor> {
    ++i;
    return ones_of(i, i < 3 ? 2 : 1);
  });
  for (const auto& dataset : {wrong, wrong.prefetch()}) {
    auto next = dataset.begin();
    *next;
    ++next;
    *next;
    ++next;
    EXPECT_EQ(message_of<InvalidArgument>([&] { *next; }),
              "from_generator, element 2: field 0 is i32[1], expected i32[2]");
    EXPECT_TRUE(next == dataset.end());
  }
  const auto throwing =
      data::from_generator({i32, {}}, []() -> std::optional<Tensor> { throw std::bad_function_call(); });
  for (const auto& dataset : {throwing, throwing.prefetch()})
    EXPECT_THROW(for (auto x : dataset) x.item(), std::bad_function_call);
}

/// A class that neither the library nor C++ knows.
struct OfTheUser {
  int number;
};

TEST(Pipelines, ExceptionsOfTheUserComeOutAsThemselves) {
  const auto from_generator = data::from_generator({i32, {}}, [n = 0]() mutable -> std::optional<Tensor> {
    if (n == 2) throw OfTheUser{2};
    return constant(n++);
  });
  const auto numbers_of = [](const auto& make) {
    try {
      make();
    } catch (const OfTheUser& thrown) { return thrown.number; }
    return 0;
  };
  const auto read = [](const auto& dataset) {
    for (auto x : dataset) x.item();
  };
  const auto thrown_in_a_trace = [](const Tensor& x) -> Tensor {
    if (x.defined()) throw OfTheUser{1};
    return x;
  };
  EXPECT_EQ(numbers_of([&] { read(data::range(6).map(thrown_in_a_trace)); }), 1);
  EXPECT_EQ(numbers_of([&] { read(from_generator); }), 2);
  EXPECT_EQ(numbers_of([&] { read(from_generator.prefetch()); }), 2);
  EXPECT_EQ(numbers_of([&] { read(from_generator.map([](const Tensor& x) { return x * 2; }).prefetch()); }), 2);
  EXPECT_EQ(numbers_of([&] { read(from_generator.batch(3)); }), 2);
}

TEST(Cache, OfAGeneratorMakesEachElementOnce) {
  std::atomic<int> calls = 0;
  const auto cached = data::from_generator({i32, {}}, [&, n = 0]() mutable -> std::optional<Tensor> {
                        if (n == 10) return std::nullopt;
                        ++calls;
                        return full({}, n++, i32);
                      }).cache();
  {
    const auto ahead = cached.prefetch();
    auto next = ahead.begin();
    EXPECT_EQ((*next).item(), 0);
  }
  for (int epoch = 0; epoch < 3; ++epoch) EXPECT_EQ(values(cached.prefetch()), counted(10));
  EXPECT_EQ(calls, 10);
}

}  // namespace
}  // namespace gradus::choosing_test
