/// Winograd's F(2x2, 3x3): four targets of a convolution in 16 products instead of 36. A tile is 2 x 2 targets; what it
/// reads, 4 x 4 positions, is transformed by additions alone, once for all of its channels' uses, as are the weights;
/// of each of the 16 places the products over channels are then a matrix product over tiles (Lavin and Gray, "Fast
/// Algorithms for Convolutional Neural Networks", 2015, section 4.1).
#pragma once
#include <span>
#include "gradus/backend/library/channel_vectors.h"
#include "gradus/backend/library/convolution.h"

namespace gradus::library::winograd {

constexpr std::int64_t places = 16;         // of a transformed tile
constexpr std::int64_t least_channels = 8;  // a vector: the last one of a row may overlap the one before

/// Tiles of images whose targets see all neighbours: the geometry of a convolution of 3 x 3, stride and dilation 1.
struct Tiling {
  std::int64_t base[2];  // the position that target 0 reads first: -1 is one line of zeros before the image
  std::int64_t sources[2], targets[2], tiles[2];
  bool flipped = false;  // tap k reads base + 2 - k

  /// Nothing for any other geometry.
  static std::optional<Tiling> of(const WindowAxes& axes);
  std::int64_t of_image() const { return tiles[0] * tiles[1]; }
};

/// Whether doing fewer multiplications pays, by sizes of one image alone, so that an example's results do not depend on
/// how many others there are.
bool is_worth_it(const Tiling& tiling, std::int64_t inner, std::int64_t columns);

/// Elements from a row of so many channels to the next: whole cache lines, not a multiple of eight of them.
std::int64_t pitch_of(std::int64_t channels);

/// 16 matrices of `rows` rows: elements from one to the next, an odd number of cache lines.
std::int64_t place_step(std::int64_t rows, std::int64_t pitch);

/// d[r][c] -> B' d B: the 4 x 4 positions that `from` points at, `channels` adjacent floats each; place i of the result
/// is at to + i * step. B' = [1 0 -1 0; 0 1 1 0; 0 -1 1 0; 0 1 0 -1].
void transform_tile(const float* const* from, std::int64_t channels, float* to, std::int64_t step);

/// The 16 positions of tiles: within an image, or `zeros`.
class TileReader {
 public:
  TileReader(const Tiling& tiling, const float* x, std::int64_t position, const float* zeros)
      : t_(tiling), x_(x), position_(position), zeros_(zeros) {}
  /// Of tile `tile`, counted over all images.
  void find(std::int64_t tile, const float** positions) const;

 private:
  const Tiling& t_;
  const float* x_;
  const std::int64_t position_;  // elements from a position to the next
  const float* zeros_;
};

/// The 2 x 2 targets of tiles: within an image, or `spare`.
void find_targets(const Tiling& tiling, float* y, std::int64_t position, std::int64_t tile, float* spare, float** to);

}  // namespace gradus::library::winograd
