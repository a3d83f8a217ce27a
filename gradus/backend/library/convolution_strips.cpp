/// Convolutions in strips: a tile's rows are neighbours in a line of targets, so they lie evenly apart in the line that
/// a tap reads, and neighbouring taps are one run of steps there. Where windows reach over an edge, a block of the
/// image is copied with zeros around it, once, instead of once a tap.
#include <algorithm>
#include <cstring>
#include "gradus/backend/cpu/tiles/strips.h"
#include "gradus/backend/library/convolution.h"
#include "gradus/base/divide.h"

namespace gradus::library {
namespace {

using cpu_backend::Strips;
using cpu_backend::StripTiles;
using cpu_backend::TileRun;
using Extents = std::array<std::int64_t, 3>;

constexpr std::int64_t image_bytes = 256 << 10;   // of a block of the image: a part of the second-level cache
constexpr std::int64_t weights_bytes = 96 << 10;  // past these their columns are brought together
constexpr std::int64_t enough_units = 16;
constexpr std::int64_t least_steps = 8, least_line = 4;  // of a run; of targets: shorter ones are packed

struct InStrips : ConvolutionCall {
  std::vector<Phase> phases;
  std::vector<std::vector<TileRun>> runs;  // of each phase
  std::vector<StripTiles> tiles;
  bool copies = false, packs = false;
  std::int64_t inner = 0, columns = 0;  // channels of a group: sources, targets
  GroupedWeights weights_of;
  Extents low{}, high{}, step{};         // positions that the first targets read, least and most; from target to target
  Extents count{}, at_once{}, blocks{};  // targets of a phase, at most; in a block; how many of them
  std::int64_t width = 0, panel_bytes = 0;  // of a panel of weights

  /// Positions that `targets` neighbours along dimension i read.
  std::int64_t reach(std::size_t i, std::int64_t targets) const {
    return high[i] - low[i] + (targets - 1) * step[i] + 1;
  }
  std::int64_t image_size() const {
    return reach(0, at_once[0]) * reach(1, at_once[1]) * reach(2, at_once[2]) * inner * size_of(dtype);
  }
  std::int64_t units() const { return examples * groups * blocks[0] * blocks[1] * blocks[2]; }
  std::int64_t taps_rows() const { return taps_of(axes) * inner; }
  std::int64_t packed_bytes() const { return packs ? divide_up(columns, width) * panel_bytes : 0; }
  /// Elements from a position of what tiles read to the next one along each dimension.
  Extents pitches() const {
    const std::int64_t position = copies ? inner : source_channels;
    const std::int64_t line = (copies ? reach(2, at_once[2]) : axes[2].sources) * position;
    return {(copies ? reach(1, at_once[1]) : axes[1].sources) * line, line, position};
  }
};

void measure(InStrips& s) {
  s.low = s.high = s.phases.front().taps.front().base;
  s.step = s.phases.front().step;
  for (const Phase& phase : s.phases) {
    for (std::size_t i = 0; i < 3; ++i) s.count[i] = std::max(s.count[i], phase.count[i]);
    for (const Tap& tap : phase.taps)
      for (std::size_t i = 0; i < 3; ++i) {
        s.low[i] = std::min(s.low[i], tap.base[i]);
        s.high[i] = std::max(s.high[i], tap.base[i]);
      }
  }
  for (std::size_t i = 0; i < 3; ++i)
    s.copies |= s.low[i] < 0 || s.high[i] + (s.count[i] - 1) * s.step[i] >= s.axes[i].sources;
}

/// Blocks of targets: as many lines as may be, of whole width.
void choose_blocks(InStrips& s) {
  s.at_once = s.count;
  const auto cut = [&](std::size_t i, std::int64_t least) {
    while (s.at_once[i] > least) {
      for (std::size_t k = 0; k < 3; ++k) s.blocks[k] = divide_up(s.count[k], s.at_once[k]);
      if ((!s.copies || s.image_size() <= image_bytes) && s.units() >= enough_units) break;
      s.at_once[i] = std::max(least, divide_up(s.at_once[i], 2));
    }
  };
  cut(0, 1);
  cut(1, 4);
  cut(2, 56);
  for (std::size_t k = 0; k < 3; ++k) s.blocks[k] = divide_up(s.count[k], s.at_once[k]);
}

/// How many neighbouring taps are one run, everywhere in a phase.
std::size_t neighbours(const std::vector<TileRun>& taps, std::int64_t a, std::int64_t b) {
  const auto follows = [&](std::size_t i) { return taps[i].a - taps[i - 1].a == a && taps[i].b - taps[i - 1].b == b; };
  std::size_t count = 1;
  while (count < taps.size() && follows(count)) ++count;
  if (taps.size() % count != 0) return 1;
  for (std::size_t i = 1; i < taps.size(); ++i)
    if (i % count != 0 && !follows(i)) return 1;
  return count;
}

/// Of every phase the places that it reads, and its tiles; false: runs are too short.
bool find_runs(InStrips& s) {
  const std::int64_t size = size_of(s.dtype);
  const Extents pitch = s.pitches();
  const std::int64_t row = s.packs ? s.width : s.weights_of.row;
  const std::int64_t tap_rows = s.packs ? s.inner : s.weights_of.rows;
  std::vector<std::int64_t> steps;
  for (const Phase& phase : s.phases) {
    std::vector<TileRun> taps;
    for (const Tap& tap : phase.taps) {
      std::int64_t at = 0;
      for (std::size_t i = 0; i < 3; ++i) at += (tap.base[i] - s.low[i]) * pitch[i];
      taps.push_back({at * size, tap.number * tap_rows * row * size});
    }
    const std::size_t together = neighbours(taps, s.inner * size, s.inner * row * size);
    std::vector<TileRun>& runs = s.runs.emplace_back();
    for (std::size_t i = 0; i < taps.size(); i += together) runs.push_back(taps[i]);
    steps.push_back(static_cast<std::int64_t>(together) * s.inner);
    if (steps.back() < least_steps) return false;
  }
  for (std::size_t p = 0; p < s.phases.size(); ++p)
    s.tiles.emplace_back(Strips{.dtype = s.dtype,
                                .k = steps[p],
                                .a_row = s.step[2] * pitch[2],
                                .a_step = 1,
                                .b_step = row,
                                .c_row = s.axes[2].divisor * s.target_channels,
                                .runs = s.runs[p]});
  return true;
}

class StripConvolution {
 public:
  StripConvolution(const InStrips& s, const KernelArguments* arguments)
      : s_(s),
        size_(size_of(s.dtype)),
        x_(static_cast<const std::byte*>(arguments->slots[s.source])),
        w_(static_cast<const std::byte*>(arguments->slots[s.weights])),
        y_(static_cast<std::byte*>(arguments->slots[s.target])),
        packed_(static_cast<std::byte*>(arguments->scratch)),
        image_(packed_ + s.packed_bytes()),
        pitch_(s.pitches()) {}

  /// Units are ordered by (group, example, block), the last fastest.
  void run(std::int64_t unit) {
    const std::int64_t blocks = s_.blocks[0] * s_.blocks[1] * s_.blocks[2], block = unit % blocks;
    const std::int64_t example = unit / blocks % s_.examples, group = unit / (blocks * s_.examples);
    if (group != group_) enter(group);
    const Extents at{block / (s_.blocks[1] * s_.blocks[2]), block / s_.blocks[2] % s_.blocks[1], block % s_.blocks[2]};
    for (std::size_t i = 0; i < 3; ++i) {
      begin_[i] = at[i] * s_.at_once[i];
      end_[i] = std::min(s_.count[i], begin_[i] + s_.at_once[i]);
      origin_[i] = s_.low[i] + begin_[i] * s_.step[i];
    }
    const std::byte* x = x_ + (example * sources_of(s_.axes) * s_.source_channels + group_ * s_.inner) * size_;
    if (s_.copies) copy_image(x);
    else x += (origin_[0] * pitch_[0] + origin_[1] * pitch_[1] + origin_[2] * pitch_[2]) * size_;
    std::byte* y = y_ + (example * targets_of(s_.axes) * s_.target_channels + group_ * s_.columns) * size_;
    for (std::int64_t column = 0; column < s_.columns; column += s_.width)
      for (std::size_t phase = 0; phase < s_.phases.size(); ++phase)
        add_phase(phase, column, s_.copies ? image_ : x, y);
  }

 private:
  void enter(std::int64_t group) {
    group_ = group;
    const GroupedWeights& w = s_.weights_of;
    group_weights_ = w_ + group * (w.group_rows * w.row + w.group_columns) * size_;
    if (!s_.packs) return;
    const bool at_once = w.rows == s_.inner;  // the rows of all taps follow each other
    const std::int64_t pieces = at_once ? 1 : taps_of(s_.axes), rows = at_once ? s_.taps_rows() : s_.inner;
    for (std::int64_t piece = 0; piece < pieces; ++piece)
      cpu_backend::pack_panels(s_.dtype, group_weights_ + piece * w.rows * w.row * size_, rows, s_.columns, w.row,
                               s_.width, s_.panel_bytes, packed_ + piece * rows * s_.width * size_);
  }

  void copy_image(const std::byte* x) {
    std::byte* to = image_;
    const std::int64_t lines[] = {s_.reach(0, end_[0] - begin_[0]), s_.reach(1, end_[1] - begin_[1])};
    for (std::int64_t a = 0; a < lines[0]; ++a)
      for (std::int64_t b = 0; b < lines[1]; ++b)
        copy_line(x, origin_[0] + a, origin_[1] + b, to + (a * pitch_[0] + b * pitch_[1]) * size_);
  }

  void copy_line(const std::byte* x, std::int64_t s0, std::int64_t s1, std::byte* to) {
    const std::int64_t all = s_.reach(2, end_[2] - begin_[2]), position = s_.inner * size_;
    const bool inside = s0 >= 0 && s0 < s_.axes[0].sources && s1 >= 0 && s1 < s_.axes[1].sources;
    const std::int64_t first = inside ? std::clamp<std::int64_t>(-origin_[2], 0, all) : all;
    const std::int64_t last = std::clamp(s_.axes[2].sources - origin_[2], first, all);
    std::memset(to, 0, static_cast<std::size_t>(first * position));
    std::memset(to + last * position, 0, static_cast<std::size_t>((all - last) * position));
    if (first == last) return;
    const std::int64_t line = (s0 * s_.axes[1].sources + s1) * s_.axes[2].sources;
    const std::byte* from = x + (line + origin_[2] + first) * s_.source_channels * size_;
    to += first * position;
    if (s_.groups == 1) std::memcpy(to, from, static_cast<std::size_t>((last - first) * position));
    else
      for (std::int64_t i = first; i < last; ++i, to += position, from += s_.source_channels * size_)
        std::memcpy(to, from, static_cast<std::size_t>(position));
  }

  /// A panel of columns of the block's targets of one phase; `image`: where the first target of any phase may read.
  void add_phase(std::size_t number, std::int64_t column, const std::byte* image, std::byte* y) const {
    const Phase& phase = s_.phases[number];
    const std::byte* b = s_.packs ? packed_ + column / s_.width * s_.panel_bytes : group_weights_ + column * size_;
    const std::int64_t columns = std::min(s_.width, s_.columns - column),
                       targets = std::min(end_[2], phase.count[2]) - begin_[2];
    if (targets <= 0) return;
    for (std::int64_t j0 = begin_[0]; j0 < std::min(end_[0], phase.count[0]); ++j0)
      for (std::int64_t j1 = begin_[1]; j1 < std::min(end_[1], phase.count[1]); ++j1) {
        const std::int64_t from = (j0 - begin_[0]) * s_.step[0] * pitch_[0] + (j1 - begin_[1]) * s_.step[1] * pitch_[1];
        const std::int64_t t0 = phase.first[0] + j0 * s_.axes[0].divisor, t1 = phase.first[1] + j1 * s_.axes[1].divisor;
        const std::int64_t t2 = phase.first[2] + begin_[2] * s_.axes[2].divisor;
        const std::int64_t target = (t0 * s_.axes[1].targets + t1) * s_.axes[2].targets + t2;
        s_.tiles[number].multiply(image + from * size_, b, y + (target * s_.target_channels + column) * size_, targets,
                                  columns, false);
      }
  }

  const InStrips& s_;
  const std::int64_t size_;
  const std::byte *x_, *w_, *group_weights_ = nullptr;
  std::byte *y_, *packed_, *image_;
  const Extents pitch_;
  std::int64_t group_ = -1;
  Extents begin_{}, end_{}, origin_{};
};

}  // namespace

std::optional<BoundThunk> bind_strips(const ConvolutionCall& call, const GroupedWeights& weights) {
  auto s = std::make_shared<InStrips>();
  static_cast<ConvolutionCall&>(*s) = call;
  s->in_strips = true;
  s->inner = call.source_channels / call.groups;
  s->columns = call.target_channels / call.groups;
  s->weights_of = weights;
  s->phases = phases_of(call.axes);
  if (call.examples == 0 || s->columns == 0 || s->inner == 0 || s->phases.empty()) return {};
  std::int64_t covered = 0;
  for (const Phase& phase : s->phases) covered += phase.count[0] * phase.count[1] * phase.count[2];
  if (covered != targets_of(call.axes) || covered == 0) return {};
  measure(*s);
  if (s->count[2] < least_line) return {};
  choose_blocks(*s);
  s->width = StripTiles::width(call.dtype, s->columns);
  const std::int64_t size = size_of(call.dtype);
  s->packs = s->columns > s->width && s->taps_rows() * s->columns * size > weights_bytes;
  s->panel_bytes = s->taps_rows() * s->width * size + 64;
  if (!find_runs(*s)) return {};
  const std::int64_t targets = call.examples * targets_of(call.axes);
  BoundThunk bound{.extent = s->units()};
  bound.bytes = (targets * call.target_channels + call.examples * sources_of(call.axes) * call.source_channels) * size;
  bound.flops = call.flops();
  bound.worker_scratch = s->packed_bytes() + (s->copies ? s->image_size() : 0);
  bound.data = std::shared_ptr<const ConvolutionCall>(std::move(s));
  return bound;
}

void run_strips(const KernelArguments* arguments, const ConvolutionCall& call, std::int64_t begin, std::int64_t end) {
  StripConvolution convolution(static_cast<const InStrips&>(call), arguments);
  for (std::int64_t unit = begin; unit < end; ++unit) convolution.run(unit);
}

}  // namespace gradus::library
