/// Winograd's F(2x2, 3x3): four targets of a convolution in 16 products instead of 36. A tile is 2 x 2 targets; the 4 x
/// 4 positions that it reads are transformed by additions alone, once for all of their channels' uses, as are the
/// weights; at each of the 16 places the products over channels are then a matrix product over tiles (Lavin and Gray,
/// "Fast Algorithms for Convolutional Neural Networks", 2015, section 4.1).
#pragma once
#include <cstdint>
#include <optional>
#include "gradus/backend/cpu/kernels/convolution.h"

namespace gradus::library::winograd {

constexpr std::int64_t places = 16;         // of a transformed tile
constexpr std::int64_t least_channels = 8;  // the shortest vector of a transform

/// Tiles of images whose targets see all neighbours: the geometry of a convolution of 3 x 3, stride and dilation 1.
struct Tiling {
  std::int64_t base[2];  // the position that target 0 reads first: -1 is one line of zeros before the image
  std::int64_t sources[2], targets[2], tiles[2];
  bool flipped = false;  // tap k reads base + 2 - k

  /// Nothing for any other geometry.
  static std::optional<Tiling> of(const WindowAxes& axes);
  std::int64_t of_image() const { return tiles[0] * tiles[1]; }
};

/// True if tiles take at most 5/6 of the time of chains, for `images` images. If images have results of their own, each
/// is decided by itself: an example's results do not depend on the number of others. `of_weights`: the cost of an
/// element of transformed weights, in multiplications (measured, as are 14 for a transformed tile).
bool is_worth_it(const Tiling& tiling, std::int64_t images, std::int64_t inner, std::int64_t columns,
                 std::int64_t of_weights);

/// Elements from a row of `channels` channels to the next: whole cache lines, not a multiple of eight of them.
std::int64_t pitch_of(std::int64_t channels);

/// 16 matrices of `rows` rows: elements from one to the next, an odd number of cache lines.
std::int64_t place_step(std::int64_t rows, std::int64_t pitch);

/// Where a tile lies, and then the ones after it: tiles are counted over all images.
class TilePlace {
 public:
  TilePlace(const Tiling& tiling, std::int64_t tile);
  void advance();

  /// The 16 positions that it reads, each `position` elements after the one before: within an image, or `zeros`.
  void find_sources(const float* x, std::int64_t position, const float* zeros, const float** to) const;

  /// Its 2 x 2 targets: within an image, or `spare`.
  template <class Float> void find_targets(Float* y, std::int64_t position, Float* spare, Float** to) const {
    const std::int64_t t0 = row_ * 2, t1 = column_ * 2;
    const std::int64_t first = (image_ * t_.targets[0] + t0) * t_.targets[1] + t1;
    for (std::int64_t r = 0; r < 2; ++r)
      for (std::int64_t c = 0; c < 2; ++c)
        to[r * 2 + c] =
            t0 + r < t_.targets[0] && t1 + c < t_.targets[1] ? y + (first + r * t_.targets[1] + c) * position : spare;
  }

 private:
  const Tiling& t_;
  std::int64_t image_, row_, column_;
};

/// Binds tiles whether or not they are worth it, which bind_winograd asks first. Sizes may be any but no examples, with
/// at least `least_channels` of a group on both sides.
BoundThunk bind_tiles(const ConvolutionCall& call, const Tiling& tiling, const GroupedWeights& weights,
                      int shared_slot);
BoundThunk bind_tiles(const KernelConvolutionCall& call, const Tiling& tiling, int shared_slot);

}  // namespace gradus::library::winograd
