/// Blocks of images with zeros around them.
#include "gradus/backend/cpu/kernels/padded_image.h"
#include <cstring>

namespace gradus::library {

PaddedImage::PaddedImage(const WindowAxes& axes, std::span<const Phase> phases, const Extents& count, DType dtype,
                         std::int64_t all_channels, std::int64_t of_group)
    : low(phases.front().taps.front().base),
      high(low),
      step(phases.front().step),
      channels(all_channels),
      inner(of_group),
      size(size_of(dtype)) {
  for (const Phase& phase : phases)
    for (const Tap& tap : phase.taps)
      for (std::size_t i = 0; i < 3; ++i) {
        low[i] = std::min(low[i], tap.base[i]);
        high[i] = std::max(high[i], tap.base[i]);
      }
  for (std::size_t i = 0; i < 3; ++i) {
    sources[i] = axes[i].sources;
    copies |= low[i] < 0 || high[i] + (count[i] - 1) * step[i] >= sources[i];
  }
}

void PaddedImage::set_blocks(const Extents& targets) {
  const std::int64_t position = copies ? inner : channels;
  const std::int64_t line = (copies ? reach(2, targets[2]) : sources[2]) * position;
  pitch = {(copies ? reach(1, targets[1]) : sources[1]) * line, line, position};
}

std::int64_t PaddedImage::origin(const Extents& first) const {
  std::int64_t at = 0;
  for (std::size_t i = 0; i < 3; ++i) at += (low[i] + first[i] * step[i]) * pitch[i];
  return at;
}

void PaddedImage::copy(const std::byte* x, const Extents& first, const Extents& last, std::byte* to) const {
  Extents begin, count;
  for (std::size_t i = 0; i < 3; ++i) begin[i] = low[i] + first[i] * step[i], count[i] = reach(i, last[i] - first[i]);
  for (std::int64_t a = 0; a < count[0]; ++a)
    for (std::int64_t b = 0; b < count[1]; ++b) {
      const std::int64_t s0 = begin[0] + a, s1 = begin[1] + b;
      const bool inside = s0 >= 0 && s0 < sources[0] && s1 >= 0 && s1 < sources[1];
      const std::byte* line = inside ? x + (s0 * sources[1] + s1) * sources[2] * channels * size : nullptr;
      copy_line(line, begin[2], count[2], to + (a * pitch[0] + b * pitch[1]) * size);
    }
}

/// From position `begin` of the line on; of no line zeros.
void PaddedImage::copy_line(const std::byte* line, std::int64_t begin, std::int64_t positions, std::byte* to) const {
  const std::int64_t position = inner * size;
  const std::int64_t first = line ? std::clamp<std::int64_t>(-begin, 0, positions) : positions;
  const std::int64_t last = std::clamp(sources[2] - begin, first, positions);
  std::memset(to, 0, static_cast<std::size_t>(first * position));
  std::memset(to + last * position, 0, static_cast<std::size_t>((positions - last) * position));
  if (first == last) return;
  const std::byte* from = line + (begin + first) * channels * size;
  to += first * position;
  if (inner == channels) return void(std::memcpy(to, from, static_cast<std::size_t>((last - first) * position)));
  for (std::int64_t i = first; i < last; ++i, to += position, from += channels * size)
    std::memcpy(to, from, static_cast<std::size_t>(position));
}

}  // namespace gradus::library
