/// Convolutions as products: the rows of a block of targets are packed, tap after tap, and multiplied with the weights
/// by the tiles of matrix products, so that patches never stand in memory for more than a block. The chain of an
/// element goes on from one run of taps to the next.
#include "gradus/backend/cpu/kernels/convolution.h"
#include <algorithm>
#include <cstring>
#include "gradus/backend/cpu/run/data_image.h"
#include "gradus/backend/cpu/tiles/product.h"
#include "gradus/backend/cpu/tiles/used_tiles.h"
#include "gradus/base/divide.h"
#include "gradus/compiler/pipeline.h"
#include "gradus/ops/conv_ops.h"

namespace gradus::library {
namespace {

using cpu_backend::Product;

constexpr std::int64_t block_rows = 168;         // whole tiles: 14, 12, 24 and 6 rows
constexpr std::int64_t block_bytes = 256 << 10;  // of packed rows: a part of the second-level cache
constexpr std::int64_t block_depth = 384;        // of packed columns, where rows are to be many
constexpr std::int64_t enough_units = 16;

/// Bytes that copies of short pieces may write behind them; the next piece of the row is written later.
constexpr std::int64_t spill = 32;

/// Bytes from a packed row to the next: an odd number of cache lines.
std::int64_t pitch_of(std::int64_t columns, std::int64_t size) {
  return (divide_up(columns * size + spill, 64) | 1) * 64;
}

// ---------------------------------------------------------------- for both directions

/// `count` pieces of `bytes`, and up to `spill` bytes behind them, before `end`.
void copy_pieces(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step, std::int64_t count,
                 std::int64_t bytes, const std::byte* end) {
  std::int64_t i = 0;
  const auto copy_while_followed = [&]<std::int64_t fixed>() {
    const std::int64_t room = end - from - fixed, followed = room < 0 ? 0 : std::min(count, room / from_step + 1);
    for (; i < followed; ++i) std::memcpy(to + i * to_step, from + i * from_step, fixed);
  };
  if (bytes == 4) copy_while_followed.operator()<4>();
  else if (bytes <= 16) copy_while_followed.operator()<16>();
  else if (bytes <= 32) copy_while_followed.operator()<32>();
  else if (bytes <= 64) copy_while_followed.operator()<64>();
  else if (bytes == 128) copy_while_followed.operator()<128>();
  else if (bytes == 256) copy_while_followed.operator()<256>();
  for (; i < count; ++i) std::memcpy(to + i * to_step, from + i * from_step, static_cast<std::size_t>(bytes));
}

/// Taps that read neighbours, [first, first + count) of a phase, and the part [begin, end) of the bytes that they read
/// for a row: one piece where all of them read something.
struct Stretch {
  std::size_t first = 0;
  std::int64_t count = 0, begin = 0, end = 0;
};

/// Copies the elements that a stretch of taps reads for rows [begin, end) of a phase, counted over (example, j0, j1,
/// j2), into pieces that are `pitch` bytes apart; zeros outside of the source.
struct PieceCopier {
  const WindowAxes& axes;
  const Phase& phase;
  const std::byte* source;     // of the first piece of the first example
  const std::byte* end;        // of all examples
  std::int64_t position_step;  // bytes from a source position to the next
  std::int64_t pitch, bytes;   // of rows; of one tap's elements

  /// The taps from `first` on, before `last`, that read neighbours.
  std::int64_t neighbours(std::size_t first, std::size_t last) const {
    std::size_t end = first + 1;
    const auto follows = [](const Tap& a, const Tap& b) {
      return a.base[0] == b.base[0] && a.base[1] == b.base[1] && a.base[2] + 1 == b.base[2];
    };
    while (bytes == position_step && end < last && follows(phase.taps[end - 1], phase.taps[end])) ++end;
    return static_cast<std::int64_t>(end - first);
  }

  void copy(const Stretch& stretch, std::int64_t begin, std::int64_t end, std::byte* to) const {
    const auto& count = phase.count;
    const Tap& tap = phase.taps[stretch.first];
    while (begin < end) {
      const std::int64_t j2 = begin % count[2], line = begin / count[2];
      const std::int64_t pieces = std::min(end - begin, count[2] - j2);
      const std::int64_t s1 = tap.base[1] + line % count[1] * phase.step[1];
      const std::int64_t s0 = tap.base[0] + line / count[1] % count[0] * phase.step[0];
      const std::int64_t example = line / (count[1] * count[0]);
      const bool inside = s0 >= 0 && s0 < axes[0].sources && s1 >= 0 && s1 < axes[1].sources;
      copy_line(stretch, inside ? ((example * axes[0].sources + s0) * axes[1].sources + s1) * axes[2].sources : -1, j2,
                j2 + pieces, to);
      begin += pieces;
      to += pieces * pitch;
    }
  }

 private:
  /// Pieces [j2, end) of a line, which reads the line of sources that begins at `line`; -1: none.
  void copy_line(const Stretch& stretch, std::int64_t line, std::int64_t j2, std::int64_t end, std::byte* to) const {
    const std::int64_t step = phase.step[2], base = phase.taps[stretch.first].base[2],
                       last_base = base + stretch.count - 1;
    std::int64_t first = base >= 0 ? 0 : divide_up(-base, step);
    std::int64_t last = last_base >= axes[2].sources ? 0 : divide_up(axes[2].sources - last_base, step);
    first = line < 0 ? end : std::clamp(first, j2, end);
    last = std::clamp(last, first, end);
    for (std::int64_t j = j2; j < first; ++j) copy_partly(stretch, line, base + j * step, to + (j - j2) * pitch);
    if (last > first)
      copy_pieces(to + (first - j2) * pitch, pitch,
                  source + (line + base + first * step) * position_step + stretch.begin, step * position_step,
                  last - first, stretch.end - stretch.begin, this->end);
    for (std::int64_t j = last; j < end; ++j) copy_partly(stretch, line, base + j * step, to + (j - j2) * pitch);
  }

  /// One piece, tap by tap; the first tap reads position `at` of the line.
  void copy_partly(const Stretch& stretch, std::int64_t line, std::int64_t at, std::byte* to) const {
    for (std::int64_t tap = stretch.begin / std::max<std::int64_t>(1, bytes); tap < stretch.count; ++tap) {
      const std::int64_t begin = std::max(stretch.begin, tap * bytes), end = std::min(stretch.end, (tap + 1) * bytes);
      if (begin >= end) return;
      const auto size = static_cast<std::size_t>(end - begin);
      std::byte* piece = to + (begin - stretch.begin);
      if (line < 0 || at + tap < 0 || at + tap >= axes[2].sources) std::memset(piece, 0, size);
      else std::memcpy(piece, source + (line + at + tap) * position_step + (begin - tap * bytes), size);
    }
  }
};

// ---------------------------------------------------------------- targets from sources

/// Taps whose weights follow one another.
struct TapRun {
  std::size_t first, last;
};
/// Rows from `begin` on of a phase.
struct Block {
  std::size_t phase;
  std::int64_t begin;
};

struct Gathered : ConvolutionCall {
  std::vector<Phase> phases;
  std::vector<Block> blocks;  // of one group
  bool direct = false;        // rows of targets are written in place
  bool covers = true;         // every target belongs to a phase; else, along each dimension, whether one does:
  std::array<std::vector<std::uint8_t>, 3> covered;
  std::int64_t inner = 0, columns = 0;  // channels of a group: sources, targets
  GroupedWeights weights_of;
  std::int64_t rows_at_once = 1, taps_at_once = 1, units = 0;
  std::int64_t packed_bytes = 0, sums_bytes = 0;

  std::int64_t pitch() const { return pitch_of(taps_at_once * inner, size_of(dtype)); }

  /// The next run of a phase's taps from `first` on.
  TapRun run_from(const Phase& phase, std::size_t first) const {
    std::size_t last = first + 1;
    while (last < phase.taps.size() && static_cast<std::int64_t>(last - first) < taps_at_once &&
           inner == weights_of.rows && phase.taps[last].number == phase.taps[last - 1].number + 1)
      ++last;
    return {first, last};
  }
  Product product(std::int64_t rows, std::int64_t k, bool resume) const {
    const std::int64_t size = size_of(dtype);
    return {.dtype = dtype,
            .m = rows,
            .n = columns,
            .k = k,
            .a_row = pitch() / size,
            .b_row = weights_of.row,
            .c_row = direct ? target_channels : columns,
            .resume = resume};
  }
};
void for_each_vector(const Gathered& g, const auto& visit) {
  visit(static_cast<const ConvolutionCall&>(g).columns);
  visit(g.phases);
  visit(g.blocks);
  for (const auto& along : g.covered) visit(along);
}

/// How many rows and taps are packed at once.
void choose_blocks(Gathered& g) {
  const std::int64_t size = size_of(g.dtype);
  std::int64_t taps = 1, rows = 0;
  for (Phase& phase : g.phases) {
    phase.rows = g.examples * phase.count[0] * phase.count[1] * phase.count[2];
    rows += phase.rows;
    taps = std::max(taps, std::ssize(phase.taps));
  }
  const std::int64_t k = std::max<std::int64_t>(g.inner, 1);
  g.taps_at_once =
      std::clamp<std::int64_t>(taps * k * block_rows * size <= block_bytes ? taps : block_depth / k, 1, taps);
  g.rows_at_once = std::clamp<std::int64_t>(block_bytes / (g.taps_at_once * k * size), 42, block_rows);
  const std::int64_t fair = divide_up(rows * g.groups, enough_units);  // smaller where that makes too few units
  g.rows_at_once = std::max<std::int64_t>(1, std::min(g.rows_at_once, divide_up(fair, 14) * 14));
  for (std::size_t phase = 0; phase < g.phases.size(); ++phase)
    for (std::int64_t begin = 0; begin < g.phases[phase].rows; begin += g.rows_at_once)
      g.blocks.push_back({phase, begin});
  // Phases differ in their taps: any part of the blocks has about the same of each.
  std::ranges::stable_sort(g.blocks, {}, [&](const Block& block) {
    return static_cast<double>(block.begin) / static_cast<double>(g.phases[block.phase].rows);
  });
  g.units = std::ssize(g.blocks) * g.groups;
}

/// The scratch for the products of all blocks, whose tiles are added to a set.
std::int64_t product_scratch(const Gathered& g, cpu_backend::TileSet& tiles) {
  std::size_t most = 0;
  for (const Phase& phase : g.phases)
    for (std::size_t tap = 0; tap < phase.taps.size();) {
      const TapRun run = g.run_from(phase, tap);
      const auto k = static_cast<std::int64_t>(run.last - run.first) * g.inner;
      for (std::int64_t rows : {g.rows_at_once, phase.rows % g.rows_at_once})
        if (rows > 0) {
          const Product p = g.product(rows, k, false);
          most = std::max(most, cpu_backend::scratch_bytes(p));
          tiles |= cpu_backend::tiles_for(p);
        }
      tap = run.last;
    }
  return static_cast<std::int64_t>(most);
}

class GatheredProduct {
 public:
  GatheredProduct(const Gathered& g, const KernelArguments* arguments)
      : g_(g),
        size_(size_of(g.dtype)),
        x_(static_cast<const std::byte*>(arguments->slots[g.source])),
        w_(static_cast<const std::byte*>(arguments->slots[g.weights])),
        y_(static_cast<std::byte*>(arguments->slots[g.target])),
        packed_(static_cast<std::byte*>(arguments->scratch)),
        sums_(packed_ + g.packed_bytes),
        scratch_(sums_ + g.sums_bytes) {}

  void run(std::int64_t unit) {
    const std::int64_t of_group = std::ssize(g_.blocks);
    group_ = unit / of_group;
    const Block& at = g_.blocks[static_cast<std::size_t>(unit % of_group)];
    const Phase& phase = g_.phases[at.phase];
    block(phase, at.begin, std::min(phase.rows, at.begin + g_.rows_at_once));
  }

 private:
  void block(const Phase& phase, std::int64_t begin, std::int64_t end) {
    std::byte* c = g_.direct ? y_ + (begin * g_.target_channels + group_ * g_.columns) * size_ : sums_;
    const std::int64_t position = g_.source_channels * size_;
    const PieceCopier copier{g_.axes,
                             phase,
                             x_ + group_ * g_.inner * size_,
                             x_ + g_.examples * sources_of(g_.axes) * position,
                             position,
                             g_.pitch(),
                             g_.inner * size_};
    for (std::size_t tap = 0; tap < phase.taps.size();) {
      const TapRun run = g_.run_from(phase, tap);
      for (std::size_t i = run.first; i < run.last;) {
        const std::int64_t taps = copier.neighbours(i, run.last);
        copier.copy({i, taps, 0, taps * copier.bytes}, begin, end,
                    packed_ + static_cast<std::int64_t>(i - run.first) * copier.bytes);
        i += static_cast<std::size_t>(taps);
      }
      const auto k = static_cast<std::int64_t>(run.last - run.first) * g_.inner;
      const Product p = g_.product(end - begin, k, tap > 0);
      const std::byte* b =
          w_ + ((phase.taps[tap].number * g_.weights_of.rows + group_ * g_.weights_of.group_rows) * g_.weights_of.row +
                group_ * g_.weights_of.group_columns) *
                   size_;
      cpu_backend::run_units(p, packed_, b, c, 0, cpu_backend::units(p), scratch_);
      tap = run.last;
    }
    if (!g_.direct) spread(phase, begin, end);
  }

  /// Rows of sums go where their targets lie.
  void spread(const Phase& phase, std::int64_t begin, std::int64_t end) const {
    const auto& axes = g_.axes;
    for (std::int64_t row = begin; row < end; ++row) {
      std::int64_t rest = row, position = 0, pitch = 1;
      for (std::size_t i = 3; i-- > 0;) {
        position += (phase.first[i] + rest % phase.count[i] * axes[i].divisor) * pitch;
        pitch *= axes[i].targets;
        rest /= phase.count[i];
      }
      position += rest * pitch;
      std::memcpy(y_ + (position * g_.target_channels + group_ * g_.columns) * size_,
                  sums_ + (row - begin) * g_.columns * size_, static_cast<std::size_t>(g_.columns * size_));
    }
  }

  const Gathered& g_;
  const std::int64_t size_;
  const std::byte *x_, *w_;
  std::byte *y_, *packed_, *sums_, *scratch_;
  std::int64_t group_ = 0;
};

void find_covered(Gathered& g) {
  for (std::size_t i = 0; i < 3; ++i) {
    g.covered[i].resize(static_cast<std::size_t>(g.axes[i].targets));
    for (const Residue& r : residues_of(g.axes[i]))
      for (std::int64_t j = 0; j < r.count; ++j)
        g.covered[i][static_cast<std::size_t>(r.first + j * g.axes[i].divisor)] = 1;
  }
}

/// Targets of no phase: windows with gaps between them leave them out.
void clear_uncovered(const Gathered& g, const KernelArguments* arguments, std::int64_t example) {
  const auto& axes = g.axes;
  const auto& covered = g.covered;
  const std::int64_t bytes = g.target_channels * size_of(g.dtype);
  auto* y = static_cast<std::byte*>(arguments->slots[g.target]) + example * targets_of(axes) * bytes;
  for (std::size_t a = 0; a < covered[0].size(); ++a)
    for (std::size_t b = 0; b < covered[1].size(); ++b)
      for (std::size_t c = 0; c < covered[2].size(); ++c, y += bytes)
        if (!covered[0][a] || !covered[1][b] || !covered[2][c]) std::memset(y, 0, static_cast<std::size_t>(bytes));
}

BoundThunk bind_gathered(const ConvolutionCall& call, bool transposed, const Ways& ways) {
  const std::int64_t inner = call.source_channels / call.groups, columns = call.target_channels / call.groups;
  const GroupedWeights weights = transposed ? GroupedWeights{call.source_channels, columns, inner, 0}
                                            : GroupedWeights{inner, call.target_channels, 0, columns};
  const bool depthwise = ways.depthwise && is_depthwise(call.groups, call.source_channels, call.target_channels);
  if (ways.winograd)
    if (std::optional<BoundThunk> bound = bind_winograd(call, weights, ways.shared_slot)) return *std::move(bound);
  if (ways.strips && !depthwise)
    if (std::optional<BoundThunk> bound = bind_strips(call, weights)) return *std::move(bound);
  auto g = std::make_shared<Gathered>();
  static_cast<ConvolutionCall&>(*g) = call;
  if (depthwise) {
    g->way = Way::depthwise;
    BoundThunk bound = bind_depthwise(*g);
    bound.data = std::shared_ptr<const ConvolutionCall>(std::move(g));
    bound.image = image_of<Gathered>;
    return bound;
  }
  g->inner = inner;
  g->columns = columns;
  g->weights_of = weights;
  const std::int64_t targets = call.examples * targets_of(call.axes);
  BoundThunk bound{.extent = 0};
  bound.bytes = call.bytes();
  bound.flops = call.flops();
  if (targets * call.target_channels > 0) {
    g->phases = phases_of(call.axes);
    g->direct = std::ranges::all_of(call.axes, [](const WindowAxis& a) { return a.divisor == 1; });
    std::int64_t covered = 0;
    for (const Phase& phase : g->phases) covered += phase.count[0] * phase.count[1] * phase.count[2];
    g->covers = covered == targets_of(call.axes);
    if (!g->covers) find_covered(*g);
    choose_blocks(*g);
    g->packed_bytes = g->rows_at_once * g->pitch() + 64;
    g->sums_bytes = g->direct ? 0 : divide_up(g->rows_at_once * g->columns * size_of(call.dtype), 64) * 64 + 64;
    bound.worker_scratch = g->packed_bytes + g->sums_bytes + product_scratch(*g, bound.tiles);
    bound.extent = g->units + (g->covers ? 0 : call.examples);
  }
  bound.run = run_packed_convolution;
  bound.data = std::shared_ptr<const ConvolutionCall>(std::move(g));
  bound.image = image_of<Gathered>;
  return bound;
}

template <class Op>
ConvolutionCall call_of(const Graph& graph, int value, Symbols symbols, const Op& op, const WindowAxes& axes) {
  const Value& v = graph[value];
  const Shape x = graph[v.in[0]].spec.shape.evaluated(symbols), y = v.spec.shape.evaluated(symbols);
  return {v.spec.dtype,
          axes,
          x[0],
          dimension::evaluate(op.groups, symbols),
          x[-1],
          y[-1],
          storage_of(graph, v.in[0]),
          storage_of(graph, v.in[1]),
          value};
}

Shape spatial(const Shape& shape) { return Shape(std::span(shape.begin() + 1, shape.end() - 1)); }
Shape kernel(const Shape& shape) { return Shape(std::span(shape.begin(), shape.end() - 2)); }
template <class Op> WindowShapes shapes_of(const Op& op, const Shape& kernel, Symbols symbols) {
  return {op.strides, op.dilations, op.before.evaluated(symbols), kernel};
}

}  // namespace

std::int64_t ConvolutionCall::bytes() const {
  return examples * (targets_of(axes) * target_channels + sources_of(axes) * source_channels) * size_of(dtype);
}
std::int64_t ConvolutionCall::flops() const {
  std::int64_t places = 0;
  for (const Phase& phase : phases_of(axes))
    places += phase.count[0] * phase.count[1] * phase.count[2] * std::ssize(phase.taps);
  return 2 * examples * places * target_channels * (source_channels / groups);
}
std::int64_t KernelConvolutionCall::bytes() const {
  return examples * (targets_of(axes) * window_channels + sources_of(axes) * element_channels) * size_of(dtype);
}
std::int64_t KernelConvolutionCall::flops() const {
  return 2 * all_windows() * taps_of(axes) * (element_channels / groups) * window_channels;
}

namespace {

Ways ways_of(const LibraryOptions& options) {
  const auto enabled = [&](std::string_view name) { return !is_disabled(options.disable, name); };
  return {enabled("strips"), enabled("depthwise"), enabled("winograd"), options.shared_slot};
}

}  // namespace

BoundThunk bind_convolution(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options) {
  const Value& v = graph[value];
  const Convolution& op = *v.op.as<Convolution>();
  const Shape x = graph[v.in[0]].spec.shape.evaluated(symbols), w = graph[v.in[1]].spec.shape.evaluated(symbols);
  const WindowAxes axes =
      windows_to_elements(shapes_of(op, kernel(w), symbols), op.size.evaluated(symbols), spatial(x));
  return bind_gathered(call_of(graph, value, symbols, op, axes), false, ways_of(options));
}

BoundThunk bind_transposed_convolution(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options) {
  const Value& v = graph[value];
  const TransposedConvolution& op = *v.op.as<TransposedConvolution>();
  const Shape y = graph[v.in[0]].spec.shape.evaluated(symbols), w = graph[v.in[1]].spec.shape.evaluated(symbols);
  const WindowAxes axes =
      elements_to_windows(shapes_of(op, kernel(w), symbols), op.size.evaluated(symbols), spatial(y));
  return bind_gathered(call_of(graph, value, symbols, op, axes), true, ways_of(options));
}

void run_convolution(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& call = *static_cast<const ConvolutionCall*>(arguments->data);
  if (call.way == Way::depthwise) return run_depthwise(arguments, call, begin, end);
  if (call.way == Way::strips) return run_strips(arguments, call, begin, end);
  if (call.way == Way::winograd) return transform_weights(arguments, call, begin, end);
  run_packed_convolution(arguments, begin, end);
}
void run_packed_convolution(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& g = static_cast<const Gathered&>(*static_cast<const ConvolutionCall*>(arguments->data));
  GatheredProduct product(g, arguments);
  for (std::int64_t unit = begin; unit < end; ++unit)
    if (unit < g.units) product.run(unit);
    else clear_uncovered(g, arguments, unit - g.units);
}
void run_convolution_second(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  multiply_tiles(arguments, *static_cast<const ConvolutionCall*>(arguments->data), begin, end);
}

// ---------------------------------------------------------------- weights

namespace {

struct Weights : KernelConvolutionCall {
  Phase phase;                          // all windows
  std::int64_t inner = 0, columns = 0;  // channels of a group: elements, windows
  std::int64_t rows_at_once = 1, row_blocks = 1, columns_at_once = 1, column_blocks = 1;
  std::int64_t windows_at_once = 256;
  std::int64_t rows() const { return taps_of(axes) * inner; }
  std::int64_t pitch() const { return pitch_of(rows_at_once, size_of(dtype)); }
  std::int64_t packed_bytes() const { return windows_at_once * pitch() + 64; }
  Product product(std::int64_t rows, std::int64_t columns_now, std::int64_t k, bool resume) const {
    return {.dtype = dtype,
            .m = rows,
            .n = columns_now,
            .k = k,
            .a_row = 1,
            .a_column = pitch() / size_of(dtype),
            .b_row = window_channels,
            .c_row = window_channels,
            .resume = resume};
  }
};
void for_each_vector(const Weights& w, const auto& visit) { visit(w.phase.taps); }

/// Rows and columns of the result, as few as make enough units; chains are never cut.
void choose_blocks(Weights& w) {
  const std::int64_t rows = w.rows();
  w.row_blocks = divide_up(rows, block_rows);
  if (w.row_blocks * w.groups < 4)
    w.row_blocks = std::clamp<std::int64_t>(divide_up(4, w.groups), 1,
                                            std::max(divide_up(rows, 28), std::min<std::int64_t>(rows, 2)));
  w.rows_at_once = divide_up(rows, w.row_blocks);
  if (w.rows_at_once > 14) w.rows_at_once = divide_up(w.rows_at_once, 2) * 2;
  w.row_blocks = divide_up(rows, w.rows_at_once);
  if (w.row_blocks * w.groups < 4) w.column_blocks = std::max<std::int64_t>(1, w.columns / 32);
  w.columns_at_once = divide_up(w.columns, w.column_blocks);
  w.column_blocks = divide_up(w.columns, w.columns_at_once);
}

/// Rows [first, last) x columns of group `group`: windows are packed block by block.
void run_weights(const Weights& w, const KernelArguments* arguments, std::int64_t unit) {
  const std::int64_t size = size_of(w.dtype), column_block = unit % w.column_blocks,
                     row_block = unit / w.column_blocks % w.row_blocks, group = unit / (w.column_blocks * w.row_blocks);
  const std::int64_t first = row_block * w.rows_at_once, last = std::min(w.rows(), first + w.rows_at_once);
  const std::int64_t column = group * w.columns + column_block * w.columns_at_once;
  const std::int64_t columns = std::min(w.columns_at_once, (group + 1) * w.columns - column);
  const auto* elements = static_cast<const std::byte*>(arguments->slots[w.elements]);
  const std::int64_t position = w.element_channels * size;
  const PieceCopier copier{w.axes,
                           w.phase,
                           elements + group * w.inner * size,
                           elements + w.examples * sources_of(w.axes) * position,
                           position,
                           w.pitch(),
                           w.inner * size};
  const auto* dy = static_cast<const std::byte*>(arguments->slots[w.windows]) + column * size;
  auto* dw = static_cast<std::byte*>(arguments->slots[w.target]) + (first * w.window_channels + column) * size;
  auto* packed = static_cast<std::byte*>(arguments->scratch);
  std::byte* scratch = packed + w.packed_bytes();
  for (std::int64_t begin = 0; begin < w.all_windows() || begin == 0; begin += w.windows_at_once) {
    const std::int64_t end = std::min(w.all_windows(), begin + w.windows_at_once);
    for (std::int64_t row = first; row < last;) {
      const auto tap = static_cast<std::size_t>(row / w.inner);
      const std::int64_t taps = copier.neighbours(tap, w.phase.taps.size()), channel = row % w.inner;
      const std::int64_t count = std::min(taps * w.inner - channel, last - row);
      copier.copy({tap, taps, channel * size, (channel + count) * size}, begin, end, packed + (row - first) * size);
      row += count;
    }
    const Product p = w.product(last - first, columns, end - begin, begin > 0);
    cpu_backend::run_units(p, packed, dy + begin * w.window_channels * size, dw, 0, cpu_backend::units(p), scratch);
  }
}

}  // namespace

BoundThunk bind_kernel_convolution(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options) {
  const Ways ways = ways_of(options);
  const Value& v = graph[value];
  const KernelConvolution& op = *v.op.as<KernelConvolution>();
  const Shape x = graph[v.in[0]].spec.shape.evaluated(symbols), y = graph[v.in[1]].spec.shape.evaluated(symbols);
  auto w = std::make_shared<Weights>();
  static_cast<KernelConvolutionCall&>(*w) = {
      v.spec.dtype,
      windows_to_elements(shapes_of(op, op.size.evaluated(symbols), symbols), spatial(y), spatial(x)),
      x[0],
      dimension::evaluate(op.groups, symbols),
      x[-1],
      y[-1],
      storage_of(graph, v.in[0]),
      storage_of(graph, v.in[1]),
      value};
  const bool depthwise = ways.depthwise && is_depthwise(w->groups, x[-1], y[-1]);
  if (ways.winograd)
    if (std::optional<BoundThunk> bound = bind_winograd(*w, ways.shared_slot)) return *std::move(bound);
  if (depthwise) w->way = Way::depthwise;
  else if (ways.strips)
    if (std::optional<BoundThunk> bound = bind_strips(*w)) return *std::move(bound);
  BoundThunk bound{.extent = 0};
  if (v.spec.shape.evaluated(symbols).size() > 0 && depthwise) bound = bind_depthwise(*w);
  else if (v.spec.shape.evaluated(symbols).size() > 0) {
    w->inner = x[-1] / w->groups;
    w->columns = y[-1] / w->groups;
    // Without windows there are no phases; chains of nothing are zeros.
    if (w->all_windows() > 0) w->phase = phases_of(w->axes).front();
    else w->phase.taps.resize(static_cast<std::size_t>(taps_of(w->axes)));
    choose_blocks(*w);
    bound.extent = w->groups * w->row_blocks * w->column_blocks;
    bound.bytes = w->bytes();
    bound.flops = w->flops();
    std::size_t most = 0;
    const auto tail = [](std::int64_t all, std::int64_t at_once) {
      return all % at_once == 0 ? at_once : all % at_once;
    };
    for (std::int64_t rows : {w->rows_at_once, tail(w->rows(), w->rows_at_once)})
      for (std::int64_t columns : {w->columns_at_once, tail(w->columns, w->columns_at_once)})
        for (std::int64_t k : {w->windows_at_once, w->all_windows() % w->windows_at_once}) {
          const Product p = w->product(rows, columns, k, false);
          most = std::max(most, cpu_backend::scratch_bytes(p));
          bound.tiles |= cpu_backend::tiles_for(p);
        }
    bound.worker_scratch = w->packed_bytes() + static_cast<std::int64_t>(most);
  }
  if (!depthwise) bound.run = run_packed_weights;
  bound.data = std::shared_ptr<const KernelConvolutionCall>(std::move(w));
  bound.image = image_of<Weights>;
  return bound;
}

void run_kernel_convolution(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& call = *static_cast<const KernelConvolutionCall*>(arguments->data);
  if (call.way == Way::depthwise) return run_depthwise(arguments, call, begin, end);
  if (call.way == Way::strips) return run_strips(arguments, call, begin, end);
  if (call.way == Way::winograd) return sum_tiles(arguments, call, begin, end);
  run_packed_weights(arguments, begin, end);
}
void run_packed_weights(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& w = static_cast<const Weights&>(*static_cast<const KernelConvolutionCall*>(arguments->data));
  for (std::int64_t unit = begin; unit < end; ++unit) run_weights(w, arguments, unit);
}
void run_kernel_convolution_second(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  transform_tile_sums(arguments, *static_cast<const KernelConvolutionCall*>(arguments->data), begin, end);
}

}  // namespace gradus::library
