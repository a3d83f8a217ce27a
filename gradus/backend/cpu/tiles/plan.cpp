/// How a product is cut.
#include "gradus/backend/cpu/tiles/plan.h"
#include "gradus/base/divide.h"
#include "gradus/base/error.h"
#include "gradus/compiler/target_model.h"

namespace gradus::cpu_backend {
namespace {

constexpr std::int64_t most_kept_bytes = 4 << 20;  // of a packed once for all blocks of columns
constexpr std::int64_t block_bytes = 1 << 20;      // of a block of packed b, which waits in the last cache
constexpr std::int64_t amx_deepest = 512;          // k of 32 rows of a that stay in 48 KiB: 32 KiB
constexpr std::int64_t deep = 384;                 // from this many steps on, panels of a pass by a panel of b
constexpr std::int64_t small_bytes = 128 << 10;    // of b in place, past which rows go as a whole: a thread's rows are
                                                   // then neighbours, as they are for the next reader of c
constexpr std::int64_t many_panels = 38;           // from this many on, one more or less hardly changes their height
constexpr std::int64_t most_resident = 8;          // more rows of c than this at a time fall into one set of a cache
constexpr std::int64_t most_passing = 4 << 20;     // bytes of b that passes by again for every few panels
constexpr std::int64_t enough_panels = 16;         // for an even load if each is as wide as c
constexpr std::int64_t worth_turning = 64;         // columns and steps from which on AVX2 reads a row by row
constexpr std::int64_t columns_worth_turning = 128, steps_worth_turning = 256;  // AVX-512, step by step
constexpr std::int64_t near_panel = 256;  // steps of a panel of b that stays near: 32 KiB
constexpr std::int64_t narrow = 256;      // columns: pieces of fewer have no gaps, and are done in one call

constexpr std::int64_t far_bytes = 512 << 10;  // of b, past which it comes from far away
constexpr std::int64_t most_of_few = 16;  // rows, in panels of few, which all pass by a block of b while it is near

/// Rows of a panel of few, if the panels are of one height.
std::int64_t few_rows_of(std::int64_t m) { return divide_up(m, divide_up(m, std::int64_t{TileSizes::few_rows})); }

/// An internal_check whose text is ready: object files take it along, and they have no streams.
void check(bool ok, const char* what) {
  if (!ok) [[unlikely]]
    throw InternalError(what);
}

void check_product(const Product& p) {
  const bool is_known =
      p.dtype == f32 || p.dtype == f64 || p.dtype == bf16 || (is_integer(p.dtype) && size_of(p.dtype) >= 4);
  check(is_known, "internal fault: product of a dtype that has no tiles");
  check(p.dtype == bf16 || !p.wide, "internal fault: wide product of another dtype than bf16");
  check(!p.resume || p.wide || p.dtype != bf16,
        "internal fault: a product of bf16 goes on, but its sums have been rounded");
  check(std::min({p.batch, p.m, p.n, p.k}) >= 0, "internal fault: product of negative size");
  check(std::min({p.a_row, p.a_column, p.a_batch, p.b_row, p.b_column, p.b_batch, p.c_row, p.c_batch}) >= 0,
        "internal fault: product with a negative stride");
  check(!p.is_followed || (!p.wide && p.c_row == p.n && (p.batch == 1 || p.c_batch == p.m * p.n)),
        "internal fault: a product is followed, but its rows do not follow each other");
  check((p.a_row == 1 || p.a_column == 1) && (p.b_row == 1 || p.b_column == 1),
        "internal fault: product of an operand with neither adjacent rows nor adjacent columns");
}

/// Many matrices times one are a single tall one, if its rows follow each other. A single column is computed as a row
/// (c^T = b^T a^T), whose elements are neighbours.
Product simplify(Product p) {
  const bool rows_follow = p.a_batch == p.m * p.a_row && p.c_batch == p.m * p.c_row;
  if (p.batch > 1 && p.b_batch == 0 && rows_follow) p.m *= p.batch, p.batch = 1;
  if (p.n == 1 && p.m > 1 && p.c_row == 1) {
    std::swap(p.m, p.n);
    std::swap(p.a_row, p.b_column);
    std::swap(p.a_column, p.b_row);
    std::swap(p.a_batch, p.b_batch);
    p.c_row = p.n;
  }
  return p;
}

Form form_of(const Product& p) {
  if (p.dtype != bf16) return Form::plain;
  const bool has_pairs = processor_of(p.isa).has_pair_tiles;
  if (has_pairs && p.amx && !p.wide) return Form::amx;
  return has_pairs && p.pair_tiles ? Form::pairs : Form::widened;
}

}  // namespace

Plan::Plan(const Product& given)
    : product(simplify(given)),
      swapped(given.n != product.n),
      form(form_of(product)),
      element(size_of(product.dtype)),
      c_element(product.wide ? size_of(f32) : element) {
  const Product& p = product;
  check_product(p);
  const TileSizes& sizes = processor_of(p.isa).tiles;
  table = tiles_of(p.isa);
  size = form == Form::plain ? element : size_of(f32), lanes = sizes.vector_bytes / size;
  outer_batch = p.b_batch == 0 ? 1 : p.batch, inner_batch = p.b_batch == 0 ? p.batch : 1;
  vectors = p.n <= lanes ? 1 : 2, width = vectors * lanes;
  wide = is_wide(sizes);
  if (wide) width = sizes.wide_vectors[few_rows_of(p.m) - 1] * lanes;
  row_panels = wide ? p.m / few_rows_of(p.m)
                    : divide_up(p.m, form == Form::amx ? AmxTiles::most * AmxTiles::rows : sizes.rows[vectors - 1]);
  // Three or five panels would be an uneven load for two threads.
  const bool are_few = p.batch * row_panels * divide_up(p.n, width) < 8;
  if (!wide && row_panels % 2 == 1 && row_panels > 1 && (are_few || row_panels >= many_panels)) ++row_panels;
  if (row_panels > 0) panel_rows = p.m / row_panels, taller_panels = p.m % row_panels;
  choose_packing();
  cut_columns();
}

bool Plan::is_wide(const TileSizes& sizes) const {
  const Product& p = product;
  if (form != Form::plain || p.b_column != 1 || p.m < 1 || p.m > most_of_few || inner_batch > 1) return false;
  if (p.m > TileSizes::few_rows && p.k * p.n * element <= far_bytes) return false;
  const std::int64_t rows = few_rows_of(p.m);
  return p.m % rows == 0 && p.n >= sizes.wide_vectors[rows - 1] * lanes;
}

void Plan::choose_packing() {
  const Product& p = product;
  // Lines a power of two apart fall into one set of the cache.
  const bool is_narrow = lanes * size < 64 && p.n > 2 * width;  // a tile reads little of each line
  const std::int64_t few = p.a_row != 1 ? 256 : is_narrow ? 31 : 128;
  const bool aliases = std::max(p.a_row, p.a_column) * element % 2048 == 0 && p.k > few;
  const bool has_pairs = a_by_rows() && p.k % 2 == 0;
  pack_a = (aliases && p.m > 4) || form == Form::widened || (form == Form::pairs && !has_pairs) ||
           (form == Form::amx && !a_by_rows());
  if (form == Form::plain && processor_of(p.isa).turns_low_tiles && !a_by_rows()) {
    pack_a = pack_a || (p.m > 4 && p.n >= worth_turning && p.k >= worth_turning);
    turn_a = pack_a;
  }
  // One stream of lines instead of one a row.
  const bool has_near_panels = processor_of(p.isa).has_near_panels && p.near_panels;
  if (form == Form::plain && has_near_panels && a_by_rows() && row_panels >= enough_panels)
    turn_a = p.n >= columns_worth_turning && p.k >= steps_worth_turning;
  pack_a = pack_a || turn_a;
  // Rows adjacent: panels share cache lines, so several are packed at once.
  group = a_by_rows() || form == Form::amx
              ? 1
              : std::max<std::int64_t>(1, most_together * row_panels / std::max<std::int64_t>(p.m, 1));
  const std::int64_t b_bytes = p.n * p.k * element, rows = p.m * inner_batch;
  pack_b = form != Form::plain || p.b_column != 1 || (b_bytes > 160 << 10 && rows > 64) ||
           (b_bytes > far_bytes && rows > 16);
  streamed = !pack_a && !pack_b && b_bytes > far_bytes;
  // Where panels of b fit into the first-level cache, k is blocked so that they stay there, except where sums live in
  // registers alone.
  const std::int64_t deepest = has_near_panels && pack_b && !p.is_followed ? near_panel : TargetModel().deepest_product;
  if (wide) depth = p.k;
  else if (streamed) depth = std::min<std::int64_t>(p.k, 64);  // more pages are out of reach of the address cache
  else if ((!pack_a && !pack_b) || p.k <= deepest || form != Form::plain) depth = p.k;
  else depth = round_up(divide_up(p.k, divide_up(p.k, deepest)), 16);
  // While a panel of b is in the second-level cache, so are these rows of a. Sums are most of the traffic of short
  // chains: they are written along rows, past a block of b that is in that cache.
  const std::int64_t panel_bytes = std::max<std::int64_t>(1, divide_up(p.m, row_panels ? row_panels : 1) * size) *
                                   std::max<std::int64_t>(1, steps(depth));
  const std::int64_t near = std::min(most_resident, second_level_cache() / 8 * 3 / panel_bytes);
  is_deep = pack_b && form != Form::amx && (steps(depth) >= deep || has_whole_rows());
  resident = is_deep ? std::max(group, near / group * group) : group;
  if (!has_whole_rows()) return;
  // Rows of c that stay near until the epilogue reads them.
  const std::int64_t panels = second_level_cache() / 2 / (most_rows() * p.n * element);
  resident = std::max(group, std::min(resident, panels) / group * group);
}

bool Plan::has_whole_rows() const {
  const Product& p = product;
  return p.is_followed && form != Form::amx && pack_b && p.n > 0 && p.k * p.n * element <= most_passing &&
         group * most_rows() * p.n * element <= second_level_cache() &&
         outer_batch * inner_batch * row_panels >= enough_panels;
}

void Plan::cut_columns() {
  const std::int64_t n = product.n, row_units = outer_batch * inner_batch * row_panels;
  column_blocks = 0;
  if (n == 0 || row_units == 0) return;
  std::int64_t most = width;
  const std::int64_t bytes = is_deep ? block_bytes : second_level_cache() / 8 * 5;
  if (pack_b) most = bytes / std::max<std::int64_t>(steps(depth) * size, 1) / width * width;
  else if (streamed) most = 512;
  else if (product.k * n * element <= small_bytes) most = n;
  const std::int64_t enough = round_up(divide_up(n, divide_up(32, row_units)), width);  // 32 units or more
  // Packing a again for every block has to be worth it, so has reading a few columns of every row of b.
  const std::int64_t least = !wide && (pack_a || streamed) ? 4 * width : width;
  block = has_whole_rows() ? round_up(n, width) : std::max(std::min(most, enough), least);
  if (product.is_followed && !has_whole_rows()) {
    const std::int64_t near = second_level_cache() / 2 / (resident * most_rows() * element) / width * width;
    block = std::min(block, std::max(near, least));
  }
  // Two threads that shared a block of few rows would both pack it.
  std::int64_t count = divide_up(n, block);
  if (pack_b && count > 1 && count % 2 == 1 && row_units < 64 && n > count * width) ++count;
  block = round_up(divide_up(n, count), width);  // of about equal width
  column_blocks = divide_up(n, block);
  if (column_blocks == 2 && panels() >= many_panels && panels() % 2 == 0) parts = 2;
  keep_a = pack_a && column_blocks > 1 && inner_batch == 1 && groups() * pauses() * a_group_bytes() <= most_kept_bytes;
}

Range Plan::range_of(std::int64_t begin, std::int64_t end) const {
  const std::int64_t matrices = column_blocks * panels(), panels_of_part = panels() / parts;
  const std::int64_t part = begin % matrices / (column_blocks * panels_of_part), within = begin % panels_of_part;
  const std::int64_t first = part * panels_of_part + within;
  return {.outer = begin / matrices,
          .column_block = begin / panels_of_part % column_blocks,
          .begin = first,
          .end = first + std::min(panels_of_part - within, end - begin)};
}

std::int64_t Plan::b_panel_bytes_of(std::int64_t steps) const { return round_up(steps, 16) * size * width + 64; }

std::int64_t Plan::a_pitch_bytes_of(std::int64_t steps) const {
  const std::int64_t rows = std::min(group * divide_up(product.m, row_panels), product.m);
  if (turn_a && a_by_rows()) return round_up(rows, lanes) * size;  // whole lines already
  // Packing writes whole pairs of vectors, but for rows that are copied.
  const bool copies_rows = packed_a_by_rows() && !turn_a;
  const std::int64_t bytes = (copies_rows ? steps : round_up(turn_a ? steps : rows, 2 * lanes)) * size;
  return (divide_up(bytes, 64) | 1) * 64;
}

std::int64_t Plan::a_group_bytes_of(std::int64_t steps) const {
  const std::int64_t rows = std::min(group * divide_up(product.m, row_panels), product.m);
  // Packing for AMX transposes squares of 16 rows.
  if (form == Form::amx) return a_pitch_bytes_of(steps) * round_up(height(), AmxTiles::rows) + 128;
  if (turn_a) return a_pitch_bytes_of(steps) * round_up(a_by_rows() ? steps : rows, lanes);  // whole squares
  return a_pitch_bytes_of(steps) * (a_by_rows() ? rows : steps) + 128;
}

std::int64_t Plan::packed_a_bytes() const {
  if (!pack_a) return 0;
  // Residents may begin amid a group.
  const std::int64_t near = resident / group + 1;
  return a_group_bytes() * (keep_a ? groups() * pauses() : std::min(groups(), near));
}

std::int64_t Plan::sums_bytes() const {
  if (rounds()) return TileTable::heights * width * size;
  if (form == Form::amx) return sums_panel_bytes() * (amx_depth() < product.k ? block / width : 1);
  return 0;
}

Plan::Scratch Plan::scratch() const {
  Scratch s{};
  s.packed_a = s.packed_b + packed_b_bytes();
  s.sums = s.packed_a + packed_a_bytes();
  s.pairs = s.sums + sums_bytes();
  s.tail = s.pairs + pairs_bytes();
  s.piece = s.tail + tail_bytes();
  s.kept = s.piece + piece_bytes();
  s.bytes = s.kept + kept_bytes();
  return s;
}

std::int64_t Plan::amx_depth() const {
  return round_up(divide_up(product.k, std::max<std::int64_t>(1, divide_up(product.k, amx_deepest))), AmxTiles::k);
}

Piece Plan::piece(const void* c, std::int64_t batch, std::int64_t row, std::int64_t rows, std::int64_t column,
                  std::int64_t columns) const {
  return {.c = c,
          .rows = rows,
          .columns = columns,
          .pitch = has_pieces() ? piece_pitch_bytes() / element : product.c_row,
          .first = batch * product.c_batch + row * product.c_row + column};
}

std::int64_t Plan::piece_pitch_bytes() const {
  const std::int64_t bytes = std::min(block, product.n) * element;
  return std::min(block, product.n) < narrow ? bytes : (divide_up(bytes, 64) | 1) * 64;
}

std::int64_t Plan::piece_bytes() const {
  if (!has_pieces()) return 0;
  const std::int64_t rows = resident * most_rows();
  return round_up(rows * piece_pitch_bytes(), 64) + 64;  // vector reads go behind the last one
}

std::int64_t Plan::pairs_bytes() const {
  if (form != Form::widened) return 0;
  return std::max(pair_panel_bytes() * (block / width), a_group_bytes_of((depth + 1) / 2));
}

}  // namespace gradus::cpu_backend
