/// Gradients of convolutions by their weights, in strips: the rows of a tile are neighbouring channels of neighbouring
/// taps, its steps the windows of lines. Many of these follow each other while the sums stay in registers.
#include <algorithm>
#include <utility>
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

constexpr std::int64_t block_bytes = 384 << 10;  // of images and windows: a part of the second-level cache
constexpr std::int64_t enough_steps = 256;       // of a block, for its sums are read and written once
constexpr std::int64_t part_rows = 12;           // of a unit: at most a tile on any processor
constexpr std::int64_t enough_units = 8;
constexpr std::int64_t least_rows = 2, least_line = 4;  // of neighbouring taps; of windows: shorter ones are packed

struct WeightStrips : KernelConvolutionCall {
  PaddedImage image;
  std::vector<std::int64_t> rows_at;                      // per run of taps: where the first row reads, in elements
  std::int64_t inner = 0, columns = 0;                    // channels of a group: elements, windows
  std::int64_t rows = 0, parts = 1;                       // of a run of taps
  std::int64_t column_blocks = 1, width = 0, panels = 1;  // of columns: of a panel; panels of a block
  std::int64_t examples_at_once = 1;
  Extents count{}, at_once{};  // windows of an example, and of a block of it

  /// For the lines of a block, which come first in a worker's scratch.
  std::int64_t runs_bytes() const {
    return round_up(examples_at_once * at_once[0] * at_once[1] * static_cast<std::int64_t>(sizeof(TileRun)), 64);
  }
  std::int64_t units_of_group() const { return column_blocks * std::ssize(rows_at) * parts; }
  std::int64_t block_size() const {
    const std::int64_t windows = at_once[0] * at_once[1] * at_once[2] * window_channels;
    return (image.elements(at_once) + windows) * size_of(dtype);
  }
};
void for_each_vector(const WeightStrips& w, const auto& visit) { visit(w.rows_at); }

/// Images, or parts of one.
void choose_blocks(WeightStrips& w) {
  w.at_once = w.count;
  for (std::size_t i = 0; i < 2; ++i)
    while (w.block_size() > block_bytes && w.at_once[i] > 1) w.at_once[i] = divide_up(w.at_once[i], 2);
  if (w.at_once != w.count) return;
  const std::int64_t most = std::max<std::int64_t>(1, block_bytes / w.block_size());
  w.examples_at_once = std::min({most, w.examples, divide_up(enough_steps, w.count[0] * w.count[1] * w.count[2])});
}

/// False: neighbouring taps read too little.
bool find_rows(WeightStrips& w, const Phase& phase) {
  std::vector<std::int64_t> taps;
  for (const Tap& tap : phase.taps) taps.push_back(w.image.place(tap.base));
  const std::size_t together =
      length_of_runs(taps.size(), [&](std::size_t i) { return taps[i] == taps[i - 1] + w.inner; });
  for (std::size_t i = 0; i < taps.size(); i += together) w.rows_at.push_back(taps[i]);
  w.rows = static_cast<std::int64_t>(together) * w.inner;
  w.parts = divide_up(w.rows, part_rows);
  return w.rows >= least_rows;
}

/// Those of add_part.
cpu_backend::TileSet tiles_for(const WeightStrips& w) {
  cpu_backend::TileSet all;
  for (std::int64_t part = 0; part < w.parts; ++part) {
    const std::int64_t rows = (part + 1) * w.rows / w.parts - part * w.rows / w.parts;
    if (w.columns >= w.width) all |= cpu_backend::tiles_for_strips(w.dtype, rows, w.width);
    all |= cpu_backend::tiles_for_strips(w.dtype, rows, w.columns % w.width);
  }
  return all;
}

class WeightSums {
 public:
  WeightSums(const WeightStrips& w, const KernelArguments* arguments)
      : w_(w),
        size_(size_of(w.dtype)),
        x_(static_cast<const std::byte*>(arguments->slots[w.elements])),
        dy_(static_cast<const std::byte*>(arguments->slots[w.windows])),
        dw_(static_cast<std::byte*>(arguments->slots[w.target])),
        scratch_(static_cast<std::byte*>(arguments->scratch) + w.runs_bytes()),
        runs_(static_cast<TileRun*>(arguments->scratch)) {}

  /// Units [begin, end) of one group: by (columns, run of taps, part), the last fastest.
  void run(std::int64_t group, std::int64_t begin, std::int64_t end) {
    group_ = group, begin_ = begin, end_ = end;
    bool resume = false;
    const auto add = [&](std::int64_t example, std::int64_t examples, const Extents& first, const Extents& last) {
      add_block(example, examples, first, last, std::exchange(resume, true));
    };
    if (w_.at_once == w_.count) {
      for (std::int64_t e = 0; e < w_.examples; e += w_.examples_at_once)
        add(e, std::min(w_.examples_at_once, w_.examples - e), {}, w_.count);
      return;
    }
    for (std::int64_t e = 0; e < w_.examples; ++e)
      for (std::int64_t a = 0; a < w_.count[0]; a += w_.at_once[0])
        for (std::int64_t b = 0; b < w_.count[1]; b += w_.at_once[1])
          add(e, 1, {a, b, 0},
              {std::min(w_.count[0], a + w_.at_once[0]), std::min(w_.count[1], b + w_.at_once[1]), w_.count[2]});
  }

 private:
  /// Windows [first, last) of examples.
  void add_block(std::int64_t example, std::int64_t examples, const Extents& first, const Extents& last, bool resume) {
    const PaddedImage& image = w_.image;
    const std::int64_t of_example = sources_of(w_.axes) * w_.element_channels, channels = w_.window_channels;
    const std::byte* x = x_ + (example * of_example + group_ * w_.inner) * size_;
    const std::int64_t image_step = image.copies ? image.elements(w_.at_once) : of_example;
    if (image.copies)
      for (std::int64_t e = 0; e < examples; ++e)
        image.copy(x + e * of_example * size_, first, last, scratch_ + e * image_step * size_);
    const std::byte* a = image.copies ? scratch_ : x + image.origin(first) * size_;
    std::size_t runs = 0;
    for (std::int64_t e = 0; e < examples; ++e)
      for (std::int64_t j0 = first[0]; j0 < last[0]; ++j0)
        for (std::int64_t j1 = first[1]; j1 < last[1]; ++j1) {
          const std::int64_t line = ((example + e) * w_.count[0] + j0) * w_.count[1] + j1;
          runs_[runs++] = {(e * image_step + image.line(j0 - first[0], j1 - first[1])) * size_,
                           line * w_.count[2] * channels * size_};
        }
    const StripTiles tiles({.dtype = w_.dtype,
                            .k = w_.count[2],
                            .a_row = 1,
                            .a_step = image.step[2] * image.pitch[2],
                            .b_step = channels,
                            .c_row = channels,
                            .runs = {runs_, runs}});
    for (std::int64_t unit = begin_; unit < end_;) {
      const std::int64_t of_columns = std::ssize(w_.rows_at) * w_.parts, block = unit / of_columns;
      const std::int64_t last_unit = std::min(end_, (block + 1) * of_columns);
      const std::int64_t columns = std::min(w_.columns, (block + 1) * w_.panels * w_.width);
      for (std::int64_t column = block * w_.panels * w_.width; column < columns; column += w_.width)
        for (std::int64_t u = unit; u < last_unit; ++u)
          add_part(tiles, a, u % of_columns, column, std::min(w_.width, columns - column), resume);
      unit = last_unit;
    }
  }

  void add_part(const StripTiles& tiles, const std::byte* a, std::int64_t unit, std::int64_t column,
                std::int64_t columns, bool resume) const {
    const std::int64_t run = unit / w_.parts, part = unit % w_.parts;
    const std::int64_t first = part * w_.rows / w_.parts, last = (part + 1) * w_.rows / w_.parts;
    const std::int64_t offset = group_ * w_.columns + column;
    tiles.multiply(a + (w_.rows_at[static_cast<std::size_t>(run)] + first) * size_, dy_ + offset * size_,
                   dw_ + ((run * w_.rows + first) * w_.window_channels + offset) * size_, last - first, columns,
                   resume);
  }

  const WeightStrips& w_;
  const std::int64_t size_;
  const std::byte *x_, *dy_;
  std::byte *dw_, *scratch_;
  std::int64_t group_ = 0, begin_ = 0, end_ = 0;
  TileRun* runs_;  // lines of windows of a block
};

}  // namespace

std::optional<BoundThunk> bind_strips(const KernelConvolutionCall& call) {
  auto w = std::make_shared<WeightStrips>();
  static_cast<KernelConvolutionCall&>(*w) = call;
  w->way = Way::strips;
  w->inner = call.element_channels / call.groups;
  w->columns = call.window_channels / call.groups;
  const std::vector<Phase> phases = phases_of(call.axes);
  if (call.examples == 0 || targets_of(call.axes) == 0 || phases.empty() || w->columns * w->inner == 0) return {};
  w->count = phases.front().count;
  w->image = PaddedImage(call.axes, phases, w->count, call.dtype, call.element_channels, w->inner);
  choose_blocks(*w);
  if (w->image.copies && w->block_size() > 4 * block_bytes) return {};  // taps so far apart that most is a gap
  w->image.set_blocks(w->at_once);
  if (w->count[2] < least_line || !find_rows(*w, phases.front())) return {};
  w->width = StripTiles::width(call.dtype, w->columns);
  const std::int64_t panels = divide_up(w->columns, w->width);
  if (call.groups * std::ssize(w->rows_at) * w->parts < enough_units) w->column_blocks = panels;
  w->panels = divide_up(panels, w->column_blocks);
  BoundThunk bound{.extent = call.groups * w->units_of_group(), .cut = Cut::nowhere};
  bound.bytes = call.bytes();
  bound.flops = call.flops();
  bound.tiles = tiles_for(*w);
  bound.worker_scratch = w->runs_bytes();
  if (w->image.copies)
    bound.worker_scratch += w->examples_at_once * w->image.elements(w->at_once) * size_of(call.dtype);
  bound.data = std::shared_ptr<const KernelConvolutionCall>(std::move(w));
  bound.image = image_of<WeightStrips>;
  bound.run = run_strip_weights;
  return bound;
}

void run_strips(const KernelArguments* arguments, const KernelConvolutionCall& call, std::int64_t begin,
                std::int64_t end) {
  const auto& w = static_cast<const WeightStrips&>(call);
  WeightSums sums(w, arguments);
  const std::int64_t of_group = w.units_of_group();
  while (begin < end) {
    const std::int64_t group = begin / of_group, last = std::min(end, (group + 1) * of_group);
    sums.run(group, begin - group * of_group, last - group * of_group);
    begin = last;
  }
}

void run_strip_weights(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  run_strips(arguments, *static_cast<const KernelConvolutionCall*>(arguments->data), begin, end);
}

}  // namespace gradus::library
