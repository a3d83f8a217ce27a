/// Copies of operand blocks into panels.
#include "gradus/backend/cpu/tiles/emitter/pack.h"
#include "gradus/backend/cpu/tiles/emitter/ir.h"

namespace gradus::cpu_backend {
namespace {

constexpr int64_t rows_ahead = 6;  // prefetched while copying: short rows far apart, which no hardware prefetcher sees

/// Transposes a square of vectors: in every stage, rows i and i + s exchange blocks of s lanes.
void transpose(Builder& b, std::vector<V>& rows) {
  const int n = static_cast<int>(rows.size());
  for (int s = n / 2; s >= 1; s /= 2)
    for (int i = 0; i < n; ++i) {
      if (i & s) continue;
      std::vector<int> low(n), high(n);
      for (int l = 0; l < n; ++l) {
        low[l] = l & s ? n + l - s : l;
        high[l] = l & s ? n + l : l + s;
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
        size_(pack.element->getPrimitiveSizeInBits() / 8) {
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

  llvm::Function* emit_transpose() {
    const int64_t width = int64_t{pack_.lanes} * pack_.vectors;
    repeat(b_, columns_, width, {source_, target_}, [&](V left, std::vector<V> panel) {
      for (int v = 0; v < pack_.vectors; ++v) {
        V here = b_.CreateSub(left, b_.getInt64(int64_t{v} * pack_.lanes));
        auto strip = [&] {
          transpose_columns(at(b_, panel[0], b_.CreateMul(source_row_, b_.getInt64(int64_t{v} * pack_.lanes))),
                            at(b_, panel[1], v * vector_bytes()), here);
        };
        branch(b_, b_.CreateICmpSGT(here, b_.getInt64(0)), strip, [] {});
      }
      return std::vector<V>{at(b_, panel[0], b_.CreateMul(source_row_, b_.getInt64(width))), at(b_, panel[1], panel_)};
    });
    b_.CreateRetVoid();
    return function_;
  }

 private:
  int64_t vector_bytes() const { return pack_.lanes * size_; }

  void copy_row(V source, V target) {
    const int64_t width = int64_t{pack_.lanes} * pack_.vectors;
    V ahead = b_.CreateMul(source_row_, b_.getInt64(rows_ahead));
    repeat(b_, columns_, width, {source, target}, [&](V left, std::vector<V> s) {
      prefetch(b_, at(b_, s[0], ahead), 1);
      for (int v = 0; v < pack_.vectors; ++v) {
        V mask = first_lanes(b_, b_.CreateSub(left, b_.getInt64(int64_t{v} * pack_.lanes)), pack_.lanes);
        store(b_, load(b_, vector_, at(b_, s[0], v * vector_bytes()), mask), at(b_, s[1], v * vector_bytes()));
      }
      return std::vector<V>{at(b_, s[0], width * size_), at(b_, s[1], panel_)};
    });
  }

  /// A vector's worth of columns, of which `left` exist: the last one stands for those that do not.
  void transpose_columns(V source, V target, V left) {
    std::vector<V> columns;
    V last = b_.CreateSub(left, b_.getInt64(1)), next = b_.CreateMul(source_row_, b_.getInt64(pack_.lanes));
    for (int r = 0; r < pack_.lanes; ++r) {
      V column = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.getInt64(r), last);
      columns.push_back(b_.CreateMul(column, source_row_));
    }
    repeat(b_, rows_, pack_.lanes, {source, target}, [&](V rows_left, std::vector<V> s) {
      V mask = first_lanes(b_, rows_left, pack_.lanes);
      std::vector<V> square;
      for (int r = 0; r < pack_.lanes; ++r) {
        square.push_back(load(b_, vector_, at(b_, s[0], columns[r]), mask));
        prefetch(b_, at(b_, at(b_, s[0], columns[r]), next), 2);
      }
      transpose(b_, square);
      V to = s[1];
      for (int r = 0; r < pack_.lanes; ++r) {
        store(b_, square[r], to);
        to = at(b_, to, target_row_);
      }
      return std::vector<V>{at(b_, s[0], vector_bytes()), to};
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

}  // namespace gradus::cpu_backend
