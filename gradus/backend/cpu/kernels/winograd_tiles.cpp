/// Where tiles of Winograd's convolutions lie, and when they are worth it.
#include <algorithm>
#include "gradus/backend/cpu/kernels/winograd.h"
#include "gradus/base/divide.h"

namespace gradus::library::winograd {

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

TilePlace::TilePlace(const Tiling& tiling, std::int64_t tile)
    : t_(tiling), image_(tile / t_.of_image()), row_(tile % t_.of_image() / t_.tiles[1]), column_(tile % t_.tiles[1]) {}

void TilePlace::advance() {
  if (++column_ < t_.tiles[1]) return;
  column_ = 0;
  if (++row_ < t_.tiles[0]) return;
  row_ = 0;
  ++image_;
}

void TilePlace::find_sources(const float* x, std::int64_t position, const float* zeros, const float** to) const {
  const std::int64_t s0 = row_ * 2 + t_.base[0], s1 = column_ * 2 + t_.base[1];
  const std::int64_t first = (image_ * t_.sources[0] + s0) * t_.sources[1] + s1;
  const bool inside = s0 >= 0 && s0 + 4 <= t_.sources[0] && s1 >= 0 && s1 + 4 <= t_.sources[1];
  for (std::int64_t r = 0; r < 4; ++r)
    for (std::int64_t c = 0; c < 4; ++c) {
      const bool reads = inside || (s0 + r >= 0 && s0 + r < t_.sources[0] && s1 + c >= 0 && s1 + c < t_.sources[1]);
      to[r * 4 + c] = reads ? x + (first + r * t_.sources[1] + c) * position : zeros;
    }
}

}  // namespace gradus::library::winograd
