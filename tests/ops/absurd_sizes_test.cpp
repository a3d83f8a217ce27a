/// Sizes that nobody means, of every op that makes elements: an Error of the library, never another exception, a crash
/// or a hang; what is not refused at once must be refused where it is looked at.
#include <gtest/gtest.h>
#include <functional>
#include <limits>
#include "gradus/base/rooms.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/image.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/layout.h"
#include "gradus/ops/diagonals.h"
#include "gradus/ops/numeric.h"
#include "gradus/ops/pool.h"
#include "gradus/ops/random.h"
#include "gradus/ops/resize.h"
#include "gradus/ops/select.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/signal.h"
#include "gradus/ops/spectral.h"
#include "gradus/tensor/memory.h"

namespace gradus::absurd_sizes_test {
namespace {

struct Maker {
  const char* name;
  std::function<Tensor(std::int64_t)> make;
};

const std::vector<Maker>& makers() {
  static const Tensor x = constant({1.0, 2.0}), labels = constant({0, 1}), image = ones({4, 4, 1});
  static const Tensor images = ones({1, 4, 4, 1});
  static const std::vector<Maker> all{
      {"zeros", [](auto n) { return zeros({n}); }},
      {"zeros, twice", [](auto n) { return zeros({n, n}); }},
      {"ones", [](auto n) { return ones({n}, f64); }},
      {"full", [](auto n) { return full({2, n}, 7, u8); }},
      {"range", [](auto n) { return range(n); }},
      {"range, i64", [](auto n) { return range(n, i64); }},
      {"range of three", [](auto n) { return range(0, n, 1, i64); }},
      {"range of floats", [](auto n) { return range(0.0, static_cast<double>(n), 1.0); }},
      {"range of small steps", [](auto n) { return range(0.0, 1.0, 1.0 / static_cast<double>(n)); }},
      {"linspace", [](auto n) { return linspace(0, 1, n); }},
      {"logspace", [](auto n) { return logspace(0, 1, n); }},
      {"geomspace", [](auto n) { return geomspace(1, 2, n); }},
      {"eye", [](auto n) { return eye(n); }},
      {"eye, two", [](auto n) { return eye(2, n); }},
      {"eye, k", [](auto n) { return eye(2, 2, f32, n); }},
      {"iota", [](auto n) { return iota({n}); }},
      {"one_hot", [](auto n) { return one_hot(labels, n); }},
      {"one_hot, values", [](auto n) { return one_hot(labels, n, constant(1.0), constant(0.0)); }},
      {"tile", [](auto n) { return tile(x, {n}); }},
      {"repeat", [](auto n) { return repeat(x, n); }},
      {"repeat, axis", [](auto n) { return repeat(x, n, 0); }},
      {"pad", [](auto n) { return pad(x, {{n, 0}}); }},
      {"pad, both", [](auto n) { return pad(x, {{n, n}}); }},
      {"pad, reflect", [](auto n) { return pad(x, Paddings{{n, 0}}, PadMode::reflect); }},
      {"pad, tensor", [](auto n) { return pad(x, Paddings{{0, n}}, constant(0.0)); }},
      {"broadcast_to", [](auto n) { return broadcast_to(x, {n, 2}); }},
      {"reshape", [](auto n) { return reshape(x, {n}); }},
      {"random::normal", [](auto n) { return random::normal({n}); }},
      {"random::truncated_normal", [](auto n) { return random::truncated_normal({n}); }},
      {"random::uniform", [](auto n) { return random::uniform({n}, {.dtype = f64}); }},
      {"random::integers", [](auto n) { return random::integers({n}); }},
      {"diag, k", [](auto n) { return diag(x, n); }},
      {"vander", [](auto n) { return vander(x, n); }},
      {"sequence_mask", [](auto n) { return sequence_mask(labels, n); }},
      {"bincount", [](auto n) { return bincount(labels, n); }},
      {"bincount, number", [](auto n) { return bincount(full({1}, n, i64)); }},
      {"histogram", [](auto n) { return histogram_fixed_width(x, 0, 1, n); }},
      {"hann_window", [](auto n) { return hann_window(n); }},
      {"kaiser_window", [](auto n) { return kaiser_window(n); }},
      {"kaiser_bessel_derived_window", [](auto n) { return kaiser_bessel_derived_window(n); }},
      {"vorbis_window", [](auto n) { return vorbis_window(n); }},
      {"mel_weight_matrix", [](auto n) { return mel_weight_matrix(n, 8, 8000, 0, 4000); }},
      {"mel_weight_matrix, dft_length", [](auto n) { return mel_weight_matrix(2, n, 8000, 0, 4000); }},
      {"linear_to_mel", [](auto n) { return linear_to_mel_weight_matrix({.num_mel_bins = n}); }},
      {"rfft", [](auto n) { return rfft(x, n); }},
      {"dct", [](auto n) { return dct(x, {.n = n}); }},
      {"frame", [](auto n) { return frame(x, n, 1); }},
      {"frame, step", [](auto n) { return frame(x, 1, n); }},
      {"overlap_and_add", [](auto n) { return overlap_and_add(ones({2, 2}), n); }},
      {"resize", [](auto n) { return resize(image, {n, 2}); }},
      {"resize, both", [](auto n) { return resize(images, {n, n}); }},
      {"resize_with_crop_or_pad", [](auto n) { return resize_with_crop_or_pad(image, n, 2); }},
      {"resize_with_pad", [](auto n) { return resize_with_pad(image, n, 2); }},
      {"pad_to_bounding_box", [](auto n) { return pad_to_bounding_box(image, 0, 0, n, 4); }},
      {"pad_to_bounding_box, offset", [](auto n) { return pad_to_bounding_box(image, n, 0, 8, 8); }},
      {"crop_to_bounding_box", [](auto n) { return crop_to_bounding_box(image, 0, n, 2, 2); }},
      {"center_crop_pad", [](auto n) { return center_crop_pad(x, {n}); }},
      {"space_to_depth", [](auto n) { return space_to_depth(images, n); }},
      {"depth_to_space", [](auto n) { return depth_to_space(images, n); }},
      {"space_to_batch_nd", [](auto n) { return space_to_batch_nd(images, {n, 1}, {{0, 0}, {0, 0}}); }},
      {"space_to_batch_nd, pad", [](auto n) { return space_to_batch_nd(images, {1, 1}, {{n, 0}, {0, 0}}); }},
      {"max_pool", [](auto n) { return max_pool(images, {n, 1}); }},
      {"max_pool, strides", [](auto n) { return max_pool(images, {2, 2}, {.strides = {n, 1}}); }},
      {"max_pool, paddings", [](auto n) { return max_pool(images, {2, 2}, {.paddings = {{n, 0}, {0, 0}}}); }},
      {"max_pool, dilations", [](auto n) { return max_pool(images, {2, 2}, {.dilations = {n, 1}}); }},
      {"triu", [](auto n) { return triu(ones({2, 2}), n); }},
      {"band_part", [](auto n) { return band_part(ones({2, 2}), n, n); }},
      {"roll", [](auto n) { return roll(x, n, 0); }},
      {"rot90", [](auto n) { return rot90(image, n); }},
      {"slice", [](auto n) { return slice(x, {n}, {1}); }},
      {"slice, size", [](auto n) { return slice(x, {0}, {n}); }},
      {"x[n]", [](auto n) { return x[n]; }},
      {"rows", [](auto n) { return x.rows(0, n); }},
      {"unravel_index", [](auto n) { return unravel_index(labels, {n, 2}); }},
  };
  return all;
}

/// Memory for 64 MiB and no more, so that what is not refused fails quickly.
struct LittleMemory {
  const std::size_t before = memory_use().limit_bytes;
  LittleMemory() { set_memory_limit(cpu(), memory_use().live_bytes + (std::size_t{64} << 20)); }
  ~LittleMemory() { set_memory_limit(cpu(), before); }
};

TEST(AbsurdSizes, AreErrorsOfTheLibrary) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "operator new of a sanitizer ends the process where it would throw";
#endif
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const LittleMemory memory;
  for (const Maker& maker : makers()) {
    ASSERT_NO_THROW(try { maker.make(1).observed(); } catch (const Error&){}) << maker.name;
    for (const std::int64_t n : {most, most - 1, most / 2, most / 4 + 1, std::int64_t{1} << 61, std::int64_t{1} << 53,
                                 std::int64_t{1} << 41, std::int64_t{1} << 33, -std::int64_t{1},
                                 -(std::int64_t{1} << 40), std::numeric_limits<std::int64_t>::min()}) {
      try {
        const Tensor made = maker.make(n);
        if (made.shape().size() > 0) made.observed();  // of a known, small size
      } catch (const Error& error) {
        EXPECT_FALSE(std::string(error.what()).empty());
      } catch (const std::exception& error) {
        ADD_FAILURE() << maker.name << " of " << n << " throws what is no Error: " << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace gradus::absurd_sizes_test
