/// What tiles of Winograd's convolutions are made of and lead to. Only sums, and products with powers of 2, of
/// elements: the bits do not depend on the vectors' length.
#include <algorithm>
#include "gradus/backend/library/winograd.h"
#include "gradus/base/divide.h"

namespace gradus::library::winograd {

using V = VectorOf<float>::type;
constexpr std::int64_t lanes = lanes_of<float>;
constexpr std::int64_t line = 64 / sizeof(float);

std::optional<Tiling> Tiling::of(const WindowAxes& axes) {
  const WindowAxis& outer = axes[0];
  if (outer.taps != 1 || outer.targets != 1 || outer.sources != 1 || outer.offset != 0) return {};
  Tiling t;
  for (std::size_t i = 0; i < 2; ++i) {
    const WindowAxis& a = axes[i + 1];
    if (a.taps != 3 || a.scale != 1 || a.divisor != 1 || (a.tap != 1 && a.tap != -1)) return {};
    if (a.tap != axes[1].tap || a.targets == 0 || a.sources == 0) return {};
    t.flipped = a.tap == -1;
    t.base[i] = a.offset - (t.flipped ? 2 : 0);
    t.sources[i] = a.sources;
    t.targets[i] = a.targets;
    t.tiles[i] = divide_up(a.targets, 2);
  }
  return t;
}

bool is_worth_it(const Tiling& t, std::int64_t images, std::int64_t inner, std::int64_t columns,
                 std::int64_t of_weights) {
  constexpr std::int64_t of_tile = 14, least_channels = 32, most_bytes = 32 << 20;  // of transformed weights
  const std::int64_t weights = inner * columns, tiles = images * t.of_image();
  const std::int64_t direct = 9 * images * t.targets[0] * t.targets[1] * weights;
  const std::int64_t tiled = places * (tiles * (weights + of_tile * (inner + columns)) + of_weights * weights);
  return std::min(inner, columns) >= least_channels && places * weights * size_of(f32) <= most_bytes &&
         tiled * 6 <= direct * 5;
}

std::int64_t pitch_of(std::int64_t channels) {
  const std::int64_t lines = divide_up(channels, line);
  return (lines % 8 == 0 ? lines + 1 : lines) * line;
}

std::int64_t place_step(std::int64_t rows, std::int64_t pitch) { return (rows * pitch / line | 1) * line; }

void TileReader::find(std::int64_t tile, const float** positions) const {
  const std::int64_t image = tile / t_.of_image(), within = tile % t_.of_image();
  const std::int64_t s0 = within / t_.tiles[1] * 2 + t_.base[0], s1 = within % t_.tiles[1] * 2 + t_.base[1];
  const std::int64_t first = (image * t_.sources[0] + s0) * t_.sources[1] + s1;
  const bool inside = s0 >= 0 && s0 + 4 <= t_.sources[0] && s1 >= 0 && s1 + 4 <= t_.sources[1];
  for (std::int64_t r = 0; r < 4; ++r)
    for (std::int64_t c = 0; c < 4; ++c) {
      const bool reads = inside || (s0 + r >= 0 && s0 + r < t_.sources[0] && s1 + c >= 0 && s1 + c < t_.sources[1]);
      positions[r * 4 + c] = reads ? x_ + (first + r * t_.sources[1] + c) * position_ : zeros_;
    }
}

namespace {

[[gnu::target("avx2"), gnu::always_inline]] inline V load(const float* at) { return *reinterpret_cast<const V*>(at); }
[[gnu::target("avx2"), gnu::always_inline]] inline void store(float* at, V v) { *reinterpret_cast<V*>(at) = v; }

/// Row r of B' has +1 at a and either +1 or -1 at b.
struct RowOfB {
  int a, b;
  bool adds;
};
constexpr RowOfB rows_of_b[] = {{0, 2, false}, {1, 2, true}, {2, 1, false}, {1, 3, false}};

template <int r>
[[gnu::target("avx2")]] void transform_tile_row(const float* const* from, std::int64_t channels, float* to,
                                                std::int64_t step) {
  constexpr RowOfB row = rows_of_b[r];
  const float *const *a = from + 4 * row.a, *const *b = from + 4 * row.b;
  const float *a0 = a[0], *a1 = a[1], *a2 = a[2], *a3 = a[3], *b0 = b[0], *b1 = b[1], *b2 = b[2], *b3 = b[3];
  for (std::int64_t at = 0; at < channels; at += lanes) {
    const std::int64_t c = std::min(at, channels - lanes);
    const V v0 = row.adds ? load(a0 + c) + load(b0 + c) : load(a0 + c) - load(b0 + c);
    const V v1 = row.adds ? load(a1 + c) + load(b1 + c) : load(a1 + c) - load(b1 + c);
    const V v2 = row.adds ? load(a2 + c) + load(b2 + c) : load(a2 + c) - load(b2 + c);
    const V v3 = row.adds ? load(a3 + c) + load(b3 + c) : load(a3 + c) - load(b3 + c);
    float* out = to + 4 * r * step + c;
    store(out, v0 - v2), store(out + step, v1 + v2), store(out + 2 * step, v2 - v1), store(out + 3 * step, v1 - v3);
  }
}

template <int r>
[[gnu::target("avx2")]] void transform_windows_row(const float* const* from, std::int64_t channels, float* to,
                                                   std::int64_t step) {
  const float *p0 = from[0], *p1 = from[1], *q0 = from[2], *q1 = from[3];
  const auto zero = V{};
  for (std::int64_t at = 0; at < channels; at += lanes) {
    const std::int64_t c = std::min(at, channels - lanes);
    V first, second;
    if constexpr (r == 0) first = load(p0 + c), second = load(p1 + c);
    else if constexpr (r == 1) first = load(p0 + c) + load(q0 + c), second = load(p1 + c) + load(q1 + c);
    else if constexpr (r == 2) first = load(p0 + c) - load(q0 + c), second = load(p1 + c) - load(q1 + c);
    else first = zero - load(q0 + c), second = zero - load(q1 + c);
    float* out = to + 4 * r * step + c;
    store(out, first), store(out + step, first + second), store(out + 2 * step, first - second);
    store(out + 3 * step, zero - second);
  }
}

/// G [a, b, c].
[[gnu::target("avx2"), gnu::always_inline]] inline void transform_three(V a, V b, V c, V* out) {
  const V outer = 0.5F * a + 0.5F * c, half = 0.5F * b;
  out[0] = a, out[1] = outer + half, out[2] = outer - half, out[3] = c;
}

/// G' [a, b, c, d].
[[gnu::target("avx2"), gnu::always_inline]] inline void transform_four(V a, V b, V c, V d, V* out) {
  const V second = 0.5F * b, third = 0.5F * c, sum = second + third;
  out[0] = a + sum, out[1] = second - third, out[2] = sum + d;
}

}  // namespace

void transform_tile(const float* const* from, std::int64_t channels, float* to, std::int64_t step, std::int64_t begin,
                    std::int64_t end) {
  constexpr decltype(&transform_tile_row<0>) rows[] = {transform_tile_row<0>, transform_tile_row<1>,
                                                       transform_tile_row<2>, transform_tile_row<3>};
  for (std::int64_t r = begin; r < end; ++r) rows[r](from, channels, to, step);
}

void transform_windows(const float* const* from, std::int64_t channels, float* to, std::int64_t step,
                       std::int64_t begin, std::int64_t end) {
  constexpr decltype(&transform_windows_row<0>) rows[] = {transform_windows_row<0>, transform_windows_row<1>,
                                                          transform_windows_row<2>, transform_windows_row<3>};
  for (std::int64_t r = begin; r < end; ++r) rows[r](from, channels, to, step);
}

[[gnu::target("avx2")]] void transform_weights(const float* const* taps, std::int64_t columns, float* to,
                                               std::int64_t step) {
  for (std::int64_t at = 0; at < columns; at += lanes) {
    const std::int64_t c = std::min(at, columns - lanes);
    V down[3][4];
    for (int i = 0; i < 3; ++i)
      transform_three(load(taps[i] + c), load(taps[3 + i] + c), load(taps[6 + i] + c), down[i]);
    for (int r = 0; r < 4; ++r) {
      V across[4];
      transform_three(down[0][r], down[1][r], down[2][r], across);
      for (int i = 0; i < 4; ++i) store(to + (r * 4 + i) * step + c, across[i]);
    }
  }
}

[[gnu::target("avx2")]] void transform_sums(const float* from, std::int64_t step, std::int64_t columns,
                                            float* const* to) {
  for (std::int64_t at = 0; at < columns; at += lanes) {
    const std::int64_t c = std::min(at, columns - lanes);
    const float* m = from + c;
    V top[4], bottom[4];
    for (int i = 0; i < 4; ++i) {
      const V second = load(m + (4 + i) * step), third = load(m + (8 + i) * step);
      top[i] = load(m + i * step) + second + third;
      bottom[i] = second - third - load(m + (12 + i) * step);
    }
    store(to[0] + c, top[0] + top[1] + top[2]);
    store(to[1] + c, top[1] - top[2] - top[3]);
    store(to[2] + c, bottom[0] + bottom[1] + bottom[2]);
    store(to[3] + c, bottom[1] - bottom[2] - bottom[3]);
  }
}

[[gnu::target("avx2")]] void transform_chunks(const float* from, std::int64_t step, std::int64_t chunks,
                                              std::int64_t chunk_step, std::int64_t columns, float* const* taps) {
  for (std::int64_t at = 0; at < columns; at += lanes) {
    const std::int64_t c = std::min(at, columns - lanes);
    V down[4][3];
    for (int i = 0; i < 4; ++i) {
      V m[4];
      for (int r = 0; r < 4; ++r) {
        const float* sums = from + (r * 4 + i) * step + c;
        m[r] = load(sums);
        for (std::int64_t chunk = 1; chunk < chunks; ++chunk) m[r] += load(sums + chunk * chunk_step);
      }
      transform_four(m[0], m[1], m[2], m[3], down[i]);
    }
    for (int r = 0; r < 3; ++r) {
      V across[3];
      transform_four(down[0][r], down[1][r], down[2][r], down[3][r], across);
      for (int i = 0; i < 3; ++i) store(taps[r * 3 + i] + c, across[i]);
    }
  }
}

}  // namespace gradus::library::winograd
