/// Copies of operand blocks into panels.
#include "gradus/backend/cpu/tiles/emitter/pack.h"
#include <llvm/IR/IntrinsicsX86.h>
#include "gradus/backend/cpu/tiles/emitter/ir.h"

namespace gradus::cpu_backend {
namespace {

constexpr int64_t rows_ahead = 6;  // prefetched while copying: short rows far apart, which no hardware prefetcher sees

/// Transposes a square of vectors: in every stage, rows i and i + s exchange blocks of s lanes.
void transpose(Builder& b, std::vector<V>& rows) {
  const std::size_t n = rows.size();
  for (std::size_t s = n / 2; s >= 1; s /= 2)
    for (std::size_t i = 0; i < n; ++i) {
      if (i & s) continue;
      std::vector<int> low(n), high(n);
      for (std::size_t l = 0; l < n; ++l) {
        low[l] = static_cast<int>(l & s ? n + l - s : l);
        high[l] = static_cast<int>(l & s ? n + l : l + s);
      }
      V x = rows[i], y = rows[i + s];
      rows[i] = b.CreateShuffleVector(x, y, low);
      rows[i + s] = b.CreateShuffleVector(x, y, high);
    }
}

class PackEmitter {
 public:
  PackEmitter(llvm::Module& module, const Pack& pack, const std::string& name)
      : pack_(pack),
        b_(module.getContext()),
        vector_(llvm::FixedVectorType::get(pack.element, pack.lanes)),
        size_(static_cast<int64_t>(pack.element->getPrimitiveSizeInBits()) / 8) {
    llvm::Type* p = b_.getPtrTy();
    function_ = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), {p, p, p}, false),
                                       llvm::Function::InternalLinkage, name, module);
    b_.SetInsertPoint(llvm::BasicBlock::Create(b_.getContext(), "entry", function_));
    source_ = function_->getArg(0), target_ = function_->getArg(1);
    V shape = function_->getArg(2);
    rows_ = field(b_, shape, 0), columns_ = field(b_, shape, 1), source_row_ = field(b_, shape, 2);
    target_row_ = field(b_, shape, 3), panel_ = field(b_, shape, 4);
  }

  /// Rows outside: reads walk along memory.
  llvm::Function* emit_copy() {
    repeat(b_, rows_, 1, {source_, target_}, [&](V, std::vector<V> row) {
      copy_row(row[0], row[1]);
      return std::vector<V>{at(b_, row[0], source_row_), at(b_, row[1], target_row_)};
    });
    b_.CreateRetVoid();
    return function_;
  }

  llvm::Function* emit_pair_rows() {
    V pairs = b_.CreateLShr(rows_, 1), twice = b_.CreateShl(source_row_, 1);
    auto all = [&] {
      repeat(b_, pairs, 1, {source_, target_}, [&](V, std::vector<V> row) {
        copy_pair(row[0], at(b_, row[0], source_row_), row[1]);
        return std::vector<V>{at(b_, row[0], twice), at(b_, row[1], target_row_)};
      });
    };
    branch(b_, b_.CreateICmpSGT(pairs, number(b_, 0)), all, [] {});
    auto last = [&] {
      copy_pair(at(b_, source_, b_.CreateMul(pairs, twice)), nullptr,
                at(b_, target_, b_.CreateMul(pairs, target_row_)));
    };
    branch(b_, b_.CreateTrunc(rows_, b_.getInt1Ty()), last, [] {});
    b_.CreateRetVoid();
    return function_;
  }

  llvm::Function* emit_round() {
    repeat(b_, rows_, 1, {source_, target_}, [&](V, std::vector<V> row) {
      repeat(b_, columns_, pack_.lanes, {row[0], row[1]}, [&](V left, std::vector<V> s) {
        auto part = [&](bool full) {
          V mask = full ? nullptr : first_lanes(b_, left, pack_.lanes);
          store(b_, rounded(load(b_, vector_, s[0], mask)), s[1], mask);
        };
        branch(b_, b_.CreateICmpSGE(left, number(b_, pack_.lanes)), [&] { part(true); }, [&] { part(false); });
        return std::vector<V>{at(b_, s[0], vector_bytes()), at(b_, s[1], vector_bytes() / 2)};
      });
      return std::vector<V>{at(b_, row[0], source_row_), at(b_, row[1], target_row_)};
    });
    b_.CreateRetVoid();
    return function_;
  }

  llvm::Function* emit_transpose() {
    const int64_t width = int64_t{pack_.lanes} * pack_.vectors;
    repeat(b_, columns_, width, {source_, target_}, [&](V left, std::vector<V> panel) {
      for (int v = 0; v < pack_.vectors; ++v) {
        V here = b_.CreateSub(left, number(b_, int64_t{v} * pack_.lanes));
        auto strip = [&] {
          transpose_columns(at(b_, panel[0], b_.CreateMul(source_row_, number(b_, int64_t{v} * pack_.lanes))),
                            at(b_, panel[1], v * vector_bytes()), here);
        };
        branch(b_, b_.CreateICmpSGT(here, number(b_, 0)), strip, [] {});
      }
      return std::vector<V>{at(b_, panel[0], b_.CreateMul(source_row_, number(b_, width))), at(b_, panel[1], panel_)};
    });
    b_.CreateRetVoid();
    return function_;
  }

 private:
  int64_t vector_bytes() const { return pack_.lanes * size_; }

  /// part(full): once with masks, or, where these are dear, apart for whole widths.
  template <class Part> void for_edge_or_all(V left, int64_t width, Part part) {
    if (pack_.has_masks) return part(false);
    branch(b_, b_.CreateICmpSGE(left, number(b_, width)), [&] { part(true); }, [&] { part(false); });
  }

  void copy_row(V source, V target) {
    const int64_t width = int64_t{pack_.lanes} * pack_.vectors;
    V ahead = b_.CreateMul(source_row_, number(b_, rows_ahead));
    repeat(b_, columns_, width, {source, target}, [&](V left, std::vector<V> s) {
      prefetch(b_, at(b_, s[0], ahead), 1);
      for_edge_or_all(left, width, [&](bool full) {
        for (int v = 0; v < pack_.vectors; ++v) {
          V here = full ? nullptr : b_.CreateSub(left, number(b_, int64_t{v} * pack_.lanes));
          V mask = full ? nullptr : first_lanes(b_, here, pack_.lanes);
          store(b_, load(b_, vector_, at(b_, s[0], v * vector_bytes()), mask), at(b_, s[1], v * vector_bytes()));
        }
      });
      return std::vector<V>{at(b_, s[0], width * size_), at(b_, s[1], panel_)};
    });
  }

  /// Elements of two rows side by side; `second` may be missing.
  void copy_pair(V first, V second, V target) {
    const int64_t width = int64_t{pack_.lanes} * pack_.vectors;
    V apart = second ? b_.CreatePtrDiff(b_.getInt8Ty(), second, first) : nullptr;
    V ahead = b_.CreateMul(source_row_, number(b_, rows_ahead));
    repeat(b_, columns_, width, {first, target}, [&](V left, std::vector<V> s) {
      prefetch(b_, at(b_, s[0], ahead), 1);
      if (second) prefetch(b_, at(b_, at(b_, s[0], ahead), source_row_), 1);
      auto part = [&](bool full) {
        for (int v = 0; v < pack_.vectors; ++v) {
          V here = b_.CreateSub(left, number(b_, int64_t{v} * pack_.lanes));
          V mask = full ? nullptr : first_lanes(b_, here, pack_.lanes);
          V source = at(b_, s[0], v * vector_bytes() / 2);
          V pair = halves(source, mask);
          if (second) pair = b_.CreateOr(pair, b_.CreateShl(halves(at(b_, source, apart), mask), 16));
          store(b_, pair, at(b_, s[1], v * vector_bytes()));
        }
      };
      branch(b_, b_.CreateICmpSGE(left, number(b_, width)), [&] { part(true); }, [&] { part(false); });
      return std::vector<V>{at(b_, s[0], width * size_ / 2), at(b_, s[1], panel_)};
    });
  }

  /// 16-bit elements in the lower halves of lanes.
  V halves(V source, V mask) {
    return b_.CreateZExt(load(b_, llvm::FixedVectorType::get(b_.getInt16Ty(), pack_.lanes), source, mask), vector_);
  }

  /// Floats as bf16, to nearest even, with the bits that generated kernels round to.
  V rounded(V x) {
    auto* narrow = llvm::FixedVectorType::get(b_.getInt16Ty(), pack_.lanes);
    if (pack_.by_instruction)
      return b_.CreateBitCast(b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_cvtneps2bf16_512, {}, {x}), narrow);
    const auto all = [&](std::uint32_t n) { return b_.CreateVectorSplat(pack_.lanes, b_.getInt32(n)); };
    V bits = b_.CreateBitCast(x, llvm::FixedVectorType::get(b_.getInt32Ty(), pack_.lanes));
    V odd = b_.CreateAnd(b_.CreateLShr(bits, all(16)), all(1));
    V nearest = b_.CreateAdd(b_.CreateAdd(bits, all(0x7fff)), odd);
    V quiet = b_.CreateOr(bits, all(0x400000));
    return b_.CreateTrunc(b_.CreateLShr(b_.CreateSelect(b_.CreateFCmpUNO(x, x), quiet, nearest), all(16)), narrow);
  }

  /// A vector's worth of columns, `left` of which exist: the last one stands for missing ones.
  void transpose_columns(V source, V target, V left) {
    std::vector<V> columns;
    V last = b_.CreateSub(left, number(b_, 1)), next = b_.CreateMul(source_row_, number(b_, pack_.lanes));
    for (unsigned r = 0; r < pack_.lanes; ++r) {
      V column = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, number(b_, r), last);
      columns.push_back(b_.CreateMul(column, source_row_));
    }
    repeat(b_, rows_, pack_.lanes, {source, target}, [&](V rows_left, std::vector<V> s) {
      V after = pack_.has_masks ? nullptr : at(b_, s[1], b_.CreateMul(target_row_, number(b_, pack_.lanes)));
      for_edge_or_all(rows_left, pack_.lanes, [&](bool full) {
        V mask = full ? nullptr : first_lanes(b_, rows_left, pack_.lanes);
        std::vector<V> square;
        for (unsigned r = 0; r < pack_.lanes; ++r) {
          square.push_back(load(b_, vector_, at(b_, s[0], columns[r]), mask));
          prefetch(b_, at(b_, at(b_, s[0], columns[r]), next), 2);
        }
        transpose(b_, square);
        V to = s[1];
        for (unsigned r = 0; r < pack_.lanes; ++r) {
          store(b_, square[r], to);
          to = at(b_, to, target_row_);
        }
        if (pack_.has_masks) after = to;
      });
      return std::vector<V>{at(b_, s[0], vector_bytes()), after};
    });
  }

  const Pack pack_;
  Builder b_;
  llvm::Type* vector_;
  int64_t size_;
  llvm::Function* function_ = nullptr;
  V source_, target_, rows_, columns_, source_row_, target_row_, panel_;
};

}  // namespace

llvm::Function* emit_copy(llvm::Module& module, const Pack& pack, const std::string& name) {
  return PackEmitter(module, pack, name).emit_copy();
}

llvm::Function* emit_transpose(llvm::Module& module, const Pack& pack, const std::string& name) {
  return PackEmitter(module, pack, name).emit_transpose();
}

llvm::Function* emit_pair_rows(llvm::Module& module, const Pack& pack, const std::string& name) {
  return PackEmitter(module, pack, name).emit_pair_rows();
}

llvm::Function* emit_round(llvm::Module& module, const Pack& pack, const std::string& name) {
  return PackEmitter(module, pack, name).emit_round();
}

}  // namespace gradus::cpu_backend
