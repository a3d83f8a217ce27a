/// Convolutions in strips: a tile's rows are neighbours in a line of targets, so they lie evenly apart in the line that
/// a tap reads, and neighbouring taps are one run of steps there. Where windows reach over an edge, a block of the
/// image is copied with zeros around it, once, instead of once a tap.
#include <algorithm>
#include "gradus/backend/cpu/run/data_image.h"
#include "gradus/backend/cpu/tiles/strips.h"
#include "gradus/backend/cpu/tiles/used_tiles.h"
#include "gradus/backend/cpu/kernels/convolution.h"
#include "gradus/backend/cpu/kernels/padded_image.h"
#include "gradus/base/divide.h"

namespace gradus::library {
namespace {

using cpu_backend::Strips;
using cpu_backend::StripTiles;
using cpu_backend::TileRun;

constexpr std::int64_t image_bytes = 256 << 10;   // of a block of the image: a part of the second-level cache
constexpr std::int64_t weights_bytes = 96 << 10;  // past these their columns are brought together
constexpr std::int64_t enough_units = 16;
constexpr std::int64_t least_steps = 2, least_line = 4;  // of a run; of targets: shorter ones are packed

struct InStrips : ConvolutionCall {
  std::vector<Phase> phases;
  std::vector<std::vector<TileRun>> runs;  // of each phase
  std::vector<std::int64_t> steps;         // of a run
  PaddedImage image;
  bool packs = false;
  std::int64_t inner = 0, columns = 0;  // channels of a group: sources, targets
  GroupedWeights weights_of;
  Extents count{}, at_once{}, blocks{};     // targets of a phase, at most; in a block; how many of them
  std::int64_t width = 0, panel_bytes = 0;  // of a panel of weights

  std::int64_t units() const { return examples * groups * blocks[0] * blocks[1] * blocks[2]; }
  std::int64_t image_size() const { return image.elements(at_once) * size_of(dtype); }
  std::int64_t taps_rows() const { return taps_of(axes) * inner; }
  std::int64_t packed_bytes() const { return packs ? divide_up(columns, width) * panel_bytes : 0; }
};
void for_each_vector(const InStrips& s, const auto& visit) {
  visit(static_cast<const ConvolutionCall&>(s).columns);
  visit(s.phases);
  visit(s.runs);
  visit(s.steps);
}

/// Blocks of targets: as many lines as may be, of whole width.
void choose_blocks(InStrips& s) {
  s.at_once = s.count;
  const auto count_blocks = [&] {
    for (std::size_t k = 0; k < 3; ++k) s.blocks[k] = divide_up(s.count[k], s.at_once[k]);
  };
  const auto cut = [&](std::size_t i, std::int64_t least) {
    while (s.at_once[i] > least) {
      count_blocks();
      if ((!s.image.copies || s.image_size() <= image_bytes) && s.units() >= enough_units) break;
      s.at_once[i] = std::max(least, divide_up(s.at_once[i], 2));
    }
  };
  cut(0, 1);
  cut(1, 4);
  cut(2, 56);
  count_blocks();
}

/// The places that every phase reads, and its runs; false: they are too short.
bool find_runs(InStrips& s) {
  const std::int64_t size = size_of(s.dtype);
  const std::int64_t row = s.packs ? s.width : s.weights_of.row;
  const std::int64_t tap_rows = s.packs ? s.inner : s.weights_of.rows;
  for (const Phase& phase : s.phases) {
    std::vector<TileRun> taps;
    for (const Tap& tap : phase.taps)
      taps.push_back({s.image.place(tap.base) * size, tap.number * tap_rows * row * size});
    const std::size_t together = length_of_runs(taps.size(), [&](std::size_t i) {
      return taps[i].a - taps[i - 1].a == s.inner * size && taps[i].b - taps[i - 1].b == s.inner * row * size;
    });
    std::vector<TileRun>& runs = s.runs.emplace_back();
    for (std::size_t i = 0; i < taps.size(); i += together) runs.push_back(taps[i]);
    s.steps.push_back(static_cast<std::int64_t>(together) * s.inner);
    if (s.steps.back() < least_steps) return false;
  }
  return true;
}

/// Those of add_phase: a line of each block.
cpu_backend::TileSet tiles_for(const InStrips& s) {
  cpu_backend::TileSet all;
  const std::int64_t last = s.columns % s.width;
  if (s.packs) all |= cpu_backend::tiles_for_panels(s.dtype, s.width);
  for (const Phase& phase : s.phases)
    for (std::int64_t begin = 0; begin < phase.count[2]; begin += s.at_once[2]) {
      const std::int64_t targets = std::min(s.at_once[2], phase.count[2] - begin);
      if (s.columns >= s.width) all |= cpu_backend::tiles_for_strips(s.dtype, targets, s.width);
      all |= cpu_backend::tiles_for_strips(s.dtype, targets, last);
    }
  return all;
}

StripTiles tiles_of(const InStrips& s, std::size_t phase) {
  return StripTiles({.dtype = s.dtype,
                     .k = s.steps[phase],
                     .a_row = s.image.step[2] * s.image.pitch[2],
                     .a_step = 1,
                     .b_step = s.packs ? s.width : s.weights_of.row,
                     .c_row = s.axes[2].divisor * s.target_channels,
                     .runs = s.runs[phase]});
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
        image_(packed_ + s.packed_bytes()) {}

  /// Units are ordered by (group, example, block), the last fastest.
  void run(std::int64_t unit) {
    const std::int64_t blocks = s_.blocks[0] * s_.blocks[1] * s_.blocks[2], block = unit % blocks;
    const std::int64_t example = unit / blocks % s_.examples, group = unit / (blocks * s_.examples);
    if (group != group_) enter(group);
    const Extents at{block / (s_.blocks[1] * s_.blocks[2]), block / s_.blocks[2] % s_.blocks[1], block % s_.blocks[2]};
    for (std::size_t i = 0; i < 3; ++i) {
      begin_[i] = at[i] * s_.at_once[i];
      end_[i] = std::min(s_.count[i], begin_[i] + s_.at_once[i]);
    }
    const std::byte* x = x_ + (example * sources_of(s_.axes) * s_.source_channels + group_ * s_.inner) * size_;
    if (s_.image.copies) s_.image.copy(x, begin_, end_, image_);
    const std::byte* image = s_.image.copies ? image_ : x + s_.image.origin(begin_) * size_;
    std::byte* y = y_ + (example * targets_of(s_.axes) * s_.target_channels + group_ * s_.columns) * size_;
    for (std::int64_t column = 0; column < s_.columns; column += s_.width)
      for (std::size_t phase = 0; phase < s_.phases.size(); ++phase) add_phase(phase, column, image, y);
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

  /// A panel of columns of the block's targets of one phase; `image`: where the first target of any phase may read.
  void add_phase(std::size_t number, std::int64_t column, const std::byte* image, std::byte* y) const {
    const Phase& phase = s_.phases[number];
    const std::byte* b = s_.packs ? packed_ + column / s_.width * s_.panel_bytes : group_weights_ + column * size_;
    const std::int64_t columns = std::min(s_.width, s_.columns - column),
                       targets = std::min(end_[2], phase.count[2]) - begin_[2];
    if (targets <= 0) return;
    const StripTiles tiles = tiles_of(s_, number);
    for (std::int64_t j0 = begin_[0]; j0 < std::min(end_[0], phase.count[0]); ++j0)
      for (std::int64_t j1 = begin_[1]; j1 < std::min(end_[1], phase.count[1]); ++j1) {
        const std::int64_t from = s_.image.line(j0 - begin_[0], j1 - begin_[1]);
        const std::int64_t t0 = phase.first[0] + j0 * s_.axes[0].divisor, t1 = phase.first[1] + j1 * s_.axes[1].divisor;
        const std::int64_t t2 = phase.first[2] + begin_[2] * s_.axes[2].divisor;
        const std::int64_t target = (t0 * s_.axes[1].targets + t1) * s_.axes[2].targets + t2;
        tiles.multiply(image + from * size_, b, y + (target * s_.target_channels + column) * size_, targets, columns,
                       false);
      }
  }

  const InStrips& s_;
  const std::int64_t size_;
  const std::byte *x_, *w_, *group_weights_ = nullptr;
  std::byte *y_, *packed_, *image_;
  std::int64_t group_ = -1;
  Extents begin_{}, end_{};
};

}  // namespace

std::optional<BoundThunk> bind_strips(const ConvolutionCall& call, const GroupedWeights& weights) {
  auto s = std::make_shared<InStrips>();
  static_cast<ConvolutionCall&>(*s) = call;
  s->way = Way::strips;
  s->inner = call.source_channels / call.groups;
  s->columns = call.target_channels / call.groups;
  s->weights_of = weights;
  s->phases = phases_of(call.axes);
  if (call.examples == 0 || s->columns == 0 || s->inner == 0 || s->phases.empty()) return {};
  std::int64_t covered = 0;
  for (const Phase& phase : s->phases) covered += phase.count[0] * phase.count[1] * phase.count[2];
  if (covered != targets_of(call.axes) || covered == 0) return {};
  for (const Phase& phase : s->phases)
    for (std::size_t i = 0; i < 3; ++i) s->count[i] = std::max(s->count[i], phase.count[i]);
  s->image = PaddedImage(call.axes, s->phases, s->count, call.dtype, call.source_channels, s->inner);
  if (s->count[2] < least_line) return {};
  choose_blocks(*s);
  if (s->image.copies && s->image_size() > 4 * image_bytes) return {};  // taps so far apart that most is a gap
  s->image.set_blocks(s->at_once);
  s->width = StripTiles::width(call.dtype, s->columns);
  const std::int64_t size = size_of(call.dtype);
  s->packs = s->columns > s->width && s->taps_rows() * s->columns * size > weights_bytes;
  s->panel_bytes = s->taps_rows() * s->width * size + 64;
  if (!find_runs(*s)) return {};
  BoundThunk bound{.extent = s->units(), .cut = s->packs ? Cut::nowhere : Cut::anywhere};
  bound.bytes = call.bytes();
  bound.flops = call.flops();
  bound.tiles = tiles_for(*s);
  bound.worker_scratch = s->packed_bytes() + (s->image.copies ? s->image_size() : 0);
  bound.data = std::shared_ptr<const ConvolutionCall>(std::move(s));
  bound.image = image_of<InStrips>;
  bound.run = run_strip_convolution;
  return bound;
}

void run_strips(const KernelArguments* arguments, const ConvolutionCall& call, std::int64_t begin, std::int64_t end) {
  StripConvolution convolution(static_cast<const InStrips&>(call), arguments);
  for (std::int64_t unit = begin; unit < end; ++unit) convolution.run(unit);
}

void run_strip_convolution(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  run_strips(arguments, *static_cast<const ConvolutionCall*>(arguments->data), begin, end);
}

}  // namespace gradus::library
