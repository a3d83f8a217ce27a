/// The image that a block of windows reads: the image itself if all windows lie within, else a copy with zeros around
/// it.
#pragma once
#include <cstddef>
#include <span>
#include "gradus/backend/cpu/kernels/phases.h"
#include "gradus/tensor/dtype.h"

namespace gradus::library {

/// One number for each of three dimensions: positions or targets.
using Extents = std::array<std::int64_t, 3>;

/// The padded image of one example and group. Lengths and places count elements.
struct PaddedImage {
  Extents sources{};                               // positions of the image
  Extents low{}, high{};                           // least and greatest position that the first targets read
  Extents step{};                                  // from a target's to the next one's
  Extents pitch{};                                 // from a position that is read to the next
  std::int64_t channels = 0, inner = 0, size = 0;  // of all groups and of one; bytes of an element
  bool copies = false;

  PaddedImage() = default;
  /// For phases of equal step, with `count` targets at most.
  PaddedImage(const WindowAxes& axes, std::span<const Phase> phases, const Extents& count, DType dtype,
              std::int64_t channels, std::int64_t inner);
  /// Blocks have at most this many targets.
  void set_blocks(const Extents& targets);

  /// Positions that `targets` neighbours along dimension i read.
  std::int64_t reach(std::size_t i, std::int64_t targets) const {
    return high[i] - low[i] + (targets - 1) * step[i] + 1;
  }
  /// The size of the copy for a block of `targets`; at most `most_elements`, however far apart taps are.
  std::int64_t elements(const Extents& targets) const {
    std::int64_t product = std::min(inner, most_elements);
    for (std::size_t i = 0; i < 3; ++i) product = std::min(product * reach(i, targets[i]), most_elements);
    return product;
  }
  static constexpr std::int64_t most_elements = std::int64_t{1} << 31;  // as a reach is: two of them can be multiplied
  /// Where the first target of a block reads at a tap, and how far from there the line (j0, j1) of its targets does.
  std::int64_t place(const Extents& base) const {
    return (base[0] - low[0]) * pitch[0] + (base[1] - low[1]) * pitch[1] + (base[2] - low[2]) * pitch[2];
  }
  std::int64_t line(std::int64_t j0, std::int64_t j1) const {
    return j0 * step[0] * pitch[0] + j1 * step[1] * pitch[1];
  }
  /// Where in the image a block that begins at target `first` begins: only if nothing is copied.
  std::int64_t origin(const Extents& first) const;
  /// Copies the elements that targets [first, last) of the image at `x` read.
  void copy(const std::byte* x, const Extents& first, const Extents& last, std::byte* to) const;

 private:
  void copy_line(const std::byte* line, std::int64_t begin, std::int64_t positions, std::byte* to) const;
};

}  // namespace gradus::library
