/// Matrix products from the tiles of the CPU backend.
///
/// A matrix of weights that the program updates in place is best read by the threads that write it. Elementwise updates
/// are divided by rows, so a product with few rows times such weights is divided along k, by rows of the weights.
/// Divided by columns, each thread would read all rows and make the other one wait with its update for half of all
/// lines. Its chains stay as they are: threads take turns, piece after piece of the result, and each continues the sums
/// of the one before it.
#include "gradus/backend/cpu/run/data_image.h"
#include "gradus/backend/cpu/tiles/product.h"
#include "gradus/backend/cpu/tiles/used_tiles.h"
#include <algorithm>
#include "gradus/backend/cpu/kernels/kernels.h"
#include "gradus/base/divide.h"
#include "gradus/compiler/pipeline.h"
#include "gradus/compiler/steps.h"
#include "gradus/compiler/turns.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/matmul_ops.h"

namespace gradus::library {
namespace {

struct Call {
  cpu_backend::Product product;
  int a, b, c;                  // slots
  std::int64_t most_steps = 0;  // in turns: of k at a time, so few that nothing is packed
};

constexpr std::int64_t rows_of_turns = 8;  // of b, so that members' parts are about those that they update

/// Pieces that threads hand on: enough that the last thread begins soon, each of about the rows of a tile.
class Pieces {
 public:
  explicit Pieces(const cpu_backend::Product& p)
      : rows_(divide_up(p.m, p.m > 64 ? 28 : 14)), width_(128 / size_of(p.dtype)), product_(p) {}
  template <class Body> void for_each(Body&& body) const {
    for (std::int64_t j = 0; j < product_.n; j += width_)
      for (std::int64_t i = 0; i < rows_; ++i) {
        const std::int64_t first = product_.m * i / rows_, past = product_.m * (i + 1) / rows_;
        body(first, past - first, j, std::min(width_, product_.n - j));
      }
  }
  /// The number of steps of k that need no packing, for which a member of a team has no room; 0 if those are too few.
  /// The largest piece decides: smaller ones pack no more.
  std::int64_t most_steps() const {
    constexpr std::int64_t least = 128;
    cpu_backend::Product largest = product_;
    largest.m = divide_up(product_.m, rows_), largest.n = std::min(width_, product_.n);
    while (largest.k >= least && cpu_backend::scratch_bytes(largest) > 0) largest.k = divide_up(largest.k, 2);
    return largest.k >= least ? largest.k : 0;
  }

 private:
  std::int64_t rows_, width_;
  const cpu_backend::Product& product_;
};

void run_in_turns(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& call = *static_cast<const Call*>(arguments->data);
  const cpu_backend::Product& p = call.product;
  const std::int64_t size = size_of(p.dtype), first = begin * rows_of_turns, past = std::min(end * rows_of_turns, p.k);
  const std::int64_t steps = divide_up(std::max<std::int64_t>(past - first, 0), call.most_steps);
  const auto at = [&](int slot, std::int64_t element) {
    return static_cast<std::byte*>(arguments->slots[slot]) + element * size;
  };
  Pieces(p).for_each([&](std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns) {
    cpu_backend::Product part = p;
    part.m = rows, part.n = columns;
    arguments->member->await_turn();
    for (std::int64_t i = 0; i < steps; ++i) {
      const std::int64_t k = first + (past - first) * i / steps;
      part.k = first + (past - first) * (i + 1) / steps - k, part.resume = k > 0;
      cpu_backend::run_units(part, at(call.a, row * p.a_row + k * p.a_column), at(call.b, k * p.b_row + column),
                             at(call.c, row * p.c_row + column), 0, cpu_backend::units(part), nullptr);
    }
    arguments->member->end_turn();
  });
}

/// Rows of c from the same rows of a, matrix after matrix.
void run_by_rows(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& call = *static_cast<const Call*>(arguments->data);
  cpu_backend::Product part = call.product;
  part.batch = 1, part.m = end - begin;
  const auto at = [&](int slot, std::int64_t element) {
    return static_cast<std::byte*>(arguments->slots[slot]) + element * size_of(part.dtype);
  };
  cpu_backend::run_units(part, at(call.a, begin * part.a_row), arguments->slots[call.b], at(call.c, begin * part.c_row),
                         0, cpu_backend::units(part), arguments->scratch);
}

/// Every thread reads all of b then, so it needs some rows to do with it, and b near; each would pack its own copy.
std::int64_t scratch_by_rows(const void* data, std::int64_t rows) {
  constexpr std::int64_t fewest = 8, most_bytes = 512 << 10;
  cpu_backend::Product part = static_cast<const Call*>(data)->product;
  part.batch = 1, part.m = rows;
  if (rows < fewest || part.k * part.n * size_of(part.dtype) > most_bytes || cpu_backend::packs_b(part)) return -1;
  return static_cast<std::int64_t>(cpu_backend::scratch_bytes(part));
}

Call call_of(const Graph& graph, int value, Symbols symbols) {
  const Value& v = graph[value];
  const Matmul& op = *v.op.as<Matmul>();
  const Shape a = graph[v.in[0]].spec.shape.evaluated(symbols), b = graph[v.in[1]].spec.shape.evaluated(symbols);
  const Shape c = v.spec.shape.evaluated(symbols);
  Call call;
  cpu_backend::Product& p = call.product;
  p.dtype = v.spec.dtype;
  p.m = c[-2];
  p.n = c[-1];
  p.k = op.transpose_a ? a[-2] : a[-1];
  p.batch = 1;
  for (int i = 0; i < c.rank() - 2; ++i) p.batch *= c[i];
  p.a_row = op.transpose_a ? 1 : a[-1];
  p.a_column = op.transpose_a ? a[-1] : 1;
  p.a_batch = a.rank() == 2 ? 0 : a[-1] * a[-2];
  p.b_row = op.transpose_b ? 1 : b[-1];
  p.b_column = op.transpose_b ? b[-1] : 1;
  p.b_batch = b.rank() == 2 ? 0 : b[-1] * b[-2];
  p.c_row = c[-1];
  p.c_batch = c[-1] * c[-2];
  call.a = storage_of(graph, v.in[0]);
  call.b = storage_of(graph, v.in[1]);
  call.c = value;
  return call;
}

std::int64_t elements_of_result(const cpu_backend::Product& p) { return p.batch * p.m * p.n; }

/// The cost of the product alone.
BoundThunk bound_for(const Graph& graph, int value, const cpu_backend::Product& p, Symbols symbols) {
  const std::int64_t results = elements_of_result(p);
  BoundThunk bound{.extent = results == 0 ? 0 : cpu_backend::units(p), .cut = Cut::by_kernel};
  bound.bytes = results * size_of(p.dtype);
  for (int operand : graph[value].in)
    bound.bytes += graph[operand].spec.shape.evaluated(symbols).size() * size_of(p.dtype);
  bound.flops = 2 * results * p.k;
  bound.worker_scratch = static_cast<std::int64_t>(cpu_backend::scratch_bytes(p));
  bound.tiles = cpu_backend::tiles_for(p);
  return bound;
}

/// A product whose pieces are handed on to loops over elements.
struct FollowedCall : Call {
  KernelFunction loops = nullptr;
  const void* data = nullptr;  // of the loops: i64 values
  std::int64_t words = 0;
  std::shared_ptr<const void> kept = {};  // keeps them alive
  std::int64_t slots = 0;                 // how many they may name
  std::int64_t table = 0;                 // where in the worker's scratch a table of slots of its own lies
};

DataImage image_of_followed(const void* data) {
  const FollowedCall& call = *static_cast<const FollowedCall*>(data);
  DataImage image = DataImage::of_bytes(data, sizeof call);
  const auto offset = [&](const auto& member) {
    return static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&member) - static_cast<const std::byte*>(data));
  };
  std::memset(image.bytes.data() + offset(call.kept), 0, sizeof call.kept);
  image.pointers.push_back({.offset = offset(call.loops), .code = call.loops});
  image.pointers.push_back({.offset = offset(call.data),
                            .to = std::make_shared<const DataImage>(DataImage::of_words(call.data, call.words))});
  return image;
}

/// The loops see the piece where the product would lie.
struct Following {
  const FollowedCall& call;
  KernelArguments arguments;
  void** slots;

  void run(const cpu_backend::Piece& piece) {
    const std::int64_t size = size_of(call.product.dtype);
    const bool is_whole = piece.pitch == piece.columns && piece.columns == call.product.n;
    const std::int64_t rows = is_whole ? 1 : piece.rows,
                       columns = is_whole ? piece.rows * piece.columns : piece.columns;
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t first = piece.first + i * call.product.n;
      const auto c = reinterpret_cast<std::uintptr_t>(piece.c) + static_cast<std::uintptr_t>(i * piece.pitch * size);
      slots[call.c] = reinterpret_cast<void*>(c - static_cast<std::uintptr_t>(first * size));
      call.loops(&arguments, first, first + columns);
    }
  }
};

}  // namespace

BoundThunk bind_matmul(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options) {
  auto call = std::make_shared<Call>(call_of(graph, value, symbols));
  const cpu_backend::Product& p = call->product;
  BoundThunk bound = bound_for(graph, value, p, symbols);
  if (!is_disabled(options.disable, "turns") && is_in_turns(graph, value, symbols, options.target))
    call->most_steps = Pieces(p).most_steps();
  if (call->most_steps > 0) bound.in_turns = run_in_turns, bound.turns = divide_up(p.k, rows_of_turns);
  const Value& v = graph[value];
  if (!v.op.as<Matmul>()->transpose_a && graph[v.in[1]].spec.shape.rank() == 2)
    bound.by_rows = run_by_rows, bound.rows = p.batch * p.m, bound.scratch_by_rows = scratch_by_rows;
  bound.data = std::move(call);
  bound.image = image_of<Call>;
  return bound;
}

BoundThunk bind_followed_matmul(const Graph& graph, int value, const Thunk& loops, Symbols symbols) {
  auto call = std::make_shared<FollowedCall>(FollowedCall{call_of(graph, value, symbols)});
  cpu_backend::Product& p = call->product;
  p.is_followed = true;
  BoundThunk bound = bound_for(graph, value, p, symbols);
  const auto extent = [&](std::int64_t d) { return dimension::evaluate(d, symbols); };
  const BoundThunk after =
      loops.bind ? loops.bind(symbols)
                 : BoundThunk{.data = loops.data, .bytes = extent(loops.bytes), .flops = extent(loops.flops)};
  const std::int64_t result_bytes = elements_of_result(p) * size_of(p.dtype);
  bound.bytes += std::max<std::int64_t>(0, after.bytes - 2 * result_bytes);  // the product is neither stored nor read
  bound.flops += after.flops;
  if (cpu_backend::needs_c(p)) bound.shared_scratch = result_bytes;
  call->loops = loops.run, call->data = after.data.get(), call->kept = after.data, call->words = loops.words;
  call->slots = graph.size();
  call->table = round_up(bound.worker_scratch, 64);
  bound.worker_scratch = call->table + call->slots * static_cast<std::int64_t>(sizeof(void*));
  bound.data = std::move(call);
  bound.image = image_of_followed;
  return bound;
}

void run_followed_matmul(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& call = *static_cast<const FollowedCall*>(arguments->data);
  void* const* slots = arguments->slots;
  const auto table = reinterpret_cast<void**>(static_cast<std::byte*>(arguments->scratch) + call.table);
  std::copy_n(slots, call.slots, table);
  Following following{call, *arguments, table};
  following.arguments.slots = table, following.arguments.data = call.data, following.arguments.scratch = nullptr;
  const cpu_backend::Epilogue epilogue{
      [](void* state, const cpu_backend::Piece& piece) { static_cast<Following*>(state)->run(piece); }, &following};
  cpu_backend::run_units(call.product, slots[call.a], slots[call.b], slots[call.c], begin, end, arguments->scratch,
                         epilogue, arguments->share);
}

void run_matmul(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& call = *static_cast<const Call*>(arguments->data);
  void* const* slots = arguments->slots;
  cpu_backend::run_units(call.product, slots[call.a], slots[call.b], slots[call.c], begin, end, arguments->scratch, {},
                         arguments->share);
}

}  // namespace gradus::library
