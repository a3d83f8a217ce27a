/// The register tile. All sums stay in registers through the runs and one loop over k. Counting and prefetching would
/// take as many instructions as a step's sums of AVX2, and half as many as those of AVX-512: several steps follow each
/// other in one turn, with copies of the body for operands whose steps are known. Masks exist only in the copy for
/// edges: they cost registers (AVX2) or a port (AVX-512); another copy packs b while it is read.
#include "gradus/backend/cpu/tiles/emitter/tile.h"
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsX86.h>
#include "gradus/backend/cpu/tiles/emitter/ir.h"
#include "gradus/backend/cpu/tiles/table.h"

namespace gradus::cpu_backend {
namespace {

class TileEmitter {
 public:
  TileEmitter(llvm::Module& module, const Tile& tile, const std::string& name)
      : tile_(tile),
        b_(module.getContext()),
        vector_(llvm::FixedVectorType::get(tile.element, tile.lanes)),
        size_(static_cast<int64_t>(tile.element->getPrimitiveSizeInBits()) / 8) {
    llvm::Type *p = b_.getPtrTy(), *i = b_.getInt64Ty();
    function_ = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), {p, p, p, p, i, i}, false),
                                       llvm::Function::InternalLinkage, name, module);
    a_ = function_->getArg(0), right_ = function_->getArg(1), c_ = function_->getArg(2);
    columns_ = function_->getArg(4), resume_ = function_->getArg(5);
  }

  llvm::Function* emit() {
    b_.SetInsertPoint(llvm::BasicBlock::Create(b_.getContext(), "entry", function_));
    V shape = function_->getArg(3);
    k_ = field(b_, shape, 0), a_row_ = field(b_, shape, 1), a_step_ = field(b_, shape, 2);
    b_step_ = field(b_, shape, 3), c_row_ = field(b_, shape, 4), b_ahead_ = field(b_, shape, 5);
    next_ = field(b_, shape, 6), later_step_ = field(b_, shape, 8), runs_ = field(b_, shape, 9);
    later_ = b_.CreateLoad(b_.getPtrTy(), at(b_, shape, int64_t{8} * 7));
    places_ = b_.CreateLoad(b_.getPtrTy(), at(b_, shape, int64_t{8} * 10));
    copy_ = b_.CreateLoad(b_.getPtrTy(), at(b_, shape, int64_t{8} * 11));
    V full = b_.CreateICmpSGE(columns_, number(b_, int64_t{tile_.vectors} * tile_.lanes));
    if (tile_.wide) wide_body();
    else branch(b_, full, [&] { full_body(); }, [&] { body({.edge = true}); });
    b_.CreateRetVoid();
    return function_;
  }

 private:
  using Sums = std::vector<V>;  // [rows][vectors]
  /// Assumptions of a copy of the body.
  struct Knows {
    bool edge = false, copies = false, b_is_packed = false, a_by_rows = false, a_by_steps = false;
  };
  int64_t vector_bytes() const { return tile_.lanes * size_; }
  int64_t c_vector_bytes() const { return tile_.rounds ? vector_bytes() / 2 : vector_bytes(); }
  std::size_t rows() const { return static_cast<std::size_t>(tile_.rows); }
  std::size_t vectors() const { return static_cast<std::size_t>(tile_.vectors); }
  V c_at(std::size_t row, std::size_t vector) {
    V first = at(b_, c_, b_.CreateMul(c_row_, number(b_, static_cast<int64_t>(row))));
    return at(b_, first, past(vector, c_vector_bytes()));
  }
  static int64_t past(std::size_t count, int64_t bytes) { return static_cast<int64_t>(count) * bytes; }

  void wide_body() {
    V by_rows = b_.CreateICmpEQ(a_step_, number(b_, size_));
    branch(b_, by_rows, [&] { body({.a_by_rows = true}); }, [&] { body({}); });
  }
  void full_body() {
    if (tile_.vectors != copying_vectors) return body({});
    branch(b_, b_.CreateIsNull(copy_), [&] { known_body(); }, [&] { body({.copies = true}); });
  }
  void known_body() {
    if (tile_.element->isIntegerTy()) return body({});
    const auto is = [&](V value, int64_t bytes) { return b_.CreateICmpEQ(value, number(b_, bytes)); };
    const auto with_a = [&](const Knows& knows) {
      Knows more = knows;
      more.b_is_packed = true;
      branch(b_, is(b_step_, tile_.vectors * vector_bytes()), [&] { body(more); }, [&] { body(knows); });
    };
    branch(
        b_, is(a_step_, size_), [&] { with_a({.a_by_rows = true}); },
        [&] { branch(b_, is(a_row_, size_), [&] { with_a({.a_by_steps = true}); }, [&] { body({}); }); });
  }

  void body(const Knows& knows) {
    knows_ = knows;
    masks_.assign(vectors(), nullptr);
    for (std::size_t v = 0; knows.edge && v < vectors(); ++v)
      masks_[v] =
          first_lanes(b_, b_.CreateSub(columns_, number(b_, static_cast<int64_t>(v) * tile_.lanes)), tile_.lanes);
    std::vector<V> state = start();
    V wanted = at(b_, c_, next_), last = at(b_, wanted, b_.CreateMul(c_row_, number(b_, tile_.rows - 1)));
    for (V pointer : {copy_, later_, wanted, places_}) state.push_back(pointer);
    state = repeat(b_, runs_, 1, state, [&](V, std::vector<V> s) {
      V place = s.back();
      s.pop_back();
      s = run(std::move(s), at(b_, a_, field(b_, place, 0)), at(b_, right_, field(b_, place, 1)), last);
      s.push_back(at(b_, place, std::int64_t{sizeof(TileRun)}));
      return s;
    });
    state.resize(rows() * vectors());
    if (masks_by_branches()) return store_by_rows(state);
    for (std::size_t i = 0; i < rows(); ++i)
      for (std::size_t v = 0; v < vectors(); ++v) store(b_, result(state[i * vectors() + v]), c_at(i, v), masks_[v]);
  }

  /// True in the copy for edges where an access of some lanes is several branches: each is written once, in a loop.
  bool masks_by_branches() const { return knows_.edge && !tile_.has_masks; }

  /// Room for all sums, on the stack.
  V room_for_sums() {
    llvm::BasicBlock& entry = function_->getEntryBlock();
    Builder first(&entry, entry.getFirstInsertionPt());
    return first.CreateAlloca(llvm::ArrayType::get(vector_, rows() * vectors()));
  }

  /// copy(row of the room, row of c) for all rows, in a loop.
  template <class Copy> void for_rows_of(V room, Copy copy) {
    repeat(b_, number(b_, tile_.rows), 1, {room, c_}, [&](V, std::vector<V> row) {
      for (std::size_t v = 0; v < vectors(); ++v) {
        const int64_t along = past(v, vector_bytes());
        copy(at(b_, row[0], along), at(b_, row[1], along), masks_[v]);
      }
      return std::vector<V>{at(b_, row[0], past(vectors(), vector_bytes())), at(b_, row[1], c_row_)};
    });
  }
  void store_by_rows(const Sums& sums) {
    V room = room_for_sums();
    for (std::size_t i = 0; i < sums.size(); ++i) store(b_, sums[i], at(b_, room, past(i, vector_bytes())));
    for_rows_of(room, [&](V held, V c, V mask) { store(b_, load(b_, vector_, held), c, mask); });
  }
  Sums load_by_rows() {
    V room = room_for_sums();
    for_rows_of(room, [&](V held, V c, V mask) { store(b_, load(b_, vector_, c, mask), held); });
    Sums sums;
    for (std::size_t i = 0; i < rows() * vectors(); ++i)
      sums.push_back(load(b_, vector_, at(b_, room, past(i, vector_bytes()))));
    return sums;
  }

  /// The steps of one run, from the sums and the places to prefetch on to those after it.
  std::vector<V> run(std::vector<V> state, V first_a, V first_b, V last_wanted) {
    const auto count = state.size();
    state.push_back(first_a);
    state.push_back(first_b);
    const auto turn = [&](V, std::vector<V> s) {
      prefetch(b_, s[count - 2], 2);
      prefetch_row(s[count - 1]);
      if (masks_by_branches()) s = steps_in_a_loop(std::move(s), count);
      else steps(s, count, steps_at_once);
      V &later = s[count - 2], &wanted = s[count - 1];
      later = at(b_, later, later_step_);
      wanted = b_.CreateSelect(b_.CreateICmpULT(wanted, last_wanted), at(b_, wanted, c_row_), wanted);
      return s;
    };
    V left = b_.CreateURem(k_, number(b_, steps_at_once));
    state = repeat_if_any(b_, b_.CreateSub(k_, left), steps_at_once, state, turn);
    state = repeat_if_any(b_, left, 1, state, [&](V, std::vector<V> s) {
      steps(s, count, 1);
      return s;
    });
    state.resize(count);
    return state;
  }

  std::vector<V> steps_in_a_loop(std::vector<V> state, std::size_t place) {
    return repeat(b_, number(b_, steps_at_once), 1, state, [&](V, std::vector<V> s) {
      steps(s, place, 1);
      return s;
    });
  }

  /// `count` steps in sequence. Behind the sums and the carried values lie the places of a and b.
  void steps(std::vector<V>& s, std::size_t place, int count) {
    V &a = s[place], &b = s[place + 1], &copy = s[place - 3];
    const int64_t b_bytes = tile_.vectors * vector_bytes();
    int64_t past_a = 0, past_b = 0;  // known, so that addresses hold it
    for (int i = 0; i < count; ++i) {
      step(s, {a, past_a}, at(b_, b, past_b), copy);
      if (knows_.copies) copy = at(b_, copy, b_bytes);
      if (knows_.a_by_rows) past_a += size_;
      else a = at(b_, a, a_step_);
      if (knows_.b_is_packed) past_b += b_bytes;
      else b = at(b_, b, b_step_);
    }
    a = at(b_, a, past_a), b = at(b_, b, past_b);
  }

  V result(V sum) {
    if (!tile_.rounds) return sum;
    V narrow = b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_cvtneps2bf16_512, {}, {sum});
    return b_.CreateBitCast(narrow, llvm::FixedVectorType::get(b_.getInt16Ty(), tile_.lanes));
  }

  /// Rows of c lie far apart, where no hardware prefetcher looks; one a step, since all at once would keep a and b
  /// waiting.
  void prefetch_row(V row) {
    for (int64_t line = 0; line < tile_.vectors * vector_bytes(); line += 64) prefetch(b_, at(b_, row, line), 1, true);
  }

  /// Zeros, or the values of c.
  Sums start() {
    const Sums zeros(rows() * vectors(), llvm::Constant::getNullValue(vector_));
    if (tile_.rounds) return zeros;
    return choose(b_, b_.CreateICmpNE(resume_, number(b_, 0)), zeros, [&] {
      if (masks_by_branches()) return load_by_rows();
      Sums held;
      for (std::size_t i = 0; i < rows(); ++i)
        for (std::size_t v = 0; v < vectors(); ++v) held.push_back(load(b_, vector_, c_at(i, v), masks_[v]));
      return held;
    });
  }

  struct Place {
    V base;
    int64_t past;
  };
  void step(Sums& sums, const Place& a, V b, V copy) {
    if (tile_.wide) return wide_step(sums, a, b);
    Sums columns;
    for (std::size_t v = 0; v < vectors(); ++v)
      columns.push_back(knows_.copies && tile_.pairs
                            ? woven(b, v)
                            : load(b_, vector_, at(b_, b, past(v, vector_bytes())), masks_[v]));
    if (knows_.b_is_packed) keep_order();
    if (!knows_.b_is_packed || tile_.fetches_packed_b) prefetch_b(at(b_, b, b_ahead_));
    for (std::size_t v = 0; knows_.copies && v < vectors(); ++v)
      store(b_, columns[v], at(b_, copy, past(v, vector_bytes())));
    for (std::size_t i = 0; i < rows(); ++i) {
      V x = b_.CreateAlignedLoad(tile_.element, a_at(a, i), llvm::Align(static_cast<uint64_t>(size_)));
      x = b_.CreateVectorSplat(tile_.lanes, x);
      for (std::size_t v = 0; v < vectors(); ++v) {
        V& sum = sums[i * vectors() + v];
        sum = multiply_add(x, columns[v], sum);
      }
    }
  }

  /// There are no registers for all columns at once.
  void wide_step(Sums& sums, const Place& a, V b) {
    prefetch_b(at(b_, b, b_ahead_));
    std::vector<V> rows_of_a;
    for (std::size_t i = 0; i < rows(); ++i) {
      V x = b_.CreateAlignedLoad(tile_.element, a_at(a, i), llvm::Align(static_cast<uint64_t>(size_)));
      rows_of_a.push_back(b_.CreateVectorSplat(tile_.lanes, x));
    }
    for (std::size_t v = 0; v < vectors(); ++v) {
      V columns = load(b_, vector_, at(b_, b, past(v, vector_bytes())));
      for (std::size_t i = 0; i < rows(); ++i) {
        V& sum = sums[i * vectors() + v];
        sum = multiply_add(rows_of_a[i], columns, sum);
      }
    }
  }

  /// Nothing is loaded before earlier work is done: otherwise all loads of a turn would come first, and be kept in
  /// memory.
  void keep_order() {
    b_.CreateCall(llvm::InlineAsm::get(llvm::FunctionType::get(b_.getVoidTy(), false), "", "~{memory}", true));
  }

  void prefetch_b(V row) {
    const bool is_narrow = knows_.copies && tile_.pairs;
    const int64_t bytes = tile_.vectors * (is_narrow ? vector_bytes() / 2 : vector_bytes());
    for (int64_t line = 0; line < bytes; line += 64) {
      prefetch(b_, at(b_, row, line), 1);
      if (is_narrow) prefetch(b_, at(b_, at(b_, row, second_row()), line), 1);
    }
  }

  /// Pairs of two rows of bf16, the first one lower.
  V woven(V b, std::size_t vector) {
    auto* integers = llvm::FixedVectorType::get(b_.getInt32Ty(), tile_.lanes);
    const auto half = [&](V row) {
      V source = at(b_, row, past(vector, vector_bytes()) / 2);
      return b_.CreateZExt(load(b_, llvm::FixedVectorType::get(b_.getInt16Ty(), tile_.lanes), source), integers);
    };
    V upper = b_.CreateShl(half(at(b_, b, second_row())), 16);
    return b_.CreateBitCast(b_.CreateOr(half(b), upper), vector_);
  }
  V second_row() { return b_.CreateLShr(b_step_, 1); }

  /// Groups of three rows: an address may hold a base and once or twice an index.
  V a_at(const Place& a, std::size_t row) {
    if (knows_.a_by_steps) return at(b_, a.base, past(row, size_) + a.past);
    V group = at(b_, a.base, b_.CreateMul(a_row_, number(b_, static_cast<int64_t>(row / 3 * 3))));
    return at(b_, at(b_, group, b_.CreateMul(a_row_, number(b_, static_cast<int64_t>(row % 3)))), a.past);
  }

  V multiply_add(V x, V y, V sum) {
    if (tile_.pairs) {
      auto* pairs = llvm::FixedVectorType::get(b_.getBFloatTy(), 2 * tile_.lanes);
      return b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512, {},
                                {sum, b_.CreateBitCast(x, pairs), b_.CreateBitCast(y, pairs)});
    }
    if (tile_.element->isIntegerTy()) return b_.CreateAdd(sum, b_.CreateMul(x, y));
    return b_.CreateIntrinsic(vector_, llvm::Intrinsic::fma, {x, y, sum});
  }

  const Tile tile_;
  Builder b_;
  llvm::Type* vector_;
  int64_t size_;
  llvm::Function* function_ = nullptr;
  V a_, right_, c_, columns_, resume_, k_, a_row_, a_step_, b_step_, c_row_, b_ahead_, next_, later_, later_step_;
  V runs_, places_, copy_;
  Knows knows_;
  std::vector<V> masks_;
};

}  // namespace

llvm::Function* emit_tile(llvm::Module& module, const Tile& tile, const std::string& name) {
  return TileEmitter(module, tile, name).emit();
}

}  // namespace gradus::cpu_backend
